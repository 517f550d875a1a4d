//! The dialog for finding a location in S3.

pub(crate) mod sign_in;
pub(crate) mod tree;

use crate::domain::{AwsSetup, Identity, S3Access, S3Address, S3Layout};
use crate::window::state::{Failure, FolderListing, S3FolderPage, S3Tree, TaskId, Ticket};

#[derive(Debug, Clone, PartialEq)]
pub enum S3Command {
    /// Changes the credentials and the server of the S3 dialog.
    SetAccess(S3Access),
    /// Lists all buckets that this access may list.
    ListBuckets,
    /// Opens the tree of buckets down to this address.
    BrowseTo(S3Address),
    SetFolderOpen(S3Address, bool),
    /// Lists the next pages of a folder, or restarts after a failure.
    ListMore(S3Address),
    /// Reads the credentials again and requests the identity.
    SignIn(S3Access),
}

#[derive(Debug, Clone)]
pub enum S3Effect {
    ReadSetup,
    /// Read the credentials again and request the identity.
    SignIn {
        access: S3Access,
        ticket: Ticket,
    },
    ListBuckets {
        access: S3Access,
        ticket: Ticket,
    },
    /// List the objects and folders in a folder, several pages per request.
    ListFolder {
        listing: FolderListing,
        ticket: Ticket,
    },
}

#[derive(Debug)]
pub enum S3Event {
    SetupRead(Result<AwsSetup, String>),
    /// The signed-in identity, or why there is none.
    SignedIn {
        access: S3Access,
        task: TaskId,
        result: Result<Identity, Failure>,
        /// The command that renews the sign-in, if the user has to run one.
        renewal: Option<String>,
    },
    BucketsListed(TaskId, Result<Vec<String>, Failure>),
    /// Some of the objects and folders in a folder of a bucket.
    FolderListed {
        folder: S3Address,
        task: TaskId,
        page: S3FolderPage,
    },
    /// The listing of a folder has paused or ended, with the token of the next page if there is one.
    FolderEnded {
        folder: S3Address,
        task: TaskId,
        result: Result<Option<String>, Failure>,
    },
}

#[derive(Debug, Default)]
pub struct S3Picker {
    /// The credentials and the server that the tree was listed with.
    pub access: S3Access,
    /// The initial values of the dialog's fields.
    pub start: S3Start,
    /// The AWS configuration; `None` while it is being read.
    pub setup: Option<Result<AwsSetup, String>>,
    pub tree: S3Tree,
}

/// The initial values of the dialog's fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct S3Start {
    /// A counter that increases when the fields have to adopt these values.
    pub serial: u64,
    pub address: String,
    pub layout: S3Layout,
}

impl S3Picker {
    /// The AWS configuration, once read.
    pub fn known_setup(&self) -> Option<&AwsSetup> {
        self.setup.as_ref()?.as_ref().ok()
    }

    /// The folders from the bucket down to this one; all of them must be open for it to be visible.
    pub(crate) fn way_to(address: &S3Address) -> Vec<S3Address> {
        let mut way = vec![if address.is_folder() {
            address.clone()
        } else {
            address.parent().unwrap_or_else(|| S3Address::new(&address.bucket, ""))
        }];
        while let Some(parent) = way.last().and_then(S3Address::parent) {
            way.push(parent);
        }
        way.reverse();
        way
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_to_an_object_lists_its_folders() {
        for (address, expected) in [
            ("s3://abc/", vec!["s3://abc/"]),
            ("s3://abc/x.jpg", vec!["s3://abc/"]),
            ("s3://abc/a/b/", vec!["s3://abc/", "s3://abc/a/", "s3://abc/a/b/"]),
            ("s3://abc/a/b", vec!["s3://abc/", "s3://abc/a/"]),
        ] {
            let address = S3Address::parse(address).unwrap();
            let way: Vec<String> = S3Picker::way_to(&address).iter().map(ToString::to_string).collect();
            assert_eq!(way, expected);
        }
    }
}
