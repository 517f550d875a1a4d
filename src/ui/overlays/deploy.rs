//! The form that makes a model answer at an endpoint, checked while it is filled in.

use eframe::egui::{self, Align, Button, RichText, TextEdit, Ui, vec2};

use super::super::widgets::{renew_in_time, strong};
use super::dialog::dialog;
use super::form::{
    AmountMemory, CheckHalf, Foot, FootWords, Pacer, PairsMemory, address_problem_ui, check_ui,
    folded_ui, image_ui, instances_ui, model_ui, optional_number_ui, pairs_ui, price_ui, region_of,
    text_ui, two_columns_ui,
};
use super::open_s3::access::{AccessMemory, access_ui};
use crate::domain::{GPU_AMIS, S3Access, dated_name, usual_ami};
use crate::state::{Action, Command, DeployCheck, DeployDraft, Overlay, SendStage, State};
use crate::tasks::{clock_text, now_ms};

const WIDTH: f32 = 1040.0;
const FOOTER_HEIGHT: f32 = 48.0;
const WORDS: FootWords = FootWords {
    what: "the deployment",
    start: "Deploy the model",
    starting: "Deploying…",
    cancel: "Cancel the deployment",
    close: "The endpoint is deployed all the same",
};
/// What SageMaker takes, and what is a beginning for somebody who wants more than usual.
const TIMEOUTS_S: std::ops::RangeInclusive<u32> = 60..=3600;
const USUAL_TIMEOUT_S: u32 = 1200;
const AMIS_WIDTH: f32 = 600.0;
/// Beyond this somebody means to keep it, and looks after it otherwise.
const MOST_HOURS: f64 = 24.0 * 31.0;

/// Drafts of the fields.
#[derive(Default)]
pub(in super::super) struct DeployMemory {
    /// Which beginning was taken over.
    taken_over: u64,
    draft: DeployDraft,
    price: AmountMemory,
    access: AccessMemory,
    environment: PairsMemory,
    tags: PairsMemory,
    pacer: Pacer<(DeployDraft, S3Access)>,
}

pub(in super::super) fn deploy_ui(
    ctx: &egui::Context,
    state: &State,
    memory: &mut DeployMemory,
    commands: &mut Vec<Command>,
) {
    if state.overlay != Overlay::Deploy {
        return;
    }
    let deploying = &state.remote.deploying;
    let is_new = memory.taken_over != deploying.serial;
    if is_new {
        memory.taken_over = deploying.serial;
        memory.draft = deploying.draft.clone();
        memory
            .environment
            .take_over(&memory.draft.advanced.environment);
        memory.tags.take_over(&memory.draft.advanced.tags);
        let stem = memory.draft.model.library.as_deref().unwrap_or("endpoint");
        memory.draft.name = dated_name(stem, now_ms());
        memory.pacer.forget();
    }
    renew_in_time(ctx, &state.s3.access, state, commands);
    let modal = dialog(ctx, "deploy to an endpoint").show(ctx, |ui| {
        let room = ctx.content_rect().size() - vec2(60.0, 60.0 + FOOTER_HEIGHT);
        ui.set_width(WIDTH.min(room.x));
        contents_ui(ui, state, memory, is_new, room.y, commands);
        foot_ui(ui, state, memory, commands);
    });
    let now = (memory.draft.clone(), state.s3.access.clone());
    if !state.remote.deploying.start.is_running() && memory.pacer.is_due(ctx, &now) {
        commands.push(Command::CheckDeployment(Box::new(now.0)));
    }
    if modal.should_close() && !egui::Popup::is_any_open(ctx) {
        commands.push(Command::SetOverlay(Overlay::None));
    }
}

fn contents_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut DeployMemory,
    is_new: bool,
    height: f32,
    commands: &mut Vec<Command>,
) {
    ui.label(strong(Action::Deploy.label().trim_end_matches('…')).size(18.0));
    ui.add_space(4.0);
    two_columns_ui(
        ui,
        height - 34.0,
        &mut (memory, commands),
        |ui, (memory, commands)| fields_ui(ui, state, memory, is_new, commands),
        |ui, (_, commands)| checks_ui(ui, state, commands),
    );
}

fn fields_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut DeployMemory,
    is_new: bool,
    commands: &mut Vec<Command>,
) {
    if is_new {
        // Wherever the last one was left.
        ui.scroll_to_cursor(Some(Align::TOP));
    }
    access_ui(ui, state, &mut memory.access, commands);
    let draft = &mut memory.draft;
    ui.add_space(6.0);
    let names = ("What is deployed", "Model to deploy");
    model_ui(ui, state, &mut draft.model, names);
    if draft.model.is_uploaded() {
        ui.add_space(6.0);
        archive_ui(ui, draft, is_new);
    }
    ui.add_space(6.0);
    endpoint_ui(ui, state, draft);
    ui.add_space(6.0);
    cost_ui(ui, memory);
    ui.add_space(6.0);
    folded_ui(ui, "Advanced", |ui| advanced_ui(ui, memory));
}

