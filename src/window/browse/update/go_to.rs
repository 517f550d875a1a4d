//! Going to an image by typing its name.

use crate::domain::SampleId;
use crate::window::browse;
use crate::window::state::State;

/// The quality of a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    Begins,
    Contains,
}

/// Shows the first image on screen whose file name starts with `text`; otherwise one whose name contains it; otherwise,
/// if it is a number, the image at that position. An empty text changes nothing.
pub(crate) fn first(state: &mut State, text: &str) {
    let needle = text.trim().to_lowercase();
    let found = find(state, &needle, 0).or_else(|| at_place(state, &needle));
    go(state, &needle, found);
}

/// Like [`first`], but shows the next match after the shown image; the first one follows the last.
pub(crate) fn next(state: &mut State, text: &str) {
    let needle = text.trim().to_lowercase();
    let shown = state.shown_sample();
    let shown_place = shown.and_then(|shown| state.order().place_of(shown));
    let found = find(state, &needle, shown_place.map_or(0, |place| place + 1));
    go(state, &needle, found);
}

fn go(state: &mut State, needle: &str, found: Option<SampleId>) {
    state.go_to_missed = found.is_none() && !needle.is_empty();
    if let Some(found) = found.filter(|found| state.shown_sample() != Some(*found)) {
        browse::update::show(state, found);
    }
}

/// Searches all images on screen, starting at position `from`.
fn find(state: &State, needle: &str, from: usize) -> Option<SampleId> {
    if needle.is_empty() {
        return None;
    }
    let order = state.order();
    let mut contains = None;
    for place in (from..order.len()).chain(0..from.min(order.len())) {
        let Some(sample) = order.at(place) else {
            continue;
        };
        match state.samples.get(sample).and_then(|entry| fit(&entry.name, needle)) {
            Some(Fit::Begins) => return Some(sample),
            Some(Fit::Contains) => contains = contains.or(Some(sample)),
            None => {}
        }
    }
    contains
}

fn at_place(state: &State, text: &str) -> Option<SampleId> {
    let number: usize = text.parse().ok()?;
    state.order().at(number.checked_sub(1)?)
}

/// `needle` is in lower case.
fn fit(name: &str, needle: &str) -> Option<Fit> {
    let file_name = name.rsplit('/').next().unwrap_or(name);
    if name.is_ascii() {
        // Runs for nearly all of a hundred thousand names at every key, so it allocates nothing.
        let needle = needle.as_bytes();
        let is_here = |window: &[u8]| window.eq_ignore_ascii_case(needle);
        let begins = file_name.as_bytes().get(..needle.len()).is_some_and(is_here);
        if begins {
            return Some(Fit::Begins);
        }
        let contains = name.as_bytes().windows(needle.len()).any(is_here);
        return contains.then_some(Fit::Contains);
    }
    if file_name.to_lowercase().starts_with(needle) {
        return Some(Fit::Begins);
    }
    let contains = name.to_lowercase().contains(needle);
    contains.then_some(Fit::Contains)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_name_prefix_ranks_first() {
        for (name, needle, expected) in [
            ("IMG_0042.JPG", "img_", Some(Fit::Begins)),
            ("photos/cat.jpg", "cat", Some(Fit::Begins)),
            ("photos/cat.jpg", "photos/c", Some(Fit::Contains)),
            ("photos/cat.jpg", "dog", None),
            ("a", "longer", None),
            ("고양이 Ä.png", "고양", Some(Fit::Begins)),
            ("고양이 Ä.png", "ä.p", Some(Fit::Contains)),
        ] {
            assert_eq!(fit(name, needle), expected, "{name} {needle}");
        }
    }
}
