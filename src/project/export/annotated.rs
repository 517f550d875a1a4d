//! Draws predictions on images.

use std::collections::BTreeMap;

use super::drawing::{Area, Canvas, Paint, TextSize};
use crate::domain::{
    BoundingBox, ClassScore, Detection, LabelPlaces, Prediction, RgbImage, SampleId, TEXT_ON_CLASS_COLOR, ViewSettings,
    class_color,
};
use crate::review::{ObjectOutcome, Outcomes};

/// Draws what `view` shows of the prediction, and the boxes that a person confirmed: boxes with class and score, or the
/// top classes in the upper left corner. With ground truth, each box shows its outcome, and the objects are dashed.
/// Boxes are clipped to the image; labels are moved, shortened or omitted to stay inside and apart.
pub fn annotate(
    image: &RgbImage,
    prediction: &Prediction,
    view: &ViewSettings,
    confirmed: &[u32],
    marks: &TruthMarks,
) -> RgbImage {
    annotate_in(image, prediction, view, confirmed, marks, Style::new(image))
}

/// The same for an image that is shown at about half its size, with larger text and lines. A ground-truth object is
/// dashed.
pub(super) fn annotate_thumbnail(
    image: &RgbImage,
    prediction: &Prediction,
    view: &ViewSettings,
    truth: Option<ObjectMark>,
) -> RgbImage {
    let marks = TruthMarks { objects: truth.into_iter().collect(), ..TruthMarks::default() };
    annotate_in(image, prediction, view, &[], &marks, Style::with_text(23.0, 3))
}

/// The outcomes of an image's boxes; empty without ground truth.
#[derive(Debug, Clone, Default)]
pub struct TruthMarks {
    /// By index of the drawn detection: its class, with the right one, and its mark.
    boxes: BTreeMap<usize, [String; 2]>,
    objects: Vec<ObjectMark>,
}

/// A ground-truth object, in pixels of the image.
#[derive(Debug, Clone)]
pub(super) struct ObjectMark {
    pub bounds: BoundingBox,
    /// In full, and as short as possible.
    pub label: Option<[String; 2]>,
    pub is_missed: bool,
}

/// Whether ground-truth objects are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrawnObjects {
    All,
    None,
}

impl TruthMarks {
    /// `shown`: the index of each drawn detection, in the drawn and in the stored prediction. Empty if a prediction
    /// other than the stored one was evaluated.
    pub fn new(
        outcomes: &Outcomes,
        sample: SampleId,
        stored: &Prediction,
        shown: &[(usize, usize)],
        objects: DrawnObjects,
    ) -> Self {
        let detections = stored.detections();
        let evaluated = outcomes.predictions().summary(sample).filter(|summary| {
            let (classes, scores) = (summary.classes.iter(), summary.scores.iter());
            detections.len() == summary.classes.len()
                && detections
                    .iter()
                    .zip(classes.zip(scores))
                    .all(|(detection, (class, score))| (detection.class_id, detection.score) == (*class, *score))
        });
        let Some(of_image) = evaluated.and_then(|summary| outcomes.image(sample, summary)) else {
            return Self::default();
        };
        let texts = |&(drawn, index): &(usize, usize)| {
            let outcome = outcomes.named(of_image, index)?;
            Some((drawn, [outcome.class_text(&detections.get(index)?.label), outcome.mark_text()]))
        };
        let all = match objects {
            DrawnObjects::All => of_image.objects,
            DrawnObjects::None => &[],
        };
        let object = |object: &ObjectOutcome| {
            let is_shown = shown.iter().any(|(_, stored)| *stored == object.shown_by as usize);
            let is_missed = object.counts && !is_shown;
            let class = outcomes.classes.get(object.class as usize).map_or("", |class| class.name.as_str());
            let text = format!("{class} · FN");
            let label = is_missed.then(|| [text.clone(), text]);
            ObjectMark { bounds: object.bounds, label, is_missed }
        };
        Self { boxes: shown.iter().filter_map(texts).collect(), objects: all.iter().map(object).collect() }
    }
}

