use super::*;
use crate::domain::{Change, Detection, JudgedSample, ModelTask, SampleSet, Verdict, VerdictTarget};
use crate::project::export::options::{ExportFormat, ExportOptions, VerdictChoice};
use crate::review::VerdictKind;
use crate::window::state::{ExportCommand, NoticeOffer, ProjectCommand};

fn verdicts(state: &State) -> Vec<VerdictKind> {
    let samples = state.samples.ids();
    samples.filter_map(|id| state.verdict_of(id)).collect()
}

fn ticket(effects: &[Effect]) -> u64 {
    let found = effects.iter().find_map(|effect| match effect {
        Effect::Project(ProjectEffect::Save { ticket, .. }) => Some(*ticket),
        _ => None,
    });
    found.expect("something is saved")
}

fn set_verdict(name: &str, run: Option<RunId>, verdict: Option<Verdict>) -> Change {
    Change::SetVerdict {
        sample: SampleUri::new(format!("/photos/{name}")),
        target: VerdictTarget { run, box_index: None },
        verdict,
        reviewer: None,
    }
}

fn boxes(count: usize) -> Prediction {
    let detections = (0..count).map(|number| Detection {
        bounds: [0.0, 0.0, 1.0, 1.0].into(),
        class_id: 0,
        label: "cat".to_owned(),
        score: 0.9 - 0.1 * number as f32,
        runners_up: Vec::new(),
    });
    Prediction {
        width: 3,
        height: 2,
        content: PredictionContent::Detections(detections.collect()),
        warnings: Vec::new(),
    }
}

/// Like [`ready`], with two boxes on the first image.
fn with_boxes() -> (State, RunId) {
    let (mut state, source, run) = ready();
    state.runs.get_mut(run).unwrap().info.card.task = ModelTask::Detection.into();
    let predictions = vec![new_prediction(SampleId(0), Ok(boxes(2)))];
    event(&mut state, InferenceEvent::Predicted { source, run, at_ms: 1, predictions });
    (state, run)
}

#[test]
fn verdict_is_saving_until_stored() {
    let (mut state, source, run) = ready();
    prediction(&mut state, source, run, 0);
    let effects = command(&mut state, Action::Accept);
    let expected = set_verdict("a.jpg", Some(run), Some(Verdict::Accept));
    assert_eq!(changes(&effects), [expected]);
    assert!(state.judgments.is_saving(SampleId(0)));
    let up_to = ticket(&effects);
    event(&mut state, ProjectEvent::Saved { source, up_to });
    assert!(!state.judgments.is_saving(SampleId(0)));
    assert_eq!(state.judgments.verdict(SampleId(0)), Some(&Verdict::Accept));
}

#[test]
fn verdict_advances_unless_disabled() {
    let (mut state, ..) = ready();
    command(&mut state, Action::Reject);
    assert_eq!(state.shown_sample(), Some(SampleId(1)));
    command(&mut state, Action::GoOnAfterVerdict);
    command(&mut state, Action::Reject);
    assert_eq!(state.shown_sample(), Some(SampleId(1)));
    assert_eq!(verdicts(&state), [VerdictKind::Reject; 2]);
}

/// Like [`with_boxes`], with a verdict on the second box and a file change since.
fn judged_and_outdated() -> (State, SourceId, RunId) {
    let (mut state, run) = with_boxes();
    let source = state.source.as_ref().unwrap().id;
    command(&mut state, Action::GoOnAfterVerdict);
    command(&mut state, ReviewCommand::SelectBox(Some(1)));
    command(&mut state, Action::Reject);
    let seen = ListingChange::Seen(vec![written_anew("a.jpg")]);
    changed(&mut state, source, seen);
    (state, source, run)
}

fn predicted(source: SourceId, run: RunId, prediction: Prediction) -> Event {
    Event::Inference(InferenceEvent::Predicted {
        source,
        run,
        at_ms: 1,
        predictions: vec![new_prediction(SampleId(0), Ok(prediction))],
    })
}

