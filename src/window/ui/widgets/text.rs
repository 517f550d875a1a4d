//! Texts and numbers for display.

use std::sync::Arc;

use eframe::egui::text::{CCursor, LayoutJob};
use eframe::egui::text_edit::TextEditState;
use eframe::egui::text_selection::CCursorRange;
use eframe::egui::{
    self, Align, CollapsingHeader, Color32, FontId, Frame, Galley, Label, Layout, Margin, Response, RichText, Stroke,
    TextStyle, Ui, WidgetText, vec2,
};

use crate::domain::{Utc, counted};
use crate::tasks::now_ms;
use crate::window::ui::theme;

/// A text in semibold.
pub(crate) fn strong(text: impl Into<String>) -> RichText {
    RichText::new(text).family(theme::strong_family())
}

/// One line that ends in `…` if it is too long.
pub(crate) fn truncated(ui: &Ui, text: &str, font: FontId, color: Color32, max_width: f32) -> Arc<Galley> {
    let mut job = LayoutJob::simple_singleline(text.to_owned(), font, color);
    job.wrap = egui::text::TextWrapping::truncate_at_width(max_width);
    ui.painter().layout_job(job)
}

/// Focuses a field and selects its whole text, so that typing replaces it.
pub(crate) fn focus_whole_text(field: &Response, text: &str) {
    let mut edit = TextEditState::load(&field.ctx, field.id).unwrap_or_default();
    let whole = CCursorRange::two(CCursor::new(0), CCursor::new(text.chars().count()));
    edit.cursor.set_char_range(Some(whole));
    edit.store(&field.ctx, field.id);
    field.request_focus();
}

/// The total padding at both ends of a field's text.
pub(crate) const FIELD_PADDING: f32 = 22.0;

/// The first of `texts` that fits this width as a line of body text; longest first.
pub(crate) fn fitting<T: AsRef<str>>(ui: &Ui, texts: impl IntoIterator<Item = T>, max_width: f32) -> Option<T> {
    let font = TextStyle::Body.resolve(ui.style());
    texts.into_iter().find(|text| {
        let text = text.as_ref().to_owned();
        let galley = ui.painter().layout_no_wrap(text, font.clone(), Color32::PLACEHOLDER);
        galley.size().x <= max_width
    })
}

/// One line whose middle is replaced by `…` if it is too long: the end of a file name is as informative as its
/// beginning.
pub(crate) fn elided_in_middle(ui: &Ui, text: &str, font: &FontId, color: Color32, max_width: f32) -> Arc<Galley> {
    const DOTS: char = '…';
    let line = |text: String| {
        let job = LayoutJob::simple_singleline(text, font.clone(), color);
        ui.painter().layout_job(job)
    };
    let whole = line(text.to_owned());
    if whole.size().x <= max_width {
        return whole;
    }
    let dots_width = ui.ctx().fonts_mut(|fonts| fonts.glyph_width(font, DOTS));
    let half = ((max_width - dots_width) / 2.0).max(0.0);
    let glyphs = whole.rows.first().map_or(&[][..], |row| &row.row.glyphs);
    let from = whole.size().x - half;
    let head = glyphs.iter().take_while(|glyph| glyph.max_x() <= half);
    let tail = glyphs.iter().rev().take_while(|glyph| glyph.pos.x >= from);
    let (head, tail) = (head.count(), tail.count());
    let mut short: String = text.chars().take(head).collect();
    short.push(DOTS);
    short.extend(text.chars().skip(glyphs.len() - tail));
    line(short)
}

/// A collapsible part of a panel; initially open if `default_open` is set.
pub(crate) fn section_ui(ui: &mut Ui, title: &str, default_open: bool, contents: impl FnOnce(&mut Ui)) {
    titled_section_ui(ui, title, title, default_open, contents);
}

/// As [`section_ui`], with a title that changes; `id` does not.
pub(crate) fn titled_section_ui(
    ui: &mut Ui,
    id: &str,
    title: &str,
    default_open: bool,
    contents: impl FnOnce(&mut Ui),
) {
    CollapsingHeader::new(strong(title).size(13.0)).id_salt(id).default_open(default_open).show_unindented(ui, |ui| {
        ui.add_space(2.0);
        contents(ui);
        ui.add_space(6.0);
    });
    ui.separator();
}

/// A dimmed name and a normal value, on one line that can wrap.
pub(crate) fn key_value_ui(ui: &mut Ui, key: &str, value: &str) {
    ui.horizontal_top(|ui| {
        let key_width = 92.0;
        ui.allocate_ui_with_layout(vec2(key_width, 0.0), Layout::left_to_right(Align::Min), |ui| {
            ui.set_min_width(key_width);
            truncated_ui(ui, RichText::new(key).weak());
        });
        wrapped_ui(ui, value);
    });
}

