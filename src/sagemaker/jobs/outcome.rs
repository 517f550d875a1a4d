//! The images of a job without an output, and the reasons.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::iter;

use super::inputs::{InputListed, Inputs, Outputs};
use super::retries::{FoundRetries, FoundRetry};
use super::retry::RetryModel;
use super::{JobRecords, NamedFrom, OutputKeys, find_record};
use crate::aws::{Aws, AwsErrorKind, S3, SageMaker};
use crate::domain::S3Access;
use crate::sagemaker::JobError;
use crate::sagemaker::log::{LogKind, LogReader};
use crate::sagemaker::spec::transform::{
    FailedObject, JobOutcome, JobRecord, JobRetry, LogLine, SageMakerAccess, TransformJob, TransformStatus, Unexplained,
};
use crate::tasks::TaskControl;

/// The start of SageMaker's own lines, after the time.
const MARK: &str = "[sagemaker logs]: ";
/// The text before the HTTP status of the model's response.
const STATUS: [&str; 2] = ["ClientError: ", "Bad HTTP status received from algorithm: "];
/// The maximum length of a reason from the data log, in characters.
const LONGEST_REASON: usize = 500;
/// The number of other lines in the data log that are shown.
const MAX_NOTES: usize = 20;

/// Compares the inputs of a job with its outputs and those of its retries, and looks up missing ones in the data logs.
/// If a log cannot be read, the notes report it and the images have no reasons. Objects that were added after the job
/// had started do not count, and neither do folder markers.
///
/// # Errors
/// Inputs or outputs cannot be listed, or the task was canceled.
pub fn outcome(
    aws: &Aws,
    (sagemaker, s3): (&SageMakerAccess, &S3Access),
    job: &TransformJob,
    records: &JobRecords,
    control: &TaskControl,
) -> Result<JobOutcome, JobError> {
    let record = find_record(aws, records, sagemaker, &job.spec.job_name, control)?;
    let retries = FoundRetries::find(&aws.sagemaker(sagemaker), job, records, control)?;
    let record = record.as_ref();
    let Account { mut outcome, .. } = Account::read(aws, (sagemaker, s3), (job, record), &retries, control)?;
    outcome.notes.extend(retries.notes);
    if !outcome.failed.is_empty() && job.status.is_over() {
        match RetryModel::find(aws, (sagemaker, s3), &job.spec, record, control) {
            Ok(model) => outcome.retry_obstacle = model.obstacle(&job.spec.job_name),
            Err(JobError::Cancelled) => return Err(JobError::Cancelled),
            Err(error) => outcome.notes.push(error.to_string()),
        }
    }
    Ok(outcome)
}

/// The inputs of a job compared with its outputs.
pub struct Account {
    pub outcome: JobOutcome,
    /// Keys of outputs that a retry has written instead of the job.
    pub retried: Vec<String>,
    /// Keys of outputs that match none of the job's inputs.
    pub unexpected_outputs: BTreeSet<String>,
}

