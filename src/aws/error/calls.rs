//! Errors of SageMaker and CloudWatch Logs, which use codes and texts where S3 uses HTTP statuses.

use super::{AwsError, AwsErrorKind, Caller, Operation, Response, denied, not_s3, server_message, timeout};

/// The error of a rejected call, and what to do about it.
pub(super) fn refused(response: &Response<'_>, operation: &Operation<'_>, caller: &Caller) -> AwsError {
    use AwsErrorKind as Kind;
    let server = caller.server();
    let said = server_message(response, caller);
    let message = response.message.unwrap_or_default();
    let error = |kind, why: String| AwsError::new(kind, format!("Could not {operation}: {why}"));
    match (response.code.unwrap_or_default(), response.status) {
        ("AccessDeniedException" | "AccessDenied" | "UnauthorizedOperation", _) => {
            denied_action(message, &said, operation, caller)
        }
        ("OptInRequired" | "SubscriptionRequiredException", _) => error(
            Kind::AccessDenied,
            format!(
                "{} is not enabled for the account; an administrator can enable it in the AWS console{said}",
                operation.service()
            ),
        ),
        ("ResourceNotFound" | "ResourceNotFoundException", _) => missing(&said, operation, caller),
        ("ValidationException" | "ValidationError" | "InvalidParameterException", _) if means_missing(message) => {
            missing(&said, operation, caller)
        }
        ("ResourceInUse" | "ConflictException" | "ResourceConflictException", _) => in_use(&said, operation),
        ("ValidationException", _) if message.contains("already exist") => in_use(&said, operation),
        ("ResourceLimitExceeded" | "LimitExceededException" | "ServiceQuotaExceededException", _) => {
            error(Kind::Limit, quota_text(&said, caller))
        }
        (
            "ThrottlingException"
            | "Throttling"
            | "ThrottledException"
            | "TooManyRequestsException"
            | "RequestLimitExceeded"
            | "SlowDown",
            _,
        )
        | (_, 429) => error(Kind::Throttled, format!("{server} limits the request rate{said}; wait, then try again")),
        ("ValidationException" | "ValidationError" | "InvalidParameterException" | "SerializationException", _) => {
            error(Kind::Invalid, format!("{server} rejected the request{said}; correct it, then try again"))
        }
        ("UnknownOperationException" | "InvalidAction", _) | (_, 404 | 501) => error(
            Kind::Unsupported,
            format!(
                "{server} does not support this operation{said}; check the endpoint URL, and whether the region has {}",
                operation.service()
            ),
        ),
        (_, 413) => error(Kind::Invalid, format!("the request is larger than {} accepts{said}", operation.service())),
        (_, 408 | 504) => timeout(operation, caller),
        (_, 407) => error(
            Kind::NotS3,
            "the proxy requires a user name and password; add them to HTTPS_PROXY, or ask its administrator".to_owned(),
        ),
        ("", status @ ..500) => not_s3(status, operation, caller),
        (_, 500..) => error(Kind::Server, format!("{server} failed{said}; wait, then try again")),
        _ => error(Kind::Other, format!("{server} rejected the request{said}")),
    }
}

fn quota_text(said: &str, caller: &Caller) -> String {
    format!(
        "a quota of the account does not allow it{said}; request other or fewer instances (or less memory), wait until \
         others have ended, or request a higher quota: \
         https://{}.console.aws.amazon.com/servicequotas/home/services/sagemaker/quotas",
        caller.region
    )
}

/// SageMaker reports missing resources with the code of an invalid request: “Could not find model "…"”, “Endpoint … not
/// found”.
fn means_missing(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    ["could not find", "not found", "does not exist", "requested resource"].iter().any(|words| message.contains(words))
}

fn missing(said: &str, operation: &Operation<'_>, caller: &Caller) -> AwsError {
    AwsError::new(
        AwsErrorKind::NotFound,
        format!(
            "Could not {operation}: it does not exist in region {}{said}; check the name and the region",
            caller.region
        ),
    )
}

fn in_use(said: &str, operation: &Operation<'_>) -> AwsError {
    AwsError::new(
        AwsErrorKind::InUse,
        format!(
            "Could not {operation}: the name already exists or is in use{said}; choose another name, or wait until \
             it is free"
        ),
    )
}

/// A denied permission as AWS names it, which can differ from the name of the operation: `iam:PassRole`.
fn denied_action(message: &str, said: &str, operation: &Operation<'_>, caller: &Caller) -> AwsError {
    match (*operation, named_action(message)) {
        (Operation::Call { service, what, .. }, Some((namespace, operation))) => {
            let operation = Operation::Call { service, namespace, operation, what };
            denied(false, said, &operation, caller)
        }
        _ => denied(false, said, operation, caller),
    }
}

