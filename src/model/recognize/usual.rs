//! The usual preprocessing of exporters, by their outputs. A graph does not record it, so all of it is assumed.

use super::noted::{Noted, NotedResize, PixelNotes};
use crate::domain::{BoxFormat, BoxSpace, BoxesBack, ChannelOrder, Fill, Interpolation, Position, Rounding, Square};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Usual {
    /// Ultralytics' YOLO, and `YOLOv6`.
    Yolo,
    Yolov5,
    Yolox,
    /// The first `NanoDet`.
    NanoDet,
    NanoDetPlus,
    UltralyticsRtDetr,
    Paddle,
    MmDetection,
    /// DETR and YOLOS of transformers.
    Detr,
    /// Detectors of TensorFlow and TensorFlow.js with channels last.
    TensorFlow,
    /// RT-DETR and D-FINE, from transformers and from the authors.
    RtDetr,
    /// Classifiers of 224x224 images; its sample code takes the center with `ImageOps.fit(…, LANCZOS)`.
    TeachableMachine,
    RfDetr,
    /// WD taggers, which pad images to white squares.
    WdTagger,
    Yolov5Classifier,
    YoloNas,
    /// SSD of Caffe and `OpenVINO`.
    DetectionOut,
    /// The ONNX Model Zoo's `YOLOv3`, from Keras.
    Yolov3,
    /// `YOLOv4` in `PyTorch`.
    Yolov4,
    DamoYolo,
    /// `UltraFace` and pytorch-ssd.
    Ssd,
    Detectron2,
    PicoDet,
    CustomVision,
    /// OpenCV's face detector.
    YuNet,
    /// `InsightFace`'s face detector.
    Scrfd,
    /// SSD and `EfficientDet-Lite` with TensorFlow Lite's post-processing, whose classes begin at 0.
    TensorFlowLite,
    KerasRetinaNet,
    /// SSD with `ResNet-34` of `MLPerf` and the ONNX Model Zoo.
    MlPerfSsd,
    Yolop,
}

/// `ImageNet`'s mean and standard deviation of RGB in `0..=255`.
const MMDETECTION_MEAN: [f32; 3] = [123.675, 116.28, 103.53];
const MMDETECTION_STD: [f32; 3] = [58.395, 57.12, 57.375];
/// The divisor, `ImageNet`'s mean and standard deviation of RGB in `0.0..=1.0`.
const IMAGENET: (f32, [f32; 3], [f32; 3]) = (255.0, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);

impl Usual {
    /// The exporter with such boxes, if the column layout allows several.
    pub(crate) fn fitting(self, space: BoxSpace, format: BoxFormat) -> Self {
        match self {
            Self::Yolo if space == BoxSpace::Normalized && format == BoxFormat::Cxcywh => Self::UltralyticsRtDetr,
            other => other,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Yolo => "YOLO",
            Self::Yolov5 => "YOLOv5 and YOLOv7",
            Self::Yolox => "YOLOX",
            Self::NanoDet => "NanoDet",
            Self::NanoDetPlus => "NanoDet-Plus",
            Self::UltralyticsRtDetr => "Ultralytics' RT-DETR",
            Self::Paddle => "PaddleDetection",
            Self::MmDetection => "MMDetection",
            Self::Detr => "DETR",
            Self::TensorFlow => "TensorFlow",
            Self::RtDetr => "RT-DETR and D-FINE",
            Self::TeachableMachine => "Teachable Machine",
            Self::RfDetr => "RF-DETR",
            Self::WdTagger => "WD tagger",
            Self::Yolov5Classifier => "YOLOv5's classification",
            Self::YoloNas => "YOLO-NAS",
            Self::DetectionOut => "SSD (Caffe, OpenVINO)",
            Self::Yolov3 => "the ONNX Model Zoo's YOLOv3",
            Self::Yolov4 => "YOLOv4",
            Self::DamoYolo => "DAMO-YOLO",
            Self::Ssd => "UltraFace and pytorch-ssd",
            Self::Detectron2 => "Detectron2",
            Self::PicoDet => "PicoDet",
            Self::CustomVision => "Custom Vision",
            Self::YuNet => "YuNet",
            Self::Scrfd => "SCRFD",
            Self::TensorFlowLite => "TensorFlow Lite",
            Self::KerasRetinaNet => "keras-retinanet",
            Self::MlPerfSsd => "MLPerf's SSD",
            Self::Yolop => "YOLOP",
        }
    }

    /// Width and height of the input if the graph accepts any, in pixels.
    pub(crate) fn size(self) -> Option<[u32; 2]> {
        (self == Self::Yolov3).then_some([416; 2])
    }

