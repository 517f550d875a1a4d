//! Drawing, moving, copying and removing boxes. Each is a verdict on the box: the model's own box never changes.

use crate::domain::{BoundingBox, DrawnBox, RunId, SampleId, Verdict, VerdictTarget};
use crate::window::judge::state::judgments::Mark;
use crate::window::judge::update::verdicts;
use crate::window::state::{Action, Drawing, Edges, Overlay, State, with_moved_edges};

/// The offset of a copied box, in image pixels.
const COPY_OFFSET: f32 = 8.0;

/// Starts drawing a box, or stops it.
pub(crate) fn toggle(state: &mut State) {
    state.shown.drawing = match state.shown.drawing {
        None => Some(Drawing::Armed),
        Some(_) => None,
    };
}

/// Asks for the class of a box that was just drawn, in pixels of the upright image.
pub(crate) fn drawn(state: &mut State, bounds: BoundingBox) {
    let Err(reason) = Action::DrawBox.check(state) else {
        state.shown.drawing = Some(Drawing::Drawn(bounds));
        state.overlay = Overlay::WrongClass;
        return;
    };
    state.show_notice(reason);
}

/// Adds the box that was drawn, or gives the selected box another class.
pub(crate) fn choose_class(state: &mut State, class: &str) {
    state.overlay = Overlay::None;
    let class = &*state.known_class(class).to_owned();
    state.remember_class(class);
    match state.shown.drawing.take() {
        Some(Drawing::Drawn(bounds)) => add(state, class, bounds),
        _ => verdicts::set_verdict(state, Some(&Verdict::WrongClass(class.to_owned()))),
    }
}

/// Lets a digit choose a class of the run's model, or frees it if it does already.
pub(crate) fn toggle_class_digit(state: &mut State, digit: u8, class: &str) {
    let Some(run) = state.runs.current().filter(|_| !class.is_empty()) else {
        state.show_notice("Choose a class with the arrow keys first");
        return;
    };
    let is_assigned = state.settings.toggle_class_digit(&run.info.key.model_id, digit, class);
    state.show_notice(if is_assigned {
        format!("{digit} chooses “{class}”")
    } else {
        format!("{digit} no longer chooses “{class}”")
    });
}

/// Moves the edges of the selected box to these pixels of the upright image.
pub(crate) fn move_box(state: &mut State, bounds: BoundingBox) {
    let Some(edited) = Edited::new(state) else {
        return;
    };
    let Some(drawn) = DrawnBox::new(&edited.class, bounds, edited.size) else {
        state.show_notice("The box is too small");
        return;
    };
    let what = verdicts::box_name(state, edited.sample, edited.index as usize);
    let verdict = if edited.is_added { Verdict::Added(drawn) } else { Verdict::Moved(drawn) };
    let mark = Mark::Verdict(edited.target(edited.index), Some(verdict));
    verdicts::edit(state, format!("move {what}"), vec![(edited.sample, mark)]);
}

/// Moves edges of the selected box by this many pixels to the right and down.
pub(crate) fn nudge(state: &mut State, by: [f32; 2], edges: Edges) {
    if let Some(edited) = Edited::new(state) {
        move_box(state, with_moved_edges(edited.bounds, edges, by, edited.size));
    }
}

/// Adds a copy of the selected box next to it.
pub(crate) fn duplicate(state: &mut State) {
    let Some(edited) = Edited::new(state) else {
        return;
    };
    let [right, bottom] = edited.size.map(|side| side as f32);
    // To the other side at the edge of the image.
    let x = if edited.bounds.x2 + COPY_OFFSET > right { -COPY_OFFSET } else { COPY_OFFSET };
    let y = if edited.bounds.y2 + COPY_OFFSET > bottom { -COPY_OFFSET } else { COPY_OFFSET };
    let BoundingBox { x1, y1, x2, y2 } = edited.bounds;
    add(state, &edited.class, BoundingBox::new(x1 + x, y1 + y, x2 + x, y2 + y));
}

fn add(state: &mut State, class: &str, bounds: BoundingBox) {
    let (Some(sample), Some(run), Some(prediction)) =
        (state.shown_sample(), state.run_id(), state.shown.prediction.as_ref())
    else {
        return;
    };
    let Some(drawn) = DrawnBox::new(class, bounds, [prediction.width, prediction.height]) else {
        state.show_notice("The box is too small");
        return;
    };
    let Ok(index) = u32::try_from(prediction.detections().len()) else {
        return;
    };
    let image = state.samples.file_name(sample);
    let label = format!("add a {} in {image}", drawn.class());
    let target = VerdictTarget { run: Some(run), box_index: Some(index) };
    verdicts::edit(state, label, vec![(sample, Mark::Verdict(target, Some(Verdict::Added(drawn))))]);
    verdicts::select_box(state, Some(index as usize));
}

/// The selected box, as a person may have corrected it.
struct Edited {
    sample: SampleId,
    run: RunId,
    index: u32,
    bounds: BoundingBox,
    class: String,
    is_added: bool,
    /// Width and height of the image in pixels.
    size: [u32; 2],
}

impl Edited {
    fn new(state: &State) -> Option<Self> {
        let (sample, run, index) = verdicts::judged_box(state)?;
        let prediction = state.shown.prediction.as_ref()?;
        let detection = prediction.detections().get(index as usize)?;
        let verdict = state.judgments.box_verdict(sample, index as usize);
        let class = verdict.and_then(Verdict::right_class).unwrap_or(&detection.label);
        Some(Self {
            sample,
            run,
            index,
            bounds: detection.bounds,
            class: class.to_owned(),
            is_added: matches!(verdict, Some(Verdict::Added(_))),
            size: [prediction.width, prediction.height],
        })
    }

    fn target(&self, index: u32) -> VerdictTarget {
        VerdictTarget { run: Some(self.run), box_index: Some(index) }
    }
}
