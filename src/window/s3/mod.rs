//! Browsing S3, and signing in to AWS.

pub(crate) mod effects;
pub(crate) mod state;
pub(crate) mod ui;
pub(crate) mod update;
