//! The picture in the middle, at every size it may be shown at.

use std::sync::Arc;

use super::latest::{LatestSender, latest};
use super::{Delivery, Shared, guarded};
use crate::decode::{self, ImageDetails};
use crate::domain::SampleId;
use crate::domain::{DisplayPicture, SampleUri, human_bytes};
use crate::state::{DisplayInfo, Event, SourceId};

/// Decodes one picture at a time; a newer request replaces one that has not begun.
pub(super) struct DisplayMaker {
    requests: LatestSender<Request>,
}

struct Request {
    source: SourceId,
    sample: SampleId,
    uri: SampleUri,
}

impl DisplayMaker {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        let (requests, taken) = latest::<Request>();
        shared.spawn("decode the picture", move |shared| {
            while let Some(request) = taken.take() {
                if !answer(shared, &request) {
                    break;
                }
            }
        });
        Self { requests }
    }

    pub(super) fn want(&self, source: SourceId, sample: SampleId, uri: SampleUri) {
        self.requests.put(Request {
            source,
            sample,
            uri,
        });
    }
}

/// False where the window is gone.
fn answer(shared: &Shared, request: &Request) -> bool {
    let result = guarded(|| decode_picture(shared, request));
    let (result, picture) = match result {
        Ok((info, picture)) => (Ok(info), Some(picture)),
        Err(reason) => (Err(reason), None),
    };
    let delivered = picture.is_none_or(|picture| {
        shared.deliver(Delivery::Picture {
            source: request.source,
            sample: request.sample,
            picture,
        })
    });
    delivered
        && shared.report(Event::Displayed {
            source: request.source,
            sample: request.sample,
            result,
        })
}

fn decode_picture(
    shared: &Shared,
    request: &Request,
) -> Result<(DisplayInfo, DisplayPicture), String> {
    let source = shared
        .source(request.source)
        .ok_or("The folder has been closed")?;
    let bytes = source
        .read(&request.uri)
        .map_err(|error| error.to_string())?;
    let displayed =
        decode::decode_for_display(&bytes, &shared.limits()).map_err(|error| error.to_string())?;
    let size = [displayed.picture.width(), displayed.picture.height()];
    let info = DisplayInfo {
        size,
        warning: displayed.warning,
        details: rows(&decode::details(&bytes), size, bytes.len() as u64),
    };
    Ok((info, DisplayPicture::new(displayed.picture)))
}

/// Names and values as the inspector shows them.
fn rows(details: &ImageDetails, size: [u32; 2], bytes: u64) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    let mut row = |name: &str, value: String| rows.push((name.to_owned(), value));
    let [width, height] = size;
    let megapixels = f64::from(width) * f64::from(height) / 1e6;
    row("Size", format!("{width} × {height} ({megapixels:.1} MP)"));
    if let Some((stored_width, stored_height)) = details.stored_size
        && [stored_width, stored_height] != size
    {
        row("Stored as", format!("{stored_width} × {stored_height}"));
    }
    row("File size", human_bytes(bytes));
    if let Some(format) = details.format {
        row("Format", format.name().to_owned());
    }
    if let Some(colour) = &details.colour {
        row("Colour", colour.clone());
    }
    rows.extend(details.exif.iter().cloned());
    rows
}
