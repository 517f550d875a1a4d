//! `spotcheck models inspect` and `models add` as called by users, and `predict` with an unknown file.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use spotcheck::dirs::{AppDirs, HOME_VARIABLE};
use spotcheck::image::decode::{DecodeLimits, decode};
use spotcheck::model::runtime;

use crate::support::ended::Ended;

const CIFAR: &str = "tests/cases/conventions/keras-cifar10/model.onnx";
const TENSORFLOW: &str = "tests/cases/conventions/tensorflow-resnet50/model.onnx";
const IMAGE: &str = "assets/samples/chelsea.png";

fn run(mut command: Command) -> Ended {
    Ended::run(&mut command)
}

/// The program with a separate home folder and the shared runtime.
fn with_home(home: &Path, args: &[&str]) -> Ended {
    let library = runtime::locate(&AppDirs::below(crate::support::runtime_home()), None).unwrap();
    let mut command = crate::support::spotcheck(args);
    command.env(HOME_VARIABLE, home).env("ORT_DYLIB_PATH", library.path);
    run(command)
}

#[test]
fn inspect_reports_graph_findings_and_card() {
    let shown = run(crate::support::spotcheck(&["models", "inspect", CIFAR, "--set", "input.channels=bgr"]));
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    let sections = [
        "input     input_1 float32 [n, 32, 32, 3]",
        "opset     17",
        "producer  spotcheck-tests",
        "set by you\n  input.channels = bgr",
        "recognized\n  task = classification\n",
        "assumed: ",
        "input.divide_by = 1.0\n  input.mean = [0.0, 0.0, 0.0]",
        "[input]\nname = \"input_1\"\nlayout = \"nhwc\"\ntype = \"float32\"\nchannels = \"bgr\"",
    ];
    let mut from = 0;
    for section in sections {
        let Some(place) = shown.stdout[from..].find(section) else {
            panic!("{section} is missing or misplaced:\n{}", shown.stdout)
        };
        from += place;
    }
}

#[test]
fn preview_is_in_the_channel_order_of_the_card() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("preview.png");
    let preview = target.to_str().unwrap();
    let common = ["models", "inspect", CIFAR, "--image", IMAGE, "--preview"];
    let shown = run(crate::support::spotcheck(&[&common[..], &[preview]].concat()));
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    let bytes = std::fs::read(&target).unwrap();
    let image = decode(&bytes, &DecodeLimits::default()).unwrap().image;
    assert_eq!((image.width(), image.height()), (32, 32));
    let reds = || image.rgb().iter().step_by(3).copied();
    let red_line = format!(
        "channel 0: {:.4} to {:.4}, mean {:.4}",
        f64::from(reds().min().unwrap()),
        f64::from(reds().max().unwrap()),
        reds().map(f64::from).sum::<f64>() / 1024.0
    );
    assert!(shown.stdout.contains(&red_line), "{red_line}: {}", shown.stdout);
    assert!(shown.stdout.contains("[1, 32, 32, 3]"), "{}", shown.stdout);

    let over_itself = run(crate::support::spotcheck(&[&common[..], &[IMAGE]].concat()));
    assert_eq!(over_itself.code, Some(1));
    assert!(over_itself.stderr.contains("the image itself"), "{}", over_itself.stderr);
    let twice = run(crate::support::spotcheck(&[&common[..], &[preview]].concat()));
    assert_eq!(twice.code, Some(1));
    assert!(twice.stderr.contains("not replaced"), "{}", twice.stderr);
}

#[test]
fn unusable_model_shows_its_graph_and_a_reason() {
    let weights = "tests/cases/conventions/refused-raw-yolo/model.onnx";
    let shown = run(crate::support::spotcheck(&["models", "inspect", weights]));
    assert_eq!(shown.code, Some(1));
    assert!(shown.stdout.contains("output0 float32 [1, 90, 100]"), "{}", shown.stdout);
    assert!(shown.stderr.contains("export the model"), "{}", shown.stderr);
    assert_eq!(shown.stderr.lines().count(), 1, "no log lines: {}", shown.stderr);
}

#[test]
fn missing_and_foreign_files_are_named() {
    for (file, reason) in [("missing.onnx", "model missing.onnx"), ("Cargo.toml", "an ONNX model")] {
        let refused = run(crate::support::spotcheck(&["models", "inspect", file]));
        assert_eq!(refused.code, Some(1), "{file}");
        assert!(refused.stderr.contains(reason), "{file}: {}", refused.stderr);
    }
}

