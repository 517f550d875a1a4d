//! A running transform job: containers, inputs, requests, outputs, logs.

use std::collections::VecDeque;
use std::io::Read as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::container::{Container, Sink, Trouble};
use super::failure::ObjectFailure;
use super::models::environment;
use super::objects::{Listed, Place};
use super::records::{self, Body};
use super::world::{Pace, World};
use super::{REGION, Shared, arn, text};
use crate::support::http::Transfer;

/// Runs a job that has just been created.
pub(super) fn start(shared: &Arc<Shared>, name: &str) {
    let run = Run {
        shared: Arc::clone(shared),
        name: name.to_owned(),
        request: shared.world().jobs[name].request.clone(),
        through: AtomicUsize::new(0),
        troubles: Mutex::default(),
    };
    std::thread::spawn(move || {
        let ending = run.run();
        run.shared.change(|world| {
            let job = world.jobs.get_mut(&run.name).unwrap();
            match ending {
                // A stop while it is ending is still a stop.
                _ if job.status == "Stopping" => job.end("Stopped", None),
                Ok(()) => job.end("Completed", None),
                Err(reason) => job.end("Failed", Some(reason)),
            }
        });
    });
}

struct Run {
    shared: Arc<Shared>,
    name: String,
    /// The request of `CreateTransformJob`.
    request: Value,
    /// The number of finished objects, with any result.
    through: AtomicUsize,
    troubles: Mutex<Vec<Blame>>,
}

/// An object, and the name that its output is based on.
struct Input {
    place: Place,
    relative: String,
}

/// The cause of a failure, which determines how AWS reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Blame {
    Client,
    Algorithm,
}

/// Why an object has no output: the cause, and its lines in the data log.
type Failed = (Blame, Vec<String>);

/// Receives the response to a request.
type Slot = Mutex<Option<Result<Vec<u8>, Failed>>>;

/// The request parameters, from the job or else the container itself.
struct Manner {
    concurrent: usize,
    /// 0 for the actual size.
    payload_mb: usize,
    strategy: String,
}

impl Run {
    /// Runs the job.
    ///
    /// # Errors
    /// The reason for the failure.
    fn run(&self) -> Result<(), String> {
        if !self.hold(|pace| pace != Pace::Held) {
            return Ok(());
        }
        if self.shared.failures.lock().unwrap().no_capacity() {
            return Err(
                "CapacityError: Unable to provision requested ML compute capacity. Please retry using a different \
                 ML instance type."
                    .to_owned(),
            );
        }
        let (archive_uri, role, variables) = {
            let mut world = self.shared.world();
            world.jobs.get_mut(&self.name).unwrap().begin();
            let Some(model) = world.models.get(text(&self.request, "ModelName")) else {
                return Err("ClientError: The model was deleted before the job started.".to_owned());
            };
            (model.archive().to_owned(), model.role().to_owned(), model.environment())
        };
        self.shared.changed.notify_all();
        let archive = Place::parse(&archive_uri).unwrap();
        let archive = self
            .shared
            .objects
            .get(&archive)
            .map_err(|code| format!("ClientError: Failed to download model data from {archive_uri}: {code}"))?;
        let inputs = self.inputs(&role)?;

        let instances = self.request["TransformResources"]["InstanceCount"].as_u64().unwrap_or(1) as usize;
        let instances = instances.min(inputs.len());
        let mut shares: Vec<VecDeque<Input>> = (0..instances).map(|_| VecDeque::new()).collect();
        for (number, input) in inputs.into_iter().enumerate() {
            shares[number % instances].push_back(input);
        }
        let outcomes: Vec<Result<(), String>> = std::thread::scope(|scope| {
            let instances: Vec<_> = shares
                .into_iter()
                .enumerate()
                .map(|(instance, share)| {
                    let (archive, variables) = (&archive, &variables);
                    scope.spawn(move || self.run_instance(instance, share, archive, variables))
                })
                .collect();
            instances.into_iter().map(|instance| instance.join().unwrap()).collect()
        });
        outcomes.into_iter().collect::<Result<(), _>>()?;
        let troubles = self.troubles.lock().unwrap();
        if troubles.contains(&Blame::Client) {
            return Err("ClientError: See job logs for more information".to_owned());
        }
        if troubles.contains(&Blame::Algorithm) {
            return Err("AlgorithmError: See job logs for more information".to_owned());
        }
        Ok(())
    }

