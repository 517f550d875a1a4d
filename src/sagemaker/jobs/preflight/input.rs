//! Checks of a job's input.

use std::path::Path;

use super::requests::Content;
use super::{Checks, Service};
use crate::aws::upload::files_below;
use crate::aws::{Aws, ListRequest, ObjectInfo, S3};
use crate::domain::{S3Address, Sample, counted, human_bytes};
use crate::image::source::{NamedKind, SourceError, is_folder_marker, is_hidden_name, kind_of_name};
use crate::sagemaker::JobError;
use crate::sagemaker::error::unless_cancelled;
use crate::sagemaker::jobs::inputs::{Inputs, each_object};
use crate::sagemaker::spec::transform::{
    CheckGrade, CheckPoint, InputObjects, InputSurvey, KeySample, SplitType, TransformPlan,
};
use crate::tasks::{Cancelled, TaskControl};

/// The number of siblings of a prefix that are named.
const EXAMPLES: u16 = 5;
const TEXTS: [&str; 6] = [".json", ".jsonl", ".jsonlines", ".ndjson", ".csv", ".txt"];

/// Whether the input has any object; fast, for use before a model is packed.
///
/// # Errors
/// The task was canceled.
pub fn has_input(aws: &Aws, plan: &TransformPlan, control: &TaskControl) -> Result<bool, Cancelled> {
    if let Some(folder) = &plan.input_folder {
        control.set_step(format!("listing {}", folder.display()));
        return match files_below(folder, control) {
            Err(SourceError::Cancelled) => Err(Cancelled),
            found => Ok(found.is_ok_and(|found| !found.files.is_empty())),
        };
    }
    let InputObjects::Prefix(prefix) = &plan.spec.input.data_source.objects else {
        return Ok(true);
    };
    control.set_step("checking the input");
    let request = ListRequest::new(prefix);
    let listed = aws.s3(&plan.s3).list_page(&request, Some(control));
    let listed = unless_cancelled(listed)?;
    let is_input = |object: &ObjectInfo| !is_folder_marker(&object.key, object.size_bytes);
    Ok(listed.is_ok_and(|page| page.objects.iter().any(is_input)))
}

/// `None` if it could not be determined.
pub(super) fn check_input(
    checks: &mut Checks,
    s3: &S3,
    plan: &TransformPlan,
    control: &TaskControl,
) -> Result<Option<InputSurvey>, Cancelled> {
    let objects = &plan.spec.input.data_source.objects;
    control.set_step("listing the input");
    if let InputObjects::Prefix(prefix) = objects {
        check_prefix(checks, s3, prefix, CheckGrade::Problem, control)?;
    }
    let survey = match (&plan.input_folder, &plan.manifest) {
        (Some(folder), _) => survey_of_folder(folder, objects.address(), control),
        (None, Some(manifest)) if !plan.input_files.is_empty() => {
            let from = format!("Local files will be uploaded to {}", manifest.folder);
            Ok((survey_of_files(&plan.input_files), KeySample::default(), from))
        }
        (None, Some(manifest)) => Inputs::from_manifest(s3, manifest, control).map(|inputs| {
            let from = manifest.folder.to_string();
            (survey_of(&inputs), inputs.missing, from)
        }),
        (None, None) => {
            let survey = survey_of_objects(s3, objects, control);
            survey.map(|(survey, missing)| (survey, missing, objects.address().to_string()))
        }
    };
    let (survey, missing, from) = match unless_cancelled(survey)? {
        Ok(found) => found,
        Err(why) => {
            checks.failed(CheckPoint::Input, Service::S3, &why, "");
            return Ok(None);
        }
    };
    if missing.count > 0 {
        checks.problem(
            CheckPoint::Input,
            format!("{} of the manifest do not exist: {missing}", counted(missing.count, "object", "objects")),
            "Remove them from the manifest, or upload them",
        );
    } else if survey.objects == 0 {
        let place = plan.input_folder.as_ref();
        let place = place.map_or(from, |folder| folder.display().to_string());
        checks.problem(
            CheckPoint::Input,
            format!("No input below {place}"),
            match (&plan.input_folder, plan.spec.input.split) {
                (Some(folder), SplitType::Line) if folder.is_dir() => {
                    "From a folder, only images and TFRecord files are uploaded; choose the text file itself"
                }
                _ => "Check the spelling",
            },
        );
    } else {
        checks.ok(CheckPoint::Input, from);
    }
    if survey.objects > 0 {
        check_objects(checks, &survey, plan);
    }
    Ok(Some(survey))
}

