//! Watches a job: its phase, outputs, cost and log.
//!
//! All state is read from SageMaker, S3 and CloudWatch each time, so nothing is lost when this program or machine
//! sleeps or restarts, and jobs from other machines can also be watched.

use std::time::{Duration, Instant};

use super::inputs::{InputListed, Inputs, Outputs};
use super::{JobRecords, OutputKeys};
use crate::aws::{Aws, AwsErrorKind, S3, SageMaker};
use crate::domain::{S3Access, S3Address};
use crate::sagemaker::JobError;
use crate::sagemaker::Poll;
use crate::sagemaker::log::{LogKind, LogTail};
use crate::sagemaker::spec::transform::{
    InputObjects, JobKind, JobPhase, JobProgress, JobRecord, JobSpec, PriceTable, SageMakerAccess, TransformJob,
    TransformSpec, TransformStatus, cost_usd,
};
use crate::tasks::{Counted, TaskControl, now_ms};

/// The text of a request in a container's log.
const REQUEST: &str = "POST /invocations";

/// The wait before the next poll: short after a change, then longer and longer.
const FIRST_WAIT: Duration = Duration::from_secs(2);
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// The longest wait after SageMaker or S3 was unreachable.
const LONGEST_TROUBLE_WAIT: Duration = Duration::from_mins(1);
/// The maximum fraction of the time that is spent on polling.
const LOOKING_SHARE: u32 = 10;
/// Outputs per listing request. Each listing starts over, because outputs arrive in any order. The limit is one request
/// per second, which for an hour of watching costs at most two cents.
const PAGE: u64 = 1000;
const PAGE_PERIOD_MS: i64 = 1000;

/// A job of any kind to poll: access, log, and prices for its cost.
pub struct PolledJob {
    pub(crate) sagemaker: SageMaker,
    pub(crate) s3: S3,
    pub(crate) name: String,
    pub(crate) log: LogTail,
    usd_per_hour: Option<f64>,
    prices: PriceTable,
}

impl PolledJob {
    /// Sends no request yet. The price is the given one, or else that of the record, or of the table.
    pub fn new<S: JobSpec>(
        aws: &Aws,
        (sagemaker, s3): (&SageMakerAccess, &S3Access),
        name: &str,
        record: Option<&JobRecord<S>>,
        (usd_per_hour, prices): (Option<f64>, PriceTable),
    ) -> Self {
        let log = match S::KIND {
            JobKind::Transform => LogKind::Container,
            JobKind::Training => LogKind::Training,
        };
        Self {
            sagemaker: aws.sagemaker(sagemaker),
            s3: aws.s3(s3),
            name: name.to_owned(),
            log: LogTail::new(name, log),
            usd_per_hour: usd_per_hour.or_else(|| record?.usd_per_hour),
            prices,
        }
    }

    /// The cost of these instances; `None` if their price or time is unknown.
    pub(crate) fn cost_usd(
        &self,
        (instance_type, count): (&str, u32),
        billed_s: Option<f64>,
        control: &TaskControl,
    ) -> Result<Option<f64>, JobError> {
        let region = self.sagemaker.region(control)?;
        let of_table = self.prices.find(instance_type, Some(&region)).map(|price| price.usd_per_hour);
        let price = self.usd_per_hour.or(of_table);
        Ok(price.zip(billed_s).map(|(price, billed_s)| cost_usd(price, count, billed_s)))
    }
}

/// Polls a Batch Transform job.
pub struct Watch {
    job: PolledJob,
    record: Option<JobRecord>,
    /// Listed once; `None` until that succeeded.
    inputs: Option<Inputs>,
    /// The outputs of the last listing.
    counted: Option<OutputCount>,
    has_seen_request: bool,
}

impl Watch {
    pub fn new(job: PolledJob, record: Option<JobRecord>) -> Self {
        Self { job, record, inputs: None, counted: None, has_seen_request: false }
    }

