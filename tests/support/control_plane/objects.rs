//! The objects of SeaweedFS as seen by a job's role.

use std::net::SocketAddr;

use percent_encoding::utf8_percent_encode;

use super::sigv4;
use crate::support::http::{Connection, Transfer};
use crate::support::seaweed::{ADMIN, KEY};

/// The objects of an S3 server.
pub(super) struct Objects {
    pub(super) server: SocketAddr,
}

/// A line of a listing.
#[derive(Debug, Clone)]
pub(super) struct Listed {
    pub(super) key: String,
    pub(super) size_bytes: u64,
}

/// `s3://bucket/key`
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) bucket: String,
    pub(super) key: String,
}

impl Place {
    pub(super) fn parse(uri: &str) -> Option<Self> {
        let (bucket, key) = match uri.strip_prefix("s3://")?.split_once('/') {
            Some(parts) => parts,
            None => (&uri[5..], ""),
        };
        Some(Self { bucket: bucket.to_owned(), key: key.to_owned() })
    }
}

impl Objects {
    /// All objects whose key starts with that of `prefix`, in S3's order; S3's error code if none are visible.
    pub(super) fn list(&self, prefix: &Place) -> Result<Vec<Listed>, String> {
        let mut listed = Vec::new();
        let mut token: Option<String> = None;
        loop {
            let mut query = String::new();
            if let Some(token) = &token {
                query = format!("continuation-token={}&", encode(token));
            }
            query.extend(["list-type=2&prefix=", &encode(&prefix.key)]);
            let page = self.ask(&format!("/{}", prefix.bucket), &query)?;
            let page = String::from_utf8_lossy(&page);
            for entry in page.split("<Contents>").skip(1) {
                listed.push(Listed {
                    key: element(entry, "Key").unwrap(),
                    size_bytes: element(entry, "Size").unwrap().parse().unwrap(),
                });
            }
            token = element(&page, "NextContinuationToken");
            if token.is_none() {
                return Ok(listed);
            }
        }
    }

    /// The content, or S3's error code.
    pub(super) fn get(&self, place: &Place) -> Result<Vec<u8>, String> {
        self.ask(&path(place), "")
    }

    pub(super) fn put(&self, place: &Place, content: &[u8]) -> Result<(), String> {
        let mut connection = Connection::open(self.server).map_err(|error| error.to_string())?;
        let (status, response) =
            connection.exchange("PUT", &path(place), content).map_err(|error| error.to_string())?;
        match status {
            200 => Ok(()),
            _ => Err(code(&response)),
        }
    }

    fn ask(&self, path: &str, query: &str) -> Result<Vec<u8>, String> {
        let fields = sigv4::s3_fields(&ADMIN, &self.server.to_string(), path, query);
        let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, &**value)).collect();
        let target = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
        let mut connection = Connection::open(self.server).map_err(|error| error.to_string())?;
        let response =
            connection.send("GET", &target, &fields, &[], Transfer::Whole).map_err(|error| error.to_string())?;
        match response.status {
            200 => Ok(response.content),
            _ => Err(code(&response.content)),
        }
    }
}

fn path(place: &Place) -> String {
    format!("/{}/{}", place.bucket, utf8_percent_encode(&place.key, KEY))
}

fn encode(value: &str) -> String {
    utf8_percent_encode(value, KEY).to_string().replace('/', "%2F")
}

fn code(response: &[u8]) -> String {
    let response = String::from_utf8_lossy(response);
    element(&response, "Code").unwrap_or_else(|| "InternalError".to_owned())
}

/// The text of the first element with this name.
fn element(xml: &str, name: &str) -> Option<String> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once(&format!("</{name}>"))?;
    Some(quick_xml::escape::unescape(text).unwrap().into_owned())
}
