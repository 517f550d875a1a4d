//! The most similar supported convention for unsupported outputs.

/// A supported convention, named after its best-known exporter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nearest {
    pub exporter: &'static str,
    /// A description of its outputs.
    pub outputs: &'static str,
}

const CENTERNET: Nearest = Nearest {
    exporter: "CenterNet",
    outputs: "[1, boxes, 6] in addition to the heat maps: corners, score and class, decoded inside the graph",
};
const YOLOV5_MAPS: Nearest =
    Nearest { exporter: "YOLOv5", outputs: "[1, anchors, rows, columns, 5 + classes] for each stride" };
const TORCHVISION: Nearest = Nearest { exporter: "torchvision", outputs: "boxes [n, 4], classes [n] and scores [n]" };
const YOLO: Nearest = Nearest { exporter: "YOLO", outputs: "[1, 4 + classes, candidates]" };
const YOLOV7: Nearest =
    Nearest { exporter: "YOLOv7 --end2end", outputs: "[n, 7]: image, corners, class and score of each box" };

/// Based on the output shapes of a call with one image.
pub(crate) fn nearest(shapes: &[&[usize]]) -> Option<Nearest> {
    let maps: Vec<&&[usize]> = shapes.iter().filter(|shape| shape.len() >= 4).collect();
    // Channels first and channels last.
    let same_size = |sides: std::ops::Range<usize>| maps.iter().all(|map| map[sides.clone()] == maps[0][sides.clone()]);
    if maps.len() > 1 {
        Some(if same_size(2..4) || same_size(1..3) { CENTERNET } else { YOLOV5_MAPS })
    } else if shapes.len() > 1 && shapes.iter().any(|shape| shape.last() == Some(&4)) {
        Some(TORCHVISION)
    } else if shapes.iter().any(|shape| shape.len() == 3) {
        Some(YOLO)
    } else {
        shapes.iter().any(|shape| matches!(shape, [_, 5..=8])).then_some(YOLOV7)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_identify_the_nearest_convention() {
        let cases: [(&[&[usize]], Option<Nearest>); 7] = [
            (&[&[1, 1, 8, 8], &[1, 2, 8, 8], &[1, 10, 8, 8]], Some(CENTERNET)),
            (&[&[1, 8, 8, 1], &[1, 8, 8, 10]], Some(CENTERNET)),
            (&[&[1, 255, 80, 80], &[1, 255, 40, 40], &[1, 255, 20, 20]], Some(YOLOV5_MAPS)),
            (&[&[1, 50, 4], &[1, 50]], Some(TORCHVISION)),
            (&[&[1, 90, 100]], Some(YOLO)),
            (&[&[30, 7]], Some(YOLOV7)),
            (&[&[1, 3, 64, 64]], None),
        ];
        for (shapes, expected) in cases {
            assert_eq!(nearest(shapes), expected, "{shapes:?}");
        }
    }
}
