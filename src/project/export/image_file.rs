//! Writes an image to a file atomically.

use std::io::{self, Write};
use std::path::Path;

use super::target::partial_file;
use crate::domain::RgbImage;
use crate::image::decode::{EncodeError, encode_jpeg, encode_png};

/// Why an image could not be written. The message is only the cause; the caller knows the file.
#[derive(Debug, thiserror::Error)]
pub enum ImageFileError {
    #[error("{0}")]
    Write(#[from] io::Error),
    #[error("{0}")]
    Encode(#[from] EncodeError),
}

/// Writes a high-quality JPEG if the file name ends in `.jpg` or `.jpeg`, otherwise a lossless PNG. Replaces an
/// existing file.
/// file is replaced.
pub fn write_image(image: &RgbImage, path: &Path) -> Result<(), ImageFileError> {
    const JPEG_QUALITY: u8 = 92;
    let is_jpeg = path
        .extension()
        .is_some_and(|extension| ["jpg", "jpeg"].iter().any(|jpeg| extension.eq_ignore_ascii_case(jpeg)));
    let content = if is_jpeg { encode_jpeg(image, JPEG_QUALITY)? } else { encode_png(image)? };
    Ok(replace(path, &content)?)
}

/// Writes next to the target and renames, so that no reader ever sees half a file.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut file = partial_file(folder, ".spotcheck-".as_ref())?;
    file.write_all(content)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::image::decode::{DecodeLimits, Format, decode};

    fn image() -> RgbImage {
        RgbImage::new(2, 1, vec![1, 2, 3, 4, 5, 6]).unwrap()
    }

    #[test]
    fn existing_image_file_is_replaced_cleanly() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.png");
        fs::write(&path, "old").unwrap();
        write_image(&image(), &path).unwrap();
        let written = fs::read(&path).unwrap();
        let decoded = decode(&written, &DecodeLimits::default()).unwrap();
        assert_eq!(decoded.image, image());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn extension_selects_the_format() {
        let folder = tempfile::tempdir().unwrap();
        for (name, format) in [("a.JPG", Format::Jpeg), ("b.jpeg", Format::Jpeg), ("c", Format::Png)] {
            let path = folder.path().join(name);
            write_image(&image(), &path).unwrap();
            assert_eq!(Format::detect(&fs::read(&path).unwrap()), Ok(format), "{name}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn new_file_has_default_permissions() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (ours, plain) = (folder.path().join("ours.png"), folder.path().join("plain"));
        write_image(&image(), &ours).unwrap();
        fs::write(&plain, "").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&ours), mode(&plain));
    }
}
