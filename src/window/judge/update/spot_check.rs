//! Reviews of a random sample: drawing it, walking through it, and its end.

use crate::review::{FilmBox, LoadedSample, ReviewSample, SampleProgress};
use crate::tasks::ProgressUnit;
use crate::window::judge::state::spot_check::{SampleDesign, SampleRequest, SampleVerdicts, SampleWork};
use crate::window::state::{
    Failure, Loadable, Overlay, ReviewEffect, RunId, SearchCommand, SpotChecks, State, TaskId, TaskKind,
};
use crate::window::tasks::update::{begin, settle};
use crate::window::{browse, filmstrip, project, search, update};

/// The number of verdicts that the dialog suggests first.
const USUAL_COUNT: usize = 200;

/// Opens the dialog. For a finished sample, it suggests as many verdicts as ± 1% needs.
pub(crate) fn open(state: &mut State) {
    let known = state.spot_checks.sample.ready().map(|loaded| loaded.sample.units.len());
    let population = state.spot_checks.sample.ready().map_or(usize::MAX, |loaded| loaded.sample.population());
    let more = state.spot_checks.progress.filter(|progress| progress.missing() == 0);
    let more = more.and_then(|progress| progress.more_for_one_percent).unwrap_or_default();
    state.spot_checks.suggested = known.map_or(USUAL_COUNT, |known| (known + more).min(population));
    state.overlay = Overlay::SpotCheck;
}

/// Draws a sample and begins to judge it.
pub(crate) fn draw(state: &mut State, design: SampleDesign) {
    if let Err(reason) = state.project.check_writable() {
        state.show_notice(reason);
        return;
    }
    let view = Box::new(state.view().into_owned());
    request(state, SampleWork::Draw(design, view), "Draw a sample");
}

fn request(state: &mut State, what: SampleWork, title: &str) {
    let (Some(source), Some(run)) = (state.source_id(), state.run()) else {
        return;
    };
    let request = SampleRequest { source, run: run.info.clone(), what };
    let ticket = begin(state, TaskKind::ReviewReport, ProgressUnit::Images, title.to_owned());
    state.spot_checks.run = Some(request.run.id);
    state.spot_checks.sample = Loadable::Loading(ticket.id);
    state.effects.push(ReviewEffect::Sample { request: Box::new(request), ticket });
}

pub(crate) fn loaded(state: &mut State, task: TaskId, result: Result<Box<LoadedSample>, Failure>) {
    if !settle(state, task, result, |state| Some(&mut state.spot_checks.sample)) {
        return;
    }
    let checks = &mut state.spot_checks;
    checks.number += 1;
    (checks.seen, checks.progress) = (None, None);
    let Some(run) = checks.run else {
        return;
    };
    let sample = match &checks.sample {
        Loadable::Ready(loaded) => loaded.sample.clone(),
        Loadable::Failed(Failure::Failed { message, .. }) => {
            let message = message.clone();
            state.report_problem(message);
            return;
        }
        _ => return,
    };
    let before = checks.stored.insert(run, sample.clone());
    if before.as_ref() != Some(&sample) {
        project::update::save_view(state, ReviewSample::name_in_project(run.0), &sample);
        judge_it(state);
    }
}

/// Limits the search to the sample, and shows what to judge first.
pub(crate) fn judge_it(state: &mut State) {
    if state.overlay == Overlay::SpotCheck {
        state.overlay = Overlay::None;
    }
    state.settings.show_judging = true;
    update::show_image(state);
    search::update::on_command(state, SearchCommand::SetQuery("sampled".to_owned()));
    go_on(state);
}

/// Shows the next unit of the sample without a verdict, in the order in which it was drawn. Returns false if no sample
/// is being judged.
pub(crate) fn go_on(state: &mut State) -> bool {
    look_up_verdicts(state);
    let Some(loaded) = state.sample_to_judge() else {
        return false;
    };
    let (shown, selected) = (state.shown_sample(), state.shown.selected_box);
    let mut units = Vec::new();
    let mut first = 0;
    for (unit, _, sample, verdict) in state.spot_checks.verdicts.of(loaded) {
        let Some(sample) = sample else {
            continue;
        };
        let box_index = unit.unit.box_index;
        units.push((sample, box_index, verdict.is_some()));
        let is_selected = box_index.is_none_or(|index| selected == Some(index as usize));
        if shown == Some(sample) && is_selected {
            first = units.len();
        }
    }
    let next = units[first..].iter().chain(&units[..first]).find(|(.., is_judged)| !is_judged);
    match next {
        Some(&(sample, Some(index), _)) => filmstrip::update::show_box(state, sample, FilmBox::Predicted(index)),
        Some(&(sample, None, _)) => browse::update::show(state, sample),
        None => state.show_notice("Everything in the sample has a verdict"),
    }
    true
}

/// Restores a sample from the project; ignores other names.
pub(crate) fn restore(state: &mut State, name: &str, json: &str) {
    let Some(run) = ReviewSample::run_of_name(name) else {
        return;
    };
    match serde_json::from_str(json) {
        Ok(sample) => drop(state.spot_checks.stored.insert(RunId(run), sample)),
        Err(error) => state.report_problem(format!("Could not read the sample of a run: {error}. Draw it again")),
    }
}

/// Reads the sample of the run on screen, and follows its verdicts. Called after every message.
pub(crate) fn follow(state: &mut State) {
    let run = state.run_id();
    if state.spot_checks.run != run {
        let SpotChecks { stored, number, .. } = std::mem::take(&mut state.spot_checks);
        state.spot_checks = SpotChecks { stored, number: number + 1, run, ..SpotChecks::default() };
        let sample = run.and_then(|run| state.spot_checks.stored.get(&run).cloned());
        if let Some(sample) = sample {
            request(state, SampleWork::Load(Box::new(sample)), "Read the sample");
        }
    }
    look_up_verdicts(state);
    if !std::mem::take(&mut state.spot_checks.is_behind) {
        return;
    }
    let Some(loaded) = state.spot_checks.sample.ready() else {
        return;
    };
    let units = state.spot_checks.verdicts.of(loaded);
    let units = units.map(|(loaded, stratum, _, judgment)| (loaded.unit, stratum, judgment));
    let progress = SampleProgress::new(&loaded.sample, units);
    let before = state.spot_checks.progress.replace(progress);
    let was_open = before.is_some_and(|before| before.missing() > 0);
    if was_open && progress.missing() == 0 && state.arranging.is_about_sample() {
        super::open_report(state);
    }
}

/// Looks up the verdicts on the sample that changed.
fn look_up_verdicts(state: &mut State) {
    let changed = state.judgments.take_changed();
    let samples = state.samples.revision();
    let mut verdicts = std::mem::take(&mut state.spot_checks.verdicts);
    if let Some(loaded) = state.spot_checks.sample.ready() {
        if state.spot_checks.seen == Some(samples) {
            state.spot_checks.is_behind |= verdicts.update(state, loaded, &changed);
        } else {
            verdicts = SampleVerdicts::new(state, loaded);
            state.spot_checks.is_behind = true;
            state.spot_checks.seen = Some(samples);
        }
    }
    state.spot_checks.verdicts = verdicts;
}
