//! Test runs of the graph on synthetic images.

use super::image_input::{ImagePort, Sizes, resize_text, word};
use super::signature::MAX_SIDE;
use super::{Findings, Outputs, Overrules, RecognizeError, Refusal, RunGraph};
use crate::domain::{AuxiliaryInput, AuxiliaryValue, ElementType, ImageInput, Layout, ResizeRule, RgbImage};
use crate::model::{Prepared, Tensor, TensorData, preprocess};

/// Width and height of the probes if the graph does not fix them, in pixels. First one that is not square, so that x
/// and y differ, and a multiple of 64, which networks that halve the image six times need; then the usual sizes for
/// networks that declare any size but do not accept it.
const FREE_SIZES: [[u32; 2]; 3] = [[320, 256], [224, 224], [640, 640]];

/// The position of a probe's bright patch, as a fraction of the width.
const PATCH_X: [f64; 2] = [0.25, 0.75];

/// Runs the graph and stores the results.
pub(super) struct Prober<'r, 'f> {
    port: ImagePort,
    input: ImageInput,
    size: [u32; 2],
    run: &'r mut RunGraph<'f>,
    /// The outputs for each position of the patch.
    pub predictions: Vec<Outputs>,
}

impl<'r, 'f> Prober<'r, 'f> {
    /// Runs the first two probes, trying each layout that the dimensions allow, and several sizes if they are free.
    pub(super) fn start(
        mut port: ImagePort,
        overrules: &Overrules,
        findings: &mut Findings,
        run: &'r mut RunGraph<'f>,
    ) -> Result<Self, RecognizeError> {
        let (mut ran, mut failures) = (Vec::new(), Vec::new());
        for layout in port.layouts.clone() {
            for size in probe_sizes(&port.sizes(layout)) {
                let input = probe_input(&port, layout, size, overrules)?;
                match run_probes(&input, size, run)? {
                    Ok(trial) => {
                        ran.push((input, trial));
                        break;
                    }
                    Err(failure) => failures.push(failure),
                }
            }
        }
        if ran.is_empty() {
            return Err(Refusal::new(format!(
                "the graph failed on a test image of {}. If it needs another size or layout, set input.resize or \
                input.layout",
                failures.join("; and of ")
            ))
            .into());
        }
        let both_run = ran.len() > 1;
        let (input, trial) = ran.swap_remove(0);
        if both_run {
            let because = "the graph runs with channels first and with channels last";
            findings.assumed("input.layout", word(input.layout), because);
        } else if port.layouts.len() > 1 {
            let failure = failures.first().map(String::as_str).unwrap_or_default();
            let because = format!("the graph runs with this size but not with {failure}");
            findings.recognized("input.layout", word(input.layout), because);
        }
        let sizes = port.sizes(input.layout);
        let is_first_choice = probe_sizes(&sizes).first() == Some(&trial.size);
        if !is_first_choice {
            port.preferred_size = Some((trial.size, "the graph failed on other sizes".to_owned()));
        }
        Ok(Self { port, input, size: trial.size, run, predictions: trial.predictions })
    }

    /// Width and height of the probes, in pixels.
    pub(super) fn size(&self) -> [u32; 2] {
        self.size
    }

    pub(super) fn sizes(&self) -> Sizes {
        self.port.sizes(self.input.layout)
    }

    pub(super) fn into_input(self) -> ImageInput {
        self.input
    }

