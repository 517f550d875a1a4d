//! Training jobs: created, described, listed, stopped, and run by `train.py` in folders like those of a container.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use serde_json::{Value, json};

use super::container::{Lifeline, WATCHDOG};
use super::objects::Place;
use super::tags::tag;
use super::world::{Birth, Pace, Row, listing, page};
use super::{ACCOUNT, REGION, Refusal, Shared, arn, seconds, text};

/// The log group of training jobs.
const GROUP: &str = "/aws/sagemaker/TrainingJobs";
/// The line after which a spot instance is taken away.
const CHECKPOINT: &str = "saved a checkpoint";

#[derive(Debug)]
pub(super) struct Training {
    request: Value,
    pub(super) status: &'static str,
    pub(super) failure: Option<String>,
    /// Names, start times and messages.
    phases: Vec<(&'static str, f64, &'static str)>,
    metrics: Vec<Value>,
    birth: Birth,
    started_s: Option<f64>,
    ended_s: Option<f64>,
}

impl Training {
    pub(super) fn is_over(&self) -> bool {
        matches!(self.status, "Completed" | "Failed" | "Stopped")
    }

    fn enter(&mut self, phase: &'static str, message: &'static str) {
        self.phases.push((phase, seconds(SystemTime::now()), message));
    }

    fn end(&mut self, status: &'static str, failure: Option<String>) {
        let message = match status {
            "Completed" => "Training job completed",
            "Stopped" => "Training job stopped",
            _ => "Training job failed",
        };
        self.enter(status, message);
        self.status = status;
        self.failure = failure;
        self.ended_s = Some(seconds(SystemTime::now()));
    }

    fn model_uri(&self) -> String {
        let output = text(&self.request["OutputDataConfig"], "S3OutputPath").trim_end_matches('/');
        format!("{output}/{}/output/model.tar.gz", text(&self.request, "TrainingJobName"))
    }
}

fn no_such_job() -> Refusal {
    Refusal::new("ResourceNotFound", "Requested resource not found.")
}

impl Shared {
    pub(super) fn create_training_job(self: &Arc<Self>, request: &Value) -> Result<Value, Refusal> {
        let name = text(request, "TrainingJobName");
        let resources = &request["ResourceConfig"];
        if !text(&request["AlgorithmSpecification"], "TrainingImage").contains(".dkr.ecr.") {
            return Err(Refusal::validation("Invalid image URI. Please provide a valid Amazon ECR path"));
        }
        if !text(request, "RoleArn").starts_with(&format!("arn:aws:iam::{ACCOUNT}:")) {
            return Err(Refusal::validation("RoleArn: Cross-account pass role is not allowed."));
        }
        let stopping = &request["StoppingCondition"];
        let wait = stopping["MaxWaitTimeInSeconds"].as_u64();
        if (request["EnableManagedSpotTraining"] == true)
            != wait.is_some_and(|wait| wait >= stopping["MaxRuntimeInSeconds"].as_u64().unwrap())
        {
            return Err(Refusal::validation(
                "Invalid MaxWaitTimeInSeconds. It must be present and be greater than or equal to \
                 MaxRuntimeInSeconds, and only for managed spot training",
            ));
        }
        let count = resources["InstanceCount"].to_string();
        let usage = if wait.is_some() { "spot training job usage" } else { "training job usage" };
        self.failures.lock().unwrap().limit(text(resources, "InstanceType"), &count, usage)?;
        let arn = arn("training-job", name);
        self.change(|world| {
            if world.trainings.contains_key(name) {
                return Err(Refusal::new(
                    "ResourceInUse",
                    &format!("Job name must be unique within an AWS account and region, and a job with this name already exists ({arn})"),
                ));
            }
            let birth = world.birth();
            let mut kept = request.clone();
            kept.as_object_mut().unwrap().remove("Tags");
            let mut training = Training {
                request: kept,
                status: "InProgress",
                failure: None,
                phases: Vec::new(),
                metrics: Vec::new(),
                birth,
                started_s: None,
                ended_s: None,
            };
            training.enter("Starting", "Preparing the instances for training");
            world.trainings.insert(name.to_owned(), training);
            tag(world, &arn, request);
            Ok(())
        })?;
        let run = Run { shared: Arc::clone(self), name: name.to_owned(), request: request.clone() };
        std::thread::spawn(move || {
            let ending = run.run();
            run.change(|training| match ending {
                _ if training.status == "Stopping" => training.end("Stopped", None),
                Ok(()) => training.end("Completed", None),
                Err(reason) => training.end("Failed", Some(reason)),
            });
        });
        Ok(json!({"TrainingJobArn": arn}))
    }