#[test]
fn judged_prediction_is_not_replaced() {
    let (mut state, source, run) = judged_and_outdated();
    let effects = command(&mut state, Action::PredictShown);
    assert!(!has!(effects, Effect::Inference(InferenceEffect::PredictOne { .. })), "{effects:?}");
    let notice = &state.notice.as_ref().unwrap().text;
    assert!(notice.contains("verdict"), "{notice}");
    command(&mut state, Action::SelectAll);
    let effects = command(&mut state, Action::PredictSelection);
    assert!(
        has!(effects, Effect::Inference(InferenceEffect::Predict(request))
            if request.run == RunId(1) && request.samples.len() == 2),
        "{effects:?}"
    );
    // Computed already when the box was judged.
    let effects = event(&mut state, predicted(source, run, boxes(1)));
    assert_eq!(changes(&effects), []);
    assert!(state.run().unwrap().is_outdated(SampleId(0)));
    let verdict = state.judgments.box_verdict(SampleId(0), 1);
    assert_eq!(verdict, Some(&Verdict::Reject));
    let shown = state.shown.prediction.as_ref().unwrap();
    assert_eq!(shown.detections().len(), 2);
}

#[test]
fn withdrawn_verdicts_never_reach_the_new_prediction() {
    let (mut state, source, run) = judged_and_outdated();
    let effects = command(&mut state, Action::PredictAnew);
    assert!(
        has!(
            effects,
            Effect::Inference(InferenceEffect::PredictOne(image))
                if (image.run, image.sample) == (RunId(1), SampleId(0))
        ),
        "{effects:?}"
    );
    assert!(matches!(&changes(&effects)[..],
        [Change::SetVerdict { target, verdict: None, .. }, ..] if target.box_index == Some(1)));
    event(&mut state, predicted(source, run, boxes(2)));
    assert!(!state.run().unwrap().is_outdated(SampleId(0)));
    assert!(state.judgments.get(SampleId(0)).is_none());
    assert!(Action::Undo.check(&state).is_err());
    assert!(Action::PredictAnew.check(&state).is_err());
}

#[test]
fn restored_verdicts_keep_the_old_prediction() {
    let (mut state, source, run) = judged_and_outdated();
    command(&mut state, Action::PredictAnew);
    command(&mut state, Action::Undo);
    let effects = event(&mut state, predicted(source, run, boxes(1)));
    assert_eq!(changes(&effects), []);
    let verdict = state.judgments.box_verdict(SampleId(0), 1);
    assert_eq!(verdict, Some(&Verdict::Reject));
}

#[test]
fn judged_outdated_prediction_is_reopened() {
    let mut state = State::default();
    event(&mut state, models(&["small"]));
    let source = source_of(&command(&mut state, BrowseCommand::Open(PathBuf::from("/photos"))));
    let run = RunId(7);
    let Event::Project(ProjectEvent::Opened { mut content, .. }) = project_with(source, vec![stored_run(run)]) else {
        unreachable!("that is what it makes");
    };
    content.judgments = vec![JudgedSample {
        sample: SampleUri::new("/photos/a.jpg"),
        verdicts: vec![(VerdictTarget { run: Some(run), box_index: None }, Verdict::Accept)],
        note: String::new(),
        tags: Vec::new(),
    }];
    event(&mut state, ProjectEvent::Opened { source, content });
    let page = page(&["a.jpg", "b.jpg"]);
    event(&mut state, BrowseEvent::Listed { source, page });
    // The existing prediction is not for this file; the others are not known yet.
    let predictions = vec![(run, SampleId(0), None)];
    let effects = event(&mut state, ProjectEvent::PredictionsLoaded { source, predictions });
    assert!(!has!(effects, Effect::Inference(InferenceEffect::Prepare { .. })), "{effects:?}");
    let task = state.tasks.running()[0].id;
    let result = Ok(());
    event(&mut state, BrowseEvent::ListingEnded { source, task, result });
    let row = |name: &str| StoredRow {
        sample: SampleUri::new(format!("/photos/{name}")),
        stamp: Some(FileStamp { size_bytes: 99, ..FileStamp::default() }),
        prediction: StoredPrediction::Predicted {
            width: 3,
            height: 2,
            classes: vec![0],
            scores: vec![0.9],
            warnings: Vec::new(),
        },
    };
    let predictions = vec![row("a.jpg"), row("b.jpg")];
    event(&mut state, ProjectEvent::RunLoaded { source, run, predictions });
    let task = state.tasks.running()[0].id;
    let ended = Event::Project(ProjectEvent::RunLoadingEnded { source, run, task, result: Ok(()) });
    let effects = event(&mut state, ended);
    assert!(!has!(effects, Effect::Inference(InferenceEffect::Prepare { .. })), "{effects:?}");
    let any_version = effects.iter().any(|effect| {
        matches!(effect, Effect::Project(ProjectEffect::LoadPredictions { requested, .. })
            if requested[0].stamp.is_none())
    });
    assert!(any_version, "{effects:?}");
    let run = state.run().unwrap();
    assert!(run.is_outdated(SampleId(0)));
    assert_eq!(run.status(SampleId(0)), PredictionStatus::Predicted);
    assert_eq!(run.status(SampleId(1)), PredictionStatus::Unpredicted, "it has no verdict");
    let kept = state.problems.entries().iter().filter(|entry| entry.problem.message.contains("is kept"));
    assert_eq!(kept.count(), 1, "{:?}", state.problems.entries());
}

