//! The label files and images of one split of a dataset: `data.yaml` names image folders, or text files that list
//! images (Ultralytics' `check_det_dataset` and `img2label_paths`).

use std::collections::{BTreeMap, BTreeSet};

use super::{Look, is_text};
use crate::annotations::yolo::{DataYaml, YoloFiles};
use crate::annotations::{AnnotationFormat, AnnotationsError, text_of};
use crate::domain::DatasetSplit;
use crate::image::source::{FileEntry, Files, FilesError};

/// The default split; the next one if the dataset does not have it.
const BY_DEFAULT: [&str; 3] = ["val", "test", "train"];

impl Look<'_> {
    /// The files of the given split, or of the default one; `None` if `data` names no splits.
    pub(super) fn split(
        &self,
        yaml: &FileEntry,
        data: &DataYaml,
        wanted: Option<&str>,
    ) -> Result<Option<YoloFiles>, AnnotationsError> {
        let splits: BTreeMap<&str, &[String]> = data.splits().collect();
        let all = || splits.keys().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let place = || self.files.name_of(yaml);
        let name = match wanted {
            Some(wanted) if !splits.contains_key(wanted) => {
                return Err(AnnotationsError::NoSplit { place: place(), wanted: wanted.to_owned(), splits: all() });
            }
            Some(wanted) => wanted,
            None => match BY_DEFAULT.into_iter().find(|name| splits.contains_key(name)) {
                Some(name) => name,
                None => return Ok(None),
            },
        };
        let mut found = self.files_of(yaml, data, name, splits[name])?;
        let others: Vec<&str> = splits.keys().copied().filter(|other| *other != name).collect();
        let others = if others.is_empty() { String::new() } else { format!(", not {}", others.join(" and ")) };
        found.notes.insert(0, format!("read the split {name}{others}"));
        found.split = Some(DatasetSplit { name: name.to_owned(), all: all() });
        Ok(Some(found))
    }

    /// The files at all `places`, relative to the folder in `data.yaml` or, if they are not there, relative to the
    /// file's own folder: a dataset that was moved still has the old path.
    fn files_of(
        &self,
        yaml: &FileEntry,
        data: &DataYaml,
        split: &str,
        places: &[String],
    ) -> Result<YoloFiles, AnnotationsError> {
        let named = data.path.as_deref().and_then(|path| self.files.at(&path.replace('\\', "/")));
        for (root, is_named) in named.iter().map(|root| (root, true)).chain([(self.files, false)]) {
            let mut found = YoloFiles::default();
            let mut are_all_there = true;
            for place in places {
                // If `path` is inside an `images` folder, its labels are outside `path`.
                let found_at = match &data.path {
                    Some(path) if is_named && labels_next_to(place).is_none() && labels_next_to(path).is_some() => {
                        self.files_at(self.files, &below(path, place))?
                    }
                    _ => self.files_at(root, place)?,
                };
                match found_at {
                    Some(more) => found.append(more),
                    None => are_all_there = false,
                }
            }
            if are_all_there {
                if let (false, Some(path)) = (is_named, &data.path) {
                    found.notes.push(format!("the path {path} in the file does not exist; the file's folder is used"));
                }
                return Ok(found);
            }
        }
        let roots: Vec<String> = named.iter().chain([self.files]).map(Files::name).collect();
        let reason = format!(
            "{} of the split {split} is not in {}; correct the paths in the file",
            places.join(", "),
            roots.join(" or ")
        );
        Err(AnnotationsError::Broken { place: self.files.name_of(yaml), format: AnnotationFormat::Yolo, reason })
    }

    /// The files of an image folder or image list; `None` if it does not exist.
    fn files_at(&self, root: &Files, place: &str) -> Result<Option<YoloFiles>, AnnotationsError> {
        let place = place.replace('\\', "/");
        // Roboflow writes `../train/images` for a folder next to the file.
        for place in [place.as_str(), place.trim_start_matches("../")] {
            let images = self.listed(root, place)?;
            if let Some([file]) = images.as_deref()
                && is_text(&file.name)
                && root.at(place).is_some_and(|files| files.is_file(file))
            {
                return self.images_of_list(root, place, file).map(Some);
            }
            let labels = labels_next_to(place).map(|labels| self.listed(root, &labels)).transpose()?.flatten();
            if images.is_some() || labels.is_some() {
                let listed: Vec<FileEntry> = labels.into_iter().chain(images).flatten().collect();
                return self.yolo(&listed).map(Some);
            }
        }
        Ok(None)
    }

    /// The images in a text file, relative to its folder or to the dataset, and their label files.
    fn images_of_list(&self, root: &Files, place: &str, file: &FileEntry) -> Result<YoloFiles, AnnotationsError> {
        let refused = |reason: String| {
            let (place, format) = (self.files.name_of(file), AnnotationFormat::Yolo);
            AnnotationsError::Broken { place, format, reason }
        };
        let content = self.files.read(file, self.control)?;
        let text = text_of(&content).map_err(|reason| refused(reason.to_owned()))?;
        let lines: Vec<String> =
            text.lines().map(|line| line.trim().replace('\\', "/")).filter(|line| !line.is_empty()).collect();
        let folder = place.rsplit_once('/').map_or("", |(folder, _)| folder);
        for base in [folder, ""] {
            let image = |line: &String| if line.starts_with('/') { normal(line) } else { below(base, line) };
            let images: Vec<String> = lines.iter().map(image).collect();
            let wanted: BTreeSet<String> = images.iter().map(|image| label_of(image)).collect();
            let folders: BTreeSet<&str> =
                wanted.iter().map(|label| label.rsplit_once('/').map_or(".", |(folder, _)| folder)).collect();
            let mut labels = BTreeMap::new();
            for folder in folders {
                let listed = self.listed(root, folder)?.into_iter().flatten();
                let listed = listed.filter(|file| wanted.contains(&file.name));
                labels.extend(listed.map(|file| (file.name.clone(), file)));
            }
            if !labels.is_empty() {
                return Ok(YoloFiles { labels: labels.into_values().collect(), images, ..YoloFiles::default() });
            }
        }
        let example = lines.first().map_or_else(String::new, |line| format!(", such as {line}"));
        Err(refused(format!("none of its listed images has a label file{example}")))
    }

    /// The files at a path, relative to `root`; `None` if it does not exist.
    pub(super) fn listed(&self, root: &Files, path: &str) -> Result<Option<Vec<FileEntry>>, AnnotationsError> {
        let Some(files) = root.at(path) else {
            return Ok(None);
        };
        let mut listed = match files.list(self.control) {
            Ok(listed) => listed,
            Err(FilesError::NoSuchPlace { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        for file in &mut listed {
            file.name = if files.is_file(file) { normal(path) } else { below(path, &file.name) };
        }
        Ok(Some(listed))
    }
}

fn below(folder: &str, name: &str) -> String {
    if folder.is_empty() { normal(name) } else { normal(&format!("{folder}/{name}")) }
}

/// The path without `.`, and without `..` after a folder.
fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let root = if path.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}

/// `labels/val` for `images/val`; `None` if no folder is named `images`.
fn labels_next_to(images: &str) -> Option<String> {
    let mut parts: Vec<&str> = images.split('/').collect();
    *parts.iter_mut().rev().find(|part| **part == "images")? = "labels";
    Some(parts.join("/"))
}

/// The label file of an image: the last `images` folder becomes `labels`, or next to the image.
fn label_of(image: &str) -> String {
    let (folder, name) = image.rsplit_once('/').unwrap_or(("", image));
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let folder = labels_next_to(folder).unwrap_or_else(|| folder.to_owned());
    if folder.is_empty() { format!("{stem}.txt") } else { format!("{folder}/{stem}.txt") }
}
