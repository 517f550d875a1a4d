//! Records of jobs that were started here, and deleting what a job left behind: its model, archive and manifest, never
//! an input or an output.

use std::cmp::Ordering;

use crate::aws::{Aws, AwsError, AwsErrorKind, ResourceKind, S3, SageMaker, if_there};
use crate::dirs::AppDirs;
use crate::domain::S3Address;
use crate::sagemaker::JobError;
use crate::sagemaker::spec::Deleted;
use crate::sagemaker::spec::transform::{
    JobKind, JobProgress, JobRecord, JobSpec, Leftover, ModelSource, SplitType, TransformPlan, TransformSpec,
    TransformStatus,
};
use crate::sagemaker::{Record, RecordError, Records};
use crate::tasks::TaskControl;

pub type JobRecords<S = TransformSpec> = Records<JobRecord<S>>;

impl<S: JobSpec> Record for JobRecord<S> {
    const THING: &'static str = "a job";

    fn name(&self) -> &str {
        self.spec.job_name()
    }

    fn region(&self) -> Option<&str> {
        self.sagemaker.region.as_deref()
    }

    /// Newest first.
    fn order(&self, other: &Self) -> Ordering {
        other.begun_ms.cmp(&self.begun_ms).then_with(|| self.name().cmp(other.name()))
    }

    /// SageMaker has the values.
    fn without_secrets(mut self) -> Self {
        let of_model = self.model.iter_mut().flat_map(|model| model.environment.values_mut());
        self.spec.environment_mut().values_mut().chain(of_model).for_each(String::clear);
        self
    }
}

impl<S: JobSpec> JobRecords<S> {
    /// The records of this computer.
    pub fn of_dirs(dirs: &AppDirs) -> Self {
        Self::in_folder(match S::KIND {
            JobKind::Transform => dirs.jobs(),
            JobKind::Training => dirs.training_jobs(),
        })
    }
}

impl JobRecords {
    /// The newest record of a completed job with a known speed, for the same model on the same instance type.
    pub fn with_speed_of(&self, plan: &TransformPlan) -> Option<JobRecord> {
        let archive = match &plan.model {
            ModelSource::New { spec, .. } => Some(&spec.archive),
            ModelSource::Existing => None,
        };
        let is_same = |record: &JobRecord| {
            let has_archive = record.model.as_ref().is_some_and(|model| Some(&model.archive) == archive);
            record.images_per_s.is_some()
                && record.spec.resources.instance_type == plan.spec.resources.instance_type
                && (has_archive || record.spec.model_name == plan.spec.model_name)
        };
        self.all().0.into_iter().find(is_same)
    }

    /// Records the speed of a completed job. Split objects have an unknown number of images.
    pub fn note_speed(&self, record: &JobRecord, progress: &JobProgress) -> Result<(), RecordError> {
        let spec = &record.spec;
        let is_measured = progress.job.status == TransformStatus::Completed && spec.input.split == SplitType::None;
        let of_one = progress.outputs_per_s.map(|rate| rate / f64::from(spec.resources.instance_count.max(1)));
        let Some(images_per_s) = of_one.filter(|_| is_measured && record.images_per_s.is_none()) else {
            return Ok(());
        };
        // It may have been cleaned up since it was read.
        match self.find(&spec.job_name, record.sagemaker.region.as_deref().unwrap_or_default())? {
            Some(record) => self.write(&JobRecord { images_per_s: Some(images_per_s), ..record }),
            None => Ok(()),
        }
    }
}

/// How to clean up after a job, according to its record.
pub type CleanUp<S> = fn(&Aws, &JobRecords<S>, JobRecord<S>, &TaskControl) -> Result<Deleted, JobError>;

/// Deletes what was created only for the job, in order, according to the record, and records what is left.
///
/// # Errors
/// The job still runs, it cannot be described, or the task was canceled.
pub fn clean_up(
    aws: &Aws,
    records: &JobRecords,
    record: JobRecord,
    control: &TaskControl,
) -> Result<Deleted, JobError> {
    let others = running_jobs(&aws.sagemaker(&record.sagemaker), records, &record, control)?;
    let used_by = |left: &Leftover| {
        let other = others.iter().find(|other| other.uses(left))?;
        Some(other.record.spec.job_name.clone())
    };
    delete_leftovers(aws, records, record, used_by, control)
}

