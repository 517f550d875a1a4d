//! Exports of an evaluation: all numbers, the table of classes, plots.

mod classes;
mod plots;
mod png;

use std::io::Write;

use serde::Serialize;

pub use self::classes::write_classes_csv;
pub(crate) use self::plots::percent;
pub use self::plots::{Axis, Bar, Mark, Plane, Plot, Shapes, Spot, bars, plots};
pub use self::png::PlotImages;
use super::ExportError;
use super::target::{ExportTarget, FOLDER_MARK, WholeFile, WholeFolder};
use crate::evaluation::Evaluated;
use crate::tasks::TaskControl;

/// Writes all numbers as one JSON object.
///
/// # Errors
/// On an error, nothing is written under the name of the target; the same applies to every function here.
pub fn write_json(evaluated: &Evaluated, target: &ExportTarget) -> Result<(), ExportError> {
    let mut file = WholeFile::create(target)?;
    let failed = ExportError::write(&target.path);
    serde_json::to_writer(&mut file, evaluated).map_err(|error| failed(error.into()))?;
    file.write_all(b"\n").map_err(failed)?;
    file.commit()
}

/// The content of the file that marks a folder of plots.
#[derive(Serialize)]
struct PlotsMark<'e> {
    format: &'static str,
    predictions: &'e str,
    truth: &'e str,
    plots: Vec<&'static str>,
}

/// Writes a folder with each plot as SVG and PNG. Returns their names.
pub fn write_plots(
    evaluated: &Evaluated,
    target: &ExportTarget,
    control: &TaskControl,
) -> Result<Vec<&'static str>, ExportError> {
    let folder = WholeFolder::create(target)?;
    let images = PlotImages::default();
    let plots = plots(&evaluated.metrics);
    let write = |name: String, content: &[u8]| folder.write(&name, content).map_err(ExportError::write(&target.path));
    for plot in &plots {
        control.checkpoint()?;
        let svg = plot.svg();
        write(format!("{}.svg", plot.name), svg.as_bytes())?;
        write(format!("{}.png", plot.name), &images.png(&svg).map_err(ExportError::Plot)?)?;
    }
    let names: Vec<&'static str> = plots.iter().map(|plot| plot.name).collect();
    let counted = &evaluated.counted;
    let mark =
        PlotsMark { format: "plots", predictions: &counted.predictions, truth: &counted.truth, plots: names.clone() };
    let mark = serde_json::to_vec(&mark).map_err(|error| ExportError::write(&target.path)(error.into()))?;
    write(FOLDER_MARK.to_owned(), &mark)?;
    folder.commit()?;
    Ok(names)
}
