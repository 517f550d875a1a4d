//! Search words about when and where an image was taken.

use jiff::ToSpan;
use jiff::civil::DateTime;

use crate::domain::GeoPoint;

/// A time from `from` up to, but not including, `until`; `None` is open.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Period {
    pub from: Option<DateTime>,
    pub until: Option<DateTime>,
}

/// The points at most this far from a center.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Circle {
    center: GeoPoint,
    radius_km: f64,
}

impl Period {
    /// A year, month, day, hour, minute or second: `2024`, `2024-05`, `2024-05-17`, `2024-05-17T14:30`.
    pub fn parse(text: &str) -> Option<[DateTime; 2]> {
        let parts: Option<Vec<i16>> = text.split(['-', ':', 'T', 't']).map(|part| part.parse().ok()).collect();
        let parts = parts.filter(|parts| parts[0] >= 1000)?;
        let part = |at: usize, otherwise| parts.get(at).map_or(Some(otherwise), |part| i8::try_from(*part).ok());
        let (month, day) = (part(1, 1)?, part(2, 1)?);
        let from = DateTime::new(parts[0], month, day, part(3, 0)?, part(4, 0)?, part(5, 0)?, 0).ok()?;
        let length = match parts.len() {
            1 => 1.year(),
            2 => 1.month(),
            3 => 1.day(),
            4 => 1.hour(),
            5 => 1.minute(),
            6 => 1.second(),
            _ => return None,
        };
        Some([from, from.checked_add(length).ok()?])
    }

    pub fn contains(self, at: DateTime) -> bool {
        self.from.is_none_or(|from| from <= at) && self.until.is_none_or(|until| at < until)
    }
}

impl Circle {
    const USUAL_RADIUS_KM: f64 = 1.0;

    /// Latitude and longitude in degrees, and a radius: `48.137,11.575~10km`, `48.137,11.575~500m`.
    pub fn parse(text: &str) -> Option<Self> {
        let (center, radius) = text.split_once('~').map_or((text, None), |(center, radius)| (center, Some(radius)));
        let (latitude, longitude) = center.split_once(',')?;
        let center = GeoPoint::new(latitude.trim().parse().ok()?, longitude.trim().parse().ok()?)?;
        let radius_km = match radius.map(str::trim) {
            None => Self::USUAL_RADIUS_KM,
            Some(radius) => match (radius.strip_suffix("km"), radius.strip_suffix('m')) {
                (Some(km), _) => km.trim_end().parse().ok()?,
                (None, Some(meters)) => meters.trim_end().parse::<f64>().ok()? / 1000.0,
                (None, None) => return None,
            },
        };
        (radius_km >= 0.0 && radius_km.is_finite()).then_some(Self { center, radius_km })
    }

    pub fn center(self) -> GeoPoint {
        self.center
    }

    pub fn contains(self, point: GeoPoint) -> bool {
        self.center.distance_km(point) <= self.radius_km
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_cover_the_period_that_they_name() {
        for (text, expected) in [
            ("2024", Some(["2024-01-01T00:00", "2025-01-01T00:00"])),
            ("2024-02", Some(["2024-02-01T00:00", "2024-03-01T00:00"])),
            ("2024-12-31", Some(["2024-12-31T00:00", "2025-01-01T00:00"])),
            ("2024-05-17t14:30", Some(["2024-05-17T14:30", "2024-05-17T14:31"])),
            ("2023-02-29", None),
            ("2024-13", None),
            ("24-05-17", None),
            ("-2024", None),
            ("2024-05-17-18-19-20-21", None),
            ("99999", None),
            ("9999-12-31", None),
            ("may", None),
            ("", None),
        ] {
            let expected = expected.map(|ends| ends.map(|end| end.parse().unwrap()));
            assert_eq!(Period::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn circles_contain_points_within_their_radius() {
        // One degree of latitude is 111.195 km.
        let point = GeoPoint::new(48.0, 11.0).unwrap();
        for (text, expected) in [
            ("49,11~112km", Some(true)),
            ("49,11~111km", Some(false)),
            ("48.009, 11", Some(false)),
            ("48.0089, 11", Some(true)),
            ("48.0089,11~500m", Some(false)),
            ("48,11~0m", Some(true)),
            ("48", None),
            ("91,0", None),
            ("48,11~10", None),
            ("48,11~-1km", None),
            ("48,nan", None),
            ("48,11~nankm", None),
            ("48,11~infkm", None),
        ] {
            assert_eq!(Circle::parse(text).map(|circle| circle.contains(point)), expected, "{text}");
        }
    }
}