impl Account {
    /// # Errors
    /// As [`outcome`].
    pub fn read(
        aws: &Aws,
        (sagemaker, s3): (&SageMakerAccess, &S3Access),
        (job, record): (&TransformJob, Option<&JobRecord>),
        retries: &FoundRetries,
        control: &TaskControl,
    ) -> Result<Self, JobError> {
        let s3 = aws.s3(s3);
        let spec = &job.spec;
        control.set_step(format!("listing {}", spec.output.folder));
        let outputs = Outputs::list(&s3, &spec.output.folder, control)?;
        control.set_step(format!("listing {}", spec.input.data_source.objects.address()));
        let inputs = match Inputs::list(&s3, &spec.input.data_source.objects, control) {
            Err(error) if error.aws_kind() == Some(AwsErrorKind::NotFound) => {
                return Self::by_count(record, &outputs).ok_or(error);
            }
            inputs => inputs?,
        };
        let keys = inputs.output_keys(&spec.output.folder, &outputs);
        let mut missing = Missing::find(&inputs, &keys, &outputs);
        let unexpected_outputs = missing.unexpected_outputs(&keys, &outputs);
        let without = missing.keys.clone();
        let mut notes = gone_note(&inputs);
        let tried = missing.take_retried(&s3, retries, &mut notes, control)?;
        let sagemaker = aws.sagemaker(sagemaker);
        let asked = iter::once(spec.job_name.as_str()).chain(tried.in_vain.iter().copied());
        let mut reasons = missing.reasons(&sagemaker, asked, &mut notes, control)?;
        let unexplained = reasons.unexplained(job.status, without.len() < inputs.objects.len());
        let late = InputListed::by(job, record)
            .late_inputs(&inputs, |key| !missing.contains(key) || reasons.by_key.contains_key(key));
        notes.extend(late.note());
        notes.append(&mut reasons.notes);
        let failed = missing.keys.iter().filter(|key| !late.contains(key));
        let failed = failed.map(|key| {
            let reason = reasons.by_key.remove(*key);
            FailedObject {
                key: (*key).to_owned(),
                output_key: keys.output_of(key),
                is_refused: reason.as_ref().is_some_and(|reason| reason.is_refusal && !inputs.is_newer(key, reason)),
                reason: reason.map(|reason| reason.text),
                size_bytes: inputs.size_of(key),
            }
        });
        let outcome = JobOutcome {
            place: inputs.place.clone(),
            inputs: (inputs.objects.len() - late.len()) as u64,
            outputs: (inputs.objects.len() - without.len()) as u64,
            retries: tried.retries,
            failed: failed.collect(),
            unexplained,
            retry_obstacle: None,
            notes,
        };
        let retried = without.iter().filter(|key| !missing.contains(key));
        Ok(Self { outcome, retried: retried.filter_map(|key| keys.output_of(key)).collect(), unexpected_outputs })
    }

    /// The outcome of a job whose manifest was deleted, if it has as many outputs as inputs.
    fn by_count(record: Option<&JobRecord>, outputs: &Outputs) -> Option<Self> {
        let record = record?;
        let (count, place) = (record.input_objects?, record.manifest_folder.clone()?);
        (outputs.keys.len() as u64 == count).then(|| Self {
            outcome: JobOutcome {
                place,
                inputs: count,
                outputs: count,
                retries: Vec::new(),
                failed: Vec::new(),
                unexplained: Unexplained::NotInLog,
                retry_obstacle: None,
                notes: Vec::new(),
            },
            retried: Vec::new(),
            unexpected_outputs: BTreeSet::new(),
        })
    }
}

fn gone_note(inputs: &Inputs) -> Vec<String> {
    let note = || format!("{} objects of the manifest no longer exist: {}", inputs.missing.count, inputs.missing);
    (inputs.missing.count > 0).then(note).into_iter().collect()
}

/// Inputs without an output, and the fate of the outputs.
struct Missing<'i> {
    inputs: &'i Inputs,
    /// Full keys, in byte order.
    keys: Vec<&'i str>,
}

impl<'i> Missing<'i> {
    fn find(inputs: &'i Inputs, keys: &OutputKeys, outputs: &Outputs) -> Self {
        let written: HashSet<String> = outputs.keys.iter().filter_map(|key| keys.input_of(key)).collect();
        let all = inputs.objects.iter().map(|object| object.key.as_str());
        Self { inputs, keys: all.filter(|key| !written.contains(*key)).collect() }
    }

    fn contains(&self, key: &str) -> bool {
        self.keys.binary_search(&key).is_ok()
    }

    /// Outputs that match neither an input nor a folder marker.
    fn unexpected_outputs(&self, keys: &OutputKeys, outputs: &Outputs) -> BTreeSet<String> {
        let markers = self.inputs.markers.iter();
        let of_markers: HashSet<String> = markers.filter_map(|key| keys.output_of(key)).collect();
        let is_of_input = |output: &String| {
            let input = keys.input_of(output);
            input.is_some_and(|input| self.inputs.contains(&input)) || of_markers.contains(output)
        };
        let unexpected_outputs = outputs.keys.iter().filter(|output| !is_of_input(output));
        unexpected_outputs.cloned().collect()
    }

