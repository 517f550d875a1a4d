//! Remote models: checking them, connecting to them, and predicting one image at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::aws::AwsErrorKind;
use crate::domain::{Prediction, RunId, RunInfo, RunKey, S3Access, Sample, SampleId};
use crate::image::source::{SourceError, for_task};
use crate::model::PredictError;
use crate::predict::upright_size;
use crate::sagemaker::client::{ConnectError, RemoteClient, USUAL_LANES, known_to};
use crate::sagemaker::outputs::{Recognition, Unrecognized};
use crate::sagemaker::predictor::RemotePredictor;
use crate::sagemaker::spec::endpoint::endpoint_name_problem;
use crate::sagemaker::spec::output_mapping::{ExampleResponse, ResponseExamples};
use crate::sagemaker::spec::remote_model::{RemoteAddress, RemoteModel};
use crate::sagemaker::spec::transform::SageMakerAccess;
use crate::sagemaker::tf_serving::{TfServing, TfServingAddress};
use crate::tasks::{TaskControl, now_ms};
use crate::window::effects::latest::{LatestSender, Turn, latest};
use crate::window::effects::{Shared, guarded};
use crate::window::outputs::effects::choice_of;
use crate::window::s3::effects::{failure, renewal};
use crate::window::state::{
    ConnectFailure, ConnectRequest, Failure, FoundModel, ImageRequest, InferenceEvent, NewPrediction, OutputsEvent,
    RemoteCheck, RemoteOutcome, RemotePrediction, RemoteReport, SourceId, Ticket,
};

/// The number of shown images that may be predicted at a time.
const CONCURRENT_REQUESTS: usize = 3;
/// Only an image that stays in view for this long is sent, because predictions cost money.
const MIN_VIEW_TIME: Duration = Duration::from_millis(200);

/// Predicts with remote models.
pub(crate) struct RemoteWorker {
    connected: Arc<Mutex<Option<Connected>>>,
    requests: LatestSender<Queued>,
}

#[derive(Clone)]
pub(crate) struct Connected {
    key: RunKey,
    model: RemoteModel,
    pub(crate) predictor: Arc<RemotePredictor>,
    /// The number of classes reported to the window.
    reported_classes: Arc<AtomicUsize>,
}

/// A request for one image, and its task.
struct Queued {
    image: ImageRequest,
    ticket: Ticket,
}

impl RemoteWorker {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        let (requests, taken) = latest::<Queued>();
        let taken = Arc::new(taken);
        let connected = Arc::new(Mutex::<Option<Connected>>::default());
        for _ in 0..CONCURRENT_REQUESTS {
            let (taken, connected) = (Arc::clone(&taken), Arc::clone(&connected));
            shared.spawn("predict remotely", move |shared| {
                while let Some((request, turn)) = taken.take() {
                    let model = connected_with(&connected, &request.image.key);
                    predict_one(shared, model, request, &turn);
                }
            });
        }
        Self { connected, requests }
    }

    /// Determines the response format of a model.
    pub(crate) fn connect(&self, shared: &Arc<Shared>, request: ConnectRequest) {
        let connected = Arc::clone(&self.connected);
        let (source, task) = (request.source, request.ticket.id);
        let ended = move |result: Result<FoundModel, ConnectFailure>| InferenceEvent::Connected {
            source,
            task,
            at_ms: now_ms(),
            result: result.map(Box::new),
        };
        shared.spawn_reporting(
            "connect to a remote model",
            move |shared| ended(connect(shared, &connected, &request)),
            move |reason| ended(Err(not_connected(reason))),
        );
    }

    /// Replaces a request that was not sent yet.
    pub(crate) fn predict(&self, shared: &Shared, image: ImageRequest, ticket: Ticket) {
        if let Some(passed) = self.requests.put(Queued { image, ticket }) {
            report(shared, passed, RemoteOutcome::NotSent);
        }
    }

    /// The model of this run, if it is the connected one.
    pub(crate) fn connected(&self, key: &RunKey) -> Option<Box<Connected>> {
        connected_with(&self.connected, key).map(Box::new)
    }
}

fn connected_with(connected: &Mutex<Option<Connected>>, key: &RunKey) -> Option<Connected> {
    let connected = connected.lock();
    connected.clone().filter(|model| model.key == *key)
}

impl Connected {
    pub(crate) fn report_classes(&self, shared: &Shared, source: SourceId, run: RunId) {
        let labels = self.predictor.labels();
        if self.reported_classes.swap(labels.len(), Ordering::Relaxed) != labels.len() {
            shared.report(OutputsEvent::Labeled { source, run, labels: Box::new(labels) });
        }
    }

