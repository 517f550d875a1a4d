//! The ONNX Runtime library: found on this computer, or installed.
//!
//! It is searched for in the user's setting, in `ORT_DYLIB_PATH`, in the app's data folder, in the packages next to the
//! program and among the system's libraries. What the user names explicitly is used or rejected, never skipped. Nothing is loaded
//! before it is checked: a truncated library would kill the process.

mod error;
mod index;
mod install;
mod installed;
mod packages;
mod pip;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ort::LoadDynamicError;
use ort::environment::Environment;
use ort::logging::LogLevel;
use parking_lot::Mutex;

pub use error::RuntimeError;
pub use install::install;
pub use installed::InstalledPackage;
pub use packages::RuntimePackage;

use crate::dirs::{AppDirs, package_library_folder, python_packages};
use crate::tasks::TaskControl;

/// Names the library, for this and any other program that uses ONNX Runtime.
pub const LIBRARY_VARIABLE: &str = "ORT_DYLIB_PATH";

/// ONNX Runtime 1.24 is the oldest version with everything that Spotcheck uses.
const MIN_MINOR_VERSION: u32 = ort::MINOR_VERSION;

/// A library that can be loaded, with its plug-ins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuntimeLibrary {
    /// Absolute.
    pub path: PathBuf,
    /// `1.32.0`, or `1.32` if the library does not reveal more.
    pub version: String,
    pub found_in: Place,
    /// Execution providers in separate libraries.
    pub plugins: Vec<InstalledPackage>,
    /// Why an installed plug-in cannot be used; the rest works without it.
    pub plugin_problem: Option<String>,
}

/// The sources of a library, in search order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Setting,
    Variable,
    /// The app's data folder.
    Installed(RuntimePackage),
    /// The packages next to the program: `PREFIX/lib/spotcheck` of a Debian package, or the Python environment that
    /// Spotcheck is installed in (`pip install 'spotcheck[cpu]'`).
    Package,
    System,
}

impl Place {
    const ALL: [Self; 6] = [
        Self::Setting,
        Self::Variable,
        // A package with CUDA was installed on purpose, and it can do everything that the others can.
        Self::Installed(RuntimePackage::Cuda),
        Self::Package,
        Self::Installed(RuntimePackage::Cpu),
        Self::System,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Setting => "your settings",
            Self::Variable => LIBRARY_VARIABLE,
            Self::Installed(RuntimePackage::Cuda) => "Spotcheck's own folder, with CUDA",
            Self::Installed(_) => "Spotcheck's own folder",
            Self::Package => "the packages next to Spotcheck",
            Self::System => "the system's libraries",
        }
    }
}

#[derive(Debug)]
pub struct SearchStep {
    pub place: Place,
    /// `None` if there is nothing.
    pub found: Option<Result<RuntimeLibrary, RuntimeError>>,
}

/// `ORT_DYLIB_PATH: nothing`
impl std::fmt::Display for SearchStep {
    fn fmt(&self, text: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(text, "{}: ", self.place.name())?;
        match &self.found {
            None => text.write_str("nothing"),
            Some(Ok(library)) => write!(text, "{} {}", library.version, library.path.display()),
            Some(Err(error)) => error.fmt(text),
        }
    }
}

/// ONNX Runtime in this process, ready to create sessions.
#[derive(Debug, Clone)]
pub struct Loaded {
    pub environment: Environment,
    pub path: PathBuf,
    pub version: String,
    pub found_in: Place,
    pub plugins: Vec<InstalledPackage>,
    /// Why an installed plug-in cannot be used; the rest works without it.
    pub plugin_problem: Option<String>,
    /// What the search finds now, if that differs from the loaded library: a process loads only one. “Restart to use
    /// it”.
    pub restart_to_use: Option<RuntimeLibrary>,
}

/// Searches all places lazily, in order. `setting` is the path in the user's settings: a library or the folder that
/// contains it.
pub fn search(dirs: &AppDirs, setting: Option<&Path>) -> impl Iterator<Item = SearchStep> {
    // Without a setting, there is no such place.
    let places = Place::ALL.into_iter().filter(move |&place| place != Place::Setting || setting.is_some());
    places.map(move |place| SearchStep { place, found: search_in(place, dirs, setting) })
}

/// The first library that the search finds.
///
/// # Errors
/// [`RuntimeError::NotFound`] if there is none; the reason if the library that the user named or installed cannot be
/// used.
pub fn locate(dirs: &AppDirs, setting: Option<&Path>) -> Result<RuntimeLibrary, RuntimeError> {
    for step in search(dirs, setting) {
        match step.found {
            Some(Err(error)) if matches!(step.place, Place::Package | Place::System) => log::info!("skipped: {error}"),
            Some(found) => return found,
            None => {}
        }
    }
    Err(RuntimeError::NotFound)
}

