//! Annotations from other tools, compared with independent readers: each folder of `tests/cases/annotations/<format>/`
//! is a case, with the results that its `make.py` expects.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use spotcheck::annotations::{AnnotationsError, Found, open, open_split};
use spotcheck::domain::{AnnotatedImage, AnnotatedImageId, Annotations, BoxRole, BoxUnit, PredictionStatus};
use spotcheck::image::source::Files;
use spotcheck::tasks::{ProgressUnit, TaskControl};

fn folders(of: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(of).unwrap().map(|entry| entry.unwrap().path());
    let mut folders: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

/// The path to open for a case: the only file besides those of the test, or the folder.
fn place(case: &Path) -> PathBuf {
    let is_of_test = |path: &Path| ["expected.json", "problems.json"].iter().any(|name| path.ends_with(name));
    let entries = std::fs::read_dir(case).unwrap().map(|entry| entry.unwrap().path());
    let mut entries: Vec<PathBuf> = entries.filter(|path| !is_of_test(path)).collect();
    match entries.len() {
        1 => entries.remove(0),
        _ => case.to_owned(),
    }
}

fn read(path: &Path) -> Found {
    let control = TaskControl::new(ProgressUnit::Bytes);
    open(&Files::local(path), &control).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn image(image: &AnnotatedImage) -> Value {
    let boxes = image.boxes.iter().map(|found| {
        let role = match found.role {
            BoxRole::Object => "object",
            BoxRole::Crowd => "crowd",
            BoxRole::Ignored => "ignored",
        };
        let mut shown = json!({
            "class": found.class, "bounds": <[f64; 4]>::from(found.bounds), "score": found.score, "area": found.area, "role": role,
        });
        if found.unit == BoxUnit::Fractions {
            shown["unit"] = "fractions".into();
        }
        shown
    });
    let labels = image.labels.iter().map(|label| json!({"class": label.class, "score": label.score}));
    let id = image.id.as_ref().map(|id| match id {
        AnnotatedImageId::Number(number) => json!(number),
        AnnotatedImageId::Text(text) => json!(text),
    });
    let mut shown = json!({
        "id": id, "name": image.name, "size": image.size,
        "boxes": boxes.collect::<Vec<_>>(), "labels": labels.collect::<Vec<_>>(),
    });
    match &image.status {
        PredictionStatus::Predicted => {}
        PredictionStatus::Failed(reason) => shown["failed"] = reason.as_str().into(),
        PredictionStatus::Outdated => shown["failed"] = "outdated".into(),
        PredictionStatus::Unpredicted => shown["failed"] = "unpredicted".into(),
    }
    shown
}

fn shown(annotations: &Annotations) -> Value {
    let classes = annotations.classes.iter().map(|class| json!({"number": class.number, "name": class.name}));
    json!({
        "classes": classes.collect::<Vec<_>>(),
        "images": annotations.images.iter().map(image).collect::<Vec<_>>(),
    })
}

/// Whether both are equal; numbers are equal if their values are, bit for bit.
fn is_same(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Number(found), Value::Number(expected)) => found.as_f64() == expected.as_f64(),
        (Value::Array(found), Value::Array(expected)) => {
            found.len() == expected.len()
                && found.iter().zip(expected).all(|(found, expected)| is_same(found, expected))
        }
        (Value::Object(found), Value::Object(expected)) => {
            let is_empty = |value: &Value| value.as_array().is_some_and(Vec::is_empty);
            let here = found.iter().all(|(key, value)| expected.contains_key(key) || is_empty(value));
            here && expected.iter().all(|(key, value)| found.get(key).is_some_and(|found| is_same(found, value)))
        }
        (found, expected) => found == expected,
    }
}

