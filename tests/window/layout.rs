//! Controls stay in place, texts are complete, and nothing covers anything that must be readable.

use std::collections::{BTreeMap, BTreeSet};

use egui::accesskit::Role;
use egui::epaint::{ClippedShape, Shape, text::cursor::CCursor};
use egui::{AreaState, Color32, Event, Id, Key, Modifiers, Pos2, Rect, Vec2};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};
use spotcheck::dirs::AppDirs;
use spotcheck::domain::Verdict;
use spotcheck::review::{Sort, SortBy};
use spotcheck::window::app::App;
use spotcheck::window::state::{
    Action, BrowseCommand, Command, EvaluationCommand, InferenceCommand, ModelsCommand, Overlay, ReviewCommand,
    SearchCommand, ViewChange,
};

use crate::adding_models::{drop_case, wait_until_tried};
use crate::comparing::two_runs;
use crate::support::runtime_home;
use crate::truth::{open_truth, truth_of_samples};
use crate::window::{
    click, folder_of, home_with_runtime, open, open_at, open_with, samples, sees, wait_for, wait_for_notice,
    wait_until, wait_until_idle,
};

const CLASSIFIER: &str = "efficientnet-lite0";
const DETECTOR: &str = "ssd-mobilenet-coco";
/// The fill of the badge of an accepted image.
const ACCEPTED: Color32 = Color32::from_rgb(0x3d, 0xcf, 0x8e);

/// A text as painted in the last frame.
#[derive(Debug, Clone)]
struct Painted {
    text: String,
    rect: Rect,
    size: f32,
    is_cut: bool,
}

pub(crate) fn shapes(window: &Harness<'static, App>) -> Vec<Shape> {
    fn flat(shape: &Shape, into: &mut Vec<Shape>) {
        match shape {
            Shape::Vec(shapes) => shapes.iter().for_each(|shape| flat(shape, into)),
            shape => into.push(shape.clone()),
        }
    }
    let mut all = Vec::new();
    for ClippedShape { shape, .. } in &window.output().shapes {
        flat(shape, &mut all);
    }
    all
}

fn painted(window: &Harness<'static, App>) -> Vec<Painted> {
    let texts = shapes(window).into_iter().filter_map(|shape| {
        let Shape::Text(text) = shape else {
            return None;
        };
        let sections = &text.galley.job.sections;
        Some(Painted {
            text: text.galley.text().to_owned(),
            rect: text.galley.rect.translate(text.pos.to_vec2()),
            size: sections.first().map_or(0.0, |section| section.format.font_id.size),
            is_cut: text.galley.elided,
        })
    });
    texts.collect()
}

const SORT_BY_CLASS: &str = "Sort classes by";

/// Checks that a text is completely on screen.
#[track_caller]
fn must_be_shown_in_full(window: &Harness<'static, App>, text: &str) {
    let all = painted(window);
    let found: Vec<_> = all.iter().filter(|painted| painted.text.contains(text)).collect();
    assert!(!found.is_empty(), "“{text}”: {all:#?}");
    assert!(found.iter().any(|painted| !painted.is_cut), "{found:#?}");
}

#[track_caller]
fn must_be_apart(labels: &[Painted]) {
    for (at, label) in labels.iter().enumerate() {
        for other in &labels[..at] {
            let shared = label.rect.shrink(0.5).intersect(other.rect.shrink(0.5));
            assert!(!shared.is_positive(), "{label:?} covers {other:?}");
        }
    }
}

fn sized(width: f32, height: f32, model: &str) -> Harness<'static, App> {
    open_with(Some(&samples()), model, |builder| builder.with_size((width, height)))
}

