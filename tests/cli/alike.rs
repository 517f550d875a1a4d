//! Embeddings as called by users: where they come from, and what they are.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::export::python;
use crate::support::ended::Ended;
use crate::support::{repository, spotcheck};

/// The folders of `tests/cases/embeddings` whose models have embeddings, with what `make.py` expects of each.
fn cases() -> Vec<(PathBuf, Value)> {
    let folder = repository().join("tests/cases/embeddings");
    let folders = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let mut cases: Vec<_> = folders
        .map(|folder| {
            let expected = std::fs::read(folder.join("expected.json")).unwrap();
            (folder, serde_json::from_slice::<Value>(&expected).unwrap())
        })
        .filter(|(_, expected)| !expected["tensor"].is_null())
        .collect();
    cases.sort_by(|(left, _), (right, _)| left.cmp(right));
    assert_eq!(cases.len(), 20);
    cases
}

fn inspect(model: &Path, more: &[&str]) -> Ended {
    let model = model.to_str().unwrap();
    Ended::run(&mut spotcheck(&[&["models", "inspect", model][..], more].concat()))
}

fn embedding_line(shown: &Ended) -> &str {
    shown.stdout.lines().find_map(|line| line.strip_prefix("embedding: ")).unwrap_or_else(|| panic!("{}", shown.stderr))
}

#[test]
fn inspect_names_tensor_and_size_of_each_family() {
    for (folder, expected) in cases() {
        let shown = inspect(&folder.join("model.onnx"), &[]);
        let line = embedding_line(&shown);
        // ONNX Runtime computes 16-bit layers with 32 bits unless it has to return what is between them.
        let has_own_session = shown.stdout.contains("a second session");
        assert_eq!(has_own_session, folder.ends_with("half"), "{}: {}", folder.display(), shown.stdout);
        let tensor = expected["tensor"].as_str().unwrap();
        let dims = expected["embedding"].as_array().unwrap().len();
        assert!(line.starts_with(&format!("{tensor}, ")), "{}: {line}", folder.display());
        assert!(line.ends_with(&format!("{dims} numbers per image")), "{}: {line}", folder.display());
    }
    for (model, dims) in [("models/efficientnet-lite0", 1280), ("models/ssd-mobilenet-coco", 1280)] {
        let shown = inspect(&repository().join(model).join("model.onnx"), &[]);
        assert!(embedding_line(&shown).ends_with(&format!("{dims} numbers per image")), "{}", shown.stdout);
    }
}

#[test]
fn unclear_layer_of_decoder_is_reported_with_candidates() {
    let model = repository().join("tests/cases/embeddings/reshaped-layers/model.onnx");
    let line = embedding_line(&inspect(&model, &[])).to_owned();
    assert!(line.starts_with("none") && line.contains("hidden0, hidden1, hidden2"), "{line}");
    let chosen = inspect(&model, &["--set", "embedding=hidden2"]);
    assert!(embedding_line(&chosen).starts_with("hidden2, "), "{}", chosen.stdout);
    assert!(chosen.stdout.contains("no embeddings of boxes"), "{}", chosen.stdout);
}

#[test]
fn card_field_names_another_tensor() {
    let model = repository().join("tests/cases/conventions/features-and-logits/model.onnx");
    let chosen = inspect(&model, &["--set", "embedding=value2"]);
    assert!(embedding_line(&chosen).starts_with("value2, "), "{}", chosen.stdout);
    assert!(chosen.stdout.contains("embedding = \"value2\""), "{}", chosen.stdout);
    let unknown = inspect(&model, &["--set", "embedding=value99"]);
    assert!(embedding_line(&unknown).contains("no tensor “value99”"), "{}", unknown.stdout);
}

