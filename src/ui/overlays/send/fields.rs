//! The fields of the form.

use eframe::egui::{Align, Grid, TextEdit, Ui};
use strum::VariantArray;

use super::super::super::widgets::{checkbox_ui, grouped, radio_ui, strong};
use super::super::form::{
    address_problem_ui, choice_ui, folded_ui, image_ui, instances_ui, model_ui, optional_number_ui,
    optional_text_ui, pairs_ui, price_ui, region_of, text_ui,
};
use super::super::open_s3::access::access_ui;
use super::super::prices::{keep_price_ui, price_table_ui};
use super::SendMemory;
use crate::domain::{
    AssembleWith, BatchStrategy, Compression, S3Link, SplitType, TfsBatching, output_folder,
};
use crate::state::{Command, ExportScope, SendDraft, SendStage, State};

const JSON: &str = "application/json";
/// So many jobs offer their rate.
const OFFERED_JOBS: usize = 3;

pub(super) fn fields_ui(
    ui: &mut Ui,
    state: &State,
    memory: &mut SendMemory,
    is_new: bool,
    commands: &mut Vec<Command>,
) {
    let before = memory.draft.clone();
    if is_new {
        // Wherever the last one was left.
        ui.scroll_to_cursor(Some(Align::TOP));
    }
    access_ui(ui, state, &mut memory.access, commands);
    ui.add_space(6.0);
    let names = ("What is sent", "Model to send");
    model_ui(ui, state, &mut memory.draft.model, names);
    ui.add_space(6.0);
    images_ui(ui, state, &mut memory.draft);
    ui.add_space(6.0);
    outputs_ui(ui, &mut memory.draft, is_new);
    ui.add_space(6.0);
    job_ui(ui, state, &mut memory.draft);
    ui.add_space(6.0);
    folded_ui(ui, "Cost", |ui| cost_ui(ui, state, memory, commands));
    folded_ui(ui, "Requests and records", |ui| {
        requests_ui(ui, &mut memory.draft);
    });
    folded_ui(ui, "Environment and tags", |ui| environment_ui(ui, memory));
    folded_ui(ui, "Encryption", |ui| encryption_ui(ui, &mut memory.draft));
    folded_ui(ui, "Filters and joining", |ui| {
        filters_ui(ui, &mut memory.draft);
    });
    folded_ui(ui, "Advanced", |ui| advanced_ui(ui, memory));
    memory.draft.forget_what_was_measured(&before);
}

fn images_ui(ui: &mut Ui, state: &State, draft: &mut SendDraft) {
    ui.label(strong("Images"));
    let manifest = draft.advanced.manifest.trim();
    if !manifest.is_empty() {
        ui.weak(format!(
            "Those that a manifest lists, as chosen under Advanced: {manifest}"
        ));
        return;
    }
    for &choice in ExportScope::VARIANTS {
        let text = format!("{} ({})", choice.into_str(), grouped(choice.len(state)));
        radio_ui(ui, &mut draft.scope, choice, text);
    }
    let place = state.source.as_ref().and_then(|open| open.place.as_ref());
    if let Some(place) = place {
        ui.weak(format!("They lie in {}", place.address));
        return;
    }
    ui.weak(
        "They lie on this machine and are uploaded first; what is there already is not sent again",
    );
    text_ui(
        ui,
        &mut draft.upload_to,
        "Upload the images to",
        "a folder below the one for the outputs",
    );
    address_problem_ui(ui, &draft.upload_to);
}

fn outputs_ui(ui: &mut Ui, draft: &mut SendDraft, is_new: bool) {
    ui.label(strong("Outputs"));
    let field = TextEdit::singleline(&mut draft.base)
        .hint_text("s3://bucket/folder/")
        .desired_width(f32::INFINITY);
    let field = ui.add(field);
    if is_new && draft.base.is_empty() {
        field.request_focus();
    }
    field.accessible_name("Folder in S3 for the outputs of jobs");
    address_problem_ui(ui, &draft.base);
    if let Ok(link) = S3Link::parse(&draft.base) {
        let folder = output_folder(&link.address, draft.job_name.trim());
        ui.weak(format!("This job writes to {folder}"));
    }
}

