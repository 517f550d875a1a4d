//! Starts a job: uploads files, creates the model and the job.

use std::io::Write;
use std::path::Path;

use super::JobRecords;
use super::inputs::{Inputs, each_object};
use super::manifest::write_manifest;
use super::preflight::is_same_model;
use crate::aws::upload::{Existing, LocalFiles, files_below};
use crate::aws::{Aws, AwsErrorKind, SageMaker};
use crate::domain::{S3Access, S3Address};
use crate::image::source::is_folder_marker;
use crate::sagemaker::JobError;
use crate::sagemaker::sending::Sender;
use crate::sagemaker::spec::transform::{
    InputObjects, JobRecord, JobSpec, Leftover, ModelSource, ModelSpec, SageMakerAccess, TransformPlan, TransformSpec,
};
use crate::tasks::TaskControl;

/// The local folders for records.
#[derive(Debug)]
pub struct StartFolders<'f, S = TransformSpec> {
    pub records: &'f JobRecords<S>,
    /// Records of unfinished uploads.
    pub unfinished: &'f Path,
}

/// The record of a job that was started here with this plan: with the same name, model, input, output and instances.
///
/// # Errors
/// No region is configured, or the record cannot be read.
pub fn started_before(
    aws: &Aws,
    plan: &TransformPlan,
    records: &JobRecords,
    control: &TaskControl,
) -> Result<Option<JobRecord>, JobError> {
    let spec = &plan.spec;
    let region = aws.sagemaker(&plan.sagemaker).region(control)?;
    let is_same = |record: &JobRecord| {
        record.is_started
            && is_same_job(spec, &record.spec)
            && (&record.spec.resources.instance_type, record.spec.resources.instance_count)
                == (&spec.resources.instance_type, spec.resources.instance_count)
    };
    Ok(records.find(&spec.job_name, &region)?.filter(is_same))
}

/// Starts a job. Every resource is recorded before it is created, so that [`super::clean_up`] finds it whatever
/// happens. A start that ended early can be repeated with the same plan, and continues with what is missing.
///
/// # Errors
/// The plan cannot be carried out, an upload fails, or SageMaker rejects a step. No job runs then.
pub fn start(
    aws: &Aws,
    plan: &TransformPlan,
    folders: StartFolders<'_>,
    now_ms: i64,
    control: &TaskControl,
) -> Result<JobRecord, JobError> {
    check_plan(plan)?;
    let mut start = Start::begin(aws, (&plan.sagemaker, &plan.s3), plan.spec.clone(), folders, now_ms, control)?;
    if let ModelSource::New { spec, .. } = &plan.model {
        start.record.model = Some(spec.clone());
    }
    start.record.manifest_folder = plan.manifest.as_ref().map(|plan| plan.folder.clone());
    start.record.usd_per_hour = plan.usd_per_hour;
    start.record.retry_of.clone_from(&plan.retry_of);
    start.send_input(plan)?;
    start.send_manifest(plan)?;
    let sagemaker = aws.sagemaker(&plan.sagemaker);
    start.make_model(&sagemaker, plan)?;
    start.count_inputs(plan)?;
    start.create(is_same_job)
}

fn check_plan(plan: &TransformPlan) -> Result<(), JobError> {
    let mut problems = plan.spec.problems();
    if let ModelSource::New { spec, .. } = &plan.model {
        problems.extend(spec.problems());
        if spec.name != plan.spec.model_name {
            return Err(JobError::Plan(format!(
                "The job needs model {}, but the new one is {}",
                plan.spec.model_name, spec.name
            )));
        }
    }
    problems.dedup();
    if problems.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = problems.iter().map(|problem| format!("the {problem}")).collect();
    Err(JobError::Plan(format!("SageMaker would reject this: {}", lines.join("; "))))
}

/// The start of a job of any kind.
pub(crate) struct Start<'a, S> {
    aws: &'a Aws,
    records: &'a JobRecords<S>,
    sender: Sender<'a>,
    control: &'a TaskControl,
    pub record: JobRecord<S>,
}

