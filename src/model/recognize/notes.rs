//! What a model's file and the files next to it state: the exporter's metadata, `config.json` and
//! `preprocessor_config.json` of transformers and timm, label files. Pure: the caller reads the files. Nothing here
//! fails: an unreadable file becomes a note for the user, and a fact of the wrong type counts as missing.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::noted::{Exporter, Noted, Notes, Purpose, label_count, size, text, truth, whole};
use super::{pipelines, preprocessing};
use crate::domain::LabelSet;

/// The class names of WD taggers.
const TAGS_FILE: &str = "selected_tags.csv";

/// Words in the names of label files: `coco_labels.txt`, `labelmap.txt`, `class_names.txt`.
const LABEL_WORDS: [&str; 5] = ["label", "labels", "labelmap", "class", "classes"];

/// A text file next to the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbor {
    /// The name for the user: `config.json`, or `../config.json` for a file in the parent folder.
    pub name: String,
    pub text: String,
}

/// The kinds of files next to a model, best source of names first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Class names in a file that is named after the model.
    OwnLabels,
    Config,
    Preprocessor,
    /// Class names in a file with a usual name.
    Labels,
    /// Lobe's `signature.json`.
    Lobe,
    /// A text or JSON file whose name contains “labels” or “classes”.
    LikelyLabels,
    /// `MMDeploy`'s `pipeline.json`.
    MmDeploy,
    /// Roboflow's `environment.json`.
    Roboflow,
    /// Any YAML file: `names` of the training data, or something else.
    Yaml,
}

impl Notes {
    /// Whether a file with this name can be relevant for a model whose file is `stem` plus an extension.
    pub fn concern(file_name: &str, stem: &str) -> bool {
        kind(file_name, stem).is_some()
    }

    /// Reads the graph's metadata and the files next to it.
    pub fn read(stem: &str, metadata: &BTreeMap<String, String>, neighbors: &[Neighbor]) -> Self {
        let mut notes = Self::default();
        let mut files: Vec<(Kind, &Neighbor)> =
            neighbors.iter().filter_map(|file| Some((kind(file_name(&file.name), stem)?, file))).collect();
        // The sort is stable: ties keep the caller's order, with the model's own folder first.
        files.sort_by_key(|(kind, _)| *kind);
        let own = files.partition_point(|(kind, _)| *kind == Kind::OwnLabels);
        let (own, others) = files.split_at(own);
        for (kind, file) in own {
            notes.read_file(*kind, file);
        }
        notes.read_metadata(metadata);
        for (kind, file) in others {
            notes.read_file(*kind, file);
        }
        notes
    }

    /// The closest names for exactly this many classes.
    pub fn labels_for(&self, classes: usize) -> Option<Noted<LabelSet>> {
        self.labels_if(|labels| label_count(labels) == classes)
    }

    /// The closest names that fit; the reason lists other names that fit.
    pub fn labels_if(&self, fits: impl Fn(&LabelSet) -> bool) -> Option<Noted<LabelSet>> {
        let mut fitting = self.labels.iter().filter(|noted| fits(&noted.value));
        let mut nearest = fitting.next()?.clone();
        let others: Vec<&str> =
            fitting.filter(|other| other.value != nearest.value).map(|other| &*other.because).collect();
        if !others.is_empty() {
            let others = others.join(" and ");
            nearest.because =
                format!("{}; also found: {others}. Choose another file if these names are wrong", nearest.because);
        }
        Some(nearest)
    }

    /// Whether the metadata is from Ultralytics or YOLOv5.
    pub fn is_ultralytics(&self) -> bool {
        self.exporter.is_some()
    }

    fn read_file(&mut self, kind: Kind, file: &Neighbor) {
        let read = match kind {
            Kind::Config => json(&file.text).map(|config| self.read_config(&config, &file.name)),
            Kind::Preprocessor => json(&file.text).map(|config| preprocessing::read(self, &config, &file.name)),
            Kind::MmDeploy => json(&file.text).map(|config| pipelines::read_mmdeploy(self, &config, &file.name)),
            Kind::Yaml => self.read_yaml(file),
            Kind::OwnLabels if is_yaml(&file.name) => self.read_yaml(file),
            Kind::OwnLabels | Kind::Labels | Kind::LikelyLabels => self.read_labels(file),
            Kind::Roboflow => json(&file.text).map(|config| self.read_roboflow(&config, &file.name)),
            Kind::Lobe => json(&file.text).map(|config| self.read_lobe(&config, &file.name)),
        };
        if let Err(reason) = read {
            self.remarks.push(format!("{} was not used: {reason}", file.name));
        }
    }

