//! The explanation of a prediction: the parts of the shown image that it depends on.

use std::sync::Arc;

use crate::domain::{PredictionContent, RunKey, Saliency, SaliencyTarget, SampleUri};
use crate::window::state::{SourceId, State, TaskId};

#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    pub target: SaliencyTarget,
    pub label: String,
    /// The score in the run, `0.0..=1.0`.
    pub score: f32,
}

/// A question for a run's model about an image.
#[derive(Debug, Clone)]
pub struct ExplainRequest {
    pub source: SourceId,
    pub key: RunKey,
    pub uri: SampleUri,
    pub target: SaliencyTarget,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub enum Explanation {
    #[default]
    None,
    /// The model is loaded first.
    Waiting(Question),
    Running {
        task: TaskId,
        question: Question,
    },
    Ready {
        task: TaskId,
        question: Question,
        saliency: Arc<Saliency>,
    },
    Failed {
        question: Question,
        reason: String,
    },
}

impl Explanation {
    pub fn question(&self) -> Option<&Question> {
        match self {
            Self::None => None,
            Self::Waiting(question)
            | Self::Running { question, .. }
            | Self::Ready { question, .. }
            | Self::Failed { question, .. } => Some(question),
        }
    }

    pub fn task(&self) -> Option<TaskId> {
        match self {
            Self::Running { task, .. } => Some(*task),
            _ => None,
        }
    }
}

impl State {
    /// The subject of “Explain”: the selected box or class, or else the best one on screen; `None` without one.
    pub fn question(&self) -> Option<Question> {
        let prediction = self.shown.stored.as_ref()?;
        match &prediction.content {
            PredictionContent::Classes(classes) => {
                let selected = self.shown.selected_class;
                let class = classes.iter().find(|class| Some(class.index) == selected).or(classes.first())?;
                Some(Question {
                    target: SaliencyTarget::Class(class.index),
                    label: class.label.clone(),
                    score: class.score,
                })
            }
            PredictionContent::Detections(detections) => {
                // The model cannot explain a box that a person added.
                let best = || self.shown_boxes().into_iter().find(|index| *index < detections.len());
                let index = self.shown.selected_box.or_else(best)?;
                let detection = detections.get(index)?;
                Some(Question {
                    target: SaliencyTarget::Box { class_id: detection.class_id, bounds: detection.bounds },
                    label: detection.label.clone(),
                    score: detection.score,
                })
            }
        }
    }
}