fn run(args: &[&str]) -> Ended {
    let ended = Ended::run(&mut spotcheck(args));
    assert_eq!(ended.code, Some(0), "{args:?}: {}", ended.stderr);
    ended
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The rows of a NumPy array of 16-bit floats.
fn read_rows(path: &Path) -> Vec<Vec<f64>> {
    let bytes = std::fs::read(path).unwrap();
    let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    assert_eq!(start % 64, 0);
    let header = std::str::from_utf8(&bytes[10..start]).unwrap();
    let dims: usize =
        header.split(", ").filter_map(|part| part.trim_end_matches(&[')', ','][..]).parse().ok()).last().unwrap();
    let number = |bytes: &[u8]| f64::from(half::f16::from_le_bytes([bytes[0], bytes[1]]).to_f32());
    bytes[start..].chunks(2 * dims).map(|row| row.chunks(2).map(number).collect()).collect()
}

#[test]
fn embeddings_match_onnxruntime() {
    // Half the distance between 16-bit floats, and what averaging in another order may change.
    const RELATIVE: f64 = 1.0 / 2048.0 + 1e-5;
    const ABSOLUTE: f64 = 1e-6;
    for (folder, expected) in cases() {
        let own = folder.join("image.png");
        let image = if own.exists() { own } else { folder.with_file_name("image.png") };
        // 16-bit layers, in another version of the runtime.
        let relative = if text(&folder).ends_with("half") { 8.0 * RELATIVE } else { RELATIVE };
        let home = tempfile::tempdir().unwrap();
        let (project, array) = (home.path().join("p.spotcheck"), home.path().join("a.npy"));
        run(&["predict", text(&image), "--model", text(&folder.join("model.onnx")), "--project", text(&project)]);
        run(&["export", text(&project), "--format", "embeddings", "--out", text(&array)]);
        let rows = read_rows(&array);
        let expected: Vec<f64> = serde_json::from_value(expected["embedding"].clone()).unwrap();
        assert_eq!((rows.len(), rows[0].len()), (1, expected.len()), "{}", folder.display());
        for (found, expected) in rows[0].iter().zip(&expected) {
            let tolerance = expected.abs() * relative + ABSOLUTE;
            assert!((found - expected).abs() <= tolerance, "{}: {found}, expected {expected}", folder.display());
        }
        let table = std::fs::read_to_string(home.path().join("a.csv")).unwrap();
        assert!(table.lines().nth(1).unwrap().starts_with(&format!("0,{},", image.display())), "{table}");
    }
}

/// A folder with the sample images and a mirrored copy of one, and its project.
fn photos(home: &Path) -> (PathBuf, PathBuf) {
    let folder = home.join("photos");
    std::fs::create_dir(&folder).unwrap();
    for entry in std::fs::read_dir(repository().join("assets/samples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "png" || extension == "jpg") {
            std::fs::copy(&path, folder.join(path.file_name().unwrap())).unwrap();
        }
    }
    let chelsea = image::open(folder.join("chelsea.png")).unwrap();
    chelsea.fliph().save(folder.join("mirrored.jpg")).unwrap();
    chelsea.crop_imm(60, 30, 300, 220).save(home.join("crop.jpg")).unwrap();
    (folder, home.join("p.spotcheck"))
}

#[test]
fn alike_finds_mirrored_and_cropped_images() {
    let home = tempfile::tempdir().unwrap();
    let (folder, project) = photos(home.path());
    for (model, dims) in [("efficientnet-lite0", 1280), ("ssd-mobilenet-coco", 1280)] {
        let plain = home.path().join("plain.jsonl");
        run(&["predict", text(&folder), "--model", model, "--out", text(&plain)]);
        let embedding = home.path().join("embedding.jsonl");
        let saved =
            run(&["predict", text(&folder), "--model", model, "--project", text(&project), "--out", text(&embedding)]);
        assert!(saved.stderr.contains(&format!("{dims} numbers per image")), "{}", saved.stderr);
        assert_eq!(std::fs::read(&plain).unwrap(), std::fs::read(&embedding).unwrap(), "{model}");
        let alike = |query: &Path, more: &[&str]| {
            let args = ["alike", text(&folder), "--query", text(query), "--count", "3"];
            crate::support::json_lines(run(&[&args[..], more].concat()).stdout)
        };
        let in_project = ["--project", text(&project)];
        let found = alike(&folder.join("chelsea.png"), &in_project);
        assert_eq!(found.len(), 3);
        assert_eq!(found[0]["uri"], text(&folder.join("mirrored.jpg")), "{found:?}");
        assert!(found[0]["similarity"].as_f64().unwrap() > found[1]["similarity"].as_f64().unwrap() + 0.3, "{found:?}");
        assert_eq!(found[0]["encoder"], model);
        assert!(found[0]["layer"].is_string() && found[0]["metric"].is_string() && found[0]["box"].is_null());
        let of_crop = alike(&home.path().join("crop.jpg"), &in_project);
        let best: Vec<&str> = of_crop[..2].iter().map(|line| line["uri"].as_str().unwrap()).collect();
        assert!(best.contains(&text(&folder.join("chelsea.png"))), "{of_crop:?}");
        let array = home.path().join(format!("{model}.npy"));
        run(&["export", text(&project), "--format", "embeddings", "--out", text(&array)]);
        let elsewhere = alike(&folder.join("chelsea.png"), &["--embeddings", text(&array)]);
        for (line, other) in found.iter().zip(&elsewhere) {
            assert_eq!((&line["uri"], &line["similarity"]), (&other["uri"], &other["similarity"]));
        }
    }
}

#[test]
fn alike_finds_boxes_in_other_images() {
    let home = tempfile::tempdir().unwrap();
    let (folder, project) = photos(home.path());
    run(&["predict", text(&folder), "--model", "ssd-mobilenet-coco", "--project", text(&project)]);
    let args = |query: &Path, number: &str| {
        let args = ["alike", text(&folder), "--project", text(&project), "--query", text(query), "--box", number];
        Ended::run(&mut spotcheck(&args))
    };
    let (chelsea, crop) = (folder.join("chelsea.png"), home.path().join("crop.jpg"));
    let found = args(&chelsea, "0");
    assert_eq!(found.code, Some(0), "{}", found.stderr);
    let found = crate::support::json_lines(found.stdout);
    assert_eq!(
        (&found[0]["uri"], &found[0]["box"]),
        (&text(&folder.join("mirrored.jpg")).into(), &0.into()),
        "{found:?}"
    );
    let similarities: Vec<f64> = found.iter().map(|line| line["similarity"].as_f64().unwrap()).collect();
    assert!(similarities.is_sorted_by(|left, right| left >= right) && similarities[0] > 0.5, "{similarities:?}");
    assert!(found.iter().all(|line| line["uri"] != text(&chelsea) || line["box"] != 0), "{found:?}");
    let of_crop = args(&crop, "0");
    assert_eq!(of_crop.code, Some(0), "{}", of_crop.stderr);
    let of_crop = crate::support::json_lines(of_crop.stdout);
    let uri = of_crop[0]["uri"].as_str().unwrap();
    assert!(
        [folder.join("chelsea.png"), folder.join("mirrored.jpg")].iter().any(|cat| uri == text(cat)),
        "{of_crop:?}"
    );
    let missing = args(&chelsea, "60000");
    assert_eq!(missing.code, Some(1), "{}", missing.stdout.len());
    run(&["predict", text(&folder), "--model", "efficientnet-lite0", "--project", text(&project)]);
    assert_eq!(args(&chelsea, "0").code, Some(0), "a newer run without boxes is not used");
    let classifier = ["--query", text(&chelsea), "--box", "0", "--model", "efficientnet-lite0"];
    let classifier = [&["alike", text(&folder), "--project", text(&project)][..], &classifier].concat();
    let classifier = Ended::run(&mut spotcheck(&classifier));
    assert!(classifier.code == Some(1) && classifier.stderr.contains("detector"), "{}", classifier.stderr);
}

#[test]
fn numpy_reads_exported_embeddings_of_boxes() {
    const TOLERANCE: f64 = 1e-3;
    let home = tempfile::tempdir().unwrap();
    let (folder, project) = photos(home.path());
    run(&["predict", text(&folder), "--model", "ssd-mobilenet-coco", "--project", text(&project)]);
    let array = home.path().join("boxes.npy");
    let export = ["export", text(&project), "--format", "embeddings", "--of", "boxes", "--out", text(&array)];
    let exported = run(&export);
    assert!(exported.stderr.contains("576"), "{}", exported.stderr);
    let read = python("read_embeddings.py", &[&array]);
    let rows = read["rows"].as_array().unwrap();
    assert_eq!((&read["type"], &read["shape"]), (&"<f2".into(), &serde_json::json!([rows.len(), 576])));
    let predictions = home.path().join("predictions.jsonl");
    run(&["export", text(&project), "--format", "jsonl", "--all-boxes", "--out", text(&predictions)]);
    let lines = crate::support::json_lines(std::fs::read(&predictions).unwrap());
    for row in rows {
        let line = lines.iter().find(|line| line["uri"] == row["uri"]).unwrap();
        let detection = &line["detections"][row["box"].as_str().unwrap().parse::<usize>().unwrap()];
        let score: f64 = row["score"].as_str().unwrap().parse().unwrap();
        assert_eq!(row["class"], detection["label"], "{row}");
        assert!((detection["score"].as_f64().unwrap() - score).abs() < 1e-6 && score >= 0.2, "{row}");
        assert!(row["reduction"] == "" && row["layer"].as_str().unwrap().contains("Relu6"), "{row}");
    }
    let first = [rows[0]["uri"].as_str().unwrap(), rows[0]["box"].as_str().unwrap()];
    let alike = ["alike", text(&folder), "--project", text(&project), "--query", first[0], "--box", first[1]];
    let found = crate::support::json_lines(run(&alike).stdout);
    for (found, expected) in found.iter().zip(read["nearest"].as_array().unwrap()) {
        assert_eq!((&found["uri"], &found["box"]), (&expected[0], &expected[1]));
        let error = (found["similarity"].as_f64().unwrap() - expected[2].as_f64().unwrap()).abs();
        assert!(error <= TOLERANCE, "{found}, expected {expected}, tolerance {TOLERANCE}");
    }
    let refused = Ended::run(&mut spotcheck(&["duplicates", text(&folder), "--embeddings", text(&array)]));
    assert!(refused.code == Some(1) && refused.stderr.contains("again"), "{}", refused.stderr);
    run(&["predict", text(&folder), "--model", "efficientnet-lite0", "--project", text(&project)]);
    let classifier = Ended::run(&mut spotcheck(&[&export[..], &["--force", "--run", "EfficientNet-Lite0"]].concat()));
    assert!(classifier.code == Some(1) && classifier.stderr.contains("detector"), "{}", classifier.stderr);
}

#[test]
fn box_has_the_same_index_in_all_outputs() {
    let home = tempfile::tempdir().unwrap();
    let (folder, project) = photos(home.path());
    let at = |name: &str| home.path().join(name);
    // Most of its boxes overlap.
    let model = repository().join("tests/cases/embeddings/levels/model.onnx");
    let predictions = at("predictions.jsonl");
    let predict = ["predict", text(&folder), "--model", text(&model), "--project", text(&project)];
    run(&[&predict[..], &["--nms-iou", "0.5", "--out", text(&predictions)]].concat());
    let export = |format: &str, out: &str, more: &[&str]| {
        run(&[&["export", text(&project), "--format", format, "--out", text(&at(out))][..], more].concat());
    };
    export("jsonl", "exported.jsonl", &["--nms-iou", "0.5", "--min-score", "0"]);
    export("jsonl", "all.jsonl", &["--all-boxes"]);
    export("csv", "boxes.csv", &["--nms-iou", "0.5", "--min-score", "0"]);
    export("embeddings", "vectors.npy", &["--of", "boxes"]);
    run(&["review", "sample", text(&project), "--count", "50", "--min-score", "0", "--out", text(&at("sample.csv"))]);

    let boxes_of = |file: &str| {
        let lines = crate::support::json_lines(std::fs::read(at(file)).unwrap());
        let boxes = lines.into_iter().flat_map(|line| {
            let uri = line["uri"].as_str().unwrap().to_owned();
            let boxes = line["detections"].as_array().unwrap().clone();
            boxes.into_iter().map(move |found| ((uri.clone(), found["index"].as_u64().unwrap()), found))
        });
        boxes.collect::<std::collections::BTreeMap<_, _>>()
    };
    let (written, all) = (boxes_of("predictions.jsonl"), boxes_of("all.jsonl"));
    assert!(written.len() * 2 < all.len(), "{} of {}", written.len(), all.len());
    assert_eq!(boxes_of("exported.jsonl"), written);
    for (key, found) in &written {
        assert_eq!(all[key], *found);
    }
    for (file, image, index) in
        [("boxes.csv", "image", "index"), ("vectors.csv", "uri", "box"), ("sample.csv", "image", "box")]
    {
        let mut table = csv::Reader::from_path(at(file)).unwrap();
        let header = table.headers().unwrap().clone();
        let column = |name: &str| header.iter().position(|known| known == name).unwrap_or_else(|| panic!("{header:?}"));
        let (image, index, score) = (column(image), column(index), column("score"));
        let mut rows = 0;
        for row in table.records().map(Result::unwrap) {
            let uri = folder.join(&row[image]).to_str().unwrap().to_owned();
            let found = &all[&(uri, row[index].parse::<u64>().unwrap())];
            let error = (found["score"].as_f64().unwrap() - row[score].parse::<f64>().unwrap()).abs();
            assert!(error < 1e-6, "{file}: {row:?}, {found}");
            rows += 1;
        }
        assert!(rows >= 20, "{file}: {rows}");
    }
    let (query, found) = written.iter().find(|((uri, index), _)| uri.contains("chelsea") && *index > 0).unwrap();
    let index = query.1.to_string();
    let alike = ["alike", text(&folder), "--project", text(&project), "--query", &query.0, "--box", &index];
    let lines = crate::support::json_lines(run(&[&alike[..], &["--count", "9999"]].concat()).stdout);
    let mut vectors = csv::Reader::from_path(at("vectors.csv")).unwrap();
    let mut with_vector: Vec<(String, u64)> =
        vectors.records().map(Result::unwrap).map(|row| (row[1].to_owned(), row[2].parse().unwrap())).collect();
    assert!(with_vector.contains(query), "{found}");
    with_vector.retain(|one| one != query);
    let mut listed: Vec<(String, u64)> =
        lines.iter().map(|line| (line["uri"].as_str().unwrap().to_owned(), line["box"].as_u64().unwrap())).collect();
    listed.sort();
    with_vector.sort();
    assert_eq!(listed, with_vector);
}

#[test]
fn flags_that_would_be_ignored_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let (folder, project) = photos(home.path());
    let array = home.path().join("own.npy");
    write_vectors(&array, "False", &[("chelsea.png", [1.0, 0.0, 0.0]), ("coffee.png", [0.0, 1.0, 0.0])]);
    let in_file = ["--embeddings", text(&array)];
    let order = ["alike", text(&folder), "--order", "outlier"];
    let duplicates = ["duplicates", text(&folder)];
    for (args, more, code) in [
        (&order[..], &[&in_file[..], &["--run", "1"]].concat(), 2),
        (&order, &[&in_file[..], &["--model", "efficientnet-lite0"]].concat(), 2),
        (&order, &[&in_file[..], &["--seed", "2"]].concat(), 1),
        (&order, &[&in_file[..], &["--box", "0"]].concat(), 2),
        (&order, &vec!["--project", text(&project), "--box", "0"], 2),
        (&duplicates, &[&in_file[..], &["--run", "1"]].concat(), 2),
        (&duplicates, &[&in_file[..], &["--model", "efficientnet-lite0"]].concat(), 2),
    ] {
        let ended = Ended::run(&mut spotcheck(&[args, more].concat()));
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(code), ""), "{more:?}: {}", ended.stderr);
    }
    let cover = ["alike", text(&folder), "--order", "cover", "--seed", "2"];
    assert_eq!(run(&[&cover[..], &in_file].concat()).stdout.lines().count(), 2);
}

