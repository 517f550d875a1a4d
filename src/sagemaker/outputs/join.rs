//! Matches outputs to images by name. Pure.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::folder::Sent;
use crate::domain::{S3Address, Sample};
use crate::image::source::{FileEntry, is_hidden_name};
use crate::sagemaker::jobs::{NamedFrom, OUT, OutputKeys, folders_around};

/// The number of outputs that are used to find the base of their keys.
const LOOKED_AT: usize = 1000;

/// The outputs to read, and the images without one.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Joined {
    /// The outputs in the order of their images.
    pub works: Vec<Work>,
    /// Indices of the images without an output.
    pub without_output: Vec<usize>,
    /// The reasons by image index, if the job was queried.
    pub reasons: BTreeMap<usize, String>,
    /// Indices of images that the job never received.
    pub not_sent: Vec<usize>,
    /// Outputs for none of the images, by index.
    pub strays: Vec<usize>,
    /// Outputs for inputs of the job that are not among the images.
    pub unlisted: Vec<usize>,
}

/// An output (by index) and its images (by index in the listing).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    One {
        output: usize,
        place: usize,
    },
    /// One response per record of a container file, in order.
    Records {
        output: usize,
        /// The image indices by record number, ascending.
        places: BTreeMap<u64, usize>,
    },
    /// Lines that name their images themselves, or that correspond to the lines of a list.
    Named {
        output: usize,
    },
}

impl Work {
    pub fn output(&self) -> usize {
        match self {
            Self::One { output, .. } | Self::Records { output, .. } | Self::Named { output } => *output,
        }
    }

    /// Its images by response, as indices into the listing; none if only its lines name them.
    pub fn places(&self) -> impl Iterator<Item = usize> + '_ {
        self.places_from(0)
    }

    /// The images of the response with this number and of later ones.
    pub fn places_from(&self, number: u64) -> impl Iterator<Item = usize> + '_ {
        let (one, records) = match self {
            Self::One { place, .. } => ((number == 0).then_some(*place), None),
            Self::Records { places, .. } => (None, Some(places.range(number..).map(|(_, place)| *place))),
            Self::Named { .. } => (None, None),
        };
        one.into_iter().chain(records.into_iter().flatten())
    }

    /// The image of the response with this number.
    pub fn place(&self, number: u64) -> Option<usize> {
        match self {
            Self::One { place, .. } => (number == 0).then_some(*place),
            Self::Records { places, .. } => places.get(&number).copied(),
            Self::Named { .. } => None,
        }
    }

    /// Without other images; `None` if none is left. Lists may be for any image.
    fn only(mut self, is_included: impl Fn(usize) -> bool) -> Option<Self> {
        let is_left = match &mut self {
            Self::One { place, .. } => is_included(*place),
            Self::Records { places, .. } => {
                places.retain(|_, place| is_included(*place));
                !places.is_empty()
            }
            Self::Named { .. } => true,
        };
        is_left.then_some(self)
    }
}

/// The images to match with outputs.
pub(super) struct Images<'s> {
    pub samples: &'s [Sample],
    /// The folder or prefix that their names are relative to.
    pub root: &'s str,
}

/// A folder of outputs, and what is known about them.
pub(super) struct Written<'w> {
    pub outputs: &'w [FileEntry],
    /// The index of the first one.
    pub first: usize,
    pub named_from: Option<&'w NamedFrom>,
    pub sent: Option<&'w Sent>,
    pub folder: &'w S3Address,
}

