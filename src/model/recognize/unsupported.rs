//! Rows that are not class scores: embeddings, and regressions, which are not supported, told apart by names, counts and
//! values. Families of detectors that are not supported, because their boxes are relative to something that is not in
//! the file. Each with the reason and the most similar supported convention.

use super::noted::{Noted, Purpose};
use super::probe::Prober;
use super::signature::Port;
use super::{Nearest, Overrules, RecognitionRequest, RecognizeError, Refusal};
use crate::domain::CardTask;
use crate::model::MAX_DIMS;

/// Parts of output names that indicate features.
const FEATURE_NAMES: [&str; 6] = ["embed", "feature", "hidden_state", "pooler", "pooled", "latent"];
/// Words in output names that indicate class scores.
const SCORE_NAMES: [&str; 11] = [
    "logit",
    "logits",
    "prediction",
    "predictions",
    "prob",
    "probabilities",
    "probability",
    "probs",
    "score",
    "scores",
    "softmax",
];
/// Words in output names that indicate quantities.
const QUANTITY_NAMES: [&str; 14] = [
    "age",
    "angle",
    "angles",
    "bbox",
    "bboxes",
    "box",
    "boxes",
    "coordinates",
    "coords",
    "depth",
    "keypoints",
    "landmarks",
    "pose",
    "regression",
];
/// How far the length of a unit vector may be from 1.
const UNIT_TOLERANCE: f64 = 1e-3;
/// The minimum length of an embedding that no file names.
const MIN_FEATURES: usize = 64;
/// The minimum length of any embedding.
pub(super) const TOO_FEW_FEATURES: usize = 8;
/// Embeddings of at least this length are a multiple of [`MIN_FEATURES`] long.
const MIN_TYPICAL_FEATURES: usize = 128;
/// Key points of a face or a body have at least this many coordinates.
const MIN_COORDINATES: usize = 10;
/// The highest mean of the scores of independent classes on the test images, which show none of them.
const MAX_MEAN_SCORE: f64 = 0.3;
/// Logits beyond this would make every prediction certain to all digits.
const MAX_LOGIT: f64 = 100.0;

/// What a row of numbers is, if not class scores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Features {
    pub purpose: Purpose,
    /// A clause to follow “because”.
    pub because: String,
    /// Whether this is strong enough to overrule the length of a well-known set of classes (1000 numbers): the name of the
    /// output, or vectors of length 1.
    pub outweighs_count: bool,
}

/// Whether the name of an output suggests an embedding.
pub(super) fn names_embedding(name: &str) -> bool {
    let name = name.to_lowercase();
    FEATURE_NAMES.iter().any(|part| name.contains(part)) && !names_scores(&name)
}

/// Whether the name of an output suggests class scores.
pub(super) fn names_scores(name: &str) -> bool {
    has_word(&name.to_lowercase(), &SCORE_NAMES)
}

fn has_word(name: &str, known: &[&str]) -> bool {
    name.split(|character: char| !character.is_alphanumeric()).any(|word| known.contains(&word))
}

/// Whether embeddings often have this many numbers.
pub(super) fn is_typical_length(count: usize) -> bool {
    (MIN_TYPICAL_FEATURES..=MAX_DIMS).contains(&count) && count.is_multiple_of(MIN_FEATURES)
}

impl Features {
    fn new(purpose: Purpose, because: impl Into<String>) -> Self {
        Self { purpose, because: because.into(), outweighs_count: false }
    }

    /// Based on the name of the output.
    pub(super) fn by_name(name: &str) -> Option<Self> {
        let name = name.to_lowercase();
        if names_embedding(&name) {
            Some(Self { outweighs_count: true, ..Self::new(Purpose::Embedding, "its name suggests it") })
        } else if has_word(&name, &QUANTITY_NAMES) {
            Some(Self::new(Purpose::Regression, "its name suggests it"))
        } else {
            None
        }
    }

