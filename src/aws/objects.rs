//! Lists and reads buckets and objects. A complete listing prefetches pages while the current one is processed.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_s3::operation::get_object::GetObjectOutput;
use aws_sdk_s3::primitives::DateTime;
use aws_sdk_s3::types::{EncodingType, RequestPayer};
use percent_encoding::percent_decode_str;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::JoinHandle;

use super::connection::{Connection, S3};
use super::error::{AwsError, AwsErrorKind, Operation};
use crate::domain::S3Address;
use crate::tasks::TaskControl;

/// How often an interrupted download resumes where it stopped.
const MAX_CUTS: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListRequest {
    pub bucket: String,
    pub prefix: String,
    /// Only keys after this one.
    pub start_after: Option<String>,
    /// Whether keys are listed up to the next slash, and deeper ones as folders.
    pub by_folder: bool,
    /// The continuation token of the previous page.
    pub continuation: Option<String>,
    /// At most 1000; `None` lets the server decide.
    pub max_keys: Option<u16>,
}

impl ListRequest {
    /// Everything below a prefix.
    pub fn new(prefix: &S3Address) -> Self {
        Self { bucket: prefix.bucket.clone(), prefix: prefix.prefix.clone(), ..Self::default() }
    }
}

/// Some keys, in the server's order: by their UTF-8 bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListedPage {
    pub objects: Vec<ObjectInfo>,
    /// Full prefixes with a trailing slash.
    pub folders: Vec<String>,
    /// The token for the next request; `None` after the last page.
    pub continuation: Option<String>,
}

impl ListedPage {
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.folders.is_empty()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectInfo {
    pub key: String,
    pub size_bytes: u64,
    /// Without quotes.
    pub etag: Option<String>,
    /// Nanoseconds since 1970-01-01 UTC.
    pub modified_ns: Option<i64>,
}

/// A bucket in the account's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketInfo {
    pub name: String,
    pub region: Option<String>,
    /// Milliseconds since 1970-01-01 UTC.
    pub created_ms: Option<i64>,
}

impl S3 {
    /// All buckets of the account, in the server's order.
    pub fn list_buckets(&self, control: Option<&TaskControl>) -> Result<Vec<BucketInfo>, AwsError> {
        self.0.network.wait(control, async {
            let mut buckets = Vec::new();
            let mut continuation = None;
            loop {
                let page = self.0.buckets_after(continuation).await?;
                buckets.extend(page.0);
                match page.1 {
                    Some(next) => continuation = Some(next),
                    None => return Ok(buckets),
                }
            }
        })
    }

    pub fn list_page(&self, request: &ListRequest, control: Option<&TaskControl>) -> Result<ListedPage, AwsError> {
        self.0.network.wait(control, self.0.page(request))
    }

    /// The first object below a prefix.
    pub fn first_object(
        &self,
        prefix: &S3Address,
        control: Option<&TaskControl>,
    ) -> Result<Option<ObjectInfo>, AwsError> {
        let request = ListRequest { max_keys: Some(1), ..ListRequest::new(prefix) };
        let listed = self.list_page(&request, control)?;
        Ok(listed.objects.into_iter().next())
    }

    /// The region of a bucket; `None` if the server does not report it. Requires permission to list it.
    pub fn bucket_region(&self, bucket: &str, control: Option<&TaskControl>) -> Result<Option<String>, AwsError> {
        let operation = Operation::List { bucket, prefix: "" };
        let response = self.ask(bucket, &operation, control, |client| client.head_bucket().bucket(bucket).send())?;
        Ok(response.bucket_region)
    }

    /// The metadata of an object. Requires permission to read it, but not to list the bucket.
    pub fn object(&self, bucket: &str, key: &str, control: Option<&TaskControl>) -> Result<ObjectInfo, AwsError> {
        let response = self.ask(bucket, &Operation::Read { bucket, key }, control, |client| {
            client.head_object().bucket(bucket).key(key).set_request_payer(self.0.payer()).send()
        })?;
        Ok(ObjectInfo {
            key: key.to_owned(),
            size_bytes: size_of(response.content_length),
            etag: response.e_tag.as_deref().map(unquoted),
            modified_ns: response.last_modified.as_ref().and_then(nanoseconds),
        })
    }

    /// The whole object; resumes if the connection is interrupted. With an `etag`, only this version of the object:
    /// otherwise the error is [`AwsErrorKind::Changed`].
    pub fn read(
        &self,
        bucket: &str,
        key: &str,
        etag: Option<&str>,
        control: Option<&TaskControl>,
    ) -> Result<Vec<u8>, AwsError> {
        let request = ReadRequest { bucket, key, range: None, etag };
        self.0.network.wait(control, self.0.read(request))
    }

