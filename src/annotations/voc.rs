//! Pascal VOC: one XML file per image.
//!
//! As in the development kit (`VOCdevkit`, `VOCevaldet.m`), pixels are counted from 1 and edges are inclusive, so a box
//! covers `xmax - xmin + 1` columns and begins `xmin - 1` pixels from the left edge of the image. The image has the
//! name of the XML file; `filename` gives its extension. `difficult` objects do not count.
//!
//! The format has no list of classes. Spotcheck and Datumaro, CVAT's library, write one to `dataset_meta.json`.

use std::collections::BTreeSet;

use quick_xml::Reader as Xml;
use quick_xml::events::Event;

use super::collect::{Collector, Refusal, Tally, checked_box, checked_score};
use super::dataset_files::ImagesByFile;
use super::flag::flag;
use super::json::{Scalar, shortened};
use super::{AnnotationFormat, AnnotationsError, Found};
use crate::domain::{AnnotatedBox, AnnotationProblemKind as Kind, BoxRole, BoxUnit};
use crate::image::source::{FileEntry, Files};
use crate::tasks::TaskControl;

/// The format has no elements nested this deeply.
const DEEPEST: usize = 64;

pub(super) struct VocFiles {
    pub documents: Vec<FileEntry>,
    pub classes: Option<FileEntry>,
    /// The image of each document, where their names differ.
    pub listed: ImagesByFile,
}

#[derive(serde::Deserialize)]
struct Classes {
    labels: Vec<String>,
}

pub(super) fn read(files: &Files, listed: &VocFiles, control: &TaskControl) -> Result<Found, AnnotationsError> {
    let mut reader = reader(files, listed, control)?;
    files.read_each(&listed.documents, control, |index, content| {
        reader.collector.files += 1;
        let file = &listed.documents[index].name;
        match content.and_then(|content| Document::read(&content)) {
            Ok(document) => reader.document(file, &listed.listed, document),
            Err(reason) => reader.collector.problem(Kind::Unreadable, file, reason),
        }
    })?;
    Ok(reader.finish())
}

/// A reader that knows the listed classes.
pub(super) fn reader(files: &Files, listed: &VocFiles, control: &TaskControl) -> Result<Reader, AnnotationsError> {
    let mut reader = Reader::default();
    if let Some(file) = &listed.classes {
        reader.classes(&file.name, &files.read(file, control)?);
    }
    Ok(reader)
}

/// The parts of a file that are used, as text.
#[derive(Default)]
pub(super) struct Document {
    pub filename: String,
    width: String,
    height: String,
    pub objects: Vec<Object>,
}

#[derive(Default)]
pub(super) struct Object {
    line: u64,
    name: String,
    difficult: String,
    score: String,
    /// `xmin`, `ymin`, `xmax` and `ymax`.
    bounds: [String; 4],
}

impl Document {
    /// # Errors
    /// A message to follow the file name.
    pub(super) fn read(content: &[u8]) -> Result<Self, String> {
        let text = super::text_of(content)?;
        let content = text.as_bytes();
        let mut xml = Xml::from_str(text);
        let mut document = Self::default();
        let mut path: Vec<String> = Vec::new();
        let mut has_root = false;
        // The position up to which lines were counted, and the line number there.
        let (mut counted, mut number) = (0, 1);
        let mut line = |position: u64| {
            let end = usize::try_from(position).unwrap_or(usize::MAX).clamp(counted, content.len());
            number += content[counted..end].split(|byte| *byte == b'\n').count() as u64 - 1;
            counted = end;
            number
        };
        loop {
            let event = xml.read_event();
            let position = xml.buffer_position();
            let event = event.map_err(|error| format!("line {} is not XML: {error}", line(xml.error_position())))?;
            match event {
                Event::Start(start) => {
                    path.push(start.name().as_ref().to_owned());
                    if path.len() > DEEPEST {
                        return Err(format!("line {} is nested too deeply", line(position)));
                    }
                    has_root |= path == ["annotation"];
                    if path == ["annotation", "object"] {
                        document.objects.push(Object { line: line(position), ..Object::default() });
                    }
                }
                Event::End(_) => drop(path.pop()),
                Event::Text(text) => document.text(&path, &text.xml10_content()),
                Event::CData(text) => document.text(&path, &text.xml10_content()),
                Event::GeneralRef(reference) => {
                    let resolved = reference
                        .resolve_char_ref()
                        .ok()
                        .flatten()
                        .or_else(|| quick_xml::escape::resolve_predefined_entity(&reference)?.chars().next());
                    let unknown = || format!("line {} has an unknown entity", line(position));
                    document.text(&path, resolved.ok_or_else(unknown)?.encode_utf8(&mut [0; 4]));
                }
                Event::Eof => break,
                _ => {}
            }
        }
        match (path.last(), has_root) {
            (Some(open), _) => Err(format!("ends early: {} is not closed", shortened(open))),
            (None, false) => Err("has no annotation element".to_owned()),
            (None, true) => Ok(document),
        }
    }