/// It is packed, and goes to S3: SageMaker takes a model from nowhere else.
fn archive_ui(ui: &mut Ui, draft: &mut DeployDraft, is_new: bool) {
    ui.label(strong("Archive"));
    let field = TextEdit::singleline(&mut draft.base)
        .hint_text("s3://bucket/folder/")
        .desired_width(f32::INFINITY);
    let field = ui.add(field);
    if is_new && draft.base.is_empty() {
        field.request_focus();
    }
    field.accessible_name("Folder in S3 for the model's archive");
    address_problem_ui(ui, &draft.base);
    ui.weak(
        "The model is uploaded below this folder; its archive goes when the endpoint is deleted",
    );
}

fn endpoint_ui(ui: &mut Ui, state: &State, draft: &mut DeployDraft) {
    ui.label(strong("Endpoint"));
    let letters = "letters, digits and hyphens";
    text_ui(ui, &mut draft.name, "Name of the endpoint", letters);
    if draft.model.is_made() {
        text_ui(
            ui,
            &mut draft.role,
            "Role that the container runs as",
            "arn:aws:iam::123456789012:role/…",
        );
        let checked = match &state.remote.deploying.check {
            SendStage::Done(check) => check.image.as_deref(),
            _ => None,
        };
        let region = region_of(state, checked);
        image_ui(
            ui,
            &mut draft.image,
            region.as_deref(),
            &draft.instance_type,
        );
    }
    let before = draft.instance_type.clone();
    instances_ui(ui, &mut draft.instance_count, &mut draft.instance_type);
    if before != draft.instance_type {
        // Another type has another price.
        draft.usd_per_hour = None;
    }
    if let Some(usual) = usual_ami(draft.instance_type.trim()) {
        let name = "AMI version, for the driver of the graphics card";
        text_ui(ui, &mut draft.ami_version, name, usual);
        ui.menu_button("Known AMI versions", |ui| {
            ui.set_min_width(AMIS_WIDTH);
            for (ami, what) in GPU_AMIS {
                let button = Button::selectable(draft.ami_version == ami, ami)
                    .right_text(RichText::new(what).weak());
                if ui.add(button).clicked() {
                    ami.clone_into(&mut draft.ami_version);
                    ui.close();
                }
            }
        });
    } else {
        draft.ami_version.clear();
    }
}

fn cost_ui(ui: &mut Ui, memory: &mut DeployMemory) {
    let draft = &mut memory.draft;
    ui.label(strong("Cost"));
    price_ui(ui, &mut memory.price, &mut draft.usd_per_hour);
    optional_number_ui(
        ui,
        &mut draft.delete_after_h,
        "Delete it after so many hours",
        2.0,
        0.1..=MOST_HOURS,
        "it costs money until you delete it",
    );
    let text = match draft.delete_after_h {
        Some(hours) => {
            let now = now_ms();
            let at = now + (hours * 3_600_000.0) as i64;
            format!(
                "Spotcheck deletes it {}, or when it is started the next time: while it does not run, nobody does",
                clock_text(at, now)
            )
        }
        None => "An endpoint costs money day and night, whether or not anybody asks it".to_owned(),
    };
    ui.add(egui::Label::new(RichText::new(text).weak()).wrap());
}

fn advanced_ui(ui: &mut Ui, memory: &mut DeployMemory) {
    let is_made = memory.draft.model.is_made();
    let advanced = &mut memory.draft.advanced;
    if is_made {
        let (typed, pairs) = (&mut memory.environment, &mut advanced.environment);
        pairs_ui(ui, typed, pairs, "Environment of the container", 2);
    }
    let name = "Tags of the endpoint and of what is made for it";
    pairs_ui(ui, &mut memory.tags, &mut advanced.tags, name, 2);
    text_ui(
        ui,
        &mut advanced.volume_kms_key,
        "Key for the disks of the instances",
        "id, ARN or alias of a key; empty takes AWS's own",
    );
    for (seconds, name) in [
        (
            &mut advanced.startup_timeout_s,
            "Seconds that the container may take to start",
        ),
        (
            &mut advanced.download_timeout_s,
            "Seconds that fetching the model may take",
        ),
    ] {
        let usual = "as SageMaker has it by itself";
        optional_number_ui(ui, seconds, name, USUAL_TIMEOUT_S, TIMEOUTS_S, usual);
    }
}

fn checks_ui(ui: &mut Ui, state: &State, commands: &mut Vec<Command>) {
    let deploying = &state.remote.deploying;
    let half = CheckHalf {
        check: &deploying.check,
        missing: deploying.missing.as_deref(),
        start: &deploying.start,
        what: "the deployment",
        again: &|| Command::CheckDeployment(Box::new(deploying.draft.clone())),
    };
    check_ui(ui, &half, |check| &check.preflight, commands, |_, _, _| {});
}

fn foot_ui(ui: &mut Ui, state: &State, memory: &DeployMemory, commands: &mut Vec<Command>) {
    let deploying = &state.remote.deploying;
    let now = (memory.draft.clone(), state.s3.access.clone());
    let foot = Foot {
        words: &WORDS,
        start: &deploying.start,
        check: &deploying.check,
        is_checked: memory.pacer.is_checked(&now),
    };
    if foot.ui(ui, state, DeployCheck::is_startable, commands) {
        commands.push(Command::Deploy);
    }
}