    /// The values of one output in each of the first two runs.
    pub(super) fn values_of<'p>(&'p self, output: &str) -> impl Iterator<Item = &'p Tensor> {
        self.predictions.iter().filter_map(move |outputs| outputs.get(output))
    }

    /// Whether boxes follow the image size in the auxiliary inputs. `extent` returns the largest first and second
    /// number of the boxes. Also determines which number of the size is the width, and corrects the auxiliary inputs.
    pub(super) fn told_size(
        &mut self,
        extent: impl Fn(&Outputs, [u32; 2]) -> Option<[f64; 2]>,
        findings: &mut Findings,
    ) -> ToldSize {
        let tells_image_size = |value| !matches!(value, AuxiliaryValue::PixelMask | AuxiliaryValue::InputHeightWidth);
        let Some(told) = self.input.auxiliary.iter().position(|input| tells_image_size(input.value)) else {
            return ToldSize::Ignored;
        };
        let Some(before) = self.predictions.first().and_then(|outputs| extent(outputs, self.size)) else {
            return ToldSize::Followed;
        };
        let Ok(mut prepared) = preprocess(&self.input, &patch(self.size, PATCH_X[0])) else {
            return ToldSize::Ignored;
        };
        // If the first number is doubled, or a scale factor halved, boxes become twice as large along one axis.
        let value = self.input.auxiliary[told].value;
        let factor = if value == AuxiliaryValue::ScaleFactor { 0.5 } else { 2.0 };
        if let Some((_, Tensor { data: TensorData::F32(numbers), .. })) = prepared.auxiliary.get_mut(told)
            && let Some(first) = numbers.first_mut()
        {
            *first *= factor;
        }
        let after = self.run_prepared(&prepared).ok().and_then(|outputs| extent(&outputs, self.size));
        let Some(after) = after else {
            return ToldSize::Ignored;
        };
        let doubled = [0, 1].map(|axis| (after[axis] / before[axis].max(1e-6) - 2.0).abs() < 0.1);
        if doubled == [false; 2] {
            return ToldSize::Ignored;
        }
        match value {
            // The height is known to come first.
            AuxiliaryValue::ImageHeightWidth | AuxiliaryValue::ScaleFactor if doubled[0] => {
                ToldSize::FollowedHeightFirst
            }
            AuxiliaryValue::ImageHeightWidth | AuxiliaryValue::ScaleFactor => ToldSize::FollowedWidthFirst,
            // A graph can return boxes with x or y first; detectors that get a size return x first.
            AuxiliaryValue::ImageWidthHeight => {
                let width_first = doubled[0];
                let right =
                    if width_first { AuxiliaryValue::ImageWidthHeight } else { AuxiliaryValue::ImageHeightWidth };
                self.input.auxiliary[told].value = right;
                let because =
                    format!("twice the first number makes the boxes {}", if width_first { "wider" } else { "higher" });
                findings.recognized("input.auxiliary", right.into_str(), because);
                ToldSize::Followed
            }
            _ => ToldSize::Followed,
        }
    }

    pub(super) fn layout(&self) -> Layout {
        self.input.layout
    }

    /// The inputs other than the image.
    pub(super) fn auxiliary(&self) -> &[AuxiliaryInput] {
        &self.input.auxiliary
    }

    fn run_prepared(&mut self, prepared: &Prepared) -> Result<Outputs, String> {
        run_once(&self.input, prepared, self.run)
    }

    /// Runs the first probes again with pixels in `0..=255`, for float inputs that found nothing with `0.0..=1.0`.
    /// Returns whether the outputs differ.
    pub(super) fn run_unscaled(&mut self) -> bool {
        let unscaled = ImageInput { divide_by: 1.0, ..self.input.clone() };
        if unscaled == self.input {
            return false;
        }
        match run_probes(&unscaled, self.size, self.run) {
            Ok(Ok(trial)) => {
                self.predictions = trial.predictions;
                // Later runs are compared with these.
                self.input = unscaled;
                true
            }
            _ => false,
        }
    }

    /// Determines whether one call with both probes returns the same numbers for `outputs` as two calls. Does nothing
    /// if the graph's dimensions allow only one image.
    pub(super) fn recognize_batches(&mut self, outputs: &[&str], same: Same, findings: &mut Findings) {
        match self.takes_batches(outputs, same) {
            Some(Ok(())) => {
                let because = "a test with two images in one call returned the same results as two calls";
                findings.recognized("input.batches", true, because);
                self.input.batches = true;
            }
            Some(Err(because)) => findings.recognized("input.batches", false, because),
            None => {}
        }
    }

    fn takes_batches(&mut self, outputs: &[&str], same: Same) -> Option<Result<(), String>> {
        if !self.port.batch_is_free() || !self.input.auxiliary.is_empty() {
            return None;
        }
        let tensors: Vec<Tensor> =
            PATCH_X.iter().filter_map(|&x| prepare(&self.input, &patch(self.size, x)).ok()).collect();
        let both = stack(&tensors)?;
        let run = &mut self.run;
        let alone: Result<Vec<Outputs>, String> =
            tensors.iter().map(|tensor| run(&[(&self.port.name, tensor)])).collect();
        let (together, alone) = match (run(&[(&self.port.name, &both)]), alone) {
            (Ok(together), Ok(alone)) => (together, alone),
            (Err(text), _) | (_, Err(text)) => {
                return Some(Err(format!("a test with two images failed: {}", text.trim())));
            }
        };
        let are_same = outputs.iter().all(|output| {
            let alone: Vec<&Tensor> = alone.iter().filter_map(|outputs| outputs.get(*output)).collect();
            together.get(*output).is_some_and(|together| same.holds(together, &alone))
        });
        Some(if are_same {
            Ok(())
        } else {
            Err("a test with two images in one call returned different results than two calls".to_owned())
        })
    }

    /// The number that both sides must be a multiple of, 1 for any size; `None` if the graph fixes a side.
    pub(super) fn side_multiple(&mut self) -> Option<u32> {
        let sizes = self.sizes();
        if sizes.width.is_some() || sizes.height.is_some() || sizes.preferred.is_some() {
            return None;
        }
        // Sides that are a multiple of the number, and of no larger power of two.
        const TRIALS: [(u32, [u32; 2]); 4] = [(1, [333, 251]), (8, [328, 264]), (16, [336, 272]), (32, [352, 288])];
        let found = TRIALS.into_iter().find(|(_, size)| self.runs_at(*size));
        Some(found.map_or(64, |(multiple, _)| multiple))
    }

    fn runs_at(&mut self, [width, height]: [u32; 2]) -> bool {
        let input = ImageInput { resize: ResizeRule::stretch(width, height), ..self.input.clone() };
        let prepared = preprocess(&input, &patch([width, height], PATCH_X[0]));
        prepared.is_ok_and(|prepared| self.run_prepared(&prepared).is_ok())
    }
}

