//! Checks of requests: size, concurrency, content type and splitting.

use super::Checks;
use crate::domain::human_bytes;
use crate::sagemaker::spec::transform::{
    ArchiveContent, AssembleWith, BatchStrategy, Check, CheckPoint, Compression, DEFAULT_PAYLOAD_MB,
    EXAMPLE_CONTENT_TYPE, IMAGE_CONTENT_TYPE, InputSurvey, LINES_CONTENT_TYPE, MAX_PAYLOAD_IN_FLIGHT_MB,
    PayloadSuggestion, SplitType, TransformSpec, needed_payload_mb,
};

/// Whether the preflight suggested concurrency and payload, rather than the user setting them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IsSuggested {
    Yes,
    No,
}

/// What the preflight knows about the inputs and the model.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known<'k> {
    pub survey: Option<&'k InputSurvey>,
    pub archive: Option<ArchiveContent>,
}

/// `spec` as the job would be started.
pub(super) fn check_requests(
    checks: &mut Checks,
    spec: &TransformSpec,
    Known { survey, archive }: Known<'_>,
    suggestion: Option<PayloadSuggestion>,
    was_chosen: IsSuggested,
) {
    check_payload(checks, spec, survey, suggestion);
    check_concurrency(checks, spec, was_chosen);
    check_processing(checks, spec);
    if let Some(content) = survey.and_then(|survey| Content::from_survey(survey, spec)) {
        check_content_type(checks, spec, content);
        check_splitting(checks, spec, content, archive);
        return;
    }
    checks.warning(
        CheckPoint::ContentType,
        format!("The names do not show whether the objects are {}", content_type_text(spec)),
        "Check what the model's handler accepts",
    );
    check_unknown_splitting(checks, spec);
}

fn content_type_text(spec: &TransformSpec) -> &str {
    match spec.input.content_type.as_str() {
        "" => "objects without a content type",
        content_type => content_type,
    }
}

fn check_payload(
    checks: &mut Checks,
    spec: &TransformSpec,
    survey: Option<&InputSurvey>,
    suggestion: Option<PayloadSuggestion>,
) {
    let payload = spec.max_payload_mb.unwrap_or(DEFAULT_PAYLOAD_MB);
    if payload == 0 {
        return checks.warning(
            CheckPoint::Payload,
            "MaxPayloadInMB is 0: requests are chunked, without a length",
            "Few containers accept that; set it to the size of the largest object",
        );
    }
    if spec.input.split != SplitType::None {
        return checks
            .ok(CheckPoint::Payload, format!("Requests of up to {payload} MB; each record must fit into one request"));
    }
    let Some((key, size)) = survey.and_then(|survey| survey.largest.as_ref()) else {
        return;
    };
    let needed = needed_payload_mb(*size);
    let largest = format!("The largest object has {}: {key}", human_bytes(*size));
    if needed > u64::from(MAX_PAYLOAD_IN_FLIGHT_MB) {
        checks.problem(
            CheckPoint::Payload,
            format!("{largest}. A request is at most {MAX_PAYLOAD_IN_FLIGHT_MB} MB"),
            "Remove it, or make it smaller",
        );
    } else if needed > u64::from(payload) {
        checks.problem(
            CheckPoint::Payload,
            format!("{largest}. With MaxPayloadInMB {payload} it would be rejected (413)"),
            suggestion.map_or_else(String::new, |suggestion| {
                format!(
                    "Set MaxPayloadInMB to {} and MaxConcurrentTransforms to at most {}",
                    suggestion.max_payload_mb, suggestion.max_concurrent
                )
            }),
        );
    } else {
        checks.ok(CheckPoint::Payload, format!("{largest}; it fits into requests of up to {payload} MB"));
    }
}

fn check_concurrency(checks: &mut Checks, spec: &TransformSpec, was_chosen: IsSuggested) {
    match (spec.max_concurrent.filter(|count| *count > 0), was_chosen) {
        (Some(count), IsSuggested::No) => {
            checks.ok(CheckPoint::Concurrency, format!("{count} parallel requests per instance"));
        }
        (Some(count), IsSuggested::Yes) => checks.ok(
            CheckPoint::Concurrency,
            format!(
                "{count} parallel requests per instance, one per vCPU; at {} MB each they stay within the limit of \
                 {MAX_PAYLOAD_IN_FLIGHT_MB} MB",
                spec.max_payload_mb.unwrap_or(DEFAULT_PAYLOAD_MB)
            ),
        ),
        (None, _) => checks.warning(
            CheckPoint::Concurrency,
            "MaxConcurrentTransforms is not set; SageMaker asks the container, and sends one request at a time if \
             the container does not report a number. Ray Serve does not",
            "Set it to the number of vCPUs of the instance",
        ),
    }
}

