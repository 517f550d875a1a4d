//! Checks a job before it costs money. Writes and starts nothing.

mod input;
mod locations;
mod model;
mod requests;

pub(crate) use input::check_prefix;
pub use input::has_input;
pub(crate) use locations::check_regions;
pub(super) use model::is_same_model;
pub(crate) use model::{Place, check_image, check_job_name, check_role};

use model::KnownModel;
use requests::IsSuggested;

use super::JobRecords;
use crate::aws::Aws;
use crate::domain::{S3Access, counted};
use crate::sagemaker::checks::{Checks, KnownPrice, Service};
use crate::sagemaker::error::unless_cancelled;
use crate::sagemaker::spec::transform::{
    ArchiveContent, CheckPoint, CostEstimate, EcrImage, HEADLINE, InputSurvey, InstanceType, JobKind, ModelSource,
    PayloadSuggestion, Preflight, PriceTable, SageMakerAccess, SplitType, TransformPlan, TransformSpec, human_usd,
};
use crate::tasks::{Cancelled, TaskControl};

/// Checks a plan. Its speed is that of the plan, or of an earlier job in `records`. Unset payload and concurrency are
/// filled in with the suggestion ([`PayloadSuggestion::fill_in`]); only this function does so. What cannot be checked
/// is a warning, never an error.
///
/// # Errors
/// The task was canceled.
pub fn preflight(
    aws: &Aws,
    plan: &mut TransformPlan,
    (prices, records): (&PriceTable, &JobRecords),
    control: &TaskControl,
) -> Result<Preflight, Cancelled> {
    let speed = KnownSpeed::find(plan, records);
    let (preflight, filled_in) = run_checks(aws, plan, (prices, speed.as_ref()), control)?;
    plan.spec = filled_in;
    Ok(preflight)
}

/// The checks, and the job with filled-in values.
fn run_checks(
    aws: &Aws,
    plan: &TransformPlan,
    (prices, speed): (&PriceTable, Option<&KnownSpeed>),
    control: &TaskControl,
) -> Result<(Preflight, TransformSpec), Cancelled> {
    let sagemaker = aws.sagemaker(&plan.sagemaker);
    let s3 = aws.s3(&plan.s3);
    let region = unless_cancelled(sagemaker.region(control))?;
    let mut checks = Checks::default();
    control.set_step("checking the model");
    let model = match &region {
        Ok(region) => {
            let name = (JobKind::Transform, plan.spec.job_name.as_str());
            model::check_job_name(&mut checks, &sagemaker, name, region, control)?;
            let of_model = ModelPlan {
                name: &plan.spec.model_name,
                source: &plan.model,
                instance_type: &plan.spec.resources.instance_type,
            };
            model::check_model(&mut checks, &sagemaker, &s3, of_model, region, control)?
        }
        Err(why) => {
            checks.failed(CheckPoint::JobName, Service::SageMaker, why, "");
            KnownModel::default()
        }
    };
    let survey = input::check_input(&mut checks, &s3, plan, control)?;
    locations::check_output(&mut checks, &s3, plan, control)?;
    if let Ok(region) = &region {
        locations::check_regions(&mut checks, &s3, &locations::addresses(plan), region, control)?;
    }
    let suggestion = suggestion(plan, survey.as_ref());
    let mut filled_in = plan.spec.clone();
    if let Some(suggestion) = suggestion {
        suggestion.fill_in(&mut filled_in);
    }
    let was_chosen =
        if filled_in.max_concurrent == plan.spec.max_concurrent { IsSuggested::No } else { IsSuggested::Yes };
    let known = requests::Known { survey: survey.as_ref(), archive: model.content };
    requests::check_requests(&mut checks, &filled_in, known, suggestion, was_chosen);
    checks.limits(filled_in.problems(), &plan.model);
    checks.instance(plan, survey.as_ref());
    checks.batching(&plan.spec, model.image.as_deref());
    let region = region.ok();
    let known = KnownPrice::find(plan.usd_per_hour, prices, &plan.spec.resources.instance_type, region.as_deref());
    let records = records_of(plan, survey.as_ref());
    let estimate = checks.cost(&plan.spec, records, (known.as_ref(), speed));
    checks.add_unchecked();
    let preflight = Preflight { survey, estimate, ..checks.into_preflight() };
    Ok((preflight, filled_in))
}

/// An existing or new model, and its instances.
#[derive(Debug, Clone, Copy)]
pub struct ModelPlan<'p> {
    pub name: &'p str,
    pub source: &'p ModelSource,
    pub instance_type: &'p str,
}

