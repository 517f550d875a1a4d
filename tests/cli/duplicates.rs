//! Duplicates as found by users: planted copies of the sample images, and what must not be taken for one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use image::imageops::FilterType;
use serde_json::Value;

use crate::support::ended::Ended;
use crate::support::{json_lines, repository, spotcheck};

const SAMPLES: [&str; 8] = [
    "astronaut.png",
    "chelsea.png",
    "china.jpg",
    "coffee.png",
    "flower.jpg",
    "grace_hopper.jpg",
    "hubble_deep_field.jpg",
    "rocket.jpg",
];

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn samples(folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    for name in SAMPLES {
        std::fs::copy(repository().join("assets/samples").join(name), folder.join(name)).unwrap();
    }
}

/// Plants 20 copies, four of each kind, named `<kind>-<sample>`.
fn plant(folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    let open = |name: &str| image::open(repository().join("assets/samples").join(name)).unwrap().to_rgb8();
    for (at, name) in SAMPLES.iter().enumerate() {
        let stem = name.split('.').next().unwrap();
        let to = |kind: &str| folder.join(format!("{kind}-{stem}.jpg"));
        let (width, height) = open(name).dimensions();
        if at % 2 == 0 {
            let copy = folder.join(format!("same-{name}"));
            std::fs::copy(repository().join("assets/samples").join(name), copy).unwrap();
            let file = std::fs::File::create(to("recompressed")).unwrap();
            let mut encoder = image::codecs::jpeg::JpegEncoder::new_with_quality(file, 50);
            encoder.encode_image(&open(name)).unwrap();
        } else {
            let small = image::imageops::resize(&open(name), width / 2, height / 2, FilterType::Triangle);
            small.save(to("resized")).unwrap();
            image::imageops::flip_horizontal(&open(name)).save(to("mirrored")).unwrap();
        }
        if at >= 4 {
            let (left, top) = (width / 10, height / 10);
            image::imageops::crop_imm(&open(name), left, top, width * 4 / 5, height * 4 / 5)
                .to_image()
                .save(to("cropped"))
                .unwrap();
        }
    }
}

fn find(args: &[&Path], more: &[&str]) -> (Ended, Vec<Value>) {
    let args: Vec<&str> = args.iter().map(|path| text(path)).collect();
    let ended = Ended::run(&mut spotcheck(&[&["duplicates"][..], &args, more].concat()));
    let lines = json_lines(&ended.stdout);
    assert_eq!(ended.code, Some(if lines.is_empty() { 0 } else { 3 }), "{}", ended.stderr);
    (ended, lines)
}

fn uris(group: &Value) -> Vec<&str> {
    group["images"].as_array().unwrap().iter().map(|image| image["uri"].as_str().unwrap()).collect()
}

/// The sample that an image shows.
fn stem(uri: &str) -> &str {
    let name = Path::new(uri).file_stem().unwrap().to_str().unwrap();
    name.split_once('-').map_or(name, |(_, stem)| stem)
}

/// How many copies of each kind were found, under which kind; and images in a group of another sample.
fn count(groups: &[Value]) -> (BTreeMap<(&str, &str), usize>, usize) {
    let (mut found, mut wrong) = (BTreeMap::new(), 0);
    for group in groups {
        let uris = uris(group);
        for uri in &uris[1..] {
            let planted =
                Path::new(*uri).file_name().unwrap().to_str().unwrap().split_once('-').map_or("", |name| name.0);
            if stem(uri) == stem(uris[0]) {
                *found.entry((planted, group["kind"].as_str().unwrap())).or_default() += 1;
            } else {
                wrong += 1;
            }
        }
    }
    (found, wrong)
}

