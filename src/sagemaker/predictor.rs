//! Predictions from a remote model, one image per request: behind an endpoint, or in TensorFlow Serving.
//!
//! Images are sent as files; [`OutputReader`] reads the responses, as for Batch Transform. How a request is sent is up
//! to the [`Transport`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use parking_lot::Mutex;

use super::outputs::{LabelSource, OutputReader, OutputShape, Recognition, Unrecognized};
use crate::domain::{KeepRule, LabelSet, LatencyMs, Prediction};
use crate::model::{EncodedImage, EncodedPredictor, PredictError};
use crate::sagemaker::spec::remote_model::RequestForm;
use crate::sagemaker::spec::transform::IMAGE_CONTENT_TYPE;
use crate::tasks::TaskControl;

/// Sends a request to a model and returns the response.
pub trait Transport: Send + Sync {
    /// Waits for the whole response, but no longer than until `control` is canceled.
    ///
    /// # Errors
    /// [`PredictError::OutOfReach`] if other requests would fail as well.
    fn carry(&self, request: Request, control: &TaskControl) -> Result<Vec<u8>, PredictError>;

    /// The display name of the model: “endpoint cats in eu-west-1”.
    fn name(&self) -> String;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// `application/x-image`
    pub content_type: &'static str,
    pub body: Vec<u8>,
}

/// The request format of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestEncoding {
    pub form: RequestForm,
    /// The signature of a TensorFlow Serving model; only for JSON requests.
    pub signature: Option<String>,
}

impl RequestEncoding {
    pub fn encode(&self, image: &[u8]) -> Request {
        let base64 = || BASE64_STANDARD.encode(image);
        let body = match self.form {
            RequestForm::Image => {
                return Request { content_type: IMAGE_CONTENT_TYPE, body: image.to_vec() };
            }
            RequestForm::Instances => format!("\"instances\":[{{\"b64\":\"{}\"}}]}}", base64()),
            RequestForm::Inputs => format!("\"inputs\":{{\"b64\":\"{}\"}}}}", base64()),
        };
        let signature = self
            .signature
            .as_ref()
            .map_or_else(String::new, |name| format!("\"signature_name\":{},", serde_json::Value::from(name.as_str())));
        Request { content_type: "application/json", body: format!("{{{signature}{body}").into_bytes() }
    }
}

/// Sends one image. Returns the response, and the time from sending the request to receiving the complete response.
///
/// # Errors
/// As [`Transport::carry`].
pub fn send(
    transport: &dyn Transport,
    encoding: &RequestEncoding,
    image: &[u8],
    control: &TaskControl,
) -> Result<(Vec<u8>, Duration), PredictError> {
    let request = encoding.encode(image);
    let sent = Instant::now();
    let response = transport.carry(request, control)?;
    Ok((response, sent.elapsed()))
}

/// Detects the response format of a model by predicting one image.
///
/// # Errors
/// As [`Transport::carry`]; also [`PredictError::OutOfReach`] if the format is unknown, because it will not change.
pub fn recognize(
    transport: &dyn Transport,
    encoding: &RequestEncoding,
    image: &[u8],
    control: &TaskControl,
) -> Result<Recognition, PredictError> {
    let (response, _) = send(transport, encoding, image, control)?;
    Recognition::from_output(&response).map_err(|error| match error {
        Unrecognized::Broken(reason) => PredictError::Failed(reason),
        Unrecognized::Unknown(_) => PredictError::OutOfReach(error.to_string()),
    })
}

/// A remote model for the pipeline.
pub struct RemotePredictor {
    transport: Arc<dyn Transport>,
    encoding: RequestEncoding,
    reader: OutputReader,
    lanes: usize,
    took_ms: Mutex<Vec<f32>>,
}

impl RemotePredictor {
    /// `lanes`: maximum number of concurrent requests.
    pub fn new(
        transport: Arc<dyn Transport>,
        encoding: RequestEncoding,
        shape: OutputShape,
        labels: LabelSource,
        keep: KeepRule,
        lanes: usize,
    ) -> Self {
        Self {
            transport,
            encoding,
            reader: OutputReader::new(shape, labels, keep),
            lanes: lanes.max(1),
            took_ms: Mutex::default(),
        }
    }

    /// Restores what a run learned earlier; see [`OutputReader::learn`].
    pub fn learn(&self, known: &LabelSet) {
        self.reader.learn(known);
    }

    /// The known classes: more with each response, if only the responses name them.
    pub fn labels(&self) -> LabelSet {
        self.reader.labels()
    }

    /// The given classes; `None` if only the responses name them.
    pub fn given_labels(&self) -> Option<LabelSet> {
        self.reader.given_labels()
    }

