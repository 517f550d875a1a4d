//! Requests about jobs and endpoints, and models packed for jobs and endpoints, cached as long as they may be reused.

use std::collections::BTreeMap;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::aws::{AwsError, AwsErrorKind, SageMaker};
use crate::domain::{ListPage, ListQuery, S3Access, S3Address};
use crate::project::export::{Existing, ExportError, ExportTarget};
use crate::sagemaker::JobError;
use crate::sagemaker::jobs::{NewArchive, NewModel};
use crate::sagemaker::package::{
    PackageError, PackageOptions, Packaged, Processor, SavedModelOptions, package_model, package_saved_model,
    stamp_of_saved_model,
};
use crate::sagemaker::spec::transform::{ArchiveContent, InstanceType, ModelSource, SageMakerAccess};
use crate::tasks::TaskControl;
use crate::window::effects::Shared;
use crate::window::s3::effects::failure;
use crate::window::state::{
    ChosenModel, Event, Failure, FormCheck, ModelRequest, RemoteEvent, Resource, TaskId, Ticket, WatchEnd,
};

/// The failure of work with this access.
pub(crate) fn failure_of(shared: &Shared, access: &S3Access, error: JobError) -> Failure {
    match error {
        JobError::Cancelled => Failure::Cancelled,
        JobError::Aws(error) => failure(shared, access, error),
        error => Failure::new(error.to_string()),
    }
}

/// Runs one request as a task: about a job, an endpoint, or all that an access lists.
pub(crate) fn run_once<I: Clone + Send + 'static, T: Send + 'static, V: Into<Event> + 'static>(
    shared: &Arc<Shared>,
    name: &str,
    (id, ticket): (I, Ticket),
    work: impl FnOnce(&Shared, &I, &TaskControl) -> Result<T, JobError> + Send + 'static,
    event: impl FnOnce(I, TaskId, Result<T, Failure>) -> V + Clone + Send + 'static,
) where
    for<'i> S3Access: From<&'i I>,
{
    let of_event = id.clone();
    shared.run_task(
        name,
        ticket,
        move |shared, ticket| {
            let done = work(shared, &id, &ticket.control);
            done.map_err(|error| failure_of(shared, &S3Access::from(&id), error))
        },
        move |task, result| event(of_event, task, result),
    );
}

/// Checks a form as a task.
pub(crate) fn check<R: Send + 'static, P: Send + 'static, V: Into<Event> + 'static>(
    shared: &Arc<Shared>,
    name: &str,
    (access, request, ticket): (S3Access, R, Ticket),
    check: fn(&Shared, R, &TaskControl) -> Result<FormCheck<P>, JobError>,
    event: impl FnOnce(TaskId, Result<Box<FormCheck<P>>, Failure>) -> V + Clone + Send + 'static,
) {
    shared.run_task(
        name,
        ticket,
        move |shared, ticket| {
            let checked = check(shared, request, &ticket.control);
            checked.map(Box::new).map_err(|error| failure_of(shared, &access, error))
        },
        event,
    );
}

/// Reads a page of a list, and what else is known about it.
pub(crate) fn list<R: Resource>(
    shared: &Arc<Shared>,
    name: &str,
    (access, query, ticket): (&S3Access, ListQuery<R::Status>, Ticket),
    read: impl FnOnce(&SageMaker, &ListQuery<R::Status>, &TaskControl) -> Result<(ListPage<R::Row>, R::Listed), AwsError>
    + Send
    + 'static,
) where
    RemoteEvent<R>: Into<Event>,
{
    let is_first = query.page_token.is_none();
    run_once(
        shared,
        name,
        (SageMakerAccess::from(access), ticket),
        move |shared, access, control| Ok(read(&shared.aws.sagemaker(access), &query, control)?),
        move |_, task, result| RemoteEvent::<R>::Listed { task, is_first, result },
    );
}

/// Watches a resource until `follow` ends.
pub(crate) fn watch<R: Resource>(
    shared: &Arc<Shared>,
    name: &str,
    (id, ticket): (R::Id, Ticket),
    follow: fn(&Shared, &R::Id, &Ticket) -> Result<(), JobError>,
) where
    RemoteEvent<R>: Into<Event>,
    for<'i> S3Access: From<&'i R::Id>,
{
    let of_event = id.clone();
    shared.run_task(
        name,
        ticket,
        move |shared, ticket| {
            Ok(match follow(shared, &id, ticket) {
                Ok(()) => WatchEnd::Over,
                Err(error) => {
                    let is_absent = error.aws_kind() == Some(AwsErrorKind::NotFound);
                    let failure = failure_of(shared, &S3Access::from(&id), error);
                    if is_absent { WatchEnd::Absent(failure) } else { WatchEnd::Failed(failure) }
                }
            })
        },
        move |task, end| RemoteEvent::<R>::WatchEnded(of_event, task, end.unwrap_or_else(WatchEnd::Failed)),
    );
}

