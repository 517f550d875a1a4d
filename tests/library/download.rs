//! Downloads of weights from a server that redirects, disconnects, lies and stalls, and counts the bytes it sends.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use spotcheck::dirs::AppDirs;
use spotcheck::model::catalog::{FetchError, Library, LibraryError, Model, write_card};
use spotcheck::model::download::{DownloadError, DownloadPolicy, MirrorFailure};
use spotcheck::tasks::{ProgressUnit, TaskControl};

use crate::support::http_server::{Ending, HttpServer, Reply};

/// The length of the file: more than a chunk of the client, and not a multiple of one.
const LEN: usize = 300_007;
const CUT: usize = 123_456;
const ETAG: &str = "\"version-1\"";

/// A library with one model whose weights are [`content`], on the given mirrors.
struct Home {
    folder: tempfile::TempDir,
    library: Library,
    control: TaskControl,
}

impl Home {
    fn new(urls: &[String]) -> Self {
        Self::with_policy(urls, quick())
    }

    fn with_policy(urls: &[String], policy: DownloadPolicy) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let library = Library::open(&AppDirs::below(folder.path())).with_download_policy(policy);
        let mut card = library.entries().swap_remove(0).card;
        "tested".clone_into(&mut card.id);
        "Tested".clone_into(&mut card.name);
        card.file.bytes = LEN as u64;
        card.file.sha256 = sha256(&content());
        urls.clone_into(&mut card.file.urls);
        let home = Self { folder, library, control: TaskControl::new(ProgressUnit::Bytes) };
        fs::create_dir_all(home.path("")).unwrap();
        fs::write(home.path("model.toml"), write_card(&card).unwrap()).unwrap();
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("data/models/tested").join(name)
    }

    fn fetch(&self) -> Result<Model, FetchError> {
        self.library.fetch("tested", None, &self.control)
    }

    /// Fetches the weights and checks the result.
    fn fetch_well(&self) {
        let model = self.fetch().unwrap();
        assert_eq!(model.weights, self.path("model.onnx"));
        assert!(fs::read(model.weights).unwrap() == content());
        assert_eq!(self.control.progress().fraction(), Some(1.0));
        self.assert_no_leftovers();
    }

    fn failures(&self) -> Vec<MirrorFailure> {
        match self.fetch().unwrap_err() {
            FetchError::Download(DownloadError::NoMirrorWorks { failures, .. }) => failures,
            other => panic!("{other}"),
        }
    }

    fn assert_no_leftovers(&self) {
        assert!(!self.path("model.onnx.part").exists());
        assert!(!self.path("model.onnx.part.json").exists());
    }

    /// Fetches on another thread; `self.control` can cancel it.
    fn fetch_aside(&self) -> std::thread::JoinHandle<Result<Model, FetchError>> {
        let (library, control) = (self.library.clone(), self.control.clone());
        std::thread::spawn(move || library.fetch("tested", None, &control))
    }
}

/// Retries immediately, and never mistakes a busy computer for a stalled server.
fn quick() -> DownloadPolicy {
    DownloadPolicy {
        stall_timeout: Duration::from_mins(1),
        first_pause: Duration::from_millis(1),
        attempts: 3,
        ..DownloadPolicy::default()
    }
}

fn content() -> Vec<u8> {
    let bytes = (0..LEN as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8);
    bytes.collect()
}

fn other_content() -> Vec<u8> {
    let mut content = content();
    content[LEN / 2] ^= 1;
    content
}

fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let digits: Vec<String> = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.concat()
}

/// A server without faults.
fn good_server() -> HttpServer {
    HttpServer::start(|request| Reply::file(&content(), ETAG, request))
}

/// A server without faults, except that the first connection ends after [`CUT`] bytes.
fn cutting_server() -> HttpServer {
    HttpServer::start(|request| {
        let reply = Reply::file(&content(), ETAG, request);
        match request.number {
            0 => reply.ending(Ending::CutAfter(CUT)),
            _ => reply,
        }
    })
}

