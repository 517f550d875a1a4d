//! Above the thumbnails: the search field with its help, the quick filters, and the sort order.

pub(crate) mod filters;

use eframe::egui::text::CCursor;
use eframe::egui::text_edit::TextEditState;
use eframe::egui::text_selection::CCursorRange;
use eframe::egui::{Modifiers, Popup, PopupCloseBehavior};
use strum::VariantArray;

use crate::domain::{ModelTask, capitalized};
use crate::review::{
    Completion, Direction, FilterCounts, Query, Sort, SortBy, VerdictKind, has_term, with_term, without_term,
};
use crate::window::ui::palette::{stepped_line, taken_line_steps};
use crate::window::ui::prelude::*;

/// The search field's state between frames.
#[derive(Default)]
pub(crate) struct SearchMemory {
    draft: String,
    /// The text in the state that the draft follows, to notice changes made outside the field.
    seen: String,
    /// The last fulfilled request for focus.
    focused: u64,
    /// The completion that the arrow keys have reached.
    line: Option<usize>,
    /// Whether Escape has closed the completions of this draft.
    is_closed: bool,
    /// A click on the completions removes the focus from the field before it arrives.
    is_pointer_on_completions: bool,
    is_completing: bool,
}

pub(crate) fn search_ui(ui: &mut Ui, state: &State, memory: &mut SearchMemory, commands: &mut Commands) {
    if memory.seen != state.arranging.text() {
        state.arranging.text().clone_into(&mut memory.seen);
        memory.draft.clone_from(&memory.seen);
    }
    ui.scope(|ui| {
        ui.spacing_mut().item_spacing.x = 4.0;
        let field_ui = |ui: &mut Ui, commands: &mut Commands| field_ui(ui, state, memory, commands);
        ends_ui(ui, "search and its buttons", commands, field_ui, |ui, commands| {
            action_icon_ui(ui, state, Action::ClearSearch, "×", commands);
            help_button_ui(ui);
        });
    });
    trouble_ui(ui, state, memory);
    chips_ui(ui, state, commands);
}

fn help_button_ui(ui: &mut Ui) {
    let help = ui.add(Button::new("?").min_size(vec2(28.0, 0.0)));
    help.widget_info(|| WidgetInfo::labeled(Role::Button, true, "Search syntax"));
    let help = help.on_hover_text("Search syntax");
    Popup::menu(&help).close_behavior(PopupCloseBehavior::CloseOnClickOutside).show(help_ui);
}

fn field_ui(ui: &mut Ui, state: &State, memory: &mut SearchMemory, commands: &mut Commands) {
    let id = ui.make_persistent_id("search field");
    let has_focus = ui.memory(|held| held.has_focus(id));
    let cursor = TextEditState::load(ui.ctx(), id)
        .and_then(|edit| edit.cursor.char_range())
        .map_or(memory.draft.len(), |range| byte_of_char(&memory.draft, range.primary.index.0));
    let is_wanted = (has_focus || memory.is_pointer_on_completions) && !memory.is_closed;
    let completions = if is_wanted { state.completions(&memory.draft, cursor) } else { Vec::new() };
    memory.is_completing = !completions.is_empty();
    let mut chosen = take_keys(ui, memory, &completions, has_focus);
    let hints = ["Search: name, class:cat, score>0.8", "Search: name, class:cat", "Search"];
    let hint = fitting(ui, hints, ui.available_width() - FIELD_PADDING).unwrap_or_default();
    let field = ui.add(
        TextEdit::singleline(&mut memory.draft)
            .id(id)
            .hint_text(hint)
            .desired_width(f32::INFINITY)
            .char_limit(Query::MAX_FIELD_LETTERS)
            .lock_focus(!completions.is_empty()),
    );
    if field.changed() {
        memory.line = None;
        memory.is_closed = false;
    }
    if memory.focused != state.search_focus {
        memory.focused = state.search_focus;
        field.request_focus();
    }
    let below = completions_ui(&field, memory, &completions);
    memory.is_pointer_on_completions = below.is_pointer_on_it;
    if let Some(completion) = chosen.take().or(below.clicked).and_then(|at| completions.get(at)) {
        accept(ui, memory, completion, id);
    }
    let is_entered = enter_pressed(&field);
    field.accessible_name("Search");
    if memory.draft != memory.seen {
        memory.seen.clone_from(&memory.draft);
        commands.push(SearchCommand::SetQuery(memory.draft.clone()));
    }
    if is_entered {
        commands.push(SearchCommand::ShowFirstFound);
    }
}

