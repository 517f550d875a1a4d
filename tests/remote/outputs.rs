//! Outputs of Batch Transform through the real program: `spotcheck transform fetch` and `compare`.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use base64::Engine;
use serde_json::{Value, json};

use crate::support::control_plane::{ControlPlane, IMAGE, ROLE};
use crate::support::fault_proxy::{Fault, FaultProxy, Often, Request};
use crate::support::seaweed::{ADMIN, READER, Seaweed, use_profile};
use crate::support::{json_lines, python_packages, repository, spotcheck, spotcheck_at, stderr};

/// Images with a local run of a small detector or classifier, and its lines as returned by a container.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    /// Four images in `photos/`.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let photos = folder.path().join("photos/sub");
        std::fs::create_dir_all(&photos).unwrap();
        let samples = repository().join("assets/samples");
        for (name, sample) in [
            ("a b+.jpg", "rocket.jpg"),
            ("coffee.png", "coffee.png"),
            ("sub/고양이.png", "chelsea.png"),
            ("sub/china.jpg", "china.jpg"),
        ] {
            std::fs::copy(samples.join(sample), folder.path().join("photos").join(name)).unwrap();
        }
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// The local predictions as lines; they are saved in the project as well.
    fn predict(&self, source: &Path, model: &str) -> Vec<Value> {
        let project = self.text("p.spotcheck");
        let args = ["--out", "-", "--project", &project, "--device", "cpu"];
        let output = spotcheck(&["predict", source.to_str().unwrap(), "--model", model]).args(args).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        json_lines(&output.stdout)
    }

    /// Writes each line where a job would write the output of its image.
    fn write_outputs(&self, lines: &[Value]) -> PathBuf {
        let outputs = self.path("outputs");
        let photos = format!("{}/", self.path("photos").display());
        for line in lines {
            let name = line["uri"].as_str().unwrap().strip_prefix(&photos).unwrap();
            write(&outputs, &format!("{name}.out"), prediction(line).as_bytes());
        }
        outputs
    }

    fn fetch(outputs: &str, source: &str, more: &[&str]) -> Command {
        let mut command = spotcheck(&["transform", "fetch", outputs, source]);
        command.args(more);
        command
    }

    fn compare(&self, more: &[&str]) -> String {
        let output = spotcheck(&["transform", "compare", &self.text("p.spotcheck")]).args(more).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    }
}

/// A response of our container: a line of `predict` without its URI, with the keys in order.
fn prediction(line: &Value) -> String {
    let mut prediction = line.clone();
    prediction.as_object_mut().unwrap().remove("uri");
    prediction.to_string()
}

fn write(folder: &Path, name: &str, content: &[u8]) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

/// The line of the image whose path ends like this.
#[track_caller]
fn line_of<'l>(lines: &'l [Value], name: &str) -> &'l Value {
    let is_image = |line: &&Value| line["uri"].as_str().unwrap().ends_with(name);
    lines.iter().find(is_image).unwrap()
}

/// The numbers in the error of a line, in order.
#[track_caller]
fn numbers(line: &Value) -> Vec<u64> {
    let error = line["error"].as_str().unwrap();
    let parts = error.split(|character: char| !character.is_ascii_digit());
    parts.filter_map(|part| part.parse().ok()).collect()
}

#[track_caller]
fn check(mut command: Command, code: i32, prints: &[&str]) -> Output {
    let output = command.output().unwrap();
    let messages = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{command:?}: {messages}");
    for part in prints {
        assert!(messages.contains(part), "{part}: {messages}");
    }
    output
}

#[test]
fn outputs_of_drawn_images_open_alone() {
    let bench = Bench::new();
    let local = bench.predict(&bench.path("photos"), "ssd-mobilenet-coco");
    let outputs = bench.write_outputs(&local);
    write(&outputs, "sub/other.jpg.out", b"not for a listed image");
    let bucket = Seaweed::shared().bucket("drawn");
    bucket.put_folder("photos/", &bench.path("photos"));
    bucket.put_folder("outputs/", &outputs);
    let list = bench.text("drawn.json");
    let signed_in = |arguments: &[&str]| {
        let mut command = spotcheck(arguments);
        use_profile(&mut command, READER.profile, &Seaweed::shared().endpoint());
        command
    };
    let sample = ["sample", &bucket.uri("photos/"), "--count", "2", "--seed", "3", "--out", &list];
    check(signed_in(&sample), 0, &["drew 2 of 4 images"]);
    let drawn: Value = serde_json::from_slice(&std::fs::read(&list).unwrap()).unwrap();
    let uri = |image: &Value| image["uri"].as_str().unwrap().to_owned();
    let mut expected: Vec<String> = drawn["images"].as_array().unwrap().iter().map(uri).collect();
    let fetch = ["transform", "fetch", &bucket.uri("outputs/"), &list, "--out", "-"];
    let output = check(signed_in(&fetch), 0, &["2 outputs; 2 of 2 images"]);
    let mut read: Vec<String> = json_lines(&output.stdout).iter().map(uri).collect();
    expected.sort();
    read.sort();
    assert_eq!(read, expected);
}