impl<'a, S: JobSpec> Start<'a, S> {
    /// Continues an earlier start with the same name that ended early.
    ///
    /// # Errors
    /// No region is configured, or the job was started already.
    pub(crate) fn begin(
        aws: &'a Aws,
        (sagemaker, s3): (&SageMakerAccess, &'a S3Access),
        spec: S,
        StartFolders { records, unfinished }: StartFolders<'a, S>,
        now_ms: i64,
        control: &'a TaskControl,
    ) -> Result<Self, JobError> {
        let region = aws.sagemaker(sagemaker).region(control)?;
        let begun = records.find(spec.job_name(), &region)?;
        if begun.as_ref().is_some_and(|record| record.is_started) {
            return Err(JobError::Plan(format!(
                "Job {} was already started; check its status, or choose another name",
                spec.job_name()
            )));
        }
        Ok(Self {
            aws,
            records,
            sender: Sender { aws, s3, unfinished, control },
            control,
            record: JobRecord {
                sagemaker: SageMakerAccess { region: Some(region), ..sagemaker.clone() },
                s3: s3.clone(),
                spec,
                begun_ms: now_ms,
                is_started: false,
                model: None,
                input_objects: None,
                manifest_folder: None,
                left: begun.map(|record| record.left).unwrap_or_default(),
                usd_per_hour: None,
                images_per_s: None,
                retry_of: None,
            },
        })
    }

    /// Creates the job. `is_same` returns whether an existing job with its name is this one.
    pub(crate) fn create(mut self, is_same: impl FnOnce(&S, &S) -> bool) -> Result<JobRecord<S>, JobError> {
        let spec = &self.record.spec;
        let sagemaker = self.aws.sagemaker(&self.record.sagemaker);
        self.control.set_step(format!("starting job {}", spec.job_name()));
        self.records.write(&self.record)?;
        if let Err(error) = sagemaker.create_job(spec, self.control) {
            use AwsErrorKind::{Cut, InUse, Server, Timeout, Unreachable};
            // The response may have been lost although the job was started.
            let may_be_lost = matches!(error.kind, Cut | InUse | Server | Timeout | Unreachable);
            let there = || sagemaker.describe_job::<S>(spec.job_name(), self.control);
            if !may_be_lost || !there().is_ok_and(|there| is_same(spec, &there.spec)) {
                return Err(error.into());
            }
        }
        self.record.is_started = true;
        self.records.write(&self.record)?;
        Ok(self.record)
    }

    /// Uploads one file, and records that it exists only for the job, unless it existed before. A file of an earlier
    /// start that ended early is replaced.
    pub(crate) fn send_file(&mut self, path: &Path, address: &S3Address, leaves: &Leftover) -> Result<(), JobError> {
        let existing = if self.record.left.contains(leaves) { Existing::Replace } else { Existing::Keep };
        let sent = self
            .sender
            .send_file(path, address, existing, || record_leftover(&mut self.record, self.records, leaves.clone()));
        let is_noted = self.record.left.contains(leaves);
        if sent.is_err() && is_noted && self.sender.is_absent(address) {
            self.forget_leftover(leaves)?;
        }
        sent
    }

    fn forget_leftover(&mut self, left: &Leftover) -> Result<(), JobError> {
        self.record.left.retain(|other| other != left);
        Ok(self.records.write(&self.record)?)
    }
}

impl Start<'_, TransformSpec> {
    fn send_input(&mut self, plan: &TransformPlan) -> Result<(), JobError> {
        if let (Some(manifest), false) = (&plan.manifest, plan.input_files.is_empty()) {
            let files = LocalFiles { files: plan.input_files.clone(), ..LocalFiles::default() };
            self.control.set_step(format!("uploading the images to {}", manifest.folder));
            return self.sender.send(&manifest.folder, files);
        }
        let Some(folder) = &plan.input_folder else {
            return Ok(());
        };
        let InputObjects::Prefix(target) = &plan.spec.input.data_source.objects else {
            return Err(JobError::Plan(
                "A local folder becomes an S3 prefix, not a manifest; use the prefix as the input".to_owned(),
            ));
        };
        self.control.set_step(format!("listing {}", folder.display()));
        let files = files_below(folder, self.control)
            .map_err(|error| JobError::from_source("Could not read the folder", folder, &error))?;
        self.control.set_step(format!("uploading the images to {target}"));
        self.sender.send(target, files)
    }

