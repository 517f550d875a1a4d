//! `SageMaker`, its runtime and `CloudWatch` Logs on this computer: a working control plane for tests without an AWS
//! account.
//!
//! It implements AWS's protocols and checks signatures. Requests and responses are checked against botocore's service
//! models, and a test fails if one does not conform. A transform job fetches the archive from SeaweedFS, starts its
//! handler, sends it the inputs and writes the outputs and logs, like Batch Transform; an endpoint has the handler
//! behind it. A state lasts exactly as long as its work: nothing sleeps, and [`ControlPlane::pause_jobs`] pauses the
//! work for a test.
//!
//! [`ControlPlane::fail`] injects failures of AWS.

mod container;
mod endpoints;
mod failure;
mod jobs;
mod logs;
mod models;
mod objects;
mod records;
mod running;
mod runtime;
mod sigv4;
mod tags;
mod training;
mod validator;
mod world;

use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::SystemTime;

use serde_json::{Map, Value, json};

pub(crate) use failure::Failure;
use failure::Failures;
use objects::Objects;
pub(crate) use sigv4::Session;
use sigv4::{Expected, Scope};
use validator::{ComplaintKind, Validator};
use world::{Pace, World};

use super::http::{Direction, Head};
use super::seaweed::{Login, Seaweed};

/// The region of the control plane.
pub(crate) const REGION: &str = "us-east-1";
pub(crate) const ACCOUNT: &str = "123456789012";
/// A role that the control plane accepts.
pub(crate) const ROLE: &str = "arn:aws:iam::123456789012:role/spotcheck-transform";
/// An image that it accepts; the handler of the archive runs in its place.
pub(crate) const IMAGE: &str = "763104351884.dkr.ecr.us-east-1.amazonaws.com/ray:serve-ml-sagemaker-cpu-v1.4";

/// Accepts requests until the test program ends. Its jobs and endpoints end when it is dropped, and then the test fails
/// if a request or response did not match AWS's models.
pub(crate) struct ControlPlane {
    address: SocketAddr,
    s3_endpoint: String,
    shared: Arc<Shared>,
}

/// A received request.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// `CreateTransformJob`
    pub(crate) operation: String,
    /// `Null` if it is not JSON.
    pub(crate) body: Value,
    /// The status of the response.
    pub(crate) status: u16,
}

struct Shared {
    objects: Objects,
    world: Mutex<World>,
    /// Notified on every change of the world.
    changed: Condvar,
    failures: Mutex<Failures>,
    session: Mutex<Session>,
    requests: Mutex<Vec<Request>>,
    violations: Mutex<Vec<String>>,
}

/// An error as AWS returns it.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    status: u16,
    code: String,
    message: String,
    /// Further fields of the body.
    more: Map<String, Value>,
}

