//! The help for each field of the form: its values, unit and usual value.

/// The help for the card field at `path`; empty if there is none.
pub(crate) fn help_of(path: &str) -> &'static str {
    let field = path.strip_prefix("output.detection.").unwrap_or(path);
    match field {
        "name" => "The display name, for example the architecture and the dataset",
        "id" => "The name for --model and the model folder: lowercase letters, digits, -, _ and .",
        "task" => "Classes describe the whole image; boxes locate objects",
        "labels" => "Class names in training order: a built-in set, a file, or the names found with the model",
        LABEL_FILE => {
            "One name per line (the first is class 0), id<TAB>name, a .pbtxt label map, a data.yaml with names, or a \
            config.json with id2label"
        }
        READING => "Several layouts match the outputs; this one is in use. Choosing another resets the form",
        _ if field.starts_with("input.") => help_of_input(field),
        _ if field.starts_with("output.classification.") => help_of_classes(field),
        _ => help_of_boxes(field),
    }
}

/// Not a field of the card: which reading of the outputs is used.
pub(crate) const READING: &str = "reading";

/// Not a field of the card, which contains a copy of the names.
pub(crate) const LABEL_FILE: &str = "label file";

fn help_of_input(field: &str) -> &'static str {
    match field {
        "input.name" => "The input of the graph that takes the image",
        "input.resize" => {
            "How an image gets the size of the input. Usual: Letterbox for YOLO, Short side then crop for classifiers, \
            Stretch for most others"
        }
        "input.resize.stretch.width" => {
            "Width and height of the input, in pixels. The image is resized to this size, ignoring its aspect ratio"
        }
        "input.resize.stretch.crop" => "Keeps only the middle of the resized image. Usual: off",
        "input.resize.stretch.crop.width" => "Width and height of the middle part, in pixels: the size of the input",
        "input.resize.stretch.crop.offset" => {
            "Rounding of the crop's left and top edge to whole pixels. Usual: Nearest"
        }
        "input.resize.short-side-crop.short_side" => {
            "The length of the shorter side after resizing, in pixels. Usual: 256 for a crop of 224"
        }
        "input.resize.short-side-crop.crop_width" => {
            "Width and height of the middle part that is kept, in pixels: the size of the input. Usual: 224 × 224"
        }
        "input.resize.short-side-crop.long_side" => {
            "Rounding of the longer side to whole pixels. Usual: Down (torchvision)"
        }
        "input.resize.short-side-crop.crop_offset" => {
            "Rounding of the crop's left and top edge to whole pixels. Usual: Nearest (torchvision)"
        }
        "input.resize.letterbox.width" => {
            "Width and height of the input, in pixels. The image keeps its aspect ratio and the rest is filled. \
             Usual: 640 × 640"
        }
        "input.resize.letterbox.fill" => {
            "The color around the image: red, green and blue, 0 to 255. Usual: 114 each (YOLO)"
        }
        "input.resize.letterbox.position" => {
            "Position of the image in the filled input. Usual: In the middle; Top left for YOLOX"
        }
        "input.resize.letterbox.rounding" => {
            "Rounding of the resized sides to whole pixels. Usual: Nearest; Down for YOLOX"
        }
        "input.resize.letterbox.stride" => {
            "For inputs of any size: fills only up to the next multiple of this, in pixels, instead of the full size. \
             Usual: 32"
        }
        "input.resize.letterbox.boxes_back" => {
            "How boxes are mapped to the image; exporters differ by up to one input pixel. Usual: Ratio of each axis"
        }
        "input.resize.short-side-pad.short_side" => {
            "The length of the shorter side after resizing, in pixels, unless the longer one gets too long. Usual: 800"
        }
        "input.resize.short-side-pad.max_long_side" => "Maximum length of the longer side, in pixels. Usual: 1333",
        "input.resize.short-side-pad.pad_to_multiple" => {
            "Pads both sides to a multiple of this, in pixels. 1 adds no padding (DETR). Usual: 32"
        }
        "input.resize.short-side-pad.cut_to_multiple" => {
            "Rounds both sides down to a multiple of this, in pixels. Usual: 1 (no rounding); 16 for YOLOS"
        }
        "input.resize.short-side-pad.rounding" => {
            "Rounding of the resized sides, and mapping of boxes back. Usual: By padding; halves up for MMDetection and \
             Detectron2; halves to even for keras-retinanet"
        }
        "input.square" => {
            "Makes the image square before it is resized. Usual: No; Crop for fastai and YOLOv5 classifiers"
        }
        "input.interpolation" => {
            "How pixels are computed while resizing. Usual: Pillow bilinear for PyTorch, OpenCV linear for YOLO"
        }
        "input.channels" => {
            "The order of the colors. Usual: RGB; BGR for models trained with OpenCV or Caffe; grayscale has one"
        }
        "input.divide_by" => "Each pixel, 0 to 255, is divided by this first. Usual: 255 for 0 to 1, or 1 for 0 to 255",
        "input.mean" => {
            "Subtracted from each channel after the division. Usual: 0, or 0.485, 0.456, 0.406 (ImageNet, of 0 to 1)"
        }
        "input.std" => "Each channel is divided by this last. Usual: 1, or 0.229, 0.224, 0.225 (ImageNet, of 0 to 1)",
        "input.layout" => "The order of the dimensions. Usual: channels first for PyTorch, last for TensorFlow",
        "input.type" => "The type of the numbers in the input",
        "input.batches" => {
            "Images per call. Any number is fastest; One always works; Always the same number pads each call"
        }
        AUXILIARY => "What this graph input receives in addition to the image",
        _ => "",
    }
}

