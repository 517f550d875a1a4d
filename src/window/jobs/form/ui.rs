//! The form that starts a Batch Transform job, with its rehearsal and AWS CLI commands.

use strum::VariantArray;

use crate::domain::{S3Link, shortened};
use crate::sagemaker::spec::transform::{
    AssembleWith, BatchStrategy, Compression, DataProcessing, JoinSource, SplitType, TfsBatching, TransformPlan,
    TransformSpec, dated_name, output_folder,
};
use crate::tasks::now_ms;
use crate::window::jobs::ui::{PriceMemory, keep_price_ui, price_table_ui};
use crate::window::state::{
    ExportScope, FormCheck, JobDraft, JobsCommand, ModelFrom, RehearsalOptions, RehearsalReport,
};
use crate::window::ui::form::{
    AmountMemory, FootWords, FormDialog, FormMemory, PairsMemory, address_problem_ui, choice_ui, folded_ui, folder_ui,
    instances_ui, made_model_ui, model_ui, network_ui, optional_number_ui, optional_text_ui, pairs_ui, price_ui,
    text_ui,
};
use crate::window::ui::prelude::*;

const WORDS: FootWords = FootWords {
    what: "the job",
    start: "Start the job",
    starting: "Starting the job…",
    cancel: "Cancel the start",
    close: "The job will still start",
};

pub(crate) type JobFormMemory = FormMemory<JobDraft, JobTexts>;

#[derive(Default)]
pub(crate) struct JobTexts {
    rehearsal: RehearsalOptions,
    price: PriceMemory,
    rate: AmountMemory,
    environment: PairsMemory,
    model_environment: PairsMemory,
    tags: PairsMemory,
}

pub(crate) fn job_form_ui(ctx: &Context, state: &State, memory: &mut JobFormMemory, commands: &mut Commands) {
    if state.overlay != Overlay::StartJob {
        return;
    }
    let dialog = FormDialog {
        form: &state.remote.job_form,
        action: Action::StartJob,
        words: &WORDS,
        check: |draft| Command::Jobs(JobsCommand::Check(draft)),
        start: Command::Jobs(JobsCommand::Start),
    };
    dialog.ui(
        ctx,
        state,
        memory,
        commands,
        |ui, memory, is_new, commands| fields_ui(ui, state, memory, is_new, commands),
        |ui, texts, check, commands| {
            commands_ui(ui, check, commands);
            rehearsal_ui(ui, state, &mut texts.rehearsal, commands);
        },
    );
}

/// The number of earlier jobs whose rate is offered.
const OFFERED_JOBS: usize = 3;

fn fields_ui(ui: &mut Ui, state: &State, memory: &mut JobFormMemory, is_new: bool, commands: &mut Commands) {
    if is_new {
        let stem = memory.draft.model.library.as_deref().unwrap_or("job");
        memory.draft.spec.job_name = dated_name(stem, now_ms());
        memory.texts.rehearsal.clone_from(&state.settings.rehearsal);
    }
    let before = memory.draft.clone();
    let names = ("Kind of model to send", "Model to send");
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
    folded_ui(ui, "Encryption", |ui| {
        encryption_ui(ui, &mut memory.draft.spec);
    });
    folded_ui(ui, "Filters and joining", |ui| {
        filters_ui(ui, &mut memory.draft.spec.data_processing);
    });
    folded_ui(ui, "Advanced", |ui| advanced_ui(ui, memory));
    memory.draft.forget_what_was_measured(&before);
}

fn images_ui(ui: &mut Ui, state: &State, draft: &mut JobDraft) {
    ui.label(strong("Images"));
    let manifest = draft.manifest.trim();
    if !manifest.is_empty() {
        ui.weak(format!("Listed in the manifest under Advanced: {manifest}"));
        return;
    }
    for &choice in ExportScope::VARIANTS {
        let text = format!("{} ({})", choice.into_str(), grouped(choice.len(state)));
        radio_ui(ui, &mut draft.scope, choice, text);
    }
    let place = state.place();
    if let Some(place) = place {
        ui.weak(format!("In S3: {}", place.address));
        return;
    }
    ui.weak("On this computer; uploaded first. Files already in S3 are not uploaded again");
    text_ui(ui, &mut draft.upload_to, "Upload images to", "default: a folder below the output folder");
    address_problem_ui(ui, &draft.upload_to);
}

