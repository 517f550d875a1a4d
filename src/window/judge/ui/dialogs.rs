//! The correct class of a wrong box, and the question before judging many images.

use eframe::egui::{Button, Context, Event, Label, ScrollArea, Sense, Ui, vec2};

use crate::domain::{ModelTask, Prediction, Verdict};
use crate::evaluation::MATCHING_IOU;
use crate::window::state::{Command, Commands, Drawing, Overlay, ReviewCommand, ShownObject, State};
use crate::window::ui::dialog::dialog_ui;
use crate::window::ui::palette::{TypedKeys, Typing, stepped_line};
use crate::window::ui::widgets::{box_count, command_button_ui, image_count, note_ui, primary_button, strong};

const MAX_LINES: usize = 50;
const LIST_HEIGHT: f32 = 240.0;

#[derive(Default)]
pub(crate) struct WrongClassMemory {
    typing: Typing,
    /// The line that Enter selects; `None` for the typed text.
    line: Option<usize>,
}

pub(crate) fn wrong_class_ui(ctx: &Context, state: &State, memory: &mut WrongClassMemory, commands: &mut Commands) {
    if !memory.typing.follow(state.overlay == Overlay::WrongClass) {
        return;
    }
    dialog_ui(ctx, "wrong class", 360.0, Command::CLOSE_OVERLAY, commands, |ui, commands| {
        contents_ui(ui, state, memory, commands);
    });
}

fn contents_ui(ui: &mut Ui, state: &State, memory: &mut WrongClassMemory, commands: &mut Commands) {
    let is_new = matches!(state.shown.drawing, Some(Drawing::Drawn(_)));
    let question = match state.judged_boxes().len() {
        _ if is_new => "What is the class of the new box?".to_owned(),
        0 | 1 => "What is the correct class?".to_owned(),
        boxes => format!("What is the correct class of {}?", box_count(boxes)),
    };
    ui.label(strong(question).size(15.0));
    let digit = taken_digit(ui, state, memory.typing.text());
    let TypedKeys { is_changed, steps, enter } = memory.typing.field_ui(ui, "Type a class", "Correct class");
    let typed = memory.typing.text().trim();
    let classes = classes_like(state, typed);
    if memory.typing.is_new() {
        // The class that was given last is most likely that of the next new box.
        memory.line = (is_new && !classes.is_empty()).then_some(0);
    } else if is_changed {
        // A class that begins like this is most likely meant; anything else is used as typed.
        let typed = typed.to_lowercase();
        let begins = |class: &&str| class.to_lowercase().starts_with(&typed);
        memory.line = (!typed.is_empty() && classes.first().is_some_and(begins)).then_some(0);
    }
    memory.line = stepped_line(memory.line, steps, classes.len());
    let mut chosen = None;
    // Not lower if there is room: it would stay as low as the last short list.
    let list = ScrollArea::vertical().max_height(LIST_HEIGHT).min_scrolled_height(LIST_HEIGHT);
    list.show(ui, |ui| {
        ui.spacing_mut().item_spacing.y = 2.0;
        for (line, class) in classes.iter().enumerate() {
            let is_current = memory.line == Some(line);
            let size = vec2(ui.available_width(), 0.0);
            // Even an empty right side keeps the name on the left.
            let digit = if typed.is_empty() && line < 9 { (line + 1).to_string() } else { String::new() };
            let button = Button::selectable(is_current, *class).right_text(digit).min_size(size).sense(Sense::CLICK);
            let response = ui.add(button).accessible_name(*class);
            if is_current && steps != 0 {
                response.scroll_to_me(None);
            }
            if response.clicked() {
                chosen = Some((*class).to_owned());
            }
        }
    });
    let taken = match memory.line {
        Some(line) => classes[line],
        None => typed,
    };
    hint_ui(ui, taken, typed, &classes, memory.line.is_some());
    if enter && !taken.is_empty() {
        chosen = Some(taken.to_owned());
    }
    chosen = digit.and_then(|digit| classes.get(digit)).map(|class| (*class).to_owned()).or(chosen);
    if let Some(class) = chosen {
        commands.push(ReviewCommand::ChooseClass(class));
    }
}

/// The line of a digit that was pressed before anything was typed, unless a class begins with a digit.
fn taken_digit(ui: &Ui, state: &State, typed: &str) -> Option<usize> {
    let run = state.run()?;
    if !typed.is_empty()
        || run.labels().iter().any(|(_, name)| name.starts_with(|letter: char| letter.is_ascii_digit()))
    {
        return None;
    }
    let digit = |event: &Event| match event {
        Event::Text(text) => text.parse().ok().filter(|digit| (1..=9).contains(digit)),
        _ => None,
    };
    ui.input_mut(|input| {
        let position = input.events.iter().position(|event| digit(event).is_some())?;
        digit(&input.events.remove(position)).map(|digit: usize| digit - 1)
    })
}