fn annotate_in(
    image: &RgbImage,
    prediction: &Prediction,
    view: &ViewSettings,
    confirmed: &[u32],
    marks: &TruthMarks,
    style: Style,
) -> RgbImage {
    let mut canvas = Canvas::new(image);
    let detections = prediction.detections();
    // The best last, so that nothing covers it; all labels above all boxes.
    let visible = view.visible_detections(prediction, confirmed);
    for &index in visible.iter().rev() {
        let detection = &detections[index];
        draw_box(&mut canvas, &detection.bounds, Line::Solid(class_color(&detection.label)), style);
    }
    for object in &marks.objects {
        let dash = if object.is_missed { MISSED_DASH } else { DASH };
        draw_box(&mut canvas, &object.bounds, Line::Dashed { color: TRUTH, dash }, style);
    }
    // The best first, so that they get the best positions.
    let mut places = LabelPlaces::new(BoundingBox::new(0.0, 0.0, canvas.width() as f32, canvas.height() as f32));
    for &index in &visible {
        let Detection { bounds, label, score, .. } = &detections[index];
        let texts = match marks.boxes.get(&index) {
            None => [format!("{label} {}", percent(*score)), label.clone()],
            Some([class, mark]) => [format!("{class} {} · {mark}", percent(*score)), class.clone()],
        };
        let texts = texts.each_ref();
        draw_label(&mut canvas, &mut places, bounds, texts, class_color(label), style);
    }
    for object in &marks.objects {
        if let Some(label) = &object.label {
            draw_label(&mut canvas, &mut places, &object.bounds, label.each_ref(), TRUTH, style);
        }
    }
    draw_classes(&mut canvas, view.visible_classes(prediction), style);
    canvas.into_image()
}

/// Sizes in pixels in proportion to the image, so that text is legible when the whole image fills a screen.
#[derive(Debug, Clone, Copy)]
struct Style {
    text: TextSize,
    line_height: i64,
    padding: i64,
    stroke: i64,
}

impl Style {
    fn new(image: &RgbImage) -> Self {
        let side = (f64::from(image.width()) * f64::from(image.height())).sqrt();
        let text = (side / 36.0).clamp(15.0, 400.0).round() as f32;
        Self::with_text(text, ((side / 280.0).round() as i64).max(2))
    }

    fn with_text(text: f32, stroke: i64) -> Self {
        Self {
            text: TextSize(text),
            line_height: (text * 1.2).ceil() as i64,
            padding: (text * 0.32).ceil() as i64,
            stroke,
        }
    }

    /// The baseline of text in a line that starts at `top`, with its capitals vertically centered.
    fn baseline(self, top: i64) -> f32 {
        let cap_height = self.text.ascent() * 0.74;
        top as f32 + f32::midpoint(self.line_height as f32, cap_height)
    }
}

const SHADOW: Paint = Paint { color: [0, 0, 0], opacity: 0.55 };

const DASH: i64 = 4;
/// For a missed object.
const MISSED_DASH: i64 = 9;

/// For ground truth; classes have other colors.
const TRUTH: [u8; 3] = [255, 255, 255];

/// The style of an edge, with its color.
#[derive(Debug, Clone, Copy)]
enum Line {
    Solid([u8; 3]),
    /// `dash`: the length of dashes and gaps as a multiple of the line width.
    Dashed {
        color: [u8; 3],
        dash: i64,
    },
}

fn draw_box(canvas: &mut Canvas, bounds: &BoundingBox, line: Line, style: Style) {
    let Some(area) = area_of(canvas, bounds) else {
        return;
    };
    // Dark lines on both sides separate the color from any background.
    let edge = (style.stroke / 3).max(1);
    canvas.frame(area.grown(edge), style.stroke + 2 * edge, SHADOW);
    match line {
        Line::Solid(color) => canvas.frame(area, style.stroke, Paint::opaque(color)),
        Line::Dashed { color, dash } => {
            canvas.dashed_frame(area, style.stroke, dash * style.stroke, Paint::opaque(color));
        }
    }
}

