//! `spotcheck transform package`: the contents of the archive, and the responses of its handler over HTTP, from an
//! empty folder.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::handler::{Served, package, python, unpacked};
use crate::support::{repository, spotcheck};

const SCORE_TOLERANCE: f64 = 1e-4;
/// The largest difference of an edge, in pixels.
const EDGE_TOLERANCE: f64 = 0.05;
const IMAGE: &str = "application/x-image";

/// Both models of the repository, and the convention of quantized TensorFlow models: bytes in, bytes out, with a
/// background class.
fn models() -> [String; 3] {
    let quantized = repository().join("tests/cases/conventions/quantized-mobilenet/model.onnx");
    ["efficientnet-lite0".to_owned(), "ssd-mobilenet-coco".to_owned(), quantized.to_string_lossy().into_owned()]
}

fn photos() -> Vec<PathBuf> {
    let folders = ["assets/samples", "tests/tfrecord/photos"].map(|folder| repository().join(folder));
    let entries = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "jpg" || kind == "png"))
        .collect();
    files.sort();
    assert!(files.len() > 8, "{files:?}");
    files
}

/// The output of `predict`: one line per image, in order.
fn predicted_lines(images: &[PathBuf], model: &str) -> String {
    let list = images.iter().fold(String::new(), |mut list, image| {
        writeln!(list, "{}", image.display()).unwrap();
        list
    });
    let input = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(input.path(), list).unwrap();
    let mut command = spotcheck(&["predict", "-", "--model", model, "--device", "cpu", "--out"]);
    let output = command.arg("-").stdin(std::fs::File::open(input.path()).unwrap()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn predicted(images: &[PathBuf], model: &str) -> Vec<Value> {
    json_lines(&predicted_lines(images, model))
}

/// A handler in a separate folder.
struct Packed {
    folder: tempfile::TempDir,
    contents: PathBuf,
}

impl Packed {
    fn new(model: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let archive = package(folder.path(), &["--model", model]);
        let contents = unpacked(&archive, folder.path());
        Self { folder, contents }
    }
}

/// `tests/library/detections.rs` checks Spotcheck with the same cases.
#[test]
fn handler_boxes_match_the_exporter_rules() {
    let mut command = python(&["model-handler"]);
    let script = repository().join("tests/package/check_detections.py");
    let folders = ["assets/handler", "tests/cases/detections", "tests/cases/detections_refused"];
    let output = command.arg(script).args(folders.map(|path| repository().join(path))).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn packing_is_reproducible() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let original = repository().join("tests/cases/conventions/quantized-mobilenet/model.onnx");
    let archives = folders.each_ref().map(|folder| {
        let copy = folder.path().join("quantized.onnx");
        // A new file with its own time.
        std::fs::copy(&original, &copy).unwrap();
        package(folder.path(), &["--model", copy.to_str().unwrap()])
    });
    let [first, second] = archives.each_ref().map(|archive| std::fs::read(archive).unwrap());
    assert!(first == second, "{} and {} bytes", first.len(), second.len());

    let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(first.as_slice()));
    let mut names = Vec::new();
    for entry in tar.entries().unwrap() {
        let entry = entry.unwrap();
        let header = entry.header();
        assert_eq!((header.uid().unwrap(), header.gid().unwrap()), (0, 0));
        assert_eq!(header.mode().unwrap(), 0o644);
        names.push(entry.path().unwrap().to_string_lossy().into_owned());
    }
    for needed in [
        "model.onnx",
        "spotcheck-model.json",
        "config.yaml",
        "deployment.py",
        "code/inference.py",
        "code/requirements.txt",
        "code/serve.py",
    ] {
        assert!(names.iter().any(|name| name == needed), "{names:?}");
    }
    let is_trap = |name: &String| name.ends_with("manifest.json");
    assert!(!names.iter().any(is_trap), "Multi Model Server would read it");
}

#[test]
fn handler_predicts_like_predict() {
    let photos = photos();
    for model in models() {
        let lines = predicted_lines(&photos, &model);
        let expected = json_lines(&lines);
        let packed = Packed::new(&model);
        let served = Served::plainly(&packed.contents);
        assert_eq!(served.get("/ping").status, 200);
        let parameters = served.get("/execution-parameters").json();
        assert_eq!(parameters["BatchStrategy"], "SINGLE_RECORD");
        let predicted = photos.iter().zip(lines.lines()).zip(&expected);
        for ((photo, line), expected) in predicted {
            let reply = served.invoke(IMAGE, &std::fs::read(photo).unwrap());
            assert_eq!(reply.status, 200, "{}", reply.text);
            assert_eq!(reply.content_type, "application/json");
            check_prediction(&reply.json(), expected);
            // One reader serves both: only the `uri` is missing.
            assert_eq!(keys(&reply.text), keys(line)[1..]);
        }
    }
}

/// Checks that it equals `expected`, written by `predict`, except for the `uri`.
fn check_prediction(got: &Value, expected: &Value) {
    let context = format!("got {got}\nexpected {expected}");
    for key in ["status", "width", "height", "model", "task"] {
        assert_eq!(got[key], expected[key], "{key}: {context}");
    }
    for key in ["classes", "detections"] {
        assert_eq!(got.get(key).is_some(), expected.get(key).is_some(), "{context}");
        let Some(expected) = expected[key].as_array() else {
            continue;
        };
        let got = got[key].as_array().unwrap();
        assert_eq!(got.len(), expected.len(), "{context}");
        for (got, expected) in got.iter().zip(expected) {
            for key in ["index", "class_id", "label"] {
                assert_eq!(got.get(key), expected.get(key), "{context}");
            }
            let score = |of: &Value| of["score"].as_f64().unwrap();
            assert!((score(got) - score(expected)).abs() <= SCORE_TOLERANCE, "{context}");
            let edges = |of: &Value| of["box"].as_array().cloned().unwrap_or_default();
            for (got, expected) in edges(got).iter().zip(edges(expected)) {
                let difference = got.as_f64().unwrap() - expected.as_f64().unwrap();
                assert!(difference.abs() <= EDGE_TOLERANCE, "{context}");
            }
        }
    }
}

/// The keys in the order of the text.
fn keys(text: &str) -> Vec<&str> {
    let ends = text.match_indices("\":");
    ends.map(|(end, _)| text[..end].rsplit('"').next().unwrap()).collect()
}

#[test]
fn handler_decodes_every_image_kind() {
    let packed = Packed::new("efficientnet-lite0");
    let output = python(&["model-handler"])
        .arg(repository().join("tests/package/check_images.py"))
        .arg(packed.contents.join("code"))
        .arg(repository().join("tests/cases/decode"))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "checked\n", "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn non_image_body_is_refused_and_the_next_predicted() {
    let packed = Packed::new("efficientnet-lite0");
    let served = Served::plainly(&packed.contents);
    let rocket = std::fs::read(repository().join("assets/samples/rocket.jpg")).unwrap();
    let huge = repository().join("tests/cases/decode/png-100000x100000/image.png");
    let bomb = repository().join("tests/cases/decode/jpeg-20000x20000-without-data/image.jpg");
    let progressive = repository().join("tests/cases/decode/jpeg-progressive/image.jpg");
    let progressive = crate::support::jpeg::enlarged(&std::fs::read(progressive).unwrap(), 0xc2, 22_600);
    for (body, reason) in [
        (&rocket[..rocket.len() / 2], "truncated"),
        (&progressive, "memory"),
        (b"", "empty"),
        (b"Dear diary, this is not an image", "Dear diary"),
        (&std::fs::read(huge).unwrap(), "megapixels"),
        (&std::fs::read(bomb).unwrap(), "truncated"),
    ] {
        let reply = served.invoke(IMAGE, body);
        assert_eq!(reply.status, 400, "{}", reply.text);
        let prediction = reply.json();
        assert_eq!(prediction["status"], "failed");
        assert!(prediction["error"].as_str().unwrap().contains(reason), "{prediction}");
        assert_eq!(served.invoke("image/jpeg", &rocket).status, 200, "after {prediction}");
    }
    let unknown = served.invoke("text/csv", b"1,2,3");
    assert_eq!(unknown.status, 415);
    assert!(unknown.text.contains("application/x-image"), "{}", unknown.text);
}

#[test]
fn used_or_invalid_port_is_one_line() {
    let packed = Packed::new("efficientnet-lite0");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().port().to_string();
    for (port, reason) in [(taken.as_str(), "listen on port"), ("many", "not a port"), ("70000", "not a port")] {
        let output = python(&["model-handler"])
            .arg("code/serve.py")
            .current_dir(&packed.contents)
            .env("SAGEMAKER_BIND_TO_PORT", port)
            .output()
            .unwrap();
        let messages = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{messages}");
        assert!(messages.contains(reason) && messages.contains(port), "{messages}");
        assert!(!messages.contains("Traceback"), "{messages}");
    }
}

#[test]
fn malformed_and_large_bodies_are_refused_early() {
    use std::io::{Read as _, Write as _};
    let packed = Packed::new("efficientnet-lite0");
    let served = Served::plainly(&packed.contents);
    for (head, status) in [
        ("Content-Length: 99999999999", "413"),
        ("Content-Length: many", "400"),
        ("Transfer-Encoding: chunked\r\n\r\nxyz", "400"),
        ("Transfer-Encoding: chunked\r\n\r\nfffffffffff", "413"),
    ] {
        let mut connection = served.connect();
        write!(connection, "POST /invocations HTTP/1.1\r\n{head}\r\n\r\n").unwrap();
        // A client sends everything before it reads a prediction.
        connection.write_all(&vec![b'\n'; 8 << 20]).unwrap();
        connection.shutdown(std::net::Shutdown::Write).unwrap();
        let mut reply = String::new();
        connection.read_to_string(&mut reply).unwrap();
        assert!(
            reply.starts_with(&format!("HTTP/1.1 {status} ")) && reply.contains("\r\nConnection: close\r\n"),
            "{head}: {reply}"
        );
    }
    let rocket = std::fs::read(repository().join("assets/samples/rocket.jpg")).unwrap();
    assert_eq!(served.invoke(IMAGE, &rocket).status, 200);
    // In chunks, like Batch Transform sends requests without a limit.
    let mut connection = served.connect();
    let mut body = b"POST /invocations HTTP/1.1\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n".to_vec();
    for piece in rocket.chunks(10_000) {
        write!(body, "{:x}\r\n", piece.len()).unwrap();
        body.extend(piece);
        body.extend(b"\r\n");
    }
    body.extend(b"0\r\n\r\n");
    connection.write_all(&body).unwrap();
    let mut reply = String::new();
    connection.read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 200 ") && reply.contains("\"status\":\"ok\""), "{reply}");
}