#[test]
fn planted_copies_are_found_under_one_kind() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("photos");
    samples(&folder);
    plant(&folder.join("z"));
    let (ended, groups) = find(&[&folder], &[]);
    let (found, wrong) = count(&groups);
    let expected =
        [(("mirrored", "near"), 4), (("recompressed", "near"), 4), (("resized", "near"), 4), (("same", "exact"), 4)];
    assert_eq!((found, wrong), (BTreeMap::from(expected), 0), "{}", ended.stderr);
    for group in &groups {
        let images = group["images"].as_array().unwrap();
        let similarities = images.iter().map(|image| image["similarity"].as_f64().unwrap());
        assert_eq!(group["similarity"].as_f64().unwrap(), similarities.fold(1.0, f64::min));
        assert!(group["similarity"].as_f64().unwrap() >= group["threshold"].as_f64().unwrap());
        assert!(group["metric"].is_string() && group["encoder"].is_null() && group["layer"].is_null());
        for image in images {
            let is_mirrored = image["uri"].as_str().unwrap().contains("mirrored");
            assert_eq!(image.get("mirrored").is_some(), is_mirrored, "{group}");
        }
    }
    let (_, exact) = find(&[&folder], &["--near", "off"]);
    assert_eq!(count(&exact).0, BTreeMap::from([(("same", "exact"), 4)]));
    let (_, none) = find(&[&repository().join("assets/samples")], &[]);
    assert!(none.is_empty(), "{none:?}");
}

#[test]
fn two_folders_report_only_groups_on_both_sides() {
    let home = tempfile::tempdir().unwrap();
    let (train, test) = (home.path().join("train"), home.path().join("test"));
    samples(&train);
    std::fs::copy(train.join("china.jpg"), train.join("twice.jpg")).unwrap();
    plant(&home.path().join("planted"));
    std::fs::create_dir(&test).unwrap();
    for name in ["resized-chelsea.jpg", "recompressed-china.jpg", "cropped-rocket.jpg"] {
        std::fs::copy(home.path().join("planted").join(name), test.join(name)).unwrap();
    }
    std::fs::copy(test.join("cropped-rocket.jpg"), test.join("again.jpg")).unwrap();
    std::fs::copy(train.join("coffee.png"), test.join("other name.png")).unwrap();
    let (_, groups) = find(&[&train, &test], &[]);
    let pairs: Vec<(&str, Vec<PathBuf>)> = groups
        .iter()
        .map(|group| (group["kind"].as_str().unwrap(), uris(group).into_iter().map(PathBuf::from).collect()))
        .collect();
    assert_eq!(
        pairs,
        [
            ("near", vec![train.join("chelsea.png"), test.join("resized-chelsea.jpg")]),
            ("near", vec![train.join("china.jpg"), train.join("twice.jpg"), test.join("recompressed-china.jpg")]),
            ("exact", vec![train.join("coffee.png"), test.join("other name.png")]),
        ]
    );
    let sides: Vec<&str> =
        groups[0]["images"].as_array().unwrap().iter().map(|i| i["side"].as_str().unwrap()).collect();
    assert_eq!(sides, ["source", "other"]);
    // A folder is not a copy of itself.
    let (ended, groups) = find(&[&train, &train.join("..").join("train")], &[]);
    assert!(groups.is_empty(), "{groups:?}");
    assert!(ended.stderr.contains("in both sources"), "{}", ended.stderr);
}

