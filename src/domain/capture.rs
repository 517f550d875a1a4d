//! When, where and with which camera an image was taken.

use std::sync::Arc;

use jiff::civil::DateTime;

/// EXIF data that can be searched for; empty if the file has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capture {
    /// By the clock of the camera, without a time zone.
    pub taken: Option<DateTime>,
    /// Make and model.
    pub camera: Option<Arc<str>>,
    pub location: Option<GeoPoint>,
}

/// Degrees, north and east positive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GeoPoint {
    latitude: f64,
    longitude: f64,
}

/// Neither is NaN.
impl Eq for GeoPoint {}

/// The parts of a day: their first hour. The last one lasts until the first begins.
const PARTS_OF_DAY: [(i8, &str); 4] =
    [(6, "morning (6:00–10:59)"), (11, "day (11:00–16:59)"), (17, "evening (17:00–20:59)"), (21, "night (21:00–5:59)")];

impl Capture {
    /// In months since the beginning of year 0.
    pub fn month(&self) -> Option<u32> {
        let taken = self.taken?;
        Some(u32::try_from(taken.year()).ok()? * 12 + u32::try_from(taken.month()).ok()? - 1)
    }

    /// `evening (17:00–20:59)`
    pub fn part_of_day(&self) -> Option<&'static str> {
        let hour = self.taken?.hour();
        let part = PARTS_OF_DAY.iter().rev().find(|(first, _)| hour >= *first);
        Some(part.unwrap_or(&PARTS_OF_DAY[PARTS_OF_DAY.len() - 1]).1)
    }
}

impl GeoPoint {
    /// `None` if there is no such point.
    pub fn new(latitude: f64, longitude: f64) -> Option<Self> {
        (latitude.abs() <= 90.0 && longitude.abs() <= 180.0).then_some(Self { latitude, longitude })
    }

    /// The great-circle distance in km, on a sphere with the Earth's mean radius (R. W. Sinnott, Virtues of the
    /// Haversine, Sky and Telescope 68, 1984).
    pub fn distance_km(self, other: Self) -> f64 {
        const MEAN_RADIUS_KM: f64 = 6371.0088;
        let half_sine = |one: f64, two: f64| ((two - one).to_radians() / 2.0).sin().powi(2);
        let haversine = half_sine(self.latitude, other.latitude)
            + self.latitude.to_radians().cos()
                * other.latitude.to_radians().cos()
                * half_sine(self.longitude, other.longitude);
        2.0 * MEAN_RADIUS_KM * haversine.clamp(0.0, 1.0).sqrt().asin()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half the mean circumference, and one degree of it.
    #[test]
    fn distances_match_known_ones() {
        let point = |latitude, longitude| GeoPoint::new(latitude, longitude).unwrap();
        for (one, two, expected) in [
            (point(0.0, 0.0), point(0.0, 180.0), 20_015.1),
            (point(90.0, 0.0), point(-90.0, 77.0), 20_015.1),
            (point(0.0, 179.5), point(0.0, -179.5), 111.195),
            (point(48.137, 11.575), point(48.137, 11.575), 0.0),
        ] {
            let distance = one.distance_km(two);
            assert!((distance - expected).abs() < 0.05, "{one:?} {two:?}: {distance}");
        }
        assert_eq!(GeoPoint::new(91.0, 0.0), None);
        assert_eq!(GeoPoint::new(f64::NAN, 0.0), None);
    }
}
