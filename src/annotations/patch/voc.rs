//! Changes in Pascal VOC's files: a label is an `object` element.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use quick_xml::Reader as Xml;
use quick_xml::escape::escape;
use quick_xml::events::Event;

use super::LabelPatchError;
use super::text::{LabelEdit, NewLabel, Output, PlacedLabel, TextFile, TextFormat, TextLabels, line_break};
use crate::annotations::dataset_files::{VOC_CLASSES, object_xml, whole_pixels, xml_char};
use crate::annotations::json::shortened;
use crate::annotations::voc::{Document, Reader, VocFiles};
use crate::annotations::{AnnotationsError, voc};
use crate::domain::{BoxUnit, ExactBox};
use crate::image::source::Files;
use crate::tasks::TaskControl;

pub(super) struct Voc {
    /// Those in `dataset_meta.json`.
    classes: BTreeSet<String>,
}

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
        let mut reader = voc::reader(files, found, control)?;
        let format = Voc { classes: reader.classes.clone() };
        let mut opened =
            Self { format, files: Vec::new(), file_of: HashMap::new(), unlisted: None, output: Output::Folder };
        for entry in &found.documents {
            let listed = found.listed.get(&entry.name);
            if listed.is_none() && !stems.contains(stem(&entry.name)) {
                continue;
            }
            let content = files.read(entry, control).map_err(AnnotationsError::from)?;
            match open_document(&mut reader, entry.name.clone(), listed, &content) {
                // As when it is read, the first file of an image counts.
                Ok((image, file)) if wanted.contains(image.as_str()) && !opened.has_file(&image) => {
                    opened.add(image, Ok(file));
                }
                Ok(_) => {}
                Err(reason) => {
                    let is_of = |image: &&&str| reader.image_name(&entry.name, listed, file_name(image)) == ***image;
                    for image in wanted.iter().filter(is_of).map(|image| (*image).to_owned()).collect::<Vec<_>>() {
                        opened.file_of.entry(image).or_insert(Err(format!("{} {reason}", entry.name)));
                    }
                }
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

    fn changed(&self, label: &LabelEdit<'_>) -> Result<(String, bool), String> {
        let LabelEdit { file, text, class, bounds } = *label;
        let mut edits: Vec<(Range<usize>, String)> = Vec::new();
        let elements = elements(text);
        let inner = |path: &[&str]| {
            let found = elements.iter().find(|element| element.path == path).map(|element| element.inner.clone());
            found.ok_or_else(|| format!("the object has no {}", path.join("/")))
        };
        if let Some(class) = class {
            self.check_class(class)?;
            edits.push((inner(&["object", "name"])?, in_encoding(file, &escape(class))));
        }
        let mut lost_mask = false;
        if let Some(bounds) = bounds {
            for (side, number) in SIDES.into_iter().zip(inclusive(bounds)) {
                edits.push((inner(&["object", "bndbox", side])?, number.to_string()));
            }
            for mask in elements.iter().filter(|element| element.path == ["object", "polygon"]) {
                edits.push((whole_lines(text, mask.outer.clone()), String::new()));
                lost_mask = true;
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
        Ok((changed + &text[end..], lost_mask))
    }

    fn added(&self, file: &str, label: &NewLabel<'_>) -> Result<(usize, String), String> {
        self.check_class(label.class)?;
        let elements = elements(file);
        let root = elements.iter().find(|element| element.path == ["annotation"]);
        let end = root.ok_or("its file has no annotation element")?.inner.end;
        let start = file[..end].trim_end_matches([' ', '\t']).len();
        let object = |indent: Option<&str>| {
            let object = object_xml(label.class, inclusive(label.bounds), label.score, indent);
            object.map(|object| in_encoding(file, &object)).map_err(|error| error.to_string())
        };
        if !file[..start].ends_with('\n') {
            return Ok((end, object(None)?));
        }
        let first = elements.iter().find(|element| element.path == ["annotation", "object"]);
        let indent = first.and_then(|first| file[..first.outer.start].rsplit('\n').next());
        let is_uniform = |indent: &&str| {
            [' ', '\t'].iter().any(|one| !indent.is_empty() && indent.chars().all(|letter| letter == *one))
        };
        let object = object(Some(indent.filter(is_uniform).unwrap_or("\t")))?;
        // In a class name, XML reads both line breaks as the same.
        Ok((start, object.replace('\n', line_break(file))))
    }
}

impl Voc {
    /// # Errors
    /// Another class would be read.
    fn check_class(&self, class: &str) -> Result<(), String> {
        if class.trim() != class && !self.classes.contains(class) {
            return Err(format!(
                "the spaces or line breaks around the class “{}” are read only if {VOC_CLASSES} lists it; list it there, \
                 and apply the changes again",
                shortened(class)
            ));
        }
        if class.chars().any(|letter| xml_char(letter) != letter) {
            return Err(format!("XML cannot store a character of the class “{}”", shortened(class)));
        }
        Ok(())
    }
}

/// Text for a file in the encoding that it declares: all have ASCII, so other letters become references if it is not
/// UTF-8.
fn in_encoding(file: &str, text: &str) -> String {
    let declared = match Xml::from_str(file).read_event() {
        Ok(Event::Decl(declaration)) => declaration.encoding().and_then(Result::ok).map(|name| name.to_lowercase()),
        _ => None,
    };
    if declared.is_none_or(|encoding| ["utf-8", "utf8"].contains(&&*encoding)) {
        return text.to_owned();
    }
    let letter =
        |letter: char| if letter.is_ascii() { letter.to_string() } else { format!("&#{};", u32::from(letter)) };
    text.chars().map(letter).collect()
}

/// The first and last pixels, counted from 1.
fn inclusive(bounds: ExactBox) -> [f64; 4] {
    [bounds.left + 1.0, bounds.top + 1.0, bounds.right(), bounds.bottom()]
}
