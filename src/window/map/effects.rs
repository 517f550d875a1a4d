//! Placing images and boxes by their embeddings, and grouping them, next to the window's thread.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::alike::{Embeddings, NEIGHBORS, NeighborGraph, Pca, Point, Umap};
use crate::domain::{Sample, SampleId, SampleUri, SharedList};
use crate::project::export::BoxRow;
use crate::review::{Groups, MapRow, group_rows};
use crate::tasks::{Cancelled, ProgressUnit, TaskControl};
use crate::window::browse::effects::alike::{box_embeddings, embeddings};
use crate::window::effects::latest::{LatestSender, worker};
use crate::window::effects::{Effects, Shared, guarded, unique_number};
use crate::window::map::kept::{KeptMap, MAX_CLUSTERS, SEED};
use crate::window::state::{
    Cluster, Failure, GroupRequest, LayRequest, MapEffect, MapEvent, MapGroups, MapLayout, MapStage, RequestId, Ticket,
};

/// The shortest time between two reports of positions.
const REPORT_PERIOD: Duration = Duration::from_millis(150);
/// The most boxes on a map: comparing all with all takes four times as long for twice as many.
const MAX_BOXES: usize = 100_000;

pub(crate) fn carry_out(effects: &mut Effects, effect: MapEffect) {
    match effect {
        MapEffect::Lay { request, ticket } => effects.shared.run_task(
            "map of embeddings",
            ticket,
            move |shared, ticket| lay(shared, &request, ticket),
            |task, result| MapEvent::Ended { task, result },
        ),
        MapEffect::Group { id, what } => {
            effects.map_groups.put((id, what));
        }
    }
}

/// Reports the map in the cache, or computes it.
fn lay(shared: &Shared, request: &LayRequest, ticket: &Ticket) -> Result<(), Failure> {
    let LayRequest { source, run, of_boxes, predicted, .. } = *request;
    let control = &ticket.control;
    control.set_step("reading embeddings");
    let Embedded { rows, vectors, without, encoder } = read(shared, request, control)?;
    control.begin(ProgressUnit::Steps);
    let layout = MapLayout {
        source,
        run,
        of_boxes,
        number: unique_number(),
        rows: rows.into(),
        clusters: [].into(),
        points: [].into(),
        clusters_number: unique_number(),
        stage: MapStage::Finished,
        predicted,
        without,
        encoder,
    };
    let key = KeptMap::key(&vectors);
    control.checkpoint()?;
    if let Some(KeptMap { points, clusters }) = KeptMap::read(&shared.cache, &key, vectors.len()) {
        let layout = Box::new(MapLayout { points: points.into(), clusters: clusters.into(), ..layout });
        shared.report(MapEvent::Placed { task: ticket.id, layout });
        return Ok(());
    }
    let map = compute(shared, vectors, layout, ticket)?;
    map.write(&shared.cache, &key).unwrap_or_else(|error| shared.report_problem(error.to_string()));
    Ok(())
}

/// Reports the principal components first, then the map while it takes shape.
fn compute(shared: &Shared, vectors: Embeddings, layout: MapLayout, ticket: &Ticket) -> Result<KeptMap, Cancelled> {
    let control = &ticket.control;
    control.set_step("principal components");
    let points = components(&vectors, control)?.into();
    let clusters = clusters(&vectors, control)?.into();
    let mut layout = MapLayout { points, clusters, stage: MapStage::Components, ..layout };
    let report =
        |layout: &MapLayout| shared.report(MapEvent::Placed { task: ticket.id, layout: Box::new(layout.clone()) });
    report(&layout);
    control.set_step(if layout.of_boxes { "comparing boxes" } else { "comparing images" });
    let graph = NeighborGraph::build(&vectors, NEIGHBORS, control)?;
    drop(vectors);
    control.begin(ProgressUnit::Steps);
    control.set_step("UMAP");
    let mut umap = Umap::new(&graph, &layout.points, SEED);
    control.set_total(Some(umap.epochs() as u64));
    let mut reported = Instant::now();
    while umap.step() {
        control.checkpoint()?;
        control.set_done(umap.epoch() as u64);
        if reported.elapsed() >= REPORT_PERIOD {
            let stage = MapStage::Moving { epoch: umap.epoch(), epochs: umap.epochs() };
            layout = MapLayout { number: unique_number(), points: umap.positions().into(), stage, ..layout };
            report(&layout);
            reported = Instant::now();
        }
    }
    let points = umap.positions().to_vec();
    let clusters = layout.clusters.to_vec();
    report(&MapLayout {
        number: unique_number(),
        points: points.as_slice().into(),
        stage: MapStage::Finished,
        ..layout
    });
    Ok(KeptMap { points, clusters })
}

/// What is placed on a map.
struct Embedded {
    rows: Vec<MapRow>,
    vectors: Embeddings,
    /// As in [`MapLayout::without`].
    without: usize,
    /// The encoder and its layer, for people.
    encoder: String,
}

