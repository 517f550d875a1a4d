//! Checking the job form, planning the job and starting it.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use crate::aws::upload;
use crate::domain::{Sample, SampleUri, counted};
use crate::sagemaker::jobs::{Checked, JobError, aws_commands, manifest_of, preflight, read_prices, shell_script};
use crate::sagemaker::spec::transform::{ImagesInside, ManifestPlan, SageMakerAccess, TransformPlan};
use crate::tasks::TaskControl;
use crate::window::effects::Shared;
use crate::window::jobs::effects::start_plan;
use crate::window::remote;
use crate::window::remote::effects::{failure_of_job, model_source, records};
use crate::window::state::{FormCheck, ImagesFrom, JobId, JobImages, JobRequest, JobsEvent, Ticket};

pub(crate) fn check(shared: &Arc<Shared>, request: JobRequest, ticket: Ticket) {
    remote::effects::check(shared, "check a job", (request, ticket), check_request, JobsEvent::Checked);
}

fn check_request(
    shared: &Shared,
    request: JobRequest,
    control: &TaskControl,
) -> Result<FormCheck<TransformPlan>, JobError> {
    let plan = plan_of(shared, request, control)?;
    let prices = read_prices(&shared.dirs.prices())?;
    let Checked { plan, preflight } = preflight(&shared.aws, plan, (&prices, &records(shared)), control)?;
    let script = shell_script(&aws_commands(&plan));
    Ok(FormCheck { preflight, commands: script.split('\n').map(str::to_owned).collect(), plan: Arc::new(plan) })
}

pub(crate) fn start(shared: &Arc<Shared>, plan: Arc<TransformPlan>, ticket: Ticket) {
    shared.run_task(
        "start a job",
        ticket,
        move |shared, ticket| {
            start_plan(shared, &plan, &ticket.control).map_err(|error| failure_of_job(&error))?;
            Ok(JobId { sagemaker: plan.sagemaker.clone(), s3: plan.s3.clone(), name: plan.spec.job_name.clone() })
        },
        JobsEvent::Started,
    );
}

/// The plan, with a packed model.
fn plan_of(shared: &Shared, request: JobRequest, control: &TaskControl) -> Result<TransformPlan, JobError> {
    let sagemaker = SageMakerAccess::from(&request.access);
    let spec = request.spec;
    let model = model_source(
        shared,
        request.model,
        (&spec.model_name, &spec.tags),
        (&sagemaker, &request.access),
        Some(request.archive),
        &spec.instance_type,
        control,
    )?;
    let inside = inside_of(&request.images);
    let all: Vec<&SampleUri> = request.images.samples().map(|sample| &sample.uri).collect();
    let mut files_root = None;
    let (manifest, input_files) = match request.images.from {
        ImagesFrom::Prefix | ImagesFrom::Manifest(_) => (None, Vec::new()),
        ImagesFrom::Objects { ref folder } => (Some(manifest_of(all, folder)?), Vec::new()),
        ImagesFrom::Local { ref root, is_whole, ref target } => {
            control.set_step("checking the images");
            let found = upload::files_of(root, all, control)?;
            if let Some(problem) = found.problems.first() {
                return Err(JobError::Plan(format!(
                    "{} cannot be sent. The first: {problem}",
                    counted(found.problems.len(), "image", "images")
                )));
            }
            let names = found.files.iter().map(|file| file.name.clone()).collect();
            let manifest = ManifestPlan { folder: target.clone(), names };
            files_root = is_whole.then(|| PathBuf::from(root));
            (Some(manifest), found.files)
        }
    };
    Ok(TransformPlan {
        sagemaker,
        s3: request.access,
        spec,
        model,
        input_folder: None,
        input_files,
        files_root,
        manifest,
        usd_per_hour: request.usd_per_hour,
        images_per_s: request.images_per_s,
        inside,
        retry_of: None,
    })
}

/// The images inside the files to send, if all of those files are listed.
fn inside_of(images: &JobImages) -> Option<ImagesInside> {
    let of_file = |sample: &Sample| sample.uri.record().map(|_| sample.uri.file().to_owned());
    let files: HashSet<String> = images.samples().filter_map(of_file).collect();
    let is_remote = matches!(images.from, ImagesFrom::Manifest(_));
    if files.is_empty() || images.is_partial || is_remote {
        return None;
    }
    let is_sent = |sample: &&Sample| files.contains(sample.uri.file());
    Some(ImagesInside { all: images.listing().filter(is_sent).count() as u64, chosen: images.len() as u64 })
}
