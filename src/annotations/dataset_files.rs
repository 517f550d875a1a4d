//! What exports and patches of datasets write alike, and the files with what the formats lack. Spotcheck writes both;
//! Datumaro, CVAT's library, also reads and writes the classes.

use std::collections::HashMap;
use std::io;

use quick_xml::Writer as XmlWriter;
use quick_xml::events::BytesText;

use super::rows::{each_row, unescaped};

/// The names of all classes of Pascal VOC, also of those without an object.
pub(crate) const VOC_CLASSES: &str = "dataset_meta.json";

/// The label files of YOLO and Pascal VOC with their images. A label file has another name than its image if a file
/// system could not hold it, or if two images differ only in their extension.
pub(crate) const IMAGE_LIST: &str = "images.csv";

/// The header: the label file, relative to the folder of the list; the image, relative to the folder of images; and the
/// image's URI. Text is [`escaped`](super::rows::escaped).
pub(crate) const IMAGE_LIST_COLUMNS: [&str; 3] = ["label", "image", "uri"];

/// The image of each listed label file. Empty without a list.
#[derive(Debug, Default)]
pub(super) struct ImagesByFile(HashMap<String, ListedImage>);

#[derive(Debug)]
struct ListedImage {
    name: String,
    uri: String,
}

impl ImagesByFile {
    /// Another table with this name is no list.
    pub(super) fn read(content: &[u8]) -> Self {
        let mut images = HashMap::new();
        let mut is_list = None;
        let read = each_row(content, ',', |_, cells| {
            let cells = cells.unwrap_or_default();
            let is_list = *is_list.get_or_insert_with(|| cells.iter().eq(IMAGE_LIST_COLUMNS));
            if let (true, [label, image, uri]) = (is_list, cells) {
                let [label, name, uri] = [label, image, uri].map(|cell| unescaped(cell).to_owned());
                images.insert(label, ListedImage { name, uri });
            }
        });
        read.expect("memory can always be read");
        Self(images)
    }

    pub(super) fn get(&self, file: &str) -> Option<&str> {
        self.0.get(file).map(|image| image.name.as_str())
    }

    /// The URI of the original, if the image is a copy with another name.
    pub(super) fn original(&self, file: &str) -> Option<&str> {
        let ListedImage { name, uri } = self.0.get(file)?;
        (!uri.is_empty() && !uri.ends_with(name)).then_some(uri)
    }
}

/// The numbers of a box in YOLO's label files: its center and size as fractions of the image.
pub(crate) fn yolo_label_text([x, y, width, height]: [f64; 4]) -> String {
    format!("{x:.7} {y:.7} {width:.7} {height:.7}")
}

/// The edges of an interval in whole pixels, as Pascal VOC has them because many readers accept no fractions. An interval
/// without a whole pixel is the pixel of its center.
pub(crate) fn whole_pixels([low, high]: [f64; 2]) -> [f64; 2] {
    let edges = [low, high].map(f64::round);
    if edges[0] < edges[1] {
        return edges;
    }
    let pixel = f64::midpoint(low, high).floor();
    [pixel, pixel + 1.0]
}

pub(crate) type XmlBytes = XmlWriter<Vec<u8>>;

/// The lines of an object with its first and last pixels, counted from 1, and its score, if any. Each level is indented
/// once; without an indentation, it is a single line.
pub(super) fn object_xml(name: &str, sides: [f64; 4], score: Option<f64>, indent: Option<&str>) -> io::Result<String> {
    let indented = |indent: &str| XmlWriter::new_with_indent(Vec::new(), indent.as_bytes()[0], indent.len());
    let mut xml = indent.filter(|indent| !indent.is_empty()).map_or_else(|| XmlWriter::new(Vec::new()), indented);
    xml.create_element("annotation").write_inner_content(|xml| {
        write_object(xml, name, sides, |xml| score.map_or(Ok(()), |score| xml_text(xml, "score", &score.to_string())))
    })?;
    let text = String::from_utf8(xml.into_inner()).map_err(io::Error::other)?;
    let object = text.strip_prefix("<annotation>").and_then(|text| text.strip_suffix("</annotation>"));
    Ok(object.unwrap_or_default().trim_start_matches('\n').to_owned())
}

/// Writes an object with its first and last pixels, counted from 1.
///
/// # Errors
/// Those that `details` returns.
pub(crate) fn write_object(
    xml: &mut XmlBytes,
    name: &str,
    [xmin, ymin, xmax, ymax]: [f64; 4],
    details: impl FnOnce(&mut XmlBytes) -> io::Result<()>,
) -> io::Result<()> {
    xml.create_element("object").write_inner_content(|xml| {
        xml_text(xml, "name", name)?;
        xml_text(xml, "pose", "Unspecified")?;
        xml_text(xml, "truncated", "0")?;
        xml_text(xml, "difficult", "0")?;
        details(xml)?;
        xml.create_element("bndbox").write_inner_content(|xml| {
            xml_text(xml, "xmin", &xmin.to_string())?;
            xml_text(xml, "ymin", &ymin.to_string())?;
            xml_text(xml, "xmax", &xmax.to_string())?;
            xml_text(xml, "ymax", &ymax.to_string())
        })?;
        Ok(())
    })?;
    Ok(())
}

/// Writes an element with text.
///
/// # Errors
/// None in memory.
pub(crate) fn xml_text(xml: &mut XmlBytes, tag: &str, content: &str) -> io::Result<()> {
    let content: String = content.chars().map(xml_char).collect();
    xml.create_element(tag).write_text_content(BytesText::new(&content))?;
    Ok(())
}

/// XML 1.0 cannot represent other control characters, not even escaped (section 2.2).
pub(crate) fn xml_char(letter: char) -> char {
    match letter {
        '\t' | '\n' | '\r' => letter,
        '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => char::REPLACEMENT_CHARACTER,
        _ => letter,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_files_have_their_images() {
        let list = "label,image,uri\r\nlabels/_a.txt,' a.png,file:///x\r\nlabels/b.txt,\"b\nb.png\",\r\n\"open,c\r\n";
        let images = ImagesByFile::read(list.as_bytes());
        let found = ["labels/_a.txt", "labels/b.txt", "labels/c.txt"].map(|file| images.get(file));
        assert_eq!(found, [Some(" a.png"), Some("b\nb.png"), None]);
        let list =
            "label,image,uri\nlabels/a.txt,a.png,/o/a.png\nlabels/a-2.txt,a-2.jpg,/o/a.jpg\nlabels/b.txt,b.png,\n";
        let images = ImagesByFile::read(list.as_bytes());
        let originals = ["labels/a.txt", "labels/a-2.txt", "labels/b.txt"].map(|file| images.original(file));
        assert_eq!(originals, [None, Some("/o/a.jpg"), None]);
    }

    #[test]
    fn other_tables_are_no_list() {
        for table in
            ["", "image,label,uri\nlabels/a.txt,a.png,x\n", "labels/a.txt,a.png,x\n", "label,image\nlabels/a.txt,a\n"]
        {
            assert_eq!(ImagesByFile::read(table.as_bytes()).get("labels/a.txt"), None, "{table}");
        }
    }
}