/// How boxes react to another image size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToldSize {
    /// The graph gets no size, or boxes stay unchanged.
    Ignored,
    Followed,
    /// The first number of a box follows the height.
    FollowedHeightFirst,
    /// The first number of a box follows the width.
    FollowedWidthFirst,
}

/// The graph's outputs for the first two probes.
struct Trial {
    /// Width and height of the tensors, in pixels.
    size: [u32; 2],
    predictions: Vec<Outputs>,
}

/// The inner error is the tensor's shape and ONNX Runtime's message.
fn run_probes(
    input: &ImageInput,
    image_size: [u32; 2],
    run: &mut RunGraph<'_>,
) -> Result<Result<Trial, String>, Refusal> {
    let (mut size, mut predictions) = (image_size, Vec::new());
    for x in PATCH_X {
        let prepared = preprocess(input, &patch(image_size, x)).map_err(|error| Refusal::new(error.to_string()))?;
        size = prepared.canvas_size;
        match run_once(input, &prepared, run) {
            Ok(outputs) => predictions.push(outputs),
            Err(text) => return Ok(Err(format!("{:?}: {}", prepared.tensor.shape, text.trim()))),
        }
    }
    Ok(Ok(Trial { size, predictions }))
}

/// The outputs for one image. For a graph with a fixed batch size, the image is repeated.
fn run_once(input: &ImageInput, prepared: &Prepared, run: &mut RunGraph<'_>) -> Result<Outputs, String> {
    let images = input.fixed_batch.unwrap_or(1) as usize;
    let tensor = repeated(&prepared.tensor, images);
    let auxiliary: Vec<(&str, Tensor)> =
        prepared.auxiliary.iter().map(|(name, tensor)| (name.as_str(), repeated(tensor, images))).collect();
    let mut inputs = vec![(input.name.as_deref().unwrap_or_default(), &tensor)];
    inputs.extend(auxiliary.iter().map(|(name, tensor)| (*name, tensor)));
    let mut outputs = run(&inputs)?;
    if images > 1 {
        for tensor in outputs.values_mut() {
            first_image(tensor, images);
        }
    }
    Ok(outputs)
}

/// A tensor of one image, repeated along the batch dimension.
fn repeated(tensor: &Tensor, images: usize) -> Tensor {
    let mut shape = tensor.shape.clone();
    if let Some(batch) = shape.first_mut().filter(|_| images > 1) {
        *batch = images;
    }
    let data = match &tensor.data {
        TensorData::F32(values) => TensorData::F32(values.repeat(images)),
        TensorData::U8(values) => TensorData::U8(values.repeat(images)),
        TensorData::I64(values) => TensorData::I64(values.repeat(images)),
    };
    Tensor::new(shape, data)
}

/// Cuts an output for several images down to the first.
fn first_image(tensor: &mut Tensor, images: usize) {
    if tensor.shape.first() != Some(&images) {
        return;
    }
    tensor.shape[0] = 1;
    let len = tensor.len() / images;
    match &mut tensor.data {
        TensorData::F32(values) => values.truncate(len),
        TensorData::U8(values) => values.truncate(len),
        TensorData::I64(values) => values.truncate(len),
    }
}

/// The sizes to try, best first.
fn probe_sizes(sizes: &Sizes) -> Vec<[u32; 2]> {
    let fill = |free: [u32; 2]| {
        let [width, height] = free;
        [sizes.width.unwrap_or(width), sizes.height.unwrap_or(height)]
    };
    let mut tried = match sizes.preferred {
        Some((size, _)) => vec![fill(size)],
        None => FREE_SIZES.map(fill).to_vec(),
    };
    tried.dedup();
    tried
}

