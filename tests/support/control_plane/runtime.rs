//! The runtime: requests to endpoints, forwarded to their containers.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::failure::Before;
use super::{ACCOUNT, REGION, Refusal, Response, Shared, authorize, text};
use crate::support::http::{Head, Transfer};

/// The maximum body size.
const LIMIT_BYTES: usize = 6_291_456;
/// The time limit of a model.
const PATIENCE: Duration = Duration::from_mins(1);
const OPERATION: &str = "InvokeEndpoint";

impl Shared {
    /// `None` for no response at all.
    pub(super) fn response_runtime(self: &Arc<Self>, head: &Head, body: &[u8]) -> Option<Response> {
        let before = self.failures.lock().unwrap().before(OPERATION);
        let outcome = match before {
            Some(Before::HangUp) => return None,
            Some(Before::Refuse(refusal)) => Err(refusal),
            None => self.invoke_endpoint(head, body),
        };
        let response = outcome.unwrap_or_else(|refusal| {
            let mut body = refusal.body();
            body["Message"] = body["message"].take();
            let body = body.as_object_mut().unwrap();
            body.remove("message");
            body.remove("__type");
            // From the server in front, which does not know models.
            if refusal.status != 413 {
                let error = json!({
                    "service": "sagemaker-runtime",
                    "operation": OPERATION,
                    "error": refusal.code,
                    "status": refusal.status,
                    "body": body,
                });
                self.check("responds", OPERATION, &error);
            }
            Response {
                status: refusal.status,
                fields: vec![
                    ("Content-Type", "application/json".to_owned()),
                    (
                        "x-amzn-ErrorType",
                        format!("{}:http://internal.amazon.com/coral/com.amazon.coral.validate/", refusal.code),
                    ),
                ],
                body: Value::Object(body.clone()).to_string().into_bytes(),
            }
        });
        if response.status == 200 {
            let description = described("response", head, &response.fields, response.body.len());
            self.check("responds", OPERATION, &description);
        }
        Some(response)
    }

    fn invoke_endpoint(&self, head: &Head, body: &[u8]) -> Result<Response, Refusal> {
        let login = self.signer(head, body, "sagemaker")?;
        authorize(login, "sagemaker", OPERATION)?;
        if body.len() > LIMIT_BYTES {
            return Err(Refusal {
                status: 413,
                ..Refusal::new("413", &format!("HTTP content length exceeded {LIMIT_BYTES} bytes."))
            });
        }
        let fields: Vec<_> = head.fields.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        let unsatisfied = self.check("asks", OPERATION, &described("request", head, &fields, body.len()));
        if !unsatisfied.is_empty() {
            return Err(Refusal::new("ValidationError", &unsatisfied.join("; ")));
        }
        let name = head.target().split('/').nth(2).unwrap_or_default();
        let (container, variant) = {
            let world = self.world();
            let endpoint = world.endpoints.get(name).and_then(|endpoint| {
                Some((Arc::clone(endpoint.container.as_ref()?), text(&endpoint.variants[0], "VariantName").to_owned()))
            });
            endpoint.ok_or_else(|| {
                Refusal::new("ValidationError", &format!("Endpoint {name} of account {ACCOUNT} not found."))
            })?
        };
        let passed: Vec<_> =
            ["Content-Type", "Accept"].into_iter().filter_map(|name| Some((name, head.get(name)?))).collect();
        match container.invoke(&passed, body, Transfer::Whole, PATIENCE) {
            Ok(response) if response.status == 200 => Ok(Response {
                status: 200,
                fields: vec![
                    ("Content-Type", response.head.get("content-type").unwrap_or("application/json").to_owned()),
                    ("x-Amzn-Invoked-Production-Variant", variant),
                ],
                body: response.content,
            }),
            Ok(response) => Err(model_error(name, response.status, &String::from_utf8_lossy(&response.content))),
            Err(_) => Err(model_error(
                name,
                0,
                "Your invocation timed out while waiting for a response from container primary. Review the latency \
                 metrics for each container in Amazon CloudWatch, resolve the issue, and try again.",
            )),
        }
    }
}

/// AWS's error for a model that did not respond; status 0 stands for no response at all.
fn model_error(endpoint: &str, status: u16, message: &str) -> Refusal {
    let group = format!("/aws/sagemaker/Endpoints/{endpoint}");
    // Longer ones are truncated.
    let message: String = message.chars().take(1000).collect();
    let side = match status {
        400..500 => "client",
        _ => "server",
    };
    let mut refusal = Refusal {
        status: 424,
        ..Refusal::new(
            "ModelError",
            &format!(
                "Received {side} error ({status}) from primary with message \"{message}\". See \
                 https://{REGION}.console.aws.amazon.com/cloudwatch/home?region={REGION}#logEventViewer:group={group} in account {ACCOUNT} for more \
                 information."
            ),
        )
    };
    let log = format!("arn:aws:logs:{REGION}:{ACCOUNT}:log-group:{group}");
    refusal.more.extend([
        ("OriginalStatusCode".to_owned(), status.into()),
        ("OriginalMessage".to_owned(), message.into()),
        ("LogStreamArn".to_owned(), log.into()),
    ]);
    refusal
}

/// A description for the validator.
fn described(side: &str, head: &Head, fields: &[(&str, String)], body_len: usize) -> Value {
    let headers: serde_json::Map<String, Value> =
        fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone().into())).collect();
    json!({
        "service": "sagemaker-runtime", "operation": OPERATION,
        side: {"path": head.target(), "headers": headers, "body_len": body_len},
    })
}
