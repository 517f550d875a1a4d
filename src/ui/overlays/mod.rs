//! What lies over the panels: the command palette, help, short notices, the place to drop things.

mod deploy;
mod drop_target;
mod elsewhere;
mod endpoints;
mod export;
mod form;
mod go_to;
mod help;
mod import;
mod jobs;
mod log;
mod open_outputs;
mod open_s3;
mod palette;
mod prices;
mod send;
mod toast;
mod typing;
mod upload;
mod wrong_class;

pub(super) use deploy::{DeployMemory, deploy_ui};
pub(super) use drop_target::drop_target_ui;
pub(super) use elsewhere::{ElsewhereMemory, elsewhere_ui};
pub(super) use endpoints::{EndpointsMemory, endpoints_ui};
pub(super) use export::{ExportMemory, export_ui};
pub(super) use go_to::{GoToMemory, go_to_ui};
pub(super) use help::help_ui;
pub(super) use import::{ImportMemory, import_ui};
pub(super) use jobs::{JobsMemory, jobs_ui};
pub(super) use open_outputs::{OpenOutputsMemory, open_outputs_ui};
pub(super) use open_s3::{OpenS3Memory, open_s3_ui};
pub(super) use palette::{PaletteMemory, palette_ui};
pub(super) use send::{SendMemory, send_ui};
pub(super) use toast::{ToastMemory, toast_ui};
pub(super) use upload::{UploadMemory, upload_ui};
pub(super) use wrong_class::{WrongClassMemory, wrong_class_ui};
