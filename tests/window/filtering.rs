//! Searching, sorting, counting.

use egui::accesskit::Role;
use egui::{Key, Modifiers};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};
use spotcheck::domain::{BoundingBox, SampleId};
use spotcheck::review::{FilmBox, PredictionStatus, Query, SortBy};
use spotcheck::window::app::App;
use spotcheck::window::state::{
    Action, BrowseCommand, CaptureReading, Command, Display, InferenceCommand, Overlay, ReviewCommand, SearchCommand,
    ViewChange,
};

use crate::support::repository;
use crate::window::{
    click, descriptions, folder_of, open, predict_samples, samples, sees, wait_for, wait_for_notice, wait_for_overlay,
    wait_until, wait_until_idle,
};

const CLASSIFIER: &str = "efficientnet-lite0";
const DETECTOR: &str = "ssd-mobilenet-coco";

const MIN_SCORE_OF_CUP: &str = "Minimum score of cup";

/// Types into the search field, letter by letter.
fn search(window: &mut Harness<'static, App>, text: &str) {
    window.key_press(Key::Slash);
    window.run_steps(2);
    window.get_by_label("Search").type_text(text);
    window.step();
}

fn names_on_screen(window: &Harness<'static, App>) -> Vec<String> {
    let state = window.state().state();
    let ids = state.order().ids();
    let entries = ids.filter_map(|id| state.samples.get(id));
    entries.map(|entry| entry.name.clone()).collect()
}

/// The detector has predicted all samples, and the counts are up to date.
fn detected() -> Harness<'static, App> {
    let mut window = open(Some(&samples()), DETECTOR);
    wait_for(&mut window, "8 images");
    click(&mut window, "Predict all");
    wait_for(&mut window, "8 images, 8 predicted");
    wait_for(&mut window, "Classes in 8 images");
    window
}

#[test]
fn search_filters_images_and_counts_them() {
    let mut window = open(Some(&samples()), CLASSIFIER);
    wait_for(&mut window, "8 images");
    let chelsea = "chelsea.png".to_owned();
    assert!(names_on_screen(&window).contains(&chelsea));
    search(&mut window, "!chelsea");
    wait_for(&mut window, "7 of 8 images");
    assert!(!names_on_screen(&window).contains(&chelsea));
    click(&mut window, "Clear search");
    wait_until(&mut window, "all images", |window| names_on_screen(window).len() == 8);
}

#[test]
fn similar_images_come_first_and_are_found() {
    let mut window = open(Some(&samples()), CLASSIFIER);
    predict_samples(&mut window);
    let shown = window.state().state().selection.shown();
    window.state_mut().command(Action::FindAlike);
    wait_for(&mut window, "similarity 1.00, ");
    let is_sorted = |window: &Harness<'static, App>| {
        let state = window.state().state();
        state.arranging.sort().by == SortBy::Similarity && state.order().at(0) == shown
    };
    wait_until(&mut window, "the image itself first", is_sorted);
    assert_eq!(names_on_screen(&window).len(), 8);
    for value in ["similarity 1.00", "Sort: "] {
        let described = descriptions(&window, value);
        let parts = ["cosine", CLASSIFIER, "/Reshape_output_0"];
        assert!(parts.iter().all(|part| described.contains(part)), "{value}: {described}");
    }
    search(&mut window, "alike>0.9");
    wait_for(&mut window, "1 of 8 images");
}