/// Handles the keys of open completions. Returns the accepted one.
fn take_keys(ui: &Ui, memory: &mut SearchMemory, completions: &[Completion], has_focus: bool) -> Option<usize> {
    if completions.is_empty() || !has_focus {
        memory.line = None;
        return None;
    }
    let take = |key| ui.input_mut(|input| input.consume_key(Modifiers::NONE, key));
    let line = stepped_line(memory.line, taken_line_steps(ui), completions.len());
    memory.line = line;
    if take(Key::Escape) {
        memory.is_closed = true;
    }
    if take(Key::Tab) {
        return Some(line.unwrap_or(0));
    }
    // Without a choice, Enter leaves the field.
    line.filter(|_| take(Key::Enter))
}

/// The result of the list below the field.
#[derive(Default)]
struct CompletionClick {
    clicked: Option<usize>,
    is_pointer_on_it: bool,
}

fn completions_ui(field: &Response, memory: &SearchMemory, completions: &[Completion]) -> CompletionClick {
    if completions.is_empty() {
        return CompletionClick::default();
    }
    let shown = Popup::from_response(field)
        .open(true)
        .close_behavior(PopupCloseBehavior::IgnoreClicks)
        .gap(3.0)
        .width(field.rect.width().max(200.0))
        .show(|ui| {
            ui.spacing_mut().item_spacing.y = 1.0;
            let mut clicked = None;
            for (line, completion) in completions.iter().enumerate() {
                let is_current = memory.line == Some(line);
                let width = ui.available_width();
                let button = Button::selectable(is_current, completion.text.trim_end())
                    .min_size(vec2(width, 0.0))
                    .right_text(RichText::new(completion.meaning).weak());
                if ui.add(button).clicked() {
                    clicked = Some(line);
                }
            }
            clicked
        });
    shown.map_or_else(CompletionClick::default, |shown| CompletionClick {
        clicked: shown.inner,
        is_pointer_on_it: shown.response.contains_pointer(),
    })
}

fn accept(ui: &Ui, memory: &mut SearchMemory, completion: &Completion, id: Id) {
    let range = completion.replaces.clone();
    if memory.draft.get(range.clone()).is_none() {
        return;
    }
    memory.draft.replace_range(range.clone(), &completion.text);
    memory.line = None;
    let cursor = memory.draft[..range.start + completion.text.len()].chars().count();
    let mut edit = TextEditState::load(ui.ctx(), id).unwrap_or_default();
    let cursor = CCursorRange::one(CCursor::new(cursor));
    edit.cursor.set_char_range(Some(cursor));
    edit.store(ui.ctx(), id);
    ui.memory_mut(|held| held.request_focus(id));
}

fn byte_of_char(text: &str, index: usize) -> usize {
    let mut starts = text.char_indices().map(|(start, _)| start);
    starts.nth(index).unwrap_or(text.len())
}

/// What is wrong with the text, or which parts find nothing with this model.
fn trouble_ui(ui: &mut Ui, state: &State, memory: &SearchMemory) {
    let visuals = ui.visuals();
    let (error, warning) = (visuals.error_fg_color, visuals.warn_fg_color);
    let line = |ui: &mut Ui, text: &str, color| {
        let text = RichText::new(format!("⚠ {text}")).small().color(color);
        wrapped_ui(ui, text);
    };
    if let Some(trouble) = state.arranging.error() {
        line(ui, &trouble.message, error);
        return;
    }
    // While a name is being completed, it is not wrong yet.
    let warnings = state.query_warnings().into_iter();
    for text in warnings.filter(|_| !memory.is_completing) {
        line(ui, &text, warning);
    }
}