    fn send_manifest(&mut self, plan: &TransformPlan) -> Result<(), JobError> {
        let (Some(manifest), InputObjects::Manifest(address)) = (&plan.manifest, &plan.spec.input.data_source.objects)
        else {
            return Ok(());
        };
        let failed =
            |error: std::io::Error| JobError::local("Could not write the manifest", std::env::temp_dir(), error);
        let mut file = tempfile::NamedTempFile::new().map_err(failed)?;
        file.write_all(&write_manifest(manifest)).map_err(failed)?;
        file.flush().map_err(failed)?;
        self.control.set_step(format!("uploading the manifest to {address}"));
        self.send_file(file.path(), address, &Leftover::Manifest(address.clone()))
    }

    fn make_model(&mut self, sagemaker: &SageMaker, plan: &TransformPlan) -> Result<(), JobError> {
        let ModelSource::New { spec, local_archive } = &plan.model else {
            return Ok(());
        };
        if let Some(path) = local_archive {
            self.control.set_step(format!("uploading the model to {}", spec.archive));
            self.send_file(path, &spec.archive, &Leftover::Archive(spec.archive.clone()))?;
        }
        self.control.set_step(format!("creating model {}", spec.name));
        let there = sagemaker.describe_model(&spec.name, self.control)?;
        if let Some(there) = there {
            return check_same_model(spec, &there);
        }
        let left = Leftover::Model(spec.name.clone());
        record_leftover(&mut self.record, self.records, left.clone())?;
        let Err(error) = sagemaker.create_model(spec, self.control) else {
            return Ok(());
        };
        // Our own response may have been lost although the model was created.
        let there = match error.kind {
            AwsErrorKind::InUse => sagemaker.describe_model(&spec.name, self.control)?,
            _ => None,
        };
        let made = there.map_or(Err(error.into()), |there| check_same_model(spec, &there));
        if made.as_ref().is_err_and(|error| !is_in_doubt(error)) {
            self.forget_leftover(&left)?;
        }
        made
    }

    fn count_inputs(&mut self, plan: &TransformPlan) -> Result<(), JobError> {
        let count = if let Some(manifest) = &plan.manifest {
            manifest.names.len()
        } else {
            self.control.set_step("listing the input");
            let s3 = self.aws.s3(&plan.s3);
            match &plan.spec.input.data_source.objects {
                InputObjects::Prefix(prefix) => {
                    let mut count = 0;
                    each_object(&s3, prefix, self.control, |object| {
                        count += usize::from(!is_folder_marker(&object.key, object.size_bytes));
                    })?;
                    count
                }
                objects @ InputObjects::Manifest(_) => Inputs::list(&s3, objects, self.control)?.objects.len(),
            }
        };
        self.record.input_objects = Some(count as u64);
        if count == 0 {
            return Err(JobError::Plan(format!(
                "No input in {}; check the spelling",
                plan.spec.input.data_source.objects.address()
            )));
        }
        Ok(())
    }
}

/// Whether SageMaker may have carried out a request that ended like this.
fn is_in_doubt(error: &JobError) -> bool {
    match error {
        JobError::Cancelled => true,
        error => error.aws_kind().is_some_and(AwsErrorKind::is_in_doubt),
    }
}

/// Records a resource before it is created: an unrecorded one would stay forever.
fn record_leftover<S: JobSpec>(
    record: &mut JobRecord<S>,
    records: &JobRecords<S>,
    left: Leftover,
) -> Result<(), JobError> {
    if !record.left.contains(&left) {
        record.left.push(left);
    }
    Ok(records.write(record)?)
}

fn check_same_model(wanted: &ModelSpec, there: &ModelSpec) -> Result<(), JobError> {
    if is_same_model(wanted, there) {
        return Ok(());
    }
    Err(JobError::Plan(format!(
        "Another model {} already exists, from {} in {}; choose another name, or use that model as it is",
        wanted.name, there.archive, there.image
    )))
}

/// Whether an existing job with this name is the requested one: only that one writes into its folder.
fn is_same_job(wanted: &TransformSpec, there: &TransformSpec) -> bool {
    wanted.model_name == there.model_name
        && wanted.input.data_source.objects == there.input.data_source.objects
        && wanted.output.folder == there.output.folder
}