    /// The reasons in the data logs of these jobs: the first one and its retries.
    fn reasons<'j>(
        &self,
        sagemaker: &SageMaker,
        jobs: impl Iterator<Item = &'j str>,
        notes: &mut Vec<String>,
        control: &TaskControl,
    ) -> Result<Reasons, JobError> {
        let mut found = Reasons::default();
        if self.keys.is_empty() {
            return Ok(found);
        }
        control.set_step("reading the data log");
        for job_name in jobs {
            let mut log = LogReader::new(job_name, LogKind::Data);
            match log.read(sagemaker, control).map_err(JobError::from) {
                Ok(lines) => found.add(&lines, &self.inputs.place.bucket, &self.keys),
                Err(JobError::Cancelled) => return Err(JobError::Cancelled),
                Err(error) => {
                    notes.push(error.to_string());
                    found.are_unread = true;
                }
            }
        }
        Ok(found)
    }

    /// Removes the images that retries have predicted.
    fn take_retried<'r>(
        &mut self,
        s3: &S3,
        retries: &'r FoundRetries,
        notes: &mut Vec<String>,
        control: &TaskControl,
    ) -> Result<Tried<'r>, JobError> {
        let mut tried = Tried { retries: Vec::new(), in_vain: Vec::new() };
        for retry in &retries.retries {
            if self.keys.is_empty() {
                break;
            }
            let given = match RetriedImages::read(s3, retry, self.inputs, control) {
                Ok(given) => given,
                Err(JobError::Cancelled) => return Err(JobError::Cancelled),
                Err(error) => {
                    notes.push(format!("The outputs of retry {} were skipped: {error}", retry.spec.job_name));
                    continue;
                }
            };
            let before = self.keys.len();
            self.keys.retain(|key| !given.predicted.contains(*key));
            let runs = retry.status.is_some_and(|status| !status.is_over());
            let still = self.keys.iter().filter(|key| given.all.contains(**key)).count();
            let with_effect = JobRetry {
                job_name: retry.spec.job_name.clone(),
                predicted: (before - self.keys.len()) as u64,
                under_way: if runs { still as u64 } else { 0 },
            };
            if with_effect.predicted > 0 || with_effect.under_way > 0 {
                tried.retries.push(with_effect);
            }
            if still > 0 {
                tried.in_vain.push(&retry.spec.job_name);
            }
        }
        Ok(tried)
    }
}

/// The results of a job's retries.
struct Tried<'r> {
    /// Retries that predicted an image, or still run.
    retries: Vec<JobRetry>,
    /// The names of retries that received an image that still has no output.
    in_vain: Vec<&'r str>,
}

/// The images of a retry, as full keys.
struct RetriedImages {
    all: HashSet<String>,
    predicted: HashSet<String>,
}

impl RetriedImages {
    fn read(s3: &S3, retry: &FoundRetry, inputs: &Inputs, control: &TaskControl) -> Result<Self, JobError> {
        let named_from = NamedFrom::from_job(s3, &retry.spec, retry.record.as_ref(), control)?;
        let place = named_from.place();
        let mut keys: Vec<&str> = match &named_from {
            NamedFrom::Manifest { keys: Some(keys), .. } => keys.iter().map(String::as_str).collect(),
            // Its inputs are no longer known: some of the first job's.
            _ => inputs.objects.iter().map(|object| object.key.as_str()).collect(),
        };
        if place.bucket != inputs.place.bucket {
            keys.clear();
        }
        let outputs = Outputs::list(s3, &retry.spec.output.folder, control)?;
        let written = outputs.keys.iter().map(String::as_str);
        let folder = &retry.spec.output.folder;
        let rule = OutputKeys::confirmed(&place.prefix, &keys, folder, written);
        let all: HashSet<String> = keys.into_iter().map(str::to_owned).collect();
        let predicted = outputs.keys.iter().filter_map(|key| rule.input_of(key));
        Ok(Self { predicted: predicted.filter(|key| all.contains(key)).collect(), all })
    }
}

/// The reasons in the data log.
#[derive(Debug, Default, PartialEq, Eq)]
struct Reasons {
    by_key: BTreeMap<String, Reason>,
    /// Lines about something else.
    notes: Vec<String>,
    /// Whether a log could not be read.
    are_unread: bool,
}

/// Why an image has no output.
#[derive(Debug, PartialEq, Eq)]
struct Reason {
    text: String,
    /// The time of the last line about it, in milliseconds since 1970-01-01 UTC.
    at_ms: i64,
    /// Whether the model refused the content.
    is_refusal: bool,
}

