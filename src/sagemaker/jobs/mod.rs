//! Batch Transform jobs: checked before they cost money, started, watched, retried and cleaned up.
//!
//! Plain data in and out (`TransformPlan`, `JobProgress` …), so that the CLI and the window show the same. Nothing here
//! prints, and nothing here knows the content of an output.

mod aws_commands;
mod inputs;
mod manifest;
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
pub use inputs::NamedFrom;
pub use manifest::manifest_of;
pub use new_model::{NewArchive, NewModel};
pub use outcome::{Account, outcome};
pub use output_keys::{OUT, OutputKeys, folders_around};
pub use preflight::{ModelPlan, check_only_model, has_input, preflight};
pub(crate) use preflight::{Place, check_image, check_job_name, check_prefix, check_regions, check_role};
pub use prices::{add_price, change_price, read_prices};
pub use records::{CleanUp, JobRecords, clean_up};
pub(crate) use records::{delete_leftover, delete_leftovers};
pub use retries::{FoundRetries, FoundRetry};
pub use retry::{PlannedRetry, Retry, RetryChanges, looks_like_retry, plan_retry, retry_prefix};
pub(crate) use start::Start;
pub use start::{StartFolders, start, started_before};
pub(crate) use watch::billed_s;
pub use watch::{Followed, Glance, PolledJob, Watch, find_record, follow};