fn read(shared: &Shared, request: &LayRequest, control: &TaskControl) -> Result<Embedded, Failure> {
    let LayRequest { source, run, samples, of_boxes, .. } = request;
    if !of_boxes {
        let (encoder, vectors) = embeddings(shared, *source, *run, samples, control)?;
        let rows = rows(samples, &vectors.uris);
        let without = samples.len() - rows.len();
        return Ok(Embedded { rows, vectors: vectors.rows, without, encoder: encoder.to_string() });
    }
    let (encoder, stored) = box_embeddings(shared, request, control)?;
    let row = |found: &BoxRow| MapRow { sample: SampleId(found.sample), index: Some(found.index) };
    let mut listed: Vec<(MapRow, usize)> = stored.boxes.iter().map(row).zip(0..).collect();
    listed.sort_unstable();
    // Evenly over the listing.
    let step = listed.len().div_ceil(MAX_BOXES).max(1);
    let (mut rows, mut vectors) = (Vec::new(), Embeddings::default());
    for (row, at) in listed.into_iter().step_by(step) {
        if stored.rows.row(at).is_some_and(|vector| vectors.push(&vector)) {
            rows.push(row);
        }
    }
    let without = stored.boxes.len() - rows.len();
    Ok(Embedded { rows, vectors, without, encoder: encoder.text_of_boxes() })
}

/// The positions along the first two principal components.
fn components(rows: &Embeddings, control: &TaskControl) -> Result<Vec<Point>, Cancelled> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let components = Pca::fit(rows, 2, threads, control)?;
    let point = |row: usize| {
        let coordinates = rows.row(row).and_then(|row| components.transform(&row)).unwrap_or_default();
        [0, 1].map(|axis| coordinates.get(axis).copied().unwrap_or(0.0))
    };
    Ok((0..rows.len()).map(point).collect())
}

/// The cluster of each row, by its embedding.
fn clusters(rows: &Embeddings, control: &TaskControl) -> Result<Vec<u8>, Cancelled> {
    let count = ((rows.len() as f32 / 2.0).sqrt().ceil() as usize).min(MAX_CLUSTERS);
    let clusters = rows.clusters(count, || control.is_cancelled()).ok_or(Cancelled)?;
    // A vector at the mean has no direction.
    Ok(clusters.of_row.iter().map(|cluster| cluster.unwrap_or(0) as u8).collect())
}

/// The samples with these locations, which are in listing order.
fn rows(samples: &SharedList<Sample>, uris: &[SampleUri]) -> Vec<MapRow> {
    let mut wanted = uris.iter().peekable();
    let listed = samples.iter().enumerate().filter(|(_, sample)| wanted.next_if(|uri| **uri == sample.uri).is_some());
    listed.map(|(index, _)| MapRow { sample: SampleId::from_index(index), index: None }).collect()
}

pub(crate) fn group_worker(shared: &Arc<Shared>) -> LatestSender<(RequestId, Box<GroupRequest>)> {
    worker(shared, "group a map", |shared, (id, what): (RequestId, Box<GroupRequest>), turn| {
        let groups = match guarded(|| Ok(group(&what, &|| turn.is_over()))) {
            Ok(None) => return true,
            Ok(Some(groups)) => groups,
            Err(reason) => {
                shared.report_problem(reason);
                MapGroups::default()
            }
        };
        shared.report(MapEvent::Grouped { id, groups })
    })
}

fn group(what: &GroupRequest, cancelled: &dyn Fn() -> bool) -> Option<MapGroups> {
    let groups = group_rows(&what.images, &what.rows, what.by, cancelled)?;
    let clusters = clusters_of(&what.clusters, &groups);
    Some(MapGroups { clusters_number: what.number, groups, clusters })
}

/// The clusters that are not empty, largest first, with their most frequent group.
fn clusters_of(cluster_of: &[u8], groups: &Groups) -> Vec<Cluster> {
    let mut counts = vec![vec![0_usize; groups.groups.len()]; MAX_CLUSTERS];
    for (cluster, group) in cluster_of.iter().zip(&*groups.group_of) {
        counts[usize::from(*cluster)][usize::from(*group)] += 1;
    }
    let cluster = |(number, counts): (usize, Vec<usize>)| {
        let most = counts.iter().enumerate().max_by_key(|(position, count)| (**count, std::cmp::Reverse(*position)));
        let (most, count) = most.map(|(position, count)| (position, *count))?;
        (count > 0).then(|| Cluster { number: number as u8, rows: counts.iter().sum(), most, count })
    };
    let mut clusters: Vec<Cluster> = counts.into_iter().enumerate().filter_map(cluster).collect();
    clusters.sort_by_key(|cluster| std::cmp::Reverse(cluster.rows));
    clusters
}