    /// Waits for a pace that allows continuing; `false` if the job should end instead.
    fn hold(&self, mut allows: impl FnMut(Pace) -> bool) -> bool {
        let mut world = self.shared.world();
        loop {
            if self.shall_end(&world) {
                return false;
            }
            if allows(world.pace) {
                return true;
            }
            world.held += 1;
            self.shared.changed.notify_all();
            world = self.shared.changed.wait(world).unwrap();
            world.held -= 1;
        }
    }

    fn shall_end(&self, world: &World) -> bool {
        world.closing || world.jobs[&self.name].status == "Stopping"
    }

    /// The inputs of the job, in order.
    fn inputs(&self, role: &str) -> Result<Vec<Input>, String> {
        let source = &self.request["TransformInput"]["DataSource"]["S3DataSource"];
        let uri = text(source, "S3Uri");
        let place = Place::parse(uri).unwrap();
        let nothing = |code: &str| {
            let bucket = &place.bucket;
            format!(
                "ClientError: No S3 objects found under S3 URL \"{uri}\" given in input data source. Please ensure \
                 that the bucket exists in the selected region ({REGION}), that objects exist under that S3 prefix, \
                 and that the role \"{role}\" has \"s3:ListBucket\" \
                 permissions on bucket \"{bucket}\".{code}"
            )
        };
        let refused = |code: String| nothing(&format!(" Error message from S3: {code}"));
        let inputs = if source["S3DataType"] == "ManifestFile" {
            let manifest = self.shared.objects.get(&place).map_err(refused)?;
            of_manifest(&manifest).ok_or_else(|| format!("ClientError: Manifest file {uri} is malformed"))?
        } else {
            let listed = self.shared.objects.list(&place).map_err(refused)?;
            of_listing(&place, listed)
        };
        if inputs.is_empty() {
            return Err(nothing(""));
        }
        Ok(inputs)
    }

