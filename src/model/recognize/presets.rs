//! Common ways to prepare an image, to try if nothing states which one a model needs.

use serde_json::Value;

use crate::domain::{
    BoxesBack, CardTask, ChannelOrder, ElementType, Fill, ImageInput, Interpolation, Position, ResizeRule, Rounding,
};

#[derive(Debug, Clone, PartialEq)]
pub struct Preset {
    /// The name on the command line, `torchvision`.
    pub name: &'static str,
    /// A one-line description.
    pub about: &'static str,
    /// The whole input; name, layout, type and size are those of the card.
    pub input: ImageInput,
}

impl Preset {
    /// The fields of a card that it sets, as `Overrules` accepts them.
    pub fn fields(&self) -> Vec<(String, String)> {
        let input = serde_json::to_value(&self.input).expect("cards have only text keys");
        let fields = ["channels", "divide_by", "mean", "std", "interpolation"];
        let value = |field: &str| match input.get(field) {
            Some(Value::String(word)) => word.clone(),
            Some(value) => value.to_string(),
            // Not written if it is the default.
            None => Interpolation::default().into_str().to_owned(),
        };
        let mut all: Vec<(String, String)> =
            fields.iter().map(|field| (format!("input.{field}"), value(field))).collect();
        if let Some(Value::Object(rule)) = input.get("resize") {
            all.extend(rule.iter().map(|(kind, rule)| (format!("input.resize.{kind}"), rule.to_string())));
        }
        all
    }
}

/// The preset with this name, for a card's input.
pub fn preset(task: CardTask, input: &ImageInput, name: &str) -> Option<Preset> {
    all(task, input).chain(presets(task, input)).find(|preset| preset.name == name)
}

/// The common ways for a task, without duplicates. If none equals the card's `input`, that comes first, named
/// `present`.
pub fn presets(task: CardTask, input: &ImageInput) -> Vec<Preset> {
    let mut presets: Vec<Preset> = Vec::new();
    for preset in all(task, input) {
        if presets.iter().all(|known| known.input != preset.input) {
            presets.push(preset);
        }
    }
    if presets.iter().all(|preset| preset.input != *input) {
        presets.insert(0, Preset { name: "present", about: "as in the card", input: input.clone() });
    }
    presets
}

/// Every preset; some are equal for 8-bit inputs.
fn all(task: CardTask, input: &ImageInput) -> impl Iterator<Item = Preset> {
    let named = match task {
        CardTask::Classification | CardTask::Embedding => classifiers(input),
        CardTask::Detection => detectors(input),
    };
    named.into_iter().map(|(name, about, way)| Preset { name, about, input: way.apply_to(input) })
}

struct Way {
    resize: ResizeRule,
    interpolation: Interpolation,
    pixels: Pixels,
}

#[derive(Clone, Copy)]
struct Pixels {
    channels: ChannelOrder,
    divide_by: f32,
    mean: [f32; 3],
    std: [f32; 3],
}

impl Pixels {
    const fn rgb(divide_by: f32, mean: [f32; 3], std: [f32; 3]) -> Self {
        Self { channels: ChannelOrder::Rgb, divide_by, mean, std }
    }

    const fn bgr(self) -> Self {
        Self { channels: ChannelOrder::Bgr, ..self }
    }
}

const LEVELS: Pixels = Pixels::rgb(1.0, [0.0; 3], [1.0; 3]);
const UNIT: Pixels = Pixels::rgb(255.0, [0.0; 3], [1.0; 3]);
const IMAGENET: Pixels = Pixels::rgb(255.0, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);
const HALF: Pixels = Pixels::rgb(255.0, [0.5; 3], [0.5; 3]);
const CLIP: Pixels =
    Pixels::rgb(255.0, [0.481_454_66, 0.457_827_5, 0.408_210_73], [0.268_629_54, 0.261_302_6, 0.275_777_1]);
const TENSORFLOW: Pixels = Pixels::rgb(127.5, [1.0; 3], [1.0; 3]);
const CAFFE: Pixels = Pixels::rgb(1.0, [103.939, 116.779, 123.68], [1.0; 3]).bgr();

impl Way {
    fn apply_to(self, input: &ImageInput) -> ImageInput {
        let has_one_channel = input.channels == ChannelOrder::Gray;
        let mut made = ImageInput {
            channels: if has_one_channel { input.channels } else { self.pixels.channels },
            divide_by: self.pixels.divide_by,
            mean: self.pixels.mean,
            std: self.pixels.std,
            interpolation: self.interpolation,
            resize: self.resize,
            ..input.clone()
        };
        if input.element_type == ElementType::Uint8 {
            made = ImageInput { divide_by: 1.0, mean: [0.0; 3], std: [1.0; 3], ..made };
        }
        made
    }
}

type Named = (&'static str, &'static str, Way);

