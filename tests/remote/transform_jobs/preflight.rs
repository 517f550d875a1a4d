//! Checks before a job, point by point.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;
use spotcheck::sagemaker::spec::transform::known_instance_types;

use super::{POINTS, Transform, UNKNOWN_SPEED, check, of_point, wait_for_next_second};
use crate::support::control_plane::{IMAGE, REGION, ROLE, archive};
use crate::support::ended::Ended;
use crate::support::fault_proxy::{Fault, FaultProxy, Often, Response};
use crate::support::python_packages;
use crate::support::seaweed::Seaweed;

#[test]
fn valid_plan_passes_preflight() {
    let transform = Transform::with_images("preflight", 3);
    let own = format!("123456789012.dkr.ecr.{REGION}.amazonaws.com/echo:1");
    let more = ["--hourly-price", "1", "--images-per-s", "0.5", "--image", &own];
    let well = transform.preflight("well", "photos/", &more);
    let well = well.must(0, &["2 ml.p3.2xlarge"]);
    for point in POINTS {
        assert_eq!(check(&well, point).0, "ok", "{point} in {well:#?}");
    }
    let (_, cost) = check(&well, "Cost");
    assert!(cost.contains("about 6 s") && cost.contains("about $0.002"), "{cost}");
    assert!(check(&well, "Objects").1.starts_with("3 objects, "));
    // Nothing was written anywhere.
    for operation in ["CreateModel", "CreateTransformJob"] {
        assert_eq!(transform.plane.count(operation), 0);
    }
    assert!(transform.records().is_empty());
}

#[test]
fn preflight_checks_inputs() {
    let transform = Transform::with_images("input-traps", 3);
    transform.must_find("photos", &[], "Prefix", "warning", "a slash");
    transform.bucket.put("photos-old/1.jpg", b"old");
    transform.must_find("photos", &[], "Prefix", "problem", "photos-old/");
    transform.must_find("nothing/", &[], "Input", "problem", "No input");
    transform.bucket.put("photos/.keep", b"");
    transform.bucket.put("photos/notes.txt", b"not an image");
    transform.bucket.put("photos/Thumbs.db", b"nor this");
    let objects = |messages| transform.must_find("photos/", &[], "Objects", "warning", messages);
    objects("content: photos/.keep");
    objects("1 hidden object");
    objects("photos/Thumbs.db");
    objects("3 images, 0 TFRecord");
    objects("1 text file");
    transform.bucket.put("photos/out/trap/a.jpg.out", b"old");
    let under = transform.bucket.uri("photos/out/");
    transform.must_find("photos/", &["--output", &under], "Output", "problem", "inside the input");
    transform.must_find("photos/", &["--output", &under], "Output", "problem", "is not empty");
}

#[test]
fn preflight_checks_requests() {
    let transform = Transform::with_images("request-traps", 1);
    let find = |more: &[&str], point, grade, messages| {
        transform.must_find("photos/", more, point, grade, messages);
    };
    find(&["--split-type", "line"], "Splitting", "problem", "images into pieces");
    find(&["--batch-strategy", "multi-record"], "Splitting", "warning", "SingleRecord");
    find(&["--compression", "gzip"], "Splitting", "problem", "CompressionType to None");
    find(&["--content-type", "text/csv"], "Content type", "warning", "application/x-image");
    find(&["--max-payload-mb", "50", "--max-concurrent", "3"], "Names and limits", "problem", "= 150 MB");
    find(&["--max-payload-mb", "0"], "Payload", "warning", "requests are chunked");
    find(&["--max-concurrent", "0"], "Concurrency", "warning", "one request at");
    transform.bucket.put("large/l.jpg", &vec![7; 6_000_001]);
    let large = |more: &[&str], grade, messages| transform.must_find("large/", more, "Payload", grade, messages);
    large(&[], "ok", "up to 7 MB");
    large(&["--max-payload-mb", "6"], "problem", "MaxPayloadInMB to 7");
    transform.bucket.put("records/a.tfrecord", b"record");
    transform.bucket.put("recordio/photos.rec", b"\x0a\x23\xd7\xce");
    transform.must_find("recordio/", &["--split-type", "recordio"], "Splitting", "warning", "does not read");
    let records = |more: &[&str], grade, messages| {
        transform.must_find("records/", more, "Splitting", grade, messages);
    };
    records(&["--input-kind", "tfrecord"], "ok", "SplitType TFRecord");
    let multi = ["--input-kind", "tfrecord", "--batch-strategy", "multi-record"];
    records(&multi, "warning", "BatchStrategy to SingleRecord");
    // The handler of this archive reads records with their framing.
    let ours = archive(&[("spotcheck-model.json", b"{}"), ("model.onnx", b"graph")]);
    transform.bucket.put("models/ours.tar.gz", &ours);
    let ours = transform.bucket.uri("models/ours.tar.gz");
    let multi = [&multi[..], &["--archive", &ours]].concat();
    records(&multi, "ok", "BatchStrategy MultiRecord");
    records(&[], "warning", "SplitType to TFRecord");
    records(&["--split-type", "line"], "problem", "split TFRecord files");
    records(&["--input-kind", "tfrecord", "--assemble-with", "none"], "warning", "per line");
}

