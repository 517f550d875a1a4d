//! Searching and sorting.

use super::*;
use crate::domain::SampleSet;
use crate::review::{ArrangeRequest, Direction, Query, Sort, SortBy, arrange, statistics};
use crate::window::predict;
use crate::window::state::{
    ArrangeEffect, BrowseCommand, BrowseEvent, Pace, ProjectEvent, RequestId, ScrollRequest, ScrollTarget,
    SearchCommand, SearchEvent,
};

struct RequestedArrangement {
    id: RequestId,
    pace: Pace,
    request: Box<ArrangeRequest>,
}

fn send(state: &mut State, message: Message) -> Option<RequestedArrangement> {
    let mut asked = update(state, message).into_iter().filter_map(|effect| match effect {
        Effect::Search(ArrangeEffect { id, pace, request, .. }) => Some(RequestedArrangement { id, pace, request }),
        _ => None,
    });
    let first = asked.next();
    assert!(asked.next().is_none(), "one order at a time");
    first
}

fn on(state: &mut State, requested: impl Into<Command>) -> Option<RequestedArrangement> {
    send(state, Message::Command(requested.into()))
}

/// Responds like the worker; returns the next request.
fn respond(state: &mut State, asked: &RequestedArrangement) -> Option<RequestedArrangement> {
    let arrangement = arrange(&asked.request, &|| false).unwrap();
    let id = asked.id;
    let next = send(state, Message::Event(Event::Search(SearchEvent::Arranged { id, arrangement, suppressed: None })));
    assert!(next.is_none(), "the statistics are still to come");
    let predictions = asked.request.predictions.as_ref();
    let (view, marks) = (&asked.request.view, &asked.request.marks);
    let statistics = predictions.and_then(|predictions| statistics(predictions, view, None, marks, &|| false));
    send(state, Message::Event(Event::Search(SearchEvent::Counted { id, statistics })))
}

/// Responds until nothing more is requested.
fn settle(state: &mut State, asked: Option<RequestedArrangement>) {
    let mut next = asked;
    while let Some(asked) = next {
        next = respond(state, &asked);
    }
    assert!(!state.arranging.is_under_way());
}

/// A window on the images `a.jpg`, `b.jpg`, … whose order is up to date.
fn arranged(names: &[&str]) -> (State, SourceId) {
    let mut state = State::default();
    let open = Command::Browse(BrowseCommand::Open(PathBuf::from("/photos")));
    let source = source_of(&update(&mut state, Message::Command(open)));
    let page = page(names);
    send(&mut state, Message::Event(Event::Browse(BrowseEvent::Listed { source, page })));
    settle_pending(&mut state);
    (state, source)
}

fn settle_pending(state: &mut State) {
    let asked = state.arranging.asked_id().map(|id| RequestedArrangement {
        id,
        pace: Pace::AtOnce,
        request: Box::new(state.arrange_request()),
    });
    settle(state, asked);
}

fn on_screen(state: &State) -> Vec<u32> {
    state.order().ids().map(|id| id.0).collect()
}

const NAMES: [&str; 4] = ["d.jpg", "a.jpg", "c.png", "b.jpg"];
const BY_NAME: Sort = Sort { by: SortBy::Name, direction: Direction::Ascending };

#[test]
fn search_keeps_the_old_order_until_done() {
    let (mut state, _) = arranged(&NAMES);
    let asked = on(&mut state, Command::Search(SearchCommand::SetQuery("jpg".to_owned()))).unwrap();
    assert_eq!(asked.pace, Pace::AtOnce);
    assert_eq!(on_screen(&state), [0, 1, 2, 3]);
    settle(&mut state, Some(asked));
    assert_eq!(on_screen(&state), [0, 1, 3]);
    settle_command(&mut state, Command::Search(SearchCommand::SetSort(BY_NAME)));
    assert_eq!(on_screen(&state), [1, 3, 0]);
    settle_command(&mut state, Action::ClearSearch);
    assert_eq!(on_screen(&state), [1, 3, 2, 0]);
}

#[test]
fn only_another_sort_shows_its_first_image() {
    let (mut state, source) = arranged(&NAMES);
    update(&mut state, Message::Command(Command::Browse(BrowseCommand::Show(SampleId(2)))));
    settle_command(&mut state, Command::Search(SearchCommand::SetSort(BY_NAME)));
    assert_eq!(state.shown_sample(), Some(SampleId(1)));
    assert_eq!(state.arranging.scroll(), ScrollRequest::new(1, ScrollTarget::FirstImage));
    settle_command(&mut state, Command::Browse(BrowseCommand::Show(SampleId(3))));
    let page = page(&["0.jpg"]);
    let asked = send(&mut state, Message::Event(Event::Browse(BrowseEvent::Listed { source, page })));
    settle(&mut state, asked);
    assert_eq!(on_screen(&state)[0], 4);
    assert_eq!(state.shown_sample(), Some(SampleId(3)));
    settle_command(&mut state, Command::Search(SearchCommand::SetSort(BY_NAME)));
    assert_eq!(state.shown_sample(), Some(SampleId(3)), "nothing changed");
}

