//! Batch Transform jobs: checked before they cost money, started, watched, retried and cleaned up.
//!
//! Plain data in and out ([`crate::sagemaker::spec::transform::TransformPlan`], [`crate::sagemaker::spec::transform::JobProgress`] …), so that the CLI and the
//! window show the same. Nothing here prints, and nothing here knows the content of an output.

mod aws_commands;
mod clean_up;
mod error;
mod inputs;
mod late_inputs;
mod logs;
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
pub use clean_up::{CleanedUp, clean_up};
pub use error::JobError;
pub use logs::{LogKind, LogReader};
pub use manifest::manifest_of;
pub use named_from::NamedFrom;
pub use new_model::{NewArchive, NewModel};
pub use outcome::{Account, outcome};
pub use output_keys::{OUT, OutputKeys, folders_around};
pub use preflight::{Checked, ModelPlan, has_input, preflight, preflight_model};
pub use prices::{add_price, change_price, read_prices};
pub use records::JobRecords;
pub use retries::{FoundRetries, FoundRetry};
pub use retry::{PlannedRetry, Retry, RetryChanges, looks_like_retry, plan_retry, retry_prefix};
pub use start::{StartFolders, start, started_before};
pub use watch::{Watch, WatchEvent, find_record};
