//! `spotcheck predict` as a process: its files, output and exit codes.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::support::{lines, repository, spotcheck, stderr};

fn predict(source: &Path, model: &str, more: &[&str]) -> Command {
    let mut command = spotcheck(&["predict"]);
    command.arg(source).args(["--model", model]).args(more);
    command
}

fn run(mut command: Command) -> Output {
    command.output().unwrap()
}

fn samples() -> std::path::PathBuf {
    repository().join("assets/samples")
}

/// Width and height of a good image, or a word of the reason why it is invalid.
type Expected = Result<(u32, u32), &'static str>;

/// A folder with good images and every kind of bad one, with the expected reports.
fn mixed_folder() -> (tempfile::TempDir, Vec<(&'static str, Expected)>) {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    let rocket = std::fs::read(samples().join("rocket.jpg")).unwrap();
    write("empty.jpg", b"");
    write("good.jpg", &rocket);
    write("header.jpg", &rocket[..20]);
    write("mislabeled.png", &rocket);
    write("text.jpg", b"Dear diary, this is not an image");
    write("truncated.jpg", &rocket[..rocket.len() / 2]);
    image::RgbImage::new(40_000, 10).save(folder.path().join("very wide.png")).unwrap();
    image::RgbImage::new(1, 1).save(folder.path().join("픽셀.png")).unwrap();
    let expected = vec![
        ("empty.jpg", Err("empty")),
        ("good.jpg", Ok((640, 427))),
        ("header.jpg", Err("")),
        ("mislabeled.png", Ok((640, 427))),
        ("text.jpg", Err("is not an image")),
        ("truncated.jpg", Err("truncated")),
        ("very wide.png", Ok((40_000, 10))),
        ("픽셀.png", Ok((1, 1))),
    ];
    (folder, expected)
}

#[test]
fn bad_images_are_reported_and_the_rest_predicted() {
    for model in ["efficientnet-lite0", "ssd-mobilenet-coco"] {
        let (folder, expected) = mixed_folder();
        let output = run(predict(folder.path(), model, &["--out", "-"]));
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        let lines = lines(&output);
        assert_eq!(lines.len(), expected.len());
        for (line, (name, expected)) in lines.iter().zip(expected) {
            assert_eq!(line["uri"], folder.path().join(name).to_str().unwrap());
            match expected {
                Ok((width, height)) => {
                    assert_eq!(line["status"], "ok", "{line}");
                    assert_eq!((&line["width"], &line["height"]), (&width.into(), &height.into()), "{line}");
                }
                Err(reason) => {
                    assert_eq!(line["status"], "failed", "{line}");
                    assert!(line["error"].as_str().unwrap().contains(reason), "{line}");
                    assert!(stderr(&output).contains(name), "{name}");
                }
            }
        }
    }
}

#[test]
fn damage_that_pillow_decodes_gives_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let cases = repository().join("tests/cases/decode");
    for (case, name) in [("jpeg-hole-in-the-data", "damaged.jpg"), ("jpeg-lost-place", "suspect.jpg")] {
        std::fs::copy(cases.join(case).join("image.jpg"), folder.path().join(name)).unwrap();
    }
    std::fs::copy(samples().join("rocket.jpg"), folder.path().join("whole.jpg")).unwrap();
    for model in ["efficientnet-lite0", "ssd-mobilenet-coco"] {
        let output = run(predict(folder.path(), model, &["--out", "-"]));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let [damaged, suspect, whole] = lines(&output).try_into().unwrap();
        assert_eq!(whole["status"], "ok");
        for (line, start) in [(&damaged, "is damaged"), (&suspect, "may be damaged")] {
            assert_eq!(line["status"], "ok");
            let warnings = line["warnings"].as_array().unwrap();
            assert_eq!(warnings.len(), 1, "{line}");
            assert!(warnings[0].as_str().unwrap().starts_with(start), "{line}");
        }
        assert_eq!(whole.get("warnings"), None, "{whole}");
        assert!(stderr(&output).contains("damaged images: 2."));
    }
}