#[test]
fn image_without_a_prediction_can_be_judged() {
    let (mut state, ..) = ready();
    let effects = command(&mut state, Action::Unsure);
    assert_eq!(changes(&effects), [set_verdict("a.jpg", None, Some(Verdict::Unsure))]);
}

#[test]
fn selected_images_are_judged_and_undone_in_one_step() {
    let (mut state, ..) = ready();
    command(&mut state, Action::SelectAll);
    let effects = command(&mut state, Action::Reject);
    assert_eq!(changes(&effects).len(), 3);
    assert_eq!(verdicts(&state), [VerdictKind::Reject; 3]);
    assert_eq!(state.shown_sample(), Some(SampleId(0)), "several stay");
    assert_eq!(Action::Undo.label_now(&state), "Undo: reject 3 images");
    let effects = command(&mut state, Action::Undo);
    assert_eq!(changes(&effects).len(), 3);
    assert_eq!(verdicts(&state).len(), 0);
    assert_eq!(Action::Redo.label_now(&state), "Redo: reject 3 images");
    command(&mut state, Action::Redo);
    assert_eq!(verdicts(&state), [VerdictKind::Reject; 3]);
}

#[test]
fn undo_centers_its_image() {
    let (mut state, ..) = ready();
    command(&mut state, Action::Accept);
    command(&mut state, BrowseCommand::Show(SampleId(2)));
    command(&mut state, Action::Undo);
    assert_eq!(state.shown_sample(), Some(SampleId(0)));
    let notice = state.notice.as_ref().unwrap();
    assert_eq!(notice.text, "Undone: accept a.jpg");
}

#[test]
fn judged_box_selects_the_next() {
    let (mut state, run) = with_boxes();
    command(&mut state, Action::NextBox);
    assert_eq!(state.shown.selected_box, Some(0));
    let wrong = Verdict::WrongClass("dog".to_owned());
    let effects = command(&mut state, ReviewCommand::SetVerdict(Some(wrong.clone())));
    let target = VerdictTarget { run: Some(run), box_index: Some(0) };
    let sample = SampleUri::new("/photos/a.jpg");
    let verdict = Some(wrong.clone());
    assert_eq!(changes(&effects), [Change::SetVerdict { sample, target, verdict, reviewer: None }]);
    assert_eq!(state.judgments.box_verdict(SampleId(0), 0), Some(&wrong));
    assert_eq!(state.judgments.verdict(SampleId(0)), None);
    assert_eq!(state.shown.selected_box, Some(1));
    let undo = state.judgments.undo_label().unwrap();
    assert!(["cat", "a.jpg", "“dog”"].iter().all(|fact| undo.contains(fact)), "{undo}");
    assert!(verdicts(&state).is_empty(), "one of two boxes is judged");
    command(&mut state, Action::Accept);
    assert_eq!(verdicts(&state), [VerdictKind::WrongClass]);
    assert_eq!(state.shown_sample(), Some(SampleId(1)), "it was the last");
}

