//! Models elsewhere: looked for, connected to, and asked about one image after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::super::latest::{LatestSender, latest};
use super::super::s3::{failed, failure, renewal};
use super::super::{Shared, guarded};
use super::reading::choice_of;
use crate::aws::AwsErrorKind;
use crate::domain::{
    ExampleResponse, FileStamp, RemoteAddress, RemoteModel, ResponseExamples, RunId, RunInfo,
    RunKey, S3Access, SageMakerAccess, Sample, SampleId, endpoint_name_problem,
};
use crate::predict::upright_size;
use crate::remote::asking::RemotePredictor;
use crate::remote::connecting::{Asking, ConnectError, USUAL_LANES, as_told, known_to};
use crate::remote::outputs::{Recognition, Unrecognised};
use crate::remote::tf_serving::{TfServing, TfServingAddress};
use crate::source::{SourceError, for_task};
use crate::state::{
    ConnectFailure, Event, FoundModel, NewPrediction, RemoteCheck, RemoteOutcome, RemotePrediction,
    RemoteReport, S3Failure, SourceId, TaskId,
};
use crate::tasks::{TaskControl, now_ms};
use crate::vision::PredictError;

/// How many images that came into view are on their way at once.
const ON_THEIR_WAY: usize = 3;
/// Who only walks past an image does not want to pay for its prediction.
const WALKED_PAST: Duration = Duration::from_millis(200);

/// Asks models elsewhere.
pub(in super::super) struct RemoteWorker {
    connected: Arc<Mutex<Option<Connected>>>,
    requests: LatestSender<ImageRequest>,
    newest: Arc<AtomicU64>,
}

/// The model that can be asked.
#[derive(Clone)]
struct Connected {
    key: RunKey,
    model: RemoteModel,
    predictor: Arc<RemotePredictor>,
    /// How many classes the window knows.
    classes_told: Arc<AtomicUsize>,
}

pub(in super::super) struct Connection {
    pub(in super::super) source: SourceId,
    pub(in super::super) model: RemoteModel,
    pub(in super::super) samples: Vec<(SampleId, Sample)>,
    /// That were made there before.
    pub(in super::super) known: Vec<RunInfo>,
    pub(in super::super) task: TaskId,
    pub(in super::super) control: TaskControl,
}

/// About one sample.
pub(in super::super) struct ImageRequest {
    pub(in super::super) source: SourceId,
    pub(in super::super) run: RunId,
    pub(in super::super) key: RunKey,
    pub(in super::super) sample: SampleId,
    pub(in super::super) entry: Sample,
    pub(in super::super) task: TaskId,
    pub(in super::super) control: TaskControl,
}

impl RemoteWorker {
    pub(in super::super) fn new(shared: &Arc<Shared>) -> Self {
        let (requests, taken) = latest::<ImageRequest>();
        let taken = Arc::new(taken);
        let connected = Arc::new(Mutex::<Option<Connected>>::default());
        let newest = Arc::new(AtomicU64::default());
        for _ in 0..ON_THEIR_WAY {
            let (taken, connected, newest) = (
                Arc::clone(&taken),
                Arc::clone(&connected),
                Arc::clone(&newest),
            );
            shared.spawn("predict remotely", move |shared| {
                while let Some(request) = taken.take() {
                    let model = connected_with(&connected, &request.key);
                    prediction(shared, model, &request, &newest);
                }
            });
        }
        Self {
            connected,
            requests,
            newest,
        }
    }

    /// Finds out what a model answers.
    pub(in super::super) fn connect(&self, shared: &Arc<Shared>, request: Connection) {
        let connected = Arc::clone(&self.connected);
        let (source, task) = (request.source, request.task);
        let ended = move |result: Result<FoundModel, ConnectFailure>| Event::Connected {
            source,
            task,
            at_ms: now_ms(),
            result: result.map(Box::new),
        };
        shared.spawn_reporting(
            "connect to a remote model",
            move |shared| ended(connect(shared, &connected, &request)),
            move |mistake| ended(Err(not_connected(mistake))),
        );
    }