/// Joins the outputs of one folder.
pub(super) fn join(images: &Images<'_>, written: &Written<'_>) -> Joined {
    let &Written { outputs, first, named_from, .. } = written;
    let samples = images.samples;
    let keys: Vec<String> = samples.iter().map(|sample| key_of(sample.uri.file())).collect();
    let mut inputs: Vec<&str> = keys.iter().map(String::as_str).collect();
    inputs.sort_unstable();
    inputs.dedup();
    let listed = match named_from {
        Some(NamedFrom::Manifest { keys, .. }) if images.are_in_s3() => keys.as_deref(),
        _ => None,
    };
    if let Some(listed) = listed {
        inputs = listed.iter().map(String::as_str).collect();
    }
    let looked_at = outputs.iter().step_by(outputs.len() / LOOKED_AT + 1);
    let looked_at = looked_at.map(|output| output.key.as_str());
    let rule = images.rule(named_from, &inputs, written.folder, looked_at);
    let given = written.given(&rule);

    let of_input: HashMap<String, usize> = outputs
        .iter()
        .enumerate()
        .filter_map(|(number, output)| Some((rule.input_of(&output.key)?, first + number)))
        // Outputs can only be for images in the manifest.
        .filter(|(input, _)| listed.is_none_or(|listed| listed.binary_search(input).is_ok()))
        .collect();
    let mut joined = Joined::default();
    let mut is_used = vec![false; outputs.len()];
    // The records of a file are consecutive.
    let mut records: HashMap<usize, usize> = HashMap::new();
    for (place, (sample, key)) in samples.iter().zip(&keys).enumerate() {
        let Some(&output) = of_input.get(key) else {
            joined.add_without(place, key, given.as_ref());
            continue;
        };
        is_used[output - first] = true;
        let Some((_, record)) = sample.uri.record() else {
            joined.works.push(Work::One { output, place });
            continue;
        };
        let work = *records.entry(output).or_insert_with(|| {
            joined.works.push(Work::Records { output, places: BTreeMap::new() });
            joined.works.len() - 1
        });
        if let Work::Records { places, .. } = &mut joined.works[work] {
            places.insert(record, place);
        }
    }
    joined.add_unused(written, &is_used);
    joined
}

impl Written<'_> {
    /// The job's images without an output and the reasons, by key; `None` if unknown, or known only to lists.
    fn given(&self, rule: &OutputKeys) -> Option<HashMap<String, &str>> {
        let without = &self.sent?.without_output;
        let mut keys = self.outputs.iter().map(|output| &output.key);
        if keys.any(|key| is_list(key)) || without.iter().any(|(key, _)| is_list(key)) {
            return None;
        }
        let without = without.iter();
        let by_input = without.filter_map(|(key, why)| Some((rule.input_of(key)?, why.as_str())));
        Some(by_input.collect())
    }

    /// Whether an output is for an input of the job.
    fn was_given(&self, output: &str) -> bool {
        if let Some(sent) = self.sent {
            return !sent.unexpected_outputs.contains(output);
        }
        let Some(name) = output.strip_prefix(&self.folder.prefix) else {
            return false;
        };
        match self.named_from {
            Some(NamedFrom::Manifest { folder, keys: Some(keys), .. }) => name.strip_suffix(OUT).is_some_and(|name| {
                let key = format!("{}{name}", folder.prefix);
                keys.binary_search(&key).is_ok()
            }),
            // A job processes hidden objects like any other, and possibly folder markers: `folder/.out`.
            _ => is_hidden_name(name) && name.split('/').all(|part| !part.starts_with("..")),
        }
    }
}

impl<'s> Images<'s> {
    /// The last parts of the names.
    pub(super) fn file_names(&self) -> impl Iterator<Item = &'s str> + use<'s> {
        let files = self.samples.iter().map(|sample| sample.uri.file());
        files.map(|file| file.rsplit(std::path::is_separator).next().unwrap_or(file))
    }

    fn are_in_s3(&self) -> bool {
        let first = self.samples.first();
        first.is_some_and(|sample| sample.uri.as_str().starts_with("s3://"))
    }

    /// The rule from output keys to image keys.
    fn rule<'k>(
        &self,
        named_from: Option<&NamedFrom>,
        inputs: &[&str],
        folder: &S3Address,
        outputs: impl IntoIterator<Item = &'k str>,
    ) -> OutputKeys {
        if let Some(named_from) = named_from.filter(|_| self.are_in_s3()) {
            return OutputKeys::confirmed(&named_from.place().prefix, inputs, folder, outputs);
        }
        // Local files that were uploaded for the job have the same names as the objects, but other paths.
        let mut root = key_of(self.root);
        let is_folder = root.is_empty() || root.ends_with('/');
        if !is_folder && !self.root.contains("://") {
            root.push('/');
        }
        let Some(NamedFrom::Manifest { folder: listed, is_ours, .. }) = named_from else {
            return OutputKeys::confirmed(&root, inputs, folder, outputs);
        };
        // A manifest can refer to another folder level than the opened one. Of images with the same name, the one with
        // the same parent folders is used.
        let mut bases: Vec<String> = folders_within(&listed.prefix).map(|inner| format!("{root}{inner}")).collect();
        if *is_ours {
            bases.insert(0, root.clone());
        }
        bases.extend(folders_around(&root).map(str::to_owned));
        OutputKeys::chosen(bases, inputs, folder, outputs)
    }
}