/// Checks only the model: role, container, archive.
///
/// # Errors
/// The task was canceled.
pub fn check_only_model(
    aws: &Aws,
    (sagemaker, s3): (&SageMakerAccess, &S3Access),
    plan: ModelPlan<'_>,
    control: &TaskControl,
) -> Result<Checks, Cancelled> {
    let sagemaker = aws.sagemaker(sagemaker);
    let mut checks = Checks::default();
    match unless_cancelled(sagemaker.region(control))? {
        Ok(region) => {
            model::check_model(&mut checks, &sagemaker, &aws.s3(s3), plan, &region, control)?;
        }
        Err(why) => checks.failed(CheckPoint::Model, Service::SageMaker, &why, ""),
    }
    Ok(checks)
}

struct KnownSpeed {
    images_per_s: f64,
    /// The earlier job with this speed; `None` if the user gave it.
    of_job: Option<String>,
}

impl KnownSpeed {
    fn find(plan: &TransformPlan, records: &JobRecords) -> Option<Self> {
        let given = plan.images_per_s.map(|images_per_s| Self { images_per_s, of_job: None });
        given.or_else(|| {
            let record = records.with_speed_of(plan)?;
            Some(Self { images_per_s: record.images_per_s?, of_job: Some(record.spec.job_name) })
        })
    }
}

/// The content of one request.
#[derive(Debug, Clone, Copy)]
enum Records {
    /// Each object is one record.
    Objects(u64),
    /// Objects are split, and the number of images in them is known.
    Counted(u64),
    /// Objects are split into an unknown number of records.
    Uncounted,
}

/// `None` if the input could not be listed.
fn records_of(plan: &TransformPlan, survey: Option<&InputSurvey>) -> Option<Records> {
    let objects = survey?.objects;
    Some(match (plan.spec.input.split, plan.inside) {
        (SplitType::None, _) => Records::Objects(objects),
        (_, Some(inside)) => Records::Counted(inside.all),
        (_, None) => Records::Uncounted,
    })
}

impl Records {
    fn count(self) -> Option<u64> {
        match self {
            Self::Objects(count) | Self::Counted(count) => Some(count),
            Self::Uncounted => None,
        }
    }

    /// “1 object”, “6 images”.
    fn words(self) -> Option<String> {
        match self {
            Self::Objects(count) => Some(counted(count, "object", "objects")),
            Self::Counted(count) => Some(counted(count, "image", "images")),
            Self::Uncounted => None,
        }
    }

    /// Why time and cost cannot be estimated, and what to do.
    fn why_no_estimate(self) -> (&'static str, &'static str) {
        match self {
            Self::Uncounted => (
                "the number of records is unknown, so time and cost cannot be estimated",
                "Start a small job first to measure the cost",
            ),
            Self::Objects(_) | Self::Counted(_) => (
                "the speed of the model is unknown",
                "Rehearse a few images or start a small job, and enter the rate (on the command line: --images-per-s)",
            ),
        }
    }
}

/// “6 images at 2.0 per second per instance, as in job cats: about 3 seconds”
fn time_text(records: Records, estimate: &CostEstimate, speed: Option<&KnownSpeed>) -> String {
    let of_job = speed.and_then(|speed| speed.of_job.as_ref());
    let of_job = of_job.map_or_else(String::new, |job| format!(", as in job {job}"));
    format!(
        "{} at {} per second per instance{of_job}: about {}",
        records.words().unwrap_or_default(),
        human_rate(estimate.images_per_s),
        human_duration(estimate.seconds)
    )
}

/// The suggestion for the largest object. The sizes of records inside a file are unknown.
fn suggestion(plan: &TransformPlan, survey: Option<&InputSurvey>) -> Option<PayloadSuggestion> {
    let vcpus = InstanceType::parse(&plan.spec.resources.instance_type).and_then(|instance| instance.vcpus());
    let largest = match plan.spec.input.split {
        SplitType::None => survey?.largest.as_ref()?.1,
        SplitType::Line | SplitType::RecordIO | SplitType::TFRecord => {
            u64::from(plan.spec.max_payload_mb.unwrap_or(crate::sagemaker::spec::transform::DEFAULT_PAYLOAD_MB))
                * 1_000_000
        }
    };
    PayloadSuggestion::new(largest, vcpus)
}

impl Checks {
    /// A missing check would look like a passed one.
    fn add_unchecked(&mut self) {
        let advice = if self.outages.is_empty() { "Fix the other problems first" } else { "" };
        for point in CheckPoint::ALWAYS {
            if self.found.iter().all(|check| check.point != point) {
                self.warning(point, "Not checked: an earlier check failed", advice);
            }
        }
    }

