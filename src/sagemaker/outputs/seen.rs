//! The outputs that a run has already read, so that opening them again reads only new ones.

use serde::{Deserialize, Serialize};

use super::join::Work;
use super::open::FoundOutputs;
use crate::domain::{Change, RunId, SampleId, SampleSet};
use crate::project::{Project, StoreError};

/// Stored in the project with the run. A single time suffices: outputs that are older than the newest one in a
/// completely read listing are in the run. It is by the clock of the storage, so clocks are never compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenOutputs {
    newest_ns: Option<i64>,
}

impl SeenOutputs {
    pub fn all_of(found: &FoundOutputs) -> Self {
        Self { newest_ns: found.newest_ns() }
    }

    /// The state of a run in the project; `None` without one.
    pub fn from_run(project: &Project, run: RunId) -> Result<Option<Self>, StoreError> {
        let text = project.views()?.remove(&name(run));
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }

    /// The change that stores it in the project.
    pub fn change(self, run: RunId) -> Change {
        let json = serde_json::to_string(&self).expect("a number always serializes");
        Change::SetView { name: name(run), json }
    }

    /// The images whose outputs are newer, or may be.
    pub fn newer(self, found: &FoundOutputs) -> SampleSet {
        let is_newer = |output: usize| match (found.files[output].modified_ns, self.newest_ns) {
            (Some(modified), Some(newest)) => modified > newest,
            _ => true,
        };
        let newer = found.joined.works.iter();
        let newer = newer.filter(|work| is_newer(work.output()));
        let (lists, others): (Vec<&Work>, Vec<&Work>) = newer.partition(|work| matches!(work, Work::Named { .. }));
        // A list can be for any of the images that have no output of their own.
        let of_lists = if lists.is_empty() { &[][..] } else { &found.joined.without_output[..] };
        others.into_iter().flat_map(Work::places).chain(of_lists.iter().copied()).map(SampleId::from_index).collect()
    }
}

fn name(run: RunId) -> String {
    format!("outputs/{}", run.0)
}
