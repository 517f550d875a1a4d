/// A decoded image as people see it: upright (EXIF orientation applied), RGB, 8 bits per channel, alpha blended onto
/// white. Pixels are row-major, `[height, width, 3]`, without padding.
#[derive(Clone, PartialEq, Eq)]
pub struct RgbImage {
    width: u32,
    height: u32,
    rgb: Vec<u8>,
}

impl RgbImage {
    /// `None` if a side is zero or `rgb` does not hold exactly `width * height * 3` bytes.
    pub fn new(width: u32, height: u32, rgb: Vec<u8>) -> Option<Self> {
        let expected_bytes = (width as usize).checked_mul(height as usize)?.checked_mul(3)?;
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

    /// The color at column `x` and row `y`; `None` outside the image.
    pub fn pixel(&self, x: u32, y: u32) -> Option<[u8; 3]> {
        if x >= self.width || y >= self.height {
            return None;
        }
        let start = (y as usize * self.width as usize + x as usize) * 3;
        self.rgb.get(start..start + 3)?.try_into().ok()
    }
}

impl std::fmt::Debug for RgbImage {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Image({}x{})", self.width, self.height)
    }
}
