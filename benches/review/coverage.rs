//! Repeats reviews of a simulated population with the program's own samples and intervals, for `coverage.py`.
//!
//! Arguments: a CSV file with one unit per line (image, class, score, margin, 1 if the prediction is correct, 1 if
//! reviewers are unsure), the number of verdicts, the design (or `images`: whole images, without a sample), the number
//! of repetitions, and the fraction of the sample that is judged. Prints a line per repetition and domain: the domain
//! (`all`, a class, or a tenth of the score), share, low and high.

#![expect(clippy::unwrap_used, reason = "a measurement stops at what it did not expect")]

use std::collections::HashSet;
use std::io::Write;

use spotcheck::domain::LabelSet;
use spotcheck::review::{Basis, Drawn, JudgedUnit, Judgment, SampleBy, Statement, Stratum, Unit, draw};
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
    let mut out = std::io::stdout().lock();
    for seed in 0..repetitions.parse().unwrap() {
        let (strata, drawn) = match by {
            Some(by) => draw(&units, *by, count, seed, &LabelSet::default()),
            None => whole_images(&units, count, seed),
        };
        let first = &drawn[..(drawn.len() as f64 * judged) as usize];
        let judged = first.iter().map(|drawn| {
            let Unit { image, class, score, .. } = units[drawn.unit];
            let judgment = judgment(drawn.unit);
            JudgedUnit { index: drawn.unit, image, class, score, stratum: drawn.stratum, judgment }
        });
        let basis = if by.is_some() { Basis::Sample } else { Basis::Judged };
        let statement = Statement::new(basis, &strata, judged);
        let mut print = |name: &str, inside: &dyn Fn(&JudgedUnit) -> bool| {
            let is_correct = |unit: &JudgedUnit| unit.judgment != Judgment::Wrong;
            let units = statement.units().iter().filter(|unit| inside(unit));
            if let Some(found) = statement.proportion(units, is_correct) {
                writeln!(out, "{name},{},{},{}", found.share, found.low, found.high).unwrap();
            }
        };
        print("all", &|_| true);
        for class in 0..3 {
            print(&format!("class {class}"), &|unit| unit.class == class);
        }
        for tenth in 5..10_u8 {
            let from = f32::from(tenth) / 10.0;
            print(&format!("score {from}"), &|unit| (from..from + 0.1).contains(&unit.score));
        }
    }
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