/// As [`clean_up`]. `used_by` finds a running job that uses a leftover.
pub(crate) fn delete_leftovers<S: JobSpec>(
    aws: &Aws,
    records: &JobRecords<S>,
    mut record: JobRecord<S>,
    used_by: impl Fn(&Leftover) -> Option<String>,
    control: &TaskControl,
) -> Result<Deleted, JobError> {
    let sagemaker = aws.sagemaker(&record.sagemaker);
    let job_name = record.name();
    if let Some(status) = status_of(&sagemaker, S::KIND, job_name, control)?
        && !status.is_over()
    {
        return Err(JobError::Plan(format!(
            "Job {job_name} is {} and still uses these resources; wait until it ends, or stop it",
            status.into_str()
        )));
    }
    let s3 = aws.s3(&record.s3);
    let mut done = Deleted::default();
    for left in record.left.clone() {
        if let Some(other) = used_by(&left) {
            done.kept.push((left, format!("in use by job {other}")));
            continue;
        }
        match delete_leftover(&sagemaker, Some(&s3), &left, control) {
            Err(error) if error.kind == AwsErrorKind::Cancelled => return Err(JobError::Cancelled),
            Err(error) => done.kept.push((left, error.to_string())),
            Ok(()) => {
                record.left.retain(|other| *other != left);
                records.write(&record)?;
                done.deleted.push(left);
            }
        }
    }
    Ok(done)
}

/// Deletes what was created for a job or an endpoint, unless it is gone already. `s3` has the archive and the manifest.
pub(crate) fn delete_leftover(
    sagemaker: &SageMaker,
    s3: Option<&S3>,
    left: &Leftover,
    control: &TaskControl,
) -> Result<(), AwsError> {
    control.set_step(format!("deleting the {left}"));
    let deleted = match left {
        Leftover::Endpoint(name) => sagemaker.delete(ResourceKind::ENDPOINT, name, control),
        Leftover::Configuration(name) => sagemaker.delete(ResourceKind::ENDPOINT_CONFIG, name, control),
        Leftover::Model(name) => sagemaker.delete(ResourceKind::MODEL, name, control),
        Leftover::Archive(S3Address { bucket, prefix }) | Leftover::Manifest(S3Address { bucket, prefix }) => {
            s3.map_or(Ok(()), |s3| s3.delete(bucket, prefix, Some(control)))
        }
    };
    if_there(deleted).map(drop)
}

/// `None` for a job that SageMaker never accepted.
fn status_of(
    sagemaker: &SageMaker,
    kind: JobKind,
    job_name: &str,
    control: &TaskControl,
) -> Result<Option<TransformStatus>, JobError> {
    Ok(if_there(sagemaker.job_status(kind, job_name, control))?)
}

/// Another running job from this computer.
struct RunningJob {
    record: JobRecord,
    archive: Option<S3Address>,
}

impl RunningJob {
    fn uses(&self, left: &Leftover) -> bool {
        match left {
            Leftover::Model(name) => *name == self.record.spec.model_name,
            Leftover::Archive(address) => self.archive.as_ref() == Some(address),
            Leftover::Manifest(address) => self.record.spec.input.data_source.objects.address() == address,
            Leftover::Endpoint(_) | Leftover::Configuration(_) => false,
        }
    }
}

