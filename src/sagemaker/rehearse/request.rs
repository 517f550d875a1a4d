//! The requests that Batch Transform creates from a job's input.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use strum::{IntoStaticStr, VariantArray};

use crate::domain::Sample;
use crate::image::source::{Source, SourceError, framed_record};
use crate::sagemaker::spec::transform::{EXAMPLE_CONTENT_TYPE, IMAGE_CONTENT_TYPE, LINES_CONTENT_TYPE};

/// The form of images in a job's input. With `SingleRecord`, each is a separate request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum RequestForm {
    /// One object per image, not split.
    Image,
    /// Split into the records of TFRecord files, without their framing.
    TfRecord,
    /// Split into the lines of files with `{"b64": "…"}`. An element of a document becomes a line.
    Line,
}

impl RequestForm {
    /// The form of the image in its source.
    pub fn from_sample(sample: &Sample) -> Self {
        if sample.uri.is_in_tfrecord() {
            Self::TfRecord
        } else if sample.uri.record().is_some() {
            Self::Line
        } else {
            Self::Image
        }
    }

    pub fn content_type(self) -> &'static str {
        match self {
            Self::Image => IMAGE_CONTENT_TYPE,
            Self::TfRecord => EXAMPLE_CONTENT_TYPE,
            Self::Line => LINES_CONTENT_TYPE,
        }
    }

    /// The body of the request. An image that is not in a record or line is put into one.
    pub fn body(self, source: &dyn Source, sample: &Sample) -> Result<Vec<u8>, SourceError> {
        match self {
            Self::Image => source.read(&sample.uri),
            Self::TfRecord => match source.read_example(&sample.uri)? {
                Some(example) => Ok(example),
                None => Ok(example_around(&source.read(&sample.uri)?)),
            },
            Self::Line => {
                let mut line = match source.read_line(&sample.uri)? {
                    Some(line) => line,
                    None => line_around(&source.read(&sample.uri)?),
                };
                line.push(b'\n');
                Ok(line)
            }
        }
    }
}

impl RequestForm {
    /// A record as in its file, next to others, which `MultiRecord` sends.
    pub fn in_its_file(self, record: &[u8]) -> Vec<u8> {
        match self {
            Self::TfRecord => framed_record(record),
            // A line already has its end.
            Self::Line | Self::Image => record.to_vec(),
        }
    }
}

fn line_around(image: &[u8]) -> Vec<u8> {
    format!("{{\"b64\":\"{}\"}}", STANDARD.encode(image)).into_bytes()
}

/// A serialized `tf.Example` with the feature `image/encoded` (`tensorflow/core/example/{example,feature}.proto`).
fn example_around(image: &[u8]) -> Vec<u8> {
    let bytes_list = field(1, image);
    let feature = field(1, &bytes_list);
    let entry = [field(1, b"image/encoded"), field(2, &feature)].concat();
    field(1, &field(1, &entry))
}

/// A length-delimited field of a message (<https://protobuf.dev/programming-guides/encoding/>).
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    let mut length = content.len();
    while length >= 0x80 {
        bytes.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes.extend(content);
    bytes
}
