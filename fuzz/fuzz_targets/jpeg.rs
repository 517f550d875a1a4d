//! Thumbnails and details of images.

#![no_main]

use spotcheck::decode::{DecodeLimits, details, thumbnail};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let limits = DecodeLimits::default();
    let _ = details(bytes);
    for side in [16, 160] {
        if let Ok(image) = thumbnail(bytes, side, &limits) {
            assert!(image.width() <= side && image.height() <= side);
        }
    }
});
