//! Watching, stopping and describing jobs, and their logs.

use std::process::Stdio;

use serde_json::{Value, json};

use super::{FAILED_OBJECT, SILENT_LOG, Transform, wait_for_next_second};
use crate::support::control_plane::{Failure, archive};
use crate::support::ended::Ended;
use crate::support::fault_proxy::{Fault, FaultProxy, Often};
use crate::support::seaweed::STRANGER;

#[test]
fn expired_session_ends_watching() {
    let transform = Transform::with_images("expired", 1);
    transform.plane.pause_jobs();
    transform.start("expired", "photos/", &[]).must(0, &[]);
    let before = transform.plane.count("DescribeTransformJob");
    transform.plane.fail(Failure::SessionOverAfter { operation: "DescribeTransformJob", times: 2 });
    let watched = transform
        .run(&["status", "expired", "--watch"])
        .must(1, &["default AWS credentials", "has expired", "transform status expired --watch"]);
    assert_eq!(watched.stderr.matches("has expired").count(), 1, "{watched:#?}");
    // Two polls, and two that fail: the last one with newly loaded credentials.
    assert_eq!(transform.plane.count("DescribeTransformJob") - before, 4);
    transform.plane.heal();
    transform.plane.resume_jobs();
    transform.run(&["status", "expired", "--watch"]).must(0, &[]);
}

