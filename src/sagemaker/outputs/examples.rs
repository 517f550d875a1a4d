//! The first responses in a folder of outputs, to look at and to try a mapping on.

use std::sync::Arc;

use super::join::Work;
use super::json::Json;
use super::named::IMAGE_FIELDS;
use super::open::FoundOutputs;
use super::reader::{LabelSource, OutputReader};
use super::recognize::{OutputShape, Recognition, Unrecognized};
use super::responses::ResponseFile;
use super::shown::{places_of, shown, shown_raw};
use crate::domain::{KeepRule, LabelSet, Prediction, Sample};
use crate::image::size::image_size;
use crate::image::source::{Source, for_task};
use crate::sagemaker::spec::output_mapping::{ExampleResponse, OutputMapping, ResponseExamples};
use crate::tasks::TaskControl;

/// The number of responses shown.
const EXAMPLES: usize = 3;
/// The part of an output that is searched for responses.
const BEGINNING: u64 = 1 << 20;
/// Maximum number of outputs that are tried.
const TRIED: usize = 20;

const UNKNOWN: &str = "the response format is unknown; add a mapping for scores, boxes and classes";

/// The predictions of example responses.
#[derive(Debug, Clone, PartialEq)]
pub struct ExampleReadings {
    /// The response format, or why it is unknown.
    pub shape: Result<OutputShape, String>,
    /// Assumptions about values that the responses do not contain.
    pub assumed: Vec<String>,
    /// The prediction of each example, or why it cannot be read.
    pub readings: Vec<Result<Prediction, String>>,
}

impl FoundOutputs {
    /// The first responses, at most three, with the sizes of their images. Fewer if few can be read.
    pub fn examples(&self, source: &Arc<dyn Source>, control: &TaskControl) -> ResponseExamples {
        let source = for_task(source, control);
        let mut responses = Vec::new();
        for work in self.joined.works.iter().take(TRIED) {
            if responses.len() >= EXAMPLES || control.is_cancelled() {
                break;
            }
            // An unreadable response is reported for its image when the outputs are opened.
            let first = self.first_responses(work, control).unwrap_or_default();
            let examples = first.into_iter().map(|(place, response)| {
                let sample = &self.samples[place];
                example_of(&*source, sample, response)
            });
            responses.extend(examples.take(EXAMPLES - responses.len()));
        }
        ResponseExamples::new(responses)
    }

    /// The first responses, with the indices of their images.
    fn first_responses(&self, work: &Work, control: &TaskControl) -> Result<Vec<(usize, Vec<u8>)>, String> {
        let ResponseFile { folder, file, .. } = self.responses(work, control);
        if let Work::One { place, .. } = work {
            return Ok(vec![(*place, folder.read(file, control)?)]);
        }
        let end = file.size_bytes.min(BEGINNING);
        let beginning = folder.read_range(file, 0..end, control)?;
        let is_whole = end == file.size_bytes;
        let mut lines: Vec<&[u8]> = beginning.split(|byte| *byte == b'\n').collect();
        if !is_whole {
            lines.pop();
        }
        lines.retain(|line| !line.iter().all(u8::is_ascii_whitespace));
        let of_line = |(number, line): (u64, &[u8])| {
            let place = match work {
                Work::Records { places, .. } => *places.get(&number)?,
                _ => self.place_named(line)?,
            };
            Some((place, line.to_owned()))
        };
        Ok((0..).zip(lines).filter_map(of_line).take(EXAMPLES).collect())
    }

    /// The image that a line names.
    fn place_named(&self, line: &[u8]) -> Option<usize> {
        let json = Json::parse(line).ok()?;
        let names = IMAGE_FIELDS.iter();
        let mut names = names.filter_map(|field| json.get(field).and_then(Json::text));
        names.find_map(|name| {
            let mut samples = self.samples.iter();
            samples.position(|sample| sample.uri.as_str() == name || sample.name == name)
        })
    }
}

fn example_of(source: &dyn Source, sample: &Sample, response: Vec<u8>) -> ExampleResponse {
    ExampleResponse {
        uri: sample.uri.clone(),
        image: sample.name.clone(),
        image_size: image_size(source, &sample.uri).map_err(|error| error.to_string()),
        response: response.into(),
    }
}

impl ResponseExamples {
    /// Detects the format of example responses and reads them.
    pub fn new(responses: Vec<ExampleResponse>) -> Self {
        let Some(first) = responses.first() else {
            return Self::default();
        };
        let (shown, places) = match Json::parse(&first.response) {
            Ok(json) => (shown(&json), places_of(&json)),
            Err(_) => (shown_raw(&first.response), Vec::new()),
        };
        Self { responses, shown, places }
    }
}