#[test]
fn vectors_without_a_difference_are_reported() {
    let home = tempfile::tempdir().unwrap();
    let (folder, _) = photos(home.path());
    let array = home.path().join("own.npy");
    let query = folder.join("chelsea.png");
    let note = |rows: &[(&str, [f32; 3])]| {
        write_vectors(&array, "False", rows);
        let found = run(&["alike", text(&folder), "--embeddings", text(&array), "--query", text(&query)]);
        found.stderr.lines().find(|line| line.contains("same vector")).map(str::to_owned)
    };
    let tiny = [("chelsea.png", [1e-30, 0.0, 0.0]), ("coffee.png", [0.0, -1e-30, 0.0])];
    assert_eq!(note(&tiny), None);
    let pair = [("china.jpg", [3e38, 0.0, 0.0]), ("rocket.jpg", [-3e38, 0.0, 0.0])];
    let found = note(&[tiny, pair].concat()).unwrap();
    assert!(found.contains("1 of 4"), "{found}");
    let found = note(&[("chelsea.png", [0.5; 3]), ("coffee.png", [0.5; 3]), ("china.jpg", [0.5; 3])]).unwrap();
    assert!(found.contains("2 of 3"), "{found}");
}

#[test]
fn moved_images_and_ambiguous_names_are_explained() {
    let home = tempfile::tempdir().unwrap();
    let (folder, project) = photos(home.path());
    std::fs::create_dir(folder.join("more")).unwrap();
    for name in ["coffee.png", "rocket.jpg"] {
        std::fs::rename(folder.join(name), folder.join("more").join(name)).unwrap();
    }
    std::fs::copy(home.path().join("crop.jpg"), folder.join("rocket.jpg")).unwrap();
    std::fs::create_dir(folder.join("other")).unwrap();
    std::fs::copy(folder.join("china.jpg"), folder.join("other/coffee.png")).unwrap();
    run(&["predict", text(&folder), "--model", "ssd-mobilenet-coco", "--project", text(&project)]);
    let out = home.path().join("out.jsonl");
    let export = |query: &str| {
        let to = ["--force", "--out", text(&out), "--filter", query];
        Ended::run(&mut spotcheck(&[&["export", text(&project), "--format", "jsonl"][..], &to].concat()))
    };
    let first = |query: &str| {
        export(query).must_succeed();
        crate::support::json_lines(std::fs::read(&out).unwrap())[0]["uri"].as_str().map(PathBuf::from)
    };
    // A path is preferred to a file name.
    assert_eq!(first("alike:rocket.jpg"), Some(folder.join("rocket.jpg")));
    assert_eq!(first("alike:more/coffee.png"), Some(folder.join("more/coffee.png")));
    export("alike:coffee.png").must_fail_with(&["2 images", "more/coffee.png", "other/coffee.png"]);

    let moved = home.path().join("moved");
    std::fs::rename(&folder, &moved).unwrap();
    let query = moved.join("chelsea.png");
    for more in [&[][..], &["--box", "0"]] {
        let alike = ["alike", text(&moved), "--project", text(&project), "--query", text(&query)];
        let refused = Ended::run(&mut spotcheck(&[&alike[..], more].concat()));
        refused.must_fail_with(&["project relocate", text(&folder), text(&moved)]);
    }
}

