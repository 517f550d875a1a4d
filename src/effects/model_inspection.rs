//! Looks into a model of the user's own and takes it into the library.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Delivery, Shared};
use crate::decode;
use crate::domain::{LabelSet, ModelCard, SampleUri};
use crate::inference::{Inspection, labels_of, runtime};
use crate::state::{Event, ImportDraft, ImportField, ImportId, ModelsEvent, RecogniseRequest, SourceId};
use crate::tasks::{ProgressUnit, TaskControl};
use crate::vision::preprocess;
use crate::vision::recognise::{Overrules, Recognition, preview};

/// The file that is being inspected, and the last result.
#[derive(Default)]
pub(super) struct ModelInspector {
    model: Arc<Mutex<Option<InspectedModel>>>,
}

struct InspectedModel {
    weights: PathBuf,
    inspection: Inspection,
    recognised: Option<(ImportId, Recognition)>,
}

impl ModelInspector {
    pub(super) fn recognise(&self, shared: &Arc<Shared>, request: RecogniseRequest) {
        let model = Arc::clone(&self.model);
        let import = request.import;
        let ended = move |result: Result<ImportDraft, String>| {
            Event::Models(ModelsEvent::Recognised { import, result: result.map(Box::new) })
        };
        let work = move |shared: &Arc<Shared>| {
            let mut model = model.lock();
            let result = recognise(shared, &mut model, &request);
            ended(result.map_err(|error| format!("{error:#}")))
        };
        shared.spawn_reporting("inspect a model", work, move |reason| ended(Err(reason)));
    }

    pub(super) fn add(&self, shared: &Arc<Shared>, import: ImportId) {
        let model = Arc::clone(&self.model);
        let ended = move |result| Event::Models(ModelsEvent::Added { import, result });
        let work = move |shared: &Arc<Shared>| {
            let model = model.lock();
            let result = add(shared, model.as_ref(), import);
            ended(result.map_err(|error| format!("{error:#}")))
        };
        shared.spawn_reporting("add a model", work, move |reason| ended(Err(reason)));
    }
}

fn recognise(
    shared: &Shared,
    model: &mut Option<InspectedModel>,
    request: &RecogniseRequest,
) -> anyhow::Result<ImportDraft> {
    let control = TaskControl::new(ProgressUnit::Bytes);
    let Some(_working) = shared.model_work.begin(&control) else {
        anyhow::bail!("the window is being closed");
    };
    let items: Vec<String> = request.overrules.iter().map(|(field, value)| format!("{field}={value}")).collect();
    let overrules = Overrules::parse(&items)?;
    let labels = request.labels.as_deref().map(read_labels).transpose()?;
    if model.as_ref().is_none_or(|known| known.weights != request.weights) {
        let runtime = runtime::ensure_loaded(&shared.dirs, request.runtime_library.as_deref(), &control)?;
        *model = Some(InspectedModel {
            weights: request.weights.clone(),
            inspection: Inspection::open(&runtime, &request.weights)?,
            recognised: None,
        });
    }
    let Some(model) = model else {
        anyhow::bail!("nothing was opened");
    };
    model.recognised = None;
    let recognition = model.inspection.recognise(labels.as_ref(), &overrules, &control)?;
    let mut draft = draft(&recognition);
    if let Some((source, uri)) = &request.image {
        draft.tensor = try_input(shared, request.import, &recognition.card, *source, uri)
            .unwrap_or_else(|error| vec![format!("No preview: {error:#}")]);
    }
    model.recognised = Some((request.import, recognition));
    Ok(draft)
}

fn read_labels(path: &Path) -> anyhow::Result<LabelSet> {
    use anyhow::Context as _;
    let text =
        std::fs::read_to_string(path).with_context(|| format!("Could not read the label file {}", path.display()))?;
    LabelSet::parse(&text).with_context(|| format!("Could not use the label file {}", path.display()))
}

/// Sends the exact tensor, turned back into an image, to the window; gives its shape and numbers.
fn try_input(
    shared: &Shared,
    import: ImportId,
    card: &ModelCard,
    source: SourceId,
    uri: &SampleUri,
) -> anyhow::Result<Vec<String>> {
    let source = shared.source(source).ok_or_else(|| anyhow::anyhow!("the folder has been closed"))?;
    let image = decode::decode(&source.read(uri)?, &shared.limits())?.image;
    let prepared = preprocess(&card.input, &image)?;
    let seen = preview(&card.input, &prepared.tensor)?;
    let mut lines = vec![format!("Shape {:?}, made from {}", prepared.tensor.shape, uri.file_name())];
    for (index, channel) in seen.channels.iter().enumerate() {
        lines.push(format!("Channel {index}: {:.3} to {:.3}, mean {:.3}", channel.min, channel.max, channel.mean));
    }
    shared.deliver(Delivery::ImportPreview { import, image: seen.image });
    Ok(lines)
}

fn draft(recognition: &Recognition) -> ImportDraft {
    let card = &recognition.card;
    let findings: Vec<ImportField> = recognition
        .findings
        .iter()
        .map(|finding| ImportField {
            field: finding.field.clone(),
            value: finding.value.clone(),
            basis: finding.basis.to_string(),
            because: finding.because.clone(),
        })
        .collect();
    let is_covered = |field: &str| {
        findings.iter().any(|finding| {
            let rest = field.strip_prefix(finding.field.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    };
    let mut other_fields = fields_of(card);
    other_fields.retain(|other| !is_covered(&other.field));
    ImportDraft {
        id: card.id.clone(),
        name: card.name.clone(),
        task: card.task.into_str().to_owned(),
        named_classes: labels_of(recognition).len(),
        findings,
        other_fields,
        ignored_outputs: recognition.ignored_outputs.clone(),
        tensor: Vec::new(),
    }
}

/// Every single value of the card by its path, except what is filled in when it is added.
fn fields_of(card: &ModelCard) -> Vec<ImportField> {
    let mut fields = Vec::new();
    if let Ok(serde_json::Value::Object(tables)) = serde_json::to_value(card) {
        for (key, value) in tables {
            if key != "file" && key != "assumed" {
                collect_fields(key, value, &mut fields);
            }
        }
    }
    fields
}

fn collect_fields(path: String, value: serde_json::Value, fields: &mut Vec<ImportField>) {
    match value {
        serde_json::Value::Object(table) if !table.is_empty() => {
            for (key, value) in table {
                collect_fields(format!("{path}.{key}"), value, fields);
            }
        }
        value => fields.push(ImportField {
            field: path,
            value: match value {
                serde_json::Value::String(text) => text,
                value => value.to_string(),
            },
            basis: String::new(),
            because: String::new(),
        }),
    }
}

fn add(shared: &Shared, model: Option<&InspectedModel>, import: ImportId) -> anyhow::Result<String> {
    let found = model.and_then(|model| {
        let (looked, recognition) = model.recognised.as_ref()?;
        (*looked == import).then_some((model, recognition))
    });
    let (model, recognition) = found.ok_or_else(|| anyhow::anyhow!("The model has changed; inspect it again"))?;
    let label_file = recognition.labels.as_ref().map(write_labels).transpose()?;
    let label_path = label_file.as_ref().map(tempfile::NamedTempFile::path);
    let model = shared.library.add(&model.weights, recognition.card.clone(), label_path)?;
    Ok(model.card.id)
}

/// A label file for the library to copy.
fn write_labels(labels: &LabelSet) -> anyhow::Result<tempfile::NamedTempFile> {
    let mut file = tempfile::NamedTempFile::new()?;
    for (id, name) in labels.iter() {
        writeln!(file, "{id}\t{name}")?;
    }
    Ok(file)
}