/// The detector has predicted all samples, and all motion has ended.
fn all_predicted(mut window: Harness<'static, App>) -> Harness<'static, App> {
    wait_for(&mut window, "1 predicted");
    window.state_mut().command(Action::PredictAll);
    wait_for(&mut window, "8 predicted");
    wait_until_idle(&mut window);
    window.run_steps(4);
    window
}

fn rect_of(window: &Harness<'static, App>, role: Role, name: &str) -> Rect {
    let found = window
        .query_all_by_role(role)
        .find(|node| node.accesskit_node().label().is_some_and(|label| label.starts_with(name)));
    found.unwrap_or_else(|| panic!("there is no {name}")).rect()
}

fn section(window: &Harness<'static, App>, name: &str) -> Rect {
    let found = window.query_all_by_label(name).next();
    found.unwrap_or_else(|| panic!("there is no {name}")).rect()
}

/// The controls used on image after image.
fn controls(window: &Harness<'static, App>) -> [(&'static str, Rect); 4] {
    [
        ("threshold", rect_of(window, Role::Slider, "Minimum score")),
        ("classes", rect_of(window, Role::Button, SORT_BY_CLASS)),
        ("grid", rect_of(window, Role::ListBox, "Images, ")),
        ("picture", rect_of(window, Role::Image, "Image ")),
    ]
}

#[test]
fn score_slider_and_class_table_stay_in_place() {
    let mut window = all_predicted(open(Some(&samples()), DETECTOR));
    window.get_by_label("By class").scroll_to_me();
    window.run_steps(20);
    let before = controls(&window);
    window.state_mut().command(ReviewCommand::ChangeView(ViewChange::MinScore(0.05)));
    let mut counts = BTreeSet::new();
    for _ in 0..8 {
        wait_until_idle(&mut window);
        window.run_steps(4);
        assert_eq!(controls(&window), before);
        let state = window.state().state();
        let prediction = state.shown.prediction.as_ref().unwrap();
        let visible = prediction.detections().iter().filter(|found| found.score >= 0.05);
        counts.insert(visible.count());
        window.key_press(Key::CloseBracket);
        window.run_steps(4);
        assert_eq!(controls(&window), before, "a box enlarged");
        window.key_press(Key::Escape);
        window.step();
        window.key_press(Key::ArrowRight);
        window.run_steps(4);
    }
    assert!(counts.len() > 3, "images with few and many results: {counts:?}");
}

#[test]
fn first_predictions_do_not_shift_the_layout() {
    let mut window = open(None, DETECTOR);
    window.state_mut().command(InferenceCommand::SetPredictOnOpen(false));
    window.state_mut().command(BrowseCommand::Open(samples()));
    wait_for(&mut window, "8 images");
    wait_for(&mut window, "All 8");
    wait_until_idle(&mut window);
    wait_until(&mut window, "the image", |window| window.query_all_by_role(Role::Image).next().is_some());
    let [threshold, _, grid, image] = {
        let slider = rect_of(&window, Role::Slider, "Minimum score");
        let grid = rect_of(&window, Role::ListBox, "Images, ");
        [slider, slider, grid, rect_of(&window, Role::Image, "Image ")]
    };
    let results = section(&window, "Results");
    window.state_mut().command(Action::PredictAll);
    wait_for(&mut window, "8 predicted");
    wait_until_idle(&mut window);
    window.run_steps(4);
    let now = controls(&window);
    assert_eq!([now[0].1, now[2].1, now[3].1], [threshold, grid, image]);
    assert_eq!(section(&window, "Results"), results);
}

#[test]
fn new_chips_do_not_move_thumbnails() {
    let mut window = all_predicted(open(Some(&samples()), DETECTOR));
    let before = controls(&window);
    window.key_press(Key::A);
    wait_for(&mut window, "Accepted 1");
    window.key_press(Key::R);
    wait_for(&mut window, "2 of 8 images judged");
    wait_until_idle(&mut window);
    window.run_steps(4);
    assert_eq!(controls(&window), before, "with chips");
    let query = Command::Search(SearchCommand::SetQuery("score>0.5".to_owned()));
    window.state_mut().command(query);
    wait_for(&mut window, "of 8 images");
    wait_for(&mut window, "Predict filtered");
    wait_until_idle(&mut window);
    window.run_steps(4);
    assert_eq!(controls(&window), before, "with a search");
}

