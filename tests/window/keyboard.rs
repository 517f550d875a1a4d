//! Every view by keyboard and by name: what a screen reader reads aloud, and where Tab goes.

use egui::accesskit::{Action as Ability, NodeId, Role};
use egui::{Key, Modifiers};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};
use spotcheck::window::app::App;
use spotcheck::window::state::{Action, ReviewCommand, SearchCommand};

use crate::browsing::drop_on;
use crate::comparing::two_runs;
use crate::duplicates::with_copies;
use crate::remote::{self, OPEN};
use crate::support::alone::alone;
use crate::support::repository;
use crate::support::seaweed::Seaweed;
use crate::window::{click, folder_of, open, open_with, samples, sees, wait_for, wait_until, wait_until_idle};

const CLASSIFIER: &str = "efficientnet-lite0";
const DETECTOR: &str = "ssd-mobilenet-coco";
/// More stops than any view has; if Tab has not returned by then, it never does.
const MANY: usize = 400;

/// A widget that can be clicked, moved or typed into, as a screen reader presents it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Widget {
    id: NodeId,
    role: Role,
    name: String,
    /// Left and top.
    place: [i32; 2],
    can_have_focus: bool,
}

fn widget(node: &egui_kittest::Node<'_>) -> Widget {
    let place = node.rect().min;
    let node = node.accesskit_node();
    Widget {
        id: node.locate().0,
        role: node.role(),
        name: node.label().unwrap_or_default(),
        place: [place.x as i32, place.y as i32],
        can_have_focus: node.data().supports_action(Ability::Focus),
    }
}

fn widgets(window: &Harness<'static, App>) -> Vec<Widget> {
    let nodes = window.root().children_recursive();
    nodes
        .filter(|node| {
            let data = node.accesskit_node();
            let data = data.data();
            let can = |ability| data.supports_action(ability);
            // Selectable words, and bars that only the mouse drags.
            let is_passive = matches!(data.role(), Role::Label | Role::ScrollBar);
            let is_open = can(Ability::Focus) || can(Ability::Click);
            is_open && !data.is_disabled() && !is_passive
        })
        .map(|node| widget(&node))
        .collect()
}

fn focused(window: &Harness<'static, App>) -> Option<Widget> {
    let mut nodes = window.root().children_recursive();
    let found = nodes.find(|node| node.accesskit_node().is_focused())?;
    let found = widget(&found);
    (found.role != Role::Window).then_some(found)
}

/// Checks for a useful name: a word or a number, not a single symbol.
#[track_caller]
fn must_be_named(window: &Harness<'static, App>, view: &str) {
    let unnamed: Vec<Widget> =
        widgets(window).into_iter().filter(|widget| !widget.name.chars().any(char::is_alphanumeric)).collect();
    assert!(unnamed.is_empty(), "{view}: {unnamed:#?}");
}

/// The widgets that Tab visits until it returns to the first.
#[track_caller]
fn tab_round(window: &mut Harness<'static, App>, view: &str) -> Vec<Widget> {
    let mut seen: Vec<Widget> = Vec::new();
    for _ in 0..MANY {
        window.key_press(Key::Tab);
        window.step();
        // Nothing has the focus for a moment when a round restarts.
        let Some(widget) = focused(window) else {
            continue;
        };
        // The focused widget is scrolled into view, so it may have moved.
        if seen.first().is_some_and(|first| first.id == widget.id) {
            return seen;
        }
        seen.push(widget);
    }
    panic!("{view}: Tab never came back: {seen:#?}");
}

/// Checks that everything focusable is reached with Tab.
#[track_caller]
fn must_be_reachable(window: &mut Harness<'static, App>, view: &str) {
    let mut expected = widgets(window);
    expected.retain(|widget| widget.can_have_focus);
    let reached = tab_round(window, view);
    expected.retain(|widget| !reached.iter().any(|other| other.name == widget.name));
    assert!(expected.is_empty(), "{view}: Tab does not reach {expected:#?}");
}

