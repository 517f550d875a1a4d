//! Outputs for lists: the job read files with one line per image, and responded to each line.
//!
//! A response that was joined with its input names its image. If none does, the list is read again: its n-th line tells
//! which image the n-th response is for, by name or by the image's bytes.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use super::csv_line::COLUMNS;
use super::json::{Json, excerpt};
use super::responses::ResponseFile;
use crate::domain::Sample;
use crate::image::source::Source;

/// The fields in which a line of a list can name its image; `source-ref` is that of SageMaker's own manifests.
pub(super) const IMAGE_FIELDS: [&str; 7] = ["source-ref", "uri", "image", "file_name", "file", "name", "key"];
/// The number of lines that are used to find the prefix of image names.
const LOOKED_AT: usize = 1000;

/// Images by their names in lists.
pub(super) struct Names<'s> {
    samples: &'s [Sample],
    by_uri: HashMap<&'s str, usize>,
    /// `None` if several images have this name.
    by_name: HashMap<&'s str, Option<usize>>,
    by_size: OnceLock<HashMap<u64, Vec<usize>>>,
}

impl<'s> Names<'s> {
    pub(super) fn new(samples: &'s [Sample]) -> Self {
        let mut by_name: HashMap<&str, Option<usize>> = HashMap::new();
        for (place, sample) in samples.iter().enumerate() {
            by_name.entry(sample.name.as_str()).and_modify(|known| *known = None).or_insert(Some(place));
        }
        let by_uri = samples.iter().enumerate();
        Self {
            samples,
            by_uri: by_uri.map(|(place, sample)| (sample.uri.as_str(), place)).collect(),
            by_name,
            by_size: OnceLock::new(),
        }
    }

    /// The prefix of names in lines, such as `s3://bucket/photos/` or empty: the one that matches most of the first
    /// lines; on a tie, the one that leaves the longest names. `None` if no line names an image.
    ///
    /// There is one prefix for all lines: equal names in different folders are different images.
    ///
    /// # Errors
    /// The lines cannot be read.
    pub(super) fn base_of(&self, lines: ResponseFile<'_>) -> Result<Option<String>, String> {
        let mut counts = HashMap::new();
        let mut lines = lines.responses();
        for _ in 0..LOOKED_AT {
            match lines.read_next()? {
                Some(Ok(line)) => texts(&line).for_each(|text| self.count_bases(text, &mut counts)),
                Some(Err(_)) => {}
                None => break,
            }
        }
        let best = counts.into_iter().max_by_key(|(base, count)| (*count, Reverse((base.len(), base.clone()))));
        Ok(best.map(|(base, _)| base))
    }

    fn count_bases(&self, text: &str, counts: &mut HashMap<String, usize>) {
        let mut count = |base: &str| *counts.entry(base.to_owned()).or_default() += 1;
        if self.by_uri.contains_key(text) {
            return count("");
        }
        let starts = text.match_indices('/').map(|(slash, _)| slash + 1);
        for start in std::iter::once(0).chain(starts) {
            if self.by_name.contains_key(&text[start..]) {
                count(&text[..start]);
            }
        }
    }

    /// The image that a response, or a line of a list, names: by its address, its name, or its name after `base`.
    ///
    /// # Errors
    /// It names none of these images, or several.
    pub(super) fn named_by(&self, line: &Json, base: &str) -> Result<usize, String> {
        let mut unknown = None;
        for text in texts(line) {
            let mut names = [Some(text), text.strip_prefix(base)].into_iter().flatten();
            let by_name = || names.find_map(|name| self.by_name.get(name).copied());
            let by_uri = self.by_uri.get(text).map(|place| Some(*place));
            match by_uri.or_else(by_name) {
                Some(Some(place)) => return Ok(place),
                Some(None) => return Err(format!("several images are named “{}”", excerpt(text))),
                None => {
                    unknown.get_or_insert(text);
                }
            }
        }
        Err(match unknown {
            Some(name) => format!("image “{}” does not exist", excerpt(name)),
            None => "it does not name its image".to_owned(),
        })
    }

    /// The image of each line in the list that a job read.
    ///
    /// # Errors
    /// The list cannot be read. Inner errors: why the line has no image.
    pub(super) fn images_of_list(
        &self,
        list: ResponseFile<'_>,
        source: &dyn Source,
    ) -> Result<Vec<Result<usize, String>>, String> {
        let base = self.base_of(list)?.unwrap_or_default();
        let mut places = Vec::new();
        let mut taken = HashSet::new();
        let mut lines = list.responses();
        while let Some(line) = lines.read_next()? {
            let place = line.and_then(|line| {
                let named = self.named_by(&line, &base);
                named.or_else(|reason| self.with_bytes_of(&line, source, &taken).ok_or(reason))
            });
            taken.extend(place.as_ref().ok());
            places.push(place);
        }
        Ok(places)
    }