/// The content of all objects, judging by their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    Images,
    Records,
    Texts,
}

impl Content {
    /// The kind stated in the job if there are several, otherwise the existing one. `None` if no name reveals it.
    pub(super) fn from_survey(survey: &InputSurvey, spec: &TransformSpec) -> Option<Self> {
        let kinds = [(survey.images, Self::Images), (survey.records, Self::Records), (survey.texts, Self::Texts)];
        let there = kinds.into_iter().filter(|(count, _)| *count > 0);
        let meant = there.clone().find(|(_, kind)| kind.fits(&spec.input.content_type));
        let most = || there.max_by_key(|(count, _)| *count);
        meant.or_else(most).map(|(_, kind)| kind)
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Images => "images",
            Self::Records => "TFRecord files",
            Self::Texts => "text files",
        }
    }

    fn default_content_type(self) -> &'static str {
        match self {
            Self::Images => IMAGE_CONTENT_TYPE,
            Self::Records => EXAMPLE_CONTENT_TYPE,
            Self::Texts => LINES_CONTENT_TYPE,
        }
    }

    fn fits(self, content_type: &str) -> bool {
        let is_text = ["json", "csv", "text/"].iter().any(|part| content_type.contains(part));
        match self {
            Self::Images => content_type == IMAGE_CONTENT_TYPE || content_type.starts_with("image/"),
            Self::Records => content_type == EXAMPLE_CONTENT_TYPE,
            Self::Texts => is_text,
        }
    }
}

/// SageMaker filters only JSON, JSON Lines and CSV, and our handler responds only in JSON.
fn check_processing(checks: &mut Checks, spec: &TransformSpec) {
    let processing = &spec.data_processing;
    let mut unfit = Vec::new();
    if processing.joins_input() {
        unfit.push("JoinSource Input");
    }
    // “$” selects everything, which is SageMaker's default.
    if processing.input_filter.as_deref().is_some_and(|filter| filter != "$") {
        unfit.push("InputFilter");
    }
    let is_text = Content::Texts.fits(&spec.input.content_type);
    if !unfit.is_empty() && !is_text {
        checks.problem(
            CheckPoint::ContentType,
            format!(
                "{} needs JSON or CSV inputs, but these are sent as {}",
                unfit.join(" and "),
                content_type_text(spec)
            ),
            "Remove it: Spotcheck joins outputs to inputs by name",
        );
    }
    if let Some(accept) = spec.output.accept.as_deref()
        && !accept.contains("json")
    {
        checks.warning(
            CheckPoint::ContentType,
            format!("Accept is {accept}, but the handler in Spotcheck's archives responds with JSON"),
            "Set Accept to application/json, unless this is a different model",
        );
    }
}

fn check_content_type(checks: &mut Checks, spec: &TransformSpec, content: Content) {
    let content_type = spec.input.content_type.as_str();
    if content.fits(content_type) {
        let is_told = |check: &Check| check.point == CheckPoint::ContentType;
        if !checks.found.iter().any(is_told) {
            checks.ok(CheckPoint::ContentType, format!("{content_type} for {}", content.words()));
        }
    } else {
        checks.warning(
            CheckPoint::ContentType,
            format!("{} are sent as {}", content.words(), content_type_text(spec)),
            format!(
                "The handler in Spotcheck's archives accepts {}; others may differ",
                content.default_content_type()
            ),
        );
    }
}

