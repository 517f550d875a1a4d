//! Draws the state and returns the user's commands.
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
pub(crate) mod panels;
pub(crate) mod place_field;
pub(crate) mod textures;
pub(crate) mod theme;
pub(crate) mod toast;
pub(crate) mod typing;
pub(crate) mod widgets;

use eframe::egui::{self, Context, Panel, Ui, Vec2};
use panels::{BottomBar, SideWidth};

use crate::window::evaluation::ui::open_annotations::OpenAs;
use crate::window::remote::ui::resources_ui;
use crate::window::state::{BrowseCommand, Command, Commands, KnownEndpoint, KnownJob, State};
use crate::window::{
    browse, canvas, endpoints, evaluation, export, filmstrip, jobs, judge, models, outputs, remote_inference, s3,
    tasks, ui, upload,
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
    inspector: ui::inspector::InspectorMemory,
    palette: ui::palette::PaletteMemory,
    judge: judge::ui::JudgeMemory,
    presentation: canvas::ui::presentation::PresentationMemory,
    wrong_class: judge::ui::dialogs::WrongClassMemory,
    export: export::ui::ExportMemory,
    go_to: browse::ui::dialogs::GoToMemory,
    open_s3: s3::ui::OpenS3Memory,
    upload: upload::ui::UploadMemory,
    job_form: jobs::form::ui::JobFormMemory,
    jobs: jobs::ui::JobsMemory,
    endpoint_form: endpoints::form::ui::EndpointFormMemory,
    endpoints: endpoints::ui::EndpointsMemory,
    evaluation: evaluation::ui::EvaluationMemory,
    open_outputs: outputs::ui::OpenOutputsMemory,
    open_predictions: evaluation::ui::open_annotations::OpenAnnotationsMemory,
    open_truth: evaluation::ui::open_annotations::OpenAnnotationsMemory,
    remote_inference: remote_inference::ui::RemoteModelMemory,
    toast: ui::toast::ToastMemory,
    mass_verdict: judge::ui::dialogs::MassVerdictMemory,
    type_path: browse::ui::dialogs::TypePathMemory,
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
        self.textures.begin_frame();
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
        ui::palette::palette_ui(ui.ctx(), state, &mut self.palette, &mut commands);
        ui::help::help_ui(ui.ctx(), state, &mut commands);
        ui::help::whats_new_ui(ui.ctx(), state, &mut commands);
        judge::ui::report::report_ui(ui.ctx(), state, &mut commands);
        judge::ui::dialogs::wrong_class_ui(ui.ctx(), state, &mut self.wrong_class, &mut commands);
        judge::ui::dialogs::mass_verdict_ui(ui.ctx(), state, &mut self.mass_verdict, &mut commands);
        browse::ui::dialogs::go_to_ui(ui.ctx(), state, &mut self.go_to, &mut commands);
        models::add::ui::import_ui(ui.ctx(), state, &mut self.textures, &mut commands);
        s3::ui::open_s3_ui(ui.ctx(), state, &mut self.open_s3, &mut commands);
        upload::ui::upload_ui(ui.ctx(), state, &mut self.upload, &mut commands);
        jobs::form::ui::job_form_ui(ui.ctx(), state, &mut self.job_form, &mut commands);
        resources_ui::<KnownJob>(ui.ctx(), state, &mut self.jobs, &mut commands);
        endpoints::form::ui::endpoint_form_ui(ui.ctx(), state, &mut self.endpoint_form, &mut commands);
        resources_ui::<KnownEndpoint>(ui.ctx(), state, &mut self.endpoints, &mut commands);
        outputs::ui::open_outputs_ui(ui.ctx(), state, &mut self.open_outputs, &mut self.textures, &mut commands);
        for (open_as, memory) in [(OpenAs::Run, &mut self.open_predictions), (OpenAs::Truth, &mut self.open_truth)] {
            evaluation::ui::open_annotations::open_annotations_ui(ui.ctx(), state, open_as, memory, &mut commands);
        }
        remote_inference::ui::remote_model_ui(
            ui.ctx(),
            state,
            &mut self.remote_inference,
            &mut self.textures,
            &mut commands,
        );
        export::ui::export_ui(ui.ctx(), state, &mut self.export, &mut commands);
        ui::dialog::quit_ui(ui.ctx(), state, &mut commands);
        browse::ui::dialogs::type_path_ui(ui.ctx(), state, &mut self.type_path, &mut commands);
        ui::toast::toast_ui(ui.ctx(), state, &mut self.toast, &mut commands);
        browse::ui::dialogs::drop_target_ui(ui.ctx(), &mut commands);
        self.was_typing = ui.ctx().text_edit_focused();
        commands.into_vec()
    }

    fn panels_ui(&mut self, ui: &mut Ui, state: &State, commands: &mut Commands) {
        ui::menu_bar::menu_bar_ui(ui, state, commands);
        let status_room = self.status_bar.reserve(ui, "status bar");
        let costs_money = state.endpoints_at_our_cost().next().is_some();
        panel_ui(ui, costs_money, |ui| {
            endpoints::ui::banner::endpoints_banner_ui(ui, state, commands);
        });
        let shows_evaluation = state.evaluating.as_ref().is_some_and(|evaluating| evaluating.is_shown);
        let is_large = state.large_image && state.shown_sample().is_some() && !shows_evaluation;
        let is_middle_free = !is_large && !shows_evaluation;
        let is_grid_only = is_middle_free && state.settings.thumbnails_only && !state.samples.is_empty();
        let settings = &state.settings;
        let tasks_room = reserve_ui(ui, settings.show_tasks_panel && !is_large, tasks::ui::tasks_room);
        let judging_room = reserve_ui(ui, settings.show_judging && !state.samples.is_empty(), |ui| {
            self.judging_bar.reserve(ui, "judging bar")
        });
        let shows_images = settings.show_images_panel && !is_grid_only && !is_large;
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
        if shows_evaluation {
            evaluation::ui::evaluation_ui(ui, state, &mut self.evaluation, commands);
        } else if is_grid_only {
            let (memory, textures) = (&mut self.images, &mut self.textures);
            browse::ui::images_in_the_middle_ui(ui, state, memory, textures, commands);
        } else {
            canvas::ui::canvas_ui(ui, state, &mut self.textures, commands);
        }
        // Tab visits these last, because they are to the right and below.
        if let Some(mut room) = inspector_room {
            ui::inspector::inspector_ui(&mut room, state, &mut self.inspector, &mut self.textures, commands);
        }
        if let Some(room) = judging_room {
            self.judging_bar.fill(room, |ui| judge::ui::judge_ui(ui, state, &mut self.judge, commands));
        }
        if let Some(mut room) = tasks_room {
            tasks::ui::tasks_ui(&mut room, state, commands);
        }
        self.status_bar.fill(status_room, |ui| tasks::ui::status_bar::status_bar_ui(ui, state, commands));
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