    fn read_labels(&mut self, file: &Neighbor) -> Result<(), String> {
        self.add_labels(read_labels(&file.name, &file.text)?, &file.name);
        self.has_numbered_labels |= LabelSet::parse_numbered(&file.text).is_some();
        self.has_tags |= file_name(&file.name) == TAGS_FILE;
        Ok(())
    }

    fn read_yaml(&mut self, file: &Neighbor) -> Result<(), String> {
        let value = yaml(&file.text)?;
        if let Some(labels) = ["names", "label_list"].into_iter().find_map(|key| names(&value[key])) {
            self.add_labels(labels, &file.name);
        }
        let mut outputs = value["PostProcess"].as_object().into_iter().flat_map(serde_json::Map::values);
        let of_two = |output: &Value| names(&Value::Array(vec![output["label_0"].clone(), output["label_1"].clone()]));
        if let Some(labels) = outputs.find_map(|output| names(&output["label_list"]).or_else(|| of_two(output))) {
            self.add_labels(labels, &file.name);
        }
        if let Some(iou) = value["NMS"]["nms_threshold"].as_f64() {
            let because = format!("{} has nms_threshold = {iou}", file.name);
            self.nms_iou.get_or_insert(Noted { value: iou as f32, because });
        }
        if let Some(steps) = value["PreProcess"]["transform_ops"].as_array() {
            pipelines::read_paddle_classifier(self, steps, &file.name);
        }
        if let Some(steps) = value["Preprocess"].as_array() {
            pipelines::read_paddle(self, steps, &file.name);
        }
        Ok(())
    }

    /// `config.json` of transformers or timm.
    fn read_config(&mut self, config: &Value, file: &str) {
        let says = |key: &str, value: &Value| format!("{file} has {key} = {}", text(value).unwrap_or_default());
        if let Some(labels) = names(&config["id2label"]).filter(|labels| !are_placeholders(labels)) {
            self.add_labels(labels, file);
        }
        if let Some(model_type) = text(&config["model_type"]) {
            let because = format!("{file} has model_type = {model_type}");
            self.model_type.get_or_insert(Noted { value: model_type, because });
        }
        let count = config["id2label"].as_object().map(serde_json::Map::len).filter(|count| *count > 0);
        let count =
            count.or_else(|| whole(&config["num_classes"]).map(|count| count as usize).filter(|count| *count > 0));
        if let Some(value) = count {
            self.label_count.get_or_insert(Noted { value, because: format!("{file} has {value} classes") });
        }
        if let Some(purpose) = purpose(config, file) {
            self.purpose.get_or_insert(purpose);
        }
        let problem = &config["problem_type"];
        if let Some(kind) = problem.as_str() {
            let multi_label =
                Noted { value: kind == "multi_label_classification", because: says("problem_type", problem) };
            self.multi_label.get_or_insert(multi_label);
        } else if config["model_type"].is_string() {
            let because = format!("{file} has no problem_type, and transformers then applies the softmax");
            self.multi_label.get_or_insert(Noted { value: false, because });
        }
        if config["architecture"].is_string() {
            for names_of in [&config["label_names"], &config["pretrained_cfg"]["label_names"]] {
                if let Some(labels) = names(names_of) {
                    self.add_labels(labels, file);
                }
            }
            preprocessing::read_timm(self, config, file);
        }
    }

    fn read_lobe(&mut self, config: &Value, file: &str) {
        match names(&config["classes"]["Label"]) {
            Some(labels) => {
                self.add_labels(labels, file);
                preprocessing::from_lobe(self, file);
            }
            None => self.remarks.push(format!("{file} was not used: it has no classes")),
        }
    }

    /// The class names and the resize rule of Roboflow's weights (`roboflow.py` in the package `inference`).
    fn read_roboflow(&mut self, config: &Value, file: &str) {
        if let Some(labels) = names(&config["CLASS_MAP"]) {
            self.add_labels(labels, file);
        }
        let steps = &config["PREPROCESSING"];
        let steps = steps.as_str().map_or_else(|| Ok(steps.clone()), json);
        preprocessing::read_roboflow(self, &steps.unwrap_or_default(), file);
    }

