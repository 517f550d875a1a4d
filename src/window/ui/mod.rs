//! Draws the state and returns the user's commands; reserves the panels around the middle of the window.
//!
//! Nothing here reads a file, waits, decodes or starts a thread. A panel receives `&State` and pushes [`Command`]s; the
//! textures belong to this module and are found by key. The cost of drawing never grows with the number of samples.

pub(crate) mod dialog;
mod event_order;
pub(crate) mod field;
pub(crate) mod form;
pub(crate) mod help;
pub(crate) mod inspector;
pub(crate) mod keys;
pub(crate) mod menu_bar;
pub(crate) mod palette;
pub(crate) mod textures;
pub(crate) mod theme;
pub(crate) mod widgets;

/// What most panels use.
pub(crate) mod prelude {
    pub(crate) use crate::domain::counted;
    pub(crate) use crate::window::state::{
        Action, BrowseCommand, Command, Commands, Loadable, Overlay, ReviewCommand, SearchCommand, State, TaskId,
    };
    pub(crate) use crate::window::ui::dialog::{dialog_ui, heading_ui};
    pub(crate) use crate::window::ui::field::Field;
    pub(crate) use crate::window::ui::theme;
    pub(crate) use crate::window::ui::widgets::*;
    pub(crate) use eframe::egui::{
        Align, Align2, Button, CollapsingHeader, Color32, Context, CornerRadius, FontId, Frame, Grid, Id, Key, Label,
        Layout, Painter, Pos2, ProgressBar, Rect, Response, RichText, Role, ScrollArea, Sense, Stroke, StrokeKind,
        TextEdit, TextStyle, Ui, Vec2, WidgetInfo, pos2, vec2,
    };
}

use eframe::egui::{self, Context, Layout, Panel, Rangef, Ui, UiBuilder, Vec2, vec2};

use crate::window::evaluation::ui::open_annotations::OpenAs;
use crate::window::remote::ui::resources_ui;
use crate::window::state::{BrowseCommand, Command, Commands, KnownEndpoint, KnownJob, State};
use crate::window::{
    browse, canvas, comparison, endpoints, evaluation, export, filmstrip, jobs, judge, map, models, outputs, project,
    remote_inference, s3, tasks, upload,
};

pub use keys::PressedKeys;
pub(crate) use textures::color_image;
pub use textures::{NewThumbnail, Textures};
pub use theme::apply as apply_theme;

/// Panel state between frames: drafts of text fields, and what was requested.
#[derive(Default)]
pub struct Window {
    pub textures: Textures,
    sides: Sides,
    judging_bar: BottomBar,
    status_bar: BottomBar,
    images: browse::ui::ImagesMemory,
    inspector: inspector::InspectorMemory,
    palette: palette::PaletteMemory,
    judge: judge::ui::JudgeMemory,
    presentation: canvas::ui::presentation::PresentationMemory,
    wrong_class: judge::ui::dialogs::WrongClassMemory,
    export: export::ui::ExportMemory,
    go_to: browse::ui::GoToMemory,
    cover: browse::ui::cover::CoverMemory,
    open_s3: s3::ui::OpenS3Memory,
    upload: upload::ui::UploadMemory,
    job_form: jobs::form::ui::JobFormMemory,
    jobs: jobs::ui::JobsMemory,
    endpoint_form: endpoints::form::ui::EndpointFormMemory,
    endpoints: endpoints::ui::EndpointsMemory,
    evaluation: evaluation::ui::EvaluationMemory,
    map: map::ui::MapMemory,
    comparison: comparison::ui::ComparisonMemory,
    open_outputs: outputs::ui::OpenOutputsMemory,
    open_predictions: evaluation::ui::open_annotations::OpenAnnotationsMemory,
    open_truth: evaluation::ui::open_annotations::OpenAnnotationsMemory,
    remote_inference: remote_inference::ui::RemoteModelMemory,
    toast: dialog::ToastMemory,
    mass_verdict: judge::ui::dialogs::MassVerdictMemory,
    spot_check: judge::ui::spot_check::SpotCheckMemory,
    type_path: browse::ui::TypePathMemory,
    applied: theme::Applied,
    size: Vec2,
    /// Whether a text field had the focus at the end of the last frame.
    was_typing: bool,
}

/// The widths of the side panels.
struct Sides {
    images: SideWidth,
    inspector: SideWidth,
}

