//! Bottom: all boxes of one class over all images, by score. Only visible boxes are processed, however many there are.

use eframe::egui::Panel;

use crate::domain::{ModelTask, SampleId};
use crate::evaluation::HIDDEN_MISTAKES;
use crate::review::{FilmBox, FilmFrame, FilmOrder, OutcomeKind, SuspectOrder};
use crate::window::state::Filmstrip;
use crate::window::ui::menu_bar::BOX_MENU;
use crate::window::ui::prelude::*;
use crate::window::ui::textures::{Crop, Textures};

const GAP: f32 = 6.0;
/// The height of a line in the caption: score, error, name.
const LINE_HEIGHT: f32 = 14.0;
/// Around the caption.
const TEXT_MARGIN: f32 = 6.0;

pub(crate) fn filmstrip_ui(ui: &mut Ui, state: &State, textures: &mut Textures, commands: &mut Commands) {
    let Some(strip) = &state.filmstrip else {
        return;
    };
    Panel::bottom("filmstrip").resizable(true).default_size(196.0).size_range(130.0..=420.0).show(ui, |ui| {
        // A panel shrinks to its content: a single line while boxes are searched would make it small for good.
        ui.set_min_height(ui.available_height());
        ui.add_space(4.0);
        heading_ui(ui, state, strip, commands);
        frames_ui(ui, state, strip, textures, commands);
    });
}

fn heading_ui(ui: &mut Ui, state: &State, strip: &Filmstrip, commands: &mut Commands) {
    let width = ui.available_width();
    let words_ui = |ui: &mut Ui, commands: &mut Commands| {
        if width > 460.0 {
            ui.label(strong("Filmstrip of"));
        }
        class_ui(ui, state, strip, commands);
        if let Some(chosen) = &strip.chosen {
            let by_score =
                ui.button(chosen.title).on_hover_text(format!("{}\nClick to sort by score again", chosen.description));
            if by_score.clicked() {
                commands.push(ReviewCommand::SetFilmOrder(strip.order));
            }
        } else if state.arranging.is_about_suspects() {
            suspect_order_ui(ui, state, strip, commands);
        } else {
            turn_ui(ui, strip, commands);
        }
        let [count, above] = count_texts(state, strip);
        let text = fitting(ui, [&above, &count], ui.available_width());
        let label = ui.weak(text.cloned().unwrap_or_default());
        label.on_hover_text(above);
    };
    ends_ui(ui, "heading of the filmstrip", commands, words_ui, |ui, commands| {
        command_button_ui(ui, "Close", commands, || Action::Filmstrip);
    });
}

fn turn_ui(ui: &mut Ui, strip: &Filmstrip, commands: &mut Commands) {
    let (label, other) = match strip.order {
        FilmOrder::HighestFirst => ("Highest score first", FilmOrder::LowestFirst),
        FilmOrder::LowestFirst => ("Lowest score first", FilmOrder::HighestFirst),
    };
    ui.button(label)
        .on_hover_text("Click to reverse the order")
        .on_click(commands, || ReviewCommand::SetFilmOrder(other));
}

fn suspect_order_ui(ui: &mut Ui, state: &State, strip: &Filmstrip, commands: &mut Commands) {
    let task = state.task().unwrap_or(ModelTask::Detection);
    let help = format!("{}. {HIDDEN_MISTAKES}", strip.suspects.meaning());
    let field = Field::new("Order of suspicious labels").help(&help);
    field.list_ui(ui, strip.suspects.text(), |ui| {
        for order in SuspectOrder::of_task(task) {
            let choice = ui.selectable_label(strip.suspects == order, order.text());
            choice.on_hover_text(order.meaning()).on_click(commands, || ReviewCommand::SetSuspectOrder(order));
        }
    });
}

/// The number of boxes, in short and in full.
fn count_texts(state: &State, strip: &Filmstrip) -> [String; 2] {
    let count = strip.frames().len();
    let is_detection = state.task() == Some(ModelTask::Detection);
    let noun = match (is_detection, count) {
        (true, 1) => "box",
        (true, _) => "boxes",
        (false, 1) => "image",
        (false, _) => "images",
    };
    let count = format!("{} {noun}", grouped(count));
    let is_found = state.arranging.is_filtered();
    let count = if is_found { format!("{count} found") } else { count };
    let count = match strip.selected.len() {
        0 | 1 => count,
        selected => format!("{count}, {} selected", grouped(selected)),
    };
    let above = match strip.class.filter(|_| is_detection) {
        Some(class) => {
            let least = state.view().min_score_of(class);
            format!("{count}, ≥ {least:.2} or accepted")
        }
        None => count.clone(),
    };
    [count, above]
}