/// “User: … is not authorized to perform: iam:PassRole on resource: …”
fn named_action(message: &str) -> Option<(&str, &str)> {
    let (_, rest) = message.split_once("authorized to perform: ")?;
    let action = rest.split_whitespace().next()?;
    action.trim_end_matches([',', '.']).split_once(':')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Credentials;

    fn said_by(status: u16, code: &str, message: &str) -> AwsError {
        let response = Response {
            status,
            code: (!code.is_empty()).then_some(code),
            message: (!message.is_empty()).then_some(message),
            date: None,
        };
        let operation = Operation::Call {
            service: "SageMaker",
            namespace: "sagemaker",
            operation: "CreateTransformJob",
            what: "start job cats",
        };
        let caller = Caller {
            credentials: Credentials::Profile("work".to_owned()),
            endpoint: None,
            region: "eu-west-1".to_owned(),
            renewal: Some("aws sso login --profile work".to_owned()),
        };
        crate::aws::error::response_error(&response, &operation, &caller)
    }

    /// Status, code and message of a response; the resulting kind and a part of the message.
    const CASES: &[(u16, &str, &str, AwsErrorKind, &str)] = &[
        (
            400,
            "ValidationException",
            "1 validation error detected: Value 'x_y' at 'transformJobName' failed to satisfy constraint",
            AwsErrorKind::Invalid,
            "correct it, then try again",
        ),
        (
            400,
            "ValidationException",
            "Could not find model \"arn:aws:sagemaker:eu-west-1:1:model/m\".",
            AwsErrorKind::NotFound,
            "check the name and the region",
        ),
        (
            400,
            "ValidationException",
            "Cannot create already existing model \"arn:aws:sagemaker:eu-west-1:1:model/m\".",
            AwsErrorKind::InUse,
            "choose another name",
        ),
        (
            400,
            "ResourceLimitExceeded",
            "The account-level service limit 'ml.p3.2xlarge for transform job usage' is 0 Instances",
            AwsErrorKind::Limit,
            "https://eu-west-1.console.aws.amazon.com/servicequotas/",
        ),
        (
            400,
            "AccessDeniedException",
            "User: arn:aws:iam::1:user/a is not authorized to perform: iam:PassRole on resource: arn:aws:iam::1:role/r",
            AwsErrorKind::AccessDenied,
            "profile work lacks the permission iam:PassRole;",
        ),
        (
            400,
            "AccessDeniedException",
            "",
            AwsErrorKind::AccessDenied,
            "profile work lacks the permission sagemaker:CreateTransformJob;",
        ),
        (400, "ThrottlingException", "Rate exceeded", AwsErrorKind::Throttled, "wait, then try again"),
        (400, "ResourceNotFound", "Requested resource not found.", AwsErrorKind::NotFound, "in region eu-west-1"),
        (400, "ResourceInUse", "Job name must be unique", AwsErrorKind::InUse, "choose another name"),
        (
            400,
            "ExpiredTokenException",
            "The security token included in the request is expired",
            AwsErrorKind::ExpiredCredentials,
            "aws sso login --profile work",
        ),
        (
            400,
            "InvalidSignatureException",
            "Signature expired: 20261121T100000Z is now earlier than 20261121T110000Z",
            AwsErrorKind::ClockSkew,
            "clock of this computer",
        ),
        (
            403,
            "InvalidSignatureException",
            "Credential should be scoped to a valid region, not 'eu-west-1'.",
            AwsErrorKind::WrongRegion,
            "expects a different region than eu-west-1",
        ),
        (
            403,
            "MissingAuthenticationToken",
            "Missing Authentication Token",
            AwsErrorKind::Other,
            "rejected the request",
        ),
        (
            400,
            "UnrecognizedClientException",
            "The security token included in the request is invalid.",
            AwsErrorKind::BadCredentials,
            "does not recognize the access key",
        ),
        (500, "InternalFailure", "", AwsErrorKind::Server, "try again"),
        (404, "UnknownOperationException", "", AwsErrorKind::Unsupported, "whether the region has SageMaker"),
        (502, "", "", AwsErrorKind::Server, "failed"),
        (400, "", "", AwsErrorKind::NotS3, "is not SageMaker"),
        (407, "", "", AwsErrorKind::NotS3, "proxy"),
    ];

    #[test]
    fn refusals_have_aws_message_and_remedy() {
        for &(status, code, message, kind, words) in CASES {
            let error = said_by(status, code, message);
            assert_eq!(error.kind, kind, "{code}: {error}");
            assert!(
                error.message.starts_with("Could not start job cats: ") || kind == AwsErrorKind::ExpiredCredentials,
                "{error}"
            );
            assert!(error.message.contains(words), "{code}: {error}");
            assert!(error.message.contains(code), "{code}: {error}");
            assert!(error.message.contains(message), "{error}");
        }
    }

    #[test]
    fn canonical_request_is_not_shown() {
        let message = "The request signature we calculated does not match the signature you provided. The Canonical \
            String for this request should have been\n\
            'POST\n\
            /\n\
            \n\
            x-amz-security-token:a-token";
        for message in [message.to_owned(), message.replace("The Canonical", "\n\nThe Canonical")] {
            let error = said_by(403, "InvalidSignatureException", &message);
            assert!(error.message.contains("you provided.)"), "{error}");
            assert!(!error.message.contains("a-token"), "{error}");
        }
    }
}
