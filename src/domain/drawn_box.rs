//! Boxes that people draw.

use serde::{Deserialize, Serialize};

use super::BoundingBox;

/// The class id of all classes that people gave and the model does not have.
pub const NEW_CLASS: u32 = u32::MAX;

/// A box that a person drew around an object: a class, and edges to half a pixel inside the image.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct DrawnBox {
    class: String,
    /// Left, top, right, bottom in half pixels of the upright image; every box has an area.
    edges: [u32; 4],
}

/// The JSON of a drawn box, in pixels.
#[derive(Serialize, Deserialize)]
struct Written {
    class: String,
    #[serde(rename = "box")]
    bounds: BoundingBox,
}

impl DrawnBox {
    /// Rounds the edges to half pixels inside an image of `size` (width and height in pixels). `None` if no area is
    /// left, or the class has no name.
    pub fn new(class: &str, bounds: BoundingBox, size: [u32; 2]) -> Option<Self> {
        Self::from_bounds(class, bounds.clipped(size[0], size[1]))
    }

    /// As [`Self::new`], for an image of unknown size.
    pub fn from_bounds(class: &str, bounds: BoundingBox) -> Option<Self> {
        // A cast of NaN is 0; of an edge beyond the range, the nearest number.
        let edges = <[f32; 4]>::from(bounds).map(|edge| (f64::from(edge) * 2.0).round() as u32);
        let has_area = edges[0] < edges[2] && edges[1] < edges[3];
        let is_named = !class.trim().is_empty();
        (has_area && is_named && bounds.is_finite()).then(|| Self { class: class.to_owned(), edges })
    }

    pub fn class(&self) -> &str {
        &self.class
    }

    /// In pixels of the upright image.
    pub fn bounds(&self) -> BoundingBox {
        self.edges.map(|edge| (f64::from(edge) / 2.0) as f32).into()
    }

    /// The same box with another class; `None` if the class has no name.
    pub fn with_class(&self, class: &str) -> Option<Self> {
        Self::from_bounds(class, self.bounds())
    }
}

impl TryFrom<Written> for DrawnBox {
    type Error = &'static str;

    fn try_from(written: Written) -> Result<Self, Self::Error> {
        Self::from_bounds(&written.class, written.bounds).ok_or("a box needs an area and a class")
    }
}

impl From<DrawnBox> for Written {
    fn from(drawn: DrawnBox) -> Self {
        Self { bounds: drawn.bounds(), class: drawn.class }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(class: &str, bounds: [f32; 4]) -> DrawnBox {
        DrawnBox::new(class, bounds.into(), [100, 50]).unwrap()
    }

    #[test]
    fn edges_are_half_pixels_inside_the_image() {
        assert_eq!(drawn(" cat ", [1.2, 2.3, 10.8, 20.0]).bounds(), BoundingBox::new(1.0, 2.5, 11.0, 20.0));
        assert_eq!(drawn("cat", [-5.0, 2.0, 400.0, 60.0]).bounds(), BoundingBox::new(0.0, 2.0, 100.0, 50.0));
        let none = |class: &str, bounds: [f32; 4]| DrawnBox::new(class, bounds.into(), [100, 50]);
        assert_eq!(none("cat", [5.0, 5.0, 5.2, 9.0]), None);
        assert_eq!(none("cat", [120.0, 5.0, 130.0, 9.0]), None);
        assert_eq!(none("cat", [9.0, 5.0, 5.0, 9.0]), None);
        assert_eq!(none("cat", [f32::NAN, 5.0, 9.0, 9.0]), None);
        assert_eq!(none("  ", [1.0, 5.0, 9.0, 9.0]), None);
    }

    #[test]
    fn drawn_box_survives_json() {
        let written = serde_json::to_string(&drawn("cat", [1.0, 2.5, 11.0, 20.0])).unwrap();
        assert_eq!(written, r#"{"class":"cat","box":[1.0,2.5,11.0,20.0]}"#);
        assert_eq!(serde_json::from_str::<DrawnBox>(&written).unwrap(), drawn("cat", [1.0, 2.5, 11.0, 20.0]));
        assert!(serde_json::from_str::<DrawnBox>(r#"{"class":"cat","box":[1.0,2.5,1.0,20.0]}"#).is_err());
    }
}
