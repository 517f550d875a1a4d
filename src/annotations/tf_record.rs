//! Annotations in the `tf.Example` records of TFRecord files.

use super::collect::{Collector, checked_box};
use super::{AnnotationFormat, AnnotationsError, Found};
use crate::domain::{
    AnnotatedBox, AnnotatedLabel, AnnotationProblemKind as Kind, BoxRole, BoxUnit, ExactBox, Sample, TruthBox,
    TruthLabel,
};
use crate::image::source::{Source, SourceError};
use crate::tasks::TaskControl;

/// Reads the annotations stored in the records of a source. Other images are skipped.
///
/// # Errors
/// The source is unreachable, or the task was canceled.
pub fn from_records(source: &dyn Source, control: &TaskControl) -> Result<Found, AnnotationsError> {
    let for_task = source.for_task(control);
    let source = for_task.as_deref().unwrap_or(source);
    let mut collector = Collector::default();
    for page in source.pages() {
        for problem in page.problems {
            let place = problem.uri.map_or(String::new(), |uri| uri.to_string());
            collector.problem(Kind::Unreadable, place, problem.message);
        }
        for sample in page.samples {
            control.checkpoint()?;
            if !sample.uri.is_in_tfrecord() {
                continue;
            }
            collector.entries += 1;
            match source.read_with_truth(&sample.uri) {
                Ok((bytes, truth)) => {
                    control.add_done(bytes.len() as u64);
                    collector.image(&sample.name);
                    for note in truth.notes {
                        collector.problem(Kind::Unreadable, &sample.name, note);
                    }
                    add_labels(&mut collector, &sample, truth.labels);
                    add_boxes(&mut collector, &sample, truth.boxes);
                }
                Err(error @ (SourceError::Unreachable(_) | SourceError::Cancelled)) => {
                    control.checkpoint()?;
                    return Err(AnnotationsError::Source(error));
                }
                Err(error) => collector.problem(Kind::Unreadable, &sample.name, error.to_string()),
            }
        }
    }
    Ok(collector.finish(AnnotationFormat::TfRecord))
}

fn add_labels(collector: &mut Collector, sample: &Sample, labels: Vec<TruthLabel>) {
    for label in labels {
        let class = collector.class(label.number, label.name.as_deref());
        collector.add_label(&sample.name, AnnotatedLabel { class, score: None });
    }
}

fn add_boxes(collector: &mut Collector, sample: &Sample, boxes: Vec<TruthBox>) {
    for (index, found) in boxes.into_iter().enumerate() {
        let place = || format!("{}, box {index}", sample.name);
        let TruthLabel { number, name } = found.label;
        if number.is_none() && name.is_none() {
            collector.problem(Kind::UnknownClass, place(), "has no class");
            continue;
        }
        let bounds = ExactBox::from_edges(<[f32; 4]>::from(found.bounds).map(f64::from));
        match checked_box(bounds, BoxUnit::Fractions) {
            Ok(bounds) => {
                let class = collector.class(number, name.as_deref());
                let unit = BoxUnit::Fractions;
                let found = AnnotatedBox { bounds, unit, class, score: None, area: None, role: BoxRole::Object };
                collector.add_box(&sample.name, found, place);
            }
            Err((kind, reason)) => collector.problem(kind, place(), reason),
        }
    }
}