#[test]
fn task_in_the_status_bar_takes_no_image_room() {
    let folder = folder_of(60, "coffee.png");
    let mut window = open(Some(folder.path()), DETECTOR);
    wait_for(&mut window, "1 predicted");
    wait_until_idle(&mut window);
    window.run_steps(4);
    let before = controls(&window);
    window.state_mut().command(Action::PredictAll);
    wait_for(&mut window, "Predict 59 images with ");
    assert_eq!(controls(&window), before, "as the task starts");
    assert!(!window.state().state().settings.show_tasks_panel);
    click(&mut window, "Predict 59 images with ");
    wait_for(&mut window, "Pause");
    assert!(window.state().state().settings.show_tasks_panel);
    window.state_mut().command(Action::ToggleTasks);
    wait_for(&mut window, "60 predicted");
    wait_until_idle(&mut window);
    window.run_steps(4);
    assert_eq!(controls(&window), before, "after the task");
}

#[test]
fn long_file_name_keeps_both_ends() {
    let folder = folder_of(1, "coffee.png");
    let long = "street_camera_north_2024-05-17_14-03-22_frame_000123.png";
    std::fs::rename(folder.path().join("0-coffee.png"), folder.path().join(long)).unwrap();
    std::fs::copy(samples().join("coffee.png"), folder.path().join("b.png")).unwrap();
    std::fs::copy(samples().join("coffee.png"), folder.path().join("grace_hopper.jpg")).unwrap();
    let mut window = open_with(Some(folder.path()), DETECTOR, |builder| builder.with_size((1000.0, 700.0)));
    let title = |window: &Harness<'static, App>| {
        let bar = rect_of(window, Role::Button, "Next image");
        let mut texts = painted(window);
        texts.retain(|painted| bar.y_range().contains(painted.rect.center().y));
        texts.into_iter().map(|painted| painted.text).collect::<Vec<_>>()
    };
    wait_for(&mut window, "3 images");
    for (name, is_whole) in [("b.png", true), ("grace_hopper.jpg", true), (long, false)] {
        click(&mut window, &format!("{name}, "));
        wait_for(&mut window, "cup ");
        window.run_steps(2);
        let texts = title(&window);
        let is_name = |text: &String| {
            text == name
                || text.split_once('…').is_some_and(|(head, tail)| {
                    head.len() >= 6 && name.starts_with(head) && name.ends_with(tail) && tail.len() >= 6
                })
        };
        assert!(texts.iter().any(is_name), "{texts:?}");
        assert_eq!(texts.contains(&name.to_owned()), is_whole, "{texts:?}");
        assert!(sees(&window, name), "those who hear it hear all of it");
    }
}

#[test]
fn verdict_is_shown_in_full() {
    let mut window = sized(1440.0, 900.0, DETECTOR);
    wait_for(&mut window, "8 images");
    click(&mut window, "coffee.png, ");
    wait_for(&mut window, "dining table ");
    window.state_mut().command(ReviewCommand::SelectBox(Some(1)));
    wait_for(&mut window, "Box “dining table”");
    must_be_shown_in_full(&window, "Box “dining table”");
    must_be_shown_in_full(&window, "not judged");
    let verdict = Verdict::WrongClass("refrigerator".to_owned());
    window.state_mut().command(ReviewCommand::SelectBox(Some(1)));
    window.state_mut().command(ReviewCommand::SetVerdict(Some(verdict)));
    window.run_steps(3);
    // In the list of results.
    must_be_shown_in_full(&window, "≠ dining table → refrigerator");
    window.state_mut().command(ReviewCommand::SelectBox(Some(1)));
    wait_for(&mut window, "is “refrigerator”");
    must_be_shown_in_full(&window, "is “refrigerator”");
}