#[test]
fn after_boxes_keys_judge_no_whole_image() {
    let (mut state, run) = with_boxes();
    let source = state.source.as_ref().unwrap().id;
    let notice = |state: &State| state.notice.as_ref().map(|notice| notice.text.clone()).unwrap_or_default();
    command(&mut state, Action::NextBox);
    for _ in 0..3 {
        command(&mut state, Action::Accept);
    }
    assert_eq!(state.shown_sample(), Some(SampleId(1)));
    assert_eq!(verdicts(&state), [VerdictKind::Accept], "the boxes of the second image are not loaded yet");
    assert!(notice(&state).contains("not loaded yet"), "{}", notice(&state));
    let predictions = vec![new_prediction(SampleId(1), Ok(boxes(1))), new_prediction(SampleId(2), Ok(boxes(0)))];
    event(&mut state, InferenceEvent::Predicted { source, run, at_ms: 1, predictions });
    assert_eq!(state.shown.selected_box, Some(0));
    command(&mut state, Action::Accept);
    assert_eq!(state.shown_sample(), Some(SampleId(2)));
    command(&mut state, Action::Accept);
    assert_eq!(verdicts(&state).len(), 2);
    assert!(notice(&state).contains("whole image"), "{}", notice(&state));
    command(&mut state, Action::Accept);
    assert_eq!(state.judgments.verdict(SampleId(2)), Some(&Verdict::Accept));
}

#[test]
fn image_without_boxes_does_not_end_judging_boxes() {
    let (mut state, run) = with_boxes();
    let source = state.source.as_ref().unwrap().id;
    let predictions = vec![new_prediction(SampleId(1), Ok(boxes(0))), new_prediction(SampleId(2), Ok(boxes(2)))];
    event(&mut state, InferenceEvent::Predicted { source, run, at_ms: 1, predictions });
    command(&mut state, Action::NextBox);
    // Two boxes, the announcement, the whole image, and the first box of the last image.
    for _ in 0..5 {
        command(&mut state, Action::Reject);
    }
    assert_eq!(state.judgments.verdict(SampleId(1)), Some(&Verdict::Reject));
    assert_eq!(state.judgments.verdict(SampleId(2)), None);
    assert_eq!(state.judgments.box_verdict(SampleId(2), 0), Some(&Verdict::Reject));
    assert_eq!(state.judgments.box_verdict(SampleId(2), 1), None);
}

#[test]
fn verdict_advances_over_judged_images() {
    let (mut state, ..) = ready();
    command(&mut state, BrowseCommand::Show(SampleId(1)));
    command(&mut state, Action::Accept);
    command(&mut state, BrowseCommand::Show(SampleId(0)));
    command(&mut state, Action::Accept);
    assert_eq!(state.shown_sample(), Some(SampleId(2)));
    command(&mut state, BrowseCommand::Show(SampleId(0)));
    command(&mut state, Action::Reject);
    assert_eq!(state.shown_sample(), Some(SampleId(1)), "a changed verdict goes to the next image");
    assert_eq!(state.judgments.verdict(SampleId(1)), Some(&Verdict::Accept));
}

#[test]
fn clearing_several_images_clears_their_boxes() {
    let (mut state, _) = with_boxes();
    command(&mut state, Action::NextBox);
    command(&mut state, Action::Accept);
    command(&mut state, Action::SelectAll);
    command(&mut state, Action::ClearVerdict);
    assert_eq!(state.judgments.box_verdict(SampleId(0), 0), None);
    command(&mut state, Action::Undo);
    assert_eq!(state.judgments.box_verdict(SampleId(0), 0), Some(&Verdict::Accept));
}

#[test]
fn verdicts_without_a_box_are_on_the_image() {
    let (mut state, _) = with_boxes();
    command(&mut state, Action::NextBox);
    command(&mut state, Action::Accept);
    command(&mut state, ReviewCommand::SelectBox(None));
    command(&mut state, Action::Reject);
    assert_eq!(state.judgments.verdict(SampleId(0)), Some(&Verdict::Reject));
}