#[test]
fn unreadable_and_plain_images_are_named_and_skipped() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("photos");
    std::fs::create_dir(&folder).unwrap();
    let sample = |name: &str| repository().join("assets/samples").join(name);
    std::fs::copy(sample("coffee.png"), folder.join("coffee.png")).unwrap();
    let china = std::fs::read(sample("china.jpg")).unwrap();
    std::fs::write(folder.join("cut.jpg"), &china[..china.len() / 2]).unwrap();
    std::fs::write(folder.join("cut again.jpg"), &china[..china.len() / 2]).unwrap();
    std::fs::write(folder.join("empty.jpg"), "").unwrap();
    std::fs::write(folder.join("empty too.jpg"), "").unwrap();
    for (name, value) in [("white.png", 255), ("black.png", 0)] {
        image::RgbImage::from_pixel(60, 40, image::Rgb([value; 3])).save(folder.join(name)).unwrap();
    }
    image::RgbImage::from_pixel(1, 1, image::Rgb([9; 3])).save(folder.join("dot.png")).unwrap();
    let (ended, groups) = find(&[&folder], &[]);
    // Damaged files still have equal bytes.
    assert_eq!(groups.len(), 1, "{groups:?}");
    assert_eq!((groups[0]["kind"].as_str(), uris(&groups[0]).len()), (Some("exact"), 2));
    for name in ["cut.jpg", "cut again.jpg", "empty.jpg", "empty too.jpg"] {
        assert!(ended.stderr.contains(&format!("not compared: {}", folder.join(name).display())), "{}", ended.stderr);
    }
    assert!(ended.stderr.contains("nearly of one color") && ended.stderr.contains(": 3"), "{}", ended.stderr);
    std::fs::remove_file(folder.join("cut again.jpg")).unwrap();
    let ended = Ended::run(&mut spotcheck(&["duplicates", text(&folder)]));
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(3), ""), "{}", ended.stderr);
    for wrong in [&["--near", "17"][..], &["--near", "-1"], &["--near", "some"]] {
        let ended = Ended::run(&mut spotcheck(&[&["duplicates", text(&folder)][..], wrong].concat()));
        assert_eq!(ended.code, Some(2), "{wrong:?}");
    }
}

#[test]
fn embeddings_find_crops_and_order_images() {
    let home = tempfile::tempdir().unwrap();
    let (folder, project) = (home.path().join("photos"), home.path().join("p.spotcheck"));
    samples(&folder);
    plant(&folder.join("z"));
    let predict = ["predict", text(&folder), "--model", "efficientnet-lite0", "--project", text(&project)];
    assert_eq!(Ended::run(&mut spotcheck(&predict)).code, Some(0));
    let in_project = ["--project", text(&project)];
    let (_, groups) = find(&[&folder], &[&in_project[..], &["--above", "0.7"]].concat());
    let (found, wrong) = count(&groups);
    assert_eq!((found[&("cropped", "alike")], wrong), (4, 0));
    assert_eq!((found[&("mirrored", "near")], found[&("same", "exact")]), (4, 4));
    let alike = groups.iter().find(|group| group["kind"] == "alike").unwrap();
    assert_eq!((&alike["encoder"], &alike["threshold"]), (&"efficientnet-lite0".into(), &0.7.into()));
    assert!(alike["layer"].is_string() && alike["metric"].as_str().unwrap().contains("cosine"));
    let (ended, groups_at_095) = find(&[&folder], &in_project);
    let missed = 4 - count(&groups_at_095).0.get(&("cropped", "alike")).copied().unwrap_or_default();
    assert!(missed > 0 && ended.stderr.contains(&format!("{missed} from 0.7 on")), "{}", ended.stderr);
    let by_model = find(&[&folder], &[&in_project[..], &["--model", "efficientnet-lite0", "--above", "0.7"]].concat());
    assert_eq!(by_model.1, groups);
    let (_, computed) = find(&[&folder], &["--model", "efficientnet-lite0", "--above", "0.7"]);
    assert_eq!(computed, groups);
    let refused =
        Ended::run(&mut spotcheck(&["duplicates", text(&folder), "--project", text(&project), "--model", "x"]));
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""));
    let array = home.path().join("a.npy");
    let export = ["export", text(&project), "--format", "embeddings", "--out", text(&array)];
    assert_eq!(Ended::run(&mut spotcheck(&export)).code, Some(0));
    let (_, elsewhere) = find(&[&folder], &["--embeddings", text(&array), "--above", "0.7"]);
    assert_eq!(count(&elsewhere), count(&groups));

    let order = |order: &str| {
        let args = ["alike", text(&folder), "--project", text(&project), "--order", order, "--count", "8"];
        let ended = Ended::run(&mut spotcheck(&args));
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        json_lines(ended.stdout)
    };
    for by in ["uniqueness", "outlier", "representativeness", "cover"] {
        let lines = order(by);
        assert_eq!(lines.len(), 8, "{by}");
        for line in &lines {
            assert!(line["order"] == by && line["value"].is_number() && line["encoder"] == "efficientnet-lite0");
            assert!(line["layer"].is_string() && line["metric"].is_string());
        }
        let values: Vec<f64> = lines.iter().map(|line| line["value"].as_f64().unwrap()).collect();
        let rises = by == "outlier" || by == "cover";
        assert!(values.is_sorted_by(|one, other| if rises { one <= other } else { one >= other }), "{by}: {values:?}");
        assert_eq!(order(by), lines);
    }
    // Eight images that cover 28 of eight subjects show all of them.
    let mut shown: Vec<String> =
        order("cover").iter().map(|line| stem(line["uri"].as_str().unwrap()).to_owned()).collect();
    shown.sort();
    shown.dedup();
    assert_eq!(shown.len(), 8, "{shown:?}");
    let missing = Ended::run(&mut spotcheck(&["alike", text(&folder), "--project", text(&project)]));
    assert_eq!(missing.code, Some(2));
}

