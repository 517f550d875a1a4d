//! `spotcheck predict` with a remote model: a SageMaker endpoint, or TensorFlow Serving.

use std::path::Path;
use std::sync::Arc;

use anyhow::bail;
use clap::Args;

use crate::aws::Aws;
use crate::cli::values::{find_labels, parse_endpoint_name, parse_region, variant, warn_about_region};
use crate::dirs::AppDirs;
use crate::domain::{Credentials, InferenceLocation, KeepRule, LabelSet, ModelCard, S3Place, Sample};
use crate::image::source::{Source, SourceError};
use crate::model::PredictError;
use crate::model::catalog::Library;
use crate::sagemaker::client::{RemoteClient, USUAL_LANES, known_to};
use crate::sagemaker::outputs::{ReadingChoice, Recognition};
use crate::sagemaker::predictor::{RemotePredictor, recognize};
use crate::sagemaker::spec::output_mapping::ReadingRequest;
use crate::sagemaker::spec::remote_model::{RemoteModel, RequestForm};
use crate::sagemaker::spec::transform::SageMakerAccess;
use crate::sagemaker::tf_serving::TfServingAddress;
use crate::tasks::TaskControl;

/// The number of images that are tried for detecting the response format.
const PROBES: usize = 3;

/// A remote model, instead of `--model`.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Remote model")]
pub(crate) struct RemoteArgs {
    /// Name of a SageMaker real-time endpoint
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with_all = ["model", "tensorflow_serving"],
        value_parser = parse_endpoint_name
    )]
    endpoint: Option<String>,
    /// URL of a model in TensorFlow Serving: `http://host:8501/v1/models/NAME:predict`
    #[arg(long, value_name = "URL", conflicts_with = "model", value_parser = parse_address)]
    tensorflow_serving: Option<TfServingAddress>,
    /// Request format: the image file itself, or JSON as `{"instances":[{"b64":…}]}` or `{"inputs":{"b64":…}}`
    /// [default: image for endpoints, instances for TensorFlow Serving]
    #[arg(long, conflicts_with = "model", value_parser = variant::<RequestForm>())]
    send: Option<RequestForm>,
    /// Signature in TensorFlow Serving [default: the server's]
    #[arg(long, value_name = "NAME", conflicts_with = "model")]
    signature: Option<String>,
    /// Response mapping: id of a saved mapping, or a file [default: recognized from the first response]
    #[arg(long, value_name = "ID|FILE.toml", conflicts_with = "model")]
    mapping: Option<String>,
    /// Class names of a remote model, or of an ONNX file without a card: a built-in set (imagenet, coco-80, coco-91,
    /// cifar-10), or a file with one name per line
    #[arg(long, value_name = "NAME|FILE")]
    labels: Option<String>,
    /// Parallel requests
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "model",
        default_value_t = USUAL_LANES as u32,
        value_parser = clap::value_parser!(u32).range(1..=64)
    )]
    concurrency: u32,
    /// AWS profile for the endpoint [default: the profile for the images]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["model", "tensorflow_serving"])]
    sagemaker_profile: Option<String>,
    /// AWS region of the endpoint [default: the region of the images, or from your AWS configuration]
    #[arg(
        long,
        value_name = "REGION",
        conflicts_with_all = ["model", "tensorflow_serving"],
        value_parser = parse_region
    )]
    sagemaker_region: Option<String>,
}

fn parse_address(text: &str) -> Result<TfServingAddress, String> {
    TfServingAddress::parse(text).map_err(|error| error.to_string())
}

/// A remote model that is ready to predict.
pub(crate) struct Remote {
    pub(crate) predictor: Arc<RemotePredictor>,
    pub(crate) card: ModelCard,
    pub(crate) made: InferenceLocation,
}

