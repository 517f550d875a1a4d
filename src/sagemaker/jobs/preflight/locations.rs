//! Checks of a job's locations: its output folder, and that all buckets are in the job's region, because SageMaker
//! accepts no others.

use super::{Checks, Service};
use crate::aws::{AwsErrorKind, S3};
use crate::domain::S3Address;
use crate::sagemaker::error::unless_cancelled;
use crate::sagemaker::spec::transform::{CheckPoint, InputObjects, ModelSource, TransformPlan};
use crate::tasks::{Cancelled, TaskControl};

pub(super) fn check_output(
    checks: &mut Checks,
    s3: &S3,
    plan: &TransformPlan,
    control: &TaskControl,
) -> Result<(), Cancelled> {
    let spec = &plan.spec;
    let folder = spec.output.folder.as_folder();
    let before = checks.found.len();
    if let InputObjects::Prefix(input) = &spec.input.data_source.objects
        && is_under(&folder, input)
    {
        checks.problem(
            CheckPoint::Output,
            format!("The outputs would be inside the input, {input}: the next job would read them as images"),
            "Choose a folder outside the input",
        );
    }
    if let (InputObjects::Prefix(input), Some(capture)) = (&spec.input.data_source.objects, &spec.data_capture)
        && is_under(&capture.folder.as_folder(), input)
    {
        checks.problem(
            CheckPoint::Output,
            format!("The captured data would be inside the input, {input}: jobs would read it as images"),
            "Choose a folder for captured data outside the input",
        );
    }
    if folder.last_part() != spec.job_name {
        checks.warning(
            CheckPoint::Output,
            format!("{folder} does not contain the job name, so other jobs may also write there"),
            format!("Write {}{}/", folder, spec.job_name),
        );
    }
    let first = s3.first_object(&folder, Some(control));
    match unless_cancelled(first)? {
        Ok(None) => {}
        Ok(Some(object)) => checks.problem(
            CheckPoint::Output,
            format!("{folder} is not empty: {} would mix with the outputs of this job", object.key),
            "Choose an empty folder",
        ),
        Err(why) => {
            checks.failed(CheckPoint::Output, Service::S3, &why, "");
            return Ok(());
        }
    }
    if checks.found.len() == before {
        checks.ok(CheckPoint::Output, format!("{folder} is empty and outside the input"));
    }
    Ok(())
}

/// Whether a job with this input would read the files in `folder`: keys match by prefix.
fn is_under(folder: &S3Address, input: &S3Address) -> bool {
    folder.bucket == input.bucket && folder.prefix.starts_with(&input.prefix)
}

/// A bucket, and how the job uses it.
struct BucketUse<'p> {
    bucket: &'p str,
    purposes: Vec<&'static str>,
}

/// Checks the buckets of the used addresses, each with its purpose.
pub(crate) fn check_regions(
    checks: &mut Checks,
    s3: &S3,
    addresses: &[(&S3Address, &'static str)],
    region: &str,
    control: &TaskControl,
) -> Result<(), Cancelled> {
    if checks.outages.contains(&Service::S3) {
        return Ok(());
    }
    control.set_step("checking the regions of the buckets");
    let before = checks.found.len();
    let mut known = Vec::new();
    let mut silent = Vec::new();
    for used in buckets(addresses) {
        let asked = s3.bucket_region(used.bucket, Some(control));
        // A missing or forbidden bucket is reported by its own check.
        let is_told = asked
            .as_ref()
            .is_err_and(|error| matches!(error.kind, AwsErrorKind::NotFound | AwsErrorKind::AccessDenied));
        match unless_cancelled(asked)? {
            Ok(Some(found)) if found == region => known.push(used.bucket),
            Ok(Some(found)) => checks.problem(
                CheckPoint::Region,
                format!(
                    "The job runs in {region}, but bucket {} ({}) is in {found}: SageMaker accepts only buckets of \
                    its own region",
                    used.bucket,
                    used.purposes.join(", ")
                ),
                format!("Start the job in {found}, or choose a bucket in {region}"),
            ),
            Ok(None) => silent.push(used.bucket),
            Err(_) if is_told => silent.push(used.bucket),
            Err(why) => checks.warning(CheckPoint::Region, why.to_string(), ""),
        }
    }
    if checks.found.len() > before {
        return Ok(());
    }
    let finding = match (known.is_empty(), silent.is_empty()) {
        (_, true) => format!("The job runs in {region}, the region of {}", known.join(", ")),
        (true, false) => format!("The job runs in {region}; the region of {} is unknown", silent.join(", ")),
        (false, false) => format!(
            "The job runs in {region}, the region of {}; the region of {} is unknown",
            known.join(", "),
            silent.join(", ")
        ),
    };
    checks.ok(CheckPoint::Region, finding);
    Ok(())
}

/// The addresses that a job uses.
pub(super) fn addresses(plan: &TransformPlan) -> Vec<(&S3Address, &'static str)> {
    let archive = match &plan.model {
        ModelSource::New { spec, .. } => Some((&spec.archive, "model")),
        ModelSource::Existing => None,
    };
    let images = plan.manifest.as_ref().map(|plan| (&plan.folder, "input"));
    let spec = &plan.spec;
    let rest = [(spec.input.data_source.objects.address(), "input"), (&spec.output.folder, "outputs")];
    archive.into_iter().chain(images).chain(rest).collect()
}

/// Each once, in the order of the job.
fn buckets<'a>(addresses: &[(&'a S3Address, &'static str)]) -> Vec<BucketUse<'a>> {
    let mut used: Vec<BucketUse<'_>> = Vec::new();
    for &(address, purpose) in addresses {
        match used.iter_mut().find(|used| used.bucket == address.bucket) {
            Some(known) if known.purposes.contains(&purpose) => {}
            Some(known) => known.purposes.push(purpose),
            None => used.push(BucketUse { bucket: &address.bucket, purposes: vec![purpose] }),
        }
    }
    used
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_is_below_every_key_prefix() {
        for (folder, input, expected) in [
            ("photos/out/", "photos/", true),
            ("photos-out/", "photos", true),
            ("photos-out/", "photos/", false),
            ("out/", "", true),
            ("out/", "photos/", false),
        ] {
            let (folder, input) = (S3Address::new("b", folder), S3Address::new("b", input));
            assert_eq!(is_under(&folder, &input), expected, "{folder} {input}");
            let other = S3Address::new("other", &folder.prefix);
            assert!(!is_under(&other, &input));
        }
    }
}
