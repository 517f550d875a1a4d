//! Sending models to SageMaker, and its jobs.

use std::sync::Arc;

use super::{cat, command, event, opened, prediction, ready};
use crate::domain::{InferenceLocation, LabelSet, Location, S3Access, S3Address, S3Place, SampleId};
use crate::sagemaker::spec::output_mapping::{ReadingRequest, ResponseExamples};
use crate::sagemaker::spec::training::TrainingProgress;
use crate::sagemaker::spec::transform::{
    Check, CheckGrade, CheckPoint, FailedObject, InputObjects, JobKind, JobOutcome, JobPage, JobPhase, JobProgress,
    JobQuery, JobSummary, Leftover, ModelSource, Preflight, RetryChoice, SageMakerAccess, TransformJob, TransformPlan,
    TransformSpec, TransformStatus, Unexplained,
};
use crate::window::state::{
    Action, BrowseCommand, BrowseEvent, Command, DisplayInfo, Effect, Event, ExportScope, Failure, FormCheck,
    ImagesFrom, JobDraft, JobId, JobRequest, JobsCommand, JobsEffect, JobsEvent, Leftovers, Loadable, ModelDraft,
    OutputsAt, OutputsCommand, OutputsEffect, OutputsEvent, Overlay, ReadingTrial, RemoteCommand, RemoteEffect,
    RemoteEvent, RemoteJobsCommand, RemoteJobsEvent, RetryPlan, S3Effect, SeenJob, State, TaskId, TaskKind, WatchEnd,
};

fn id(name: &str) -> JobId {
    JobId::new(&S3Access::default(), JobKind::Transform, name)
}

/// Three images of a folder, all listed.
fn listed() -> State {
    let (mut state, source, _) = opened();
    let running = state.tasks.running().iter();
    let task = running.map(|task| (task.id, &task.kind)).find(|(_, kind)| **kind == TaskKind::List);
    let (task, _) = task.expect("it is being listed");
    event(&mut state, BrowseEvent::ListingEnded { source, task, result: Ok(()) });
    state
}

/// The completed form.
fn draft(state: &State) -> JobDraft {
    let draft = state.remote.job_form.draft.clone();
    JobDraft {
        base: "s3://bucket/out".to_owned(),
        model: ModelDraft { role: "arn:aws:iam::123456789012:role/r".to_owned(), ..draft.model },
        spec: TransformSpec { job_name: "cats-1".to_owned(), ..draft.spec },
        ..draft
    }
}

fn check(state: &mut State, draft: JobDraft) -> (TaskId, JobRequest) {
    let effects = command(state, Command::Jobs(JobsCommand::Check(Box::new(draft))));
    let found = effects.into_iter().find_map(|effect| match effect {
        Effect::Jobs(JobsEffect::Check { request, ticket }) => Some((ticket.id, *request)),
        _ => None,
    });
    found.expect("it is checked")
}

fn plan(access: &S3Access, spec: TransformSpec) -> TransformPlan {
    TransformPlan {
        sagemaker: SageMakerAccess::from(access),
        s3: access.clone(),
        spec,
        model: ModelSource::Existing,
        input_folder: None,
        input_files: Vec::new(),
        files_root: None,
        manifest: None,
        usd_per_hour: None,
        images_per_s: None,
        inside: None,
        retry_of: None,
    }
}

fn check_of(request: &JobRequest, grade: CheckGrade) -> Box<FormCheck<TransformPlan>> {
    Box::new(FormCheck {
        preflight: Preflight {
            checks: vec![Check { point: CheckPoint::Role, grade, finding: String::new(), advice: String::new() }],
            ..Preflight::default()
        },
        commands: Vec::new(),
        plan: Arc::new(plan(&request.access, TransformSpec { max_payload_mb: Some(7), ..request.spec.clone() })),
    })
}

fn progress(status: TransformStatus, inputs: u64, outputs: u64) -> Box<SeenJob> {
    let objects = InputObjects::Prefix(S3Address::new("bucket", "photos/"));
    let base = S3Address::new("bucket", "out/");
    Box::new(SeenJob::Transform(JobProgress {
        job: TransformJob {
            spec: TransformSpec::over_images("cats-1", "cats-1", objects, &base),
            arn: String::new(),
            status,
            failure: None,
            created_ms: 0,
            started_ms: None,
            ended_ms: None,
            result: (),
            described: serde_json::Value::Null,
        },
        phase: JobPhase::Transforming,
        inputs: Some(inputs),
        outputs: Some(outputs),
        counted_at_ms: None,
        outputs_per_s: None,
        billed_s: None,
        cost_usd: None,
        log_tail: Vec::new(),
        uncounted: None,
        notes: Vec::new(),
        images_in: None,
        seen_at_ms: 0,
    }))
}

