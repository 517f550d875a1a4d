//! Packs a TensorFlow `SavedModel` for the TensorFlow Serving image.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::onnx::REQUIREMENTS_FILE;
use super::source::{PackedFile, check_kind, collect};
use super::{ArchiveWriter, PackageError, Packaged};
use crate::project::export::ExportTarget;
use crate::tasks::TaskControl;

/// The graph in the folder of each version.
const GRAPH_FILE: &str = "saved_model.pb";
const CODE_FOLDER: &str = "code";
const CODE_PREFIX: &str = "code/";
const OWN_REQUIREMENTS: &str = "requirements.txt";
const HANDLER_FILE: &str = "code/inference.py";
/// The version of a `SavedModel` without version folders.
const ONLY_VERSION: &str = "1";

const HANDLER: &[(&str, &str)] = &[
    (HANDLER_FILE, include_str!("../../../assets/handler/saved_model/inference.py")),
    ("code/spotcheck_records.py", include_str!("../../../assets/handler/spotcheck_records.py")),
];

/// Options of our handler for TensorFlow Serving. `None` lets the server decide.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SavedModelOptions {
    /// The name of the signature; by default `serving_default`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// The name of the input for encoded images, if the signature has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
}

/// Whether a file in an archive is the graph of a version: `1/saved_model.pb`.
pub(super) fn is_graph_of_version(name: &Path) -> bool {
    let folder = name.parent().and_then(Path::file_name);
    let number = folder.and_then(|folder| folder.to_str()?.parse::<u64>().ok());
    name.ends_with(GRAPH_FILE) && number.is_some()
}

/// Packs a folder that contains `<version>/saved_model.pb`, or `saved_model.pb` itself. Uses its own
/// `code/inference.py` if there is one, otherwise ours; a `requirements.txt` next to the versions goes to `code/`.
/// Progress is in bytes.
///
/// # Errors
/// There is no `SavedModel`, a file cannot be read, or a file is a link, which could lead anywhere. Nothing is left of
/// the archive then.
pub fn package_saved_model(
    folder: &Path,
    options: &SavedModelOptions,
    target: &ExportTarget,
    control: &TaskControl,
) -> Result<Packaged, PackageError> {
    control.set_step("the SavedModel");
    let files = files_of(folder)?;
    let has_own_handler = files.iter().any(|file| file.name == HANDLER_FILE);
    if has_own_handler && *options != SavedModelOptions::default() {
        return Err(PackageError::RefusedFile {
            reason: "its code/inference.py chooses the signature and the input".to_owned(),
            path: folder.join(HANDLER_FILE),
        });
    }
    let bytes = files.iter().filter_map(|file| file.path.metadata().ok());
    control.set_total(Some(bytes.map(|metadata| metadata.len()).sum()));

    let mut archive = ArchiveWriter::create(target, control)?;
    for file in &files {
        archive.add_file(&file.name, &file.path, "a file of the SavedModel")?;
    }
    if !has_own_handler {
        for (name, text) in HANDLER {
            archive.add_bytes(name, text.as_bytes())?;
        }
        let serving = serde_json::to_string(options).expect("two texts always serialize");
        archive.add_bytes("code/spotcheck-serving.json", serving.as_bytes())?;
    }
    archive.finish()
}

/// A number that changes with the names, sizes and times of the packed files.
///
/// # Errors
/// As [`package_saved_model`].
pub fn stamp_of_saved_model(folder: &Path) -> Result<u64, PackageError> {
    let mut hasher = DefaultHasher::new();
    for file in files_of(folder)? {
        let metadata = file.path.metadata();
        let metadata = metadata.map_err(PackageError::read("a file of the SavedModel", &file.path))?;
        (file.name, file.path, metadata.len()).hash(&mut hasher);
        metadata.modified().ok().hash(&mut hasher);
    }
    Ok(hasher.finish())
}

/// The files of a folder to pack, without those that Spotcheck adds.
fn files_of(folder: &Path) -> Result<Vec<PackedFile>, PackageError> {
    let mut files = Vec::new();
    for (place, name) in versions(folder)? {
        collect(&place, &format!("{name}/"), &mut files)?;
    }
    // A version in the folder itself has them next to its graph.
    let of_code = |name: &str| {
        let below = name.strip_prefix(ONLY_VERSION).and_then(|name| name.strip_prefix('/'));
        below.is_some_and(|name| name == OWN_REQUIREMENTS || name.starts_with(CODE_PREFIX))
    };
    if folder.join(GRAPH_FILE).is_file() {
        files.retain(|file: &PackedFile| !of_code(&file.name));
    }
    let own_code = folder.join(CODE_FOLDER);
    if own_code.is_dir() {
        collect(&own_code, CODE_PREFIX, &mut files)?;
    }
    let own_requirements = folder.join(OWN_REQUIREMENTS);
    let has = |files: &[PackedFile], wanted: &str| files.iter().any(|file| file.name == wanted);
    if own_requirements.is_file() && !has(&files, REQUIREMENTS_FILE) {
        check_kind(&own_requirements)?;
        files.push(PackedFile { name: REQUIREMENTS_FILE.to_owned(), path: own_requirements });
    }
    Ok(files)
}

/// The version folders with their names in the archive, in ascending order.
fn versions(folder: &Path) -> Result<Vec<(PathBuf, String)>, PackageError> {
    if folder.join(GRAPH_FILE).is_file() {
        return Ok(vec![(folder.to_owned(), ONLY_VERSION.to_owned())]);
    }
    let entries = std::fs::read_dir(folder).map_err(PackageError::read("the SavedModel's folder", folder))?;
    let mut versions: Vec<(u64, PathBuf, String)> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok()?;
            let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
            let number = name.parse().ok().filter(|_| is_number)?;
            let path = entry.path();
            path.join(GRAPH_FILE).is_file().then_some((number, path, name))
        })
        .collect();
    versions.sort();
    if let Some(pair) = versions.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(PackageError::RefusedFile {
            reason: format!(
                "this is the same version as {}, but TensorFlow Serving accepts only one; remove one of them",
                pair[0].2
            ),
            path: pair[1].1.clone(),
        });
    }
    if versions.is_empty() {
        return Err(PackageError::NoSavedModel { path: folder.to_owned() });
    }
    let named = versions.into_iter().map(|(_, path, name)| (path, name));
    Ok(named.collect())
}
