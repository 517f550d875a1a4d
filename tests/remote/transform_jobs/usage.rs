//! Options and names that are checked before any request, and the printed commands.

use std::process::Command;

use serde_json::Value;

use super::Transform;
use crate::support::control_plane::ROLE;
use crate::support::ended::Ended;
use crate::support::spotcheck;

#[test]
fn aws_commands_require_a_valid_plan() {
    let transform = Transform::with_images("commands-of-problems", 1);
    let print = |more: &[&str]| {
        let more = [&["--print-aws"], more].concat();
        transform.start("bad", "photos/", &more)
    };
    // Images are not split into lines.
    let bad = ["--split-type", "line"];
    let refused = print(&bad).must(1, &["problem  Splitting", "--force"]);
    assert_eq!(refused.stdout, "");
    let forced = print(&[&bad[..], &["--force"]].concat()).must(0, &["problem  Splitting"]);
    assert!(forced.stdout.contains("create-transform-job"), "{forced:#?}");

    let printed = print(&[]).must(0, &[]);
    let script = format!("aws() {{ echo \"$2\"; return 1; }}\n{}", printed.stdout);
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stdout, b"create-model\n");
}

#[test]
fn printed_aws_commands_send_equal_requests() {
    let transform = Transform::with_images("commands", 2);
    let more = ["--env", "NOTE=it's \"quoted\" $HOME", "--tag", "team=고양이"];
    let mut printing = more.to_vec();
    printing.push("--print-aws");
    let printed = transform.start("commands", "photos/", &printing).must(0, &[]);
    assert_eq!(transform.plane.count("CreateTransformJob"), 0);
    assert!(transform.records().is_empty());
    transform.start("commands", "photos/", &more).must(0, &[]);
    let job = transform.asked("CreateTransformJob");
    let model = transform.asked("CreateModel");
    // A shell parses the commands, and prints the request of each `aws`.
    let script = format!(
        "aws() {{ for word; do case $last in --cli-input-json) printf '%s\\n' \"$word\";; esac; \
         last=$word; done; }}\n{}",
        printed.stdout
    );
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    let messages = String::from_utf8(output.stdout).unwrap();
    let requests: Vec<Value> = messages.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(requests, [model, job], "{printed:#?}");
}

#[test]
fn s3_options_are_hidden_for_sagemaker() {
    let transform = Transform::new("account");
    let of_s3 = spotcheck(&["predict", "--help"]).output().unwrap();
    let of_s3 = String::from_utf8(of_s3.stdout).unwrap();
    for command in ["list", "status", "stop", "logs"] {
        let help = transform.run(&[command, "--help"]).must(0, &["--profile", "--region"]);
        for option in ["--anonymous", "--requester-pays", "--path-style", "--endpoint-url"] {
            assert!(!help.stdout.contains(option), "{command}: {help:#?}");
            assert!(of_s3.contains(option), "{option}");
        }
    }
    let mut command = transform.command(&["list"]);
    command
        .env_remove("AWS_ACCESS_KEY_ID")
        .env_remove("AWS_SECRET_ACCESS_KEY")
        .env("HOME", transform.home.path())
        .env("AWS_EC2_METADATA_DISABLED", "true");
    let messages = Ended::new(&command.output().unwrap());
    let messages = messages.must(1, &["AWS credentials", "`aws configure`"]);
    assert!(!messages.stderr.contains("anonymous"), "{messages:#?}");
}

#[test]
fn empty_input_packs_no_model() {
    let transform = Transform::new("nothing");
    let folder = transform.home.path().join("photos");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("notes.txt"), "no image").unwrap();
    let (folder, output) = (folder.to_str().unwrap(), transform.bucket.uri("out/"));
    let (target, nothing) = (transform.bucket.uri("photos/"), transform.bucket.uri("no/"));
    let local = [folder, "--input-to", &target];
    let no_model = transform.home.path().join("no-model");
    let no_model = no_model.to_str().unwrap();
    let model = ["--model", "efficientnet-lite0", "--role", ROLE];
    for input in [&local[..], &[nothing.as_str()]] {
        for what in ["start", "preflight"] {
            // Packing it would fail earlier.
            let model = ["--saved-model", no_model, "--role", ROLE];
            let args = [&[what], input, &["--output", &output], &model].concat();
            transform.run(&args).must(1, &["No input below"]);
        }
        let forced = [&["start"], input, &["--output", &output, "--force"], &model].concat();
        transform.run(&forced).must(1, &["the input is empty"]);
    }
    assert!(transform.records().is_empty());
}

#[test]
fn wrong_usage_is_reported_before_any_request() {
    let transform = Transform::new("usage");
    let (input, output) = (transform.bucket.uri("photos/"), transform.bucket.uri("out/"));
    for (args, code, messages) in [
        (&["start", "here", "--output", &output, "--model-name", "m"][..], 1, "--input-to"),
        (&["start", &input, "--output", &output], 1, "No model"),
        (&["start", &input, "--output", &output, "--archive", "m.tar.gz"], 1, "--role"),
        (&["start", &input, "--output", &output, "--model-name", "m", "--role", ROLE], 1, "exists in SageMaker"),
        (&["start", &input, "--output", "out"], 2, "--output"),
        (&["start", &input, "--output", &output, "--env", "KEY"], 2, "KEY=VALUE"),
        (&["start", &input, "--output", &output, "--hourly-price", "0"], 2, "positive number"),
        (&["list", "--limit", "0"], 2, "--limit"),
    ] {
        transform.run(args).must(code, &[messages]);
    }
    assert_eq!(transform.plane.requests().len(), 0);
}

#[test]
fn invalid_names_are_reported_before_any_request() {
    let transform = Transform::new("names");
    let long = "a".repeat(64);
    for what in ["status", "stop", "logs", "retry", "clean-up"] {
        for (name, messages) in
            [("", "job name"), ("my job", "“my job” is"), ("-a", "is not valid"), (long.as_str(), "64 characters")]
        {
            // After `--`, a hyphen does not start a flag.
            transform.run(&[what, "--", name]).must(2, &[messages]);
        }
        for (flag, value, messages) in [
            ("--profile", "", "--profile"),
            ("--region", "", "eu-west-1"),
            ("--region", "eu west", "eu-west-1"),
            ("--region", "a.example/", "eu-west-1"),
        ] {
            transform.run(&[what, "job", flag, value]).must(2, &[messages]);
        }
    }
    let photos = transform.home.path().to_str().unwrap();
    for (outputs, messages) in [("", "No outputs"), ("my job", "“my job” is")] {
        transform.run(&["fetch", outputs, photos]).must(1, &[messages]);
    }
    assert!(transform.plane.requests().is_empty());
}
