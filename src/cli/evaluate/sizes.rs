//! Image sizes: for boxes that are fractions, and for checking that annotations are for images of this size.

use anyhow::bail;

use super::sides::Listing;
use crate::annotations::matching::{Folders, ImageKey, ImageMatches};
use crate::domain::Sample;
use crate::evaluation::GroundTruth;
use crate::image::source::for_task;
use crate::sagemaker::outputs::image_size;
use crate::tasks::{ProgressUnit, TaskControl};

/// Reads the headers of the ground-truth images. Images that the source does not have get no size.
///
/// # Errors
/// Canceled, or the only source of an image's size cannot be read: without its boxes, the metrics would be wrong.
pub(crate) fn read(
    truth: &GroundTruth,
    (source, samples): &Listing,
    folders: Folders,
    control: &TaskControl,
) -> anyhow::Result<Vec<Option<[u32; 2]>>> {
    let named: Vec<ImageKey<'_>> = samples.iter().map(|sample| ImageKey::named(&sample.name)).collect();
    let matches = ImageMatches::between(&truth.keys(), &named, folders);
    let sample = |index: usize| Some((index, &samples[matches.index(index)? as usize]));
    let wanted: Vec<(usize, &Sample)> = (0..truth.images.len()).filter_map(sample).collect();
    control.begin(ProgressUnit::Images);
    control.set_total(Some(wanted.len() as u64));
    control.set_step("reading image sizes");
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
    let read: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..readers).map(|from| scope.spawn(move || read(from))).collect();
        let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined.flat_map(|read| read.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    control.checkpoint()?;
    let mut sizes = vec![None; truth.images.len()];
    for (index, size) in read {
        let image = &truth.images[index];
        match size {
            Ok(size) => sizes[index] = Some(size),
            Err(error) if image.size.is_none() => bail!("Could not read the size of {}: {error}", image.name),
            // The size in the annotations cannot be checked.
            Err(_) => {}
        }
    }
    Ok(sizes)
}
