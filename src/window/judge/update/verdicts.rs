//! Judging: every verdict, note and tag passes through here, to memory and to the project immediately.

use crate::domain::{Change, RunId, SampleId, SampleSet, Verdict, VerdictTarget};
use crate::review::{PredictionStatus, next_less_certain};
use crate::window::judge::state::judgments::{EditOutcome, ImageJudgment, Mark, in_order};
use crate::window::state::{Action, JudgeField, NoticeOffer, Overlay, Run, State, Step};
use crate::window::update::images;
use crate::window::{browse, canvas, project, search};

/// Judging more images than this requires a confirmation.
const MOST_AT_ONCE: usize = 20;

/// Sets a verdict on the selected box, or else on every selected image; `None` clears it.
pub(crate) fn set_verdict(state: &mut State, verdict: Option<&Verdict>) {
    if state.overlay == Overlay::WrongClass {
        state.overlay = Overlay::None;
    }
    if let Err(reason) = can_judge(state).and_then(|()| state.check_judged_is_found()) {
        state.show_notice(reason);
        return;
    }
    if let Some(question) = whole_image_question(state) {
        state.show_notice(question);
        return;
    }
    if state.selection.selected().len() > MOST_AT_ONCE {
        state.mass_verdict = verdict.cloned();
        state.overlay = Overlay::MassVerdict;
        return;
    }
    judge(state, verdict);
}

/// After verdicts on boxes, the first key on each image without a selected box only announces what the next one will
/// judge.
fn whole_image_question(state: &mut State) -> Option<&'static str> {
    let is_whole_image = judged_box(state).is_none() && state.selection.selected().len() == 1;
    if !state.judges_boxes || !is_whole_image || state.shown.whole_image_is_announced {
        return None;
    }
    if state.shown.box_to_select.is_some() && state.prediction_is_coming() {
        return Some("The boxes of this image are not loaded yet");
    }
    state.shown.whole_image_is_announced = true;
    state.shown.box_to_select = None;
    Some("No box is selected, so the next verdict applies to the whole image")
}

/// Selects a box. Without one, verdicts apply to the image again.
pub(crate) fn select_box(state: &mut State, selected: Option<usize>) {
    state.shown.selected_box = selected;
    state.judges_boxes &= selected.is_some();
}

/// Judges many images after the user's confirmation.
pub(crate) fn confirm_mass_verdict(state: &mut State) {
    if state.overlay == Overlay::MassVerdict {
        state.overlay = Overlay::None;
        let verdict = state.mass_verdict.take();
        judge(state, verdict.as_ref());
    }
}

fn judge(state: &mut State, verdict: Option<&Verdict>) {
    let judged = judged_box(state);
    // An image without boxes between others does not end the judging of boxes.
    state.judges_boxes = judged.is_some() || (state.judges_boxes && state.shown_boxes().is_empty());
    let was_judged = match judged {
        Some((sample, _, box_index)) => state.judgments.box_verdict(sample, box_index as usize).is_some(),
        None => state.shown_sample().is_some_and(|sample| state.verdict_of(sample).is_some()),
    };
    let (label, marks) = if let Some((sample, run, box_index)) = judged {
        let target = VerdictTarget { run: Some(run), box_index: Some(box_index) };
        let what = box_name(state, sample, box_index as usize);
        match box_marks(state, sample, target, verdict) {
            Ok(marks) => (verdict_label(verdict, &what), marks),
            Err(reason) => {
                state.show_notice(reason);
                return;
            }
        }
    } else {
        let what = images_name(state, state.selection.selected());
        let label = verdict_label(verdict, &what);
        (label, image_marks(state, verdict))
    };
    edit(state, label, marks);
    if verdict.is_none() || !state.settings.next_after_verdict {
        return;
    }
    match judged {
        Some((sample, _, box_index)) => {
            go_on_from_box(state, sample, box_index, was_judged);
        }
        None if state.selection.selected().len() > 1 => {}
        // After a changed verdict, to the next image in the list.
        None if was_judged => browse::update::walk(state, Step::By(1)),
        None => next_unjudged(state),
    }
}