#[test]
fn changed_verdict_stays_on_its_image() {
    let (mut state, _) = with_boxes();
    for index in 0..2 {
        command(&mut state, ReviewCommand::SelectBox(Some(index)));
        command(&mut state, Action::Accept);
        command(&mut state, BrowseCommand::Show(SampleId(0)));
    }
    command(&mut state, ReviewCommand::SelectBox(Some(0)));
    command(&mut state, Action::Reject);
    assert_eq!(state.shown.selected_box, Some(1), "the next of the list");
    command(&mut state, Action::Reject);
    assert_eq!(state.shown.selected_box, Some(1), "there is no next one");
    assert_eq!(state.shown_sample(), Some(SampleId(0)));
}

#[test]
fn skipped_box_comes_before_the_next_image() {
    let (mut state, _) = with_boxes();
    command(&mut state, ReviewCommand::SelectBox(Some(1)));
    command(&mut state, Action::Accept);
    assert_eq!(state.shown.selected_box, Some(0));
    assert_eq!(state.shown_sample(), Some(SampleId(0)));
}

#[test]
fn accepted_box_overrides_filters() {
    let (mut state, _) = with_boxes();
    command(&mut state, Action::GoOnAfterVerdict);
    command(&mut state, ReviewCommand::SelectBox(Some(1)));
    command(&mut state, Action::Accept);
    let hide = Command::Review(ReviewCommand::ChangeView(ViewChange::MinScore(0.99)));
    command(&mut state, hide);
    assert_eq!(state.shown_boxes(), [1]);
    assert_eq!(state.shown.selected_box, Some(1));
    command(&mut state, Action::Reject);
    assert!(state.shown_boxes().is_empty(), "rejected boxes follow them");
    assert_eq!(state.shown.selected_box, None);
}

#[test]
fn clearing_deletes_verdicts_older_than_the_prediction() {
    let (mut state, source, run) = ready();
    command(&mut state, Action::GoOnAfterVerdict);
    command(&mut state, Action::Accept);
    prediction(&mut state, source, run, 0);
    command(&mut state, Action::Reject);
    command(&mut state, Action::ClearVerdict);
    assert_eq!(state.judgments.verdict(SampleId(0)), None);
    command(&mut state, Action::Undo);
    assert_eq!(state.judgments.verdict(SampleId(0)), Some(&Verdict::Reject));
}

#[test]
fn notes_and_tags_apply_to_the_selection() {
    let (mut state, ..) = ready();
    command(&mut state, Action::SelectAll);
    command(&mut state, ReviewCommand::AddTag("  night ".to_owned()));
    command(&mut state, ReviewCommand::AddTag("blurry".to_owned()));
    assert_eq!(state.judgments.tags(SampleId(2)), ["blurry", "night"]);
    let samples: SampleSet = [SampleId(1)].into_iter().collect();
    let text = "look again\n".to_owned();
    let effects = command(&mut state, ReviewCommand::SetNote { samples, text });
    assert_eq!(
        changes(&effects),
        [Change::SetNote { sample: SampleUri::new("/photos/b.jpg"), text: "look again".to_owned() }]
    );
    command(&mut state, BrowseCommand::Show(SampleId(2)));
    command(&mut state, ReviewCommand::RemoveTag("night".to_owned()));
    assert_eq!(state.judgments.tags(SampleId(1)), ["blurry", "night"]);
    assert_eq!(state.judgments.tags(SampleId(2)), ["blurry"]);
    assert_eq!(verdicts(&state).len(), 0);
}

#[test]
fn next_unjudged_image_wraps_around() {
    let (mut state, ..) = ready();
    command(&mut state, Action::GoOnAfterVerdict);
    command(&mut state, BrowseCommand::Show(SampleId(2)));
    command(&mut state, Action::Accept);
    command(&mut state, Action::NextUnjudged);
    assert_eq!(state.shown_sample(), Some(SampleId(0)));
    command(&mut state, Action::SelectAll);
    command(&mut state, Action::Accept);
    command(&mut state, Action::NextUnjudged);
    let notice = state.notice.as_ref().unwrap();
    assert!(notice.text.contains("have a verdict"), "{}", notice.text);
}