/// The classes of the run, those with the most boxes first.
fn class_ui(ui: &mut Ui, state: &State, strip: &Filmstrip, commands: &mut Commands) {
    let name = |class: u32| {
        let run = state.run();
        run.map_or_else(String::new, |run| run.labels().name(class))
    };
    let is_about_truth = state.arranging.is_about_truth();
    let none = match (&strip.chosen, is_about_truth) {
        (Some(_), _) => "all classes",
        (None, true) => "all found classes",
        (None, false) => "a class",
    };
    let selected = strip.class.map_or_else(|| none.to_owned(), name);
    let width = (ui.available_width() * 0.4).clamp(80.0, 150.0);
    Field::new("Class of the filmstrip").width(width).list_ui(ui, &selected, |ui| {
        let Some(statistics) = state.arranging.statistics() else {
            ui.weak("No predictions yet");
            return;
        };
        if is_about_truth && ui.selectable_label(strip.class.is_none(), "All found classes").clicked() {
            commands.push(ReviewCommand::SetFilmClass(None));
        }
        if strip.chosen.is_some() && ui.selectable_label(strip.class.is_none(), "All classes").clicked() {
            commands.push(ReviewCommand::SetFilmClass(None));
        }
        let mut rows: Vec<_> = statistics.classes.rows.iter().collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.boxes));
        for row in rows {
            let text = format!("{} ({})", name(row.class), grouped(row.boxes));
            let is_chosen = strip.class == Some(row.class);
            ui.selectable_label(is_chosen, text).on_click(commands, || ReviewCommand::OpenFilmstrip(row.class));
        }
    });
}

fn frames_ui(ui: &mut Ui, state: &State, strip: &Filmstrip, textures: &mut Textures, commands: &mut Commands) {
    let (Some(source), Some(run)) = (&state.source, state.run()) else {
        ui.weak("Predict images first");
        return;
    };
    textures.crops.begin_frame(source.id, run.id());
    let frames = strip.frames();
    if frames.is_empty() {
        let text = if !strip.has_boxes() && !state.arranging.is_about_truth() {
            "Choose a class to see its boxes"
        } else if strip.is_under_way() || state.arranging.is_under_way() {
            "Searching the predictions…"
        } else if state.search_awaits_evaluation() {
            "The search is waiting for the evaluation"
        } else if state.arranging.is_about_truth() {
            "No matching boxes; clear the search to see all boxes"
        } else if strip.chosen.is_some() {
            "None of these boxes is visible; lower the minimum score or clear the search"
        } else if strip.class.is_some_and(|class| !state.view().shows_class(class)) {
            "The filters hide this class"
        } else {
            "No prediction of this class has a high enough score"
        };
        ui.weak(text);
        return;
    }
    let scroll_bar = ui.spacing().scroll.bar_width + ui.spacing().scroll.bar_inner_margin;
    let height = (ui.available_height() - scroll_bar).max(40.0);
    let text_height = text_height(state);
    let cell = vec2((height - text_height).max(20.0), height);
    ScrollArea::horizontal().id_salt("filmstrip").auto_shrink([false, false]).show_viewport(ui, |ui, viewport| {
        ui.set_height(height);
        ui.set_width(frames.len() as f32 * (cell.x + GAP));
        let origin = ui.max_rect().min;
        let first = (viewport.left() / (cell.x + GAP)).floor().max(0.0) as usize;
        let end = (viewport.right() / (cell.x + GAP)).ceil().max(0.0) as usize;
        follow_anchor(ui, strip, |number| {
            let left = origin.x + number as f32 * (cell.x + GAP);
            Rect::from_min_size(pos2(left, origin.y), cell)
        });
        let mut missing = Vec::new();
        for (number, frame) in frames.iter().enumerate().take(end).skip(first) {
            let left = origin.x + number as f32 * (cell.x + GAP);
            let rect = Rect::from_min_size(pos2(left, origin.y), cell);
            if !frame_ui(ui, state, textures, frame, rect, commands) {
                missing.push(*frame);
            }
        }
        if let Some(wanted) = textures.crops.changed_request(missing) {
            commands.push(ReviewCommand::LoadCrops(wanted));
        }
    });
}