    pub(super) fn describe_training_job(&self, request: &Value) -> Result<Value, Refusal> {
        let name = text(request, "TrainingJobName");
        let world = self.world();
        let training = world.trainings.get(name).ok_or_else(no_such_job)?;
        let mut response = training.request.clone();
        response["TrainingJobArn"] = arn("training-job", name).into();
        response["TrainingJobStatus"] = training.status.into();
        response["SecondaryStatus"] = training.phases.last().unwrap().0.into();
        response["CreationTime"] = training.birth.at_s.into();
        response["SecondaryStatusTransitions"] = training
            .phases
            .iter()
            .map(|(phase, at_s, message)| json!({"Status": phase, "StartTime": at_s, "StatusMessage": message}))
            .collect();
        // AWS names it before it exists.
        response["ModelArtifacts"] = json!({"S3ModelArtifacts": training.model_uri()});
        response["FinalMetricDataList"] = training.metrics.clone().into();
        if let Some(failure) = &training.failure {
            response["FailureReason"] = failure.clone().into();
        }
        for (field, at_s) in [("TrainingStartTime", training.started_s), ("TrainingEndTime", training.ended_s)] {
            if let Some(at_s) = at_s {
                response[field] = at_s.into();
            }
        }
        if let (Some(started), Some(ended)) = (training.started_s, training.ended_s) {
            response["TrainingTimeInSeconds"] = (2 + (ended - started) as u64).into();
            response["BillableTimeInSeconds"] = (1 + (ended - started) as u64).into();
        }
        Ok(response)
    }

    pub(super) fn list_training_jobs(&self, request: &Value) -> Result<Value, Refusal> {
        let world = self.world();
        let rows = world.trainings.iter().map(|(name, training)| {
            let changed_s = training.phases.last().unwrap().1;
            let mut summary = json!({
                "TrainingJobName": name,
                "TrainingJobArn": arn("training-job", name),
                "CreationTime": training.birth.at_s,
                "LastModifiedTime": changed_s,
                "TrainingJobStatus": training.status,
            });
            if let Some(ended) = training.ended_s {
                summary["TrainingEndTime"] = ended.into();
            }
            Row { name: name.clone(), birth: training.birth, changed_s, status: training.status, summary }
        });
        let (list, next) = page(rows.collect(), request)?;
        Ok(listing("TrainingJobSummaries", list, next))
    }

    pub(super) fn stop_training_job(&self, request: &Value) -> Result<Value, Refusal> {
        let name = text(request, "TrainingJobName");
        self.change(|world| {
            let training = world.trainings.get_mut(name).ok_or_else(no_such_job)?;
            if training.is_over() {
                return Err(Refusal::validation(&format!(
                    "The request was rejected because the training job is in status {}.",
                    training.status
                )));
            }
            training.status = "Stopping";
            training.enter("Stopping", "Stopping the training job");
            let stopped = arn("training-job", name);
            world.cut_lifelines(|owner| owner == stopped);
            Ok(Value::Null)
        })
    }
}

struct Run {
    shared: Arc<Shared>,
    name: String,
    request: Value,
}

impl Run {
    fn change<T>(&self, change: impl FnOnce(&mut Training) -> T) -> T {
        self.shared.change(|world| change(world.trainings.get_mut(&self.name).unwrap()))
    }

    fn enter(&self, phase: &'static str, message: &'static str) {
        self.change(|training| training.enter(phase, message));
    }

    /// Runs the job.
    ///
    /// # Errors
    /// The reason for the failure.
    fn run(&self) -> Result<(), String> {
        if !self.wait_for_start() {
            return Ok(());
        }
        if self.shared.failures.lock().unwrap().no_capacity() {
            return Err("CapacityError: Unable to provision requested ML compute capacity. Please retry using a \
                        different ML instance type."
                .to_owned());
        }
        self.change(|training| training.started_s = Some(seconds(SystemTime::now())));
        loop {
            let folder = tempfile::Builder::new().prefix("spotcheck-training-").tempdir().unwrap();
            self.enter("Downloading", "Downloading the training image");
            self.download(folder.path())?;
            self.enter("Training", "Training image download completed. Training in progress.");
            let was_interrupted = self.train(folder.path());
            self.keep_checkpoints(folder.path());
            if !was_interrupted {
                return self.finish(folder.path());
            }
            self.enter("Interrupted", "Spot instances were reclaimed");
            self.enter("Restarting", "Waiting for spot instances");
        }
    }

    /// Whether the job was not stopped before it started.
    fn wait_for_start(&self) -> bool {
        let mut world = self.shared.world();
        loop {
            if world.closing || world.trainings[&self.name].status == "Stopping" {
                return false;
            }
            if world.pace != Pace::Held {
                return true;
            }
            world.held += 1;
            self.shared.changed.notify_all();
            world = self.shared.changed.wait(world).unwrap();
            world.held -= 1;
        }
    }

