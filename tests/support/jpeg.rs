//! JPEG files that claim to contain more than they do.

/// The JPEG, changed to claim this width and height without subsampling, and with the maximum length of such a file.
pub(crate) fn enlarged(jpeg: &[u8], start_of_frame: u8, side: u16) -> Vec<u8> {
    let mut bytes = jpeg.to_vec();
    let at = position(&bytes, start_of_frame);
    bytes[at + 5..at + 7].copy_from_slice(&side.to_be_bytes());
    bytes[at + 7..at + 9].copy_from_slice(&side.to_be_bytes());
    // The sampling factors of the brightness.
    bytes[at + 11] = 0x11;
    bytes.resize(bytes.len() + usize::from(side) * usize::from(side) / 1000, 0);
    bytes
}

/// The position of the first such marker.
pub(crate) fn position(bytes: &[u8], marker: u8) -> usize {
    let mut pairs = bytes.windows(2);
    pairs.position(|pair| pair == [0xff, marker]).unwrap()
}