/// The running jobs that share a resource with this one: a retry uses the model of its first job.
fn running_jobs(
    sagemaker: &SageMaker,
    records: &JobRecords,
    record: &JobRecord,
    control: &TaskControl,
) -> Result<Vec<RunningJob>, JobError> {
    let (all, _) = records.all();
    let mut at_work = Vec::new();
    for other in all {
        let is_other = other.spec.job_name != record.spec.job_name
            && other.sagemaker.region == record.sagemaker.region
            && other.is_started;
        let shares = other.spec.model_name == record.spec.model_name
            || other.model.as_ref().map(|model| &model.archive) == record.model.as_ref().map(|model| &model.archive);
        if !is_other || !shares {
            continue;
        }
        let status = status_of(sagemaker, JobKind::Transform, &other.spec.job_name, control)?;
        if status.is_some_and(|status| !status.is_over()) {
            let of_other = other.model.as_ref();
            let of_both = of_other.or(record.model.as_ref());
            at_work.push(RunningJob { archive: of_both.map(|model| model.archive.clone()), record: other });
        }
    }
    Ok(at_work)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{S3Access, S3Address};
    use crate::sagemaker::spec::transform::{Leftover, ModelSpec, SageMakerAccess, TransformSpec};

    fn record(job_name: &str, begun_ms: i64) -> JobRecord {
        JobRecord {
            sagemaker: SageMakerAccess { region: Some("eu-west-1".to_owned()), ..SageMakerAccess::default() },
            s3: S3Access::default(),
            spec: TransformSpec { job_name: job_name.to_owned(), ..TransformSpec::example() },
            begun_ms,
            is_started: true,
            model: None,
            input_objects: Some(3),
            manifest_folder: None,
            left: vec![Leftover::Model("model".to_owned())],
            usd_per_hour: Some(0.25),
            images_per_s: None,
            retry_of: None,
        }
    }

    #[test]
    fn records_are_found_and_listed_newest_first() {
        let folder = tempfile::tempdir().unwrap();
        let records = JobRecords::in_folder(folder.path().join("jobs"));
        assert!(records.all().0.is_empty());
        let (old, new) = (record("old", 1), record("new", 2));
        records.write(&old).unwrap();
        records.write(&new).unwrap();
        assert_eq!(records.find("old", "eu-west-1").unwrap(), Some(old.clone()));
        assert_eq!(records.find("old", "us-east-1").unwrap(), None);
        assert_eq!(records.find("../old", "eu-west-1").unwrap(), None);
        assert_eq!(records.all().0, [new, old]);
    }

    #[test]
    #[cfg(unix)]
    fn record_is_private_and_has_no_values_of_variables() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().unwrap();
        let records = JobRecords::in_folder(folder.path());
        let secret = |value: &str| [("TOKEN".to_owned(), value.to_owned())].into();
        let mut record = record("cats", 1);
        record.spec.environment = secret("of the job");
        record.model = Some(ModelSpec {
            name: "model".to_owned(),
            image: "image".to_owned(),
            archive: S3Address::new("bucket", "model.tar.gz"),
            role: "role".to_owned(),
            environment: secret("of the model"),
            tags: [].into(),
            network: crate::sagemaker::spec::transform::Network::default(),
        });
        records.write(&record).unwrap();
        let path = records.path_of("cats", Some("eu-west-1"));
        let mode = || path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(), 0o600);
        let kept = records.find("cats", "eu-west-1").unwrap().unwrap();
        assert_eq!(kept.spec.environment, secret(""));
        assert_eq!(kept.model.as_ref().unwrap().environment, secret(""));
        // An earlier version stored them, readable for others.
        std::fs::write(&path, serde_json::to_vec(&record).unwrap()).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        assert_eq!(records.find("cats", "eu-west-1").unwrap().unwrap(), kept);
        assert_eq!(mode(), 0o600);
        assert!(!std::fs::read_to_string(&path).unwrap().contains("of the model"));
    }

    #[test]
    fn unreadable_record_does_not_hide_others() {
        let folder = tempfile::tempdir().unwrap();
        let records = JobRecords::in_folder(folder.path());
        records.write(&record("good", 1)).unwrap();
        std::fs::write(folder.path().join("bad@eu-west-1.json"), "{}").unwrap();
        let (found, errors) = records.all();
        assert_eq!((found.len(), errors.len()), (1, 1));
        assert!(records.find("bad", "eu-west-1").is_err());
    }
}
