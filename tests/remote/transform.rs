//! From an empty folder to a compared run: a local model is packed and started as a job, which is watched, retried and
//! compared with the local predictions. The archive is real, and so is the handler that runs.

use std::path::PathBuf;
use std::process::Command;

use base64::Engine as _;
use serde_json::{Value, json};

use crate::support::control_plane::{ControlPlane, Failure, JobLog, ROLE, archive};
use crate::support::ended::Ended;
use crate::support::seaweed::{ADMIN, Bucket, Seaweed};
use crate::support::{json_lines, repository, spotcheck, spotcheck_at};

const SCORE_TOLERANCE: f64 = 1e-4;
const MODEL: &str = "efficientnet-lite0";
const PHOTOS: [&str; 4] = ["chelsea.png", "coffee.png", "flower.jpg", "rocket.jpg"];

/// A person with an account and a separate folder.
struct Context {
    plane: ControlPlane,
    bucket: Bucket,
    home: tempfile::TempDir,
}

impl Context {
    fn new() -> Self {
        let bucket = Seaweed::shared().bucket("story");
        Self { plane: ControlPlane::start(bucket.server()), bucket, home: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Runs the program, which must end with `code`. Its files are in the folder of this context.
    fn run(&self, code: i32, args: &[&str]) -> Ended {
        self.ends(code, spotcheck_at(&self.path("home"), args), args)
    }

    /// The same for commands that need ONNX Runtime, which is shared.
    fn run_model(&self, code: i32, args: &[&str]) -> Ended {
        self.ends(code, spotcheck(args), args)
    }

    fn ends(&self, code: i32, mut command: Command, args: &[&str]) -> Ended {
        self.plane.sign_in(&mut command, ADMIN);
        let messages = Ended::new(&command.output().unwrap());
        assert_eq!(messages.code, Some(code), "{args:?}: {messages:#?}");
        messages
    }

    /// Four local images.
    fn put_photos(&self) {
        std::fs::create_dir(self.path("photos")).unwrap();
        for name in PHOTOS {
            let from = repository().join("assets/samples").join(name);
            std::fs::copy(from, self.path("photos").join(name)).unwrap();
        }
    }

    /// `transform WHAT` over the photos, with a packed model.
    fn transform(&self, code: i32, what: &str, job: &str, more: &[&str]) -> Ended {
        let photos = self.text("photos");
        let (input, output) = (self.bucket.uri("photos/"), self.bucket.uri("out/"));
        let packed = self.text("model.tar.gz");
        let mut args = vec!["transform", what, &photos, "--input-to", &input];
        args.extend(["--output", &output, "--job-name", job]);
        args.extend(["--archive", &packed, "--role", ROLE]);
        args.extend(more);
        self.run(code, &args)
    }
}

impl Context {
    /// The local predictions for these photos.
    fn predicted_here(&self, photos: &str) -> Vec<Value> {
        let args = ["predict", photos, "--model", MODEL, "--out", "-"];
        json_lines(&self.run_model(0, &args).stdout)
    }

    /// Packs the model as `model.tar.gz`.
    fn package(&self) {
        let packed = self.text("model.tar.gz");
        let args = ["transform", "package", "--model", MODEL, "--out", &packed];
        self.run(0, &args);
    }

    /// Runs a job over objects in S3 with the packed model to its end.
    fn start_in_s3(&self, job: &str, input: &str, more: &[&str]) -> Ended {
        let (input, output) = (self.bucket.uri(input), self.bucket.uri("out/"));
        let packed = self.text("model.tar.gz");
        let mut args = vec!["transform", "start", &input, "--output", &output];
        args.extend(["--job-name", job, "--archive", &packed, "--role", ROLE]);
        args.extend(["--max-concurrent", "4", "--watch"]);
        args.extend(more);
        self.run(0, &args)
    }

    fn fetch_to_stdout(&self, code: i32, job: &str, place: &str) -> Ended {
        self.run(code, &["transform", "fetch", job, place, "--out", "-"])
    }

    /// Checks that the output equals `here`: the same class first, the same scores.
    #[track_caller]
    fn must_have_predicted(&self, key: &str, here: &[Value]) {
        let output = self.bucket.get(key).unwrap_or_else(|| panic!("no {key}"));
        let there: Value = serde_json::from_slice(&output).unwrap();
        let photo = key.rsplit('/').next().unwrap().trim_end_matches(".out");
        let of_photo = |line: &&Value| line["uri"].as_str().unwrap().ends_with(photo);
        let here = here.iter().find(of_photo).unwrap();
        assert_same_classes(here, &there, key);
    }
}

/// The line for a photo with this name.
#[track_caller]
fn prediction_about<'l>(lines: &'l [Value], uri: &str) -> &'l Value {
    let name = |uri: &str| uri.rsplit('/').next().unwrap().to_owned();
    let of = |line: &&Value| line["uri"].as_str() == Some(uri);
    let mut named = lines.iter().filter(|line| line["uri"].as_str().is_some_and(|other| name(other) == name(uri)));
    let exact = lines.iter().find(of);
    exact.or_else(|| named.next()).unwrap()
}