#[test]
fn redirects_are_followed() {
    let target = good_server();
    let end = target.url("/content");
    let start = HttpServer::start(move |request| match request.path.as_str() {
        "/a" => Reply::redirect("/b".to_owned()),
        _ => Reply::redirect(end.clone()),
    });
    Home::new(&[start.url("/a")]).fetch_well();
    assert_eq!(start.exchanges().len(), 2);
    assert_eq!(target.bytes_served(), LEN);
}

#[test]
fn range_is_requested_after_a_redirect() {
    let target = cutting_server();
    let end = target.url("/content");
    let start = HttpServer::start(move |_| Reply::redirect(end.clone()));
    Home::new(&[start.url("/")]).fetch_well();
    assert_eq!(target.range_starts(), [None, Some(CUT)]);
    assert_eq!(target.bytes_served(), LEN);
}

#[test]
fn endless_redirect_fails() {
    let server = HttpServer::start(|_| Reply::redirect("/again".to_owned()));
    let failures = Home::new(&[server.url("/")]).failures();
    assert_eq!(failures[0].reason, "redirects too often");
}

#[test]
fn cut_download_resumes_at_its_offset() {
    let server = cutting_server();
    Home::new(&[server.url("/")]).fetch_well();
    let exchanges = server.exchanges();
    assert_eq!(server.range_starts(), [None, Some(CUT)]);
    assert_eq!(exchanges[1].request.if_range.as_deref(), Some(ETAG));
    assert_eq!(server.bytes_served(), LEN);
}

#[test]
fn progressing_download_survives_many_cuts() {
    let server = HttpServer::start(|request| {
        let reply = Reply::file(&content(), ETAG, request);
        let len = reply.body.len().min(LEN / 20);
        reply.ending(Ending::CutAfter(len))
    });
    Home::new(&[server.url("/")]).fetch_well();
    assert_eq!(server.exchanges().len(), 21);
    assert_eq!(server.bytes_served(), LEN);
}

#[test]
fn canceled_download_resumes_in_the_next_run() {
    let server = HttpServer::start(|request| {
        let reply = Reply::file(&content(), ETAG, request);
        match request.number {
            0 => reply.ending(Ending::StallAfter(CUT)),
            _ => reply,
        }
    });
    let home = Home::with_policy(&[server.url("/")], DownloadPolicy::default());
    let fetch = home.fetch_aside();
    wait_for_bytes(&home, CUT);
    home.control.cancel();
    assert!(matches!(fetch.join().unwrap(), Err(FetchError::Download(DownloadError::Cancelled(_)))));

    let home = Home { control: TaskControl::new(ProgressUnit::Bytes), ..home };
    home.fetch_well();
    assert_eq!(server.range_starts(), [None, Some(CUT)]);
    assert_eq!(server.bytes_served(), LEN);
}

