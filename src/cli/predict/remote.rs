//! `spotcheck predict` with a model elsewhere: behind an endpoint of SageMaker, or in TensorFlow Serving.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::bail;
use clap::{Args, ValueEnum};

use crate::aws::Aws;
use crate::dirs::AppDirs;
use crate::domain::{
    Credentials, KeepRule, LabelSet, MadeAt, ModelCard, OutputMapping, S3Place, SageMakerAccess,
    Sample,
};
use crate::library::{Library, built_in_labels, labels_from_file};
use crate::remote::asking::{
    Carrier, RemotePredictor, RequestForm, Wrapping, card_of_remote, recognise,
};
use crate::remote::endpoint::EndpointCarrier;
use crate::remote::outputs::{LabelSource, OutputShape, Recognition};
use crate::remote::tf_serving::{TfServing, TfServingAddress};
use crate::source::Source;
use crate::tasks::TaskControl;
use crate::vision::PredictError;

/// How many images are tried to find out what a model answers.
const PROBES: usize = 3;
const USUAL_LANES: u32 = 4;

/// A model elsewhere, instead of `--model`.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "A model elsewhere")]
pub(in crate::cli) struct RemoteArgs {
    /// Asks the model behind this real-time endpoint of SageMaker
    #[arg(long, value_name = "NAME", conflicts_with_all = ["model", "tensorflow_serving"])]
    endpoint: Option<String>,
    /// Asks a model in TensorFlow Serving: `http://host:8501/v1/models/NAME:predict`
    #[arg(long, value_name = "URL", conflicts_with = "model", value_parser = parse_address)]
    tensorflow_serving: Option<TfServingAddress>,
    /// How an image is sent: the file as it is, or in JSON as `{"instances":[{"b64":…}]}` or `{"inputs":{"b64":…}}`. Endpoints get files,
    /// TensorFlow Serving instances
    #[arg(long, value_enum, conflicts_with = "model")]
    send: Option<Send>,
    /// The signature of a model in TensorFlow Serving; the one it uses by itself where it is not given
    #[arg(long, value_name = "NAME", conflicts_with = "model")]
    signature: Option<String>,
    /// How answers are read: a mapping of yours or a file of one; found out from the first answer where it is not given
    #[arg(long, value_name = "ID|FILE.toml", conflicts_with = "model")]
    mapping: Option<String>,
    /// The names of the classes: a built-in set (imagenet, coco-80, coco-91, cifar-10), or a file with a name a line
    #[arg(long, value_name = "NAME|FILE", conflicts_with = "model")]
    labels: Option<String>,
    /// How many images are on their way at once
    #[arg(long, value_name = "N", conflicts_with = "model", default_value_t = USUAL_LANES, value_parser = clap::value_parser!(u32).range(1..=64))]
    concurrency: u32,
    /// Who asks the endpoint: a profile of your AWS configuration; as for the images where it is not given
    #[arg(long, value_name = "NAME", conflicts_with_all = ["model", "tensorflow_serving"])]
    sagemaker_profile: Option<String>,
    /// Where the endpoint is; as for the images, or as your AWS configuration says, where it is not given
    #[arg(long, value_name = "REGION", conflicts_with_all = ["model", "tensorflow_serving"])]
    sagemaker_region: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Send {
    Image,
    Instances,
    Inputs,
}

fn parse_address(text: &str) -> Result<TfServingAddress, String> {
    TfServingAddress::parse(text).map_err(|error| error.to_string())
}

/// A model elsewhere, ready to be asked.
pub(super) struct Remote {
    pub(super) predictor: Arc<RemotePredictor>,
    pub(super) card: ModelCard,
    pub(super) made: MadeAt,
}

impl RemoteArgs {
    /// Asks about the first images to find out what the model answers, unless a mapping says it.
    pub(super) fn load(
        &self,
        place: Option<&S3Place>,
        images: (&Arc<dyn Source>, &[Sample]),
        keep: KeepRule,
        dirs: &AppDirs,
        control: &TaskControl,
    ) -> anyhow::Result<Remote> {
        let (carrier, id, made) = self.carrier(place, control)?;
        let wrapping = self.wrapping();
        if self.signature.is_some() && wrapping.form == RequestForm::Image {
            bail!("a signature goes with JSON alone; add --send instances or --send inputs");
        }
        let name = carrier.name();
        let library = Library::open(dirs);
        let (found, of_mapping) = match &self.mapping {
            Some(mapping) => {
                let (mapping, labels) = library.find_mapping(mapping)?;
                (as_told(mapping), Some(labels))
            }
            None => (probe(&*carrier, &wrapping, images, control)?, None),
        };
        eprintln!("{name}: {}", found.shape.description());
        for assumed in &found.assumed {
            eprintln!("assumed, not known: {assumed}");
        }
        let labels = self.labels(of_mapping, &found.shape, &library)?;
        let card = card_of(&found, &id, &name, &library);
        let predictor = RemotePredictor::new(
            carrier,
            wrapping,
            found.shape,
            labels,
            keep,
            self.concurrency as usize,
        );
        Ok(Remote {
            predictor: Arc::new(predictor),
            card,
            made,
        })
    }