/// Checks for the same classes in the same order, with the same scores.
#[track_caller]
fn assert_same_classes(here: &Value, there: &Value, what: &str) {
    let classes = |prediction: &Value| -> Vec<(Value, f64)> {
        let classes = prediction["classes"].as_array().unwrap().iter();
        classes.map(|class| (class["label"].clone(), class["score"].as_f64().unwrap())).collect()
    };
    let (here, there) = (classes(here), classes(there));
    assert_eq!(here.len(), there.len(), "{what}");
    for ((label, score), (other_label, other_score)) in here.iter().zip(&there) {
        assert_eq!(label, other_label, "{what}: here {here:?}, there {there:?}");
        assert!((score - other_score).abs() <= SCORE_TOLERANCE, "{what}: here {here:?}, there {there:?}");
    }
}

#[test]
fn packed_model_runs_as_a_job_and_is_retried() {
    let context = Context::new();
    context.put_photos();
    let (photos, project) = (context.text("photos"), context.text("p.spotcheck"));
    let local = ["predict", &photos, "--model", MODEL, "--project", &project, "--out", "-"];
    let here = json_lines(&context.run_model(0, &local).stdout);
    let package = ["transform", "package", "--model", MODEL, "--out", &context.text("model.tar.gz")];
    context.run(0, &package);
    context.transform(0, "preflight", "story", &[]);
    assert_eq!(context.plane.count("CreateTransformJob"), 0, "looking costs nothing");

    context.plane.fail(Failure::BadObject("rocket"));
    let started = context.transform(3, "start", "story", &["--watch"]);
    started.must_print("photos/rocket.jpg: ");
    let status = ["transform", "status", "story", "--output", "json"];
    let status: Value = serde_json::from_str(&context.run(3, &status).stdout).unwrap();
    assert_eq!(status["outputs"], 3);
    let rocket = context.bucket.uri("photos/rocket.jpg");
    assert_eq!(status["without_output"].as_array().unwrap().len(), 1);
    assert_eq!(status["without_output"][0]["uri"], rocket);
    assert!(context.bucket.get("out/story/rocket.jpg.out").is_none());
    for name in PHOTOS.iter().filter(|name| **name != "rocket.jpg") {
        context.must_have_predicted(&format!("out/story/{name}.out"), &here);
    }
    let container = context.plane.log_of_job("story", JobLog::Container);
    assert!(!container.is_empty(), "no log");
    context.plane.heal();

    // The photo is the same, but now it reaches the model complete.
    let again = context.run(0, &["transform", "retry", "story", "--all", "--watch"]);
    let retried = again.stdout.lines().next().unwrap();
    context.must_have_predicted(&format!("out/{retried}/rocket.jpg.out"), &here);

    let fetch = ["transform", "fetch", "story", &photos, "--project", &project];
    // With the second job's prediction for the image that failed in the first.
    let fetched = context.run(0, &fetch);
    fetched.must_print(&format!("by the retry {retried}"));
    let compared = context.run(0, &["transform", "compare", &project]);
    compared.must_print("100.0% agree");
    compared.must_print("4 images");

    // Another computer has no record of the retry, but SageMaker has.
    let fetch = ["transform", "fetch", "story", &photos, "--out", "-"];
    let other_home = || spotcheck_at(&context.path("elsewhere"), &fetch);
    let fetched = context.ends(0, other_home(), &fetch);
    assert_eq!(json_lines(&fetched.stdout).len(), 4);
    fetched.must_print(&format!("by the retry {retried}, which"));
    assert_same_classes(
        prediction_about(&here, "/rocket.jpg"),
        prediction_about(&json_lines(&fetched.stdout), "/rocket.jpg"),
        "rocket.jpg",
    );
    let operation = "ListTransformJobs";
    context.plane.fail(Failure::AccessDenied { operation });
    let fetched = context.ends(3, other_home(), &fetch);
    fetched.must_print("search for retries");
    fetched.must_print("1 of 4 images");
    context.plane.heal();

    context.run(0, &["transform", "clean-up", "story", "--yes"]);
    context.run(0, &["transform", "clean-up", retried, "--yes"]);
    assert!(context.plane.console("DescribeModel", &json!({"ModelName": "story"})).is_err());
}

