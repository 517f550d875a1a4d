//! `spotcheck transform rehearse` as a process: handlers that predict like this computer, handlers that do not, and
//! files that are not archives.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::support::handler::{package, unpacked};
use crate::support::seaweed::{READER, Seaweed, use_profile};
use crate::support::{python_packages, repository, spotcheck};

/// A test that waits longer fails.
const PATIENCE: Duration = Duration::from_mins(1);

fn rehearse(arguments: &[&str]) -> Command {
    let mut command = spotcheck(&["transform", "rehearse"]);
    command.args(arguments).env("PYTHONPATH", python_packages("model-handler"));
    command
}

/// The message about images for which the handler's prediction equals the local one.
const EQUAL: &str = "a prediction equal";
const LACKS: &str = "not have all";

fn samples() -> String {
    text(&repository().join("assets/samples"))
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

fn messages(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|messages| String::from_utf8_lossy(messages));
    format!("{out}{err}")
}

#[track_caller]
fn must_be_equal(output: &Output, images: usize) {
    let messages = messages(output);
    assert_eq!(output.status.code(), Some(0), "{messages}");
    let equal = messages.lines().filter(|line| line.contains("  equal  "));
    assert_eq!(equal.count(), images, "{messages}");
}

/// An archive of EfficientNet-Lite0 with these lines at the end of its `code/inference.py`.
fn tampered(folder: &Path, lines: &str) -> PathBuf {
    with_lines(folder, "code/inference.py", lines)
}

/// An archive of EfficientNet-Lite0 with these lines at the end of one file.
fn with_lines(folder: &Path, name: &str, lines: &str) -> PathBuf {
    let original = package(folder, &["--model", "efficientnet-lite0"]);
    let contents = unpacked(&original, folder);
    let mut file = std::fs::OpenOptions::new().append(true).open(contents.join(name)).unwrap();
    write!(file, "\n\n{lines}\n").unwrap();
    let archive = folder.join("tampered.tar.gz");
    let gzip = flate2::write::GzEncoder::new(std::fs::File::create(&archive).unwrap(), flate2::Compression::fast());
    let mut tar = tar::Builder::new(gzip);
    tar.append_dir_all(".", &contents).unwrap();
    tar.into_inner().unwrap().finish().unwrap();
    archive
}

#[test]
fn both_models_rehearse_in_each_form() {
    for model in ["efficientnet-lite0", "ssd-mobilenet-coco"] {
        for form in ["image", "tfrecord", "line"] {
            let output = rehearse(&["--model", model, &samples(), "--as", form]).output().unwrap();
            must_be_equal(&output, 8);
        }
    }
    let records = repository().join("tests/tfrecord/photos.tfrecord");
    let output = rehearse(&["--model", "efficientnet-lite0", &text(&records)]).output().unwrap();
    must_be_equal(&output, 6);
}

#[test]
fn s3_archive_rehearses_like_a_local_one() {
    let folder = tempfile::tempdir().unwrap();
    let archive = package(folder.path(), &["--model", "efficientnet-lite0"]);
    let bucket = Seaweed::shared().bucket("rehearse");
    bucket.put("models/model.tar.gz", &std::fs::read(archive).unwrap());
    let run = |key: &str| {
        let mut command = rehearse(&[&bucket.uri(key), &samples(), "--samples", "2"]);
        use_profile(&mut command, READER.profile, &Seaweed::shared().endpoint());
        command.output().unwrap()
    };
    must_be_equal(&run("models/model.tar.gz"), 2);
    let missing = run("models/other.tar.gz");
    assert_eq!(missing.status.code(), Some(1));
    assert!(
        messages(&missing).contains("fetch the archive") && messages(&missing).contains("models/other.tar.gz"),
        "{}",
        messages(&missing)
    );
}

