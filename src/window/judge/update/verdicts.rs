//! Judging: every verdict, note and tag passes through here, to memory and to the project immediately.

use std::collections::BTreeMap;

use crate::domain::{Change, DrawnBox, ModelTask, RunId, SampleId, SampleSet, Verdict, VerdictTarget, counted};
use crate::evaluation::CORRECT_IOU;
use crate::review::{FilmBox, PredictionStatus, next_less_certain};
use crate::window::judge::state::judgments::{EditOutcome, ImageJudgment, Mark, in_order};
use crate::window::judge::update::spot_check;
use crate::window::state::{Action, JudgeField, NoticeOffer, Overlay, Run, State, Step};
use crate::window::update::images;
use crate::window::{browse, canvas, filmstrip, project, search};

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
    let count = match state.judged_boxes().len() {
        0 => state.selection.selected().len(),
        boxes => boxes,
    };
    if count > MOST_AT_ONCE {
        state.mass_verdict = verdict.cloned();
        state.overlay = Overlay::MassVerdict;
        return;
    }
    judge(state, verdict);
}

/// Gives the selected images a verdict that is about the whole image, such as “complete”, or clears it if the image in
/// view has it.
pub(crate) fn mark(state: &mut State, verdict: &Verdict) {
    let is_marked = state.shown_sample().and_then(|sample| state.judgments.verdict(sample)) == Some(verdict);
    (state.shown.selected_box, state.shown.selected_object) = (None, None);
    if let Some(strip) = &mut state.filmstrip {
        strip.selected.clear();
    }
    state.shown.whole_image_is_announced = true;
    set_verdict(state, (!is_marked).then_some(verdict));
}

/// After verdicts on boxes, the first key on each image without a selected box only announces what the next one will
/// judge.
fn whole_image_question(state: &mut State) -> Option<&'static str> {
    let is_whole_image = state.judged_boxes().is_empty() && state.selection.selected().len() == 1;
    if !state.judges_boxes || !is_whole_image || state.shown.whole_image_is_announced {
        return None;
    }
    if state.awaits_boxes() {
        return Some("The boxes of this image are not loaded yet");
    }
    state.shown.whole_image_is_announced = true;
    state.shown.box_to_select = None;
    Some("No box is selected, so the next verdict applies to the whole image")
}

/// Selects a box. Without one, verdicts apply to the image again.
pub(crate) fn select_box(state: &mut State, selected: Option<usize>) {
    state.shown.selected_box = selected;
    state.shown.selected_object = None;
    state.judges_boxes &= selected.is_some();
    if let Some(strip) = &mut state.filmstrip {
        strip.selected.clear();
    }
}

/// Selects a box or an undetected object of the shown image.
pub(crate) fn select(state: &mut State, shows: FilmBox) {
    let (selected_box, object) = match shows {
        FilmBox::Predicted(index) => (Some(index as usize), None),
        FilmBox::FalseNegative(index) => (None, Some(index as usize)),
    };
    let judges_boxes = state.judges_boxes;
    select_box(state, selected_box);
    state.judges_boxes = judges_boxes;
    state.shown.selected_object = object;
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
    let judged = state.judged_boxes();
    // An image without boxes between others, or one that is complete, does not end the judging of boxes.
    let goes_on = state.shown_boxes().is_empty() || matches!(verdict, Some(Verdict::Complete | Verdict::Returned));
    state.judges_boxes = !judged.is_empty() || (state.judges_boxes && goes_on);
    let was_judged = match judged.as_slice() {
        [] => state.shown_sample().is_some_and(|sample| state.verdict_of(sample).is_some()),
        judged => judged.iter().all(|(sample, shows)| state.verdict_on(*sample, *shows).is_some()),
    };
    let (what, marks) = match judged.as_slice() {
        [] => (images_name(state, state.selection.selected()), Ok(image_marks(state, verdict))),
        [(sample, FilmBox::Predicted(index))] => {
            (box_name(state, *sample, *index as usize), marks_on_boxes(state, &judged, verdict))
        }
        [(sample, FilmBox::FalseNegative(object))] => {
            (label_name(state, *sample, *object), marks_on_boxes(state, &judged, verdict))
        }
        several => (counted(several.len(), "box", "boxes"), marks_on_boxes(state, &judged, verdict)),
    };
    match marks {
        Ok(marks) => edit(state, verdict_label(verdict, &what), marks),
        Err(reason) => {
            state.show_notice(reason);
            return;
        }
    }
    if verdict.is_none() || !state.settings.next_after_verdict {
        return;
    }
    if judged.len() <= 1 && spot_check::go_on(state) {
        return;
    }
    match judged.as_slice() {
        [judged] => go_on_from_box(state, *judged, was_judged),
        [] if state.selection.selected().len() > 1 => {}
        [] => go_on_from_image(state, was_judged),
        _ => {}
    }
}