#[test]
fn annotations_match_independent_readers() {
    let mut failures = String::new();
    for format in folders(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/annotations")) {
        for case in folders(&format) {
            let found = read(&place(&case));
            let json = |name: &str| -> Option<Value> {
                let text = std::fs::read_to_string(case.join(name)).ok()?;
                Some(serde_json::from_str(&text).unwrap())
            };
            let expected = json("expected.json").unwrap();
            let got = shown(&found.annotations);
            if !is_same(&got, &expected) {
                writeln!(failures, "{}:\n{got:#}\nexpected\n{expected:#}", case.display()).unwrap();
            }
            let problems: Vec<String> = found.annotations.problems.iter().map(ToString::to_string).collect();
            let expected = json("problems.json").unwrap_or_else(|| json!([]));
            if json!(problems) != expected {
                writeln!(failures, "{}: problems\n{:#}", case.display(), json!(problems)).unwrap();
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

/// # Errors
/// The error for a file with this content.
fn read_text(name: &str, content: &[u8]) -> Result<Found, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, content).unwrap();
    let control = TaskControl::new(ProgressUnit::Bytes);
    open(&Files::local(&path), &control).map_err(|error| error.to_string())
}

#[test]
fn corrupt_file_is_refused_with_a_position() {
    let check = |content: &[u8], expected: &str| {
        let error = read_text("truth.json", content).unwrap_err();
        assert!(error.contains(expected), "{error}");
    };
    check(b"", "is empty");
    check(b"\xef\xbb\xbf  \r\n", "is empty");
    check(b"\xff\xfe{\0}\0", "UTF-16");
    check(b"{\0}\0", "UTF-16");
    check(b"{\"categories\": [{\"id\": 1, \"name\": \"Caf\xe9\"}]}", "column 39; ");
    check(b"SQLite format 3\0\x10\0", "SQLite");
    check(b"PK\x03\x04\x14", "binary file");
    check(br#"{"images": [{"id": 1, "file_na"#, "line 1 column 30");
    check(b"{\"images\": [],\n\"annotations\": [{\"bbox\": [NaN, 1, 1, 1]}]}", "line 2 column 27");
    check(br#"[{"image_id": 1, "category_id": 1, "bbox": [1e999, 1, 1, 1], "score": 1}]"#, "out of range");
    check(br#"{"images": 17}"#, "expected a list");
    check(br#"{"images": [], "images": []}"#, "images twice");
    check(br#"{"images": []} x"#, "trailing characters");
    check(br#"{"version": "5.0", "shapes": []}"#, "version, shapes");
    let deep = [br#"{"images": [{"id": "#.as_slice(), &vec![b'['; 100_000]].concat();
    check(&deep, "ends early");
    let deep = "[".repeat(100_000);
    check(deep.as_bytes(), "ends early");
}

#[test]
fn rows_have_their_line_numbers() {
    let text = b"image,label,note\r\n\r\na.jpg,cat,\"two\r\nlines\"\r\nb.jpg,,,\r\n,cat,\r\n\
        c.jpg,\"cat,\r\nd.jpg,dog,\r\n";
    let annotations = read_text("truth.csv", text).unwrap().annotations;
    let problems: Vec<String> = annotations.problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].contains("line 6") && problems[1].contains("line 7"), "{problems:?}");
    let images: Vec<&str> = annotations.images.iter().map(|image| image.name.as_str()).collect();
    assert_eq!(images, ["a.jpg", "b.jpg", "d.jpg"]);
}

#[test]
fn invalid_utf_8_and_huge_ids_are_reported() {
    let check = |name: &str, content: &[u8], facts: [&str; 2]| {
        let annotations = read_text(name, content).unwrap().annotations;
        let problems: Vec<String> = annotations.problems.iter().map(ToString::to_string).collect();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(facts.iter().all(|fact| problems[0].contains(fact)), "{problems:?}");
    };
    check("truth.csv", b"image,class\na.jpg,Caf\xe9\nb.jpg,cat\n", ["line 2", "UTF-8"]);
    check("truth.jsonl", b"{\"uri\": \"a.jpg\"}\n{\"uri\": \"Caf\xe9\"}\n", ["line 2", "UTF-8"]);
    let number = "18446744073709551616";
    let results = format!(r#"[{{"image_id": {number}, "category_id": 1, "bbox": [1, 1, 1, 1], "score": 1}}]"#);
    check("results.json", results.as_bytes(), ["[0]", "image_id 1.8446744073709552e19"]);
    let table = format!("image,class_id\na.jpg,{number}\n");
    check("truth.csv", table.as_bytes(), ["line 2", number]);
}

#[test]
fn deeply_nested_extras_are_skipped() {
    let (open, close) = ("[".repeat(100_000), "]".repeat(100_000));
    let text = format!(
        r#"{{"images": [{{"id": 1, "file_name": "a.jpg"}}], "categories": [{{"id": 1, "name": "cat"}}],
            "annotations": [
                {{"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "segmentation": {open}{close}}}
            ]}}"#
    );
    let found = read_text("truth.json", text.as_bytes()).unwrap();
    assert_eq!(found.annotations.images[0].boxes.len(), 1);
    assert!(found.annotations.problems.is_empty());
}

#[test]
fn all_problems_are_counted_and_the_first_kept() {
    let entries = vec![r#"{"image_id": 1, "category_id": 1, "bbox": [1, 2, -3, 4], "score": 1}"#; 2500].join(",\n");
    let found = read_text("results.json", format!("[{entries}]").as_bytes()).unwrap();
    let problems = &found.annotations.problems;
    assert_eq!((found.entries, problems.total(), problems.iter().count()), (2500, 2500, 1000));
    assert_eq!(problems.iter().last().unwrap().place, "[999]");
}

#[test]
fn canceling_ends_reading() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("truth.json");
    std::fs::write(&path, "[]").unwrap();
    let control = TaskControl::new(ProgressUnit::Bytes);
    control.cancel();
    assert_eq!(open(&Files::local(&path), &control).unwrap_err().to_string(), "canceled");
}

/// The image names in `files` (name and content) as read from `data.yaml`, and the notes.
///
/// # Errors
/// The error otherwise.
fn read_data_set(yaml: &str, files: &[(&str, &str)], split: Option<&str>) -> Result<(Vec<String>, String), String> {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_str().unwrap().replace('\\', "/");
    for (name, content) in files.iter().chain(&[("data.yaml", yaml)]) {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content.replace("ROOT", &root)).unwrap();
    }
    let control = TaskControl::new(ProgressUnit::Bytes);
    let read = |place: &Path| open_split(&Files::local(place), split, &control).map_err(|error| error.to_string());
    let found = read(&folder.path().join("data.yaml"))?;
    let of_folder = read(folder.path())?;
    assert_eq!(of_folder.annotations, found.annotations);
    let mut names: Vec<String> = found.annotations.images.into_iter().map(|image| image.name).collect();
    names.sort();
    Ok((names.into_iter().map(|name| name.replace(&root, "ROOT")).collect(), found.notes.join("\n")))
}

#[test]
fn unreadable_files_do_not_hide_a_dataset() {
    let utf16: Vec<u8> = "\u{feff}<annotation/>".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for content in [&b""[..], &utf16] {
        let folder = tempfile::tempdir().unwrap();
        let control = TaskControl::new(ProgressUnit::Bytes);
        let read = || open(&Files::local(folder.path()), &control);
        std::fs::write(folder.path().join("0.xml"), content).unwrap();
        std::fs::write(folder.path().join("1.jpg"), "").unwrap();
        assert!(matches!(read(), Err(AnnotationsError::Empty { .. } | AnnotationsError::Utf16 { .. })));
        let object = "<object><name>cat</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>9</xmax><ymax>9</ymax></bndbox></object>";
        std::fs::write(folder.path().join("1.xml"), format!("<annotation>{object}</annotation>")).unwrap();
        let found = read().unwrap();
        let places: Vec<&str> = found.annotations.problems.iter().map(|problem| &*problem.place).collect();
        assert_eq!((found.annotations.images.len(), places), (1, vec!["0.xml"]));
    }
}

#[test]
fn rows_of_empty_cells_are_blank() {
    let found = read_text("truth.csv", b"image,label\n,\na.jpg,cat\n , \n").unwrap();
    assert_eq!((found.entries, found.annotations.problems.total(), found.annotations.images.len()), (1, 0, 1));
}

const LABEL: &str = "0 0.5 0.5 0.25 0.25\n";

#[test]
fn data_yaml_selects_the_split() {
    let both = [
        ("images/train/1.jpg", ""),
        ("labels/train/1.txt", LABEL),
        ("images/val/2.jpg", ""),
        ("labels/val/2.txt", LABEL),
        ("images/val/3.jpg", ""),
        ("runs/detect/predict/labels/2.txt", LABEL),
        ("runs/detect/predict/2.jpg", ""),
    ];
    let check = |yaml: &str, split: Option<&str>, expected: &[&str]| {
        let (names, notes) = read_data_set(&format!("names: [cat]\n{yaml}"), &both, split).unwrap();
        assert_eq!(names, expected, "{yaml}");
        notes
    };
    let (train, val) = (["images/train/1.jpg"], ["images/val/2.jpg", "images/val/3.jpg"]);
    let usual = "train: images/train\nval: images/val\ntest: # none\n";
    let notes = check(usual, None, &val);
    assert!(notes.contains("val, not train\n1 image "), "{notes}");
    check(usual, Some("train"), &train);
    let notes = check("train: images/train\n", None, &train);
    assert!(notes.ends_with(" train"), "{notes}");
    check("path: .\nval: [images/train, ./images/val/]\n", None, &[train[0], val[0], val[1]]);
    let notes = check("path: ../spotcheck-has-no-such-folder\nval: images/val\n", None, &val);
    assert!(notes.contains("path ../spotcheck-has-no-such-folder"), "{notes}");
    check("path: images\nval: val\n", None, &val);
    check("val: ROOT/images/val\n", None, &["ROOT/images/val/2.jpg", "ROOT/images/val/3.jpg"]);
    // Without paths, predictions in subfolders are not ground truth.
    let notes = check("", None, &[train[0], val[0], val[1]]);
    assert!(notes.contains("1 file in runs/detect/predict/labels"), "{notes}");
    let refused = |yaml: &str, split: Option<&str>, expected: &str| {
        let error = read_data_set(&format!("names: [cat]\n{yaml}"), &both, split).unwrap_err();
        assert!(error.contains(expected), "{error}");
    };
    refused(usual, Some("test"), "“test”; it has train and val");
    refused("", Some("val"), "train, val or test");
    refused("val: images/gone\n", None, "images/gone of");
}

#[test]
fn data_yaml_resolves_lists_and_roboflow_folders() {
    let files = [
        ("train/images/1.jpg", ""),
        ("train/labels/1.txt", LABEL),
        ("valid/images/2.jpg", ""),
        ("valid/labels/2.txt", LABEL),
        ("lists/val.txt", "./train/images/1.jpg\n\nvalid/images/2.jpg\n"),
        ("one.txt", "ROOT/valid/images/2.jpg\r\n"),
        ("moved.txt", "/gone/images/2.jpg\n"),
    ];
    let read = |yaml: &str| read_data_set(&format!("names: [cat]\n{yaml}"), &files, None);
    let (one, two) = ("train/images/1.jpg".to_owned(), "valid/images/2.jpg".to_owned());
    assert_eq!(read("train: ../train/images\nval: ../valid/images\n").unwrap().0, std::slice::from_ref(&two));
    assert_eq!(read("val: lists/val.txt\n").unwrap().0, [one, two]);
    assert_eq!(read("val: one.txt\n").unwrap().0, ["ROOT/valid/images/2.jpg"]);
    let error = read("val: moved.txt\n").unwrap_err();
    assert!(error.contains("/gone/images/2.jpg"));
}

#[test]
fn box_columns_have_aliases() {
    let read = |header: &str, row: &str| {
        let found = read_text("truth.csv", format!("image,label,{header}\na.jpg,cat,{row}\n").as_bytes())?;
        let image = found.annotations.images.first().ok_or("no image")?.clone();
        Ok::<_, String>((image.boxes.first().map(|found| found.bounds.into()), image.size))
    };
    let bounds = Some([10.0, 20.0, 30.0, 40.0]);
    for (header, row, size) in [
        ("left,top,width,height", "10,20,30,40", None),
        ("x,y,width,height,image_width,image_height", "10,20,30,40,640,480", Some([640, 480])),
        ("x_min,y_min,x_max,y_max,width,height", "10,20,40,60,640,480", Some([640, 480])),
        ("Left,Top,Right,Bottom", "10,20,40,60", None),
        ("x0,y0,x1,y1", "10,20,40,60", None),
        ("bbox_x,bbox_y,bbox_w,bbox_h", "10,20,30,40", None),
        ("bbox_x1,bbox_y1,bbox_x2,bbox_y2", "10,20,40,60", None),
        ("left,top,box_width,box_height,width,height", "10,20,30,40,640,480", Some([640, 480])),
        ("x_center,y_center,w,h", "25,40,30,40", None),
        ("bbox", "\"[10, 20.0, 30, 40]\"", None),
        ("box", "10 20 30 40", None),
    ] {
        assert_eq!(read(header, row), Ok((bounds, size)), "{header}");
    }
    for (header, expected) in
        [("x,y", "columns x, y do"), ("bbox_width", "column bbox_width does"), ("x1,y1,x2", "columns x1, y1, x2 do")]
    {
        let error = read(header, "1,2,3").unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(read("width,height", "640,480"), Ok((None, Some([640, 480]))));
}

#[test]
fn unread_verdicts_of_exports_are_noted() {
    let header = "image,label,score,x1,y1,x2,y2,verdict,right_class";
    let table = format!("{header}\na.jpg,cat,0.5,1,2,30,40,wrong,dog\na.jpg,cat,0.4,1,2,30,40,,\n");
    let line = r#"{"uri":"a.jpg","status":"ok","detections":[
        {"label":"cat","score":0.5,"box":[1,2,30,40],"verdict":"wrong","right_class":"dog"},
        {"label":"cat","score":0.4,"box":[1,2,30,40]}]}"#;
    for (name, text) in [("p.csv", table), ("p.jsonl", line.replace('\n', "") + "\n")] {
        let found = read_text(name, text.as_bytes()).unwrap();
        assert_eq!(found.annotations.images[0].boxes.len(), 2);
        let notes = found.notes.join("; ");
        assert!(notes.contains("1 box has a verdict") && notes.contains("--verdicts corrected"), "{name}: {notes}");
    }
}

#[test]
fn majority_of_boxes_decides_relative_coordinates() {
    let read = |rows: &[&str]| {
        let rows = rows.iter().map(|row| format!("a.jpg,cat,{row}\n"));
        let text = format!("image,label,x1,y1,x2,y2\n{}", rows.collect::<String>());
        let found = read_text("truth.csv", text.as_bytes()).unwrap();
        let units = found.annotations.images[0].boxes.iter().map(|found| found.unit).collect::<Vec<_>>();
        let problems: Vec<String> = found.annotations.problems.iter().map(ToString::to_string).collect();
        (units, found.notes.join("; "), problems.join("; "))
    };
    let part = "0.25,0.5,0.75,1.0";
    let (units, notes, _) = read(&[part, part, "0.5,0.5,1.0000001,1"]);
    assert_eq!(units, [BoxUnit::Fractions; 3]);
    assert!(notes.contains("boxes are fractions"), "{notes}");
    let (units, notes, problems) = read(&[part, part, "0.5,0.5,1.25,1", "10,10,40,40", part, part]);
    assert_eq!(units, [BoxUnit::Fractions; 5]);
    assert!(notes.contains("2 boxes") && notes.contains("line 4"), "{notes}");
    assert!(problems.starts_with("a.jpg "), "{problems}");
    let (units, notes, _) = read(&["10,10,40,40", part, "20,20,60,60"]);
    assert_eq!(units, [BoxUnit::Pixels; 3]);
    assert!(notes.contains("1 box ") && notes.contains("line 3"), "{notes}");
}

#[test]
fn repeated_class_of_an_image_counts_once() {
    let found =
        read_text("predictions.csv", b"image,class,score\na.jpg,cat,0.5\na.jpg,cat,0.9\na.jpg,dog,0.1\n").unwrap();
    assert_eq!(found.annotations.images[0].labels.len(), 2);
    let problems: Vec<String> = found.annotations.problems.iter().map(ToString::to_string).collect();
    assert!(problems.len() == 1 && problems[0].contains("line 3"), "{problems:?}");
}

#[test]
fn poses_without_kpt_shape_are_refused() {
    let pose = "0 0.5 0.5 0.4 0.4 0.4 0.4 2 0.6 0.6 1 0 0 0\n";
    let error = read_text("a.txt", pose.repeat(2).as_bytes()).unwrap_err();
    assert!(error.contains("look like poses") && error.contains("kpt_shape: [3, 3]"), "{error}");
    let pairs = "0 0.5 0.5 0.4 0.4 0.4 0.4 0.6 0.6\n";
    assert!(read_text("a.txt", pairs.repeat(5).as_bytes()).unwrap_err().contains("kpt_shape: [2, 2]"));
    // Polygons, including those with four corners.
    for rows in
        [pairs.repeat(4), "0 0.1 0.1 0.9 0.1 0.9 0.9 0.1 0.9\n".repeat(9), format!("{pairs}0 0 0 1 0 1 1\n").repeat(5)]
    {
        assert!(read_text("a.txt", rows.as_bytes()).is_ok(), "{rows}");
    }
}