/// Opens a job for the first time; returns the task that watches it.
fn watched(state: &mut State, id: &JobId) -> TaskId {
    command(state, RemoteCommand::Open(id.clone()));
    let job = state.remote.jobs.get(id).expect("its page is there");
    job.watch.task.expect("it is watched")
}

#[test]
fn form_starts_with_model_and_selection() {
    let mut state = listed();
    command(&mut state, BrowseCommand::Show(SampleId(0)));
    command(&mut state, BrowseCommand::ToggleSelected(SampleId(2)));
    let effects = command(&mut state, Action::StartJob);
    assert_eq!(state.overlay, Overlay::StartJob);
    assert!(has!(effects, Effect::S3(S3Effect::SignIn { .. })), "{effects:?}");
    let empty = state.remote.job_form.draft.clone();
    assert_eq!(empty.model.library.as_deref(), Some("small"));
    assert_eq!(empty.scope, ExportScope::Selection);

    let effects = command(&mut state, JobsCommand::Check(Box::new(empty)));
    assert!(!has!(effects, Effect::Jobs(JobsEffect::Check { .. })), "{effects:?}");
    assert!(state.remote.job_form.missing.is_some());

    let draft = draft(&state);
    let (task, request) = check(&mut state, draft.clone());
    let names: Vec<&str> = request.images.samples().map(|sample| sample.name.as_str()).collect();
    assert_eq!(names, ["a.jpg", "c.jpg"]);
    let ImagesFrom::Local { root, target, .. } = &request.images.from else {
        panic!("the images are on this computer");
    };
    assert_eq!((root.as_str(), target.to_string().as_str()), ("/photos", "s3://bucket/out/images/photos/"));
    assert_eq!(request.spec.output.folder.to_string(), "s3://bucket/out/cats-1/");

    // Another check replaces it, and the late check is dropped.
    let mut two = draft;
    two.spec.resources.instance_count = 2;
    let (second, _) = check(&mut state, two);
    event(&mut state, JobsEvent::Checked(task, Err(Failure::new("late"))));
    assert!(matches!(state.remote.job_form.check, Loadable::Loading(task) if task == second));
}

#[test]
fn settings_store_no_variable_values() {
    let mut draft = draft(&State::default());
    let secret = || [("TOKEN".to_owned(), "hunter2".to_owned())].into();
    (draft.model.environment, draft.spec.environment) = (secret(), secret());
    let saved = serde_json::to_string(&draft).unwrap();
    assert!(saved.contains("InstanceType") && !saved.contains("hunter2"), "{saved}");
    let read: JobDraft = serde_json::from_str(&saved).unwrap();
    assert!(read.model.environment.is_empty() && read.spec.environment.is_empty());
}

#[test]
fn only_a_valid_checked_plan_starts() {
    let mut state = listed();
    command(&mut state, Action::StartJob);
    let draft = draft(&state);
    let (task, request) = check(&mut state, draft.clone());
    assert!(!has!(command(&mut state, JobsCommand::Start), Effect::Jobs(JobsEffect::Start { .. })));
    let bad = check_of(&request, CheckGrade::Problem);
    event(&mut state, JobsEvent::Checked(task, Ok(bad)));
    assert!(!has!(command(&mut state, JobsCommand::Start), Effect::Jobs(JobsEffect::Start { .. })));

    let (task, request) = check(&mut state, draft.clone());
    let good = check_of(&request, CheckGrade::Warning);
    event(&mut state, JobsEvent::Checked(task, Ok(good)));
    let effects = command(&mut state, JobsCommand::Start);
    let (plan, task) = effects
        .iter()
        .find_map(|effect| match effect {
            Effect::Jobs(JobsEffect::Start { plan, ticket }) => Some((plan, ticket.id)),
            _ => None,
        })
        .expect("it is started");
    assert_eq!(plan.spec.max_payload_mb, Some(7), "as the check suggests");
    assert_eq!(state.settings.job.model.role, draft.model.role);

    let effects = event(&mut state, JobsEvent::Started(task, Ok(id("cats-1"))));
    assert!(has!(effects, Effect::RemoteJobs(RemoteEffect::Watch { .. })), "{effects:?}");
    assert_eq!(state.overlay, Overlay::Jobs);
    assert_eq!(state.remote.jobs.open, Some(id("cats-1")));
    // The next form starts with the values of this one, with another name.
    command(&mut state, Action::StartJob);
    assert_eq!(state.remote.job_form.draft.model.role, draft.model.role);
    assert_eq!(state.remote.job_form.draft.spec.job_name, "");
}