#[test]
fn search_scrolls_to_its_first_result() {
    let (mut state, _) = arranged(&NAMES);
    let target = |state: &State| state.arranging.scroll().target;
    settle_command(&mut state, Command::Search(SearchCommand::SetQuery("jpg".to_owned())));
    assert_eq!(target(&state), ScrollTarget::FirstImage);
    let searched = state.arranging.scroll();
    settle_command(&mut state, Action::ClearSearch);
    assert_eq!(target(&state), ScrollTarget::ShownImage);
    assert_ne!(state.arranging.scroll(), searched);
}

#[test]
fn search_deselects_other_images() {
    let (mut state, _) = arranged(&NAMES);
    settle_command(&mut state, Action::SelectAll);
    settle_command(&mut state, Command::Search(SearchCommand::SetQuery("b.jpg".to_owned())));
    let selected: Vec<u32> = state.selection.selected().iter().map(|id| id.0).collect();
    assert_eq!(selected, [0, 3], "the image in view, and the one found");
}

#[test]
fn undo_returns_to_an_image_outside_the_search() {
    let (mut state, source) = arranged(&NAMES);
    update(&mut state, Message::Event(empty_project(source)));
    settle_command(&mut state, Command::Search(SearchCommand::SetQuery("!verdict".to_owned())));
    settle_command(&mut state, Action::Accept);
    assert_eq!(on_screen(&state), [1, 2, 3]);
    assert_eq!(state.shown_sample(), Some(SampleId(1)));
    settle_command(&mut state, Action::Undo);
    assert_eq!(state.shown_sample(), Some(SampleId(0)));
    assert_eq!(on_screen(&state), [0, 1, 2, 3]);
}

fn settle_command(state: &mut State, requested: impl Into<Command>) {
    let asked = on(state, requested);
    settle(state, asked);
}

#[test]
fn late_order_is_dropped() {
    let (mut state, _) = arranged(&NAMES);
    let early = on(&mut state, Command::Search(SearchCommand::SetQuery("png".to_owned()))).unwrap();
    let late = on(&mut state, Command::Search(SearchCommand::SetQuery("a.".to_owned()))).unwrap();
    assert!(respond(&mut state, &early).is_none());
    assert_eq!(on_screen(&state), [0, 1, 2, 3]);
    settle(&mut state, Some(late));
    assert_eq!(on_screen(&state), [1]);
}

#[test]
fn search_error_keeps_the_previous_search() {
    let (mut state, _) = arranged(&NAMES);
    settle_command(&mut state, Command::Search(SearchCommand::SetQuery("png".to_owned())));
    assert!(on(&mut state, Command::Search(SearchCommand::SetQuery("png (".to_owned()))).is_none());
    assert_eq!(state.arranging.text(), "png (");
    assert!(state.arranging.error().is_some());
    assert_eq!(on_screen(&state), [2]);
    settle_command(&mut state, Command::Search(SearchCommand::SetQuery("png".to_owned())));
    assert!(state.arranging.error().is_none());
}

#[test]
fn keys_follow_the_order_on_screen() {
    let (mut state, _) = arranged(&NAMES);
    settle_command(&mut state, Command::Search(SearchCommand::SetSort(BY_NAME)));
    on(&mut state, Command::Browse(BrowseCommand::Walk(Step::First)));
    assert_eq!(state.shown_sample(), Some(SampleId(1)));
    on(&mut state, Command::Browse(BrowseCommand::Walk(Step::By(1))));
    assert_eq!(state.shown_sample(), Some(SampleId(3)));
    on(&mut state, Command::Browse(BrowseCommand::Walk(Step::ExtendBy(1))));
    let selected: Vec<u32> = state.selection.selected().iter().map(|id| id.0).collect();
    assert_eq!(selected, [2, 3]);
}

#[test]
fn select_all_selects_search_results() {
    let (mut state, _) = arranged(&NAMES);
    settle_command(&mut state, Command::Search(SearchCommand::SetQuery("jpg".to_owned())));
    on(&mut state, Action::SelectAll);
    let selected: Vec<u32> = state.selection.selected().iter().map(|id| id.0).collect();
    assert_eq!(selected, [0, 1, 3]);
}

#[test]
fn filtered_out_image_stays_shown_and_keeps_its_rank() {
    let check = |by: i64, expected: u32| {
        let (mut state, _) = arranged(&NAMES);
        on(&mut state, Command::Browse(BrowseCommand::Show(SampleId(2))));
        settle_command(&mut state, Command::Search(SearchCommand::SetQuery("jpg".to_owned())));
        assert_eq!(state.shown_sample(), Some(SampleId(2)));
        on(&mut state, Command::Browse(BrowseCommand::Walk(Step::By(by))));
        assert_eq!(state.shown_sample(), Some(SampleId(expected)), "{by}");
    };
    check(1, 3);
    check(-1, 1);
}