fn expected_task(case: &Path) -> String {
    let expected = std::fs::read(case.join("expected.json")).unwrap();
    let expected: serde_json::Value = serde_json::from_slice(&expected).unwrap();
    expected["card"]["task"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn handler_knows_every_convention() {
    let cases = repository().join("tests/cases/conventions");
    let mut tried = 0;
    for entry in std::fs::read_dir(cases).unwrap() {
        let case = entry.unwrap().path();
        let name = case.file_name().unwrap().to_string_lossy().into_owned();
        if !case.is_dir() || name.starts_with("refused-") {
            continue;
        }
        let model = text(&case.join("model.onnx"));
        let output = rehearse(&["--model", &model, &samples(), "--samples", "2"]).output().unwrap();
        if expected_task(&case) == "embedding" {
            // There is nothing to predict.
            assert_eq!(output.status.code(), Some(1));
            assert!(messages(&output).contains("encoder"), "{}", messages(&output));
            continue;
        }
        must_be_equal(&output, 2);
        tried += 1;
    }
    assert!(tried > 8, "{tried}");
    for case in ["resnet50", "faster-rcnn"] {
        let model = text(&repository().join("tests/parity").join(case).join("model.onnx"));
        let output = rehearse(&["--model", &model, &samples(), "--samples", "2"]).output().unwrap();
        must_be_equal(&output, 2);
    }
}

/// Not covered by other tests: both roundings of both axes, a letterbox, padding, channels from blue to red.
#[test]
fn handler_knows_every_resize_rule() {
    let model = repository().join("tests/cases/conventions/all-dimensions-free/model.onnx");
    let rules = [
        r"[input.resize.letterbox]
width = 96
height = 64
fill = 114",
        r"[input.resize.stretch]
width = 75
height = 50",
        r"[input.resize.short-side-pad]
short_side = 70
max_long_side = 90
pad_to_multiple = 32",
        r#"[input.resize.short-side-crop]
short_side = 71
long_side = "down"
crop_width = 64
crop_height = 70
crop_offset = "half-even""#,
        r#"[input.resize.short-side-crop]
short_side = 71
long_side = "half-even"
crop_width = 70
crop_height = 63
crop_offset = "down""#,
        "[input.resize.keep]",
    ];
    let added = card_of(&model);
    for rule in rules {
        for channels in ["rgb", "bgr"] {
            let folder = tempfile::tempdir().unwrap();
            let copy = folder.path().join("model.onnx");
            std::fs::copy(&model, &copy).unwrap();
            let card = with_rule(&added, rule, channels);
            std::fs::write(folder.path().join("model.toml"), &card).unwrap();
            let output = rehearse(&["--model", &text(&copy), &samples(), "--samples", "3"]).output().unwrap();
            must_be_equal(&output, 3);
        }
    }
}

#[test]
fn handler_fills_auxiliary_inputs_and_batches() {
    let model = repository().join("tests/package/auxiliary/model.onnx");
    let output = rehearse(&["--model", &text(&model), &samples()]).output().unwrap();
    must_be_equal(&output, 8);
}

/// The card that Spotcheck writes for a model.
fn card_of(model: &Path) -> String {
    let output = spotcheck(&["models", "inspect", model.to_str().unwrap()]).output().unwrap();
    let messages = String::from_utf8(output.stdout).unwrap();
    let start = messages.find("\nid = ").expect("the card is printed");
    messages[start + 1..].to_owned()
}

fn with_rule(card: &str, rule: &str, channels: &str) -> String {
    let start = card.find("[input.resize.").unwrap();
    let end = start + 1 + card[start + 1..].find("\n[").unwrap();
    let card = format!("{}{rule}\n{}", &card[..start], &card[end..]);
    card.replace("channels = \"rgb\"", &format!("channels = \"{channels}\""))
}

#[test]
fn different_handler_predictions_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let lines = "
_predict = Model.predict

def predict(self, encoded):
    found = _predict(self, encoded)
    found['classes'][0]['score'] -= 0.001
    return found

Model.predict = predict";
    let archive = tampered(folder.path(), lines);
    let output = rehearse(&[&text(&archive), &samples()]).output().unwrap();
    let messages = messages(&output);
    assert_eq!(output.status.code(), Some(1), "{messages}");
    assert!(messages.contains("DIFFERENT  scores") && messages.contains(" 1.0e-3"), "{messages}");
    assert_eq!(messages.matches("  DIFFERENT  ").count(), 8, "{messages}");
    assert!(messages.contains("8 of 8 images"), "{messages}");
}

#[test]
fn failed_handler_start_is_quoted() {
    let folder = tempfile::tempdir().unwrap();
    let archive = tampered(folder.path(), "raise RuntimeError('there is no such card')");
    let output = rehearse(&[&text(&archive), &samples()]).output().unwrap();
    let messages = messages(&output);
    assert_eq!(output.status.code(), Some(1), "{messages}");
    assert!(messages.contains("before it listened") && messages.contains("there is no such card"), "{messages}");
}

#[test]
fn image_over_the_payload_limit_is_not_sent() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(repository().join("assets/samples/rocket.jpg"), folder.path().join("small.jpg")).unwrap();
    let place = image_of(2_500_000, folder.path());
    let output = rehearse(&["--model", "efficientnet-lite0", &place, "--max-payload-mb", "2"]).output().unwrap();
    let said_ = messages(&output);
    assert_eq!(output.status.code(), Some(1), "{said_}");
    assert!(said_.contains("TOO LARGE") && said_.contains("MaxPayloadInMB 3"), "{said_}");
    // Images that were not sent do not count for the speed.
    assert!(said_.contains("1 image sent"), "{said_}");
    let output = rehearse(&["--model", "efficientnet-lite0", &place, "--max-payload-mb", "3"]).output().unwrap();
    must_be_equal(&output, 2);
}