/// Checks that everything that appeared since `before` has a name and is reached with Tab, and nothing else is.
#[track_caller]
fn walk_through(window: &mut Harness<'static, App>, before: &[Widget], view: &str) {
    window.run_steps(4);
    wait_until_idle(window);
    must_be_named(window, view);
    let was_there = |widget: &Widget| before.iter().any(|other| other.id == widget.id);
    let mut expected = widgets(window);
    expected.retain(|widget| widget.can_have_focus && !was_there(widget));
    assert!(!expected.is_empty(), "{view}: nothing came up");
    let stops = tab_round(window, view);
    let left: Vec<&Widget> = stops.iter().filter(|stop| was_there(stop)).collect();
    assert!(left.is_empty(), "{view}: Tab leaves it: {left:#?}");
    expected.retain(|widget| !stops.iter().any(|stop| stop.name == widget.name));
    assert!(expected.is_empty(), "{view}: Tab does not reach {expected:#?}");
}

#[track_caller]
fn escape_closes(window: &mut Harness<'static, App>, text: &str) {
    window.key_press(Key::Escape);
    wait_until(window, "Escape to close it", |window| !sees(window, text));
}

fn predicted() -> Harness<'static, App> {
    let mut window = open(Some(&samples()), DETECTOR);
    wait_for(&mut window, "1 predicted");
    window.state_mut().command(Action::PredictAll);
    wait_for(&mut window, "8 predicted");
    wait_until_idle(&mut window);
    window
}

fn check(window: &mut Harness<'static, App>, view: &str) {
    window.run_steps(4);
    wait_until_idle(window);
    must_be_named(window, view);
    must_be_reachable(window, view);
}

#[test]
fn widgets_have_names_and_are_reached_by_tab() {
    let mut window = open(None, DETECTOR);
    check(&mut window, "the empty window");
    let mut window = predicted();
    check(&mut window, "images and inspector");
    for section in ["All models", "Device"] {
        click(&mut window, section);
    }
    check(&mut window, "other inspector sections");
    let twice = [Action::ThumbnailsOnly, Action::Filmstrip, Action::Map].map(|action| [action; 2]);
    for action in twice.into_iter().flatten().chain([Action::LargeImage]) {
        window.state_mut().command(action);
        check(&mut window, action.label());
    }
}

#[test]
fn duplicate_groups_are_named_and_reachable() {
    let folder = tempfile::tempdir().unwrap();
    with_copies(folder.path());
    let mut window = open(Some(folder.path()), CLASSIFIER);
    wait_for(&mut window, "1 predicted");
    window.state_mut().command(Action::PredictAll);
    wait_for(&mut window, "12 predicted");
    wait_until_idle(&mut window);
    window.state_mut().command(Action::FindDuplicates);
    wait_for(&mut window, "Alike by efficientnet-lite0");
    check(&mut window, "groups of duplicates");
    for name in ["Near: differing bits", "Alike: similarity", Action::TagDuplicates.label(), "Done"] {
        assert!(widgets(&window).iter().any(|widget| widget.name == name), "{name}");
    }
}

/// Checks that widgets with the same name are the same: otherwise the focus or a started click would be lost.
#[track_caller]
fn must_be_the_same(window: &Harness<'static, App>, before: &[Widget], view: &str) {
    let now = widgets(window);
    let alike = |a: &Widget, b: &Widget| a.role == b.role && a.name == b.name;
    let of_its_name = |list: &[Widget], widget: &Widget| {
        let mut found = list.iter().filter(|other| alike(other, widget));
        found.next().filter(|_| found.next().is_none()).map(|it| it.id)
    };
    let is_another = |widget: &&Widget| {
        let ids = of_its_name(before, widget).zip(of_its_name(&now, widget));
        ids.is_some_and(|(before, now)| before != now)
    };
    let others: Vec<&Widget> = before.iter().filter(is_another).collect();
    assert!(others.is_empty(), "{view}: {others:#?} are others now");
}

#[test]
fn focus_survives_tasks_and_panels() {
    let mut window = open(Some(&samples()), DETECTOR);
    wait_for(&mut window, "1 predicted");
    wait_until_idle(&mut window);
    let before = widgets(&window);
    window.get_by_label("Tasks and problems").focus();
    window.state_mut().command(Action::ToggleTasks);
    window.state_mut().command(Action::PredictAll);
    wait_for(&mut window, "Cancel");
    must_be_the_same(&window, &before, "a task and its panel");
    wait_until_idle(&mut window);
    assert!(sees(&window, "8 predicted"));
    must_be_the_same(&window, &before, "after the task");
    assert_eq!(focused(&window).unwrap().name, "Tasks and problems");
    for action in [
        Action::ToggleTasks,
        Action::ToggleJudging,
        Action::ToggleImages,
        Action::ToggleInspector,
        Action::Filmstrip,
        Action::LargeImage,
    ] {
        window.state_mut().command(action);
        window.run_steps(4);
        must_be_the_same(&window, &before, action.label());
    }
}