    /// Also adds the names without a first one that stands for the background: a graph may leave it out.
    fn add_labels(&mut self, labels: LabelSet, place: &str) {
        let classes = without_background(&labels);
        for (value, text) in [(Some(labels), "classes"), (classes, "classes after the background")] {
            if let Some(value) = value.filter(|labels| !labels.is_empty()) {
                let because = format!("{place} names {} {text}", label_count(&value));
                self.labels.push(Noted { value, because });
            }
        }
    }

    /// Metadata that Ultralytics and YOLOv5 write into the graph.
    fn read_metadata(&mut self, metadata: &BTreeMap<String, String>) {
        let value = |key: &str| Some((key.to_owned(), yaml(metadata.get(key)?).ok()?));
        if let Some(labels) = value("names").and_then(|(_, value)| names(&value)) {
            self.add_labels(labels, "the file metadata");
        }
        self.input_size = noted(value("imgsz"), size);
        self.stride = noted(value("stride"), |value| whole(value).filter(|stride| *stride > 0));
        self.task = noted(value("task"), |value| value.as_str()?.parse().ok());
        self.batch = noted(value("batch"), whole);
        self.channels = noted(value("channels"), whole);
        self.end_to_end = noted(value("end2end"), truth);
        self.nms_in_graph = noted(value("args"), |args| truth(&args["nms"]));
        preprocessing::read_image_metadata(self, metadata);
        let label_info = metadata.get("model_info label_info").and_then(|text| json(text).ok());
        if let Some(labels) = label_info.and_then(|info| names(&info["label_names"])) {
            self.add_labels(labels, "the file metadata");
        }
        preprocessing::read_model_info(self, metadata);
        let written_by = |text: &str| metadata.get("author").is_some_and(|author| author.contains(text));
        let has = |key: &str| metadata.contains_key(key);
        let exporter = if written_by("Ultralytics") {
            Some((Exporter::Ultralytics, "the file metadata is from Ultralytics"))
        } else if has("imgsz") && has("names") {
            Some((Exporter::Ultralytics, "the file metadata matches Ultralytics exports"))
        } else if has("stride") && has("names") {
            Some((Exporter::Yolov5, "the file metadata matches YOLOv5 exports"))
        } else {
            None
        };
        self.exporter = exporter.map(|(value, because)| Noted { value, because: because.to_owned() });
        if let Some((exporter, because)) = exporter {
            preprocessing::from_yolo(self, exporter, metadata.get("version").map(String::as_str), because);
        }
    }
}

/// The class names in a file chosen by the user: `names` in a YAML file, `id2label` (or `label_names`, `names`) in a
/// JSON file, a label map (`.pbtxt`), or the lines of any other file.
///
/// # Errors
/// The file is invalid or has no such names; the reason.
pub fn read_labels(file_name: &str, text: &str) -> Result<LabelSet, String> {
    let text = text.trim_start_matches('\u{feff}');
    match extension(&file_name.to_lowercase()) {
        "pbtxt" => LabelSet::parse_label_map(text).map_err(|error| error.to_string()),
        "yaml" | "yml" => {
            let value = yaml(text)?;
            let labels = ["names", "label_list"].into_iter().find_map(|key| names(&value[key]));
            labels.ok_or_else(|| "it has no `names` list".to_owned())
        }
        "csv" => column_of_names(text).ok_or_else(|| "it has no `name` column".to_owned()),
        "json" => {
            let config = json(text)?;
            let places = [&config["id2label"], &config["label_names"], &config["names"], &config];
            let labels = places.into_iter().find_map(names).or_else(|| class_indices(&config));
            labels.ok_or_else(|| "it has neither `id2label` nor a list of names".to_owned())
        }
        _ => LabelSet::parse(text).map_err(|error| error.to_string()),
    }
}

/// What a model of transformers or timm returns, according to the class in its `config.json` and its class count.
fn purpose(config: &Value, file: &str) -> Option<Noted<Purpose>> {
    if config["problem_type"] == "regression" {
        let because = format!("{file} sets problem_type = regression");
        return Some(Noted { value: Purpose::Regression, because });
    }
    if let Some(class) = text(&config["architectures"][0]) {
        const EMBEDDINGS: [&str; 3] = ["Model", "WithProjection", "Backbone"];
        let value = if class.contains("ForImageClassification") {
            Purpose::Classification
        } else if EMBEDDINGS.iter().any(|end| class.ends_with(end)) {
            Purpose::Embedding
        } else {
            return None;
        };
        return Some(Noted { value, because: format!("{file} sets architectures = {class}") });
    }
    let count = whole(&config["num_classes"]).filter(|_| config["architecture"].is_string())?;
    let value = if count == 0 { Purpose::Embedding } else { Purpose::Classification };
    Some(Noted { value, because: format!("{file} sets num_classes = {count}") })
}