/// The marks that give boxes and undetected objects this verdict, `None` to clear it.
///
/// # Errors
/// Why one of them cannot have this verdict.
fn marks_on_boxes(
    state: &State,
    judged: &[(SampleId, FilmBox)],
    verdict: Option<&Verdict>,
) -> Result<Vec<(SampleId, Mark)>, &'static str> {
    let run = state.run().ok_or("Choose a model first")?;
    let is_detection = run.task() == Some(ModelTask::Detection);
    marks_by_sample(state, judged, |judgment, sample, shows| match shows {
        FilmBox::Predicted(index) => {
            let box_index = is_detection.then_some(index);
            box_marks(judgment, VerdictTarget { run: Some(run.id()), box_index }, verdict)
        }
        FilmBox::FalseNegative(object) => label_marks(state, run, judgment, (sample, object), verdict),
    })
}

/// The marks for each of these, which `marks` derives from the judgment as the previous ones leave it: two undetected
/// objects of an image need different indices.
///
/// # Errors
/// Those of `marks`.
pub(super) fn marks_by_sample<T: Copy>(
    state: &State,
    judged: &[(SampleId, T)],
    marks: impl Fn(&ImageJudgment, SampleId, T) -> Result<Vec<Mark>, &'static str>,
) -> Result<Vec<(SampleId, Mark)>, &'static str> {
    let mut judgments = BTreeMap::<SampleId, ImageJudgment>::new();
    let mut all = Vec::new();
    for &(sample, what) in judged {
        let known = || state.judgments.get(sample).cloned().unwrap_or_default();
        let judgment = judgments.entry(sample).or_insert_with(known);
        for mark in marks(judgment, sample, what)? {
            judgment.set(mark.clone());
            all.push((sample, mark));
        }
    }
    Ok(all)
}

/// The marks that give a box this verdict, `None` to clear it. A box that a person drew keeps its position with another
/// class, and an added box is removed instead of rejected.
///
/// # Errors
/// Why the box cannot have this verdict.
pub(super) fn box_marks(
    judgment: &ImageJudgment,
    target: VerdictTarget,
    verdict: Option<&Verdict>,
) -> Result<Vec<Mark>, &'static str> {
    let given = match (judgment.verdict(target), verdict) {
        (Some(Verdict::Added(_)), None | Some(Verdict::Reject)) => return Ok(removal(judgment, target)),
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
    Ok(vec![Mark::Verdict(target, given)])
}