#[test]
fn whole_prefix_or_manifest_is_sent() {
    let mut state = listed();
    let place = S3Place::new(S3Address::new("bucket", "photos/"));
    state.source.as_mut().unwrap().location = Some(Location::S3(Box::new(place.clone())));
    command(&mut state, Action::StartJob);
    assert_eq!(state.remote.job_form.draft.base, "s3://bucket/spotcheck/");
    let draft = draft(&state);
    let (_, request) = check(&mut state, draft.clone());
    assert_eq!(request.images.from, ImagesFrom::Prefix);
    assert_eq!(request.spec.input.data_source.objects, InputObjects::Prefix(place.address));

    let some = JobDraft { scope: ExportScope::Selection, ..draft.clone() };
    let manifest = S3Address::new("bucket", "out/spotcheck-files/cats-1/manifest.json");
    let (_, request) = check(&mut state, some);
    let folder = S3Address::new("bucket", "photos/");
    assert_eq!(request.images.from, ImagesFrom::Objects { folder });
    assert_eq!(request.spec.input.data_source.objects, InputObjects::Manifest(manifest.clone()));

    // Other files next to the images would make the job fail.
    let notes = &mut state.source.as_mut().unwrap().notes;
    notes.push("One object was left out".to_owned());
    let (_, request) = check(&mut state, draft);
    assert_eq!(request.spec.input.data_source.objects, InputObjects::Manifest(manifest));
}

#[test]
fn jobs_are_paged_and_late_pages_dropped() {
    let mut state = State::default();
    let effects = command(&mut state, Action::Jobs);
    assert!(
        !has!(effects, Effect::RemoteJobs(RemoteEffect::List { .. })),
        "the list is not requested before the user opens it"
    );
    let task_of = |effects: &[Effect]| {
        let found = effects.iter().find_map(|effect| match effect {
            Effect::RemoteJobs(RemoteEffect::List { ticket, query, .. }) => Some((ticket.id, query.page_token.clone())),
            _ => None,
        });
        found.expect("jobs are listed")
    };
    let page = |name: &str, next: Option<&str>| JobPage {
        items: vec![JobSummary {
            kind: JobKind::Transform,
            name: name.to_owned(),
            status: TransformStatus::InProgress,
            failure: None,
            created_ms: 0,
            ended_ms: None,
        }],
        next: next.map(str::to_owned),
    };
    let (late, _) = task_of(&command(&mut state, RemoteJobsCommand::List(JobQuery::default())));
    let (first, _) = task_of(&command(&mut state, RemoteJobsCommand::List(JobQuery::default())));
    let listed =
        |task, is_first, page| Event::RemoteJobs(RemoteEvent::Listed { task, is_first, result: Ok((page, None)) });
    event(&mut state, listed(late, true, page("late", None)));
    event(&mut state, listed(first, true, page("a", Some("more"))));
    let (second, token) = task_of(&command(&mut state, RemoteJobsCommand::ListMore));
    assert_eq!(token.as_deref(), Some("more"));
    event(&mut state, listed(second, false, page("b", None)));
    let names: Vec<&str> = state.remote.jobs.list.rows.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(state.remote.jobs.list.next, None);
}

#[test]
fn completed_job_with_missing_outputs_is_a_problem() {
    let mut state = State::default();
    let id = id("cats-1");
    let task = watched(&mut state, &id);
    let seen = progress(TransformStatus::Completed, 3, 2);
    event(&mut state, RemoteJobsEvent::Seen { id: id.clone(), task, seen });
    let ended = RemoteJobsEvent::WatchEnded(id.clone(), task, WatchEnd::Over);
    let effects = event(&mut state, ended);
    assert!(has!(effects, Effect::Jobs(JobsEffect::FindOutcome { .. })), "{effects:?}");
    assert!(has!(effects, Effect::Jobs(JobsEffect::FindLeftovers { .. })), "{effects:?}");
    assert!(state.settings.watched_jobs.is_empty());
    let problems = state.problems.entries();
    assert!(problems[0].problem.message.contains("1 missing"));
    // Opening it again does not watch a finished job.
    assert!(!has!(command(&mut state, RemoteCommand::Open(id)), Effect::RemoteJobs(RemoteEffect::Watch { .. })));
}