pub(crate) fn wrapped_ui(ui: &mut Ui, text: impl Into<WidgetText>) -> Response {
    ui.add(Label::new(text).wrap())
}

/// A line, with the whole text in its tooltip if it is too long.
pub(crate) fn truncated_ui(ui: &mut Ui, text: impl Into<WidgetText>) -> Response {
    ui.add(Label::new(text).truncate())
}

/// A dimmed text that wraps.
pub(crate) fn note_ui(ui: &mut Ui, text: impl Into<String>) -> Response {
    wrapped_ui(ui, RichText::new(text).weak())
}

pub(crate) fn small_note_ui(ui: &mut Ui, text: impl Into<String>) -> Response {
    wrapped_ui(ui, RichText::new(text).small().weak())
}

/// A dimmed line.
pub(crate) fn note_line_ui(ui: &mut Ui, text: impl Into<String>) -> Response {
    truncated_ui(ui, RichText::new(text).weak())
}

pub(crate) fn small_note_line_ui(ui: &mut Ui, text: impl Into<String>) -> Response {
    truncated_ui(ui, RichText::new(text).small().weak())
}

/// What is wrong with a field or an entry, below it.
pub(crate) fn problem_ui(ui: &mut Ui, problem: impl std::fmt::Display) {
    let text = RichText::new(format!("⚠ {problem}")).color(ui.visuals().error_fg_color);
    wrapped_ui(ui, text);
}

pub(crate) fn warning_ui(ui: &mut Ui, warning: impl std::fmt::Display) {
    let text = RichText::new(format!("⚠ {warning}")).color(ui.visuals().warn_fg_color);
    wrapped_ui(ui, text);
}

/// The line for a request that is under way.
pub(crate) fn waiting_ui(ui: &mut Ui, text: &str) {
    ui.horizontal(|ui| {
        ui.spinner();
        ui.weak(text);
    });
}

/// The kind of message in a banner. Its text also states it: color is never the only sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Hint,
    Warning,
    Error,
}

/// A card with a message and available actions.
pub(crate) fn banner_ui(ui: &mut Ui, tone: Tone, message: &str, contents: impl FnOnce(&mut Ui)) {
    card_ui(ui, tone, message, Label::wrap, contents);
}

/// A card with a message.
pub(crate) fn message_ui(ui: &mut Ui, tone: Tone, message: &str) {
    banner_ui(ui, tone, message, |_| {});
}

/// As [`banner_ui`], with one line of the message and the rest in its tooltip, so that what is below stays visible.
pub(crate) fn line_banner_ui(ui: &mut Ui, tone: Tone, message: &str, contents: impl FnOnce(&mut Ui)) {
    card_ui(ui, tone, message, Label::truncate, contents);
}

fn card_ui(ui: &mut Ui, tone: Tone, message: &str, fitted: fn(Label) -> Label, contents: impl FnOnce(&mut Ui)) {
    let visuals = ui.visuals();
    let (color, mark) = match tone {
        Tone::Hint => (theme::accent(visuals), ""),
        Tone::Warning => (visuals.warn_fg_color, "⚠ "),
        Tone::Error => (visuals.error_fg_color, "⚠ "),
    };
    Frame::new()
        .fill(theme::raised_fill(visuals))
        .stroke(Stroke::new(1.0, color))
        .corner_radius(8)
        .inner_margin(Margin::symmetric(10, 8))
        .show(ui, |ui| {
            ui.set_min_width(ui.available_width());
            ui.add(fitted(Label::new(format!("{mark}{message}"))));
            contents(ui);
        });
}

/// How long ago something was: `just now`, `12 min ago`, `3 h ago`, or the date if it is longer. `at_ms` is in
/// milliseconds since 1970-01-01 UTC.
pub(crate) fn ago_text(at_ms: i64) -> String {
    let minutes = (now_ms() - at_ms) / 60_000;
    match minutes {
        ..1 => "just now".to_owned(),
        1..60 => format!("{minutes} min ago"),
        60..2880 => format!("{} h ago", minutes / 60),
        _ => Utc::from_ms(at_ms).date(),
    }
}

pub(crate) fn image_count(count: usize) -> String {
    counted(count, "image", "images")
}

pub(crate) fn box_count(count: usize) -> String {
    counted(count, "box", "boxes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(image_count(1), "1 image");
        assert_eq!(image_count(100_000), "100,000 images");
    }
}
