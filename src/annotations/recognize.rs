//! Detects the format of a file or folder of annotations from its content.

mod splits;

use std::collections::BTreeSet;

use super::dataset_files::{IMAGE_LIST, ImagesByFile, VOC_CLASSES};
use super::json::shortened;
use super::voc::VocFiles;
use super::yolo::{DataYaml, YoloFiles};
use super::{AnnotationFormat, AnnotationsError, json_lines, table};
use crate::domain::counted;
use crate::image::source::{FileEntry, Files, NamedKind, kind_of_name};
use crate::tasks::TaskControl;

/// The number of bytes inspected per file.
const HEAD_BYTES: u64 = 64 << 10;
/// The number of files of one kind that are inspected to identify a folder.
const LOOKED_AT: usize = 32;
/// The number of folders that a note lists.
const MAX_NAMED: usize = 4;

pub(super) enum Recognized {
    /// A file of a single-file format (COCO, CSV or JSON Lines), with its first line.
    File {
        format: AnnotationFormat,
        file: FileEntry,
        first_line: String,
    },
    Yolo(Box<YoloFiles>),
    PascalVoc(VocFiles),
    /// Images in one folder per class.
    Folders(Vec<FileEntry>),
    /// Images with annotations in TFRecord files.
    TfRecord,
}

/// The content of a single file.
enum Content {
    Format(AnnotationFormat),
    DataYaml,
    /// A YOLO label file.
    Label,
    Image,
    Other(String),
    /// It cannot be text.
    Broken(AnnotationsError),
}

struct Look<'f> {
    files: &'f Files,
    control: &'f TaskControl,
}

/// The format of a place, and which of its files are read: for a dataset with splits, those of `split` or the default
/// one. If a `data.yaml` was opened, `files` becomes the folder around it.
pub(super) fn recognize(
    files: &mut Files,
    split: Option<&str>,
    control: &TaskControl,
) -> Result<Recognized, AnnotationsError> {
    let listed = files.list(control)?;
    let [file] = &listed[..] else {
        return recognize_folder(&Look { files, control }, &listed, split);
    };
    let look = Look { files, control };
    let (content, first_line) = look.content(file)?;
    let file = file.clone();
    Ok(match content {
        Content::Format(AnnotationFormat::PascalVoc) => {
            Recognized::PascalVoc(VocFiles { documents: listed, classes: None, listed: ImagesByFile::default() })
        }
        Content::Format(AnnotationFormat::TfRecord) => Recognized::TfRecord,
        Content::Format(format) => Recognized::File { format, file, first_line },
        Content::Label => Recognized::Yolo(YoloFiles { labels: listed, ..YoloFiles::default() }.into()),
        Content::DataYaml => {
            // Only this file may be in the folder.
            if let Some(folder) = files.parent().filter(|_| files.is_file(&file)) {
                *files = folder;
            }
            Look { files, control }.data_set(&file, None, split)?
        }
        Content::Image => recognize_folder(&look, &listed, split)?,
        Content::Other(reason) => return Err(AnnotationsError::Unknown { place: files.name_of(&file), reason }),
        Content::Broken(error) => return Err(error),
    })
}

