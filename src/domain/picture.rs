//! A decoded image.

/// An image as people see it: upright (EXIF orientation applied), RGB, 8 bits a channel, alpha laid over white.
/// The pixels are row-major, `[height, width, 3]`, without padding.
#[derive(Clone, PartialEq, Eq)]
pub struct Picture {
    width: u32,
    height: u32,
    rgb: Vec<u8>,
}

impl Picture {
    /// `None` where a side is zero or `rgb` does not hold exactly `width * height * 3` bytes.
    pub fn new(width: u32, height: u32, rgb: Vec<u8>) -> Option<Self> {
        let expected_bytes = (width as usize)
            .checked_mul(height as usize)?
            .checked_mul(3)?;
        (expected_bytes > 0 && rgb.len() == expected_bytes).then_some(Self { width, height, rgb })
    }

    pub fn width(&self) -> u32 {
        self.width
    }

    pub fn height(&self) -> u32 {
        self.height
    }

    /// `[height, width, 3]`, row-major.
    pub fn rgb(&self) -> &[u8] {
        &self.rgb
    }

    pub fn into_rgb(self) -> Vec<u8> {
        self.rgb
    }

    /// The colour at column `x` and row `y`; `None` outside the picture.
    pub fn pixel(&self, x: u32, y: u32) -> Option<[u8; 3]> {
        if x >= self.width || y >= self.height {
            return None;
        }
        let start = (y as usize * self.width as usize + x as usize) * 3;
        self.rgb.get(start..start + 3)?.try_into().ok()
    }

    /// The picture with half as many pixels a side (at least one): each the mean of up to four. A last odd column or row
    /// is left out. For showing, not for models.
    pub fn halved(&self) -> Self {
        let (width, height) = ((self.width / 2).max(1), (self.height / 2).max(1));
        let stride = self.width as usize * 3;
        let mut rgb = Vec::with_capacity(width as usize * height as usize * 3);
        for row in 0..height as usize {
            let upper = &self.rgb[(row * 2) * stride..][..stride];
            let lower_row = (row * 2 + 1).min(self.height as usize - 1);
            let lower = &self.rgb[lower_row * stride..][..stride];
            for column in 0..width as usize {
                let left = column * 2 * 3;
                let right = (column * 2 + 1).min(self.width as usize - 1) * 3;
                for channel in 0..3 {
                    let sum = u16::from(upper[left + channel])
                        + u16::from(upper[right + channel])
                        + u16::from(lower[left + channel])
                        + u16::from(lower[right + channel]);
                    rgb.push(((sum + 2) / 4) as u8);
                }
            }
        }
        Self { width, height, rgb }
    }
}

impl std::fmt::Debug for Picture {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Picture({}x{})", self.width, self.height)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_picture_holds_the_means_of_four() {
        let rgb = [0, 10, 20, 30, 200, 200].map(|grey| [grey; 3]).concat();
        let picture = Picture::new(3, 2, rgb).unwrap();
        let half = picture.halved();
        assert_eq!((half.width(), half.height()), (1, 1));
        assert_eq!(half.pixel(0, 0), Some([60; 3]));
    }

    #[test]
    fn half_a_line_is_a_line() {
        let picture = Picture::new(1, 4, vec![8; 12]).unwrap();
        let half = picture.halved();
        assert_eq!((half.width(), half.height()), (1, 2));
        assert_eq!(half.rgb(), [8; 6]);
    }
}