/// Reports the result of a poll. Ends the watch once the window is closed.
pub(crate) fn report_seen<R: Resource>(shared: &Shared, id: &R::Id, ticket: &Ticket, seen: R::Seen)
where
    RemoteEvent<R>: Into<Event>,
{
    if !shared.report(RemoteEvent::<R>::Seen { id: id.clone(), task: ticket.id, seen: Box::new(seen) }) {
        ticket.control.cancel();
    }
}

/// Reports a poll that failed and is retried.
pub(crate) fn report_trouble<R: Resource>(shared: &Shared, id: &R::Id, ticket: &Ticket, why: &str, again_in: Duration)
where
    RemoteEvent<R>: Into<Event>,
{
    let text = format!("{why}. Retry in {} s", again_in.as_secs());
    shared.report(RemoteEvent::<R>::Trouble { id: id.clone(), task: ticket.id, text });
}

/// Below the cache folder.
const ARCHIVES: &str = "archives";
/// The number of archives to keep, those used last: switching between a few models packs none of them again.
const KEPT: usize = 4;
/// The minimum age for deleting an archive: a newer one may still be uploading.
const MAY_BE_IN_USE: Duration = Duration::from_hours(24);

/// The archive of a model, packed if necessary; a local one is uploaded to `to`. `None` if SageMaker has the model.
pub(crate) fn archive_of(
    shared: &Shared,
    model: &ChosenModel,
    to: Option<S3Address>,
    instance_type: &str,
    control: &TaskControl,
) -> Result<Option<NewArchive>, JobError> {
    let (path, content) = match model {
        ChosenModel::Library(id) => (packed(shared, id, instance_type, control)?, Some(ArchiveContent::Onnx)),
        ChosenModel::SavedModel(folder) => {
            (packed_saved_model(shared, folder, control)?, Some(ArchiveContent::SavedModel))
        }
        ChosenModel::Archive(path) => (path.clone(), None),
        ChosenModel::ArchiveInS3(address) => return Ok(Some(NewArchive::There(address.clone()))),
        ChosenModel::SageMaker(_) => return Ok(None),
    };
    let to = to.ok_or_else(|| JobError::Plan("Enter the S3 folder for the model's archive".to_owned()))?;
    Ok(Some(NewArchive::Here { path, to, content }))
}

/// The model of the container: an existing one in SageMaker, or one to create under this name for an instance type.
pub(crate) fn model_source(
    shared: &Shared,
    request: ModelRequest,
    (name, tags): (&str, &BTreeMap<String, String>),
    (sagemaker, s3): (&SageMakerAccess, &S3Access),
    archive: Option<S3Address>,
    instance_type: &str,
    control: &TaskControl,
) -> Result<ModelSource, JobError> {
    let archive = archive_of(shared, &request.model, archive, instance_type, control)?;
    let Some(archive) = archive else {
        return Ok(ModelSource::Existing);
    };
    let model = NewModel {
        name: name.to_owned(),
        role: request.role,
        image: request.image,
        archive,
        environment: request.environment,
        tags: tags.clone(),
        network: request.network,
    };
    let region = shared.aws.sagemaker(sagemaker).region(control)?;
    model.source(&shared.aws.s3(s3), &region, instance_type, control)
}

/// The model as an archive. An existing archive is reused: the same model results in the same bytes.
fn packed(shared: &Shared, model_id: &str, instance_type: &str, control: &TaskControl) -> Result<PathBuf, JobError> {
    let plan_error = |error: &dyn std::fmt::Display| JobError::Plan(error.to_string());
    let model = shared.library.find(model_id).map_err(|error| plan_error(&error))?;
    let has_gpu = InstanceType::parse(instance_type).is_some_and(|instance| instance.has_gpu());
    let processor = if has_gpu { Processor::Cuda } else { Processor::Cpu };
    let mut hasher = DefaultHasher::new();
    format!("{:?}", model.card).hash(&mut hasher);
    format!("{:?}", model.labels).hash(&mut hasher);
    let name = format!("{model_id}-{}-{processor:?}-{:016x}.tar.gz", env!("CARGO_PKG_VERSION"), hasher.finish());
    let failed = |error: PackageError| match error {
        PackageError::Cancelled(_) => JobError::Cancelled,
        error => plan_error(&error),
    };
    let pack = |target: &ExportTarget| {
        control.set_step("packing the model");
        let options = PackageOptions { processor, ..PackageOptions::default() };
        package_model(&model, options, target, control)
    };
    cached(shared, &name, pack, failed)
}

