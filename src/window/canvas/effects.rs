//! The shown image: a coarse version first, then the visible tiles.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use crate::domain::{
    BoundingBox, DisplayImage, PixelSource, SampleId, SampleUri, TileKey, TileLayout, Truth, human_bytes,
};
use crate::image::decode;
use crate::image::decode::{ImageDetails, ImagePyramid};
use crate::image::source::for_task;
use crate::tasks::{ProgressUnit, TaskControl};
use crate::window::effects::{Delivery, Shared, guarded};
use crate::window::state::{BrowseEvent, DisplayInfo, SourceId};

/// The limit of the file's boxes that are listed one by one.
const MAX_LISTED_BOXES: usize = 20;
/// The number of threads: one can cut while another waits for the window to take a tile.
const CUTTERS: usize = 2;

/// Opens one image at a time; a newer request replaces one that has not started. One thread decodes; others cut tiles
/// from what is decoded.
pub(crate) struct DisplayMaker {
    queue: Arc<DisplayQueue>,
}

struct Request {
    source: SourceId,
    sample: SampleId,
    uri: SampleUri,
    /// Cancels reading once another image is shown.
    control: TaskControl,
}

/// The shared state of the threads.
struct DisplayQueue {
    content: Mutex<Content>,
    changed: Condvar,
}

struct Content {
    request: Option<Request>,
    /// The control of the last request.
    reading: Option<TaskControl>,
    open: Option<Open>,
    /// The requested tiles, most urgent first.
    requested: VecDeque<TileKey>,
    /// Tiles that are being cut.
    under_way: HashSet<TileKey>,
    /// Levels of the open image that cannot be decoded.
    failed: HashSet<usize>,
    is_open: bool,
}

#[derive(Clone)]
struct Open {
    source: SourceId,
    sample: SampleId,
    image: Arc<ImagePyramid>,
}

enum DecodeJob {
    Open(Request),
    Level(Open, usize),
}

impl DisplayMaker {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        let content = Content {
            request: None,
            reading: None,
            open: None,
            requested: VecDeque::new(),
            under_way: HashSet::new(),
            failed: HashSet::new(),
            is_open: true,
        };
        let queue = Arc::new(DisplayQueue { content: Mutex::new(content), changed: Condvar::new() });
        let decoding = Arc::clone(&queue);
        shared.spawn("decode the image", move |shared| {
            while let Some(job) = decoding.take_decode_job() {
                let is_window_open = match job {
                    DecodeJob::Open(request) => open(shared, &decoding, &request),
                    DecodeJob::Level(open, level) => load(shared, &decoding, &open, level),
                };
                if !is_window_open {
                    break;
                }
            }
        });
        for _ in 0..CUTTERS {
            let cutting = Arc::clone(&queue);
            shared.spawn("cut tiles of the image", move |shared| {
                while let Some((open, key)) = cutting.take_tile() {
                    if !cut(shared, &cutting, &open, key) {
                        break;
                    }
                }
            });
        }
        Self { queue }
    }

    pub(crate) fn request(&self, source: SourceId, sample: SampleId, uri: SampleUri) {
        let control = TaskControl::new(ProgressUnit::Bytes);
        let mut content = self.queue.content.lock();
        if let Some(earlier) = content.reading.replace(control.clone()) {
            earlier.cancel();
        }
        content.request = Some(Request { source, sample, uri, control });
        content.close_image();
        self.queue.changed.notify_all();
    }

    /// Replaces the previously requested tiles, except those being cut.
    pub(crate) fn request_tiles(&self, source: SourceId, sample: SampleId, tiles: Vec<TileKey>) {
        let mut content = self.queue.content.lock();
        if content.shows(source, sample) {
            content.requested = tiles.into();
            self.queue.changed.notify_all();
        }
    }
}

impl Drop for DisplayMaker {
    fn drop(&mut self) {
        let mut content = self.queue.content.lock();
        content.is_open = false;
        if let Some(reading) = content.reading.take() {
            reading.cancel();
        }
        self.queue.changed.notify_all();
    }
}

impl Content {
    fn shows(&self, source: SourceId, sample: SampleId) -> bool {
        self.open.as_ref().is_some_and(|open| (open.source, open.sample) == (source, sample))
    }

    fn close_image(&mut self) {
        self.open = None;
        self.requested.clear();
        self.under_way.clear();
        self.failed.clear();
    }

    /// The level that the most urgent tile waits for.
    fn level_to_load(&self) -> Option<usize> {
        let image = &self.open.as_ref()?.image;
        let mut levels = self.requested.iter().map(|key| key.level);
        levels.find(|level| !image.is_loaded(*level) && !self.failed.contains(level))
    }

    /// The most urgent tile that can be cut immediately.
    fn next_tile(&mut self) -> Option<(Open, TileKey)> {
        let open = self.open.as_ref()?;
        let can_be_cut = |key: &TileKey| open.image.is_loaded(key.level) && !self.under_way.contains(key);
        let position = self.requested.iter().position(can_be_cut)?;
        let key = self.requested.remove(position)?;
        self.under_way.insert(key);
        Some((open.clone(), key))
    }
}

impl DisplayQueue {
    /// Waits until `find` finds something; `None` once the window is gone.
    fn wait_for<T>(&self, find: impl Fn(&mut Content) -> Option<T>) -> Option<T> {
        let mut found = None;
        let is_idle = |content: &mut Content| {
            content.is_open && {
                found = find(content);
                found.is_none()
            }
        };
        self.changed.wait_while(&mut self.content.lock(), is_idle);
        found
    }

    /// Makes this the open image; false if another image was requested meanwhile.
    fn put_on(&self, open: &Open) -> bool {
        let mut content = self.content.lock();
        let is_wanted = content.request.is_none();
        if is_wanted {
            content.open = Some(open.clone());
        }
        is_wanted
    }

