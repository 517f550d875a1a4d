//! A project's verdicts as ground truth.

use super::collect::{Collector, Tally};
use super::{AnnotationFormat, Found};
use crate::domain::{
    AnnotatedBox, AnnotatedLabel, BoxRole, BoxUnit, Detection, LabelSet, Prediction, PredictionContent, Verdict,
    covers_image,
};

/// An image with a verdict on itself or on one of its boxes.
#[derive(Debug, Clone, Copy)]
pub struct JudgedImage<'j> {
    pub name: &'j str,
    /// With moved and added boxes.
    pub prediction: &'j Prediction,
    pub verdict: Option<&'j Verdict>,
    /// The verdicts on its boxes, by index.
    pub boxes: &'j [(u32, Verdict)],
    /// The visible boxes, which the verdict on the image also covers.
    pub shown: &'j [u32],
}

/// Accepted, corrected and added boxes are true. An accepted image makes those of its boxes true that are visible and
/// have no verdict of their own. Images that the verdicts do not cover ([`covers_image`]) are skipped, as in an export of
/// corrected labels.
pub fn from_verdicts<'j>(images: impl Iterator<Item = JudgedImage<'j>>, labels: &LabelSet) -> Found {
    let mut collector = Collector::default();
    let mut unknown = Tally::default();
    let mut with_boxes = false;
    for image in images {
        collector.entries += 1;
        match &image.prediction.content {
            PredictionContent::Classes(classes) => {
                let best = classes.first().map(|best| (Some(best.index), best.label.as_str()));
                let class = match image.verdict {
                    Some(Verdict::Accept) => best,
                    Some(Verdict::WrongClass(right)) => Some(class_of(labels, right)),
                    Some(Verdict::Moved(drawn) | Verdict::Added(drawn)) => Some(class_of(labels, drawn.class())),
                    Some(
                        Verdict::Reject
                        | Verdict::Unsure
                        | Verdict::Complete
                        | Verdict::Returned
                        | Verdict::Spurious(_),
                    )
                    | None => None,
                };
                let Some((number, name)) = class else {
                    unknown.add(|| image.name.to_owned());
                    continue;
                };
                let class = collector.class(number.map(i64::from), Some(name));
                collector.add_label(image.name, AnnotatedLabel { class, score: None });
            }
            PredictionContent::Detections(_) if !image.is_whole() => {
                unknown.add(|| image.name.to_owned());
                continue;
            }
            PredictionContent::Detections(detections) => {
                with_boxes = true;
                add_boxes(&mut collector, &image, detections, labels);
            }
        }
        collector.image(image.name).size = Some([image.prediction.width, image.prediction.height]);
    }
    let note = unknown.note(
        "image is skipped, because its verdicts do not cover everything in it",
        "images are skipped, because their verdicts do not cover everything in them",
    );
    collector.notes.extend(note);
    if with_boxes {
        // A box of a class without any object is a false positive.
        for (id, name) in labels.iter() {
            collector.class(Some(i64::from(id)), Some(name));
        }
        let note = "verdicts apply to boxes: an object without a visible or added box is not in this ground truth. A \
            box on any other object is a false positive";
        collector.notes.push(note.to_owned());
    }
    collector.finish(AnnotationFormat::Verdicts)
}

impl JudgedImage<'_> {
    /// Whether the verdicts cover every visible box.
    fn is_whole(&self) -> bool {
        let own = |index: &u32| self.boxes.iter().find(|(at, _)| at == index).map(|(_, verdict)| verdict);
        covers_image(self.verdict, self.shown.iter().map(own), self.boxes.iter().map(|(_, verdict)| verdict))
    }
}

fn add_boxes(collector: &mut Collector, image: &JudgedImage, detections: &[Detection], labels: &LabelSet) {
    // Without objects, this is an image that shows nothing.
    collector.image(image.name);
    for (index, detection) in (0_u32..).zip(detections) {
        let own = image.boxes.iter().find(|(at, _)| *at == index).map(|(_, verdict)| verdict);
        let of_image = image.verdict.filter(|verdict| **verdict == Verdict::Accept && image.shown.contains(&index));
        let model = (Some(detection.class_id), detection.label.as_str());
        let (number, name) = match own.or(of_image) {
            Some(Verdict::Accept) => model,
            Some(Verdict::WrongClass(right)) => class_of(labels, right),
            Some(Verdict::Moved(drawn) | Verdict::Added(drawn)) => class_of(labels, drawn.class()),
            Some(Verdict::Reject | Verdict::Unsure | Verdict::Complete | Verdict::Returned | Verdict::Spurious(_))
            | None => continue,
        };
        let role = BoxRole::Object;
        let class = collector.class(number.map(i64::from), Some(name));
        let bounds = detection.bounds.into();
        let found = AnnotatedBox { bounds, unit: BoxUnit::Pixels, class, score: None, area: None, role };
        collector.add_box(image.name, found, || format!("{}, box {index}", image.name));
    }
}