fn recognize_folder(look: &Look, listed: &[FileEntry], split: Option<&str>) -> Result<Recognized, AnnotationsError> {
    let unknown = |reason: String| AnnotationsError::Unknown { place: look.files.name(), reason };
    let with_extension = |extensions: &[&str]| {
        let has = |file: &&FileEntry| {
            let extension = file.name.rsplit_once('.').map_or("", |(_, extension)| extension);
            extensions.iter().any(|known| known.eq_ignore_ascii_case(extension))
        };
        listed.iter().filter(has).cloned().collect::<Vec<_>>()
    };
    let mut yaml = with_extension(&["yaml", "yml"]);
    yaml.sort_by_key(|file| depth(&file.name));
    for file in yaml.iter().take(LOOKED_AT) {
        match look.content(file)?.0 {
            Content::DataYaml => return look.data_set(file, Some(listed), split),
            Content::Broken(error) => return Err(error),
            _ => {}
        }
    }
    let found = look.yolo(listed)?;
    if !found.labels.is_empty() {
        return Ok(Recognized::Yolo(YoloFiles { listed: look.image_list()?, ..found }.into()));
    }
    let xml = with_extension(&["xml"]);
    // The reason counts only if no other file has annotations.
    let mut broken = None;
    for file in xml.iter().take(LOOKED_AT) {
        let content = look.content(file)?.0;
        if let Content::Format(AnnotationFormat::PascalVoc) = content {
            let is_classes = |file: &&FileEntry| file.name.rsplit('/').next() == Some(VOC_CLASSES);
            let classes = listed.iter().filter(is_classes).min_by_key(|file| depth(&file.name)).cloned();
            let listed = look.image_list()?;
            return Ok(Recognized::PascalVoc(VocFiles { documents: xml, classes, listed }));
        }
        if let Content::Broken(error) = content {
            broken.get_or_insert(error);
        }
    }
    let whole = with_extension(&["json", "csv", "tsv", "jsonl", "jsonlines", "ndjson"]);
    let mut candidates = Vec::new();
    for file in whole.into_iter().take(LOOKED_AT) {
        match look.content(&file)? {
            (Content::Format(format), first_line) => candidates.push((format, file, first_line)),
            (Content::Broken(error), _) => drop(broken.get_or_insert(error)),
            _ => {}
        }
    }
    if candidates.len() > 1 {
        let names: Vec<String> = candidates.iter().take(8).map(|(_, file, _)| shortened(&file.name)).collect();
        return Err(unknown(format!("it contains several annotation files; choose one: {}", names.join(", "))));
    }
    if let Some((format, file, first_line)) = candidates.pop() {
        return Ok(Recognized::File { format, file, first_line });
    }
    if let Some(error) = broken {
        return Err(error);
    }
    let of_kind = |kind: NamedKind| listed.iter().filter(move |file| kind_of_name(&file.name) == kind).cloned();
    if of_kind(NamedKind::Records).next().is_some() {
        return Ok(Recognized::TfRecord);
    }
    let images: Vec<FileEntry> = of_kind(NamedKind::Image).collect();
    if images.iter().any(|image| image.name.contains('/')) {
        return Ok(Recognized::Folders(images));
    }
    let reason = match images.len() {
        0 => "it contains no annotations in a known format",
        _ => "it contains images but neither class folders nor annotations in a known format",
    };
    Err(unknown(reason.to_owned()))
}