/// The first sample image, extended to this many bytes: an image may have any data after its end.
fn image_of(bytes: usize, folder: &Path) -> String {
    let mut large = std::fs::read(repository().join("assets/samples/rocket.jpg")).unwrap();
    large.resize(bytes, 0);
    std::fs::write(folder.join("large.jpg"), large).unwrap();
    text(folder)
}

#[test]
fn rehearsal_uses_job_payload_and_concurrency() {
    let folder = tempfile::tempdir().unwrap();
    let place = image_of(9_300_000, folder.path());
    let check = |flags: &[&str], limits: &str| {
        let arguments = [&["--model", "efficientnet-lite0", &place], flags].concat();
        let output = rehearse(&arguments).output().unwrap();
        must_be_equal(&output, 1);
        assert!(messages(&output).contains(limits), "{}", messages(&output));
    };
    check(&[], "(MaxPayloadInMB 10, 4 in parallel)");
    check(&["--instance-type", "ml.c5.2xlarge"], "(MaxPayloadInMB 10, 8 in parallel)");
    check(&["--max-payload-mb", "50"], "(MaxPayloadInMB 50, 2 in parallel)");
    let refused = |flags: &[&str], reason: &str| {
        let arguments = [&["--model", "efficientnet-lite0", &place], flags].concat();
        let output = rehearse(&arguments).output().unwrap();
        let messages = messages(&output);
        assert_eq!(output.status.code(), Some(1), "{messages}");
        assert!(messages.contains(reason), "{messages}");
    };
    refused(&["--max-payload-mb", "100", "--max-concurrent", "100"], "100 MB × 100 = 10000 MB");
    // SageMaker uses 6 if the other values come from the container.
    refused(&["--max-concurrent", "0"], "TOO LARGE");
}

#[test]
fn payload_of_zero_is_sent_in_chunks() {
    let folder = tempfile::tempdir().unwrap();
    let lines = "
import __main__

_body = __main__.Handler.body

def body(self):
    if 'chunked' not in self.headers.get('Transfer-Encoding', ''):
        raise ValueError('this came whole')
    return _body(self)

__main__.Handler.body = body";
    let archive = tampered(folder.path(), lines);
    let archive = text(&archive);
    let whole = rehearse(&[&archive, &samples(), "--samples", "1"]).output().unwrap();
    assert!(messages(&whole).contains("this came whole"), "{}", messages(&whole));
    let chunked = [&archive, &samples(), "--samples", "1", "--max-payload-mb", "0"];
    must_be_equal(&rehearse(&chunked).output().unwrap(), 1);
}