/// Scrolls to the box that was shown last, for example after a verdict on the one before.
fn follow_anchor(ui: &Ui, strip: &Filmstrip, place: impl Fn(usize) -> Rect) {
    let id = Id::unique("last box shown in the filmstrip");
    let last = ui.data(|data| data.get_temp::<Option<(SampleId, FilmBox)>>(id)).flatten();
    if last != strip.anchor {
        ui.data_mut(|data| data.insert_temp(id, strip.anchor));
        if let Some(number) = strip.anchor.and_then(|anchor| strip.position(anchor)) {
            ui.scroll_to_rect(place(number), None);
        }
    }
}

/// Returns true once the box's pixels are loaded and drawn as they should be, or cannot be loaded.
fn frame_ui(
    ui: &Ui,
    state: &State,
    textures: &mut Textures,
    frame: &FilmFrame,
    rect: Rect,
    commands: &mut Commands,
) -> bool {
    let Some(entry) = state.samples.get(frame.sample) else {
        return true;
    };
    let [score, why] = caption(state, frame);
    let id = ui.scope_id().with((frame.sample, frame.shows));
    let response = ui.interact(rect, id, Sense::click());
    response.widget_info(|| {
        let why = if why.is_empty() { String::new() } else { format!(" {why}") };
        let label = format!("{score}{why}, {}", entry.name);
        WidgetInfo::labeled(Role::Button, true, label)
    });
    let visuals = ui.visuals();
    let corner = CornerRadius::same(6);
    let is_shown = state.shown_sample() == Some(frame.sample);
    let is_in_view = is_shown
        && match frame.shows {
            FilmBox::Predicted(index) => state.shown.selected_box == Some(index as usize) || !state.has_boxes(),
            FilmBox::FalseNegative(index) => state.shown.selected_object == Some(index as usize),
        };
    let selected = state.filmstrip.as_ref().map(|strip| &strip.selected).filter(|selected| selected.len() > 1);
    let is_selected = selected.map_or(is_in_view, |selected| selected.contains(&(frame.sample, frame.shows)));
    if is_selected || response.hovered() {
        let width = if is_selected { 2.0 } else { 1.0 };
        let stroke = Stroke::new(width, theme::accent(visuals));
        ui.painter().rect_stroke(rect, corner, stroke, StrokeKind::Inside);
    }
    let place = rect.shrink(4.0);
    let place = place.with_max_y(place.bottom() - text_height(state) + 4.0);
    let is_settled = paint_crop(ui, textures, frame, place);
    match frame.shows {
        FilmBox::FalseNegative(_) => paint_false_negative(ui.painter(), place.left_top()),
        FilmBox::Predicted(_) if frame.outcome.is_some_and(OutcomeKind::is_wrong) => {
            paint_wrong(ui.painter(), place.left_top(), 1.0);
        }
        FilmBox::Predicted(_) => {}
    }
    if let Some(verdict) = state.verdict_on(frame.sample, frame.shows) {
        paint_verdict(ui.painter(), place.right_top() + vec2(-10.0, 10.0), 8.0, verdict);
    }
    let font = TextStyle::Small.resolve(ui.style());
    let lines = [
        (score.as_str(), visuals.text_color()),
        (why.as_str(), visuals.text_color()),
        (entry.name.rsplit('/').next().unwrap_or(&entry.name), visuals.weak_text_color()),
    ];
    let lines = lines.into_iter().filter(|(text, _)| !text.is_empty());
    for (number, (text, color)) in lines.enumerate() {
        let galley = elided_in_middle(ui, text, &font, color, place.width());
        let at = pos2(place.left(), place.bottom() + 2.0 + number as f32 * LINE_HEIGHT);
        ui.painter().galley(at, galley, color);
    }
    if response.clicked() {
        let (sample, shows) = (frame.sample, frame.shows);
        let modifiers = ui.input(|input| input.modifiers);
        commands.push(if modifiers.command || modifiers.shift {
            ReviewCommand::SelectCrop { sample, shows, extends: modifiers.shift }
        } else {
            ReviewCommand::ShowBox(sample, shows)
        });
    }
    let is_one_of_several = selected.is_some_and(|selected| selected.contains(&(frame.sample, frame.shows)));
    if response.secondary_clicked() && !is_one_of_several {
        commands.push(ReviewCommand::ShowBox(frame.sample, frame.shows));
    }
    context_menu_ui(&response, state, BOX_MENU, commands);
    response.on_hover_text(format!("{}\nCtrl or Shift and click: select several", entry.uri.as_str()));
    is_settled
}