#[test]
fn container_outputs_become_a_run() {
    let bench = Bench::new();
    let photos = bench.path("photos");
    let local = bench.predict(&photos, "ssd-mobilenet-coco");
    let outputs = bench.write_outputs(&local);
    let (outputs, project) = (outputs.to_str().unwrap(), bench.text("p.spotcheck"));
    let photos = photos.to_str().unwrap();
    let more = ["--project", &project, "--out", "-"];
    let output =
        check(Bench::fetch(outputs, photos, &more), 0, &["4 outputs; 4 of 4", "of ssd-mobilenet-coco", "saved 4 of 4"]);
    assert_eq!(json_lines(&output.stdout), local, "bit for bit");

    let compared = bench.compare(&[]);
    assert!(
        compared.contains(&format!("outputs in {outputs}"))
            && compared.contains("100.0% agree")
            && compared.contains("are identical"),
        "{compared}"
    );
    let info = spotcheck(&["project", "info", &project]).output().unwrap();
    let info = String::from_utf8(info.stdout).unwrap();
    assert!(info.contains(&format!("outputs in {outputs}")), "{info}");

    // The newest run is exported.
    let exported = bench.text("exported.jsonl");
    let export = ["export", &project, "--format", "jsonl", "--all-boxes", "--out", &exported];
    check(spotcheck(&export), 0, &["outputs in"]);
    let exported = std::fs::read(exported).unwrap();
    assert_eq!(json_lines(&exported), local);

    check(Bench::fetch(outputs, photos, &more), 1, &["--resume"]);
    let again = check(Bench::fetch(outputs, photos, &[&more[..], &["--resume"]].concat()), 0, &[", 0 remain"]);
    assert_eq!(json_lines(&again.stdout), local);
}

#[test]
fn changed_class_names_start_another_run() {
    let bench = Bench::new();
    let outputs = bench.path("outputs");
    for name in ["a b+.jpg", "coffee.png"] {
        let prediction = br#"{"predictions": [[0.1, 0.7, 0.2]]}"#;
        write(&outputs, &format!("{name}.out"), prediction);
    }
    for (name, labels) in [("first", "cat\ndog\ncow"), ("second", "cat\ncow\ndog")] {
        std::fs::write(bench.path(name), labels).unwrap();
    }
    let (photos, project) = (bench.text("photos"), bench.text("p.spotcheck"));
    let fetch = |labels: &str, more: &[&str], prints: &[&str]| {
        let labels = bench.text(labels);
        let args = ["--labels", &labels, "--project", &project, "--out", "-"];
        let fetch = Bench::fetch(outputs.to_str().unwrap(), &photos, &[&args, more].concat());
        let messages = check(fetch, 3, prints);
        json_lines(&messages.stdout)[0]["classes"][0]["label"].clone()
    };
    assert_eq!(fetch("first", &[], &["saving in the project"]), "dog");
    let other = ["“dog” in the project and “cow”", "a new run"];
    assert_eq!(fetch("second", &["--resume"], &other), "cow");
    let same = ["2 of 4 images"];
    assert_eq!(fetch("first", &["--resume"], &same), "dog");
    assert_eq!(fetch("second", &["--resume"], &same), "cow");
}

#[test]
fn unseparable_csv_outputs_are_reported() {
    let bench = Bench::new();
    let outputs = bench.path("outputs");
    write(&outputs, "coffee.png.out", b"0.1,0.7,0.2\n");
    let fetch = Bench::fetch(outputs.to_str().unwrap(), &bench.text("photos"), &[]);
    check(fetch, 1, &["CSV (“0.1,0.7,0.2”)", "Accept to application/json"]);
}

#[test]
fn unknown_model_brings_its_class_names() {
    let bench = Bench::new();
    let of = |label: &str, id: u32, size: [u32; 2]| {
        json!({"status": "ok", "width": size[0], "height": size[1], "model": "shelf-7", "task": "detection",
            "detections": [{"box": [1, 2, 30, 40], "class_id": id, "label": label, "score": 0.5}]})
        .to_string()
    };
    let outputs = bench.path("outputs");
    write(&outputs, "a b+.jpg.out", of("tin", 3, [640, 427]).as_bytes());
    write(&outputs, "coffee.png.out", of("bottle", 9, [600, 400]).as_bytes());
    write(&outputs, "sub/china.jpg.out", of("box", 3, [640, 427]).as_bytes());
    let project = bench.text("p.spotcheck");
    let fetched = check(
        Bench::fetch(outputs.to_str().unwrap(), &bench.text("photos"), &["--project", &project]),
        3,
        &["names class 3", "other outputs", "1 of 4 images"],
    );
    assert!(stderr(&fetched).contains("고양이.png"));
    let csv = bench.text("boxes.csv");
    check(spotcheck(&["export", &project, "--format", "csv", "--out", &csv]), 0, &[]);
    let csv = std::fs::read_to_string(csv).unwrap();
    assert!(csv.contains("bottle"), "{csv}");
}

#[test]
fn hostile_outputs_fail_only_their_images() {
    let bench = Bench::new();
    let photos = bench.path("photos");
    let local = bench.predict(&photos, "efficientnet-lite0");
    let outputs = bench.write_outputs(&local);
    let good = prediction(&local[0]);
    let huge = std::fs::File::create(outputs.join("coffee.png.out")).unwrap();
    huge.set_len(100 << 20).unwrap();
    write(&outputs, "a b+.jpg.out", &good.as_bytes()[..good.len() / 2]);
    write(&outputs, "sub/china.jpg.out", good.replacen("0.", "NaN, 0.", 1).as_bytes());
    write(&outputs, "..%2f..%2fetc/passwd.out", good.as_bytes());
    std::os::unix::fs::symlink("/etc/hostname", outputs.join("link.png.out")).unwrap();
    let output = check(
        Bench::fetch(outputs.to_str().unwrap(), photos.to_str().unwrap(), &["--out", "-"]),
        3,
        &["1 output matches no"],
    );
    let found = json_lines(&output.stdout);
    assert!(numbers(line_of(&found, "coffee.png")).starts_with(&[100, 32]));
    for (name, problem) in [("a b+.jpg", "is truncated after"), ("china.jpg", "NaN")] {
        let error = line_of(&found, name)["error"].as_str().unwrap();
        assert!(error.contains(problem), "{error}");
    }
    let states: Vec<&str> = found.iter().map(|line| line["status"].as_str().unwrap()).collect();
    let expected = local.iter().map(|line| match line["uri"].as_str() {
        Some(uri) if uri.ends_with("고양이.png") => "ok",
        _ => "failed",
    });
    assert_eq!(states, expected.collect::<Vec<_>>());
    assert_eq!(found.len(), 4);
}

