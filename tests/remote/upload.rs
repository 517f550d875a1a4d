//! `spotcheck upload` as a process, to a real S3 server: what arrives, what stays, and how failures are handled.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::ended::Ended;
use crate::support::fault_proxy::{Fault, FaultProxy, Often, Request};
use crate::support::seaweed::{ADMIN, Bucket, Login, READER, Seaweed};
use crate::support::spotcheck_at;

const MIB: usize = 1024 * 1024;
/// Sent in five parts.
const LARGE: usize = 40 * MIB;

/// A folder, and its destination through a proxy.
struct Upload {
    folder: tempfile::TempDir,
    home: tempfile::TempDir,
    bucket: Bucket,
    proxy: FaultProxy,
}

impl Upload {
    fn new(name: &str) -> Self {
        let server = Seaweed::shared();
        Self {
            folder: tempfile::tempdir().unwrap(),
            home: tempfile::tempdir().unwrap(),
            bucket: server.public_bucket(name),
            proxy: FaultProxy::before(server.address()),
        }
    }

    fn add(&self, name: &str, content: &[u8]) {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn add_small(&self, count: usize) {
        for number in 0..count {
            self.add(&small_name(number), &small_content(number));
        }
    }

    fn command_of(&self, login: Login, more: &[&str]) -> Command {
        let mut command = spotcheck_at(self.home.path(), &["upload"]);
        command.arg(self.folder.path()).arg(self.bucket.uri("photos/")).args(more);
        login.sign_in(&mut command, &self.proxy.endpoint());
        command
    }

    fn run(&self, more: &[&str]) -> Ended {
        Ended::new(&self.command_of(ADMIN, more).output().unwrap())
    }

    fn start(&self, more: &[&str]) -> Child {
        let mut command = self.command_of(ADMIN, more);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// The writing requests since then, in order.
    fn writes_from(&self, start: usize) -> Vec<Request> {
        let requests = self.proxy.requests();
        requests[start..]
            .iter()
            .filter(|request| !["GET", "HEAD"].contains(&request.method.as_str()))
            .cloned()
            .collect()
    }

    fn arrived(&self, name: &str) -> Option<Vec<u8>> {
        self.bucket.get(&format!("photos/{name}"))
    }

    fn must_have_arrived(&self, name: &str, content: &[u8]) {
        let arrived = self.arrived(name);
        // Not `assert_eq!`, which would print megabytes.
        assert!(arrived.as_deref() == Some(content), "{name}");
    }

    fn nothing_is_unfinished(&self) {
        assert_eq!(self.bucket.unfinished_uploads(), 0);
        let journal = self.home.path().join("data/uploads");
        let notes = std::fs::read_dir(journal).map_or(0, Iterator::count);
        assert_eq!(notes, 0);
    }
}

fn small_name(number: usize) -> String {
    format!("day {}/{number:03}.jpg", number % 7)
}

fn small_content(number: usize) -> Vec<u8> {
    let byte = number as u8;
    vec![byte; 100 + 37 * number]
}

/// No two parts of it are equal.
fn large_content() -> Vec<u8> {
    (0..LARGE as u32 / 4).flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()).collect()
}

fn is_put(request: &Request) -> bool {
    request.method == "PUT"
}

fn part(request: &Request) -> Option<u32> {
    let (_, query) = request.target.split_once('?')?;
    let parameters = query.split('&');
    parameters.filter_map(|parameter| parameter.strip_prefix("partNumber=")).find_map(|number| number.parse().ok())
}

#[cfg(unix)]
fn interrupt(child: &Child) {
    let id = child.id().to_string();
    let status = Command::new("kill").args(["-INT", &id]).status().unwrap();
    assert!(status.success());
}

#[test]
fn second_upload_of_a_folder_sends_no_files() {
    let upload = Upload::new("whole");
    upload.add_small(200);
    upload.add("훈련/train.tfrecord", &large_content());
    upload.add("훈련/고양이 + 100% &.png", b"cat");
    upload.add("empty.gif", b"");
    upload.add("notes.txt", b"not an image");
    upload.add(".hidden/1.jpg", b"hidden");

    let left_out = "1 hidden file";
    upload.run(&[]).must(0, &["203 files (", left_out, " uploaded in "]);

    for number in 0..200 {
        upload.must_have_arrived(&small_name(number), &small_content(number));
    }
    upload.must_have_arrived("훈련/train.tfrecord", &large_content());
    upload.must_have_arrived("훈련/고양이 + 100% &.png", b"cat");
    upload.must_have_arrived("empty.gif", b"");
    assert_eq!(upload.arrived("notes.txt"), None);
    assert_eq!(upload.arrived(".hidden/1.jpg"), None);
    upload.nothing_is_unfinished();
    assert!(upload.proxy.count(|request| part(request).is_some()) == 5);

    let before = upload.proxy.requests().len();
    upload.run(&[]).must(0, &["0 files (0 B)", "203 files (", "already in S3"]);
    assert_eq!(upload.writes_from(before).len(), 0);
}

#[test]
fn paged_listing_requests_only_equal_sizes() {
    let upload = Upload::new("listing");
    upload.add_small(20);
    upload.add("same-size.jpg", b"here");
    upload.bucket.put("photos/same-size.jpg", b"ther");
    upload.bucket.put("photos/day 0/000.jpg", b"other size");
    upload.run(&["--dry-run"]).must(3, &[]);
    let heads = upload.proxy.count(|request| request.method == "HEAD");
    let lists = upload.proxy.count(Request::lists);
    assert_eq!((heads, lists), (1, 1));
    // Only keys that can be those of the files are listed, but the folder is what failed.
    upload.proxy.inject(Request::lists, Often::Always, Fault::error("403 Forbidden", "AccessDenied"));
    let refused = upload.run(&["--dry-run"]).must(1, &["Could not list"]);
    let folder = format!("{}:", upload.bucket.uri("photos/"));
    assert!(refused.stderr.contains(&folder), "{refused:#?}");
}

#[test]
fn killed_upload_resumes() {
    let upload = Upload::new("killed");
    upload.add_small(60);
    upload.proxy.inject(is_put, Often::After(25), Fault::Silence);
    // One after another, so that no other upload is in progress when the stalled one ends.
    let mut child = upload.start(&["--concurrency", "1"]);
    upload.proxy.wait_until_stalled();
    child.kill().unwrap();
    child.wait().unwrap();
    upload.proxy.heal();
    let missing: Vec<String> = (0..60)
        .map(small_name)
        .filter(|name| upload.arrived(name).is_none())
        .map(|name| format!("photos/{name}"))
        .collect();
    assert!((10..60).contains(&missing.len()), "{}", missing.len());

    let before = upload.proxy.requests().len();
    upload.run(&[]).must(0, &["already in S3"]);
    let mut written: Vec<String> = upload.writes_from(before).iter().map(Request::key).collect();
    let mut expected = missing;
    written.sort();
    expected.sort();
    assert_eq!(written, expected);
    for number in 0..60 {
        upload.must_have_arrived(&small_name(number), &small_content(number));
    }
}

/// A large file, two parts of which have arrived when the program is killed.
fn killed_after_two_parts(name: &str) -> Upload {
    let upload = Upload::new(name);
    upload.add("large.tfrecord", &large_content());
    upload.proxy.inject(|request| part(request).is_some(), Often::After(2), Fault::Silence);
    // One after another, so that the first two are recorded when the third stalls.
    let mut child = upload.start(&["--concurrency", "1"]);
    upload.proxy.wait_until_stalled();
    child.kill().unwrap();
    child.wait().unwrap();
    upload.proxy.heal();
    upload
}

#[test]
fn sent_parts_of_a_large_file_are_kept() {
    let upload = killed_after_two_parts("killed-large");
    assert_eq!(upload.bucket.unfinished_uploads(), 1);

    let before = upload.proxy.requests().len();
    upload.run(&[]).must(0, &["1 file (40 MiB) uploaded"]);
    let writes = upload.writes_from(before);
    let mut parts: Vec<u32> = writes.iter().filter_map(part).collect();
    parts.sort_unstable();
    assert_eq!(parts, [3, 4, 5]);
    assert_eq!(writes.len(), 4, "three parts, and the end");
    upload.must_have_arrived("large.tfrecord", &large_content());
    upload.nothing_is_unfinished();
}

#[test]
fn replaced_file_restarts_its_upload() {
    let upload = killed_after_two_parts("other-large");
    let mut other = large_content();
    other[0] ^= 1;
    upload.add("large.tfrecord", &other);
    let note = "unfinished upload to s3://";
    upload.run(&[]).must(0, &[note, "file has changed"]);
    upload.must_have_arrived("large.tfrecord", &other);
    upload.nothing_is_unfinished();
}

#[cfg(unix)]
#[test]
fn canceled_upload_leaves_no_billed_parts() {
    let upload = Upload::new("cancelled");
    upload.add("large.tfrecord", &large_content());
    upload.proxy.inject(|request| part(request).is_some(), Often::After(2), Fault::Silence);
    let child = upload.start(&[]);
    upload.proxy.wait_until_stalled();
    interrupt(&child);
    let ended = Ended::new(&child.wait_with_output().unwrap());
    ended.must(1, &["1 file (40 MiB) left", "rerun the command"]);
    upload.nothing_is_unfinished();
    assert_eq!(upload.arrived("large.tfrecord"), None);
}

#[test]
fn different_object_is_kept_without_overwrite() {
    let upload = Upload::new("conflict");
    upload.add("same size.jpg", b"mine");
    upload.add("other size.jpg", b"mine");
    upload.add("new.jpg", b"mine");
    upload.bucket.put("photos/same size.jpg", b"hers");
    upload.bucket.put("photos/other size.jpg", b"somebody's");
    upload.bucket.put("photos/not ours.jpg", b"hers");
    let ended =
        upload.run(&[]).must(3, &["same size.jpg: ", "(10 B) exists", "0 of 3 files failed, 2 in S3", "--overwrite"]);
    assert!(ended.stderr.contains("1 file (4 B) uploaded"), "{ended:#?}");
    upload.must_have_arrived("new.jpg", b"mine");
    upload.must_have_arrived("same size.jpg", b"hers");
    upload.must_have_arrived("other size.jpg", b"somebody's");

    upload.run(&["--overwrite"]).must(0, &["2 files (8 B) uploaded"]);
    upload.must_have_arrived("same size.jpg", b"mine");
    upload.must_have_arrived("other size.jpg", b"mine");
    upload.must_have_arrived("not ours.jpg", b"hers");

    // An object uploaded by Spotcheck is recognized by its checksum.
    upload.add("new.jpg", b"more");
    upload.run(&[]).must(3, &["new.jpg: an object"]);
    upload.must_have_arrived("new.jpg", b"mine");
}

#[test]
fn object_that_appears_meanwhile_is_kept() {
    for (name, more, size) in
        [("race", &[][..], 4), ("race-large", &[], LARGE), ("race-overwrite", &["--overwrite"], 4)]
    {
        let upload = Upload::new(name);
        let content = &large_content()[..size];
        upload.add("one.jpg", content);
        if !more.is_empty() {
            upload.bucket.put("photos/one.jpg", b"what the plan saw");
        }
        // Another program writes it just before our object is created.
        let bucket = upload.bucket.clone();
        let interfere = move |request: &Request| {
            let makes_object = is_put(request) && part(request).is_none()
                || request.method == "POST" && request.target.contains("uploadId");
            if makes_object {
                bucket.put("photos/one.jpg", b"hers");
            }
            false
        };
        upload.proxy.inject(interfere, Often::Always, Fault::HangUp);
        upload.run(more).must(3, &["one.jpg", "after the comparison"]);
        upload.must_have_arrived("one.jpg", b"hers");
        upload.nothing_is_unfinished();
    }
}

#[test]
fn objects_are_checked_before_unconditional_uploads() {
    let upload = Upload::new("unconditional");
    upload.add("one.jpg", b"mine");
    upload.add("two.jpg", b"mine");
    let bucket = upload.bucket.clone();
    // Another program is faster with one of the two.
    let interfere = move |request: &Request| {
        if is_put(request) && request.key() == "photos/two.jpg" && bucket.get("photos/two.jpg").is_none() {
            bucket.put("photos/two.jpg", b"hers");
        }
        false
    };
    upload.proxy.inject(interfere, Often::Always, Fault::HangUp);
    upload.proxy.inject(
        |request| request.header("if-none-match").is_some(),
        Often::Always,
        Fault::error("501 Not Implemented", "NotImplemented"),
    );
    upload.run(&[]).must(3, &["two.jpg: an object"]);
    upload.must_have_arrived("one.jpg", b"mine");
    upload.must_have_arrived("two.jpg", b"hers");
}

#[test]
fn dry_run_uploads_no_files() {
    let upload = Upload::new("dry");
    upload.add("a/new.jpg", &[1; 2048]);
    upload.add("conflict.png", b"mine");
    upload.bucket.put("photos/conflict.png", b"somebody's");
    let ended = upload.run(&["--dry-run"]).must(3, &["1 file (2.0 KiB) to upload", "nothing was uploaded"]);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(
        lines,
        [
            "send      2.0 KiB  a/new.jpg",
            "conflict      4 B  conflict.png: an object of a different size (10 B) exists",
        ]
    );
    assert_eq!(upload.writes_from(0).len(), 0);
    let ended = upload.run(&["--dry-run", "--overwrite"]).must(0, &[]);
    assert!(ended.stdout.contains("replace       4 B  conflict.png"));
    assert_eq!(upload.writes_from(0).len(), 0);
}

#[test]
fn cut_connections_and_a_busy_server_are_retried() {
    let upload = Upload::new("bad-line");
    upload.add_small(3);
    upload.add("large.tfrecord", &large_content());
    let is_third_part = |request: &Request| part(request) == Some(3);
    upload.proxy.inject(is_third_part, Often::First(1), Fault::HangUp);
    upload.proxy.inject(|request| part(request) == Some(4), Often::First(1), Fault::error("503 Slow Down", "SlowDown"));
    upload.proxy.inject(
        |request| request.key().ends_with("000.jpg"),
        Often::First(1),
        Fault::error("503 Slow Down", "SlowDown"),
    );
    upload.run(&[]).must(0, &["4 files (40 MiB) uploaded"]);
    upload.must_have_arrived("large.tfrecord", &large_content());
    upload.must_have_arrived(&small_name(0), &small_content(0));
    assert_eq!(upload.proxy.count(is_third_part), 2);
}

#[test]
fn lost_response_is_not_a_conflict() {
    for (name, size) in [("lost-answer", 4), ("lost-answer-large", LARGE)] {
        let upload = Upload::new(name);
        upload.add("one.jpg", &large_content()[..size]);
        // The server writes the object, but the response is lost.
        let makes_object = |request: &Request| {
            is_put(request) && part(request).is_none()
                || request.method == "POST" && request.target.contains("uploadId")
        };
        upload.proxy.inject(makes_object, Often::First(1), Fault::LostResponse);
        upload.run(&[]).must(0, &["1 file ("]);
        upload.must_have_arrived("one.jpg", &large_content()[..size]);
        upload.nothing_is_unfinished();
        assert_eq!(upload.proxy.count(makes_object), 2);
    }
}

#[test]
fn expired_session_pauses_the_upload() {
    let upload = Upload::new("expired");
    upload.add_small(40);
    upload.add("large.tfrecord", &large_content());
    upload.proxy.inject(is_put, Often::After(20), Fault::error("400 Bad Request", "ExpiredToken"));
    let ended = upload.run(&[]).must(1, &["has expired", "renew the credentials", "rerun the command"]);
    let refused = ended.stderr.matches("has expired").count();
    assert_eq!(refused, 1, "{}", ended.stderr);
    upload.proxy.heal();
    upload.run(&[]).must(0, &["already in S3"]);
    for number in 0..40 {
        upload.must_have_arrived(&small_name(number), &small_content(number));
    }
    upload.must_have_arrived("large.tfrecord", &large_content());
    upload.nothing_is_unfinished();
}

#[test]
fn missing_write_permission_is_named() {
    let upload = Upload::new("reader");
    upload.add_small(100);
    let mut command = upload.command_of(READER, &[]);
    Ended::new(&command.output().unwrap()).must(1, &["s3:PutObject on s3://public-reader"]);
    assert!(upload.proxy.count(is_put) < 40, "it went on asking");
    assert_eq!(upload.arrived(&small_name(0)), None);
}

#[test]
fn file_that_changes_during_upload_is_not_sent() {
    let upload = Upload::new("changing");
    upload.add_small(2);
    upload.add("large.tfrecord", &large_content());
    let path = upload.folder.path().join("large.tfrecord");
    let change = move |request: &Request| {
        if part(request) == Some(1) {
            let mut other = large_content();
            other[LARGE - 1] ^= 1;
            std::fs::write(&path, other).unwrap();
        }
        false
    };
    upload.proxy.inject(change, Often::Always, Fault::HangUp);
    let ended = upload.run(&[]).must(3, &["large.tfrecord: "]);
    assert!(ended.stderr.contains("2 files ("), "{ended:#?}");
    assert_eq!(upload.arrived("large.tfrecord"), None);
    upload.nothing_is_unfinished();
}

#[cfg(unix)]
#[test]
fn unreadable_files_are_listed_and_the_rest_sent() {
    let upload = Upload::new("unreadable");
    upload.add_small(3);
    upload.add("line\nbreak.jpg", b"x");
    let gone = upload.folder.path().join("gone.jpg");
    std::os::unix::fs::symlink("/no/such/file", gone).unwrap();
    upload.run(&[]).must(3, &["gone.jpg: ", "control character", "3 files ("]);
    upload.must_have_arrived(&small_name(2), &small_content(2));
}

#[test]
fn wrong_addresses_are_reported() {
    let upload = Upload::new("wrong");
    upload.add_small(1);
    let folder = upload.folder.path();
    let run = |folder: &Path, target: &str| {
        let mut command = spotcheck_at(upload.home.path(), &["upload"]);
        command.arg(folder).arg(target);
        ADMIN.sign_in(&mut command, &upload.proxy.endpoint());
        Ended::new(&command.output().unwrap())
    };
    run(folder, "/tmp/elsewhere").must(1, &["s3://bucket/prefix/"]);
    run(folder, "s3://no-such-bucket-here/a/").must(1, &["bucket no-such-bucket-here"]);
    run(Path::new("/no/such/folder"), &upload.bucket.uri("")).must(1, &["/no/such/folder"]);
    let empty = tempfile::tempdir().unwrap();
    run(empty.path(), &upload.bucket.uri("")).must(1, &["No images"]);
}

#[test]
fn parallel_requests_are_bounded() {
    let upload = Upload::new("bounded");
    upload.add_small(50);
    upload.add("large.tfrecord", &large_content());
    upload.run(&["--concurrency", "3"]).must(0, &[]);
    assert!(upload.proxy.most_at_once() <= 3);
    let mut keys = BTreeMap::new();
    for request in upload.writes_from(0) {
        *keys.entry(request.target).or_insert(0) += 1;
    }
    assert!(keys.values().all(|count| *count == 1), "{keys:?}");
}
