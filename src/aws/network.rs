//! The runtime and the HTTP client, and how threads wait for them.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;

use aws_smithy_http_client::proxy::ProxyConfig;
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore, rustls_provider::CryptoMode};
use aws_smithy_http_client::{Builder, Connector};
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::{Notify, Semaphore, SemaphorePermit};

use super::error::{AwsError, AwsErrorKind};
use crate::tasks::TaskControl;

/// Maximum number of requests in flight, over all tasks: enough to saturate a fast network with small objects, few
/// enough for the open-file limit of a process.
const MAX_REQUESTS: usize = 64;
/// Threads that move bytes. Callers wait for responses on their own threads.
const THREADS: usize = 2;

/// Timeouts and retries of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The time until the first byte of a response.
    pub response_timeout: Duration,
    /// The same for uploads, including the time to send the content over a slow network.
    pub send_timeout: Duration,
    /// How long a download may be slower than one byte per second.
    pub stall_timeout: Duration,
    /// The longest wait before the first retry; doubles with each retry, and a random fraction of it is used.
    pub first_backoff: Duration,
    /// The number of attempts, including the first.
    pub attempts: u32,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            response_timeout: Duration::from_secs(20),
            // 8 MiB at 30 KB per second.
            send_timeout: Duration::from_mins(5),
            stall_timeout: Duration::from_secs(10),
            first_backoff: Duration::from_secs(1),
            attempts: 4,
        }
    }
}

pub struct Network {
    pub retry_policy: RetryPolicy,
    started: OnceLock<Result<Started, AwsError>>,
    requests: Semaphore,
}

struct Started {
    /// Taken at the end, so that the program does not wait for a hanging connection.
    runtime: Option<Runtime>,
    http: SharedHttpClient,
}

impl Network {
    pub fn new(retry_policy: RetryPolicy) -> Self {
        Self { retry_policy, started: OnceLock::new(), requests: Semaphore::new(MAX_REQUESTS) }
    }

    fn started(&self) -> Result<&Started, AwsError> {
        self.started.get_or_init(Started::new).as_ref().map_err(Clone::clone)
    }

    pub fn handle(&self) -> Result<Handle, AwsError> {
        match &self.started()?.runtime {
            Some(runtime) => Ok(runtime.handle().clone()),
            None => Err(AwsError::cancelled()),
        }
    }

    pub fn http(&self) -> Result<SharedHttpClient, AwsError> {
        Ok(self.started()?.http.clone())
    }

    /// Waits for a free slot among the requests in flight.
    pub async fn request(&self) -> Result<SemaphorePermit<'_>, AwsError> {
        // The semaphore is never closed.
        self.requests.acquire().await.map_err(|_| AwsError::cancelled())
    }

    /// Makes this thread wait for `work`, but no longer than until `control` is canceled. Not for the threads of the
    /// runtime itself.
    pub fn wait<T>(
        &self,
        control: Option<&TaskControl>,
        work: impl Future<Output = Result<T, AwsError>>,
    ) -> Result<T, AwsError> {
        let handle = self.handle()?;
        let Some(control) = control else {
            return handle.block_on(work);
        };
        let cancelled = Arc::new(Notify::new());
        let told = Arc::clone(&cancelled);
        let _hook = control.on_cancel(move || told.notify_one());
        handle.block_on(async {
            let mut cancelled = pin!(cancelled.notified());
            let mut work = pin!(work);
            poll_fn(|context| {
                if cancelled.as_mut().poll(context).is_ready() {
                    return Poll::Ready(Err(AwsError::cancelled()));
                }
                work.as_mut().poll(context)
            })
            .await
        })
    }
}

impl Started {
    fn new() -> Result<Self, AwsError> {
        let failed = |error: &dyn std::fmt::Display| {
            AwsError::new(AwsErrorKind::Local, format!("Could not use the network: {error}"))
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("aws")
            .enable_all()
            .build()
            .map_err(|error| failed(&error))?;
        let tls = tls_context()?;
        let http = Builder::new().build_with_connector_fn(move |settings, components| {
            let mut connector = Connector::builder();
            connector.set_connector_settings(settings.cloned());
            connector.set_sleep_impl(components.and_then(RuntimeComponents::sleep_impl));
            connector
                .proxy_config(ProxyConfig::from_env())
                .tls_provider(Provider::Rustls(CryptoMode::Ring))
                .tls_context(tls.clone())
                .build()
        });
        Ok(Self { runtime: Some(runtime), http })
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Trusts what the system trusts, and the certificates in `AWS_CA_BUNDLE`, as the AWS tools do behind a corporate
/// proxy.
fn tls_context() -> Result<TlsContext, AwsError> {
    let mut trusted = TrustStore::default();
    if let Some(path) = std::env::var_os("AWS_CA_BUNDLE").filter(|path| !path.is_empty()) {
        let certificates = std::fs::read(&path).map_err(|error| {
            let path = path.display();
            AwsError::new(
                AwsErrorKind::Local,
                format!(
                    "Could not read the certificates of AWS_CA_BUNDLE ({error}); correct or remove the variable: \
                    {path}"
                ),
            )
        })?;
        trusted = trusted.with_pem_certificate(certificates);
    }
    TlsContext::builder()
        .with_trust_store(trusted)
        .build()
        .map_err(|error| AwsError::new(AwsErrorKind::Local, format!("Could not set up TLS: {error}")))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::tasks::ProgressUnit;

    #[test]
    fn wait_ends_on_cancel() {
        let network = Arc::new(Network::new(RetryPolicy::default()));
        let control = TaskControl::new(ProgressUnit::Images);
        let (owner, waiting) = (control.clone(), Arc::clone(&network));
        let waiter =
            std::thread::spawn(move || waiting.wait(Some(&control), std::future::pending::<Result<(), AwsError>>()));
        owner.cancel();
        let error = waiter.join().unwrap().unwrap_err();
        assert_eq!(error.kind, AwsErrorKind::Cancelled);
        let late = network.wait(Some(&owner), std::future::pending::<Result<(), AwsError>>());
        assert_eq!(late.unwrap_err().kind, AwsErrorKind::Cancelled);
        let done = network.wait(None, async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            Ok(7)
        });
        assert_eq!(done.unwrap(), 7);
    }
}