/// The part of the box inside the image, at least one pixel wide and high; `None` if none is inside.
fn area_of(canvas: &Canvas, bounds: &BoundingBox) -> Option<Area> {
    if !bounds.is_finite() {
        return None;
    }
    let left = (bounds.x1.floor() as i64).max(0);
    let top = (bounds.y1.floor() as i64).max(0);
    let right = (bounds.x2.ceil() as i64).min(canvas.width());
    let bottom = (bounds.y2.ceil() as i64).min(canvas.height());
    (left < right && top < bottom).then_some(Area { left, top, right, bottom })
}

/// Draws the first of `texts` that fits, on `color`.
fn draw_label(
    canvas: &mut Canvas,
    places: &mut LabelPlaces,
    bounds: &BoundingBox,
    texts: [&String; 2],
    color: [u8; 3],
    style: Style,
) {
    let Some(area) = area_of(canvas, bounds) else {
        return;
    };
    let room = (canvas.width() - 2 * style.padding) as f32;
    let texts = texts.into_iter().filter_map(|text| style.text.fitted(text, room));
    let width_of = |text: &str| style.text.width_of(text).ceil() as i64 + 2 * style.padding;
    let size_of = |text: &String| [width_of(text) as f32, style.line_height as f32];
    let around = BoundingBox::new(area.left as f32, area.top as f32, area.right as f32, area.bottom as f32);
    let Some((text, place)) = places.take(around, texts, size_of) else {
        return;
    };
    let (left, top) = (place.x1 as i64, place.y1 as i64);
    let plate = Area { left, top, right: left + width_of(&text), bottom: top + style.line_height };
    canvas.fill(plate, Paint::opaque(color));
    canvas.text(
        &text,
        (left + style.padding) as f32,
        style.baseline(top),
        style.text,
        Paint::opaque(TEXT_ON_CLASS_COLOR),
    );
}

/// A dark panel with one line per class: name, score and a bar as long as the score.
fn draw_classes(canvas: &mut Canvas, classes: &[ClassScore], style: Style) {
    const PANEL: Paint = Paint { color: [14, 15, 20], opacity: 0.78 };
    const BAR_GROOVE: Paint = Paint { color: [255, 255, 255], opacity: 0.16 };
    const TEXT: Paint = Paint { color: [255, 255, 255], opacity: 1.0 };
    let margin = style.padding;
    let gap = style.padding * 3;
    let bar = (style.stroke).max(2);
    let row_height = style.line_height + bar + style.padding;
    let rows = ((canvas.height() - 3 * margin) / row_height).clamp(0, classes.len() as i64);
    let classes = &classes[..rows as usize];
    let width_of = |text: &str| style.text.width_of(text).ceil() as i64;
    let score_width = classes.iter().map(|class| width_of(&percent(class.score))).max().unwrap_or_default();
    let widest_label = classes.iter().map(|class| width_of(&class.label)).max();
    let room = canvas.width() - 2 * margin - 2 * style.padding - gap - score_width;
    let label_width = widest_label.unwrap_or_default().min(room);
    let shortest = style.text.0 as i64;
    if classes.is_empty() || label_width < shortest.min(widest_label.unwrap_or_default()) {
        return;
    }
    let inner_width = label_width + gap + score_width;
    let panel = Area {
        left: margin,
        top: margin,
        right: margin + inner_width + 2 * style.padding,
        bottom: 2 * margin + rows * row_height,
    };
    canvas.fill(panel, PANEL);
    let (left, right) = (panel.left + style.padding, panel.right - style.padding);
    for (row, class) in classes.iter().enumerate() {
        let top = panel.top + style.padding / 2 + row as i64 * row_height;
        let baseline = style.baseline(top);
        if let Some(label) = style.text.fitted(&class.label, label_width as f32) {
            canvas.text(&label, left as f32, baseline, style.text, TEXT);
        }
        let score = percent(class.score);
        let score_left = (right - width_of(&score)) as f32;
        canvas.text(&score, score_left, baseline, style.text, TEXT);
        let groove = Area { left, top: top + style.line_height, right, bottom: top + style.line_height + bar };
        canvas.fill(groove, BAR_GROOVE);
        let filled = (f64::from(class.score.clamp(0.0, 1.0)) * inner_width as f64).round() as i64;
        let color = Paint::opaque(class_color(&class.label));
        canvas.fill(Area { right: left + filled, ..groove }, color);
    }
}