#[test]
fn covering_images_of_search_results_are_selected() {
    let mut window = open(Some(&samples()), CLASSIFIER);
    predict_samples(&mut window);
    search(&mut window, "!coffee");
    wait_for(&mut window, "7 of 8 images");
    window.state_mut().command(Action::SelectCover);
    wait_for(&mut window, "Select images");
    window.get_by_role_and_label(Role::SpinButton, "Count").focus();
    window.run_steps(2);
    window.event(egui::Event::Text("3".to_owned()));
    window.key_press(Key::Enter);
    window.run_steps(2);
    window.get_by_role_and_label(Role::Button, "Select images").click();
    wait_for(&mut window, "Selected 3 of 7 images");
    assert!(sees(&window, "/Reshape_output_0"));
    let state = window.state().state();
    let chosen: Vec<SampleId> = state.selection.selected().iter().collect();
    let is_found = |id: &SampleId| !state.samples.get(*id).unwrap().name.contains("coffee");
    assert!(chosen.len() == 3 && chosen.iter().all(is_found), "{chosen:?}");
    assert!(chosen.contains(&state.shown_sample().unwrap()));
}

#[test]
fn search_names_the_image_to_compare_with() {
    let mut window = open(Some(&samples()), CLASSIFIER);
    predict_samples(&mut window);
    search(&mut window, "alike:Coffee.png alike>0.9");
    wait_for(&mut window, "1 of 8 images");
    wait_until(&mut window, "the named image", |window| names_on_screen(window) == ["coffee.png"]);
    click(&mut window, "Clear search");
    window.step();
    search(&mut window, "alike:nowhere.png");
    wait_until(&mut window, "no image", |window| names_on_screen(window).is_empty());
}

/// The boxes of the filmstrip with their similarities.
fn similar_boxes(window: &Harness<'static, App>) -> Vec<(SampleId, FilmBox, f32)> {
    let strip = window.state().state().filmstrip.as_ref();
    let frames = strip.map_or(&[][..], |strip| strip.frames());
    frames.iter().filter_map(|frame| Some((frame.sample, frame.shows, frame.similarity?))).collect()
}

#[test]
fn similar_boxes_come_first_in_the_filmstrip() {
    let mut window = detected();
    window.state_mut().command(ReviewCommand::SelectBox(Some(0)));
    window.step();
    let shown = window.state().state().shown_sample().unwrap();
    window.key_press_modifiers(Modifiers::COMMAND | Modifiers::ALT, Key::L);
    wait_until(&mut window, "similar boxes", |window| !similar_boxes(window).is_empty());
    let found = similar_boxes(&window);
    assert_eq!((found[0].0, found[0].1), (shown, FilmBox::Predicted(0)));
    assert!(found.len() > 3 && found[0].2 > 0.99, "{found:?}");
    assert!(found.is_sorted_by(|left, right| left.2 >= right.2), "{found:?}");
    wait_for(&mut window, "1.00 ");
    // A moved box is compared by what is under it.
    let bounds = window.state().state().shown.prediction.as_ref().unwrap().detections()[0].bounds;
    let moved =
        BoundingBox::new(bounds.x1, bounds.y1, bounds.x1 + bounds.width() / 3.0, bounds.y1 + bounds.height() / 3.0);
    window.state_mut().command(ReviewCommand::MoveBox(moved));
    window.step();
    window.state_mut().command(Action::FindAlikeBoxes);
    wait_until(&mut window, "boxes similar to the moved one", |window| {
        similar_boxes(window).first().is_some_and(|best| best.2 < 0.99)
    });
    // A rectangle without a class, which stays none of the boxes.
    let boxes = window.state().state().shown.prediction.as_ref().unwrap().detections().len();
    let before = similar_boxes(&window);
    window.state_mut().command(ReviewCommand::DrawBox(bounds));
    wait_for_overlay(&mut window, Overlay::WrongClass);
    click(&mut window, "Find similar boxes");
    wait_until(&mut window, "boxes similar to the rectangle", |window| {
        let found = similar_boxes(window);
        found != before && found.first().is_some_and(|best| best.2 > 0.99)
    });
    let state = window.state().state();
    assert_eq!((state.overlay, state.shown.drawing), (Overlay::None, None));
    assert_eq!(state.shown.prediction.as_ref().unwrap().detections().len(), boxes);
    click(&mut window, "Most similar first");
    wait_until(&mut window, "boxes by score", |window| {
        let strip = window.state().state().filmstrip.as_ref();
        strip.is_some_and(|strip| strip.chosen.is_none() && !strip.frames().is_empty())
    });
}