impl Reasons {
    /// What is known about images that no line names.
    fn unexplained(&self, status: TransformStatus, has_outputs: bool) -> Unexplained {
        match status {
            TransformStatus::Failed if !has_outputs && self.by_key.is_empty() => Unexplained::JobFailed,
            _ if self.are_unread => Unexplained::LogUnread,
            TransformStatus::Stopping | TransformStatus::Stopped => Unexplained::NotProcessed,
            _ => Unexplained::NotInLog,
        }
    }

    /// Lines look like `2026-11-21T14:05:09.123:[sagemaker logs]: bucket/photos/a.jpg: ClientError: 400`; an object can
    /// have several. `missing` is in byte order. Of several logs, the newest lines about an object win.
    fn add(&mut self, lines: &[LogLine], bucket: &str, missing: &[&str]) {
        let mut by_key: BTreeMap<&str, (Vec<&str>, i64)> = BTreeMap::new();
        for line in lines {
            for text in line.message.lines() {
                let text = text.split_once(MARK).map_or(text, |(_, text)| text).trim();
                match object_of(text, bucket, missing) {
                    Some((key, reason)) => {
                        let (reasons, at_ms) = by_key.entry(key).or_default();
                        reasons.push(reason);
                        *at_ms = line.at_ms.max(*at_ms);
                    }
                    // The start options say nothing about the failure.
                    None if text.is_empty() || text.starts_with("MaxConcurrentTransforms=") => {}
                    None if self.notes.len() < MAX_NOTES => self.notes.push(text.to_owned()),
                    None => {}
                }
            }
        }
        for (key, (reasons, at_ms)) in by_key {
            if self.by_key.get(key).is_none_or(|known| known.at_ms < at_ms) {
                self.by_key.insert(key.to_owned(), Reason::from_lines(&reasons, at_ms));
            }
        }
    }
}

impl Reason {
    fn from_lines(lines: &[&str], at_ms: i64) -> Self {
        let is_refusal = lines.iter().any(|line| is_refusal(line));
        Self { text: reason_text(lines), at_ms, is_refusal }
    }
}

impl Inputs {
    /// Whether the object was replaced after this reason was logged.
    fn is_newer(&self, key: &str, reason: &Reason) -> bool {
        self.modified_ms(key).is_some_and(|modified_ms| modified_ms > reason.at_ms)
    }
}

/// The object of a line, and the message. A key can itself contain `: `.
fn object_of<'t>(text: &'t str, bucket: &str, missing: &[&'t str]) -> Option<(&'t str, &'t str)> {
    let rest = text.strip_prefix(bucket)?.strip_prefix('/')?;
    let is_missing = |key: &str| missing.binary_search(&key).is_ok();
    rest.match_indices(':').rev().find_map(|(colon, _)| {
        let key = &rest[..colon];
        is_missing(key).then(|| (key, rest[colon + 1..].trim()))
    })
}

/// The lines about one object as a single sentence.
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
    let text = if parts.iter().any(|part| is_size_error(part)) {
        format!("{text}: its request exceeds MaxPayloadInMB; resend it with a larger value")
    } else {
        text
    };
    if text.chars().count() > LONGEST_REASON {
        let cut: String = text.chars().take(LONGEST_REASON).collect();
        return format!("{cut}…");
    }
    text
}

/// Whether the response is 400 to 499: the model does not accept the content. False if it was too slow or too busy, or
/// the request too large.
fn is_refusal(line: &str) -> bool {
    let status = STATUS.iter().find_map(|words| line.strip_prefix(words));
    let status = status.and_then(|status| status.get(..3)?.parse::<u16>().ok());
    status.is_some_and(|status| matches!(status, 400..500) && ![408, 413, 429].contains(&status))
}

/// SageMaker's message for a body that it does not send, or the status of a container or server that rejects its size.
fn is_size_error(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    line.starts_with("clienterror: 413")
        || ["too much data for max payload size", "request entity too large"].iter().any(|words| line.contains(words))
}