fn classifiers(input: &ImageInput) -> Vec<Named> {
    use Interpolation::{PillowBicubic, PillowBilinear, PillowNearest};
    let [width, height] = input.resize.tensor_size().unwrap_or([224; 2]);
    let stretch = || ResizeRule::stretch(width, height);
    let crop = |share: f64| ResizeRule::ShortSideCrop {
        short_side: (f64::from(width.max(height)) / share).floor() as u32,
        long_side: Rounding::Down,
        crop_width: width,
        crop_height: height,
        crop_offset: Rounding::HalfEven,
    };
    let way = |resize, interpolation, pixels| Way { resize, interpolation, pixels };
    vec![
        ("torchvision", "middle 7/8, bilinear, ImageNet's mean", way(crop(0.875), PillowBilinear, IMAGENET)),
        ("torchvision-bicubic", "middle 7/8, bicubic, ImageNet's mean", way(crop(0.875), PillowBicubic, IMAGENET)),
        ("timm", "middle 95%, bicubic, ImageNet's mean", way(crop(0.95), PillowBicubic, IMAGENET)),
        ("timm-half", "middle 90%, bicubic, mean and std 0.5", way(crop(0.9), PillowBicubic, HALF)),
        ("transformers", "stretched, bilinear, mean and std 0.5", way(stretch(), PillowBilinear, HALF)),
        ("transformers-imagenet", "stretched, bilinear, ImageNet's mean", way(stretch(), PillowBilinear, IMAGENET)),
        ("clip", "middle, bicubic, CLIP's mean", way(crop(1.0), PillowBicubic, CLIP)),
        ("keras-tf", "stretched, nearest, -1 to 1", way(stretch(), PillowNearest, TENSORFLOW)),
        ("keras-tf-bilinear", "stretched, bilinear, -1 to 1", way(stretch(), PillowBilinear, TENSORFLOW)),
        ("keras-caffe", "stretched, nearest, BGR minus the mean", way(stretch(), PillowNearest, CAFFE)),
        ("keras-torch", "stretched, nearest, ImageNet's mean", way(stretch(), PillowNearest, IMAGENET)),
        ("in-graph", "stretched, nearest, 0 to 255", way(stretch(), PillowNearest, LEVELS)),
        ("in-graph-bilinear", "stretched, bilinear, 0 to 255", way(stretch(), PillowBilinear, LEVELS)),
        ("ultralytics", "middle, bilinear, 0 to 1", way(crop(1.0), PillowBilinear, UNIT)),
        ("unit", "stretched, bilinear, 0 to 1", way(stretch(), PillowBilinear, UNIT)),
        ("unit-bgr", "stretched, bilinear, 0 to 1, BGR", way(stretch(), PillowBilinear, UNIT.bgr())),
        ("torchvision-bgr", "as torchvision, BGR", way(crop(0.875), PillowBilinear, IMAGENET.bgr())),
        ("levels-bgr", "stretched, bilinear, 0 to 255, BGR", way(stretch(), PillowBilinear, LEVELS.bgr())),
    ]
}

fn detectors(input: &ImageInput) -> Vec<Named> {
    use Interpolation::{OpencvLinear, PillowBilinear};
    let [width, height] = input.resize.tensor_size().unwrap_or([640; 2]);
    // A graph that accepts any size has its own rule.
    let is_free = input.resize.tensor_size().is_none();
    let own = |rule: ResizeRule| if is_free { input.resize.clone() } else { rule };
    let stretch = || own(ResizeRule::stretch(width, height));
    let centered = || own(ResizeRule::letterbox(width, height));
    let top_left = || {
        own(ResizeRule::Letterbox {
            width,
            height,
            fill: Fill([114; 3]),
            position: Position::TopLeft,
            rounding: Rounding::Down,
            stride: None,
            boxes_back: BoxesBack::OneRatio,
        })
    };
    let way = |resize, interpolation, pixels| Way { resize, interpolation, pixels };
    vec![
        ("yolo", "letterbox, 0 to 1", way(centered(), OpencvLinear, UNIT)),
        ("yolox", "letterbox at the top left, 0 to 255, BGR", way(top_left(), OpencvLinear, LEVELS.bgr())),
        ("yolox-rgb", "letterbox at the top left, 0 to 255", way(top_left(), OpencvLinear, LEVELS)),
        ("stretch", "stretched, 0 to 1", way(stretch(), PillowBilinear, UNIT)),
        ("stretch-imagenet", "stretched, ImageNet's mean", way(stretch(), PillowBilinear, IMAGENET)),
        ("letterbox-imagenet", "letterbox, ImageNet's mean", way(centered(), OpencvLinear, IMAGENET)),
        ("levels", "stretched, 0 to 255", way(stretch(), OpencvLinear, LEVELS)),
        ("levels-bgr", "stretched, 0 to 255, BGR", way(stretch(), OpencvLinear, LEVELS.bgr())),
        ("caffe", "stretched, BGR minus the mean", way(stretch(), OpencvLinear, CAFFE)),
        ("half", "stretched, -1 to 1", way(stretch(), OpencvLinear, TENSORFLOW)),
        ("yolo-bgr", "letterbox, 0 to 1, BGR", way(centered(), OpencvLinear, UNIT.bgr())),
    ]
}
