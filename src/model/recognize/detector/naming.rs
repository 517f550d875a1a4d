//! The names and numbers of a detector's classes.

use super::Found;
use super::boxes::Row;
use crate::domain::LabelSet;
use crate::model::recognize::noted::{LABEL_FILE, label_count, misfit};
use crate::model::recognize::notes::begin_with_background;
use crate::model::recognize::usual::Usual;
use crate::model::recognize::{Findings, RecognitionRequest, Refusal};

const OFFSET: &str = "output.detection.class_offset";

/// The class names, and the offset from the graph's class numbers to them.
#[derive(Debug)]
pub(super) struct Naming {
    pub offset: i32,
    pub label_set: Option<String>,
    pub labels_to_store: Option<LabelSet>,
}

/// The classes as far as the test runs show them.
struct Seen {
    /// The number of classes, if the outputs show it.
    count: Option<usize>,
    /// Whether every class has a score, so that none is the background.
    counts_all: bool,
    highest: usize,
    has_zero: bool,
    usual: Option<Usual>,
    side_multiple: u32,
}

/// Names the classes of the boxes in `rows`.
///
/// # Errors
/// The user's label file does not fit.
pub(super) fn name_classes(
    found: &Found,
    model: &RecognitionRequest<'_>,
    rows: &[Vec<Row>],
    side_multiple: u32,
    findings: &mut Findings,
) -> Result<Naming, Refusal> {
    let classes = || rows.iter().flatten().map(|row| row.class);
    let seen = Seen {
        count: found.classes,
        counts_all: found.classes.is_some() && found.output.labels.is_none(),
        highest: classes().fold(0.0, f64::max) as usize,
        has_zero: classes().any(|class| class == 0.0),
        usual: found.usual,
        side_multiple,
    };
    let labels = match &model.labels {
        Some(labels) => Some((labels.clone(), "its names match the model's classes".to_owned())),
        None => model.notes.labels_if(|labels| seen.fits(labels)).map(|noted| (noted.value, noted.because)),
    };
    let Some((labels, because)) = labels else {
        return Ok(seen.assume(findings));
    };
    let count = label_count(&labels);
    seen.check(count)?;
    let offset = seen.offset(count, &labels, findings);
    findings.recognized("labels", LABEL_FILE, because);
    Ok(Naming { offset, label_set: Some(LABEL_FILE.to_owned()), labels_to_store: Some(labels) })
}

impl Seen {
    /// TensorFlow Lite's classes begin after the background.
    fn is_tflite(&self) -> bool {
        self.usual == Some(Usual::TensorFlowLite)
    }

    /// Whether no class is the background, even if a test image shows only later classes (`MMDetection`).
    fn begins_at_zero(&self) -> bool {
        (self.has_zero && !self.is_tflite()) || self.usual == Some(Usual::MmDetection)
    }

    /// effdet's classes begin at 1, like COCO's ids.
    fn is_effdet(&self) -> bool {
        self.usual == Some(Usual::EffDet)
    }

    /// Whether a file next to the model can name these classes.
    fn fits(&self, labels: &LabelSet) -> bool {
        match self.count {
            Some(count) if self.counts_all => count == label_count(labels),
            _ => {
                let begins_at_zero = self.has_zero || self.is_tflite();
                self.highest <= label_count(labels) && !(begins_at_zero && begin_with_background(labels))
            }
        }
    }

    /// # Errors
    /// There are too few or too many labels.
    fn check(&self, labels: usize) -> Result<(), Refusal> {
        match self.count {
            _ if self.highest > labels => Err(misfit(format!("returned class {}", self.highest), labels)),
            Some(count) if count != labels && (self.counts_all || count != labels + 1) => {
                Err(misfit(format!("has {count} classes"), labels))
            }
            _ => Ok(()),
        }
    }

    /// The offset from the graph's class numbers to `count` labels.
    fn offset(&self, count: usize, labels: &LabelSet, findings: &mut Findings) -> i32 {
        if self.counts_all {
            findings.recognized(OFFSET, 0, format!("the number of names matches the {count} class scores"));
            return 0;
        }
        let begins_at_one = self.is_effdet() && !self.has_zero && !begin_with_background(labels);
        let offset = if self.highest == count || begins_at_one { -1 } else { 0 };
        let because =
            format!("{count} classes are named, and the highest class of the test images is {}", self.highest);
        if begins_at_one && self.highest < count {
            findings.assumed(OFFSET, offset, format!("{because}; effdet's classes begin at 1"));
        } else if offset != 0 || self.has_zero {
            findings.recognized(OFFSET, offset, because);
        } else {
            findings.assumed(OFFSET, offset, format!("{because}, which also allows an offset of -1"));
        }
        offset
    }

    /// COCO's names, if the numbers match.
    fn assume(&self, findings: &mut Findings) -> Naming {
        let (set, offset) = match self.count {
            _ if self.is_effdet() && self.highest <= 90 => (Some("coco-91"), 0),
            // One score for each of COCO's ids, from 1 to 90.
            Some(90) if self.counts_all => (Some("coco-91"), 1),
            Some(90 | 91) => (Some("coco-91"), 0),
            _ if (81..=90).contains(&self.highest) => (Some("coco-91"), i32::from(self.is_tflite())),
            // More than VOC's 20.
            None if self.begins_at_zero() && (20..80).contains(&self.highest) => (Some("coco-80"), 0),
            Some(81) => (Some("coco-80"), -1),
            Some(80) => (Some("coco-80"), 0),
            // The ONNX Model Zoo's Faster R-CNN: COCO's 80 names after one for the background.
            _ if self.side_multiple > 1 && self.highest <= 80 && !self.has_zero => (Some("coco-80"), -1),
            _ => (None, 0),
        };
        match set {
            Some(set) => {
                findings.assumed("labels", set, "most such detectors are trained on COCO, and the class numbers match");
            }
            None => findings.assumed(
                "labels",
                "none",
                "the classes have no names; they are shown by number until you add a label file or set labels=coco-91 \
                 (or coco-80)",
            ),
        }
        findings.assumed(OFFSET, offset, "derived from the labels");
        Naming { offset, label_set: set.map(str::to_owned), labels_to_store: None }
    }
}