    /// The bytes from `range.start` up to `range.end`; fewer if the object is shorter. With an `etag`, only of this
    /// version of the object: otherwise the error is [`AwsErrorKind::Changed`].
    pub fn read_range(
        &self,
        bucket: &str,
        key: &str,
        range: Range<u64>,
        etag: Option<&str>,
        control: Option<&TaskControl>,
    ) -> Result<Vec<u8>, AwsError> {
        let request = ReadRequest { bucket, key, range: Some(range), etag };
        self.0.network.wait(control, self.0.read(request))
    }
}

struct ReadRequest<'a> {
    bucket: &'a str,
    key: &'a str,
    range: Option<Range<u64>>,
    etag: Option<&'a str>,
}

impl Connection {
    pub fn payer(&self) -> Option<RequestPayer> {
        self.access.requester_pays.then_some(RequestPayer::Requester)
    }

    async fn buckets_after(&self, continuation: Option<String>) -> Result<(Vec<BucketInfo>, Option<String>), AwsError> {
        let _permit = self.network.request().await?;
        let response = self
            .ask("", &Operation::Buckets, |client| {
                client.list_buckets().set_continuation_token(continuation.clone()).send()
            })
            .await?;
        let bucket = |bucket: &aws_sdk_s3::types::Bucket| {
            Some(BucketInfo {
                name: bucket.name()?.to_owned(),
                region: bucket.bucket_region().map(str::to_owned),
                created_ms: bucket.creation_date().and_then(|date| date.to_millis().ok()),
            })
        };
        let buckets = response.buckets().iter().filter_map(bucket).collect();
        Ok((buckets, response.continuation_token().map(str::to_owned)))
    }

    pub async fn page(&self, request: &ListRequest) -> Result<ListedPage, AwsError> {
        let _permit = self.network.request().await?;
        let operation = Operation::List { bucket: &request.bucket, prefix: &request.prefix };
        let response = self
            .ask(&request.bucket, &operation, |client| {
                client
                    .list_objects_v2()
                    .bucket(&request.bucket)
                    .prefix(&request.prefix)
                    .set_delimiter(request.by_folder.then(|| "/".to_owned()))
                    .set_start_after(request.start_after.clone().filter(|_| request.continuation.is_none()))
                    .set_continuation_token(request.continuation.clone())
                    .set_max_keys(request.max_keys.map(i32::from))
                    // XML cannot represent every character that a key can contain.
                    .encoding_type(EncodingType::Url)
                    .set_request_payer(self.payer())
                    .send()
            })
            .await?;
        // Servers without this encoding omit the field.
        let is_encoded = response.encoding_type == Some(EncodingType::Url);
        let plain = |text: String| if is_encoded { decoded(&text) } else { text };
        let is_truncated = response.is_truncated().unwrap_or_default();
        let continuation = response.next_continuation_token.filter(|_| is_truncated);
        let folders = response.common_prefixes.unwrap_or_default();
        Ok(ListedPage {
            objects: response
                .contents
                .unwrap_or_default()
                .into_iter()
                .filter_map(object_info)
                .map(|object| ObjectInfo { key: plain(object.key), ..object })
                .collect(),
            folders: folders.into_iter().filter_map(|folder| folder.prefix).map(plain).collect(),
            continuation,
        })
    }

    async fn get_object(
        &self,
        bucket: &str,
        key: &str,
        range: Option<String>,
        etag: Option<String>,
    ) -> Result<GetObjectOutput, AwsError> {
        self.ask(bucket, &Operation::Read { bucket, key }, |client| {
            client
                .get_object()
                .bucket(bucket)
                .key(key)
                .set_range(range.clone())
                .set_if_match(etag.clone())
                .set_request_payer(self.payer())
                .send()
        })
        .await
    }

    /// Resumes an interrupted response where it ended.
    async fn read(&self, request: ReadRequest<'_>) -> Result<Vec<u8>, AwsError> {
        let ReadRequest { bucket, key, .. } = request;
        if request.range.as_ref().is_some_and(Range::is_empty) {
            return Ok(Vec::new());
        }
        let _permit = self.network.request().await?;
        let operation = Operation::Read { bucket, key };
        let mut bytes = Vec::new();
        let mut etag = request.etag.map(quoted);
        let mut cuts = 0;
        loop {
            let range = range_after(request.range.as_ref(), bytes.len());
            let mut response = match self.get_object(bucket, key, range, etag.clone()).await {
                Ok(response) => response,
                Err(error) if error.kind == AwsErrorKind::BehindEnd && request.range.is_some() => {
                    return Ok(bytes);
                }
                Err(error) => return Err(error),
            };
            // Some servers ignore the condition.
            if let (Some(request), Some(found)) = (&etag, &response.e_tag)
                && request != found
            {
                return Err(AwsError::changed(&operation));
            }
            // The rest must be from the same object.
            etag = etag.or(response.e_tag.take());
            let expected = usize::try_from(size_of(response.content_length)).unwrap_or_default();
            let before = bytes.len();
            bytes.try_reserve_exact(expected).map_err(|_| {
                AwsError::new(
                    AwsErrorKind::Local,
                    format!("Could not {operation}: its {expected} bytes do not fit into memory"),
                )
            })?;
            let cut = loop {
                match response.body.next().await {
                    Some(Ok(part)) => bytes.extend_from_slice(&part),
                    Some(Err(error)) => break error,
                    None => return Ok(bytes),
                }
            };
            cuts += 1;
            if cuts > MAX_CUTS {
                let caller = self.caller(&*self.loaded().await?, None);
                return Err(AwsError::cut(&cut, &operation, &caller));
            }
            log::warn!("{operation}: interrupted after {} bytes; resuming", bytes.len());
            if etag.is_none() || bytes.len() - before >= expected {
                // Complete but damaged, or it is unknown whether the rest belongs to the same object.
                bytes.clear();
            }
            tokio::time::sleep(FIRST_PAUSE * 2_u32.pow(cuts - 1)).await;
        }
    }
}