/// One prediction per line.
#[test]
fn cifar_10_job_accuracy_matches_numpy() {
    let context = Context::new();
    let numbers = std::fs::read(repository().join("tests/transform/cifar.json")).unwrap();
    let script = std::fs::read(repository().join("tests/transform/serve_cifar.py")).unwrap();
    let packed = archive(&[("code/serve.py", &script), ("cifar.json", &numbers)]);
    std::fs::write(context.path("model.tar.gz"), packed).unwrap();
    let numbers: Value = serde_json::from_slice(&numbers).unwrap();
    std::fs::create_dir(context.path("photos")).unwrap();
    let images = numbers["images"].as_array().unwrap();
    for image in images {
        let rgb = [0, 1, 2].map(|channel| image["rgb"][channel].as_u64().unwrap() as u8);
        let pixels = image::RgbImage::from_pixel(32, 32, image::Rgb(rgb));
        pixels.save(context.path("photos").join(image["name"].as_str().unwrap())).unwrap();
    }
    context.transform(0, "start", "cifar", &["--watch"]).must_print("48 of 48");
    assert!(context.bucket.get(&format!("out/cifar/{}.out", images[0]["name"].as_str().unwrap())).is_some());

    let photos = context.text("photos");
    let fetch = ["transform", "fetch", "cifar", &photos, "--labels", "cifar-10", "--truth-from-names", "--out"];
    let predictions = context.text("answers.jsonl");
    let fetched = context.run(0, &[&fetch[..], &[&predictions]].concat());
    for (line, image) in json_lines(std::fs::read_to_string(predictions).unwrap()).iter().zip(images) {
        assert_eq!(line["classes"][0]["label"], image["answer"], "{line}");
    }
    let correct = numbers["correct"].as_u64().unwrap();
    fetched.must_print(&format!(
        "{:.2}% ({correct} of {})",
        100.0 * correct as f64 / images.len() as f64,
        images.len()
    ));
    for (class, row) in numbers["classes"].as_array().unwrap().iter().zip(numbers["by_row"].as_array().unwrap()) {
        let shares: Vec<String> =
            row.as_array().unwrap().iter().map(|share| format!("{:.2}", share.as_f64().unwrap())).collect();
        let messages = format!("{}{}", fetched.stdout, fetched.stderr);
        let line = messages.lines().find(|line| {
            line.split_whitespace().next() == class.as_str() && line.split_whitespace().count() == shares.len() + 1
        });
        let line = line.unwrap_or_else(|| panic!("no row for {class}: {fetched:#?}"));
        assert_eq!(line.split_whitespace().skip(1).collect::<Vec<_>>(), shares, "{class}");
    }
}