    /// The image whose bytes are in a line, as `{"b64": "…"}`. Of identical images, the first one that no earlier line
    /// was for.
    fn with_bytes_of(&self, line: &Json, source: &dyn Source, taken: &HashSet<usize>) -> Option<usize> {
        let bytes = BASE64_STANDARD.decode(line.get("b64")?.text()?).ok()?;
        let by_size = self.by_size.get_or_init(|| {
            let mut by_size: HashMap<u64, Vec<usize>> = HashMap::new();
            for (place, sample) in self.samples.iter().enumerate() {
                by_size.entry(sample.size_bytes).or_default().push(place);
            }
            by_size
        });
        let mut same = by_size.get(&(bytes.len() as u64))?.iter().filter(|place| {
            !taken.contains(*place) && source.read(&self.samples[**place].uri).is_ok_and(|image| image == bytes)
        });
        same.next().copied()
    }
}

/// All texts that may name an image.
fn texts(line: &Json) -> impl Iterator<Item = &str> {
    let fields = IMAGE_FIELDS.into_iter().filter_map(move |field| line.get(field));
    let columns: &[Json] = match line.get(COLUMNS) {
        Some(Json::List(columns)) => columns,
        _ => &[],
    };
    fields.chain(columns).filter_map(Json::text)
}

#[cfg(test)]
mod tests {
    use super::super::folder::OutputFolder;
    use super::super::responses::ResponseFormat;
    use super::*;
    use crate::domain::SampleUri;
    use crate::tasks::{ProgressUnit, TaskControl};

    fn samples(names: &[&str]) -> Vec<Sample> {
        let sample = |name: &&str| Sample::new(SampleUri::new(format!("/photos/{name}")), *name, 1);
        names.iter().map(sample).collect()
    }

    /// Checks the image that each line names.
    fn check(images: &[&str], lines: &[&str], expected: &[Option<&str>]) {
        let folder = tempfile::tempdir().unwrap();
        let text: Vec<String> =
            lines.iter().map(|line| serde_json::json!({ "source-ref": line }).to_string()).collect();
        std::fs::write(folder.path().join("l.out"), text.join("\n")).unwrap();
        let (folder, control) = (OutputFolder::local(folder.path()), TaskControl::new(ProgressUnit::Images));
        let file = folder.list(&control, |_| true).unwrap().remove(0);
        let file = ResponseFile { folder: &folder, file: &file, control: &control, format: ResponseFormat::Several };
        let samples = samples(images);
        let names = Names::new(&samples);
        let base = names.base_of(file).unwrap().unwrap_or_default();
        let mut responses = file.responses();
        let mut found = Vec::new();
        while let Some(line) = responses.read_next().unwrap() {
            let place = names.named_by(&line.unwrap(), &base).ok();
            found.push(place.map(|place| images[place]));
        }
        assert_eq!(found, expected, "{lines:?}");
    }

    #[test]
    fn addresses_match_by_common_suffix() {
        let images = ["a.jpg", "sub/a.jpg", "sub/b.jpg"];
        check(&images, &["s3://b/photos/sub/a.jpg", "s3://b/photos/a.jpg"], &[Some("sub/a.jpg"), Some("a.jpg")]);
        // An image in an unopened folder is not mistaken for one with the same name.
        check(
            &images,
            &["s3://b/photos/other/a.jpg", "s3://b/photos/sub/a.jpg", "s3://b/photos/sub/b.jpg"],
            &[None, Some("sub/a.jpg"), Some("sub/b.jpg")],
        );
        // Only the inner folder is open.
        check(
            &["a.jpg", "b.jpg"],
            &["s3://b/p/sub/a.jpg", "s3://b/p/sub/b.jpg", "s3://b/p/a.jpg"],
            &[Some("a.jpg"), Some("b.jpg"), None],
        );
        check(
            &images,
            &["/photos/sub/b.jpg", "sub/a.jpg", "elsewhere", "b.jpg"],
            &[Some("sub/b.jpg"), Some("sub/a.jpg"), None, None],
        );
        // Two opened folders can contain images with the same name.
        check(&["a.jpg", "a.jpg"], &["s3://b/a.jpg"], &[None]);
    }
}
