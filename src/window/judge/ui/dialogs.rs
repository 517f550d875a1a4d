//! The correct class of a wrong box, and the question before judging many images.

use eframe::egui::{Atom, Event, Modifiers};

use crate::domain::{Detection, ModelTask, NEW_CLASS, OutputConvention, RunnerUp, Verdict};
use crate::evaluation::MATCHING_IOU;
use crate::window::state::{Drawing, ShownObject};
use crate::window::ui::palette::{TypedKeys, Typing, stepped_line};
use crate::window::ui::prelude::*;

const MAX_LINES: usize = 50;
const LIST_HEIGHT: f32 = 240.0;
const DIGITS: [Key; 9] =
    [Key::Num1, Key::Num2, Key::Num3, Key::Num4, Key::Num5, Key::Num6, Key::Num7, Key::Num8, Key::Num9];

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
        let begins = |choice: &Choice<'_>| choice.class.to_lowercase().starts_with(&typed);
        memory.line = (!typed.is_empty() && classes.first().is_some_and(begins)).then_some(0);
    }
    memory.line = stepped_line(memory.line, steps, classes.len());
    let mut chosen = classes_ui(ui, state, &classes, (memory.line, steps != 0), typed.is_empty());
    let taken = match memory.line {
        Some(line) => classes[line].class,
        None => state.known_class(typed),
    };
    ui.add_space(4.0);
    hint_ui(ui, state, taken);
    if let Some(reason) = no_runners_up(state) {
        note_ui(ui, reason);
    }
    digits_ui(ui, state, taken, commands);
    if is_new {
        ui.add_space(4.0);
        action_button_ui(ui, state, Action::FindAlikeBoxes, commands);
    }
    if enter && !taken.is_empty() {
        chosen = Some(taken.to_owned());
    }
    let has_digit =
        |(line, choice): &(usize, &Choice<'_>)| digit.is_some() && digit_of(state, *line, choice.class) == digit;
    chosen = classes.iter().enumerate().find(has_digit).map(|(_, choice)| choice.class.to_owned()).or(chosen);
    if let Some(class) = chosen {
        commands.push(ReviewCommand::ChooseClass(class));
    }
}

