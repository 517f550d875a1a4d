//! Writes objects, whole or in parts, and deletes them. The server verifies checksums on arrival.

use std::collections::BTreeMap;

use aws_sdk_s3::operation::head_object::HeadObjectOutput;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{ChecksumAlgorithm, ChecksumMode, CompletedMultipartUpload, CompletedPart};
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::timeout::TimeoutConfig;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use super::connection::{CONNECT_TIMEOUT, Connection, S3};
use super::error::{AwsError, AwsErrorKind, Operation, if_there};
use super::objects::{quoted, size_of, unquoted};
use crate::domain::hexadecimal;
use crate::tasks::TaskControl;

/// The metadata key (`x-amz-meta-…`) for the SHA-256 of an object's content, in hexadecimal.
///
/// Every server returns metadata for HEAD. The `ETag` of a multipart or encrypted object is not a hash of its content,
/// and S3's own checksums depend on the parts.
const SHA256_METADATA: &str = "spotcheck-sha256";
/// The number of attempts to abort an unfinished upload, because a late part can arrive after the first one.
const MAX_ABORTS: u32 = 3;

pub type Sha256Digest = [u8; 32];

#[derive(Debug, Clone, Copy)]
pub struct NewObject<'a> {
    pub bucket: &'a str,
    pub key: &'a str,
    pub content_type: &'a str,
    /// The hash of the whole content; stored with the object.
    pub sha256: &'a Sha256Digest,
}

/// The condition of a write, which the server checks at that moment. If it fails, the error is
/// [`AwsErrorKind::Changed`], or [`AwsErrorKind::Unsupported`] from a server that cannot check it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteCondition {
    /// No object has this key.
    Absent,
    /// The object has this `ETag`, without quotes.
    Unchanged(String),
    /// Replaces an existing object.
    Any,
}

/// The metadata of an object that Spotcheck may have written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredObject {
    pub size_bytes: u64,
    /// Without quotes.
    pub etag: Option<String>,
    /// `None` if none was stored.
    pub sha256: Option<Sha256Digest>,
}

/// Content to send, repeatedly if necessary, without a copy.
pub struct Content(SdkBody);

/// An unfinished upload. Its parts cost money until it is finished or aborted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfinishedUpload {
    pub bucket: String,
    pub key: String,
    pub id: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentPart {
    /// With quotes, as the server sent it.
    pub etag: String,
    pub crc32: u32,
}

impl Content {
    fn stream(&self) -> ByteStream {
        let body = self.0.try_clone();
        ByteStream::new(body.expect("bytes in the memory can be sent again"))
    }
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Self {
        Self(SdkBody::from(bytes))
    }
}

impl WriteCondition {
    fn if_none_match(&self) -> Option<String> {
        (*self == Self::Absent).then(|| "*".to_owned())
    }

    fn if_match(&self) -> Option<String> {
        match self {
            Self::Unchanged(etag) => Some(quoted(etag)),
            Self::Absent | Self::Any => None,
        }
    }
}

impl S3 {
    /// The metadata of an object, with its checksum. Requires permission to read it.
    pub fn stored(&self, bucket: &str, key: &str, control: Option<&TaskControl>) -> Result<StoredObject, AwsError> {
        let response = self.ask(bucket, &Operation::Read { bucket, key }, control, |client| {
            client
                .head_object()
                .bucket(bucket)
                .key(key)
                .checksum_mode(ChecksumMode::Enabled)
                .set_request_payer(self.0.payer())
                .send()
        })?;
        Ok(StoredObject {
            size_bytes: size_of(response.content_length),
            etag: response.e_tag.as_deref().map(unquoted),
            sha256: sha256_of(&response),
        })
    }

    /// Writes a whole object.
    pub fn put(
        &self,
        object: &NewObject<'_>,
        content: &Content,
        condition: &WriteCondition,
        control: Option<&TaskControl>,
    ) -> Result<(), AwsError> {
        let &NewObject { bucket, key, .. } = object;
        self.ask(bucket, &Operation::Write { bucket, key }, control, |client| {
            client
                .put_object()
                .bucket(bucket)
                .key(key)
                .content_type(object.content_type)
                .metadata(SHA256_METADATA, hexadecimal(object.sha256))
                .checksum_sha256(BASE64_STANDARD.encode(object.sha256))
                .set_if_none_match(condition.if_none_match())
                .set_if_match(condition.if_match())
                .set_request_payer(self.0.payer())
                .body(content.stream())
                .customize()
                .config_override(self.0.while_sending())
                .send()
        })?;
        Ok(())
    }