    fn take_decode_job(&self) -> Option<DecodeJob> {
        self.wait_for(|content| {
            if let Some(request) = content.request.take() {
                return Some(DecodeJob::Open(request));
            }
            let level = content.level_to_load()?;
            Some(DecodeJob::Level(content.open.clone()?, level))
        })
    }

    fn take_tile(&self) -> Option<(Open, TileKey)> {
        self.wait_for(Content::next_tile)
    }
}

/// Opens an image; false if the window is gone.
fn open(shared: &Shared, queue: &DisplayQueue, request: &Request) -> bool {
    let (source, sample) = (request.source, request.sample);
    let result = match guarded(|| open_image(shared, request)) {
        Ok((info, image)) => {
            let open = Open { source, sample, image: Arc::new(image) };
            // Before the window learns about it and requests tiles.
            if !queue.put_on(&open) {
                return true;
            }
            if !deliver_image(shared, &open) {
                return false;
            }
            Ok(info)
        }
        // The image is no longer shown.
        Err(_) if request.control.is_cancelled() => return true,
        Err(reason) => Err(reason),
    };
    shared.report(BrowseEvent::Displayed { source, sample, result })
}

fn open_image(shared: &Shared, request: &Request) -> Result<(DisplayInfo, ImagePyramid), String> {
    let source = shared.source(request.source).ok_or("The folder has been closed")?;
    let (bytes, truth) =
        for_task(&source, &request.control).read_with_truth(&request.uri).map_err(|error| error.to_string())?;
    let image = ImagePyramid::open(bytes, &shared.limits()).map_err(|error| error.to_string())?;
    let size = image.layout().size();
    let bytes = image.bytes();
    let mut details = rows(&decode::details(bytes), size, bytes.len() as u64);
    details.extend(truth_rows(&truth, size));
    let info = DisplayInfo { size, warning: image.warning().map(str::to_owned), details, stored_boxes: truth.boxes };
    Ok((info, image))
}

/// Delivers the image with its coarsest tiles, so that it is complete from its first frame on.
fn deliver_image(shared: &Shared, open: &Open) -> bool {
    let layout = open.image.layout();
    shared.deliver(Delivery::RgbImage {
        source: open.source,
        sample: open.sample,
        image: DisplayImage { layout, pixels: Arc::clone(&open.image) as Arc<dyn PixelSource> },
    }) && coarsest_tiles(layout)
        .filter_map(|key| Some((key, open.image.tile(key)?)))
        .all(|(key, tile)| shared.deliver(Delivery::Tile { source: open.source, sample: open.sample, key, tile }))
}

fn coarsest_tiles(layout: TileLayout) -> impl Iterator<Item = TileKey> {
    let level = layout.coarsest();
    let [columns, rows] = layout.tiles(level);
    (0..rows).flat_map(move |row| (0..columns).map(move |column| TileKey { level, column, row }))
}

/// Decodes a level; false if the window is gone.
fn load(shared: &Shared, queue: &DisplayQueue, open: &Open, level: usize) -> bool {
    let result = guarded(|| {
        let loaded = open.image.load(level);
        loaded.map_err(|error| error.to_string())
    });
    let mut content = queue.content.lock();
    queue.changed.notify_all();
    let Err(reason) = result else {
        return true;
    };
    if content.shows(open.source, open.sample) {
        content.failed.insert(level);
    }
    drop(content);
    shared.report_problem(format!("The image is shown at a lower resolution because it {reason}"));
    true
}

/// Cuts a tile; false if the window is gone.
fn cut(shared: &Shared, queue: &DisplayQueue, open: &Open, key: TileKey) -> bool {
    let tile = guarded(|| Ok(open.image.tile(key)));
    // The level was dropped while the tile was cut.
    let was_dropped = matches!(tile, Ok(None)) && open.image.layout().contains(key);
    let is_window_open = match tile {
        Ok(Some(tile)) => shared.deliver(Delivery::Tile { source: open.source, sample: open.sample, key, tile }),
        Ok(None) => true,
        Err(reason) => {
            shared.report_problem(reason);
            true
        }
    };
    let mut content = queue.content.lock();
    if content.shows(open.source, open.sample) {
        content.under_way.remove(&key);
        if was_dropped {
            content.requested.push_back(key);
            queue.changed.notify_all();
        }
    }
    is_window_open
}

/// The stored properties of an image's content.
fn truth_rows(truth: &Truth, size: [u32; 2]) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    let mut row = |name: &str, value: String| rows.push((name.to_owned(), value));
    if !truth.labels.is_empty() {
        let labels: Vec<String> = truth.labels.iter().map(ToString::to_string).collect();
        row("Stored label", labels.join(", "));
    }
    if !truth.boxes.is_empty() {
        row("Stored boxes", truth.boxes.len().to_string());
    }
    for found in truth.boxes.iter().take(MAX_LISTED_BOXES) {
        let BoundingBox { x1, y1, x2, y2 } = found.in_pixels(size);
        let corners = format!("({x1:.0}, {y1:.0}) – ({x2:.0}, {y2:.0})");
        row(&found.label.to_string(), corners);
    }
    if truth.boxes.len() > MAX_LISTED_BOXES {
        row("", format!("and {} more", truth.boxes.len() - MAX_LISTED_BOXES));
    }
    for note in &truth.notes {
        row("Note", note.clone());
    }
    rows
}

/// Names and values for the inspector.
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
        row("Format", format.into_str().to_owned());
    }
    if let Some(color) = &details.color {
        row("Color", color.clone());
    }
    rows.extend(details.exif.iter().cloned());
    rows
}