#[test]
fn reopened_training_job_lists_new_users_of_its_model() {
    let mut state = State::default();
    let id = JobId { kind: JobKind::Training, ..id("trained") };
    let over = |state: &mut State, used_by: Vec<JobId>| {
        let task = watched(state, &id);
        let described =
            serde_json::json!({"TrainingJobArn": "", "TrainingJobStatus": "Completed", "CreationTime": 0.0});
        let training = serde_json::from_value(described).unwrap();
        let progress =
            TrainingProgress { training, billed_s: None, cost_usd: None, log_tail: Vec::new(), notes: Vec::new() };
        let seen = Box::new(SeenJob::Training(progress, used_by));
        event(state, RemoteJobsEvent::Seen { id: id.clone(), task, seen });
        event(state, RemoteJobsEvent::WatchEnded(id.clone(), task, WatchEnd::Over))
    };
    let effects = over(&mut state, Vec::new());
    assert!(has!(effects, Effect::Jobs(JobsEffect::FindLeftovers { .. })), "{effects:?}");
    let problems = state.problems.entries().len();
    let user = self::id("user");
    let effects = over(&mut state, vec![user.clone()]);
    assert_eq!(state.remote.jobs.get(&id).unwrap().used_by, [user]);
    // Its end is reported once.
    assert!(!has!(effects, Effect::Jobs(JobsEffect::FindLeftovers { .. })), "{effects:?}");
    assert_eq!(state.problems.entries().len(), problems);
    assert!(state.settings.watched_jobs.is_empty());
}

#[test]
fn retry_job_is_watched_instead() {
    let mut state = State::default();
    let id = id("cats-1");
    watched(&mut state, &id);
    let retry = Command::Jobs(JobsCommand::PlanRetry(id.clone(), RetryChoice::NotRefused));
    assert!(!has!(command(&mut state, retry.clone()), Effect::Jobs(JobsEffect::PlanRetry { .. })));
    command(&mut state, JobsCommand::FindOutcome(id.clone()));
    let Loadable::Loading(task) = state.remote.jobs.get(&id).unwrap().outcome else {
        panic!("it is looked for");
    };
    let outcome = JobOutcome {
        place: S3Address::new("bucket", "photos/"),
        inputs: 3,
        outputs: 2,
        retries: Vec::new(),
        failed: vec![FailedObject {
            key: "photos/b.jpg".to_owned(),
            output_key: None,
            reason: None,
            is_refused: false,
            size_bytes: 1,
        }],
        unexplained: Unexplained::NotInLog,
        retry_obstacle: None,
        notes: Vec::new(),
    };
    event(&mut state, JobsEvent::OutcomeFound(id.clone(), task, Ok(outcome)));
    let start = Command::Jobs(JobsCommand::StartRetry(id.clone()));
    let plan = |grade: CheckGrade, state: &mut State| {
        assert!(
            has!(command(state, retry.clone()), Effect::Jobs(JobsEffect::PlanRetry { id, .. }) if id.name == "cats-1")
        );
        let Loadable::Loading(task) = state.remote.jobs.get(&id).unwrap().retry else {
            panic!("it is planned");
        };
        let planned = Event::Jobs(JobsEvent::RetryPlanned(id.clone(), task, Ok(Box::new(retry_plan(grade)))));
        event(state, planned);
    };
    // A job that would fail is not started, nor one that was canceled.
    plan(CheckGrade::Problem, &mut state);
    assert!(!has!(command(&mut state, start.clone()), Effect::Jobs(JobsEffect::StartRetry { .. })));
    plan(CheckGrade::Ok, &mut state);
    command(&mut state, JobsCommand::DropRetry(id.clone()));
    assert!(!has!(command(&mut state, start.clone()), Effect::Jobs(JobsEffect::StartRetry { .. })));
    plan(CheckGrade::Ok, &mut state);
    assert!(has!(command(&mut state, start.clone()), Effect::Jobs(JobsEffect::StartRetry { plan, .. })
            if plan.spec.job_name == "cats-2"));
    // Nor twice.
    assert!(!has!(command(&mut state, start), Effect::Jobs(JobsEffect::StartRetry { .. })));
    let task = state.remote.jobs.get(&id).unwrap().retrying.unwrap();
    let result = Ok("cats-2".to_owned());
    let effects = event(&mut state, JobsEvent::RetryStarted(id.clone(), task, result));
    assert!(has!(effects, Effect::RemoteJobs(RemoteEffect::Watch { .. })), "{effects:?}");
    assert_eq!(state.remote.jobs.open.as_ref().unwrap().name, "cats-2");
}