/// A fact in the metadata.
fn noted<T>(entry: Option<(String, Value)>, read: impl Fn(&Value) -> Option<T>) -> Option<Noted<T>> {
    let (key, value) = entry?;
    let shown = match &value {
        Value::Object(_) => String::new(),
        value => format!(" = {}", text(value).unwrap_or_else(|| value.to_string())),
    };
    Some(Noted { value: read(&value)?, because: format!("the file metadata has {key}{shown}") })
}

fn kind(file_name: &str, stem: &str) -> Option<Kind> {
    let name = file_name.to_lowercase();
    let extension = extension(&name);
    let own = name.strip_prefix(&stem.to_lowercase()).filter(|_| !stem.is_empty());
    match (name.as_str(), extension, own) {
        ("config.json", ..) => Some(Kind::Config),
        ("preprocessor_config.json", ..) => Some(Kind::Preprocessor),
        ("pipeline.json", ..) => Some(Kind::MmDeploy),
        ("environment.json", ..) => Some(Kind::Roboflow),
        (_, "yaml" | "yml" | "names" | "pbtxt", Some(rest)) if rest.len() == extension.len() + 1 => {
            Some(Kind::OwnLabels)
        }
        (_, _, Some(".txt" | ".labels.txt" | "_labels.txt" | "-labels.txt" | ".classes.txt" | ".labels")) => {
            Some(Kind::OwnLabels)
        }
        ("labels.txt" | "classes.txt" | "labels" | "dict.txt" | TAGS_FILE, ..) | (_, "names" | "pbtxt", _) => {
            Some(Kind::Labels)
        }
        ("signature.json", ..) => Some(Kind::Lobe),
        (_, "txt" | "json", _) if words(&name).any(|word| LABEL_WORDS.contains(&word)) => Some(Kind::LikelyLabels),
        (_, "yaml" | "yml", _) => Some(Kind::Yaml),
        _ => None,
    }
}

fn words(name: &str) -> impl Iterator<Item = &str> {
    name.split(|symbol: char| !symbol.is_alphanumeric())
}

fn file_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

fn extension(name: &str) -> &str {
    Path::new(name).extension().and_then(|extension| extension.to_str()).unwrap_or_default()
}

fn is_yaml(name: &str) -> bool {
    ["yaml", "yml"].contains(&extension(&name.to_lowercase()))
}

/// YAML, which includes JSON and nearly everything that Python's `repr` writes for lists and dictionaries.
fn yaml(text: &str) -> Result<Value, String> {
    // `no` is a name (of a class, of Norway) as often as a boolean.
    let options = serde_saphyr::options! { strict_booleans: true };
    let text = text.trim_start_matches('\u{feff}');
    serde_saphyr::from_str_with_options(text, options).map_err(|error| first_line(&error.to_string()))
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

fn json(text: &str) -> Result<Value, String> {
    let read = serde_json::from_str(text.trim_start_matches('\u{feff}'));
    read.map_err(|error| format!("it is not JSON: {error}"))
}

/// transformers writes `LABEL_0`, `LABEL_1` … for classes without names.
fn are_placeholders(labels: &LabelSet) -> bool {
    labels.iter().all(|(id, name)| name == format!("LABEL_{id}"))
}

/// Whether the first name stands for the background, as TensorFlow and pytorch-ssd write it.
pub(super) fn begin_with_background(labels: &LabelSet) -> bool {
    let first = labels.get(0).unwrap_or_default().to_lowercase();
    ["background", "__background__", "_background_", "???"].contains(&&*first)
}

/// The names after that of the background; `None` if there is none.
fn without_background(labels: &LabelSet) -> Option<LabelSet> {
    let classes = labels.iter().filter_map(|(id, name)| Some((id.checked_sub(1)?, name.to_owned())));
    begin_with_background(labels).then(|| classes.collect())
}

/// The column `name` of a table with one row per class.
fn column_of_names(text: &str) -> Option<LabelSet> {
    let mut rows = text.lines().map(csv_fields);
    let column = rows.next()?.iter().position(|name| name == "name")?;
    (0..)
        .zip(rows)
        .map(|(id, mut row)| {
            let name = (row.len() > column).then(|| row.swap_remove(column))?;
            (!name.trim().is_empty()).then_some((id, name))
        })
        .collect()
}

/// The fields of a line. A quoted field can contain commas and doubled quotes.
fn csv_fields(line: &str) -> Vec<String> {
    let (mut fields, mut is_quoted) = (vec![String::new()], false);
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match (character, fields.last_mut()) {
            ('"', Some(field)) if is_quoted && characters.next_if_eq(&'"').is_some() => field.push('"'),
            ('"', _) => is_quoted = !is_quoted,
            (',', _) if !is_quoted => fields.push(String::new()),
            (character, field) => field.into_iter().for_each(|field| field.push(character)),
        }
    }
    fields
}

