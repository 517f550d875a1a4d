//! The report: a self-contained HTML page with summary, charts and examples.

mod comparison;
mod evaluation;
mod examples;
mod page;
mod summary;

use std::collections::HashMap;
use std::sync::Arc;

pub(super) use self::comparison::{ComparedRuns, DifferingImage, page as comparison_page};
pub use self::evaluation::EvaluatedImages;
pub(super) use self::evaluation::page as evaluation_page;
use self::examples::{Example, Examples, Thumbnail};
use self::summary::Summary;
use super::row::{ChosenImage, ExportContext};
use super::tally::Tally;
use super::target::{ExportTarget, WholeFile};
use super::{ExportError, Writer};
use crate::domain::{Problem, SampleUri};
use crate::project::export::options::ExportOptions;
use crate::tasks::TaskControl;

/// Counts while the images come, keeps the few that become examples, and reads their images at the end.
pub(super) struct ReportWriter<'c> {
    file: WholeFile,
    context: &'c ExportContext,
    options: ExportOptions,
    control: &'c TaskControl,
    summary: Summary,
    examples: Examples,
    /// The name and address of each image, if there is an evaluation to show with its images.
    names: Vec<(String, SampleUri)>,
}

impl<'c> ReportWriter<'c> {
    pub(super) fn create(
        target: &ExportTarget,
        context: &'c ExportContext,
        options: ExportOptions,
        control: &'c TaskControl,
    ) -> Result<Self, ExportError> {
        Ok(Self {
            file: WholeFile::create(target)?,
            context,
            options,
            control,
            summary: Summary::default(),
            examples: Examples::default(),
            names: Vec::new(),
        })
    }
}

impl Writer for ReportWriter<'_> {
    fn write(&mut self, image: &ChosenImage, tally: &mut Tally) -> Result<(), ExportError> {
        self.summary.add(image);
        self.examples.consider(image, &self.context.view);
        if self.context.evaluation.is_some() {
            self.names.push((image.row.sample.name.clone(), image.row.sample.uri.clone()));
        }
        tally.images += 1;
        tally.boxes = self.summary.scores.total();
        Ok(())
    }

    fn finish(self: Box<Self>, tally: &mut Tally) -> Result<(), ExportError> {
        self.control.set_step("drawing the examples");
        // An image in several sections is read once.
        let mut drawn: HashMap<SampleUri, Option<Arc<Thumbnail>>> = HashMap::new();
        let mut draw = |example: &Example| {
            self.control.checkpoint()?;
            let uri = &example.sample.uri;
            if let Some(thumbnail) = drawn.get(uri) {
                return Ok(thumbnail.clone());
            }
            let thumbnail = match example.thumbnail(&*self.context.source, &self.context.limits) {
                Ok(thumbnail) => Some(Arc::new(thumbnail)),
                Err(reason) => {
                    let message = format!("has no image in the report: {reason}");
                    let problem = Problem::new(uri.clone(), message);
                    tally.problems.push(problem);
                    None
                }
            };
            drawn.insert(uri.clone(), thumbnail.clone());
            Ok(thumbnail)
        };
        let sections = self
            .examples
            .into_sections(self.context.task())
            .into_iter()
            .map(|section| section.drawn(&mut draw))
            .collect::<Result<Vec<_>, ExportError>>()?;
        let evaluation = self.context.evaluation.as_ref().map(|evaluated| {
            let images = EvaluatedImages {
                source: &*self.context.source,
                samples: self.names.iter().map(|(name, uri)| (name.as_str(), uri)).collect(),
                limits: &self.context.limits,
            };
            let thumbnails = evaluation::thumbnails(evaluated, &images, &mut tally.problems, self.control)?;
            Ok::<_, ExportError>(evaluation::sections(evaluated, Some(&thumbnails)))
        });
        let evaluation = evaluation.transpose()?;
        let html = page::page(self.context, self.options, &self.summary, &sections, evaluation.as_ref());
        self.file.commit_with(html.as_bytes())
    }
}