    /// Takes the place of a request that was not sent yet.
    pub(in super::super) fn predict(&self, shared: &Shared, request: ImageRequest) {
        self.newest.store(request.task.0, Ordering::Relaxed);
        if let Some(passed) = self.requests.put(request) {
            report(shared, &passed, RemoteOutcome::NotSent);
        }
    }

    /// The model of this run, where it is the one that can be asked.
    pub(in super::super) fn predictor(&self, key: &RunKey) -> Option<RemoteBulk> {
        let connected = connected_with(&self.connected, key)?;
        Some(RemoteBulk(Box::new(connected)))
    }
}

fn connected_with(connected: &Mutex<Option<Connected>>, key: &RunKey) -> Option<Connected> {
    let connected = connected.lock();
    connected.clone().filter(|model| model.key == *key)
}

/// A model elsewhere for many images.
pub(in super::super) struct RemoteBulk(Box<Connected>);

impl RemoteBulk {
    pub(in super::super) fn predictor(&self) -> Arc<RemotePredictor> {
        Arc::clone(&self.0.predictor)
    }

    /// Before the predictions that need them.
    pub(in super::super) fn tell_classes(&self, shared: &Shared, source: SourceId, run: RunId) {
        self.0.tell_classes(shared, source, run);
    }

    pub(in super::super) fn tell_latency(&self, shared: &Shared) {
        self.0.tell_latency(shared);
    }
}

impl Connected {
    fn tell_classes(&self, shared: &Shared, source: SourceId, run: RunId) {
        let labels = self.predictor.labels();
        if self.classes_told.swap(labels.len(), Ordering::Relaxed) != labels.len() {
            shared.report(Event::RunLabelled {
                source,
                run,
                labels: Box::new(labels),
            });
        }
    }

    fn tell_latency(&self, shared: &Shared) {
        shared.report(Event::RemoteLatency {
            key: Box::new(self.key.clone()),
            latency: self.predictor.latency(),
        });
    }
}

fn not_connected(message: String) -> ConnectFailure {
    ConnectFailure::Failed {
        message,
        examples: None,
        renewal: None,
    }
}

fn connect(
    shared: &Shared,
    connected: &Mutex<Option<Connected>>,
    request: &Connection,
) -> Result<FoundModel, ConnectFailure> {
    let (model, control) = (&request.model, &request.control);
    let choice = choice_of(&model.reading).map_err(not_connected)?;
    let asking = Asking::of(model, &shared.aws, control).map_err(|error| match error {
        ConnectError::Aws(error) if error.kind == AwsErrorKind::Cancelled => {
            ConnectFailure::Cancelled
        }
        error => out_of_reach(shared, model, error.to_string()),
    })?;
    let (recognition, first) = if let Some(mapping) = &choice.mapping {
        (as_told(mapping.clone()), None)
    } else {
        let (recognition, first) = first_prediction(shared, &asking, request)?;
        (recognition, Some(first))
    };
    let heard = first
        .as_ref()
        .map(|first| (&first.prediction[..], first.size));
    let known = known_to(&shared.library);
    let understood = asking.understood(recognition, heard, &choice, known, USUAL_LANES);
    let is_same =
        |run: &&RunInfo| run.key == understood.key && run.card.origin == understood.card.origin;
    let before = request.known.iter().rfind(is_same);
    if let Some(before) = before {
        understood.predictor.learn(&before.labels);
    }
    let examples = first.as_ref().and_then(|first| {
        let mut samples = request.samples.iter();
        let (_, entry) = samples.find(|(sample, _)| *sample == first.sample)?;
        Some(examples_of(entry, first.size, &first.prediction))
    });
    let first = first.map(|first| {
        let prediction = understood
            .predictor
            .read(&first.prediction, first.size, first.took);
        let prediction = NewPrediction {
            sample: first.sample,
            stamp: first.stamp,
            result: prediction.map_err(|error| error.to_string()),
        };
        (prediction, first.took.as_secs_f64() * 1e3)
    });
    let labels = understood.predictor.labels();
    *connected.lock() = Some(Connected {
        key: understood.key.clone(),
        model: model.clone(),
        predictor: Arc::clone(&understood.predictor),
        // What an earlier run does not know yet is told with the next answer.
        classes_told: Arc::new(AtomicUsize::new(
            before.map_or(labels.len(), |run| run.labels.len()),
        )),
    });
    Ok(FoundModel {
        key: understood.key,
        card: understood.card,
        labels,
        report: RemoteReport {
            name: asking.transport.name(),
            reading: understood.reading,
            latency: understood.predictor.latency(),
        },
        examples,
        first,
    })
}

