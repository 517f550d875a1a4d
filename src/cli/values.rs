//! Flags of several commands: the parsers of their values, and the AWS account and region.

use std::path::Path;
use std::str::FromStr;

use anyhow::bail;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use strum::VariantArray;

use super::place::S3Args;
use crate::annotations;
use crate::annotations::matching::ClassCorrections;
use crate::domain::{Credentials, LabelSet, S3Access};
use crate::model::catalog::{built_in_labels, labels_from_file};
use crate::sagemaker::spec::endpoint::endpoint_name_problem;
use crate::sagemaker::spec::transform::{SageMakerAccess, name_problem};
use crate::sagemaker::spec::{region_doubt, region_problem};

/// A parser for the words of an enum, which `--help` and errors list; `in progress` becomes `in-progress`.
pub(crate) fn variant<T>() -> impl TypedValueParser<Value = T>
where
    T: VariantArray + Into<&'static str> + Copy + Send + Sync + 'static,
{
    let words = || {
        T::VARIANTS.iter().map(|&variant| {
            let word: &'static str = variant.into();
            word.replace(' ', "-")
        })
    };
    PossibleValuesParser::new(words()).map(move |given| {
        let position = words().position(|word| word == given);
        T::VARIANTS[position.expect("clap accepts these words alone")]
    })
}

/// A job name that SageMaker accepts.
pub(crate) fn parse_job_name(text: &str) -> Result<String, String> {
    match name_problem(text) {
        None => Ok(text.to_owned()),
        Some(problem) => Err(format!("the job name {problem}")),
    }
}

/// A profile name. An empty one comes from an unset variable; it is an error rather than “no profile”.
pub(crate) fn parse_profile(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("the profile name is empty; omit --profile for the default credentials".to_owned());
    }
    Ok(text.to_owned())
}

pub(crate) fn parse_pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(key, _)| !key.is_empty());
    let (key, value) = pair.ok_or("expected KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

pub(crate) fn parse_positive(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok();
    let number = number.filter(|number| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "expected a positive number".to_owned())
}

/// A 64-bit score for comparison with those in files, or a 32-bit one for comparison with those of models.
pub(crate) fn parse_score<S: FromStr + PartialOrd + From<u8>>(text: &str) -> Result<S, String> {
    let score = text.parse().ok().filter(|score| (S::from(0)..=S::from(1)).contains(score));
    score.ok_or_else(|| "expected a score from 0 to 1".to_owned())
}

/// The value of a non-maximum suppression flag.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct NmsIou(pub(crate) Option<f32>);

pub(crate) fn parse_nms_iou(text: &str) -> Result<NmsIou, String> {
    if text == "off" {
        return Ok(NmsIou(None));
    }
    let iou = text.parse().ok().filter(|iou| (0.0..=1.0).contains(iou));
    iou.map(|iou| NmsIou(Some(iou))).ok_or_else(|| "expected an IoU from 0 to 1, or “off”".to_owned())
}

pub(crate) fn parse_endpoint_name(text: &str) -> Result<String, String> {
    match endpoint_name_problem(text) {
        Some(problem) => Err(format!("the name {problem}")),
        None => Ok(text.to_owned()),
    }
}

/// A SageMaker region, which exists only in AWS.
pub(crate) fn parse_region(text: &str) -> Result<String, String> {
    match region_problem(text) {
        Some(problem) => Err(problem),
        None => Ok(text.to_owned()),
    }
}

/// The region of a bucket. Servers other than AWS can use any host name characters.
pub(crate) fn parse_bucket_region(text: &str) -> Result<String, String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if (1..=63).contains(&text.len()) && text.bytes().all(fits) {
        return Ok(text.to_owned());
    }
    Err("a region has 1 to 63 letters, digits and hyphens, such as eu-west-1".to_owned())
}

pub(crate) fn read_class_map(path: &Path) -> anyhow::Result<ClassCorrections> {
    annotations::read_class_map(path).map_err(anyhow::Error::msg)
}

/// The class names of a flag: a built-in set, or a file.
pub(crate) fn find_labels(wanted: &str) -> anyhow::Result<LabelSet> {
    match built_in_labels(wanted) {
        Some(labels) => Ok(labels),
        None if !Path::new(wanted).exists() => {
            bail!("“{wanted}” is not imagenet, coco-80, coco-91, cifar-10 or an existing label file")
        }
        None => Ok(labels_from_file(Path::new(wanted))?),
    }
}

/// The AWS account and region, with the defaults of the AWS CLI.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "AWS account")]
pub(crate) struct AccountArgs {
    /// AWS profile; overrides the environment
    #[arg(long, value_name = "NAME", value_parser = parse_profile)]
    profile: Option<String>,
    /// AWS region of SageMaker [default: from your AWS configuration]
    #[arg(long, value_name = "REGION", value_parser = parse_region)]
    region: Option<String>,
}

/// An unknown region is only a warning: AWS adds regions.
pub(crate) fn warn_about_region(region: Option<&str>) {
    if let Some(doubt) = region.and_then(region_doubt) {
        eprintln!("warning: {doubt}");
    }
}

/// Flags for an AWS account, with fallbacks.
pub(crate) trait Account {
    fn is_given(&self) -> bool;

    /// The account from the flags, with the defaults of the AWS CLI.
    fn sagemaker(&self) -> SageMakerAccess;

    /// `access`, overridden by the flags.
    fn over(&self, access: S3Access) -> S3Access;
}

impl Account for AccountArgs {
    fn is_given(&self) -> bool {
        self.profile.is_some() || self.region.is_some()
    }

    fn sagemaker(&self) -> SageMakerAccess {
        warn_about_region(self.region.as_deref());
        SageMakerAccess {
            credentials: match &self.profile {
                Some(name) => Credentials::Profile(name.clone()),
                None => Credentials::Ambient,
            },
            region: self.region.clone(),
        }
    }

    /// A bucket's region is detected.
    fn over(&self, access: S3Access) -> S3Access {
        match &self.profile {
            Some(name) => S3Access { credentials: Credentials::Profile(name.clone()), ..access },
            None => access,
        }
    }
}

impl Account for S3Args {
    fn is_given(&self) -> bool {
        S3Args::is_given(self)
    }

    fn sagemaker(&self) -> SageMakerAccess {
        SageMakerAccess::from(&self.access())
    }

    fn over(&self, access: S3Access) -> S3Access {
        S3Args::over(self, access)
    }
}
