//! Connects to a remote model and detects its response format, or takes it from a mapping.

use std::sync::Arc;
use std::time::Duration;

use super::outputs::{OutputReader, OutputShape, ReadingChoice, Recognition};
use super::predictor::{RemotePredictor, RequestEncoding, Transport, send};
use super::tf_serving::{TfServing, TfServingAddress};
use crate::aws::{Aws, AwsError};
use crate::domain::{InferenceLocation, LabelSet, ModelCard, RunKey};
use crate::model::PredictError;
use crate::model::catalog::Library;
use crate::sagemaker::endpoints::EndpointTransport;
use crate::sagemaker::spec::endpoint::endpoint_name_problem;
use crate::sagemaker::spec::remote_model::{RemoteAddress, RemoteModel};
use crate::tasks::TaskControl;

/// The default number of parallel requests.
pub const USUAL_LANES: usize = 4;

/// A connection to a remote model: transport, request format and location.
#[derive(Clone)]
pub struct RemoteClient {
    pub transport: Arc<dyn Transport>,
    pub encoding: RequestEncoding,
    pub made: InferenceLocation,
    /// The model's id if its responses contain none.
    id: String,
    labels: Option<String>,
}

/// A remote model with a known response format, and the key and card of its run.
pub struct ReadyModel {
    pub predictor: Arc<RemotePredictor>,
    pub key: RunKey,
    pub card: ModelCard,
    /// The class names known before the first response.
    pub labels: LabelSet,
    /// A description of the response format.
    pub reading: String,
}

/// Why the model cannot be called.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("{0}")]
    Aws(#[from] AwsError),
    /// The name of the endpoint is invalid.
    #[error("The name of the endpoint {0}")]
    Name(String),
    #[error("Invalid address of TensorFlow Serving: {0}")]
    Address(#[from] super::tf_serving::AddressError),
}

impl RemoteClient {
    /// Sends no request yet.
    ///
    /// # Errors
    /// The region of an endpoint is unknown, or its name or address is invalid.
    pub fn connect(model: &RemoteModel, aws: &Aws, control: &TaskControl) -> Result<Self, ConnectError> {
        let encoding = RequestEncoding { form: model.form, signature: model.signature.clone() };
        let (transport, made, id): (Arc<dyn Transport>, _, _) = match &model.at {
            RemoteAddress::Endpoint { name, access } => {
                if let Some(problem) = endpoint_name_problem(name) {
                    return Err(ConnectError::Name(problem));
                }
                let transport = EndpointTransport::new(aws.sagemaker(access), name, control)?;
                let made = InferenceLocation::Endpoint { name: name.clone(), region: transport.region().to_owned() };
                (Arc::new(transport), made, name.clone())
            }
            RemoteAddress::TfServing { address } => {
                let address = TfServingAddress::parse(address)?;
                let made = InferenceLocation::TfServing { address: address.url().to_owned() };
                let id = address.model().to_owned();
                (Arc::new(TfServing::new(address)), made, id)
            }
        };
        Ok(Self {
            transport,
            encoding,
            made,
            id,
            labels: Some(model.reading.labels.trim()).filter(|labels| !labels.is_empty()).map(str::to_owned),
        })
    }

    /// `first`: the response whose format was detected, for an image of this width and height; it shows whether the
    /// known labels fit. `known` finds models by id. `lanes`: maximum number of concurrent requests.
    pub fn ready_model(
        &self,
        recognition: Recognition,
        first: Option<(&[u8], [u32; 2])>,
        choice: &ReadingChoice,
        known: impl Fn(&str) -> Option<(ModelCard, LabelSet)>,
        lanes: usize,
    ) -> ReadyModel {
        let Recognition { shape, mut assumed } = recognition;
        let card = match &shape {
            OutputShape::Spotcheck { model, task } => known(model).filter(|(card, _)| card.task == (*task).into()),
            OutputShape::Mapped(_) => None,
        };
        let agrees =
            |reader: &OutputReader| first.is_none_or(|(response, size)| reader.read(response, Some(size)).is_ok());
        let labels = choice.label_source(&shape, card.as_ref(), agrees, "responses", &mut assumed);
        let reading = shape.description();
        let origin = self.origin(&reading);
        let card = match (card, &shape) {
            (Some((card, _)), _) => {
                ModelCard { origin, assumed: card.assumed.into_iter().chain(assumed).collect(), ..card }
            }
            (None, OutputShape::Spotcheck { model, task }) => ModelCard::from_remote(model, *task, assumed, origin),
            (None, OutputShape::Mapped(_)) => ModelCard::from_remote(&self.id, shape.task(), assumed, origin),
        };
        let key = RunKey::for_predictions(card.id.clone(), choice.keep, self.made.clone());
        let predictor =
            RemotePredictor::new(Arc::clone(&self.transport), self.encoding.clone(), shape, labels, choice.keep, lanes);
        ReadyModel { labels: predictor.labels(), predictor: Arc::new(predictor), key, card, reading }
    }

    /// Sends one image; see [`send`].
    ///
    /// # Errors
    /// As [`Transport::carry`].
    pub fn send(&self, image: &[u8], control: &TaskControl) -> Result<(Vec<u8>, Duration), PredictError> {
        send(&*self.transport, &self.encoding, image, control)
    }

    /// Everything about requests and responses that can affect predictions.
    fn origin(&self, reading: &str) -> String {
        let mut parts = vec![self.transport.name(), format!("asked with {}", self.encoding.form.description())];
        let signature = self.encoding.signature.as_ref();
        parts.extend(signature.map(|signature| format!("signature {signature}")));
        parts.push(format!("responses read as {reading}"));
        parts.extend(self.labels.as_ref().map(|labels| format!("class names from {labels}")));
        parts.join(", ")
    }
}

/// Finds models that responses name in the library. Such a name is never used as a path.
pub fn known_to(library: &Library) -> impl Fn(&str) -> Option<(ModelCard, LabelSet)> {
    |id| {
        let mut entries = library.entries().into_iter();
        let entry = entries.find(|entry| entry.card.id == id)?;
        Some((entry.card, entry.labels))
    }
}
