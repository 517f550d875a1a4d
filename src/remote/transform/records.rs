//! Records of the jobs that were started here, one file each, in the data folder.

use std::path::{Path, PathBuf};

use super::JobError;
use crate::domain::JobRecord;

/// The folder of the records.
#[derive(Debug, Clone)]
pub struct JobRecords {
    folder: PathBuf,
}

impl JobRecords {
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Replaces the record of this job in one step. Only its owner may read the file (a temporary file has mode 0600,
    /// and keeps it): a retry makes a deleted model again, so the values of the model's environment are in it. Of the
    /// job's environment only the names are kept, as SageMaker tells the values.
    pub fn write(&self, record: &JobRecord) -> Result<(), JobError> {
        let mut record = record.clone();
        record.spec.environment.values_mut().for_each(String::clear);
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

    /// The record of a job in a region; `None` where it was not started here. One that cannot be understood is an
    /// error: what it says was made must not be forgotten.
    pub fn find(&self, job_name: &str, region: &str) -> Result<Option<JobRecord>, JobError> {
        let path = self.path_of(job_name, Some(region));
        match std::fs::read(&path) {
            Ok(content) => read(&path, &content).map(Some),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(JobError::local("Could not read the record of a job", &path, error)),
        }
    }

    /// All records, the newest first, and the errors of unreadable ones.
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
            match content.and_then(|content| read(&path, &content)) {
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

    /// A job name from the user may have any characters; only letters, digits and hyphens go into the file name.
    fn path_of(&self, job_name: &str, region: Option<&str>) -> PathBuf {
        let plain = |text: &str| text.replace(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-', "_");
        let region = plain(region.unwrap_or_default());
        self.folder.join(format!("{}@{region}.json", plain(job_name)))
    }
}

fn read(path: &Path, content: &[u8]) -> Result<JobRecord, JobError> {
    serde_json::from_slice(content).map_err(|error| {
        JobError::local("Could not parse the record of a job; it may be from a newer Spotcheck", path, error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Leftover, ModelSpec, S3Access, S3Address, SageMakerAccess, TransformSpec};

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
            retry_of: None,
        }
    }

    #[test]
    fn records_are_found_by_job_and_region_and_listed_with_the_newest_first() {
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
    fn values_are_kept_where_a_retry_needs_them_and_for_their_owner_alone() {
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
        assert_eq!(kept.model.unwrap().environment, secret("of the model"));
        // A record that an earlier version left readable for others becomes private.
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        records.write(&record).unwrap();
        assert_eq!(mode(), 0o600);
    }

    #[test]
    fn a_record_that_cannot_be_understood_is_told_and_does_not_hide_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let records = JobRecords::in_folder(folder.path());
        records.write(&record("good", 1)).unwrap();
        std::fs::write(folder.path().join("bad@eu-west-1.json"), "{}").unwrap();
        let (found, errors) = records.all();
        assert_eq!((found.len(), errors.len()), (1, 1));
        assert!(records.find("bad", "eu-west-1").is_err());
    }
}
