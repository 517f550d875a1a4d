//! The vocabulary of the product: plain data and arithmetic.
//!
//! Knows nothing about files, networks, graphics, ONNX Runtime or threads. All other modules use these types, so a
//! prediction looks the same wherever it was computed.

mod annotations;
mod bytes;
mod cache_usage;
mod change;
mod class_color;
mod device;
mod display_image;
mod geometry;
mod label_map;
mod label_places;
mod label_set;
mod listing;
mod model_card;
mod name_pattern;
mod one_of;
mod prediction;
mod problem;
mod rgb_image;
mod run;
mod s3;
mod saliency;
mod sample;
mod sample_set;
mod score;
mod shared_list;
mod text;
mod truth;
mod utc;
mod verdict;
mod view_settings;
mod visible;

pub use annotations::{
    AnnotatedBox, AnnotatedImage, AnnotatedImageId, AnnotatedLabel, AnnotationProblem, AnnotationProblemKind,
    AnnotationProblems, Annotations, BoxRole, BoxUnit, DatasetSplit, PredictionStatus,
};
pub use bytes::human_bytes;
pub use cache_usage::CacheUsage;
pub use change::{Change, SamplePrediction};
pub use class_color::{TEXT_ON_CLASS_COLOR, class_color};
pub use device::{Device, DeviceChoice, DeviceReport, LatencyMs, RefusedDevice};
pub use display_image::{DisplayImage, PixelSource, TILE_SIDE, Tile, TileKey, TileLayout};
pub use geometry::{AxisTransform, BoundingBox, leaves_image};
pub use label_map::LabelError;
pub use label_places::LabelPlaces;
pub use label_set::LabelSet;
pub use listing::{ListPage, ListQuery, ListingChange, Page};
pub use model_card::{
    Activation, AuxiliaryInput, AuxiliaryValue, Background, BoxFormat, BoxSpace, BoxesBack, CellPoint, CenterCrop,
    ChannelOrder, ClassValues, ClassificationOutput, Columns, DetectionOutput, ElementType, Fill, Grid, GridCoding,
    ImageInput, Interpolation, LabelChoice, Layout, ModelCard, ModelFile, ModelTask, OutputConvention, Position,
    ResizeRule, Rounding, Square,
};
pub use name_pattern::NamePattern;
pub use one_of::one_of;
pub use prediction::{ClassScore, Detection, Prediction, PredictionContent};
pub use problem::{Problem, problem_of};
pub use rgb_image::RgbImage;
pub use run::{InferenceLocation, KeepRule, RunId, RunInfo, RunKey};
pub use s3::{
    AmbientSignIn, AwsProfile, AwsSetup, Credentials, EndpointError, Identity, Location, S3Access, S3Address, S3Layout,
    S3Link, S3LinkError, S3Place, SignInMeans, parse_endpoint, without_password,
};
pub use saliency::{Saliency, SaliencyTarget};
pub use sample::{FileStamp, Sample, SampleId, SampleUri, is_lines_name};
pub use sample_set::SampleSet;
pub use score::decimal;
pub use shared_list::SharedList;
pub use text::{capitalized, counted, grouped, shortened};
pub use truth::{Truth, TruthBox, TruthLabel};
pub use utc::Utc;
pub use verdict::{JudgedSample, Verdict, VerdictTarget};
pub use view_settings::{ViewSettings, not_suppressed};
pub use visible::{visible, visible_lines};