/// A NumPy array of 32-bit floats and the table of its rows.
fn write_vectors(array: &Path, order: &str, rows: &[(&str, [f32; 3])]) {
    let header = format!("{{'descr': '<f4', 'fortran_order': {order}, 'shape': ({}, 3), }}\n", rows.len());
    let values = rows.iter().flat_map(|(_, row)| row.iter().flat_map(|value| value.to_le_bytes())).collect();
    let length = (header.len() as u16).to_le_bytes();
    let bytes = [b"\x93NUMPY\x01\x00".to_vec(), length.to_vec(), header.into_bytes(), values].concat();
    std::fs::write(array, bytes).unwrap();
    let names: Vec<&str> = rows.iter().map(|(name, _)| *name).collect();
    std::fs::write(array.with_extension("csv"), format!("uri\n{}\n", names.join("\n"))).unwrap();
}

#[test]
fn vectors_computed_elsewhere_are_compared() {
    let home = tempfile::tempdir().unwrap();
    let (folder, _) = photos(home.path());
    let array = home.path().join("own.npy");
    let rows = [
        ("chelsea.png", [1.0, 0.0, 0.0]),
        ("mirrored.jpg", [0.99, 0.01, 0.0]),
        ("coffee.png", [0.0, 1.0, 0.0]),
        ("rocket.jpg", [f32::NAN, 0.0, 1.0]),
    ];
    write_vectors(&array, "False", &rows);
    let (query, source) = (folder.join("chelsea.png"), text(&folder));
    let alike = |array: &Path| {
        let args = ["alike", source, "--embeddings", text(array), "--query", text(&query)];
        Ended::run(&mut spotcheck(&args))
    };
    let found = alike(&array);
    let lines = crate::support::json_lines(&found.stdout);
    assert_eq!((found.code, lines.len()), (Some(0), 2), "{}", found.stderr);
    assert_eq!(
        (&lines[0]["uri"], &lines[0]["encoder"]),
        (&text(&folder.join("mirrored.jpg")).into(), &text(&array).into())
    );
    assert!(found.stderr.contains("NaN") && found.stderr.contains("own.csv"), "{}", found.stderr);
    for args in [&["duplicates", source, "--near", "off"][..], &["alike", source, "--order", "outlier"]] {
        let ended = Ended::run(&mut spotcheck(&[args, &["--embeddings", text(&array)]].concat()));
        let expected = if args[0] == "duplicates" { 3 } else { 0 };
        assert_eq!((ended.code, ended.stdout.contains("mirrored.jpg")), (Some(expected), true), "{}", ended.stderr);
    }
    let other = home.path().join("other.npy");
    let refuse = |order: &str, rows: &[(&str, [f32; 3])], fact: &str| {
        write_vectors(&other, order, rows);
        let refused = alike(&other);
        assert!(refused.code == Some(1) && refused.stderr.contains(fact), "{fact}: {}", refused.stderr);
    };
    refuse("True", &rows, "Fortran");
    refuse("False", &[("nowhere.png", [1.0; 3])], "nowhere.png");
    refuse("False", &[("chelsea.png", [f32::NAN; 3])], "NaN");
    refuse("False", &[], "can be used");
    write_vectors(&other, "False", &rows);
    std::fs::write(home.path().join("other.csv"), "uri\nchelsea.png\n").unwrap();
    let refused = alike(&other);
    assert!(refused.code == Some(1) && refused.stderr.contains("1 row, and the array 4"), "{}", refused.stderr);
}

