//! Boxes that a person draws, moves, copies and removes.

use super::*;
use crate::domain::{BoundingBox, Detection, DrawnBox, ModelTask, Verdict, VerdictTarget};
use crate::review::VerdictKind;
use crate::window::state::{Drawing, RIGHT_AND_BOTTOM, WHOLE_BOX};

const SIZE: [u32; 2] = [100, 80];

fn found(label: &str, class_id: u32, bounds: [f32; 4], score: f32) -> Detection {
    Detection { bounds: bounds.into(), class_id, label: label.to_owned(), score, runners_up: Vec::new() }
}

/// The first image is shown with two predicted boxes.
fn with_boxes() -> (State, RunId) {
    let (mut state, source, run) = ready();
    state.runs.get_mut(run).unwrap().info.card.task = ModelTask::Detection.into();
    let boxes = vec![found("cat", 0, [10.0, 10.0, 30.0, 30.0], 0.9), found("cat", 0, [50.0, 50.0, 70.0, 70.0], 0.8)];
    let prediction = Prediction {
        width: SIZE[0],
        height: SIZE[1],
        content: PredictionContent::Detections(boxes),
        warnings: Vec::new(),
    };
    let predictions = vec![new_prediction(SampleId(0), Ok(prediction))];
    event(&mut state, InferenceEvent::Predicted { source, run, at_ms: 1, predictions });
    command(&mut state, Action::GoOnAfterVerdict);
    (state, run)
}

fn drawn(class: &str, bounds: [f32; 4]) -> DrawnBox {
    DrawnBox::new(class, bounds.into(), SIZE).unwrap()
}

/// The class and the position of each shown box, in stored order.
fn shown(state: &State) -> Vec<(String, [f32; 4])> {
    let detections = state.shown.prediction.as_ref().unwrap().detections().iter();
    detections.map(|found| (found.label.clone(), found.bounds.into())).collect()
}

fn add(state: &mut State, class: &str, bounds: [f32; 4]) -> Vec<Effect> {
    command(state, Action::DrawBox);
    assert_eq!(state.shown.drawing, Some(Drawing::Armed));
    command(state, ReviewCommand::DrawBox(bounds.into()));
    assert_eq!(state.overlay, Overlay::WrongClass);
    command(state, ReviewCommand::ChooseClass(class.to_owned()))
}

#[test]
fn drawn_box_is_added_saved_and_undone() {
    let (mut state, run) = with_boxes();
    command(&mut state, ReviewCommand::SetReviewer(" Ada ".to_owned()));
    let effects = add(&mut state, "dog", [60.2, 5.0, 140.0, 20.0]);
    let expected = Change::SetVerdict {
        sample: SampleUri::new("/photos/a.jpg"),
        target: VerdictTarget { run: Some(run), box_index: Some(2) },
        verdict: Some(Verdict::Added(drawn("dog", [60.0, 5.0, 100.0, 20.0]))),
        reviewer: Some("Ada".to_owned()),
    };
    assert_eq!(changes(&effects), [expected]);
    assert_eq!((state.overlay, state.shown.drawing), (Overlay::None, None));
    assert_eq!(shown(&state)[2], ("dog".to_owned(), [60.0, 5.0, 100.0, 20.0]));
    assert_eq!(state.shown.selected_box, Some(2));
    assert!(state.shown_boxes().contains(&2));
    assert_eq!(state.recent_classes, ["dog"]);
    command(&mut state, Action::Undo);
    assert_eq!(shown(&state).len(), 2);
    assert_eq!(state.shown.selected_box, None);
    command(&mut state, Action::Redo);
    assert_eq!(shown(&state).len(), 3);
}

#[test]
fn box_without_area_or_class_is_not_added() {
    let (mut state, _) = with_boxes();
    let effects = add(&mut state, "dog", [5.0, 5.0, 5.1, 30.0]);
    assert_eq!(changes(&effects), []);
    assert_eq!(shown(&state).len(), 2);
    command(&mut state, Action::DrawBox);
    command(&mut state, ReviewCommand::DrawBox([5.0, 5.0, 9.0, 30.0].into()));
    command(&mut state, Command::CLOSE_OVERLAY);
    assert_eq!(state.shown.drawing, None);
}