#[test]
fn foreign_predictions_fail_only_their_images() {
    let bench = Bench::new();
    let photos = bench.path("photos");
    let local = bench.predict(&photos, "efficientnet-lite0");
    let outputs = bench.write_outputs(&local);
    let name_of = |line: &Value| {
        let path = Path::new(line["uri"].as_str().unwrap()).to_owned();
        path.strip_prefix(&photos).unwrap().display().to_string()
    };
    let spoil = |number: usize, change: &dyn Fn(&mut Value)| {
        let mut line = local[number].clone();
        change(&mut line);
        write(&outputs, &format!("{}.out", name_of(&line)), prediction(&line).as_bytes());
    };
    spoil(1, &|line| line["model"] = "other-model".into());
    spoil(2, &|line| line["width"] = 2000.into());
    spoil(3, &|line| {
        let best = line["classes"][0].clone();
        line["classes"].as_array_mut().unwrap().push(best);
    });
    let output = check(
        Bench::fetch(outputs.to_str().unwrap(), photos.to_str().unwrap(), &["--out", "-"]),
        3,
        &["3 of 4 images failed"],
    );
    let found = json_lines(&output.stdout);
    assert_eq!(found[0], local[0]);
    for (line, problems) in
        found[1..].iter().zip([&["“other-model”", "“efficientnet-lite0”"][..], &["image of 2000 x"], &["twice"]])
    {
        let error = line["error"].as_str().unwrap();
        assert!(problems.iter().all(|problem| error.contains(problem)), "{error}");
    }
    assert!(found[1..].iter().all(|line| line["status"] == "failed"));
    spoil(0, &|line| line["classes"] = json!([]));
    let output = check(
        Bench::fetch(outputs.to_str().unwrap(), photos.to_str().unwrap(), &["--out", "-"]),
        3,
        &["contains no class"],
    );
    let found = json_lines(&output.stdout);
    assert!(found.iter().all(|line| line["status"] == "failed"));
    assert_eq!(found.len(), 4);
}

#[test]
fn first_prediction_sets_the_class_count() {
    let bench = Bench::new();
    let outputs = bench.path("outputs");
    for (name, prediction) in [
        ("a b+.jpg", json!({"message": "Internal Server Error"})),
        ("coffee.png", json!({"predictions": [[0.5, 0.3, 0.2]]})),
        ("sub/china.jpg", json!({"predictions": [[0.9, 0.1]]})),
        ("sub/고양이.png", json!({"predictions": [[0.2, 0.2, 0.6]]})),
    ] {
        let name = format!("{name}.out");
        write(&outputs, &name, prediction.to_string().as_bytes());
    }
    let mapping = "id = \"m\"\nname = \"M\"\n[prediction.classification]\nscores = \"/predictions/0\"\n\
                   values = \"probabilities\"\n";
    write(bench.folder.path(), "m.toml", mapping.as_bytes());
    for more in [&[][..], &["--mapping", &bench.text("m.toml")]] {
        let (outputs, photos) = (outputs.to_str().unwrap(), bench.text("photos"));
        let more = [more, &["--out", "-"]].concat();
        let output = check(Bench::fetch(outputs, &photos, &more), 3, &["2 of 4 images failed"]);
        let found = json_lines(&output.stdout);
        let statuses: Vec<&Value> = found.iter().map(|line| &line["status"]).collect();
        assert_eq!(statuses, ["failed", "ok", "failed", "ok"]);
        assert!(numbers(&found[2]).starts_with(&[2, 3]));
    }
}

#[test]
fn bad_first_output_does_not_block_others() {
    let bench = Bench::new();
    let photos = bench.path("photos");
    let local = bench.predict(&photos, "efficientnet-lite0");
    let outputs = bench.write_outputs(&local);
    for content in [r#"{"message":"Internal Server Error"}"#, "{}"] {
        write(&outputs, "a b+.jpg.out", content.as_bytes());
        let output = check(Bench::fetch(outputs.to_str().unwrap(), photos.to_str().unwrap(), &["--out", "-"]), 3, &[]);
        let found = json_lines(&output.stdout);
        assert_eq!(found[1..], local[1..]);
        let error = found[0]["error"].as_str().unwrap();
        assert!(error.contains("has no status"), "{error}");
    }
}

