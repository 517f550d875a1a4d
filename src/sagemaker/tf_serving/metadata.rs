//! A model's versions and signatures in TensorFlow Serving, queried without sending an image.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::TfServing;
use crate::model::PredictError;
use crate::tasks::TaskControl;

const USUAL_SIGNATURE: &str = "serving_default";
/// The state of a version that serves requests.
const LOADED: &str = "AVAILABLE";
/// The type of a tensor with encoded images.
const TEXTS: &str = "DT_STRING";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServedModel {
    name: String,
    /// Number and state: `("3", "AVAILABLE")`.
    versions: Vec<(String, String)>,
    /// Empty if the server does not report them.
    signatures: Vec<ServedSignature>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedSignature {
    pub name: String,
    /// Name and type: `("image_bytes", "DT_STRING")`.
    pub inputs: Vec<(String, String)>,
}

#[derive(Deserialize)]
struct StatusResponse {
    #[serde(default)]
    model_version_status: Vec<VersionStatus>,
}

#[derive(Deserialize)]
struct VersionStatus {
    #[serde(default)]
    version: String,
    #[serde(default)]
    state: String,
}

#[derive(Deserialize)]
struct MetadataResponse {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    signature_def: SignatureDefs,
}

#[derive(Deserialize)]
struct SignatureDefs {
    signature_def: BTreeMap<String, SignatureDef>,
}

#[derive(Deserialize)]
struct SignatureDef {
    #[serde(default)]
    inputs: BTreeMap<String, Tensor>,
}

#[derive(Deserialize)]
struct Tensor {
    #[serde(default)]
    dtype: String,
}

impl TfServing {
    /// Queries the state of the model and its signatures; costs no prediction.
    ///
    /// # Errors
    /// The server does not respond, or does not have the model.
    pub fn inspect(&self, control: &TaskControl) -> Result<ServedModel, PredictError> {
        let place = self.address.url.trim_end_matches(":predict").to_owned();
        let status: StatusResponse = self.get(place.clone(), control)?;
        // A proxy may allow only other requests; the model can still be used.
        let metadata = self.get::<MetadataResponse>(format!("{place}/metadata"), control);
        let signatures = match metadata {
            Ok(response) => response.metadata.signature_def.signature_def,
            Err(PredictError::Cancelled) => return Err(PredictError::Cancelled),
            Err(_) => BTreeMap::new(),
        };
        let versions = status.model_version_status.into_iter();
        Ok(ServedModel {
            name: self.address.model.clone(),
            versions: versions.map(|it| (it.version, it.state)).collect(),
            signatures: signatures
                .into_iter()
                // TensorFlow's internal signatures are skipped.
                .filter(|(name, _)| !name.starts_with("__"))
                .map(|(name, signature)| ServedSignature {
                    name,
                    inputs: signature.inputs.into_iter().map(|(name, tensor)| (name, tensor.dtype)).collect(),
                })
                .collect(),
        })
    }

    /// Whether the model currently serves no requests; otherwise, a failure may be the image's.
    pub fn is_down(&self, control: &TaskControl) -> bool {
        let place = self.address.url.trim_end_matches(":predict").to_owned();
        let response = self.on_own_thread(control, move |this| this.read(this.agent.get(&place).call()));
        match response {
            Ok(response) if response.status == 200 => {
                let status: Result<StatusResponse, _> = serde_json::from_slice(&response.body);
                let versions = status.map_or_else(|_| Vec::new(), |it| it.model_version_status);
                !versions.is_empty() && versions.iter().all(|version| version.state != LOADED)
            }
            // A proxy may allow only predictions.
            Ok(response) => response.is_of_a_server_in_trouble(),
            Err(PredictError::Cancelled) => false,
            Err(_) => true,
        }
    }

    fn get<T: serde::de::DeserializeOwned>(&self, url: String, control: &TaskControl) -> Result<T, PredictError> {
        let response = self.on_own_thread(control, move |this| this.read(this.agent.get(&url).call()))?;
        if response.status != 200 {
            return Err(response.error(&self.address));
        }
        serde_json::from_slice(&response.body).map_err(|_| {
            PredictError::OutOfReach(format!(
                "this server is not TensorFlow Serving; check the address: {}",
                self.address.url
            ))
        })
    }
}

impl ServedModel {
    pub fn signature_names(&self) -> Vec<String> {
        let names = self.signatures.iter();
        names.map(|signature| signature.name.clone()).collect()
    }

    /// Whether the signature accepts images, as far as the server reports it, and notes about it.
    pub fn check(&self, signature: Option<&str>) -> (bool, Vec<String>) {
        let name = &self.name;
        let is_loaded = |state: &str| state == LOADED;
        let loaded: Vec<&str> =
            self.versions.iter().filter(|(_, state)| is_loaded(state)).map(|(version, _)| version.as_str()).collect();
        let mut found = vec![match &loaded[..] {
            [] => {
                let states: Vec<String> =
                    self.versions.iter().map(|(version, state)| format!("version {version} is {state}")).collect();
                format!(
                    "No version of {name} is loaded ({}); wait until one is AVAILABLE, or check the log of TensorFlow \
                    Serving",
                    states.join(", ")
                )
            }
            [version] => format!("{name} is loaded, version {version}"),
            versions => format!("{name} is loaded, versions {}", versions.join(", ")),
        }];
        let (fits, words) = self.check_signature(signature);
        found.extend(words);
        (!loaded.is_empty() && fits, found)
    }

    fn check_signature(&self, wanted: Option<&str>) -> (bool, Option<String>) {
        if self.signatures.is_empty() {
            return (true, None);
        }
        let name = wanted.unwrap_or(USUAL_SIGNATURE);
        let names = self.signature_names().join(", ");
        let Some(signature) = self.signatures.iter().find(|it| it.name == name) else {
            let words = format!("Signature {name} does not exist; signatures: {names}");
            return (false, Some(words));
        };
        let mut inputs = signature.inputs.iter();
        if inputs.any(|(_, kind)| kind == TEXTS) {
            let words = format!("Signature {name} takes encoded images");
            return (true, Some(words));
        }
        let inputs: Vec<String> = signature.inputs.iter().map(|(name, kind)| format!("{name} ({kind})")).collect();
        let words = format!(
            "Signature {name} takes numbers, not image files: {}; choose another one ({names}), or export the model \
            with one that decodes images",
            inputs.join(", ")
        );
        (false, Some(words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(state: &str, kind: &str) -> ServedModel {
        ServedModel {
            name: "resnet".to_owned(),
            versions: vec![("3".to_owned(), state.to_owned())],
            signatures: vec![ServedSignature {
                name: "serving_default".to_owned(),
                inputs: vec![("image_bytes".to_owned(), kind.to_owned())],
            }],
        }
    }

    #[test]
    fn model_without_image_input_is_explained() {
        for (state, kind, signature, is_well, words) in [
            ("AVAILABLE", "DT_STRING", None, true, "takes encoded images"),
            ("LOADING", "DT_STRING", None, false, "wait until one"),
            ("AVAILABLE", "DT_FLOAT", None, false, "takes numbers"),
            ("AVAILABLE", "DT_STRING", Some("b64"), false, "Signature b64 does not exist"),
        ] {
            let (found_well, found) = model(state, kind).check(signature);
            assert_eq!(found_well, is_well, "{found:?}");
            assert!(found.join("\n").contains(words), "{found:?}");
        }
    }
}