    /// Deletes an object that this program wrote. A missing object is not an error.
    pub fn delete(&self, bucket: &str, key: &str, control: Option<&TaskControl>) -> Result<(), AwsError> {
        let deleted = self.ask(bucket, &Operation::Delete { bucket, key }, control, |client| {
            client.delete_object().bucket(bucket).key(key).set_request_payer(self.0.payer()).send()
        });
        if_there(deleted).map(drop)
    }

    /// Begins an object that is sent in parts. It is invisible until finished.
    pub fn begin_parts(
        &self,
        object: &NewObject<'_>,
        control: Option<&TaskControl>,
    ) -> Result<UnfinishedUpload, AwsError> {
        let &NewObject { bucket, key, .. } = object;
        let operation = Operation::Write { bucket, key };
        let response = self.ask(bucket, &operation, control, |client| {
            client
                .create_multipart_upload()
                .bucket(bucket)
                .key(key)
                .content_type(object.content_type)
                .metadata(SHA256_METADATA, hexadecimal(object.sha256))
                .checksum_algorithm(ChecksumAlgorithm::Crc32)
                .set_request_payer(self.0.payer())
                .send()
        })?;
        let id = response.upload_id.ok_or_else(|| {
            AwsError::new(
                AwsErrorKind::NotS3,
                format!("Could not {operation}: the server returned no upload id; check the endpoint URL"),
            )
        })?;
        Ok(UnfinishedUpload { bucket: bucket.to_owned(), key: key.to_owned(), id })
    }

    /// Sends a part; `number` counts from 1. All except the last have at least 5 MiB.
    pub fn put_part(
        &self,
        upload: &UnfinishedUpload,
        number: u32,
        content: &Content,
        crc32: u32,
        control: Option<&TaskControl>,
    ) -> Result<SentPart, AwsError> {
        let response = self.ask(&upload.bucket, &upload.operation(), control, |client| {
            client
                .upload_part()
                .bucket(&upload.bucket)
                .key(&upload.key)
                .upload_id(&upload.id)
                .part_number(number as i32)
                .checksum_crc32(crc32_text(crc32))
                .set_request_payer(self.0.payer())
                .body(content.stream())
                .customize()
                .config_override(self.0.while_sending())
                .send()
        })?;
        Ok(SentPart { etag: response.e_tag.unwrap_or_default(), crc32 })
    }

    /// The `ETag`s, with quotes, of the parts that have arrived; [`AwsErrorKind::NotFound`] once the upload is over.
    pub fn parts(
        &self,
        upload: &UnfinishedUpload,
        control: Option<&TaskControl>,
    ) -> Result<BTreeMap<u32, String>, AwsError> {
        let operation = Operation::Parts { bucket: &upload.bucket, key: &upload.key };
        let mut parts = BTreeMap::new();
        let mut marker = None;
        loop {
            let response = self.ask(&upload.bucket, &operation, control, |client| {
                client
                    .list_parts()
                    .bucket(&upload.bucket)
                    .key(&upload.key)
                    .upload_id(&upload.id)
                    .set_part_number_marker(marker.clone())
                    .set_request_payer(self.0.payer())
                    .send()
            })?;
            parts.extend(response.parts().iter().filter_map(|part| {
                let number = u32::try_from(part.part_number()?).ok()?;
                Some((number, part.e_tag()?.to_owned()))
            }));
            match response.next_part_number_marker {
                Some(next) if response.is_truncated == Some(true) => marker = Some(next),
                _ => return Ok(parts),
            }
        }
    }