fn help_ui(ui: &mut Ui) {
    ui.set_max_width(520.0);
    ui.label(strong("Search syntax"));
    ui.weak("A space means “and”. Case is ignored");
    ui.add_space(4.0);
    Grid::new("search help").num_columns(2).spacing(vec2(18.0, 4.0)).show(ui, |ui| {
        for (example, meaning) in Query::help() {
            ui.label(RichText::new(*example).monospace());
            ui.weak(*meaning);
            ui.end_row();
        }
    });
}

/// A filter that is one click away.
struct Chip {
    label: &'static str,
    count: usize,
    /// The term that it adds to the search field.
    term: &'static str,
}

impl Chip {
    fn text(&self) -> String {
        format!("{} {}", self.label, grouped(self.count))
    }
}

/// The filters that would show some of the images, but not all of them.
fn chips(counts: &FilterCounts, task: Option<ModelTask>) -> Vec<Chip> {
    let chip = |label, count, term| Chip { label, count, term };
    let verdict = |kind: VerdictKind| counts.with_verdict[kind as usize];
    // First those that exist only in a comparison, because the others may not fit.
    let mut chips = vec![chip("Better", counts.better, "better"), chip("Worse", counts.worse, "worse")];
    match task {
        // An image with a wrong class is both a false positive and a false negative.
        Some(ModelTask::Classification) => {
            chips.extend([chip("Incorrect", counts.with_wrong, "fp"), chip("Correct", counts.with_correct, "tp")]);
        }
        _ => chips.extend([
            chip("FP", counts.with_wrong, "fp"),
            chip("FN", counts.with_missed, "fn"),
            chip("TP", counts.with_correct, "tp"),
        ]),
    }
    chips.extend([
        chip("Unjudged", counts.unjudged, "!verdict"),
        chip("Accepted", verdict(VerdictKind::Accept), "verdict:accept"),
        chip("Rejected", verdict(VerdictKind::Reject), "verdict:reject"),
        chip("Unsure", verdict(VerdictKind::Unsure), "verdict:unsure"),
        chip("Wrong class", verdict(VerdictKind::WrongClass), "verdict:wrong"),
        chip("Moved", verdict(VerdictKind::Moved), "verdict:moved"),
        chip("Added", verdict(VerdictKind::Added), "verdict:added"),
        chip("Complete", counts.all - counts.unjudged - verdict(VerdictKind::Returned), "complete"),
        chip("Nothing missing", verdict(VerdictKind::Complete), "verdict:complete"),
        chip("Back to labeler", verdict(VerdictKind::Returned), "verdict:returned"),
        chip("Problems", counts.problems, "problem"),
        chip("Damaged", counts.damaged, "damaged"),
        chip("Outdated", counts.outdated, "outdated"),
    ]);
    if counts.predicted > 0 {
        let unpredicted = counts.all - counts.predicted;
        let label = if task.is_some() { "Not predicted" } else { "No embedding" };
        chips.push(chip(label, unpredicted, "!predicted"));
    }
    if task == Some(ModelTask::Detection) {
        chips.push(chip("No box", counts.no_box, "boxes:0"));
    }
    chips
}

/// One line, with a menu at its end for chips that do not fit: appearing chips do not move the thumbnails.
fn chips_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    let size = vec2(ui.available_width(), ui.spacing().interact_size.y);
    ui.allocate_ui_with_layout(size, Layout::left_to_right(Align::Center), |ui| {
        ui.set_min_size(size);
        line_of_chips_ui(ui, state, commands);
    });
}

