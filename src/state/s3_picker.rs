//! The dialog that finds a place in S3.

use super::S3Tree;
use crate::domain::{AwsSetup, S3Access, S3Address, S3Layout};

#[derive(Debug, Default)]
pub struct S3Picker {
    /// As whom, and where; the tree was listed so.
    pub access: S3Access,
    /// What the fields of the dialog begin with.
    pub start: S3Start,
    /// The AWS configuration; `None` while it is being read.
    pub setup: Option<Result<AwsSetup, String>>,
    pub tree: S3Tree,
}

/// What the fields of the dialog begin with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct S3Start {
    /// Counts up whenever the fields are to be taken over.
    pub serial: u64,
    pub address: String,
    pub layout: S3Layout,
}

impl S3Picker {
    /// What the AWS configuration says, once it was read.
    pub fn known_setup(&self) -> Option<&AwsSetup> {
        self.setup.as_ref()?.as_ref().ok()
    }

    /// From a bucket down to this folder: everything that must be open for it to be seen.
    pub(super) fn way_to(address: &S3Address) -> Vec<S3Address> {
        let mut way = vec![if address.is_folder() {
            address.clone()
        } else {
            address
                .parent()
                .unwrap_or_else(|| S3Address::new(&address.bucket, ""))
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
    fn the_way_to_an_object_leads_through_its_folders() {
        for (address, expected) in [
            ("s3://abc/", vec!["s3://abc/"]),
            ("s3://abc/x.jpg", vec!["s3://abc/"]),
            (
                "s3://abc/a/b/",
                vec!["s3://abc/", "s3://abc/a/", "s3://abc/a/b/"],
            ),
            ("s3://abc/a/b", vec!["s3://abc/", "s3://abc/a/"]),
        ] {
            let address = S3Address::parse(address).unwrap();
            let way: Vec<String> = S3Picker::way_to(&address)
                .iter()
                .map(ToString::to_string)
                .collect();
            assert_eq!(way, expected);
        }
    }
}
