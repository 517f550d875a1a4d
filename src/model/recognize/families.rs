//! Unsupported outputs, by their shapes: families of detectors whose boxes are relative to something that is not in the
//! file, and the most similar supported convention.

use super::finding::{Nearest, Refusal};
use super::probe::Prober;
use super::{RecognitionRequest, RecognizeError};

/// Replaces the reason of a refusal if the outputs are those of such a family.
pub(super) fn explain(
    error: RecognizeError,
    model: &RecognitionRequest<'_>,
    prober: &Prober<'_, '_>,
) -> RecognizeError {
    let RecognizeError::Refused(refusal) = error else {
        return error;
    };
    let ports = &model.graph.outputs;
    let shapes: Vec<&[usize]> =
        ports.iter().filter_map(|port| Some(&*prober.values_of(&port.name).next()?.shape)).collect();
    let Some(family) = family(&shapes, prober.size()) else {
        return refusal.into();
    };
    let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
    let reason = format!(
        "{} look like {family}, so Spotcheck cannot decode the boxes. Export the model with decoded boxes: separate \
         outputs for boxes [n, 4], classes [n] and scores [n]",
        ports.join(", ")
    );
    RecognizeError::Refused(Refusal { reasons: vec![reason], ..refusal })
}

/// What the outputs of a call with one image are; `size` are width and height of the input.
fn family(shapes: &[&[usize]], size: [u32; 2]) -> Option<&'static str> {
    const BLAZE: &str =
        "those of BlazeFace and other MediaPipe detectors: offsets from anchors that are not in the file";
    const CENTERNET: &str =
        "those of CenterNet or CenterFace before decoding: heat maps with sizes and offsets, whose peaks are the boxes";
    const YOLOV2: &str =
        "those of YOLOv2 before decoding (Custom Vision, Tiny YOLOv2): offsets from anchors that are not in the file";
    const DARKNET: &str = "those of YOLOv3 or YOLOv4 (Darknet), or YOLOv5's for accelerators, before decoding: they look \
        the same but are decoded differently, and their anchors are not in the file";
    const RETINANET: &str = "those of RetinaNet or SSD before decoding: offsets from anchors that are not in the file";
    // Rows and columns, without leading ones; one number per row may have no dimension of its own.
    let tables: Vec<[usize; 2]> = shapes
        .iter()
        .filter_map(|shape| match shape {
            [1, rows] => Some([*rows, 1]),
            [1, rows, columns] | [rows, columns] => Some([*rows, *columns]),
            _ => None,
        })
        .collect();
    let maps: Vec<&[usize]> = shapes.iter().copied().filter(|shape| shape.len() == 4).collect();
    let has = |rows: usize, columns: usize| tables.contains(&[rows, columns]);
    let of_blaze = |[rows, columns]: &[usize; 2]| match columns {
        1 => has(*rows, 12) || has(*rows, 16) || has(*rows, 18),
        12 | 16 | 18 => has(*rows, 1),
        _ => false,
    };
    let is_cell = |map: &[usize], channels: usize, first: usize| {
        let cells = [map[first + 1], map[first]].map(|cells| cells as u32 * 32);
        cells == size && channels.is_multiple_of(5) && channels > 25
    };
    if !tables.is_empty() && tables.len() == shapes.len() && tables.iter().all(of_blaze) {
        Some(BLAZE)
    } else if let ([map], 1) = (&maps[..], shapes.len()) {
        (is_cell(map, map[1], 2) || is_cell(map, map[3], 1)).then_some(YOLOV2)
    } else if maps.len() == shapes.len() && (are_yolo_levels(&maps, 1, 2, size) || are_yolo_levels(&maps, 3, 1, size)) {
        Some(DARKNET)
    } else if maps.len() >= 3 && maps.len() == shapes.len() {
        let pairs = maps.iter().filter(|map| map[1] == 2).count();
        let has_one_size = maps.iter().all(|map| map[2..] == maps[0][2..]);
        let offsets = maps.iter().filter(|map| map[1].is_multiple_of(4)).count();
        if has_one_size && pairs >= 2 {
            Some(CENTERNET)
        } else {
            (!has_one_size && maps.len().is_multiple_of(2) && offsets * 2 >= maps.len()).then_some(RETINANET)
        }
    } else {
        let boxes = tables.iter().find(|[rows, columns]| *columns == 4 && *rows > 4)?;
        let has_classes = tables.iter().any(|table| table[0] == boxes[0] && table[1] > 1 && table != boxes);
        (has_classes && tables.len() == 2).then_some(RETINANET)
    }
}

/// Whether the maps are two or three levels, each with three times a box, an objectness and the class scores.
/// `channels` and `first` are the dimensions of channels and rows.
fn are_yolo_levels(maps: &[&[usize]], channels: usize, first: usize, [width, height]: [u32; 2]) -> bool {
    let mut strides: Vec<u32> = maps.iter().map(|map| height / (map[first] as u32).max(1)).collect();
    strides.sort_unstable();
    let has_stride = |map: &&[usize]| {
        let stride = height / (map[first] as u32).max(1);
        map[first] as u32 * stride == height && map[first + 1] as u32 * stride == width
    };
    matches!(strides[..], [8, 16, 32] | [16, 32])
        && maps.iter().all(has_stride)
        && maps.iter().all(|map| map[channels] == maps[0][channels])
        && maps[0][channels].is_multiple_of(3)
        && maps[0][channels] / 3 > 5
}

