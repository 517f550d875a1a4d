//! Finds boxes similar to one.

use std::path::Path;

use anyhow::{Context, bail};

use super::{AlikeArgs, Found, Origin, advice_on_names, embed_query, open_run, sample_of};
use crate::alike::{METRIC, Neighbor};
use crate::cli::stored::choose_detector;
use crate::dirs::AppDirs;
use crate::domain::{ImagePart, Sample, counted};
use crate::project::export::{BoxRow, stored_box_vectors};
use crate::similar::{ModelPlace, why_no_box_embeddings, why_no_embeddings};
use crate::tasks::TaskControl;

pub(super) fn find(
    args: &AlikeArgs,
    (image, index): (&Path, u16),
    samples: &[Sample],
    dirs: &AppDirs,
    control: &TaskControl,
) -> anyhow::Result<(Origin, Vec<Found>)> {
    let path = args.project.as_deref().context("--box needs --project")?;
    let (project, run) = open_run(&args.place(), path, dirs, choose_detector)?;
    let Some((encoder, vectors)) = stored_box_vectors(&project, &run, samples, control)? else {
        bail!(why_no_embeddings(&run, &ModelPlace { dirs, runtime_library: None }, control));
    };
    if encoder.boxes.is_none() {
        bail!(why_no_box_embeddings(&run, &ModelPlace { dirs, runtime_library: None }, control));
    }
    if vectors.boxes.is_empty() {
        let root = project.root();
        let advice = samples.first().map(|sample| advice_on_names(root.as_deref().unwrap_or("other images"), sample));
        bail!("none of the {} images has a box with an embedding. {}", samples.len(), advice.unwrap_or_default());
    }
    eprintln!("embeddings by {}", encoder.text_of_boxes());
    let own = sample_of(image, samples).and_then(|at| u32::try_from(at).ok());
    let own = own.and_then(|sample| vectors.row_of(BoxRow { sample, index }));
    let model = (run, encoder);
    let query = if let Some(query) = own.and_then(|row| vectors.rows.row(row)) {
        query
    } else {
        // Of an image outside the project, or with a low score.
        let full = embed_query(image, ImagePart::Box(index), &model, dirs, control)?;
        vectors.reduced(&full).context("the model’s vectors have another length than those of the project")?
    };
    let nearest = vectors.rows.nearest(&query, args.count as usize + 1).into_iter();
    let nearest = nearest.filter(|found| Some(found.row) != own).take(args.count as usize);
    let found = nearest.map(|Neighbor { row, similarity }| {
        let BoxRow { sample, index } = vectors.boxes[row];
        Found { uri: samples[sample as usize].uri.clone(), box_index: Some(index), similarity }
    });
    eprintln!("{} compared by the {METRIC}", counted(vectors.boxes.len(), "box", "boxes"));
    Ok((Origin::Model(Box::new(model)), found.collect()))
}
