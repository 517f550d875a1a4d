//! Repeats reviews of a simulated population with the program's own samples and intervals, for `coverage.py`.
//!
//! Arguments: a CSV file with one unit per line (image, class, score, margin, 1 if the prediction is correct, 1 if
//! reviewers are unsure, cluster of the image), the number of verdicts, the design (or `images`: whole images, without a
//! sample; `drawn`: whole images drawn from a listing with folders), the number of repetitions, and the fraction
//! of the sample that is judged. Prints a line per repetition and domain: the domain (`all`, a class, or a tenth of the
//! score), share, low, high, and the number of verdicts.

#![expect(clippy::unwrap_used, reason = "a measurement stops at what it did not expect")]

use std::collections::{HashMap, HashSet};
use std::io::Write;

use spotcheck::domain::LabelSet;
use spotcheck::review::{
    Basis, CountedImages, DrawBy, Drawn, DrawnImages, ImageClusters, ImageDraw, Judgment, ReviewedUnit, SampleBy,
    Statement, Stratum, Unit, draw, draw_from_clusters,
};
use strum::VariantArray;

fn main() {
    let arguments: Vec<String> = std::env::args().filter(|argument| argument != "--bench").collect();
    let [_, file, count, design, repetitions, judged] = &arguments[..] else {
        return;
    };
    let lines = std::fs::read_to_string(file).unwrap();
    let rows: Vec<Vec<f32>> =
        lines.lines().map(|line| line.split(',').map(|cell| cell.parse().unwrap()).collect()).collect();
    let unit = |row: &Vec<f32>| Unit {
        image: row[0] as u32,
        box_index: Some(0),
        class: row[1] as u32,
        score: row[2],
        margin: row[3],
    };
    let units: Vec<Unit> = rows.iter().map(unit).collect();
    let judgment = |unit: usize| match (rows[unit][4] == 1.0, rows[unit][5] == 1.0) {
        (_, true) => Judgment::Unsure,
        (true, _) => Judgment::Correct { is_accepted: true },
        (false, _) => Judgment::Wrong,
    };
    let (count, judged): (usize, f64) = (count.parse().unwrap(), judged.parse().unwrap());
    let by = SampleBy::VARIANTS.iter().find(|by| <&str>::from(**by) == design);
    let clusters = clusters(&rows);
    let mut out = std::io::stdout().lock();
    for seed in 0..repetitions.parse().unwrap() {
        let (strata, drawn) = match by {
            Some(SampleBy::Cover) => draw_from_clusters(&units, &clusters, count, seed),
            Some(by) => draw(&units, *by, count, seed, &LabelSet::default()),
            None if design == "drawn" => drawn_images(&units, &clusters, count, seed),
            None => whole_images(&units, count, seed),
        };
        let end = (drawn.len() as f64 * judged) as usize;
        let reviewed = drawn.iter().enumerate().map(|(at, drawn)| {
            let Unit { image, class, score, .. } = units[drawn.unit];
            let judgment = (at < end).then(|| judgment(drawn.unit));
            ReviewedUnit { index: drawn.unit, image, class, score, stratum: drawn.stratum, judgment }
        });
        let statement = match by {
            Some(_) => Statement::new(Basis::Sample, &strata, reviewed),
            None if design == "drawn" => {
                let image_strata = strata.iter().map(|stratum| CountedImages {
                    population: stratum.population,
                    sampled: stratum.sampled,
                    with_units: stratum.sampled,
                    judged: stratum.sampled,
                });
                Statement::of_images(&image_strata.collect::<Vec<_>>(), reviewed)
            }
            None => Statement::new(Basis::Judged, &strata, reviewed),
        };
        let mut print = |name: &str, is_inside: &dyn Fn(u32, f32) -> bool| {
            let is_correct = |unit: &ReviewedUnit| matches!(unit.judgment, Some(Judgment::Correct { .. }));
            let population = units.iter().filter(|unit| is_inside(unit.class, unit.score)).count();
            let inside = statement.units().iter().filter(|unit| is_inside(unit.class, unit.score));
            let verdicts = statement.verdicts(inside);
            if let Some(found) = verdicts.estimate(population, is_correct) {
                let count = verdicts.counted().count();
                writeln!(out, "{name},{},{},{},{count}", found.share, found.low, found.high).unwrap();
            }
        };
        print("all", &|_, _| true);
        for of_class in 0..3 {
            print(&format!("class {of_class}"), &|class, _| class == of_class);
        }
        for tenth in 5..10_u8 {
            let from = f32::from(tenth) / 10.0;
            print(&format!("score {from}"), &|_, score| (from..from + 0.1).contains(&score));
        }
    }
}

fn clusters(rows: &[Vec<f32>]) -> ImageClusters {
    let images = rows.iter().map(|row| row[0] as usize).max().unwrap() + 1;
    let mut of_image = vec![0; images];
    for row in rows {
        of_image[row[0] as usize] = row[6] as usize;
    }
    let names = (0..=*of_image.iter().max().unwrap()).map(|cluster| cluster.to_string()).collect();
    ImageClusters { names, of_image }
}

/// As `spotcheck sample --by prefix` draws images, from ten folders.
fn drawn_images(units: &[Unit], clusters: &ImageClusters, count: usize, seed: u64) -> (Vec<Stratum>, Vec<Drawn>) {
    let mut images = units.to_vec();
    images.dedup_by_key(|unit| unit.image);
    let wanted = count * images.len() / units.len();
    let mut draw = ImageDraw::new(DrawBy::Prefix, wanted, seed);
    for Unit { image, .. } in &images {
        draw.add(&format!("{}/{image}", clusters.of_image[*image as usize] % 10), || *image);
    }
    let DrawnImages { strata, images, .. } = draw.finish();
    let stratum_of: HashMap<u32, usize> = images.into_iter().map(|(stratum, image)| (image, stratum)).collect();
    let of_drawn = units.iter().enumerate().filter_map(|(at, unit)| Some((at, *stratum_of.get(&unit.image)?)));
    let drawn = of_drawn.map(|(unit, stratum)| Drawn { unit, stratum }).collect();
    (strata, drawn)
}

/// All units of random images, about `count`.
fn whole_images(units: &[Unit], count: usize, seed: u64) -> (Vec<Stratum>, Vec<Drawn>) {
    let mut images = units.to_vec();
    images.dedup_by_key(|unit| unit.image);
    let share = images.len() as f64 / units.len() as f64;
    let (_, chosen) = draw(&images, SampleBy::Random, (count as f64 * share) as usize, seed, &LabelSet::default());
    let chosen: HashSet<u32> = chosen.into_iter().map(|drawn| images[drawn.unit].image).collect();
    let of_chosen = (0..units.len()).filter(|unit| chosen.contains(&units[*unit].image));
    let drawn: Vec<Drawn> = of_chosen.map(|unit| Drawn { unit, stratum: 0 }).collect();
    (vec![Stratum { name: "all".to_owned(), population: units.len(), sampled: drawn.len() }], drawn)
}
