//! Batch Transform jobs: checked before they cost money, started, watched, retried and cleaned up.
//!
//! Plain data in and out (`TransformPlan`, `JobProgress` …), so that the CLI and the window show the same. Nothing here
//! prints, and nothing here knows the content of an output.

mod aws_commands;
mod clean_up;
mod error;
mod inputs;
mod late_inputs;
mod manifest;
mod named_from;
mod new_model;
mod outcome;
mod output_keys;
mod preflight;
mod prices;
mod records;
mod retries;
mod retry;
mod start;
mod watch;

pub use aws_commands::{aws_commands, quoted, shell_script};
pub use clean_up::clean_up;
pub use error::JobError;
pub(crate) use error::unless_cancelled;
pub use manifest::manifest_of;
pub use named_from::NamedFrom;
pub use new_model::{NewArchive, NewModel};
pub use outcome::{Account, outcome};
pub use output_keys::{OUT, OutputKeys, folders_around};
pub use preflight::check_only_model;
pub use preflight::{Checked, ModelPlan, has_input, preflight};
pub use prices::{add_price, change_price, read_prices};
pub use records::JobRecords;
pub use retries::{FoundRetries, FoundRetry};
pub use retry::{PlannedRetry, Retry, RetryChanges, looks_like_retry, plan_retry, retry_prefix};
pub use start::{StartFolders, start, started_before};
pub use watch::{Watch, find_record};