#[test]
fn search_error_suggests_a_fix_and_keeps_images() {
    let mut window = open(Some(&samples()), CLASSIFIER);
    wait_for(&mut window, "8 images");
    search(&mut window, "scor>0.5");
    wait_until(&mut window, "the suggestion", |window| {
        let error = window.state().state().arranging.error();
        error.is_some_and(|error| error.message.contains("score?") && sees(window, &error.message))
    });
    assert_eq!(names_on_screen(&window).len(), 8);
}

#[test]
fn pasted_searches_are_parsed_or_refused() {
    let mut window = open(Some(&samples()), CLASSIFIER);
    wait_for(&mut window, "8 images");
    window.key_press(Key::Slash);
    window.run_steps(2);
    let mut paste = |text: String| {
        window.key_press_modifiers(Modifiers::COMMAND, Key::A);
        window.event(egui::Event::Paste(text));
        window.run_steps(3);
        let arranging = &window.state().state().arranging;
        (arranging.text().to_owned(), arranging.error().is_some())
    };
    for text in [
        "(".repeat(8000),
        "!".repeat(27_500),
        "(!".repeat(5000),
        "a or ".repeat(5000),
        "x".repeat(1_000_000),
        "class:".to_owned() + &"x".repeat(20_000),
        "\"é\\".repeat(4000),
    ] {
        let (taken, is_refused) = paste(text.clone());
        assert!(is_refused && text.starts_with(&taken), "{}", &text[..6]);
        assert!(taken.chars().count() <= Query::MAX_FIELD_LETTERS);
    }
    let long = "nowhere or ".repeat(800) + "chelsea";
    assert_eq!(paste(long.clone()), (long, false));
    wait_for(&mut window, "1 of 8 images");
    assert_eq!(names_on_screen(&window), ["chelsea.png"]);
}

#[test]
fn search_syntax_is_explained() {
    let mut window = open(Some(&samples()), CLASSIFIER);
    wait_for(&mut window, "8 images");
    click(&mut window, "Search syntax");
    wait_for(&mut window, "class:\"traffic light\"");
    assert!(sees(&window, "Not judged: "));
}

#[test]
fn class_name_is_completed() {
    let mut window = open(Some(&samples()), DETECTOR);
    wait_for(&mut window, "8 images");
    search(&mut window, "class:traff");
    wait_for(&mut window, "class:\"traffic light\"");
    window.key_press(Key::Tab);
    window.run_steps(3);
    let text = window.state().state().arranging.text().to_owned();
    assert_eq!(text, "class:\"traffic light\" ");
}

#[test]
fn select_all_selects_search_results() {
    let mut window = open(Some(&samples()), CLASSIFIER);
    wait_for(&mut window, "1 of 8 images");
    search(&mut window, ".png");
    window.key_press(Key::Enter);
    let pngs = std::fs::read_dir(samples()).unwrap().filter(|entry| {
        let path = entry.as_ref().unwrap().path();
        path.extension().is_some_and(|extension| extension == "png")
    });
    let pngs = pngs.count();
    wait_for(&mut window, &format!("{pngs} of 8 images"));
    window.key_press_modifiers(Modifiers::COMMAND, Key::A);
    wait_for(&mut window, &format!("{pngs} selected"));
    window.key_press(Key::End);
    wait_for(&mut window, &format!("{pngs} of {pngs} results"));
}