/// The list of classes, with notes and digits. Returns the clicked one.
fn classes_ui(
    ui: &mut Ui,
    state: &State,
    choices: &[Choice<'_>],
    (current, has_moved): (Option<usize>, bool),
    has_digits: bool,
) -> Option<String> {
    let mut chosen = None;
    // Not lower if there is room: it would stay as low as the last short list.
    let list = ScrollArea::vertical().max_height(LIST_HEIGHT).min_scrolled_height(LIST_HEIGHT);
    list.show(ui, |ui| {
        ui.spacing_mut().item_spacing.y = 2.0;
        for (line, choice) in choices.iter().enumerate() {
            let digit = digit_of(state, line, choice.class).filter(|_| has_digits);
            let is_current = current == Some(line);
            let response = choice_ui(ui, choice, digit, is_current);
            if is_current && has_moved {
                response.scroll_to_me(None);
            }
            if response.clicked() {
                chosen = Some(choice.class.to_owned());
            }
        }
    });
    chosen
}

/// The class on the left, its note and digit on the right.
fn choice_ui(ui: &mut Ui, choice: &Choice<'_>, digit: Option<u8>, is_current: bool) -> Response {
    let size = vec2(ui.available_width(), 0.0);
    let (note, digit) = (choice.note(), digit.map(|digit| digit.to_string()).unwrap_or_default());
    let parts = (choice.class, Atom::grow(), RichText::new(&note).small().weak());
    // As wide as a digit, so that the notes are aligned.
    let key = RichText::new(format!("{digit:>2}")).monospace();
    let button = Button::selectable(is_current, (parts, key)).min_size(size).sense(Sense::CLICK);
    let response = ui.add(button).accessible_name(choice.class);
    response.ctx.accesskit_node_builder(response.id, |node| {
        if !digit.is_empty() {
            node.set_keyboard_shortcut(digit);
        }
        if !note.is_empty() {
            node.set_description(note);
        }
    });
    response
}

/// The digit that chooses a class: the one that the user assigned to it, otherwise that of its line.
fn digit_of(state: &State, line: usize, class: &str) -> Option<u8> {
    let assigned = state.class_digits().find(|(_, other)| *other == class).map(|(digit, _)| digit);
    let of_line = u8::try_from(line + 1).ok().filter(|digit| *digit <= 9);
    let is_free = |digit: &u8| state.class_digits().all(|(other, _)| other != *digit) && !begins_with_digit(state);
    assigned.or(of_line.filter(is_free))
}

/// Whether a class begins with a digit, which is then typed.
fn begins_with_digit(state: &State) -> bool {
    let mut names = state.run().into_iter().flat_map(|run| run.labels().iter());
    names.any(|(_, name)| name.starts_with(|letter: char| letter.is_ascii_digit()))
}

/// The digit that was pressed before anything was typed, if it chooses a class.
fn taken_digit(ui: &Ui, state: &State, typed: &str) -> Option<u8> {
    let is_taken = |digit: &u8| {
        let is_assigned = state.class_digits().any(|(other, _)| other == *digit);
        is_assigned || (!begins_with_digit(state) && (1..=9).contains(digit))
    };
    let digit = |event: &Event| match event {
        Event::Text(text) if typed.is_empty() => text.parse().ok().filter(is_taken),
        _ => None,
    };
    ui.input_mut(|input| {
        let position = input.events.iter().position(|event| digit(event).is_some())?;
        digit(&input.events.remove(position))
    })
}

/// Ctrl and a digit assign the digit to the class that Enter uses.
fn digits_ui(ui: &mut Ui, state: &State, taken: &str, commands: &mut Commands) {
    let is_pressed = |key: Key| ui.input_mut(|input| input.consume_key(Modifiers::COMMAND, key));
    if let Some((digit, _)) = (1..).zip(DIGITS).find(|(_, key)| is_pressed(*key)) {
        commands.push(ReviewCommand::ToggleClassDigit { digit, class: taken.to_owned() });
    }
    let modifier = ui.ctx().format_modifiers(Modifiers::COMMAND);
    note_ui(ui, format!("{modifier} and 1 to 9 assign a digit to a class, for this model"));
    if state.class_digits().next().is_some() {
        command_button_ui(ui, "Reset digits", commands, || ReviewCommand::ResetClassDigits);
    }
}

/// A hint at what Enter does.
fn hint_ui(ui: &mut Ui, state: &State, taken: &str) {
    let text = if taken.is_empty() {
        "Type a name or choose one with the arrow keys".to_owned()
    } else if state.is_new_class(taken) {
        format!("Enter uses “{taken}”, a new class")
    } else {
        format!("Enter uses “{taken}”")
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
    let of_image = (state.run()?.task() == Some(ModelTask::Classification)).then_some(0);
    let outcome = state.outcome_of_box(state.shown_sample()?, state.shown.selected_box.or(of_image)?)?;
    outcome.right_class.map(str::to_owned)
}

/// A class of the list, and why it is likely.
struct Choice<'s> {
    class: &'s str,
    is_right: bool,
    /// The model's score, for one of its next best classes.
    score: Option<f32>,
    is_new: bool,
}

impl Choice<'_> {
    fn note(&self) -> String {
        let right = self.is_right.then(|| "ground truth".to_owned());
        let score = self.score.map(|score| format!("score {score:.2}"));
        let new = self.is_new.then(|| "new".to_owned());
        [right, score, new].into_iter().flatten().collect::<Vec<_>>().join(" · ")
    }
}

