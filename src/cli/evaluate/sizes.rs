//! Sizes of images, for boxes that are fractions of them.

use anyhow::bail;

use super::sides::Listing;
use crate::domain::{AnnotatedImage, BoxUnit, Sample};
use crate::matching::{ImageKey, ImageMatches};
use crate::remote::outputs::image_size;
use crate::source::for_task;
use crate::tasks::{ProgressUnit, TaskControl};

/// Reads the headers of images whose boxes are fractions of a size that their file does not say. What the source does
/// not have stays without a size.
///
/// # Errors
/// Cancelled, or an image cannot be read: without its boxes the numbers would be wrong.
pub(super) fn add(
    images: &mut [AnnotatedImage],
    (source, samples): &Listing,
    control: &TaskControl,
) -> anyhow::Result<()> {
    let is_fraction = |image: &AnnotatedImage| image.boxes.iter().any(|found| found.unit == BoxUnit::Fractions);
    let unknown = images.iter_mut().filter(|image| image.size.is_none() && is_fraction(image));
    let mut images: Vec<&mut AnnotatedImage> = unknown.collect();
    if images.is_empty() {
        return Ok(());
    }
    control.begin(ProgressUnit::Images);
    control.set_total(Some(images.len() as u64));
    control.set_step("reading the sizes of images");
    let keys: Vec<ImageKey<'_>> = images.iter().map(|image| ImageKey::of(image)).collect();
    let named: Vec<ImageKey<'_>> = samples.iter().map(|sample| ImageKey::named(&sample.name)).collect();
    let matches = ImageMatches::between(&keys, &named);
    drop(keys);
    let wanted: Vec<(usize, &Sample)> =
        (0..images.len()).filter_map(|index| Some((index, &samples[matches.index(index)? as usize]))).collect();
    let source = for_task(source, control);
    let readers = source.useful_reads().max(1);
    let read = |from: usize| {
        let wanted = wanted.iter().skip(from).step_by(readers);
        let wanted = wanted.take_while(|_| control.checkpoint().is_ok());
        let sized = wanted.map(|(index, sample)| {
            let size = image_size(&*source, &sample.uri);
            control.add_done(1);
            (*index, size)
        });
        sized.collect::<Vec<_>>()
    };
    let read = &read;
    let sizes: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..readers).map(|from| scope.spawn(move || read(from))).collect();
        let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined.flat_map(|read| read.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    control.checkpoint()?;
    for (index, size) in sizes {
        match size {
            Ok(size) => images[index].size = Some(size),
            Err(error) => bail!("Could not read the size of {}: {error}", images[index].name),
        }
    }
    Ok(())
}