#[test]
fn bucket_in_another_region_is_a_problem() {
    let transform = Transform::with_images("regions", 1);
    let proxy = FaultProxy::before(Seaweed::shared().address());
    let bucket = format!("/{}", transform.bucket.name);
    let lies_in = |region: &str| {
        proxy.heal();
        let path = bucket.clone();
        let head = Response {
            status: "200 OK".to_owned(),
            headers: vec![("x-amz-bucket-region".to_owned(), region.to_owned())],
            body: Vec::new(),
        };
        proxy.inject(
            move |request| {
                let asked = request.target.split('?').next().unwrap_or_default();
                request.method == "HEAD" && asked.trim_end_matches('/') == path
            },
            Often::Always,
            Fault::Response(head),
        );
        let args = transform.of_job("preflight", "regions", "photos/", &[]);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut command = transform.command(&args);
        command.env("AWS_ENDPOINT_URL_S3", proxy.endpoint());
        Ended::new(&command.output().unwrap())
    };
    let other =
        lies_in("eu-central-1").must(1, &["runs in us-east-1", "(model, input, outputs) is", "job in eu-central-1"]);
    assert_eq!(check(&other, "Region").0, "problem");
    let there = lies_in("us-east-1");
    let (grade, finding) = check(&there, "Region");
    assert_eq!(grade, "ok");
    assert!(finding.contains("us-east-1") && !finding.contains("eu-central-1"), "{finding}");
}

#[test]
fn preflight_checks_model_container_and_instance() {
    let transform = Transform::with_images("model-traps", 1);
    let find = |more: &[&str], point, grade, messages| {
        transform.must_find("photos/", more, point, grade, messages);
    };
    find(&["--instance-type", "m5.xlarge"], "Instance", "problem", "an instance type");
    find(&["--instance-type", "ml.m5.3xlarge"], "Instance", "warning", ": large, xlarge");
    find(&["--instance-type", "ml.m9.xlarge"], "Instance", "warning", "does not know");
    find(&["--instance-count", "2"], "Instance", "warning", "1 instance would");
    find(&["--tfs-batching", "small"], "Container", "warning", "SAGEMAKER_TFS_");
    find(&[], "Cost", "warning", "of ml.m5.xlarge is");
    find(&["--hourly-price", "1"], "Cost", "warning", UNKNOWN_SPEED);
    let other = IMAGE.replace("us-east-1", "eu-west-1");
    find(&["--image", &other], "Container", "problem", "is in eu-west-1");
    find(&["--image", "python:3"], "Container", "warning", "container in ECR");
    let gpu = ["--instance-type", "ml.g5.xlarge"];
    find(&gpu, "Container", "ok", "cuda");
    find(&[&gpu[..], &["--image", IMAGE]].concat(), "Container", "warning", "use the GPU");
    let cuda = IMAGE.replace("-cpu-", "-cuda-");
    find(&["--image", &cuda], "Container", "warning", "ml.m5.xlarge has none");
    find(&["--role", "me"], "Role", "problem", "arn:aws:iam::");
    find(&["--job-name", "a b"], "Names and limits", "problem", "“a b” is");
    let gone = transform.bucket.uri("models/gone.tar.gz");
    find(&["--archive", &gone], "Model", "problem", "not exist");
    let local = transform.home.path().join("no-gzip.tar.gz");
    std::fs::write(&local, "plain").unwrap();
    find(&["--archive", local.to_str().unwrap()], "Model", "problem", "a gzip file");
    transform.start("trap", "photos/", &[]).must(0, &[]);
    find(&[], "Job name", "problem", "Job trap already");
    let other = transform.bucket.uri("models/other.tar.gz");
    transform.bucket.put("models/other.tar.gz", b"\x1f\x8bother");
    find(&["--archive", &other], "Model", "problem", "model trap already");
    // The container of a model in SageMaker is known, too.
    let (input, output) = (transform.bucket.uri("photos/"), transform.bucket.uri("out/"));
    let of_model = ["preflight", &input, "--output", &output, "--model-name", "trap", "--tfs-batching", "small"];
    let found = transform.run(&of_model);
    assert!(of_point(&found, "Container").contains("SAGEMAKER_TFS_"), "{found:#?}");
}

