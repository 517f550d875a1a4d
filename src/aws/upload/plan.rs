//! The plan and the result of an upload.

use crate::domain::{Problem, S3Address, S3Place, Sample, counted, human_bytes};

/// Local files, each compared with the object that it would become. Nothing has been sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadPlan {
    /// The destination folder.
    pub target: S3Place,
    /// In the order of the listing.
    pub files: Vec<PlannedFile>,
    /// Files that cannot be sent, and why.
    pub problems: Vec<Problem>,
    pub left_out: SkippedFiles,
}

/// A local file to upload. Its name is the part of the key after the target's prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedFile {
    pub file: Sample,
    pub state: PlannedState,
}

/// What exists at the key of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlannedState {
    /// No object: the file is sent.
    New,
    /// An object with the same content: nothing to do.
    Same,
    /// An object with different or unknown content: kept, unless the user chose to replace it.
    Conflict {
        /// The version that was seen: only that version is ever replaced.
        etag: Option<String>,
        why: String,
    },
}

/// Files of a folder that are not uploaded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SkippedFiles {
    /// Names that begin with a dot; a folder counts once.
    pub hidden: u64,
    /// Neither images nor TFRecord files.
    pub others: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileAmount {
    pub files: u64,
    pub bytes: u64,
}

/// What an upload did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UploadReport {
    pub sent: FileAmount,
    /// Objects that already existed with the same content.
    pub same: FileAmount,
    /// Objects with different content, which were kept.
    pub conflicts: Vec<Problem>,
    /// Files that could not be sent, and why.
    pub failures: Vec<Problem>,
    /// Files that the upload did not reach.
    pub not_tried: FileAmount,
    /// `None` if it completed.
    pub stopped: Option<UploadStop>,
    /// Other notes for the user.
    pub notes: Vec<String>,
}

/// Why an upload ended early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UploadStop {
    Cancelled,
    /// A failure that would have affected every other file as well.
    Failed(String),
}

impl UploadPlan {
    /// The full key of a file's object.
    pub fn key_of(&self, file: &Sample) -> String {
        format!("{}{}", self.target.address.prefix, file.name)
    }

    pub fn address_of(&self, file: &Sample) -> S3Address {
        S3Address::new(&self.target.address.bucket, self.key_of(file))
    }

    pub fn new_files(&self) -> FileAmount {
        self.amount(|state| *state == PlannedState::New)
    }

    pub fn same_files(&self) -> FileAmount {
        self.amount(|state| *state == PlannedState::Same)
    }

    pub fn conflicting_files(&self) -> FileAmount {
        self.amount(|state| matches!(state, PlannedState::Conflict { .. }))
    }

    fn amount(&self, is_counted: impl Fn(&PlannedState) -> bool) -> FileAmount {
        let mut amount = FileAmount::default();
        for planned in &self.files {
            if is_counted(&planned.state) {
                amount.add(planned.file.size_bytes);
            }
        }
        amount
    }
}

impl FileAmount {
    pub fn add(&mut self, bytes: u64) {
        self.files += 1;
        self.bytes += bytes;
    }
}

/// “1 file (1.2 MiB)”
impl std::fmt::Display for FileAmount {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} ({})", counted(self.files, "file", "files"), human_bytes(self.bytes))
    }
}

impl SkippedFiles {
    /// “3 hidden files or folders and 12 files that are not images”; `None` if nothing was skipped.
    pub fn describe(&self) -> Option<String> {
        let mut parts = Vec::new();
        match self.hidden {
            0 => {}
            1 => parts.push("1 hidden file or folder".to_owned()),
            many => parts.push(format!("{many} hidden files or folders")),
        }
        match self.others {
            0 => {}
            1 => parts.push("1 file that is not an image".to_owned()),
            many => parts.push(format!("{many} files that are not images")),
        }
        (!parts.is_empty()).then(|| parts.join(" and "))
    }
}

impl UploadReport {
    /// Whether every file is now uploaded.
    pub fn is_complete(&self) -> bool {
        self.conflicts.is_empty() && self.failures.is_empty() && self.stopped.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::SampleUri;

    fn planned(name: &str, size_bytes: u64, state: PlannedState) -> PlannedFile {
        PlannedFile { file: Sample::new(SampleUri::new(format!("/photos/{name}")), name, size_bytes), state }
    }

    #[test]
    fn plan_counts_its_actions() {
        let conflict = PlannedState::Conflict { etag: None, why: "other".to_owned() };
        let plan = UploadPlan {
            target: S3Place::new(S3Address::new("bucket", "photos/")),
            files: vec![
                planned("a/1.jpg", 1024, PlannedState::New),
                planned("a/2.jpg", 1024, PlannedState::New),
                planned("3.jpg", 10, PlannedState::Same),
                planned("4.jpg", 5, conflict),
            ],
            problems: Vec::new(),
            left_out: SkippedFiles::default(),
        };
        assert_eq!(plan.new_files().to_string(), "2 files (2.0 KiB)");
        assert_eq!(plan.same_files().to_string(), "1 file (10 B)");
        assert_eq!(plan.conflicting_files().to_string(), "1 file (5 B)");
        let address = plan.address_of(&plan.files[0].file);
        assert_eq!(address.to_string(), "s3://bucket/photos/a/1.jpg");
    }

    #[test]
    fn skipped_files_are_described() {
        let describe = |hidden, others| SkippedFiles { hidden, others }.describe();
        assert_eq!(describe(0, 0), None);
        assert_eq!(describe(1, 2).as_deref(), Some("1 hidden file or folder and 2 files that are not images"));
    }
}