impl Look<'_> {
    /// The content of a file, and its first line.
    fn content(&self, file: &FileEntry) -> Result<(Content, String), AnnotationsError> {
        let place = || self.files.name_of(file);
        match kind_of_name(&file.name) {
            NamedKind::Image => return Ok((Content::Image, String::new())),
            NamedKind::Records => return Ok((Content::Format(AnnotationFormat::TfRecord), String::new())),
            NamedKind::Other => {}
        }
        let head = self.files.read_range(file, 0..HEAD_BYTES.min(file.size_bytes), self.control)?;
        if super::is_utf16(&head) {
            return Ok((Content::Broken(AnnotationsError::Utf16 { place: place() }), String::new()));
        }
        if let Some(what) = binary(&head) {
            return Ok((Content::Other(format!("it is {what}")), String::new()));
        }
        let text = head.strip_prefix(super::BOM).unwrap_or(&head).trim_ascii_start();
        let text = String::from_utf8_lossy(text);
        let first_line = text.split(['\n', '\r']).next().unwrap_or_default().trim_end().to_owned();
        if text.is_empty() {
            // An image without objects has an empty label file.
            let empty = || Content::Broken(AnnotationsError::Empty { place: place() });
            return Ok((if is_text(&file.name) { Content::Label } else { empty() }, first_line));
        }
        let is_yaml = [".yaml", ".yml"].iter().any(|extension| file.name.to_lowercase().ends_with(extension));
        let content = match text.as_bytes()[0] {
            b'[' => list_content(&text),
            b'{' => object_content(&text, &first_line),
            b'<' if text.contains("<annotation") => Content::Format(AnnotationFormat::PascalVoc),
            b'<' => Content::Other("it is XML without an annotation element".to_owned()),
            _ if is_yaml && text.lines().any(is_of_data_yaml) => Content::DataYaml,
            _ if is_yaml => Content::Other("it is YAML with neither class names nor splits".to_owned()),
            _ if is_label(&first_line) => Content::Label,
            _ => match table::check_header(&first_line) {
                Ok(()) => Content::Format(AnnotationFormat::Csv),
                Err(reason) => Content::Other(format!(
                    "it is not JSON, XML or YOLO, and as CSV {reason}; its first line is “{}”",
                    shortened(&first_line)
                )),
            },
        };
        Ok((content, first_line))
    }

    /// The dataset of a `data.yaml`: the given split, or everything in `listed` if the file names no splits.
    fn data_set(
        &self,
        yaml: &FileEntry,
        listed: Option<&[FileEntry]>,
        split: Option<&str>,
    ) -> Result<Recognized, AnnotationsError> {
        let data = DataYaml::read(self.files, yaml, self.control)?;
        let folder = yaml.name.rsplit_once('/').and_then(|(folder, _)| self.files.at(folder));
        let around = Look { files: folder.as_ref().unwrap_or(self.files), control: self.control };
        let found = match (around.split(yaml, &data, split)?, listed) {
            (Some(found), _) => found,
            (None, Some(listed)) => self.yolo(listed)?,
            (None, None) => self.yolo(&self.files.list(self.control)?)?,
        };
        let listed = around.image_list()?;
        Ok(Recognized::Yolo(YoloFiles { data: Some(data), listed, ..found }.into()))
    }

    /// The images of an exported dataset's label files.
    fn image_list(&self) -> Result<ImagesByFile, AnnotationsError> {
        match self.listed(self.files, IMAGE_LIST)?.as_deref() {
            Some([file]) => Ok(ImagesByFile::read(&self.files.read(file, self.control)?)),
            _ => Ok(ImagesByFile::default()),
        }
    }

    /// The label files of a folder and related files. If there are folders named `labels`, only the topmost ones are
    /// used: tools write predictions into a `labels` folder further down.
    fn yolo(&self, listed: &[FileEntry]) -> Result<YoloFiles, AnnotationsError> {
        let (mut labels, mut images, mut names) = (Vec::new(), Vec::new(), None);
        for file in listed {
            let name = file.name.rsplit('/').next().unwrap_or_default();
            if matches!(name, "classes.txt" | "obj.names") {
                names = names.or_else(|| Some(file.clone()));
            } else if is_text(&file.name) {
                labels.push(file.clone());
            } else if kind_of_name(&file.name) == NamedKind::Image {
                images.push(file.name.clone());
            }
        }
        let mut notes = Vec::new();
        let depths = labels.iter().filter_map(|file| Some(depth(labels_folder(&file.name)?)));
        if let Some(topmost) = depths.min() {
            let (top, others): (Vec<FileEntry>, Vec<FileEntry>) = labels
                .into_iter()
                .filter(|file| labels_folder(&file.name).is_some())
                .partition(|file| labels_folder(&file.name).is_some_and(|folder| depth(folder) == topmost));
            notes.extend(left_out(&top, &others));
            labels = top;
        } else {
            // Unrelated text files may be next to images.
            let mut found = None;
            for (index, file) in labels.iter().enumerate().take(LOOKED_AT) {
                if file.size_bytes > 0 && matches!(self.content(file)?.0, Content::Label) {
                    found = Some(index);
                    break;
                }
            }
            if found.is_none() {
                labels.clear();
            }
            let stems: std::collections::HashSet<&str> =
                images.iter().filter_map(|image| Some(image.rsplit_once('.')?.0)).collect();
            if !stems.is_empty() {
                labels.retain(|file| file.name.rsplit_once('.').is_some_and(|(stem, _)| stems.contains(stem)));
            }
        }
        Ok(YoloFiles { names, labels, images, notes, ..YoloFiles::default() })
    }
}

/// The outermost `labels` folder around a file.
fn labels_folder(name: &str) -> Option<&str> {
    let (folders, _) = name.rsplit_once('/')?;
    let mut end = 0;
    for folder in folders.split('/') {
        end += folder.len();
        if folder == "labels" {
            return Some(&name[..end]);
        }
        end += 1;
    }
    None
}