/// A prediction, and the image that it is about.
struct FirstPrediction {
    prediction: Vec<u8>,
    took: Duration,
    sample: SampleId,
    stamp: FileStamp,
    size: [u32; 2],
}

/// Asks about one image after the other until a prediction can be recognised.
fn first_prediction(
    shared: &Shared,
    asking: &Asking,
    request: &Connection,
) -> Result<(Recognition, FirstPrediction), ConnectFailure> {
    let mut failures = Vec::new();
    for (sample, entry) in &request.samples {
        match ask_first(shared, asking, request, *sample, entry) {
            Err(ConnectFailure::OfImage(sample, reason)) => {
                failures.push((sample, entry.uri.file_name().to_owned(), reason));
            }
            ended => return ended,
        }
    }
    if let ([(sample, _, reason)], 1) = (&failures[..], request.samples.len()) {
        return Err(ConnectFailure::OfImage(*sample, reason.clone()));
    }
    let told: Vec<String> = failures
        .into_iter()
        .map(|(_, name, reason)| format!("{name}: {reason}"))
        .collect();
    Err(not_connected(format!(
        "{} returned no prediction for the first images, so its format is unknown: {}",
        asking.transport.name(),
        told.join("; ")
    )))
}

fn ask_first(
    shared: &Shared,
    asking: &Asking,
    request: &Connection,
    sample: SampleId,
    entry: &Sample,
) -> Result<(Recognition, FirstPrediction), ConnectFailure> {
    let control = &request.control;
    let of_image = |reason: String| ConnectFailure::OfImage(sample, reason);
    let source = shared
        .source(request.source)
        .ok_or(ConnectFailure::Cancelled)?;
    control.set_step(format!("predicting {}", entry.uri.file_name()));
    let stamp = entry.stamp();
    let bytes = for_task(&source, control).read(&entry.uri);
    let bytes = bytes.map_err(|error| match error {
        SourceError::Cancelled => ConnectFailure::Cancelled,
        SourceError::Unreachable(reason) => not_connected(reason),
        error => of_image(error.to_string()),
    })?;
    let size = guarded(|| upright_size(&bytes)).map_err(of_image)?;
    let sent = Instant::now();
    let prediction = asking
        .transport
        .carry(asking.wrapping.wrap(&bytes), control);
    let took = sent.elapsed();
    let prediction = prediction.map_err(|error| match error {
        PredictError::Cancelled => ConnectFailure::Cancelled,
        PredictError::OutOfReach(message) => out_of_reach(shared, &request.model, message),
        error => of_image(error.to_string()),
    })?;
    let recognition = Recognition::of(&prediction).map_err(|error| match error {
        Unrecognised::Broken(reason) => of_image(reason),
        Unrecognised::Unknown(_) => ConnectFailure::Failed {
            message: format!(
                "{} returns predictions in an unknown format; set up a mapping with the paths of scores, boxes and \
                classes",
                asking.transport.name()
            ),
            examples: Some(examples_of(entry, size, &prediction)),
            renewal: None,
        },
    })?;
    let first = FirstPrediction {
        prediction,
        took,
        sample,
        stamp,
        size,
    };
    Ok((recognition, first))
}

/// An answer to try a mapping on.
fn examples_of(entry: &Sample, size: [u32; 2], prediction: &[u8]) -> Arc<ResponseExamples> {
    let example = ExampleResponse {
        uri: entry.uri.clone(),
        image: entry.name.clone(),
        image_size: Ok(size),
        response: prediction.into(),
    };
    Arc::new(ResponseExamples::of(vec![example]))
}

fn out_of_reach(shared: &Shared, model: &RemoteModel, message: String) -> ConnectFailure {
    ConnectFailure::Failed {
        renewal: renewal_in(shared, model, &message),
        message,
        examples: None,
    }
}