/// The id and name of a class that a person gave.
fn class_of<'l>(labels: &'l LabelSet, name: &'l str) -> (Option<u32>, &'l str) {
    labels.find(name).map_or((None, name), |(id, name)| (Some(id), name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{BoundingBox, ClassScore, TruthLabel};

    fn image<'j>(
        name: &'j str,
        prediction: &'j Prediction,
        verdict: Option<&'j Verdict>,
        boxes: &'j [(u32, Verdict)],
    ) -> JudgedImage<'j> {
        JudgedImage { name, prediction, verdict, boxes, shown: &[0, 1, 2] }
    }

    #[test]
    fn accepted_and_corrected_boxes_are_ground_truth() {
        let detection = |class_id: u32, label: &str| Detection {
            bounds: BoundingBox::new(1.0, 2.0, 4.0, 6.0),
            class_id,
            label: label.to_owned(),
            score: 0.5,
            runners_up: Vec::new(),
        };
        let detections = vec![detection(1, "cat"), detection(1, "cat"), detection(2, "dog"), detection(2, "dog")];
        let prediction =
            Prediction { width: 10, height: 20, content: PredictionContent::Detections(detections), warnings: vec![] };
        let labels = LabelSet::parse("bird\ncat\ndog").unwrap();
        let verdicts = [(0, Verdict::Reject), (1, Verdict::WrongClass("dog".to_owned()))];
        let unsure = [(1, Verdict::Accept), (3, Verdict::Unsure)];
        let accept = Verdict::Accept;
        let all = [0, 1, 2].map(|index| (index, Verdict::Reject));
        let images = [
            image("a.jpg", &prediction, Some(&accept), &verdicts),
            image("b.jpg", &prediction, None, &all),
            image("c.jpg", &prediction, None, &all[1..]),
            image("d.jpg", &prediction, Some(&Verdict::Reject), &all),
            image("e.jpg", &prediction, Some(&Verdict::Unsure), &[]),
            image("f.jpg", &prediction, Some(&Verdict::Complete), &all),
            image("g.jpg", &prediction, Some(&Verdict::Complete), &all[1..]),
            image("h.jpg", &prediction, Some(&accept), &unsure),
        ];
        let found = from_verdicts(images.into_iter(), &labels);
        assert!(found.notes[0].starts_with("5 images are skipped"), "{:?}", found.notes);
        let annotations = found.annotations;
        let names: Vec<&str> = annotations.images.iter().map(|image| image.name.as_str()).collect();
        assert_eq!(names, ["a.jpg", "b.jpg", "f.jpg"]);
        let boxes = &annotations.images[0].boxes;
        let names: Vec<Option<&str>> =
            boxes.iter().map(|one| annotations.classes[one.class as usize].name.as_deref()).collect();
        assert_eq!(names, [Some("dog"); 2]);
        let roles: Vec<BoxRole> = boxes.iter().map(|one| one.role).collect();
        assert_eq!(roles, [BoxRole::Object; 2]);
        assert_eq!(boxes[0].bounds, [1.0, 2.0, 3.0, 4.0].into());
        let class = |number, name: &str| TruthLabel { number: Some(number), name: Some(name.to_owned()) };
        assert_eq!(annotations.classes, [class(2, "dog"), class(0, "bird"), class(1, "cat")]);
        assert_eq!(annotations.images[0].size, Some([10, 20]));
        assert!(annotations.images[1].boxes.is_empty());
    }

    #[test]
    fn image_class_is_the_accepted_or_corrected_one() {
        let class = |index: u32, label: &str| ClassScore { index, label: label.to_owned(), score: 0.5 };
        let classes = PredictionContent::Classes(vec![class(1, "cat"), class(2, "dog")]);
        let prediction = Prediction { width: 10, height: 20, content: classes, warnings: vec![] };
        let verdicts = [Verdict::Accept, Verdict::WrongClass("lion".to_owned()), Verdict::Reject];
        let names = ["a", "b", "c"];
        let images = names.into_iter().zip(&verdicts);
        let images = images.map(|(name, verdict)| image(name, &prediction, Some(verdict), &[]));
        let found = from_verdicts(images, &LabelSet::default());
        let shown: Vec<&str> = found
            .annotations
            .images
            .iter()
            .map(|image| found.annotations.classes[image.labels[0].class as usize].name.as_deref().unwrap())
            .collect();
        assert_eq!(shown, ["cat", "lion"]);
        assert_eq!(found.notes.len(), 1);
    }
}