/// Like [`packed`], for a folder: it is not packed again if names, sizes and times are unchanged.
fn packed_saved_model(shared: &Shared, model: &Path, control: &TaskControl) -> Result<PathBuf, JobError> {
    let failed = |error: PackageError| match error {
        PackageError::Cancelled(_) => JobError::Cancelled,
        error => JobError::Plan(format!("Could not pack the SavedModel: {error}")),
    };
    let name = format!(
        "saved-model-{}-{:016x}.tar.gz",
        env!("CARGO_PKG_VERSION"),
        stamp_of_saved_model(model).map_err(failed)?
    );
    let options = SavedModelOptions::default();
    cached(shared, &name, |target| package_saved_model(model, &options, target, control), failed)
}

/// The archive with this name, packed if it is missing.
fn cached(
    shared: &Shared,
    name: &str,
    pack: impl FnOnce(&ExportTarget) -> Result<Packaged, PackageError>,
    failed: impl FnOnce(PackageError) -> JobError,
) -> Result<PathBuf, JobError> {
    let folder = shared.dirs.cache.join(ARCHIVES);
    let path = folder.join(name);
    if path.exists() {
        note_use(&path);
        return Ok(path);
    }
    std::fs::create_dir_all(&folder)
        .map_err(|error| JobError::local("Could not create the folder for packed models", &folder, error))?;
    match pack(&ExportTarget { path: path.clone(), existing: Existing::Keep }) {
        // If two windows pack the same model simultaneously, the first archive stays, because it may be uploading.
        Ok(_) | Err(PackageError::Target(ExportError::Exists { .. })) => {}
        Err(error) => return Err(failed(error)),
    }
    forget_old(&folder, SystemTime::now());
    Ok(path)
}

/// Marks an archive as used by its modification time, at a coarse resolution: a file that changes while it is being
/// uploaded would be rejected.
fn note_use(archive: &Path) {
    let modified = archive.metadata().and_then(|metadata| metadata.modified());
    let is_recent = |used_at: SystemTime| {
        let age = SystemTime::now().duration_since(used_at);
        age.is_ok_and(|age| age < MAY_BE_IN_USE / 2)
    };
    if modified.is_ok_and(is_recent) {
        return;
    }
    let file = File::options().append(true).open(archive);
    if let Err(error) = file.and_then(|file| file.set_modified(SystemTime::now())) {
        // If this fails, the model may be packed again unnecessarily.
        log::debug!("{}: {error}", archive.display());
    }
}

/// Deletes the least recently used archives.
fn forget_old(folder: &Path, now: SystemTime) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    let mut archives: Vec<(SystemTime, PathBuf)> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let used_at = entry.metadata().ok()?.modified().ok()?;
            Some((used_at, entry.path()))
        })
        .collect();
    archives.sort_by(|a, b| b.cmp(a));
    for (used_at, path) in archives.into_iter().skip(KEPT) {
        let is_idle = now.duration_since(used_at).is_ok_and(|age| age > MAY_BE_IN_USE);
        if is_idle && let Err(error) = std::fs::remove_file(&path) {
            log::warn!("could not delete {}: {error}", path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_archives_are_removed_and_a_few_stay() {
        let folder = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        let left = || {
            let entries = std::fs::read_dir(folder.path()).unwrap();
            let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            let mut names: Vec<String> = names.collect();
            names.sort();
            names
        };
        let add = |name: &str, days: u64| {
            let file = File::create(folder.path().join(name)).unwrap();
            let age = Duration::from_hours(24 * days) + Duration::from_mins(1);
            file.set_modified(now.checked_sub(age).unwrap()).unwrap();
        };
        for (name, days) in [("a", 40), ("b", 30), ("c", 20), ("d", 10)] {
            add(name, days);
        }
        forget_old(folder.path(), now);
        assert_eq!(left(), ["a", "b", "c", "d"]);
        note_use(&folder.path().join("a"));
        add("e", 0);
        add("f", 0);
        forget_old(folder.path(), now);
        assert_eq!(left(), ["a", "d", "e", "f"]);
        // All of them were used today.
        for name in ["g", "h"] {
            add(name, 0);
        }
        forget_old(folder.path(), now);
        assert_eq!(left(), ["a", "e", "f", "g", "h"]);
    }
}
