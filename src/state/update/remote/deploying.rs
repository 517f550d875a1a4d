//! The form that makes a model answer at an endpoint.

use super::super::{run_tasks, s3};
use super::sending::task_of;
use super::{begin, endpoints, failed, take_check};
use crate::domain::Problem;
use crate::state::{
    DeployCheck, DeployDraft, Effect, EndpointId, ModelDraft, Overlay, SendStage, State, TaskId,
    TaskKind, TaskOutcome, TaskSignal,
};
use crate::tasks::ProgressUnit;

pub(in super::super) fn open_form(state: &mut State, effects: &mut Vec<Effect>) {
    let place = state.source.as_ref().and_then(|open| open.place.clone());
    if let Some(place) = &place {
        s3::set_access(state, place.access.clone(), effects);
    }
    let mut draft = DeployDraft {
        model: ModelDraft::of_library(state.models.chosen_id(), &state.settings.deploy.model),
        ..state.settings.deploy.clone()
    };
    // Whoever has sent jobs has said it once.
    let sent = &state.settings.send;
    for (field, known) in [(&mut draft.role, &sent.role), (&mut draft.base, &sent.base)] {
        if field.is_empty() {
            field.clone_from(known);
        }
    }
    if let (true, Some(place)) = (draft.base.is_empty(), &place) {
        draft.base = format!("s3://{}/spotcheck/", place.address.bucket);
    }
    forget(state, effects);
    state.remote.deploying.serial = state.ids.next();
    state.remote.deploying.draft = draft;
    state.overlay = Overlay::Deploy;
    effects.push(Effect::ReadAwsSetup);
    let access = state.s3.access.clone();
    s3::ask_who(state, &access, effects);
}

/// Nobody waits for the check any more; what is being deployed goes on.
fn forget(state: &mut State, effects: &mut Vec<Effect>) {
    if let Some(task) = task_of(&state.remote.deploying.check) {
        run_tasks::signal(state, task, TaskSignal::Cancel, effects);
    }
    let deploying = &mut state.remote.deploying;
    deploying.check = SendStage::NotYet;
    if !deploying.start.is_running() {
        deploying.start = SendStage::NotYet;
    }
}

/// Checks the form as it stands now. A check before it is of no use any more.
pub(in super::super) fn check(state: &mut State, draft: DeployDraft, effects: &mut Vec<Effect>) {
    forget(state, effects);
    let order = draft.order(state);
    state.remote.deploying.draft = draft;
    match order {
        Err(missing) => state.remote.deploying.missing = Some(missing),
        Ok(order) => {
            let title = format!("Check the endpoint {}", order.config.name);
            let (task, control) = begin(state, TaskKind::Endpoints, ProgressUnit::Steps, title);
            let deploying = &mut state.remote.deploying;
            deploying.missing = None;
            deploying.check = SendStage::Running(task);
            effects.push(Effect::CheckDeployment {
                order: Box::new(order),
                task,
                control,
            });
        }
    }
}

pub(in super::super) fn checked(
    state: &mut State,
    task: TaskId,
    result: Result<Box<DeployCheck>, TaskOutcome>,
) {
    take_check(state, task, result, |state| {
        &mut state.remote.deploying.check
    });
}

/// Packs, uploads and starts what was checked.
pub(in super::super) fn deploy(state: &mut State, effects: &mut Vec<Effect>) {
    let SendStage::Done(check) = &state.remote.deploying.check else {
        return;
    };
    if !check.is_startable() || state.remote.deploying.start.is_running() {
        return;
    }
    let (image, usd_per_hour) = (check.image.clone(), check.usd_per_hour);
    let Ok(mut order) = state.remote.deploying.draft.order(state) else {
        return;
    };
    order.image = image;
    order.usd_per_hour = usd_per_hour;
    state.settings.deploy = state.remote.deploying.draft.for_the_next();
    let title = format!("Deploy the endpoint {}", order.config.name);
    let (task, control) = begin(state, TaskKind::Endpoints, ProgressUnit::Bytes, title);
    state.remote.deploying.start = SendStage::Running(task);
    effects.push(Effect::Deploy {
        order: Box::new(order),
        task,
        control,
    });
}

/// The endpoint's page takes the place of the form.
pub(in super::super) fn deployed(
    state: &mut State,
    task: TaskId,
    result: Result<EndpointId, TaskOutcome>,
    effects: &mut Vec<Effect>,
) {
    let is_wanted = state.remote.deploying.start.is_by(task);
    match result {
        Ok(id) => {
            let said = format!("Started the endpoint {}", id.name);
            drop(state.tasks.end(task, TaskOutcome::Done(said.clone())));
            state.tell(said);
            if is_wanted {
                state.remote.deploying.start = SendStage::NotYet;
                state.remote.deploying.check = SendStage::NotYet;
            }
            if state.overlay == Overlay::Deploy {
                endpoints::open(state, &id, effects);
            } else {
                endpoints::watch(state, &id, effects);
            }
        }
        Err(outcome) => {
            if let TaskOutcome::Failed(message) = &outcome {
                state.problems.add(Problem::general(message.clone()), None);
                state.tell(message.clone());
            }
            let stage = failed(state, task, outcome);
            if is_wanted {
                state.remote.deploying.start = stage;
            }
        }
    }
}