/// Loads the library that the search finds; if there is none, first installs one. Cheap once that is done.
/// `control` counts the bytes of the download.
pub fn ensure_loaded(dirs: &AppDirs, setting: Option<&Path>, control: &TaskControl) -> Result<Loaded, RuntimeError> {
    let library = match locate(dirs, setting) {
        Err(RuntimeError::NotFound) => {
            install(dirs, RuntimePackage::Cpu, None, control)?;
            locate(dirs, setting)?
        }
        found => found?,
    };
    load(library)
}

fn search_in(place: Place, dirs: &AppDirs, setting: Option<&Path>) -> Option<Result<RuntimeLibrary, RuntimeError>> {
    let found = match place {
        Place::Setting => examine_named(setting?, place),
        Place::Variable => {
            let path = std::env::var_os(LIBRARY_VARIABLE).filter(|path| !path.is_empty())?;
            examine_named(Path::new(&path), place)
        }
        Place::Installed(package) => installed::find(dirs, package)?.map(|installed| RuntimeLibrary {
            path: installed.library,
            version: installed.version,
            found_in: place,
            plugins: Vec::new(),
            plugin_problem: None,
        }),
        Place::Package => first_good(place, package_libraries())?,
        Place::System => first_good(place, system_libraries())?,
    };
    Some(found.map(|library| {
        let plugin = installed::find(dirs, RuntimePackage::WebGpu).or_else(python_plugin);
        let (plugins, plugin_problem) = match plugin {
            None => (Vec::new(), None),
            Some(Ok(plugin)) => (vec![plugin], None),
            Some(Err(error)) => (Vec::new(), Some(error.to_string())),
        };
        RuntimeLibrary { plugins, plugin_problem, ..library }
    }))
}

/// A library named by the user, or the folder that contains one.
fn examine_named(path: &Path, place: Place) -> Result<RuntimeLibrary, RuntimeError> {
    let library =
        if path.is_dir() { libraries_in(path).into_iter().next() } else { path.exists().then(|| path.to_owned()) };
    let library = library.ok_or_else(|| RuntimeError::Missing { place: place.name(), path: path.to_owned() })?;
    examine(&library, place)
}

/// Checks a library that Spotcheck did not install.
fn examine(path: &Path, place: Place) -> Result<RuntimeLibrary, RuntimeError> {
    let path = std::path::absolute(path).map_err(RuntimeError::io("find", path))?;
    installed::check_library(&path).map_err(|reason| RuntimeError::NotALibrary { path: path.clone(), reason })?;
    let version = match version_in_name(&path) {
        Some(version) => version,
        None => ort::util::probe(&path).map(|minor| format!("1.{minor}")).ok_or_else(|| RuntimeError::CannotLoad {
            path: path.clone(),
            reason: "it is not ONNX Runtime, or libraries that it needs are missing".to_owned(),
        })?,
    };
    if minor_version(&version).is_some_and(|minor| minor < MIN_MINOR_VERSION) {
        return Err(RuntimeError::TooOld { path, version });
    }
    Ok(RuntimeLibrary { path, version, found_in: place, plugins: Vec::new(), plugin_problem: None })
}

/// `libonnxruntime.so` is usually a link to `libonnxruntime.so.1.32.0`.
fn version_in_name(path: &Path) -> Option<String> {
    let path = path.canonicalize().ok()?;
    let name = path.file_name()?.to_str()?.trim_end_matches(".dylib");
    let (_, version) = name.split_once("so.").or_else(|| name.split_once("onnxruntime."))?;
    (version.split('.').count() == 3 && minor_version(version).is_some()).then(|| version.to_owned())
}

/// The 32 in `1.32.0`.
fn minor_version(version: &str) -> Option<u32> {
    version.strip_prefix("1.")?.split('.').next()?.parse().ok()
}

fn first_good(place: Place, paths: Vec<PathBuf>) -> Option<Result<RuntimeLibrary, RuntimeError>> {
    let mut first_error = None;
    for path in paths {
        match examine(&path, place) {
            Ok(library) => return Some(Ok(library)),
            Err(error) => first_error = first_error.or(Some(Err(error))),
        }
    }
    first_error
}

/// As in a package for a system, or as the Python packages `onnxruntime` and `onnxruntime-gpu` install them.
fn package_libraries() -> Vec<PathBuf> {
    let folder = RuntimePackage::Cpu.folder_in_wheel();
    let in_python = python_packages().into_iter().map(|packages| packages.join(folder));
    package_library_folder().into_iter().chain(in_python).flat_map(|folder| libraries_in(&folder)).collect()
}