fn line_of_chips_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    let Some(counts) = state.arranging.counts() else {
        return;
    };
    let text = state.arranging.text();
    let chips = chips(counts, state.task());
    let is_on = |chip: &Chip| has_term(text, chip.term);
    let is_about_truth = |chip: &Chip| ["fp", "fn", "tp"].contains(&chip.term);
    let is_useful =
        |chip: &&Chip| is_on(chip) || (1..counts.all).contains(&chip.count) || is_about_truth(chip) && chip.count > 0;
    let without_chips = || {
        let terms = chips.iter().map(|chip| chip.term);
        terms.fold(text.to_owned(), |text, term| without_term(&text, term))
    };
    let clicked = |chip: &Chip| {
        let text = if is_on(chip) { without_chips() } else { with_term(&without_chips(), chip.term) };
        SearchCommand::SetQuery(text)
    };
    ui.spacing_mut().item_spacing.x = 4.0;
    ui.spacing_mut().button_padding = vec2(7.0, 1.0);
    let is_plain = text.is_empty();
    if chip_ui(ui, is_plain, "All", counts.all).clicked() && !is_plain {
        commands.push(SearchCommand::SetQuery(String::new()));
    }
    let useful: Vec<&Chip> = chips.iter().filter(is_useful).collect();
    let (shown, more) = with_room(ui, useful, is_on);
    for chip in shown {
        chip_ui(ui, is_on(chip), chip.label, chip.count)
            .on_hover_text(chip_tooltip(chip))
            .on_click(commands, || clicked(chip));
    }
    if more.is_empty() {
        return;
    }
    let menu = ui.menu_button(RichText::new(MORE).small(), |ui| {
        for chip in more {
            let entry = ui.button(chip.text()).on_hover_text(chip_tooltip(chip));
            if entry.clicked() {
                commands.push(clicked(chip));
                ui.close();
            }
        }
    });
    menu.response.widget_info(|| WidgetInfo::labeled(Role::Button, true, "More filters"));
    menu.response.on_hover_text("Filters that do not fit here");
}

const MORE: &str = "More";

/// The chips that fit into the rest of the line next to the menu, and the others. An active one is always on the line.
fn with_room<'c>(ui: &Ui, chips: Vec<&'c Chip>, is_on: impl Fn(&Chip) -> bool) -> (Vec<&'c Chip>, Vec<&'c Chip>) {
    let font = TextStyle::Small.resolve(ui.style());
    let spacing = ui.spacing();
    let around = 2.0 * spacing.button_padding.x + spacing.item_spacing.x;
    let width = |text: String| {
        let galley = ui.painter().layout_no_wrap(text, font.clone(), Color32::PLACEHOLDER);
        galley.size().x + around
    };
    let widths: Vec<f32> = chips.iter().map(|chip| width(chip.text())).collect();
    let mut room = ui.available_width();
    if widths.iter().sum::<f32>() <= room {
        return (chips, Vec::new());
    }
    let of_those_on = chips.iter().zip(&widths).filter(|(chip, _)| is_on(chip)).map(|(_, width)| width);
    room -= width(MORE.to_owned()) + of_those_on.sum::<f32>();
    let mut shown = Vec::new();
    let mut more = Vec::new();
    for (chip, width) in chips.into_iter().zip(widths) {
        if is_on(chip) {
            shown.push(chip);
        } else if more.is_empty() && width <= room {
            room -= width;
            shown.push(chip);
        } else {
            more.push(chip);
        }
    }
    (shown, more)
}

fn chip_tooltip(chip: &Chip) -> String {
    let search = format!("Searches for {}", chip.term);
    let outcome = match chip.term {
        "fp" => "Images with a false positive: an incorrect box or class",
        "fn" => "Images with a false negative: an undetected object",
        "tp" => "Images with a true positive: a correct box or class",
        "better" => "Images with fewer errors than in the other run",
        "worse" => "Images with more errors than in the other run",
        _ => "",
    };
    if !outcome.is_empty() {
        return format!("{outcome}. {search}");
    }
    if chip.term.contains("verdict") {
        let counted = "An image is judged if it or every visible box has a verdict. The worst verdict counts";
        return format!("{counted}. {search}");
    }
    search
}

