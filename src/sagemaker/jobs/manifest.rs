//! Manifests: the list of objects that a job reads, if it is not everything below a prefix.
//!
//! `[{"prefix": "s3://bucket/folder/"}, "a.jpg", "b/c.jpg"]`, as in SageMaker's `S3DataSource`.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::domain::{S3Address, SampleUri};
use crate::sagemaker::JobError;
use crate::sagemaker::spec::transform::ManifestPlan;

/// An entry of a manifest: the first is the prefix, the others are names.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Entry<'m> {
    Prefix {
        prefix: String,
    },
    #[serde(borrow)]
    Name(std::borrow::Cow<'m, str>),
}

/// The manifest of these images: their names relative to `folder` if all are in it, otherwise to their common folder;
/// each once, in byte order. Outputs are named in the same way, so image names should be relative to that folder. An
/// image in a TFRecord file counts as its file.
///
/// # Errors
/// There are no images, or they are in several buckets.
pub fn manifest_of<'u>(
    uris: impl IntoIterator<Item = &'u SampleUri>,
    folder: &S3Address,
) -> Result<ManifestPlan, JobError> {
    let mut bucket = None;
    let mut keys = BTreeSet::new();
    for uri in uris {
        let place = uri.file().strip_prefix("s3://").and_then(|rest| rest.split_once('/'));
        let Some((of_bucket, key)) = place.filter(|(_, key)| !key.is_empty()) else {
            return Err(JobError::Plan(format!(
                "A job reads images from S3, but this one is not in S3; upload the images first: {uri}"
            )));
        };
        match bucket {
            None => bucket = Some(of_bucket),
            Some(bucket) if bucket != of_bucket => {
                return Err(JobError::Plan(format!(
                    "A job reads images from one bucket, but these are in {bucket} and {of_bucket}; start one job \
                     per bucket"
                )));
            }
            Some(_) => {}
        }
        keys.insert(key);
    }
    let (Some(bucket), Some(first), Some(last)) = (bucket, keys.first(), keys.last()) else {
        return Err(JobError::Plan("No images to send; choose some".to_owned()));
    };
    let common = common_folder(first, last);
    let wanted = folder.as_folder().prefix;
    let folder = if bucket == folder.bucket && common.starts_with(&wanted) { wanted.as_str() } else { common };
    Ok(ManifestPlan {
        folder: S3Address::new(bucket, folder),
        names: keys.iter().map(|key| key[folder.len()..].to_owned()).collect(),
    })
}

/// The manifest as the content of an object, one entry per line.
pub(super) fn write_manifest(plan: &ManifestPlan) -> Vec<u8> {
    let prefix = Entry::Prefix { prefix: plan.folder.to_string() };
    let names = plan.names.iter().map(|name| Entry::Name(name.into()));
    let mut content = Vec::new();
    for entry in std::iter::once(prefix).chain(names) {
        content.extend_from_slice(if content.is_empty() { &b"["[..] } else { b",\n" });
        serde_json::to_writer(&mut content, &entry).expect("texts can always be written as JSON");
    }
    content.push(b']');
    content
}

/// Parses a manifest. `address` is only named in errors.
pub(super) fn read_manifest(content: &[u8], address: &S3Address) -> Result<ManifestPlan, JobError> {
    let wrong = |why: String| {
        JobError::Manifest(format!(
            "Invalid manifest: {why}; it must be a JSON list, [{{\"prefix\": \"s3://bucket/folder/\"}}, \"a.jpg\", \
            …]: {address}"
        ))
    };
    let entries: Vec<Entry<'_>> = serde_json::from_slice(content).map_err(|error| wrong(error.to_string()))?;
    let mut entries = entries.into_iter();
    let Some(Entry::Prefix { prefix }) = entries.next() else {
        return Err(wrong("its first entry is not a prefix".to_owned()));
    };
    let folder = S3Address::parse(&prefix).map_err(|error| wrong(error.to_string()))?;
    let names = entries.map(|entry| match entry {
        Entry::Name(name) => Ok(name.into_owned()),
        Entry::Prefix { .. } => Err(wrong("it has more than one prefix".to_owned())),
    });
    Ok(ManifestPlan { folder, names: names.collect::<Result<_, _>>()? })
}