#[test]
fn similarities_of_sorted_arrays_match_numpy() {
    // The distance between 16-bit floats, half of it for each vector.
    const TOLERANCE: f64 = 1.0 / 2048.0;
    let home = tempfile::tempdir().unwrap();
    let (folder, _) = photos(home.path());
    let names = std::fs::read_dir(&folder).unwrap().map(|entry| PathBuf::from(entry.unwrap().file_name()));
    let names: Vec<PathBuf> = names.collect();
    let arguments: Vec<&Path> = [home.path()].into_iter().chain(names.iter().map(PathBuf::as_path)).collect();
    let expected = python("make_embeddings.py", &arguments);
    let (expected, query) = (expected.as_object().unwrap(), folder.join(&names[0]));
    assert_eq!(expected.len(), 8);
    for (case, similarities) in expected {
        let array = home.path().join(format!("{case}.npy"));
        let found =
            run(&["alike", text(&folder), "--embeddings", text(&array), "--query", text(&query), "--count", "99"]);
        let found = crate::support::json_lines(&found.stdout);
        assert_eq!(found.len(), names.len() - 1, "{case}");
        for line in found {
            let name = Path::new(line["uri"].as_str().unwrap()).file_name().unwrap().to_str().unwrap();
            let [found, expected] = [&line["similarity"], &similarities[name]].map(|value| value.as_f64().unwrap());
            let error = (found - expected).abs();
            assert!(error <= TOLERANCE, "{case}, {name}: {found}, expected {expected}, tolerance {TOLERANCE}");
        }
    }
}

