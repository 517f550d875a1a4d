//! How Batch Transform splits an object into records, and packs records into the bodies of requests.

/// A piece of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record<'a> {
    /// The record with its framing, or with its line break.
    pub(super) framed: &'a [u8],
    pub(super) content: &'a [u8],
}

/// The body of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Body {
    pub(super) bytes: Vec<u8>,
    pub(super) records: usize,
}

/// `split` is that of `TransformInput`. An error has the wording of the data log.
pub(super) fn split<'a>(object: &'a [u8], split: &str) -> Result<Vec<Record<'a>>, String> {
    match split {
        "None" => Ok(vec![Record { framed: object, content: object }]),
        "Line" => Ok(object
            .split_inclusive(|byte| *byte == b'\n')
            .map(|line| Record { framed: line, content: line.trim_ascii_end() })
            .filter(|record| !record.content.is_empty())
            .collect()),
        "TFRecord" => framed(object, tfrecord),
        "RecordIO" => framed(object, recordio),
        other => Err(format!("Unsupported SplitType {other}")),
    }
}

/// `max_bytes` is the largest body; `None` for no limit.
pub(super) fn pack(records: &[Record], strategy: &str, max_bytes: Option<usize>) -> Result<Vec<Body>, String> {
    let limit = max_bytes.unwrap_or(usize::MAX);
    let mut bodies: Vec<Body> = Vec::new();
    for record in records {
        let bytes = match strategy {
            "SingleRecord" => record.content,
            _ => record.framed,
        };
        if bytes.len() > limit {
            return Err("Too much data for max payload size".to_owned());
        }
        match bodies.last_mut() {
            Some(last) if strategy != "SingleRecord" && last.bytes.len() + bytes.len() <= limit => {
                last.bytes.extend_from_slice(bytes);
                last.records += 1;
            }
            _ => bodies.push(Body { bytes: bytes.to_vec(), records: 1 }),
        }
    }
    Ok(bodies)
}

/// Returns the first record and its full length.
type Reader = fn(&[u8]) -> Option<(&[u8], usize)>;

fn framed(mut rest: &[u8], reader: Reader) -> Result<Vec<Record<'_>>, String> {
    let mut records = Vec::new();
    while !rest.is_empty() {
        let (content, len) = reader(rest).ok_or("Unable to parse data as a record")?;
        let framed = rest.get(..len).ok_or("Unexpected end of a record")?;
        records.push(Record { framed, content });
        rest = &rest[len..];
    }
    Ok(records)
}

/// Length (8 bytes), its checksum (4), content, its checksum (4); little endian.
fn tfrecord(rest: &[u8]) -> Option<(&[u8], usize)> {
    let len = u64::from_le_bytes(rest.get(..8)?.try_into().ok()?);
    let len = usize::try_from(len).ok()?;
    let end = 12_usize.checked_add(len)?;
    Some((rest.get(12..end)?, end + 4))
}

/// The format of `MXNet`: a magic number (4 bytes), the length in 29 bits of 4 bytes, content padded to a multiple of
/// 4; little endian.
fn recordio(rest: &[u8]) -> Option<(&[u8], usize)> {
    const MAGIC: u32 = 0xced7_230a;
    let word = |at: usize| Some(u32::from_le_bytes(rest.get(at..at + 4)?.try_into().ok()?));
    let len = word(4)?;
    if word(0)? != MAGIC || len >> 29 != 0 {
        return None;
    }
    let len = len as usize;
    Some((rest.get(8..8 + len)?, 8 + len.next_multiple_of(4)))
}
