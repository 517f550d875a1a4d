//! Compares with libjpeg-turbo's own reduced sizes, for sample images and damaged files.

use std::path::{Path, PathBuf};

use turbojpeg::{Compressor, Image, PixelFormat, Subsamp};

use super::super::super::Scale;
use super::super::cosines::ZIGZAG;
use super::super::{decompress, read_header, scaling_factor, with_plain_header};
use super::*;
use crate::domain::RgbImage;
use crate::image::decode;
use crate::image::decode::DecodeLimits;

const FACTORS: [ScalingFactor; 2] = [ScalingFactor::ONE_QUARTER, ScalingFactor::ONE_EIGHTH];

const SAMPLINGS: [Subsamp; 5] = [Subsamp::None, Subsamp::Sub2x1, Subsamp::Sub1x2, Subsamp::Sub2x2, Subsamp::Gray];

/// libjpeg rounds each sample before the color conversion.
const ROUNDING: f64 = 2.0;

/// The tolerance where libjpeg interpolates the colors of a smooth image, and this decoder does not.
const SMOOTH: f64 = 8.0;

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// The sample images, each cropped to at most this size.
fn sample_images(width: u32, height: u32) -> Vec<RgbImage> {
    let folders = ["assets/samples", "tests/tfrecord/photos"];
    let paths = folders.iter().flat_map(|folder| files_in(&root().join(folder)));
    let images = paths.filter(|path| path.extension().is_some_and(|kind| kind != "md"));
    let sample_images: Vec<RgbImage> = images
        .map(|path| {
            let bytes = std::fs::read(path).unwrap();
            let image = decode::decode(&bytes, &DecodeLimits::default()).unwrap();
            cut(&image.image, width, height)
        })
        .collect();
    assert!(sample_images.len() > 10, "the sample images are missing");
    sample_images
}

/// The middle of an image, where its subject is.
fn cut(image: &RgbImage, width: u32, height: u32) -> RgbImage {
    let [width, height] = [width.min(image.width()), height.min(image.height())];
    let [left, top] = [(image.width() - width) / 2, (image.height() - height) / 2];
    let pixels = (top..top + height).flat_map(|y| (left..left + width).map(move |x| (x, y)));
    let rgb = pixels.flat_map(|(x, y)| image.pixel(x, y).unwrap()).collect();
    RgbImage::new(width, height, rgb).unwrap()
}

#[derive(Debug, Clone, Copy)]
enum Codes {
    OfTheStandard,
    OfTheFile,
}

fn encoded(image: &RgbImage, quality: i32, sampling: Subsamp, codes: Codes) -> Vec<u8> {
    let mut compressor = Compressor::new().unwrap();
    compressor.set_quality(quality).unwrap();
    compressor.set_subsamp(sampling).unwrap();
    compressor.set_optimize(matches!(codes, Codes::OfTheFile)).unwrap();
    let image = Image {
        pixels: image.rgb(),
        width: image.width() as usize,
        pitch: image.width() as usize * 3,
        height: image.height() as usize,
        format: PixelFormat::RGB,
    };
    compressor.compress_to_vec(image).unwrap()
}

fn reduced(file: &[u8], factor: ScalingFactor) -> Option<Vec<u8>> {
    let file = with_plain_header(file);
    decode(&file, &read_header(&file).ok()?, factor)
}

fn reduced_by_libjpeg(file: &[u8], factor: ScalingFactor) -> Vec<u8> {
    let (rgb, flaw) = decompress(file, &read_header(file).unwrap(), factor).unwrap();
    assert_eq!(flaw, None);
    rgb
}

/// The mean and largest difference of a channel.
fn differences(got: &[u8], expected: &[u8]) -> [f64; 2] {
    assert_eq!(got.len(), expected.len());
    let pairs = got.iter().zip(expected);
    let differences = pairs.map(|(got, expected)| f64::from(got.abs_diff(*expected)));
    let [sum, largest] =
        differences.fold([0.0, 0.0], |[sum, largest], difference| [sum + difference, difference.max(largest)]);
    [sum / got.len() as f64, largest]
}

/// The file with quantizers of zero for all frequencies that blocks of these sizes cannot show, so that libjpeg has no
/// more information than this decoder.
fn with_low_frequencies_only(file: &[u8], blocks_of_tables: [[usize; 2]; 2]) -> Vec<u8> {
    let mut changed = file.to_vec();
    for segment in segments(file).filter(|segment| segment.marker == 0xdb) {
        for table in changed[segment.payload].chunks_exact_mut(1 + BLOCK) {
            let block = blocks_of_tables[usize::from(table[0])];
            let [width, height] = block.map(|side| side as u8);
            for (quantizer, place) in table[1..].iter_mut().zip(ZIGZAG) {
                if place % 8 >= width || place / 8 >= height {
                    *quantizer = 0;
                }
            }
        }
    }
    changed
}