#[test]
fn split_view_is_named_and_reachable() {
    let folder = folder_of(3, "coffee.png");
    let mut window = two_runs(DETECTOR, folder.path());
    click(&mut window, "Compare with ");
    click(&mut window, "Side by side");
    // The same classes everywhere: the comparison and its order are complete.
    wait_for(&mut window, "0-coffee.png, disagreement 0.00");
    check(&mut window, "two runs");
    window.state_mut().command(Action::ExportComparison);
    wait_for(&mut window, "Target file");
    must_be_named(&window, "Export comparison");
    tab_round(&mut window, "Export comparison");
    escape_closes(&mut window, "Target file");
}

#[test]
fn dialogs_trap_tab_and_close_with_escape() {
    let mut window = predicted();
    window.state_mut().command(ReviewCommand::SelectBox(Some(0)));
    // Each with a unique text.
    for (action, text) in [
        (Action::Palette, "Type a command"),
        (Action::Help, "Keys and mouse"),
        (Action::GoTo, "Image name or"),
        (Action::WrongClass, "Correct class"),
        (Action::Export, "Target file"),
        (Action::OpenS3, "S3 address"),
        (Action::Upload, "S3 folder"),
        (Action::DeployEndpoint, "Deploy the model"),
        (Action::Endpoints, "endpoint name"),
        (Action::OpenOutputs, OPEN),
        (Action::OpenPredictions, "Choose a folder…"),
        (Action::OpenTruth, "Ground-truth file"),
    ] {
        window.state_mut().command(action);
        wait_for(&mut window, text);
        window.run_steps(4);
        // The result of requesting the identity moves everything below it.
        wait_until_idle(&mut window);
        must_be_named(&window, action.label());
        let stops = tab_round(&mut window, action.label());
        let has_left = stops.iter().any(|stop| stop.name == "File" || stop.name == "Search");
        assert!(!has_left, "{}: Tab leaves it: {stops:#?}", action.label());
        escape_closes(&mut window, text);
    }
}

/// Presses and releases within one frame, like a quick click in a slow window.
fn tap(window: &mut Harness<'static, App>, place: egui::Pos2) {
    let button = |pressed| egui::Event::PointerButton {
        pos: place,
        button: egui::PointerButton::Primary,
        pressed,
        modifiers: Modifiers::NONE,
    };
    let events = [egui::Event::PointerMoved(place), button(true), button(false)];
    window.input_mut().events.extend(events);
    window.step();
    window.run_steps(3);
}

#[test]
fn dialog_lists_open_above_it() {
    let mut window = open(None, DETECTOR);
    window.state_mut().command(Action::OpenS3);
    wait_for(&mut window, "S3 address");
    window.run_steps(4);
    wait_until_idle(&mut window);
    let list = window.get_by_label("Profile").rect().center();
    let heading = window.get_by_label("Open S3").rect().center();
    for _ in 0..2 {
        tap(&mut window, list);
        let choice = window.get_by_label("Anonymous public buckets").rect();
        let above = |place| window.ctx.layer_id_at(place);
        assert_ne!(above(choice.center()), above(heading));
        window.key_press(Key::Escape);
        window.run_steps(2);
        tap(&mut window, heading);
        assert!(sees(&window, "S3 address"));
    }
}

#[test]
fn model_form_is_named_and_closes_with_escape() {
    let mut window = open(Some(&samples()), DETECTOR);
    wait_for(&mut window, "1 predicted");
    let model = repository().join("tests/cases/conventions/tensorflow-resnet50/model.onnx");
    drop_on(&mut window, &model);
    wait_for(&mut window, "made from ");
    window.run_steps(4);
    must_be_named(&window, "Add a model");
    tab_round(&mut window, "Add a model");
    escape_closes(&mut window, "made from ");
}

#[test]
fn mapping_fields_are_named_and_reachable() {
    let mut window = predicted();
    let before = widgets(&window);
    window.state_mut().command(Action::OpenOutputs);
    wait_for(&mut window, OPEN);
    walk_through(&mut window, &before, "outputs");
    click(&mut window, "How predictions");
    click(&mut window, "With a mapping");
    wait_for(&mut window, "Best class");
    walk_through(&mut window, &before, "a mapping of classes");
    click(&mut window, "Object boxes");
    wait_for(&mut window, "Number of valid");
    walk_through(&mut window, &before, "a mapping of boxes");
    // Escape closes a menu, and only then the dialog.
    click(&mut window, "Choose: Boxes");
    wait_for(&mut window, "Preview predictions first");
    escape_closes(&mut window, "Preview predictions first");
    assert!(sees(&window, OPEN));
    escape_closes(&mut window, OPEN);
}