#[test]
fn images_are_sorted_and_reversed_by_menu() {
    let mut window = open(Some(&samples()), CLASSIFIER);
    wait_for(&mut window, "8 images");
    let listed = names_on_screen(&window);
    click(&mut window, "Sort: Folder order");
    click(&mut window, "File size (largest");
    wait_for(&mut window, "Sort: File size");
    let sizes = |window: &Harness<'static, App>| {
        let size = |name: &String| std::fs::metadata(samples().join(name)).unwrap().len();
        names_on_screen(window).iter().map(size).collect::<Vec<u64>>()
    };
    wait_until(&mut window, "the largest first", |window| sizes(window).is_sorted_by(|left, right| left >= right));
    click(&mut window, "Largest first");
    wait_until(&mut window, "the smallest first", |window| sizes(window).is_sorted());
    assert_ne!(names_on_screen(&window), listed);
}

#[test]
fn another_sort_shows_its_first_image() {
    let mut window = open(Some(&samples()), CLASSIFIER);
    wait_for(&mut window, "1 of 8 images");
    window.key_press(Key::End);
    wait_for(&mut window, "8 of 8 images");
    for (menu, sort) in [("Sort: Folder order", "File size (largest"), ("Largest first", "Largest first")] {
        click(&mut window, menu);
        if menu != sort {
            click(&mut window, sort);
        }
        wait_until(&mut window, "the order", |window| {
            let arranging = &window.state().state().arranging;
            arranging.sort().by == SortBy::Size && !arranging.is_under_way()
        });
        let state = window.state().state();
        assert_eq!(state.shown_sample(), state.order().at(0), "{sort}");
        window.key_press(Key::End);
        window.run_steps(3);
    }
}

#[test]
fn images_are_found_and_sorted_by_exif_data() {
    let camera = std::fs::read(repository().join("tests/cases/decode/jpeg-camera/image.jpg")).unwrap();
    let date = b"2026:05:01";
    let at = camera.windows(date.len()).position(|window| window == date).unwrap();
    let taken = |year: &[u8]| {
        let mut bytes = camera.clone();
        bytes[at..at + 4].copy_from_slice(year);
        bytes
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.jpg"), taken(b"2024")).unwrap();
    std::fs::write(folder.path().join("b.jpg"), taken(b"2023")).unwrap();
    std::fs::copy(samples().join("coffee.png"), folder.path().join("c.png")).unwrap();
    let mut window = open(Some(folder.path()), CLASSIFIER);
    wait_for(&mut window, "3 images");
    let reads = |window: &Harness<'static, App>| window.state().state().capture_reading != CaptureReading::Idle;
    assert!(!reads(&window), "nothing is read before it is needed");
    for (query, expected) in [
        ("taken>=2024", &["a.jpg"][..]),
        ("camera:nikon", &["a.jpg", "b.jpg"]),
        ("!taken", &["c.png"]),
        ("near:48.86,-2.29~2km taken:2023..2023-12", &["b.jpg"]),
        ("near:48.86,2.29~2km", &[]),
    ] {
        window.state_mut().command(SearchCommand::SetQuery(query.to_owned()));
        wait_until(&mut window, query, |window| names_on_screen(window) == expected);
    }
    let warnings = window.state().state().query_warnings();
    assert!(warnings.is_empty(), "{warnings:?}");
    click(&mut window, "Clear search");
    click(&mut window, "Sort: Folder order");
    click(&mut window, "Date taken (newest");
    wait_until(&mut window, "the newest first", |window| names_on_screen(window) == ["a.jpg", "b.jpg", "c.png"]);
    click(&mut window, "Newest first");
    wait_until(&mut window, "the oldest first", |window| names_on_screen(window) == ["b.jpg", "a.jpg", "c.png"]);
    std::fs::write(folder.path().join("a.jpg"), taken(b"2022")).unwrap();
    wait_until(&mut window, "the new date", |window| names_on_screen(window) == ["a.jpg", "b.jpg", "c.png"]);
}

/// A folder of images in several folders.
fn nested() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.jpg", "10/b.jpg", "9/c.jpg", "9/Deep/d.jpg", "9/Deep/e.jpg"] {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::copy(samples().join("rocket.jpg"), path).unwrap();
    }
    folder
}

