//! `decode` compared with Pillow and NumPy, on every kind of image in `tests/cases/decode` (made by
//! `tests/decode/make.py`), and on hostile bytes.

use std::fs;
use std::path::{Path, PathBuf};

use spotcheck::domain::{Capture, GeoPoint, RgbImage};
use spotcheck::image::decode::{
    DecodeError, DecodeLimits, MemoryBudget, capture, decode, decode_for_display, decode_reserved, details, thumbnail,
};

struct Case {
    name: String,
    bytes: Vec<u8>,
    expected: Option<(u32, u32, Vec<u8>)>,
    /// The largest difference of a channel; `None` if nothing is decoded for models.
    tolerance: Option<u64>,
    error: Option<String>,
    /// A part of the warning about a damaged image that can be decoded.
    warning: Option<String>,
    /// The tolerance for what the window shows of a broken image.
    shown: Option<u64>,
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/decode");
    let mut folders: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    assert!(folders.len() > 70, "the cases are missing");
    folders.iter().map(|folder| read_case(folder)).collect()
}

fn read_case(folder: &Path) -> Case {
    let image = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.file_stem().is_some_and(|stem| stem == "image"))
        .unwrap();
    let facts: serde_json::Value = serde_json::from_slice(&fs::read(folder.join("case.json")).unwrap()).unwrap();
    Case {
        name: folder.file_name().unwrap().to_string_lossy().into_owned(),
        bytes: fs::read(image).unwrap(),
        expected: fs::read(folder.join("expected.ppm")).ok().map(|ppm| read_ppm(&ppm)),
        tolerance: facts["tolerance"].as_u64(),
        error: facts["error"].as_str().map(str::to_owned),
        warning: facts["warning"].as_str().map(str::to_owned),
        shown: facts["shown"].as_u64(),
    }
}

/// `P6 width height 255` on one line, then the pixels.
fn read_ppm(bytes: &[u8]) -> (u32, u32, Vec<u8>) {
    let line_end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
    let line = std::str::from_utf8(&bytes[..line_end]).unwrap();
    let numbers: Vec<u32> = line.split(' ').skip(1).map(|number| number.parse().unwrap()).collect();
    (numbers[0], numbers[1], bytes[line_end + 1..].to_vec())
}

/// Compares the rows and columns in `expected`, which contains only the top left if the rest is undefined or repeats.
fn difference(image: &RgbImage, expected: &(u32, u32, Vec<u8>)) -> Result<u64, String> {
    let (width, height, pixels) = expected;
    if image.width() < *width || image.height() < *height {
        return Err(format!("{image:?} instead of {width}x{height}"));
    }
    let mut largest = 0;
    for (index, expected) in pixels.chunks_exact(3).enumerate() {
        let (x, y) = (index as u32 % width, index as u32 / width);
        let got = image.pixel(x, y).unwrap();
        for (got, expected) in got.iter().zip(expected) {
            largest = largest.max(u64::from(got.abs_diff(*expected)));
        }
    }
    Ok(largest)
}

