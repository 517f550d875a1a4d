//! Duplicates by embedding: rows whose similarity reaches a threshold.

use super::dot::{centered, centered_dot};
use super::groups::{Match, Reference};
use super::search::snapped;
use super::{Embeddings, NeighborGraph};

/// The similarity from which on images are duplicates.
pub const DEFAULT_SIMILARITY: f32 = 0.95;

/// Rows to compare with, by the graph of nearest neighbors of all rows. Exact: only if all neighbors of a row are
/// similar enough can there be others, which are then compared one by one.
pub(super) struct SimilarRows<'e> {
    embeddings: &'e Embeddings,
    graph: &'e NeighborGraph,
    above: f32,
    /// By row.
    image_of: Vec<usize>,
    /// By row: the row itself if it is a reference, or the reference that it matched.
    reference_of: Vec<Option<usize>>,
    references: Vec<usize>,
}

impl<'e> SimilarRows<'e> {
    /// `rows` are those of the images, by image.
    pub(super) fn new(
        embeddings: &'e Embeddings,
        graph: &'e NeighborGraph,
        rows: &[Option<usize>],
        above: f32,
    ) -> Self {
        let mut image_of = vec![0; embeddings.len()];
        for (image, row) in rows.iter().enumerate() {
            if let Some(of_row) = row.and_then(|row| image_of.get_mut(row)) {
                *of_row = image;
            }
        }
        let reference_of = vec![None; embeddings.len()];
        Self { embeddings, graph, above, image_of, reference_of, references: Vec::new() }
    }

    fn similar_reference(&self, row: usize) -> Option<(usize, f32)> {
        let neighbors = self.graph.neighbors(row);
        let above = self.above;
        let similar = || neighbors.iter().take_while(move |neighbor| neighbor.similarity >= above);
        let is_reference = |row: usize| self.reference_of[row] == Some(row);
        if let Some(found) = similar().find(|neighbor| is_reference(neighbor.row)) {
            return Some((found.row, found.similarity));
        }
        if similar().count() < neighbors.len() {
            return None;
        }
        let through_neighbors = similar().filter_map(|neighbor| self.reference_of[neighbor.row]);
        let row = self.embeddings.centered_row(row);
        let candidates = through_neighbors.chain(self.references.iter().copied());
        let mut compared = candidates.map(|reference| (reference, row.similarity_to(reference)));
        compared.find(|(_, similarity)| *similarity >= above)
    }
}

impl Reference<usize> for SimilarRows<'_> {
    fn add(&mut self, _image: usize, row: &usize) {
        self.reference_of[*row] = Some(*row);
        self.references.push(*row);
    }

    fn find(&mut self, _image: usize, row: &usize) -> Option<Match> {
        let (reference, similarity) = self.similar_reference(*row)?;
        self.reference_of[*row] = Some(reference);
        Some(Match { reference: self.image_of[reference], similarity, is_mirrored: false })
    }
}

/// A row to compare with many others.
struct CenteredRow<'e> {
    embeddings: &'e Embeddings,
    row: usize,
    /// Without the mean of all rows.
    values: Vec<f32>,
    norm: f32,
}

impl CenteredRow<'_> {
    fn similarity_to(&self, other: usize) -> f32 {
        let center = self.embeddings.center();
        let norm = center.norms[other];
        if self.norm > 0.0 && norm > 0.0 {
            let values = self.embeddings.values_of(other);
            let dot = centered_dot(values, &center.mean, &self.values);
            return snapped(dot / (self.norm * norm), values, self.embeddings.values_of(self.row));
        }
        if self.norm == norm { 1.0 } else { 0.0 }
    }
}

impl Embeddings {
    /// The similarity of two rows, as [`Self::similarities`] defines it.
    pub fn similarity(&self, one: usize, other: usize) -> f32 {
        self.centered_row(other).similarity_to(one)
    }

    fn centered_row(&self, row: usize) -> CenteredRow<'_> {
        let center = self.center();
        let values = centered(self.values_of(row), &center.mean);
        CenteredRow { embeddings: self, row, values, norm: center.norms[row] }
    }
}

#[cfg(test)]
mod tests {
    use super::super::groups::{DuplicateKind, Grouping, Sides};
    use super::super::{NEIGHBORS, embeddings};
    use super::*;
    use crate::tasks::{ProgressUnit, TaskControl};