/// SageMaker reads every key that begins with the prefix: `photos` also includes `photos-old/`. `others` is the grade of
/// a prefix that includes something else.
pub(crate) fn check_prefix(
    checks: &mut Checks,
    s3: &S3,
    prefix: &S3Address,
    others: CheckGrade,
    control: &TaskControl,
) -> Result<(), Cancelled> {
    if prefix.is_folder() {
        checks.ok(CheckPoint::Prefix, format!("{prefix} ends in a slash, so it matches nothing else"));
        return Ok(());
    }
    let request = ListRequest { by_folder: true, max_keys: Some(EXAMPLES + 1), ..ListRequest::new(prefix) };
    let listed = s3.list_page(&request, Some(control));
    let Ok(listed) = unless_cancelled(listed)? else {
        // Listing the input fails in the same way, and reports it.
        return Ok(());
    };
    let itself = prefix.as_folder().prefix;
    let folders = listed.folders.into_iter().filter(|folder| *folder != itself);
    let is_object = listed.objects.iter().any(|object| object.key == prefix.prefix);
    let objects = listed.objects.into_iter().map(|object| object.key);
    let siblings: Vec<String> = folders
        .chain(objects.filter(|key| *key != prefix.prefix))
        .map(|key| S3Address::new(&prefix.bucket, key).to_string())
        .take(usize::from(EXAMPLES))
        .collect();
    let advice = if is_object {
        "Send this object as a list of one, or put it into a folder of its own".to_owned()
    } else {
        format!("Write {} for only that folder", prefix.as_folder())
    };
    if siblings.is_empty() && is_object {
        let finding = format!("{prefix} is a single object, and no other name begins with its name");
        checks.ok(CheckPoint::Prefix, finding);
    } else if siblings.is_empty() {
        let finding = format!("{prefix} does not end in a slash, so later objects may also match it");
        checks.warning(CheckPoint::Prefix, finding, advice);
    } else {
        let siblings = siblings.join(", ");
        let finding = format!("{prefix} does not end in a slash, so the job would also read {siblings}");
        checks.add(CheckPoint::Prefix, others, finding, advice);
    }
    Ok(())
}

type Surveyed = (InputSurvey, KeySample, String);

fn survey_of_folder(folder: &Path, target: &S3Address, control: &TaskControl) -> Result<Surveyed, JobError> {
    let files = files_below(folder, control)
        .map_err(|error| JobError::from_source("Could not read the folder", folder, &error))?;
    let survey = survey_of_files(&files.files);
    let from = format!("{} will be uploaded to {target}", folder.display());
    Ok((survey, KeySample::default(), from))
}

fn survey_of_files(files: &[Sample]) -> InputSurvey {
    let mut survey = InputSurvey::default();
    for file in files {
        add(&mut survey, &file.name, file.size_bytes);
    }
    survey
}

/// Of millions of keys below a prefix, none are kept.
fn survey_of_objects(
    s3: &S3,
    objects: &InputObjects,
    control: &TaskControl,
) -> Result<(InputSurvey, KeySample), JobError> {
    let InputObjects::Prefix(prefix) = objects else {
        let inputs = Inputs::list(s3, objects, control)?;
        return Ok((survey_of(&inputs), inputs.missing));
    };
    let mut survey = InputSurvey::default();
    each_object(s3, prefix, control, |object| {
        if is_folder_marker(&object.key, object.size_bytes) {
            survey.folder_markers += 1;
        } else {
            add_object(&mut survey, prefix, &object.key, object.size_bytes);
        }
    })?;
    Ok((survey, KeySample::default()))
}

fn survey_of(inputs: &Inputs) -> InputSurvey {
    let mut survey = InputSurvey { folder_markers: inputs.markers.len() as u64, ..InputSurvey::default() };
    for object in &inputs.objects {
        add_object(&mut survey, &inputs.place, &object.key, object.size_bytes);
    }
    survey
}

