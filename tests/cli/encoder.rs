//! Models that only compute embeddings, as called by users: recognized, added, used instead of the user's own model, and
//! refused where there are no predictions.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use spotcheck::dirs::{AppDirs, HOME_VARIABLE};
use spotcheck::model::runtime;

use crate::support::ended::Ended;
use crate::support::{repository, runtime_home, spotcheck};

const CLIP: &str = "tests/cases/conventions/clip-image-encoder/model.onnx";
const DINO: &str = "tests/cases/conventions/dinov2/model.onnx";
const SAMPLES: &str = "assets/samples";

/// The program with a separate home folder and the shared runtime.
fn with_home(home: &Path, args: &[&str]) -> Ended {
    let library = runtime::locate(&AppDirs::below(runtime_home()), None).unwrap();
    Ended::run(spotcheck(args).env(HOME_VARIABLE, home).env("ORT_DYLIB_PATH", library.path))
}

fn inspect(model: &str, more: &[&str]) -> Ended {
    let shown = Ended::run(&mut spotcheck(&[&["models", "inspect", model][..], more].concat()));
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    shown
}

#[test]
fn encoder_is_proposed_with_the_reason() {
    let shown = inspect(DINO, &[]);
    for fact in [
        "task = embedding",
        "looks like an embedding: its name",
        "\nembedding: pooler_output, 24 numbers per image\nmetric: cosine",
    ] {
        assert!(shown.stdout.contains(fact), "{fact}: {}", shown.stdout);
    }
    assert!(shown.stdout.contains("unused outputs: last_hidden_state"), "{}", shown.stdout);
    let tokens = ["--set", "output.embedding.name=last_hidden_state"];
    let shown = inspect(DINO, &tokens);
    // 16 × 16 patches and one more.
    assert!(shown.stdout.contains("\nembedding: last_hidden_state, class token, 24 numbers"), "{}", shown.stdout);
    let shown = inspect(DINO, &[&tokens[..], &["--set", "output.embedding.tokens=mean"]].concat());
    assert!(shown.stdout.contains("\nembedding: last_hidden_state, mean of tokens, 24 numbers"), "{}", shown.stdout);

    // What looks like a regression can be said to be an embedding, and the other way round.
    let forced = inspect("tests/cases/conventions/refused-landmarks/model.onnx", &["--set", "task=embedding"]);
    assert!(forced.stdout.contains("\nembedding: output, 136 numbers"), "{}", forced.stdout);
    let scores = "tests/cases/conventions/encoder-384-numbers/model.onnx";
    let classes = inspect(scores, &["--set", "output.classification.values=logits"]);
    assert!(classes.stdout.contains("task = \"classification\""), "{}", classes.stdout);
    let classes = inspect(scores, &["--set", "task=classification"]);
    assert!(classes.stdout.contains("task = \"classification\""), "{}", classes.stdout);
    let boxes = inspect("tests/cases/conventions/tokens-like-boxes/model.onnx", &["--set", "task=detection"]);
    assert!(boxes.stdout.contains("task = \"detection\""), "{}", boxes.stdout);
}

#[test]
fn fields_that_contradict_an_encoder_are_refused() {
    let scores = "tests/cases/conventions/encoder-384-numbers/model.onnx";
    for (model, set, advice) in [
        (DINO, "output.embedding.name=nothing", "pooler_output"),
        (DINO, "output.embedding.tokens=class", "output.embedding.name"),
        (CLIP, "task=detection", "output.classification.values"),
        (scores, "labels=imagenet", "output.classification.values"),
    ] {
        let refused = Ended::run(&mut spotcheck(&["models", "inspect", model, "--set", set]));
        assert_eq!(refused.code, Some(1), "{set}: {}", refused.stdout);
        assert!(refused.stderr.contains(advice), "{set}: {}", refused.stderr);
    }
}

/// A project with a run of a classifier and a newer one of an encoder, below `home`.
fn project_with_both(home: &Path) -> String {
    let project = home.join("p.spotcheck").to_str().unwrap().to_owned();
    let added = with_home(home, &["models", "add", CLIP, "--set", "id=clip"]);
    assert_eq!(added.code, Some(0), "{}", added.stderr);
    let card = std::fs::read_to_string(AppDirs::below(home).data.join("models/clip/model.toml")).unwrap();
    assert!(card.contains("task = \"embedding\"") && card.contains("0.48145"), "{card}");
    for model in ["efficientnet-lite0", "clip"] {
        let predicted = with_home(home, &["predict", SAMPLES, "--model", model, "--project", &project]);
        assert_eq!(predicted.code, Some(0), "{}", predicted.stderr);
        assert_eq!(predicted.stderr.contains("no predictions, only embeddings"), model == "clip");
    }
    project
}

