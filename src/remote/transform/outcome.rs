//! What became of the images of a job: which have no output, and why.

use std::collections::{BTreeMap, HashSet};

use super::inputs::inputs_and_outputs;
use super::latecomers::InputListed;
use super::{JobError, LogKind, LogReader};
use crate::aws::Aws;
use crate::domain::{
    FailedObject, JobOutcome, JobRecord, LogLine, S3Access, SageMakerAccess, TransformJob,
};
use crate::tasks::TaskControl;

/// How SageMaker's own lines begin, behind the time.
const MARK: &str = "[sagemaker logs]: ";
/// Of what the data-log says of one object, in characters.
const LONGEST_REASON: usize = 500;
/// Lines of the data-log that concern no object and are shown.
const MAX_NOTES: usize = 20;

/// Holds the inputs of a job against its outputs, and asks the data-log about those that have none. Where the log cannot be read, the
/// notes say so and the images are told without reasons. What came below the prefix after the job had begun is neither.
///
/// # Errors
/// Inputs or outputs cannot be listed, or the task was cancelled.
pub fn outcome(
    aws: &Aws,
    sagemaker: &SageMakerAccess,
    s3: &S3Access,
    job: &TransformJob,
    record: Option<&JobRecord>,
    control: &TaskControl,
) -> Result<JobOutcome, JobError> {
    let spec = &job.spec;
    let (inputs, outputs) = inputs_and_outputs(&aws.s3(s3), spec, control)?;
    let keys = inputs.output_keys(&spec.output.folder, &outputs);
    let written: HashSet<String> = outputs
        .keys
        .iter()
        .filter_map(|key| keys.input_of(key))
        .collect();
    let all = inputs.objects.iter().map(|object| object.key.as_str());
    let missing: Vec<&str> = all.filter(|key| !written.contains(*key)).collect();
    let mut outcome = JobOutcome {
        place: inputs.place.clone(),
        inputs: 0,
        outputs: (inputs.objects.len() - missing.len()) as u64,
        failed: Vec::new(),
        notes: Vec::new(),
    };
    if inputs.missing.count > 0 {
        outcome.notes.push(format!(
            "{} objects of the manifest are not there any more: {}",
            inputs.missing.count, inputs.missing
        ));
    }
    let mut reasons = Reasons::default();
    if !missing.is_empty() {
        control.set_step("reading the data-log");
        let mut log = LogReader::new(&spec.job_name, LogKind::Data);
        match log.read(&aws.sagemaker(sagemaker), control) {
            Ok(lines) => reasons = Reasons::of(&lines, &inputs.place.bucket, &missing),
            Err(JobError::Cancelled) => return Err(JobError::Cancelled),
            Err(error) => outcome.notes.push(error.to_string()),
        }
    }
    let late = InputListed::by(job, record).latecomers(&inputs, |key| {
        written.contains(key) || reasons.by_key.contains_key(key)
    });
    outcome.inputs = (inputs.objects.len() - late.len()) as u64;
    outcome.notes.extend(late.note());
    outcome.notes.append(&mut reasons.notes);
    outcome.failed = missing
        .into_iter()
        .filter(|key| !late.contains(key))
        .map(|key| FailedObject {
            key: key.to_owned(),
            reason: reasons.by_key.remove(key),
            size_bytes: inputs.size_of(key),
        })
        .collect();
    Ok(outcome)
}

/// What the data-log says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Reasons {
    by_key: BTreeMap<String, String>,
    /// Lines about something else.
    notes: Vec<String>,
}

impl Reasons {
    /// Lines look like `2026-11-21T14:05:09.123:[sagemaker logs]: bucket/photos/a.jpg: ClientError: 400`; one object may have several.
    /// `missing` is in the order of the bytes.
    fn of(lines: &[LogLine], bucket: &str, missing: &[&str]) -> Self {
        let mut said: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let mut found = Self::default();
        for line in lines {
            for text in line.message.lines() {
                let text = text.split_once(MARK).map_or(text, |(_, text)| text).trim();
                match object_of(text, bucket, missing) {
                    Some((key, reason)) => said.entry(key).or_default().push(reason),
                    // How it was started says nothing of what went wrong.
                    None if text.is_empty() || text.starts_with("MaxConcurrentTransforms=") => {}
                    None if found.notes.len() < MAX_NOTES => found.notes.push(text.to_owned()),
                    None => {}
                }
            }
        }
        for (key, reasons) in said {
            found.by_key.insert(key.to_owned(), reason_text(&reasons));
        }
        found
    }
}

