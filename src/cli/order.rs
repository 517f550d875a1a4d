//! `spotcheck alike --order`: images by what their embeddings say about them among all others.

use serde::Serialize;
use strum::{IntoStaticStr, VariantArray};

use super::alike::Origin;
use crate::alike::{Cover, METRIC, Measure, NEIGHBORS, NeighborGraph, outliers, representativeness, uniqueness};
use crate::project::export::Vectors;
use crate::tasks::TaskControl;

/// What images are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub(crate) enum AlikeOrder {
    /// The most unique ones first.
    Uniqueness,
    /// The lowest outlier scores first.
    Outlier,
    /// Those nearest to the center of their cluster first.
    Representativeness,
    /// Those that cover all others, in the order in which they were chosen.
    Cover,
}

/// A line of the output.
#[derive(Serialize)]
struct Line<'l> {
    uri: &'l str,
    r#box: Option<u32>,
    order: &'static str,
    value: f32,
    /// By cleanlab's rule; only for outliers.
    #[serde(skip_serializing_if = "Option::is_none")]
    outlier: Option<bool>,
    encoder: &'l str,
    layer: Option<&'l str>,
    metric: &'static str,
}

/// An image in its order.
struct Ranked {
    row: usize,
    value: f32,
    is_outlier: Option<bool>,
}

impl AlikeOrder {
    fn metric(self) -> &'static str {
        match self {
            Self::Uniqueness => Measure::Uniqueness.metric(),
            Self::Outlier => Measure::Outlier.metric(),
            Self::Representativeness => Measure::Representativeness.metric(),
            Self::Cover => METRIC,
        }
    }

    /// The lines of the first `count` images.
    pub(crate) fn lines(
        self,
        count: usize,
        seed: u64,
        (origin, vectors): (&Origin, &Vectors),
        control: &TaskControl,
    ) -> anyhow::Result<String> {
        let (encoder, layer) = origin.names();
        let mut text = String::new();
        for Ranked { row, value, is_outlier } in self.ranked(count, seed, vectors, control)?.into_iter().take(count) {
            let line = Line {
                uri: vectors.uris[row].as_str(),
                r#box: None,
                order: self.into(),
                value,
                outlier: is_outlier,
                encoder: &encoder,
                layer: layer.as_deref(),
                metric: self.metric(),
            };
            text.push_str(&serde_json::to_string(&line)?);
            text.push('\n');
        }
        Ok(text)
    }

    fn ranked(self, count: usize, seed: u64, vectors: &Vectors, control: &TaskControl) -> anyhow::Result<Vec<Ranked>> {
        let graph = || NeighborGraph::build(&vectors.rows, NEIGHBORS, control);
        let plain = |values: Vec<f32>| {
            let rows = values.into_iter().enumerate();
            rows.map(|(row, value)| Ranked { row, value, is_outlier: None }).collect::<Vec<_>>()
        };
        let mut ranked = match self {
            Self::Uniqueness => plain(uniqueness(&graph()?)),
            Self::Representativeness => plain(representativeness(&vectors.rows, control)?),
            Self::Outlier => {
                let scores = outliers(&graph()?).into_iter().enumerate();
                let ranked = scores.map(|(row, outlier)| Ranked {
                    row,
                    value: outlier.score,
                    is_outlier: Some(outlier.is_outlier),
                });
                ranked.collect()
            }
            Self::Cover => {
                let Cover { chosen, coverage, .. } = Cover::choose(&vectors.rows, count, seed, control)?;
                let chosen = chosen.into_iter().zip(coverage);
                return Ok(chosen.map(|(row, value)| Ranked { row, value, is_outlier: None }).collect());
            }
        };
        let sign = if self == Self::Outlier { 1.0 } else { -1.0 };
        ranked.sort_by(|one, other| (sign * one.value).total_cmp(&(sign * other.value)));
        Ok(ranked)
    }
}