/// `a/b/c/`, `b/c/` and `c/` for `a/b/c/`.
fn folders_within(prefix: &str) -> impl Iterator<Item = &str> {
    let inner = prefix.trim_end_matches('/').match_indices('/');
    let inner = inner.map(|(slash, _)| &prefix[slash + 1..]);
    let whole = (!prefix.is_empty()).then_some(prefix);
    whole.into_iter().chain(inner)
}

impl Joined {
    /// Records an image without an output. `given`: the inputs that the job received without writing an output, if
    /// known, and why.
    fn add_without(&mut self, place: usize, key: &str, given: Option<&HashMap<String, &str>>) {
        let why = given.and_then(|given| given.get(key));
        if given.is_some() && why.is_none() {
            self.not_sent.push(place);
            return;
        }
        self.without_output.push(place);
        if let Some(why) = why {
            self.reasons.insert(place, (*why).to_owned());
        }
    }

    /// Records the outputs whose names match no image.
    fn add_unused(&mut self, written: &Written<'_>, is_used: &[bool]) {
        let unused = written.outputs.iter().zip(is_used).enumerate();
        for (number, (file, _)) in unused.filter(|(_, (_, is_used))| !**is_used) {
            let output = written.first + number;
            if is_list(&file.key) {
                self.works.push(Work::Named { output });
            } else if written.was_given(&file.key) {
                self.unlisted.push(output);
            } else {
                self.strays.push(output);
            }
        }
    }

    /// Adds the outputs of a later job for the same images. They take precedence, because the later job was started for
    /// missing outputs.
    pub fn then(mut self, later: Self) -> Self {
        let predicted: HashSet<usize> = later.works.iter().flat_map(Work::places).collect();
        let earlier = std::mem::take(&mut self.works)
            .into_iter()
            .filter_map(|work| work.only(|place| !predicted.contains(&place)));
        let mut works: Vec<Work> = earlier.chain(later.works).collect();
        works.sort_by_key(|work| work.places().min().unwrap_or(usize::MAX));
        let still_without: HashSet<usize> = later.without_output.into_iter().collect();
        // For an image with an output, only that output is reported.
        let mut all = Self { works, ..self };
        all.without_output.retain(|place| still_without.contains(place));
        all.not_sent.retain(|place| still_without.contains(place));
        all.reasons.retain(|place, _| still_without.contains(place));
        all.strays.extend(later.strays);
        all.unlisted.extend(later.unlisted);
        all
    }

    /// Adds the outputs of another job for images that have no output yet. Its lists are skipped: they may be for other
    /// images.
    pub fn filled_by(self, other: Self) -> Self {
        let gaps: HashSet<usize> = self.without_output.iter().copied().collect();
        let works = other.works.into_iter().filter(|work| !matches!(work, Work::Named { .. }));
        let works = works.filter_map(|work| work.only(|place| gaps.contains(&place)));
        let of_gaps = Self { works: works.collect(), without_output: other.without_output, ..Self::default() };
        self.then(of_gaps)
    }
}

/// An S3 key or a path in the form that outputs share: with `/`, starting at the first folder.
pub(super) fn key_of(uri: &str) -> String {
    if let Some((_, key)) = uri.strip_prefix("s3://").and_then(|rest| rest.split_once('/')) {
        return key.to_owned();
    }
    let path =
        if std::path::MAIN_SEPARATOR == '/' { uri.to_owned() } else { uri.replace(std::path::MAIN_SEPARATOR, "/") };
    path.trim_start_matches('/').to_owned()
}