#[test]
fn comparison_export_names_both_runs() {
    let folder = folder_of(3, "chelsea.png");
    let mut window = two_runs(CLASSIFIER, folder.path());
    click(&mut window, "Compare with EfficientNet-Lite0");
    wait_for(&mut window, "100.0% agree");
    window.state_mut().command(Action::ExportComparison);
    wait_for(&mut window, "Export comparison");
    window.run_steps(3);
    let state = window.state().state();
    let comparing = state.comparing.as_ref().unwrap();
    let name = |run| state.runs.get(run).unwrap().info.name.clone();
    let subtitle = format!("A: {}\nB: {}", name(comparing.left), name(comparing.right));
    must_be_shown_in_full(&window, &subtitle);
}

/// The labels of boxes painted on the canvas.
fn labels_on_canvas(window: &Harness<'static, App>) -> Vec<Painted> {
    let canvas = rect_of(window, Role::Image, "Image ");
    let mut texts = painted(window);
    texts.retain(|painted| painted.size == 12.0 && canvas.contains_rect(painted.rect));
    texts
}

#[test]
fn labels_do_not_overlap_in_a_crowd() {
    let mut window = open(Some(&samples().join("grace_hopper.jpg")), DETECTOR);
    wait_for(&mut window, "person ");
    let lower = ViewChange::MinScore(0.03);
    window.state_mut().command(ReviewCommand::ChangeView(lower));
    window.run_steps(3);
    let labels = labels_on_canvas(&window);
    assert!(labels.len() > 10, "{labels:#?}");
    must_be_apart(&labels);
    let best = window.state().state().shown.prediction.as_ref().unwrap().detections()[0].clone();
    let best = format!("{} {:.0}%", best.label, best.score * 100.0);
    assert!(labels.iter().any(|label| label.text == best), "{labels:#?}");
    // A box without a label shows it while it is selected.
    let last = window.state().state().shown.prediction.as_ref().unwrap();
    let last = last.detections().iter().rposition(|found| found.score >= 0.03).unwrap();
    window.state_mut().command(ReviewCommand::SelectBox(Some(last)));
    window.run_steps(3);
    assert_eq!(labels_on_canvas(&window).len(), 1);
    window.state_mut().command(ReviewCommand::SelectBox(None));
    window.run_steps(3);
    assert_eq!(labels_on_canvas(&window).len(), labels.len(), "the same ones again");

    window.key_press(Key::F11);
    wait_for(&mut window, "Escape exits");
    wait_for(&mut window, &best);
    let mut labels = painted(&window);
    labels.retain(|label| label.size >= 16.0 && label.text.chars().any(char::is_alphabetic));
    labels.retain(|label| !label.text.contains("Escape"));
    assert!(labels.len() > 5, "{labels:#?}");
    must_be_apart(&labels);
}

#[test]
fn legend_covers_no_label() {
    let folder = folder_of(3, "coffee.png");
    let mut window = two_runs(DETECTOR, folder.path());
    click(&mut window, "Compare with ");
    click(&mut window, "Show the image");
    wait_for(&mut window, "B, dashed: ");
    // In a low image, the best position of a label is where the legend is.
    window.state_mut().command(Action::Filmstrip);
    for height in [860.0, 700.0] {
        window.set_size(Vec2::new(1000.0, height));
        window.run_steps(6);
        let mut labels = labels_on_canvas(&window);
        assert!(labels.len() > 2, "a legend and two boxes: {labels:#?}");
        must_be_apart(&labels);
        labels.retain(|label| label.text.ends_with('%'));
        assert_eq!(labels.len(), 2, "{labels:#?}");
    }
}

#[test]
fn verdict_sign_covers_no_thumbnail_or_label() {
    let mut window = all_predicted(open(Some(&samples()), DETECTOR));
    let boxes = Action::ToggleThumbnailBoxes;
    window.state_mut().command(boxes);
    window.key_press(Key::A);
    wait_for(&mut window, "1 of 8 images judged");
    wait_until_idle(&mut window);
    window.run_steps(4);
    let grid = rect_of(&window, Role::ListBox, "Images, ");
    let all = shapes(&window);
    let signs: Vec<Rect> = all
        .iter()
        .filter_map(|shape| match shape {
            Shape::Circle(circle) if circle.fill == ACCEPTED => Some(circle.visual_bounding_rect()),
            _ => None,
        })
        .filter(|sign| grid.contains(sign.center()))
        .collect();
    assert_eq!(signs.len(), 1);
    let thumbnails = all.iter().filter_map(|shape| match shape {
        Shape::Rect(rect) if rect.brush.is_some() => Some(rect.rect),
        _ => None,
    });
    let labels = painted(&window).into_iter().map(|painted| painted.rect);
    let covered: Vec<Rect> = thumbnails.chain(labels).filter(|rect| rect.intersect(signs[0]).is_positive()).collect();
    assert!(covered.is_empty(), "{signs:?} covers {covered:?}");
}

