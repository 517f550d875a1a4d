//! Finds the parts of an image that a prediction depends on, by covering one part after another.
//!
//! After Zeiler and Fergus, “Visualizing and Understanding Convolutional Networks” (ECCV 2014), section 4.2: a patch of
//! one color slides over the image, and the score of the prediction is recorded at each position. The image is divided
//! into cells; the patch covers `window` x `window` of them and moves by one cell. With `s` the score of the whole
//! image and `s(w)` that with patch `w`, a cell under the patches `W` gets the mean of `s - s(w)` over all `w` in `W`.
//!
//! The patch has the mean color of the image, which affects a model less than black.

use std::ops::Range;

use super::{PredictError, Predictor, Prepared, ResizeWindow, resize};
use crate::domain::{BoundingBox, Interpolation, Prediction, RgbImage, Saliency, SaliencyTarget};
use crate::tasks::{TaskControl, in_parallel};

/// Larger images are first made smaller: no model uses more, and covering a part would take longer than the model.
const LONGER_SIDE: u32 = 1600;

/// The resolution of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OcclusionGrid {
    /// Cells along the longer side, at least one.
    pub cells: usize,
    /// Cells per side of the patch, at least one.
    pub window: usize,
}

impl Default for OcclusionGrid {
    /// A patch of a fifth of the longer side, in steps of a fourteenth: about 200 predictions.
    fn default() -> Self {
        Self { cells: 14, window: 3 }
    }
}

/// Covers one part of the image after another and predicts each, on all lanes of the predictor.
///
/// # Errors
/// Canceled, the error of the predictor, or [`PredictError::Failed`] if the model does not return the prediction at
/// all.
pub fn occlusion_saliency(
    image: &RgbImage,
    target: SaliencyTarget,
    grid: OcclusionGrid,
    predictor: &dyn Predictor,
    control: &TaskControl,
) -> Result<Saliency, PredictError> {
    let reduced = reduced(image);
    let scale = f64::from(reduced.width()) / f64::from(image.width());
    let search = Search {
        patches: Patches::new(reduced.width(), reduced.height(), grid),
        target: scaled(target, scale as f32),
        color: mean_color(&reduced),
        image: reduced,
        predictor,
        control,
    };
    control.set_total(Some(search.patches.count() as u64 + 1));
    let whole = predictor.prepare(&search.image)?;
    let baseline = search.scores(0, &[whole])?[0];
    control.add_done(1);
    if baseline <= 0.0 {
        return Err(PredictError::Failed(
            "the model no longer returns this prediction; predict the image again".to_owned(),
        ));
    }
    let scores = search.all_scores()?;
    Ok(search.patches.saliency(baseline, &scores))
}

struct Search<'s> {
    image: RgbImage,
    target: SaliencyTarget,
    color: [u8; 3],
    patches: Patches,
    predictor: &'s dyn Predictor,
    control: &'s TaskControl,
}

impl Search<'_> {
    /// The score with each patch, in order. Each lane takes the next batch.
    fn all_scores(&self) -> Result<Vec<f32>, PredictError> {
        let (count, batch) = (self.patches.count(), self.predictor.max_batch().max(1));
        let scores = in_parallel(self.predictor.lanes(), count.div_ceil(batch), |lane, number| {
            self.control.checkpoint().map_err(|_| PredictError::Cancelled)?;
            let patches = number * batch..count.min((number + 1) * batch);
            let prepared = patches.clone().map(|patch| self.predictor.prepare(&self.covered(patch)));
            let found = self.scores(lane, &prepared.collect::<Result<Vec<_>, _>>()?)?;
            self.control.add_done(patches.len() as u64);
            Ok(found)
        })?;
        Ok(scores.concat())
    }

    /// The target's score in each image of a batch; in halves if the device runs out of memory.
    fn scores(&self, lane: usize, batch: &[Prepared]) -> Result<Vec<f32>, PredictError> {
        match self.predictor.predict_in_full(lane, batch, self.control) {
            Ok(predictions) => Ok(predictions.iter().map(|prediction| score(prediction, self.target)).collect()),
            Err(PredictError::OutOfMemory(_)) if batch.len() > 1 => {
                let (left, right) = batch.split_at(batch.len() / 2);
                let mut scores = self.scores(lane, left)?;
                scores.extend(self.scores(lane, right)?);
                Ok(scores)
            }
            Err(error) => Err(error),
        }
    }

    fn covered(&self, patch: usize) -> RgbImage {
        let [columns, rows] = self.patches.pixels(patch);
        let (width, height) = (self.image.width(), self.image.height());
        let mut rgb = self.image.rgb().to_vec();
        for row in rows {
            let line = &mut rgb[row * width as usize * 3..][..width as usize * 3];
            for pixel in line[columns.start * 3..columns.end * 3].as_chunks_mut().0 {
                *pixel = self.color;
            }
        }
        RgbImage::new(width, height, rgb).unwrap_or_else(|| self.image.clone())
    }
}