#[test]
fn records_and_lines_are_packed_up_to_the_payload() {
    let folder = tempfile::tempdir().unwrap();
    let lines = "
_respond = respond
_records = {'application/jsonlines': lambda body: body.splitlines(), 'application/x-tfexample': records}

def respond(model, body, content_type):
    count = len(_records[content_type](body))
    strategy = os.environ['SAGEMAKER_BATCH_STRATEGY']
    if (count, strategy) != (8, 'MULTI_RECORD'):
        return 500, _failed(f'{count} records with {strategy}'), JSON
    return _respond(model, body, content_type)";
    let archive = tampered(folder.path(), lines);
    let archive = text(&archive);
    for form in ["line", "tfrecord"] {
        let together = |payload: &str| {
            let samples = samples();
            let flags = ["--as", form, "--batch-strategy", "multi-record"];
            let limit = ["--max-payload-mb", payload];
            let arguments = [&[archive.as_str(), &samples], &flags[..], &limit].concat();
            rehearse(&arguments).output().unwrap()
        };
        must_be_equal(&together("50"), 8);
        let apart = together("2");
        assert_eq!(apart.status.code(), Some(1));
        let messages = messages(&apart);
        assert!(messages.contains("records with MULTI_RECORD"), "{messages}");
    }
}

#[test]
fn lines_are_sent_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    // Other fields of the user's lines also reach the handler.
    let lines = "
_respond = respond

def respond(model, body, content_type):
    if content_type != 'application/jsonlines' or b'\"from\"' not in body:
        return 500, _failed(f'{content_type}: {body[:40]}'), JSON
    return _respond(model, body, content_type)";
    let archive = tampered(folder.path(), lines);
    let list = folder.path().join("photos.jsonl");
    let mut content = String::new();
    for image in ["chelsea.png", "rocket.jpg"] {
        let image = std::fs::read(repository().join("assets/samples").join(image)).unwrap();
        let line = serde_json::json!({"from": "a camera", "b64": base64(&image)});
        content.push_str(&(line.to_string() + "\r\n\n"));
    }
    content += r#"{"from": "nowhere", "b64": "?"}"#;
    std::fs::write(&list, content).unwrap();
    let output = rehearse(&[&text(&archive), &text(&list)]).output().unwrap();
    must_be_equal(&output, 2);
    let messages = messages(&output);
    for part in ["photos.jsonl/0  equal", "photos.jsonl/2  rejected", "1 image is rejected"] {
        assert!(messages.contains(part), "{part}: {messages}");
    }
}

#[test]
fn handler_has_the_container_environment() {
    let folder = tempfile::tempdir().unwrap();
    let lines = "
for name, value in {
    'SAGEMAKER_BATCH': 'true',
    'SAGEMAKER_BATCH_STRATEGY': 'SINGLE_RECORD',
    'SAGEMAKER_MAX_PAYLOAD_IN_MB': '3',
    'SAGEMAKER_MAX_CONCURRENT_TRANSFORMS': '2',
    'NOTE': 'a=cat',
}.items():
    if os.environ.get(name) != value:
        raise RuntimeError(f'{name} is {os.environ.get(name)}')";
    let archive = tampered(folder.path(), lines);
    let flags = [
        &text(&archive),
        &samples(),
        "--samples",
        "1",
        "--max-payload-mb",
        "3",
        "--max-concurrent",
        "2",
        "--env",
        "NOTE=a=cat",
        "--env",
        "SAGEMAKER_BATCH=no",
    ];
    must_be_equal(&rehearse(&flags).output().unwrap(), 1);
}

/// The environment, open files and home folder visible to the handler of an archive.
#[cfg(unix)]
fn surroundings(folder: &Path, start: impl FnOnce(&str) -> Command) -> serde_json::Value {
    let note = folder.join("surroundings.json");
    let lines = format!(
        "
import json
_open = []
for _name in os.listdir('/dev/fd'):
    try:
        _open.append(os.readlink('/proc/self/fd/' + _name))
    except OSError:
        pass
with open('{}', 'w') as _file:
    json.dump({{'environment': dict(os.environ), 'files': _open, 'home': os.path.expanduser('~')}}, _file)",
        note.display()
    );
    let archive = tampered(folder, &lines);
    must_be_equal(&start(&text(&archive)).output().unwrap(), 1);
    serde_json::from_slice(&std::fs::read(note).unwrap()).unwrap()
}