pub(crate) fn wheel(window: &mut Harness<'static, App>, points: f32) {
    window.event(Event::MouseWheel {
        unit: egui::MouseWheelUnit::Point,
        delta: Vec2::new(0.0, points),
        phase: egui::TouchPhase::Move,
        source: egui::MouseWheelSource::Unknown,
        modifiers: Modifiers::NONE,
    });
    // Until all motion has ended.
    window.run_steps(20);
}

#[test]
fn wheel_scrolls_the_class_table_under_the_pointer() {
    let mut window = all_predicted(sized(1000.0, 500.0, DETECTOR));
    let lower = ViewChange::MinScore(0.01);
    window.state_mut().command(ReviewCommand::ChangeView(lower));
    wait_until_idle(&mut window);
    window.run_steps(4);
    let header = |window: &Harness<'static, App>| rect_of(window, Role::Button, SORT_BY_CLASS);
    let first_row = |window: &Harness<'static, App>| {
        let rows = window.query_all_by_label_contains(", mean score ");
        let tops = rows.map(|row| row.rect().top());
        tops.fold(f32::INFINITY, f32::min) - header(window).bottom()
    };
    let name_of_first = |window: &Harness<'static, App>| {
        let mut rows = window.query_all_by_label_contains(", mean score ");
        rows.next().and_then(|row| row.accesskit_node().label())
    };
    // The pointer rests in the panel, and the table moves under it.
    let at_rest = first_row(&window);
    let pointer = Pos2::new(header(&window).center().x, 130.0);
    window.hover_at(pointer);
    window.run_steps(4);
    for _ in 0..60 {
        if header(&window).bottom() < pointer.y - 30.0 {
            break;
        }
        wheel(&mut window, -20.0);
        assert_eq!(first_row(&window), at_rest, "the table moved");
    }
    let top = header(&window).top();
    assert!(top < pointer.y, "the panel did not move");
    // With the pointer on the table, the wheel moves the table rather than the panel.
    let first = name_of_first(&window);
    window.hover_at(pointer + Vec2::new(3.0, 0.0));
    window.run_steps(4);
    for _ in 0..3 {
        wheel(&mut window, -60.0);
    }
    assert_eq!(header(&window).top(), top);
    assert_ne!(name_of_first(&window), first);
}

#[test]
fn dialog_is_centered_from_its_first_frame() {
    let mut window = open(Some(&samples()), DETECTOR);
    wait_for(&mut window, "1 predicted");
    wait_until_idle(&mut window);
    window.state_mut().command(ReviewCommand::SelectBox(Some(0)));
    let dialogs = [
        (Action::Export, "export"),
        (Action::Help, "help"),
        (Action::WrongClass, "wrong class"),
        (Action::OpenS3, "open s3"),
        (Action::Upload, "upload"),
    ];
    // The second time, its size from the first time is known, which may be different now.
    for (action, id) in dialogs.into_iter().chain(dialogs) {
        window.state_mut().command(action);
        for frame in 1..6 {
            window.step();
            let state = AreaState::load(&window.ctx, Id::unique(id)).expect("it is open");
            let apart = state.rect().center() - window.ctx.content_rect().center();
            assert!(apart.x.abs() <= 1.0 && apart.y.abs() <= 1.0, "{id}, frame {frame}: {apart:?} from the middle");
        }
        window.key_press(Key::Escape);
        window.run_steps(3);
        window.set_size(Vec2::new(1000.0, 700.0));
        window.run_steps(3);
    }
}