    fn groups(all: &Embeddings, sides: Sides, above: f32) -> Vec<Vec<usize>> {
        let graph = NeighborGraph::build(all, NEIGHBORS, &TaskControl::new(ProgressUnit::Steps)).unwrap();
        let rows: Vec<Option<usize>> = (0..all.len()).map(Some).collect();
        let mut grouping = Grouping::new(all.len(), sides);
        let references = || SimilarRows::new(all, &graph, &rows, above);
        assert!(grouping.add_matching(DuplicateKind::Alike, &rows, references, || true));
        grouping.finish().iter().map(|group| group.images().collect()).collect()
    }

    /// Row by row: the first kept row that is similar enough.
    fn by_full_scan(all: &Embeddings, above: f32) -> Vec<usize> {
        let mut kept: Vec<usize> = Vec::new();
        for row in 0..all.len() {
            if kept.iter().all(|other| all.similarity(row, *other) < above) {
                kept.push(row);
            }
        }
        kept
    }

    #[test]
    fn more_copies_than_neighbors_form_one_group() {
        // Two bundles of 40 rows each, in turns, and two rows of their own.
        let mut random = fastrand::Rng::with_seed(5);
        let mut noise = || random.f32() * 0.01;
        let rows = (0..80).map(|at| if at % 2 == 0 { [1.0, noise(), noise()] } else { [noise(), 1.0, noise()] });
        let all = embeddings(rows.chain([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]]));
        let found = groups(&all, Sides::One, 0.9);
        assert_eq!(found, [(0..80).step_by(2).collect::<Vec<_>>(), (1..80).step_by(2).collect()]);
        let across = groups(&all, Sides::Two(2), 0.9);
        assert_eq!(across, found);
    }

    #[test]
    fn kept_rows_are_those_of_a_full_scan() {
        let mut random = fastrand::Rng::with_seed(9);
        let all = embeddings((0..400).map(|_| std::array::from_fn::<_, 3, _>(|_| random.f32() - 0.5)));
        for above in [0.8, 0.95, 0.999] {
            let joined: usize = groups(&all, Sides::One, above).iter().map(|group| group.len() - 1).sum();
            let kept = by_full_scan(&all, above);
            assert_eq!(all.len() - joined, kept.len(), "{above}");
        }
    }

    #[test]
    fn two_sides_list_every_match_of_a_full_scan() {
        const SECOND: usize = 150;
        let mut random = fastrand::Rng::with_seed(3);
        let all = embeddings((0..300).map(|_| std::array::from_fn::<_, 6, _>(|_| random.f32() - 0.5)));
        for above in [0.8, 0.9, 0.95] {
            let matches =
                |one: usize, other: usize| (one < SECOND) != (other < SECOND) && all.similarity(one, other) >= above;
            let expected: Vec<usize> =
                (0..all.len()).filter(|one| (0..all.len()).any(|other| matches(*one, other))).collect();
            let found = groups(&all, Sides::Two(SECOND), above);
            for group in &found {
                assert!(group[1..].iter().all(|image| all.similarity(group[0], *image) >= above), "{group:?}");
            }
            let mut listed = found.concat();
            listed.sort_unstable();
            listed.dedup();
            assert_eq!(listed, expected, "{above}");
            assert!((10..all.len()).contains(&listed.len()), "{above}: {}", listed.len());
        }
    }

    #[test]
    fn many_identical_vectors_are_searched_and_grouped_quickly() {
        let many = embeddings(std::iter::repeat_n([2.0, 3.0, 4.0], 200_000));
        let nearest = many.nearest(&many.row(7).unwrap(), 5);
        assert_eq!(nearest.iter().map(|found| found.similarity).collect::<Vec<_>>(), [1.0; 5]);
        // The graph compares all pairs, the groups add nothing quadratic.
        let few = embeddings(std::iter::repeat_n([2.0, 3.0, 4.0], 3000));
        let [group] = groups(&few, Sides::One, 0.95).try_into().unwrap();
        assert_eq!(group.len(), 3000);
        let halves = groups(&few, Sides::Two(1500), 0.95);
        assert_eq!(halves.concat().len(), 3000);
    }

    #[test]
    fn identical_and_single_vectors_have_groups_of_their_own() {
        let identical = embeddings([[2.0, 3.0, 4.0]; 50]);
        assert_eq!(groups(&identical, Sides::One, 0.95), [(0..50).collect::<Vec<_>>()]);
        assert!(groups(&embeddings([[1.0, 0.0, 0.0]]), Sides::One, 0.95).is_empty());
        assert!(groups(&embeddings([[0.0; 3], [1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]), Sides::One, 0.95).is_empty());
        assert!(groups(&Embeddings::default(), Sides::One, 0.95).is_empty());
    }
}
