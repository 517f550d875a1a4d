//! The usual preprocessing of exporters, by their outputs. A graph does not record it, so all of it is assumed.

use super::noted::{Noted, NotedResize, PixelNotes};
use crate::domain::{
    BoxFormat, BoxSpace, BoxesBack, ChannelOrder, Fill, Interpolation, Position, Rounding, SideRounding, Square,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Usual {
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
    /// timm's `EfficientDet` (efficientdet-pytorch), whose classes begin at 1.
    EffDet,
    /// `biubug6/Pytorch_Retinaface`.
    RetinaFace,
    /// The ONNX Model Zoo's `EfficientNet-Lite4`.
    EfficientNetLite,
    /// The ONNX Model Zoo's emotions of faces, from CNTK.
    FerPlus,
    /// `CLIPImageProcessor` of transformers, and its authors' own code.
    Clip,
    /// `SiglipImageProcessor` of transformers.
    SigLip,
    MobileClip,
    /// `BitImageProcessor` of transformers for `DINOv2`.
    Dino,
}

/// The divisor, `ImageNet`'s mean and standard deviation of RGB in `0.0..=1.0`.
const IMAGENET: (f32, [f32; 3], [f32; 3]) = (255.0, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);

impl Usual {
    /// The exporter with such boxes, if the column layout allows several.
    pub(super) fn fitting(self, space: BoxSpace, format: BoxFormat) -> Self {
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
            Self::EffDet => "effdet",
            Self::RetinaFace => "RetinaFace",
            Self::EfficientNetLite => "the ONNX Model Zoo's EfficientNet-Lite4",
            Self::FerPlus => "the ONNX Model Zoo's FER+",
            Self::Clip => "CLIP",
            Self::SigLip => "SigLIP",
            Self::MobileClip => "MobileCLIP",
            Self::Dino => "DINO",
        }
    }

    /// Width and height of the input if the graph accepts any, in pixels.
    pub(super) fn size(self) -> Option<[u32; 2]> {
        (self == Self::Yolov3).then_some([416; 2])
    }

    /// Whether the exporter's own code leaves the size of an image to a graph that accepts any.
    pub(super) fn leaves_size_to_graph(self) -> bool {
        matches!(self, Self::TensorFlow | Self::RetinaFace)
    }

    pub(super) fn pixels(self) -> PixelNotes {
        let because = format!("ONNX does not record this; {} models expect it", self.name());
        let (divide_by, mean, std) = self.levels();
        PixelNotes {
            resize: self.resize().map(|value| Noted { value, because: because.clone() }),
            interpolation: Some(Noted { value: self.interpolation(), because: because.clone() }),
            order: Some(Noted { value: self.order(), because: because.clone() }),
            divide_by: Some(Noted { value: divide_by, because: because.clone() }),
            mean: Some(Noted { value: mean, because: because.clone() }),
            std: Some(Noted { value: std, because }),
        }
    }

    fn order(self) -> ChannelOrder {
        match self {
            Self::Yolox
            | Self::NanoDet
            | Self::NanoDetPlus
            | Self::KerasRetinaNet
            | Self::WdTagger
            | Self::DetectionOut
            | Self::YuNet
            | Self::RetinaFace
            | Self::Detectron2 => ChannelOrder::Bgr,
            _ => ChannelOrder::Rgb,
        }
    }

    /// The divisor, mean and standard deviation, in the model's channel order.
    fn levels(self) -> (f32, [f32; 3], [f32; 3]) {
        match self {
            Self::Detr
            | Self::Yolop
            | Self::RfDetr
            | Self::MlPerfSsd
            | Self::Yolov5Classifier
            | Self::EffDet
            | Self::Dino
            | Self::PicoDet => IMAGENET,
            Self::Clip => (255.0, [0.481_454_66, 0.457_827_5, 0.408_210_73], [0.268_629_54, 0.261_302_6, 0.275_777_1]),
            Self::SigLip => (255.0, [0.5; 3], [0.5; 3]),
            Self::NanoDet | Self::NanoDetPlus => (1.0, [103.53, 116.28, 123.675], [57.375, 57.12, 58.395]),
            Self::MmDetection => (1.0, [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]),
            Self::TeachableMachine | Self::TensorFlowLite => (127.5, [1.0; 3], [1.0; 3]),
            Self::KerasRetinaNet => (1.0, [103.939, 116.779, 123.68], [1.0; 3]),
            Self::RetinaFace => (1.0, [104.0, 117.0, 123.0], [1.0; 3]),
            Self::Ssd | Self::EfficientNetLite => (1.0, [127.0; 3], [128.0; 3]),
            Self::Scrfd => (1.0, [127.5; 3], [128.0; 3]),
            Self::Yolox
            | Self::TensorFlow
            | Self::WdTagger
            | Self::DetectionOut
            | Self::DamoYolo
            | Self::YuNet
            | Self::FerPlus
            | Self::Detectron2 => (1.0, [0.0; 3], [1.0; 3]),
            _ => (255.0, [0.0; 3], [1.0; 3]),
        }
    }

    fn interpolation(self) -> Interpolation {
        match self {
            Self::NanoDet | Self::NanoDetPlus => Interpolation::OpencvWarp,
            Self::Paddle | Self::PicoDet => Interpolation::OpencvCubic,
            Self::TeachableMachine => Interpolation::PillowLanczos,
            Self::WdTagger | Self::Yolov3 | Self::CustomVision | Self::Clip | Self::SigLip | Self::Dino => {
                Interpolation::PillowBicubic
            }
            // RF-DETR and MLPerf use torchvision's antialiased resize of a float image, which differs from Pillow's only
            // by rounding.
            Self::Detr
            | Self::TensorFlow
            | Self::RtDetr
            | Self::TensorFlowLite
            | Self::RfDetr
            | Self::MlPerfSsd
            | Self::EffDet
            | Self::MobileClip
            | Self::FerPlus
            | Self::Detectron2 => Interpolation::PillowBilinear,
            _ => Interpolation::OpencvLinear,
        }
    }

    /// `None` for encoders, whose rule depends on the size of the input.
    fn resize(self) -> Option<NotedResize> {
        let filled = |fill, position, rounding, boxes_back| NotedResize::Letterbox {
            fill: Fill(fill),
            position,
            rounding,
            boxes_back,
        };
        let centered = |boxes_back| filled([114; 3], Position::Center, Rounding::HalfEven, boxes_back);
        let top_left = |fill| filled(fill, Position::TopLeft, Rounding::Down, BoxesBack::OneRatio);
        let short_side =
            |rounding| NotedResize::ShortSidePad { short_side: 800, max_long_side: 1333, pad_to_multiple: 1, rounding };
        Some(match self {
            Self::Clip | Self::SigLip | Self::MobileClip | Self::Dino => return None,
            Self::Yolo => centered(BoxesBack::OneRatio),
            Self::Yolov5 | Self::Yolop => centered(BoxesBack::ExactPadding),
            Self::Yolox => top_left([114; 3]),
            Self::YuNet | Self::Scrfd | Self::RetinaFace => top_left([0; 3]),
            // `ResizePad` in effdet's `transforms_coco_eval`, filled with 255 times ImageNet's mean.
            Self::EffDet => top_left([124, 116, 104]),
            // `keep_ratio` in the package's configuration files; off for NanoDet-Plus and DAMO-YOLO.
            Self::NanoDet => filled([0; 3], Position::Center, Rounding::HalfEven, BoxesBack::ExactPadding),
            Self::MmDetection => filled([114; 3], Position::TopLeft, Rounding::HalfUp, BoxesBack::EachAxis),
            // Boxes are in pixels of the image; with this mapping, no padding of a letterbox is removed.
            Self::Yolov3 => filled([128; 3], Position::Center, Rounding::Down, BoxesBack::ExactPadding),
            Self::Detr => short_side(SideRounding::ByPadding),
            Self::KerasRetinaNet => short_side(SideRounding::HalfEven),
            Self::Detectron2 => short_side(SideRounding::HalfUp),
            Self::TeachableMachine => NotedResize::Square(Square::Fit),
            Self::WdTagger => NotedResize::Square(Square::PadWhite),
            Self::Yolov5Classifier => NotedResize::Square(Square::Crop),
            // 87.5% of the short side (`resize_with_aspectratio` in the Model Zoo's README).
            Self::EfficientNetLite => {
                NotedResize::Crop { short_side: 256, long_side: Rounding::Down, offset: Rounding::Down }
            }
            // YOLO-NAS as in the documentation of its export; its own `predict` scales to 636 and pads to 640.
            _ => NotedResize::Stretch,
        })
    }
}
