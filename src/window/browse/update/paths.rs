//! The paths of images and folders: copied, or shown in the file manager.

use std::sync::Arc;

use crate::domain::SampleUri;
use crate::review::folder_in;
use crate::window::browse::update::shown_entry;
use crate::window::state::{BrowseEffect, Effect, State};

pub(crate) fn copy_image(state: &mut State) {
    if let Some(entry) = shown_entry(state) {
        let path = entry.uri.as_str().to_owned();
        copy(state, path);
    }
}

pub(crate) fn reveal_image(state: &mut State) {
    if let Some(entry) = shown_entry(state) {
        state.effects.push(BrowseEffect::Reveal(entry.uri.clone()));
    }
}

pub(crate) fn copy_searched_folder(state: &mut State) {
    copy_folder(state, &searched_folder(state));
}

pub(crate) fn reveal_searched_folder(state: &mut State) {
    reveal_folder(state, &searched_folder(state));
}

/// The folder that the search is limited to, or else the opened one.
fn searched_folder(state: &State) -> Arc<str> {
    let wanted = folder_in(state.arranging.text()).unwrap_or_default();
    let found = state.folders.tree().iter().find(|folder| folder.path.eq_ignore_ascii_case(&wanted));
    found.map_or_else(Arc::default, |folder| Arc::clone(&folder.path))
}

/// Copies the path of a folder of the tree.
pub(crate) fn copy_folder(state: &mut State, folder: &str) {
    match folder_path(state, folder) {
        Some(path) => copy(state, path),
        None => state.show_notice(NO_PATH),
    }
}

/// Shows a folder of the tree in the file manager.
pub(crate) fn reveal_folder(state: &mut State, folder: &str) {
    match folder_path(state, folder) {
        Some(path) => state.effects.push(BrowseEffect::Reveal(SampleUri::new(path))),
        None => state.show_notice(NO_PATH),
    }
}

const NO_PATH: &str = "These images have no common folder";

fn copy(state: &mut State, path: String) {
    state.effects.push(Effect::CopyText { text: path, notice: "Copied the path".to_owned() });
}

fn folder_path(state: &State, folder: &str) -> Option<String> {
    let mut samples = state.samples.ids().filter_map(|id| state.samples.get(id));
    samples.find_map(|sample| path_by(sample.uri.as_str(), &sample.name, folder)).map(str::to_owned)
}

/// The path of a folder by an image in it: names are relative to the opened folder.
fn path_by<'u>(uri: &'u str, name: &str, folder: &str) -> Option<&'u str> {
    let below = name.strip_prefix(folder).filter(|rest| folder.is_empty() || rest.starts_with('/'))?;
    let (path, end) = uri.split_at_checked(uri.len().checked_sub(below.len())?)?;
    let is_same = |(one, other): (char, char)| one == other || other == '/' && std::path::is_separator(one);
    let path = path.trim_end_matches(std::path::is_separator);
    (end.chars().zip(below.chars()).all(is_same) && !path.is_empty()).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_has_the_path_of_its_images() {
        for (uri, name, folder, expected) in [
            ("/photos/9/Deep/d.jpg", "9/Deep/d.jpg", "9", Some("/photos/9")),
            ("/photos/9/Deep/d.jpg", "9/Deep/d.jpg", "9/Deep", Some("/photos/9/Deep")),
            ("/photos/9/Deep/d.jpg", "9/Deep/d.jpg", "", Some("/photos")),
            ("/photos/9/Deep/d.jpg", "9/Deep/d.jpg", "9/De", None),
            ("s3://bucket/photos/9/d.jpg", "9/d.jpg", "9", Some("s3://bucket/photos/9")),
            ("/photos/train.tfrecord/#3", "train.tfrecord/#3", "train.tfrecord", Some("/photos/train.tfrecord")),
            // Files of several folders have their paths as names.
            ("/photos/d.jpg", "/photos/d.jpg", "/photos", Some("/photos")),
            ("/photos/d.jpg", "/photos/d.jpg", "", None),
        ] {
            assert_eq!(path_by(uri, name, folder), expected, "{folder} by {uri}");
        }
    }
}
