//! Test runs of the graph on made-up pictures.

use super::finding::{Findings, Refusal};
use super::image_input::{ImagePort, Sizes, word};
use super::{Outputs, Overrules, RecogniseError, RunGraph};
use crate::domain::{ElementType, ImageInput, Layout, Picture, ResizeRule};
use crate::vision::{Tensor, TensorData, preprocess};

/// Size of the probes where the graph leaves it open, in pixels: not square, so that x and y differ, and a multiple of
/// 64, as nets that halve the picture six times want.
const FREE_SIZE: [u32; 2] = [320, 256];

/// Where the bright patch of a probe lies, as a share of the width.
pub(super) const PATCH_X: [f64; 2] = [0.25, 0.75];

/// Runs the graph and remembers what it answered.
pub(super) struct Prober<'r, 'f> {
    port: ImagePort,
    input: ImageInput,
    size: [u32; 2],
    run: &'r mut RunGraph<'f>,
    /// One for each place of the patch.
    pub(super) answers: Vec<Outputs>,
}

impl<'r, 'f> Prober<'r, 'f> {
    /// Runs the first two probes, trying each layout that the dimensions allow.
    pub(super) fn start(
        port: ImagePort,
        overrules: &Overrules,
        findings: &mut Findings,
        run: &'r mut RunGraph<'f>,
    ) -> Result<Self, RecogniseError> {
        let mut failures = Vec::new();
        let layouts = port.layouts.clone();
        for &layout in &layouts {
            let (input, picture_size) = probe_input(&port, layout, overrules)?;
            let mut answers = Vec::new();
            let mut size = picture_size;
            for x in PATCH_X {
                let prepared = preprocess(&input, &patch(picture_size, x))
                    .map_err(|error| Refusal::new(error.to_string()))?;
                let tensor = prepared.tensor;
                size = prepared.canvas_size;
                match run(&tensor) {
                    Ok(outputs) => answers.push(outputs),
                    Err(text) => {
                        failures.push(format!("{:?}: {text}", tensor.shape));
                        break;
                    }
                }
            }
            if answers.len() < PATCH_X.len() {
                continue;
            }
            if layouts.len() > 1 {
                match failures.first() {
                    Some(failure) => findings.recognised(
                        "input.layout",
                        word(layout),
                        format!("the graph runs so and not as {failure}"),
                    ),
                    None => findings.assumed(
                        "input.layout",
                        word(layout),
                        "the dimensions allow two layouts and the graph runs with this one",
                    ),
                }
            }
            return Ok(Self {
                port,
                input,
                size,
                run,
                answers,
            });
        }
        Err(Refusal::new(format!(
            "the graph failed on a test image of {}. If it wants another size or layout, set input.resize or input.layout",
            failures.join("; and of ")
        ))
        .into())
    }

    pub(super) fn input(&self) -> &ImageInput {
        &self.input
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
        self.answers
            .iter()
            .filter_map(move |outputs| outputs.get(output))
    }

    /// Runs the first probes again with pixels in `0..=255`, for float inputs that were shown `0.0..=1.0` before and
    /// found nothing in it.
    pub(super) fn run_unscaled(&mut self) {
        if self.input.element_type == ElementType::Uint8 {
            return;
        }
        let unscaled = ImageInput {
            divide_by: 1.0,
            ..self.input.clone()
        };
        let tensors = PATCH_X.map(|x| prepare(&unscaled, &patch(self.size, x)));
        let answers = tensors
            .into_iter()
            .flatten()
            .map_while(|tensor| (self.run)(&tensor).ok());
        let answers: Vec<Outputs> = answers.collect();
        if answers.len() == PATCH_X.len() {
            self.answers = answers;
        }
    }

    /// Whether one call with both probes gives the same answers for `output` as two calls; `None` where the graph takes
    /// one picture at a time by its dimensions.
    pub(super) fn takes_batches(&mut self, output: &str) -> Option<Result<(), String>> {
        if !self.port.batch_is_free() {
            return None;
        }
        let tensors: Vec<Tensor> = PATCH_X
            .iter()
            .filter_map(|&x| prepare(&self.input, &patch(self.size, x)).ok())
            .collect();
        let both = stack(&tensors)?;
        let answer = match (self.run)(&both) {
            Ok(outputs) => outputs,
            Err(text) => return Some(Err(format!("a test with two images failed: {text}"))),
        };
        let together = answer.get(output)?.to_f64();
        let alone: Vec<f64> = self.values_of(output).flat_map(Tensor::to_f64).collect();
        let same = together.len() == alone.len()
            && together
                .iter()
                .zip(&alone)
                .all(|(left, right)| close(*left, *right));
        Some(if same {
            Ok(())
        } else {
            Err("a test with two images in one call gave other numbers than two calls".to_owned())
        })
    }