#[cfg(unix)]
#[test]
fn archive_code_sees_no_user_data() {
    const MAY_BE_THERE: [&str; 18] = [
        "PATH",
        "PYTHONPATH",
        "LD_LIBRARY_PATH",
        "DYLD_LIBRARY_PATH",
        "DYLD_FALLBACK_LIBRARY_PATH",
        "PYTHONHOME",
        "SYSTEMROOT",
        "LANG",
        // Python itself may set this one, and the handler that one.
        "LC_CTYPE",
        "ORT_DISABLE_TELEMETRY",
        "HOME",
        "TMPDIR",
        "PYTHONDONTWRITEBYTECODE",
        "SAGEMAKER_BATCH",
        "SAGEMAKER_BATCH_STRATEGY",
        "SAGEMAKER_MAX_PAYLOAD_IN_MB",
        "SAGEMAKER_MAX_CONCURRENT_TRANSFORMS",
        "SAGEMAKER_BIND_TO_PORT",
    ];
    const SECRET: &str = "not-for-archives";
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    std::fs::create_dir_all(home.join(".aws")).unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, SECRET).unwrap();
    let seen = surroundings(folder.path(), |archive| {
        let rehearse = rehearse(&[archive, &samples(), "--samples", "1", "--env", "NOTE=cat"]);
        // A shell that leaves a file with secrets open.
        let mut shell = Command::new("sh");
        shell
            .args(["-c", r#"exec 7<"$0"; exec "$@""#])
            .arg(&secret)
            .arg(rehearse.get_program())
            .args(rehearse.get_args())
            .current_dir(repository());
        for (name, value) in rehearse.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        for name in [
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "AWS_PROFILE",
            "GITHUB_TOKEN",
            "SSH_AUTH_SOCK",
        ] {
            shell.env(name, SECRET);
        }
        let programs = format!("{}:{}", home.join("bin").display(), std::env::var("PATH").unwrap());
        shell.env("AWS_CONFIG_FILE", &secret).env("HOME", &home).env("PATH", programs);
        shell
    });
    let environment = seen["environment"].as_object().unwrap();
    assert_eq!(environment["NOTE"], "cat");
    let others = environment.keys().filter(|name| !MAY_BE_THERE.contains(&name.as_str()) && *name != "NOTE");
    assert_eq!(others.collect::<Vec<_>>(), Vec::<&String>::new());
    assert!(!seen.to_string().contains(SECRET));
    assert!(!environment["PATH"].as_str().unwrap().contains(home.to_str().unwrap()));
    let files = seen["files"].to_string();
    assert!(!files.contains(&text(&secret)), "{files}");
    for place in [&seen["home"], &environment["HOME"], &environment["TMPDIR"]] {
        let place = Path::new(place.as_str().unwrap());
        assert!(!place.starts_with(&home), "{}", place.display());
        assert!(!place.exists(), "it goes with the rehearsal");
    }
}

#[test]
fn output_of_an_exiting_handler_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let lines = "
import sys
print('port of call', flush=True)
print('the last line on stdout', flush=True)
print('the last line on stderr', file=sys.stderr, flush=True)
os._exit(7)";
    let archive = tampered(folder.path(), lines);
    let output = rehearse(&[&text(&archive), &samples()]).output().unwrap();
    let messages = messages(&output);
    assert_eq!(output.status.code(), Some(1), "{messages}");
    for words in ["before it listened", "port of call", "the last line on stdout", "the last line on stderr"] {
        assert!(messages.contains(words), "{words}: {messages}");
    }
}

/// A handler that responds to this many pings with 503.
fn slow_to_pong(folder: &Path, times: &str) -> String {
    let lines = format!(
        "
import __main__

_get = __main__.Handler.do_GET
_left = [{times}]

def do_GET(self):
    if self.path == '/ping' and _left[0] > 0:
        _left[0] -= 1
        return self.send(503, b'')
    return _get(self)

__main__.Handler.do_GET = do_GET"
    );
    text(&tampered(folder, &lines))
}