#[test]
fn archive_gets_a_matching_container() {
    let transform = Transform::with_images("contents", 1);
    let saved_model = archive(&[("code/inference.py", b"pass"), ("1/saved_model.pb", b"graph")]);
    let onnx = archive(&[("spotcheck-model.json", b"{}"), ("model.onnx", b"graph")]);
    transform.bucket.put("models/saved.tar.gz", &saved_model);
    transform.bucket.put("models/onnx.tar.gz", &onnx);
    let local = transform.home.path().join("local.tar.gz");
    std::fs::write(&local, &saved_model).unwrap();
    let local = local.to_str().unwrap();
    let in_s3 = transform.bucket.uri("models/saved.tar.gz");
    let onnx = transform.bucket.uri("models/onnx.tar.gz");
    let find = |more: &[&str], point, grade, messages| {
        transform.must_find("photos/", more, point, grade, messages);
    };
    for archive in [local, &in_s3] {
        let serving = "/tensorflow-inference:2.19.0-cpu";
        find(&["--archive", archive], "Container", "ok", serving);
        find(&["--archive", archive], "Model", "ok", "a TensorFlow SavedModel");
        find(&["--archive", archive, "--image", IMAGE], "Container", "problem", "a TensorFlow SavedModel");
        let gpu = ["--archive", archive, "--instance-type", "ml.g5.xlarge"];
        find(&gpu, "Container", "ok", "/tensorflow-inference:2.19.0-gpu");
    }
    find(&["--archive", &onnx], "Container", "ok", "/ray:");
    let serving = IMAGE.split_once('/').unwrap().0.to_owned() + "/tensorflow-inference:2.19.0-cpu";
    find(&["--archive", &onnx, "--image", &serving], "Container", "problem", "an ONNX model");
    find(&[], "Model", "warning", "it is unknown");

    // A folder is packed first.
    let folder = transform.home.path().join("resnet/1");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("saved_model.pb"), "graph").unwrap();
    let (input, output) = (transform.bucket.uri("photos/"), transform.bucket.uri("out/"));
    let args = [
        "start",
        &input,
        "--output",
        &output,
        "--saved-model",
        folder.parent().unwrap().to_str().unwrap(),
        "--role",
        ROLE,
    ];
    transform.plane.pause_jobs();
    let printed = transform.run(&[&args[..], &["--print-aws"]].concat());
    let packing = "package --saved-model ";
    printed.must(0, &[packing, "/tensorflow-inference:2.19.0-cpu"]);
    let started = transform.run(&args).must(0, &[]);
    let job = started.stdout.trim_end();
    assert!(job.starts_with("resnet-2"), "{job}");
    let model = transform.asked("CreateModel");
    let image = model["PrimaryContainer"]["Image"].as_str().unwrap();
    assert!(image.ends_with("/tensorflow-inference:2.19.0-cpu"), "{image}");
    let key = format!("out/spotcheck-files/{job}/model.tar.gz");
    assert!(transform.bucket.get(&key).is_some());
}

#[test]
fn preflight_finds_conflicting_settings() {
    let transform = Transform::with_images("together", 2);
    let find = |more: &[&str], point, grade, messages| {
        transform.must_find("photos/", more, point, grade, messages);
    };
    find(&["--input-filter", "$.a"], "Content type", "problem", "InputFilter needs JSON");
    find(&["--accept", "text/csv"], "Content type", "warning", "responds with JSON");
    find(&["--assemble-with", "line"], "Splitting", "warning", "only one");
    let captured = transform.bucket.uri("photos/captured/");
    find(&["--data-capture", &captured], "Output", "problem", "inside the input");
    let joined = transform.preflight("trap", "photos/", &["--join-input"]);
    joined.must(1, &["JoinSource Input needs"]);

    // The given kind counts, not the most frequent one.
    transform.bucket.put("photos/a.tfrecord", b"record");
    let records = ["--input-kind", "tfrecord"];
    find(&records, "Splitting", "ok", "for TFRecord files");
    find(&records, "Objects", "warning", "the TFRecord files");
    find(&[], "Objects", "warning", "the images");
    let mixed = transform.preflight("trap", "photos/", &[]);
    let lines = mixed.stdout.lines();
    let of_objects = lines.filter(|line| line.get(9..26).is_some_and(|at| at.trim() == "Objects"));
    assert_eq!(of_objects.count(), 1, "{mixed:#?}");

    let one = "photos/day 0/000.jpg";
    transform.must_find(one, &[], "Prefix", "ok", "a single object");
    transform.bucket.put("photos/day 0/000.jpg.old", b"old");
    transform.must_find(one, &[], "Prefix", "problem", "list of one");
}

