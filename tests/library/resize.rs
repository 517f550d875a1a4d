//! Resized images equal those of Pillow and OpenCV (`tests/golden/make_resize.py` made `tests/golden/resize.json`).

use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use spotcheck::domain::{Interpolation, RgbImage};
use spotcheck::model::{ResizeWindow, resize};

#[derive(Debug, Deserialize)]
struct Case {
    from: [u32; 2],
    to: [u32; 2],
    interpolation: Interpolation,
    sha256: String,
}

#[test]
fn resized_images_match_pillow_and_opencv() {
    let text = std::fs::read_to_string(crate::support::repository().join("tests/golden/resize.json")).unwrap();
    let cases: Vec<Case> = serde_json::from_str(&text).unwrap();
    let mut different = Vec::new();
    for case in &cases {
        let [width, height] = case.to;
        let levels = resize(&noise(case.from), ResizeWindow::whole(width, height), case.interpolation);
        let sha256: Vec<String> = Sha256::digest(&levels).iter().map(|byte| format!("{byte:02x}")).collect();
        if sha256.concat() != case.sha256 {
            different.push((case.interpolation, case.from, case.to));
        }
    }
    assert!(different.is_empty(), "{} of {}: {different:?}", different.len(), cases.len());
}

/// The image of the same name in the script.
fn noise([width, height]: [u32; 2]) -> RgbImage {
    let mut state = 12345_u32;
    let levels = (0..width * height * 3).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    });
    RgbImage::new(width, height, levels.collect()).unwrap()
}