    /// Assembles an object from its parts.
    pub fn finish_parts(
        &self,
        upload: &UnfinishedUpload,
        parts: &BTreeMap<u32, SentPart>,
        condition: &WriteCondition,
        control: Option<&TaskControl>,
    ) -> Result<(), AwsError> {
        let parts = parts.iter().map(|(number, part)| {
            CompletedPart::builder()
                .part_number(*number as i32)
                .e_tag(&part.etag)
                .checksum_crc32(crc32_text(part.crc32))
                .build()
        });
        let parts = CompletedMultipartUpload::builder().set_parts(Some(parts.collect())).build();
        self.ask(&upload.bucket, &upload.operation(), control, |client| {
            client
                .complete_multipart_upload()
                .bucket(&upload.bucket)
                .key(&upload.key)
                .upload_id(&upload.id)
                .multipart_upload(parts.clone())
                .set_if_none_match(condition.if_none_match())
                .set_if_match(condition.if_match())
                .set_request_payer(self.0.payer())
                .customize()
                .config_override(self.0.while_sending())
                .send()
        })?;
        Ok(())
    }

    /// Deletes the parts of an upload. Missing parts are not an error.
    pub fn abort_parts(&self, upload: &UnfinishedUpload) -> Result<(), AwsError> {
        let operation = Operation::Abort { bucket: &upload.bucket, key: &upload.key };
        for _ in 0..MAX_ABORTS {
            if_there(self.ask(&upload.bucket, &operation, None, |client| {
                client
                    .abort_multipart_upload()
                    .bucket(&upload.bucket)
                    .key(&upload.key)
                    .upload_id(&upload.id)
                    .set_request_payer(self.0.payer())
                    .send()
            }))?;
            match self.parts(upload, None) {
                Ok(parts) if !parts.is_empty() => {}
                // Without permission to list parts, nothing more can be done.
                _ => break,
            }
        }
        Ok(())
    }
}

impl Connection {
    fn while_sending(&self) -> aws_sdk_s3::config::Builder {
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(self.network.retry_policy.send_timeout)
            .build();
        aws_sdk_s3::config::Builder::new().timeout_config(timeouts)
    }
}

impl UnfinishedUpload {
    fn operation(&self) -> Operation<'_> {
        Operation::Write { bucket: &self.bucket, key: &self.key }
    }
}

/// The checksum stored by Spotcheck, or computed by S3 over the whole content at upload.
fn sha256_of(response: &HeadObjectOutput) -> Option<Sha256Digest> {
    let kept = response.metadata().and_then(|metadata| from_hexadecimal(metadata.get(SHA256_METADATA)?));
    // For an object in parts, it is a checksum of checksums, followed by a hyphen and their number.
    kept.or_else(|| {
        let whole = BASE64_STANDARD.decode(response.checksum_sha256()?).ok()?;
        whole.try_into().ok()
    })
}

fn crc32_text(crc32: u32) -> String {
    BASE64_STANDARD.encode(crc32.to_be_bytes())
}

fn from_hexadecimal(text: &str) -> Option<Sha256Digest> {
    let mut digest = Sha256Digest::default();
    if text.len() != 2 * digest.len() {
        return None;
    }
    for (index, byte) in digest.iter_mut().enumerate() {
        let digits = text.get(2 * index..2 * index + 2)?;
        *byte = u8::from_str_radix(digits, 16).ok()?;
    }
    Some(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(kept: Option<&str>, computed: Option<&str>) -> HeadObjectOutput {
        let mut head = HeadObjectOutput::builder().set_checksum_sha256(computed.map(str::to_owned));
        if let Some(kept) = kept {
            head = head.metadata(SHA256_METADATA, kept);
        }
        head.build()
    }

    #[test]
    fn checksum_covers_the_whole_content() {
        // The hash of no bytes, from `sha256sum` and from `openssl dgst -sha256 -binary | base64`.
        let hex = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let base64 = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
        let digest = sha256_of(&head(Some(hex), None)).unwrap();
        assert_eq!(hexadecimal(&digest), hex);
        assert_eq!(sha256_of(&head(None, Some(base64))), Some(digest));
        for (kept, computed) in [
            (None, None),
            (None, Some("47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=-3")),
            (Some("e3b0"), None),
            (Some(&hex.replace('e', "é")[..]), None),
        ] {
            assert_eq!(sha256_of(&head(kept, computed)), None);
        }
    }

    #[test]
    fn crc_is_encoded_for_s3() {
        // The CRC of "hello
        // ": `gzip -c | tail -c8 | head -c4`, byte-swapped, in base64.
        assert_eq!(crc32_text(0x363a_3020), "NjowIA==");
    }
}