    /// The latency of requests; `None` before the first one.
    pub fn latency(&self) -> Option<LatencyMs> {
        let mut took = self.took_ms.lock().clone();
        took.sort_by(f32::total_cmp);
        let at = |part: f64| {
            let last = took.len().checked_sub(1)?;
            took.get((part * last as f64).round() as usize)
        };
        Some(LatencyMs { p50: f64::from(*at(0.5)?), p95: f64::from(*at(0.95)?), calls: took.len() })
    }

    /// Sends one image. Returns the response, and the time from sending the request to receiving the complete response.
    ///
    /// # Errors
    /// As [`Transport::carry`].
    pub fn ask(&self, image: &[u8], control: &TaskControl) -> Result<(Vec<u8>, Duration), PredictError> {
        send(&*self.transport, &self.encoding, image, control)
    }

    /// Reads the response for an image of this width and height, received after `took`.
    ///
    /// # Errors
    /// The response cannot be read, or is for another image.
    pub fn read(&self, response: &[u8], size: [u32; 2], took: Duration) -> Result<Prediction, PredictError> {
        self.took_ms.lock().push(took.as_secs_f32() * 1e3);
        let prediction = self.reader.read(response, Some(size)).map_err(PredictError::Failed)?;
        let told = [prediction.width, prediction.height];
        if told == size {
            return Ok(prediction);
        }
        let [width, height] = size;
        Err(PredictError::Failed(format!(
            "the response is for an image of {} x {} pixels, but this one has {width} x {height}",
            told[0], told[1]
        )))
    }
}

impl EncodedPredictor for RemotePredictor {
    fn predict(&self, image: &EncodedImage<'_>, control: &TaskControl) -> Result<Prediction, PredictError> {
        let (response, took) = self.ask(image.bytes, control)?;
        self.read(&response, image.size, took)
    }

    fn lanes(&self) -> usize {
        self.lanes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::ProgressUnit;

    /// Returns the same response to every request.
    struct Always(&'static str);

    impl Transport for Always {
        fn carry(&self, _: Request, _: &TaskControl) -> Result<Vec<u8>, PredictError> {
            Ok(self.0.as_bytes().to_vec())
        }

        fn name(&self) -> String {
            "test".to_owned()
        }
    }

    const OWN: &str = r#"{"status":"ok","width":4,"height":3,"model":"toy","task":"classification","classes":[{"index":1,"label":"cat","score":0.75}]}"#;

    #[test]
    fn image_is_wrapped_for_the_model() {
        let encode = |form, signature: Option<&str>| {
            let encoding = RequestEncoding { form, signature: signature.map(str::to_owned) };
            let request = encoding.encode(b"abc");
            (request.content_type, String::from_utf8(request.body).unwrap())
        };
        assert_eq!(encode(RequestForm::Image, None), ("application/x-image", "abc".to_owned()));
        for (form, signature, expected) in [
            (RequestForm::Instances, None, r#"{"instances":[{"b64":"YWJj"}]}"#),
            (RequestForm::Inputs, Some("a\"b"), r#"{"signature_name":"a\"b","inputs":{"b64":"YWJj"}}"#),
        ] {
            let (content_type, body) = encode(form, signature);
            assert_eq!((content_type, body.as_str()), ("application/json", expected));
            assert!(serde_json::from_str::<serde_json::Value>(&body).is_ok());
        }
    }

    fn ask(response: &'static str, size: [u32; 2]) -> Result<Prediction, PredictError> {
        let control = TaskControl::new(ProgressUnit::Images);
        let transport = Arc::new(Always(response));
        let found = recognize(&*transport, &RequestEncoding::default(), b"", &control)?;
        let keep = KeepRule::default();
        let predictor =
            RemotePredictor::new(transport, RequestEncoding::default(), found.shape, LabelSource::Outputs, keep, 1);
        assert_eq!(predictor.latency(), None);
        let prediction = predictor.predict(&EncodedImage { bytes: b"", size }, &control);
        assert_eq!(predictor.latency().unwrap().calls, 1);
        prediction
    }

    #[test]
    fn response_becomes_a_prediction_of_its_image() {
        let prediction = ask(OWN, [4, 3]).unwrap();
        assert_eq!(prediction.classes()[0].label, "cat");
        let error = ask(OWN, [3, 4]).unwrap_err().to_string();
        assert!(error.contains("4 x 3") && error.contains("3 x 4"), "{error}");
    }

    #[test]
    fn unknown_response_ends_the_run() {
        let unknown = ask(r#"{"cat": "yes"}"#, [4, 3]).unwrap_err();
        assert!(matches!(unknown, PredictError::OutOfReach(_)), "{unknown}");
        let failed = ask(r#"{"status":"failed","error":"no image"}"#, [4, 3]).unwrap_err();
        assert!(matches!(failed, PredictError::Failed(_)), "{failed}");
    }
}