#[test]
fn no_request_before_a_successful_ping() {
    let folder = tempfile::tempdir().unwrap();
    let slow = slow_to_pong(folder.path(), "2");
    let output = rehearse(&[&slow, &samples(), "--samples", "1"]).output();
    must_be_equal(&output.unwrap(), 1);
    let folder = tempfile::tempdir().unwrap();
    let never = slow_to_pong(folder.path(), "float('inf')");
    let output = rehearse(&[&never, &samples(), "--ready-within", "2"]).output().unwrap();
    let messages = messages(&output);
    assert_eq!(output.status.code(), Some(1), "{messages}");
    assert!(messages.contains("with status 503"), "{messages}");
}

#[test]
fn outdated_package_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let archive = with_lines(folder.path(), "code/requirements.txt", "numpy>=999\npillow>=1,<999");
    let output = rehearse(&[&text(&archive), &samples(), "--samples", "1"]).output().unwrap();
    must_be_equal(&output, 1);
    let messages = messages(&output);
    assert!(messages.contains("requires numpy>=999"), "{messages}");
    assert_eq!(messages.matches("the archive requires").count(), 1, "{messages}");
}

#[test]
fn no_predictions_means_no_match_report() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("empty.jpg"), b"").unwrap();
    let output = rehearse(&["--model", "efficientnet-lite0", &text(folder.path())]).output().unwrap();
    let messages = messages(&output);
    assert_eq!(output.status.code(), Some(1), "{messages}");
    assert!(messages.contains("nothing was compared"), "{messages}");
    assert!(!messages.contains(EQUAL), "{messages}");
}

#[test]
fn unreadable_images_fail_in_both() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("empty.jpg"), b"").unwrap();
    std::fs::copy(repository().join("assets/samples/rocket.jpg"), folder.path().join("rocket.jpg")).unwrap();
    let output = rehearse(&["--model", "efficientnet-lite0", &text(folder.path())]).output().unwrap();
    must_be_equal(&output, 1);
    assert!(
        messages(&output).contains("ends as Failed") && messages(&output).contains(&format!("\n1 image has {EQUAL}")),
        "{}",
        messages(&output)
    );
}

#[cfg(unix)]
#[test]
fn missing_python_packages_name_the_install_command() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let bare = folder.path().join("bare-python");
    std::fs::write(&bare, "#!/bin/sh\nexec python3 -I -S \"$@\"\n").unwrap();
    std::fs::set_permissions(&bare, std::fs::Permissions::from_mode(0o755)).unwrap();
    let python = text(&bare);
    let output = rehearse(&["--model", "efficientnet-lite0", &samples(), "--python", &python]).output().unwrap();
    let said_ = messages(&output);
    assert_eq!(output.status.code(), Some(1), "{said_}");
    assert!(said_.contains(LACKS), "{said_}");
    assert!(said_.contains("-m pip install \"onnxruntime=="), "{said_}");
    let output =
        rehearse(&["--model", "efficientnet-lite0", &samples(), "--python", "no-such-python"]).output().unwrap();
    assert!(messages(&output).contains("start Python"), "{}", messages(&output));
}

#[test]
fn missing_model_names_the_option() {
    let output = rehearse(&[&samples()]).output().unwrap();
    let messages = messages(&output);
    assert_eq!(output.status.code(), Some(1), "{messages}");
    assert!(messages.contains("--model") && messages.contains("an archive"), "{messages}");
}