    /// The current state of the job, whose outputs and rate are also reported to `control`. What cannot be determined
    /// beyond its status is in the notes.
    ///
    /// # Errors
    /// SageMaker does not return the job, or the task was canceled.
    pub fn poll(&mut self, control: &TaskControl) -> Result<JobProgress, JobError> {
        let job = self.job.sagemaker.describe_job::<TransformSpec>(&self.job.name, control)?;
        let mut notes = Vec::new();
        let (outputs, uncounted) = match self.count_outputs(&job, &mut notes, control) {
            Ok(outputs) => (Some(outputs), None),
            Err(JobError::Cancelled) => return Err(JobError::Cancelled),
            // The final report about a job never contains an old count.
            Err(error) if job.status.is_over() => (None, Some(error.to_string())),
            Err(error) => (self.counted.clone(), Some(error.to_string())),
        };
        // A container may log before SageMaker reports the start, or without one.
        let log_tail = self.job.log.read(&self.job.sagemaker, &mut notes, control)?;
        self.has_seen_request |= log_tail.iter().any(|line| line.message.contains(REQUEST));
        notes.extend(outputs.as_ref().and_then(|found| found.note.clone()));
        let of_job = outputs.as_ref().and_then(|found| found.inputs);
        let listed = self.inputs.as_ref().map(|inputs| inputs.objects.len() as u64);
        let of_record = self.record.as_ref().and_then(|record| record.input_objects);
        let seen_at_ms = now_ms();
        let billed_s = billed_s(job.started_ms, job.ended_ms, seen_at_ms);
        let instances = job.spec.resources.instances();
        let seen = JobProgress {
            phase: phase(&job, outputs.as_ref().is_some_and(|found| found.count > 0) || self.has_seen_request),
            inputs: of_job.or(listed).or(of_record),
            outputs: outputs.as_ref().map(|found| found.count),
            counted_at_ms: outputs.as_ref().map(|found| found.at_ms),
            outputs_per_s: outputs.as_ref().and_then(|found| found.per_s),
            billed_s,
            cost_usd: self.job.cost_usd(instances, billed_s, control)?,
            log_tail,
            uncounted,
            notes,
            images_in: self.images_in(&job),
            seen_at_ms,
            job,
        };
        show_progress(control, &seen);
        Ok(seen)
    }

    fn images_in(&self, job: &TransformJob) -> Option<S3Address> {
        let of_record = || self.record.as_ref()?.manifest_folder.clone();
        match (&self.inputs, &job.spec.input.data_source.objects) {
            (Some(inputs), _) => Some(inputs.place.clone()),
            (None, InputObjects::Prefix(prefix)) => Some(prefix.clone()),
            (None, InputObjects::Manifest(_)) => of_record(),
        }
    }

    fn count_outputs(
        &mut self,
        job: &TransformJob,
        notes: &mut Vec<String>,
        control: &TaskControl,
    ) -> Result<OutputCount, JobError> {
        if self.inputs.is_none() {
            match Inputs::list(&self.job.s3, &job.spec.input.data_source.objects, control) {
                Ok(inputs) => self.inputs = Some(inputs),
                Err(JobError::Cancelled) => return Err(JobError::Cancelled),
                Err(error) if error.aws_kind().is_some_and(AwsErrorKind::concerns_everything) => return Err(error),
                Err(error) => notes.push(error.to_string()),
            }
        }
        let is_new_enough = |counted: &OutputCount| !job.status.is_over() && counted.is_new_enough(now_ms());
        if let Some(counted) = self.counted.clone().filter(is_new_enough) {
            return Ok(counted);
        }
        let outputs = Outputs::list(&self.job.s3, &job.spec.output.folder, control)?;
        let listed = InputListed::by(job, self.record.as_ref());
        let counted = OutputCount::new(self.inputs.as_ref(), listed, job, &outputs, now_ms());
        self.counted = Some(counted.clone());
        Ok(counted)
    }
}

/// What a poll found, for whoever waits for the end of a job.
#[derive(Debug, Clone, Copy)]
pub struct Glance<'p> {
    pub status: TransformStatus,
    pub phase: &'p str,
    /// `None` if no price is known.
    pub cost_usd: Option<f64>,
    pub detail: Option<&'p str>,
    /// Whether something could not be determined, so the next poll waits longer.
    pub has_trouble: bool,
}