fn depth(path: &str) -> usize {
    path.matches('/').count()
}

/// Reports which folders of label files are read, and which are not.
fn left_out(read: &[FileEntry], others: &[FileEntry]) -> Option<String> {
    let folders = |files: &[FileEntry]| {
        let folders: BTreeSet<&str> = files.iter().filter_map(|file| labels_folder(&file.name)).collect();
        let mut named: Vec<&str> = folders.iter().take(MAX_NAMED).copied().collect();
        named.extend((folders.len() > MAX_NAMED).then_some("…"));
        named.join(", ")
    };
    (!others.is_empty()).then(|| {
        format!(
            "using the labels in {}; {} in {} skipped, because predictions are often written there",
            folders(read),
            counted(others.len(), "file", "files"),
            folders(others)
        )
    })
}

/// The kind of file, if it contains bytes that no text has.
fn binary(head: &[u8]) -> Option<&'static str> {
    if head.starts_with(b"SQLite format 3\0") {
        return Some("a Spotcheck project or another SQLite database");
    }
    let is_of_text = |byte: &u8| *byte >= b' ' || byte.is_ascii_whitespace();
    (!head.iter().all(is_of_text)).then_some("a binary file, not text")
}

fn list_content(text: &str) -> Content {
    let behind = text[1..].trim_start();
    if behind.starts_with('{') {
        let keys = top_keys(behind.as_bytes());
        if !keys.iter().any(|key| key == "image_id") {
            return Content::Other(format!(
                "a list of COCO results has entries with image_id; the first one here has {}",
                names(&keys)
            ));
        }
    }
    Content::Format(AnnotationFormat::CocoResults)
}

fn object_content(text: &str, first_line: &str) -> Content {
    let keys = top_keys(text.as_bytes());
    let has_one_of = |known: &[&str]| known.iter().any(|known| keys.iter().any(|key| key == known));
    if has_one_of(&["images", "annotations", "categories"]) {
        return Content::Format(AnnotationFormat::Coco);
    }
    if has_one_of(&json_lines::NAME_KEYS) && (first_line.ends_with('}') || first_line.len() == text.len()) {
        return Content::Format(AnnotationFormat::JsonLines);
    }
    Content::Other(format!(
        "a COCO file has images, annotations and categories, and each JSON Lines entry has a uri; this one has {}",
        names(&keys)
    ))
}

/// Whether a line of YAML belongs to Ultralytics' `data.yaml`. The class names may be missing.
fn is_of_data_yaml(line: &str) -> bool {
    ["names:", "train:", "val:", "test:"].iter().any(|key| line.starts_with(key))
}

fn names(keys: &[String]) -> String {
    if keys.is_empty() {
        return "no keys".to_owned();
    }
    let keys: Vec<String> = keys.iter().take(8).map(|key| shortened(key)).collect();
    keys.join(", ")
}

/// Whether the name fits a YOLO label file.
fn is_text(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, extension)| extension.eq_ignore_ascii_case("txt"))
}

/// Whether a line has the numbers of a YOLO box.
fn is_label(line: &str) -> bool {
    let numbers = line.split_ascii_whitespace().map(str::parse::<f64>);
    let numbers: Result<Vec<f64>, _> = numbers.collect();
    numbers.is_ok_and(|numbers| numbers.len() >= 5 && numbers[0].fract() == 0.0)
}

/// The keys of the object at the start of `text`, as far as the text goes.
fn top_keys(text: &[u8]) -> Vec<String> {
    let mut keys = Vec::new();
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += 1;
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let start = at;
                while let Some(&inside) = text.get(at)
                    && inside != b'"'
                {
                    at += if inside == b'\\' { 2 } else { 1 };
                }
                let key = text.get(start..at);
                at += 1;
                let behind = text.get(at..).unwrap_or_default().trim_ascii_start();
                if let (1, Some(key), true) = (depth, key, behind.starts_with(b":")) {
                    keys.push(String::from_utf8_lossy(key).into_owned());
                }
                continue;
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    keys
}
