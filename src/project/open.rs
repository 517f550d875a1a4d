//! Opens projects: the first program writes, later ones read; old files are upgraded, newer ones left unchanged,
//! damaged ones renamed.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension};

use super::damage::{put_back, rescue, set_aside};
use super::error::{StoreError, explain, is_damage, is_interrupted};
use super::files::{ProjectFile, companion, resolve, vacuum_into};
use super::lock::{FileLock, Holder, Locking, host_name};
use super::queue::Queue;
use super::reader::{Readers, open_reader};
use super::schema::{self, APPLICATION_ID, VERSION, fact, read_root, set_fact, set_root};
use super::writer::{Refused, Writer};
use super::{Access, Inner, Project, ReadOnlyReason, Root, SaveEvent, Writing};
use crate::dirs::Scratch;
use crate::tasks::now_ms;

/// Maximum time for checking a file, unless the last program that wrote to it did not close it. A project with 100,000
/// images and 100 boxes each takes 0.1 s, or 1.3 s if the disk has to be read.
const CHECK_TIME: Duration = Duration::from_secs(3);

#[derive(Debug, Clone, Copy)]
pub struct OpenRequest<'r> {
    /// Ends in `.spotcheck`. Created, with its folder, if it does not exist and writing is allowed.
    pub path: &'r Path,
    /// The folder of the project's images; samples in it are named relative to it. A project that has a root keeps it.
    pub root: Option<&'r str>,
    pub mode: OpenMode,
    /// The name of this program, which a second one shows: “a Spotcheck window”.
    pub program: &'r str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// Still read-only if another program has it open, or it is not writable; see [`Project::access`].
    Write,
    /// As `Write`, but creates nothing: the file must already be a project.
    WriteExisting,
    /// Another program can write at the same time.
    Read,
}

/// An open project, with notes for the user about how it was opened.
pub struct Opened {
    pub project: Project,
    /// Whole sentences without a period.
    pub notes: Vec<String>,
}

/// Why nothing can be read.
const EMPTY: &str = "it is empty";

enum Finding {
    /// The file does not exist, or is empty.
    Nothing,
    Project {
        version: u32,
    },
    Damaged(String),
    /// Another kind of file, or its first bytes are damaged.
    NoDatabase(String),
}

impl Project {
    /// Slow: reads and may check the file. `on_save` is called on the writer's thread and must not wait.
    pub fn open(request: &OpenRequest<'_>, on_save: impl Fn(SaveEvent) + Send + 'static) -> Result<Opened, StoreError> {
        let path = resolve(request.path)?;
        match request.mode {
            OpenMode::Read => open_to_read(&path, ReadOnlyReason::Requested),
            OpenMode::Write | OpenMode::WriteExisting => open_to_write(&path, request, Box::new(on_save)),
        }
    }

    /// A project that is lost when the program ends, if no file can be written. The caller tells the user.
    pub fn in_memory(root: Option<&str>, on_save: impl Fn(SaveEvent) + Send + 'static) -> Result<Self, StoreError> {
        let make = || {
            let mut connection = Connection::open_in_memory()?;
            schema::prepare_writer(&connection)?;
            schema::migrate(&mut connection)?;
            Ok(connection)
        };
        let connection = make().map_err(StoreError::database("create a project in memory"))?;
        let shared_root = Arc::new(Root::default());
        shared_root.set(root);
        start_writer(connection, ProjectFile::in_memory(), shared_root, None, Box::new(on_save))
    }
}

type OnSave = Box<dyn Fn(SaveEvent) + Send>;

fn open_to_write(path: &Path, request: &OpenRequest<'_>, on_save: OnSave) -> Result<Opened, StoreError> {
    if request.mode == OpenMode::WriteExisting
        && let Err(error) = path.metadata()
    {
        return Err(StoreError::io("open the project", path)(error));
    }
    if let Some(folder) = path.parent()
        && let Err(error) = std::fs::create_dir_all(folder)
    {
        return Err(StoreError::io("create the project folder", folder)(error));
    }
    match FileLock::acquire(path, request.program) {
        Ok(Locking::Ours(lock)) => write_locked(path, lock, request, on_save),
        Ok(Locking::Held(holder)) => open_held(path, &holder),
        Err(error) if path.exists() => open_to_read(path, ReadOnlyReason::FolderNotWritable(error.to_string())),
        Err(error) => Err(StoreError::io("create the project file", path)(error)),
    }
}