#[test]
fn known_model_is_shown_with_its_card() {
    let shown = run(crate::support::spotcheck(&["models", "inspect", "ssd-mobilenet-coco"]));
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert!(shown.stdout.contains("output    labels int64 [num]"), "{}", shown.stdout);
    assert!(shown.stdout.contains("nms_iou_in_graph = 0.6"), "{}", shown.stdout);
    let corrected = run(crate::support::spotcheck(&["models", "inspect", "ssd-mobilenet-coco", "--set", "name=x"]));
    assert_eq!(corrected.code, Some(1));
}

#[test]
fn added_model_is_listed_used_and_removed() {
    let home = tempfile::tempdir().unwrap();
    let labels = home.path().join("names.txt");
    let names: Vec<String> = (0..10).map(|class| format!("thing {class}")).collect();
    std::fs::write(&labels, names.join("\n")).unwrap();
    let add = ["models", "add", CIFAR, "--labels", labels.to_str().unwrap(), "--set"];
    let added = with_home(home.path(), &[&add[..], &["id=my-cifar"]].concat());
    assert_eq!(added.code, Some(0), "{}", added.stderr);
    assert!(added.stdout.contains("added my-cifar"), "{}", added.stdout);
    assert!(added.stderr.contains("assumed: "), "{}", added.stderr);

    let again = with_home(home.path(), &[&add[..], &["id=other"]].concat());
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.contains("as my-cifar"), "{}", again.stderr);

    let predicted = with_home(home.path(), &["predict", IMAGE, "--model", "my-cifar", "--out", "-"]);
    assert_eq!(predicted.code, Some(0), "{}", predicted.stderr);
    let line: Value = serde_json::from_str(&predicted.stdout).unwrap();
    assert_eq!(line["model"], "my-cifar");
    assert!(line["classes"][0]["label"].as_str().unwrap().starts_with("thing "), "{line}");
    assert!(predicted.stderr.contains("; input.channels = rgb"), "{}", predicted.stderr);

    let listed = with_home(home.path(), &["models", "list"]);
    assert!(listed.stdout.contains("my-cifar"), "{}", listed.stdout);
    assert_eq!(with_home(home.path(), &["models", "remove", "my-cifar"]).code, Some(0));
    assert!(crate::support::repository().join(CIFAR).exists(), "the user's own file stays");
}

#[test]
fn model_that_does_not_fit_is_not_added() {
    let home = tempfile::tempdir().unwrap();
    let labels = home.path().join("names.txt");
    std::fs::write(&labels, "only\ntwo").unwrap();
    let labels = labels.to_str().unwrap();
    for (args, reason) in [
        (["--labels", labels], "1001 classes"),
        (["--set", "input.color=rgb"], "color"),
        (["--set", "input.std=[0, 1, 1]"], "input.std"),
        (["--set", "id=resnet50-v2"], "--set id=NAME"),
        (["--set", r#"input.resize={"stretch": {"width": 0, "height": 9}}"#], "1 to 16384"),
    ] {
        let refused = with_home(home.path(), &[&["models", "add", TENSORFLOW][..], &args].concat());
        assert_eq!(refused.code, Some(1), "{args:?}: {}", refused.stdout);
        assert!(refused.stderr.contains(reason), "{args:?}: {}", refused.stderr);
    }
    let kept = std::fs::read_dir(home.path().join("data/models"));
    assert_eq!(kept.map_or(0, Iterator::count), 0, "no model folder");
}

#[test]
fn folder_and_empty_file_are_not_inspected() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.onnx");
    std::fs::write(&empty, "").unwrap();
    for (path, reason) in [(empty.as_path(), "is empty"), (folder.path(), "is a directory")] {
        for command in [&["models", "inspect"][..], &["predict", IMAGE, "--out", "-", "--model"]] {
            let refused = run({
                let mut refused = crate::support::spotcheck(command);
                refused.arg(path);
                refused
            });
            assert_eq!(refused.code, Some(1), "{}", refused.stdout);
            assert!(refused.stderr.contains(reason), "{}", refused.stderr);
        }
    }
}

#[test]
fn bare_file_reports_findings_and_assumptions() {
    let predicted = run(crate::support::spotcheck(&["predict", IMAGE, "--model", TENSORFLOW, "--out", "-"]));
    assert_eq!(predicted.code, Some(0), "{}", predicted.stderr);
    for part in [
        "\nrecognized: ",
        "; output.classification.background = first",
        "\nassumed: ",
        "; input.mean = [123.68, 116.78, 103.94]",
        "labels = imagenet",
    ] {
        assert!(format!("\n{}", predicted.stderr).contains(part), "{}", predicted.stderr);
    }
    let line: Value = serde_json::from_str(&predicted.stdout).unwrap();
    assert!(!line["classes"][0]["label"].as_str().unwrap().starts_with("class "), "{line}");
}

#[test]
fn bare_file_is_predicted_with_labels() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("my model.onnx");
    std::fs::copy("tests/cases/conventions/sigmoids/model.onnx", &model).unwrap();
    let labels = folder.path().join("labels.txt");
    std::fs::write(&labels, "ant\nbee\ncat\ndog\n").unwrap();
    let predict = |model: &str| {
        let mut predict = crate::support::spotcheck(&["predict", IMAGE, "--model", model, "--out", "-", "--labels"]);
        predict.arg(&labels);
        run(predict)
    };
    let predicted = predict(model.to_str().unwrap());
    assert_eq!(predicted.code, Some(0), "{}", predicted.stderr);
    assert!(predicted.stderr.contains(&format!("add '{}' --set", model.display())), "{}", predicted.stderr);
    let line: Value = serde_json::from_str(&predicted.stdout).unwrap();
    assert!(["ant", "bee", "cat", "dog"].contains(&line["classes"][0]["label"].as_str().unwrap()), "{line}");
    let known = predict("efficientnet-lite0");
    assert_eq!(known.code, Some(1));
    assert!(known.stderr.contains("--labels is for"), "{}", known.stderr);
}