fn outputs_ui(ui: &mut Ui, draft: &mut JobDraft, is_new: bool) {
    ui.label(strong("Outputs"));
    let name = "S3 folder for job outputs";
    folder_ui(ui, &mut draft.base, name, is_new);
    if let Ok(link) = S3Link::parse(&draft.base) {
        let folder = output_folder(&link.address, draft.spec.job_name.trim());
        ui.weak(format!("This job writes to {folder}"));
    }
}

fn job_ui(ui: &mut Ui, state: &State, draft: &mut JobDraft) {
    ui.label(strong("Job"));
    text_ui(ui, &mut draft.spec.job_name, "Job name", "letters, digits and hyphens");
    let checked = state.remote.job_form.check.ready();
    let image = checked.and_then(|check| check.plan.model.image());
    let spec = &mut draft.spec;
    made_model_ui(ui, state, &mut draft.model, &spec.resources.instance_type, image);
    instances_ui(ui, &mut spec.resources.instance_count, &mut spec.resources.instance_type);
}

fn cost_ui(ui: &mut Ui, state: &State, memory: &mut JobFormMemory, commands: &mut Commands) {
    let draft = &mut memory.draft;
    let price = &mut memory.texts.price;
    price_ui(ui, &mut price.amount, &mut draft.usd_per_hour);
    let region = state.s3.access.region.as_deref();
    if draft.usd_per_hour.is_some() {
        let (of, amount) = (draft.spec.resources.instance_type.as_str(), draft.usd_per_hour);
        keep_price_ui(ui, price, of, region, amount, commands);
    }
    price_table_ui(ui, state, price, commands);
    memory.texts.rate.field_ui(
        ui,
        &mut draft.images_per_s,
        "Images per second per instance",
        "unknown before the first job",
    );
    for (rate, from) in measured(state, draft) {
        let text = format!("Use {rate:.1} per second, {from}");
        if ui.button(text).clicked() {
            draft.images_per_s = Some(rate);
        }
    }
}

/// The rates measured on this computer and on such an instance, newest job first.
fn measured(state: &State, draft: &JobDraft) -> Vec<(f64, String)> {
    let rehearsed = match &state.remote.rehearsal {
        Loadable::Ready(report) => {
            report.images_per_s.map(|rate| (rate, "measured in the rehearsal on this computer".to_owned()))
        }
        _ => None,
    };
    let of_jobs = state.remote.jobs.known.iter().rev().filter_map(|job| {
        let progress = job.progress.as_ref()?;
        let spec = &progress.job.spec;
        let is_such = spec.resources.instance_type == draft.spec.resources.instance_type.trim();
        let rate = progress.outputs_per_s.filter(|_| is_such && spec.input.split == SplitType::None)?;
        Some((rate / f64::from(spec.resources.instance_count), format!("measured in job {}", job.id.name)))
    });
    let all = rehearsed.into_iter().chain(of_jobs.take(OFFERED_JOBS));
    // Rounded as displayed.
    let all = all.map(|(rate, from)| ((rate * 10.0).round() / 10.0, from));
    all.filter(|(rate, _)| rate.is_finite() && *rate > 0.0).collect()
}

fn requests_ui(ui: &mut Ui, draft: &mut JobDraft) {
    optional_number_ui(
        ui,
        &mut draft.spec.max_payload_mb,
        "Maximum request size (MB)",
        6,
        0..=100,
        "default: as the check suggests",
    );
    optional_number_ui(
        ui,
        &mut draft.spec.max_concurrent,
        "Concurrent requests per instance",
        1,
        0..=100,
        "default: as the check suggests",
    );
    optional_number_ui(ui, &mut draft.spec.model_client.timeout_s, "Request timeout (s)", 600, 1..=3600, "default 600");
    optional_number_ui(ui, &mut draft.spec.model_client.max_retries, "Retries per request", 3, 0..=3, "default 3");
    Grid::new("records").num_columns(2).show(ui, |ui| {
        choice_ui(
            ui,
            "Batch strategy",
            &mut draft.spec.batch_strategy,
            &[
                (BatchStrategy::SingleRecord, "One record per request"),
                (BatchStrategy::MultiRecord, "Many records per request"),
            ],
        );
        choice_ui(
            ui,
            "Split type",
            &mut draft.split,
            &[
                (None, "Automatic"),
                (Some(SplitType::None), "None"),
                (Some(SplitType::Line), "Line"),
                (Some(SplitType::TFRecord), "TFRecord"),
                (Some(SplitType::RecordIO), "RecordIO"),
            ],
        );
        choice_ui(
            ui,
            "Assemble with",
            &mut draft.assemble,
            &[(None, "Automatic"), (Some(AssembleWith::None), "None"), (Some(AssembleWith::Line), "Line")],
        );
    });
    optional_text_ui(ui, &mut draft.content_type, "Content type", "default: by the images");
    optional_text_ui(ui, &mut draft.spec.output.accept, "Accept", "default: chosen by the model");
}