#[test]
fn encoder_is_used_by_everything_about_similarity() {
    let home = tempfile::tempdir().unwrap();
    let project = project_with_both(home.path());
    let query = format!("{SAMPLES}/chelsea.png");
    let at = ["--project", &project];
    let alike = with_home(home.path(), &[&["alike", SAMPLES, "--query", &query, "--count", "3"][..], &at].concat());
    assert_eq!(alike.code, Some(0), "{}", alike.stderr);
    let lines: Vec<Value> = alike.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    for line in &lines {
        assert_eq!((&line["encoder"], &line["layer"]), (&"clip".into(), &"image_embeds".into()), "{line}");
        assert!(line["metric"].as_str().unwrap().contains("cosine"), "{line}");
    }
    // A query that is not in the project.
    let copy = home.path().join("copy.png");
    std::fs::copy(repository().join(&query), &copy).unwrap();
    let query = copy.to_str().unwrap();
    let alike = with_home(home.path(), &[&["alike", SAMPLES, "--query", query, "--count", "1"][..], &at].concat());
    let line: Value = serde_json::from_str(&alike.stdout).unwrap();
    assert!(line["uri"].as_str().unwrap().ends_with("chelsea.png") && line["similarity"].as_f64() > Some(0.999));

    // A network of random weights finds some of the samples alike.
    let duplicates = ["duplicates", SAMPLES, "--near", "off", "--model", "clip", "--above", "0.9"];
    let groups = with_home(home.path(), &[&duplicates[..], &at].concat());
    assert_eq!(groups.code, Some(3), "{}", groups.stderr);
    let group: Value = serde_json::from_str(groups.stdout.lines().next().unwrap()).unwrap();
    assert_eq!((&group["encoder"], &group["layer"]), (&"clip".into(), &"image_embeds".into()), "{group}");
    assert!(group["threshold"].as_f64() > Some(0.89), "{group}");

    let array = home.path().join("clip.npy");
    let out = ["export", &project, "--format", "embeddings", "--out", array.to_str().unwrap()];
    let exported = with_home(home.path(), &out);
    assert_eq!(exported.code, Some(0), "{}", exported.stderr);
    let table = std::fs::read_to_string(array.with_extension("csv")).unwrap();
    assert!(table.lines().nth(1).unwrap().contains(",clip,image_embeds,"), "{table}");
    let resumed = [&["predict", SAMPLES, "--model", "clip", "--resume"][..], &at].concat();
    assert_eq!(with_home(home.path(), &resumed).code, Some(0));
}

#[test]
fn what_needs_predictions_refuses_encoders() {
    let home = tempfile::tempdir().unwrap();
    let project = project_with_both(home.path());
    let (project, out) = (project.as_str(), home.path().join("out"));
    let out_in = |name: &str| out.with_file_name(name).to_str().unwrap().to_owned();
    let (csv, jsonl, tar) = (out_in("o.csv"), out_in("o.jsonl"), out_in("model.tar.gz"));
    let runs = with_home(home.path(), &["project", "info", project]).stdout;
    let run = runs.lines().find(|line| line.contains("embedded")).unwrap().split([' ', ':']).nth(1).unwrap().to_owned();
    let other = runs.lines().find(|line| line.contains("predicted")).unwrap().split([' ', ':']).nth(1).unwrap();
    for args in [
        &["evaluate", "--project", project, "--run", &run, "--truth-names", "{class}.png"][..],
        &["compare", project, "--runs", other, &run],
        &["export", project, "--run", &run, "--format", "csv", "--out", &csv],
        &["review", "report", project, "--run", &run],
        &["review", "sample", project, "--run", &run, "--count", "2", "--out", &csv],
        &["transform", "package", "--model", "clip", "--out", &tar],
        &["models", "inspect", CLIP, "--try-presets", SAMPLES],
    ] {
        let refused = with_home(home.path(), args);
        assert_eq!(refused.code, Some(1), "{args:?}: {}", refused.stdout);
        assert!(refused.stderr.contains("is an encoder"), "{args:?}: {}", refused.stderr);
        assert!(!Path::new(&csv).exists() && !Path::new(&tar).exists(), "{args:?}");
    }
    let refused = with_home(home.path(), &["compare", project, "--runs", other, &run]);
    assert!(refused.stderr.contains("predict with another model"), "{}", refused.stderr);
    for (more, advice) in [
        (&[][..], "--project"),
        (&["--project", project, "--new-run", "--out", &jsonl], "--format embeddings"),
        (&["--project", project, "--new-run", "--no-embeddings"], "--no-embeddings"),
        (&["--project", project, "--new-run", "--min-score", "0.3"], "--min-score"),
        (&["--project", project, "--new-run", "--top-k", "2"], "--top-k"),
        (&["--project", project, "--new-run", "--nms-iou", "off"], "--nms-iou"),
        (&["--project", project], "8 embeddings"),
    ] {
        let refused = with_home(home.path(), &[&["predict", SAMPLES, "--model", "clip"][..], more].concat());
        assert_eq!(refused.code, Some(1), "{more:?}: {}", refused.stdout);
        assert!(refused.stderr.contains(advice), "{more:?}: {}", refused.stderr);
    }
    // Without a choice, the newest run with predictions is used.
    let exported = with_home(home.path(), &["export", project, "--format", "csv", "--out", &csv]);
    assert_eq!(exported.code, Some(0), "{}", exported.stderr);
    assert!(std::fs::read_to_string(&csv).unwrap().contains("cat"), "{}", exported.stderr);
}