    fn run_instance(
        &self,
        instance: usize,
        share: VecDeque<Input>,
        archive: &[u8],
        of_model: &[(String, String)],
    ) -> Result<(), String> {
        let birth = self.shared.world().jobs[&self.name].birth;
        let stream = format!("{}/i-0{:016x}-{}", self.name, birth.number * 1000 + instance as u64, birth.at_s as u64);
        let data_log = format!("{stream}/data-log");
        let asked = Manner::from_request(&self.request, &Value::Null);
        let mut variables = of_model.to_vec();
        variables.extend(environment(&self.request["Environment"]));
        variables.extend([
            ("SAGEMAKER_BATCH".to_owned(), "true".to_owned()),
            ("SAGEMAKER_MAX_PAYLOAD_IN_MB".to_owned(), asked.payload_mb.to_string()),
            ("SAGEMAKER_MAX_CONCURRENT_TRANSFORMS".to_owned(), asked.concurrent.to_string()),
            ("SAGEMAKER_BATCH_STRATEGY".to_owned(), asked.shouted_strategy().to_owned()),
        ]);
        self.shared.change(|world| world.logs.open_for_job(&stream));
        let sink: Sink = Arc::new(move |shared, line| {
            shared.change(|world| world.logs.write_for_job(&stream, line));
        });
        let container =
            match Container::start(&self.shared, &arn("transform-job", &self.name), archive, &variables, &sink) {
                Ok(container) => container,
                Err(Trouble::Archive(error)) => {
                    return Err(format!("ClientError: Failed to extract model data archive for container: {error}"));
                }
                Err(Trouble::Ended) => {
                    return Err("AlgorithmError: See job logs for more information".to_owned());
                }
                Err(Trouble::NoPing) => {
                    return Err(
                        "AlgorithmError: The primary container did not pass the ping health check. Please check \
                     CloudWatch logs for this job."
                            .to_owned(),
                    );
                }
            };
        let parameters = container.get("/execution-parameters").filter(|response| response.status == 200);
        let parameters = parameters.and_then(|response| serde_json::from_slice(&response.content).ok());
        let manner = Manner::from_request(&self.request, &parameters.unwrap_or_default());
        self.shared.change(|world| {
            let settings = format!(
                "MaxConcurrentTransforms={}, MaxPayloadInMB={}, BatchStrategy={}",
                manner.concurrent,
                manner.payload_mb,
                manner.shouted_strategy()
            );
            world.logs.write_data_log(&data_log, &settings);
        });
        // No more workers than objects.
        let workers = manner.concurrent.min(share.len());
        let each = manner.concurrent / workers;
        let queue = Mutex::new(share);
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    loop {
                        let next = queue.lock().unwrap().pop_front();
                        let Some(input) = next.filter(|_| self.take_object()) else {
                            break;
                        };
                        let outcome = self.transform(&input, &container, &manner, each);
                        self.note(&input, outcome, &data_log);
                    }
                });
            }
        });
        Ok(())
    }

    /// Waits for permission to start an object; `false` if the job should end.
    fn take_object(&self) -> bool {
        let taken = self.hold(|pace| !matches!(pace, Pace::Held | Pace::HeldAfter(0)));
        taken && {
            let mut world = self.shared.world();
            match world.pace {
                // Another worker was faster.
                Pace::Held | Pace::HeldAfter(0) => {
                    drop(world);
                    return self.take_object();
                }
                Pace::HeldAfter(objects) => world.pace = Pace::HeldAfter(objects - 1),
                Pace::Free => {}
            }
            world.busy += 1;
            true
        }
    }

    fn note(&self, input: &Input, outcome: Result<(), Failed>, data_log: &str) {
        let through = self.through.fetch_add(1, Ordering::SeqCst) + 1;
        let stop = self.shared.failures.lock().unwrap().stopped_after();
        self.shared.change(|world| {
            world.busy -= 1;
            // Its container was stopped meanwhile.
            let cut_short = world.jobs[&self.name].status == "Stopping";
            if let Err((blame, lines)) = outcome
                && !cut_short
            {
                self.troubles.lock().unwrap().push(blame);
                for line in lines {
                    let entry = format!("{}/{}: {line}", input.place.bucket, input.place.key);
                    world.logs.write_data_log(data_log, &entry);
                }
            }
            if stop.is_some_and(|objects| through >= objects) {
                world.jobs.get_mut(&self.name).unwrap().stop();
            }
        });
    }

    /// Sends an object through the container and writes its output.
    fn transform(&self, input: &Input, container: &Container, manner: &Manner, at_once: usize) -> Result<(), Failed> {
        let of_client = |message: String| (Blame::Client, vec![message]);
        let failure = self.shared.failures.lock().unwrap().of_object(&input.place.key);
        let mut content =
            self.shared.objects.get(&input.place).map_err(|code| of_client(format!("ClientError: {code}")))?;
        match failure {
            Some(ObjectFailure::Container) => {
                return Err(refused(500, "{\"error\": \"as the test wants it\"}"));
            }
            Some(ObjectFailure::Broken) => {
                content = b"fail 400 as the test wants it; this is not an image".to_vec();
            }
            _ => {}
        }
        let of_input = &self.request["TransformInput"];
        if of_input["CompressionType"] == "Gzip" && failure != Some(ObjectFailure::Broken) {
            let mut plain = Vec::new();
            flate2::read::MultiGzDecoder::new(content.as_slice())
                .read_to_end(&mut plain)
                .map_err(|_| of_client("ClientError: Unable to decompress the object as gzip".to_owned()))?;
            content = plain;
        }
        let split = of_input["SplitType"].as_str().unwrap_or("None");
        let records = records::split(&content, split).map_err(|reason| of_client(format!("ClientError: {reason}")))?;
        let limit = (manner.payload_mb > 0).then_some(manner.payload_mb * 1024 * 1024);
        let bodies = records::pack(&records, &manner.strategy, limit).map_err(of_client)?;
        let responses = self.invoke_all(&bodies, container, manner, at_once)?;
        if failure == Some(ObjectFailure::Forgotten) {
            return Ok(());
        }
        let output = self.assemble(&bodies, &responses);
        let folder = Place::parse(text(&self.request["TransformOutput"], "S3OutputPath")).unwrap();
        let folder_key = folder.key.trim_end_matches('/');
        let key = if folder_key.is_empty() {
            format!("{}.out", input.relative)
        } else {
            format!("{folder_key}/{}.out", input.relative)
        };
        let place = Place { bucket: folder.bucket, key };
        self.shared.objects.put(&place, &output).map_err(|code| of_client(format!("ClientError: {code}")))
    }

    /// The responses in the order of the bodies.
    fn invoke_all(
        &self,
        bodies: &[Body],
        container: &Container,
        manner: &Manner,
        at_once: usize,
    ) -> Result<Vec<Vec<u8>>, Failed> {
        let next = AtomicUsize::new(0);
        let responses: Vec<Slot> = bodies.iter().map(|_| Mutex::default()).collect();
        std::thread::scope(|scope| {
            for _ in 0..at_once.clamp(1, bodies.len().max(1)) {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Ordering::SeqCst);
                        let (Some(body), Some(response)) = (bodies.get(number), responses.get(number)) else {
                            break;
                        };
                        *response.lock().unwrap() = Some(self.invoke(&body.bytes, container, manner));
                    }
                });
            }
        });
        let responses = responses.into_iter();
        responses.map(|response| response.into_inner().unwrap().unwrap()).collect()
    }

    fn invoke(&self, body: &[u8], container: &Container, manner: &Manner) -> Result<Vec<u8>, Failed> {
        let client = &self.request["ModelClientConfig"];
        let retries = client["InvocationsMaxRetries"].as_u64().unwrap_or(3);
        let patience = Duration::from_secs(client["InvocationsTimeoutInSeconds"].as_u64().unwrap_or(600));
        let mut fields = Vec::new();
        if let Some(kind) = self.request["TransformInput"]["ContentType"].as_str() {
            fields.push(("Content-Type", kind));
        }
        if let Some(accept) = self.request["TransformOutput"]["Accept"].as_str() {
            fields.push(("Accept", accept));
        }
        let transfer = match manner.payload_mb {
            0 => Transfer::Chunked,
            _ => Transfer::Whole,
        };
        let mut left = retries;
        loop {
            let outcome = match container.invoke(&fields, body, transfer, patience) {
                Ok(response) if response.status == 200 => return Ok(response.content),
                Ok(response) => refused(response.status, &String::from_utf8_lossy(&response.content)),
                Err(_) => (Blame::Algorithm, vec!["Unable to get response from algorithm".to_owned()]),
            };
            if left == 0 || outcome.0 == Blame::Client {
                return Err(outcome);
            }
            left -= 1;
        }
    }

    /// The content of the `.out` object.
    fn assemble(&self, bodies: &[Body], responses: &[Vec<u8>]) -> Vec<u8> {
        let joins = self.request["DataProcessing"]["JoinSource"] == "Input";
        let mut output = Vec::new();
        for (body, response) in bodies.iter().zip(responses) {
            if joins {
                output.extend_from_slice(&join(&body.bytes, response));
            } else {
                output.extend_from_slice(response);
            }
            if self.request["TransformOutput"]["AssembleWith"] == "Line" && !output.ends_with(b"\n") {
                output.push(b'\n');
            }
        }
        output
    }
}