    /// The number that both sides must be a multiple of, 1 for any size; `None` where the graph fixes a side.
    pub(super) fn side_multiple(&mut self) -> Option<u32> {
        let sizes = self.sizes();
        if sizes.width.is_some() || sizes.height.is_some() {
            return None;
        }
        // Sides that are a multiple of the number and of no larger power of two.
        const TRIALS: [(u32, [u32; 2]); 4] = [
            (1, [333, 251]),
            (8, [328, 264]),
            (16, [336, 272]),
            (32, [352, 288]),
        ];
        let found = TRIALS.into_iter().find(|(_, size)| self.runs_at(*size));
        Some(found.map_or(64, |(multiple, _)| multiple))
    }

    fn runs_at(&mut self, [width, height]: [u32; 2]) -> bool {
        let input = ImageInput {
            resize: ResizeRule::Stretch { width, height },
            ..self.input.clone()
        };
        prepare(&input, &patch([width, height], PATCH_X[0]))
            .is_ok_and(|tensor| (self.run)(&tensor).is_ok())
    }

    pub(super) fn set_batches(&mut self, batches: bool) {
        self.input.batches = batches;
    }
}

/// The input as the probes fill it, at the size that the graph asks for.
fn probe_input(
    port: &ImagePort,
    layout: Layout,
    overrules: &Overrules,
) -> Result<(ImageInput, [u32; 2]), RecogniseError> {
    let sizes = port.sizes(layout);
    let free = sizes.metadata.unwrap_or(FREE_SIZE);
    let size = [
        sizes.width.unwrap_or(free[0]),
        sizes.height.unwrap_or(free[1]),
    ];
    let draft = ImageInput {
        name: Some(port.name.clone()),
        layout,
        element_type: port.element_type,
        channels: crate::domain::ChannelOrder::Rgb,
        divide_by: if port.element_type == ElementType::Uint8 {
            1.0
        } else {
            255.0
        },
        mean: [0.0; 3],
        std: [1.0; 3],
        batches: false,
        resize: ResizeRule::Stretch {
            width: size[0],
            height: size[1],
        },
    };
    Ok((overrules.apply("input", &draft)?, size))
}

fn prepare(input: &ImageInput, picture: &Picture) -> Result<Tensor, Refusal> {
    let prepared = preprocess(input, picture);
    prepared
        .map(|prepared| prepared.tensor)
        .map_err(|error| Refusal::new(error.to_string()))
}

/// Grey noise with a bright patch at a third of the height and at `x` of the width.
fn patch([width, height]: [u32; 2], x: f64) -> Picture {
    let centre = [x * f64::from(width), f64::from(height) / 3.0];
    let radius = f64::from(width.min(height)) / 8.0;
    let mut state = 1_u32;
    let mut rgb = Vec::with_capacity(width as usize * height as usize * 3);
    for row in 0..height {
        for column in 0..width {
            let inside = (f64::from(column) + 0.5 - centre[0]).abs() <= radius
                && (f64::from(row) + 0.5 - centre[1]).abs() <= radius;
            for channel in 0..3 {
                // A linear congruential generator (Numerical Recipes' constants): the same noise on every machine.
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let noise = (state >> 27) as u8;
                rgb.push(if inside {
                    240 - 20 * channel
                } else {
                    70 + noise
                });
            }
        }
    }
    Picture::new(width.max(1), height.max(1), rgb)
        .unwrap_or_else(|| Picture::new(1, 1, vec![70; 3]).expect("one pixel has three bytes"))
}

/// Both tensors behind each other along the first dimension.
fn stack(tensors: &[Tensor]) -> Option<Tensor> {
    let [first, second] = tensors else {
        return None;
    };
    let mut shape = first.shape.clone();
    *shape.first_mut()? = 2;
    let data = match (&first.data, &second.data) {
        (TensorData::F32(left), TensorData::F32(right)) => {
            TensorData::F32([&left[..], right].concat())
        }
        (TensorData::U8(left), TensorData::U8(right)) => {
            TensorData::U8([&left[..], right].concat())
        }
        _ => return None,
    };
    Some(Tensor { shape, data })
}

fn close(left: f64, right: f64) -> bool {
    (left - right).abs() <= 1e-3 * left.abs().max(right.abs()).max(1.0)
}
