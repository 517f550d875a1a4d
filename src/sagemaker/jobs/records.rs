//! Records of jobs that were started here, one file each, in the data folder.

use std::path::{Path, PathBuf};

use super::JobError;
use crate::sagemaker::spec::transform::{
    JobProgress, JobRecord, ModelSource, SplitType, TransformPlan, TransformStatus,
};

#[derive(Debug, Clone)]
pub struct JobRecords {
    folder: PathBuf,
}

impl JobRecords {
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Atomically replaces the record of this job. Only its owner can read the file (a temporary file has mode 0600,
    /// and keeps it). The values of environment variables may be secrets, so only their names are stored; SageMaker has
    /// the values.
    pub fn write(&self, record: &JobRecord) -> Result<(), JobError> {
        let record = record.clone().without_values();
        let path = self.path_of(&record.spec.job_name, record.sagemaker.region.as_deref());
        let write = || -> std::io::Result<()> {
            std::fs::create_dir_all(&self.folder)?;
            let file = tempfile::NamedTempFile::new_in(&self.folder)?;
            serde_json::to_writer_pretty(&file, &record)?;
            file.as_file().sync_all()?;
            file.persist(&path)?;
            Ok(())
        };
        write().map_err(|error| JobError::local("Could not write the record of a job", &path, error))
    }

    /// The record of a job in a region; `None` if it was not started here. An unreadable one is an error, because the
    /// resources in it must not be forgotten.
    pub fn find(&self, job_name: &str, region: &str) -> Result<Option<JobRecord>, JobError> {
        let path = self.path_of(job_name, Some(region));
        match std::fs::read(&path) {
            Ok(content) => self.read(&path, &content).map(Some),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(JobError::local("Could not read the record of a job", &path, error)),
        }
    }

    /// All records, newest first, and the errors of unreadable ones.
    pub fn all(&self) -> (Vec<JobRecord>, Vec<JobError>) {
        let (mut records, mut errors) = (Vec::new(), Vec::new());
        let Ok(entries) = std::fs::read_dir(&self.folder) else {
            return (records, errors);
        };
        for entry in entries.filter_map(Result::ok) {
            let path = entry.path();
            if path.extension().is_none_or(|end| end != "json") {
                continue;
            }
            let content = std::fs::read(&path)
                .map_err(|error| JobError::local("Could not read the record of a job", &path, error));
            match content.and_then(|content| self.read(&path, &content)) {
                Ok(record) => records.push(record),
                Err(error) => errors.push(error),
            }
        }
        records.sort_by(|a, b| {
            let newest_first = b.begun_ms.cmp(&a.begun_ms);
            newest_first.then_with(|| a.spec.job_name.cmp(&b.spec.job_name))
        });
        (records, errors)
    }

    /// The newest record of a completed job with a known speed, for the same model on the same instance type.
    pub(crate) fn with_speed_of(&self, plan: &TransformPlan) -> Option<JobRecord> {
        let archive = match &plan.model {
            ModelSource::New { spec, .. } => Some(&spec.archive),
            ModelSource::Existing => None,
        };
        let is_same = |record: &JobRecord| {
            let has_archive = record.model.as_ref().is_some_and(|model| Some(&model.archive) == archive);
            record.images_per_s.is_some()
                && record.spec.instance_type == plan.spec.instance_type
                && (has_archive || record.spec.model_name == plan.spec.model_name)
        };
        self.all().0.into_iter().find(is_same)
    }

    /// Records the speed of a completed job. Split objects have an unknown number of images.
    pub fn note_speed(&self, record: &JobRecord, progress: &JobProgress) -> Result<(), JobError> {
        let spec = &record.spec;
        let is_measured = progress.job.status == TransformStatus::Completed && spec.input.split == SplitType::None;
        let of_one = progress.outputs_per_s.map(|rate| rate / f64::from(spec.instance_count.max(1)));
        let Some(images_per_s) = of_one.filter(|_| is_measured && record.images_per_s.is_none()) else {
            return Ok(());
        };
        // It may have been cleaned up since it was read.
        match self.find(&spec.job_name, record.sagemaker.region.as_deref().unwrap_or_default())? {
            Some(record) => self.write(&JobRecord { images_per_s: Some(images_per_s), ..record }),
            None => Ok(()),
        }
    }

    /// Reads a record. One with values of variables, from an earlier version, is rewritten without them.
    fn read(&self, path: &Path, content: &[u8]) -> Result<JobRecord, JobError> {
        let kept: JobRecord = serde_json::from_slice(content).map_err(|error| {
            JobError::local("Could not parse the record of a job; it may be from a newer Spotcheck", path, error)
        })?;
        let record = kept.clone().without_values();
        if record != kept {
            self.write(&record)?;
        }
        Ok(record)
    }

    /// A job name from the user can contain any characters; only letters, digits and hyphens go into the file name.
    fn path_of(&self, job_name: &str, region: Option<&str>) -> PathBuf {
        let plain = |text: &str| text.replace(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-', "_");
        let region = plain(region.unwrap_or_default());
        self.folder.join(format!("{}@{region}.json", plain(job_name)))
    }
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