/// The model's next best classes with their scores, best first: of the image, of the selected box, or of the boxes
/// under a new one, which the filters may hide.
fn scored_classes(state: &State) -> Vec<(&str, f32)> {
    let (Some(run), Some(prediction)) = (state.run(), state.shown.prediction.as_deref()) else {
        return Vec::new();
    };
    if let Some(Drawing::Drawn(bounds)) = &state.shown.drawing {
        let under = |found: &&Detection| found.class_id != NEW_CLASS && found.bounds.iou(bounds) >= MATCHING_IOU;
        let found = prediction.detections().iter().filter(under);
        let mut classes: Vec<(&str, f32)> = found.map(|found| (found.label.as_str(), found.score)).collect();
        classes.truncate(RunnerUp::MAX);
        return classes;
    }
    let classes = prediction.classes().iter().skip(1).map(|class| (class.label.as_str(), class.score));
    let detection = state.shown.selected_box.and_then(|index| prediction.detections().get(index));
    let detection = detection.filter(|_| state.judged_boxes().len() == 1);
    let runners_up = detection.into_iter().flat_map(|found| &found.runners_up);
    let runners_up = runners_up.filter_map(|other| Some((run.labels().get(other.class_id)?, other.score)));
    classes.chain(runners_up).collect()
}

/// The classes that contain every typed word: the ground-truth class, the model's next best classes, those used last
/// and those with a digit (even if the model does not have them), then those that begin with the typed text. Also lists
/// the classes that the project's verdicts name.
fn classes_like<'s>(state: &'s State, typed: &str) -> Vec<Choice<'s>> {
    let Some(run) = state.run() else {
        return Vec::new();
    };
    let scored = scored_classes(state);
    let recent = state.recent_classes.iter().map(String::as_str);
    let digits = state.class_digits().map(|(_, class)| class);
    let likely: Vec<&str> = scored.iter().map(|(class, _)| *class).chain(recent).chain(digits).collect();
    let (spelling, typed) = (typed, typed.trim().to_lowercase());
    let words: Vec<&str> = typed.split_whitespace().collect();
    let is_like = |class: &&str| {
        let class = class.to_lowercase();
        words.iter().all(|word| class.contains(word))
    };
    let own = state
        .own_classes
        .iter()
        .map(String::as_str)
        .filter(|name| run.labels().iter().all(|(_, label)| label != *name));
    let labels = own.chain(run.labels().iter().map(|(_, name)| name)).filter(|name| !likely.contains(name));
    let mut classes: Vec<&str> = likely.iter().copied().chain(labels).filter(is_like).collect();
    let right = right_class(state).map(|class| class.to_lowercase());
    let is_right = |class: &str| right.as_ref() == Some(&class.to_lowercase());
    let rank = |class: &str| likely.iter().position(|other| *other == class).unwrap_or(likely.len());
    classes.sort_by_key(|class| {
        let lower = class.to_lowercase();
        (!is_right(class), lower != typed, !lower.starts_with(&typed), *class != spelling, rank(class))
    });
    classes.dedup();
    classes.truncate(MAX_LINES);
    let choice = |class| Choice {
        class,
        is_right: is_right(class),
        score: scored.iter().find(|(other, _)| *other == class).map(|(_, score)| *score),
        is_new: state.is_new_class(class),
    };
    classes.into_iter().map(choice).collect()
}

/// Why the list has none of the model's next best classes for the selected box, if that needs a reason.
fn no_runners_up(state: &State) -> Option<&'static str> {
    let OutputConvention::Detection(output) = &state.run()?.info.card.output else {
        return None;
    };
    let is_asked = state.shown.drawing.is_none() && state.judged_boxes().len() == 1;
    (is_asked && output.labels.is_some()).then_some("No runners-up: the model reports one class per box")
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
        Some(Verdict::Returned) => format!("Mark {images} as back to labeler"),
        None => format!("Clear the verdicts of {images}"),
    };
    dialog_ui(ctx, "mass verdict", 360.0, Command::CLOSE_OVERLAY, commands, |ui, commands| {
        wrapped_ui(ui, strong(format!("{deed}?")).size(15.0));
        let judged = match boxes.as_slice() {
            [] => state.selection.selected().iter().filter(|&sample| state.verdict_of(sample).is_some()).count(),
            boxes => boxes.iter().filter(|(sample, shows)| state.verdict_on(*sample, *shows).is_some()).count(),
        };
        let replaced = match judged {
            0 => String::new(),
            judged => format!("Already judged: {judged}; this replaces their verdicts. "),
        };
        wrapped_ui(ui, format!("{replaced}Undo reverts all of them in one step"));
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