fn check_splitting(checks: &mut Checks, spec: &TransformSpec, content: Content, archive: Option<ArchiveContent>) {
    let before = checks.found.len();
    let (split, strategy) = (spec.input.split, spec.batch_strategy);
    match content {
        Content::Images => check_image_splitting(checks, spec),
        Content::Records => check_records(checks, spec, archive),
        Content::Texts => check_text_splitting(checks, spec),
    }
    if split == SplitType::None && strategy == BatchStrategy::MultiRecord {
        checks.warning(
            CheckPoint::Splitting,
            "BatchStrategy MultiRecord joins records, but SplitType None creates no records",
            "Set BatchStrategy to SingleRecord",
        );
    }
    if checks.found.len() == before {
        checks.ok(
            CheckPoint::Splitting,
            format!(
                "SplitType {split:?}, BatchStrategy {strategy:?}, AssembleWith {:?} for {}",
                spec.output.assemble,
                content.words()
            ),
        );
    }
}

fn check_image_splitting(checks: &mut Checks, spec: &TransformSpec) {
    let split = spec.input.split;
    if split != SplitType::None {
        checks.problem(
            CheckPoint::Splitting,
            format!("SplitType {split:?} would cut images into pieces"),
            "Set SplitType to None: one image per request",
        );
    }
    if spec.output.assemble == AssembleWith::Line {
        checks.warning(
            CheckPoint::Splitting,
            "AssembleWith Line joins responses by lines, but each image has only one",
            "Set AssembleWith to None",
        );
    }
    if spec.input.compression != Compression::None {
        checks.problem(
            CheckPoint::Splitting,
            "CompressionType Gzip unpacks each object, but images are not gzip files",
            "Set CompressionType to None",
        );
    }
}

fn check_text_splitting(checks: &mut Checks, spec: &TransformSpec) {
    let split = spec.input.split;
    if matches!(split, SplitType::RecordIO | SplitType::TFRecord) {
        checks.problem(
            CheckPoint::Splitting,
            format!("SplitType {split:?} finds no records in a text file"),
            "Set SplitType to Line if each line is a record, otherwise to None",
        );
    } else if split != SplitType::Line {
        checks.warning(
            CheckPoint::Splitting,
            format!("SplitType {split:?} sends a text file as a whole"),
            "Set SplitType to Line if each line is a record",
        );
    } else if spec.output.assemble != AssembleWith::Line {
        checks.warning(
            CheckPoint::Splitting,
            "AssembleWith None joins the responses of all lines without a separator",
            "Set AssembleWith to Line",
        );
    }
}

/// The check for objects whose names do not reveal their content.
fn check_unknown_splitting(checks: &mut Checks, spec: &TransformSpec) {
    match spec.input.split {
        SplitType::None => {}
        SplitType::RecordIO => checks.warning(
            CheckPoint::Splitting,
            "SplitType RecordIO is for MXNet's image files. Spotcheck does not read these, so it cannot show their \
            outputs",
            "Send the images as files, or as TFRecord files with SplitType TFRecord",
        ),
        split @ (SplitType::Line | SplitType::TFRecord) => checks.warning(
            CheckPoint::Splitting,
            format!("The names do not show whether SplitType {split:?} finds records in the objects"),
            "Check the format of the objects",
        ),
    }
}

fn check_records(checks: &mut Checks, spec: &TransformSpec, archive: Option<ArchiveContent>) {
    match (spec.input.split, spec.batch_strategy) {
        (SplitType::TFRecord, BatchStrategy::SingleRecord) => {}
        // The handler in Spotcheck's archives accepts records with their framing, and returns one line each.
        (SplitType::TFRecord, BatchStrategy::MultiRecord) if archive == Some(ArchiveContent::Onnx) => {}
        (SplitType::TFRecord, BatchStrategy::MultiRecord) => checks.warning(
            CheckPoint::Splitting,
            "BatchStrategy MultiRecord sends several framed records in one request; it is unknown whether the model's \
            handler accepts that",
            "Set BatchStrategy to SingleRecord, unless the handler accepts several records and responds with one line \
            each",
        ),
        (SplitType::None, _) => checks.warning(
            CheckPoint::Splitting,
            "SplitType None sends a whole TFRecord file in one request",
            "Set SplitType to TFRecord and BatchStrategy to SingleRecord",
        ),
        (split, _) => checks.problem(
            CheckPoint::Splitting,
            format!("SplitType {split:?} does not split TFRecord files"),
            "Set SplitType to TFRecord",
        ),
    }
    if spec.output.assemble != AssembleWith::Line {
        checks.warning(
            CheckPoint::Splitting,
            "AssembleWith None joins the responses of all records of a file without a separator",
            "Set AssembleWith to Line: one response per line, in the order of the records",
        );
    }
}