    /// And what the model is called where its answers do not say it, and where it is.
    fn carrier(
        &self,
        place: Option<&S3Place>,
        control: &TaskControl,
    ) -> anyhow::Result<(Arc<dyn Carrier>, String, MadeAt)> {
        if let Some(address) = &self.tensorflow_serving {
            let id = address.model().to_owned();
            let made = MadeAt::TfServing {
                address: address.url().to_owned(),
            };
            return Ok((Arc::new(TfServing::new(address.clone())), id, made));
        }
        let endpoint = self.endpoint.clone().unwrap_or_default();
        let mut access = place
            .map(|place| SageMakerAccess::from(&place.access))
            .unwrap_or_default();
        if let Some(profile) = &self.sagemaker_profile {
            access.credentials = Credentials::Profile(profile.clone());
        }
        if let Some(region) = &self.sagemaker_region {
            access.region = Some(region.clone());
        }
        let sagemaker = Aws::new().sagemaker(&access);
        let carrier = EndpointCarrier::new(sagemaker, endpoint.clone(), control)?;
        let made = MadeAt::Endpoint {
            name: endpoint.clone(),
            region: carrier.region().to_owned(),
        };
        Ok((Arc::new(carrier), endpoint, made))
    }

    fn wrapping(&self) -> Wrapping {
        let form = match self.send {
            Some(Send::Inputs) => RequestForm::Inputs,
            Some(Send::Instances) => RequestForm::Instances,
            None if self.tensorflow_serving.is_some() => RequestForm::Instances,
            Some(Send::Image) | None => RequestForm::Image,
        };
        Wrapping {
            form,
            signature: self.signature.clone(),
        }
    }

    /// As the user says, the mapping, or the library knows them.
    fn labels(
        &self,
        of_mapping: Option<LabelSet>,
        shape: &OutputShape,
        library: &Library,
    ) -> anyhow::Result<LabelSource> {
        if let Some(name) = &self.labels {
            let labels = match built_in_labels(name) {
                Some(labels) => labels,
                None => labels_from_file(&PathBuf::from(name))?,
            };
            return Ok(LabelSource::Known(labels));
        }
        Ok(match (of_mapping, shape) {
            (Some(labels), _) => LabelSource::Known(labels),
            (None, OutputShape::Spotcheck { model, .. }) => match library.find(model) {
                Ok(known) => LabelSource::Known(known.labels),
                Err(_) => LabelSource::Outputs,
            },
            (None, OutputShape::Mapped(mapping)) => {
                let named = mapping.labels.as_deref().and_then(built_in_labels);
                LabelSource::Known(named.unwrap_or_default())
            }
        })
    }
}

fn as_told(mapping: OutputMapping) -> Recognition {
    Recognition {
        shape: OutputShape::Mapped(Box::new(mapping)),
        assumed: Vec::new(),
    }
}

/// That of the library for a model of ours, otherwise one that holds no more than is known.
fn card_of(found: &Recognition, id: &str, name: &str, library: &Library) -> ModelCard {
    let task = found.shape.task();
    let id = match &found.shape {
        OutputShape::Spotcheck { model, .. } => {
            if let Ok(known) = library.find(model)
                && known.card.task == task
            {
                return known.card;
            }
            model
        }
        OutputShape::Mapped(_) => id,
    };
    card_of_remote(id, task, &found.assumed, name)
}

/// The first image may be one that no model can read.
fn probe(
    carrier: &dyn Carrier,
    wrapping: &Wrapping,
    (source, samples): (&Arc<dyn Source>, &[Sample]),
    control: &TaskControl,
) -> anyhow::Result<Recognition> {
    let mut failures = Vec::new();
    for sample in samples.iter().take(PROBES) {
        let bytes = match source.read(&sample.uri) {
            Ok(bytes) => bytes,
            Err(error) => {
                failures.push(format!("{}: {error}", sample.uri));
                continue;
            }
        };
        match recognise(carrier, wrapping, &bytes, control) {
            Ok(found) => return Ok(found),
            Err(PredictError::Failed(reason)) => {
                failures.push(format!("{}: {reason}", sample.uri));
            }
            Err(error) => bail!("{}: {error}", carrier.name()),
        }
    }
    bail!(
        "{} answered none of the first images, so what it answers is not known; --mapping says it: {}",
        carrier.name(),
        failures.join("; ")
    )
}
