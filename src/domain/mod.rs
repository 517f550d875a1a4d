//! The vocabulary of the product: plain data and arithmetic.
//!
//! Knows nothing about files, networks, graphics, ONNX Runtime or threads. All other modules use these types, so a
//! prediction looks the same wherever it was computed.

mod annotations;
mod aws_region;
mod bytes;
mod cache_usage;
mod change;
mod class_color;
mod device;
mod display_image;
mod endpoint;
mod export_options;
mod geometry;
mod label_map;
mod label_places;
mod label_set;
mod listing;
mod log_events;
mod model_card;
mod name_pattern;
mod one_of;
mod output_mapping;
mod prediction;
mod problem;
mod remote_model;
mod rgb_image;
mod run;
mod s3;
mod saliency;
mod sample;
mod sample_set;
mod score;
mod shared_list;
mod text;
mod transform;
mod truth;
mod upload;
mod utc;
mod verdict;
mod view_settings;
mod visible;

pub use annotations::{
    AnnotatedBox, AnnotatedImage, AnnotatedImageId, AnnotatedLabel, AnnotationProblem, AnnotationProblemKind,
    AnnotationProblems, Annotations, BoxRole, BoxUnit, DatasetSplit, PredictionStatus,
};
pub use aws_region::{AWS_REGIONS, region_doubt, region_problem};
pub use bytes::human_bytes;
pub use cache_usage::CacheUsage;
pub use change::{Change, SamplePrediction};
pub use class_color::{TEXT_ON_CLASS_COLOR, class_color};
pub use device::{Device, DeviceChoice, DeviceReport, LatencyMs, RefusedDevice};
pub use display_image::{DisplayImage, PixelSource, TILE_SIDE, Tile, TileKey, TileLayout};
pub use endpoint::{
    Endpoint, EndpointConfig, EndpointPage, EndpointPlan, EndpointQuery, EndpointRecord, EndpointStatus,
    EndpointSummary, EndpointVariant, GPU_AMIS, UploadedArchive, default_ami, endpoint_name_problem,
};
pub use export_options::{
    AnnotatedKind, BoxChoice, ClassChoice, ComparisonFormat, EvaluationFormat, ExportFormat, ExportOptions,
    VerdictChoice,
};
pub use geometry::{AxisTransform, BoundingBox, leaves_image};
pub use label_map::LabelError;
pub use label_places::LabelPlaces;
pub use label_set::LabelSet;
pub use listing::{ListPage, ListQuery, ListingChange, Page};
pub use log_events::{LogEvent, LogFrom, LogPage, LogStream};
pub use model_card::{
    Activation, AuxiliaryInput, AuxiliaryValue, Background, BoxFormat, BoxSpace, BoxesBack, CellPoint, CenterCrop,
    ChannelOrder, ClassValues, ClassificationOutput, Columns, DetectionOutput, ElementType, Fill, Grid, GridCoding,
    ImageInput, Interpolation, LabelChoice, Layout, ModelCard, ModelFile, ModelTask, OutputConvention, Position,
    ResizeRule, Rounding, Square,
};
pub use name_pattern::NamePattern;
pub use one_of::one_of;
pub use output_mapping::{
    BoxesDraft, ClassesDraft, ExampleResponse, JsonPlace, JsonPointer, JsonPointerError, JsonStep, MappedBoxFormat,
    MappedBoxSpace, MappedBoxes, MappedClasses, MappedContent, MappingDraft, MappingFault, MappingField, OutputMapping,
    PlaceContent, ReadingRequest, ResponseExamples, ScoreValues, WHOLE_OUTPUT,
};
pub use prediction::{ClassScore, Detection, Prediction, PredictionContent};
pub use problem::{Problem, problem_of};
pub use remote_model::{RemoteAddress, RemoteModel, RequestForm};
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
pub use transform::{
    ArchiveContent, AssembleWith, BatchStrategy, Check, CheckGrade, CheckPoint, Compression, CostEstimate,
    DEFAULT_INSTANCE, DEFAULT_PAYLOAD_MB, DataCapture, DataProcessing, EXAMPLE_CONTENT_TYPE, EcrImage, Experiment,
    FailedObject, FieldProblem, HEADLINE, Headline, IMAGE_CONTENT_TYPE, ImagesInside, InputObjects, InputSurvey,
    InstanceType, JobOutcome, JobPage, JobPhase, JobProgress, JobQuery, JobRecord, JobRetry, KeySample,
    LINES_CONTENT_TYPE, Leftover, LogLine, MAX_PAYLOAD_IN_FLIGHT_MB, ManifestPlan, ModelClient, ModelSource, ModelSpec,
    PayloadSuggestion, Preflight, Price, PriceChange, PriceTable, RetryChoice, SageMakerAccess, SplitType, TfsBatching,
    TransformInput, TransformJob, TransformOutput, TransformPlan, TransformSpec, TransformStatus, TransformSummary,
    Unexplained, archive_address, cost_usd, dated_name, default_image, human_usd, image_problem, in_flight_problem,
    known_images, known_instance_types, manifest_address, name_problem, needed_payload_mb, output_folder,
    predicted_by_retry, role_problem, support_folder,
};
pub use truth::{Truth, TruthBox, TruthLabel};
pub use upload::{FileAmount, PlannedFile, PlannedState, SkippedFiles, UploadPlan, UploadReport, UploadStop};
pub use utc::Utc;
pub use verdict::{JudgedSample, Verdict, VerdictTarget};
pub use view_settings::{ViewSettings, not_suppressed};
pub use visible::{visible, visible_lines};
