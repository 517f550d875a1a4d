//! Checks of a job before it costs money.

use strum::IntoStaticStr;

use super::CostEstimate;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    pub point: CheckPoint,
    pub grade: CheckGrade,
    /// What was found, and why it is good or bad.
    pub finding: String,
    /// What to do about it; empty if there is nothing to do.
    pub advice: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum CheckGrade {
    Ok,
    /// The job would run, but perhaps not as intended.
    Warning,
    /// The job would fail, or must not run like this.
    Problem,
}

/// In display order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr)]
#[strum(const_into_str)]
pub enum CheckPoint {
    #[strum(serialize = "Names and limits")]
    Limits,
    #[strum(serialize = "Job name")]
    JobName,
    #[strum(serialize = "Endpoint name")]
    EndpointName,
    Role,
    #[strum(serialize = "Container")]
    Image,
    Source,
    Model,
    Input,
    Prefix,
    Objects,
    Output,
    Region,
    Payload,
    Concurrency,
    #[strum(serialize = "Content type")]
    ContentType,
    Splitting,
    Instance,
    Cost,
    Deletion,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Preflight {
    /// In the order of `CheckPoint`.
    pub checks: Vec<Check>,
    /// `None` if the input could not be listed.
    pub survey: Option<InputSurvey>,
    /// `None` if no rate is known, or the number of records is unknown.
    pub estimate: Option<CostEstimate>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InputSurvey {
    pub objects: u64,
    pub bytes: u64,
    /// Key and size.
    pub largest: Option<(String, u64)>,
    /// Images, judging by their names.
    pub images: u64,
    /// TFRecord files, judging by their names.
    pub records: u64,
    /// JSON, JSON Lines, CSV and text files.
    pub texts: u64,
    /// Anything else.
    pub others: KeySample,
    /// Empty objects other than folder markers; they are never sent to a model.
    pub empty: KeySample,
    /// Objects with a path part that begins with a dot: image listings skip them, but a job sends them.
    pub hidden: KeySample,
    /// Empty objects that represent folders.
    pub folder_markers: u64,
}

/// The number of keys, and the first of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeySample {
    pub count: u64,
    pub first: Vec<String>,
}

impl Preflight {
    /// The worst grade; ok if there are no checks.
    pub fn grade(&self) -> CheckGrade {
        let grades = self.checks.iter().map(|check| check.grade);
        grades.max().unwrap_or(CheckGrade::Ok)
    }

    pub fn count(&self, grade: CheckGrade) -> usize {
        self.checks.iter().filter(|check| check.grade == grade).count()
    }
}

impl CheckPoint {
    /// The checks that every job has; a manifest has no prefix.
    pub const ALWAYS: [Self; 14] = [
        Self::Limits,
        Self::JobName,
        Self::Role,
        Self::Image,
        Self::Model,
        Self::Input,
        Self::Objects,
        Self::Output,
        Self::Payload,
        Self::Concurrency,
        Self::ContentType,
        Self::Splitting,
        Self::Instance,
        Self::Cost,
    ];
}

impl KeySample {
    const KEPT: usize = 3;

    pub fn add(&mut self, key: &str) {
        self.count += 1;
        if self.first.len() < Self::KEPT {
            self.first.push(key.to_owned());
        }
    }
}

/// “a, b, c, …”
impl std::fmt::Display for KeySample {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.first.join(", "))?;
        if self.count > self.first.len() as u64 {
            formatter.write_str(", …")?;
        }
        Ok(())
    }
}