fn job_ui(ui: &mut Ui, state: &State, draft: &mut SendDraft) {
    ui.label(strong("Job"));
    text_ui(
        ui,
        &mut draft.job_name,
        "Name of the job",
        "letters, digits and hyphens",
    );
    if draft.model.is_made() {
        text_ui(
            ui,
            &mut draft.role,
            "Role that the container runs as",
            "arn:aws:iam::123456789012:role/…",
        );
        let checked = match &state.remote.sending.check {
            SendStage::Done(check) => check.image(),
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
    instances_ui(ui, &mut draft.instance_count, &mut draft.instance_type);
}

fn cost_ui(ui: &mut Ui, state: &State, memory: &mut SendMemory, commands: &mut Vec<Command>) {
    let draft = &mut memory.draft;
    let price = &mut memory.price;
    price_ui(ui, &mut price.amount, &mut draft.usd_per_hour);
    let region = state.s3.access.region.as_deref();
    if draft.usd_per_hour.is_some() {
        let (of, amount) = (draft.instance_type.as_str(), draft.usd_per_hour);
        keep_price_ui(ui, price, of, region, amount, commands);
    }
    price_table_ui(ui, state, price, commands);
    memory.rate.field_ui(
        ui,
        &mut draft.images_per_s,
        "Images a second on an instance",
        "not known before a first job",
    );
    for (rate, from) in measured(state, draft) {
        let text = format!("Use {rate:.1} a second, {from}");
        if ui.button(text).clicked() {
            draft.images_per_s = Some(rate);
        }
    }
}

/// Rates that somebody has seen, on this machine and on such an instance, the newest job first.
fn measured(state: &State, draft: &SendDraft) -> Vec<(f64, String)> {
    let rehearsed = match &state.remote.sending.rehearsal {
        SendStage::Done(report) => report
            .images_per_s
            .map(|rate| (rate, "as rehearsed on this machine".to_owned())),
        _ => None,
    };
    let of_jobs = state.remote.known.iter().rev().filter_map(|job| {
        let progress = job.progress.as_ref()?;
        let spec = &progress.job.spec;
        let is_such = spec.instance_type == draft.instance_type.trim();
        let rate = progress
            .outputs_per_s
            .filter(|_| is_such && spec.input.split == SplitType::None)?;
        Some((
            rate / f64::from(spec.instance_count),
            format!("as in the job {}", job.id.name),
        ))
    });
    let all = rehearsed.into_iter().chain(of_jobs.take(OFFERED_JOBS));
    // As exactly as it is shown.
    let all = all.map(|(rate, from)| ((rate * 10.0).round() / 10.0, from));
    all.filter(|(rate, _)| rate.is_finite() && *rate > 0.0)
        .collect()
}

fn requests_ui(ui: &mut Ui, draft: &mut SendDraft) {
    optional_number_ui(
        ui,
        &mut draft.max_payload_mb,
        "Largest request in MB",
        6,
        0..=100,
        "as the check suggests",
    );
    optional_number_ui(
        ui,
        &mut draft.max_concurrent,
        "Requests at once on an instance",
        1,
        0..=100,
        "as the check suggests",
    );
    optional_number_ui(
        ui,
        &mut draft.model_client.timeout_s,
        "Patience with a request in seconds",
        600,
        1..=3600,
        "600, as is usual",
    );
    optional_number_ui(
        ui,
        &mut draft.model_client.max_retries,
        "Tries more after a failure",
        3,
        0..=3,
        "3, as is usual",
    );
    Grid::new("records").num_columns(2).show(ui, |ui| {
        choice_ui(
            ui,
            "Batch strategy",
            &mut draft.batch_strategy,
            &[
                (BatchStrategy::SingleRecord, "one record a request"),
                (BatchStrategy::MultiRecord, "many records a request"),
            ],
        );
        choice_ui(
            ui,
            "Split the objects",
            &mut draft.split,
            &[
                (None, "as the images need it"),
                (Some(SplitType::None), "not at all"),
                (Some(SplitType::Line), "by line"),
                (Some(SplitType::TFRecord), "by TFRecord"),
                (Some(SplitType::RecordIO), "by RecordIO"),
            ],
        );
        choice_ui(
            ui,
            "Assemble the predictions",
            &mut draft.assemble,
            &[
                (None, "as the images need it"),
                (Some(AssembleWith::None), "one after the other"),
                (Some(AssembleWith::Line), "a line each"),
            ],
        );
    });
    optional_text_ui(
        ui,
        &mut draft.content_type,
        "Content type",
        "what suits the images",
    );
    let mut accept = draft.accept.clone().unwrap_or_else(|| JSON.to_owned());
    text_ui(ui, &mut accept, "Accept", "left to the model");
    draft.accept = (accept != JSON).then_some(accept);
}

fn environment_ui(ui: &mut Ui, memory: &mut SendMemory) {
    ui.label("Batching of TensorFlow Serving");
    ui.horizontal_wrapped(|ui| {
        for (preset, name) in [
            (TfsBatching::Small, "Small batches"),
            (TfsBatching::Large, "Large batches"),
        ] {
            if ui
                .button(name)
                .on_hover_text("Sets the variables of the container below")
                .clicked()
            {
                memory.draft.environment.extend(preset.environment());
                memory.environment.take_over(&memory.draft.environment);
            }
        }
    });
    pairs_ui(
        ui,
        &mut memory.environment,
        &mut memory.draft.environment,
        "Environment",
        3,
    );
    pairs_ui(ui, &mut memory.tags, &mut memory.draft.tags, "Tags", 2);
}

fn encryption_ui(ui: &mut Ui, draft: &mut SendDraft) {
    let hint = "id, ARN or alias of a key; empty takes AWS's own";
    text_ui(ui, &mut draft.output_kms_key, "Key for the outputs", hint);
    text_ui(
        ui,
        &mut draft.volume_kms_key,
        "Key for the disks of the instances",
        hint,
    );
}

/// What few jobs need, under the names that AWS has for it.
fn advanced_ui(ui: &mut Ui, memory: &mut SendMemory) {
    let makes_model = memory.draft.model.is_made();
    let advanced = &mut memory.draft.advanced;
    if makes_model {
        ui.label("Model");
        let name = "ModelName, of the model that is made";
        text_ui(ui, &mut advanced.model_name, name, "the job's name");
        pairs_ui(
            ui,
            &mut memory.model_environment,
            &mut advanced.model_environment,
            "Environment of the model, for every job of it",
            2,
        );
    }
    ui.label("Input");
    let name = "ManifestFile, a list of objects that is there, in place of the images above";
    text_ui(ui, &mut advanced.manifest, name, "s3://bucket/list.json");
    address_problem_ui(ui, &advanced.manifest);
    let compressions = [
        (Compression::None, "not compressed"),
        (Compression::Gzip, "Gzip: unpacked before they are sent"),
    ];
    choice_ui(
        ui,
        "CompressionType of the objects",
        &mut advanced.compression,
        &compressions,
    );
    ui.label("Instances");
    let name = "TransformAmiVersion, the system of the instances";
    text_ui(ui, &mut advanced.ami_version, name, "AWS's usual one");
    ui.label("DataCaptureConfig: keeps requests and predictions, too");
    let name = "DestinationS3Uri, the folder that they go to";
    text_ui(ui, &mut advanced.capture_to, name, "nothing is kept");
    address_problem_ui(ui, &advanced.capture_to);
    if !advanced.capture_to.trim().is_empty() {
        let name = "KmsKeyId, a key for what is kept";
        text_ui(ui, &mut advanced.capture_kms_key, name, "AWS's own");
        let text = "GenerateInferenceId: each request gets an id";
        checkbox_ui(ui, &mut advanced.capture_ids, text);
    }
    ui.label("ExperimentConfig: shows the job in an experiment");
    for (text, name) in [
        (&mut advanced.experiment, "ExperimentName"),
        (&mut advanced.trial, "TrialName"),
        (
            &mut advanced.trial_component,
            "TrialComponentDisplayName, what shows the job",
        ),
        (&mut advanced.run, "RunName, the run of the experiment"),
    ] {
        text_ui(ui, text, name, "none");
    }
}

fn filters_ui(ui: &mut Ui, draft: &mut SendDraft) {
    let processing = &mut draft.data_processing;
    let hint = "a JSONPath; empty takes all";
    optional_text_ui(ui, &mut processing.input_filter, "Of the input", hint);
    optional_text_ui(ui, &mut processing.output_filter, "Of the output", hint);
    checkbox_ui(
        ui,
        &mut processing.join_input,
        "Join each prediction with its input",
    )
    .on_hover_text("For inputs of JSON or CSV; images cannot be joined");
}