/// Whether the longer side is the number of cells of a detector's levels, the coarsest with a stride of 32 pixels.
fn counts_cells(table: &[usize], [width, height]: [u32; 2]) -> bool {
    let cells = (width / 32) as usize * (height / 32) as usize;
    let candidates = table[1].max(table[2]);
    width.is_multiple_of(32) && height.is_multiple_of(32) && cells > 0 && candidates.is_multiple_of(cells)
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

/// Based on the output shapes of a call with one image; `size` are width and height of the input.
pub(super) fn nearest(shapes: &[&[usize]], size: [u32; 2]) -> Option<Nearest> {
    let maps: Vec<&&[usize]> = shapes.iter().filter(|shape| shape.len() >= 4).collect();
    // Channels first and channels last.
    let same_size = |sides: std::ops::Range<usize>| maps.iter().all(|map| map[sides.clone()] == maps[0][sides.clone()]);
    if maps.len() > 1 {
        Some(if same_size(2..4) || same_size(1..3) { CENTERNET } else { YOLOV5_MAPS })
    } else if shapes.len() > 1 && shapes.iter().any(|shape| shape.last() == Some(&4)) {
        Some(TORCHVISION)
    } else if shapes.iter().any(|shape| shape.len() == 3) {
        // Text (`[1, steps, characters]`) and key points (one row per axis) have other numbers of rows.
        let [table] = shapes.iter().filter(|shape| shape.len() == 3).collect::<Vec<_>>()[..] else {
            return None;
        };
        counts_cells(table, size).then_some(YOLO)
    } else {
        shapes.iter().any(|shape| matches!(shape, [_, 5..=8])).then_some(YOLOV7)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_identify_the_family() {
        let cases: [(&[&[usize]], Option<&str>); 15] = [
            (&[&[1, 896, 16], &[1, 896, 1]], Some("BlazeFace")),
            (&[&[1, 896, 16], &[1, 896]], Some("BlazeFace")),
            (&[&[896, 16], &[896, 1]], Some("BlazeFace")),
            (&[&[1, 512, 16], &[1, 512, 1], &[1, 384, 16], &[1, 384, 1]], Some("BlazeFace")),
            (&[&[1, 80, 104, 104], &[1, 2, 104, 104], &[1, 2, 104, 104]], Some("CenterNet")),
            (&[&[1, 40, 13, 13]], Some("YOLOv2")),
            (&[&[1, 13, 13, 125]], Some("YOLOv2")),
            (&[&[1, 32, 13, 13]], None),
            (&[&[1, 720, 52, 52], &[1, 36, 52, 52], &[1, 720, 26, 26], &[1, 36, 26, 26]], Some("RetinaNet")),
            (&[&[1, 12276, 20], &[1, 12276, 4]], Some("RetinaNet")),
            (&[&[1, 255, 52, 52], &[1, 255, 26, 26], &[1, 255, 13, 13]], Some("Darknet")),
            (&[&[1, 13, 13, 255], &[1, 26, 26, 255]], Some("Darknet")),
            (&[&[1, 255, 52, 52], &[1, 252, 26, 26], &[1, 255, 13, 13]], None),
            (&[&[1, 1000]], None),
            (&[&[1, 768], &[1, 197, 768]], None),
        ];
        for (shapes, expected) in cases {
            let found = family(shapes, [416, 416]);
            assert_eq!(found.is_some(), expected.is_some(), "{shapes:?}: {found:?}");
            assert!(found.is_none_or(|found| found.contains(expected.unwrap_or_default())), "{shapes:?}: {found:?}");
        }
    }

    #[test]
    fn shapes_identify_the_nearest_convention() {
        type Case = (&'static [&'static [usize]], [u32; 2], Option<Nearest>);
        let cases: [Case; 11] = [
            (&[&[1, 1, 8, 8], &[1, 2, 8, 8], &[1, 10, 8, 8]], [640; 2], Some(CENTERNET)),
            (&[&[1, 8, 8, 1], &[1, 8, 8, 10]], [640; 2], Some(CENTERNET)),
            (&[&[1, 255, 80, 80], &[1, 255, 40, 40], &[1, 255, 20, 20]], [640; 2], Some(YOLOV5_MAPS)),
            (&[&[1, 50, 4], &[1, 50]], [640; 2], Some(TORCHVISION)),
            (&[&[1, 84, 8400]], [640; 2], Some(YOLO)),
            (&[&[1, 25200, 85]], [640; 2], Some(YOLO)),
            // PaddleOCR's recognition, and RTMPose.
            (&[&[1, 40, 6625]], [320, 48], None),
            (&[&[1, 17, 384], &[1, 17, 512]], [192, 256], None),
            (&[&[1, 50, 1000]], [640; 2], None),
            (&[&[30, 7]], [640; 2], Some(YOLOV7)),
            (&[&[1, 3, 64, 64]], [640; 2], None),
        ];
        for (shapes, size, expected) in cases {
            assert_eq!(nearest(shapes, size), expected, "{shapes:?}");
        }
    }
}