/// The marks that give a box this verdict, `None` to clear it. A box that a person drew keeps its position with another
/// class, and an added box is removed instead of rejected.
///
/// # Errors
/// Why the box cannot have this verdict.
fn box_marks(
    state: &State,
    sample: SampleId,
    target: VerdictTarget,
    verdict: Option<&Verdict>,
) -> Result<Vec<(SampleId, Mark)>, &'static str> {
    let judged = state.judgments.get(sample).and_then(|judged| judged.verdict(target));
    let given = match (judged, verdict) {
        (Some(Verdict::Added(_)), None | Some(Verdict::Reject)) => return Ok(removal(state, sample, target)),
        (Some(Verdict::Added(_)), Some(Verdict::Unsure)) => {
            return Err("You added this box. Clear its verdict to remove it");
        }
        (Some(Verdict::Added(_) | Verdict::Moved(_)), Some(Verdict::Accept)) => {
            return Err("This box is corrected already: it counts as accepted");
        }
        (Some(Verdict::Added(drawn)), Some(Verdict::WrongClass(class))) => drawn.with_class(class).map(Verdict::Added),
        (Some(Verdict::Moved(drawn)), Some(Verdict::WrongClass(class))) => drawn.with_class(class).map(Verdict::Moved),
        _ => verdict.cloned(),
    };
    Ok(vec![(sample, Mark::Verdict(target, given))])
}

/// The marks that remove an added box: those after it take its index.
fn removal(state: &State, sample: SampleId, target: VerdictTarget) -> Vec<(SampleId, Mark)> {
    let judged = state.judgments.get(sample).into_iter().flat_map(ImageJudgment::verdicts);
    let later = judged.filter(|(other, _)| other.run == target.run && other.box_index > target.box_index);
    let (mut targets, mut verdicts) = (vec![target], Vec::new());
    for (other, verdict) in later {
        targets.push(*other);
        verdicts.push(Some(verdict.clone()));
    }
    verdicts.push(None);
    targets.into_iter().zip(verdicts).map(|(target, verdict)| (sample, Mark::Verdict(target, verdict))).collect()
}

/// The marks that give every selected image this verdict. Clearing several images clears their boxes as well.
fn image_marks(state: &State, verdict: Option<&Verdict>) -> Vec<(SampleId, Mark)> {
    let run = state.run();
    let clears_boxes = verdict.is_none() && state.selection.selected().len() > 1;
    let mut marks = Vec::new();
    for sample in state.selection.selected().iter() {
        let predicted = run.filter(|run| run.status(sample) == PredictionStatus::Predicted);
        let of = |run| VerdictTarget { run, box_index: None };
        let target = of(predicted.map(Run::id));
        marks.push((sample, Mark::Verdict(target, verdict.cloned())));
        // Clearing a verdict must not reveal an older one that was given without a prediction.
        if verdict.is_none() && target.run.is_some() {
            marks.push((sample, Mark::Verdict(of(None), None)));
        }
        if let Some(run) = run.filter(|_| clears_boxes) {
            let boxes = state.judgments.verdicts_on_prediction(run.id(), sample);
            let boxes = boxes.filter(|target| target.box_index.is_some());
            marks.extend(boxes.map(|target| (sample, Mark::Verdict(target, None))));
        }
    }
    marks
}

/// Clears every verdict on a run's prediction for this image.
pub(crate) fn take_back_prediction(state: &mut State, run: RunId, sample: SampleId) {
    let name = state.samples.get(sample).map_or("", |entry| entry.uri.file_name());
    let label = format!("clear the verdicts on {name}");
    let targets = state.judgments.verdicts_on_prediction(run, sample);
    let marks = targets.map(|target| (sample, Mark::Verdict(target, None)));
    let marks = marks.collect();
    edit(state, label, marks);
}

