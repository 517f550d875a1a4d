//! Embeddings that are computed for one command and not saved.

use std::sync::Arc;

use anyhow::bail;

use super::Origin;
use crate::alike::ImageEmbeddings;
use crate::cli::predict::{find_model, print_report};
use crate::cli::terminal::{print_problems, step_of, summary, with_progress};
use crate::dirs::AppDirs;
use crate::domain::{Problem, Sample, SampleId};
use crate::image::decode::DecodeLimits;
use crate::image::source::Source;
use crate::model::AnyPredictor;
use crate::model::onnx::{LoadOptions, OnnxPredictor};
use crate::predict::{PredictRequest, ResultSink, SampleResult, Stopped, predict_some};
use crate::project::export::Vectors;
use crate::tasks::{ProgressUnit, TaskControl};

/// Computes the embeddings of images with a model, which is an id or an ONNX file, and reports those without one.
pub(crate) fn compute(
    model: &str,
    images: &[(Arc<dyn Source>, &[Sample])],
    limits: &DecodeLimits,
    dirs: &AppDirs,
    interrupt: &TaskControl,
) -> anyhow::Result<(Origin, Vectors)> {
    let (runtime, found) = find_model(model, (None, None), dirs, interrupt)?;
    let options = LoadOptions { embeddings: true, proofs: Some(dirs.proofs()), ..LoadOptions::default() };
    let predictor = Arc::new(OnnxPredictor::load(&runtime, &found, &options, interrupt)?);
    let encoder = match predictor.embedding() {
        Some(Ok(layer)) => layer.encoder(predictor.card()),
        Some(Err(reason)) => bail!("{model} has no embeddings, because {reason}"),
        None => bail!("{model} has no embeddings"),
    };
    print_report(predictor.card(), &predictor.report());
    eprintln!("embeddings by {encoder}");
    let mut computed = Computed { samples: &[], vectors: Vectors::default(), problems: Vec::new() };
    for (source, samples) in images {
        computed.samples = samples;
        let (source, samples) = (Arc::clone(source), (*samples).into());
        let predictor = AnyPredictor::OfTensors(Arc::clone(&predictor) as _);
        let request = PredictRequest { source, samples, predictor, limits: limits.clone() };
        let all = (0..request.samples.len()).map(SampleId::from_index).collect();
        let (control, _cancel) = step_of(interrupt, ProgressUnit::Images);
        let predict = || predict_some(&request, &all, &control, &mut computed);
        match with_progress("Computing embeddings", &control, predict).stopped {
            None => {}
            Some(Stopped::Cancelled) => bail!("canceled"),
            Some(Stopped::DeviceLost(reason) | Stopped::OutOfReach(reason) | Stopped::SourceUnreachable(reason)) => {
                bail!("{reason}")
            }
        }
        eprintln!("{}", summary(&control.progress()));
    }
    print_problems("no embedding: ", &computed.problems);
    Ok((Origin::Encoder(Box::new(encoder)), computed.vectors))
}

/// Keeps the embeddings of images in memory.
struct Computed<'s> {
    samples: &'s [Sample],
    vectors: Vectors,
    problems: Vec<Problem>,
}

impl ResultSink for Computed<'_> {
    fn embedded(&mut self, index: usize, embeddings: ImageEmbeddings) {
        let sample = &self.samples[index];
        self.vectors.push(sample.uri.clone(), Some(sample.stamp()), Some(&embeddings.image));
    }

    fn arrived(&mut self, _index: usize, result: &SampleResult) {
        self.problems.extend(result.as_ref().err().cloned());
    }

    fn in_order(&mut self, _index: usize, _result: SampleResult) {}
}