#[test]
fn presets_are_tried_and_selected_by_name() {
    let home = tempfile::tempdir().unwrap();
    let model = "tests/cases/conventions/caffe2-resnet50/model.onnx";
    let tried =
        with_home(home.path(), &["models", "inspect", model, "--try-presets", "assets/samples", "--limit", "2"]);
    assert_eq!(tried.code, Some(0), "{}", tried.stderr);
    assert!(tried.stdout.contains("\n* torchvision "), "{}", tried.stdout);
    for name in ["  keras-caffe ", "  transformers ", "--preset NAME"] {
        assert!(tried.stdout.contains(name), "{name}: {}", tried.stdout);
    }
    let taken = with_home(home.path(), &["models", "inspect", model, "--preset", "keras-caffe"]);
    assert!(taken.stdout.contains("channels = \"bgr\""), "{}{}", taken.stdout, taken.stderr);
    assert!(taken.stdout.contains("interpolation = \"pillow-nearest\""), "{}", taken.stdout);
    let unknown = with_home(home.path(), &["models", "inspect", model, "--preset", "kersa"]);
    assert!(unknown.stderr.contains("No preset kersa"), "{}", unknown.stderr);
}

#[test]
fn wordnet_folders_give_the_accuracy() {
    let expected = std::fs::read_to_string("tests/cases/presets/expected.json").unwrap();
    let expected: Value = serde_json::from_str(&expected).unwrap();
    let text = |field: &str| expected["imagenet"][field].as_str().unwrap();
    let images = tempfile::tempdir().unwrap();
    let folder = images.path().join(text("folder"));
    std::fs::create_dir(&folder).unwrap();
    std::fs::copy(IMAGE, folder.join("chelsea.png")).unwrap();
    let model = format!("tests/cases/conventions/{}/model.onnx", text("model"));
    let tried = ["models", "inspect", &model, "--try-presets", images.path().to_str().unwrap()];
    let tried = run(crate::support::spotcheck(&tried));
    let row = tried.stdout.lines().find(|line| line.starts_with("* torchvision ")).unwrap_or_default();
    assert!(row.contains("100.0%"), "{}{}", tried.stdout, tried.stderr);
    // One image cannot decide this.
    assert!(tried.stdout.contains("crops (torchvision)"), "{}", tried.stdout);
}

#[test]
fn detector_without_detections_is_reported() {
    let predict = |case: &str| {
        let model = format!("tests/cases/detectors/{case}/model.onnx");
        run(crate::support::spotcheck(&["predict", "assets/samples", "--model", &model]))
    };
    let blind = predict("finds-nothing");
    let (note, advice) = ("score ≥ 0.25", "finds-nothing/model.onnx --try-presets assets/samples");
    for part in [note, "first 8 images", advice] {
        assert_eq!(blind.stderr.matches(part).count(), 1, "{part}: {}", blind.stderr);
    }
    assert!(!predict("yolov8").stderr.contains(note));
}

#[test]
fn output_alternatives_are_listed_and_selected() {
    let inspect = |more: &[&str]| {
        let model = "tests/cases/detectors/yolov8-rows/model.onnx";
        run(crate::support::spotcheck(&[&["models", "inspect", model][..], more].concat()))
    };
    let first = inspect(&[]);
    let listed = "--set reading=NUMBER\n* 1 ";
    assert!(first.stdout.contains(listed), "{}", first.stdout);
    assert!(!first.stdout.contains("objectness ="), "{}", first.stdout);
    let second = inspect(&["--set", "reading=2"]);
    assert!(second.stdout.contains("\n* 2 "), "{}", second.stdout);
    assert!(second.stdout.contains("objectness = "), "{}", second.stdout);
    let third = inspect(&["--set", "reading=3"]);
    assert!(third.stderr.contains("reading 3 does"), "{}", third.stderr);
}

