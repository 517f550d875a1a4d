//! The equivalent `aws` commands for a POSIX shell.

use std::fmt::Write as _;

use serde::Serialize;

use super::manifest::write_manifest;
use crate::domain::Credentials;
use crate::image::source::{IMAGE_EXTENSIONS, RECORD_EXTENSIONS};
use crate::sagemaker::spec::transform::{InputObjects, ModelSource, TransformPlan};
use crate::sagemaker::spec::without_unset;

/// The commands that start this job, in order; one can have several lines. They contain no credentials: a profile is
/// named, but not its keys. They do contain the user's environment variables.
pub fn aws_commands(plan: &TransformPlan) -> Vec<String> {
    let mut commands = Vec::new();
    let s3 = s3_options(plan);
    let input = plan.spec.input.data_source.objects.address().to_string();
    if let Some(folder) = &plan.input_folder {
        let folder = quoted(&folder.display().to_string());
        commands.push(format!("aws s3 sync {folder} {}{}{s3}", quoted(&input), only_what_is_uploaded()));
    }
    if let (Some(manifest), Some(root)) = (&plan.manifest, &plan.files_root) {
        let root = quoted(&root.display().to_string());
        let target = quoted(&manifest.folder.to_string());
        commands.push(format!("aws s3 sync {root} {target}{}{s3}", only_what_is_uploaded()));
    } else if let Some(manifest) = &plan.manifest {
        for file in &plan.input_files {
            let target = format!("{}{}", manifest.folder, file.name);
            let path = quoted(file.uri.as_str());
            commands.push(format!("aws s3 cp {path} {}{s3}", quoted(&target)));
        }
    }
    if let (Some(manifest), InputObjects::Manifest(_)) = (&plan.manifest, &plan.spec.input.data_source.objects) {
        let content = String::from_utf8_lossy(&write_manifest(manifest)).into_owned();
        commands.push(format!("printf %s {} | aws s3 cp - {}{s3}", quoted(&content), quoted(&input)));
    }
    let options = sagemaker_options(plan);
    if let ModelSource::New { spec, local_archive } = &plan.model {
        if let Some(path) = local_archive {
            let (path, archive) = (path.display().to_string(), spec.archive.to_string());
            commands.push(format!("aws s3 cp {} {}{s3}", quoted(&path), quoted(&archive)));
        }
        commands.push(format!(
            "aws sagemaker create-model --cli-input-json {}{options}",
            quoted(&request(&spec.request()))
        ));
    }
    commands
        .push(format!("aws sagemaker create-transform-job --cli-input-json {}{options}", quoted(&request(&plan.spec))));
    commands
}

/// A request as JSON.
fn request(request: &impl Serialize) -> String {
    let request = serde_json::to_value(request).expect("texts and numbers can always be written as JSON");
    without_unset(request).to_string()
}

/// The commands as a single one that ends at the first failure, so a script of them never starts a job after half an
/// upload, and needs no option of the shell.
pub fn shell_script(commands: &[String]) -> String {
    commands.join(" &&\n")
}

/// The filters of `aws s3 sync` for what Spotcheck would upload: images and TFRecord files in any case, but nothing
/// hidden. If two filters match, the later one wins.
fn only_what_is_uploaded() -> String {
    let any_case = |letter: char| match letter.to_ascii_uppercase() {
        upper if upper == letter => letter.to_string(),
        upper => format!("[{letter}{upper}]"),
    };
    let compressed = RECORD_EXTENSIONS.map(|extension| format!("{extension}.gz"));
    let endings = IMAGE_EXTENSIONS.into_iter().chain(RECORD_EXTENSIONS);
    let endings = endings.chain(compressed.iter().map(String::as_str));
    let mut filters = " --exclude '*'".to_owned();
    for ending in endings {
        let ending: String = ending.chars().map(any_case).collect();
        let _ = write!(filters, " --include '*.{ending}'");
    }
    filters + " --include '*-[0-9]*-of-[0-9]*' --exclude '.*' --exclude '*/.*'"
}

fn s3_options(plan: &TransformPlan) -> String {
    let endpoint = plan.s3.endpoint.as_deref().map(|endpoint| ("endpoint-url", endpoint));
    let payer = plan.s3.requester_pays.then_some(("request-payer", "requester"));
    let region = plan.s3.region.as_deref();
    options(&plan.s3.credentials, region, endpoint.into_iter().chain(payer))
}

fn sagemaker_options(plan: &TransformPlan) -> String {
    let region = plan.sagemaker.region.as_deref();
    options(&plan.sagemaker.credentials, region, [])
}

