//! The framing of records: length (8 bytes, little endian), its checksum (4), the data, and their checksum (4).
//! Checksums are masked CRC32C, as in TensorFlow's `tensorflow/core/lib/io/record_writer.h` and `lib/hash/crc32c.h`.

/// Bytes before the data of a record.
pub(super) const HEADER: u64 = 12;
/// Bytes after the data.
pub(super) const FOOTER: u64 = 4;

/// The length of the data; `None` if the checksum shows that this is not a header.
pub(super) fn data_len(header: &[u8]) -> Option<u64> {
    let (len, crc) = header.split_at_checked(8)?;
    let is_whole = masked_crc(len).to_le_bytes() == crc;
    is_whole.then_some(u64::from_le_bytes(len.try_into().ok()?))
}

/// Why a whole record, with header and footer, cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BadFrame {
    /// The header is damaged: no record here has this length.
    Header,
    Data,
}

/// The range of the data in a whole record.
pub(super) fn check(record: &[u8]) -> Result<std::ops::Range<usize>, BadFrame> {
    let (header, footer) = (HEADER as usize, FOOTER as usize);
    let data = header..record.len().checked_sub(footer).filter(|end| *end >= header).ok_or(BadFrame::Header)?;
    if data_len(&record[..header]) != Some(data.len() as u64) {
        return Err(BadFrame::Header);
    }
    if masked_crc(&record[data.clone()]).to_le_bytes() == record[data.end..] { Ok(data) } else { Err(BadFrame::Data) }
}

fn masked_crc(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// A whole record around `data`.
pub fn framed(data: &[u8]) -> Vec<u8> {
    let len = (data.len() as u64).to_le_bytes();
    let mut record = len.to_vec();
    record.extend(masked_crc(&len).to_le_bytes());
    record.extend(data);
    record.extend(masked_crc(data).to_le_bytes());
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_record_part_is_named() {
        let whole = framed(b"some data");
        assert_eq!(check(&whole), Ok(12..21));
        assert_eq!(check(&framed(b"")), Ok(12..12));
        let with_flipped_byte = |place: usize| {
            let mut record = whole.clone();
            record[place] ^= 1;
            check(&record)
        };
        assert_eq!(with_flipped_byte(0), Err(BadFrame::Header));
        assert_eq!(with_flipped_byte(11), Err(BadFrame::Header));
        assert_eq!(with_flipped_byte(12), Err(BadFrame::Data));
        assert_eq!(with_flipped_byte(24), Err(BadFrame::Data));
        for len in 0..whole.len() {
            assert_eq!(check(&whole[..len]), Err(BadFrame::Header), "{len}");
        }
    }
}