#[test]
fn two_runs_write_identical_bytes() {
    let folder = tempfile::tempdir().unwrap();
    for model in ["efficientnet-lite0", "ssd-mobilenet-coco"] {
        let written = ["1.jsonl", "2.jsonl"].map(|name| {
            let path = folder.path().join(name);
            let output = run(predict(&samples(), model, &["--out", path.to_str().unwrap()]));
            assert!(output.status.success(), "{}", stderr(&output));
            assert!(output.stdout.is_empty());
            std::fs::read_to_string(path).unwrap()
        });
        assert_eq!(written[0], written[1]);
        // Others may read it like any other new file.
        let plain = folder.path().join("plain");
        std::fs::write(&plain, "").unwrap();
        let permissions = |path| std::fs::metadata(path).unwrap().permissions();
        let ours = folder.path().join("1.jsonl");
        assert_eq!(permissions(ours), permissions(plain));
        let keys = r#""status":"ok","width":512,"height":512,"model":""#;
        assert!(written[0].lines().next().unwrap().contains(keys), "{}", written[0]);
    }
}

#[test]
fn default_output_is_a_table() {
    let output = run(predict(&samples(), "ssd-mobilenet-coco", &[]));
    let table = String::from_utf8(output.stdout.clone()).unwrap();
    for (photo, thing) in
        [("chelsea.png", "cat"), ("coffee.png", "cup"), ("grace_hopper.jpg", "person"), ("grace_hopper.jpg", "tie")]
    {
        let row = table.lines().find(|row| row.starts_with(photo)).unwrap();
        assert!(row.contains(thing), "{row}");
    }
    assert!(stderr(&output).contains("ssd-mobilenet-coco on CPU"), "{}", stderr(&output));
}