/// The command that signs in anew, where the message names it as what helps.
fn renewal_in(shared: &Shared, model: &RemoteModel, message: &str) -> Option<String> {
    let RemoteAddress::Endpoint { access, .. } = &model.at else {
        return None;
    };
    renewal(shared, &s3_access(access)).filter(|command| message.contains(command.as_str()))
}

fn s3_access(access: &SageMakerAccess) -> S3Access {
    S3Access {
        credentials: access.credentials.clone(),
        region: access.region.clone(),
        ..S3Access::default()
    }
}

fn report(shared: &Shared, request: &ImageRequest, outcome: RemoteOutcome) {
    shared.report(Event::RemotePredicted(Box::new(RemotePrediction {
        source: request.source,
        task: request.task,
        run: request.run,
        sample: request.sample,
        key: request.key.clone(),
        at_ms: now_ms(),
        outcome,
    })));
}

fn prediction(
    shared: &Shared,
    model: Option<Connected>,
    request: &ImageRequest,
    newest: &AtomicU64,
) {
    // Another model is asked by now.
    let Some(model) = model else {
        return report(shared, request, RemoteOutcome::NotSent);
    };
    let is_passed = request.control.sleep(WALKED_PAST).is_err()
        || newest.load(Ordering::Relaxed) != request.task.0;
    if is_passed {
        return report(shared, request, RemoteOutcome::NotSent);
    }
    let outcome = guarded(|| Ok(ask(shared, &model, request)));
    let outcome = outcome.unwrap_or_else(|reason| predicted(request, Err(reason), None));
    model.tell_classes(shared, request.source, request.run);
    report(shared, request, outcome);
    model.tell_latency(shared);
}

fn predicted(
    request: &ImageRequest,
    result: Result<crate::domain::Prediction, String>,
    took: Option<Duration>,
) -> RemoteOutcome {
    RemoteOutcome::Predicted {
        prediction: NewPrediction {
            sample: request.sample,
            stamp: request.entry.stamp(),
            result,
        },
        took_ms: took.map(|took| took.as_secs_f64() * 1e3),
    }
}

fn ask(shared: &Shared, model: &Connected, request: &ImageRequest) -> RemoteOutcome {
    let Some(source) = shared.source(request.source) else {
        return RemoteOutcome::NotSent;
    };
    let control = &request.control;
    let bytes = match for_task(&source, control).read(&request.entry.uri) {
        Ok(bytes) => bytes,
        Err(SourceError::Cancelled) => return RemoteOutcome::NotSent,
        Err(SourceError::Unreachable(reason)) => return RemoteOutcome::SourceUnreachable(reason),
        Err(error) => return predicted(request, Err(error.to_string()), None),
    };
    let size = match upright_size(&bytes) {
        Ok(size) => size,
        Err(reason) => return predicted(request, Err(reason), None),
    };
    match model.predictor.ask(&bytes, control) {
        Ok((prediction, took)) => {
            let prediction = model.predictor.read(&prediction, size, took);
            let prediction = prediction.map_err(|error| error.to_string());
            predicted(request, prediction, Some(took))
        }
        Err(PredictError::Cancelled) => RemoteOutcome::NotSent,
        Err(PredictError::OutOfReach(message)) => RemoteOutcome::OutOfReach {
            renewal: renewal_in(shared, &model.model, &message),
            message,
        },
        Err(error) => predicted(request, Err(error.to_string()), None),
    }
}

/// Asks a model about one image, for whoever wants to see its prediction.
pub(in super::super) fn show_response(
    shared: &Arc<Shared>,
    source: SourceId,
    model: RemoteModel,
    entry: Sample,
    (task, control): (TaskId, TaskControl),
) {
    let of = Box::new(model.at.clone());
    let looked_at = move |result| Event::ResponseShown {
        source,
        task,
        of,
        result,
    };
    let of_mistake = looked_at.clone();
    shared.spawn_reporting(
        "preview a remote prediction",
        move |shared| looked_at(first_look(shared, source, &model, &entry, &control)),
        move |mistake| of_mistake(Err(failed(mistake))),
    );
}