fn percent(score: f32) -> String {
    format!("{:.0}%", score * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{ModelTask, PredictionContent};
    use crate::review::{BoxOutcome, NO_OBJECT, OutcomeKind, Predictions};

    fn plain(width: u32, height: u32, value: u8) -> RgbImage {
        RgbImage::new(width, height, vec![value; (width * height * 3) as usize]).unwrap()
    }

    fn boxes(image: &RgbImage, boxes: &[(u32, f32, [f32; 4])]) -> Prediction {
        let detections = boxes
            .iter()
            .map(|&(class_id, score, bounds)| Detection::new(bounds, class_id, format!("class {class_id}"), score));
        Prediction::new([image.width(), image.height()], PredictionContent::Detections(detections.collect()))
    }

    fn classes(image: &RgbImage, labels: &[&str]) -> Prediction {
        let classes = labels.iter().enumerate().map(|(index, label)| ClassScore {
            index: index as u32,
            label: (*label).to_owned(),
            score: 0.5,
        });
        Prediction::new([image.width(), image.height()], PredictionContent::Classes(classes.collect()))
    }

    fn drawn(image: &RgbImage, prediction: &Prediction) -> RgbImage {
        annotate(image, prediction, &ViewSettings::default(), &[], &TruthMarks::default())
    }

    #[test]
    fn border_has_the_class_color() {
        let image = plain(400, 300, 90);
        let drawn = drawn(&image, &boxes(&image, &[(3, 0.9, [100.0, 80.0, 300.0, 200.0])]));
        for (x, y) in [(100, 150), (101, 150), (299, 150), (200, 80), (200, 199)] {
            assert_eq!(drawn.pixel(x, y), Some(class_color("class 3")), "{x}, {y}");
        }
        assert_eq!(drawn.pixel(200, 140), image.pixel(200, 140));
        assert_eq!(drawn.pixel(50, 50), image.pixel(50, 50));
    }

    #[test]
    fn label_is_above_or_inside_its_box() {
        let image = plain(400, 300, 90);
        let is_plate = |drawn: &RgbImage, y| drawn.pixel(102, y) == Some(class_color("class 3"));
        let low = drawn(&image, &boxes(&image, &[(3, 0.9, [100.0, 80.0, 300.0, 200.0])]));
        assert!(is_plate(&low, 70) && !is_plate(&low, 90));
        let high = drawn(&image, &boxes(&image, &[(3, 0.9, [100.0, 5.0, 300.0, 200.0])]));
        assert!(is_plate(&high, 12));
    }

    #[test]
    fn label_stays_inside_the_image() {
        let image = plain(400, 300, 90);
        let right = drawn(&image, &boxes(&image, &[(3, 0.9, [395.0, 100.0, 399.0, 200.0])]));
        // The plate is moved to the left: its color is far from the box.
        assert_eq!(right.pixel(360, 85), Some(class_color("class 3")));
    }

    #[test]
    fn hidden_boxes_are_not_drawn() {
        let image = plain(100, 100, 90);
        let weak = boxes(&image, &[(3, 0.4, [10.0, 40.0, 90.0, 90.0])]);
        assert_eq!(drawn(&image, &weak), image);
        let confirmed = annotate(&image, &weak, &ViewSettings::default(), &[0], &TruthMarks::default());
        assert_ne!(confirmed, image);
    }

    #[test]
    fn better_box_is_drawn_on_top() {
        let image = plain(400, 300, 90);
        let same_place = [100.0, 80.0, 300.0, 200.0];
        let both = boxes(&image, &[(3, 0.9, same_place), (4, 0.8, same_place)]);
        assert_eq!(drawn(&image, &both).pixel(200, 199), Some(class_color("class 3")));
    }

    #[test]
    fn classes_are_drawn_in_the_corner() {
        let image = plain(400, 300, 90);
        let drawn = drawn(&image, &classes(&image, &["tabby cat", "tiger cat"]));
        assert_ne!(drawn.pixel(20, 20), image.pixel(20, 20));
        assert_eq!(drawn.pixel(390, 290), image.pixel(390, 290));
    }

    #[test]
    fn images_and_boxes_of_any_size_are_drawn() {
        let long = "a label that is much longer than any image of this test is wide, by far";
        for (width, height) in [(1, 1), (1, 200), (200, 1), (7, 7), (30, 20), (40_000, 10)] {
            let image = plain(width, height, 90);
            let all = [
                (1, 0.9, [0.0, 0.0, 1.0, 1.0]),
                (2, 0.9, [-1e9, -1e9, 1e9, 1e9]),
                (3, 0.9, [5.0, 5.0, 2.0, 2.0]),
                (4, 0.9, [f32::NAN, 0.0, f32::INFINITY, 3.0]),
                (5, 0.9, [1e6, 1e6, 2e6, 2e6]),
            ];
            let drawn_boxes = drawn(&image, &boxes(&image, &all));
            assert_eq!((drawn_boxes.width(), drawn_boxes.height()), (width, height));
            drawn(&image, &classes(&image, &[long, "日本語", ""]));
        }
    }
    #[test]
    fn ground_truth_object_is_dashed() {
        let image = plain(400, 300, 90);
        let label = Some(["truth: cat", "cat"].map(str::to_owned));
        let truth = ObjectMark { bounds: BoundingBox::new(100.0, 150.0, 300.0, 250.0), label, is_missed: false };
        let drawn = annotate_thumbnail(&image, &boxes(&image, &[]), &ViewSettings::default(), Some(truth));
        let edge: Vec<bool> = (100..300).map(|x| drawn.pixel(x, 249) == Some(TRUTH)).collect();
        let white = edge.iter().filter(|is_white| **is_white).count();
        assert!((80..=120).contains(&white), "{white} of 200");
        assert!(edge[1] && edge.windows(2).filter(|pair| pair[0] != pair[1]).count() > 10);
    }

    #[test]
    fn ground_truth_matches_the_canvas() {
        let image = plain(400, 300, 90);
        let predicted = boxes(&image, &[(3, 0.9, [20.0, 60.0, 120.0, 150.0])]);
        let mut predictions = Predictions::new(ModelTask::Detection);
        predictions.record(SampleId(0), &predicted);
        let mut outcomes = Outcomes::new(predictions, [(None, "dog".to_owned())], [(3, 0)]);
        let wrong = BoxOutcome { kind: Some(OutcomeKind::Class), object: 0, iou: 0.9 };
        let object = |left: f32| ObjectOutcome {
            class: 0,
            bounds: BoundingBox::new(left, 60.0, left + 100.0, 150.0),
            shown_by: NO_OBJECT,
            counts: true,
        };
        outcomes.add(SampleId(0), &[wrong], &[object(20.0), object(250.0)]);
        let marks = |objects| TruthMarks::new(&outcomes, SampleId(0), &predicted, &[(0, 0)], objects);
        let all = marks(DrawnObjects::All);
        assert_eq!(all.boxes[&0], ["class 3, is dog", "FP"]);
        let drawn = annotate(&image, &predicted, &ViewSettings::default(), &[], &all);
        let white = |drawn: &RgbImage| (250..350).filter(|x| drawn.pixel(*x, 149) == Some(TRUTH)).count();
        assert!((30..=80).contains(&white(&drawn)), "{} of 100", white(&drawn));
        let without = annotate(&image, &predicted, &ViewSettings::default(), &[], &marks(DrawnObjects::None));
        assert_eq!(white(&without), 0);
        let other = boxes(&image, &[(3, 0.8, [20.0, 60.0, 120.0, 150.0])]);
        let of_other = TruthMarks::new(&outcomes, SampleId(0), &other, &[(0, 0)], DrawnObjects::All);
        assert!(of_other.boxes.is_empty() && of_other.objects.is_empty(), "another prediction was evaluated");
    }
}