impl RemoteArgs {
    /// Connects to the model. Predicts the first images to detect the response format, unless a mapping is given.
    pub(crate) fn load(
        &self,
        place: Option<&S3Place>,
        images: (&Arc<dyn Source>, &[Sample]),
        keep: KeepRule,
        dirs: &AppDirs,
        control: &TaskControl,
    ) -> anyhow::Result<Remote> {
        warn_about_region(self.sagemaker_region.as_deref());
        let model = self.model(place);
        if model.signature.is_some() && model.form == RequestForm::Image {
            bail!("--signature needs JSON: add --send instances or --send inputs");
        }
        let client = RemoteClient::connect(&model, &Aws::new(), control)?;
        let library = Library::open(dirs);
        let (found, of_mapping) = match &self.mapping {
            Some(mapping) => {
                let (mapping, labels) = library.find_mapping(mapping)?;
                (mapping.into(), Some(labels).filter(|labels| !labels.is_empty()))
            }
            None => (probe(&client, images, control)?, None),
        };
        eprintln!("{}: {}", client.transport.name(), found.shape.description());
        for assumed in &found.assumed {
            eprintln!("assumed: {assumed}");
        }
        let choice = ReadingChoice { mapping: None, labels: self.labels()?.or(of_mapping), keep };
        let known = known_to(&library);
        let lanes = self.concurrency as usize;
        let ready_model = client.ready_model(found, None, &choice, known, lanes);
        Ok(Remote { predictor: ready_model.predictor, card: ready_model.card, made: client.made })
    }

    fn model(&self, place: Option<&S3Place>) -> RemoteModel {
        let model = if let Some(address) = &self.tensorflow_serving {
            RemoteModel::in_tf_serving(address.url())
        } else {
            let endpoint = self.endpoint.clone().unwrap_or_default();
            RemoteModel::at_endpoint(endpoint, self.access(place))
        };
        RemoteModel {
            form: self.send.unwrap_or(model.form),
            signature: self.signature.clone(),
            reading: ReadingRequest { mapping: None, labels: self.labels.clone().unwrap_or_default() },
            ..model
        }
    }

    fn access(&self, place: Option<&S3Place>) -> SageMakerAccess {
        let mut access = place.map(|place| SageMakerAccess::from(&place.access)).unwrap_or_default();
        if let Some(profile) = &self.sagemaker_profile {
            access.credentials = Credentials::Profile(profile.clone());
        }
        if let Some(region) = &self.sagemaker_region {
            access.region = Some(region.clone());
        }
        access
    }

    pub(crate) fn is_endpoint(&self) -> bool {
        self.endpoint.is_some()
    }

    /// The values of `--mapping` and `--labels` that are files.
    pub(crate) fn files(&self) -> [Option<&Path>; 2] {
        [&self.mapping, &self.labels].map(|named| {
            let path = named.as_deref().map(Path::new);
            path.filter(|path| path.exists())
        })
    }

    pub(crate) fn labels(&self) -> anyhow::Result<Option<LabelSet>> {
        self.labels.as_deref().map(find_labels).transpose()
    }
}

/// The first image may be one that no model can read.
fn probe(
    client: &RemoteClient,
    (source, samples): (&Arc<dyn Source>, &[Sample]),
    control: &TaskControl,
) -> anyhow::Result<Recognition> {
    let transport = &*client.transport;
    let mut failures = Vec::new();
    for sample in samples.iter().take(PROBES) {
        let bytes = match source.read(&sample.uri) {
            Ok(bytes) => bytes,
            Err(SourceError::Unreachable(reason)) => bail!("could not read any image: {reason}"),
            Err(error) => {
                failures.push(format!("{}: {error}", sample.uri));
                continue;
            }
        };
        match recognize(transport, &client.encoding, &bytes, control) {
            Ok(found) => return Ok(found),
            Err(PredictError::Failed(reason)) => {
                failures.push(format!("{}: {reason}", sample.uri));
            }
            Err(error) => bail!("{}: {error}", transport.name()),
        }
    }
    bail!(
        "{} did not respond to the first images, so its response format is unknown; set it with --mapping: {}",
        transport.name(),
        failures.join("; ")
    )
}