/// The box that a verdict would apply to, if any.
pub(crate) fn judged_box(state: &State) -> Option<(SampleId, RunId, u32)> {
    let sample = state.shown_sample()?;
    let run = state.run()?.id();
    let selected = state.shown.selected_box?;
    let is_alone = state.selection.selected().len() == 1;
    let is_box = state.shown.prediction.as_ref().is_some_and(|prediction| selected < prediction.detections().len());
    let box_index = u32::try_from(selected).ok()?;
    (is_alone && is_box).then_some((sample, run, box_index))
}

/// Advances to the next box without a verdict, and from the last box of an image to the next image without one; after a
/// changed verdict, to the next box in the list.
fn go_on_from_box(state: &mut State, sample: SampleId, judged: u32, was_judged: bool) {
    let visible = state.shown_boxes();
    let place = visible.iter().position(|&index| index == judged as usize);
    let (before, after) = visible.split_at(place.map_or(0, |place| place + 1));
    let is_open = |index: &&usize| state.judgments.box_verdict(sample, **index).is_none();
    let next = if was_judged { after.first() } else { after.iter().chain(before).find(is_open) };
    match next {
        Some(&next) => select_box(state, Some(next)),
        None if was_judged => {}
        None => next_unjudged(state),
    }
}

pub(crate) fn set_note(state: &mut State, samples: &SampleSet, text: &str) {
    let text = text.trim();
    let what = images_name(state, samples);
    let label =
        if text.is_empty() { format!("remove the note from {what}") } else { format!("write a note on {what}") };
    let marks = samples.iter().map(|sample| (sample, Mark::Note(text.to_owned())));
    edit(state, label, marks.collect());
}

pub(crate) fn add_tag(state: &mut State, tag: &str) {
    let tag = tag.trim();
    if tag.is_empty() {
        return;
    }
    let label = format!("tag {} “{tag}”", selected_name(state));
    let with_tag = |tags: &[String]| {
        let tags = tags.iter().cloned().chain(std::iter::once(tag.to_owned()));
        in_order(tags.collect())
    };
    edit_tags(state, label, with_tag);
}

pub(crate) fn remove_tag(state: &mut State, tag: &str) {
    let label = format!("remove the tag “{tag}” from {}", selected_name(state));
    let without_tag = |tags: &[String]| {
        let tags = tags.iter().filter(|other| *other != tag);
        tags.cloned().collect()
    };
    edit_tags(state, label, without_tag);
}

fn edit_tags(state: &mut State, label: String, change: impl Fn(&[String]) -> Vec<String>) {
    let selected = state.selection.selected().iter();
    let marks = selected.map(|sample| {
        let tags = change(state.judgments.tags(sample));
        (sample, Mark::Tags(tags))
    });
    let marks = marks.collect();
    edit(state, label, marks);
}

pub(crate) fn edit(state: &mut State, label: String, marks: Vec<(SampleId, Mark)>) {
    if let Err(reason) = can_judge(state) {
        state.show_notice(reason);
        return;
    }
    if let Some(outcome) = state.judgments.edit(label, marks) {
        state.reset_filters = None;
        save(state, &outcome);
        // An older notice may offer to undo an edit that is no longer the last one.
        state.notice.take_if(|notice| notice.offer == Some(NoticeOffer::Do(Action::Undo)));
        if outcome.samples().len() > 1 {
            state.show_offer(format!("Done: {}", outcome.label), NoticeOffer::Do(Action::Undo));
        }
    }
}

pub(crate) fn undo(state: &mut State) {
    if canvas::update::undo_reset(state) {
        return;
    }
    if let Some(outcome) = state.judgments.undo() {
        notify_and_show(state, "Undone", &outcome);
        save(state, &outcome);
    }
}

pub(crate) fn redo(state: &mut State) {
    if let Some(outcome) = state.judgments.redo() {
        notify_and_show(state, "Redone", &outcome);
        save(state, &outcome);
    }
}

/// Reports a change and makes it visible: a single image is shown even if it does not match the search.
fn notify_and_show(state: &mut State, what: &str, outcome: &EditOutcome) {
    state.show_notice(format!("{what}: {}", outcome.label));
    let samples = outcome.samples();
    let single = samples.iter().next().filter(|_| samples.len() == 1);
    if let Some(sample) = single
        && state.shown_sample() != Some(sample)
    {
        browse::update::show(state, sample);
    }
}