#[test]
fn harmful_archives_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("model.tar.gz");
    let refused = |bytes: &[u8], reason: &str| {
        std::fs::write(&archive, bytes).unwrap();
        let output = rehearse(&[&text(&archive), &samples()]).output().unwrap();
        let messages = messages(&output);
        assert_eq!(output.status.code(), Some(1), "{messages}");
        assert!(messages.contains(reason), "{reason}: {messages}");
    };
    refused(&archive_with("../evil.py", tar::EntryType::Regular), "out of the archive");
    refused(&archive_with("/tmp/evil.py", tar::EntryType::Regular), "out of the archive");
    refused(&archive_with("code/link.py", tar::EntryType::Symlink), "a link or");
    refused(&archive_with("code/link.py", tar::EntryType::Link), "a link or");
    refused(&archive_with("other.txt", tar::EntryType::Regular), "not an archive");
    refused(b"no archive at all", "archive is damaged");
    refused(&archive_of(&[("model.onnx", tar::EntryType::Regular, 6 << 30)]), "too large for");
    let folders: Vec<String> = (0..10_001).map(|number| number.to_string()).collect();
    let folders: Vec<(&str, tar::EntryType, u64)> =
        folders.iter().map(|name| (name.as_str(), tar::EntryType::Directory, 0)).collect();
    refused(&archive_of(&folders), "more than 10000");
    // A name of 64 MiB, which a reader would hold in memory.
    let mut long = archive_of(&[("name", tar::EntryType::GNULongName, 64 << 20)]);
    let mut zeros = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::copy(&mut std::io::repeat(b'a').take(64 << 20), &mut zeros).unwrap();
    long.extend(zeros.finish().unwrap());
    refused(&long, "unexpected data");
    let whole = std::fs::read(package(tempfile::tempdir().unwrap().path(), &["--model", "efficientnet-lite0"]));
    let whole = whole.unwrap();
    refused(&whole[..whole.len() / 2], "archive is damaged");
}

/// Entries that claim to have this many bytes, and have none. Without an end, so that another part may follow.
fn archive_of(entries: &[(&str, tar::EntryType, u64)]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for (name, kind, bytes) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_path(name).unwrap();
        header.set_entry_type(*kind);
        header.set_size(*bytes);
        header.set_mode(0o755);
        header.set_cksum();
        gzip.write_all(header.as_bytes()).unwrap();
    }
    gzip.finish().unwrap()
}

/// One entry with its name unchanged.
fn archive_with(name: &str, kind: tar::EntryType) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    header.set_entry_type(kind);
    header.set_size(0);
    header.set_mode(0o644);
    if kind != tar::EntryType::Regular {
        header.set_link_name("/etc/passwd").unwrap();
    }
    header.set_cksum();
    let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut tar = tar::Builder::new(gzip);
    tar.append(&header, std::io::empty()).unwrap();
    tar.into_inner().unwrap().finish().unwrap()
}

/// A rehearsal whose handler never responds: the process, and the handler's process id. `more` are further lines of the
/// handler.
#[cfg(unix)]
fn hanging(folder: &Path, temporary: &Path, more: &str) -> (std::process::Child, u32) {
    let note = folder.join("handler.pid");
    let place = note.display();
    let lines = format!(
        "
def respond(model, body, content_type):
    import threading
    with open('{place}.new', 'w') as file:
        file.write(str(os.getpid()))
    os.replace('{place}.new', '{place}')
    threading.Event().wait()
{more}"
    );
    let archive = tampered(folder, &lines);
    let child = rehearse(&[&text(&archive), &samples()])
        .env("TMPDIR", temporary)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the handler is asked", || note.exists());
    let id = std::fs::read_to_string(&note).unwrap().parse().unwrap();
    assert!(is_running(id));
    (child, id)
}

#[cfg(unix)]
fn is_running(id: u32) -> bool {
    let status = Command::new("kill").args(["-0", &id.to_string()]).stderr(Stdio::null()).status();
    status.unwrap().success()
}