struct Response {
    status: u16,
    fields: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl ControlPlane {
    /// A control plane whose jobs read and write the objects of `seaweed`.
    pub(crate) fn start(seaweed: &Seaweed) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            objects: Objects { server: seaweed.address() },
            world: Mutex::default(),
            changed: Condvar::new(),
            failures: Mutex::default(),
            session: Mutex::default(),
            requests: Mutex::default(),
            violations: Mutex::default(),
        });
        let plane = Arc::clone(&shared);
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let plane = Arc::clone(&plane);
                // Whether a client disconnects is up to the client.
                std::thread::spawn(move || plane.serve(&connection.ok()?));
            }
        });
        Self { address, s3_endpoint: seaweed.endpoint(), shared }
    }

    /// `http://127.0.0.1:PORT`
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Signs `command` in only by the environment, and sends it here, and for S3 to SeaweedFS.
    pub(crate) fn sign_in(&self, command: &mut Command, login: Login) {
        login.sign_in(command, &self.s3_endpoint);
        self.send_here(command);
    }

    /// Sends everything except S3 from `command`, which is signed in already, here.
    pub(crate) fn send_here(&self, command: &mut Command) {
        for service in ["SAGEMAKER", "SAGEMAKER_RUNTIME", "CLOUDWATCH_LOGS"] {
            command.env(format!("AWS_ENDPOINT_URL_{service}"), self.endpoint());
        }
    }

    pub(crate) fn fail(&self, failure: Failure) {
        self.shared.failures.lock().unwrap().add(failure);
    }

    pub(crate) fn heal(&self) {
        self.shared.failures.lock().unwrap().clear();
        self.shared.change(|_| ());
    }

    /// Requires this session for all further requests.
    pub(crate) fn set_session(&self, session: Session) {
        *self.shared.session.lock().unwrap() = session;
    }

    /// Runs an operation of `SageMaker` without a signature, like AWS's console; it is not counted as a request. An
    /// error is AWS's code and message.
    pub(crate) fn console(&self, operation: &str, request: &Value) -> Result<Value, String> {
        let performed = self.shared.perform("sagemaker", operation, request);
        performed.map_err(|refusal| format!("{}: {}", refusal.code, refusal.message))
    }

    /// All requests so far, in order.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// The number of requests for this operation so far.
    pub(crate) fn count(&self, operation: &str) -> usize {
        let requests = self.shared.requests.lock().unwrap();
        requests.iter().filter(|request| request.operation == operation).count()
    }

    /// Adds a model of two containers, which Spotcheck cannot use.
    pub(crate) fn add_chain(&self, name: &str) {
        self.shared.add_chain(name);
    }

    /// Holds all jobs until [`Self::resume_jobs`]: none starts, and running ones process no further objects. Stopping
    /// them works.
    pub(crate) fn pause_jobs(&self) {
        self.set_pace(Pace::Held);
    }

    /// Jobs start and run, but after `objects` further objects they pause until [`Self::resume_jobs`].
    pub(crate) fn pause_jobs_after(&self, objects: usize) {
        self.set_pace(Pace::HeldAfter(objects));
    }

    pub(crate) fn resume_jobs(&self) {
        self.set_pace(Pace::Free);
    }

    /// Waits until a job is held by [`Self::pause_jobs`] or [`Self::pause_jobs_after`] and nothing is in progress.
    pub(crate) fn wait_until_paused(&self) {
        drop(self.wait(World::is_paused));
    }

    /// Waits until the job has ended; returns its status, and the reason if it failed.
    pub(crate) fn wait_until_over(&self, job: &str) -> (String, Option<String>) {
        let world = self.wait(|world| world.jobs.get(job).is_some_and(jobs::Job::is_over));
        let job = &world.jobs[job];
        (job.status.to_owned(), job.failure.clone())
    }

    /// Waits until the training job has ended; returns its status.
    pub(crate) fn wait_until_trained(&self, job: &str) -> String {
        let world = self.wait(|world| world.trainings.get(job).is_some_and(training::Training::is_over));
        world.trainings[job].status.to_owned()
    }

    /// Waits until the endpoint is no longer being created.
    pub(crate) fn wait_until_settled(&self, endpoint: &str) -> String {
        let settled = |world: &World| {
            let endpoint = world.endpoints.get(endpoint);
            endpoint.is_some_and(|endpoint| endpoint.status != "Creating")
        };
        self.wait(settled).endpoints[endpoint].status.to_owned()
    }

    /// The messages of a job's log stream: the first whose name starts this way and which is, or is not, a data log.
    pub(crate) fn log_of_job(&self, job: &str, log: JobLog) -> Vec<String> {
        let world = self.shared.world();
        let mut streams = world.logs.streams_of_jobs(job);
        let stream = streams.find(|(name, _)| name.ends_with("/data-log") == (log == JobLog::Data));
        stream.map_or_else(Vec::new, |(_, stream)| stream.messages())
    }

    /// Requests and responses so far that do not match AWS's models. A test that does not take them fails.
    pub(crate) fn take_violations(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.violations.lock().unwrap())
    }

    fn set_pace(&self, pace: Pace) {
        self.shared.change(|world| world.pace = pace);
    }

    fn wait(&self, mut until: impl FnMut(&World) -> bool) -> MutexGuard<'_, World> {
        let world = self.shared.world();
        let patience = world::PATIENCE;
        let (world, waited) = self.shared.changed.wait_timeout_while(world, patience, |world| !until(world)).unwrap();
        assert!(!waited.timed_out(), "not reached after {patience:?}: {:#?}", world.jobs);
        world
    }
}