/// The positions of the patches. Those at the edges extend past the image, so that every cell is under the same number.
struct Patches {
    size: [usize; 2],
    rows: usize,
    columns: usize,
    window: usize,
}

impl Patches {
    fn new(width: u32, height: u32, grid: OcclusionGrid) -> Self {
        let size = [width as usize, height as usize];
        let longer = size[0].max(size[1]);
        let cells = grid.cells.clamp(1, longer);
        let along = |side: usize| {
            let exact = side as f64 * cells as f64 / longer as f64;
            (exact.round() as usize).clamp(1, side)
        };
        Self { size, rows: along(size[1]), columns: along(size[0]), window: grid.window.max(1) }
    }

    fn count(&self) -> usize {
        (self.rows + self.window - 1) * self.columns_of_patches()
    }

    fn columns_of_patches(&self) -> usize {
        self.columns + self.window - 1
    }

    /// Columns and rows of the pixels under a patch.
    fn pixels(&self, patch: usize) -> [Range<usize>; 2] {
        let (row, column) = (patch / self.columns_of_patches(), patch % self.columns_of_patches());
        let span = |at: usize, cells: usize, side: usize| {
            let first = (at + 1).saturating_sub(self.window);
            let end = (at + 1).min(cells);
            first * side / cells..end * side / cells
        };
        [span(column, self.columns, self.size[0]), span(row, self.rows, self.size[1])]
    }

    /// The mean drop over all patches above each cell.
    fn saliency(&self, baseline: f32, scores: &[f32]) -> Saliency {
        let mut drops = Vec::with_capacity(self.rows * self.columns);
        for row in 0..self.rows {
            for column in 0..self.columns {
                let above = (row..row + self.window).flat_map(|patch_row| {
                    let first = patch_row * self.columns_of_patches() + column;
                    &scores[first..first + self.window]
                });
                let sum: f32 = above.map(|score| baseline - score).sum();
                drops.push(sum / (self.window * self.window) as f32);
            }
        }
        Saliency { rows: self.rows, columns: self.columns, drops, baseline }
    }
}

fn score(prediction: &Prediction, target: SaliencyTarget) -> f32 {
    match target {
        SaliencyTarget::Class(class) => {
            prediction.classes().iter().find(|found| found.index == class).map_or(0.0, |found| found.score)
        }
        SaliencyTarget::Box { class_id, bounds } => prediction
            .detections()
            .iter()
            .filter(|found| found.class_id == class_id && found.bounds.iou(&bounds) >= 0.5)
            .map(|found| found.score)
            .fold(0.0, f32::max),
    }
}

fn reduced(image: &RgbImage) -> RgbImage {
    let longer = image.width().max(image.height());
    if longer <= LONGER_SIDE {
        return image.clone();
    }
    let along = |side: u32| {
        let exact = f64::from(side) * f64::from(LONGER_SIDE) / f64::from(longer);
        (exact.round() as u32).max(1)
    };
    let window = ResizeWindow::whole(along(image.width()), along(image.height()));
    let rgb = resize(image, window, Interpolation::PillowBilinear);
    RgbImage::new(window.size[0], window.size[1], rgb).unwrap_or_else(|| image.clone())
}

