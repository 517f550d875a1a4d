//! What can be judged of a run, and how it was judged.

use std::collections::{BTreeMap, HashMap};

use super::{ImageClusters, Judgment, ReviewSample, ReviewedUnit, Unit};
use crate::domain::{Detection, Prediction, PredictionContent, Verdict, ViewSettings};

/// A drawn box with less overlap shows another object or a wrong position.
const MATCHING_IOU: f32 = 0.5;

/// The units of a run that a view shows, with their verdicts.
#[derive(Debug, Clone, Default)]
pub struct Population {
    /// Names of the predicted images.
    pub images: Vec<String>,
    /// Image by image.
    pub units: Vec<Unit>,
    /// By index of the unit.
    pub judged: BTreeMap<usize, Judged>,
    /// Whether the ground truth has a judged unit, by index of the unit, as far as known.
    pub truth: BTreeMap<usize, bool>,
    /// Boxes that people added, by class.
    pub added: BTreeMap<String, usize>,
    /// The images by their embeddings, if a sample is drawn from them.
    pub clusters: Option<ImageClusters>,
}

/// The verdict on a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    pub judgment: Judgment,
    /// Of a unit with a wrong class.
    pub right_class: Option<String>,
}

impl Population {
    /// Adds an image with the verdicts on the image and on its boxes.
    pub fn record(
        &mut self,
        image: String,
        prediction: &Prediction,
        view: &ViewSettings,
        verdicts: &BTreeMap<Option<u32>, &Verdict>,
    ) {
        let number = self.images.len() as u32;
        self.images.push(image);
        let of_image = verdicts.get(&None).copied();
        for verdict in verdicts.values() {
            if let Verdict::Added(drawn) = verdict {
                *self.added.entry(drawn.class().to_owned()).or_default() += 1;
            }
        }
        match &prediction.content {
            PredictionContent::Classes(classes) => {
                let Some(top) = classes.first().filter(|top| view.lists(top.score)) else {
                    return;
                };
                let margin = top.score - classes.get(1).map_or(0.0, |second| second.score);
                let unit = Unit { image: number, box_index: None, class: top.index, score: top.score, margin };
                self.add(unit, judged(None, of_image, None));
            }
            PredictionContent::Detections(detections) => {
                let mut visible = view.visible_detections(prediction, &[]);
                visible.sort_unstable();
                for index in visible {
                    let found = &detections[index];
                    let box_index = Some(index as u32);
                    let margin = found.score - view.min_score_of(found.class_id);
                    let unit = Unit { image: number, box_index, class: found.class_id, score: found.score, margin };
                    self.add(unit, judged(verdicts.get(&box_index).copied(), of_image, Some(found)));
                }
            }
        }
    }

    fn add(&mut self, unit: Unit, judged: Option<Judged>) {
        self.judged.extend(judged.map(|judged| (self.units.len(), judged)));
        self.units.push(unit);
    }

    /// The index of each drawn unit; `None` if it is no longer in the population.
    pub fn find(&self, sample: &ReviewSample) -> Vec<Option<usize>> {
        let images: HashMap<&str, u32> = self.images.iter().map(String::as_str).zip(0..).collect();
        let find = |name: &str, box_index: Option<u32>| {
            let image = *images.get(name)?;
            let first = self.units.partition_point(|unit| unit.image < image);
            let mut of_image = self.units[first..].iter().take_while(|unit| unit.image == image);
            of_image.position(|unit| unit.box_index == box_index).map(|at| first + at)
        };
        sample.units.iter().map(|unit| find(&unit.image, unit.box_index)).collect()
    }

    pub(super) fn reviewed_unit(&self, index: usize, stratum: usize) -> ReviewedUnit {
        let Unit { image, class, score, .. } = self.units[index];
        let judgment = self.judged.get(&index).map(|judged| judged.judgment);
        ReviewedUnit { index, image, class, score, stratum, judgment }
    }
}

/// The verdict on a box (`found`, as the model returned it), or on an image without one. As in exports, a box without a
/// verdict of its `own` inherits that of its image, unless it names a class.
pub fn judged(own: Option<&Verdict>, of_image: Option<&Verdict>, found: Option<&Detection>) -> Option<Judged> {
    let inherited = of_image.filter(|verdict| match verdict {
        Verdict::WrongClass(_) => found.is_none(),
        verdict => verdict.applies_to_boxes(),
    });
    let verdict = own.or(inherited)?;
    let (judgment, right_class) = match verdict {
        Verdict::Accept => (Judgment::Correct { is_accepted: true }, None),
        Verdict::Reject | Verdict::Added(_) => (Judgment::Wrong, None),
        // The last three are not about a prediction.
        Verdict::Unsure | Verdict::Complete | Verdict::Returned | Verdict::Spurious(_) => (Judgment::Unsure, None),
        Verdict::WrongClass(class) => (Judgment::Wrong, Some(class.clone())),
        Verdict::Moved(drawn) => match found {
            Some(found) if found.label != drawn.class() => (Judgment::Wrong, Some(drawn.class().to_owned())),
            Some(found) if found.bounds.iou(&drawn.bounds()) >= MATCHING_IOU => {
                (Judgment::Correct { is_accepted: false }, None)
            }
            _ => (Judgment::Wrong, None),
        },
    };
    Some(Judged { judgment, right_class })
}