#[test]
fn model_compares_two_folders_without_a_project() {
    let home = tempfile::tempdir().unwrap();
    let (train, test) = (home.path().join("train"), home.path().join("test"));
    samples(&train);
    plant(&test);
    std::fs::write(test.join("broken.jpg"), "no image").unwrap();
    let (ended, groups) = find(&[&train, &test], &["--model", "efficientnet-lite0", "--above", "0.7"]);
    let (found, wrong) = count(&groups);
    assert_eq!((found[&("cropped", "alike")], found[&("same", "exact")], wrong), (4, 4, 0));
    let alike = groups.iter().find(|group| group["kind"] == "alike").unwrap();
    assert!(alike["encoder"] == "efficientnet-lite0" && alike["layer"].is_string());
    assert!(ended.stderr.contains("no embedding: ") && ended.stderr.contains("broken.jpg"), "{}", ended.stderr);
    let arguments = ["duplicates", text(&train), "--model"];
    let refused = Ended::run(&mut spotcheck(&[&arguments[..], &["unknown"]].concat()));
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""));
    let refused = Ended::run(&mut spotcheck(&[&arguments[..], &["efficientnet-lite0", "--run", "1"]].concat()));
    assert_eq!(refused.code, Some(2));
}

#[test]
fn sample_by_cover_draws_from_every_cluster() {
    let home = tempfile::tempdir().unwrap();
    let (folder, project) = (home.path().join("photos"), home.path().join("p.spotcheck"));
    samples(&folder);
    plant(&folder.join("z"));
    let predict = ["predict", text(&folder), "--model", "efficientnet-lite0", "--project", text(&project)];
    assert_eq!(Ended::run(&mut spotcheck(&[&predict[..], &["--no-embeddings"]].concat())).code, Some(0));
    let sample = |more: &[&str]| {
        let args =
            ["review", "sample", text(&project), "--by", "cover", "--count", "20", "--min-score", "0", "--out", "-"];
        Ended::run(&mut spotcheck(&[&args[..], more].concat()))
    };
    let refused = sample(&[]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("--resume"), "{}", refused.stderr);
    assert_eq!(Ended::run(&mut spotcheck(&[&predict[..], &["--resume"]].concat())).code, Some(0));
    let drawn = sample(&[]).must_succeed();
    for part in ["cosine", "efficientnet-lite0", "/Reshape_output_0"] {
        assert!(drawn.stderr.contains(part), "{}", drawn.stderr);
    }
    let mut rows = csv::Reader::from_reader(drawn.stdout.as_bytes());
    let mut strata: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for row in rows.records().map(Result::unwrap) {
        strata.entry(row[4].to_owned()).or_default().push(row[5].parse().unwrap());
    }
    assert_eq!(strata.len(), 4, "{strata:?}");
    // Inverse probabilities add up to the 28 images.
    let total: f64 = strata.values().flatten().map(|probability| 1.0 / probability).sum();
    assert!((total - 28.0).abs() < 1e-6, "{total}: {strata:?}");
    assert_eq!(sample(&["--replace"]).must_succeed().stdout, drawn.stdout);
}