/// Waits until the download of `home` has this many bytes; if they never arrive, the test's own time limit ends it.
fn wait_for_bytes(home: &Home, bytes: usize) {
    while home.control.progress().done < bytes as u64 {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn cancel_ends_a_silent_connection() {
    for ending in [Ending::Silent, Ending::StallAfter(0), Ending::StallAfter(CUT)] {
        let server = HttpServer::start(move |_| Reply::whole(&content()).header("ETag", ETAG).ending(ending));
        let home = Home::with_policy(&[server.url("/")], DownloadPolicy::default());
        let fetch = home.fetch_aside();
        server.wait_until_stalled();
        let start = Instant::now();
        home.control.cancel();
        let result = fetch.join().unwrap();
        assert!(start.elapsed() < Duration::from_secs(1), "{ending:?}");
        assert!(matches!(result, Err(FetchError::Download(DownloadError::Cancelled(_)))), "{ending:?}");
    }
}

#[test]
fn cancel_ends_the_retry_delay() {
    let server = HttpServer::start(|_| Reply::status("503 Service Unavailable"));
    let patient = DownloadPolicy { first_pause: Duration::from_hours(1), ..quick() };
    let home = Home::with_policy(&[server.url("/")], patient);
    let fetch = home.fetch_aside();
    while !home.control.progress().step.contains("retrying") {
        std::thread::sleep(Duration::from_millis(1));
    }
    home.control.cancel();
    assert!(matches!(fetch.join().unwrap(), Err(FetchError::Download(DownloadError::Cancelled(_)))));
}

#[test]
fn stalled_connection_is_replaced() {
    let server = HttpServer::start(|request| {
        let reply = Reply::file(&content(), ETAG, request);
        match request.number {
            0 => reply.ending(Ending::StallAfter(CUT)),
            1 => reply.ending(Ending::Silent),
            _ => reply,
        }
    });
    let impatient = DownloadPolicy { stall_timeout: Duration::from_secs(1), ..quick() };
    Home::with_policy(&[server.url("/")], impatient).fetch_well();
    assert_eq!(server.range_starts(), [None, Some(CUT), Some(CUT)]);
    assert_eq!(server.bytes_served(), LEN);
}

#[test]
fn changed_etag_starts_over() {
    let server = HttpServer::start(|request| match request.number {
        0 => Reply::file(&other_content(), "\"old\"", request).ending(Ending::CutAfter(CUT)),
        _ => Reply::file(&content(), ETAG, request),
    });
    Home::new(&[server.url("/")]).fetch_well();
    assert_eq!(server.range_starts(), [None, Some(CUT)]);
    assert_eq!(server.bytes_served(), CUT + LEN);
}

#[test]
fn part_of_another_version_is_not_mixed_in() {
    // This server ignores If-Range and sends the range of its new file.
    let server = HttpServer::start(|request| match (request.number, request.range_start) {
        (0, _) => Reply::file(&other_content(), "\"old\"", request).ending(Ending::CutAfter(CUT)),
        (_, Some(start)) => Reply::part(&content(), start).header("ETag", ETAG),
        (_, None) => Reply::file(&content(), ETAG, request),
    });
    Home::new(&[server.url("/")]).fetch_well();
    assert_eq!(server.range_starts(), [None, Some(CUT), None]);
}

#[test]
fn part_from_another_address_is_not_mixed_in() {
    let server = HttpServer::start(|request| match (request.number, request.range_start) {
        (0, _) => Reply::file(&content(), ETAG, request).ending(Ending::CutAfter(CUT)),
        (_, Some(start)) => Reply::part(&content(), start - 1).header("ETag", ETAG),
        (_, None) => Reply::file(&content(), ETAG, request),
    });
    Home::new(&[server.url("/")]).fetch_well();
    assert_eq!(server.range_starts(), [None, Some(CUT), None]);
}

#[test]
fn server_without_ranges_starts_over() {
    let server = HttpServer::start(|request| {
        let reply = Reply::whole(&content()).header("ETag", ETAG);
        match request.number {
            0 => reply.ending(Ending::CutAfter(CUT)),
            _ => reply,
        }
    });
    Home::new(&[server.url("/")]).fetch_well();
    assert_eq!(server.bytes_served(), CUT + LEN);
}

#[test]
fn refused_range_starts_over() {
    let server = HttpServer::start(|request| match (request.number, request.range_start) {
        (0, _) => Reply::file(&content(), ETAG, request).ending(Ending::CutAfter(CUT)),
        (_, Some(_)) => Reply::status("416 Range Not Satisfiable"),
        (_, None) => Reply::file(&content(), ETAG, request),
    });
    Home::new(&[server.url("/")]).fetch_well();
    assert_eq!(server.range_starts(), [None, Some(CUT), None]);
}

#[test]
fn last_modified_replaces_a_missing_etag() {
    const CHANGED: &str = "Sat, 21 Nov 2026 04:00:00 GMT";
    let server = HttpServer::start(|request| {
        match request.range_start {
            None => Reply::whole(&content()).ending(Ending::CutAfter(CUT)),
            Some(start) => Reply::part(&content(), start),
        }
        .header("Last-Modified", CHANGED)
    });
    Home::new(&[server.url("/")]).fetch_well();
    let second = &server.exchanges()[1].request;
    assert_eq!(second.if_range.as_deref(), Some(CHANGED));
    assert_eq!(server.bytes_served(), LEN);
}

#[test]
fn weak_version_is_not_resumed() {
    for etag in [None, Some("W/\"weak\"")] {
        let server = HttpServer::start(move |request| {
            let mut reply = Reply::whole(&content());
            if let Some(etag) = etag {
                reply = reply.header("ETag", etag);
            }
            match request.number {
                0 => reply.ending(Ending::CutAfter(CUT)),
                _ => reply,
            }
        });
        Home::new(&[server.url("/")]).fetch_well();
        assert_eq!(server.range_starts(), [None, None], "{etag:?}");
    }
}

#[test]
fn wrong_file_on_a_mirror_is_reported() {
    let wrong = HttpServer::start(|request| Reply::file(&other_content(), ETAG, request));
    // The second mirror's address must be known before its reply, which inspects the task.
    let control = TaskControl::new(ProgressUnit::Bytes);
    let seen = control.clone();
    let steps = Arc::new(std::sync::Mutex::new(Vec::new()));
    let messages = Arc::clone(&steps);
    let right = HttpServer::start(move |request| {
        messages.lock().unwrap().push(seen.progress().step);
        Reply::file(&content(), ETAG, request)
    });
    let home = Home { control, ..Home::new(&[wrong.url("/"), right.url("/")]) };
    home.fetch_well();
    assert_eq!((wrong.bytes_served(), right.bytes_served()), (LEN, LEN));
    assert_eq!(right.range_starts(), [None]);
    let step = &steps.lock().unwrap()[0];
    assert!(step.contains("wrong content") && step.contains(&wrong.url("/")), "{step}");
    let notes = home.control.notes();
    assert!(notes.len() == 1 && notes[0].contains("wrong content"), "{notes:?}");
}

#[test]
fn mirror_with_another_length_is_skipped_early() {
    let wrong = HttpServer::start(|_| {
        let lying = Reply::whole(&content()).without("Content-Length");
        lying.header("Content-Length", (LEN + 1).to_string()).ending(Ending::StallAfter(0))
    });
    let right = good_server();
    Home::new(&[wrong.url("/"), right.url("/")]).fetch_well();
    assert_eq!(wrong.exchanges().len(), 1);
    assert_eq!(right.bytes_served(), LEN);
}

#[test]
fn oversized_response_ends_a_mirror() {
    let endless = HttpServer::start(|_| {
        let longer = [content(), content()].concat();
        Reply::whole(&longer).without("Content-Length")
    });
    let home = Home::new(&[endless.url("/")]);
    let failures = home.failures();
    assert!(failures[0].reason.contains("more than the 300007 bytes"), "{}", failures[0]);
    assert_eq!(endless.exchanges().len(), 1);
    assert!(!home.path("model.onnx").exists());
}

#[test]
fn short_mirror_file_is_abandoned() {
    let short = HttpServer::start(|request| match request.range_start {
        None => Reply::whole(&content()[..CUT]).without("Content-Length").header("ETag", ETAG),
        Some(_) => Reply::status("416 Range Not Satisfiable"),
    });
    let right = good_server();
    Home::new(&[short.url("/"), right.url("/")]).fetch_well();
    assert!(short.exchanges().len() <= 2 * quick().attempts as usize);
}

#[test]
fn missing_file_is_final_and_busy_server_retried() {
    let missing = HttpServer::start(|_| Reply::status("404 Not Found"));
    let busy = HttpServer::start(|_| Reply::status("503 Service Unavailable"));
    let broken = HttpServer::start(|request| match request.number {
        0 => Reply::status("500 Internal Server Error"),
        _ => Reply::file(&content(), ETAG, request),
    });
    Home::new(&[missing.url("/"), busy.url("/"), broken.url("/")]).fetch_well();
    assert_eq!(missing.exchanges().len(), 1);
    assert_eq!(busy.exchanges().len(), 3);
    assert_eq!(broken.exchanges().len(), 2);
}

#[test]
fn unreachable_mirror_is_skipped_immediately() {
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let unreachable = format!("http://{}/", unused.local_addr().unwrap());
    drop(unused);
    let right = good_server();
    let patient = DownloadPolicy { first_pause: Duration::from_hours(1), ..quick() };
    Home::with_policy(&[unreachable, right.url("/")], patient).fetch_well();
    assert_eq!(right.bytes_served(), LEN);
}

#[test]
fn empty_download_leaves_no_file() {
    let server = HttpServer::start(|_| Reply::status("404 Not Found"));
    let home = Home::new(&[server.url("/")]);
    home.failures();
    home.assert_no_leftovers();
    assert!(home.path("model.toml").exists());
}

#[test]
fn failure_of_all_mirrors_lists_each_reason() {
    let first = HttpServer::start(|_| Reply::status("404 Not Found"));
    let second = HttpServer::start(|request| Reply::file(&content(), ETAG, request).ending(Ending::CutAfter(0)));
    let error = Home::new(&[first.url("/one"), second.url("/two")]).fetch().unwrap_err();
    let text = error.to_string();
    for expected in [
        "Tested (293 KiB)",
        "HTTPS_PROXY",
        &format!("404 Not Found: {}", first.url("/one")),
        &format!("0 B of 293 KiB: {}", second.url("/two")),
    ] {
        assert!(text.contains(expected), "{expected}\n--\n{text}");
    }
}

#[test]
fn bytes_of_one_mirror_stay_with_it() {
    let cutting = HttpServer::start(|request| match request.number {
        0 => Reply::file(&content(), ETAG, request).ending(Ending::CutAfter(CUT)),
        _ => Reply::status("404 Not Found"),
    });
    let right = good_server();
    Home::new(&[cutting.url("/"), right.url("/")]).fetch_well();
    assert_eq!(right.range_starts(), [None]);
}

#[test]
fn unfinished_download_resumes_at_its_mirror() {
    let first = HttpServer::start(|request| match request.number {
        0 => Reply::status("404 Not Found"),
        _ => Reply::file(&content(), ETAG, request),
    });
    let second = HttpServer::start(|request| {
        let reply = Reply::file(&content(), ETAG, request);
        match request.number {
            0 => reply.ending(Ending::CutAfter(CUT)),
            1..=3 => Reply::status("503 Service Unavailable"),
            _ => reply,
        }
    });
    let home = Home::new(&[first.url("/"), second.url("/")]);
    assert_eq!(home.failures().len(), 2);
    home.fetch_well();
    assert_eq!(first.exchanges().len(), 1);
    assert_eq!(second.bytes_served(), LEN);
}

#[test]
fn damaged_partial_file_does_not_blame_the_mirror() {
    let server = cutting_server();
    let home = Home::new(&[server.url("/")]);
    let patient = DownloadPolicy { attempts: 1, ..quick() };
    let once = home.library.clone().with_download_policy(patient);
    assert!(once.fetch("tested", None, &home.control).is_err());
    let mut part = fs::read(home.path("model.onnx.part")).unwrap();
    part.fill(0);
    fs::write(home.path("model.onnx.part"), part).unwrap();

    home.fetch_well();
    assert_eq!(server.range_starts(), [None, Some(CUT), None]);
}

#[test]
fn complete_partial_file_is_only_verified() {
    let server = good_server();
    let home = Home::new(&[server.url("/")]);
    home.fetch_well();
    fs::rename(home.path("model.onnx"), home.path("model.onnx.part")).unwrap();
    let state = format!(r#"{{"sha256":"{}","url":"{}","validator":null}}"#, sha256(&content()), server.url("/"));
    fs::write(home.path("model.onnx.part.json"), state).unwrap();
    home.fetch_well();
    assert_eq!(server.exchanges().len(), 1);
}

#[test]
fn intact_weights_are_not_downloaded_again() {
    let server = good_server();
    let home = Home::new(&[server.url("/")]);
    home.fetch_well();
    home.fetch_well();
    assert_eq!(server.exchanges().len(), 1);
    fs::write(home.path("model.onnx"), other_content()).unwrap();
    home.fetch_well();
    assert_eq!(server.exchanges().len(), 2);
}

#[test]
fn parallel_downloads_and_removal_are_exclusive() {
    let server = HttpServer::start(|request| Reply::file(&content(), ETAG, request).ending(Ending::StallAfter(CUT)));
    let home = Home::with_policy(&[server.url("/")], DownloadPolicy::default());
    let fetch = home.fetch_aside();
    server.wait_until_stalled();
    let second = TaskControl::new(ProgressUnit::Bytes);
    let again = home.library.fetch("tested", None, &second);
    let removed = home.library.remove("tested");
    home.control.cancel();
    assert!(matches!(again, Err(FetchError::Download(DownloadError::Busy { .. }))));
    assert!(matches!(removed, Err(LibraryError::Busy { .. })));
    assert!(matches!(fetch.join().unwrap(), Err(FetchError::Download(DownloadError::Cancelled(_)))));
}

#[test]
fn user_file_replaces_the_download() {
    let home = Home::new(&["http://127.0.0.1:9/".to_owned()]);
    let file = home.folder.path().join("of the user.onnx");
    let fetch = || home.library.fetch("tested", Some(&file), &home.control);
    let refused = |result: Result<Model, FetchError>, is_as_expected: fn(&FetchError) -> bool| {
        let error = result.unwrap_err();
        assert!(is_as_expected(&error), "{error:?}");
        let text = error.to_string();
        assert!(text.ends_with(&file.display().to_string()), "{text}");
        assert!(!home.path("model.onnx").exists());
        home.assert_no_leftovers();
    };
    refused(fetch(), |error| matches!(error, FetchError::Download(DownloadError::Io { .. })));
    fs::write(&file, "short").unwrap();
    let wrong = |error: &FetchError| matches!(error, FetchError::Download(DownloadError::WrongFile { .. }));
    refused(fetch(), wrong);
    fs::write(&file, other_content()).unwrap();
    refused(fetch(), wrong);
    fs::write(&file, content()).unwrap();
    let model = fetch().unwrap();
    assert!(fs::read(model.weights).unwrap() == content());
    assert!(file.exists());
    home.assert_no_leftovers();
}

#[test]
fn weights_without_a_mirror_require_a_file() {
    let error = Home::new(&[]).fetch().unwrap_err();
    assert!(matches!(&error, FetchError::Library(LibraryError::NoWeights { id, .. }) if id == "tested"), "{error:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn full_disk_is_reported_with_the_missing_space() {
    let server = good_server();
    let home = Home::new(&[server.url("/"), server.url("/")]);
    std::os::unix::fs::symlink(Path::new("/dev/full"), home.path("model.onnx.part")).unwrap();
    let error = home.fetch().unwrap_err();
    assert!(
        matches!(error, FetchError::Download(DownloadError::DiskFull { missing_bytes, .. }) if missing_bytes == LEN as u64),
        "{error:?}"
    );
    // The other mirror would not help.
    assert_eq!(server.exchanges().len(), 1);
}

#[cfg(unix)]
#[test]
fn folder_that_cannot_be_created_is_named() {
    let home = Home::new(&[]);
    let blocked = home.folder.path().join("file");
    fs::write(&blocked, "").unwrap();
    let dirs = AppDirs { data: blocked, ..AppDirs::below(home.folder.path()) };
    let result = Library::open(&dirs).fetch("resnet50-v2", None, &home.control);
    let error = result.unwrap_err();
    assert!(matches!(error, FetchError::Download(DownloadError::Io { .. })), "{error:?}");
    assert!(error.to_string().contains("/file/"), "{error}");
}