#[test]
fn every_image_kind_matches_the_reference() {
    let mut failures = Vec::new();
    for case in cases() {
        let (Some(tolerance), Some(expected)) = (case.tolerance, &case.expected) else {
            continue;
        };
        match decode(&case.bytes, &DecodeLimits::default()) {
            Ok(image) => match difference(&image.image, expected) {
                Ok(worst) if worst <= tolerance => {}
                Ok(worst) => {
                    failures.push(format!("{}: a channel differs by {worst}, tolerance {tolerance}", case.name));
                }
                Err(size) => failures.push(format!("{}: {size}", case.name)),
            },
            Err(error) => failures.push(format!("{}: {error}", case.name)),
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn only_damage_that_pillow_decodes_is_a_warning() {
    for case in cases().iter().filter(|case| case.tolerance.is_some()) {
        let image = decode(&case.bytes, &DecodeLimits::default()).unwrap();
        match &case.warning {
            None => assert_eq!(image.warning, None, "{}", case.name),
            Some(part) => {
                let warning = image.warning.expect(&case.name);
                assert!(
                    ["is damaged", "may be damaged"].iter().any(|start| warning.starts_with(start)),
                    "{}",
                    case.name
                );
                assert!(warning.contains(part), "{}: {warning}", case.name);
            }
        }
    }
}

/// The results of `decode`, `decode_for_display` and `thumbnail` for a file.
fn all_results(bytes: &[u8]) -> impl PartialEq + std::fmt::Debug + Send {
    let limits = DecodeLimits::default();
    (decode(bytes, &limits), decode_for_display(bytes, &limits), thumbnail(bytes, 16, &limits))
}

#[test]
fn images_decode_independently() {
    let small = |case: &Case| case.bytes.len() < 20_000 && case.name.starts_with("jpeg");
    let cases: Vec<Case> = cases().into_iter().filter(small).collect();
    assert!(cases.len() > 40, "the cases are missing");
    for odd in cases.iter().filter(|case| !is_plain(case)) {
        let alone = std::thread::scope(|scope| {
            let fresh = scope.spawn(|| all_results(&odd.bytes));
            fresh.join().unwrap()
        });
        for before in &cases {
            all_results(&before.bytes);
            let after = all_results(&odd.bytes);
            assert!(after == alone, "{} after {}", odd.name, before.name);
        }
    }
}

/// Undamaged, with all its tables.
fn is_plain(case: &Case) -> bool {
    let lacks_tables = case.name.contains("without");
    case.error.is_none() && case.warning.is_none() && !lacks_tables
}

#[test]
fn broken_image_is_refused_for_models() {
    let mut failures = Vec::new();
    for case in cases() {
        let Some(expected) = case.error else {
            continue;
        };
        match decode(&case.bytes, &DecodeLimits::default()) {
            Ok(image) => failures.push(format!("{}: decoded as {image:?}", case.name)),
            Err(error) if error.to_string().contains(&expected) => {}
            Err(error) => failures.push(format!("{}: “{error}”, not “{expected}”", case.name)),
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn broken_image_is_shown_partially_with_a_warning() {
    let mut failures = Vec::new();
    for case in cases() {
        let (Some(tolerance), Some(expected)) = (case.shown, &case.expected) else {
            continue;
        };
        match decode_for_display(&case.bytes, &DecodeLimits::default()) {
            Ok(shown) => {
                let worst = difference(&shown.image, expected);
                if worst.as_ref().is_ok_and(|worst| *worst > tolerance) || worst.is_err() {
                    failures.push(format!("{}: differs by {worst:?}", case.name));
                }
                if shown.warning != case.error.as_ref().map(|_| error_of(&case.bytes)) {
                    failures.push(format!("{}: warns {:?}", case.name, shown.warning));
                }
            }
            Err(error) => failures.push(format!("{}: {error}", case.name)),
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

fn error_of(bytes: &[u8]) -> String {
    let error = decode(bytes, &DecodeLimits::default()).unwrap_err();
    error.to_string()
}

#[test]
fn people_and_models_see_the_same_pixels() {
    for case in cases().iter().filter(|case| case.tolerance.is_some()) {
        let decoded = decode(&case.bytes, &DecodeLimits::default());
        let shown = decode_for_display(&case.bytes, &DecodeLimits::default());
        assert_eq!(shown, decoded, "{}", case.name);
    }
}

#[test]
fn thumbnail_is_upright_and_keeps_its_shape() {
    for case in cases().iter().filter(|case| case.tolerance.is_some()) {
        let image = decode(&case.bytes, &DecodeLimits::default()).unwrap();
        let image = image.image;
        let small = thumbnail(&case.bytes, 16, &DecodeLimits::default()).unwrap();
        let longer = image.width().max(image.height());
        let scale = f64::from(16.min(longer)) / f64::from(longer);
        let side = |full: u32| ((f64::from(full) * scale).round() as u32).max(1);
        assert_eq!((small.width(), small.height()), (side(image.width()), side(image.height())), "{}", case.name);
        if small.width().min(small.height()) < 4 {
            continue;
        }
        for (small, full) in quarters(&small).iter().zip(quarters(&image)) {
            assert!((small - full).abs() < 12.0, "{}: {small} {full}", case.name);
        }
    }
}

/// The mean brightness of the four quarters, which distinguishes an image from a rotated or mirrored one.
fn quarters(image: &RgbImage) -> [f64; 4] {
    let mut sums = [(0.0, 0.0); 4];
    for y in 0..image.height() {
        for x in 0..image.width() {
            let quarter = usize::from(x * 2 >= image.width()) + 2 * usize::from(y * 2 >= image.height());
            let [red, green, blue] = image.pixel(x, y).unwrap().map(f64::from);
            sums[quarter].0 += red + green + blue;
            sums[quarter].1 += 3.0;
        }
    }
    sums.map(|(sum, count)| sum / count)
}

#[test]
fn image_over_the_limit_is_refused_before_allocation() {
    let budget = MemoryBudget::new(1 << 20);
    let limits = DecodeLimits { max_megapixels: 0, budget: budget.clone() };
    // While the budget is in use, a decode that needs memory would wait forever.
    let _all = budget.acquire(1 << 20);
    for case in cases().iter().filter(|case| case.tolerance.is_some()) {
        let error = decode(&case.bytes, &limits).unwrap_err();
        assert!(error.to_string().contains("is too large"), "{}: {error}", case.name);
    }
}

#[test]
fn progressive_image_over_the_limit_is_refused() {
    let case = |name: &str| cases().into_iter().find(|case| case.name == name).unwrap();
    let progressive = crate::support::jpeg::enlarged(&case("jpeg-progressive").bytes, 0xc2, 22_600);
    let mut one_component_a_scan = crate::support::jpeg::enlarged(&case("jpeg-444").bytes, 0xc0, 22_600);
    let scan = crate::support::jpeg::position(&one_component_a_scan, 0xda);
    let header_of_one = [0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0];
    one_component_a_scan.splice(scan..scan + 14, header_of_one);
    for bytes in [progressive, one_component_a_scan] {
        let limits = DecodeLimits::default();
        let is_refused = |result: Result<(), DecodeError>| match result {
            Err(DecodeError::TooMuchMemory { bytes, .. }) => bytes > 3_000_000_000,
            _ => false,
        };
        assert!(is_refused(decode(&bytes, &limits).map(drop)));
        assert!(is_refused(decode_for_display(&bytes, &limits).map(drop)));
        assert!(is_refused(thumbnail(&bytes, 192, &limits).map(drop)));
    }
}

#[test]
fn image_memory_is_held_until_its_reservation_ends() {
    let limits = DecodeLimits { budget: MemoryBudget::new(1 << 30), ..DecodeLimits::default() };
    let case = cases().into_iter().find(|case| case.name == "jpeg-orientation-6").unwrap();
    let (image, reservation) = decode_reserved(&case.bytes, &limits).unwrap();
    assert_eq!(limits.budget.used_bytes(), image.image.rgb().len() as u64);
    drop(reservation);
    assert_eq!(limits.budget.used_bytes(), 0);
}

#[test]
fn details_are_read_without_decoding() {
    let details_of = |name: &str| {
        let case = cases().into_iter().find(|case| case.name == name).unwrap();
        details(&case.bytes)
    };
    let camera = details_of("jpeg-camera");
    assert_eq!(camera.stored_size, Some((37, 29)));
    assert_eq!(camera.color.as_deref(), Some("YCbCr, 8 bits per channel"));
    let rows: Vec<(&str, &str)> = camera.exif.iter().map(|(label, value)| (label.as_str(), value.as_str())).collect();
    assert_eq!(
        rows,
        [
            ("Camera", "Nikon D90"),
            ("Exposure", "1/250 s"),
            ("Aperture", "f/2.8"),
            ("ISO", "200"),
            ("Focal length", "50 mm"),
            ("Date", "2026:05:01 12:30:00"),
            ("Place", "48.85833, -2.29444"),
        ]
    );
    assert_eq!(details_of("png-alpha-16-bit").color.as_deref(), Some("RGB and alpha, 16 bits per channel"));
    assert_eq!(details_of("text-named-jpg").format, None);
}

/// The values that the script of the case wrote with Pillow.
#[test]
fn capture_has_date_camera_and_location() {
    let capture_of = |name: &str| {
        let case = cases().into_iter().find(|case| case.name == name).unwrap();
        capture(&case.bytes)
    };
    let camera = capture_of("jpeg-camera");
    assert_eq!(camera.taken, Some("2026-05-01T12:30:00".parse().unwrap()));
    assert_eq!(camera.camera.as_deref(), Some("Nikon D90"));
    let written = GeoPoint::new(48.0 + 51.0 / 60.0 + 30.0 / 3600.0, -(2.0 + 17.0 / 60.0 + 40.0 / 3600.0)).unwrap();
    assert!(camera.location.unwrap().distance_km(written) < 0.01, "{camera:?}");
    for without in ["jpeg-gray", "png-alpha-16-bit", "text-named-jpg", "empty"] {
        assert_eq!(capture_of(without), Capture::default(), "{without}");
    }
}

/// A `SplitMix64` generator: the same bytes on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }

    /// Changes some bytes, mostly near the start, where the structure is; sometimes truncates the file.
    fn mutated(&mut self, original: &[u8]) -> Vec<u8> {
        let mut bytes = original.to_vec();
        for _ in 0..=self.below(8) {
            let reach = if self.below(2) == 0 { bytes.len().min(200) } else { bytes.len() };
            let position = self.below(reach);
            bytes[position] = match self.below(4) {
                0 => 0,
                1 => 0xff,
                2 => bytes[position] ^ (1 << self.below(8)),
                _ => self.below(256) as u8,
            };
        }
        if self.below(8) == 0 {
            bytes.truncate(self.below(bytes.len()) + 1);
        }
        bytes
    }
}

#[test]
fn mutated_files_never_panic_or_exhaust_memory() {
    let budget = MemoryBudget::new(64 << 20);
    let limits = DecodeLimits { max_megapixels: 4, budget: budget.clone() };
    let mut random = Random(20);
    for case in cases() {
        if case.bytes.is_empty() || case.name == "jpeg-scan-bomb" {
            continue;
        }
        for _ in 0..15 {
            let bytes = random.mutated(&case.bytes);
            if let Ok(image) = decode(&bytes, &limits) {
                assert!(image.image.rgb().len() <= 4_000_000 * 3, "{}", case.name);
            }
            let _ = decode_for_display(&bytes, &limits);
            let _ = thumbnail(&bytes, 16, &limits);
            let _ = (details(&bytes), capture(&bytes));
            assert_eq!(budget.used_bytes(), 0, "{}", case.name);
        }
    }
}

#[test]
fn random_bytes_after_a_signature_never_panic() {
    let signatures: [&[u8]; 7] = [
        b"\xff\xd8\xff",
        b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR",
        b"RIFF\0\0\0\x7fWEBPVP8 ",
        b"BM\x10\x10\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0",
        b"II*\0\x08\0\0\0",
        b"MM\0*\0\0\0\x08",
        b"GIF89a",
    ];
    let limits = DecodeLimits { max_megapixels: 4, budget: MemoryBudget::new(64 << 20) };
    let mut random = Random(4);
    for signature in signatures {
        for _ in 0..300 {
            let mut bytes = signature.to_vec();
            let length = random.below(600);
            bytes.extend((0..length).map(|_| random.below(256) as u8));
            let _ = decode_for_display(&bytes, &limits);
            let _ = details(&bytes);
        }
    }
}