/// The marks that judge the label of an undetected object. A right label becomes an added box; with another class, the
/// label is wrong, and the added box has that class.
///
/// # Errors
/// Why the label cannot have this verdict.
pub(super) fn label_marks(
    state: &State,
    run: &Run,
    judgment: &ImageJudgment,
    (sample, object): (SampleId, u32),
    verdict: Option<&Verdict>,
) -> Result<Vec<Mark>, &'static str> {
    let predicted = run.predictions.summary(sample).map(|summary| summary.classes.len() as u32);
    let (Some(label), Some(predicted)) = (state.label_of(sample, object), predicted) else {
        return Err("This object is not evaluated yet");
    };
    let (is_wrong, added) = match verdict {
        None => (false, None),
        Some(Verdict::Accept) => (false, Some(label.clone())),
        Some(Verdict::Reject) => (true, None),
        Some(Verdict::WrongClass(class)) if class == label.class() => (false, Some(label.clone())),
        Some(Verdict::WrongClass(class)) => (true, label.with_class(class)),
        Some(_) => return Err("The label of an undetected object is right or wrong: accept or reject it"),
    };
    let mut marks = match judgment.of_label(run.id(), &label) {
        Some((target, Verdict::Added(_))) => removal(judgment, *target),
        Some((target, _)) => vec![Mark::Verdict(*target, None)],
        None => {
            let is_drawn = |drawn: &DrawnBox| {
                judgment.verdicts().iter().any(|(target, verdict)| {
                    target.run == Some(run.id())
                        && matches!(verdict, Verdict::Added(other) if other.class() == drawn.class()
                            && f64::from(other.bounds().iou(&drawn.bounds())) >= CORRECT_IOU)
                })
            };
            if added.as_ref().is_some_and(is_drawn) {
                return Err("You have already added a box of this class here");
            }
            Vec::new()
        }
    };
    let after = judgment.with(&marks);
    let free = |run, first| {
        let mut targets = (first..).map(|index| VerdictTarget { run, box_index: Some(index) });
        targets.find(|target| after.verdict(*target).is_none())
    };
    let spurious = is_wrong.then(|| (free(None, 0), Verdict::Spurious(label)));
    let added = added.map(|drawn| (free(Some(run.id()), predicted), Verdict::Added(drawn)));
    for (target, verdict) in spurious.into_iter().chain(added) {
        marks.extend(target.map(|target| Mark::Verdict(target, Some(verdict))));
    }
    Ok(marks)
}

/// The marks that remove an added box: those after it take its index.
fn removal(judgment: &ImageJudgment, target: VerdictTarget) -> Vec<Mark> {
    let judged = judgment.verdicts().iter();
    let later = judged.filter(|(other, _)| other.run == target.run && other.box_index > target.box_index);
    let (mut targets, mut verdicts) = (vec![target], Vec::new());
    for (other, verdict) in later {
        targets.push(*other);
        verdicts.push(Some(verdict.clone()));
    }
    verdicts.push(None);
    targets.into_iter().zip(verdicts).map(|(target, verdict)| Mark::Verdict(target, verdict)).collect()
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
    let name = state.samples.file_name(sample);
    let label = format!("clear the verdicts on {name}");
    let targets = state.judgments.verdicts_on_prediction(run, sample);
    let marks = targets.map(|target| (sample, Mark::Verdict(target, None)));
    let marks = marks.collect();
    edit(state, label, marks);
}

/// The box that a verdict would apply to, if it is one.
pub(crate) fn judged_box(state: &State) -> Option<(SampleId, RunId, u32)> {
    match state.judged_boxes().as_slice() {
        [(sample, FilmBox::Predicted(index))] => Some((*sample, state.run_id()?, *index)),
        _ => None,
    }
}

/// Advances from a box or an image of a classifier.
pub(super) fn go_on_from(state: &mut State, judged: (SampleId, FilmBox), was_judged: bool) {
    if state.task() == Some(ModelTask::Classification) {
        go_on_from_image(state, was_judged);
    } else {
        go_on_from_box(state, judged, was_judged);
    }
}

/// Advances to the next box of the filmstrip or of the image without a verdict, and from the last box of an image to
/// the next image without one; after a changed verdict, to the next box in the list.
fn go_on_from_box(state: &mut State, judged: (SampleId, FilmBox), was_judged: bool) {
    if filmstrip::update::go_on(state, judged, was_judged) {
        return;
    }
    let boxes = || state.shown_boxes().into_iter().map(|index| FilmBox::Predicted(index as u32));
    let objects = || state.false_negatives().into_iter().map(|object| FilmBox::FalseNegative(object.index as u32));
    let (sample, shows) = judged;
    let list: Vec<FilmBox> = match shows {
        FilmBox::Predicted(_) => boxes().collect(),
        FilmBox::FalseNegative(_) => objects().chain(boxes()).collect(),
    };
    let place = list.iter().position(|other| *other == shows);
    let (before, after) = list.split_at(place.map_or(0, |place| place + 1));
    let is_open = |shows: &&FilmBox| state.verdict_on(sample, **shows).is_none();
    let next = if was_judged { after.first() } else { after.iter().chain(before).find(is_open) };
    match next {
        Some(&next) => select(state, next),
        None if was_judged => {}
        None => next_unjudged(state),
    }
}