/// The remaining `Range` of a part after `done` bytes; `None` for a whole object.
fn range_after(range: Option<&Range<u64>>, done: usize) -> Option<String> {
    match range {
        Some(range) => Some(format!("bytes={}-{}", range.start + done as u64, range.end - 1)),
        None if done > 0 => Some(format!("bytes={done}-")),
        None => None,
    }
}

/// A form-encoded key: a plus is a space. Invalid UTF-8 is left encoded.
fn decoded(text: &str) -> String {
    if !text.contains(['%', '+']) {
        return text.to_owned();
    }
    let spaced = text.replace('+', " ");
    match percent_decode_str(&spaced).decode_utf8() {
        Ok(decoded) => decoded.into_owned(),
        Err(_) => text.to_owned(),
    }
}

fn object_info(object: aws_sdk_s3::types::Object) -> Option<ObjectInfo> {
    Some(ObjectInfo {
        key: object.key?,
        size_bytes: size_of(object.size),
        etag: object.e_tag.as_deref().map(unquoted),
        modified_ns: object.last_modified.as_ref().and_then(nanoseconds),
    })
}

pub(super) fn size_of(bytes: Option<i64>) -> u64 {
    bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or_default()
}

fn nanoseconds(time: &DateTime) -> Option<i64> {
    i64::try_from(time.as_nanos()).ok()
}

pub(super) fn unquoted(etag: &str) -> String {
    etag.trim_matches('"').to_owned()
}

pub(super) fn quoted(etag: &str) -> String {
    format!("\"{etag}\"")
}

/// The number of prefetched pages.
const PAGES_AHEAD: usize = 4;

/// The pages of a listing; the first one is already requested. Dropping it ends the requests.
pub struct Listing {
    s3: S3,
    pages: Receiver<Result<ListedPage, AwsError>>,
    task: JoinHandle<()>,
}

impl S3 {
    /// Starts to list everything from `request` on.
    pub fn list(&self, mut request: ListRequest) -> Result<Listing, AwsError> {
        let (sender, pages) = channel(PAGES_AHEAD);
        let connection = Arc::clone(&self.0);
        let task = self.0.network.handle()?.spawn(async move {
            loop {
                let page = connection.page(&request).await;
                let next = page.as_ref().ok().and_then(|page| page.continuation.clone());
                // The listing was dropped.
                if sender.send(page).await.is_err() {
                    return;
                }
                match next {
                    Some(next) => request.continuation = Some(next),
                    None => return,
                }
            }
        });
        Ok(Listing { s3: self.clone(), pages, task })
    }
}

impl Listing {
    /// Waits for the next page; `None` after the last one, and after an error.
    pub fn next_page(&mut self, control: Option<&TaskControl>) -> Option<Result<ListedPage, AwsError>> {
        let pages = &mut self.pages;
        let network = &self.s3.0.network;
        network.wait(control, async { Ok(pages.recv().await) }).unwrap_or_else(|error| Some(Err(error)))
    }
}

impl Drop for Listing {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_round_trip() {
        for (encoded, key) in [
            ("photos/a.jpg", "photos/a.jpg"),
            ("a+b%2Bc%20d.jpg", "a b+c d.jpg"),
            ("100%25%01.jpg", "100%\u{1}.jpg"),
            ("%EA%B3%A0%EC%96%91%EC%9D%B4", "고양이"),
            ("%ff.jpg", "%ff.jpg"),
        ] {
            assert_eq!(decoded(encoded), key);
        }
    }

    #[test]
    fn missing_bytes_are_requested_after_a_cut() {
        assert_eq!(range_after(None, 0), None);
        assert_eq!(range_after(None, 7).as_deref(), Some("bytes=7-"));
        assert_eq!(range_after(Some(&(10..20)), 0).as_deref(), Some("bytes=10-19"));
        assert_eq!(range_after(Some(&(10..20)), 4).as_deref(), Some("bytes=14-19"));
    }
}
