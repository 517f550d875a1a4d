//! Error patterns: in a list, each leading to its images.

use egui_kittest::Harness;
use serde_json::json;
use spotcheck::evaluation::{Attribute, ErrorKind};
use spotcheck::window::app::App;
use spotcheck::window::state::{Action, SearchCommand};

use crate::evaluating::{Bench, wait_for_counts};
use crate::window::{click, sees, wait_for, wait_until, wait_until_idle};

/// 16 images with a cat. In the first six, which also show a small one, it is predicted as a dog.
fn open_small_cats() -> (Bench, Harness<'static, App>) {
    let names: Vec<String> = (0..16).map(|at| format!("{at:02}.png")).collect();
    let bench = Bench::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let mut truth = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let (label, cats) = if at < 6 { ("dog", &[(10, 40), (60, 8)][..]) } else { ("cat", &[(10, 40)][..]) };
        bench.put_boxes(name, &[(label, 0.9, [10, 10, 50, 50])]);
        for (left, side) in cats {
            truth.push(json!({"id": truth.len() + 1, "image_id": at, "category_id": 1, "iscrowd": 0,
                "area": side * side, "bbox": [left, 10, side, side]}));
        }
    }
    let images: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(at, name)| json!({"id": at, "file_name": name, "width": 100, "height": 100}))
        .collect();
    let truth = json!({
        "images": images, "annotations": truth,
        "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
    });
    let truth = bench.write_truth("truth.json", &truth.to_string());
    let mut window = bench.open(&truth);
    wait_for_counts(&mut window);
    (bench, window)
}

fn wait_for_patterns(window: &mut Harness<'static, App>) {
    wait_until(window, "the error patterns", |window| window.state().state().error_patterns().is_some());
    wait_until_idle(window);
}

#[test]
fn pattern_leads_to_the_images_with_its_error() {
    let (_bench, mut window) = open_small_cats();
    window.state_mut().command(SearchCommand::SetQuery("pattern".to_owned()));
    wait_until_idle(&mut window);
    assert!(window.state().state().order().ids().next().is_none(), "nothing is found yet");
    assert!(window.state().state().query_warnings().iter().any(|warning| warning.contains("Find error patterns")));
    window.state_mut().command(Action::FindErrorPatterns);
    wait_for_patterns(&mut window);
    let found = window.state().state().error_patterns().unwrap().patterns.clone();
    let rows = &found.found.patterns;
    let [row] = &rows[..] else { panic!("{rows:?}") };
    let confused = ErrorKind::Confused { truth: 0, predicted: 1 };
    assert_eq!((row.kind, row.attribute, row.images), (confused, Attribute::ObjectSize, 6));
    // All six of 16 images: one choice in 8008. Other kinds of errors are tested on the same group.
    assert!((row.p * 8008.0 - 1.0).abs() < 1e-9, "{}", row.p);
    assert!((row.q - row.p).abs() < 1e-9 && found.found.tests > 1, "{found:?}");
    let text = "Pattern 1: cat predicted as dog · small (below 32²) objects, With error 6, Images 6, Expected 2.2";
    wait_for(&mut window, text);
    click(&mut window, text);
    wait_until_idle(&mut window);
    let shown: Vec<u32> = window.state().state().order().ids().map(|id| id.0).collect();
    assert_eq!(shown, [0, 1, 2, 3, 4, 5]);
    assert!(window.state().state().arranging.text().starts_with("pattern:1 "));
    assert!(sees(&window, "the run has no embeddings"));
}
