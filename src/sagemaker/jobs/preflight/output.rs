//! Checks of a job's output folder.

use super::{Checks, Service, unless_cancelled};
use crate::aws::S3;
use crate::domain::S3Address;
use crate::sagemaker::jobs::JobError;
use crate::sagemaker::spec::transform::{CheckPoint, InputObjects, TransformPlan};
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
    if let InputObjects::Prefix(input) = &spec.input.objects
        && is_under(&folder, input)
    {
        checks.problem(
            CheckPoint::Output,
            format!("The outputs would be inside the input, {input}: the next job would read them as images"),
            "Choose a folder outside the input",
        );
    }
    if let (InputObjects::Prefix(input), Some(capture)) = (&spec.input.objects, &spec.data_capture)
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
    match unless_cancelled(first.map_err(JobError::from))? {
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