/// The holder may be about to create the file.
fn open_held(path: &Path, holder: &Holder) -> Result<Opened, StoreError> {
    let held = || StoreError::Held { path: path.to_owned(), holder: holder.to_string() };
    // SQLite's journal uses shared memory, which is local to the machine.
    if holder.host.is_some() && holder.host != host_name() {
        return Err(held());
    }
    for _ in 0..40 {
        if let Ok(Finding::Project { .. }) = inspect(path, Check::Quick) {
            let is_this_process = holder.is_this_process();
            return open_to_read(path, ReadOnlyReason::Held { holder: holder.to_string(), is_this_process });
        }
        std::thread::sleep(Duration::from_millis(25));
    }
    Err(held())
}

fn write_locked(path: &Path, lock: FileLock, request: &OpenRequest<'_>, on_save: OnSave) -> Result<Opened, StoreError> {
    let must_exist = request.mode == OpenMode::WriteExisting;
    let mut notes = Vec::new();
    let mut aside = None;
    match inspect(path, Check::Thorough)? {
        // A journal without its file belongs to a file that no longer exists.
        Finding::Nothing => {
            if must_exist {
                return Err(StoreError::Lost { path: path.to_owned(), reason: EMPTY.to_owned() });
            }
            if path.exists() {
                notes.push(format!("The project file was empty; started a new project in it: {}", path.display()));
            }
        }
        Finding::Project { version: VERSION } => {}
        Finding::Project { version } => notes.push(format!(
            "The project was upgraded from format {version} to {VERSION}; older versions of Spotcheck cannot open it: \
            {}",
            path.display()
        )),
        Finding::Damaged(reason) => aside = Some((set_aside(path)?, reason, true)),
        Finding::NoDatabase(reason) => aside = Some((set_aside(path)?, reason, false)),
    }
    let failed = || StoreError::database("open the project file");
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(failed())?;
    if connection.is_readonly("main").unwrap_or(false) {
        drop((connection, lock));
        return open_to_read(path, ReadOnlyReason::WriteProtected);
    }
    let prepare = |connection: &mut Connection| {
        schema::prepare_writer(connection)?;
        schema::migrate(connection)
    };
    prepare(&mut connection).map_err(failed())?;
    if let Some((aside, reason, is_project)) = &aside {
        let rescued = rescue(&mut connection, aside).map_err(StoreError::database("recover the damaged project"));
        let rescued = match rescued {
            Ok(rescued) if !rescued.is_empty() => Ok(rescued),
            Ok(_) if must_exist && *is_project => {
                Err(StoreError::Lost { path: path.to_owned(), reason: reason.clone() })
            }
            // The user may have meant another file.
            Ok(_) if must_exist => Err(StoreError::NotAProject(path.to_owned())),
            Ok(_) => Ok("Nothing".to_owned()),
            Err(error) => Err(error),
        };
        let rescued = match rescued {
            Ok(rescued) => rescued,
            Err(error) => {
                drop(connection);
                put_back(aside, path);
                return Err(error);
            }
        };
        notes.push(format!(
            "The project was damaged ({reason}). Recovered: {rescued}. The damaged file is kept as {}",
            aside.display()
        ));
    }
    let root = Arc::new(Root::default());
    let set_up = settle_root(&connection, path, request.root, &mut notes);
    root.set(set_up.map_err(StoreError::database("save the image folder"))?.as_deref());
    let file = ProjectFile::new(path.to_owned());
    let project = start_writer(connection, file, root, Some(lock), on_save)?;
    Ok(Opened { project, notes })
}