#[test]
fn job_pages_trap_tab_and_close_with_escape() {
    let mut plane = None;
    alone("keyboard::job_pages_trap_tab_and_close_with_escape", remote::serve(&mut plane), || {
        let bucket = Seaweed::shared().bucket("window-keyboard");
        let image = std::fs::read(samples().join("chelsea.png")).unwrap();
        bucket.put("photos/a.png", &image);
        bucket.put("photos/broken.png", b"no image");
        let mut window = remote::open_place(&bucket, 2);
        wait_for(&mut window, "All saved");
        wait_until_idle(&mut window);
        let before = widgets(&window);
        window.state_mut().command(Action::Jobs);
        wait_for(&mut window, "No job selected");
        walk_through(&mut window, &before, "jobs");
        escape_closes(&mut window, "No job selected");

        window.state_mut().command(Action::StartJob);
        wait_for(&mut window, "✗ Role");
        for section in ["Cost", "Requests and records", "Environment and tags", "Encryption", "Filters and joining"] {
            click(&mut window, section);
        }
        walk_through(&mut window, &before, "sending");
        escape_closes(&mut window, "Start the job");

        remote::send(&mut window);
        wait_for(&mut window, "✗ failed");
        wait_for(&mut window, "Retry all anyway");
        click(&mut window, "List jobs");
        click_when_there(&mut window, "Delete these…");
        wait_for(&mut window, "Keep them");
        // The job has also left its traces behind the dialog.
        escape_closes(&mut window, "SageMaker jobs");
        wait_until_idle(&mut window);
        let before = widgets(&window);
        window.state_mut().command(Action::Jobs);
        wait_for(&mut window, "Keep them");
        walk_through(&mut window, &before, "a job");
        escape_closes(&mut window, "SageMaker jobs");
    });
}

#[track_caller]
fn click_when_there(window: &mut Harness<'static, App>, text: &str) {
    wait_for(window, text);
    click(window, text);
}

#[test]
fn presentation_ends_with_escape() {
    let mut window = predicted();
    window.key_press(Key::F11);
    wait_for(&mut window, "Escape exits");
    window.run_steps(4);
    // Only the keyboard works here, so that the audience does not see the focus.
    assert_eq!(widgets(&window), []);
    window.key_press(Key::Tab);
    window.run_steps(2);
    assert_eq!(focused(&window), None);
    window.key_press(Key::Escape);
    wait_for(&mut window, "1 of 8 images");
    check(&mut window, "after the presentation");
}

#[test]
fn menus_work_by_keyboard() {
    let mut window = predicted();
    let menus = ["File", "Predict", "Remote", "Judge", "Go", "View", "Help"];
    for menu in menus {
        window.get_by_role_and_label(Role::Button, menu).focus();
        window.step();
        window.key_press(Key::Enter);
        window.run_steps(4);
        must_be_named(&window, menu);
        window.key_press(Key::Tab);
        window.step();
        let inside = focused(&window).unwrap();
        let is_inside = !menus.contains(&inside.name.as_str());
        assert!(is_inside, "{menu}: Tab goes into it, not to {inside:?}");
        window.key_press(Key::Escape);
        window.run_steps(4);
    }
}

#[test]
fn thumbnails_are_one_tab_stop() {
    let mut window = predicted();
    let stops = tab_round(&mut window, "the window");
    let place = |name: &str| stops.iter().position(|stop| stop.name.contains(name));
    let (middle, right) = (place("1:1").or_else(|| place("Actual size")), place("Minimum score"));
    assert!(middle.is_some() && middle < right, "from left to right: {middle:?}, {right:?}, {stops:#?}");
    let images: Vec<&Widget> = stops.iter().filter(|stop| stop.name.contains("astronaut.png")).collect();
    assert_eq!(images.len(), 1, "{images:#?}");
    window.get_by_label("Images, astronaut.png is shown").focus();
    // The arrow keys belong to the grid from the second frame on.
    window.run_steps(3);
    window.key_press(Key::ArrowRight);
    wait_for(&mut window, "2 of 8 images");
    window.key_press(Key::End);
    wait_for(&mut window, "8 of 8 images");
    window.key_press(Key::Space);
    wait_until(&mut window, "the large view", |window| window.state().state().large_image);
}