#[test]
fn unmatched_outputs_are_reported_not_guessed() {
    let bench = Bench::new();
    let photos = bench.text("photos");
    let empty = bench.path("empty");
    std::fs::create_dir(&empty).unwrap();
    let empty = empty.to_str().unwrap();
    check(Bench::fetch(empty, &photos, &[]), 1, &["in .out"]);
    check(Bench::fetch(&bench.text("missing/folder"), &photos, &[]), 1, &["not exist"]);
    let others = bench.path("others");
    write(&others, "dog.jpg.out", b"{}");
    check(Bench::fetch(others.to_str().unwrap(), &photos, &[]), 1, &["of the 4 images", "dog.jpg.out"]);
    let strange = bench.path("strange");
    write(&strange, "coffee.png.out", br#"{"boxes": [[1, 2, 3, 4]], "what": ["cup"]}"#);
    check(
        Bench::fetch(strange.to_str().unwrap(), &photos, &[]),
        1,
        &["format is unknown", r#"{"boxes": [[1, 2, 3, 4]]"#, "--mapping FILE.toml"],
    );
    let broken = bench.path("broken");
    write(&broken, "coffee.png.out", b"{");
    check(Bench::fetch(broken.to_str().unwrap(), &photos, &[]), 1, &["the first outputs", "truncated"]);
}

#[test]
fn mapping_file_reads_an_unknown_format() {
    let bench = Bench::new();
    let outputs = bench.path("outputs");
    write(&outputs, "coffee.png.out", br#"{"found": [{"at": [0.25, 0.5, 0.5, 0.25], "is": "cup", "p": 0.75}]}"#);
    let mapping = r#"
id = "cafe"
name = "Café"
labels = "cafe.pbtxt"
[prediction.detection]
boxes = "/found/*/at"
classes = "/found/*/is"
scores = "/found/*/p"
box_format = "xywh"
box_space = "normalized"
"#;
    write(bench.folder.path(), "cafe.toml", mapping.as_bytes());
    write(bench.folder.path(), "cafe.pbtxt", b"item { id: 47 name: 'cup' }");
    let (mapping, outputs) = (bench.text("cafe.toml"), outputs.to_str().unwrap());
    let more = ["--mapping", &mapping, "--out", "-"];
    let output = check(
        Bench::fetch(outputs, &bench.text("photos"), &more),
        3,
        &["boxes at /found/*/at", "left, top, width, height"],
    );
    let found = json_lines(&output.stdout);
    let expected =
        json!([{"index": 0, "box": [150.0, 200.0, 450.0, 300.0], "class_id": 47, "label": "cup", "score": 0.75}]);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["detections"], expected);
    write(bench.folder.path(), "bad.toml", b"id = \"bad\"\nname = \"Bad\"\nboxes = 3\n");
    check(
        Bench::fetch(outputs, &bench.text("photos"), &["--mapping", &bench.text("bad.toml")]),
        1,
        &["bad.toml, line 3, column 1: ", "`boxes`"],
    );
}

#[test]
fn label_map_names_tensorflow_detections() {
    let bench = Bench::new();
    let outputs = bench.path("outputs");
    // coffee.png has 600 x 400 pixels.
    let of_tf = json!({"predictions": [{"detection_boxes": [[0.25, 0.5, 0.75, 1.0], [0, 0, 0, 0]],
        "detection_classes": [47.0, 1.0], "detection_scores": [0.875, 0.0], "num_detections": 2.0}]});
    write(&outputs, "coffee.png.out", of_tf.to_string().as_bytes());
    let labels = bench.text("map.pbtxt");
    write(bench.folder.path(), "map.pbtxt", b"item { id: 47 display_name: 'a cup' name: '/m/0' }");
    let output = check(
        Bench::fetch(outputs.to_str().unwrap(), &bench.text("photos/coffee.png"), &["--labels", &labels, "--out", "-"]),
        0,
        &["TensorFlow Object Detection", "top, left, bottom, right"],
    );
    let expected =
        json!([{"index": 0, "box": [300.0, 100.0, 600.0, 300.0], "class_id": 47, "label": "a cup", "score": 0.875}]);
    assert_eq!(json_lines(&output.stdout)[0]["detections"], expected);
}

/// A blank image of CIFAR-10's size.
fn tiny_png(bench: &Bench) -> Vec<u8> {
    let made = Command::new("python3")
        .args(["-c", "import sys, PIL.Image; PIL.Image.new('RGB', (32, 32)).save(sys.argv[1])"])
        .arg(bench.path("tiny.png"))
        .env("PYTHONPATH", python_packages("model-handler"))
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", stderr(&made));
    std::fs::read(bench.path("tiny.png")).unwrap()
}

#[test]
fn cifar_10_accuracy_matches_numpy() {
    let bench = Bench::new();
    let made = repository().join("tests/outputs/cifar.json");
    let made: Value = serde_json::from_slice(&std::fs::read(made).unwrap()).unwrap();
    let png = tiny_png(&bench);
    for entry in made["outputs"].as_array().unwrap() {
        let name = entry["name"].as_str().unwrap();
        write(&bench.path("cifar"), name, &png);
        let output = entry["output"].to_string();
        write(&bench.path("outputs"), &format!("{name}.out"), output.as_bytes());
    }
    let project = bench.text("p.spotcheck");
    let output = check(
        Bench::fetch(&bench.text("outputs"), &bench.text("cifar"), &["--truth-from-names", "--project", &project]),
        0,
        &["classes are CIFAR-10", "are probabilities", made["accuracy"].as_str().unwrap()],
    );
    let messages = stderr(&output);
    let mut table = String::new();
    for row in made["rows"].as_array().unwrap() {
        let cells: Vec<&str> = row.as_array().unwrap().iter().map(|cell| cell.as_str().unwrap()).collect();
        write!(table, "{} ", cells.join(" ")).unwrap();
    }
    let words: Vec<&str> = messages.split_whitespace().collect();
    let messages = words.join(" ");
    assert!(messages.contains(table.trim_end()), "{table}: {messages}");
}

#[test]
fn record_lines_are_in_order() {
    let bench = Bench::new();
    let records = bench.path("photos.tfrecord");
    std::fs::copy(repository().join("tests/tfrecord/photos.tfrecord"), &records).unwrap();
    let local = bench.predict(&records, "efficientnet-lite0");
    let outputs = bench.path("outputs");
    let predictions: Vec<String> = local.iter().map(prediction).collect();
    let project = bench.text("p.spotcheck");
    let source = records.to_str().unwrap();
    let fetch = |content: &str, code: i32, prints: &[&str], more: &[&str]| {
        write(&outputs, "photos.tfrecord.out", content.as_bytes());
        let more = [&["--out", "-"], more].concat();
        check(Bench::fetch(outputs.to_str().unwrap(), source, &more), code, prints)
    };
    for separator in ["\n", "", "\r\n\r\n"] {
        let output = fetch(&predictions.join(separator), 0, &[], &[]);
        assert_eq!(json_lines(&output.stdout), local);
    }
    let fewer = fetch(&predictions[1..].join("\n"), 3, &["5 responses"], &[]);
    let fewer = json_lines(&fewer.stdout);
    assert_eq!(fewer.len(), 6);
    assert!(fewer.iter().all(|line| numbers(line).starts_with(&[5, 6])));
    let mut one_broken = predictions.clone();
    one_broken[2].truncate(20);
    let broken = fetch(&one_broken.join("\n"), 3, &[], &["--project", &project]);
    let broken = json_lines(&broken.stdout);
    let states: Vec<&Value> = broken.iter().map(|line| &line["status"]).collect();
    assert_eq!(states, ["ok", "ok", "failed", "ok", "ok", "ok"]);
    let error = broken[2]["error"].as_str().unwrap();
    assert!(error.contains("truncated"), "{error}");
    // Outputs written after the first fetch are read the next time.
    let more = ["--project", project.as_str(), "--resume"];
    let again = fetch(&predictions.join("\n"), 0, &[], &more);
    assert_eq!(json_lines(&again.stdout), local);
}

/// A record of a TFRecord file, framed like `tf.io.TFRecordWriter` does.
fn record(data: &[u8]) -> Vec<u8> {
    let masked = |bytes: &[u8]| {
        let crc = crc32c::crc32c(bytes);
        crc.rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
    };
    let length = (data.len() as u64).to_le_bytes();
    [&length[..], &masked(&length), data, &masked(data)].concat()
}

/// The complete records of a file.
fn records(file: &[u8]) -> Vec<Vec<u8>> {
    let mut rest = file;
    let mut records = Vec::new();
    while !rest.is_empty() {
        let length = u64::from_le_bytes(rest[..8].try_into().unwrap()) as usize;
        let (record, behind) = rest.split_at(length + 16);
        records.push(record.to_vec());
        rest = behind;
    }
    records
}

#[test]
fn records_without_an_image_keep_their_position() {
    let bench = Bench::new();
    let whole = repository().join("tests/tfrecord/photos.tfrecord");
    let photos = records(&std::fs::read(whole).unwrap());
    let file = bench.path("some.tfrecord");
    let source = file.to_str().unwrap();
    let outputs = bench.path("outputs");
    let refused = json!({"status": "failed", "error": "no image"}).to_string();
    // The position of the record without an image among three.
    for empty in 0..3 {
        let mut content = vec![photos[0].clone(), photos[1].clone()];
        content.insert(empty, record(b""));
        std::fs::write(&file, content.concat()).unwrap();
        let mut predict = spotcheck(&["predict", source, "--model", "efficientnet-lite0"]);
        predict.args(["--out", "-", "--device", "cpu"]);
        let local = json_lines(&check(predict, 3, &["1 could not"]).stdout);
        assert_eq!(local.len(), 2);
        let mut predictions: Vec<String> = local.iter().map(prediction).collect();
        predictions.insert(empty, refused.clone());
        let fetch = |predictions: &[String], code: i32, prints: &[&str]| {
            write(&outputs, "some.tfrecord.out", predictions.join("\n").as_bytes());
            let outputs = outputs.to_str().unwrap();
            check(Bench::fetch(outputs, source, &["--out", "-"]), code, prints)
        };
        let right = fetch(&predictions, 0, &[]);
        assert_eq!(json_lines(&right.stdout), local);
        let mut more = predictions.clone();
        more.extend([predictions[0].clone(), predictions[1].clone()]);
        for wrong in [&more[..], &predictions[..2]] {
            let output = fetch(wrong, 3, &[]);
            let counts = [wrong.len() as u64, 3];
            let found = json_lines(&output.stdout);
            assert_eq!(found.len(), 2);
            assert!(found.iter().all(|line| numbers(line).starts_with(&counts)));
        }
    }
    // If it ends too early, predictions cannot be matched with records.
    let mut cut = photos[..2].concat();
    cut.extend(&photos[2][..40]);
    std::fs::write(&file, cut).unwrap();
    write(&outputs, "some.tfrecord.out", b"{}\n{}\n{}");
    let local_outputs = outputs.to_str().unwrap();
    let mapping = bench.text("m.toml");
    write(bench.folder.path(), "m.toml", b"id = \"m\"\nname = \"M\"\n[prediction.classification]\nscores = \"/s\"\n");
    check(Bench::fetch(local_outputs, source, &["--mapping", &mapping]), 3, &["after 2 records"]);
}

/// An output of a list, with each line joined with its image reference.
fn joined_list(local: &[Value], input: impl Fn(&str) -> Value) -> String {
    let mut list = String::new();
    for line in local.iter().rev() {
        let prediction: Value = serde_json::from_str(&prediction(line)).unwrap();
        let source = input(line["uri"].as_str().unwrap());
        let joined = json!({"source-ref": source, "b64": "aGVsbG8=", "SageMakerOutput": prediction});
        writeln!(list, "{joined}").unwrap();
    }
    list
}

#[test]
fn joined_predictions_find_their_image() {
    let bench = Bench::new();
    let photos = bench.path("photos");
    let local = bench.predict(&photos, "efficientnet-lite0");
    let folder = format!("{}/", photos.display());
    let outputs = bench.path("outputs");
    let fetch = |list: &str, code: i32, prints: &[&str], more: &[&str]| {
        write(&outputs, "list.jsonl.out", list.as_bytes());
        let more = [&["--out", "-"], more].concat();
        check(Bench::fetch(outputs.to_str().unwrap(), photos.to_str().unwrap(), &more), code, prints)
    };
    let by_name = joined_list(&local, |uri| {
        let name = uri.strip_prefix(&folder).unwrap();
        let input = if name == "coffee.png" { uri } else { name };
        input.into()
    });
    let in_s3 = joined_list(&local, |uri| {
        let name = uri.strip_prefix(&folder).unwrap();
        format!("s3://bucket/in/photos/{name}").into()
    });
    let without = "have no output and no prediction";
    for list in [&by_name, &in_s3] {
        let output = fetch(list, 0, &["0 of 4 images"], &[]);
        assert_eq!(json_lines(&output.stdout), local);
        assert!(!stderr(&output).contains(without));
    }
    let foreign = format!("{by_name}{{\"source-ref\": \"../../etc/passwd\", \"SageMakerOutput\": {{}}}}\n");
    let output = fetch(&foreign, 3, &["response 5: image “../../etc/passwd”"], &[]);
    assert_eq!(json_lines(&output.stdout), local);
    assert!(!stderr(&output).contains(without));

    // One image is missing, even if the others are known from before.
    let project = bench.text("p.spotcheck");
    let fewer: String = in_s3.split_inclusive('\n').skip(1).collect();
    let missing = &format!("1 of 4 images {without}, such as");
    let of_last = local[3]["uri"].as_str().unwrap();
    fetch(&fewer, 3, &[missing, of_last], &["--project", &project]);
    let resume = ["--project", &project, "--resume"];
    fetch(&fewer, 3, &[missing, of_last], &resume);
    let again = ["1 remain", "3 of them", "saved 4 of 4"];
    let output = fetch(&in_s3, 0, &again, &resume);
    assert_eq!(json_lines(&output.stdout), local);
    let (outputs, photos) = (outputs.to_str().unwrap(), photos.to_str().unwrap());
    let output = check(Bench::fetch(outputs, photos, &resume), 0, &["0 remain"]);
    assert!(!stderr(&output).contains(without));
}

#[test]
fn line_predictions_match_their_images() {
    let bench = Bench::new();
    let photos = bench.path("photos");
    let local = bench.predict(&photos, "efficientnet-lite0");
    let turned: Vec<&Value> = local.iter().rev().collect();
    let predictions: Vec<String> = turned.iter().map(|line| prediction(line)).collect();
    let outputs = bench.path("outputs");
    let fetch = |predictions: &[String], code: i32, prints: &[&str]| {
        write(&outputs, "day/list.jsonl.out", predictions.join("\n").as_bytes());
        check(Bench::fetch(outputs.to_str().unwrap(), photos.to_str().unwrap(), &["--out", "-"]), code, prints)
    };
    fetch(&predictions, 3, &["responses names", "day/list.jsonl", "4 of 4 images"]);
    let of_bytes = |line: &Value| {
        let image = std::fs::read(line["uri"].as_str().unwrap()).unwrap();
        json!({ "b64": base64::prelude::BASE64_STANDARD.encode(image) })
    };
    let of_name = |line: &Value| {
        let name = Path::new(line["uri"].as_str().unwrap()).strip_prefix(&photos);
        let name = name.unwrap().display().to_string();
        json!({"b64": "aGVsbG8=", "key": format!("in/{name}")})
    };
    for input in [&of_bytes as &dyn Fn(&Value) -> Value, &of_name] {
        let list: Vec<String> = turned.iter().map(|line| input(line).to_string()).collect();
        write(&photos, "day/list.jsonl", list.join("\n").as_bytes());
        let output = fetch(&predictions, 0, &[]);
        assert_eq!(json_lines(&output.stdout), local);
        let mut broken = predictions.clone();
        broken[1].truncate(20);
        let found = json_lines(&fetch(&broken, 3, &[]).stdout);
        let failed: Vec<&Value> = found.iter().filter(|line| line["status"] == "failed").collect();
        assert_eq!(failed, [&found[2]]);
        let error = found[2]["error"].as_str().unwrap();
        assert!(error.contains("truncated"), "{error}");
        assert_eq!(found[0], local[0]);
        let counts = ["3 responses"];
        assert!(fetch(&predictions[1..], 3, &counts).stdout.is_empty());
    }
}

#[test]
fn joined_csv_is_read_if_separable() {
    let bench = Bench::new();
    let photos = bench.path("photos");
    let local = bench.predict(&photos, "efficientnet-lite0");
    let outputs = bench.path("outputs");
    let fetch = |list: &str, code: i32, prints: &[&str]| {
        write(&outputs, "list.csv.out", list.as_bytes());
        check(Bench::fetch(outputs.to_str().unwrap(), photos.to_str().unwrap(), &["--out", "-"]), code, prints)
    };
    let mut list = String::new();
    for line in &local {
        let name = Path::new(line["uri"].as_str().unwrap()).strip_prefix(&photos);
        let name = name.unwrap().display();
        writeln!(list, "s3://bucket/photos/{name},7,{}", prediction(line)).unwrap();
    }
    assert_eq!(json_lines(&fetch(&list, 0, &[]).stdout), local);
    let scores = "a b+.jpg,0.25,0.75\ncoffee.png,0.5,0.5\n";
    let output = fetch(scores, 3, &["List of scores", "2 of 4 images"]);
    let found = json_lines(&output.stdout);
    assert_eq!(found[0]["classes"][0]["index"], 1);
    assert_eq!(found[0]["classes"][0]["score"], 0.75);
    let strange = "a b+.jpg,640,480,3\n";
    fetch(strange, 1, &["format is unknown", "640,480,3"]);
}

#[test]
fn s3_outputs_are_joined_by_key_and_resumed() {
    let bench = Bench::new();
    let photos = bench.path("photos");
    let local = bench.predict(&photos, "efficientnet-lite0");
    let bucket = Seaweed::shared().bucket("outputs");
    bucket.put_folder("in/photos/", &photos);
    let outputs = bench.write_outputs(&local);
    let put = |name: &str| {
        let content = std::fs::read(outputs.join(name)).unwrap();
        bucket.put(&format!("out/job/photos/{name}"), &content);
    };
    put("a b+.jpg.out");
    put("sub/고양이.png.out");
    put("coffee.png.out");
    let project = bench.text("remote.spotcheck");
    let fetch = |more: &[&str]| {
        let mut command = Bench::fetch(&bucket.uri("out/job/"), &bucket.uri("in/photos/"), more);
        use_profile(&mut command, READER.profile, &Seaweed::shared().endpoint());
        command
    };
    let output = check(fetch(&["--project", &project, "--out", "-"]), 3, &["1 of 4 images"]);
    let first = json_lines(&output.stdout);
    assert_eq!(first.len(), 3);
    assert!(first.iter().all(|line| line["status"] == "ok"));
    put("sub/china.jpg.out");
    let output = check(fetch(&["--project", &project, "--resume", "--out", "-"]), 0, &[]);
    let root = format!("{}/", photos.display());
    let prefix = bucket.uri("in/photos/");
    let mut expected: Vec<Value> = local
        .into_iter()
        .map(|mut line| {
            line["uri"] = line["uri"].as_str().unwrap().replacen(&root, &prefix, 1).into();
            line
        })
        .collect();
    let mut found = json_lines(&output.stdout);
    for list in [&mut expected, &mut found] {
        list.sort_by_key(|line| line["uri"].as_str().unwrap().to_owned());
    }
    assert_eq!(found, expected);
    let mut blind = Bench::fetch(&bucket.uri("out/none/"), &bucket.uri("in/photos/"), &[]);
    use_profile(&mut blind, ADMIN.profile, &Seaweed::shared().endpoint());
    check(blind, 1, &["in .out"]);
}

#[test]
fn outputs_missed_in_an_outage_are_read_on_resume() {
    const IMAGES: usize = 60;
    let bench = Bench::new();
    let bucket = Seaweed::shared().bucket("outage-outputs");
    bucket.fill(IMAGES, |number| format!("in/{number:02}.png"), b"not looked at");
    let prediction = json!({
        "status": "ok", "width": 8, "height": 8, "model": "toy", "task": "classification",
        "classes": [{"index": 1, "label": "cat", "score": 0.75}],
    });
    bucket.fill(IMAGES, |number| format!("out/{number:02}.png.out"), prediction.to_string().as_bytes());
    let proxy = FaultProxy::before(Seaweed::shared().address());
    let reads_output = |request: &Request| request.reads() && request.key().starts_with("out/");
    proxy.inject(reads_output, Often::After(25), Fault::Outage);
    let project = bench.text("outage.spotcheck");
    let fetch = |more: &[&str]| {
        let saved = ["--project", &project, "--out", "-"];
        let mut command = Bench::fetch(&bucket.uri("out/"), &bucket.uri("in/"), &saved);
        use_profile(command.args(more), READER.profile, &proxy.endpoint());
        command
    };
    let stopped = check(fetch(&[]), 1, &["--resume", &proxy.endpoint()]);
    let before = json_lines(&stopped.stdout);
    assert!(before.len() < IMAGES, "{}", before.len());
    assert!(before.iter().all(|line| line["status"] == "ok"));
    proxy.restart();
    let resumed = check(fetch(&["--resume"]), 0, &[]);
    let all = json_lines(&resumed.stdout);
    assert_eq!(all.len(), IMAGES);
    assert!(all.iter().all(|line| line["status"] == "ok"));
}

#[test]
fn failed_job_outputs_equal_local_predictions() {
    let bench = Bench::new();
    let photos = bench.path("photos");
    write(&photos, "sub/broken.jpg", b"no image");
    let bucket = Seaweed::shared().bucket("job");
    bucket.put_folder("photos/", &photos);
    let plane = ControlPlane::start(bucket.server());
    let home = tempfile::tempdir().unwrap();
    let (input, output) = (bucket.uri("photos/"), bucket.uri("out/"));
    let project = bench.text("p.spotcheck");
    let transform = |args: &[&str]| {
        let mut command = spotcheck_at(home.path(), &["transform"]);
        command.args(args);
        plane.sign_in(&mut command, ADMIN);
        command
    };
    let mut predict = spotcheck(&["predict", &input, "--model", "ssd-mobilenet-coco"]);
    predict.args(["--project", &project, "--device", "cpu"]);
    plane.sign_in(&mut predict, ADMIN);
    check(predict, 3, &["saved 5 of 5"]);

    let of_model = ["--model", "ssd-mobilenet-coco", "--role", ROLE, "--image", IMAGE];
    let start = ["start", &input, "--output", &output, "--job-name", "photos-1"];
    check(transform(&[&start[..], &of_model].concat()), 0, &[]);
    let (status, _) = plane.wait_until_over("photos-1");
    assert_eq!(status, "Failed");

    check(
        transform(&["fetch", "photos-1", &input, "--project", &project]),
        3,
        &["job photos-1 failed", "Batch Transform job photos-1", "1 of 5 images", "sub/broken.jpg", "4 responses give"],
    );
    let report = bench.text("comparison.json");
    let mut compare = spotcheck(&["transform", "compare", &project, "--out", &report]);
    plane.sign_in(&mut compare, ADMIN);
    let messages = stderr(&check(compare, 0, &["100.0% agree", "4 of 4 images"]));
    assert!(messages.contains("Batch Transform job photos-1"), "{messages}");
    let report: Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    let largest = report["summary"]["largest_score_difference"].as_f64().unwrap();
    assert!(largest < 1e-4, "{largest}");
}

#[test]
fn job_over_lines_equals_local_predictions() {
    let bench = Bench::new();
    let photos = bench.path("photos");
    let local = bench.predict(&photos, "efficientnet-lite0");
    let mut list = String::new();
    for line in local.iter().rev() {
        let image = std::fs::read(line["uri"].as_str().unwrap()).unwrap();
        let image = base64::prelude::BASE64_STANDARD.encode(image);
        writeln!(list, "{}", json!({ "b64": image })).unwrap();
    }
    write(&bench.path("lists"), "all.jsonl", list.as_bytes());
    let bucket = Seaweed::shared().bucket("lines");
    bucket.put_folder("lists/", &bench.path("lists"));
    let plane = ControlPlane::start(bucket.server());
    let home = tempfile::tempdir().unwrap();
    let transform = |args: &[&str]| {
        let mut command = spotcheck_at(home.path(), &["transform"]);
        command.args(args);
        plane.sign_in(&mut command, ADMIN);
        command
    };
    let (input, output) = (bucket.uri("lists/"), bucket.uri("out/"));
    let start = ["start", &input, "--output", &output, "--job-name", "lines-1"];
    let of_model = ["--model", "efficientnet-lite0", "--role", ROLE, "--image", IMAGE];
    let kind = ["--input-kind", "lines"];
    check(transform(&[&start[..], &kind, &of_model].concat()), 0, &[]);
    let (status, _) = plane.wait_until_over("lines-1");
    assert_eq!(status, "Completed");
    let fetched = check(transform(&["fetch", "lines-1", photos.to_str().unwrap(), "--out", "-"]), 0, &[]);
    let found = json_lines(&fetched.stdout);
    assert_eq!(found.len(), local.len());
    for (found, local) in found.iter().zip(&local) {
        assert_eq!(found["uri"], local["uri"]);
        assert_eq!(found["classes"][0]["label"], local["classes"][0]["label"]);
    }

    // Images that exist only in the lines are read from there, locally and in S3.
    let list = bench.text("lists/all.jsonl");
    for place in [bucket.uri("lists/all.jsonl"), list] {
        let fetched = check(transform(&["fetch", "lines-1", &place, "--out", "-"]), 0, &[]);
        let found = json_lines(&fetched.stdout);
        assert_eq!(found.len(), local.len());
        for (number, (found, local)) in found.iter().zip(local.iter().rev()).enumerate() {
            assert_eq!(found["uri"], format!("{place}/#{number}"));
            assert_eq!(found["classes"][0]["label"], local["classes"][0]["label"]);
            assert_eq!(found["width"], local["width"]);
        }
    }
}

#[test]
fn document_opens_as_a_list_of_images() {
    let bench = Bench::new();
    let local = bench.predict(&bench.path("photos"), "efficientnet-lite0");
    let without_uri = |line: &Value| serde_json::from_str::<Value>(&prediction(line)).unwrap();
    let predictions: Vec<Value> = local.iter().rev().map(without_uri).collect();
    let instance = |line: &Value| {
        let image = std::fs::read(line["uri"].as_str().unwrap()).unwrap();
        json!({ "b64": base64::prelude::BASE64_STANDARD.encode(image) })
    };
    let mut instances: Vec<Value> = local.iter().rev().map(instance).collect();
    let write_document = |instances: &[Value]| {
        let document = serde_json::to_string_pretty(&json!({ "instances": instances })).unwrap();
        write(&bench.path("lists"), "one.json", document.as_bytes());
    };
    write_document(&instances);
    let bucket = Seaweed::shared().bucket("documents");
    bucket.put_folder("lists/", &bench.path("lists"));

    let file = bench.path("lists/one.json");
    let predict = |code: i32, prints: &[&str]| {
        let args = ["--model", "efficientnet-lite0", "--device", "cpu", "--out", "-"];
        let mut command = spotcheck(&["predict", file.to_str().unwrap()]);
        command.args(args);
        json_lines(&check(command, code, prints).stdout)
    };
    let of_file = predict(0, &[]);
    assert_eq!(of_file.iter().map(without_uri).collect::<Vec<_>>(), predictions);

    let outputs = bench.text("outputs");
    let fetch = |place: &str, predictions: &[Value], code: i32, prints: &[&str]| {
        let document = json!({ "predictions": predictions }).to_string();
        write(&bench.path("outputs"), "one.json.out", document.as_bytes());
        let mut command = Bench::fetch(&outputs, place, &["--out", "-"]);
        use_profile(&mut command, ADMIN.profile, &Seaweed::shared().endpoint());
        json_lines(&check(command, code, prints).stdout)
    };
    for place in [file.to_str().unwrap(), &bucket.uri("lists/one.json")] {
        let found = fetch(place, &predictions, 0, &["4 of 4 images have one"]);
        assert_eq!(found.iter().map(without_uri).collect::<Vec<_>>(), predictions);
        let uris = (0..4).map(|number| format!("{place}/#{number}"));
        assert!(uris.eq(found.iter().map(|line| line["uri"].as_str().unwrap())), "{found:?}");
        let found = fetch(place, &predictions[1..], 3, &["4 of 4 images"]);
        assert!(found.iter().all(|line| line["status"] == "failed" && numbers(line)[..2] == [3, 4]), "{found:?}");
    }

    instances[1] = json!({"b64": "?"});
    write_document(&instances);
    let found = predict(3, &["1 of 4 images", "not valid base64"]);
    assert_eq!(without_uri(&found[2]), predictions[2]);

    write(&bench.path("lists"), "one.json", br#"{"images": [], "annotations": []}"#);
    predict(1, &["no list of images", "instances"]);
}