#[test]
fn refused_run_leaves_no_project() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    std::fs::create_dir(at("full")).unwrap();
    std::fs::write(at("full/file.txt"), "mine").unwrap();
    let (project, annotate, out) = (at("p.spotcheck"), at("full"), at("out.jsonl"));
    for more in [
        ["--model", CLIP, "--out", &out],
        ["--model", "nothing-of-this-name", "--out", &out],
        ["--model", "efficientnet-lite0", "--annotate", &annotate],
    ] {
        let refused = with_home(home.path(), &[&["predict", SAMPLES, "--project", &project][..], &more].concat());
        assert_eq!((refused.code, Path::new(&project).exists()), (Some(1), false), "{more:?}: {}", refused.stderr);
    }
    // One that exists stays.
    assert_eq!(with_home(home.path(), &["predict", SAMPLES, "--project", &project, "--model", CLIP]).code, Some(0));
    let again = with_home(home.path(), &["predict", SAMPLES, "--project", &project, "--model", CLIP]);
    assert_eq!((again.code, Path::new(&project).exists()), (Some(1), true), "{}", again.stderr);
}

#[test]
fn embeddings_deleted_during_a_run_are_an_error() {
    let home = tempfile::tempdir().unwrap();
    let photos = home.path().join("photos");
    std::fs::create_dir(&photos).unwrap();
    for at in 0..200 {
        std::fs::copy(repository().join(SAMPLES).join("chelsea.png"), photos.join(format!("{at}.png"))).unwrap();
    }
    let project = home.path().join("p.spotcheck").to_str().unwrap().to_owned();
    let library = runtime::locate(&AppDirs::below(runtime_home()), None).unwrap();
    let mut predict = spotcheck(&["predict", photos.to_str().unwrap(), "--model", CLIP, "--project", &project]);
    predict.env(HOME_VARIABLE, home.path()).env("ORT_DYLIB_PATH", library.path);
    let mut running = predict.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let embeddings = format!("{project}-embeddings");
    while std::fs::remove_file(&embeddings).is_err() {
        assert!(running.try_wait().unwrap().is_none(), "it ended without embeddings");
        std::thread::sleep(Duration::from_millis(1));
    }
    let ended = Ended::new(&running.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains(&embeddings), "{}", ended.stderr);
}

#[test]
fn only_encoders_leave_nothing_to_compare_or_judge() {
    let home = tempfile::tempdir().unwrap();
    let project = home.path().join("p.spotcheck").to_str().unwrap().to_owned();
    let predict = ["predict", SAMPLES, "--model", CLIP, "--project", &project];
    assert_eq!(with_home(home.path(), &predict).code, Some(0));
    let resumed = with_home(home.path(), &[&predict[..], &["--resume"]].concat());
    assert!(resumed.stderr.contains("8 of 8 images embedded"), "{}", resumed.stderr);
    std::fs::remove_file(format!("{project}-embeddings")).unwrap();
    let resumed = with_home(home.path(), &[&predict[..], &["--resume"]].concat());
    assert!(resumed.stderr.contains("0 of 8 images embedded, 8 remain"), "{}", resumed.stderr);
    assert!(resumed.stderr.contains("saved 8 of 8 embeddings"), "{}", resumed.stderr);
    let compared = with_home(home.path(), &["compare", &project]);
    assert!(compared.stderr.contains("spotcheck predict"), "{}", compared.stderr);
    let out = home.path().join("second.spotcheck");
    let copied = with_home(home.path(), &["review", "second-pass", &project, "--out", out.to_str().unwrap()]);
    assert_eq!((copied.code, out.exists()), (Some(1), false), "{}", copied.stderr);
    assert!(copied.stderr.contains("is an encoder"), "{}", copied.stderr);
}