/// The result of polling a job.
pub trait Followed {
    fn glance(&self) -> Glance<'_>;
}

impl Followed for JobProgress {
    fn glance(&self) -> Glance<'_> {
        Glance {
            status: self.job.status,
            phase: self.phase.into_str(),
            cost_usd: self.cost_usd,
            detail: self.uncounted.as_deref(),
            has_trouble: self.uncounted.is_some(),
        }
    }
}

/// Polls until the job ends, reporting each result to `see`. Keeps waiting through lost networks, sleep and overloaded
/// servers. Reloads expired credentials once.
///
/// # Errors
/// An error that waiting cannot fix, or the task was canceled.
pub fn follow<P: Followed>(
    mut poll: impl FnMut() -> Result<P, JobError>,
    control: &TaskControl,
    mut see: impl FnMut(Poll<'_, P>),
) -> Result<P, JobError> {
    let mut interval = PollInterval::default();
    let mut are_reloaded = false;
    loop {
        let begun = Instant::now();
        let looked = poll();
        let have_expired = looked.as_ref().is_err_and(has_expired);
        if have_expired && !are_reloaded {
            are_reloaded = true;
            continue;
        }
        are_reloaded = have_expired;
        let wait = match looked {
            Ok(progress) => {
                let Glance { status, phase, has_trouble, .. } = progress.glance();
                if status.is_over() {
                    return Ok(progress);
                }
                see(Poll::Seen(&progress));
                if has_trouble { interval.after_trouble() } else { interval.after(phase, status, begun.elapsed()) }
            }
            Err(error) if is_transient(&error) => {
                let again_in = interval.after_trouble();
                see(Poll::Trouble { why: &error.to_string(), again_in });
                again_in
            }
            Err(error) => return Err(error),
        };
        control.sleep(wait)?;
    }
}

/// Between two counts nothing is known, so the rate of the last count is shown.
fn show_progress(control: &TaskControl, seen: &JobProgress) {
    control.set_total(seen.inputs);
    if let Some(outputs) = seen.outputs {
        let counted = Counted { per_s: seen.outputs_per_s, age: seen.count_age(seen.seen_at_ms).unwrap_or_default() };
        control.set_counted(outputs, counted);
    }
}

/// The record of a job that was started here, by its name, in the region of `sagemaker`.
///
/// # Errors
/// No region is configured, or the record cannot be read.
pub fn find_record<S: JobSpec>(
    aws: &Aws,
    records: &JobRecords<S>,
    sagemaker: &SageMakerAccess,
    job_name: &str,
    control: &TaskControl,
) -> Result<Option<JobRecord<S>>, JobError> {
    let region = aws.sagemaker(sagemaker).region(control)?;
    Ok(records.find(job_name, &region)?)
}

/// The outputs of a job at one moment.
#[derive(Debug, Clone)]
struct OutputCount {
    count: u64,
    /// The number of listed outputs, including those without an input.
    listed: u64,
    /// The number of the job's input objects; `None` if they could not be listed.
    inputs: Option<u64>,
    per_s: Option<f64>,
    at_ms: i64,
    /// A note about what is not counted.
    note: Option<String>,
}

impl OutputCount {
    /// Whether a listing is recent enough for the next poll: the more outputs, the less often they are listed.
    fn is_new_enough(&self, now_ms: i64) -> bool {
        let pages = i64::try_from(self.listed / PAGE).unwrap_or(i64::MAX);
        let period_ms = pages.saturating_mul(PAGE_PERIOD_MS);
        // If the clock was set back, the age is unknown.
        (0..period_ms).contains(&(now_ms - self.at_ms))
    }

    fn new(
        inputs: Option<&Inputs>,
        input_listed: InputListed,
        job: &TransformJob,
        outputs: &Outputs,
        at_ms: i64,
    ) -> Self {
        let listed = outputs.keys.len() as u64;
        let mut written_ms: Vec<Option<i64>> = outputs.written_ms.clone();
        let (mut of_inputs, mut note) = (None, None);
        if let Some(inputs) = inputs {
            let keys = inputs.output_keys(&job.spec.output.folder, outputs);
            let late = input_listed.late_inputs(inputs, |key| {
                let output = keys.output_of(key);
                output.is_some_and(|output| outputs.contains(&output))
            });
            written_ms = written_of(inputs, &keys, outputs);
            of_inputs = Some((inputs.objects.len() - late.len()) as u64);
            note = late.note();
        }
        Self { count: written_ms.len() as u64, listed, inputs: of_inputs, per_s: rate_of(&written_ms), at_ms, note }
    }
}

/// The modification time of each input's output.
fn written_of(inputs: &Inputs, keys: &OutputKeys, outputs: &Outputs) -> Vec<Option<i64>> {
    let is_of_input = |output: &str| {
        let input = keys.input_of(output);
        input.is_some_and(|input| inputs.contains(&input))
    };
    let all = outputs.keys.iter().zip(&outputs.written_ms);
    all.filter(|(output, _)| is_of_input(output)).map(|(_, written_ms)| *written_ms).collect()
}

/// Outputs per second, from the first to the last. The first one is not counted, because the time before it is unknown.
fn rate_of(written_ms: &[Option<i64>]) -> Option<f64> {
    let dated = || written_ms.iter().flatten();
    let seconds = (dated().max()? - dated().min()?) as f64 / 1000.0;
    let count = dated().count() - 1;
    (seconds > 0.0).then(|| count as f64 / seconds)
}

/// Instances are billed from their start to their end, or to now.
pub(crate) fn billed_s(started_ms: Option<i64>, ended_ms: Option<i64>, now_ms: i64) -> Option<f64> {
    Some((ended_ms.unwrap_or(now_ms) - started_ms?).max(0) as f64 / 1000.0)
}

fn phase(job: &TransformJob, is_transforming: bool) -> JobPhase {
    if job.status.is_over() {
        JobPhase::Done
    } else if is_transforming {
        JobPhase::Transforming
    } else if job.started_ms.is_some() {
        JobPhase::Downloading
    } else {
        JobPhase::Starting
    }
}

fn is_transient(error: &JobError) -> bool {
    error.aws_kind().is_some_and(AwsErrorKind::is_transient)
}

fn has_expired(error: &JobError) -> bool {
    error.aws_kind() == Some(AwsErrorKind::ExpiredCredentials)
}

/// The interval between two polls.
#[derive(Debug, Default)]
struct PollInterval {
    seen: Option<(String, TransformStatus)>,
    wait: Duration,
    trouble: Duration,
}

impl PollInterval {
    fn after(&mut self, phase: &str, status: TransformStatus, took: Duration) -> Duration {
        let is_new = self.seen.replace((phase.to_owned(), status)) != Some((phase.to_owned(), status));
        self.wait = if is_new { FIRST_WAIT } else { (self.wait * 3 / 2).min(LONGEST_WAIT) };
        self.trouble = Duration::ZERO;
        self.wait.max(took * LOOKING_SHARE)
    }

    fn after_trouble(&mut self) -> Duration {
        self.trouble = (self.trouble * 2).clamp(FIRST_WAIT, LONGEST_TROUBLE_WAIT);
        self.trouble
    }
}

#[cfg(test)]
mod tests {
    use super::super::inputs::InputObject;
    use super::*;
    use crate::sagemaker::spec::transform::{KeySample, TransformSpec};

    fn job(status: TransformStatus, started_ms: Option<i64>, ended_ms: Option<i64>) -> TransformJob {
        TransformJob {
            spec: TransformSpec::example(),
            arn: String::new(),
            status,
            failure: None,
            created_ms: 0,
            started_ms,
            ended_ms,
            result: (),
            described: serde_json::Value::Null,
        }
    }

    #[test]
    fn phases_follow_visible_state() {
        use TransformStatus as Status;
        for (job, is_transforming, expected) in [
            (job(Status::InProgress, None, None), false, JobPhase::Starting),
            (job(Status::InProgress, Some(1), None), false, JobPhase::Downloading),
            (job(Status::InProgress, Some(1), None), true, JobPhase::Transforming),
            (job(Status::Stopping, Some(1), None), true, JobPhase::Transforming),
            (job(Status::Stopped, None, Some(2)), false, JobPhase::Done),
            (job(Status::Completed, Some(1), Some(2)), true, JobPhase::Done),
        ] {
            assert_eq!(phase(&job, is_transforming), expected, "{job:?}");
        }
    }

    #[test]
    fn billing_spans_the_instance_lifetime() {
        assert_eq!(billed_s(None, None, 5000), None);
        assert_eq!(billed_s(Some(1000), None, 5000), Some(4.0));
        assert_eq!(billed_s(Some(1000), Some(3000), 5000), Some(2.0));
        // Their clock may be ahead of ours.
        assert_eq!(billed_s(Some(9000), None, 5000), Some(0.0));
    }

    #[test]
    fn only_outputs_of_inputs_are_counted() {
        let object = |key: &str| InputObject { key: key.to_owned(), size_bytes: 1, modified_ms: Some(7) };
        let inputs = Inputs {
            place: S3Address::new("bucket", "photos/"),
            objects: vec![object("photos/a.jpg"), object("photos/b.jpg"), object("photos/c.jpg")],
            markers: Vec::new(),
            missing: KeySample::default(),
        };
        let outputs = Outputs {
            keys: ["a.jpg.out", "b.jpg.out", "stray.out"].map(|key| format!("out/job/{key}")).to_vec(),
            written_ms: vec![Some(10_000), Some(14_000), Some(70_000)],
        };
        let job = job(TransformStatus::InProgress, Some(1), None);
        let counted = |created_ms: i64| {
            let job = TransformJob { created_ms, ..job.clone() };
            let listed = InputListed::by(&job, None);
            OutputCount::new(Some(&inputs), listed, &job, &outputs, 20_000)
        };
        let found = counted(8);
        assert_eq!((found.count, found.per_s), (2, Some(0.25)));
        assert_eq!((found.listed, found.at_ms), (3, 20_000));
        assert_eq!((found.inputs, found.note), (Some(3), None));
        // The third was written after the job had started.
        let found = counted(6);
        assert_eq!((found.count, found.inputs), (2, Some(2)));
        assert!(found.note.unwrap().ends_with("photos/c.jpg"));
    }

    #[test]
    fn many_outputs_are_listed_less_often() {
        for (listed, after_ms, expected) in [
            // A single page is listed at every poll.
            (999, 1, false),
            (100_000, 99_999, true),
            (100_000, 100_000, false),
            // The clock was set back.
            (100_000, -1, false),
        ] {
            let counted = OutputCount { count: listed, listed, inputs: None, per_s: None, at_ms: 50_000, note: None };
            let is_new_enough = counted.is_new_enough(50_000 + after_ms);
            assert_eq!(is_new_enough, expected, "{listed} after {after_ms} ms");
        }
    }

    #[test]
    fn polling_backs_off_until_a_change() {
        use TransformStatus::{InProgress, Stopping};
        let mut interval = PollInterval::default();
        let short = Duration::from_millis(10);
        let first = interval.after("starting", InProgress, short);
        assert_eq!(first, FIRST_WAIT);
        let mut last = first;
        for _ in 0..20 {
            let next = interval.after("starting", InProgress, short);
            assert!(next >= last && next <= LONGEST_WAIT);
            last = next;
        }
        assert_eq!(last, LONGEST_WAIT);
        assert_eq!(interval.after("downloading", InProgress, short), FIRST_WAIT);
        assert_eq!(interval.after("downloading", Stopping, short), FIRST_WAIT);
        let long = Duration::from_secs(7);
        assert_eq!(interval.after("transforming", InProgress, long), Duration::from_secs(70));
        let troubles: Vec<u64> = (0..7).map(|_| interval.after_trouble().as_secs()).collect();
        assert_eq!(troubles, [2, 4, 8, 16, 32, 60, 60]);
        interval.after("transforming", InProgress, short);
        assert_eq!(interval.after_trouble(), FIRST_WAIT);
    }
}