#[test]
fn paths_are_read_from_stdin_in_order() {
    let mut command = predict(Path::new("-"), "efficientnet-lite0", &["--out", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let paths = "assets/samples/rocket.jpg\n/no/such.jpg\nassets/samples/chelsea.png\n";
    child.stdin.take().unwrap().write_all(paths.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let uris: Vec<String> = lines(&output).iter().map(|line| line["uri"].as_str().unwrap().to_owned()).collect();
    assert!(uris.len() == 2 && uris[0].ends_with("rocket.jpg") && uris[1].ends_with("chelsea.png"), "{uris:?}");
    assert!(stderr(&output).contains("/no/such.jpg"), "{}", stderr(&output));
}

#[test]
fn s3_addresses_on_stdin_are_refused() {
    let mut command = predict(Path::new("-"), "efficientnet-lite0", &["--out", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let paths = "assets/samples/rocket.jpg\ns3://bucket/photos/a.jpg\n";
    child.stdin.take().unwrap().write_all(paths.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let messages = stderr(&output);
    assert!(messages.contains("S3") && messages.contains("s3://bucket/photos/a.jpg"), "{messages}");
}

#[test]
fn limit_top_k_and_min_score_reduce_the_output() {
    let output = run(predict(&samples(), "efficientnet-lite0", &["--out", "-", "--limit", "3", "--top-k", "2"]));
    let classified = lines(&output);
    assert_eq!(classified.len(), 3);
    assert!(classified.iter().all(|line| line["classes"].as_array().unwrap().len() == 2));

    let output = run(predict(&samples(), "ssd-mobilenet-coco", &["--out", "-", "--min-score", "0.9"]));
    let scores: Vec<f64> = lines(&output)
        .iter()
        .flat_map(|line| line["detections"].as_array().unwrap().clone())
        .map(|detection| detection["score"].as_f64().unwrap())
        .collect();
    assert!(!scores.is_empty() && scores.iter().all(|score| *score >= 0.9), "{scores:?}");
}

#[test]
fn batch_size_does_not_change_classes() {
    /// Summing in another order changes a score by at most this much.
    const TOLERANCE: f64 = 1e-5;
    let of_batch = |size: &str| {
        let output = run(predict(&samples(), "efficientnet-lite0", &["--out", "-", "--batch", size]));
        assert!(stderr(&output).contains(&format!("images per call: {size}")), "{}", stderr(&output));
        lines(&output)
    };
    for (single, batched) in of_batch("1").iter().zip(of_batch("3")) {
        assert_eq!(single["uri"], batched["uri"]);
        let classes = [single, &batched].map(|line| line["classes"].as_array().unwrap().clone());
        for (single, batched) in classes[0].iter().zip(&classes[1]) {
            let scores = [single, batched].map(|class| class["score"].as_f64().unwrap());
            assert!((scores[0] - scores[1]).abs() < TOLERANCE, "{single} {batched}");
        }
    }
    let output = run(predict(&samples(), "ssd-mobilenet-coco", &["--batch", "4"]));
    assert!(stderr(&output).contains("one image per"), "{}", stderr(&output));
}

#[cfg(unix)]
#[test]
fn listed_path_that_is_not_utf_8_is_reported() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().join(std::ffi::OsStr::from_bytes(b"caf\xe9.png"));
    let good = samples().join("chelsea.png");
    std::fs::copy(&good, &odd).unwrap();
    let mut list = good.into_os_string().into_encoded_bytes();
    list.extend([b"\r\n\n", odd.as_os_str().as_bytes(), b"\n"].concat());
    let mut command = predict(Path::new("-"), "efficientnet-lite0", &["--out", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(&list).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert_eq!(lines(&output).len(), 1);
    assert!(stderr(&output).contains("skipped "), "{}", stderr(&output));
}

#[test]
fn annotated_images_never_replace_originals() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("annotated");
    let arguments = ["--annotate", target.to_str().unwrap()];
    let output = run(predict(&samples(), "ssd-mobilenet-coco", &arguments));
    assert!(output.status.success(), "{}", stderr(&output));
    let original = image::open(samples().join("chelsea.png")).unwrap().into_rgb8();
    let annotated = image::open(target.join("chelsea.png")).unwrap().into_rgb8();
    assert_eq!(original.dimensions(), annotated.dimensions());
    assert_ne!(original, annotated);

    let own = tempfile::tempdir().unwrap();
    let before = std::fs::read(samples().join("chelsea.png")).unwrap();
    std::fs::write(own.path().join("chelsea.png"), &before).unwrap();
    let arguments = ["--annotate", own.path().to_str().unwrap()];
    let output = run(predict(own.path(), "ssd-mobilenet-coco", &arguments));
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("would be overwritten"), "{}", stderr(&output));
    // Writing to the same annotated folder again succeeds; a folder with the user's files is rejected, regardless of
    // the source.
    let again = run(predict(&samples(), "ssd-mobilenet-coco", &["--annotate", target.to_str().unwrap()]));
    assert!(again.status.success(), "{}", stderr(&again));
    let image = own.path().join("chelsea.png");
    let same_name = samples().join("chelsea.png");
    for source in [&image, &same_name] {
        let output = run(predict(source, "ssd-mobilenet-coco", &arguments));
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    }
    assert_eq!(std::fs::read(image).unwrap(), before);
}

#[test]
fn predict_errors_have_their_exit_codes() {
    let empty = tempfile::tempdir().unwrap();
    let arguments: [(&Path, &str, &[&str], i32, &str); 6] = [
        (Path::new("/no/such/folder"), "efficientnet-lite0", &[], 1, "does not exist"),
        (empty.path(), "efficientnet-lite0", &[], 1, "No images in"),
        (&samples(), "resnet51", &[], 1, "resnet51"),
        (&samples(), "efficientnet-lite0", &["--device", "abacus"], 2, "auto, cpu, cuda, webgpu, coreml"),
        (&samples(), "efficientnet-lite0", &["--min-score", "7"], 2, "from 0 to 1"),
        (&samples(), "efficientnet-lite0", &["--out", "/no/such/folder/o.jsonl"], 1, ": /no/such/folder"),
    ];
    for (source, model, more, code, reason) in arguments {
        let output = run(predict(source, model, more));
        assert_eq!(output.status.code(), Some(code), "{more:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(reason), "{more:?}: {}", stderr(&output));
    }
}

#[cfg(unix)]
#[test]
fn predict_reports_unused_options() {
    for (case, not_shown) in
        [("yolov8-seg", "masks are"), ("yolov8-pose", "key points are"), ("yolov8-obb", "rotated boxes are")]
    {
        let folder = repository().join("tests/cases/detectors");
        let model = folder.join(case).join("model.onnx");
        let output = run(predict(&folder.join("scene.png"), model.to_str().unwrap(), &[]));
        let stderr = stderr(&output);
        assert_eq!(stderr.matches(not_shown).count(), 1, "{case}: {stderr}");
    }
}

#[test]
fn pipe_is_written_to_and_never_replaced() {
    use std::os::unix::fs::FileTypeExt;

    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let other_end = pipe.clone();
    let reader = std::thread::spawn(move || std::fs::read_to_string(other_end).unwrap());
    let out = pipe.to_str().unwrap();
    let image = samples().join("rocket.jpg");
    let output = run(predict(&image, "efficientnet-lite0", &["--out", out]));
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(reader.join().unwrap().lines().count(), 1);
    assert!(pipe.metadata().unwrap().file_type().is_fifo());
}

#[cfg(unix)]
#[test]
fn signals_end_a_run_and_keep_predictions() {
    for signal in ["-INT", "-TERM"] {
        check_ends_at(signal);
    }
}

#[cfg(unix)]
fn check_ends_at(signal: &str) {
    use std::io::{BufRead, BufReader};
    use std::time::{Duration, Instant};

    let folder = tempfile::tempdir().unwrap();
    for number in 0..2000 {
        std::os::unix::fs::symlink(samples().join("rocket.jpg"), folder.path().join(format!("{number}.jpg"))).unwrap();
    }
    let mut command = predict(folder.path(), "ssd-mobilenet-coco", &[]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut rows = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(rows.next().unwrap().unwrap().starts_with("0.jpg"));
    let asked = Instant::now();
    Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    let rest = rows.count();
    let output = child.wait_with_output().unwrap();
    assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains(&format!(" {} of 2000", rest + 1)), "{}", stderr(&output));
}

#[cfg(unix)]
#[test]
fn control_characters_are_escaped_on_terminals_only() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["\u{1b}[31mred.jpg", "new\nline.jpg", "\u{9b}2Jbroken\r.jpg"];
    for name in &names[..2] {
        std::fs::copy(samples().join("rocket.jpg"), folder.path().join(name)).unwrap();
    }
    std::fs::write(folder.path().join(names[2]), "no image").unwrap();
    let output = run(predict(folder.path(), "efficientnet-lite0", &[]));
    assert_eq!(output.status.code(), Some(3));
    let table = String::from_utf8(output.stdout.clone()).unwrap();
    let messages = stderr(&output);
    assert_eq!(table.lines().count(), 3, "{table}");
    for shown in ["\\u{1b}[31mred.jpg", "new\\nline.jpg", "\\u{9b}2Jbroken\\r.jpg"] {
        assert!(table.contains(shown), "{table}");
    }
    assert!(messages.contains("/\\u{9b}2Jbroken\\r.jpg: "), "{messages}");
    let obeyed = |text: &str| text.contains(|letter: char| letter != '\n' && letter.is_control());
    assert!(!obeyed(&table) && !obeyed(&messages), "{table}{messages}");

    let output = run(predict(folder.path(), "efficientnet-lite0", &["--out", "-"]));
    let uris: Vec<String> = lines(&output).iter().map(|line| line["uri"].as_str().unwrap().to_owned()).collect();
    for name in names {
        let uri = folder.path().join(name).to_str().unwrap().to_owned();
        assert!(uris.contains(&uri), "{uris:?}");
    }
}

#[cfg(unix)]
#[test]
fn closed_pipe_ends_the_run_silently() {
    let error = "error: ";
    let failed = run(predict(Path::new("no/such/folder"), "efficientnet-lite0", &[]));
    assert!(stderr(&failed).starts_with(error), "{}", stderr(&failed));
    for more in [&[][..], &["--out", "-"]] {
        let mut command = predict(&samples(), "efficientnet-lite0", more);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(141), "{}", stderr(&output));
        assert!(!stderr(&output).contains(error), "{}", stderr(&output));
    }
}

#[test]
fn errors_name_cause_and_remedy() {
    let missing = "does not exist";
    let server = "http://127.0.0.1:9/v1/models/m";
    let cases: [(&[&str], i32, &[&str]); 9] = [
        (&["predict", "assets/samples", "--model", "nothere.onnx"], 1, &["nothere.onnx", missing]),
        (
            &["predict", "assets/samples", "--tensorflow-serving", server, "--mapping", "nothere"],
            1,
            &["nothere", missing],
        ),
        (&["project", "info", "nowhere.spotcheck"], 1, &["nowhere.spotcheck", missing]),
        (&["predict", "assets/samples", "--model", "efficientnet-lite0", "--limit", "0"], 2, &["not in 1"]),
        (
            &["predict", "assets/samples", "--endpoint", "e", "--profile", "admin"],
            1,
            &["--sagemaker-profile", "not for: assets/samples"],
        ),
        (&["transform", "fetch", "o-nothere", "assets/samples"], 1, &["“o-nothere”", "region"]),
        (&["predct"], 1, &["“predct”", "`predict`?"]),
        (&["bla"], 1, &["“bla”", "`spotcheck help`"]),
        (&["assets/samples"], 1, &["no display"]),
    ];
    for (args, code, words) in cases {
        let mut command = spotcheck(args);
        for variable in ["DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET", "AWS_REGION", "AWS_DEFAULT_REGION"] {
            command.env_remove(variable);
        }
        command.env("AWS_CONFIG_FILE", "/no/such/file");
        if args == ["assets/samples"] && !cfg!(target_os = "linux") {
            continue;
        }
        let output = run(command);
        let messages = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {messages}");
        for words in words {
            assert!(messages.contains(words), "{args:?}: {words}: {messages}");
        }
        assert!(!messages.contains(".cargo"), "{messages}");
    }
}

#[test]
fn home_folder_stays_empty() {
    let home = tempfile::tempdir().unwrap();
    let mut command = predict(&samples().join("rocket.jpg"), "efficientnet-lite0", &[]);
    command.env("HOME", home.path()).env_remove("XDG_CACHE_HOME").env_remove("ORT_DISABLE_TELEMETRY");
    assert!(run(command).status.success());
    let left: Vec<_> = std::fs::read_dir(home.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn png_with_a_wrong_checksum_fails() {
    let folder = tempfile::tempdir().unwrap();
    let mut png = std::fs::read(samples().join("chelsea.png")).unwrap();
    let data = png.windows(4).position(|name| name == b"IDAT").unwrap();
    let len = u32::from_be_bytes(png[data - 4..data].try_into().unwrap()) as usize;
    png[data + 4 + len] ^= 0xff;
    std::fs::write(folder.path().join("a.png"), png).unwrap();
    let output = run(predict(folder.path(), "efficientnet-lite0", &["--out", "-"]));
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let error = lines(&output)[0]["error"].as_str().unwrap().to_owned();
    assert!(error.contains("checksum"), "{error}");
}
