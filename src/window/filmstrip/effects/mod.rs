//! The strip with all boxes of one class: gathering its frames, and cropping the boxes from their images.

pub(crate) mod overlaps;

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use crate::domain::{BoundingBox, Prediction, PredictionContent, RgbImage, RunId, SampleId};
use crate::image::decode;
use crate::review::{FilmBox, FilmRequest, filmstrip};
use crate::window::effects::latest::{LatestSender, worker};
use crate::window::effects::{Delivery, Shared, guarded};
use crate::window::state::{CropRequest, RequestId, ReviewEvent, SourceId};

/// The longer side of a crop in pixels.
const CROP_SIDE: u32 = 192;
/// The margin around a box, as a fraction of its longer side.
const CONTEXT: f32 = 0.1;
/// The number of threads. More would slow down the shown image.
const WORKERS: usize = 2;

pub(crate) struct Filmstrips {
    pub(crate) gathering: LatestSender<(RequestId, Box<FilmRequest>)>,
    crops: Arc<Queue>,
}

/// The requested crops, most urgent first, and those in progress.
struct Queue {
    requested: Mutex<CropQueue>,
    changed: Condvar,
}

struct CropQueue {
    source: SourceId,
    run: RunId,
    crops: VecDeque<CropRequest>,
    under_way: HashSet<(SampleId, FilmBox)>,
    is_open: bool,
}

/// Boxes of one image, which is decoded once for all of them.
struct Job {
    source: SourceId,
    run: RunId,
    crops: Vec<CropRequest>,
}

impl Filmstrips {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        let gathering =
            worker(shared, "build a filmstrip", |shared, (id, what): (RequestId, Box<FilmRequest>), turn| {
                let frames = match guarded(|| Ok(filmstrip(&what, &|| turn.is_over()))) {
                    Ok(None) => return true,
                    Ok(Some(frames)) => frames,
                    Err(reason) => {
                        shared.report_problem(reason);
                        Vec::new()
                    }
                };
                shared.report(ReviewEvent::FilmstripGathered { id, frames })
            });
        let crops = Arc::new(Queue {
            requested: Mutex::new(CropQueue {
                source: SourceId(0),
                run: RunId(0),
                crops: VecDeque::new(),
                under_way: HashSet::new(),
                is_open: true,
            }),
            changed: Condvar::new(),
        });
        for _ in 0..WORKERS {
            let queue = Arc::clone(&crops);
            shared.spawn("cut out boxes", move |shared| {
                while let Some(job) = queue.take() {
                    let is_open = cut_out(shared, &job);
                    queue.done(&job);
                    if !is_open {
                        break;
                    }
                }
            });
        }
        Self { gathering, crops }
    }

    /// Replaces the previous requests, except crops in progress.
    pub(crate) fn request(&self, source: SourceId, run: RunId, crops: Vec<CropRequest>) {
        let mut requested = self.crops.requested.lock();
        if (requested.source, requested.run) != (source, run) {
            (requested.source, requested.run) = (source, run);
            requested.under_way.clear();
        }
        requested.crops = crops.into();
        self.crops.changed.notify_all();
    }
}

impl Drop for Filmstrips {
    fn drop(&mut self) {
        self.crops.requested.lock().is_open = false;
        self.crops.changed.notify_all();
    }
}

impl Queue {
    fn take(&self) -> Option<Job> {
        let mut job = None;
        let is_idle = |requested: &mut CropQueue| {
            requested.is_open && {
                job = requested.next_job();
                job.is_none()
            }
        };
        self.changed.wait_while(&mut self.requested.lock(), is_idle);
        job
    }

    fn done(&self, job: &Job) {
        let mut requested = self.requested.lock();
        if (requested.source, requested.run) == (job.source, job.run) {
            for crop in &job.crops {
                requested.under_way.remove(&(crop.sample, crop.shows));
            }
        }
    }
}

impl CropQueue {
    /// The most urgent box, with all other requested boxes of its image.
    fn next_job(&mut self) -> Option<Job> {
        let under_way = &self.under_way;
        self.crops.retain(|crop| !under_way.contains(&(crop.sample, crop.shows)));
        let sample = self.crops.front()?.sample;
        let (crops, rest): (Vec<CropRequest>, Vec<CropRequest>) =
            self.crops.drain(..).partition(|crop| crop.sample == sample);
        self.crops = rest.into();
        self.under_way.extend(crops.iter().map(|crop| (crop.sample, crop.shows)));
        Some(Job { source: self.source, run: self.run, crops })
    }
}

/// Crops the boxes of a job; false if the window is gone.
fn cut_out(shared: &Shared, job: &Job) -> bool {
    let made = guarded(|| images(shared, job));
    job.crops.iter().enumerate().all(|(number, crop)| {
        let result = match &made {
            Ok(images) => images.get(number).cloned().ok_or_else(|| "The box no longer exists".to_owned()),
            Err(reason) => Err(reason.clone()),
        };
        shared.deliver(Delivery::Crop {
            source: job.source,
            run: job.run,
            sample: crop.sample,
            shows: crop.shows,
            result,
        })
    })
}

/// Returns one image per crop of the job.
fn images(shared: &Shared, job: &Job) -> Result<Vec<RgbImage>, String> {
    let Some(first) = job.crops.first() else {
        return Ok(Vec::new());
    };
    let prediction = match &first.prediction {
        Some(prediction) => Prediction::clone(prediction),
        None => read_prediction(shared, job, first)?,
    };
    let source = shared.source(job.source).ok_or("The folder has been closed")?;
    let bytes = source.read(&first.uri).map_err(|error| error.to_string())?;
    let bounds: Vec<BoundingBox> = job.crops.iter().map(|crop| part_of(&prediction, crop)).collect();
    decode::crops(&bytes, &bounds, CROP_SIDE, &shared.limits()).map_err(|error| error.to_string())
}

fn read_prediction(shared: &Shared, job: &Job, crop: &CropRequest) -> Result<Prediction, String> {
    let project = shared.project(job.source).ok_or("The project has been closed")?;
    let prediction = project.prediction(job.run, &crop.uri).map_err(|error| error.to_string())?;
    prediction.ok_or("The prediction no longer exists")?
}

/// The box with a margin around it; for a classifier the whole image.
fn part_of(prediction: &Prediction, crop: &CropRequest) -> BoundingBox {
    let (width, height) = (prediction.width, prediction.height);
    let whole = BoundingBox::new(0.0, 0.0, width as f32, height as f32);
    let PredictionContent::Detections(detections) = &prediction.content else {
        return whole;
    };
    let bounds = match crop.shows {
        FilmBox::Predicted(index) => detections.get(index as usize).map(|detection| detection.bounds),
        FilmBox::FalseNegative(_) => crop.bounds,
    };
    let Some(bounds) = bounds else {
        return whole;
    };
    let context = bounds.width().max(bounds.height()) * CONTEXT;
    BoundingBox::new(bounds.x1 - context, bounds.y1 - context, bounds.x2 + context, bounds.y2 + context)
        .clipped(width, height)
}