#[test]
fn tfrecord_job_predicts_in_order() {
    let context = Context::new();
    let records = repository().join("tests/tfrecord/photos.tfrecord");
    let local = ["predict", records.to_str().unwrap(), "--model", MODEL, "--out", "-"];
    let here = json_lines(&context.run_model(0, &local).stdout);
    context.run(0, &["transform", "package", "--model", MODEL, "--out", &context.text("model.tar.gz")]);
    std::fs::create_dir(context.path("photos")).unwrap();
    std::fs::copy(&records, context.path("photos/photos.tfrecord")).unwrap();
    context.bucket.put("photos/photos.tfrecord", &std::fs::read(&records).unwrap());

    let (input, output, packed) =
        (context.bucket.uri("photos/"), context.bucket.uri("out/"), context.text("model.tar.gz"));
    let start = ["transform", "start", &input, "--output", &output, "--job-name", "records", "--archive", &packed];
    context.run(
        0,
        &[&start[..], &["--role", ROLE, "--input-kind", "tfrecord", "--max-concurrent", "4", "--watch"]].concat(),
    );
    let output = context.bucket.get("out/records/photos.tfrecord.out").unwrap();
    let there = json_lines(&output);
    assert_eq!(there.len(), here.len());
    for (here, there) in here.iter().zip(&there) {
        assert_same_classes(here, there, "a record");
    }
    let fetch = ["transform", "fetch", "records", &context.text("photos"), "--out", "-"];
    let fetched = json_lines(&context.run(0, &fetch).stdout);
    assert_eq!(fetched.len(), here.len());
    for (here, fetched) in here.iter().zip(&fetched) {
        assert_same_classes(here, fetched, "a fetched record");
    }
}

#[test]
fn one_command_packs_uploads_and_starts() {
    let context = Context::new();
    context.put_photos();
    let photos = context.text("photos");
    let here = context.predicted_here(&photos);
    let (input, output) = (context.bucket.uri("photos/"), context.bucket.uri("out/"));
    let start = [
        "transform",
        "start",
        &photos,
        "--input-to",
        &input,
        "--output",
        &output,
        "--model",
        MODEL,
        "--role",
        ROLE,
        "--job-name",
        "at-once",
        "--watch",
    ];
    let started = context.run(0, &start);
    started.must_print("4 of 4 (100%)");
    let packed = "out/spotcheck-files/at-once/model.tar.gz";
    assert!(context.bucket.get(packed).is_some());
    assert_eq!(context.plane.count("CreateModel"), 1);
    for name in PHOTOS {
        context.must_have_predicted(&format!("out/at-once/{name}.out"), &here);
    }
    let cleaned = context.run(0, &["transform", "clean-up", "at-once", "--yes"]);
    assert_eq!(cleaned.stdout.lines().count(), 2, "{cleaned:#?}");
    assert!(context.bucket.get(packed).is_none());
}

#[test]
fn lines_are_predicted_by_name_or_by_bytes() {
    let context = Context::new();
    context.put_photos();
    let photos = context.text("photos");
    let here = context.predicted_here(&photos);
    context.package();
    let line = |name: &str| {
        let content = std::fs::read(context.path("photos").join(name)).unwrap();
        let content = base64::engine::general_purpose::STANDARD.encode(content);
        json!({"image": name, "b64": content}).to_string() + "\n"
    };
    // Not in the order of the folder.
    let text: String = ["rocket.jpg", "chelsea.png", "coffee.png"].map(line).concat();
    context.bucket.put("lists/photos.jsonl", text.as_bytes());
    context.start_in_s3("joined", "lists/", &["--input-kind", "lines", "--join-input"]);
    // Neither the predictions nor the lines name their photo; the bytes of a line are those of one photo.
    let unnamed = text.lines().map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        json!({"b64": line["b64"]}).to_string() + "\n"
    });
    let unnamed: String = unnamed.collect();
    context.bucket.put("unnamed/photos.jsonl", unnamed.as_bytes());
    context.start_in_s3("alone", "unnamed/", &["--input-kind", "lines"]);
    for job in ["joined", "alone"] {
        let fetched = context.fetch_to_stdout(0, job, &photos);
        fetched.must_print("1 image was not");
        let predictions = json_lines(&fetched.stdout);
        assert_eq!(predictions.len(), 3);
        for there in &predictions {
            let uri = there["uri"].as_str().unwrap();
            assert_same_classes(prediction_about(&here, uri), there, uri);
        }
    }
}