#[test]
fn embeddings_replace_only_earlier_ones() {
    let home = tempfile::tempdir().unwrap();
    let (folder, project) = photos(home.path());
    run(&["predict", text(&folder), "--model", "efficientnet-lite0", "--project", text(&project)]);
    let export = |out: &str, code: i32| {
        let out = home.path().join(out);
        let args = ["export", text(&project), "--format", "embeddings", "--force", "--out", text(&out)];
        let ended = Ended::run(&mut spotcheck(&args));
        assert_eq!(ended.code, Some(code), "{}: {}", out.display(), ended.stderr);
    };
    let files = || {
        let entries = std::fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().path());
        let files = entries.filter(|path| path.is_file());
        files.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect::<std::collections::BTreeMap<_, _>>()
    };
    std::fs::copy(&project, home.path().join("other.csv")).unwrap();
    std::fs::write(home.path().join("own.csv"), "years,of\nwork,\n").unwrap();
    std::fs::create_dir(home.path().join("folder.npy")).unwrap();
    let before = files();
    assert!(before.contains_key(&home.path().join("p.spotcheck-embeddings")));
    for out in [
        "p.spotcheck",
        "p.spotcheck-embeddings",
        "crop.jpg",
        "other.npy",
        "own.npy",
        "folder.npy",
        "dir.npy/",
        "no/a.npy",
    ] {
        export(out, 1);
        assert!(files() == before, "{out}");
    }
    export("a.npy", 0);
    let array = std::fs::read(home.path().join("a.npy")).unwrap();
    std::fs::write(home.path().join("a.npy"), "old").unwrap();
    export("a.npy", 0);
    assert_eq!(std::fs::read(home.path().join("a.npy")).unwrap(), array);
}