fn tree_items(window: &Harness<'static, App>) -> Vec<String> {
    let items = window.query_all_by_role(Role::TreeItem);
    items.filter_map(|item| item.accesskit_node().label()).collect()
}

#[test]
fn folders_are_counted_and_limit_the_search() {
    let folder = nested();
    let mut window = open(Some(folder.path()), CLASSIFIER);
    wait_for(&mut window, "5 images");
    assert!(tree_items(&window).is_empty());
    window.state_mut().command(Action::ToggleFolders);
    let closed = ["All folders, 5 images", "9, 3 images", "10, 1 image"];
    wait_until(&mut window, "the folders", |window| tree_items(window) == closed);
    click(&mut window, "9, 3 images");
    wait_for(&mut window, "3 of 5 images");
    assert_eq!(window.state().state().arranging.text(), "folder:9");
    // The clicked tree has the focus.
    for (key, expected) in [
        (Key::ArrowRight, "folder:9"),
        (Key::ArrowDown, "folder:9/Deep"),
        (Key::End, "folder:10"),
        (Key::ArrowUp, "folder:9/Deep"),
        (Key::ArrowLeft, "folder:9"),
        (Key::Home, ""),
    ] {
        window.key_press(key);
        wait_until(&mut window, "the folder", |window| window.state().state().arranging.text() == expected);
    }
    let open = ["All folders, 5 images", "9, 3 images", "Deep, 2 images", "10, 1 image"];
    assert_eq!(tree_items(&window), open);
    window.state_mut().command(SearchCommand::SetQuery("jpg folder:10 or d.jpg".to_owned()));
    window.run_steps(3);
    click(&mut window, "Deep, 2 images");
    wait_for(&mut window, "2 of 5 images");
    click(&mut window, "Collapse 9");
    wait_until(&mut window, "the closed folder", |window| tree_items(window) == closed);
    std::fs::write(folder.path().join("10/f.jpg"), std::fs::read(folder.path().join("a.jpg")).unwrap()).unwrap();
    wait_until(&mut window, "the new image", |window| tree_items(window).contains(&"10, 2 images".to_owned()));
}

#[test]
fn folder_menu_searches_and_copies_the_path() {
    let folder = nested();
    let mut window = open(Some(folder.path()), CLASSIFIER);
    wait_for(&mut window, "5 images");
    window.state_mut().command(Action::ToggleFolders);
    wait_for(&mut window, "9, 3 images");
    let choose = |window: &mut Harness<'static, App>, entry: &str| {
        window.get_by_label("9, 3 images").click_secondary();
        wait_for(window, "Search in this folder");
        assert!(!window.get_by_label("Show folder in file manager").accesskit_node().is_disabled());
        window.get_by_label(entry).click();
        window.run_steps(3);
        assert!(!sees(window, "Search in this folder"), "the menu is closed");
    };
    choose(&mut window, "Copy folder path");
    wait_for_notice(&mut window, "Copied");
    assert_eq!(window.state().state().arranging.text(), "", "the search stays");
    choose(&mut window, "Search in this folder");
    assert_eq!(window.state().state().arranging.text(), "folder:9");
    // The same without the pointer.
    let copies = |window: &mut Harness<'static, App>, expected: &str| {
        window.state_mut().command(Action::CopyFolderPath);
        let is_copied =
            |command: &egui::OutputCommand| matches!(command, egui::OutputCommand::CopyText(text) if text == expected);
        wait_until(window, expected, |window| window.output().platform_output.commands.iter().any(is_copied));
    };
    copies(&mut window, folder.path().join("9").to_str().unwrap());
    window.state_mut().command(Action::ClearSearch);
    wait_for(&mut window, "5 images");
    copies(&mut window, folder.path().to_str().unwrap());
}