#[test]
fn bare_file_is_predicted_with_a_preset() {
    let expected = std::fs::read_to_string("tests/cases/presets/expected.json").unwrap();
    let expected: Value = serde_json::from_str(&expected).unwrap();
    for (preset, best) in expected["best_of_chelsea"].as_object().unwrap() {
        let args = ["predict", IMAGE, "--model", CIFAR, "--preset", preset, "--out", "-"];
        let predicted = run(crate::support::spotcheck(&args));
        assert_eq!(predicted.code, Some(0), "{}", predicted.stderr);
        let line: Value = serde_json::from_str(&predicted.stdout).unwrap();
        let class = &line["classes"][0];
        assert_eq!(class["index"], best["index"], "{preset}: {line}");
        let score = class["score"].as_f64().unwrap() - best["score"].as_f64().unwrap();
        assert!(score.abs() < 1e-4, "{preset}: {line}");
    }
    for (model, preset, reason) in
        [(CIFAR, "kersa", "No preset kersa"), ("efficientnet-lite0", "keras-tf", "--preset is for")]
    {
        let refused = run(crate::support::spotcheck(&["predict", IMAGE, "--model", model, "--preset", preset]));
        assert_eq!(refused.code, Some(1), "{}", refused.stdout);
        assert!(refused.stderr.contains(reason), "{}", refused.stderr);
    }
}

#[test]
fn labels_are_read_from_training_files() {
    let home = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..10).map(|class| format!("thing {class}")).collect();
    let id2label: Vec<String> = (0..10).map(|class| format!("\"{class}\": \"thing {class}\"")).collect();
    for (file, text) in [
        ("data.yaml", format!("nc: 10\nnames: [{}]\n", names.join(", "))),
        ("config.json", format!("{{\"id2label\": {{{}}}}}", id2label.join(", "))),
    ] {
        let home = tempfile::tempdir().unwrap();
        let labels = home.path().join(file);
        std::fs::write(&labels, text).unwrap();
        let added = with_home(home.path(), &["models", "add", CIFAR, "--labels", labels.to_str().unwrap()]);
        assert_eq!(added.code, Some(0), "{}", added.stderr);
        let predicted = with_home(home.path(), &["predict", IMAGE, "--model", "model", "--out", "-"]);
        let line: Value = serde_json::from_str(&predicted.stdout).unwrap();
        assert_eq!(line["classes"][0]["label"], "thing 3", "{line}");
    }
    let added = with_home(home.path(), &["models", "add", CIFAR, "--labels", "cifar-10", "--set", "id=named"]);
    assert_eq!(added.code, Some(0), "{}", added.stderr);
    let predicted = with_home(home.path(), &["predict", IMAGE, "--model", "named", "--out", "-"]);
    let line: Value = serde_json::from_str(&predicted.stdout).unwrap();
    assert_eq!(line["classes"][0]["label"], "cat", "{line}");
    let empty = home.path().join("other.yaml");
    std::fs::write(&empty, "nc: 10\n").unwrap();
    let refused = with_home(home.path(), &["models", "add", CIFAR, "--labels", empty.to_str().unwrap()]);
    assert!(refused.stderr.contains("no `names` list"), "{}", refused.stderr);
}

#[test]
fn setting_that_contradicts_the_model_is_refused() {
    let model = "tests/cases/conventions/timm-config/model.onnx";
    for (setting, part) in [
        ("output.classification.values=probabilities", "choose logits"),
        ("output.classification.background=first", "has 4 classes"),
        ("labels=coco-80", "has 5 classes"),
        ("reading=7", "only one reading"),
    ] {
        let shown = run(crate::support::spotcheck(&["models", "inspect", model, "--set", setting]));
        assert_eq!(shown.code, Some(1), "{setting}: {}", shown.stdout);
        assert!(shown.stderr.contains(part), "{setting}: {}", shown.stderr);
        let home = tempfile::tempdir().unwrap();
        let added = with_home(home.path(), &["models", "add", model, "--set", setting]);
        assert_eq!(added.code, Some(1), "{setting}: {}", added.stdout);
    }
    let shown = run(crate::support::spotcheck(&["models", "inspect", model, "--set", "input.channels=bgr"]));
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
}

#[test]
fn copy_of_a_known_model_has_its_card() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.onnx");
    std::fs::copy("models/efficientnet-lite0/model.onnx", &copy).unwrap();
    let shown = run(crate::support::spotcheck(&["models", "inspect", copy.to_str().unwrap()]));
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert!(shown.stdout.contains("of efficientnet-lite0"), "{}", shown.stdout);
    assert!(!shown.stdout.contains("assumed"), "{}", shown.stdout);
}
