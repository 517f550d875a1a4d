//! Local records of endpoints, one file each, in the data folder. They contain no secrets.

use std::path::PathBuf;

use crate::sagemaker::spec::endpoint::EndpointRecord;
use crate::sagemaker::spec::transform::SageMakerAccess;

#[derive(Debug, Clone)]
pub struct EndpointRecords {
    folder: PathBuf,
}

impl EndpointRecords {
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Atomically replaces the record of this endpoint.
    pub fn write(&self, record: &EndpointRecord) -> std::io::Result<()> {
        std::fs::create_dir_all(&self.folder)?;
        let file = tempfile::NamedTempFile::new_in(&self.folder)?;
        serde_json::to_writer_pretty(&file, record)?;
        file.as_file().sync_all()?;
        file.persist(self.path_of(&record.name, &record.sagemaker))?;
        Ok(())
    }

    /// `None` if it was not deployed from here.
    pub fn find(&self, name: &str, region: &str) -> Option<EndpointRecord> {
        let is_it = |record: &EndpointRecord| record.name == name && record.sagemaker.region.as_deref() == Some(region);
        self.all().0.into_iter().find(is_it)
    }

    /// All records, and the errors of unreadable ones.
    pub fn all(&self) -> (Vec<EndpointRecord>, Vec<String>) {
        let (mut records, mut problems) = (Vec::new(), Vec::new());
        let Ok(entries) = std::fs::read_dir(&self.folder) else {
            return (records, problems);
        };
        let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
        for path in paths.filter(|path| path.extension().is_some_and(|end| end == "json")) {
            let read = std::fs::read(&path).map_err(|error| error.to_string());
            let record = read.and_then(|text| serde_json::from_slice(&text).map_err(|error| error.to_string()));
            match record {
                Ok(record) => records.push(record),
                Err(why) => {
                    problems.push(format!("could not read the record of an endpoint ({why}): {}", path.display()));
                }
            }
        }
        records.sort_by(|a: &EndpointRecord, b| a.name.cmp(&b.name));
        (records, problems)
    }

    pub(crate) fn forget(&self, record: &EndpointRecord) -> std::io::Result<()> {
        match std::fs::remove_file(self.path_of(&record.name, &record.sagemaker)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Only letters, digits and hyphens go into the file name.
    fn path_of(&self, name: &str, sagemaker: &SageMakerAccess) -> PathBuf {
        let plain = |text: &str| text.replace(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-', "_");
        let region = plain(sagemaker.region.as_deref().unwrap_or_default());
        self.folder.join(format!("{}@{region}.json", plain(name)))
    }
}
