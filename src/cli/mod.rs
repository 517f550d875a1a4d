//! The command line: the window's headless counterpart. Calls the layers below directly, without `state`.
//!
//! Results go to stdout or the output file, everything else to stderr.

/// Replaces `eprint!` in this module and its submodules: control characters in names are shown, never interpreted.
macro_rules! eprint {
    ($($said:tt)*) => { $crate::cli::terminal::print_note(&::std::format!($($said)*)) };
}

/// As [`eprint`], with a line break.
macro_rules! eprintln {
    ($($said:tt)*) => {
        $crate::cli::terminal::print_note(&(::std::format!($($said)*) + "\n"))
    };
}

mod about;
mod alike;
mod compare;
mod duplicates;
mod endpoint;
mod evaluate;
mod export;
mod import;
mod inspect;
mod models;
mod order;
mod out_file;
mod place;
mod predict;
mod project;
mod review;
mod runtime;
mod sample;
mod stored;
mod terminal;
mod train;
mod transform;
mod truth;
mod upload;
mod values;
mod window;

use std::io::ErrorKind;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::domain::{DeviceReport, RefusedDevice, capitalized};
use crate::model::catalog::LibraryError;
use crate::project::StoreError;
use crate::project::export::{AnnotatedFolderError, ExportError};
use crate::sagemaker::JobError;
use crate::sagemaker::package::PackageError;
use crate::similar::QueryError;
use terminal::is_output_closed;

/// See what a vision model predicts.
#[derive(Debug, Parser)]
#[command(disable_version_flag = true, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// Print the versions of Spotcheck and ONNX Runtime
    #[arg(short = 'V', long, exclusive = true)]
    version: bool,
    #[command(flatten)]
    window: window::WindowArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a model on images and write its predictions
    Predict(Box<predict::PredictArgs>),
    /// Find the images that are most similar to one
    Alike(Box<alike::AlikeArgs>),
    /// Find copies and near copies of images, in a folder or between two
    Duplicates(Box<duplicates::DuplicatesArgs>),
    /// Export a project's predictions and verdicts
    Export(Box<export::ExportArgs>),
    /// Measure predictions against ground truth
    Evaluate(Box<evaluate::EvaluateArgs>),
    /// Import predictions from other tools into a project
    Import(Box<import::ImportArgs>),
    /// Compare two runs of a project
    Compare(compare::CompareArgs),
    /// Draw a random sample of images from a folder or S3 prefix of any size
    Sample(sample::ImageSampleArgs),
    /// Draw samples to judge, exchange verdicts, and estimate precision
    Review(review::ReviewArgs),
    /// Describe a project, or point it to moved images
    Project(project::ProjectArgs),
    /// Upload local images to S3
    Upload(Box<upload::UploadArgs>),
    /// Train models on SageMaker
    #[command(subcommand)]
    Train(Box<train::TrainCommand>),
    /// Run models on SageMaker Batch Transform
    #[command(subcommand)]
    Transform(Box<transform::TransformCommand>),
    /// Deploy, watch and delete SageMaker real-time endpoints
    #[command(subcommand)]
    Endpoint(endpoint::EndpointCommand),
    /// List, download, add and remove models
    Models(models::ModelsArgs),
    /// Show or install ONNX Runtime
    Runtime(runtime::RuntimeArgs),
    /// Print details about this installation for a bug report
    Diagnostics,
    /// Print a completion script for a shell
    Completions(about::CompletionsArgs),
    /// Write manual pages for `man`
    Man(about::ManArgs),
}

/// The outcome of a command, for the exit code. clap handles invalid usage (2), except for [`UsageError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    AllWell,
    SomeImagesFailed,
    /// `duplicates` found some.
    FoundDuplicates,
    /// A metric is below the user's bound.
    BelowBound,
}

/// Options that exclude each other in a way that clap cannot express.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct UsageError(String);

/// The exit code after a closed pipe: 128 + SIGPIPE.
const READER_GONE: u8 = 141;