#[test]
fn least_certain_prediction_comes_first() {
    let (mut state, source, run) = ready();
    let sure = |first: f32| Prediction {
        content: PredictionContent::Classes(
            [(0, first), (1, 0.1)].map(|(index, score)| ClassScore { index, label: "cat".to_owned(), score }).into(),
        ),
        ..cat()
    };
    let predictions = [(0, 0.9), (1, 0.5), (2, 0.2)];
    event(
        &mut state,
        InferenceEvent::Predicted {
            source,
            run,
            at_ms: 1,
            predictions: predictions.map(|(id, first)| new_prediction(SampleId(id), Ok(sure(first)))).into(),
        },
    );
    let mut visited = Vec::new();
    for _ in 0..3 {
        command(&mut state, Action::NextUncertain);
        visited.push(state.shown_sample().unwrap().0);
    }
    // The shown one is the most certain, so the round starts with the least certain.
    assert_eq!(visited, [2, 1, 0]);
}

#[test]
fn stored_verdicts_appear_in_any_loading_order() {
    let judged = |name: &str| JudgedSample {
        sample: SampleUri::new(format!("/photos/{name}")),
        verdicts: vec![(VerdictTarget { run: None, box_index: None }, Verdict::Reject)],
        note: "seen".to_owned(),
        tags: vec!["t".to_owned()],
    };
    let mut state = State::default();
    event(&mut state, models(&["small"]));
    let source = source_of(&command(&mut state, BrowseCommand::Open(PathBuf::from("/photos"))));
    let listed = |names: &[&str]| Event::Browse(BrowseEvent::Listed { source, page: page(names) });
    event(&mut state, listed(&["a.jpg"]));
    let Event::Project(ProjectEvent::Opened { mut content, .. }) = empty_project(source) else {
        panic!("it is the event of an opened project");
    };
    content.judgments = vec![judged("a.jpg"), judged("b.jpg"), judged("gone.jpg")];
    event(&mut state, ProjectEvent::Opened { source, content });
    event(&mut state, listed(&["b.jpg"]));
    for sample in [SampleId(0), SampleId(1)] {
        assert_eq!(state.judgments.verdict(sample), Some(&Verdict::Reject));
        assert_eq!(state.judgments.note(sample), "seen");
    }
    assert_eq!(verdicts(&state).len(), 2);
    assert!(Action::Undo.check(&state).is_err());
}

#[test]
fn locked_project_is_not_judged() {
    let (mut state, ..) = ready();
    state.project.status = ProjectStatus::ReadOnly { reason: "it is open in another window".to_owned() };
    let effects = command(&mut state, Action::Accept);
    assert!(changes(&effects).is_empty());
    assert_eq!(verdicts(&state).len(), 0);
    let notice = state.notice.as_ref().unwrap();
    assert!(notice.text.contains("read-only"), "{}", notice.text);
}

/// The runs 7 and 8 of the model `small`, with these verdicts and this record in the project.
fn reopened_with(judged: &[(RunId, &str)], remembered: &str) -> (State, Vec<Effect>) {
    let mut state = State::default();
    event(&mut state, models(&["small"]));
    let source = source_of(&command(&mut state, BrowseCommand::Open(PathBuf::from("/photos"))));
    let runs = vec![stored_run(RunId(7)), RunInfo { name: "second".to_owned(), ..stored_run(RunId(8)) }];
    let Event::Project(ProjectEvent::Opened { mut content, .. }) = project_with(source, runs) else {
        unreachable!("that is what it makes");
    };
    content.judgments = judged
        .iter()
        .map(|(run, name)| JudgedSample {
            sample: SampleUri::new(format!("/photos/{name}")),
            verdicts: vec![(VerdictTarget { run: Some(*run), box_index: None }, Verdict::Accept)],
            note: String::new(),
            tags: Vec::new(),
        })
        .collect();
    content.views = vec![("run_on_screen".to_owned(), remembered.to_owned())];
    let effects = event(&mut state, ProjectEvent::Opened { source, content });
    event(&mut state, BrowseEvent::Listed { source, page: page(&["a.jpg", "b.jpg"]) });
    (state, effects)
}