/// The input as the probes fill it.
fn probe_input(
    port: &ImagePort,
    layout: Layout,
    [width, height]: [u32; 2],
    overrules: &Overrules,
) -> Result<ImageInput, RecognizeError> {
    let takes_levels = port.element_type == ElementType::Uint8;
    let draft = ImageInput {
        name: Some(port.name.clone()),
        channels: port.channels,
        divide_by: if takes_levels { 1.0 } else { 255.0 },
        fixed_batch: port.fixed_batch,
        auxiliary: port.auxiliary.clone(),
        ..ImageInput::new(layout, port.element_type, ResizeRule::stretch(width, height))
    };
    let input = overrules.apply("input", &draft)?;
    let divides = |number: f32| number.is_finite() && number != 0.0;
    if !divides(input.divide_by) || !input.std.iter().all(|std| divides(*std)) {
        let reason = "input.divide_by and input.std must not be 0: pixels are divided by them";
        return Err(Refusal::new(reason).into());
    }
    if !sides(&input.resize).iter().all(|side| (1..=MAX_SIDE).contains(side)) {
        return Err(Refusal::new(format!(
            "the sides of the input must be 1 to {MAX_SIDE} pixels, but the resize is: {}",
            resize_text(&input.resize)
        ))
        .into());
    }
    Ok(input)
}

/// All side lengths that the rule produces.
fn sides(rule: &ResizeRule) -> Vec<u32> {
    match *rule {
        ResizeRule::Keep {} => Vec::new(),
        ResizeRule::Stretch { width, height, crop } => {
            [width, height].into_iter().chain(crop.into_iter().flat_map(|crop| [crop.width, crop.height])).collect()
        }
        ResizeRule::Letterbox { width, height, .. } => vec![width, height],
        ResizeRule::ShortSideCrop { short_side, crop_width, crop_height, .. } => {
            vec![short_side, crop_width, crop_height]
        }
        ResizeRule::ShortSidePad { short_side, max_long_side, pad_to_multiple, .. } => {
            vec![short_side, max_long_side, pad_to_multiple]
        }
    }
}

fn prepare(input: &ImageInput, image: &RgbImage) -> Result<Tensor, Refusal> {
    let prepared = preprocess(input, image);
    prepared.map(|prepared| prepared.tensor).map_err(|error| Refusal::new(error.to_string()))
}

/// Gray noise with a bright patch at a third of the height and at `x` of the width.
fn patch([width, height]: [u32; 2], x: f64) -> RgbImage {
    let center = [x * f64::from(width), f64::from(height) / 3.0];
    let radius = f64::from(width.min(height)) / 8.0;
    let mut state = 1_u32;
    let mut rgb = Vec::with_capacity(width as usize * height as usize * 3);
    for row in 0..height {
        for column in 0..width {
            let inside = (f64::from(column) + 0.5 - center[0]).abs() <= radius
                && (f64::from(row) + 0.5 - center[1]).abs() <= radius;
            for channel in 0..3 {
                // A linear congruential generator (with the constants of Numerical Recipes): the same noise on every
                // machine.
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let noise = (state >> 27) as u8;
                rgb.push(if inside { 240 - 20 * channel } else { 70 + noise });
            }
        }
    }
    RgbImage::new(width.max(1), height.max(1), rgb)
        .unwrap_or_else(|| RgbImage::new(1, 1, vec![70; 3]).expect("one pixel has three bytes"))
}

/// Stacks tensors along the first dimension.
fn stack(tensors: &[Tensor]) -> Option<Tensor> {
    let [first, second] = tensors else {
        return None;
    };
    let mut shape = first.shape.clone();
    *shape.first_mut()? = 2;
    let data = match (&first.data, &second.data) {
        (TensorData::F32(left), TensorData::F32(right)) => TensorData::F32([&left[..], right].concat()),
        (TensorData::U8(left), TensorData::U8(right)) => TensorData::U8([&left[..], right].concat()),
        _ => return None,
    };
    Some(Tensor::new(shape, data))
}

/// How precisely one call with two images must match two calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Same {
    /// For class scores, of which only a few matter.
    Nearly,
    /// For rows of boxes: bit for bit, with the images in the first dimension.
    Exactly,
}

impl Same {
    fn holds(self, together: &Tensor, alone: &[&Tensor]) -> bool {
        let is_first = |tensor: &Tensor, images: usize| tensor.shape.first() == Some(&images);
        let numbers = together.to_f64();
        let alone_numbers: Vec<f64> = alone.iter().flat_map(|tensor| tensor.to_f64()).collect();
        let mut pairs = numbers.iter().zip(&alone_numbers);
        numbers.len() == alone_numbers.len()
            && match self {
                Self::Nearly => pairs.all(|(left, right)| close(*left, *right)),
                Self::Exactly => {
                    let are_apart = is_first(together, alone.len()) && alone.iter().all(|tensor| is_first(tensor, 1));
                    are_apart && pairs.all(|(left, right)| left.to_bits() == right.to_bits())
                }
            }
    }
}

fn close(left: f64, right: f64) -> bool {
    (left - right).abs() <= 1e-3 * left.abs().max(right.abs()).max(1.0)
}
