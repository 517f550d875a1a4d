//! Reading EXIF data for searches and sort orders.

use std::sync::Arc;

use crate::domain::{Sample, SampleId, SharedList};
use crate::image::capture::CaptureReader;
use crate::image::source::{SourceError, for_task};
use crate::window::effects::Shared;
use crate::window::state::{BrowseEvent, Failure, ReadCapture, SourceId, Ticket};

pub(crate) fn read(shared: &Arc<Shared>, source: SourceId, samples: SharedList<Sample>, ticket: Ticket) {
    shared.run_task(
        "read EXIF data",
        ticket,
        move |shared, ticket| read_all(shared, source, &samples, ticket),
        move |task, result| BrowseEvent::CapturesEnded { task, result },
    );
}

fn read_all(shared: &Shared, id: SourceId, samples: &SharedList<Sample>, ticket: &Ticket) -> Result<(), Failure> {
    let control = &ticket.control;
    let source = shared.source(id).ok_or_else(|| "The folder has been closed".to_owned())?;
    let source = for_task(&source, control);
    let unread = |(_, sample): &(usize, &Sample)| sample.capture.is_none();
    let unread: Vec<(usize, &Sample)> = samples.iter().enumerate().filter(unread).collect();
    control.set_total(Some(unread.len() as u64));
    let mut reader = CaptureReader::default();
    for chunk in unread.chunks(CaptureReader::CHUNK) {
        control.checkpoint()?;
        let samples: Vec<Sample> = chunk.iter().map(|(_, sample)| (*sample).clone()).collect();
        let mut read = Vec::with_capacity(chunk.len());
        for ((index, sample), result) in chunk.iter().zip(reader.read(&*source, &samples)) {
            let result = match result {
                Err(SourceError::Cancelled) => return Err(Failure::Cancelled),
                Err(error @ SourceError::Unreachable(_)) => return Err(Failure::from(error.to_string())),
                result => result.map_err(|error| error.to_string()),
            };
            read.push(ReadCapture { sample: SampleId::from_index(*index), stamp: sample.stamp(), result });
        }
        control.add_done(read.len() as u64);
        if !shared.report(BrowseEvent::CapturesRead { source: id, read }) {
            break;
        }
    }
    Ok(())
}