    /// Based on the results for the test images: rows of at least two numbers, without a softmax.
    pub(super) fn by_values(rows: &[Vec<f64>]) -> Option<Self> {
        use Purpose::{Embedding, Regression};
        let count = rows.first()?.len();
        let values = || rows.iter().flatten().copied();
        let (min, max) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
        let mean = values().sum::<f64>() / values().count() as f64;
        let is_unit =
            |row: &Vec<f64>| (row.iter().map(|value| value * value).sum::<f64>().sqrt() - 1.0).abs() <= UNIT_TOLERANCE;
        if count >= MIN_FEATURES && rows.iter().all(is_unit) {
            let because = "it is a vector of length 1 for each test image";
            Some(Self { outweighs_count: true, ..Self::new(Embedding, because) })
        } else if min.abs().max(max.abs()) > MAX_LOGIT {
            let because =
                format!("its numbers go from {min:.1} to {max:.1}: neither probabilities nor plausible logits");
            Some(Self::new(Regression, because))
        } else if count >= MIN_FEATURES && min >= 0.0 && max > 1.0 {
            let because = format!("none of its {count} numbers is negative and they do not sum to 1");
            Some(Self::new(Embedding, because))
        } else if is_typical_length(count) && (min <= 0.0 || max > 1.0) {
            let because = format!("embeddings often have {count} numbers, and no file names that many classes");
            Some(Self::new(Embedding, because))
        } else if count >= MIN_COORDINATES && min >= 0.0 && max <= 1.0 && mean > MAX_MEAN_SCORE {
            let because = format!("most of its {count} numbers are too high for scores of independent classes");
            Some(Self::new(Regression, because))
        } else if count == 4 && min >= 0.0 && max <= 1.0 {
            let because = "its four numbers from 0 to 1, which do not sum to 1, could be a box";
            Some(Self::new(Regression, because))
        } else {
            None
        }
    }

    /// The message for a graph whose only row of numbers is this one, a regression.
    pub(super) fn refusal(&self, port: &Port) -> Refusal {
        Refusal::new(format!(
            "the output {port} looks like a regression, because {}. Spotcheck shows classes and boxes, and compares \
             images by embeddings. If it contains class scores, add the label file or set output.classification.values; \
             if it is an embedding, set task=embedding",
            self.because
        ))
    }
}

/// Refuses a model whose `config.json` states a regression.
pub(super) fn check_purpose(model: &RecognitionRequest<'_>) -> Result<(), Refusal> {
    match &model.notes.purpose {
        Some(Noted { value: Purpose::Regression, because }) if !are_set(model.overrules) && model.labels.is_none() => {
            Err(Refusal::new(format!(
                "the model returns a regression, because {because}. Spotcheck shows classes and boxes. If this file \
                 belongs to another model, move the ONNX file to a separate folder"
            )))
        }
        _ => Ok(()),
    }
}

/// Whether the user set the task to classification, or an output of class scores.
pub(super) fn are_set(overrules: &Overrules) -> bool {
    overrules.text("task") == Some(CardTask::Classification.into_str())
        || ["name", "values"].iter().any(|field| overrules.text(&format!("output.classification.{field}")).is_some())
}

/// Replaces the reason of a refusal if the outputs are those of such a family.
pub(super) fn explain(
    error: RecognizeError,
    model: &RecognitionRequest<'_>,
    prober: &Prober<'_, '_>,
) -> RecognizeError {
    let RecognizeError::Refused(refusal) = error else {
        return error;
    };
    let ports = &model.graph.outputs;
    let shapes: Vec<&[usize]> =
        ports.iter().filter_map(|port| Some(&*prober.values_of(&port.name).next()?.shape)).collect();
    let Some(family) = family(&shapes, prober.size()) else {
        return refusal.into();
    };
    let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
    let reason = format!(
        "{} look like {family}, so Spotcheck cannot decode the boxes. Export the model with decoded boxes: separate \
         outputs for boxes [n, 4], classes [n] and scores [n]",
        ports.join(", ")
    );
    RecognizeError::Refused(Refusal { reasons: vec![reason], ..refusal })
}