fn save(state: &mut State, outcome: &EditOutcome) {
    let reviewer = Some(state.settings.reviewer.trim().to_owned()).filter(|name| !name.is_empty());
    let change = |(sample, mark): &(SampleId, Mark)| {
        let sample = state.samples.get(*sample)?.uri.clone();
        Some(match mark.clone() {
            Mark::Verdict(target, verdict) => {
                Change::SetVerdict { sample, target, verdict, reviewer: reviewer.clone() }
            }
            Mark::Note(text) => Change::SetNote { sample, text },
            Mark::Tags(tags) => Change::SetTags { sample, tags },
        })
    };
    let changes: Vec<Change> = outcome.marks.iter().filter_map(change).collect();
    let ticket = project::update::requests::save(state, changes);
    state.judgments.begin_saving(ticket, &outcome.samples());
    browse::update::shown::follow(state);
}

/// Shows the next unjudged image in the order on screen, from the shown one and around the end.
pub(crate) fn next_unjudged(state: &mut State) {
    let order = state.order();
    let first = search::update::place_after(state, 1).unwrap_or(0);
    let count = order.len();
    let found = (0..count)
        .filter_map(|step| order.at((first + step) % count))
        .find(|&sample| state.verdict_of(sample).is_none());
    go_to(state, found);
}

/// Among the images on screen with a prediction and no verdict, shows the one with the next higher uncertainty rank
/// after the shown one; restarts with the least certain.
pub(crate) fn next_uncertain(state: &mut State) {
    let Some(run) = state.run() else {
        state.show_notice("Choose a model first");
        return;
    };
    let order = state.order();
    let unjudged = order.ids().filter(|&id| state.verdict_of(id).is_none());
    let found = next_less_certain(&run.predictions, &state.view(), unjudged, state.shown_sample());
    go_to(state, found);
}

fn go_to(state: &mut State, found: Option<SampleId>) {
    match found {
        Some(sample) if state.shown_sample() == Some(sample) => {
            state.show_notice("This is the last image without a verdict");
        }
        Some(sample) => browse::update::show(state, sample),
        None => state.show_notice("All images have a verdict"),
    }
}

/// Focuses the field in the next frame.
pub(crate) fn focus(state: &mut State, field: JudgeField) {
    state.settings.show_judging = true;
    state.judge_focus = Some((field, state.ids.next()));
}

fn can_judge(state: &State) -> Result<(), &'static str> {
    if state.selection.selected().is_empty() {
        return Err("Choose an image first");
    }
    state.project.check_writable()
}

/// “accept coffee.png”, to follow “Undo: ”.
fn verdict_label(verdict: Option<&Verdict>, what: &str) -> String {
    match verdict {
        Some(Verdict::Accept) => format!("accept {what}"),
        Some(Verdict::Reject) => format!("reject {what}"),
        Some(Verdict::Unsure) => format!("mark {what} as unsure"),
        Some(Verdict::WrongClass(class)) => format!("set the class of {what} to “{class}”"),
        Some(Verdict::Moved(_)) => format!("move {what}"),
        Some(Verdict::Added(_)) => format!("add {what}"),
        None => format!("clear the verdict on {what}"),
    }
}

fn selected_name(state: &State) -> String {
    images_name(state, state.selection.selected())
}

/// The file name of a single image, or the number of images.
fn images_name(state: &State, samples: &SampleSet) -> String {
    let single = samples.iter().next().filter(|_| samples.len() == 1);
    match single.and_then(|sample| state.samples.get(sample)) {
        Some(entry) => entry.uri.file_name().to_owned(),
        None => images(samples.len()),
    }
}

pub(crate) fn box_name(state: &State, sample: SampleId, box_index: usize) -> String {
    let prediction = state.shown.prediction.as_ref();
    let detection = prediction.and_then(|prediction| prediction.detections().get(box_index));
    let label = detection.map_or("box", |detection| detection.label.as_str());
    let image = state.samples.get(sample).map_or("", |entry| entry.uri.file_name());
    format!("the {label} in {image}")
}