    pub(crate) fn report_latency(&self, shared: &Shared) {
        shared.report(InferenceEvent::RemoteLatency {
            key: Box::new(self.key.clone()),
            latency: self.predictor.latency(),
        });
    }
}

fn not_connected(message: String) -> ConnectFailure {
    ConnectFailure::Failed { message, examples: None, renewal: None }
}

fn connect(
    shared: &Shared,
    connected: &Mutex<Option<Connected>>,
    request: &ConnectRequest,
) -> Result<FoundModel, ConnectFailure> {
    let (model, control) = (&request.model, &request.ticket.control);
    let choice = choice_of(&model.reading).map_err(not_connected)?;
    let client = remote_client(shared, model, control).map_err(|error| connect_failure(shared, model, error))?;
    let (recognition, first) = if let Some(mapping) = &choice.mapping {
        (mapping.clone().into(), None)
    } else {
        let (recognition, first) = first_response(shared, &client, request)?;
        (recognition, Some(first))
    };
    let response = first.as_ref().map(|(_, _, response)| response);
    let response = response.map(|response| (&response.body[..], response.size));
    let known = known_to(&shared.library);
    let ready_model = client.ready_model(recognition, response, &choice, known, USUAL_LANES);
    let is_same = |run: &&RunInfo| run.key == ready_model.key && run.card.origin == ready_model.card.origin;
    let before = request.known.iter().rfind(is_same);
    if let Some(before) = before {
        ready_model.predictor.learn(&before.labels);
    }
    let examples = first.as_ref().map(|(_, entry, response)| examples_of(entry, response));
    let first = first.map(|(sample, entry, response)| {
        let predictor = &ready_model.predictor;
        let prediction = predictor.read(&response.body, response.size, response.took);
        let prediction =
            NewPrediction { sample, stamp: entry.stamp(), result: prediction.map_err(|error| error.to_string()) };
        (prediction, response.took.as_secs_f64() * 1e3)
    });
    let labels = ready_model.predictor.labels();
    *connected.lock() = Some(Connected {
        key: ready_model.key.clone(),
        model: model.clone(),
        predictor: Arc::clone(&ready_model.predictor),
        // Classes that an earlier run does not know yet are reported with the next prediction.
        reported_classes: Arc::new(AtomicUsize::new(before.map_or(labels.len(), |run| run.labels.len()))),
    });
    Ok(FoundModel {
        key: ready_model.key,
        card: ready_model.card,
        labels,
        report: RemoteReport {
            name: client.transport.name(),
            reading: ready_model.reading,
            latency: ready_model.predictor.latency(),
        },
        examples,
        first,
    })
}

/// A model's response for an image of this width and height.
struct Response {
    body: Vec<u8>,
    took: Duration,
    size: [u32; 2],
}

/// Why there is no response for an image.
enum NoResponse {
    Cancelled,
    SourceUnreachable(String),
    /// Other images would fail as well.
    OutOfReach(String),
    /// This image cannot be predicted.
    Image(String),
}

fn remote_client(shared: &Shared, model: &RemoteModel, control: &TaskControl) -> Result<RemoteClient, NoResponse> {
    RemoteClient::connect(model, &shared.aws, control).map_err(|error| match error {
        ConnectError::Aws(error) if error.kind == AwsErrorKind::Cancelled => NoResponse::Cancelled,
        error => NoResponse::OutOfReach(error.to_string()),
    })
}

/// Reads an image and sends it.
fn request_response(
    shared: &Shared,
    (source, entry): (SourceId, &Sample),
    control: &TaskControl,
    send: impl FnOnce(&[u8]) -> Result<(Vec<u8>, Duration), PredictError>,
) -> Result<Response, NoResponse> {
    let source = shared.source(source).ok_or(NoResponse::Cancelled)?;
    let bytes = for_task(&source, control).read(&entry.uri);
    let bytes = bytes.map_err(|error| match error {
        SourceError::Cancelled => NoResponse::Cancelled,
        SourceError::Unreachable(reason) => NoResponse::SourceUnreachable(reason),
        error => NoResponse::Image(error.to_string()),
    })?;
    let size = guarded(|| upright_size(&bytes)).map_err(NoResponse::Image)?;
    let (body, took) = send(&bytes).map_err(|error| match error {
        PredictError::Cancelled => NoResponse::Cancelled,
        PredictError::OutOfReach(message) => NoResponse::OutOfReach(message),
        error => NoResponse::Image(error.to_string()),
    })?;
    Ok(Response { body, took, size })
}