/// What the outputs of a call with one image are; `size` are width and height of the input.
fn family(shapes: &[&[usize]], size: [u32; 2]) -> Option<&'static str> {
    const BLAZE: &str =
        "those of BlazeFace and other MediaPipe detectors: offsets from anchors that are not in the file";
    const CENTERNET: &str =
        "those of CenterNet or CenterFace before decoding: heat maps with sizes and offsets, whose peaks are the boxes";
    const YOLOV2: &str =
        "those of YOLOv2 before decoding (Custom Vision, Tiny YOLOv2): offsets from anchors that are not in the file";
    const DARKNET: &str = "those of YOLOv3 or YOLOv4 (Darknet), or YOLOv5's for accelerators, before decoding: they look \
        the same but are decoded differently, and their anchors are not in the file";
    const RETINANET: &str = "those of RetinaNet or SSD before decoding: offsets from anchors that are not in the file";
    // Rows and columns, without leading ones; one number per row may have no dimension of its own.
    let tables: Vec<[usize; 2]> = shapes
        .iter()
        .filter_map(|shape| match shape {
            [1, rows] => Some([*rows, 1]),
            [1, rows, columns] | [rows, columns] => Some([*rows, *columns]),
            _ => None,
        })
        .collect();
    let maps: Vec<&[usize]> = shapes.iter().copied().filter(|shape| shape.len() == 4).collect();
    let has = |rows: usize, columns: usize| tables.contains(&[rows, columns]);
    let of_blaze = |[rows, columns]: &[usize; 2]| match columns {
        1 => has(*rows, 12) || has(*rows, 16) || has(*rows, 18),
        12 | 16 | 18 => has(*rows, 1),
        _ => false,
    };
    let is_cell = |map: &[usize], channels: usize, first: usize| {
        let cells = [map[first + 1], map[first]].map(|cells| cells as u32 * 32);
        cells == size && channels.is_multiple_of(5) && channels > 25
    };
    if !tables.is_empty() && tables.len() == shapes.len() && tables.iter().all(of_blaze) {
        Some(BLAZE)
    } else if let ([map], 1) = (&maps[..], shapes.len()) {
        (is_cell(map, map[1], 2) || is_cell(map, map[3], 1)).then_some(YOLOV2)
    } else if maps.len() == shapes.len() && (are_yolo_levels(&maps, 1, 2, size) || are_yolo_levels(&maps, 3, 1, size)) {
        Some(DARKNET)
    } else if maps.len() >= 3 && maps.len() == shapes.len() {
        let pairs = maps.iter().filter(|map| map[1] == 2).count();
        let has_one_size = maps.iter().all(|map| map[2..] == maps[0][2..]);
        let offsets = maps.iter().filter(|map| map[1].is_multiple_of(4)).count();
        if has_one_size && pairs >= 2 {
            Some(CENTERNET)
        } else {
            (!has_one_size && maps.len().is_multiple_of(2) && offsets * 2 >= maps.len()).then_some(RETINANET)
        }
    } else {
        let boxes = tables.iter().find(|[rows, columns]| *columns == 4 && *rows > 4)?;
        let has_classes = tables.iter().any(|table| table[0] == boxes[0] && table[1] > 1 && table != boxes);
        (has_classes && tables.len() == 2).then_some(RETINANET)
    }
}

/// Whether the maps are two or three levels, each with three times a box, an objectness and the class scores.
/// `channels` and `first` are the dimensions of channels and rows.
fn are_yolo_levels(maps: &[&[usize]], channels: usize, first: usize, [width, height]: [u32; 2]) -> bool {
    let mut strides: Vec<u32> = maps.iter().map(|map| height / (map[first] as u32).max(1)).collect();
    strides.sort_unstable();
    let has_stride = |map: &&[usize]| {
        let stride = height / (map[first] as u32).max(1);
        map[first] as u32 * stride == height && map[first + 1] as u32 * stride == width
    };
    matches!(strides[..], [8, 16, 32] | [16, 32])
        && maps.iter().all(has_stride)
        && maps.iter().all(|map| map[channels] == maps[0][channels])
        && maps[0][channels].is_multiple_of(3)
        && maps[0][channels] / 3 > 5
}

