//! Resizes an image of random values with each interpolation, on one thread, and prints the milliseconds of the fastest
//! round.
//!
//! usage: `cargo bench --bench resize -- WIDTH HEIGHT TO_WIDTH TO_HEIGHT [ROUNDS]`

#![expect(clippy::print_stdout, reason = "its output is what it is for")]

use std::time::Instant;

use spotcheck::domain::{Interpolation, RgbImage};
use spotcheck::model::{ResizeWindow, resize};
use strum::VariantArray as _;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Cargo adds its own flag.
    let numbers = std::env::args().skip(1).filter(|text| !text.starts_with("--")).map(|text| text.parse());
    let numbers: Vec<u32> = numbers.collect::<Result<_, _>>()?;
    let &[width, height, new_width, new_height, ref rounds @ ..] = &numbers[..] else {
        println!("which sizes?");
        return Ok(());
    };
    let mut state = 12345_u32;
    let levels = (0..width * height * 3).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    });
    let image = RgbImage::new(width, height, levels.collect()).ok_or("an image needs pixels")?;
    for &interpolation in Interpolation::VARIANTS {
        let mut best = f64::INFINITY;
        for _ in 0..*rounds.first().unwrap_or(&20) {
            let begun = Instant::now();
            std::hint::black_box(resize(&image, ResizeWindow::whole(new_width, new_height), interpolation));
            best = best.min(begun.elapsed().as_secs_f64() * 1000.0);
        }
        println!("{} {best:.3}", interpolation.into_str());
    }
    Ok(())
}
