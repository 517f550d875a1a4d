//! Which run a project opens with, and where its verdicts are.

use super::predict;
use crate::domain::{Change, JudgedSample, RunId, RunInfo};
use crate::window::project;
use crate::window::state::{NoticeOffer, ProjectContent, RememberedRuns, Run, State};
use crate::window::update::images;

/// The name of the run on screen in the project.
const RUN_ON_SCREEN: &str = "run_on_screen";

/// Restores the record from the project, and removes the runs with a single automatic prediction: such a run would hide
/// the others, and its prediction is repeated when needed.
pub(crate) fn restore(state: &mut State, content: &mut ProjectContent) {
    let view = content.views.iter().find(|(name, _)| name == RUN_ON_SCREEN);
    let remembered = view.and_then(|(_, json)| serde_json::from_str::<RememberedRuns>(json).ok());
    state.remembered_runs = remembered.unwrap_or_default();
    let is_judged = |run: RunId| {
        let is_of_run = |judged: &JudgedSample| judged.verdicts.iter().any(|(target, _)| target.run == Some(run));
        content.judgments.iter().any(is_of_run)
    };
    let automatic = &state.remembered_runs.automatic;
    let (surplus, kept): (Vec<RunInfo>, Vec<RunInfo>) =
        content.runs.drain(..).partition(|run| automatic.contains(&run.id) && !is_judged(run.id));
    if kept.is_empty() {
        content.runs = surplus;
        return;
    }
    content.runs = kept;
    if state.project.is_writable() && !surplus.is_empty() {
        let changes = surplus.iter().map(|run| Change::DeleteRun(run.id)).collect();
        project::update::save(state, changes);
    }
}

/// Resets everything for another source.
pub(crate) fn forget(state: &mut State) {
    state.remembered_runs = RememberedRuns::default();
    (state.other_judged_run, state.judged_seen) = (None, None);
}

pub(crate) fn is_automatic(state: &State, run: RunId) -> bool {
    state.remembered_runs.automatic.contains(&run)
}

/// Shows the last run on screen; else the one with the most verdicts, the one of the chosen model, or the newest. Then
/// its model is chosen, so that reopening a project does not start another run. A model named on the command line takes
/// precedence.
pub(crate) fn show(state: &mut State) {
    let is_named = state.inference.remote.is_some() || state.models.is_named();
    match run_to_open(state).filter(|_| !is_named) {
        Some(run) => project::update::switch_run(state, run),
        None => predict::go_to_active_run(state),
    }
}

fn run_to_open(state: &State) -> Option<RunId> {
    let last = state.remembered_runs.on_screen.filter(|run| state.runs.get(*run).is_some());
    let newest = state.runs.iter().last().map(Run::id);
    last.or_else(|| most_judged(state)).or_else(|| predict::active_run(state)).or(newest)
}

/// The run with the most judged images; `None` without verdicts.
fn most_judged(state: &State) -> Option<RunId> {
    let counts = state.runs.iter().map(|run| (state.judgments.judged_images(run.id()), run.id()));
    counts.max().filter(|(count, _)| *count > 0).map(|(_, run)| run)
}

/// Reports where the verdicts are if the run on screen has none, and records the run on screen. Called after every
/// message.
pub(crate) fn follow(state: &mut State) {
    let on_screen = state.run_id();
    let seen = (on_screen, state.judgments.marks().revision());
    let before = state.judged_seen.replace(seen);
    if before != Some(seen) {
        let is_judged = on_screen.is_some_and(|run| state.judgments.judged_images(run) > 0);
        state.other_judged_run = most_judged(state).filter(|_| !is_judged);
        let is_other_run = before.is_none_or(|(before, _)| before != on_screen);
        if let Some((text, run)) = state.other_judged_run_text().zip(state.other_judged_run).filter(|_| is_other_run) {
            state.show_offer(text, NoticeOffer::ShowRun(run));
        }
    }
    remember(state, on_screen);
}

fn remember(state: &mut State, on_screen: Option<RunId>) {
    let is_surplus = |run: &&Run| {
        let count = run.predictions.predicted() + run.predictions.failed();
        run.is_automatic && run.is_in_project && count <= 1
    };
    let remembered = RememberedRuns {
        on_screen: on_screen.filter(|run| state.runs.get(*run).is_some_and(|run| run.is_in_project)),
        automatic: state.runs.iter().filter(is_surplus).map(Run::id).collect(),
    };
    if on_screen.is_none() || remembered == state.remembered_runs || !state.project.is_writable() {
        return;
    }
    project::update::save_view(state, RUN_ON_SCREEN.to_owned(), &remembered);
    state.remembered_runs = remembered;
}

impl State {
    /// The run with the verdicts, if the one on screen has none.
    pub fn other_judged_run(&self) -> Option<RunId> {
        self.other_judged_run
    }

    /// “2 images are judged in the run `SSD MobileNet v2`”.
    pub fn other_judged_run_text(&self) -> Option<String> {
        let run = self.runs.get(self.other_judged_run?)?;
        let name = &run.info.name;
        Some(match self.judgments.judged_images(run.id()) {
            1 => format!("1 image is judged in the run {name}"),
            count => format!("{} are judged in the run {name}", images(count)),
        })
    }
}