fn retry_plan(grade: CheckGrade) -> RetryPlan {
    let objects = InputObjects::Prefix(S3Address::new("bucket", "photos/"));
    let output = S3Address::new("bucket", "out/");
    let spec = TransformSpec::over_images("cats-2", "cats", objects, &output);
    let check = Check { point: CheckPoint::Payload, grade, finding: String::new(), advice: String::new() };
    RetryPlan {
        plan: Arc::new(TransformPlan { retry_of: Some("cats-1".to_owned()), ..plan(&S3Access::default(), spec) }),
        preflight: Preflight { checks: vec![check], ..Preflight::default() },
        notes: Vec::new(),
    }
}

#[test]
fn only_listed_leftovers_are_deleted() {
    let mut state = State::default();
    let id = id("cats-1");
    watched(&mut state, &id);
    let delete = Command::Jobs(JobsCommand::DeleteLeftovers(id.clone()));
    assert!(!has!(command(&mut state, delete.clone()), Effect::Jobs(JobsEffect::DeleteLeftovers { .. })));
    command(&mut state, JobsCommand::FindLeftovers(id.clone()));
    let Loadable::Loading(task) = state.remote.jobs.get(&id).unwrap().left else {
        panic!("it is looked for");
    };
    let left = vec![Leftover::Model("cats-1".to_owned())];
    event(&mut state, JobsEvent::LeftoversFound(id.clone(), task, Ok(Leftovers::Recorded(left.clone()))));
    let effects = command(&mut state, delete);
    let found = effects.iter().find_map(|effect| match effect {
        Effect::Jobs(JobsEffect::DeleteLeftovers { found, .. }) => Some(found.clone()),
        _ => None,
    });
    assert_eq!(found, Some(left));
}

#[test]
fn watched_jobs_resume_after_a_restart() {
    let mut state = State::default();
    let id = id("cats-1");
    watched(&mut state, &id);
    let mut state = State::new(state.settings);
    let start = Command::Start { source: None, model: None };
    let effects = command(&mut state, start);
    assert!(has!(effects, Effect::RemoteJobs(RemoteEffect::Watch { .. })), "{effects:?}");
    let task = state.remote.jobs.get(&id).unwrap().watch.task.unwrap();
    let failure = Failure::Failed { message: "The sign-in is over".to_owned(), renewal: None };
    event(&mut state, RemoteJobsEvent::WatchEnded(id.clone(), task, WatchEnd::Failed(failure)));
    assert!(state.remote.jobs.get(&id).unwrap().watch.failure.is_some());
    // The job itself continues, so the next start watches it as well.
    assert!(state.settings.watched_jobs.contains(&id));
    let effects = command(&mut state, RemoteCommand::Watch(id.clone()));
    assert!(has!(effects, Effect::RemoteJobs(RemoteEffect::Watch { .. })), "{effects:?}");
    assert!(state.remote.jobs.get(&id).unwrap().watch.failure.is_none());
}

#[test]
fn missing_jobs_are_not_watched_after_a_restart() {
    let failure = || Failure::Failed { message: "There is no such job".to_owned(), renewal: None };
    for end in [WatchEnd::Absent(failure()), WatchEnd::Failed(Failure::Cancelled)] {
        let mut state = State::default();
        let id = id("cats-1");
        let task = watched(&mut state, &id);
        event(&mut state, RemoteJobsEvent::WatchEnded(id, task, end));
        assert!(state.settings.watched_jobs.is_empty());
    }
    let mut state = State::default();
    let id = id("cats-1");
    let task = watched(&mut state, &id);
    let end = WatchEnd::Failed(failure());
    let ended = RemoteJobsEvent::WatchEnded(id.clone(), task, end);
    event(&mut state, ended);
    command(&mut state, RemoteCommand::StopWatching(id));
    assert!(state.settings.watched_jobs.is_empty());
}