#[test]
fn model_box_keeps_its_position_next_to_the_moved_one() {
    let (mut state, _) = with_boxes();
    command(&mut state, ReviewCommand::SelectBox(Some(0)));
    command(&mut state, ReviewCommand::MoveBox([12.0, 10.0, 28.0, 30.0].into()));
    assert_eq!(shown(&state)[0].1, [12.0, 10.0, 28.0, 30.0]);
    assert_eq!(state.shown.selected_box, Some(0), "it stays selected");
    let stored = state.shown.stored.as_ref().unwrap().detections()[0].bounds;
    assert_eq!(stored, BoundingBox::new(10.0, 10.0, 30.0, 30.0));
    command(&mut state, ReviewCommand::NudgeBox { by: [1.0, -1.0], edges: WHOLE_BOX });
    assert_eq!(shown(&state)[0].1, [13.0, 9.0, 29.0, 29.0]);
    command(&mut state, ReviewCommand::NudgeBox { by: [-1.0, 0.0], edges: RIGHT_AND_BOTTOM });
    assert_eq!(shown(&state)[0].1, [13.0, 9.0, 28.0, 29.0]);
    command(&mut state, ReviewCommand::ChooseClass("dog".to_owned()));
    let moved = Verdict::Moved(drawn("dog", [13.0, 9.0, 28.0, 29.0]));
    assert_eq!(state.judgments.box_verdict(SampleId(0), 0), Some(&moved));
    // It is corrected already.
    command(&mut state, Action::Accept);
    assert_eq!(state.judgments.box_verdict(SampleId(0), 0), Some(&moved));
    command(&mut state, Action::ClearVerdict);
    assert_eq!(shown(&state)[0], ("cat".to_owned(), [10.0, 10.0, 30.0, 30.0]));
}

#[test]
fn nudged_box_keeps_its_size_at_the_edge() {
    let (mut state, _) = with_boxes();
    command(&mut state, ReviewCommand::SelectBox(Some(0)));
    command(&mut state, ReviewCommand::NudgeBox { by: [-40.0, 500.0], edges: WHOLE_BOX });
    assert_eq!(shown(&state)[0].1, [0.0, 60.0, 20.0, 80.0]);
}

#[test]
fn removed_box_leaves_no_gap() {
    let (mut state, _) = with_boxes();
    for x in [1.0, 2.0, 3.0] {
        add(&mut state, "dog", [x, 5.0, x + 9.0, 20.0]);
    }
    command(&mut state, ReviewCommand::SelectBox(Some(3)));
    command(&mut state, Action::Reject);
    let lefts: Vec<f32> = shown(&state).iter().map(|(_, bounds)| bounds[0]).collect();
    assert_eq!(lefts, [10.0, 50.0, 1.0, 3.0]);
    assert!(state.shown.prediction.as_ref().unwrap().warnings.is_empty());
    command(&mut state, Action::Undo);
    let lefts: Vec<f32> = shown(&state).iter().map(|(_, bounds)| bounds[0]).collect();
    assert_eq!(lefts, [10.0, 50.0, 1.0, 2.0, 3.0]);
}

#[test]
fn explanation_is_about_a_box_of_the_model() {
    let (mut state, _) = with_boxes();
    add(&mut state, "dog", [1.0, 5.0, 9.0, 20.0]);
    command(&mut state, ReviewCommand::SelectBox(None));
    assert_eq!(state.question().unwrap().score, 0.9);
    command(&mut state, ReviewCommand::SelectBox(Some(2)));
    assert_eq!(state.question(), None);
}

#[test]
fn copy_of_a_box_lies_next_to_it_inside_the_image() {
    let (mut state, _) = with_boxes();
    command(&mut state, ReviewCommand::SelectBox(Some(1)));
    command(&mut state, Action::DuplicateBox);
    assert_eq!(shown(&state)[2], ("cat".to_owned(), [58.0, 58.0, 78.0, 78.0]));
    assert_eq!(state.shown.selected_box, Some(2));
    command(&mut state, Action::DuplicateBox);
    assert_eq!(shown(&state)[3].1, [66.0, 50.0, 86.0, 70.0]);
}

#[test]
fn corrected_image_is_judged_once_every_box_is() {
    let (mut state, _) = with_boxes();
    add(&mut state, "dog", [1.0, 5.0, 9.0, 20.0]);
    assert_eq!(state.verdict_of(SampleId(0)), None);
    for index in [0, 1] {
        command(&mut state, ReviewCommand::SelectBox(Some(index)));
        command(&mut state, Action::Accept);
    }
    assert_eq!(state.verdict_of(SampleId(0)), Some(VerdictKind::Added));
    // Another image has no drawn boxes.
    command(&mut state, Action::NextImage);
    command(&mut state, Action::DrawBox);
    assert_eq!(state.shown.drawing, None, "it is not predicted");
}
