//! Changes in Pascal VOC's files: a label is an `object` element.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use quick_xml::Reader as Xml;
use quick_xml::escape::escape;
use quick_xml::events::Event;

use super::LabelPatchError;
use super::text::{Output, PlacedLabel, TextFile, TextFormat, TextLabels, line_break};
use crate::annotations::dataset_files::{object_xml, whole_pixels};
use crate::annotations::voc::{Document, Reader, VocFiles};
use crate::annotations::{AnnotationsError, voc};
use crate::domain::{BoxUnit, ExactBox};
use crate::image::source::Files;
use crate::tasks::TaskControl;

pub(super) struct Voc;

const SIDES: [&str; 4] = ["xmin", "ymin", "xmax", "ymax"];

impl TextLabels<Voc> {
    /// The labels of the images that are `wanted`.
    pub(super) fn open(
        files: &Files,
        found: &VocFiles,
        wanted: &HashSet<&str>,
        control: &TaskControl,
    ) -> Result<Self, LabelPatchError> {
        // The file of an image has the same name, or is listed.
        let stems: HashSet<&str> = wanted.iter().flat_map(|image| [file_name(image), stem(image)]).collect();
        let mut opened = Self { format: Voc, files: Vec::new(), file_of: HashMap::new(), output: Output::Folder };
        let mut reader = voc::reader(files, found, control)?;
        for entry in &found.documents {
            let listed = found.listed.get(&entry.name);
            if listed.is_none() && !stems.contains(stem(&entry.name)) {
                continue;
            }
            let content = files.read(entry, control).map_err(AnnotationsError::from)?;
            let Ok((image, file)) = open_document(&mut reader, entry.name.clone(), listed, &content) else {
                continue;
            };
            // As when it is read, the first file of an image counts.
            if wanted.contains(image.as_str()) && !opened.file_of.contains_key(&image) {
                opened.add(image, Ok(file));
            }
        }
        Ok(opened)
    }
}

fn open_document(
    reader: &mut Reader,
    name: String,
    listed: Option<&str>,
    content: &[u8],
) -> Result<(String, TextFile), String> {
    let document = Document::read(content)?;
    let image = reader.image_name(&name, listed, document.filename.trim());
    let file = TextFile::new(name, content)?;
    let elements = elements(file.text());
    let spans = elements.iter().filter(|element| element.path == ["annotation", "object"]);
    let spans = spans.map(|element| whole_lines(file.text(), element.outer.clone()));
    let label = |(object, span)| {
        let found = reader.object(object, String::new).ok()?;
        Some(PlacedLabel::new(image.clone(), reader.class_name(found.class), found.bounds, span))
    };
    let labels = document.objects.into_iter().zip(spans).filter_map(label).collect();
    Ok((image, file.with_labels(labels)))
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn stem(path: &str) -> &str {
    let name = file_name(path);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// An element of a document.
struct Element {
    /// The names of the elements around it, and its own.
    path: Vec<String>,
    outer: Range<usize>,
    inner: Range<usize>,
}

/// The elements of a text, each after those in it.
fn elements(text: &str) -> Vec<Element> {
    let mut xml = Xml::from_str(text);
    let mut open: Vec<(String, [usize; 2])> = Vec::new();
    let mut found = Vec::new();
    loop {
        let start = xml.buffer_position() as usize;
        let event = xml.read_event();
        let end = xml.buffer_position() as usize;
        match event {
            Ok(Event::Start(tag)) => open.push((tag.name().as_ref().to_owned(), [start, end])),
            Ok(Event::End(_)) => {
                let path = open.iter().map(|(name, _)| name.clone()).collect();
                if let Some((_, [outer, inner])) = open.pop() {
                    found.push(Element { path, outer: outer..end, inner: inner..start });
                }
            }
            Ok(Event::Eof) | Err(_) => return found,
            Ok(_) => {}
        }
    }
}

/// With the indentation and the line break, if nothing else is on these lines.
fn whole_lines(text: &str, span: Range<usize>) -> Range<usize> {
    let start = text[..span.start].trim_end_matches([' ', '\t']).len();
    let rest = text[span.end..].trim_start_matches([' ', '\t']);
    let end = text.len() - rest.len();
    let is_at_start = start == 0 || text[..start].ends_with('\n');
    match rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n')) {
        Some(rest) if is_at_start => start..text.len() - rest.len(),
        _ if is_at_start && end == text.len() => start..end,
        _ => span,
    }
}

impl TextFormat for Voc {
    fn unit(&self) -> BoxUnit {
        BoxUnit::Pixels
    }

    fn stored(&self, [x, y, width, height]: [f64; 4]) -> [f64; 4] {
        let [[left, right], [top, bottom]] = [[x, x + width], [y, y + height]].map(whole_pixels);
        [left, top, right - left, bottom - top]
    }

    fn changed(&self, text: &str, class: Option<&str>, bounds: Option<ExactBox>) -> Result<(String, bool), String> {
        let mut edits: Vec<(Range<usize>, String)> = Vec::new();
        let elements = elements(text);
        let inner = |path: &[&str]| {
            let found = elements.iter().find(|element| element.path == path).map(|element| element.inner.clone());
            found.ok_or_else(|| format!("the object has no {}", path.join("/")))
        };
        if let Some(class) = class {
            edits.push((inner(&["object", "name"])?, escape(class).into_owned()));
        }
        if let Some(bounds) = bounds {
            for (side, number) in SIDES.into_iter().zip(inclusive(bounds)) {
                edits.push((inner(&["object", "bndbox", side])?, number.to_string()));
            }
        }
        edits.sort_by_key(|(span, _)| span.start);
        let mut changed = String::new();
        let mut end = 0;
        for (span, new) in edits {
            changed += &text[end..span.start];
            changed += &new;
            end = span.end;
        }
        let has_mask = elements.iter().any(|element| element.path == ["object", "polygon"]);
        Ok((changed + &text[end..], has_mask && bounds.is_some()))
    }

    fn added(&self, file: &str, _: &str, class: &str, bounds: ExactBox) -> Result<(usize, String), String> {
        let end = file.rfind("</annotation>").ok_or("its file has no annotation element")?;
        let start = file[..end].trim_end_matches([' ', '\t']).len();
        let is_indented = file[..start].ends_with('\n');
        let object = object_xml(class, inclusive(bounds)).map_err(|error| error.to_string())?;
        if !is_indented {
            return Ok((end, object.lines().map(str::trim_start).collect()));
        }
        let line_break = line_break(file);
        let indent = file.find("<object>").and_then(|at| file[..at].rsplit('\n').next());
        let indent = indent.filter(|indent| !indent.is_empty() && indent.trim().is_empty()).unwrap_or("\t");
        let line = |line: &str| {
            let text = line.trim_start_matches('\t');
            indent.repeat(line.len() - text.len() + 1) + text + line_break
        };
        Ok((start, object.lines().map(line).collect()))
    }
}

/// The first and last pixels, counted from 1.
fn inclusive(bounds: ExactBox) -> [f64; 4] {
    [bounds.left + 1.0, bounds.top + 1.0, bounds.right(), bounds.bottom()]
}