fn environment_ui(ui: &mut Ui, memory: &mut JobFormMemory) {
    ui.label("TensorFlow Serving batching");
    ui.horizontal_wrapped(|ui| {
        for (preset, name) in [(TfsBatching::Small, "Small batches"), (TfsBatching::Large, "Large batches")] {
            if ui.button(name).on_hover_text("Sets the container's environment variables below").clicked() {
                memory.draft.spec.environment.extend(preset.environment());
            }
        }
    });
    let (texts, spec) = (&mut memory.texts, &mut memory.draft.spec);
    let environment = &mut texts.environment;
    pairs_ui(ui, environment, &mut spec.environment, "Environment", 3);
    pairs_ui(ui, &mut texts.tags, &mut spec.tags, "Tags", 2);
}

fn encryption_ui(ui: &mut Ui, spec: &mut TransformSpec) {
    let hint = "ID, ARN or alias; default: AWS's own key";
    for (key, name) in [
        (&mut spec.output.kms_key, "KMS key for the outputs"),
        (&mut spec.resources.volume_kms_key, "KMS key for the instance volumes"),
    ] {
        optional_text_ui(ui, key, name, hint);
    }
}

/// Rarely used parameters, under AWS's own names.
fn advanced_ui(ui: &mut Ui, memory: &mut JobFormMemory) {
    let draft = &mut memory.draft;
    let spec = &mut draft.spec;
    if draft.model.is_made() {
        ui.label("Model");
        let name = "ModelName: name of the new model";
        text_ui(ui, &mut spec.model_name, name, "default: the job name");
        pairs_ui(
            ui,
            &mut memory.texts.model_environment,
            &mut draft.model.environment,
            "Model environment, for all its jobs",
            2,
        );
        network_ui(ui, &mut draft.model.network);
    }
    ui.label("Input");
    let name = "ManifestFile: existing list of objects to use instead of the images above";
    text_ui(ui, &mut draft.manifest, name, "s3://bucket/list.json");
    address_problem_ui(ui, &draft.manifest);
    let compressions =
        [(Compression::None, "not compressed"), (Compression::Gzip, "Gzip: decompressed before sending")];
    choice_ui(ui, "CompressionType of the objects", &mut spec.input.compression, &compressions);
    ui.label("Instances");
    let name = "TransformAmiVersion: AMI of the instances";
    optional_text_ui(ui, &mut spec.resources.ami_version, name, "AWS default");
    ui.label("DataCaptureConfig: capture requests and predictions");
    let name = "DestinationS3Uri: S3 folder for captured data";
    text_ui(ui, &mut draft.capture_to, name, "default: nothing is captured");
    address_problem_ui(ui, &draft.capture_to);
    if !draft.capture_to.trim().is_empty() {
        let capture = spec.data_capture.get_or_insert_default();
        let name = "KmsKeyId: key for captured data";
        optional_text_ui(ui, &mut capture.kms_key, name, "AWS's own key");
        let text = "GenerateInferenceId: append an inference ID";
        checkbox_ui(ui, &mut capture.with_inference_id, text);
    }
    ui.label("ExperimentConfig: associates the job with an experiment");
    let mut experiment = spec.experiment.take().unwrap_or_default();
    for (text, name) in [
        (&mut experiment.experiment, "ExperimentName: existing experiment"),
        (&mut experiment.trial, "TrialName: existing trial"),
        (&mut experiment.trial_component, "TrialComponentDisplayName: display name of the trial component"),
        (&mut experiment.run, "RunName: experiment run"),
    ] {
        optional_text_ui(ui, text, name, "none");
    }
    spec.experiment = experiment.given();
}

fn filters_ui(ui: &mut Ui, processing: &mut DataProcessing) {
    let hint = "JSONPath; default: everything";
    optional_text_ui(ui, &mut processing.input_filter, "Input filter", hint);
    optional_text_ui(ui, &mut processing.output_filter, "Output filter", hint);
    let mut joins_input = processing.joins_input();
    checkbox_ui(ui, &mut joins_input, "Join each input with its prediction")
        .on_hover_text("Only for JSON or CSV inputs; images cannot be joined");
    processing.join_source = joins_input.then_some(JoinSource::Input);
}