fn scaled(target: SaliencyTarget, scale: f32) -> SaliencyTarget {
    match target {
        SaliencyTarget::Class(_) => target,
        SaliencyTarget::Box { class_id, bounds } => {
            let edges: [f32; 4] = bounds.into();
            SaliencyTarget::Box { class_id, bounds: BoundingBox::from(edges.map(|edge| edge * scale)) }
        }
    }
}

fn mean_color(image: &RgbImage) -> [u8; 3] {
    let pixels = image.rgb().as_chunks::<3>().0;
    let mut sums = [0_u64; 3];
    for pixel in pixels {
        for (sum, value) in sums.iter_mut().zip(pixel) {
            *sum += u64::from(*value);
        }
    }
    sums.map(|sum| (sum / pixels.len().max(1) as u64) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{AxisTransform, ClassScore, Detection, PredictionContent};
    use crate::model::{Tensor, TensorData};
    use crate::tasks::ProgressUnit;

    /// Its score is the mean brightness of a region that only the test knows; as a detector, it finds the region
    /// itself.
    struct RegionPredictor {
        columns: Range<usize>,
        rows: Range<usize>,
        detects: bool,
        batch: usize,
        /// Larger batches do not fit into the device's memory.
        fits: usize,
    }

    impl Predictor for RegionPredictor {
        fn prepare(&self, image: &RgbImage) -> Result<Prepared, PredictError> {
            let size = [image.width(), image.height()];
            let shape = [1, size[1] as usize, size[0] as usize, 3];
            Ok(Prepared {
                tensor: Tensor::u8(shape, image.rgb().to_vec()),
                auxiliary: Vec::new(),
                image_from_model: AxisTransform::IDENTITY,
                canvas_size: size,
                image_size: size,
            })
        }

        fn predict(
            &self,
            _lane: usize,
            batch: &[Prepared],
            _control: &TaskControl,
        ) -> Result<Vec<Prediction>, PredictError> {
            if batch.len() > self.fits {
                return Err(PredictError::OutOfMemory("too small".to_owned()));
            }
            Ok(batch.iter().map(|prepared| self.prediction(prepared)).collect())
        }

        fn lanes(&self) -> usize {
            2
        }

        fn max_batch(&self) -> usize {
            self.batch
        }
    }

    impl RegionPredictor {
        fn prediction(&self, prepared: &Prepared) -> Prediction {
            let [width, height] = prepared.image_size;
            let TensorData::U8(rgb) = &prepared.tensor.data else {
                panic!("prepare makes bytes");
            };
            let mut sum = 0.0;
            for row in self.rows.clone() {
                for column in self.columns.clone() {
                    sum += f32::from(rgb[(row * width as usize + column) * 3]);
                }
            }
            let score = sum / (self.rows.len() * self.columns.len()) as f32 / 255.0;
            let bounds = BoundingBox::new(
                self.columns.start as f32,
                self.rows.start as f32,
                self.columns.end as f32,
                self.rows.end as f32,
            );
            let label = String::new();
            let prediction = if self.detects {
                PredictionContent::Detections(vec![Detection::new(bounds, 7, label, score)])
            } else {
                PredictionContent::Classes(vec![ClassScore { index: 7, label, score }])
            };
            Prediction::new([width, height], prediction)
        }
    }

    /// Black, with the region in white.
    fn image(predictor: &RegionPredictor) -> RgbImage {
        let (width, height) = (140, 70);
        let is_inside = |x: usize, y: usize| predictor.columns.contains(&x) && predictor.rows.contains(&y);
        let rgb = (0..height)
            .flat_map(|y| (0..width).flat_map(move |x| [if is_inside(x, y) { 255 } else { 0 }; 3]))
            .collect();
        RgbImage::new(width as u32, height as u32, rgb).unwrap()
    }

    fn predictor(detects: bool) -> RegionPredictor {
        RegionPredictor { columns: 80..100, rows: 20..40, detects, batch: 4, fits: 4 }
    }

    fn control() -> TaskControl {
        TaskControl::new(ProgressUnit::Steps)
    }

    fn explain(predictor: &RegionPredictor, target: SaliencyTarget) -> Saliency {
        let image = image(predictor);
        let grid = OcclusionGrid::default();
        occlusion_saliency(&image, target, grid, predictor, &control()).unwrap()
    }

    #[test]
    fn occlusion_finds_the_decisive_part() {
        let saliency = explain(&predictor(false), SaliencyTarget::Class(7));
        assert_eq!((saliency.rows, saliency.columns), (7, 14));
        assert_eq!(saliency.baseline, 1.0);
        let drop = |row: usize, column: usize| saliency.drops[row * 14 + column];
        // The region is the cells 8..10 x 2..4. A patch of 3 x 3 cells that covers all of it leaves the mean color, 400
        // of 9800 pixels white: 10 of 255.
        let whole = 1.0 - 10.0 / 255.0;
        // Of the nine patches above cell (2, 8), four cover the whole region, four half of it and one a quarter.
        let expected = whole * (4.0 + 4.0 * 0.5 + 0.25) / 9.0;
        assert!((drop(2, 8) - expected).abs() < 1e-5, "{}", drop(2, 8));
        assert!((saliency.largest_drop() - expected).abs() < 1e-5);
        assert_eq!(drop(6, 0), 0.0);
        assert_eq!(drop(2, 13), 0.0);
    }

    #[test]
    fn box_is_tracked_by_class_and_position() {
        let predictor = predictor(true);
        let bounds = BoundingBox::new(82.0, 20.0, 100.0, 40.0);
        let target = SaliencyTarget::Box { class_id: 7, bounds };
        assert!(explain(&predictor, target).strength(2, 8) > 0.99);
        let other = SaliencyTarget::Box { class_id: 7, bounds: BoundingBox::new(0.0, 0.0, 20.0, 20.0) };
        let grid = OcclusionGrid::default();
        let image = image(&predictor);
        let result = occlusion_saliency(&image, other, grid, &predictor, &control());
        assert!(matches!(result, Err(PredictError::Failed(_))));
    }

    #[test]
    fn failed_batch_is_halved() {
        let small = RegionPredictor { fits: 1, ..predictor(false) };
        let whole = explain(&predictor(false), SaliencyTarget::Class(7));
        assert_eq!(explain(&small, SaliencyTarget::Class(7)), whole);
    }

    #[test]
    fn canceled_search_ends() {
        let predictor = predictor(false);
        let control = control();
        control.cancel();
        let result = occlusion_saliency(
            &image(&predictor),
            SaliencyTarget::Class(7),
            OcclusionGrid::default(),
            &predictor,
            &control,
        );
        assert_eq!(result, Err(PredictError::Cancelled));
    }

    #[test]
    fn large_image_and_its_box_are_downscaled() {
        let image = RgbImage::new(3200, 10, vec![9; 3200 * 10 * 3]).unwrap();
        assert_eq!((reduced(&image).width(), reduced(&image).height()), (1600, 5));
        let target = SaliencyTarget::Box { class_id: 1, bounds: BoundingBox::new(0.0, 2.0, 4.0, 8.0) };
        let SaliencyTarget::Box { bounds, .. } = scaled(target, 0.5) else {
            panic!("a box stays a box");
        };
        assert_eq!(bounds, BoundingBox::new(0.0, 1.0, 2.0, 4.0));
    }

    #[test]
    fn single_pixel_image_has_one_cell() {
        let patches = Patches::new(1, 1, OcclusionGrid::default());
        assert_eq!((patches.rows, patches.columns), (1, 1));
        assert!((0..patches.count()).all(|patch| patches.pixels(patch) == [0..1, 0..1]));
    }
}