#[test]
fn s3_outage_is_reported_once_while_watching() {
    let transform = Transform::with_images("outage", 2);
    let s3 = FaultProxy::before(transform.bucket.server().address());
    let through_proxy = |args: &[&str]| {
        let mut command = transform.command(args);
        command.env("AWS_ENDPOINT_URL_S3", s3.endpoint());
        command
    };
    transform.plane.pause_jobs();
    transform.start("outage", "photos/", &[]).must(0, &[]);
    let mut watcher = through_proxy(&["status", "outage", "--watch"]);
    let watcher = watcher.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    transform.wait_until_looked_at(2);
    s3.inject(|_| true, Often::Always, Fault::Outage);
    // The last of these polls starts after another has encountered the outage.
    transform.wait_until_looked_at(5);
    s3.restart();
    transform.plane.resume_jobs();
    let watched = Ended::new(&watcher.wait_with_output().unwrap()).must(0, &["refused the connection"]);
    assert!(watched.stderr.lines().any(|line| line.contains("0 of 2") && line.contains("refused the connection")));

    s3.inject(|_| true, Often::Always, Fault::Outage);
    let args = transform.of_job("preflight", "next", "photos/", &[]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let found = Ended::new(&through_proxy(&args).output().unwrap());
    for fetch_or_check in [found, Ended::new(&through_proxy(&["fetch", "outage", ".", "--out", "-"]).output().unwrap())]
    {
        let all = format!("{}{}", fetch_or_check.stdout, fetch_or_check.stderr);
        assert_eq!(fetch_or_check.code, Some(1), "{all}");
        assert_eq!(all.matches("refused the connection").count(), 1, "{all}");
        for misleading in ["transform package", "other problems", "are unknown"] {
            assert!(!all.contains(misleading), "{misleading} in {all}");
        }
    }
}

#[test]
fn wrong_and_empty_regions_are_named() {
    let transform = Transform::new("regions");
    for (region, words) in [("eu-central-1", "than eu-central-1"), ("", "no region")] {
        let mut command = transform.command(&["list"]);
        command.env("AWS_REGION", region).env_remove("AWS_DEFAULT_REGION");
        let listed = Ended::new(&command.output().unwrap()).must(1, &[words]);
        assert!(!listed.stderr.contains("secret key") && !listed.stderr.contains("permission"), "{listed:#?}");
    }
}

#[test]
fn rate_comes_from_output_times() {
    let transform = Transform::with_images("rate", 6);
    transform.plane.pause_jobs_after(2);
    transform.start("rate", "photos/", &["--max-concurrent", "1"]).must(0, &[]);
    transform.plane.wait_until_paused();
    wait_for_next_second();
    transform.plane.pause_jobs_after(1);
    transform.plane.wait_until_paused();
    let watcher = transform.spawn(&["status", "rate", "--watch"]);
    // Long enough for several polls with the same count.
    transform.wait_until_looked_at(5);
    transform.plane.resume_jobs();
    let ended = Ended::new(&watcher.wait_with_output().unwrap()).must(0, &[]);
    let number_before = |line: &str, unit: &str| -> Option<f64> {
        let (before, _) = line.split_once(unit)?;
        before.rsplit([' ', ',']).next()?.parse().ok()
    };
    let lines = ended.stderr.lines().filter(|line| line.contains("3 of 6"));
    let rates: Vec<Option<f64>> = lines.map(|line| number_before(line, " images/s")).collect();
    let first = *rates.first().unwrap_or(&None);
    assert!(first.is_some_and(|rate| rate > 0.0), "{ended:#?}");
    assert!(rates.iter().all(|rate| *rate == first), "{rates:?}");
}

#[test]
fn jobs_are_printed_as_json() {
    let transform = Transform::with_images("as-json", 3);
    transform.bucket.put("photos/bad.jpg", b"fail 400");
    transform.start("as-json", "photos/", &["--max-concurrent", "1", "--watch"]).must(3, &[]);
    let status = transform.run(&["status", "as-json", "--output", "json"]);
    let status = status.must(3, &[]);
    let told: Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(told["job"], "as-json");
    assert_eq!(told["status"], "failed");
    assert_eq!(told["inputs"], 4);
    let without = told["without_output"].as_array().unwrap();
    assert_eq!(without[0]["uri"], transform.bucket.uri("photos/bad.jpg"));
    assert_eq!(4 - without.len() as u64, told["outputs"].as_u64().unwrap(), "{told}");
    let list = transform.run(&["list", "--output", "json"]).must(0, &[]);
    let told: Value = serde_json::from_str(&list.stdout).unwrap();
    assert_eq!(told[0]["job"], "as-json");
    assert!(told[0]["created"].as_str().unwrap().ends_with('Z'));
    let none = transform.run(&["list", "--name", "nothing", "--output", "json"]);
    assert_eq!(none.must(0, &[]).stdout.trim(), "[]");
}

#[test]
fn log_of_a_job_without_a_start_time_is_shown() {
    let transform = Transform::with_images("unstarted", 1);
    let script = b"print('no model in /opt/ml/model', flush=True)";
    let ends_at_once = archive(&[("code/serve.py", script)]);
    transform.bucket.put("models/model.tar.gz", &ends_at_once);
    transform.plane.fail(Failure::NoStartTime);
    transform.start("unstarted", "photos/", &[]).must(0, &[]);
    transform.plane.wait_until_over("unstarted");
    transform.run(&["status", "unstarted"]).must(1, &["log        no model", "transform logs unstarted", "--data-log"]);
    let log = &transform.status("unstarted", 1)["log"];
    assert_eq!(*log, json!(["no model in /opt/ml/model"]));
}

#[test]
fn log_is_read_from_its_end() {
    let transform = Transform::with_images("log-end", 2);
    transform.start("log-end", "photos/", &[]).must(0, &[]);
    transform.plane.wait_until_over("log-end");
    transform.run(&["status", "log-end"]).must(0, &["log        "]);
    let asked = transform.all_asked("GetLogEvents").remove(0);
    assert_eq!(asked["startFromHead"], false);
    assert_eq!(asked["limit"], 100);
}

#[test]
fn unknown_access_key_shows_the_aws_message() {
    let transform = Transform::new("stranger");
    let mut command = transform.command(&["status", "job"]);
    transform.plane.sign_in(&mut command, STRANGER);
    Ended::new(&command.output().unwrap())
        .must(1, &["the access key", "UnrecognizedClientException: The security", "another profile"]);
}

#[test]
fn stopped_job_keeps_its_outputs() {
    let transform = Transform::with_images("stopped", 6);
    transform.plane.pause_jobs_after(2);
    transform.start("stopped", "photos/", &["--max-concurrent", "1"]).must(0, &["status stopped --watch"]);
    transform.plane.wait_until_paused();
    transform
        .run(&["status", "stopped"])
        .must(0, &["status     in progress, transforming", "2 of 6 (33%)", "price unknown"]);
    transform.run(&["retry", "stopped"]).must(1, &["until it ends"]);
    transform.run(&["clean-up", "stopped", "--yes"]).must(1, &["still uses"]);
    transform.run(&["stop", "stopped"]).must(1, &["Stop job stopped?"]);
    assert_eq!(transform.plane.count("StopTransformJob"), 0);
    transform.run(&["stop", "stopped", "--yes"]).must(0, &["stopping job stopped"]);
    transform.plane.resume_jobs();
    transform.plane.wait_until_over("stopped");
    let status = transform.run(&["status", "stopped"]);
    assert!(!status.stderr.contains(FAILED_OBJECT), "{status:#?}");
    status.must(3, &[".jpg: not processed"]);
    let status = transform.status("stopped", 3);
    assert_eq!(status["status"], "stopped");
    let without = status["without_output"].as_array().unwrap().len() as u64;
    assert_eq!(status["outputs"].as_u64().unwrap() + without, 6);
    transform.run(&["stop", "stopped", "--yes"]).must(1, &["is already stopped"]);
}

#[test]
fn watching_survives_kills_and_network_errors() {
    let transform = Transform::with_images("watching", 3);
    transform.plane.pause_jobs();
    transform.start("watching", "photos/", &["--hourly-price", "2"]).must(0, &[]);
    let mut watcher = transform.spawn(&["status", "watching", "--watch"]);
    transform.wait_until_looked_at(3);
    watcher.kill().unwrap();
    watcher.wait().unwrap();
    // More often than a single request is retried.
    transform.plane.fail(Failure::Throttling { operation: "DescribeTransformJob", times: 5 });
    let watcher = transform.spawn(&["status", "watching", "--watch"]);
    transform.wait_until_looked_at(10);
    transform.plane.resume_jobs();
    let ended = Ended::new(&watcher.wait_with_output().unwrap());
    ended.must(0, &["request rate", "retrying in 2 s", "$0.0"]);
    assert_eq!(transform.counts("watching"), ("completed".to_owned(), 3, 3));
}

#[test]
fn foreign_job_opens_by_name() {
    let transform = Transform::with_images("elsewhere", 2);
    transform.start("elsewhere", "photos/", &[]).must(0, &[]);
    transform.plane.wait_until_over("elsewhere");
    let other = Transform { home: tempfile::tempdir().unwrap(), ..transform };
    assert_eq!(other.counts("elsewhere"), ("completed".to_owned(), 2, 2));
    other.run(&["clean-up", "elsewhere", "--yes"]).must(1, &["not started on"]);
    other.run(&["status", "nowhere"]).must(1, &["describe job nowhere"]);
}

#[test]
fn missing_log_permission_hides_only_logs() {
    let transform = Transform::with_images("no-logs", 2);
    transform.bucket.put("photos/bad.jpg", b"fail 400");
    for operation in ["DescribeLogStreams", "GetLogEvents"] {
        transform.plane.fail(Failure::AccessDenied { operation });
    }
    let started = transform.start("no-logs", "photos/", &["--watch"]);
    // An unread log provides no reason, and does not claim that there is none.
    assert!(!started.stderr.contains(SILENT_LOG), "{started:#?}");
    started.must(3, &["logs:DescribeLogStreams", FAILED_OBJECT, "bad.jpg: no output", "not be read"]);
    let without = &transform.status("no-logs", 3)["without_output"];
    let bad = transform.bucket.uri("photos/bad.jpg");
    let uris = without.as_array().unwrap().iter();
    assert!(uris.map(|image| &image["uri"]).any(|uri| *uri == bad), "{without}");
}

#[test]
fn failed_job_reports_its_reason() {
    let transform = Transform::with_images("failing", 2);
    for (job, failure, code, messages) in [
        ("no-capacity", Failure::NoCapacity, 1, &["reason     CapacityError: Unable", "no image has"][..]),
        ("no-ping", Failure::NoPing, 1, &["ping health check"]),
        ("broken", Failure::ContainerError("001.jpg"), 3, &["001.jpg: Bad HTTP", "algorithm: 500"]),
    ] {
        transform.plane.fail(failure);
        transform.start(job, "photos/", &["--watch"]).must(code, messages);
        transform.plane.heal();
        let status = transform.status(job, code);
        assert_eq!(status["status"], "failed");
        let predicted = usize::from(code == 3);
        assert_eq!(status["outputs"], predicted);
        let without = status["without_output"].as_array().unwrap();
        assert_eq!(without.len(), 2 - predicted, "{status}");
    }
}

#[test]
fn watcher_waits_without_a_response() {
    let transform = Transform::with_images("hang-up", 1);
    transform.start("hang-up", "photos/", &[]).must(0, &[]);
    transform.plane.wait_until_over("hang-up");
    let operation = "DescribeTransformJob";
    transform.plane.fail(Failure::HangUp { operation, times: 5 });
    transform.run(&["status", "hang-up", "--watch"]).must(0, &["retrying in 2 s"]);
    assert_eq!(transform.counts("hang-up"), ("completed".to_owned(), 1, 1));
}