#[test]
fn remote_prediction_of_another_size_is_not_shown() {
    let (mut state, source, run) = ready();
    state.runs.get_mut(run).unwrap().info.key.made =
        InferenceLocation::Outputs { folder: "s3://bucket/out/".to_owned() };
    prediction(&mut state, source, run, 0);
    assert_eq!(state.shown.prediction.as_deref(), Some(&cat()));
    let mut displayed = |size| {
        let result = Ok(DisplayInfo { size, ..DisplayInfo::default() });
        let sample = SampleId(0);
        event(&mut state, BrowseEvent::Displayed { source, sample, result });
        let failure = state.shown.failure.clone();
        (state.shown.prediction.is_some(), failure)
    };
    let (is_shown, failure) = displayed([30, 20]);
    assert!(!is_shown);
    let failure = failure.unwrap();
    assert!(failure.contains("3 x 2") && failure.contains("30 x 20"), "{failure}");
    assert_eq!(displayed([3, 2]), (true, None));
}

#[test]
fn run_keeps_names_while_learning_more() {
    let (mut state, source, run) = ready();
    let named =
        |names: &[(u32, &str)]| -> LabelSet { names.iter().map(|(id, name)| (*id, (*name).to_owned())).collect() };
    state.runs.get_mut(run).unwrap().info.labels = named(&[(1, "cat")]);
    let labels = Box::new(named(&[(1, "lion"), (2, "dog")]));
    event(&mut state, OutputsEvent::Labeled { source, run, labels });
    let known = &state.runs.get(run).unwrap().info.labels;
    assert_eq!(*known, named(&[(1, "cat"), (2, "dog")]));
}

fn examples() -> Arc<ResponseExamples> {
    Arc::new(ResponseExamples { shown: "{}".to_owned(), ..ResponseExamples::default() })
}

fn trial(request: ReadingRequest) -> Box<ReadingTrial> {
    Box::new(ReadingTrial {
        request,
        description: Ok("scores".to_owned()),
        recognized: None,
        assumed: Vec::new(),
        readings: Vec::new(),
    })
}

fn question(effects: &[Effect]) -> Option<u64> {
    effects.iter().find_map(|effect| match effect {
        Effect::Outputs(OutputsEffect::TryReading { question, .. }) => Some(*question),
        _ => None,
    })
}

#[test]
fn examples_are_reread_and_late_ones_dropped() {
    let mut state = listed();
    command(&mut state, Command::Do(Action::OpenOutputs));
    let at = OutputsAt::Folder(Location::Path("/outputs".into()));
    let effects = command(&mut state, OutputsCommand::Preview(Box::new(at)));
    let (source, task) = effects
        .iter()
        .find_map(|effect| match effect {
            Effect::Outputs(OutputsEffect::Preview { place, ticket }) => Some((place.source, ticket.id)),
            _ => None,
        })
        .unwrap();
    let effects = event(&mut state, OutputsEvent::Previewed { source, task, result: Ok(examples()) });
    let first = question(&effects).unwrap();
    assert!(state.remote.outputs.task.is_none());
    assert!(state.remote.reading.is_asking());

    let named = ReadingRequest { labels: "imagenet".to_owned(), ..ReadingRequest::default() };
    let request = Command::Outputs(OutputsCommand::TryReading(Box::new(named.clone())));
    let second = question(&command(&mut state, request)).unwrap();
    let prediction = |question, request| Event::Outputs(OutputsEvent::Tried { question, trial: trial(request) });
    event(&mut state, prediction(first, ReadingRequest::default()));
    assert!(state.remote.reading.trial.is_none());
    event(&mut state, prediction(second, named));
    assert!(state.remote.reading.trial.is_some());
    assert!(!state.remote.reading.is_asking());
}

#[test]
fn examples_of_other_images_are_dropped() {
    let mut state = listed();
    let source = state.source.as_ref().unwrap().id;
    let looked_at = |state: &mut State| {
        event(state, Event::Outputs(OutputsEvent::Previewed { source, task: TaskId(0), result: Ok(examples()) }))
    };
    looked_at(&mut state);
    assert!(state.remote.reading.examples().is_some());
    command(&mut state, BrowseCommand::Open("/other".into()));
    assert!(state.remote.reading.examples().is_none());
    // A late result is about the previous images as well.
    assert!(question(&looked_at(&mut state)).is_none());
    assert!(state.remote.reading.examples().is_none());
}