impl Default for Sides {
    fn default() -> Self {
        Self { images: SideWidth::new(312.0, 200.0..=900.0), inspector: SideWidth::new(320.0, 260.0..=600.0) }
    }
}

impl Window {
    pub fn new(ctx: &Context) -> Self {
        ctx.add_plugin(event_order::EventOrder::default());
        Self::default()
    }

    /// The keys of this frame, to be handled before it is drawn.
    pub fn pressed_keys(&mut self, state: &State) -> PressedKeys {
        PressedKeys::new(state, self.images.take_steps(), self.was_typing)
    }

    /// Draws one frame. Returns the user's commands, in order.
    pub fn show(&mut self, ui: &mut Ui, state: &State) -> Vec<Command> {
        let mut commands = Commands::default();
        ui.ctx().accesskit_node_builder(egui::accesskit_root_id(), |window| window.set_label("Spotcheck"));
        theme::follow_settings(ui.ctx(), &mut self.applied, &state.settings);
        let size = ui.ctx().content_rect().size();
        if std::mem::replace(&mut self.size, size) != size {
            // Wrapping and fitting depend on the sizes in the previous frame.
            ui.ctx().request_repaint();
        }
        field::note_tab(ui.ctx());
        self.textures.begin_frame(state.settings.look());
        canvas::ui::presentation::follow_fullscreen(ui.ctx(), state, &mut self.presentation);
        if state.presenting.is_some() {
            // Neither panels nor messages, which may contain paths.
            canvas::ui::presentation::presentation_ui(
                ui,
                state,
                &mut self.textures,
                &mut self.presentation,
                &mut commands,
            );
            if let Some(tiles) = self.textures.changed_request() {
                commands.push(BrowseCommand::LoadTiles(tiles));
            }
            return commands.into_vec();
        }
        if let Some(place) = state.place() {
            widgets::renew_in_time(ui.ctx(), &place.access, state, &mut commands);
        }
        self.panels_ui(ui, state, &mut commands);
        if let Some(tiles) = self.textures.changed_request() {
            commands.push(BrowseCommand::LoadTiles(tiles));
        }
        self.dialogs_ui(ui.ctx(), state, &mut commands);
        dialog::toast_ui(ui.ctx(), state, &mut self.toast, &mut commands);
        browse::ui::drop_target_ui(ui.ctx(), &mut commands);
        self.was_typing = ui.ctx().text_edit_focused();
        commands.into_vec()
    }

    /// The palette and the dialogs, of which at most one is open.
    fn dialogs_ui(&mut self, ctx: &Context, state: &State, commands: &mut Commands) {
        palette::palette_ui(ctx, state, &mut self.palette, commands);
        help::help_ui(ctx, state, commands);
        help::whats_new_ui(ctx, state, commands);
        judge::ui::report::report_ui(ctx, state, commands);
        project::merge::ui::merge_ui(ctx, state, &mut self.textures, commands);
        judge::ui::spot_check::spot_check_ui(ctx, state, &mut self.spot_check, commands);
        judge::ui::dialogs::wrong_class_ui(ctx, state, &mut self.wrong_class, commands);
        judge::ui::dialogs::mass_verdict_ui(ctx, state, &mut self.mass_verdict, commands);
        browse::ui::go_to_ui(ctx, state, &mut self.go_to, commands);
        browse::ui::cover::cover_ui(ctx, state, &mut self.cover, commands);
        models::add::ui::import_ui(ctx, state, &mut self.textures, commands);
        s3::ui::open_s3_ui(ctx, state, &mut self.open_s3, commands);
        upload::ui::upload_ui(ctx, state, &mut self.upload, commands);
        jobs::form::ui::job_form_ui(ctx, state, &mut self.job_form, commands);
        resources_ui::<KnownJob>(ctx, state, &mut self.jobs, commands);
        endpoints::form::ui::endpoint_form_ui(ctx, state, &mut self.endpoint_form, commands);
        resources_ui::<KnownEndpoint>(ctx, state, &mut self.endpoints, commands);
        outputs::ui::open_outputs_ui(ctx, state, &mut self.open_outputs, &mut self.textures, commands);
        for (open_as, memory) in [(OpenAs::Run, &mut self.open_predictions), (OpenAs::Truth, &mut self.open_truth)] {
            evaluation::ui::open_annotations::open_annotations_ui(ctx, state, open_as, memory, commands);
        }
        remote_inference::ui::remote_model_ui(ctx, state, &mut self.remote_inference, &mut self.textures, commands);
        export::ui::export_ui(ctx, state, &mut self.export, commands);
        dialog::quit_ui(ctx, state, commands);
        browse::ui::type_path_ui(ctx, state, &mut self.type_path, commands);
    }

