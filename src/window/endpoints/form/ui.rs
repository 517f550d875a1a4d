//! The form that deploys a model to a real-time endpoint.

use crate::sagemaker::spec::endpoint::{GPU_AMIS, Serverless, default_ami};
use crate::sagemaker::spec::transform::dated_name;
use crate::tasks::{clock_text, now_ms};
use crate::window::state::{EndpointDraft, EndpointsCommand};
use crate::window::ui::form::{
    AmountMemory, FootWords, FormDialog, FormMemory, PairsMemory, folded_ui, folder_ui, instances_ui, made_model_ui,
    model_ui, network_ui, optional_number_ui, optional_text_ui, pairs_ui, price_ui, text_ui,
};
use crate::window::ui::prelude::*;

const WORDS: FootWords = FootWords {
    what: "the deployment",
    start: "Deploy the model",
    starting: "Deploying…",
    cancel: "Cancel the deployment",
    close: "The deployment continues",
};
/// SageMaker's range for both timeouts.
const TIMEOUTS_S: std::ops::RangeInclusive<u32> = 60..=3600;
const USUAL_TIMEOUT_S: u32 = 1200;
const AMIS_WIDTH: f32 = 600.0;
/// An endpoint that is needed for longer must be deleted manually.
const MOST_HOURS: f64 = 24.0 * 31.0;

pub(crate) type EndpointFormMemory = FormMemory<EndpointDraft, EndpointTexts>;

#[derive(Default)]
pub(crate) struct EndpointTexts {
    price: AmountMemory,
    environment: PairsMemory,
    tags: PairsMemory,
}

pub(crate) fn endpoint_form_ui(ctx: &Context, state: &State, memory: &mut EndpointFormMemory, commands: &mut Commands) {
    if state.overlay != Overlay::DeployEndpoint {
        return;
    }
    let dialog = FormDialog {
        form: &state.remote.endpoint_form,
        action: Action::DeployEndpoint,
        words: &WORDS,
        check: |draft| Command::Endpoints(EndpointsCommand::Check(draft)),
        start: Command::Endpoints(EndpointsCommand::Deploy),
    };
    dialog.ui(
        ctx,
        state,
        memory,
        commands,
        |ui, memory, is_new, _| fields_ui(ui, state, memory, is_new),
        |_, _, _, _| {},
    );
}

fn fields_ui(ui: &mut Ui, state: &State, memory: &mut EndpointFormMemory, is_new: bool) {
    let draft = &mut memory.draft;
    if is_new {
        let stem = draft.model.library.as_deref().unwrap_or("endpoint");
        draft.config.name = dated_name(stem, now_ms());
    }
    let names = ("Kind of model to deploy", "Model to deploy");
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

/// The model is packed and uploaded to S3, because SageMaker loads models only from there.
fn archive_ui(ui: &mut Ui, draft: &mut EndpointDraft, is_new: bool) {
    ui.label(strong("Archive"));
    let name = "S3 folder for the model archive";
    folder_ui(ui, &mut draft.base, name, is_new);
    ui.weak("The model is uploaded to this folder; the archive is deleted with the endpoint");
}

fn endpoint_ui(ui: &mut Ui, state: &State, draft: &mut EndpointDraft) {
    ui.label(strong("Endpoint"));
    let letters = "letters, digits and hyphens";
    let config = &mut draft.config;
    text_ui(ui, &mut config.name, "Endpoint name", letters);
    let mut is_serverless = config.serverless.is_some();
    checkbox_ui(ui, &mut is_serverless, "Serverless: no instances, billed only for requests");
    config.serverless = is_serverless.then(|| config.serverless.unwrap_or_default());
    if let Some(Serverless { memory_mb, max_concurrency }) = &mut config.serverless {
        for (number, step, range, name) in
            [(memory_mb, 1024.0, 1024..=6144, "Memory (MB)"), (max_concurrency, 1.0, 1..=200, "Parallel requests")]
        {
            ui.horizontal(|ui| {
                ui.add(number_field(number).range(range).speed(step)).accessible_name(name);
                ui.label(name);
            });
        }
    }
    let instance_type = config.instance_type.get_or_insert_default();
    let checked = state.remote.endpoint_form.check.ready();
    let image = checked.and_then(|check| check.plan.model.image());
    made_model_ui(ui, state, &mut draft.model, instance_type, image);
    if is_serverless {
        return;
    }
    let before = instance_type.clone();
    instances_ui(ui, &mut config.instance_count, instance_type);
    if before != *instance_type {
        // Another type has another price.
        draft.usd_per_hour = None;
    }
    let Some(usual) = default_ami(instance_type.trim()) else {
        config.ami_version = None;
        return;
    };
    let name = "AMI version (GPU driver)";
    optional_text_ui(ui, &mut config.ami_version, name, usual);
    ui.menu_button("Known AMI versions", |ui| {
        ui.set_min_width(AMIS_WIDTH);
        for (ami, what) in GPU_AMIS {
            let is_chosen = config.ami_version.as_deref() == Some(ami);
            let button = Button::selectable(is_chosen, ami).right_text(RichText::new(what).weak());
            if ui.add(button).clicked() {
                config.ami_version = Some(ami.to_owned());
                ui.close();
            }
        }
    });
}

fn cost_ui(ui: &mut Ui, memory: &mut EndpointFormMemory) {
    let draft = &mut memory.draft;
    let is_serverless = draft.config.serverless.is_some();
    ui.label(strong("Cost"));
    if !is_serverless {
        price_ui(ui, &mut memory.texts.price, &mut draft.usd_per_hour);
    }
    optional_number_ui(
        ui,
        &mut draft.delete_after_h,
        "Automatic deletion after (hours)",
        2.0,
        0.1..=MOST_HOURS,
        "none: it exists until you delete it",
    );
    let text = match draft.delete_after_h {
        Some(hours) => {
            let now = now_ms();
            let at = now + (hours * 3_600_000.0) as i64;
            format!("Deleted {} if Spotcheck is running, otherwise at its next start", clock_text(at, now))
        }
        None if is_serverless => "No automatic deletion; billed only for requests".to_owned(),
        None => "No automatic deletion: billed continuously, even when idle".to_owned(),
    };
    note_ui(ui, text);
}

fn advanced_ui(ui: &mut Ui, memory: &mut EndpointFormMemory) {
    let (texts, draft) = (&mut memory.texts, &mut memory.draft);
    if draft.model.is_made() {
        let pairs = &mut draft.model.environment;
        let name = "Container environment";
        pairs_ui(ui, &mut texts.environment, pairs, name, 2);
        network_ui(ui, &mut draft.model.network);
    }
    let config = &mut draft.config;
    let name = "Tags for the endpoint and its resources";
    pairs_ui(ui, &mut texts.tags, &mut config.tags, name, 2);
    if config.serverless.is_none() {
        let hint = "ID, ARN or alias; default: AWS's own key";
        optional_text_ui(ui, &mut config.kms_key, "KMS key for the instance volumes", hint);
    }
    for (seconds, name) in [
        (&mut config.startup_timeout_s, "Container startup timeout (s)"),
        (&mut config.download_timeout_s, "Model download timeout (s)"),
    ] {
        let usual = "SageMaker's default";
        optional_number_ui(ui, seconds, name, USUAL_TIMEOUT_S, TIMEOUTS_S, usual);
    }
}