/// A list of names, or a table from class number to name.
fn names(value: &Value) -> Option<LabelSet> {
    let labels: LabelSet = match value {
        Value::Array(names) => (0..).zip(names).map(|(id, name)| Some((id, text(name)?))).collect::<Option<_>>()?,
        Value::Object(names) => {
            names.iter().map(|(id, name)| Some((id.trim().parse().ok()?, text(name)?))).collect::<Option<_>>()?
        }
        _ => return None,
    };
    (!labels.is_empty()).then_some(labels)
}

/// A table from name to class number, as in Keras' and torchvision's folders of images.
fn class_indices(value: &Value) -> Option<LabelSet> {
    let numbers = value.as_object()?.iter();
    let labels: LabelSet = numbers.map(|(name, id)| Some((whole(id)?, name.clone()))).collect::<Option<_>>()?;
    (!labels.is_empty()).then_some(labels)
}

#[cfg(test)]
mod tests {
    use super::super::noted::NotedTask;
    use super::*;

    fn notes_in_metadata(entries: &[(&str, &str)]) -> Notes {
        let metadata = entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Notes::read("model", &metadata, &[])
    }

    fn notes_in_files(files: &[(&str, &str)]) -> Notes {
        let file = |(name, text): &(&str, &str)| Neighbor { name: (*name).to_owned(), text: (*text).to_owned() };
        let neighbors: Vec<Neighbor> = files.iter().map(file).collect();
        Notes::read("yolo", &BTreeMap::new(), &neighbors)
    }

    fn list(labels: &LabelSet) -> Vec<&str> {
        labels.iter().map(|(_, name)| name).collect()
    }

    #[test]
    fn python_and_json_name_lists_are_read() {
        for text in [
            r#"{0: 'person', 1: "driver's seat", 2: 'fire, "big"'}"#,
            r#"{"0": "person", "1": "driver's seat", "2": "fire, \"big\""}"#,
            r#"["person", "driver's seat", "fire, \"big\""]"#,
        ] {
            let notes = notes_in_metadata(&[("names", text)]);
            assert_eq!(list(&notes.labels[0].value), ["person", "driver's seat", "fire, \"big\""], "{text}");
        }
    }

    #[test]
    fn other_metadata_is_not_a_name_list() {
        for text in ["", "person", "{}", "[[1], 2]", "{'a': 'b'}", "['open", "[null]"] {
            assert_eq!(notes_in_metadata(&[("names", text)]).labels, [], "{text}");
        }
    }

    #[test]
    fn ultralytics_metadata_is_read() {
        let notes = notes_in_metadata(&[
            ("author", "Ultralytics"),
            ("names", "{0: 'a', 1: 'b'}"),
            ("imgsz", "[480, 640]"),
            ("stride", "32"),
            ("task", "obb"),
            ("batch", "4"),
            ("channels", "3"),
            ("end2end", "True"),
            ("args", "{'batch': 1, 'half': False, 'nms': True}"),
        ]);
        assert_eq!(notes.input_size.unwrap().value, [640, 480]);
        assert_eq!(notes.stride.unwrap().value, 32);
        assert_eq!(notes.task.unwrap().value, NotedTask::Obb);
        assert_eq!(notes.batch.unwrap().value, 4);
        assert!(notes.end_to_end.unwrap().value);
        assert!(notes.nms_in_graph.unwrap().value);
        assert_eq!(notes.exporter.unwrap().value, Exporter::Ultralytics);
        let yolov5 = notes_in_metadata(&[("names", "['a', 'b']"), ("stride", "32")]);
        assert_eq!(yolov5.exporter.unwrap().value, Exporter::Yolov5);
    }