/// A hint at what Enter does.
fn hint_ui(ui: &mut Ui, taken: &str, typed: &str, classes: &[&str], is_line: bool) {
    let text = if taken.is_empty() {
        "Type a name or choose one with the arrow keys".to_owned()
    } else if is_line || classes.contains(&typed) {
        format!("Enter uses “{taken}”")
    } else {
        format!("“{taken}” is not a class of this model; Enter uses it anyway")
    };
    note_ui(ui, text);
}

/// The ground-truth class of the selected box, of the object under a new box, or of the image.
fn right_class(state: &State) -> Option<String> {
    if let Some(Drawing::Drawn(bounds)) = state.shown.drawing {
        let mut objects = state.shown_objects();
        objects.retain(|object| object.bounds.iou(&bounds) >= MATCHING_IOU);
        let best = objects.into_iter().max_by(|left, right| {
            let overlap = |object: &ShownObject| object.bounds.iou(&bounds);
            overlap(left).total_cmp(&overlap(right))
        });
        return best.map(|object| object.label);
    }
    let of_image = (state.run()?.task() == ModelTask::Classification).then_some(0);
    let outcome = state.outcome_of_box(state.shown_sample()?, state.shown.selected_box.or(of_image)?)?;
    outcome.right_class.map(str::to_owned)
}

/// The classes that contain every typed word: the ground-truth class, the model's next best classes of a classifier,
/// those used last (even if the model does not have them), then those that begin with the typed text.
fn classes_like<'s>(state: &'s State, typed: &str) -> Vec<&'s str> {
    let Some(run) = state.run() else {
        return Vec::new();
    };
    let shown = state.shown.prediction.as_deref();
    let runners_up = shown.into_iter().flat_map(Prediction::classes).skip(1).map(|class| class.label.as_str());
    let likely: Vec<&str> = runners_up.chain(state.recent_classes.iter().map(String::as_str)).collect();
    let typed = typed.trim().to_lowercase();
    let words: Vec<&str> = typed.split_whitespace().collect();
    let is_like = |class: &&str| {
        let class = class.to_lowercase();
        words.iter().all(|word| class.contains(word))
    };
    let labels = run.labels().iter().map(|(_, name)| name).filter(|name| !likely.contains(name));
    let mut classes: Vec<&str> = likely.iter().copied().chain(labels).filter(is_like).collect();
    let right = right_class(state).map(|class| class.to_lowercase());
    let rank = |class: &str| likely.iter().position(|other| *other == class).unwrap_or(likely.len());
    classes.sort_by_key(|class| {
        let lower = class.to_lowercase();
        (right.as_ref() != Some(&lower), lower != typed, !lower.starts_with(&typed), rank(class))
    });
    classes.dedup();
    classes.truncate(MAX_LINES);
    classes
}

#[derive(Default)]
pub(crate) struct MassVerdictMemory {
    is_open: bool,
}

pub(crate) fn mass_verdict_ui(ctx: &Context, state: &State, memory: &mut MassVerdictMemory, commands: &mut Commands) {
    let is_open = state.overlay == Overlay::MassVerdict;
    let is_new = !std::mem::replace(&mut memory.is_open, is_open);
    if !is_open {
        return;
    }
    let boxes = state.judged_boxes();
    let images = match boxes.len() {
        0 => image_count(state.selection.selected().len()),
        boxes => box_count(boxes),
    };
    let deed = match &state.mass_verdict {
        Some(Verdict::Accept) => format!("Accept {images}"),
        Some(Verdict::Reject) => format!("Reject {images}"),
        Some(Verdict::Unsure) => format!("Mark {images} as unsure"),
        Some(Verdict::WrongClass(class)) => format!("Mark {images} as “{class}”"),
        // Boxes are drawn one at a time.
        Some(Verdict::Moved(_) | Verdict::Added(_) | Verdict::Spurious(_)) => images,
        Some(Verdict::Complete) => format!("Mark {images} as complete"),
        None => format!("Clear the verdicts of {images}"),
    };
    dialog_ui(ctx, "mass verdict", 360.0, Command::CLOSE_OVERLAY, commands, |ui, commands| {
        ui.add(Label::new(strong(format!("{deed}?")).size(15.0)).wrap());
        let judged = match boxes.as_slice() {
            [] => state.selection.selected().iter().filter(|&sample| state.verdict_of(sample).is_some()).count(),
            boxes => boxes.iter().filter(|(sample, shows)| state.verdict_on(*sample, *shows).is_some()).count(),
        };
        let replaced = match judged {
            0 => String::new(),
            judged => format!("Already judged: {judged}; this replaces their verdicts. "),
        };
        ui.add(Label::new(format!("{replaced}Undo reverts all of them in one step")).wrap());
        ui.add_space(6.0);
        ui.horizontal_wrapped(|ui| {
            let confirm = ui.add(primary_button(ui, &deed));
            if is_new {
                confirm.request_focus();
            }
            if confirm.clicked() {
                commands.push(ReviewCommand::ConfirmMassVerdict);
            }
            command_button_ui(ui, "Cancel", commands, || Command::CLOSE_OVERLAY);
        });
    });
}