/// The response of our handler for an unreadable image: `{"status":"failed","error":"…"}`.
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
        let line = |text: &&str| LogLine { at_ms: 0, stream: "i-1/data-log".to_owned(), message: (*text).to_owned() };
        texts.iter().map(line).collect()
    }

    #[test]
    fn data_log_names_objects_and_reasons() {
        let log = lines(&[
            "2026-11-21T14:05:09.123:[sagemaker logs]: MaxConcurrentTransforms=4, MaxPayloadInMB=6, \
            BatchStrategy=SINGLE_RECORD",
            "2026-11-21T14:05:09.123:[sagemaker logs]: bucket/photos/bad.jpg: ClientError: 400",
            "2026-11-21T14:05:09.123:[sagemaker logs]: bucket/photos/bad.jpg: ",
            "2026-11-21T14:05:09.123:[sagemaker logs]: bucket/photos/bad.jpg: Message:",
            concat!(
                "2026-11-21T14:05:09.123:[sagemaker logs]: bucket/photos/bad.jpg: ",
                r#"{"status":"failed","error":"not an image"}"#
            ),
            "2026-11-21T14:05:09.123:[sagemaker logs]: bucket/photos/a: b.jpg: ClientError: 413",
            "2026-11-21T14:05:09.123:[sagemaker logs]: bucket/photos/a: b.jpg: <!DOCTYPE HTML>",
            "2026-11-21T14:05:09.123:[sagemaker logs]: bucket/photos/large.jpg: Too much data for max payload size",
            "2026-11-21T14:05:09.123:[sagemaker logs]: bucket/photos/well.jpg: a retry",
            "Unable to start the container",
        ]);
        let missing = ["photos/a: b.jpg", "photos/bad.jpg", "photos/large.jpg"];
        let mut found = Reasons::default();
        found.add(&log, "bucket", &missing);
        let expected = [
            (
                "photos/a: b.jpg",
                "ClientError: 413: its request exceeds MaxPayloadInMB; resend it with a larger value",
                false,
            ),
            ("photos/bad.jpg", "ClientError: 400: not an image", true),
            (
                "photos/large.jpg",
                "Too much data for max payload size: its request exceeds MaxPayloadInMB; resend it with a larger \
                value",
                false,
            ),
        ];
        let expected = expected
            .map(|(key, text, is_refusal)| (key.to_owned(), Reason { text: text.to_owned(), at_ms: 0, is_refusal }));
        assert_eq!(found.by_key, BTreeMap::from(expected));
        assert_eq!(found.notes, ["bucket/photos/well.jpg: a retry", "Unable to start the container"]);
    }

    #[test]
    fn only_rejected_content_is_a_refusal() {
        for (line, expected) in [
            ("ClientError: 400", true),
            ("ClientError: 415", true),
            ("Bad HTTP status received from algorithm: 422", true),
            ("ClientError: 408", false),
            ("ClientError: 413", false),
            ("ClientError: 429", false),
            ("Bad HTTP status received from algorithm: 500", false),
            ("ClientError: NoSuchKey", false),
            ("Too much data for max payload size", false),
            ("Unable to get response from algorithm", false),
        ] {
            assert_eq!(is_refusal(line), expected, "{line}");
        }
    }

    #[test]
    fn newest_log_lines_of_an_object_win() {
        let line = |at_ms: i64, text: &str| LogLine { at_ms, ..lines(&[text]).remove(0) };
        let first = [line(10, "bucket/a: ClientError: 400"), line(11, "bucket/b: ClientError: 400")];
        let retry = [line(20, "bucket/a: Bad HTTP status received from algorithm: 503")];
        // A retry is not always read after its job.
        for logs in [[&first[..], &retry[..]], [&retry[..], &first[..]]] {
            let mut found = Reasons::default();
            for log in logs {
                found.add(log, "bucket", &["a", "b"]);
            }
            let refused = ["a", "b"].map(|key| found.by_key[key].is_refusal);
            assert_eq!(refused, [false, true]);
        }
    }

    #[test]
    fn hostile_lines_are_shortened() {
        let long = format!("bucket/a: {}", "🐈".repeat(5000));
        let log = lines(&["", ":::", "bucket/", "bucket/a", &long, "bucket/a: ClientError: 4é"]);
        let mut found = Reasons::default();
        found.add(&log, "bucket", &["a"]);
        assert_eq!(found.by_key["a"].text.chars().count(), LONGEST_REASON + 1);
        found.add(&lines(&["noise"; 1000]), "bucket", &[]);
        assert_eq!(found.notes.len(), MAX_NOTES);
    }
}
