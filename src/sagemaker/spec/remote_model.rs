//! A remote model, and how to predict one image with it. Contains no secrets.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use crate::domain::InferenceLocation;
use crate::sagemaker::spec::output_mapping::ReadingRequest;
use crate::sagemaker::spec::transform::SageMakerAccess;

/// The address of a model, the request format, and how responses are read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteModel {
    pub at: RemoteAddress,
    pub form: RequestForm,
    /// The signature, if a TensorFlow Serving model has several; only for JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    #[serde(default)]
    pub reading: ReadingRequest,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RemoteAddress {
    /// A SageMaker real-time endpoint.
    Endpoint { name: String, access: SageMakerAccess },
    /// `http://host:8501/v1/models/NAME:predict`
    TfServing { address: String },
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum RequestForm {
    /// The file itself, as `application/x-image`.
    #[default]
    Image,
    /// `{"instances": [{"b64": "…"}]}`
    Instances,
    /// `{"inputs": {"b64": "…"}}`
    Inputs,
}

impl RequestForm {
    /// The content of a request, as text.
    pub fn description(self) -> &'static str {
        match self {
            Self::Image => "the file as it is (application/x-image)",
            Self::Instances => "JSON {\"instances\": [{\"b64\": …}]}",
            Self::Inputs => "JSON {\"inputs\": {\"b64\": …}}",
        }
    }
}

impl RemoteModel {
    /// Sends files unchanged and detects the response format.
    pub fn at_endpoint(name: impl Into<String>, access: SageMakerAccess) -> Self {
        Self {
            at: RemoteAddress::Endpoint { name: name.into(), access },
            form: RequestForm::Image,
            signature: None,
            reading: ReadingRequest::default(),
        }
    }

    /// Sends files in JSON to the model's default signature and detects the response format.
    pub fn in_tf_serving(address: impl Into<String>) -> Self {
        Self {
            at: RemoteAddress::TfServing { address: address.into() },
            form: RequestForm::Instances,
            signature: None,
            reading: ReadingRequest::default(),
        }
    }

    /// “endpoint cats”, “resnet in TensorFlow Serving”.
    pub fn name(&self) -> String {
        match &self.at {
            RemoteAddress::Endpoint { name, .. } => format!("endpoint {name}"),
            // If the address is mistyped, any part of it may be private.
            RemoteAddress::TfServing { address } => match normal_address(address).split_once("/v1/models/") {
                Some((_, model)) => {
                    let model = model.trim_end_matches(":predict");
                    format!("{model} in TensorFlow Serving")
                }
                None => "TensorFlow Serving".to_owned(),
            },
        }
    }

    /// Whether this model made a run, judging by the address: an endpoint without a region matches any region.
    pub fn is_where(&self, made: &InferenceLocation) -> bool {
        match (&self.at, made) {
            (RemoteAddress::Endpoint { name, access }, InferenceLocation::Endpoint { name: asked, region }) => {
                name == asked && access.region.as_ref().is_none_or(|said| said == region)
            }
            (RemoteAddress::TfServing { address }, InferenceLocation::TfServing { address: asked }) => {
                normal_address(address) == *asked
            }
            _ => false,
        }
    }
}

/// The address without its optional parts, for comparisons.
fn normal_address(address: &str) -> String {
    let address = address.trim().trim_end_matches('/');
    if address.ends_with(":predict") { address.to_owned() } else { format!("{address}:predict") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_is_identified_by_its_address() {
        let cats = RemoteModel::at_endpoint("cats", SageMakerAccess::default());
        let made = |name: &str| InferenceLocation::Endpoint { name: name.to_owned(), region: "eu-west-1".to_owned() };
        assert!(cats.is_where(&made("cats")));
        assert!(!cats.is_where(&made("dogs")));
        assert!(!cats.is_where(&InferenceLocation::Here));
        let other_region = SageMakerAccess { region: Some("us-east-1".to_owned()), ..SageMakerAccess::default() };
        assert!(!RemoteModel::at_endpoint("cats", other_region).is_where(&made("cats")));
        let served = RemoteModel::in_tf_serving("http://h:8501/v1/models/resnet:predict");
        assert_eq!(served.name(), "resnet in TensorFlow Serving");
        assert!(
            RemoteModel::in_tf_serving(" http://h:8501/v1/models/resnet/").is_where(&InferenceLocation::TfServing {
                address: "http://h:8501/v1/models/resnet:predict".to_owned(),
            })
        );
        let mistyped = RemoteModel::in_tf_serving("http://me:secret@h:8501");
        assert_eq!(mistyped.name(), "TensorFlow Serving");
    }
}