    pub(crate) fn pixels(self) -> PixelNotes {
        let because = format!("ONNX does not record this; {} models expect it", self.name());
        let letterbox = |fill: u8, position, rounding, boxes_back| NotedResize::Letterbox {
            fill: Fill([fill; 3]),
            position,
            rounding,
            boxes_back,
        };
        let (rgb, bgr) = (ChannelOrder::Rgb, ChannelOrder::Bgr);
        let short_side = NotedResize::ShortSidePad { short_side: 800, max_long_side: 1333, pad_to_multiple: 1 };
        let (plain, opencv) = ((255.0, [0.0; 3], [1.0; 3]), Interpolation::OpencvLinear);
        let centered = |boxes_back| letterbox(114, Position::Center, Rounding::HalfEven, boxes_back);
        let (order, (divide_by, mean, std), interpolation, resize) = match self {
            Self::Yolo => (rgb, plain, opencv, centered(BoxesBack::OneRatio)),
            Self::Yolov5 => (rgb, plain, opencv, centered(BoxesBack::ExactPadding)),
            Self::Yolox => {
                let resize = letterbox(114, Position::TopLeft, Rounding::Down, BoxesBack::OneRatio);
                (bgr, (1.0, [0.0; 3], [1.0; 3]), opencv, resize)
            }
            Self::NanoDet | Self::NanoDetPlus => {
                let pixels = (1.0, [103.53, 116.28, 123.675], [57.375, 57.12, 58.395]);
                // `keep_ratio` in the package's configuration files.
                let resize = if self == Self::NanoDet {
                    letterbox(0, Position::Center, Rounding::HalfEven, BoxesBack::ExactPadding)
                } else {
                    NotedResize::Stretch
                };
                (bgr, pixels, Interpolation::OpencvWarp, resize)
            }
            // YOLO-NAS as in the documentation of its export; its own `predict` scales to 636 and pads to 640.
            Self::UltralyticsRtDetr | Self::Yolov4 | Self::YoloNas => (rgb, plain, opencv, NotedResize::Stretch),
            Self::Paddle => (rgb, plain, Interpolation::OpencvCubic, NotedResize::Stretch),
            Self::MmDetection => {
                let resize = letterbox(114, Position::TopLeft, Rounding::HalfUp, BoxesBack::EachAxis);
                (rgb, (1.0, MMDETECTION_MEAN, MMDETECTION_STD), opencv, resize)
            }
            Self::Detr => (rgb, IMAGENET, Interpolation::PillowBilinear, short_side),
            Self::TensorFlow => (rgb, (1.0, [0.0; 3], [1.0; 3]), Interpolation::PillowBilinear, NotedResize::Stretch),
            Self::RtDetr => (rgb, plain, Interpolation::PillowBilinear, NotedResize::Stretch),
            Self::TeachableMachine => {
                let resize = NotedResize::Square(Square::Fit);
                (rgb, (127.5, [1.0; 3], [1.0; 3]), Interpolation::PillowLanczos, resize)
            }
            Self::TensorFlowLite => {
                (rgb, (127.5, [1.0; 3], [1.0; 3]), Interpolation::PillowBilinear, NotedResize::Stretch)
            }
            Self::KerasRetinaNet => (bgr, (1.0, [103.939, 116.779, 123.68], [1.0; 3]), opencv, short_side),
            Self::Yolop => (rgb, IMAGENET, opencv, centered(BoxesBack::ExactPadding)),
            // torchvision's antialiased resize of a float image, which differs from Pillow's only by rounding.
            Self::RfDetr | Self::MlPerfSsd => (rgb, IMAGENET, Interpolation::PillowBilinear, NotedResize::Stretch),
            Self::WdTagger => {
                let resize = NotedResize::Square(Square::PadWhite);
                (bgr, (1.0, [0.0; 3], [1.0; 3]), Interpolation::PillowBicubic, resize)
            }
            Self::Yolov5Classifier => (rgb, IMAGENET, opencv, NotedResize::Square(Square::Crop)),
            Self::DetectionOut => (bgr, (1.0, [0.0; 3], [1.0; 3]), opencv, NotedResize::Stretch),
            Self::Yolov3 => {
                // Boxes are in pixels of the image; with this mapping, no padding of a letterbox is removed.
                let resize = letterbox(128, Position::Center, Rounding::Down, BoxesBack::ExactPadding);
                (rgb, plain, Interpolation::PillowBicubic, resize)
            }
            // `keep_ratio` is off in the package's configuration files.
            Self::DamoYolo => (rgb, (1.0, [0.0; 3], [1.0; 3]), opencv, NotedResize::Stretch),
            Self::Ssd => (rgb, (1.0, [127.0; 3], [128.0; 3]), opencv, NotedResize::Stretch),
            Self::YuNet | Self::Scrfd => {
                let resize = letterbox(0, Position::TopLeft, Rounding::Down, BoxesBack::OneRatio);
                let is_yunet = self == Self::YuNet;
                let levels = if is_yunet { (1.0, [0.0; 3], [1.0; 3]) } else { (1.0, [127.5; 3], [128.0; 3]) };
                (if is_yunet { bgr } else { rgb }, levels, opencv, resize)
            }
            Self::CustomVision => (rgb, plain, Interpolation::PillowBicubic, NotedResize::Stretch),
            Self::PicoDet => (rgb, IMAGENET, Interpolation::OpencvCubic, NotedResize::Stretch),
            Self::Detectron2 => (bgr, (1.0, [0.0; 3], [1.0; 3]), Interpolation::PillowBilinear, short_side),
        };
        PixelNotes {
            resize: Some(Noted { value: resize, because: because.clone() }),
            interpolation: Some(Noted { value: interpolation, because: because.clone() }),
            order: Some(Noted { value: order, because: because.clone() }),
            divide_by: Some(Noted { value: divide_by, because: because.clone() }),
            mean: Some(Noted { value: mean, because: because.clone() }),
            std: Some(Noted { value: std, because }),
        }
    }
}
