use super::{cat, command, event, new_prediction, opened};
use crate::domain::{DeviceChoice, InferenceLocation, KeepRule, LabelSet, RunId, RunKey, Sample, SampleId};
use crate::review::PredictionStatus;
use crate::sagemaker::spec::remote_model::RemoteModel;
use crate::sagemaker::spec::transform::SageMakerAccess;
use crate::window::state::{
    Action, BrowseCommand, ConnectFailure, Effect, Event, FoundModel, ImageRequest, InferenceCommand, InferenceEffect,
    InferenceEvent, ProjectCommand, RemoteOutcome, RemotePrediction, RemoteReport, SourceId, State, Step, TaskId,
};

fn cats() -> RemoteModel {
    RemoteModel::at_endpoint("cats", SageMakerAccess::default())
}

fn found(sample: Option<SampleId>) -> FoundModel {
    let card = super::card("cats");
    FoundModel {
        key: RunKey {
            model_id: card.id.clone(),
            weights_sha256: String::new(),
            device: DeviceChoice::Auto,
            batch: None,
            threads: None,
            keep: KeepRule::default(),
            made: InferenceLocation::Endpoint { name: "cats".to_owned(), region: "eu-west-1".to_owned() },
        },
        card,
        labels: LabelSet::default(),
        report: RemoteReport { name: "endpoint cats in eu-west-1".to_owned(), reading: String::new(), latency: None },
        examples: None,
        first: sample.map(|sample| (new_prediction(sample, Ok(cat())), 83.0)),
    }
}

fn connects(effects: &[Effect]) -> Option<(TaskId, Vec<SampleId>)> {
    effects.iter().find_map(|effect| match effect {
        Effect::Inference(InferenceEffect::Connect(request)) => {
            let ids = |(id, _): &(SampleId, Sample)| *id;
            Some((request.ticket.id, request.samples.iter().map(ids).collect()))
        }
        _ => None,
    })
}

/// Task, run and sample of each request.
fn requests(effects: &[Effect]) -> Vec<(TaskId, RunId, SampleId)> {
    let request = |effect: &Effect| match effect {
        Effect::Inference(InferenceEffect::PredictRemotely { image, ticket }) => {
            Some((ticket.id, image.run, image.sample))
        }
        _ => None,
    };
    effects.iter().filter_map(request).collect()
}

/// A window with three images, the first one with a remote prediction.
fn connected() -> (State, SourceId) {
    let (mut state, source, _) = opened();
    let effects = command(&mut state, InferenceCommand::PredictAt(Some(Box::new(cats()))));
    let (task, samples) = connects(&effects).expect("the image in view is sent");
    assert_eq!(samples, [SampleId(0)]);
    event(&mut state, ended(source, task, Ok(found(Some(SampleId(0))))));
    (state, source)
}

fn ended(source: SourceId, task: TaskId, result: Result<FoundModel, ConnectFailure>) -> Event {
    Event::Inference(InferenceEvent::Connected { source, task, at_ms: 1, result: result.map(Box::new) })
}

fn remote_prediction(source: SourceId, task: TaskId, run: RunId, sample: SampleId, outcome: RemoteOutcome) -> Event {
    Event::Inference(InferenceEvent::RemotePredicted(Box::new(RemotePrediction {
        image: ImageRequest {
            source,
            run,
            key: found(None).key,
            sample,
            entry: super::page(&["a.jpg"]).samples.remove(0),
        },
        task,
        at_ms: 2,
        outcome,
    })))
}

#[test]
fn image_in_view_is_sent_once() {
    let (state, _) = connected();
    let run = state.run().unwrap();
    assert!(run.info.name.contains("endpoint cats"), "{}", run.info.name);
    assert_eq!(run.status(SampleId(0)), PredictionStatus::Predicted);
    assert_eq!(run.status(SampleId(1)), PredictionStatus::Unpredicted);
    assert_eq!(state.shown_latency_ms().unwrap().0, 83.0);
    assert_eq!(state.settings.recent_remote_models, [cats()]);
}