/// The WebGPU plug-in in the Python environment that Spotcheck is installed in.
fn python_plugin() -> Option<Result<InstalledPackage, RuntimeError>> {
    let package = RuntimePackage::WebGpu;
    let (library, packages) = python_packages().into_iter().find_map(|packages| {
        let entries = std::fs::read_dir(packages.join(package.folder_in_wheel())).ok()?.flatten();
        let mut paths = entries.map(|entry| entry.path());
        let library = paths.find(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            packages::is_needed(&name) && package.is_main_library(&name)
        })?;
        Some((library, packages))
    })?;
    if let Err(reason) = installed::check_library(&library) {
        return Some(Err(RuntimeError::NotALibrary { path: library, reason }));
    }
    let metadata = std::fs::read_dir(packages).into_iter().flatten().flatten();
    let version = metadata.into_iter().find_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let rest = name.strip_prefix(package.folder_in_wheel())?.strip_prefix('-')?;
        rest.strip_suffix(".dist-info").map(str::to_owned)
    });
    let bytes = library.metadata().map_or(0, |metadata| metadata.len());
    let version = version.unwrap_or_else(|| "of unknown version".to_owned());
    Some(Ok(InstalledPackage { package, version, library, is_pinned: false, bytes }))
}

fn system_libraries() -> Vec<PathBuf> {
    let next_to_program = std::env::current_exe().ok();
    let (variable, folders): (&str, &[&str]) = match std::env::consts::OS {
        "windows" => ("PATH", &[r"C:\Program Files\onnxruntime\lib"]),
        "macos" => ("DYLD_LIBRARY_PATH", &["/opt/homebrew/lib", "/usr/local/lib"]),
        _ => (
            "LD_LIBRARY_PATH",
            &[
                "/usr/local/lib",
                "/usr/lib/x86_64-linux-gnu",
                "/usr/lib/aarch64-linux-gnu",
                "/usr/lib64",
                "/usr/lib",
                "/opt/onnxruntime/lib",
            ],
        ),
    };
    let searched = std::env::var_os(variable).unwrap_or_default();
    next_to_program
        .iter()
        .filter_map(|program| program.parent().map(Path::to_owned))
        .chain(std::env::split_paths(&searched).filter(|folder| folder.is_absolute()))
        .chain(folders.iter().map(PathBuf::from))
        .flat_map(|folder| libraries_in(&folder))
        .collect()
}

/// Core libraries in a folder, newest name first; empty if it cannot be read.
fn libraries_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_str().is_some_and(packages::is_core_library))
        .map(|entry| entry.path())
        .collect();
    alphanumeric_sort::sort_path_slice(&mut paths);
    paths.reverse();
    paths
}

/// The only library of this process. Never released: ONNX Runtime's teardown at exit has crashed with GPU builds.
static LOADED: Mutex<Option<(Environment, RuntimeLibrary)>> = Mutex::new(None);

/// Loads a library, unless another one is already loaded ([`Loaded::restart_to_use`]).
pub fn load(library: RuntimeLibrary) -> Result<Loaded, RuntimeError> {
    let mut loaded = LOADED.lock();
    if loaded.is_none() {
        *loaded = Some((environment(&library)?, library.clone()));
    }
    let (environment, first) = loaded.clone().expect("it was loaded just above");
    Ok(Loaded {
        environment,
        path: first.path.clone(),
        version: first.version,
        found_in: first.found_in,
        plugins: library.plugins.clone(),
        plugin_problem: library.plugin_problem.clone(),
        restart_to_use: (library.path != first.path).then_some(library),
    })
}

fn environment(library: &RuntimeLibrary) -> Result<Environment, RuntimeError> {
    let builder = ort::init_from(&library.path).map_err(|error| explain(error, &library.path))?;
    let environment = builder
        .with_name("spotcheck")
        .with_telemetry(false)
        .with_logger(Arc::new(|level, _category, _id, place, message| {
            log::log!(log_level(level), "{message} ({place})");
        }))
        .build()
        .map_err(|error| RuntimeError::CannotLoad { path: library.path.clone(), reason: error.to_string() })?;
    environment.set_log_level(LogLevel::Warning);
    Ok(environment)
}

/// Most of ONNX Runtime's warnings concern only its developers; what concerns the user is also returned as an error.
fn log_level(level: LogLevel) -> log::Level {
    match level {
        LogLevel::Fatal | LogLevel::Error => log::Level::Warn,
        LogLevel::Warning => log::Level::Info,
        LogLevel::Info | LogLevel::Verbose => log::Level::Debug,
    }
}

fn explain(error: LoadDynamicError, path: &Path) -> RuntimeError {
    let path = path.to_owned();
    match error {
        LoadDynamicError::BadVersion { version_str, .. } => RuntimeError::TooOld { path, version: version_str },
        LoadDynamicError::Dlopen { error, .. } => {
            let source = std::error::Error::source(&error);
            let reason = source.map_or_else(|| error.to_string(), ToString::to_string);
            if reason.contains("GLIBC_") {
                RuntimeError::GlibcTooOld { path, reason }
            } else {
                RuntimeError::CannotLoad { path, reason }
            }
        }
        error => RuntimeError::NotALibrary { path, reason: error.to_string() },
    }
}