    fn download(&self, folder: &Path) -> Result<(), String> {
        for channel in self.request["InputDataConfig"].as_array().into_iter().flatten() {
            let name = text(channel, "ChannelName");
            let uri = text(&channel["DataSource"]["S3DataSource"], "S3Uri");
            let to = folder.join("channels").join(name);
            if self.fetch_all(uri, &to)? == 0 {
                return Err(format!(
                    "ClientError: Data download failed: NoSuchKey. No S3 objects found under prefix {uri} given in \
                     input data source. Please ensure that the bucket exists in the selected region ({REGION})."
                ));
            }
        }
        if let Some(uri) = self.request["CheckpointConfig"]["S3Uri"].as_str() {
            let to = folder.join("checkpoints");
            std::fs::create_dir_all(&to).unwrap();
            self.fetch_all(uri, &to)?;
        }
        let directory = self.request["HyperParameters"]["sagemaker_submit_directory"].as_str().unwrap_or("\"\"");
        let directory: String = serde_json::from_str(directory).unwrap();
        let Some(place) = Place::parse(&directory) else {
            return Ok(());
        };
        let archive = self.shared.objects.get(&place).map_err(|code| format!("ClientError: {directory}: {code}"))?;
        std::fs::write(folder.join("sourcedir.tar.gz"), archive).unwrap();
        Ok(())
    }

    /// Downloads all objects with a prefix; returns their number.
    fn fetch_all(&self, uri: &str, to: &Path) -> Result<usize, String> {
        let place = Place::parse(uri).unwrap();
        let listed = self.shared.objects.list(&place)?;
        // Names are relative to the folder of the prefix.
        let folder = place.key.rfind('/').map_or(0, |slash| slash + 1);
        for object in &listed {
            let path = to.join(&object.key[folder..]);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let at = Place { bucket: place.bucket.clone(), key: object.key.clone() };
            std::fs::write(path, self.shared.objects.get(&at)?).unwrap();
        }
        Ok(listed.len())
    }

    fn upload(&self, path: &Path, uri: &str) {
        if let Ok(content) = std::fs::read(path) {
            self.shared.objects.put(&Place::parse(uri).unwrap(), &content).unwrap();
        }
    }

    /// Runs the script until it ends, or is ended. Returns whether its spot instances were taken away.
    fn train(&self, folder: &Path) -> bool {
        let script = crate::support::repository().join("tests/support/control_plane/train.py");
        std::fs::write(folder.join("request.json"), self.request.to_string()).unwrap();
        let mut command = Command::new("sh");
        command
            .args(["-c", WATCHDOG, "training", "sh", "-c", "exec python3 \"$0\" . < request.json"])
            .arg(script)
            .current_dir(folder)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut process = command.spawn().expect("there is a shell");
        let group = process.id();
        let lifeline: Lifeline = Arc::new(Mutex::new(process.stdin.take()));
        self.shared.change(|world| {
            if world.closing || world.trainings[&self.name].status == "Stopping" {
                lifeline.lock().unwrap().take();
            }
            world.lifelines.push((arn("training-job", &self.name), Arc::clone(&lifeline)));
        });
        let started_s = self.change(|training| training.birth.at_s as u64);
        let mut was_interrupted = false;
        for line in BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok) {
            let (host, message) = line.split_once(' ').unwrap_or((&line, ""));
            let stream = format!("{}/{host}-{started_s}", self.name);
            self.shared.change(|world| world.logs.write(GROUP, &stream, message));
            if message == CHECKPOINT && self.shared.failures.lock().unwrap().takes_spot_instances() {
                was_interrupted = true;
                lifeline.lock().unwrap().take();
                // The script is a child of a child.
                let _ = Command::new("kill").args(["-9", "--", &format!("-{group}")]).status();
            }
        }
        let _ = process.wait();
        was_interrupted
    }

    fn keep_checkpoints(&self, folder: &Path) {
        if let Some(uri) = self.request["CheckpointConfig"]["S3Uri"].as_str() {
            self.upload(&folder.join("checkpoints/epoch"), &format!("{}/epoch", uri.trim_end_matches('/')));
        }
    }

    fn finish(&self, folder: &Path) -> Result<(), String> {
        let result = std::fs::read(folder.join("result.json")).unwrap_or_default();
        let result: Value = serde_json::from_slice(&result).unwrap_or_default();
        if self.change(|training| training.status != "Stopping") {
            self.enter("Uploading", "Uploading generated training model");
        }
        let uri = self.change(|training| training.model_uri());
        self.upload(&folder.join("model.tar.gz"), &uri);
        let now = seconds(SystemTime::now());
        let metrics = result["metrics"].as_object().into_iter().flatten();
        let metrics = metrics.map(|(name, value)| json!({"MetricName": name, "Value": value, "Timestamp": now}));
        let metrics = metrics.collect();
        self.change(|training| training.metrics = metrics);
        if result["code"] == 0 {
            return Ok(());
        }
        let last = result["errors"].as_array().and_then(|errors| errors.last()?.as_str()).unwrap_or_default();
        Err(format!(
            "AlgorithmError: ExecuteUserScriptError:\nExitCode {}\nErrorMessage \"{last}\"\nCommand \"python3 {}\", exit \
             code: {0}",
            result["code"],
            text(&self.request["HyperParameters"], "sagemaker_program")
        ))
    }
}
