//! Families of detectors whose outputs are relative to something that is not in the file, recognized by output shapes:
//! why they are refused, and what to export instead.

use super::finding::Refusal;
use super::probe::Prober;
use super::{RecognitionRequest, RecognizeError};

/// Replaces the reason of a refusal if the outputs are those of such a family.
pub(crate) fn explain(
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_identify_the_family() {
        let cases: [(&[&[usize]], Option<&str>); 12] = [
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
            (&[&[1, 1000]], None),
            (&[&[1, 768], &[1, 197, 768]], None),
        ];
        for (shapes, expected) in cases {
            let found = family(shapes, [416, 416]);
            assert_eq!(found.is_some(), expected.is_some(), "{shapes:?}: {found:?}");
            assert!(found.is_none_or(|found| found.contains(expected.unwrap_or_default())), "{shapes:?}: {found:?}");
        }
    }
}