fn chip_ui(ui: &mut Ui, is_on: bool, label: &str, count: usize) -> Response {
    let visuals = ui.visuals();
    let text = RichText::new(format!("{label} {}", grouped(count))).small();
    let button = if is_on {
        Button::new(text.color(theme::on_accent(visuals))).fill(theme::accent(visuals))
    } else {
        Button::new(text)
    };
    let response = ui.add(button.corner_radius(9).min_size(vec2(0.0, 20.0)));
    let label = format!("{label} {}", grouped(count));
    response.widget_info(|| WidgetInfo::selected(Role::Button, true, is_on, label.as_str()));
    response
}

/// The width of the direction and the shortest thumbnail slider, in points.
const BESIDE_SORT: f32 = 78.0;

/// The sort criterion and direction.
pub(crate) fn sort_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    let sort = state.arranging.sort();
    let mut wanted = sort;
    ui.spacing_mut().item_spacing.x = 2.0;
    let (name, by) = (format!("Sort: {}", sort.by.into_str()), sort.by.into_str());
    let room = ui.available_width() - BESIDE_SORT - 2.0 * ui.spacing().button_padding.x;
    let label = fitting(ui, [name.as_str(), by], room).unwrap_or("Sort");
    let menu = ui.menu_button(label, |ui| {
        for &by in SortBy::VARIANTS {
            by_ui(ui, state, by, &mut wanted);
        }
    });
    let description = state.sort_description();
    let tooltip = description.iter().fold(sort.by.tooltip().to_owned(), |tooltip, more| format!("{tooltip}\n{more}"));
    let button = menu.response.on_hover_text(tooltip).accessible_name(name);
    if let Some(description) = description {
        button.ctx.accesskit_node_builder(button.id, |node| node.set_description(description));
    }
    let arrow = match sort.direction {
        Direction::Ascending => "↑",
        Direction::Descending => "↓",
    };
    let label = capitalized(sort.by.direction_label(sort.direction));
    let turn = ui.add(Button::new(arrow).min_size(vec2(26.0, 0.0)));
    turn.widget_info(|| WidgetInfo::labeled(Role::Button, true, label.as_str()));
    let other = sort.by.direction_label(sort.direction.reversed());
    if turn.on_hover_text(format!("{label}; click for {other}")).clicked() {
        wanted.direction = sort.direction.reversed();
    }
    if wanted != sort {
        commands.push(SearchCommand::SetSort(wanted));
    }
}

fn by_ui(ui: &mut Ui, state: &State, by: SortBy, wanted: &mut Sort) {
    let run = state.run().filter(|run| run.predictions.predicted() > 0);
    // An encoder's run has embeddings, but nothing else.
    let has_facts = run.is_some_and(|run| run.task().is_some() || by.measure().is_some());
    let is_possible = has_facts || !by.needs_predictions();
    let has_boxes = state.run().is_none_or(|run| run.task() == Some(ModelTask::Detection));
    let is_missing = by == SortBy::Disagreement
        || by == SortBy::Similarity && state.alike().is_none()
        || by == SortBy::Distance && state.arranging.center().is_none()
        || by == SortBy::Duplicates && state.found_duplicates().is_none()
        || by.needs_truth() && state.evaluated().is_none()
        || by == SortBy::ErrorChange && state.other_evaluated().is_none();
    if (by == SortBy::Boxes && !has_boxes) || is_missing && wanted.by != by {
        return;
    }
    let label = match by {
        SortBy::Listing => by.into_str().to_owned(),
        by => format!("{} ({})", by.into_str(), by.direction_label(by.default_direction())),
    };
    let entry = ui
        .add_enabled(is_possible, Button::selectable(wanted.by == by, label))
        .on_hover_text(by.tooltip())
        .on_disabled_hover_text("Predict some images first");
    if entry.clicked() {
        *wanted = Sort { by, direction: by.default_direction() };
        ui.close();
    }
}

/// Actions for the images found.
pub(crate) fn found_ui(ui: &mut Ui, state: &State, commands: &mut Commands) {
    if state.arranging.is_filtered() && !state.order().is_empty() {
        action_button_ui(ui, state, Action::PredictFiltered, commands);
    }
}