/// The number next to the threshold slider.
fn threshold_field<'w>(window: &'w Harness<'static, App>) -> egui_kittest::Node<'w> {
    let fields = window.query_all_by_role(Role::SpinButton);
    let mut fields = fields.filter(|field| field.value().as_deref() == Some("0.50"));
    fields.next().unwrap()
}

#[test]
fn typed_minimum_score_applies_when_complete() {
    let mut window = open(Some(&samples().join("coffee.png")), DETECTOR);
    wait_for(&mut window, "cup ");
    click(&mut window, "By class");
    wait_for(&mut window, MIN_SCORE_OF_CUP);
    let before = window.state().state().shown_boxes().len();
    threshold_field(&window).scroll_to_me();
    window.run_steps(3);
    threshold_field(&window).click();
    window.run_steps(3);
    for typed in ["0", ".", "2"] {
        window.event(egui::Event::Text(typed.to_owned()));
        window.run_steps(3);
        assert_eq!(window.state().state().view().min_score, 0.5, "{typed}");
    }
    window.key_press(Key::Enter);
    window.run_steps(5);
    let state = window.state().state();
    assert_eq!(state.view().min_score, 0.2);
    assert_eq!(state.view().min_score_by_class, [].into());
    let boxes = state.shown.prediction.as_ref().unwrap().detections().iter();
    let above = boxes.filter(|found| found.score >= 0.2).count();
    assert!(above > before, "{above}");
    assert_eq!(state.shown_boxes().len(), above);
}

#[test]
fn drawn_setting_stays_unchanged() {
    let mut window = open(Some(&samples().join("coffee.png")), DETECTOR);
    wait_for(&mut window, "cup ");
    // Below the model's own limit, which another version or card may allow.
    let state = window.state_mut();
    state.command(ReviewCommand::ChangeView(ViewChange::MinScore(0.0)));
    state.command(ReviewCommand::ChangeView(ViewChange::ClassMinScore(1, Some(0.0))));
    wait_for(&mut window, "300 boxes shown");
    wait_until_idle(&mut window);
    click(&mut window, "By class");
    wait_for(&mut window, MIN_SCORE_OF_CUP);
    window.run_steps(5);
    let view = window.state().state().view().into_owned();
    assert_eq!(view.min_score, 0.0);
    assert_eq!(view.min_score_by_class, [(1, 0.0)].into());
    // Opening and leaving a field changes nothing either.
    let field = |window: &Harness<'static, App>, act: &dyn Fn(&egui_kittest::Node<'_>)| {
        act(&window.get_by_label(MIN_SCORE_OF_CUP));
    };
    field(&window, &|node| node.scroll_to_me());
    window.run_steps(3);
    field(&window, &|node| node.click());
    window.run_steps(3);
    window.key_press(Key::Enter);
    window.run_steps(3);
    assert_eq!(*window.state().state().view(), view);
}

#[test]
fn quick_filter_toggles_broken_images() {
    let folder = folder_of(2, "chelsea.png");
    std::fs::write(folder.path().join("broken.jpg"), b"not an image").unwrap();
    let mut window = open(Some(folder.path()), CLASSIFIER);
    wait_for(&mut window, "Problems 1");
    click(&mut window, "Problems 1");
    wait_for(&mut window, "1 of 3 images");
    assert_eq!(names_on_screen(&window), ["broken.jpg"]);
    click(&mut window, "Problems 1");
    wait_until(&mut window, "all images", |window| names_on_screen(window).len() == 3);
}