    /// Warns of TensorFlow Serving's request batching, which other containers ignore.
    fn batching(&mut self, spec: &TransformSpec, image: Option<&str>) {
        let is_of_serving = |name: &String| name.starts_with("SAGEMAKER_TFS_");
        if !spec.environment.keys().any(is_of_serving) {
            return;
        }
        if image.and_then(EcrImage::parse).and_then(|image| image.serves(ArchiveContent::SavedModel)) == Some(false) {
            self.warning(
                CheckPoint::Image,
                "The job sets TensorFlow Serving batching (SAGEMAKER_TFS_…), but this is a different container",
                "Remove this setting",
            );
        }
    }

    fn instance(&mut self, plan: &TransformPlan, survey: Option<&InputSurvey>) {
        let name = &plan.spec.resources.instance_type;
        let Some(instance) = self.known_instance(name) else {
            return;
        };
        let gpu = if instance.has_gpu() { ", with a GPU" } else { "" };
        let size = instance.vcpus().map_or_else(String::new, |vcpus| format!(": {vcpus} vCPUs{gpu}"));
        match instance.known_sizes() {
            _ if instance.is_known() => {
                let count = plan.spec.resources.instance_count;
                let found = format!("{count} × {name}{size}");
                match survey.map(|survey| survey.objects) {
                    Some(objects @ 1..) if u64::from(count) > objects => self.warning(
                        CheckPoint::Instance,
                        format!(
                            "{found}, for {}. An object is never split, so {} would be billed but idle",
                            counted(objects, "object", "objects"),
                            counted(u64::from(count) - objects, "instance", "instances")
                        ),
                        format!("Set the number of instances to at most {objects}"),
                    ),
                    _ => self.ok(CheckPoint::Instance, found),
                }
            }
            Some(sizes) => self.warning(
                CheckPoint::Instance,
                format!("This version of Spotcheck does not know this size of ml.{}", instance.family),
                format!("Known sizes: {}; SageMaker checks the type at the start", sizes.replace(' ', ", ")),
            ),
            None => self.warning(
                CheckPoint::Instance,
                format!("This version of Spotcheck does not know {name}"),
                "Check the spelling; SageMaker checks the type at the start",
            ),
        }
    }

    fn cost(
        &mut self,
        spec: &TransformSpec,
        records: Option<Records>,
        (price, speed): (Option<&KnownPrice>, Option<&KnownSpeed>),
    ) -> Option<CostEstimate> {
        let records = records?;
        let usd_per_hour = price.map(|price| price.usd_per_hour);
        let estimate = speed.and_then(|speed| {
            CostEstimate::new(records.count()?, speed.images_per_s, spec.resources.instance_count, usd_per_hour)
        });
        let time = estimate.as_ref().map(|estimate| time_text(records, estimate, speed));
        let (unknown, advice) = records.why_no_estimate();
        let start_up = "the minutes for loading the container and model are also billed";
        match (price, time, estimate.as_ref().and_then(|estimate| estimate.usd)) {
            (Some(price), Some(time), Some(usd)) => self.ok(
                CheckPoint::Cost,
                format!(
                    "{time}, for about {} ({} per instance-hour, {}); {start_up}. For orientation, {HEADLINE}",
                    human_usd(usd),
                    human_usd(price.usd_per_hour),
                    price.source
                ),
            ),
            (Some(price), ..) => self.warning(
                CheckPoint::Cost,
                format!(
                    "{} per hour for {} × {} ({}), but {unknown}. For orientation, {HEADLINE}",
                    human_usd(price.usd_per_hour * f64::from(spec.resources.instance_count)),
                    spec.resources.instance_count,
                    spec.resources.instance_type,
                    price.source
                ),
                advice,
            ),
            (None, time, _) => self.warning(
                CheckPoint::Cost,
                format!(
                    "The price of {} is unknown{}. For orientation, {HEADLINE}",
                    spec.resources.instance_type,
                    time.map_or_else(String::new, |time| format!("; {time}"))
                ),
                "Enter its price per hour and the source of the price (on the command line: --hourly-price, \
                 --price-source)",
            ),
        }
        estimate
    }
}

/// “0.05”, “12.3”: with meaningful digits only.
fn human_rate(per_s: f64) -> String {
    if per_s < 1.0 { format!("{per_s:.2}") } else { format!("{per_s:.1}") }
}

/// “40 s”, “12 min”, “3.5 h”.
fn human_duration(seconds: f64) -> String {
    if seconds < 90.0 {
        format!("{seconds:.0} s")
    } else if seconds < 90.0 * 60.0 {
        format!("{:.0} min", seconds / 60.0)
    } else {
        format!("{:.1} h", seconds / 3600.0)
    }
}