fn start_writer(
    connection: Connection,
    file: ProjectFile,
    root: Arc<Root>,
    lock: Option<FileLock>,
    on_save: OnSave,
) -> Result<Project, StoreError> {
    let next_run = next_run(&connection).map_err(StoreError::database("read the runs"))?;
    let connection = Arc::new(Mutex::new(connection));
    let file = Arc::new(file);
    let memory = file.path().is_none().then(|| Arc::clone(&connection));
    let readers = Readers::new(Arc::clone(&file), memory);
    let queue = Arc::new(Queue::default());
    let writer = Writer {
        connection: Arc::clone(&connection),
        file: Arc::clone(&file),
        queue: Arc::clone(&queue),
        root: Arc::clone(&root),
        on_save,
        refused: Refused::default(),
    };
    let thread = std::thread::Builder::new()
        .name("project".to_owned())
        .spawn(move || writer.run())
        .map_err(StoreError::io("start the thread that saves", Path::new("")))?;
    Ok(Project(Arc::new(Inner {
        readers,
        access: Access::Writer,
        file,
        root,
        next_run: AtomicU64::new(next_run),
        writing: Some(Writing { queue, connection, thread: Some(thread) }),
        _copy: None,
        lock: Mutex::new(lock),
    })))
}

/// Opens the file itself if SQLite can share it, otherwise a copy: if nothing can be written next to it, or if it is of
/// an older version.
fn open_to_read(path: &Path, reason: ReadOnlyReason) -> Result<Opened, StoreError> {
    let damaged = |reason| StoreError::Damaged { path: path.to_owned(), reason };
    let io = StoreError::io("read the project", path);
    if let Err(error) = path.metadata() {
        return Err(io(error));
    }
    let shares = can_write_next_to(path);
    let mut copy = None;
    if !shares {
        copy = Some(copy_files(path)?);
    }
    let mut read_path = copy.as_ref().map_or(path.to_owned(), |copy| copy.path().join(COPY));
    match inspect(&read_path, Check::Thorough)? {
        Finding::Nothing => return Err(StoreError::Lost { path: path.to_owned(), reason: EMPTY.to_owned() }),
        Finding::Damaged(reason) => return Err(damaged(reason)),
        Finding::NoDatabase(_) => return Err(StoreError::NotAProject(path.to_owned())),
        Finding::Project { version: VERSION } => {}
        Finding::Project { .. } => {
            let migrated = migrated_copy(&read_path)?;
            read_path = migrated.path().join(COPY);
            copy = Some(migrated);
        }
    }
    let failed = StoreError::database("open the project file");
    let read = || {
        let connection = open_reader(&read_path)?;
        Ok((read_root(&connection, path)?, next_run(&connection)?))
    };
    let (stored_root, next_run) = read().map_err(failed)?;
    let root = Arc::new(Root::default());
    root.set(stored_root.as_deref());
    let file = Arc::new(ProjectFile::new(read_path));
    let notes = match reason {
        ReadOnlyReason::Requested => Vec::new(),
        _ => vec![format!("The project is read-only: {reason}")],
    };
    let inner = Inner {
        readers: Readers::new(file, None),
        access: Access::ReadOnly { reason },
        file: Arc::new(ProjectFile::new(path.to_owned())),
        root,
        next_run: AtomicU64::new(next_run),
        writing: None,
        _copy: copy,
        lock: Mutex::default(),
    };
    Ok(Opened { project: Project(Arc::new(inner)), notes })
}

/// The file name of a copy in its own folder.
pub(super) const COPY: &str = "copy.spotcheck";

fn can_write_next_to(path: &Path) -> bool {
    path.parent().is_some_and(|folder| tempfile::tempfile_in(folder).is_ok())
}

/// Copies a database with its journal, which may contain newer changes than the file.
pub(super) fn copy_files(path: &Path) -> Result<Scratch, StoreError> {
    let failed = || StoreError::io("copy the project to read it", path);
    let folder = Scratch::new().map_err(failed())?;
    let copy = folder.path().join(COPY);
    std::fs::copy(path, &copy).map_err(failed())?;
    let journal = companion(path, "-wal");
    if journal.is_file() {
        std::fs::copy(&journal, companion(&copy, "-wal")).map_err(failed())?;
    }
    Ok(folder)
}

