//! S3 and SageMaker for the rest of the program: blocking, cancelable calls with errors for people.
//!
//! The only user of the AWS crates and of their asynchronous runtime. No secret leaves it, and it never asks the
//! metadata service of a virtual machine. Knows nothing about images.

mod connection;
mod control_plane;
mod credentials;
mod error;
mod network;
mod objects;
mod sagemaker;
mod setup;
pub mod upload;
mod writing;

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::domain::{AwsSetup, S3Access};
use crate::sagemaker::spec::transform::SageMakerAccess;
use connection::Connection;
use network::Network;

pub use connection::S3;
pub use error::{AwsError, AwsErrorKind, if_there};
pub use network::RetryPolicy;
pub use objects::{BucketInfo, ListRequest, ListedPage, Listing, ObjectInfo};
pub use sagemaker::{MAX_INVOCATION_BYTES, ResourceKind, SageMaker};
pub use writing::{Content, NewObject, SentPart, Sha256Digest, StoredObject, UnfinishedUpload, WriteCondition};

/// One runtime and one HTTP client for all AWS requests. Clones share them. Nothing starts before the first request.
#[derive(Clone)]
pub struct Aws(Arc<Inner>);

struct Inner {
    network: Arc<Network>,
    connections: Mutex<HashMap<S3Access, Arc<Connection>>>,
}

impl Default for Aws {
    fn default() -> Self {
        Self::new()
    }
}

impl Aws {
    pub fn new() -> Self {
        Self::with_retry_policy(RetryPolicy::default())
    }

    pub fn with_retry_policy(retry_policy: RetryPolicy) -> Self {
        Self(Arc::new(Inner { network: Arc::new(Network::new(retry_policy)), connections: Mutex::default() }))
    }

    /// The sign-in options in the user's AWS configuration. Reads its files; sends no request.
    pub fn setup(&self) -> Result<AwsSetup, AwsError> {
        self.0.network.wait(None, setup::read())
    }

    /// S3 with this access. Sends no request yet; all handles with the same access share connections and credentials.
    pub fn s3(&self, access: &S3Access) -> S3 {
        S3::new(self.connection(access))
    }

    /// SageMaker, its endpoints and its logs, with the same identity as S3. Sends no request yet.
    pub fn sagemaker(&self, access: &SageMakerAccess) -> SageMaker {
        SageMaker::new(self.connection(&access.into()))
    }

    fn connection(&self, access: &S3Access) -> Arc<Connection> {
        let mut connections = self.0.connections.lock();
        let connection = connections.entry(access.clone()).or_insert_with(|| {
            let network = Arc::clone(&self.0.network);
            Arc::new(Connection::new(network, access.clone()))
        });
        Arc::clone(connection)
    }
}