#[test]
fn last_viewed_run_opens_then_judged_one() {
    let (first, second) = (RunId(7), RunId(8));
    let on_screen = |run: u64| format!(r#"{{"on_screen":{run},"automatic":[]}}"#);
    for (judged, remembered, expected) in [
        (&[][..], String::new(), second),
        (&[], on_screen(7), first),
        (&[], on_screen(99), second),
        (&[(first, "a.jpg")], String::new(), first),
        (&[(first, "a.jpg")], on_screen(8), second),
        (&[(first, "a.jpg")], on_screen(99), first),
        (&[(first, "a.jpg"), (second, "b.jpg")], on_screen(7), first),
        (&[(first, "a.jpg"), (second, "b.jpg")], on_screen(8), second),
        (&[(first, "a.jpg"), (first, "gone.jpg"), (second, "b.jpg")], String::new(), first),
    ] {
        let (state, _) = reopened_with(judged, &remembered);
        assert_eq!(state.run().map(Run::id), Some(expected), "{judged:?} {remembered}");
    }
}

#[test]
fn unjudged_run_points_to_the_judged_one() {
    let (mut state, _) = reopened_with(&[(RunId(8), "a.jpg"), (RunId(8), "b.jpg")], "");
    assert_eq!((state.other_judged_run(), &state.notice), (None, &None));
    command(&mut state, ProjectCommand::SwitchRun(RunId(7)));
    assert_eq!(state.other_judged_run(), Some(RunId(8)));
    let notice = state.notice.as_ref().unwrap();
    assert!(notice.text.contains("2 images") && notice.text.contains("second"), "{}", notice.text);
    assert_eq!(notice.offer, Some(NoticeOffer::ShowRun(RunId(8))));
    command(&mut state, ProjectCommand::SwitchRun(RunId(8)));
    assert_eq!(state.other_judged_run(), None);
}

#[test]
fn automatic_single_prediction_run_is_not_kept() {
    let automatic = r#"{"on_screen":8,"automatic":[8]}"#;
    let (state, effects) = reopened_with(&[], automatic);
    assert_eq!(state.runs.iter().map(Run::id).collect::<Vec<_>>(), [RunId(7)]);
    assert_eq!(changes(&effects)[0], Change::DeleteRun(RunId(8)));
    let (state, _) = reopened_with(&[(RunId(8), "a.jpg")], automatic);
    assert_eq!(state.runs.iter().count(), 2, "it is judged");
    let (state, _) = reopened_with(&[], r#"{"on_screen":8,"automatic":[7,8]}"#);
    assert_eq!(state.runs.iter().count(), 2, "they hide nothing");
}

/// The record of runs sent to the project.
fn remembered(effects: &[Effect]) -> Option<String> {
    let is_about_runs = |change: Change| match change {
        Change::SetView { name, json } if name == "run_on_screen" => Some(json),
        _ => None,
    };
    changes(effects).into_iter().find_map(is_about_runs)
}

#[test]
fn run_is_automatic_until_used() {
    let (mut state, source, run) = ready();
    let automatic = format!(r#"{{"on_screen":{0},"automatic":[{0}]}}"#, run.0);
    let kept = format!(r#"{{"on_screen":{0},"automatic":[]}}"#, run.0);
    let effects = event(&mut state, predicted(source, run, boxes(1)));
    assert_eq!(remembered(&effects), Some(automatic));
    assert_eq!(remembered(&command(&mut state, Action::PredictAll)), Some(kept));
}

#[test]
fn judged_labels_are_exported_as_corrected_by_default() {
    let (mut state, ..) = with_boxes();
    let opened = |state: &mut State| {
        command(state, Action::Export);
        state.export.options
    };
    let options = opened(&mut state);
    assert_eq!(options.verdicts, VerdictChoice::All, "nothing is judged");
    command(&mut state, Action::Accept);
    assert_eq!(opened(&mut state).verdicts, VerdictChoice::Corrected);
    let scope = state.export.scope;
    let set = |state: &mut State, format, verdicts| {
        command(state, ExportCommand::Set(ExportOptions { format, verdicts, ..options }, scope));
        state.export.options.verdicts
    };
    assert_eq!(set(&mut state, ExportFormat::Report, VerdictChoice::Corrected), VerdictChoice::All);
    assert_eq!(set(&mut state, ExportFormat::Voc, VerdictChoice::All), VerdictChoice::Corrected);
    assert_eq!(set(&mut state, ExportFormat::Voc, VerdictChoice::All), VerdictChoice::All, "the user's choice");
    assert_eq!(opened(&mut state).verdicts, VerdictChoice::All);
}