pub(crate) const AUXILIARY: &str = "input.auxiliary";

fn help_of_classes(field: &str) -> &'static str {
    match field.strip_prefix("output.classification.").unwrap_or(field) {
        "name" => "The output with one number per class",
        "values" => {
            "What the numbers are. Logits are any numbers and become scores by softmax or sigmoid; probabilities are 0 \
            to 1"
        }
        "background" => BACKGROUND,
        _ => "",
    }
}

const BACKGROUND: &str = "The class that means “no object”; it is not shown. Usual: None; First class for TensorFlow";

fn help_of_boxes(field: &str) -> &'static str {
    match field {
        "boxes" => {
            "The output with four numbers for each box, and their first column. Several outputs for several levels"
        }
        "candidates_last" => "Select this if the last dimension is the boxes, as in [1, 84, 8400] (YOLOv8 and later)",
        "box_format" => "The meaning of a box’s four numbers. Usual: corners; center and size for YOLO and DETR",
        "box_space" => "The unit of a box’s numbers: pixels of the input or the image, or fractions of the input",
        "scores" => "The output with the scores, and their first column: one per class, or one per box",
        "labels" => "The output with the class number of each box; without one, there is a score for each class",
        "activation" => {
            "Function that turns the numbers into scores from 0 to 1. Usual: None; Sigmoid for raw outputs, Softmax \
             for DETR"
        }
        "classes" => "Number of class score columns, if other columns follow (masks, key points)",
        "label_choice" => "Whether a candidate produces one box for its best class or one box per class. Usual: best",
        "background" => BACKGROUND,
        "objectness" => "A score of the box itself, multiplied with its class scores (YOLOv5, YOLOv7, YOLOX)",
        "class_offset" => "Added to the model’s class numbers to look up names. Usual: 0; −1 if classes begin at 1",
        "max_boxes" => "Maximum number of boxes per image, best first. Usual: all, or 300",
        "nms_iou" => {
            "NMS IoU threshold per class, 0 to 1. Usual: 0.7 (YOLOv8), 0.45 (YOLOv5); none if the graph suppresses \
             boxes"
        }
        "min_score_in_graph" => {
            "The graph drops boxes with a lower score, 0 to 1; the minimum score cannot go below it. Usual: 0"
        }
        "nms_iou_in_graph" => "NMS IoU threshold in the graph, 0 to 1, if it suppresses boxes. Usual: none",
        "max_boxes_in_graph" => {
            "Maximum number of boxes that the graph returns. Usual: 100 or 300 if it ends with \
            suppression"
        }
        "count" => "The output with the number of valid boxes",
        "selected" => {
            "The output with image, class and number of each box that the graph’s own suppression keeps. Usual: none"
        }
        "batch_index" => "The output with the number of the image that a box belongs to",
        "angle" => "The output with the rotation of each box, in radians clockwise (oriented boxes)",
        "grid" => "Set this if boxes are relative to grid cells. Usual: None",
        "grid.strides" => "Cell size of each level, in pixels of the input. Usual: 8, 16, 32",
        "grid.coding.distance-bins.bins" => "Numbers per box side. Usual: 8 (NanoDet), 16 (YOLOv8’s raw outputs)",
        "grid.coding.distances.anchors" => "Number of consecutive boxes per cell. Usual: 2 (SCRFD)",
        "grid.coding.distances.point" | "grid.coding.distance-bins.point" => {
            "The point in a cell that distances are measured from. Usual: In the middle"
        }
        "grid.coding.anchors.sizes" => {
            "Width x height of each anchor, in pixels of the input, level by level. Usual: YOLOv5’s nine"
        }
        "grid.coding.priors.sizes" => {
            "Width x height of each prior, in pixels of the input, level by level. Usual: RetinaFace’s six"
        }
        _ => "",
    }
}
