//! The dialog for finding a location in S3, and the identities signed in there with the expiry of their credentials.

pub(crate) mod tree;

use std::collections::HashMap;

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

/// How long before its expiry a sign-in is renewed, or a warning shown if renewal does not help, in milliseconds.
const SIGN_IN_WARNING_MS: i64 = 10 * 60 * 1000;

/// The sign-in per way to access S3.
#[derive(Debug, Default)]
pub struct SignIns(HashMap<S3Access, SignIn>);

#[derive(Debug, Default)]
pub struct SignIn {
    /// The last response; it stays while a new one is requested.
    pub identity: Option<Identity>,
    /// Why the last request failed.
    pub failure: Option<Failure>,
    /// The command that renews the sign-in, if the user has to run one.
    pub renewal: Option<String>,
    asking: Option<Asking>,
    /// The expiry that was known at the last renewal attempt.
    renewed_at: Option<i64>,
}

#[derive(Debug)]
struct Asking {
    task: TaskId,
    /// The last known expiry.
    end_ms: Option<i64>,
}

impl SignIns {
    pub fn get(&self, access: &S3Access) -> Option<&SignIn> {
        self.0.get(access)
    }

    pub(crate) fn begin(&mut self, access: &S3Access, task: TaskId) {
        let sign_in = self.0.entry(access.clone()).or_default();
        sign_in.asking = Some(Asking { task, end_ms: sign_in.ends_ms() });
    }

    /// Stores a response; drops a late one to an older request.
    pub(crate) fn finish(
        &mut self,
        access: &S3Access,
        task: TaskId,
        result: Result<Identity, Failure>,
        renewal: Option<String>,
    ) {
        let Some(sign_in) = self.0.get_mut(access) else {
            return;
        };
        let Some(asked) = sign_in.asking.take_if(|asking| asking.task == task) else {
            return;
        };
        sign_in.renewed_at = asked.end_ms;
        sign_in.renewal = renewal;
        match result {
            Ok(identity) => {
                sign_in.identity = Some(identity);
                sign_in.failure = None;
            }
            Err(Failure::Cancelled) if sign_in.identity.is_some() => {}
            Err(failure) => sign_in.failure = Some(failure),
        }
    }
}

impl SignIn {
    pub fn is_asking(&self) -> bool {
        self.asking.is_some()
    }

    /// The expiry of the credentials, in milliseconds since 1970-01-01 UTC; `None` if they have none or it is unknown.
    pub fn ends_ms(&self) -> Option<i64> {
        self.identity.as_ref()?.expires_ms
    }

    /// Whether it is about to expire and should be renewed now. True once per expiry.
    pub fn wants_renewal(&self, now_ms: i64) -> bool {
        let is_near = |end: i64| end - now_ms < SIGN_IN_WARNING_MS;
        !self.is_asking() && self.ends_ms().is_some_and(|end| is_near(end) && self.renewed_at != Some(end))
    }

    /// Milliseconds until it expires, if that is soon and renewal did not help; negative after the expiry.
    pub fn ending_ms(&self, now_ms: i64) -> Option<i64> {
        let left = self.ends_ms()? - now_ms;
        (left < SIGN_IN_WARNING_MS && self.renewed_at == self.ends_ms()).then_some(left)
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

    const MINUTE: i64 = 60 * 1000;

    #[test]
    fn expiring_sign_in_is_renewed_once_then_warned() {
        let now = 1_000 * MINUTE;
        let access = S3Access::default();
        let mut all = SignIns::default();
        let mut number = 0;
        let mut response = |all: &mut SignIns, expires_ms| {
            number += 1;
            all.begin(&access, TaskId(number));
            let late = Identity::unasked("late", None);
            all.finish(&access, TaskId(0), Ok(late), None);
            assert!(!all.0[&access].wants_renewal(now), "it is being asked");
            let identity = Identity::unasked("somebody", expires_ms);
            all.finish(&access, TaskId(number), Ok(identity), None);
        };
        response(&mut all, None);
        assert!(!all.0[&access].wants_renewal(now));
        response(&mut all, Some(now + 11 * MINUTE));
        assert!(!all.0[&access].wants_renewal(now));
        let later = now + 2 * MINUTE;
        assert!(all.0[&access].wants_renewal(later));
        assert_eq!(all.0[&access].ending_ms(later), None, "it may be renewed");
        response(&mut all, Some(now + 11 * MINUTE));
        assert!(!all.0[&access].wants_renewal(later));
        assert_eq!(all.0[&access].ending_ms(later), Some(9 * MINUTE));
        let too_late = now + 12 * MINUTE;
        assert_eq!(all.0[&access].ending_ms(too_late), Some(-MINUTE));
        response(&mut all, Some(now + 60 * MINUTE));
        assert_eq!(all.0[&access].ending_ms(later), None);
    }
}