/// Advances to the next image without a verdict; after a changed verdict, to the next image in the list. An image of a
/// classifier in the filmstrip is followed by the next one there.
fn go_on_from_image(state: &mut State, was_judged: bool) {
    let classified = state.task() == Some(ModelTask::Classification);
    let shown = state.shown_sample().filter(|_| classified);
    if shown.is_some_and(|sample| filmstrip::update::go_on(state, (sample, FilmBox::Predicted(0)), was_judged)) {
        return;
    }
    if was_judged {
        browse::update::walk(state, Step::By(1));
    } else {
        next_unjudged(state);
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
    let selected: Vec<SampleId> = state.selection.selected().iter().collect();
    add_tag_to(state, &selected, tag, label);
}

pub(crate) fn add_tag_to(state: &mut State, samples: &[SampleId], tag: &str, label: String) {
    let with_tag = |tags: &[String]| {
        let tags = tags.iter().cloned().chain(std::iter::once(tag.to_owned()));
        in_order(tags.collect())
    };
    edit_tags(state, samples, label, with_tag);
}

pub(crate) fn remove_tag(state: &mut State, tag: &str) {
    let label = format!("remove the tag “{tag}” from {}", selected_name(state));
    let without_tag = |tags: &[String]| {
        let tags = tags.iter().filter(|other| *other != tag);
        tags.cloned().collect()
    };
    let selected: Vec<SampleId> = state.selection.selected().iter().collect();
    edit_tags(state, &selected, label, without_tag);
}

fn edit_tags(state: &mut State, samples: &[SampleId], label: String, change: impl Fn(&[String]) -> Vec<String>) {
    let marks = samples.iter().map(|&sample| {
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
    let reviewer = state.settings.reviewer_name();
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
    ask_for_reviewer(state, &changes);
    let ticket = project::update::save(state, changes);
    state.judgments.begin_saving(ticket, &outcome.samples());
    browse::update::shown::follow(state);
}

/// Asks once, with the first verdict, without waiting for the answer.
fn ask_for_reviewer(state: &mut State, changes: &[Change]) {
    let is_verdict = |change: &&Change| matches!(change, Change::SetVerdict { .. });
    let verdicts: Vec<Change> = changes.iter().filter(is_verdict).cloned().collect();
    if let Some(unnamed) = &mut state.project.unnamed {
        unnamed.extend(verdicts);
    } else if !verdicts.is_empty() && !state.settings.asked_for_reviewer && state.settings.reviewer_name().is_none() {
        state.settings.asked_for_reviewer = true;
        state.project.unnamed = Some(verdicts);
    }
}

/// Saves the verdicts since the question again, in their order.
pub(crate) fn name_reviewer(state: &mut State) {
    let unnamed = state.project.unnamed.take().unwrap_or_default();
    let name = state.settings.reviewer_name();
    if name.is_none() {
        return;
    }
    let named = unnamed.into_iter().map(|change| match change {
        Change::SetVerdict { sample, target, verdict, .. } => {
            Change::SetVerdict { sample, target, verdict, reviewer: name.clone() }
        }
        other => other,
    });
    let named = named.collect();
    project::update::save(state, named);
}

/// Shows the next unjudged image in the order on screen, from the shown one and around the end.
pub(crate) fn next_unjudged(state: &mut State) {
    if spot_check::go_on(state) {
        return;
    }
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
        Some(Verdict::Reject | Verdict::Spurious(_)) => format!("reject {what}"),
        Some(Verdict::Unsure) => format!("mark {what} as unsure"),
        Some(Verdict::WrongClass(class)) => format!("set the class of {what} to “{class}”"),
        Some(Verdict::Moved(_)) => format!("move {what}"),
        Some(Verdict::Added(_)) => format!("add {what}"),
        Some(Verdict::Complete) => format!("mark {what} as complete"),
        Some(Verdict::Returned) => format!("mark {what} as back to labeler"),
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
    let image = state.samples.file_name(sample);
    format!("the {label} in {image}")
}

fn label_name(state: &State, sample: SampleId, object: u32) -> String {
    let label = state.class_of_object(sample, object).unwrap_or("object");
    let image = state.samples.file_name(sample);
    format!("the label {label} in {image}")
}