#[test]
fn filtered_out_last_image_goes_to_the_last() {
    let (mut state, _) = arranged(&NAMES);
    on(&mut state, Command::Browse(BrowseCommand::Show(SampleId(3))));
    settle_command(&mut state, Command::Search(SearchCommand::SetQuery("!b.".to_owned())));
    on(&mut state, Command::Browse(BrowseCommand::Walk(Step::By(1))));
    assert_eq!(state.shown_sample(), Some(SampleId(2)));
}

#[test]
fn new_images_appear_then_sort_in() {
    let (mut state, source) = arranged(&NAMES);
    let more = |name: &str| {
        let page = page(&[name]);
        Message::Event(Event::Browse(BrowseEvent::Listed { source, page }))
    };
    let asked = send(&mut state, more("aa.jpg"));
    assert_eq!(on_screen(&state), [0, 1, 2, 3, 4]);
    assert_eq!(asked.as_ref().unwrap().pace, Pace::Calm);
    settle(&mut state, asked);
    settle_command(&mut state, Command::Search(SearchCommand::SetSort(BY_NAME)));
    let asked = send(&mut state, more("ab.jpg"));
    settle(&mut state, asked);
    assert_eq!(on_screen(&state), [1, 4, 5, 3, 2, 0]);
}

#[test]
fn changes_during_ordering_are_requested_afterwards() {
    let (mut state, source) = arranged(&NAMES);
    let page_of = |name: &str| Message::Event(Event::Browse(BrowseEvent::Listed { source, page: page(&[name]) }));
    let first = send(&mut state, page_of("e.jpg")).unwrap();
    assert!(send(&mut state, page_of("f.jpg")).is_none());
    assert!(send(&mut state, page_of("g.jpg")).is_none());
    let second = respond(&mut state, &first).unwrap();
    assert_eq!(second.request.samples.len(), 7);
    assert!(respond(&mut state, &second).is_none());
}

#[test]
fn failed_worker_is_reported_once() {
    let (mut state, _) = arranged(&NAMES);
    let asked = on(&mut state, Command::Search(SearchCommand::SetQuery("png".to_owned()))).unwrap();
    let (id, reason) = (asked.id, "a mistake".to_owned());
    let next = send(&mut state, Message::Event(Event::Search(SearchEvent::Failed { id, reason })));
    assert!(next.is_none());
    assert_eq!(state.problems.len(), 1);
    settle_command(&mut state, Command::Search(SearchCommand::SetQuery("jpg".to_owned())));
    assert_eq!(on_screen(&state), [0, 1, 3]);
}

#[test]
fn new_folder_clears_the_search_and_keeps_the_sort() {
    let (mut state, _) = arranged(&NAMES);
    settle_command(&mut state, Command::Search(SearchCommand::SetSort(BY_NAME)));
    settle_command(&mut state, Command::Search(SearchCommand::SetQuery("png".to_owned())));
    on(&mut state, Command::Browse(BrowseCommand::Open(PathBuf::from("/other"))));
    assert_eq!(state.arranging.text(), "");
    assert_eq!(state.arranging.sort(), BY_NAME);
    assert!(!state.arranging.is_filtered());
}

#[test]
fn overlong_stored_search_is_dropped() {
    let restored = |letters: usize| {
        let (mut state, _) = arranged(&NAMES);
        let source = source_of(&command(&mut state, BrowseCommand::Open(PathBuf::from("/other"))));
        let Event::Project(ProjectEvent::Opened { mut content, .. }) = empty_project(source) else {
            panic!("a project is opened");
        };
        let sort = serde_json::to_string(&BY_NAME).unwrap();
        let json = format!(r#"{{"query": "{}", "sort": {sort}}}"#, "x".repeat(letters));
        content.views = vec![("search".to_owned(), json)];
        event(&mut state, ProjectEvent::Opened { source, content });
        let arranging = &state.arranging;
        (arranging.text().len(), arranging.error().is_some())
    };
    let (most, of_field) = (Query::MAX_LETTERS, Query::MAX_FIELD_LETTERS);
    assert_eq!(restored(most), (most, false));
    assert_eq!(restored(of_field), (of_field, true));
    assert_eq!(restored(of_field + 1), (0, false));
}

#[test]
fn filtered_images_are_predicted() {
    let (mut state, source, _) = opened();
    event(&mut state, BrowseEvent::ListingEnded { source, task: TaskId(0), result: Ok(()) });
    settle_pending(&mut state);
    settle_command(&mut state, Command::Search(SearchCommand::SetQuery("!b.jpg".to_owned())));
    command(&mut state, Action::PredictFiltered);
    let queued = &state.inference.queued;
    let expected: SampleSet = [0, 2].map(SampleId).into_iter().collect();
    assert_eq!(*queued, Some(predict::state::QueuedImages::UnpredictedOf(expected)));
}
