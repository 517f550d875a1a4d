//! Regions of a map: k-means (Lloyd) from well separated starts (Arthur and Vassilvitskii 2007, k-means++).

use super::Point;

/// The most regions that a list of them can show at a glance.
const MAX_REGIONS: usize = 12;
const MAX_ITERATIONS: usize = 50;

/// The region of each point, largest region first. At most [`MAX_REGIONS`], and fewer for few points.
pub fn regions(points: &[Point], seed: u64) -> Vec<u8> {
    let count = ((points.len() as f32 / 2.0).sqrt().ceil() as usize).min(MAX_REGIONS);
    let mut centers = starts(points, count, seed);
    let mut region_of = vec![u8::MAX; points.len()];
    for _ in 0..MAX_ITERATIONS {
        let mut is_changed = false;
        for (point, region) in points.iter().zip(&mut region_of) {
            let nearest = nearest(&centers, *point) as u8;
            is_changed |= nearest != std::mem::replace(region, nearest);
        }
        if !is_changed {
            break;
        }
        let mut sums = vec![[0.0_f64; 3]; centers.len()];
        for (point, region) in points.iter().zip(&region_of) {
            let sum = &mut sums[usize::from(*region)];
            *sum = [sum[0] + f64::from(point[0]), sum[1] + f64::from(point[1]), sum[2] + 1.0];
        }
        for (center, [x, y, count]) in centers.iter_mut().zip(sums) {
            if count > 0.0 {
                *center = [(x / count) as f32, (y / count) as f32];
            }
        }
    }
    by_size(&region_of, centers.len())
}

/// The first point at random, each other one with a probability that grows with its distance from those chosen.
fn starts(points: &[Point], count: usize, seed: u64) -> Vec<Point> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut centers = Vec::with_capacity(count);
    let mut distances = vec![f32::INFINITY; points.len()];
    while centers.len() < count {
        let total: f64 = distances.iter().map(|&distance| f64::from(distance)).sum();
        let chosen = if centers.is_empty() {
            random.usize(..points.len())
        } else if total > 0.0 {
            let mut left = random.f64() * total;
            let is_it = |distance: &f32| {
                left -= f64::from(*distance);
                left <= 0.0
            };
            distances.iter().position(is_it).unwrap_or(0)
        } else {
            // All other points are at the centers.
            break;
        };
        centers.push(points[chosen]);
        for (distance, point) in distances.iter_mut().zip(points) {
            *distance = distance.min(squared_distance(*point, points[chosen]));
        }
    }
    centers
}

fn nearest(centers: &[Point], point: Point) -> usize {
    let mut best = (f32::INFINITY, 0);
    for (at, center) in centers.iter().enumerate() {
        let distance = squared_distance(*center, point);
        if distance < best.0 {
            best = (distance, at);
        }
    }
    best.1
}

fn squared_distance(one: Point, other: Point) -> f32 {
    (one[0] - other[0]).powi(2) + (one[1] - other[1]).powi(2)
}

/// Numbers the regions anew, largest first.
fn by_size(region_of: &[u8], count: usize) -> Vec<u8> {
    let mut sizes = vec![0_usize; count];
    for region in region_of {
        sizes[usize::from(*region)] += 1;
    }
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|&region| (std::cmp::Reverse(sizes[region]), region));
    let mut numbers = vec![0_u8; count];
    for (number, &region) in order.iter().enumerate() {
        numbers[region] = number as u8;
    }
    region_of.iter().map(|region| numbers[usize::from(*region)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separate_heaps_are_regions_and_the_largest_is_first() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut points = Vec::new();
        for (x, y, count) in [(0.0, 0.0, 10), (50.0, 0.0, 4), (0.0, 90.0, 4)] {
            points.extend((0..count).map(|_| [x + random.f32(), y + random.f32()]));
        }
        let found = regions(&points, 5);
        assert_eq!(found[..10], [0; 10]);
        assert!(found[10..14].iter().all(|region| *region == found[10] && *region > 0));
        assert!(found[14..].iter().all(|region| *region == found[14] && *region > 0 && *region != found[10]));
        assert_eq!(found, regions(&points, 5));
    }

    #[test]
    fn few_and_identical_points_have_regions() {
        assert!(regions(&[], 1).is_empty());
        assert_eq!(regions(&[[3.0, 4.0]], 1), [0]);
        assert_eq!(regions(&[[1.0, 1.0]; 100], 1), [0; 100]);
    }
}