/// One of the two logs that each instance of a job writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobLog {
    Container,
    Data,
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        self.shared.change(World::close);
        let violations = self.take_violations();
        if !std::thread::panicking() {
            assert!(violations.is_empty(), "not as AWS describes it:\n{}", violations.join("\n"));
        }
    }
}

/// An archive with a handler that immediately echoes its input as JSON, for tests of everything but predictions.
pub(crate) fn echo_archive() -> Vec<u8> {
    let script = super::repository().join("tests/support/control_plane/echo.py");
    archive(&[("code/serve.py", &std::fs::read(script).unwrap())])
}

/// A `model.tar.gz` of these files.
pub(crate) fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let zipped = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut archive = tar::Builder::new(zipped);
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, *content).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap()
}

impl Shared {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    /// Changes the world, and notifies the threads that wait for a change.
    fn change<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        let result = change(&mut self.world());
        self.changed.notify_all();
        result
    }

    fn violation(&self, text: String) {
        self.violations.lock().unwrap().push(text);
    }

    /// `None` if the client has disconnected.
    fn serve(self: &Arc<Self>, mut client: &TcpStream) -> Option<()> {
        client.set_nodelay(true).ok()?;
        let mut requests = BufReader::new(client.try_clone().ok()?);
        loop {
            let head = Head::read(&mut requests)?;
            let body = head.read_body(&mut requests, Direction::Request)?.content;
            let Some(mut response) = self.response(&head, &body) else {
                // As if no server were running here.
                return client.shutdown(std::net::Shutdown::Both).ok();
            };
            let id = format!("{:08x}-0000-4000-8000-000000000000", self.requests.lock().unwrap().len());
            response.fields.push(("x-amzn-RequestId", id));
            let mut message = format!("HTTP/1.1 {} {}\r\n", response.status, reason(response.status));
            for (name, value) in &response.fields {
                message.extend([name, ": ", value, "\r\n"]);
            }
            let date = jiff::fmt::rfc2822::DateTimePrinter::new()
                .timestamp_to_rfc9110_string(&self.now().try_into().unwrap())
                .unwrap();
            let len = response.body.len().to_string();
            message.extend([
                "Date: ",
                &date,
                "
Content-Length: ",
                &len,
                "

",
            ]);
            let mut message = message.into_bytes();
            message.extend_from_slice(&response.body);
            client.write_all(&message).ok()?;
        }
    }

    /// The time of the control plane's own clock.
    fn now(&self) -> SystemTime {
        SystemTime::now() + self.failures.lock().unwrap().clock_ahead()
    }

    /// `None` for no response at all.
    fn response(self: &Arc<Self>, head: &Head, body: &[u8]) -> Option<Response> {
        let target = head.get("x-amz-target").and_then(|name| name.split_once('.'));
        let (service, operation) = match target {
            Some(("SageMaker", operation)) => ("sagemaker", operation),
            Some(("Logs_20140328", operation)) => ("logs", operation),
            _ if head.target().starts_with("/endpoints/") => ("sagemaker-runtime", "InvokeEndpoint"),
            _ => ("sagemaker", "nothing"),
        };
        let number = {
            let mut requests = self.requests.lock().unwrap();
            requests.push(Request {
                operation: operation.to_owned(),
                body: serde_json::from_slice(body).unwrap_or_default(),
                status: 0,
            });
            requests.len() - 1
        };
        let response = if service == "sagemaker-runtime" {
            self.response_runtime(head, body)
        } else {
            self.response_json(service, operation, head, body)
        };
        let status = response.as_ref().map_or(0, |response| response.status);
        self.requests.lock().unwrap()[number].status = status;
        response
    }

    fn response_json(self: &Arc<Self>, service: &str, operation: &str, head: &Head, body: &[u8]) -> Option<Response> {
        self.wait_while_asked_in_vain(operation)?;
        let before = self.failures.lock().unwrap().before(operation);
        let outcome = match before {
            Some(failure::Before::HangUp) => return None,
            Some(failure::Before::Refuse(refusal)) => Err(refusal),
            None => self.hear(service, operation, head, body),
        };
        let response = match &outcome {
            Ok(response) => {
                json!({"service": service, "operation": operation, "response": response})
            }
            Err(refusal) => json!({
                "service": service,
                "operation": operation,
                "error": refusal.code,
                "status": refusal.status,
                "body": refusal.body(),
            }),
        };
        self.check("responds", operation, &response);
        let fields = vec![("Content-Type", "application/x-amz-json-1.1".to_owned())];
        Some(match outcome {
            // Without an output, AWS sends an empty body.
            Ok(response) => Response {
                status: 200,
                fields,
                body: if response.is_null() { Vec::new() } else { response.to_string().into_bytes() },
            },
            Err(refusal) => Response { status: refusal.status, fields, body: refusal.body().to_string().into_bytes() },
        })
    }

    /// `None` if the test ends while the operation is held.
    fn wait_while_asked_in_vain(&self, operation: &str) -> Option<()> {
        let mut world = self.world();
        while self.failures.lock().unwrap().is_held(operation) {
            if world.closing {
                return None;
            }
            world = self.changed.wait(world).unwrap();
        }
        Some(())
    }

    fn hear(self: &Arc<Self>, service: &str, operation: &str, head: &Head, body: &[u8]) -> Result<Value, Refusal> {
        let login = self.signer(head, body, service)?;
        if head.method() != "POST"
            || head.target() != "/"
            || head.get("content-type") != Some("application/x-amz-json-1.1")
        {
            self.violation(format!("{operation}: {} {:?}", head.first, head.get("content-type")));
        }
        let Ok(request) = serde_json::from_slice::<Value>(body) else {
            self.violation(format!("{operation}: its body is not JSON"));
            return Err(Refusal::new("SerializationException", "Unable to parse the request."));
        };
        authorize(login, service, operation)?;
        self.perform(service, operation, &request)
    }

    /// The login that signed a request for `service`.
    fn signer(&self, head: &Head, body: &[u8], service: &str) -> Result<Login, Refusal> {
        let expected = Expected {
            scope: Scope { region: REGION, service },
            session: *self.session.lock().unwrap(),
            now: self.now(),
        };
        sigv4::signer(head, body, &expected)
    }

    fn perform(self: &Arc<Self>, service: &str, operation: &str, request: &Value) -> Result<Value, Refusal> {
        let question = json!({"service": service, "operation": operation, "request": request});
        let unsatisfied = self.check("asks", operation, &question);
        if !unsatisfied.is_empty() {
            return Err(Refusal::validation(&format!(
                "{} validation error{} detected: {}",
                unsatisfied.len(),
                if unsatisfied.len() == 1 { "" } else { "s" },
                unsatisfied.join("; ")
            )));
        }
        match operation {
            "CreateModel" => self.create_model(request),
            "DescribeModel" => self.describe_model(request),
            "DeleteModel" => self.delete_model(request),
            "ListModels" => self.list_models(request),
            "CreateTransformJob" => self.create_transform_job(request),
            "DescribeTransformJob" => self.describe_transform_job(request),
            "ListTransformJobs" => self.list_transform_jobs(request),
            "StopTransformJob" => self.stop_transform_job(request),
            "CreateTrainingJob" => self.create_training_job(request),
            "DescribeTrainingJob" => self.describe_training_job(request),
            "ListTrainingJobs" => self.list_training_jobs(request),
            "StopTrainingJob" => self.stop_training_job(request),
            "CreateEndpointConfig" => self.create_endpoint_config(request),
            "DescribeEndpointConfig" => self.describe_endpoint_config(request),
            "DeleteEndpointConfig" => self.delete_endpoint_config(request),
            "ListEndpointConfigs" => self.list_endpoint_configs(request),
            "CreateEndpoint" => self.create_endpoint(request),
            "DescribeEndpoint" => self.describe_endpoint(request),
            "DeleteEndpoint" => self.delete_endpoint(request),
            "ListEndpoints" => self.list_endpoints(request),
            "AddTags" => self.add_tags(request),
            "ListTags" => self.list_tags(request),
            "DescribeLogStreams" => self.describe_log_streams(request),
            "GetLogEvents" => self.get_log_events(request),
            "FilterLogEvents" => self.filter_log_events(request),
            _ => {
                self.violation(format!("{operation}: the control plane of the tests knows none"));
                Err(Refusal::new("UnknownOperationException", ""))
            }
        }
    }

    /// Records violations of AWS's models. Returns what is wrong with values that a person may have entered.
    fn check(&self, side: &str, operation: &str, question: &Value) -> Vec<String> {
        let mut unsatisfied = Vec::new();
        for complaint in Validator::shared().complaints(question) {
            if complaint.kind == ComplaintKind::Value && side == "asks" {
                unsatisfied.push(complaint.message);
            } else {
                self.violation(format!("{operation} {side}: {}", complaint.message));
            }
        }
        unsatisfied
    }
}