/// ` --profile work --region eu-west-1`
fn options<'o>(
    credentials: &'o Credentials,
    region: Option<&'o str>,
    more: impl IntoIterator<Item = (&'o str, &'o str)>,
) -> String {
    let who = match credentials {
        Credentials::Ambient => String::new(),
        Credentials::Profile(name) => format!(" --profile {}", quoted(name)),
        Credentials::Anonymous => " --no-sign-request".to_owned(),
    };
    let region = region.map(|region| ("region", region));
    let others = region.into_iter().chain(more);
    let others = others.map(|(name, value)| format!(" --{name} {}", quoted(value)));
    std::iter::once(who).chain(others).collect()
}

/// Quotes a word for a POSIX shell.
pub fn quoted(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=@%+,".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::domain::{S3Access, S3Address};
    use crate::sagemaker::spec::transform::Network;
    use crate::sagemaker::spec::transform::{ManifestPlan, ModelSpec, SageMakerAccess, TransformSpec};

    #[test]
    #[cfg(unix)]
    fn shell_round_trips_each_word() {
        for text in ["plain-1.0", "", "it's", "a \"b\" $HOME `ls` \\ \n 고양이", "'", "*"] {
            let script = format!("printf %s {}", quoted(text));
            let output = Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), text);
        }
    }

    #[test]
    #[cfg(unix)]
    fn sync_equals_upload() {
        // The shell's patterns have the same meaning; each one decides for the names that it matches.
        let mut script = String::new();
        for filter in only_what_is_uploaded().split(" --").skip(1) {
            let (word, pattern) = filter.split_once(' ').unwrap();
            let pattern = pattern.trim_matches('\'');
            let _ = writeln!(script, "case $1 in {pattern}) sent={word};; esac");
        }
        script += "printf %s $sent";
        for (name, expected) in [
            ("cat.jpg", "include"),
            ("deep/down/CAT.Jpeg", "include"),
            ("train.tfrecord", "include"),
            ("train.tfrecord-00000-of-00010", "include"),
            ("train.tfrecord.gz", "include"),
            ("CREDITS.md", "exclude"),
            ("jpg", "exclude"),
            (".hidden.jpg", "exclude"),
            ("deep/.cache/cat.jpg", "exclude"),
        ] {
            let output = Command::new("sh").args(["-c", &script, "sh", name]).output();
            let sent = String::from_utf8(output.unwrap().stdout).unwrap();
            assert_eq!(sent, expected, "{name}");
        }
    }

    #[test]
    fn commands_match_a_start_in_order() {
        let mut spec = TransformSpec::example();
        spec.input.data_source.objects = InputObjects::Manifest(S3Address::new("bucket", "m'1.json"));
        spec.environment.insert("NOTE".to_owned(), "it's".to_owned());
        let plan = TransformPlan {
            sagemaker: SageMakerAccess {
                credentials: Credentials::Profile("my work".to_owned()),
                region: Some("eu-west-1".to_owned()),
            },
            s3: S3Access::default(),
            model: ModelSource::New {
                spec: ModelSpec {
                    name: "model".to_owned(),
                    image: "image".to_owned(),
                    archive: S3Address::new("bucket", "model.tar.gz"),
                    role: "role".to_owned(),
                    environment: [].into(),
                    tags: [].into(),
                    network: Network::default(),
                },
                local_archive: Some("/my models/model.tar.gz".into()),
            },
            spec,
            input_folder: None,
            input_files: Vec::new(),
            files_root: None,
            manifest: Some(ManifestPlan {
                folder: S3Address::new("bucket", "photos/"),
                names: vec!["a.jpg".to_owned()],
            }),
            usd_per_hour: None,
            images_per_s: None,
            inside: None,
            retry_of: None,
        };
        let commands = aws_commands(&plan);
        let begins: Vec<&str> = commands
            .iter()
            .map(|command| command.split(" --").next().unwrap())
            .map(|command| command.split(" '[").next().unwrap())
            .collect();
        assert_eq!(
            begins,
            [
                "printf %s",
                "aws s3 cp '/my models/model.tar.gz' s3://bucket/model.tar.gz",
                "aws sagemaker create-model",
                "aws sagemaker create-transform-job",
            ]
        );
        assert!(commands[0].ends_with(r"| aws s3 cp - 's3://bucket/m'\''1.json'"), "{}", commands[0]);
        assert!(commands[3].contains(r#""NOTE":"it'\''s""#), "{}", commands[3]);
        assert!(commands[3].ends_with(" --profile 'my work' --region eu-west-1"), "{}", commands[3]);
    }
}
