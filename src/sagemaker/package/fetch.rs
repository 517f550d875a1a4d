//! Downloads an archive from S3.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use super::PackageError;
use super::unpack::{Bound, free_bytes};
use crate::aws::S3;
use crate::domain::S3Address;
use crate::tasks::TaskControl;

/// The bytes fetched per request and held in memory.
const PART: u64 = 8 << 20;

/// Writes the object to `target`, which must not exist. Progress is in bytes.
///
/// # Errors
/// It cannot be read, changes meanwhile, or is larger than a model can be or the disk has space for. What was written
/// until then stays.
pub fn fetch(s3: &S3, address: &S3Address, target: &Path, control: &TaskControl) -> Result<(), PackageError> {
    let (bucket, key) = (&address.bucket, &address.prefix);
    let object = s3.object(bucket, key, Some(control))?;
    let size = object.size_bytes;
    let bound = Bound::of(u64::MAX, target.parent().and_then(free_bytes));
    if size > bound.bytes {
        return Err(bound.exceeded(Path::new(&address.to_string())));
    }
    control.set_step("Fetching the archive");
    control.set_total(Some(size));
    let failed = |source: io::Error| PackageError::Unpack { folder: target.to_owned(), source };
    let mut file = File::create_new(target).map_err(failed)?;
    let mut done = 0;
    while done < size {
        let range = done..(done + PART).min(size);
        let part = s3.read_range(bucket, key, range, object.etag.as_deref(), Some(control))?;
        if part.is_empty() {
            let path = address.to_string().into();
            return Err(PackageError::Changed { path });
        }
        file.write_all(&part).map_err(failed)?;
        done += part.len() as u64;
        control.add_done(part.len() as u64);
    }
    Ok(())
}