#[test]
fn image_is_requested_once_when_it_comes_into_view() {
    let (mut state, source) = connected();
    let effects = command(&mut state, BrowseCommand::Walk(Step::By(1)));
    let [(task, run, sample)] = requests(&effects)[..] else {
        panic!("{effects:?}");
    };
    assert_eq!(sample, SampleId(1));
    assert!(requests(&command(&mut state, Action::PredictShown)).is_empty());
    // There and back: images that are predicted or pending are not sent again.
    assert!(requests(&command(&mut state, BrowseCommand::Walk(Step::By(-1)))).is_empty());
    assert!(requests(&command(&mut state, BrowseCommand::Walk(Step::By(1)))).is_empty());
    let ended = remote_prediction(source, task, run, sample, RemoteOutcome::NotSent);
    event(&mut state, ended);
    assert_eq!(state.run().unwrap().status(SampleId(1)), PredictionStatus::Unpredicted);
    assert!(state.tasks.get(task).is_none());
}

#[test]
fn unreachable_model_waits_for_the_user() {
    let (mut state, source) = connected();
    let effects = command(&mut state, BrowseCommand::Walk(Step::By(1)));
    let (task, run, sample) = requests(&effects)[0];
    let out_of_reach =
        RemoteOutcome::OutOfReach { message: "sign in".to_owned(), renewal: Some("aws sso login".to_owned()) };
    event(&mut state, remote_prediction(source, task, run, sample, out_of_reach));
    assert!(state.inference.failure().is_some());
    let remote = state.inference.remote.as_ref().unwrap();
    assert_eq!(remote.renewal.as_deref(), Some("aws sso login"));
    let effects = command(&mut state, BrowseCommand::Walk(Step::By(1)));
    assert!(requests(&effects).is_empty() && connects(&effects).is_none());
    let effects = command(&mut state, InferenceCommand::TryAgain);
    assert_eq!(connects(&effects).unwrap().1, [SampleId(2)]);
}

#[test]
fn failed_image_does_not_block_the_next() {
    let (mut state, source, _) = opened();
    let effects = command(&mut state, InferenceCommand::PredictAt(Some(Box::new(cats()))));
    let (task, _) = connects(&effects).unwrap();
    let failure = ConnectFailure::OfImage(SampleId(0), "it is too large".to_owned());
    let effects = event(&mut state, ended(source, task, Err(failure)));
    assert!(connects(&effects).is_none());
    let effects = command(&mut state, BrowseCommand::Walk(Step::By(1)));
    assert_eq!(connects(&effects).unwrap().1, [SampleId(1)]);
}

#[test]
fn local_run_switches_back_and_sends_nothing() {
    let (mut state, _) = connected();
    let effects = command(&mut state, Action::PredictHere);
    assert!(state.inference.is_preparing(), "{effects:?}");
    assert!(state.inference.remote.is_none());
    // Remote predictions can be shown without requesting more.
    let remote = state.runs.iter().next().unwrap().id();
    let effects = command(&mut state, ProjectCommand::SwitchRun(remote));
    assert!(connects(&effects).is_none());
    let effects = command(&mut state, BrowseCommand::Walk(Step::By(1)));
    assert!(connects(&effects).is_none() && requests(&effects).is_empty());
}

#[test]
fn late_check_of_another_folder_is_dropped() {
    let (mut state, source, _) = opened();
    let effects = command(&mut state, InferenceCommand::PredictAt(Some(Box::new(cats()))));
    let (task, _) = connects(&effects).unwrap();
    let dogs = RemoteModel::at_endpoint("dogs", SageMakerAccess::default());
    command(&mut state, InferenceCommand::PredictAt(Some(Box::new(dogs))));
    event(&mut state, ended(source, task, Ok(found(Some(SampleId(0))))));
    assert!(state.run().is_none());
    assert!(state.inference.is_preparing());
}