    fn panels_ui(&mut self, ui: &mut Ui, state: &State, commands: &mut Commands) {
        menu_bar::menu_bar_ui(ui, state, commands);
        let status_room = self.status_bar.reserve(ui, "status bar");
        let costs_money = state.endpoints_at_our_cost().next().is_some();
        panel_ui(ui, costs_money, |ui| {
            endpoints::ui::endpoints_banner_ui(ui, state, commands);
        });
        let middle = Middle::new(state);
        let is_large = middle == Middle::Image { is_large: true };
        let settings = &state.settings;
        let tasks_room = reserve_ui(ui, settings.show_tasks_panel && !is_large, tasks::ui::tasks_room);
        let judging_room = reserve_ui(ui, settings.show_judging && !state.samples.is_empty(), |ui| {
            self.judging_bar.reserve(ui, "judging bar")
        });
        let shows_images = settings.show_images_panel && middle != Middle::Grid && !is_large;
        let shows_inspector = settings.show_inspector && !is_large;
        let Sides { images, inspector } = &mut self.sides;
        if !shows_inspector {
            inspector.hide();
        }
        panel_ui(ui, shows_images, |ui| {
            let mut room = images.reserve(ui, Panel::left("images"), inspector.taken());
            browse::ui::images_ui(&mut room, state, &mut self.images, &mut self.textures, commands);
        });
        let mut inspector_room = None;
        panel_ui(ui, shows_inspector, |ui| {
            // The images have taken their space.
            inspector_room = Some(inspector.reserve(ui, Panel::right("inspector"), 0.0));
        });
        panel_ui(ui, state.filmstrip.is_some() && !is_large, |ui| {
            filmstrip::ui::filmstrip_ui(ui, state, &mut self.textures, commands);
        });
        self.middle_ui(ui, state, middle, commands);
        // Tab visits these last, because they are to the right and below.
        if let Some(mut room) = inspector_room {
            inspector::inspector_ui(&mut room, state, &mut self.inspector, &mut self.textures, commands);
        }
        if let Some(room) = judging_room {
            self.judging_bar.fill(room, |ui| judge::ui::judge_ui(ui, state, &mut self.judge, commands));
        }
        if let Some(mut room) = tasks_room {
            tasks::ui::tasks_ui(&mut room, state, commands);
        }
        self.status_bar.fill(status_room, |ui| tasks::ui::status_bar_ui(ui, state, commands));
    }

    fn middle_ui(&mut self, ui: &mut Ui, state: &State, middle: Middle, commands: &mut Commands) {
        let Self { textures, .. } = self;
        match middle {
            Middle::Evaluation => evaluation::ui::evaluation_ui(ui, state, &mut self.evaluation, commands),
            Middle::Comparison => comparison::ui::page_ui(ui, state, &mut self.comparison, commands),
            Middle::Map => map::ui::map_ui(ui, state, &mut self.map, textures, commands),
            Middle::Grid => browse::ui::images_in_the_middle_ui(ui, state, &mut self.images, textures, commands),
            Middle::Image { .. } => canvas::ui::canvas_ui(ui, state, textures, commands),
        }
    }
}

/// What is between the side panels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Middle {
    Evaluation,
    Comparison,
    Map,
    Grid,
    /// `is_large`: without the panels around it.
    Image {
        is_large: bool,
    },
}

impl Middle {
    fn new(state: &State) -> Self {
        let is_large = state.large_image && state.shown_sample().is_some();
        if state.evaluating.as_ref().is_some_and(|evaluating| evaluating.is_shown) {
            Self::Evaluation
        } else if state.shows_comparison() {
            Self::Comparison
        } else if state.map.is_shown {
            Self::Map
        } else if !is_large && state.settings.thumbnails_only && !state.samples.is_empty() {
            Self::Grid
        } else {
            Self::Image { is_large }
        }
    }
}

