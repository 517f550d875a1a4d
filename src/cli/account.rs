//! The AWS account and region of SageMaker commands.

use clap::Args;

use super::place::S3Args;
use super::values::{parse_profile, parse_region};
use crate::domain::{Credentials, S3Access};
use crate::sagemaker::spec::aws_region::region_doubt;
use crate::sagemaker::spec::transform::SageMakerAccess;

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

impl AccountArgs {
    /// An unknown region is only a warning: AWS adds regions.
    pub(crate) fn warn_if_unknown(&self) {
        warn_about_region(self.region.as_deref());
    }
}

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