/// With ground truth, there is one more line.
fn text_height(state: &State) -> f32 {
    let lines = if state.evaluated().is_some() { 3.0 } else { 2.0 };
    lines * LINE_HEIGHT + TEXT_MARGIN
}

/// The outcome and the score, with ground truth also the class and the error; of a suspicious label the number that
/// orders it, and the fix.
fn caption(state: &State, frame: &FilmFrame) -> [String; 2] {
    if let Some(similarity) = frame.similarity {
        let class = class_of(state, frame).unwrap_or_default();
        return [format!("{similarity:.2} {class}"), String::new()];
    }
    let score = frame.score.map(|score| format!("{:.1}%", score * 100.0));
    if let Some(suspect) = &frame.suspect {
        // There is room for one number.
        let order = state.filmstrip.as_ref().map_or(SuspectOrder::Gain, |strip| strip.suspects);
        let number = order.number_text(suspect, frame.score);
        let first = number.unwrap_or_else(|| state.gain_text(suspect.gain.into()));
        return [first, state.fix_text(frame.sample, suspect)];
    }
    let mark = match frame.shows {
        FilmBox::FalseNegative(_) => Some("FN"),
        FilmBox::Predicted(_) => frame.outcome.map(OutcomeKind::mark),
    };
    let first = mark.map(str::to_owned).into_iter().chain(score);
    [first.collect::<Vec<_>>().join(" "), class_and_error(state, frame).unwrap_or_default()]
}

/// The predicted class of a box.
fn class_of(state: &State, frame: &FilmFrame) -> Option<String> {
    let FilmBox::Predicted(index) = frame.shows else {
        return None;
    };
    let run = state.run()?;
    Some(run.labels().name(*run.predictions.summary(frame.sample)?.classes.get(index as usize)?))
}

/// “cup, is bottle”, “cup, duplicate”; the class of a missed object.
fn class_and_error(state: &State, frame: &FilmFrame) -> Option<String> {
    let index = match frame.shows {
        FilmBox::FalseNegative(object) => return state.class_of_object(frame.sample, object).map(str::to_owned),
        FilmBox::Predicted(index) => index as usize,
    };
    let outcome = state.outcome_of_box(frame.sample, index)?;
    let run = state.run()?;
    let class = *run.predictions.summary(frame.sample)?.classes.get(index)?;
    let class = outcome.class_text(&run.labels().name(class));
    Some(match outcome.error_text() {
        Some(error) => format!("{class}, {error}"),
        None => class,
    })
}

fn paint_crop(ui: &Ui, textures: &mut Textures, frame: &FilmFrame, place: Rect) -> bool {
    let painter = ui.painter();
    let Some(Crop { texture, is_outdated }) = textures.crops.get(frame) else {
        let fill = theme::sunken_fill(ui.visuals());
        painter.rect_filled(place, 4.0, fill);
        return false;
    };
    match texture {
        Ok(texture) => {
            let size = texture.size_vec2();
            let scale = (place.size() / size).min_elem();
            let rect = Rect::from_center_size(place.center(), size * scale);
            let whole = Rect::from_min_max(pos2(0.0, 0.0), pos2(1.0, 1.0));
            painter.image(texture.id(), rect, whole, Color32::WHITE);
        }
        Err(reason) => {
            let font = TextStyle::Small.resolve(ui.style());
            let color = ui.visuals().warn_fg_color;
            let text = format!("⚠ {reason}");
            let galley = painter.layout(text, font, color, place.width());
            painter.with_clip_rect(place).galley(place.min, galley, color);
        }
    }
    !is_outdated
}