/// A rehearsal uses only some images: to predict all of them, use the local model.
const MOST_REHEARSED: usize = 1000;

/// The longest command that is shown, in characters.
const LONGEST_LINE: usize = 2000;

/// The rehearsal: runs the same archive with some of the images on this computer before it costs money.
fn rehearsal_ui(ui: &mut Ui, state: &State, request: &mut RehearsalOptions, commands: &mut Commands) {
    let rehearsal = &state.remote.rehearsal;
    let model_from = state.remote.job_form.draft.model.from;
    ui.add_space(8.0);
    ui.label(strong("Rehearse on this computer"));
    ui.weak(match model_from {
        ModelFrom::SavedModel => {
            "Runs the archive's handler locally against your own TensorFlow Serving. A SavedModel requires \
             TensorFlow Serving, which Spotcheck does not include"
        }
        _ => {
            "Runs the same archive locally and compares its predictions for the first images with the local \
             model's"
        }
    });
    if matches!(model_from, ModelFrom::SavedModel | ModelFrom::Archive) {
        let name = match model_from {
            ModelFrom::SavedModel => "TensorFlow Serving address",
            _ => "TensorFlow Serving address, if the archive contains a SavedModel",
        };
        let hint = "http://127.0.0.1:8501/v1/models/model:predict";
        text_ui(ui, &mut request.tensorflow_serving, name, hint);
    }
    ui.horizontal_wrapped(|ui| {
        ui.label("Python");
        let field = TextEdit::singleline(&mut request.python).desired_width(150.0);
        ui.add(field).accessible_name("Python for the rehearsal");
        let images = number_field(&mut request.images).range(1..=MOST_REHEARSED).suffix(" images");
        let images = ui.add(images).accessible_name("Images to test");
        images.on_hover_text("Taken from the start of the image list");
        let missing = missing_for(model_from, request);
        let is_ready = !rehearsal.is_loading() && missing.is_none();
        let button = ui.add_enabled(is_ready, Button::new("Rehearse"));
        let button = match missing {
            Some(missing) => button.on_disabled_hover_text(missing),
            None => button,
        };
        if button.clicked() {
            commands.push(JobsCommand::Rehearse(RehearsalOptions {
                python: request.python.trim().to_owned(),
                images: request.images,
                tensorflow_serving: request.tensorflow_serving.trim().to_owned(),
            }));
        }
        if let Loadable::Loading(task) = rehearsal {
            ui.spinner();
            command_button_ui(ui, "Stop the rehearsal", commands, || Command::cancel(*task));
        }
    });
    rehearsal_result_ui(ui, rehearsal);
}

fn rehearsal_result_ui(ui: &mut Ui, rehearsal: &Loadable<RehearsalReport>) {
    match rehearsal {
        Loadable::Ready(report) => {
            let (sign, tone) = if report.is_well { ("✓ ", Tone::Hint) } else { ("", Tone::Warning) };
            banner_ui(ui, tone, &format!("{sign}{}", report.summary), |ui| {
                for note in &report.notes {
                    note_ui(ui, note);
                }
            });
        }
        Loadable::Failed(why) => message_ui(ui, Tone::Error, why.message()),
        Loadable::NotLoaded | Loadable::Loading(_) => {}
    }
}

/// What must be entered before a rehearsal can start.
fn missing_for(model_from: ModelFrom, request: &RehearsalOptions) -> Option<&'static str> {
    if request.python.trim().is_empty() {
        return Some("Enter the Python executable for the handler");
    }
    let needs_serving = model_from == ModelFrom::SavedModel;
    (needs_serving && request.tensorflow_serving.trim().is_empty())
        .then_some("Start TensorFlow Serving with this model and enter its address above")
}

fn commands_ui(ui: &mut Ui, check: &FormCheck<TransformPlan>, commands: &mut Commands) {
    ui.add_space(6.0);
    CollapsingHeader::new("AWS CLI commands").default_open(false).show(ui, |ui| {
        command_button_ui(ui, "Copy commands", commands, || Command::CopyCommand(check.commands.join("\n")));
        let height = ui.text_style_height(&TextStyle::Monospace);
        ScrollArea::both().id_salt("aws commands").max_height(220.0).show_rows(
            ui,
            height,
            check.commands.len(),
            |ui, rows| {
                for line in &check.commands[rows] {
                    let text = RichText::new(shortened(line, LONGEST_LINE)).monospace();
                    ui.add(Label::new(text).extend());
                }
            },
        );
    });
}
