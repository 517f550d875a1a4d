//! A picture at every size it may be shown at.

use std::sync::Arc;

use super::Picture;

/// Levels are added until the longer side is at most this many pixels.
const SMALLEST_SIDE: u32 = 1024;

/// A picture and its halves, quarters and so on, so that a large one can be shown small without shimmering. Cheap to
/// clone.
#[derive(Debug, Clone)]
pub struct DisplayPicture {
    /// The whole picture first; each next level has half as many pixels a side.
    levels: Arc<[Picture]>,
}

impl DisplayPicture {
    pub fn new(picture: Picture) -> Self {
        let mut levels = vec![picture];
        while let Some(smallest) = levels.last()
            && smallest.width().max(smallest.height()) > SMALLEST_SIDE
        {
            levels.push(smallest.halved());
        }
        Self {
            levels: levels.into(),
        }
    }

    /// The whole picture first; each next level has half as many pixels a side.
    pub fn levels(&self) -> &[Picture] {
        &self.levels
    }

    /// The picture at full size.
    pub fn full(&self) -> &Picture {
        &self.levels[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_end_where_they_are_small_enough() {
        let picture = Picture::new(3000, 20, vec![7; 3000 * 20 * 3]).unwrap();
        let picture = DisplayPicture::new(picture);
        let sizes: Vec<(u32, u32)> = picture
            .levels()
            .iter()
            .map(|level| (level.width(), level.height()))
            .collect();
        assert_eq!(sizes, [(3000, 20), (1500, 10), (750, 5)]);
    }
}