fn add_object(survey: &mut InputSurvey, place: &S3Address, key: &str, size_bytes: u64) {
    add(survey, key, size_bytes);
    if is_hidden_name(key.strip_prefix(&place.prefix).unwrap_or(key)) {
        survey.hidden.add(key);
    }
}

fn add(survey: &mut InputSurvey, key: &str, size_bytes: u64) {
    survey.objects += 1;
    survey.bytes += size_bytes;
    if survey.largest.as_ref().is_none_or(|(_, largest)| size_bytes > *largest) {
        survey.largest = Some((key.to_owned(), size_bytes));
    }
    if size_bytes == 0 {
        survey.empty.add(key);
        return;
    }
    match kind_of_name(key) {
        NamedKind::Image => survey.images += 1,
        NamedKind::Records => survey.records += 1,
        NamedKind::Other if is_text(key) => survey.texts += 1,
        NamedKind::Other => survey.others.add(key),
    }
}

fn is_text(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    TEXTS.iter().any(|end| key.ends_with(end))
}

/// The result for the objects, in one line.
fn check_objects(checks: &mut Checks, survey: &InputSurvey, plan: &TransformPlan) {
    let largest = survey
        .largest
        .as_ref()
        .map_or_else(String::new, |(key, size)| format!(", the largest {}: {key}", human_bytes(*size)));
    let markers = match survey.folder_markers {
        0 => String::new(),
        count => format!("; {}, not counted", counted(count, "folder marker", "folder markers")),
    };
    let summary =
        format!("{}, {}{largest}{markers}", counted(survey.objects, "object", "objects"), human_bytes(survey.bytes));
    let odd = misplaced(survey);
    let whole = plan.inside.filter(|inside| inside.chosen < inside.all);
    let whole = whole.map(|inside| {
        format!(
            "{} chosen of the {} in these files, but files are sent as a whole",
            match inside.chosen {
                1 => "1 image is".to_owned(),
                chosen => format!("{chosen} images are"),
            },
            inside.all
        )
    });
    let mut advice = Vec::new();
    let hidden = hidden_text(survey);
    if hidden.is_some() {
        advice.push("Send only the listed images, as a list; outputs of others cannot be shown".to_owned());
    }
    if !odd.is_empty() {
        let meant = Content::from_survey(survey, &plan.spec).map_or("images", Content::words);
        advice.push(format!(
            "One object that the model cannot read makes the job fail. Send only the {meant}, as a list"
        ));
    }
    if whole.is_some() {
        advice.push("The others are also predicted and billed".to_owned());
    }
    let odd: Vec<String> = odd.into_iter().chain(hidden).chain(whole).collect();
    if odd.is_empty() {
        checks.ok(CheckPoint::Objects, summary);
    } else {
        let finding = format!("{summary}. {}", odd.join("; "));
        checks.warning(CheckPoint::Objects, finding, advice.join(". "));
    }
}

fn hidden_text(survey: &InputSurvey) -> Option<String> {
    let text = || {
        format!(
            "{} (part of the name begins with a dot), which Spotcheck does not list but the job sends to the model: \
             {}",
            counted(survey.hidden.count, "hidden object", "hidden objects"),
            survey.hidden
        )
    };
    (survey.hidden.count > 0).then(text)
}

fn misplaced(survey: &InputSurvey) -> Vec<String> {
    let mut odd = Vec::new();
    if survey.empty.count > 0 {
        odd.push(format!("{} without content: {}", counted(survey.empty.count, "object", "objects"), survey.empty));
    }
    let kinds = [survey.images, survey.records, survey.texts];
    let is_mixed = kinds.iter().filter(|count| **count > 0).count() > 1;
    if is_mixed {
        odd.push(format!(
            "{}, {} and {} are mixed, but a job sends all objects the same way",
            counted(survey.images, "image", "images"),
            counted(survey.records, "TFRecord file", "TFRecord files"),
            counted(survey.texts, "text file", "text files")
        ));
    }
    // If no name reveals its content, nothing is misplaced.
    if survey.others.count > 0 && kinds.iter().any(|count| *count > 0) {
        odd.push(format!(
            "{} with names other than images and TFRecord files: {}",
            counted(survey.others.count, "object", "objects"),
            survey.others
        ));
    }
    odd
}