#[test]
fn bad_record_does_not_affect_others() {
    let packed = Packed::new("efficientnet-lite0");
    let served = Served::plainly(&packed.contents);
    let file = repository().join("tests/tfrecord/photos.tfrecord");
    let framed = std::fs::read(&file).unwrap();
    let expected = predicted(&[file], "efficientnet-lite0");

    // With its framing (MultiRecord), and record by record without (SingleRecord).
    let all = served.invoke("application/x-tfexample", &framed);
    assert_eq!((all.status, all.content_type.as_str()), (200, "application/jsonlines"));
    let predictions: Vec<Value> = json_lines(&all.text);
    assert_eq!(predictions.len(), expected.len());
    for ((record, prediction), expected) in records(&framed).into_iter().zip(&predictions).zip(&expected) {
        check_prediction(prediction, expected);
        let alone = served.invoke("application/x-tfexample", record);
        assert_eq!(alone.json(), *prediction);
    }

    let photo = std::fs::read(repository().join("tests/tfrecord/photos/chelsea.png")).unwrap();
    let line = json!({"b64": base64(&photo)}).to_string();
    let lines = format!("{line}\n{{\"b64\":\"bm8gaW1hZ2U=\"}}\n{{\"b64\":7}}\nnonsense\n{line}\n");
    let predictions = json_lines(&served.invoke("application/jsonlines", lines.as_bytes()).text);
    let states: Vec<&str> = predictions.iter().map(|prediction| prediction["status"].as_str().unwrap()).collect();
    assert_eq!(states, ["ok", "failed", "failed", "failed", "ok"]);
    assert_eq!(predictions[0], served.invoke(IMAGE, &photo).json());

    let instances = json!({"instances": [{"b64": base64(&photo)}]}).to_string();
    let reply = served.invoke("application/json", instances.as_bytes()).json();
    assert_eq!(reply["predictions"][0], predictions[0]);
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The data of each record: length (8), its checksum (4), data, their checksum (4).
fn records(mut file: &[u8]) -> Vec<&[u8]> {
    let mut records = Vec::new();
    while let Some((length, rest)) = file.split_first_chunk() {
        let length = u64::from_le_bytes(*length) as usize;
        records.push(&rest[4..4 + length]);
        file = &rest[4 + length + 4..];
    }
    records
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[test]
fn ray_serve_predicts_from_the_archive() {
    let packed = Packed::new("efficientnet-lite0");
    let mut command = python(&["ray-serve", "model-handler"]);
    command
        .arg(repository().join("tests/package/ray_serve.py"))
        .arg(&packed.contents)
        .env("HOME", packed.folder.path())
        .env("RAY_USAGE_STATS_ENABLED", "0")
        .env("RAY_AUTH_MODE", "disabled");
    let served = Served::by(command);
    assert_eq!(served.get("/ping").status, 200);
    let photos = photos();
    let expected = predicted(&photos, "efficientnet-lite0");
    for (photo, expected) in photos.iter().zip(&expected) {
        let reply = served.invoke(IMAGE, &std::fs::read(photo).unwrap());
        assert_eq!(reply.status, 200, "{}", reply.text);
        check_prediction(&reply.json(), expected);
    }
    let refused = served.invoke(IMAGE, b"no image");
    assert_eq!(refused.status, 400);
    assert_eq!(refused.json()["status"], "failed");
}

#[test]
fn gpu_container_gets_gpu_runtime_and_replicas() {
    let folder = tempfile::tempdir().unwrap();
    let archive = package(folder.path(), &["--model", "efficientnet-lite0", "--gpu"]);
    let contents = unpacked(&archive, folder.path());
    let read = |name: &str| std::fs::read_to_string(contents.join(name)).unwrap();
    assert!(read("code/requirements.txt").starts_with("onnxruntime-gpu=="));
    assert!(read("config.yaml").contains("num_gpus: 1"));
}

#[test]
fn packing_replaces_no_files_unasked() {
    let folder = tempfile::tempdir().unwrap();
    let archive = package(folder.path(), &["--model", "efficientnet-lite0"]);
    let before = std::fs::read(&archive).unwrap();
    let again = |more: &[&str]| {
        let mut command = spotcheck(&["transform", "package", "--model", "ssd-mobilenet-coco"]);
        command.arg("--out").arg(&archive).args(more).output().unwrap()
    };
    let refused = again(&[]);
    assert_eq!(refused.status.code(), Some(1));
    let messages = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(messages.contains("--force"), "{messages}");
    assert!(std::fs::read(&archive).unwrap() == before);
    assert!(again(&["--force"]).status.success());
    assert!(std::fs::read(&archive).unwrap() != before);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
}

/// A folder with TensorFlow's files, as far as packing inspects them.
fn saved_model() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let variables = folder.path().join("7/variables");
    std::fs::create_dir_all(&variables).unwrap();
    std::fs::write(folder.path().join("7/saved_model.pb"), b"graph").unwrap();
    std::fs::write(variables.join("variables.index"), b"index").unwrap();
    std::fs::create_dir(folder.path().join("code")).unwrap();
    std::fs::create_dir(folder.path().join("code/__pycache__")).unwrap();
    std::fs::write(folder.path().join("code/__pycache__/old.pyc"), b"").unwrap();
    folder
}

fn package_saved_model(folder: &Path, out: &Path, more: &[&str]) -> std::process::Output {
    let mut command = spotcheck(&["transform", "package", "--saved-model"]);
    command.arg(folder).arg("--out").arg(out).args(more);
    command.output().unwrap()
}

fn names(archive: &Path) -> Vec<String> {
    let file = std::fs::File::open(archive).unwrap();
    let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(file));
    let entries = tar.entries().unwrap();
    entries.map(|entry| entry.unwrap().path().unwrap().to_string_lossy().into_owned()).collect()
}