#[test]
fn judging_buttons_share_lines() {
    let mut window = sized(1000.0, 700.0, DETECTOR);
    wait_for(&mut window, "1 predicted");
    let buttons = [
        "Accept",
        "Reject",
        "Unsure",
        "Wrong class",
        "Clear verdict",
        "Next unjudged",
        "Next uncertain",
        "Undo",
        "Redo",
    ];
    for step in 0..8 {
        window.run_steps(4);
        let mut lines: BTreeMap<i32, Vec<&str>> = BTreeMap::new();
        for button in buttons {
            let found = window.query_all_by_role(Role::Button).find(|node| {
                let label = node.accesskit_node().label().unwrap_or_default();
                label.contains(button) && node.rect().top() > window.ctx.content_rect().center().y
            });
            let rect = found.unwrap_or_else(|| panic!("{button}")).rect();
            assert!(window.ctx.content_rect().contains_rect(rect), "{button} {rect:?}");
            lines.entry(rect.center().y as i32).or_default().push(button);
        }
        let is_alone = lines.values().any(|line| line.len() == 1);
        assert!(!is_alone, "step {step}: {lines:?}");
        window.state_mut().command(Action::InterfaceLarger);
    }
}

struct Nowhere;

impl eframe::Storage for Nowhere {
    fn get_string(&self, _: &str) -> Option<String> {
        None
    }
    fn set_string(&mut self, _: &str, _: String) {}
    fn remove_string(&mut self, _: &str) {}
    fn flush(&mut self) {}
}

#[test]
fn dismissed_offer_is_not_repeated() {
    let home = tempfile::tempdir().unwrap();
    let dirs = AppDirs { data: AppDirs::below(runtime_home()).data, ..AppDirs::below(home.path()) };
    let open = || {
        let mut window = open_at(dirs.clone(), |builder| builder);
        let choose = Command::Models(ModelsCommand::Choose(DETECTOR.to_owned()));
        window.state_mut().command(choose);
        wait_until(&mut window, "the models", |window| window.state().state().models.is_listed());
        window.run_steps(2);
        window
    };
    let mut window = open();
    wait_for(&mut window, "more accurate");
    click(&mut window, "Dismiss the offer");
    wait_until(&mut window, "the offer to go", |window| !sees(window, "more accurate"));
    eframe::App::save(window.state_mut(), &mut Nowhere);
    drop(window);
    let window = open();
    assert!(sees(&window, "SSD MobileNet v2"));
    assert!(!sees(&window, "more accurate"));
    assert!(window.state().state().models.offered_upgrade().is_some());
}

#[test]
fn evaluation_stays_clear_of_side_panels() {
    let folder = tempfile::tempdir().unwrap();
    let mut window = all_predicted(open(Some(&samples()), DETECTOR));
    open_truth(&mut window, truth_of_samples(folder.path()));
    window.state_mut().command(EvaluationCommand::ShowPanel(true));
    // The last one is 1024 x 700 at 150%, the ones before are 1360 x 850 and 1440 x 900 at 150%.
    for size in [[1024.0, 700.0], [1360.0, 850.0], [960.0, 600.0], [907.0, 567.0], [683.0, 467.0]] {
        window.set_size(Vec2::from(size));
        window.run_steps(10);
        let left = rect_of(&window, Role::ListBox, "Images, ").right();
        let right = section(&window, "Filters").left();
        if size[0] >= 860.0 {
            assert!(right - left >= 438.0, "{size:?}: {}", right - left);
        }
        for name in [
            "Ground truth",
            "Export evaluation…",
            "Show the image",
            "Overview",
            "Class matching",
            "AP ",
            "Precision ",
            "Precision-recall curve",
            "F1 by minimum",
        ] {
            // In a menu next to the title, which has no room for it.
            if name == "Export evaluation…" && size[0] < 700.0 {
                continue;
            }
            let nodes = window.query_all_by_label_contains(name);
            let rects: Vec<Rect> = nodes.map(|node| node.rect()).collect();
            let is_inside = |rect: &Rect| rect.left() >= left && rect.right() <= right;
            assert!(rects.iter().any(is_inside), "{size:?}: {name} {rects:?} {left} {right}");
        }
    }
}