#[test]
fn estimate_uses_the_speed_of_an_earlier_job() {
    let transform = Transform::with_images("speed", 4);
    transform.plane.pause_jobs_after(2);
    transform.start("first", "photos/", &["--max-concurrent", "1"]).must(0, &[]);
    transform.plane.wait_until_paused();
    // A speed requires outputs with different times.
    wait_for_next_second();
    transform.plane.resume_jobs();
    transform.plane.wait_until_over("first");
    let preflight = |more: &[&str]| {
        let found = transform.preflight("second", "photos/", &[&["--hourly-price", "1"], more].concat());
        check(&found, "Cost")
    };
    assert!(preflight(&[]).1.contains(UNKNOWN_SPEED));
    let rate = transform.status("first", 0)["outputs_per_s"].as_f64().unwrap();
    let (grade, cost) = preflight(&[]);
    let expected = if rate < 1.0 { format!("{rate:.2}") } else { format!("{rate:.1}") };
    assert_eq!(grade, "ok", "{cost}");
    assert!(cost.contains(&format!("4 objects at {expected} ")) && cost.contains("job first"), "{cost}");
    let of_another_type = preflight(&["--instance-type", "ml.c5.xlarge"]);
    assert!(of_another_type.1.contains(UNKNOWN_SPEED));
}

#[test]
fn checks_are_listed_without_a_connection() {
    let transform = Transform::new("nothing-there");
    let output = transform.bucket.uri("out/");
    let input = transform.bucket.uri("nothing/");
    let args = ["preflight", &input, "--output", &output, "--model-name", "none"];
    let found = transform.run(&args);
    assert_eq!(found.code, Some(1), "{found:#?}");
    for point in POINTS {
        let (grade, text) = check(&found, point);
        assert!(!text.is_empty(), "{point}: {grade}");
    }
    for point in ["Role", "Container", "Payload", "Splitting", "Objects"] {
        let (grade, text) = check(&found, point);
        assert_eq!(grade, "warning", "{point}");
        assert!(text.starts_with("Not checked"), "{point}: {text}");
    }
}

#[test]
fn record_files_have_no_cost_estimate() {
    let transform = Transform::new("records-cost");
    transform.bucket.put("records/a.tfrecord", b"record");
    let more = ["--input-kind", "tfrecord", "--hourly-price", "3.6"];
    let more = [&more[..], &["--images-per-s", "0.1"]].concat();
    let found = transform.preflight("records", "records/", &more);
    let (grade, text) = check(&found, "Cost");
    assert_eq!(grade, "warning", "{found:#?}");
    assert!(text.contains("number of records"), "{text}");
    assert!(!text.contains(": about "), "{text}");
    transform.bucket.put("photos/a.jpg", b"image");
    let found = transform.preflight("photos", "photos/", &more[2..]);
    let (_, text) = check(&found, "Cost");
    assert!(text.contains(": about "), "{text}");
}

#[test]
fn price_and_source_are_remembered() {
    let transform = Transform::with_images("price", 1);
    let more = ["--hourly-price", "0.25", "--price-source", "an invoice", "--images-per-s", "1"];
    transform.preflight("price", "photos/", &more).must(0, &["prices.toml"]);
    let found = transform.preflight("price", "photos/", &["--images-per-s", "1"]);
    let (grade, text) = check(&found, "Cost");
    assert_eq!(grade, "ok");
    assert!(text.contains("$0.25 per instance-hour") && text.contains("an invoice"), "{text}");
    let table = transform.home.path().join("config/prices.toml");
    let kept = std::fs::read_to_string(&table).unwrap();
    std::fs::write(&table, kept.replace("0.25", "-1")).unwrap();
    let found = transform.preflight("price", "photos/", &[]).must(1, &["positive number", "prices.toml"]);
    assert!(found.stderr.contains("correct it"), "{found:#?}");
}

#[test]
fn recordio_is_a_warning_and_other_objects_a_problem() {
    let transform = Transform::with_images("recordio", 2);
    let split = ["--split-type", "recordio"];
    let finds = |input, grade, messages| transform.must_find(input, &split, "Splitting", grade, messages);
    finds("photos/", "problem", "images into pieces");
    transform.bucket.put("records/a.tfrecord", b"record");
    finds("records/", "problem", "TFRecord");
    transform.bucket.put("texts/a.jsonl", b"{}");
    finds("texts/", "problem", "a text file");
    transform.bucket.put("packed/train.rec", b"record");
    finds("packed/", "warning", "not read these");
    finds("packed/", "warning", "as TFRecord files");
}

#[test]
fn instance_types_match_the_service() {
    let output = Command::new("python3")
        .arg(crate::support::repository().join("tests/control_plane/limits.py"))
        .env("PYTHONPATH", python_packages("aws-models"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let described: Value = serde_json::from_slice(&output.stdout).unwrap();
    let described: BTreeSet<&str> =
        described["instance_types"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let known: Vec<String> = known_instance_types().collect();
    let known: BTreeSet<&str> = known.iter().map(String::as_str).collect();
    assert_eq!(known, described);
}