fn migrated_copy(path: &Path) -> Result<Scratch, StoreError> {
    let folder = Scratch::new().map_err(StoreError::io("copy the project to read it", path))?;
    let copy = folder.path().join(COPY);
    let make = || {
        vacuum_into(&open_reader(path)?, &copy)?;
        let mut connection = Connection::open(&copy)?;
        schema::migrate(&mut connection)
    };
    make().map_err(StoreError::database("upgrade a copy of the older project"))?;
    Ok(folder)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Check {
    /// Whether it is a project, with the right tables.
    Quick,
    /// Also whether it is intact, as far as that can be checked quickly.
    Thorough,
}

/// Inspects a file without changing it. Never through the file system, because closing a file that is also open in
/// SQLite would drop SQLite's locks.
fn inspect(path: &Path, look: Check) -> Result<Finding, StoreError> {
    let Ok(metadata) = path.metadata() else {
        return Ok(Finding::Nothing);
    };
    if !metadata.is_file() {
        return Err(StoreError::NotAProject(path.to_owned()));
    }
    if metadata.len() == 0 {
        return Ok(Finding::Nothing);
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let read = || -> rusqlite::Result<_> {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(super::BUSY_TIMEOUT)?;
        let application_id: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
        let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        Ok((schema::version(&connection)?, application_id, tables, connection))
    };
    let (version, application_id, tables, mut connection) = match read() {
        Ok(read) => read,
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
            return Ok(Finding::NoDatabase(error.to_string()));
        }
        Err(error) if is_damage(&error) => return Ok(Finding::Damaged(error.to_string())),
        Err(error) => return Err(StoreError::database("read the project file")(error)),
    };
    if application_id == 0 && version == 0 && tables == 0 {
        return Ok(Finding::Nothing);
    }
    if application_id != APPLICATION_ID {
        return Err(StoreError::NotAProject(path.to_owned()));
    }
    if version > VERSION {
        return Err(StoreError::Newer { path: path.to_owned(), found: version, known: VERSION });
    }
    let fault = schema::fault(&connection).and_then(|fault| match fault {
        None if look == Check::Thorough => {
            let was_left_open = companion(path, "-wal").metadata().is_ok_and(|journal| journal.len() > 0);
            find_damage(&mut connection, (!was_left_open).then_some(CHECK_TIME))
        }
        fault => Ok(fault),
    });
    match fault {
        Ok(None) => Ok(Finding::Project { version }),
        Ok(Some(fault)) => Ok(Finding::Damaged(fault)),
        Err(error) if is_damage(&error) => Ok(Finding::Damaged(explain(&error))),
        Err(error) => Err(StoreError::database("check the project file")(error)),
    }
}

/// The first damage of a file, as text; `None` if it is intact as far as it was checked in time.
pub(super) fn find_damage(connection: &mut Connection, time: Option<Duration>) -> rusqlite::Result<Option<String>> {
    /// The number of pages between two checks of the clock.
    const STEPS: i32 = 100;
    let begun = Instant::now();
    let is_late = move || time.is_some_and(|time| begun.elapsed() >= time);
    connection.progress_handler(STEPS, Some(is_late))?;
    let verdict = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    match verdict {
        // After a line that names the database.
        Ok(verdict) => Ok(verdict.lines().last().filter(|fault| *fault != "ok").map(str::to_owned)),
        Err(error) if is_interrupted(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn next_run(connection: &Connection) -> rusqlite::Result<u64> {
    let sql = "SELECT seq FROM sqlite_sequence WHERE name = 'runs'";
    let last: Option<i64> = connection.query_row(sql, [], |row| row.get(0)).optional()?;
    Ok(last.unwrap_or(0) as u64 + 1)
}

/// The root of a writable project; a new one gets the requested root.
fn settle_root(
    connection: &Connection,
    file: &Path,
    wanted: Option<&str>,
    notes: &mut Vec<String>,
) -> rusqlite::Result<Option<String>> {
    let stored = fact(connection, "root")?;
    let Some(before) = stored else {
        set_root(connection, file, wanted)?;
        set_fact(connection, "created_ms", Some(&now_ms().to_string()))?;
        set_fact(connection, "created_by", Some(env!("CARGO_PKG_VERSION")))?;
        return Ok(wanted.map(str::to_owned));
    };
    let root = read_root(connection, file)?.unwrap_or_else(|| before.clone());
    if root != before {
        notes.push(format!("The images moved together with the project, from {before} to {root}"));
        set_root(connection, file, Some(&root))?;
    } else if let Some(wanted) = wanted.filter(|wanted| *wanted != root)
        && !root.contains("://")
        && !Path::new(&root).exists()
    {
        notes.push(format!(
            "The project belongs to {root}, which does not exist; if its images moved to {wanted}, set this folder \
             with “Locate images…” or `spotcheck project relocate`"
        ));
    }
    Ok(Some(root))
}