impl ExampleReadings {
    /// Reads them with a mapping, or with the detected format. `labels` name the classes; with `None`, the responses
    /// do.
    pub fn new(examples: &[ExampleResponse], mapping: Option<&OutputMapping>, labels: Option<LabelSet>) -> Self {
        let recognized = match mapping {
            Some(mapping) => Ok(mapping.clone().into()),
            None => recognize(examples),
        };
        let Recognition { shape, assumed } = match recognized {
            Ok(recognized) => recognized,
            Err(reason) => {
                return Self { shape: Err(reason), assumed: Vec::new(), readings: Vec::new() };
            }
        };
        let labels = labels.map_or_else(|| LabelSource::from_shape(&shape), LabelSource::Known);
        let reader = OutputReader::new(shape.clone(), labels, KeepRule::default());
        let readings = examples.iter().map(|example| {
            let size = match &example.image_size {
                Ok(size) => Some(*size),
                Err(_) if shape.contains_size() => None,
                Err(reason) => return Err(reason.clone()),
            };
            reader.read(&example.response, size)
        });
        Self { readings: readings.collect(), assumed, shape: Ok(shape) }
    }
}

/// Detects the format from the first response that has a known one.
fn recognize(examples: &[ExampleResponse]) -> Result<Recognition, String> {
    let mut reason = None;
    for example in examples {
        match Recognition::from_output(&example.response) {
            Ok(recognized) => return Ok(recognized),
            Err(Unrecognized::Broken(why)) => {
                reason.get_or_insert(why);
            }
            // The response itself is shown next to it.
            Err(Unrecognized::Unknown(_)) => return Err(UNKNOWN.to_owned()),
        }
    }
    Err(reason.unwrap_or_else(|| "there are no responses to show".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{PredictionContent, SampleUri};
    use crate::sagemaker::spec::output_mapping::MappingDraft;

    fn example(response: &str) -> ExampleResponse {
        ExampleResponse {
            uri: SampleUri::new("/photos/a.png"),
            image: "a.png".to_owned(),
            image_size: Ok([100, 50]),
            response: response.as_bytes().into(),
        }
    }

    #[test]
    fn suggested_mapping_reads_its_response() {
        for (response, found) in [
            (r#"{"verdict": {"certainty": [0.25, 0.75]}}"#, "class 1 at 0.75"),
            (
                r#"{"items": [{"bounds": [0.1, 0.2, 0.3, 0.4], "label": 7, "confidence": 0.9}]}"#,
                "class 7 at 10,10,30,20",
            ),
        ] {
            let examples = ResponseExamples::new(vec![example(response)]);
            let mapping = MappingDraft::from_places(&examples.places).mapping().unwrap();
            let readings = ExampleReadings::new(&examples.responses, Some(&mapping), None);
            let read = readings.readings[0].as_ref().unwrap();
            let text = match &read.content {
                PredictionContent::Classes(classes) => {
                    format!("class {} at {}", classes[0].index, classes[0].score)
                }
                PredictionContent::Detections(boxes) => {
                    let edges = boxes[0].bounds;
                    format!("class {} at {},{},{},{}", boxes[0].class_id, edges.x1, edges.y1, edges.x2, edges.y2)
                }
            };
            assert_eq!(text, found);
        }
    }

    #[test]
    fn unknown_and_unreadable_outputs_have_reasons() {
        let unknown = example(r#"{"verdict": {"certainty": [0.25, 0.75]}}"#);
        let readings = ExampleReadings::new(std::slice::from_ref(&unknown), None, None);
        let reason = readings.shape.unwrap_err();
        assert!(reason.contains("format is unknown"), "{reason}");

        let mut draft = MappingDraft::default();
        draft.classes.scores = "/verdict/sureness".to_owned();
        let mapping = draft.mapping().unwrap();
        let readings = ExampleReadings::new(&[unknown], Some(&mapping), None);
        let reason = readings.readings[0].as_ref().unwrap_err();
        assert!(reason.contains("no “sureness”"), "{reason}");

        let broken = ResponseExamples::new(vec![example("<html>")]);
        assert_eq!(broken.shown, "<html>");
        assert!(broken.places.is_empty());
        assert_eq!(ResponseExamples::new(Vec::new()), ResponseExamples::default());
    }
}