/// Runs the command in the program's arguments.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    // The window deletes due endpoints itself and shows it.
    let is_window = cli.command.is_none() && !cli.version;
    let auto_delete = (!is_window).then(endpoint::AutoDeleter::start).flatten();
    let outcome = match cli.command {
        Some(Command::Predict(args)) => predict::run(&args),
        Some(Command::Alike(args)) => alike::run(&args),
        Some(Command::Duplicates(args)) => duplicates::run(&args),
        Some(Command::Export(args)) => export::run(&args),
        Some(Command::Evaluate(args)) => evaluate::run(&args),
        Some(Command::Import(args)) => import::run(&args),
        Some(Command::Compare(args)) => compare::run(&args),
        Some(Command::Sample(args)) => sample::run(&args),
        Some(Command::Review(args)) => review::run(&args),
        Some(Command::Project(args)) => project::run(&args),
        Some(Command::Upload(args)) => upload::run(&args),
        Some(Command::Train(args)) => train::run(&args),
        Some(Command::Transform(args)) => transform::run(&args),
        Some(Command::Endpoint(args)) => endpoint::run(&args),
        Some(Command::Models(args)) => models::run(&args),
        Some(Command::Runtime(args)) => runtime::run(&args),
        Some(Command::Diagnostics) => about::print_diagnostics(),
        Some(Command::Completions(args)) => about::completions(&args),
        Some(Command::Man(args)) => about::man(&args),
        None if cli.version => about::version(),
        None => window::run(&cli.window, &Cli::command()),
    };
    if let Some(auto_delete) = auto_delete {
        auto_delete.finish();
    }
    match outcome {
        Ok(Outcome::AllWell) => ExitCode::SUCCESS,
        Ok(Outcome::SomeImagesFailed | Outcome::FoundDuplicates) => ExitCode::from(3),
        Ok(Outcome::BelowBound) => ExitCode::from(4),
        Err(error) if is_output_closed(&error) => ExitCode::from(READER_GONE),
        Err(error) => {
            eprintln!("error: {}", message_of(&error));
            if let Some(advice_for) = advice_for(&error) {
                eprintln!("{advice_for}");
            }
            if error.is::<UsageError>() { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

/// The error and its causes, without causes that the message already contains. Starts with a capital letter, unless it
/// starts with a name, an address or a number.
fn message_of(error: &anyhow::Error) -> String {
    let mut words = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if words.is_empty() {
            words = cause;
        } else if !words.contains(&cause) {
            words.push_str(": ");
            words.push_str(&cause);
        }
    }
    let first_word = words.split([' ', ',', ':', ';']).next().unwrap_or_default();
    let is_word = first_word.chars().all(|letter| letter.is_ascii_lowercase());
    if is_word { capitalized(&words) } else { words }
}

/// The model's latency; `None` before its second call, because the first one is a warm-up.
fn describe_latency(report: &DeviceReport) -> Option<String> {
    let latency = report.latency?;
    Some(format!(
        "model call: p50 {:.1} ms, p95 {:.1} ms, excluding a warm-up of {:.0} ms; sessions: {}, threads per session: \
         {}, images per call: {}",
        latency.p50, latency.p95, report.warm_up_ms, report.sessions, report.threads_per_session, report.batch
    ))
}

/// `not on CUDA because …`, one line per faster device.
fn describe_refused(refused: &[RefusedDevice]) -> impl Iterator<Item = String> {
    refused.iter().map(|refused| format!("not on {} because {}", refused.device.name(), refused.reason))
}

/// Advice for errors of lower layers, which do not know about flags, and for system errors.
fn advice_for(error: &anyhow::Error) -> Option<&'static str> {
    let of_export = error.chain().find_map(|cause| match cause.downcast_ref() {
        Some(PackageError::Target(error)) => Some(error),
        _ => cause.downcast_ref::<ExportError>(),
    });
    if let Some(ExportError::Exists { .. }) = of_export {
        return Some("To replace it, add --force");
    }
    let is_taken =
        |cause: &(dyn std::error::Error + 'static)| matches!(cause.downcast_ref(), Some(LibraryError::IdTaken(_)));
    if error.chain().any(is_taken) {
        return Some("To choose another id, add --set id=NAME");
    }
    if error.chain().any(|cause| matches!(cause.downcast_ref(), Some(QueryError::ModelIsGone { .. }))) {
        return Some("To add it, run `spotcheck models add FILE.onnx --set id=NAME`");
    }
    if matches!(error.downcast_ref(), Some(JobError::Refused { .. })) {
        return Some("To resend rejected images unchanged, add --all");
    }
    match (of_export, error.chain().find_map(kind_of)) {
        (Some(ExportError::Write { reason, .. }), _) => advice(reason.kind()),
        (_, Some(kind)) => advice(kind),
        _ => None,
    }
}

/// The kind of a system error about a user's file.
fn kind_of(cause: &(dyn std::error::Error + 'static)) -> Option<ErrorKind> {
    let of_store = match cause.downcast_ref() {
        Some(StoreError::Io { source, .. }) => Some(source),
        _ => None,
    };
    let of_library = match cause.downcast_ref() {
        Some(LibraryError::Io { source, .. } | LibraryError::NoFile { source, .. }) => Some(source),
        _ => None,
    };
    let of_folder = match cause.downcast_ref() {
        Some(AnnotatedFolderError::Io(error)) => Some(error),
        _ => None,
    };
    let error = of_store.or(of_library).or(of_folder)?;
    Some(error.kind())
}

fn advice(kind: ErrorKind) -> Option<&'static str> {
    match kind {
        ErrorKind::NotFound => Some("The file does not exist; check its path"),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            Some("Choose another path, or change the permissions of this one")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::message_of;

    #[test]
    fn error_names_each_cause_once() {
        let said = anyhow!("canceled").context("canceled");
        assert_eq!(message_of(&said), "Canceled");
        let inside = anyhow!("no such file").context("could not read it: no such file: a.txt");
        assert_eq!(message_of(&inside), "Could not read it: no such file: a.txt");
        let named = anyhow!("no such file").context("a.txt could not be read");
        assert_eq!(message_of(&named), "a.txt could not be read: no such file");
        let more = anyhow!("no such file").context("Could not pack the model");
        assert_eq!(message_of(&more), "Could not pack the model: no such file");
    }
}
