//! Checks of a job's name, role, container and model.

use std::io::Read;
use std::path::Path;

use super::{Checks, ModelPlan, Service};
use crate::aws::{AwsErrorKind, S3, SageMaker};
use crate::domain::{S3Address, human_bytes};
use crate::local_file;
use crate::sagemaker::JobError;
use crate::sagemaker::error::unless_cancelled;
use crate::sagemaker::jobs::new_model::content_in_s3;
use crate::sagemaker::package::peek_file;
use crate::sagemaker::spec::transform::{
    ArchiveContent, CheckPoint, ContainerUse, EcrImage, InstanceType, JobKind, ModelSource, ModelSpec, default_image,
    image_problem, name_problem, role_problem,
};
use crate::tasks::{Cancelled, TaskControl};

/// The magic number of gzip (RFC 1952).
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ARCHIVE_END: &str = ".tar.gz";

/// Checks that no job of this kind has the name.
pub(crate) fn check_job_name(
    checks: &mut Checks,
    sagemaker: &SageMaker,
    (kind, name): (JobKind, &str),
    region: &str,
    control: &TaskControl,
) -> Result<(), Cancelled> {
    if name_problem(name).is_some() {
        // The limits already report it, and SageMaker would only reject the request.
        return Ok(());
    }
    match sagemaker.job_status(kind, name, control) {
        Err(error) if error.kind == AwsErrorKind::NotFound => {
            checks.ok(CheckPoint::JobName, format!("{name} is free in {region}"));
        }
        Err(error) if error.kind == AwsErrorKind::Cancelled => return Err(Cancelled),
        Ok(status) => checks.problem(
            CheckPoint::JobName,
            format!("Job {name} already exists ({}), and job names cannot be reused", status.into_str()),
            "Choose another name",
        ),
        Err(error) => checks.failed(CheckPoint::JobName, Service::SageMaker, &JobError::from(error), ""),
    }
    Ok(())
}

/// What is known about a model after its check.
#[derive(Debug, Default)]
pub(super) struct KnownModel {
    pub content: Option<ArchiveContent>,
    pub image: Option<String>,
}

pub(super) fn check_model(
    checks: &mut Checks,
    sagemaker: &SageMaker,
    s3: &S3,
    plan: ModelPlan<'_>,
    region: &str,
    control: &TaskControl,
) -> Result<KnownModel, Cancelled> {
    let name = plan.name;
    if name_problem(name).is_some() {
        return Ok(KnownModel::default());
    }
    let known = sagemaker.describe_model(name, control);
    if let (ModelSource::Existing, Err(error)) = (plan.source, &known)
        && error.kind == AwsErrorKind::Unsupported
    {
        checks.warning(
            CheckPoint::Model,
            error.to_string(),
            "The job can run; only the role, container and archive were not checked",
        );
        return Ok(KnownModel::default());
    }
    let known = unless_cancelled(known)?;
    let image = match (plan.source, &known) {
        (ModelSource::New { spec, .. }, _) => Some(spec.image.clone()),
        (ModelSource::Existing, Ok(Some(model))) => Some(model.image.clone()),
        (ModelSource::Existing, _) => None,
    };
    let content = check_content(checks, s3, plan, known, region, control)?;
    Ok(KnownModel { content, image })
}

