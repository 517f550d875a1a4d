//! Starts a training job: packs and uploads the source folder, and creates the job.

use super::{TrainingRecord, TrainingSpec};
use crate::aws::Aws;
use crate::dirs::Scratch;
use crate::project::export::{Existing, ExportTarget};
use crate::sagemaker::jobs::{JobError, Start, StartFolders};
use crate::sagemaker::package::{PackageError, package_source};
use crate::sagemaker::spec::training::TrainingPlan;
use crate::sagemaker::spec::transform::Leftover;
use crate::tasks::TaskControl;

const SOURCE_ARCHIVE: &str = "sourcedir.tar.gz";

/// Starts a job. The uploaded source folder is recorded before it is uploaded. A start that ended early can be repeated
/// with the same plan.
///
/// # Errors
/// The source folder cannot be packed or uploaded, or SageMaker rejects the job. No job runs then.
pub fn start(
    aws: &Aws,
    plan: &TrainingPlan,
    folders: StartFolders<'_, TrainingSpec>,
    now_ms: i64,
    control: &TaskControl,
) -> Result<TrainingRecord, JobError> {
    let mut start = Start::begin(aws, (&plan.sagemaker, &plan.s3), plan.spec.clone(), folders, now_ms, control)?;
    start.record.usd_per_hour = plan.usd_per_hour;
    if let Some(source) = &plan.source {
        control.set_step("packing the source folder");
        let scratch = Scratch::new().map_err(|error| JobError::local("Could not pack", &source.folder, error))?;
        let target = ExportTarget { path: scratch.path().join(SOURCE_ARCHIVE), existing: Existing::Keep };
        let packed = package_source(&source.folder, &target, control).map_err(|error| match error {
            PackageError::Cancelled(_) => JobError::Cancelled,
            error => JobError::Plan(format!("Could not pack the source folder: {error}")),
        })?;
        let archive = &source.archive;
        control.set_step(format!("uploading the source folder to {archive}"));
        start.send_file(&packed.path, archive, &Leftover::Archive(archive.clone()))?;
    }
    let sagemaker = aws.sagemaker(&plan.sagemaker);
    start.create(
        |spec| sagemaker.create_training_job(spec, Some(control)),
        |spec| {
            let there = sagemaker.describe_training_job(&spec.job_name, Some(control))?.spec;
            Ok(there.hyperparameters == spec.hyperparameters)
        },
    )
}