#[test]
fn handler_responses_and_failures_are_read_back() {
    let context = Context::new();
    context.put_photos();
    std::fs::write(context.path("photos/broken.jpg"), b"no image").unwrap();
    let photos = context.text("photos");
    let local = ["predict", &photos, "--model", MODEL, "--out", "-"];
    let here = json_lines(&context.run_model(3, &local).stdout);
    context.package();
    let b64 = |name: &str| {
        let content = std::fs::read(context.path("photos").join(name)).unwrap();
        json!({"b64": base64::engine::general_purpose::STANDARD.encode(content)})
    };
    // Not in the order of the folder, and one of them is not an image.
    let several = ["rocket.jpg", "broken.jpg", "chelsea.png"];
    let several: Vec<Value> = several.iter().map(|name| b64(name)).collect();
    let documents = [
        ("several", json!({"instances": several})),
        ("one", json!({"instances": [b64("coffee.png")]})),
        ("plain", b64("flower.jpg")),
    ];
    for (name, document) in &documents {
        let key = format!("documents/{name}.json");
        context.bucket.put(&key, document.to_string().as_bytes());
    }
    let as_json = ["--content-type", "application/json"];
    context.start_in_s3("documents", "documents/", &as_json);
    let joined = [&as_json[..], &["--join-input"]].concat();
    context.start_in_s3("joined", "documents/", &joined);
    // The same documents, one per line.
    let text: Vec<String> = documents.iter().map(|(_, it)| it.to_string()).collect();
    context.bucket.put("lines/documents.jsonl", text.join("\n").as_bytes());
    let by_line = ["--input-kind", "lines", "--content-type"];
    let by_line = [&by_line[..], &["application/json"]].concat();
    context.start_in_s3("by-line", "lines/", &by_line);
    // One image per line, as JSON Lines.
    let each = std::fs::read_dir(&photos).unwrap();
    let each = each.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let each: Vec<String> = each.map(|name| b64(&name).to_string()).collect();
    context.bucket.put("each/photos.jsonl", each.join("\n").as_bytes());
    context.start_in_s3("each", "each/", &["--input-kind", "lines"]);
    for job in ["documents", "joined", "by-line", "each"] {
        let fetched = context.fetch_to_stdout(3, job, &photos);
        fetched.must_print("1 of 5 images failed");
        let there = json_lines(&fetched.stdout);
        assert_eq!(there.len(), here.len(), "{job}: {fetched:#?}");
        for there in &there {
            let uri = there["uri"].as_str().unwrap();
            let here = prediction_about(&here, uri);
            assert_eq!(here["status"], there["status"], "{job}: {there}");
            if there["status"] == "ok" {
                assert_same_classes(here, there, uri);
            } else {
                let error = there["error"].as_str().unwrap();
                assert!(error.contains("the model failed: "), "{error}");
            }
        }
    }
}