#[test]
fn damaged_image_is_predicted_and_marked() {
    let folder = folder_of(2, "chelsea.png");
    let cases = repository().join("tests/cases/decode");
    for (case, name) in [("jpeg-hole-in-the-data", "damaged.jpg"), ("jpeg-lost-place", "suspect.jpg")] {
        std::fs::copy(cases.join(case).join("image.jpg"), folder.path().join(name)).unwrap();
    }
    let mut window = open(Some(folder.path()), CLASSIFIER);
    wait_for(&mut window, "4 images");
    click(&mut window, "Predict all");
    wait_for(&mut window, "Damaged 2");
    click(&mut window, "Damaged 2");
    wait_for(&mut window, "2 of 4 images");
    assert_eq!(names_on_screen(&window), ["damaged.jpg", "suspect.jpg"]);
    let ids: Vec<_> = window.state().state().order().ids().collect();
    for (id, start) in ids.into_iter().zip(["is damaged", "may be damaged"]) {
        let run = window.state().state().run().unwrap();
        assert_eq!(run.status(id), PredictionStatus::Predicted);
        assert!(matches!(run.warnings(id), [warning] if warning.starts_with(start)));
        // The image itself is shown with its warning.
        window.state_mut().command(BrowseCommand::Show(id));
        wait_until(&mut window, "the image's warning", |window| {
            let display = &window.state().state().shown.display;
            let warning = if let Display::Ready(info) = display { info.warning.as_deref() } else { None };
            warning.is_some_and(|warning| warning.starts_with(start))
        });
    }
}