#[test]
fn saved_model_keeps_its_own_handler() {
    let model = saved_model();
    let out = tempfile::tempdir().unwrap();
    let archive = out.path().join("model.tar.gz");
    let output = package_saved_model(model.path(), &archive, &["--signature", "serve"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        names(&archive),
        [
            "7/saved_model.pb",
            "7/variables/variables.index",
            "code/inference.py",
            "code/spotcheck_records.py",
            "code/spotcheck-serving.json",
        ]
    );

    std::fs::write(model.path().join("code/inference.py"), b"# mine\n").unwrap();
    std::fs::write(model.path().join("requirements.txt"), b"requests\n").unwrap();
    let refused = package_saved_model(model.path(), &archive, &["--force", "--input", "image"]);
    let messages = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(messages.contains("its code/inference.py chooses"), "{messages}");
    assert!(package_saved_model(model.path(), &archive, &["--force"]).status.success());
    assert_eq!(
        names(&archive),
        ["7/saved_model.pb", "7/variables/variables.index", "code/inference.py", "code/requirements.txt",]
    );
}

#[test]
fn saved_model_without_a_version_folder_is_packed() {
    let model = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &[u8]| {
        let path = model.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    };
    write("saved_model.pb", b"graph");
    write("variables/variables.index", b"index");
    write("code/inference.py", b"# mine\n");
    write("requirements.txt", b"requests\n");
    // Not next to the graph: this one belongs to the model.
    write("assets/requirements.txt", b"words\n");
    let out = tempfile::tempdir().unwrap();
    let archive = out.path().join("model.tar.gz");
    let output = package_saved_model(model.path(), &archive, &[]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        names(&archive),
        [
            "1/assets/requirements.txt",
            "1/saved_model.pb",
            "1/variables/variables.index",
            "code/inference.py",
            "code/requirements.txt",
        ]
    );
}

#[test]
fn duplicate_version_folders_are_refused() {
    let model = saved_model();
    std::fs::create_dir(model.path().join("07")).unwrap();
    std::fs::write(model.path().join("07/saved_model.pb"), b"other").unwrap();
    let out = tempfile::tempdir().unwrap();
    let refused = package_saved_model(model.path(), &out.path().join("model.tar.gz"), &[]);
    let messages = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{messages}");
    assert!(messages.contains("version as 07"), "{messages}");
}

#[cfg(unix)]
#[test]
fn saved_model_with_links_is_refused() {
    let model = saved_model();
    let out = tempfile::tempdir().unwrap();
    let archive = out.path().join("model.tar.gz");
    let link = model.path().join("7/variables/variables.data");
    std::os::unix::fs::symlink("/etc/hostname", &link).unwrap();
    let refused = package_saved_model(model.path(), &archive, &[]);
    assert_eq!(refused.status.code(), Some(1));
    let messages = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(messages.contains("a link") && messages.contains("variables.data"), "{messages}");

    let empty = tempfile::tempdir().unwrap();
    let refused = package_saved_model(empty.path(), &archive, &[]);
    let messages = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(messages.contains("no TensorFlow SavedModel"), "{messages}");
    assert!(!archive.exists());
}

#[test]
fn weights_of_another_card_are_not_packed() {
    let folder = tempfile::tempdir().unwrap();
    let case = repository().join("tests/parity/resnet50");
    for name in ["model.onnx", "model.toml"] {
        std::fs::copy(case.join(name), folder.path().join(name)).unwrap();
    }
    let weights = folder.path().join("model.onnx");
    let mut bytes = std::fs::read(&weights).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&weights, bytes).unwrap();
    let archive = folder.path().join("model.tar.gz");
    let mut command: Command = spotcheck(&["transform", "package", "--model"]);
    let output = command.arg(&weights).arg("--out").arg(&archive).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(messages.contains("the card of"), "{messages}");
    assert!(!archive.exists());
}