#[test]
fn existing_files_and_tables_are_not_replaced() {
    let home = tempfile::tempdir().unwrap();
    let (folder, project) = photos(home.path());
    run(&["predict", text(&folder), "--model", "efficientnet-lite0", "--project", text(&project)]);
    let (out, query) = (home.path().join("labels.jsonl"), folder.join("chelsea.png"));
    std::fs::write(&out, "{\"uri\":\"a.png\",\"status\":\"ok\"}\n").unwrap();
    let before = std::fs::read(&out).unwrap();
    let args = ["alike", text(&folder), "--project", text(&project), "--query", text(&query), "--out", text(&out)];
    let alike = Ended::run(&mut spotcheck(&args));
    assert_eq!((alike.code, std::fs::read(&out).unwrap()), (Some(1), before), "{}", alike.stderr);
    // The table of rows has this name.
    let table = home.path().join("embeddings.csv");
    let export = ["export", text(&project), "--format", "embeddings", "--out", text(&table)];
    assert_eq!(Ended::run(&mut spotcheck(&export)).code, Some(2));
    assert!(!table.exists());
    let array = home.path().join("some.npy");
    let export = ["export", text(&project), "--format", "embeddings", "--out", text(&array), "--min-score", "0.5"];
    assert_eq!(Ended::run(&mut spotcheck(&export)).code, Some(2), "an option about predictions");
    assert!(!array.exists());
    let csv = home.path().join("named.csv");
    let filter = "alike:Chelsea.png alike>0.9";
    run(&["export", text(&project), "--format", "csv", "--filter", filter, "--out", text(&csv)]);
    let rows = std::fs::read_to_string(&csv).unwrap();
    assert!(rows.lines().nth(1).is_some_and(|row| row.contains("chelsea.png")), "{rows}");
    assert!(!rows.contains("coffee.png"), "{rows}");
    for filter in ["alike>0.5", "alike:nowhere.png", "better", "changed:cat>dog"] {
        let csv = home.path().join("filtered.csv");
        let export = ["export", text(&project), "--format", "csv", "--filter", filter, "--out", text(&csv)];
        assert_eq!(Ended::run(&mut spotcheck(&export)).code, Some(1), "{filter}");
    }
}