/// Sends one image after another until a response is recognized.
fn first_response<'r>(
    shared: &Shared,
    client: &RemoteClient,
    request: &'r ConnectRequest,
) -> Result<(Recognition, (SampleId, &'r Sample, Response)), ConnectFailure> {
    let mut failures = Vec::new();
    for (sample, entry) in &request.samples {
        let control = &request.ticket.control;
        control.set_step(format!("predicting {}", entry.uri.file_name()));
        let response = request_response(shared, (request.source, entry), control, |image| client.send(image, control));
        let response = match response {
            Ok(response) => response,
            Err(NoResponse::Image(reason)) => {
                failures.push((*sample, entry.uri.file_name(), reason));
                continue;
            }
            Err(error) => return Err(connect_failure(shared, &request.model, error)),
        };
        match Recognition::from_output(&response.body) {
            Ok(recognition) => return Ok((recognition, (*sample, entry, response))),
            Err(Unrecognized::Broken(reason)) => {
                failures.push((*sample, entry.uri.file_name(), reason));
            }
            Err(Unrecognized::Unknown(_)) => {
                return Err(ConnectFailure::Failed {
                    message: format!(
                        "{} returns predictions in an unknown format; set up a mapping for scores, boxes and classes",
                        client.transport.name()
                    ),
                    examples: Some(examples_of(entry, &response)),
                    renewal: None,
                });
            }
        }
    }
    if let ([(sample, _, reason)], 1) = (&failures[..], request.samples.len()) {
        return Err(ConnectFailure::OfImage(*sample, reason.clone()));
    }
    let reasons: Vec<String> = failures.into_iter().map(|(_, name, reason)| format!("{name}: {reason}")).collect();
    Err(not_connected(format!(
        "{} returned no prediction for the first images, so its format is unknown: {}",
        client.transport.name(),
        reasons.join("; ")
    )))
}

/// A response for testing a mapping.
fn examples_of(entry: &Sample, response: &Response) -> Arc<ResponseExamples> {
    let example = ExampleResponse {
        uri: entry.uri.clone(),
        image: entry.name.clone(),
        image_size: Ok(response.size),
        response: response.body[..].into(),
    };
    Arc::new(ResponseExamples::new(vec![example]))
}

fn connect_failure(shared: &Shared, model: &RemoteModel, error: NoResponse) -> ConnectFailure {
    match s3_failure(shared, model, error) {
        Failure::Cancelled => ConnectFailure::Cancelled,
        Failure::Failed { message, renewal } => ConnectFailure::Failed { message, examples: None, renewal },
    }
}

fn s3_failure(shared: &Shared, model: &RemoteModel, error: NoResponse) -> Failure {
    match error {
        NoResponse::Cancelled => Failure::Cancelled,
        NoResponse::OutOfReach(message) => Failure::Failed { renewal: renewal_in(shared, model, &message), message },
        NoResponse::SourceUnreachable(message) | NoResponse::Image(message) => Failure::new(message),
    }
}

/// The command that renews the sign-in, if the message suggests it.
fn renewal_in(shared: &Shared, model: &RemoteModel, message: &str) -> Option<String> {
    let RemoteAddress::Endpoint { access, .. } = &model.at else {
        return None;
    };
    renewal(shared, &S3Access::from(access)).filter(|command| message.contains(command.as_str()))
}

fn report(shared: &Shared, request: Queued, outcome: RemoteOutcome) {
    shared.report(InferenceEvent::RemotePredicted(Box::new(RemotePrediction {
        image: request.image,
        task: request.ticket.id,
        at_ms: now_ms(),
        outcome,
    })));
}

fn predict_one(shared: &Shared, model: Option<Connected>, request: Queued, turn: &Turn<Queued>) {
    // Another model predicts by now, or the image left the view.
    let model = model.filter(|_| request.ticket.control.sleep(MIN_VIEW_TIME).is_ok() && !turn.is_over());
    let Some(model) = model else {
        return report(shared, request, RemoteOutcome::NotSent);
    };
    let image = &request.image;
    let outcome = guarded(|| Ok(outcome_of(shared, &model, image, &request.ticket.control)));
    let outcome = outcome.unwrap_or_else(|reason| predicted(image, Err(reason), None));
    model.report_classes(shared, image.source, image.run);
    report(shared, request, outcome);
    model.report_latency(shared);
}

fn outcome_of(shared: &Shared, model: &Connected, request: &ImageRequest, control: &TaskControl) -> RemoteOutcome {
    let predictor = &model.predictor;
    let image = (request.source, &request.entry);
    let response = request_response(shared, image, control, |image| predictor.ask(image, control));
    match response {
        Ok(Response { body, took, size }) => {
            let prediction = predictor.read(&body, size, took);
            let prediction = prediction.map_err(|error| error.to_string());
            predicted(request, prediction, Some(took))
        }
        Err(NoResponse::Cancelled) => RemoteOutcome::NotSent,
        Err(NoResponse::SourceUnreachable(reason)) => RemoteOutcome::SourceUnreachable(reason),
        Err(NoResponse::OutOfReach(message)) => {
            RemoteOutcome::OutOfReach { renewal: renewal_in(shared, &model.model, &message), message }
        }
        Err(NoResponse::Image(reason)) => predicted(request, Err(reason), None),
    }
}

fn predicted(request: &ImageRequest, result: Result<Prediction, String>, took: Option<Duration>) -> RemoteOutcome {
    RemoteOutcome::Predicted {
        prediction: NewPrediction { sample: request.sample, stamp: request.entry.stamp(), result },
        took_ms: took.map(|took| took.as_secs_f64() * 1e3),
    }
}

/// Requests a response for one image, to show how it is read.
pub(crate) fn show_response(
    shared: &Arc<Shared>,
    source: SourceId,
    (model, entry): (RemoteModel, Sample),
    ticket: Ticket,
) {
    let of = Box::new(model.at.clone());
    shared.run_task(
        "preview a remote prediction",
        ticket,
        move |shared, ticket| {
            let control = &ticket.control;
            let response = remote_client(shared, &model, control).and_then(|client| {
                request_response(shared, (source, &entry), control, |image| client.send(image, control))
            });
            let response = response.map_err(|error| s3_failure(shared, &model, error))?;
            Ok(examples_of(&entry, &response))
        },
        move |task, result| InferenceEvent::ResponseShown { source, task, of, result },
    );
}

/// Checks whether a model is available, without sending an image.
pub(crate) fn check(shared: &Arc<Shared>, model: RemoteModel, ticket: Ticket) {
    shared.run_task(
        "check a remote model",
        ticket,
        move |shared, ticket| check_model(shared, &model, &ticket.control),
        InferenceEvent::RemoteModelChecked,
    );
}

fn check_model(shared: &Shared, model: &RemoteModel, control: &TaskControl) -> Result<RemoteCheck, Failure> {
    match &model.at {
        RemoteAddress::Endpoint { name, access } => check_endpoint(shared, name, access, control),
        RemoteAddress::TfServing { address } => {
            let address = TfServingAddress::parse(address).map_err(|error| Failure::new(error.to_string()))?;
            let served = TfServing::new(address).inspect(control);
            let served = served.map_err(|error| match error {
                PredictError::Cancelled => Failure::Cancelled,
                PredictError::OutOfReach(message) => Failure::new(message),
                error => Failure::new(error.to_string()),
            })?;
            let (is_available, found) = served.check(model.signature.as_deref());
            Ok(RemoteCheck { is_available, found, signatures: served.signature_names() })
        }
    }
}

fn check_endpoint(
    shared: &Shared,
    name: &str,
    access: &SageMakerAccess,
    control: &TaskControl,
) -> Result<RemoteCheck, Failure> {
    if let Some(problem) = endpoint_name_problem(name) {
        return Err(Failure::new(format!("The name {problem}")));
    }
    let sagemaker = shared.aws.sagemaker(access);
    let of_aws = |error| failure(shared, &S3Access::from(access), error);
    let region = sagemaker.region(control).map_err(of_aws)?;
    let endpoint = sagemaker.describe_endpoint(name, control).map_err(of_aws)?;
    let Some(endpoint) = endpoint else {
        let missing = format!("Endpoint {name} does not exist in {region}; check the name, the region and the profile");
        return Ok(RemoteCheck { found: vec![missing], ..RemoteCheck::default() });
    };
    let status = endpoint.status;
    let mut found = vec![format!("{name} is {status} in {region}")];
    for variant in &endpoint.variants {
        let image = variant.image().unwrap_or("an unknown container");
        found.push(match variant.instances {
            1 => format!("1 instance with {image}"),
            count => format!("{count} instances with {image}"),
        });
    }
    found.extend(endpoint.failure);
    if !status.accepts_requests() {
        found.push(if status.is_changing() {
            "It accepts requests when it is InService".to_owned()
        } else {
            "It does not accept requests in this state; deploy it again, or check its log".to_owned()
        });
    }
    Ok(RemoteCheck { is_available: status.accepts_requests(), found, signatures: Vec::new() })
}