/// The object that a line is about, and what it says. A key may itself hold `: `.
fn object_of<'t>(text: &'t str, bucket: &str, missing: &[&'t str]) -> Option<(&'t str, &'t str)> {
    let rest = text.strip_prefix(bucket)?.strip_prefix('/')?;
    let is_missing = |key: &str| missing.binary_search(&key).is_ok();
    rest.match_indices(':').rev().find_map(|(colon, _)| {
        let key = &rest[..colon];
        is_missing(key).then(|| (key, rest[colon + 1..].trim()))
    })
}

/// Lines about one object as one sentence.
fn reason_text(lines: &[&str]) -> String {
    let mut parts: Vec<String> = Vec::new();
    for line in lines {
        let line = line.strip_prefix("Message:").unwrap_or(line).trim();
        let part = handler_error(line).unwrap_or_else(|| line.to_owned());
        let is_markup = part.starts_with('<');
        if !part.is_empty() && !is_markup && !parts.contains(&part) {
            parts.push(part);
        }
    }
    let text = parts.join(": ");
    let text = if parts.iter().any(|part| says_too_large(part)) {
        format!(
            "{text}: a request of it is larger than MaxPayloadInMB allows; send it again with a larger one"
        )
    } else {
        text
    };
    if text.chars().count() > LONGEST_REASON {
        let cut: String = text.chars().take(LONGEST_REASON).collect();
        return format!("{cut}…");
    }
    text
}

/// SageMaker's own words for a body that it does not send, and the status of a container or of a server before it that does not take it.
fn says_too_large(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    line.starts_with("clienterror: 413")
        || [
            "too much data for max payload size",
            "request entity too large",
        ]
        .iter()
        .any(|words| line.contains(words))
}

/// What our handler answers where it cannot read an image: `{"status":"failed","error":"…"}`.
fn handler_error(line: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Failed {
        error: String,
    }
    let failed: Failed = serde_json::from_str(line).ok()?;
    Some(failed.error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(texts: &[&str]) -> Vec<LogLine> {
        let line = |text: &&str| LogLine {
            at_ms: 0,
            stream: "i-1/data-log".to_owned(),
            message: (*text).to_owned(),
        };
        texts.iter().map(line).collect()
    }

    #[test]
    fn the_data_log_names_objects_and_reasons() {
        let log = lines(&[
            "2026-11-21T14:05:09.123:[sagemaker logs]: MaxConcurrentTransforms=4, MaxPayloadInMB=6, BatchStrategy=SINGLE_RECORD",
            "2026-11-21T14:05:09.123:[sagemaker logs]: bucket/photos/bad.jpg: ClientError: 400",
            "2026-11-21T14:05:09.123:[sagemaker logs]: bucket/photos/bad.jpg: ",
            "2026-11-21T14:05:09.123:[sagemaker logs]: bucket/photos/bad.jpg: Message:",
            r#"2026-11-21T14:05:09.123:[sagemaker logs]: bucket/photos/bad.jpg: {"status":"failed","error":"it is no image"}"#,
            "2026-11-21T14:05:09.123:[sagemaker logs]: bucket/photos/a: b.jpg: ClientError: 413",
            "2026-11-21T14:05:09.123:[sagemaker logs]: bucket/photos/a: b.jpg: <!DOCTYPE HTML>",
            "2026-11-21T14:05:09.123:[sagemaker logs]: bucket/photos/large.jpg: Too much data for max payload size",
            "2026-11-21T14:05:09.123:[sagemaker logs]: bucket/photos/well.jpg: a retry",
            "Unable to start the container",
        ]);
        let missing = ["photos/a: b.jpg", "photos/bad.jpg", "photos/large.jpg"];
        let found = Reasons::of(&log, "bucket", &missing);
        let expected = [
            (
                "photos/a: b.jpg",
                "ClientError: 413: a request of it is larger than MaxPayloadInMB allows; send it again with a larger one",
            ),
            ("photos/bad.jpg", "ClientError: 400: it is no image"),
            (
                "photos/large.jpg",
                "Too much data for max payload size: a request of it is larger than MaxPayloadInMB allows; send it again with a larger one",
            ),
        ];
        let expected = expected.map(|(key, reason)| (key.to_owned(), reason.to_owned()));
        assert_eq!(found.by_key, BTreeMap::from(expected));
        assert_eq!(
            found.notes,
            [
                "bucket/photos/well.jpg: a retry",
                "Unable to start the container"
            ]
        );
    }

    #[test]
    fn hostile_lines_stay_short_and_do_no_harm() {
        let long = format!("bucket/a: {}", "🐈".repeat(5000));
        let log = lines(&["", ":::", "bucket/", "bucket/a", &long]);
        let found = Reasons::of(&log, "bucket", &["a"]);
        assert_eq!(found.by_key["a"].chars().count(), LONGEST_REASON + 1);
        let many = vec!["noise"; 1000];
        assert_eq!(
            Reasons::of(&lines(&many), "bucket", &[]).notes.len(),
            MAX_NOTES
        );
    }
}