/// The common prefix of the first and last of sorted keys, up to its last slash; all keys in between share it.
fn common_folder<'k>(first: &'k str, last: &str) -> &'k str {
    let mut end = 0;
    for (index, (a, b)) in first.bytes().zip(last.bytes()).enumerate() {
        if a != b {
            break;
        }
        if a == b'/' {
            end = index + 1;
        }
    }
    &first[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan_of(uris: &[&str]) -> Result<ManifestPlan, JobError> {
        plan_in("elsewhere", "", uris)
    }

    fn plan_in(bucket: &str, folder: &str, uris: &[&str]) -> Result<ManifestPlan, JobError> {
        let uris: Vec<SampleUri> = uris.iter().map(|uri| SampleUri::new(*uri)).collect();
        manifest_of(&uris, &S3Address::new(bucket, folder))
    }

    #[test]
    fn names_are_relative_to_a_shared_folder() {
        let deep = ["s3://bucket/photos/a/1.jpg", "s3://bucket/photos/a/2.jpg"];
        for folder in ["photos/", "photos"] {
            let plan = plan_in("bucket", folder, &deep).unwrap();
            assert_eq!(plan.folder.to_string(), "s3://bucket/photos/");
            assert_eq!(plan.names, ["a/1.jpg", "a/2.jpg"]);
        }
        for (bucket, folder) in [("bucket", "photos/b/"), ("other", "photos/")] {
            let plan = plan_in(bucket, folder, &deep).unwrap();
            assert_eq!(plan.folder.to_string(), "s3://bucket/photos/a/");
            assert_eq!(plan.names, ["1.jpg", "2.jpg"]);
        }
    }

    #[test]
    fn manifest_round_trips_with_a_common_prefix() {
        let plan = plan_of(&[
            "s3://bucket/photos/b/2.jpg",
            "s3://bucket/photos/a \"quoted\" 고양이.jpg",
            "s3://bucket/photos/b/t.tfrecord/#1",
            "s3://bucket/photos/b/t.tfrecord/#0",
        ])
        .unwrap();
        assert_eq!(plan.folder.to_string(), "s3://bucket/photos/");
        assert_eq!(plan.names, ["a \"quoted\" 고양이.jpg", "b/2.jpg", "b/t.tfrecord"]);
        let written = write_manifest(&plan);
        assert_eq!(read_manifest(&written, &plan.folder).unwrap(), plan);
        let text = String::from_utf8(written).unwrap();
        assert!(text.starts_with(r#"[{"prefix":"s3://bucket/photos/"},"#), "{text}");
    }

    #[test]
    fn single_and_top_level_images_have_a_folder() {
        let one = plan_of(&["s3://bucket/photos/고.jpg"]).unwrap();
        assert_eq!((one.folder.prefix.as_str(), one.names), ("photos/", vec!["고.jpg".to_owned()]));
        let top = plan_of(&["s3://bucket/고.jpg", "s3://bucket/곡.jpg"]).unwrap();
        assert_eq!(top.folder.prefix, "");
    }

    #[test]
    fn mixed_local_and_empty_selections_are_refused() {
        for (uris, said) in [
            (&["s3://a/1.jpg", "s3://b/1.jpg"][..], "one job per bucket"),
            (&["/photos/1.jpg"], "upload"),
            (&[], "No images"),
        ] {
            let error = plan_of(uris).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn invalid_manifest_shows_an_example() {
        let address = S3Address::new("bucket", "m.json");
        for text in [
            "",
            "{}",
            "[]",
            r#"["a.jpg"]"#,
            r#"[{"prefix":"/photos"}]"#,
            r#"[{"prefix":"s3://b/"},{"prefix":"s3://b/"}]"#,
            r#"[{"prefix":"s3://b/"},7]"#,
        ] {
            let error = read_manifest(text.as_bytes(), &address).unwrap_err().to_string();
            assert!(error.ends_with("s3://bucket/m.json"), "{error}");
        }
    }
}