#[test]
fn palette_enter_runs_the_marked_line_after_tab() {
    let mut window = predicted();
    window.key_press_modifiers(Modifiers::COMMAND, Key::K);
    wait_for(&mut window, "Type a command");
    window.step();
    window.get_by_label("Type a command").type_text("image");
    window.step();
    window.key_press(Key::Tab);
    window.step();
    window.get_by_label("Type a command").type_text(" last");
    window.step();
    window.key_press(Key::Enter);
    wait_for(&mut window, "8 of 8 images");
}

#[test]
fn menu_is_complete_with_enough_room() {
    let mut window = open(Some(&samples()), DETECTOR);
    wait_for(&mut window, "1 predicted");
    wait_until_idle(&mut window);
    for (menu, last) in [("Predict", "Predict on this"), ("View", "Disk cache")] {
        let title = window.get_by_role_and_label(Role::Button, menu);
        let title = title.rect().center();
        tap(&mut window, title);
        let entry = window.query_all_by_label_contains(last).next_back();
        let entry = entry.unwrap().rect().center();
        let above = |place| window.ctx.layer_id_at(place);
        assert_ne!(above(entry), above(title), "{menu}: {entry}");
        window.key_press(Key::Escape);
        window.run_steps(4);
    }
}

#[test]
fn menus_fit_into_a_small_window() {
    let mut window = open_with(Some(&samples()), DETECTOR, |builder| builder.with_size((640.0, 420.0)));
    wait_for(&mut window, "1 predicted");
    for (menu, last) in [("File", "Quit"), ("Judge", "Redo"), ("Go", "Select all"), ("View", "Disk cache")] {
        window.get_by_role_and_label(Role::Button, menu).focus();
        window.step();
        window.key_press(Key::Enter);
        window.run_steps(4);
        let entry = |window: &Harness<'static, App>, act: &dyn Fn(&egui_kittest::Node<'_>)| {
            act(&window.query_all_by_label_contains(last).next_back().unwrap());
        };
        entry(&window, &|entry| entry.scroll_to_me());
        window.run_steps(30);
        entry(&window, &|entry| {
            let place = entry.rect();
            let is_inside = place.top() >= 0.0 && place.bottom() <= 420.0;
            assert!(is_inside, "{menu}: {place}");
        });
        window.key_press(Key::Escape);
        window.run_steps(4);
    }
}

/// The positions of these stops, each the first whose name starts with the text.
#[track_caller]
fn must_come_in_order(stops: &[Widget], names: &[&str]) {
    let position = |name: &&str| {
        let found = stops.iter().position(|stop| stop.name.starts_with(*name));
        found.unwrap_or_else(|| panic!("Tab does not reach {name}: {stops:#?}"))
    };
    let positions: Vec<usize> = names.iter().map(position).collect();
    assert!(positions.is_sorted(), "{names:?} are at {positions:?}: {stops:#?}");
}

#[test]
fn tab_order_follows_rows() {
    let mut window = predicted();
    if !sees(&window, "Show only ") {
        click(&mut window, "By class");
    }
    window.state_mut().command(Action::ToggleTasks);
    window.state_mut().command(Action::Filmstrip);
    window.state_mut().command(SearchCommand::SetQuery("score>0.1".to_owned()));
    window.run_steps(4);
    wait_until_idle(&mut window);
    // The round starts anywhere.
    let mut stops = tab_round(&mut window, "the window");
    let first = stops.iter().position(|stop| stop.name == "File").unwrap();
    stops.rotate_left(first);
    let class = stops.iter().find_map(|stop| stop.name.strip_prefix("Show only ")).unwrap().to_owned();
    for row in [
        ["Search", "Clear search", "Search syntax"],
        ["Previous image", "Predict again", "Copy image"],
        ["Zoom out", "Zoom in", "Fit image"],
        [class.as_str(), &format!("Show only {class}"), &format!("Minimum score of {class}")],
        ["Images, ", "Accept", "Tasks and problems"],
        ["Copy image", "Reject", "Tasks and problems"],
        ["Highest score first", "Close", "Accept"],
    ] {
        must_come_in_order(&stops, &row);
    }
}

#[test]
fn window_has_a_name() {
    let window = open(None, DETECTOR);
    assert_eq!(window.root().accesskit_node().label().as_deref(), Some("Spotcheck"));
}