#[test]
fn resume_adds_missing_and_outdated_embeddings() {
    let home = tempfile::tempdir().unwrap();
    let (folder, project) = photos(home.path());
    let model = ["--model", "efficientnet-lite0", "--project", text(&project)];
    run(&[&["predict", text(&folder), "--no-embeddings"][..], &model].concat());
    let query = folder.join("chelsea.png");
    let alike = ["alike", text(&folder), "--query", text(&query), "--project", text(&project)];
    let refused = Ended::run(&mut spotcheck(&alike));
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("--resume"), "{}", refused.stderr);
    let out = home.path().join("out.jsonl");
    let resumed = run(&[&["predict", text(&folder), "--resume", "--out", text(&out)][..], &model].concat());
    assert!(resumed.stderr.contains("a prediction but no embedding: 9"), "{}", resumed.stderr);
    assert_eq!(crate::support::json_lines(std::fs::read(&out).unwrap()).len(), 9);
    assert_eq!(crate::support::json_lines(run(&alike).stdout).len(), 8);
    std::fs::copy(folder.join("coffee.png"), folder.join("mirrored.jpg")).unwrap();
    let outdated = run(&alike);
    assert_eq!(crate::support::json_lines(&outdated.stdout).len(), 7);
    assert!(outdated.stderr.contains("without an embedding"), "{}", outdated.stderr);
    let again = run(&[&["predict", text(&folder), "--resume"][..], &model].concat());
    assert!(!again.stderr.contains("no embedding"), "{}", again.stderr);
    let lines = crate::support::json_lines(run(&alike).stdout);
    assert_eq!(lines.len(), 8);
}