/// Whether the input of this output was a list of images or of their contents.
pub(super) fn is_list(key: &str) -> bool {
    let input = key.strip_suffix(OUT).unwrap_or(key).to_ascii_lowercase();
    [".jsonl", ".json", ".jsonlines", ".ndjson", ".manifest", ".csv", ".txt"].iter().any(|end| input.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::SampleUri;

    fn sample(uri: &str) -> Sample {
        Sample::new(SampleUri::new(uri), "", 1)
    }

    fn outputs(keys: &[&str]) -> Vec<FileEntry> {
        keys.iter().map(|key| FileEntry::from_key(key)).collect()
    }

    fn written<'w>(outputs: &'w [FileEntry], named_from: Option<&'w NamedFrom>, folder: &'w S3Address) -> Written<'w> {
        Written { outputs, first: 0, named_from, sent: None, folder }
    }

    #[test]
    fn outputs_match_images_and_gaps_are_reported() {
        let samples = ["/photos/a.jpg", "/photos/b/c.jpg", "/photos/d.jpg"].map(sample);
        let images = Images { samples: &samples, root: "/photos" };
        let outputs =
            outputs(&["a.jpg.out", "b/c.jpg.out", "../../etc/passwd.out", "/photos/d.jpg.out", "list.jsonl.out"]);
        let found = join(&images, &written(&outputs, None, &S3Address::new("", "")));
        assert_eq!(
            found,
            Joined {
                works: vec![
                    Work::One { output: 0, place: 0 },
                    Work::One { output: 1, place: 1 },
                    Work::Named { output: 4 },
                ],
                without_output: vec![2],
                strays: vec![2, 3],
                ..Joined::default()
            }
        );
    }

    #[test]
    fn records_match_by_number_and_detected_prefix() {
        let samples = ["s3://b/all/photos/t.tfrecord/#0", "s3://b/all/photos/t.tfrecord/#2", "s3://b/all/photos/x.jpg"]
            .map(sample);
        let images = Images { samples: &samples, root: "s3://b/all/photos/" };
        let outputs = outputs(&["out/photos/t.tfrecord.out", "out/photos/x.jpg.out"]);
        let named_from = NamedFrom::Prefix(S3Address::new("b", "all/photos/"));
        let folder = S3Address::new("b", "out/");
        let found = join(&images, &written(&outputs, Some(&named_from), &folder));
        assert_eq!(
            found.works,
            [Work::Records { output: 0, places: [(0, 0), (2, 1)].into() }, Work::One { output: 1, place: 2 }]
        );
    }

    fn manifest(folder: &str, keys: Option<&[&str]>) -> NamedFrom {
        NamedFrom::Manifest {
            folder: S3Address::new("b", folder),
            keys: keys.map(|keys| keys.iter().map(|key| (*key).to_owned()).collect()),
            is_ours: false,
        }
    }

    /// The index of the image for each output of a manifest job.
    fn joined_places(samples: &[Sample], root: &str, written: &[&str], named_from: &NamedFrom) -> Vec<Option<usize>> {
        let images = Images { samples, root };
        let files = outputs(written);
        let folder = S3Address::new("b", "out/");
        let found = join(&images, &self::written(&files, Some(named_from), &folder));
        let place = |number: usize| {
            let mut works = found.works.iter();
            let work = works.find(|work| work.output() == number)?;
            work.places().next()
        };
        (0..files.len()).map(place).collect()
    }

    #[test]
    fn manifest_ignores_equal_names_in_other_folders() {
        let samples = ["s3://b/photos/1.jpg", "s3://b/photos/a/1.jpg", "s3://b/photos/b/1.jpg"].map(sample);
        // Relative to a folder below the opened one.
        let deep = manifest("photos/a/", Some(&["photos/a/1.jpg"]));
        let written = ["out/1.jpg.out", "out/b/1.jpg.out"];
        assert_eq!(joined_places(&samples, "s3://b/photos/", &written, &deep), [Some(1), None]);
        // The manifest was deleted, but its folder is known.
        let gone = manifest("photos/a/", None);
        assert_eq!(joined_places(&samples, "s3://b/photos/", &written[..1], &gone), [Some(1)]);
        let both = manifest("photos/", Some(&["photos/a/1.jpg", "photos/b/1.jpg"]));
        let written = ["out/1.jpg.out", "out/a/1.jpg.out", "out/b/1.jpg.out"];
        for root in ["s3://b/photos/", "s3://b/", "s3://b/photos/a/"] {
            assert_eq!(joined_places(&samples, root, &written, &both), [None, Some(1), Some(2)], "{root}");
        }
    }

    #[test]
    fn manifest_names_local_files() {
        let samples = ["/home/1.jpg", "/home/a/1.jpg", "/home/a/2.jpg", "/home/b/1.jpg"].map(sample);
        let whole = manifest("in/home/", Some(&["in/home/a/1.jpg", "in/home/b/1.jpg"]));
        let written = ["out/a/1.jpg.out", "out/b/1.jpg.out"];
        assert_eq!(joined_places(&samples, "/home", &written, &whole), [Some(1), Some(3)]);
        let deep = manifest("in/home/a/", Some(&["in/home/a/1.jpg"]));
        let written = ["out/1.jpg.out"];
        assert_eq!(joined_places(&samples, "/home", &written, &deep), [Some(1)]);
        // The folder a was itself uploaded and sent from here.
        let ours = NamedFrom::Manifest {
            folder: S3Address::new("b", "in/a/"),
            keys: Some(vec!["in/a/1.jpg".to_owned()]),
            is_ours: true,
        };
        assert_eq!(joined_places(&samples, "/home", &written, &ours), [Some(0)]);
    }

    #[test]
    fn apparent_retry_adds_only_missing_images() {
        let one = |output: usize, place: usize| Work::One { output, place };
        let first = Joined { works: vec![one(0, 0), one(1, 1)], without_output: vec![2, 3, 4], ..Joined::default() };
        let other = Joined {
            works: vec![one(5, 1), one(6, 2), Work::Named { output: 7 }],
            without_output: vec![0, 3, 4],
            strays: vec![8],
            ..Joined::default()
        };
        let filled = first.filled_by(other);
        assert_eq!(filled.works, [one(0, 0), one(1, 1), one(6, 2)]);
        assert_eq!(filled.without_output, [3, 4]);
        assert_eq!(filled.strays, [0; 0]);
    }

    #[test]
    fn later_job_wins_and_order_is_kept() {
        let first = Joined {
            works: vec![
                Work::One { output: 0, place: 0 },
                Work::Records { output: 1, places: [(0, 2), (1, 3)].into() },
                Work::Named { output: 2 },
            ],
            without_output: vec![1, 4],
            reasons: [(1, "refused".to_owned()), (4, "refused".to_owned())].into(),
            not_sent: vec![5],
            strays: vec![3],
            ..Joined::default()
        };
        let later = Joined {
            works: vec![
                Work::One { output: 4, place: 1 },
                Work::Records { output: 5, places: [(0, 2), (1, 3)].into() },
            ],
            without_output: vec![0, 4, 5],
            strays: vec![6],
            ..Joined::default()
        };
        let both = first.then(later);
        let outputs: Vec<usize> = both.works.iter().map(Work::output).collect();
        assert_eq!(outputs, [0, 4, 5, 2]);
        assert_eq!((both.without_output, both.not_sent), (vec![4], vec![5]));
        assert_eq!(both.reasons, [(4, "refused".to_owned())].into());
        assert_eq!(both.strays, [3, 6]);
    }

    #[test]
    fn hidden_outputs_of_an_unknown_job_are_expected() {
        let samples = [sample("/photos/a.jpg")];
        let images = Images { samples: &samples, root: "/photos" };
        let outputs = outputs(&[".x.jpg.out", "a.jpg.out", "else.jpg.out", "sub/.out"]);
        let found = join(&images, &written(&outputs, None, &S3Address::new("", "")));
        assert_eq!((found.unlisted, found.strays), (vec![0, 3], vec![2]));
    }

    #[test]
    fn job_inputs_distinguish_missing_from_unsent() {
        let samples = ["a.jpg", "b.jpg", "c.jpg"].map(|name| sample(&format!("/photos/{name}")));
        let images = Images { samples: &samples, root: "/photos" };
        let outputs = outputs(&["out/.x.jpg.out", "out/a.jpg.out", "out/else.jpg.out"]);
        let folder = S3Address::new("b", "out/");
        let named_from = NamedFrom::Prefix(S3Address::new("b", "uploaded/"));
        let sent = Sent {
            is_final: true,
            without_output: vec![("out/b.jpg.out".to_owned(), "refused".to_owned())],
            unexpected_outputs: ["out/else.jpg.out".to_owned()].into(),
        };
        let known = written(&outputs, Some(&named_from), &folder);
        let found = join(&images, &Written { sent: Some(&sent), ..known });
        assert_eq!(
            found,
            Joined {
                works: vec![Work::One { output: 1, place: 0 }],
                without_output: vec![1],
                reasons: [(1, "refused".to_owned())].into(),
                not_sent: vec![2],
                strays: vec![2],
                unlisted: vec![0],
            }
        );
    }
}