#[track_caller]
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(unix)]
#[test]
fn handler_ends_with_its_rehearsal() {
    let left_in = |temporary: &Path| {
        let entries = std::fs::read_dir(temporary).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect::<Vec<_>>()
    };
    for signal in ["-INT", "-TERM", "-KILL"] {
        let folder = tempfile::tempdir().unwrap();
        let temporary = folder.path().join("temporary");
        std::fs::create_dir(&temporary).unwrap();
        let (mut rehearsal, handler) = hanging(folder.path(), &temporary, "");
        assert_eq!(left_in(&temporary).len(), 1);
        let sent = Command::new("kill").args([signal, &rehearsal.id().to_string()]).status();
        assert!(sent.unwrap().success());
        let status = rehearsal.wait().unwrap();
        if signal != "-KILL" {
            assert_eq!(status.code(), Some(1));
            assert_eq!(left_in(&temporary), Vec::<PathBuf>::new(), "{signal}");
        }
        wait_until("the handler is gone", || !is_running(handler));
        // The next process removes the leftovers of a killed one, although its own archive is rejected.
        let next = rehearse(&["Cargo.toml", &samples()]).env("TMPDIR", &temporary).output().unwrap();
        assert_eq!(next.status.code(), Some(1));
        assert_eq!(left_in(&temporary), Vec::<PathBuf>::new(), "{signal}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn handler_that_ignores_stdin_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let ignores = "import threading; os.read = lambda *_: threading.Event().wait()";
    let (mut rehearsal, handler) = hanging(folder.path(), folder.path(), ignores);
    rehearsal.kill().unwrap();
    rehearsal.wait().unwrap();
    wait_until("the handler is gone", || !is_running(handler));
}

/// A TensorFlow Serving with a constant response; its address, and the bodies of the requests.
fn tensorflow_serving() -> (String, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, bodies) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let mut reader = BufReader::new(connection.try_clone().unwrap());
            let mut length = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                if line.trim().is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            sender.send(String::from_utf8(body).unwrap()).unwrap();
            let prediction = "{\n \"predictions\": [[0.25, 0.75]]\n}";
            write!(
                connection,
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{prediction}",
                prediction.len()
            )
            .unwrap();
        }
    });
    (format!("http://{address}/v1/models/m:predict"), bodies)
}

#[test]
fn saved_model_rehearses_with_user_tf_serving() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model/3");
    std::fs::create_dir_all(&model).unwrap();
    std::fs::write(model.join("saved_model.pb"), b"graph").unwrap();
    let archive = folder.path().join("model.tar.gz");
    let packed = spotcheck(&["transform", "package", "--input", "image", "--signature", "classify"])
        .arg("--saved-model")
        .arg(folder.path().join("model"))
        .arg("--out")
        .arg(&archive)
        .output()
        .unwrap();
    assert!(packed.status.success(), "{packed:?}");

    // Missing Python packages matter only together with a TensorFlow Serving.
    std::fs::write(folder.path().join("model/requirements.txt"), "no-such-package==1.0\n").unwrap();
    let wanting = folder.path().join("wanting.tar.gz");
    let packed = spotcheck(&["transform", "package", "--saved-model"])
        .arg(folder.path().join("model"))
        .arg("--out")
        .arg(&wanting)
        .output()
        .unwrap();
    assert!(packed.status.success(), "{packed:?}");
    let alone = rehearse(&[&text(&wanting), &samples()]).output().unwrap();
    assert_eq!(alone.status.code(), Some(1));
    assert!(
        messages(&alone).contains("requires TensorFlow Serving") && !messages(&alone).contains(LACKS),
        "{}",
        messages(&alone)
    );

    let photos = repository().join("assets/samples");
    for form in ["image", "tfrecord", "line"] {
        let (address, bodies) = tensorflow_serving();
        let output = rehearse(&[
            &text(&archive),
            &samples(),
            "--as",
            form,
            "--max-concurrent",
            "1",
            "--tensorflow-serving",
            &address,
        ])
        .output()
        .unwrap();
        let messages = messages(&output);
        assert_eq!(output.status.code(), Some(0), "{messages}");
        assert_eq!(messages.matches("predicted\n").count(), 8, "{messages}");
        let request: serde_json::Value = serde_json::from_str(&bodies.recv().unwrap()).unwrap();
        assert_eq!(request["signature_name"], "classify");
        let image = request["instances"][0]["image"]["b64"].as_str().unwrap();
        let first = std::fs::read(photos.join("astronaut.png")).unwrap();
        assert_eq!(image, base64(&first), "{form}");
    }
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