/// A panel that can be hidden. It keeps its number while hidden: egui numbers what it draws, and later widgets with
/// another number would lose focus, clicks or drags.
fn panel_ui(ui: &mut Ui, is_shown: bool, add: impl FnOnce(&mut Ui)) {
    if is_shown {
        add(ui);
    } else {
        ui.skip_ahead_auto_ids(1);
    }
}

/// As [`panel_ui`], for a panel whose contents are drawn later.
fn reserve_ui(ui: &mut Ui, is_shown: bool, reserve: impl FnOnce(&mut Ui) -> Ui) -> Option<Ui> {
    /// The panel and its contents.
    const NUMBERS: usize = 2;
    if is_shown {
        return Some(reserve(ui));
    }
    ui.skip_ahead_auto_ids(NUMBERS);
    None
}

/// A panel as high as its contents.
#[derive(Default)]
pub(crate) struct BottomBar {
    /// The height of the contents in the last frame.
    height: f32,
}

impl BottomBar {
    /// Reserves the space, and returns the part for [`Self::fill`].
    pub(crate) fn reserve(&self, ui: &mut Ui, id: &'static str) -> Ui {
        reserve(ui, id, Panel::bottom(id).resizable(false), |_| self.height)
    }

    pub(crate) fn fill(&mut self, mut room: Ui, contents: impl FnOnce(&mut Ui)) {
        contents(&mut room);
        let height = room.min_rect().height();
        if self.height != height {
            self.height = height;
            room.ctx().request_discard("a bar at the bottom has another height");
        }
    }
}

/// Reserves the space of a panel, and returns the part for its contents.
pub(crate) fn reserve(ui: &mut Ui, id: &'static str, panel: Panel, height: impl FnOnce(&Ui) -> f32) -> Ui {
    let rect = panel.show(ui, |ui| {
        let size = vec2(ui.available_width(), height(ui));
        ui.allocate_space(size).1
    });
    // Created here, so that its widgets keep their ids whatever is drawn in between.
    ui.new_child(UiBuilder::new().id_salt((id, "contents")).max_rect(rect.inner).layout(Layout::default()))
}

/// The minimum width of the middle if the window allows it, in points: the title of an image with its buttons, and the
/// tabs of an evaluation.
const MIDDLE_WIDTH: f32 = 440.0;
/// Smaller differences in width come from rounding to pixels.
const ROUNDING: f32 = 1.0;

/// The width of a panel: as set by the user, or less if the middle needs the space.
pub(crate) struct SideWidth {
    range: Rangef,
    wanted: f32,
    /// In the last frame; zero while the panel is hidden.
    shown: f32,
    /// In the last frame; `None` before the first.
    limit: Option<f32>,
}

impl SideWidth {
    pub(crate) fn new(wanted: f32, range: impl Into<Rangef>) -> Self {
        Self { range: range.into(), wanted, shown: wanted, limit: None }
    }

    /// The width that it takes from the window.
    pub(crate) fn taken(&self) -> f32 {
        self.shown
    }

    pub(crate) fn hide(&mut self) {
        self.shown = 0.0;
    }

    /// Reserves space for the panel and returns it. `reserved` is what the other side panel still takes of the space.
    /// Content that is too wide is cut off: only the user makes the panel wider.
    pub(crate) fn reserve(&mut self, ui: &mut Ui, panel: Panel, reserved: f32) -> Ui {
        let limit = (ui.available_width() - reserved - MIDDLE_WIDTH).clamp(self.range.min, self.range.max);
        let expected = self.wanted.clamp(self.range.min, limit);
        let is_same_room = self.limit.is_none_or(|last| last == limit);
        // If the space has changed, the panel follows; egui alone would keep the last frame's width.
        let range = if is_same_room { Rangef::new(self.range.min, limit) } else { Rangef::point(expected) };
        let panel = panel.default_size(expected).size_range(range).show(ui, |ui| {
            let place = ui.available_rect_before_wrap();
            let contents = ui.new_child(UiBuilder::new().id_salt("contents").max_rect(place));
            ui.advance_cursor_after_rect(place);
            contents
        });
        self.shown = panel.response.rect.width();
        if is_same_room && (self.shown - expected).abs() > ROUNDING {
            self.wanted = self.shown;
        }
        self.limit = Some(limit);
        panel.inner
    }
}