/// Checks sizes at which libjpeg's blocks are as large as ours.
fn check_low_frequencies(file: &[u8], sampling: Subsamp, what: &str) {
    for factor in FACTORS {
        let size = SIDE / factor.denom();
        let chroma = [size * sampling.width(), size * sampling.height()];
        let file = with_low_frequencies_only(file, [[size, size], chroma]);
        let got = reduced(&file, factor).expect(what);
        let [_, largest] = differences(&got, &reduced_by_libjpeg(&file, factor));
        assert!(largest <= ROUNDING, "{what} at {factor}: {largest}, not {ROUNDING}");
    }
}

#[test]
fn frequencies_match_libjpeg() {
    for (number, image) in sample_images(150, 110).iter().enumerate() {
        for sampling in [Subsamp::None, Subsamp::Sub2x2, Subsamp::Gray] {
            for quality in [30, 75, 95, 100] {
                for codes in [Codes::OfTheStandard, Codes::OfTheFile] {
                    let what = format!("sample image {number}, {sampling:?}, {quality}, {codes:?}");
                    let file = encoded(image, quality, sampling, codes);
                    check_low_frequencies(&file, sampling, &what);
                }
            }
        }
    }
}

#[test]
fn partial_block_sizes_match_libjpeg() {
    let sample_images = sample_images(1023, 767);
    for [width, height] in [[1, 1], [7, 9], [8, 8], [16, 1], [17, 33], [1023, 767]] {
        let image = sample_images.iter().map(|whole| cut(whole, width, height));
        let image = image.max_by_key(|part| part.rgb().len()).unwrap();
        for sampling in [Subsamp::None, Subsamp::Sub2x2, Subsamp::Gray] {
            let what = format!("{}x{}, {sampling:?}", image.width(), image.height());
            let file = encoded(&image, 90, sampling, Codes::OfTheStandard);
            check_low_frequencies(&file, sampling, &what);
        }
    }
}

#[test]
fn one_directional_subsampling_matches_libjpeg() {
    let ramp = |x: u32, y: u32| [x * 255 / 160, (x + y) * 255 / 280, y * 255 / 120];
    let pixels = (0..120).flat_map(|y| (0..160).flat_map(move |x| ramp(x, y)));
    let ramps = RgbImage::new(160, 120, pixels.map(|value| value as u8).collect()).unwrap();
    for sampling in [Subsamp::Sub2x1, Subsamp::Sub1x2] {
        let file = encoded(&ramps, 95, sampling, Codes::OfTheStandard);
        for factor in FACTORS {
            let got = reduced(&file, factor).unwrap();
            let [_, largest] = differences(&got, &reduced_by_libjpeg(&file, factor));
            assert!(largest <= SMOOTH, "{sampling:?} at {factor}: {largest}, not {SMOOTH}");
        }
    }
}

#[test]
fn sample_image_matches_libjpeg() {
    for (number, image) in sample_images(200, 150).iter().enumerate() {
        for sampling in SAMPLINGS {
            for quality in [30, 95] {
                let what = format!("sample image {number}, {sampling:?}, {quality}");
                let file = encoded(image, quality, sampling, Codes::OfTheStandard);
                check_likeness(&file, &what);
            }
        }
    }
}

#[test]
fn odd_sizes_match_libjpeg_in_every_subsampling() {
    let sample_image = sample_images(200, 150).swap_remove(0);
    for [width, height] in [[1, 1], [2, 31], [7, 9], [17, 33], [61, 45], [199, 149]] {
        for sampling in SAMPLINGS {
            let what = format!("{width}x{height}, {sampling:?}");
            let part = cut(&sample_image, width, height);
            let file = encoded(&part, 90, sampling, Codes::OfTheFile);
            check_likeness(&file, &what);
        }
    }
}

/// libjpeg's pixels are means over all frequencies. The skipped ones contribute at most a third of their strength to a
/// mean, so they are missed only at hard edges. Where libjpeg enlarges colors, it smooths them.
fn check_likeness(file: &[u8], what: &str) {
    let [mean_tolerance, largest_tolerance] = [6.0, 72.0];
    for factor in FACTORS {
        let got = reduced(file, factor).expect(what);
        let [mean, largest] = differences(&got, &reduced_by_libjpeg(file, factor));
        assert!(mean <= mean_tolerance && largest <= largest_tolerance, "{what} at {factor}: {mean} and {largest}");
    }
}

fn case(name: &str) -> Vec<u8> {
    let files = files_in(&root().join("tests/cases/decode").join(name));
    let image = files.iter().find(|path| path.file_stem().unwrap() == "image");
    std::fs::read(image.unwrap()).unwrap()
}