#[test]
fn assumptions_take_one_line_until_confirmed() {
    const ASSUMED: &str = "of this model";
    let home = tempfile::tempdir().unwrap();
    let dirs = home_with_runtime(home.path());
    let mut window = open_at(dirs.clone(), |builder| builder);
    window.state_mut().command(BrowseCommand::Open(samples().join("chelsea.png")));
    drop_case(&mut window, "keras-cifar10");
    wait_until_tried(&mut window);
    click(&mut window, "Add this model");
    wait_for_notice(&mut window, "model");
    wait_for(&mut window, ASSUMED);
    wait_until_idle(&mut window);
    window.run_steps(4);
    let notice = section(&window, "Looks right");
    let slider = rect_of(&window, Role::Slider, "Minimum score");
    assert!(slider.bottom() - notice.top() < 220.0, "{notice:?} pushes {slider:?} down");
    click(&mut window, "Looks right");
    wait_until(&mut window, "the notice to go", |window| !sees(window, ASSUMED));
    eframe::App::save(window.state_mut(), &mut Nowhere);
    drop(window);
    let mut window = open_at(dirs, |builder| builder);
    wait_until(&mut window, "the models", |window| window.state().state().models.is_listed());
    window.run_steps(2);
    let state = window.state().state();
    assert!(!state.models.chosen().unwrap().card.assumed.is_empty());
    assert!(!sees(&window, ASSUMED));
}

#[test]
fn side_panels_restore_their_width() {
    let mut window = all_predicted(open(Some(&samples()), DETECTOR));
    let panels = |window: &Harness<'static, App>| {
        [rect_of(window, Role::ListBox, "Images, ").right(), section(window, "Filters").left()]
    };
    let wide = panels(&window);
    window.set_size(Vec2::new(900.0, 700.0));
    window.run_steps(6);
    let narrow = panels(&window);
    assert!(narrow[0] < wide[0] - 50.0, "{narrow:?}");
    window.set_size(Vec2::new(1360.0, 860.0));
    window.run_steps(6);
    assert_eq!(panels(&window), wide);
}

#[test]
fn tags_keep_the_judging_bar_height() {
    let mut window = all_predicted(open(Some(&samples()), DETECTOR));
    let before = controls(&window);
    for tag in ["a distant truck somewhere", "blurred at the edges", "night", "look again later", "front camera"] {
        window.state_mut().command(ReviewCommand::AddTag(tag.to_owned()));
    }
    wait_for(&mut window, "+");
    window.run_steps(4);
    assert_eq!(controls(&window)[2..], before[2..]);
    // The others are in a menu.
    click(&mut window, "+5");
    wait_for(&mut window, "tag look again later");
}

#[test]
fn filters_without_room_move_to_a_menu() {
    let folder = tempfile::tempdir().unwrap();
    let mut window = all_predicted(open(Some(&samples()), DETECTOR));
    open_truth(&mut window, truth_of_samples(folder.path()));
    for verdict in [Verdict::Accept, Verdict::Reject, Verdict::Unsure] {
        window.state_mut().command(ReviewCommand::SetVerdict(Some(verdict)));
        window.run_steps(2);
    }
    wait_for(&mut window, "3 of 8 images judged");
    assert!(!sees(&window, "No box 4"));
    click(&mut window, "More filters");
    click(&mut window, "No box 4");
    wait_until(&mut window, "the search", |window| window.state().state().arranging.text() == "boxes:0");
    // An active filter is on the line.
    wait_for(&mut window, "No box 4");
}