/// Whether the longer side is the number of cells of a detector's levels, the coarsest with a stride of 32 pixels.
fn counts_cells(table: &[usize], [width, height]: [u32; 2]) -> bool {
    let cells = (width / 32) as usize * (height / 32) as usize;
    let candidates = table[1].max(table[2]);
    width.is_multiple_of(32) && height.is_multiple_of(32) && cells > 0 && candidates.is_multiple_of(cells)
}

const CENTERNET: Nearest = Nearest {
    exporter: "CenterNet",
    outputs: "[1, boxes, 6] in addition to the heat maps: corners, score and class, decoded inside the graph",
};
const YOLOV5_MAPS: Nearest =
    Nearest { exporter: "YOLOv5", outputs: "[1, anchors, rows, columns, 5 + classes] for each stride" };
const TORCHVISION: Nearest = Nearest { exporter: "torchvision", outputs: "boxes [n, 4], classes [n] and scores [n]" };
const YOLO: Nearest = Nearest { exporter: "YOLO", outputs: "[1, 4 + classes, candidates]" };
const YOLOV7: Nearest =
    Nearest { exporter: "YOLOv7 --end2end", outputs: "[n, 7]: image, corners, class and score of each box" };

/// Based on the output shapes of a call with one image; `size` are width and height of the input.
pub(super) fn nearest(shapes: &[&[usize]], size: [u32; 2]) -> Option<Nearest> {
    let maps: Vec<&&[usize]> = shapes.iter().filter(|shape| shape.len() >= 4).collect();
    // Channels first and channels last.
    let same_size = |sides: std::ops::Range<usize>| maps.iter().all(|map| map[sides.clone()] == maps[0][sides.clone()]);
    if maps.len() > 1 {
        Some(if same_size(2..4) || same_size(1..3) { CENTERNET } else { YOLOV5_MAPS })
    } else if shapes.len() > 1 && shapes.iter().any(|shape| shape.last() == Some(&4)) {
        Some(TORCHVISION)
    } else if shapes.iter().any(|shape| shape.len() == 3) {
        // Text (`[1, steps, characters]`) and key points (one row per axis) have other numbers of rows.
        let [table] = shapes.iter().filter(|shape| shape.len() == 3).collect::<Vec<_>>()[..] else {
            return None;
        };
        counts_cells(table, size).then_some(YOLO)
    } else {
        shapes.iter().any(|shape| matches!(shape, [_, 5..=8])).then_some(YOLOV7)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embeddings_and_regressions_are_not_class_scores() {
        use Purpose::{Embedding, Regression};
        let wave = |count: usize, scale: f64| (0..count).map(|at| (at as f64).sin() * scale).collect::<Vec<f64>>();
        let unit = |row: Vec<f64>| {
            let length = row.iter().map(|value| value * value).sum::<f64>().sqrt();
            row.into_iter().map(|value| value / length).collect::<Vec<f64>>()
        };
        let positive = |row: Vec<f64>| row.into_iter().map(f64::abs).collect::<Vec<f64>>();
        for (row, expected) in [
            (vec![0.2, 0.3, 0.5], None),
            (wave(10, 8.0), None),
            (wave(100, 8.0), None),
            (wave(365, 20.0), None),
            (positive(wave(80, 0.2)), None),
            (positive(wave(80, 0.9)), Some(Regression)),
            (unit(wave(100, 1.0)), Some(Embedding)),
            (wave(512, 3.0), Some(Embedding)),
            (wave(8192, 3.0), Some(Embedding)),
            (wave(11776, 3.0), None),
            (positive(wave(440, 3.0)), Some(Embedding)),
            (vec![31.0, 40.0, 120.0, 180.5], Some(Regression)),
            (vec![0.1, 0.2, 0.6, 0.7], Some(Regression)),
        ] {
            let found = Features::by_values(std::slice::from_ref(&row)).map(|features| features.purpose);
            assert_eq!(found, expected, "{} numbers from {}", row.len(), row[0]);
        }
    }

    #[test]
    fn output_names_distinguish_features_from_scores() {
        use Purpose::{Embedding, Regression};
        for (name, expected) in [
            ("image_embeds", Some(Embedding)),
            ("last_hidden_state", Some(Embedding)),
            ("pooler_output", Some(Embedding)),
            ("bbox_pred", Some(Regression)),
            ("logits", None),
            ("image_scores", None),
            ("feature_logits", None),
            ("class_embedding", Some(Embedding)),
            ("output", None),
        ] {
            assert_eq!(Features::by_name(name).map(|features| features.purpose), expected, "{name}");
        }
    }

    #[test]
    fn shapes_identify_the_family() {
        let cases: [(&[&[usize]], Option<&str>); 15] = [
            (&[&[1, 896, 16], &[1, 896, 1]], Some("BlazeFace")),
            (&[&[1, 896, 16], &[1, 896]], Some("BlazeFace")),
            (&[&[896, 16], &[896, 1]], Some("BlazeFace")),
            (&[&[1, 512, 16], &[1, 512, 1], &[1, 384, 16], &[1, 384, 1]], Some("BlazeFace")),
            (&[&[1, 80, 104, 104], &[1, 2, 104, 104], &[1, 2, 104, 104]], Some("CenterNet")),
            (&[&[1, 40, 13, 13]], Some("YOLOv2")),
            (&[&[1, 13, 13, 125]], Some("YOLOv2")),
            (&[&[1, 32, 13, 13]], None),
            (&[&[1, 720, 52, 52], &[1, 36, 52, 52], &[1, 720, 26, 26], &[1, 36, 26, 26]], Some("RetinaNet")),
            (&[&[1, 12276, 20], &[1, 12276, 4]], Some("RetinaNet")),
            (&[&[1, 255, 52, 52], &[1, 255, 26, 26], &[1, 255, 13, 13]], Some("Darknet")),
            (&[&[1, 13, 13, 255], &[1, 26, 26, 255]], Some("Darknet")),
            (&[&[1, 255, 52, 52], &[1, 252, 26, 26], &[1, 255, 13, 13]], None),
            (&[&[1, 1000]], None),
            (&[&[1, 768], &[1, 197, 768]], None),
        ];
        for (shapes, expected) in cases {
            let found = family(shapes, [416, 416]);
            assert_eq!(found.is_some(), expected.is_some(), "{shapes:?}: {found:?}");
            assert!(found.is_none_or(|found| found.contains(expected.unwrap_or_default())), "{shapes:?}: {found:?}");
        }
    }

    #[test]
    fn shapes_identify_the_nearest_convention() {
        type Case = (&'static [&'static [usize]], [u32; 2], Option<Nearest>);
        let cases: [Case; 11] = [
            (&[&[1, 1, 8, 8], &[1, 2, 8, 8], &[1, 10, 8, 8]], [640; 2], Some(CENTERNET)),
            (&[&[1, 8, 8, 1], &[1, 8, 8, 10]], [640; 2], Some(CENTERNET)),
            (&[&[1, 255, 80, 80], &[1, 255, 40, 40], &[1, 255, 20, 20]], [640; 2], Some(YOLOV5_MAPS)),
            (&[&[1, 50, 4], &[1, 50]], [640; 2], Some(TORCHVISION)),
            (&[&[1, 84, 8400]], [640; 2], Some(YOLO)),
            (&[&[1, 25200, 85]], [640; 2], Some(YOLO)),
            // PaddleOCR's recognition, and RTMPose.
            (&[&[1, 40, 6625]], [320, 48], None),
            (&[&[1, 17, 384], &[1, 17, 512]], [192, 256], None),
            (&[&[1, 50, 1000]], [640; 2], None),
            (&[&[30, 7]], [640; 2], Some(YOLOV7)),
            (&[&[1, 3, 64, 64]], [640; 2], None),
        ];
        for (shapes, size, expected) in cases {
            assert_eq!(nearest(shapes, size), expected, "{shapes:?}");
        }
    }
}