#[test]
fn clicked_class_shows_images_with_it() {
    let mut window = detected();
    let rows = window.query_all_by_label_contains(", mean score ");
    let labels = rows.map(|row| row.accesskit_node().label().unwrap());
    let names: Vec<String> = labels.map(|label| label.split(", ").next().unwrap().to_owned()).collect();
    assert!(names.len() > 3, "{names:?}");
    for name in &names[..2] {
        // It may be scrolled out of view.
        window.get_by_label_contains(&format!("{name}, ")).click_accesskit();
        wait_until(&mut window, name, |window| {
            let arranging = &window.state().state().arranging;
            let term = arranging.text().trim().strip_prefix("class:");
            term.is_some_and(|term| term.trim_matches('"') == name) && !arranging.is_under_way()
        });
        // Brute force, from the complete predictions.
        let state = window.state().state();
        let run = state.run().unwrap();
        let class = run.labels().iter().find(|(_, label)| label == name).unwrap().0;
        let min_score = state.view().min_score;
        let shows = |id: &SampleId| {
            let summary = run.predictions.summary(*id).unwrap();
            summary.classes.iter().zip(summary.scores).any(|(found, score)| *found == class && *score >= min_score)
        };
        let expected: Vec<SampleId> = state.samples.ids().filter(shows).collect();
        assert!((1..8).contains(&expected.len()), "{name} is in {} images", expected.len());
        let mut found: Vec<SampleId> = state.order().ids().collect();
        found.sort();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn histogram_follows_the_minimum_score() {
    let mut window = detected();
    let above = |window: &Harness<'static, App>| {
        let statistics = window.state().state().arranging.statistics().cloned();
        statistics.expect("counted").boxes_above
    };
    let at_half = above(&window);
    assert!(at_half > 0);
    wait_for(&mut window, &format!("{at_half} boxes shown in "));
    window.state_mut().command(ReviewCommand::ChangeView(spotcheck::window::state::ViewChange::MinScore(0.05)));
    wait_until(&mut window, "more boxes", |window| above(window) > at_half);
    // Brute force, from the complete predictions.
    let state = window.state().state();
    let run = state.run().unwrap();
    let shown = state.samples.ids().filter_map(|id| run.predictions.summary(id));
    let boxes = shown.flat_map(|summary| summary.scores.to_vec());
    assert_eq!(above(&window), boxes.filter(|score| *score >= 0.05).count());
}

#[test]
fn classifier_has_filters() {
    let mut window = open(Some(&samples()), CLASSIFIER);
    wait_for(&mut window, "8 images");
    click(&mut window, "Predict all");
    wait_for(&mut window, "Classes in 8 images");
    wait_for(&mut window, "8 of 8 images above");
    window.state_mut().command(ReviewCommand::ChangeView(spotcheck::window::state::ViewChange::MinClassScore(1.0)));
    wait_for(&mut window, "none above 100%");
    wait_for(&mut window, "None above");
}

#[test]
fn search_results_alone_are_predicted() {
    let mut window = open(None, DETECTOR);
    let app = window.state_mut();
    app.command(InferenceCommand::SetPredictOnOpen(false));
    app.command(BrowseCommand::Open(samples()));
    wait_for(&mut window, "8 images");
    search(&mut window, "!chelsea");
    wait_for(&mut window, "7 of 8 images");
    click(&mut window, "Predict filtered");
    wait_until(&mut window, "seven predictions", |window| {
        let run = window.state().state().run();
        run.is_some_and(|run| run.predictions.predicted() >= 7)
    });
    wait_until_idle(&mut window);
    let state = window.state().state();
    let predictions = &state.run().unwrap().predictions;
    let is_unpredicted = |id: &SampleId| predictions.summary(*id).is_none();
    let unpredicted = state.samples.ids().filter(is_unpredicted);
    let names: Vec<&str> = unpredicted.map(|id| &*state.samples.get(id).unwrap().name).collect();
    assert_eq!(names, ["chelsea.png"]);
}

#[test]
fn suppressed_boxes_are_in_no_count() {
    let mut window = open(Some(&samples()), "ssd-mobilenet-coco");
    predict_samples(&mut window);
    wait_for(&mut window, "All saved");
    // This keeps the complete predictions of all cells on screen in memory.
    window.state_mut().command(Action::ToggleThumbnailBoxes);
    let view = |change| Command::Review(ReviewCommand::ChangeView(change));
    let state = window.state_mut();
    state.command(view(ViewChange::MinScore(0.02)));
    state.command(view(ViewChange::NmsIou(Some(0.1))));
    wait_until(&mut window, "the overlaps", |window| {
        let state = window.state().state();
        let in_memory = state.samples.ids().filter(|sample| state.prediction_of(*sample).is_some());
        state.suppressed().is_some_and(|hidden| hidden.known() == 8) && in_memory.count() == 8
    });
    let state = window.state().state();
    let mut hidden = 0;
    for sample in state.samples.ids() {
        let whole = state.prediction_of(sample).unwrap();
        let run = state.run().unwrap();
        let visible = state.visible_boxes(run.id(), sample, whole).len();
        let marks = state.judgments.marks();
        let headline = run.headline(sample, &state.view(), state.suppressed(), marks);
        assert!(headline.unwrap().starts_with(&format!("{visible} box")));
        hidden += whole.detections().iter().filter(|found| found.score >= 0.02).count() - visible;
    }
    assert!(hidden > 0, "some boxes overlap");
    wait_until(&mut window, "exact counts", |window| {
        let statistics = window.state().state().arranging.statistics();
        statistics.is_some_and(|statistics| statistics.is_exact)
    });
}

#[test]
fn minimum_score_stays_in_its_project() {
    let (one, other) = (folder_of(1, "coffee.png"), folder_of(1, "coffee.png"));
    let mut window = open(Some(one.path()), DETECTOR);
    wait_for(&mut window, "1 predicted");
    wait_until(&mut window, "the project", |window| window.state().state().project.is_writable());
    window.state_mut().command(ReviewCommand::ChangeView(ViewChange::MinScore(0.25)));
    wait_for(&mut window, "All saved");
    let min_score = |window: &Harness<'static, App>| window.state().state().view().min_score;
    for (folder, expected) in [(&other, 0.5), (&one, 0.25), (&other, 0.5)] {
        window.state_mut().command(BrowseCommand::Open(folder.path().to_owned()));
        wait_for(&mut window, "1 predicted");
        wait_until_idle(&mut window);
        assert_eq!(min_score(&window), expected);
    }
}