#[test]
fn notice_covers_neither_dialog_title_nor_legend() {
    let mut window = open(Some(&samples()), DETECTOR);
    wait_for(&mut window, "1 predicted");
    wait_until_idle(&mut window);
    window.state_mut().command(Action::Jobs);
    wait_for(&mut window, "No job selected");
    // Undo without an edit shows a notice.
    window.state_mut().command(Action::Undo);
    wait_for(&mut window, "Close this message");
    let notice = AreaState::load(&window.ctx, Id::unique("notice")).unwrap().rect();
    assert!(notice.top() > window.ctx.content_rect().center().y, "{notice}");
    // The legend and the pixel values are below the image.
    window.state_mut().command(Command::SetOverlay(Overlay::None));
    window.state_mut().command(Action::Undo);
    window.run_steps(4);
    let notice = AreaState::load(&window.ctx, Id::unique("notice")).unwrap().rect();
    assert!(notice.bottom() < window.ctx.content_rect().center().y, "{notice}");
}

/// Where a text that ends in `name` has the first letter of it, in points from the left.
fn left_of_name(window: &Harness<'static, App>, name: &str) -> f32 {
    let found = shapes(window).into_iter().find_map(|shape| match shape {
        Shape::Text(text) if text.galley.text().ends_with(name) => {
            let before = text.galley.text().chars().count() - name.chars().count();
            Some(text.pos.x + text.galley.pos_from_cursor(CCursor::new(before)).left())
        }
        _ => None,
    });
    found.unwrap_or_else(|| panic!("“{name}” is not on screen"))
}

#[test]
fn menu_items_are_aligned() {
    let mut window = open(Some(&samples()), CLASSIFIER);
    wait_for(&mut window, "1 predicted");
    click(&mut window, "View");
    window.run_steps(4);
    // On, off, and neither.
    let actions = [Action::ToggleImages, Action::LargeImage, Action::ZoomToBox];
    let states = actions.map(|action| action.is_on(window.state().state()));
    assert_eq!(states, [Some(true), Some(false), None]);
    let lefts = actions.map(|action| left_of_name(&window, action.label()));
    assert!(lefts.iter().all(|left| (left - lefts[0]).abs() < 1.5), "{lefts:?}");
}

#[test]
fn small_window_hides_no_widget() {
    let mut window = all_predicted(open(Some(&samples()), DETECTOR));
    // 1024 x 700, also at 150%.
    for size in [[1024.0, 700.0], [683.0, 467.0]] {
        window.set_size(Vec2::from(size));
        window.run_steps(10);
        // With a short name, and with a long one.
        for (by, direction) in [(SortBy::Boxes, "Most first"), (SortBy::Listing, "First to last")] {
            let sort = Sort { by, direction: by.default_direction() };
            window.state_mut().command(SearchCommand::SetSort(sort));
            wait_until_idle(&mut window);
            window.run_steps(4);
            let rect = |role, name| rect_of(&window, role, name);
            let left = [
                rect(Role::Button, "Open folder"),
                rect(Role::Button, "Recent"),
                rect(Role::Button, "Predict all"),
                rect(Role::Button, "Sort: "),
                rect(Role::Button, direction),
                rect(Role::Slider, "Thumbnail size"),
            ];
            for (index, one) in left.iter().enumerate() {
                for other in &left[..index] {
                    let shared = one.shrink(0.5).intersect(other.shrink(0.5));
                    assert!(!shared.is_positive(), "{size:?}, {by:?}: {one} covers {other}");
                }
            }
        }
        let rect = |role, name| rect_of(&window, role, name);
        let zoom = ["Zoom out", "Zoom in", "Fit image", "Actual size"].map(|name| rect(Role::Button, name).center().y);
        assert!(zoom.iter().all(|y| (y - zoom[0]).abs() < 1.0), "{size:?}: {zoom:?}");
        window.state_mut().command(Action::Export);
        wait_for(&mut window, "Target file");
        window.run_steps(4);
        let export = rect_of(&window, Role::Button, "Export now");
        assert!(window.ctx.content_rect().contains_rect(export), "{size:?}: {export}");
        window.key_press(Key::Escape);
        window.run_steps(3);
    }
}