    #[test]
    fn label_file_named_after_the_model_comes_first() {
        let notes = notes_in_files(&[
            ("coco.yaml", "path: ../datasets\nnames:\n  0: person\n  1: no\n"),
            ("labels.txt", "cat\ndog\nbird\n"),
            ("yolo.names", "red\ngreen\n"),
            ("map.pbtxt", "item { id: 1 name: 'x' }"),
            ("classes.json", r#"["a", "b", "c", "d"]"#),
            ("sizes.json", r#"["e"]"#),
        ]);
        let sets: Vec<Vec<&str>> = notes.labels.iter().map(|noted| list(&noted.value)).collect();
        assert_eq!(
            sets,
            [
                vec!["red", "green"],
                vec!["cat", "dog", "bird"],
                vec!["x"],
                vec!["a", "b", "c", "d"],
                vec!["person", "no"]
            ]
        );
        assert_eq!(list(&notes.labels_for(3).unwrap().value), ["cat", "dog", "bird"]);
        assert_eq!(notes.labels[0].because, "yolo.names names 2 classes");
        let because = notes.labels_for(2).unwrap().because;
        let others =
            "yolo.names names 2 classes; also found: map.pbtxt names 2 classes and coco.yaml names 2 classes. ";
        assert!(because.starts_with(others), "{because}");
        assert_eq!(notes.labels_for(3).unwrap().because, "labels.txt names 3 classes");
    }

    #[test]
    fn label_files_of_each_kind_are_read() {
        for (file, text) in [
            ("labels.txt", "cat\nno\n"),
            ("ids.TXT", "0\tcat\n1\tno\n"),
            ("map.pbtxt", "item { id: 0 name: 'cat' } item { id: 1 name: 'no' }"),
            ("data.yaml", "path: ../data\nnc: 2\nnames: [cat, no]\n"),
            ("coco.yml", "names:\n  0: cat\n  1: no\n"),
            ("config.json", r#"{"model_type": "vit", "id2label": {"0": "cat", "1": "no"}}"#),
            ("timm.json", r#"{"label_names": ["cat", "no"]}"#),
            ("list.json", r#"["cat", "no"]"#),
            ("class_indices.json", r#"{"no": 1, "cat": 0}"#),
            ("infer_cfg.yml", "arch: YOLO\nlabel_list:\n- cat\n- no\n"),
            ("selected_tags.csv", "tag_id,name,category,count\n9,cat,0,7\n3,\"no\",0,1\n"),
        ] {
            let labels = read_labels(file, text).unwrap_or_else(|reason| panic!("{file}: {reason}"));
            assert_eq!(list(&labels), ["cat", "no"], "{file}");
        }
        for (file, text, part) in [
            ("data.yaml", "nc: 2", "no `names` list"),
            ("config.json", r#"{"model_type": "vit"}"#, "neither `id2label`"),
            ("config.json", "{", "not JSON"),
            ("labels.txt", "cat\n\ndog", "line 2"),
            ("tags.csv", "id,tag\n1,cat\n", "no `name` column"),
        ] {
            let reason = read_labels(file, text).unwrap_err();
            assert!(reason.contains(part), "{file}: {reason}");
        }
    }

    #[test]
    fn quoted_fields_hold_commas_and_quotes() {
        for (line, expected) in [
            ("1,a,2", &["1", "a", "2"][..]),
            (r#"1,"a,b",2"#, &["1", "a,b", "2"]),
            (r#""don't_say_""lazy""",0"#, &[r#"don't_say_"lazy""#, "0"]),
            ("", &[""]),
        ] {
            assert_eq!(csv_fields(line), expected, "{line}");
        }
    }

    #[test]
    fn broken_file_is_a_remark() {
        let notes =
            notes_in_files(&[("labels.txt", "cat\n\ndog\n"), ("data.yaml", "names: [a, b"), ("other.yaml", "a: 1")]);
        assert_eq!(notes.labels, []);
        assert_eq!(notes.remarks.len(), 2, "{:?}", notes.remarks);
        assert!(notes.remarks[0].starts_with("labels.txt was not used: line 2"), "{:?}", notes.remarks);
        assert!(notes.remarks[1].starts_with("data.yaml was not used: "), "{:?}", notes.remarks);
    }
}
