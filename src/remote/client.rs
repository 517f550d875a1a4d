//! Connects to a remote model and recognizes its response format, or takes it from a mapping.

use std::sync::Arc;
use std::time::Duration;

use super::endpoint::EndpointTransport;
use super::outputs::{OutputReader, OutputShape, ReadingChoice, Recognition};
use super::predictor::{RemotePredictor, RequestEncoding, Transport, card_of_remote, send};
use super::tf_serving::{TfServing, TfServingAddress};
use crate::aws::{Aws, AwsError};
use crate::domain::{
    InferenceLocation, LabelSet, ModelCard, OutputMapping, RemoteAddress, RemoteModel, RunKey, endpoint_name_problem,
};
use crate::library::Library;
use crate::tasks::TaskControl;
use crate::vision::PredictError;

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
    /// The class names that the user chose.
    labels: Option<String>,
}

/// A remote model whose response format is known, with the key and card of its run.
pub struct ReadyModel {
    pub predictor: Arc<RemotePredictor>,
    pub key: RunKey,
    pub card: ModelCard,
    /// The class names that are known before the first response.
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
    /// The region of an endpoint is unknown, or its name or the address is invalid.
    pub fn of(model: &RemoteModel, aws: &Aws, control: &TaskControl) -> Result<Self, ConnectError> {
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

    /// `first`: the response that was recognized, about an image of this width and height; it shows whether the labels
    /// that are known here fit. `known` knows models by their id. `lanes`: how many images may be on their way at once.
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
            OutputShape::Spotcheck { model, task } => known(model).filter(|(card, _)| card.task == *task),
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
            (None, OutputShape::Spotcheck { model, task }) => card_of_remote(model, *task, &assumed, &origin),
            (None, OutputShape::Mapped(_)) => card_of_remote(&self.id, shape.task(), &assumed, &origin),
        };
        let key = RunKey::of_predictions(card.id.clone(), choice.keep, self.made.clone());
        let predictor =
            RemotePredictor::new(Arc::clone(&self.transport), self.encoding.clone(), shape, labels, choice.keep, lanes);
        ReadyModel { labels: predictor.labels(), predictor: Arc::new(predictor), key, card, reading }
    }

    /// Sends one image, as [`send`] does.
    ///
    /// # Errors
    /// As [`Transport::carry`].
    pub fn send(&self, image: &[u8], control: &TaskControl) -> Result<(Vec<u8>, Duration), PredictError> {
        send(&*self.transport, &self.encoding, image, control)
    }

    /// Everything in the request and its reading that may change predictions.
    fn origin(&self, reading: &str) -> String {
        let mut parts = vec![self.transport.name(), format!("asked with {}", self.encoding.form.description())];
        let signature = self.encoding.signature.as_ref();
        parts.extend(signature.map(|signature| format!("signature {signature}")));
        parts.push(format!("responses read as {reading}"));
        parts.extend(self.labels.as_ref().map(|labels| format!("class names from {labels}")));
        parts.join(", ")
    }
}

/// The model of the library that responses name. Such a name is never taken for a path.
pub fn known_to(library: &Library) -> impl Fn(&str) -> Option<(ModelCard, LabelSet)> {
    |id| {
        let mut entries = library.entries().into_iter();
        let entry = entries.find(|entry| entry.card.id == id)?;
        Some((entry.card, entry.labels))
    }
}

/// A mapping makes recognition unnecessary.
pub fn from_mapping(mapping: OutputMapping) -> Recognition {
    Recognition { shape: OutputShape::Mapped(Box::new(mapping)), assumed: Vec::new() }
}
