//! The vocabulary of the product: plain data and arithmetic.
//!
//! Knows nothing about files, networks, graphics, ONNX Runtime or threads. All other modules use these types, so a
//! prediction looks the same wherever it was computed.

mod annotations;
mod capture;
mod change;
mod class_color;
mod device;
mod display_image;
mod drawn_box;
mod encoder;
mod geometry;
mod label_map;
mod label_places;
mod label_set;
mod model_card;
mod name_pattern;
mod prediction;
mod run;
mod s3;
mod saliency;
mod sample;
mod sample_set;
mod shared_list;
mod text;
mod view_settings;

pub use annotations::{
    AnnotatedBox, AnnotatedImage, AnnotatedImageId, AnnotatedLabel, AnnotationProblem, AnnotationProblemKind,
    AnnotationProblems, Annotations, BoxRole, BoxUnit, DatasetSplit, PredictionStatus, Truth, TruthBox, TruthLabel,
    Unscored,
};
pub use capture::{Capture, GeoPoint};
pub use change::{
    Change, JudgedSample, Pair, Prefer, SECOND_PASS, SamplePrediction, Verdict, VerdictTarget, covers_image,
};
pub use class_color::{TEXT_ON_CLASS_COLOR, class_color};
pub use device::{Device, DeviceChoice, DeviceReport, LatencyMs, RefusedDevice};
pub use display_image::{DisplayImage, Look, PixelSource, RgbImage, TILE_SIDE, Tile, TileKey, TileLayout};
pub use drawn_box::{DrawnBox, NEW_CLASS};
pub use encoder::{BoxEncoder, BoxFeatures, Encoder, ImagePart};
pub use geometry::{AxisTransform, BoundingBox, ExactBox, leaves_image};
pub use label_map::LabelError;
pub use label_places::LabelPlaces;
pub use label_set::LabelSet;
pub use model_card::fields as card_fields;
pub use model_card::{
    Activation, AuxiliaryInput, AuxiliaryValue, Background, BoxFormat, BoxSpace, BoxesBack, CardTask, CellPoint,
    CenterCrop, ChannelOrder, ClassValues, ClassificationOutput, Columns, DetectionOutput, ElementType,
    EmbeddingOutput, Fill, Grid, GridCoding, ImageInput, Interpolation, LabelChoice, Layout, ModelCard, ModelFile,
    ModelTask, NoPredictions, OutputConvention, Position, ResizeRule, Rounding, SideRounding, Square, Tokens,
};
pub use name_pattern::NamePattern;
pub use prediction::{ClassScore, Detection, Prediction, PredictionContent, RunnerUp, decimal};
pub use run::{InferenceLocation, KeepRule, LABELS_ORIGIN, RunId, RunInfo, RunKey};
pub use s3::{
    AmbientSignIn, AwsProfile, AwsSetup, Credentials, EndpointError, Identity, Location, S3Access, S3Address, S3Layout,
    S3Link, S3LinkError, S3Place, SignInMeans, parse_endpoint, without_password,
};
pub use saliency::{Saliency, SaliencyTarget};
pub use sample::{
    FileStamp, ListPage, ListQuery, ListingChange, Page, Problem, Sample, SampleId, SampleUri, is_document_name,
    is_lines_name, problem_of,
};
pub use sample_set::SampleSet;
pub use shared_list::SharedList;
pub use text::{
    CacheUsage, Utc, capitalized, column_delimiter, counted, grouped, hexadecimal, human_bytes, human_duration,
    min_score_text, one_of, score_text, shortened, visible, visible_lines,
};
pub use view_settings::{ViewChange, ViewSettings, not_suppressed};