#[test]
fn refused_image_in_a_document_has_its_position() {
    let context = Context::new();
    context.put_photos();
    let photos = context.text("photos");
    let all = std::fs::read_dir(&photos).unwrap().count();
    context.package();
    let b64 = |content: &[u8]| json!({"b64": base64::engine::general_purpose::STANDARD.encode(content)});
    let rocket = std::fs::read(context.path("photos/rocket.jpg")).unwrap();
    // The second one is not among the photos either.
    let document = json!({"instances": [b64(&rocket), b64(b"rubbish")]});
    context.bucket.put("documents/both.json", document.to_string().as_bytes());
    context.start_in_s3("both", "documents/", &["--content-type", "application/json"]);
    let fetched = context.fetch_to_stdout(3, "both", &photos);
    fetched.must_print("documents/both.json: the model rejected 1 image: image 2: ");
    fetched.must_print(&format!("{} images were not", all - 1));
    assert!(!fetched.stderr.contains("images failed"), "{fetched:#?}");
    assert_eq!(json_lines(&fetched.stdout).len(), 1);
    let uri = context.bucket.uri("documents/both.json");
    // The document itself opens as a list of both.
    let of_document = context.fetch_to_stdout(3, "both", &uri);
    of_document.must_print("1 of 2 images failed");
    let lines = json_lines(&of_document.stdout);
    assert_eq!([&lines[0]["status"], &lines[1]["status"]], ["ok", "failed"]);
    assert_eq!(lines[1]["uri"], format!("{uri}/#1"));
    context.fetch_to_stdout(1, "both", &context.bucket.uri("documents/")).must_print("the image files");
}

/// Three photos with the same name, in a folder and in two of its subfolders.
const NAMESAKES: [(&str, &str); 3] = [("1.png", "chelsea.png"), ("a/1.png", "coffee.png"), ("b/1.png", "flower.jpg")];

#[test]
fn manifest_outputs_match_listed_images_only() {
    let context = Context::new();
    for (name, content) in NAMESAKES {
        let from = repository().join("assets/samples").join(content);
        let to = context.path("photos").join(name);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(&from, &to).unwrap();
        let key = format!("photos/{name}");
        context.bucket.put(&key, &std::fs::read(&from).unwrap());
    }
    let (local, remote) = (context.text("photos"), context.bucket.uri("photos/"));
    let here = context.predicted_here(&local);
    context.package();
    // Images that were never given to a job are not missing.
    let must_predict = |job: &str, place: &str, names: &[&str]| {
        let fetched = context.fetch_to_stdout(0, job, place);
        let predictions = json_lines(&fetched.stdout);
        let uris: Vec<&str> = predictions.iter().map(|line| line["uri"].as_str().unwrap()).collect();
        let expected: Vec<String> =
            names.iter().map(|name| format!("{}/{name}", place.trim_end_matches('/'))).collect();
        assert_eq!(uris, expected, "{job} over {place}: {fetched:#?}");
        for there in &predictions {
            let uri = there["uri"].as_str().unwrap();
            let name = names.iter().find(|name| uri.ends_with(**name)).unwrap();
            let local = format!("{local}/{name}");
            assert_same_classes(prediction_about(&here, &local), there, uri);
        }
    };

    // Some images from several folders, through a manifest written for the job.
    std::fs::write(context.path("list.txt"), "b/1.png\na/1.png\n").unwrap();
    let list = context.text("list.txt");
    context.start_in_s3("listed", "photos/", &["--images", &list]);
    // An image in a deeper folder: its output has the same name as another photo.
    std::fs::write(context.path("list.txt"), "a/1.png\n").unwrap();
    context.start_in_s3("deep", "photos/", &["--images", &list]);
    // The same through a manifest from another tool.
    let manifest = json!([{"prefix": context.bucket.uri("photos/a/")}, "1.png"]).to_string();
    context.bucket.put("lists/theirs.json", manifest.as_bytes());
    context.start_in_s3("theirs", "lists/theirs.json", &["--manifest"]);
    assert!(context.bucket.get("out/theirs/1.png.out").is_some());
    for place in [&remote, &local] {
        must_predict("listed", place, &["a/1.png", "b/1.png"]);
        must_predict("deep", place, &["a/1.png"]);
        must_predict("theirs", place, &["a/1.png"]);
    }

    // A deleted manifest is not needed if the job was started here; otherwise nothing is guessed.
    for job in ["listed", "deep"] {
        context.run(0, &["transform", "clean-up", job, "--yes"]).must_print("manifest s3://");
        must_predict(job, &remote, if job == "deep" { &["a/1.png"] } else { &["a/1.png", "b/1.png"] });
    }
    context.bucket.delete("lists/theirs.json");
    context.fetch_to_stdout(1, "theirs", &remote).must_print("the base folder");
}