impl Manner {
    /// Values that the job does not set come from the container's `/execution-parameters`, or are AWS's defaults.
    fn from_request(request: &Value, parameters: &Value) -> Self {
        let number = |name: &str| {
            let asked = request[name].as_u64().filter(|number| name != "MaxConcurrentTransforms" || *number > 0);
            asked.or_else(|| parameters[name].as_u64())
        };
        let strategy = request["BatchStrategy"].as_str().or_else(|| parameters["BatchStrategy"].as_str());
        Self {
            concurrent: number("MaxConcurrentTransforms").unwrap_or(1).max(1) as usize,
            payload_mb: number("MaxPayloadInMB").unwrap_or(6) as usize,
            strategy: match strategy {
                Some("SingleRecord" | "SINGLE_RECORD") => "SingleRecord",
                _ => "MultiRecord",
            }
            .to_owned(),
        }
    }

    fn shouted_strategy(&self) -> &'static str {
        match self.strategy.as_str() {
            "SingleRecord" => "SINGLE_RECORD",
            _ => "MULTI_RECORD",
        }
    }
}

/// The lines of the data log for a failed request.
fn refused(status: u16, content: &str) -> Failed {
    let (blame, first) = match status {
        400..500 => (Blame::Client, format!("ClientError: {status}")),
        _ => (Blame::Algorithm, format!("Bad HTTP status received from algorithm: {status}")),
    };
    let mut lines = vec![first, String::new(), "Message:".to_owned()];
    lines.extend(content.lines().map(str::to_owned));
    (blame, lines)
}