/// Checks the role, container and archive of a model. Returns the content of its archive, if known.
fn check_content(
    checks: &mut Checks,
    s3: &S3,
    plan: ModelPlan<'_>,
    known: Result<Option<ModelSpec>, JobError>,
    region: &str,
    control: &TaskControl,
) -> Result<Option<ArchiveContent>, Cancelled> {
    let name = plan.name;
    let place = Place { instance_type: plan.instance_type, region };
    Ok(match (plan.source, known) {
        (source, Err(why)) => {
            checks.failed(CheckPoint::Model, Service::SageMaker, &why, "");
            if let ModelSource::New { spec, local_archive } = source {
                check_parts(checks, None, (spec, local_archive.as_deref()), place, control)?;
            }
            None
        }
        (ModelSource::Existing, Ok(None)) => {
            checks.problem(
                CheckPoint::Model,
                format!("Model {name} does not exist in {region}"),
                "Check the spelling, or create one from an archive",
            );
            None
        }
        (ModelSource::Existing, Ok(Some(model))) => check_parts(checks, Some(s3), (&model, None), place, control)?,
        (ModelSource::New { spec, .. }, Ok(Some(model))) if !is_same_model(spec, &model) => {
            checks.problem(
                CheckPoint::Model,
                format!("Another model {name} already exists, from {} in {}", model.archive, model.image),
                "Choose another name, or use that model",
            );
            None
        }
        (ModelSource::New { spec, local_archive }, Ok(_)) => {
            check_parts(checks, Some(s3), (spec, local_archive.as_deref()), place, control)?
        }
    })
}

/// Checks the role, container and archive of a model; without `s3`, only what needs no request.
fn check_parts(
    checks: &mut Checks,
    s3: Option<&S3>,
    (model, local_archive): (&ModelSpec, Option<&Path>),
    place: Place<'_>,
    control: &TaskControl,
) -> Result<Option<ArchiveContent>, Cancelled> {
    check_role(checks, &model.role);
    let content = match (local_archive, s3) {
        (Some(path), _) => peek_file(path).ok().flatten(),
        (None, Some(s3)) => content_in_s3(s3, &model.archive, control)?,
        (None, None) => None,
    };
    check_image(checks, (&model.image, ContainerUse::Serving), content, place);
    match (local_archive, s3) {
        (Some(path), _) => check_local_archive(checks, path, model, content),
        (None, Some(s3)) => check_archive(checks, s3, &model.archive, (&model.image, content), control)?,
        (None, None) => {}
    }
    Ok(content)
}

/// The instances and region of a model.
#[derive(Clone, Copy)]
pub(crate) struct Place<'p> {
    pub instance_type: &'p str,
    pub region: &'p str,
}

/// Whether an existing model equals the new one.
pub(crate) fn is_same_model(wanted: &ModelSpec, there: &ModelSpec) -> bool {
    wanted.image == there.image
        && wanted.archive == there.archive
        && wanted.role == there.role
        && wanted.environment == there.environment
        && wanted.network == there.network
}

pub(crate) fn check_role(checks: &mut Checks, role: &str) {
    match role_problem(role) {
        Some(problem) => checks.problem(CheckPoint::Role, format!("The role {problem}"), ""),
        None => checks.ok(CheckPoint::Role, format!("{role}; its S3 permissions are checked at the start")),
    }
}

/// `content` is that of the archive to serve.
pub(crate) fn check_image(
    checks: &mut Checks,
    (image, wanted): (&str, ContainerUse),
    content: Option<ArchiveContent>,
    Place { instance_type: instance, region }: Place<'_>,
) {
    if let Some(problem) = image_problem(image) {
        return checks.problem(CheckPoint::Image, format!("The container {problem}"), "");
    }
    let Some(ecr) = EcrImage::parse(image) else {
        return checks.warning(
            CheckPoint::Image,
            format!("{image} does not look like a container in ECR"),
            "SageMaker pulls from ECR of its own region: <account>.dkr.ecr.<region>.amazonaws.com/<repository>:<tag>",
        );
    };
    if ecr.region != region {
        return checks.problem(
            CheckPoint::Image,
            format!(
                "The container is in {}, but the model would run in {region}; SageMaker pulls from its own region \
                only",
                ecr.region
            ),
            "Use the container of that region, or run in the other region",
        );
    }
    if let Some(purpose) = ecr.purpose().filter(|purpose| *purpose != wanted) {
        let (finding, advice) = match purpose {
            ContainerUse::Training => {
                ("trains models and cannot serve them", "Set the container that serves the model")
            }
            ContainerUse::Serving => ("serves models and cannot train them", "Set the container that runs the script"),
        };
        return checks.problem(CheckPoint::Image, format!("{image} {finding}"), advice);
    }
    if let Some(content) = content
        && ecr.serves(content) == Some(false)
    {
        return checks.problem(
            CheckPoint::Image,
            format!("The archive contains {}, which {image} cannot serve", content.words()),
            format!("Remove the container, or set {}", default_image(region, instance, content)),
        );
    }
    check_gpu(checks, image, ecr, instance);
}