#[test]
fn boxes_are_those_of_the_newest_detector() {
    let home = tempfile::tempdir().unwrap();
    let (project, array) = (home.path().join("p.spotcheck"), home.path().join("boxes.npy"));
    let (project, array) = (project.to_str().unwrap(), array.to_str().unwrap());
    let query = format!("{SAMPLES}/chelsea.png");
    let alike = ["alike", SAMPLES, "--project", project, "--query", &query, "--box", "0"];
    let export = ["export", project, "--format", "embeddings", "--of", "boxes", "--out", array];
    let predict = |model: &str| {
        let predicted = with_home(home.path(), &["predict", SAMPLES, "--model", model, "--project", project]);
        assert_eq!(predicted.code, Some(0), "{}", predicted.stderr);
    };
    predict(CLIP);
    for args in [&alike[..], &export] {
        let refused = with_home(home.path(), args);
        assert_eq!(refused.code, Some(1), "{args:?}: {}", refused.stdout);
        assert!(refused.stderr.contains("detector"), "{args:?}: {}", refused.stderr);
    }
    predict("ssd-mobilenet-coco");
    predict("efficientnet-lite0");
    for args in [&alike[..], &export] {
        let done = with_home(home.path(), args);
        assert_eq!(done.code, Some(0), "{args:?}: {}", done.stderr);
        assert!(done.stderr.contains("SSD"), "{args:?}: {}", done.stderr);
    }
}

#[test]
fn query_of_a_removed_model_names_the_model() {
    let home = tempfile::tempdir().unwrap();
    let project = project_with_both(home.path());
    assert_eq!(
        with_home(
            home.path(),
            &["predict", SAMPLES, "--model", "efficientnet-lite0", "--project", &project, "--new-run"]
        )
        .code,
        Some(0)
    );
    let copy = home.path().join("copy.png");
    std::fs::copy(repository().join(SAMPLES).join("chelsea.png"), &copy).unwrap();
    let alike = ["alike", SAMPLES, "--project", &project, "--model", "clip", "--query", copy.to_str().unwrap()];
    let nearest = |found: Ended| {
        let line: Value = serde_json::from_str(found.stdout.lines().next().unwrap_or(&found.stderr)).unwrap();
        assert_eq!(line["encoder"], "clip", "{line}");
        line["uri"].as_str().unwrap().to_owned()
    };
    let first = nearest(with_home(home.path(), &alike));
    assert!(first.ends_with("chelsea.png"), "{first}");
    assert_eq!(with_home(home.path(), &["models", "remove", "clip"]).code, Some(0));
    let refused = with_home(home.path(), &alike);
    assert_eq!(refused.code, Some(1), "{}", refused.stdout);
    assert!(refused.stderr.contains("clip") && refused.stderr.contains("models add"), "{}", refused.stderr);
    assert!(!refused.stderr.contains("efficientnet"), "{}", refused.stderr);
    assert_eq!(with_home(home.path(), &["models", "add", CLIP, "--set", "id=clip"]).code, Some(0));
    assert_eq!(nearest(with_home(home.path(), &alike)), first);

    // Embeddings in a file have no model.
    let array = home.path().join("clip.npy");
    let array = array.to_str().unwrap();
    let exported =
        with_home(home.path(), &["export", &project, "--run", "2", "--format", "embeddings", "--out", array]);
    assert_eq!(exported.code, Some(0), "{}", exported.stderr);
    let refused = ["alike", SAMPLES, "--embeddings", array, "--query", copy.to_str().unwrap()];
    let refused = with_home(home.path(), &refused);
    assert_eq!(refused.code, Some(1), "{}", refused.stdout);
    assert!(refused.stderr.contains("--project"), "{}", refused.stderr);
}
