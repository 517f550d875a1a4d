//! A picture with the boxes of a prediction drawn over it.

use std::path::Path;

use crate::domain::{Picture, Prediction, ViewSettings};

/// The visible boxes as outlines, clipped to the picture.
pub fn annotate(picture: &Picture, prediction: &Prediction, view: &ViewSettings) -> Picture {
    let (width, height) = (picture.width(), picture.height());
    let mut rgb = picture.rgb().to_vec();
    for index in view.visible_detections(prediction) {
        let bounds = prediction.detections()[index].bounds.clipped(width, height);
        let edges = [bounds.x1, bounds.y1, bounds.x2, bounds.y2].map(|edge| edge as u32);
        for y in edges[1]..edges[3] {
            for x in edges[0]..edges[2] {
                if x == edges[0] || x + 1 == edges[2] || y == edges[1] || y + 1 == edges[3] {
                    let start = (y as usize * width as usize + x as usize) * 3;
                    rgb[start..start + 3].copy_from_slice(&[255, 64, 64]);
                }
            }
        }
    }
    Picture::new(width, height, rgb).expect("a copy has the size of the original")
}

/// Writes a binary PPM.
pub fn write_picture(picture: &Picture, path: &Path) -> std::io::Result<()> {
    let header = format!("P6 {} {} 255\n", picture.width(), picture.height());
    std::fs::write(path, [header.as_bytes(), picture.rgb()].concat())
}