/// Checks that the container uses the GPU if there is one.
fn check_gpu(checks: &mut Checks, image: &str, ecr: EcrImage<'_>, instance: &str) {
    let has_gpu = InstanceType::parse(instance).is_some_and(|instance| instance.has_gpu());
    let instance = if instance.is_empty() { "a serverless endpoint" } else { instance };
    match ecr.needs_gpu() {
        Some(true) if !has_gpu => checks.warning(
            CheckPoint::Image,
            format!("{image} needs a GPU, but {instance} has none"),
            "Use the CPU container, or an instance type of the families p and g",
        ),
        Some(false) if has_gpu => checks.warning(
            CheckPoint::Image,
            format!("{image} does not use the GPU of {instance}, which is billed anyway"),
            "Use the GPU container, or an instance type without a GPU",
        ),
        _ => checks.ok(CheckPoint::Image, image),
    }
}

fn check_archive(
    checks: &mut Checks,
    s3: &S3,
    archive: &S3Address,
    (image, content): (&str, Option<ArchiveContent>),
    control: &TaskControl,
) -> Result<(), Cancelled> {
    if !archive.prefix.ends_with(ARCHIVE_END) {
        checks.problem(
            CheckPoint::Model,
            format!("{archive} is not an archive: its name does not end in {ARCHIVE_END}"),
            "Package the model first",
        );
        return Ok(());
    }
    let object = s3.object(&archive.bucket, &archive.prefix, Some(control));
    match unless_cancelled(object)? {
        Ok(object) => {
            found_archive(checks, &format!("{archive} ({})", human_bytes(object.size_bytes)), image, content);
        }
        Err(why) => {
            let is_missing = why.aws_kind() == Some(AwsErrorKind::NotFound);
            let advice = if is_missing { "Package the model and upload it" } else { "" };
            checks.failed(CheckPoint::Model, Service::S3, &why, advice);
        }
    }
    Ok(())
}

/// Reports an existing archive.
fn found_archive(checks: &mut Checks, archive: &str, image: &str, content: Option<ArchiveContent>) {
    const POINT: CheckPoint = CheckPoint::Model;
    let serves_ours = || EcrImage::parse(image).and_then(|image| image.serves(ArchiveContent::Onnx)).is_some();
    match content {
        Some(content) => checks.ok(POINT, format!("{archive}, {}", content.words())),
        None if serves_ours() => checks.warning(
            POINT,
            format!("{archive}, which Spotcheck did not pack, so it is unknown whether {image} can serve it"),
            "Set the container that this archive is made for",
        ),
        None => checks.ok(POINT, format!("{archive}, which Spotcheck did not pack")),
    }
}

fn check_local_archive(checks: &mut Checks, path: &Path, spec: &ModelSpec, content: Option<ArchiveContent>) {
    let begins = || -> std::io::Result<(u64, [u8; 2])> {
        let mut file = local_file::open(path)?;
        let mut begin = [0; 2];
        file.read_exact(&mut begin)?;
        Ok((file.metadata()?.len(), begin))
    };
    match begins() {
        Ok((size, GZIP)) => {
            let archive = format!("The archive ({}), to be uploaded to {}", human_bytes(size), spec.archive);
            found_archive(checks, &archive, &spec.image, content);
        }
        Ok(_) => checks.problem(
            CheckPoint::Model,
            format!("{} is not a gzip file; SageMaker accepts only model.tar.gz", path.display()),
            "Package the model first",
        ),
        Err(error) => checks.problem(
            CheckPoint::Model,
            format!("Could not read the archive: {error}: {}", path.display()),
            "Package the model first",
        ),
    }
}