#[test]
fn restart_markers_are_followed() {
    check_low_frequencies(&case("jpeg-restart-markers"), Subsamp::Sub2x2, "two units");
    check_low_frequencies(&case("jpeg-restart-each-unit"), Subsamp::None, "a unit");
    check_low_frequencies(&case("jpeg-restart-each-row"), Subsamp::Sub2x2, "a row");
    for (kind, sampling) in [("444", Subsamp::None), ("420", Subsamp::Sub2x2)] {
        for units in [1, 3, 7] {
            let name = format!("jpeg-restart-{kind}-every-{units}");
            check_low_frequencies(&case(&name), sampling, &name);
        }
    }
    // The same coefficients, whatever the interval.
    for factor in FACTORS {
        let of_interval = |units| reduced(&case(&format!("jpeg-restart-422-every-{units}")), factor);
        let each_unit = of_interval(1).unwrap();
        assert!(of_interval(3).unwrap() == each_unit, "3 at {factor}");
        assert!(of_interval(7).unwrap() == each_unit, "7 at {factor}");
    }
}

#[test]
fn uncommon_files_are_left_to_libjpeg() {
    let all = files_in(&root().join("tests/cases/decode"));
    let names = all.iter().map(|path| path.file_name().unwrap().to_str().unwrap());
    let left: Vec<&str> = names
        .filter(|name| name.starts_with("jpeg-"))
        .filter(|name| reduced(&case(name), ScalingFactor::ONE_QUARTER).is_none())
        .collect();
    assert_eq!(
        left,
        [
            "jpeg-20000x20000-without-data",
            "jpeg-65500x65500",
            "jpeg-before-the-first-scan",
            "jpeg-black-with-a-hole",
            "jpeg-cmyk",
            "jpeg-cmyk-progressive",
            "jpeg-cmyk-unknown-adobe-transform",
            "jpeg-cmyk-with-a-hole",
            "jpeg-extraneous-bytes-before-the-end",
            "jpeg-gray-progressive",
            "jpeg-header-only",
            "jpeg-hole-and-no-end",
            "jpeg-hole-in-the-data",
            "jpeg-lost-place",
            "jpeg-progressive",
            "jpeg-progressive-with-a-hole",
            "jpeg-rgb",
            "jpeg-scan-bomb",
            "jpeg-three-bytes",
            "jpeg-truncated",
            "jpeg-truncated-between-scans",
            "jpeg-truncated-progressive",
            "jpeg-without-huffman-tables",
            "jpeg-without-its-own-huffman-tables",
            "jpeg-without-quantization-tables",
            "jpeg-wrong-restart-marker",
            "jpeg-ycck",
        ]
    );
}

/// A `SplitMix64` generator: the same numbers on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }
}

/// Small files with many features.
fn small_files() -> Vec<Vec<u8>> {
    let sample_image = sample_images(60, 45).swap_remove(0);
    let mut files: Vec<Vec<u8>> =
        SAMPLINGS.iter().map(|&sampling| encoded(&sample_image, 90, sampling, Codes::OfTheFile)).collect();
    files.push(case("jpeg-restart-each-unit"));
    files
}

/// Compares a thumbnail with that of libjpeg alone: for a damaged file, pixels and messages must be equal.
fn check_damaged(file: &[u8], what: &str) {
    let thumbnail = super::super::decode(file, &DecodeLimits::default(), Scale::AtLeast(8));
    let file = with_plain_header(file);
    let Ok(header) = read_header(&file) else {
        assert!(thumbnail.is_err(), "{what}");
        return;
    };
    let factor = scaling_factor(&header, Scale::AtLeast(8));
    let scaled = header.scaled(factor);
    if reduced(&file, factor).is_some() {
        let got = thumbnail.map(|got| [got.width as usize, got.height as usize]);
        assert_eq!(got, Ok([scaled.width, scaled.height]), "{what}");
        return;
    }
    match (thumbnail, decompress(&file, &header, factor)) {
        (Ok(got), Ok((rgb, flaw))) => {
            assert!(got.rgb == rgb, "{what}: other pixels");
            assert_eq!(got.flaw, flaw, "{what}");
        }
        (Err(got), Err(expected)) => assert_eq!(got, expected, "{what}"),
        (got, _) => assert!(got.is_err(), "{what}: libjpeg refuses it"),
    }
}

#[test]
fn truncated_file_is_left_to_libjpeg() {
    for (number, file) in small_files().iter().enumerate() {
        for length in 0..file.len() {
            let (cut, what) = (&file[..length], format!("file {number} cut at {length}"));
            assert!(reduced(cut, ScalingFactor::ONE_QUARTER).is_none(), "{what}");
            check_damaged(cut, &what);
        }
    }
}

#[test]
fn damage_never_panics_or_changes_the_report() {
    let mut random = Random(64);
    for (number, file) in small_files().iter().enumerate() {
        for round in 0..1000 {
            let mut damaged = file.clone();
            for _ in 0..=random.below(3) {
                let position = random.below(damaged.len());
                damaged[position] = match random.below(4) {
                    0 => 0,
                    1 => 0xff,
                    2 => damaged[position] ^ (1 << random.below(8)),
                    _ => random.below(256) as u8,
                };
            }
            check_damaged(&damaged, &format!("file {number}, round {round}"));
        }
    }
}