    fn text(&mut self, path: &[String], text: &str) {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let ["annotation", path @ ..] = &path[..] else {
            return;
        };
        let place = match (path, self.objects.last_mut()) {
            (["filename"], _) => &mut self.filename,
            (["size", "width"], _) => &mut self.width,
            (["size", "height"], _) => &mut self.height,
            (["object", "name"], Some(object)) => &mut object.name,
            (["object", "difficult"], Some(object)) => &mut object.difficult,
            (["object", "score"], Some(object)) => &mut object.score,
            (["object", "bndbox", side], Some(object)) => {
                let sides = ["xmin", "ymin", "xmax", "ymax"];
                let Some(index) = sides.iter().position(|known| known == side) else {
                    return;
                };
                &mut object.bounds[index]
            }
            _ => return,
        };
        place.push_str(text);
    }
}

#[derive(Default)]
pub(super) struct Reader {
    collector: Collector,
    /// Those in `dataset_meta.json`.
    pub classes: BTreeSet<String>,
    other_names: Tally,
    before_first: Tally,
}

impl Reader {
    fn classes(&mut self, file: &str, content: &[u8]) {
        match serde_json::from_slice::<Classes>(content) {
            Ok(classes) => {
                for name in classes.labels {
                    self.collector.class(None, Some(&name));
                    self.classes.insert(name);
                }
            }
            Err(error) => {
                self.collector.problem(
                    Kind::Unreadable,
                    file,
                    format!("is not a list of classes, named labels: {error}"),
                );
            }
        }
    }

    fn document(&mut self, file: &str, listed: &ImagesByFile, document: Document) {
        let name = self.image_name(file, listed.get(file), document.filename.trim());
        if self.collector.known_image(&name).is_some() {
            let reason = format!("repeats an image; the first entry is used: {name}");
            return self.collector.problem(Kind::Duplicate, file, reason);
        }
        let size = [&document.width, &document.height].map(|side| side.trim().parse().ok().filter(|side| *side > 0));
        let image = self.collector.image(&name);
        image.size = match size {
            [Some(width), Some(height)] => Some([width, height]),
            _ => None,
        };
        self.collector.set_original(&name, listed.original(file));
        for object in document.objects {
            self.collector.entries += 1;
            let line = object.line;
            let place = || format!("{file}, line {line}");
            match self.object(object, place) {
                Ok(found) => self.collector.add_box(&name, found, place),
                Err((kind, reason)) => self.collector.problem(kind, place(), reason),
            }
        }
    }

    pub(super) fn class_name(&self, class: u32) -> String {
        self.collector.class_name(class)
    }

    pub(super) fn object(&mut self, object: Object, place: impl FnOnce() -> String) -> Result<AnnotatedBox, Refusal> {
        let is_listed = self.classes.contains(&object.name);
        let class = if is_listed { &object.name } else { object.name.trim() };
        if class.is_empty() {
            return Err((Kind::UnknownClass, "has no name".to_owned()));
        }
        let sides = object.bounds.each_ref().map(|side| side.trim().parse::<f64>());
        let [Ok(xmin), Ok(ymin), Ok(xmax), Ok(ymax)] = sides else {
            return Err((Kind::BrokenBox, "has no bndbox with xmin, ymin, xmax and ymax".to_owned()));
        };
        let bounds = [xmin - 1.0, ymin - 1.0, xmax - xmin + 1.0, ymax - ymin + 1.0];
        let bounds = checked_box(bounds.into(), BoxUnit::Pixels)?;
        if xmin < 1.0 || ymin < 1.0 {
            self.before_first.add(place);
        }
        let score = match object.score.trim() {
            "" => None,
            text => {
                let wrong = |_| (Kind::BrokenScore, format!("has the score “{}”", shortened(text)));
                Some(checked_score(text.parse().map_err(wrong)?)?)
            }
        };
        let is_difficult = flag("difficult", &Scalar::Text(object.difficult))?;
        let role = if is_difficult { BoxRole::Ignored } else { BoxRole::Object };
        let class = self.collector.class(None, Some(class));
        Ok(AnnotatedBox { bounds, unit: BoxUnit::Pixels, class, score, area: None, role })
    }

    /// `JPEGImages/a/1.jpg` for `Annotations/a/1.xml`, unless an image is `listed` for the file.
    pub(super) fn image_name(&mut self, file: &str, listed: Option<&str>, filename: &str) -> String {
        if let Some(image) = listed {
            return format!("JPEGImages/{image}");
        }
        let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
        let (folder, stem) = stem.rsplit_once('/').unwrap_or(("", stem));
        let filename = filename.replace('\\', "/");
        let filename = filename.rsplit('/').next().unwrap_or_default();
        let (given, extension) = filename.rsplit_once('.').unwrap_or((filename, ""));
        if !filename.is_empty() && given != stem && filename != stem {
            self.other_names.add(|| file.to_owned());
        }
        let mut folders: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
        if let Some(part) = folders.iter_mut().rev().find(|part| **part == "Annotations") {
            *part = "JPEGImages";
        }
        let name = if extension.is_empty() || given != stem { stem.to_owned() } else { format!("{stem}.{extension}") };
        folders.push(&name);
        folders.join("/")
    }

    fn finish(mut self) -> Found {
        let notes = [
            self.other_names.note(
                "file has a different name than the image in its filename field; the file name is used",
                "files have different names than the images in their filename fields; the file names are used",
            ),
            self.before_first.note(
                "box begins before pixel 1; read as usual in Pascal VOC, which counts from 1",
                "boxes begin before pixel 1; read as usual in Pascal VOC, which counts from 1",
            ),
        ];
        self.collector.notes.extend(notes.into_iter().flatten());
        self.collector.finish(AnnotationFormat::PascalVoc)
    }
}