fn first_look(
    shared: &Shared,
    source: SourceId,
    model: &RemoteModel,
    entry: &Sample,
    control: &TaskControl,
) -> Result<Arc<ResponseExamples>, S3Failure> {
    let out_of_reach = |message: String| S3Failure::Failed {
        renewal: renewal_in(shared, model, &message),
        message,
    };
    let asking = Asking::of(model, &shared.aws, control).map_err(|error| match error {
        ConnectError::Aws(error) if error.kind == AwsErrorKind::Cancelled => S3Failure::Cancelled,
        error => out_of_reach(error.to_string()),
    })?;
    let source = shared.source(source).ok_or(S3Failure::Cancelled)?;
    let bytes = for_task(&source, control).read(&entry.uri);
    let bytes = bytes.map_err(|error| match error {
        SourceError::Cancelled => S3Failure::Cancelled,
        error => failed(error.to_string()),
    })?;
    let size = guarded(|| upright_size(&bytes)).map_err(failed)?;
    let prediction = asking
        .transport
        .carry(asking.wrapping.wrap(&bytes), control);
    let prediction = prediction.map_err(|error| match error {
        PredictError::Cancelled => S3Failure::Cancelled,
        error => out_of_reach(error.to_string()),
    })?;
    Ok(examples_of(entry, size, &prediction))
}

/// Looks whether a model is there, without sending it an image.
pub(in super::super) fn check(
    shared: &Arc<Shared>,
    model: RemoteModel,
    task: TaskId,
    control: TaskControl,
) {
    shared.spawn_reporting(
        "check a remote model",
        move |shared| Event::RemoteModelChecked {
            task,
            result: look(shared, &model, &control),
        },
        move |mistake| Event::RemoteModelChecked {
            task,
            result: Err(failed(mistake)),
        },
    );
}

fn look(
    shared: &Shared,
    model: &RemoteModel,
    control: &TaskControl,
) -> Result<RemoteCheck, S3Failure> {
    match &model.at {
        RemoteAddress::Endpoint { name, access } => look_at_endpoint(shared, name, access, control),
        RemoteAddress::TfServing { address } => {
            let address =
                TfServingAddress::parse(address).map_err(|error| failed(error.to_string()))?;
            let served = TfServing::new(address).look(control);
            let served = served.map_err(|error| match error {
                PredictError::Cancelled => S3Failure::Cancelled,
                PredictError::OutOfReach(message) => failed(message),
                error => failed(error.to_string()),
            })?;
            let (is_available, found) = served.judged(model.signature.as_deref());
            Ok(RemoteCheck {
                is_available,
                found,
                signatures: served.signature_names(),
            })
        }
    }
}

fn look_at_endpoint(
    shared: &Shared,
    name: &str,
    access: &SageMakerAccess,
    control: &TaskControl,
) -> Result<RemoteCheck, S3Failure> {
    if let Some(problem) = endpoint_name_problem(name) {
        return Err(failed(format!("The name {problem}")));
    }
    let sagemaker = shared.aws.sagemaker(access);
    let of_aws = |error| failure(shared, &s3_access(access), error);
    let region = sagemaker.region(Some(control)).map_err(of_aws)?;
    let endpoint = sagemaker
        .describe_endpoint(name, Some(control))
        .map_err(of_aws)?;
    let Some(endpoint) = endpoint else {
        let missing = format!(
            "There is no endpoint {name} in {region}; check the name, the region and the profile"
        );
        return Ok(RemoteCheck {
            found: vec![missing],
            ..RemoteCheck::default()
        });
    };
    let status = endpoint.status;
    let mut found = vec![format!("{name} is {status} in {region}")];
    for variant in &endpoint.variants {
        let image = variant.image.as_deref().unwrap_or("an unknown container");
        found.push(match variant.instances {
            1 => format!("1 instance with {image}"),
            count => format!("{count} instances with {image}"),
        });
    }
    found.extend(endpoint.failure);
    if !status.accepts_requests() {
        found.push(if status.is_changing() {
            "It takes requests once it is InService".to_owned()
        } else {
            "It takes no requests in this state; deploy it again, or check its log".to_owned()
        });
    }
    Ok(RemoteCheck {
        is_available: status.accepts_requests(),
        found,
        signatures: Vec::new(),
    })
}