/// The number of bytes of each key that the output names omit: the prefix as a folder if all keys are in it, and
/// otherwise up to its last `/`.
fn stem(prefix: &str, keys: &[String]) -> usize {
    let folder = format!("{}/", prefix.trim_end_matches('/'));
    if !prefix.is_empty() && keys.iter().all(|key| key.starts_with(&folder)) {
        return folder.len();
    }
    prefix.rfind('/').map_or(0, |slash| slash + 1)
}

fn of_listing(prefix: &Place, listed: Vec<Listed>) -> Vec<Input> {
    // The console creates a key that ends in `/` for a folder.
    let keys: Vec<String> = listed.into_iter().map(|object| object.key).filter(|key| !key.ends_with('/')).collect();
    let stem = stem(&prefix.key, &keys);
    let inputs = keys.iter().map(|key| Input {
        place: Place { bucket: prefix.bucket.clone(), key: key.clone() },
        relative: key[stem..].to_owned(),
    });
    inputs.collect()
}

/// `None` if it is not a manifest.
fn of_manifest(content: &[u8]) -> Option<Vec<Input>> {
    let manifest: Value = serde_json::from_slice(content).ok()?;
    let (first, rest) = manifest.as_array()?.split_first()?;
    let prefix = Place::parse(first["prefix"].as_str()?)?;
    let inputs = rest.iter().map(|entry| {
        let relative = entry.as_str()?.to_owned();
        Some(Input {
            place: Place { bucket: prefix.bucket.clone(), key: format!("{}{relative}", prefix.key) },
            relative,
        })
    });
    inputs.collect()
}

/// `JoinSource: Input`: adds a response per line of the body, or one for all of it, as the member `SageMakerOutput` of
/// the request.
fn join(body: &[u8], response: &[u8]) -> Vec<u8> {
    let one = |input: &[u8], output: &[u8]| {
        let output: Value = serde_json::from_slice(output).unwrap_or_default();
        let joined = match serde_json::from_slice(input).unwrap_or_default() {
            Value::Object(mut input) => {
                input.insert("SageMakerOutput".to_owned(), output);
                Value::Object(input)
            }
            input => json!({"SageMakerInput": input, "SageMakerOutput": output}),
        };
        joined.to_string().into_bytes()
    };
    let lines = |text: &[u8]| -> Vec<Vec<u8>> {
        let lines = text.split(|byte| *byte == b'\n');
        lines.filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect()
    };
    let (inputs, outputs) = (lines(body), lines(response));
    if inputs.len() != outputs.len() {
        return one(body, response);
    }
    let joined: Vec<_> = inputs.iter().zip(&outputs).map(|(input, output)| one(input, output)).collect();
    joined.join(&b'\n')
}