/// Checks whether a login has a permission, based on its permissions in SeaweedFS.
fn authorize(login: Login, service: &str, operation: &str) -> Result<(), Refusal> {
    let needed = match operation {
        name if name.starts_with("Describe") || name.starts_with("Get") => "Read",
        name if name.starts_with("List") || name.starts_with("Filter") => "List",
        "InvokeEndpoint" => "Read",
        _ => "Write",
    };
    if login.actions.contains(&needed) {
        return Ok(());
    }
    Err(Refusal::denied(login.profile, service, operation))
}

impl Refusal {
    fn new(code: &str, message: &str) -> Self {
        Self { status: 400, code: code.to_owned(), message: message.to_owned(), more: Map::new() }
    }

    fn forbidden(code: &str, message: &str) -> Self {
        Self { status: 403, ..Self::new(code, message) }
    }

    fn validation(message: &str) -> Self {
        Self::new("ValidationException", message)
    }

    fn denied(user: &str, service: &str, operation: &str) -> Self {
        let service = service.trim_end_matches("-runtime");
        Self::new(
            "AccessDeniedException",
            &format!(
                "User: arn:aws:iam::{ACCOUNT}:user/{user} is not authorized to perform: {service}:{operation} on \
                 resource: arn:aws:{service}:{REGION}:{ACCOUNT}:* because no identity-based policy allows the \
                 {service}:{operation} action"
            ),
        )
    }

    fn body(&self) -> Value {
        let mut body = self.more.clone();
        // SageMaker's model capitalizes the name, and nothing else.
        let name = match self.code.as_str() {
            "ResourceNotFound" | "ResourceInUse" | "ResourceLimitExceeded" => "Message",
            _ => "message",
        };
        body.insert("__type".to_owned(), self.code.clone().into());
        body.insert(name.to_owned(), self.message.clone().into());
        body.into()
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        403 => "Forbidden",
        413 => "Request Entity Too Large",
        424 => "Failed Dependency",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Unknown",
    }
}

fn arn(kind: &str, name: &str) -> String {
    // AWS writes them in lower case.
    format!("arn:aws:sagemaker:{REGION}:{ACCOUNT}:{kind}/{}", name.to_ascii_lowercase())
}

/// A required member: the request was validated.
fn text<'v>(request: &'v Value, name: &str) -> &'v str {
    request[name].as_str().unwrap_or_default()
}

/// Seconds since 1970, with milliseconds.
fn seconds(time: SystemTime) -> f64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    since.as_millis() as f64 / 1000.0
}
