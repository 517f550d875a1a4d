//! Which output is about which images. Pure: names against names.

use std::collections::{BTreeMap, HashMap};

use super::folder::OutputFile;
use crate::domain::{S3Address, Sample};
use crate::remote::transform::{OUT, OutputKeys};

/// Outputs that are looked at to find out what their keys are relative to.
const LOOKED_AT: usize = 1000;

/// What there is to read, and what there is not.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Joined {
    /// In the order of the images.
    pub(super) works: Vec<Work>,
    /// Places in the listing of the images that no output is about.
    pub(super) without_output: Vec<usize>,
    /// Outputs that are about none of the images, by their number.
    pub(super) strays: Vec<usize>,
}

/// An output (by its number) and the images (by their place in the listing) that it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Work {
    One {
        output: usize,
        place: usize,
    },
    /// An answer for each record of a file of many, in their order.
    Records {
        output: usize,
        /// By the number of the record, ascending.
        places: BTreeMap<u64, usize>,
    },
    /// Lines that name their images themselves: joined with an input that was a list.
    Named {
        output: usize,
    },
}

impl Work {
    pub(super) fn output(&self) -> usize {
        match self {
            Self::One { output, .. } | Self::Records { output, .. } | Self::Named { output } => {
                *output
            }
        }
    }
}

/// `prefix` is what the job read, or the folder of the images: a key or a path, as [`key_of`] makes it.
pub(super) fn join(
    samples: &[Sample],
    outputs: &[OutputFile],
    prefix: &str,
    folder: &S3Address,
) -> Joined {
    let keys: Vec<String> = samples
        .iter()
        .map(|sample| key_of(sample.uri.file()))
        .collect();
    let mut inputs: Vec<&str> = keys.iter().map(String::as_str).collect();
    inputs.sort_unstable();
    inputs.dedup();
    let looked_at = outputs.iter().step_by(outputs.len() / LOOKED_AT + 1);
    let looked_at = looked_at.map(|output| output.key.as_str());
    let rule = OutputKeys::confirmed(prefix, &inputs, folder, looked_at);

    let of_input: HashMap<String, usize> = outputs
        .iter()
        .enumerate()
        .filter_map(|(number, output)| Some((rule.input_of(&output.key)?, number)))
        .collect();
    let mut joined = Joined::default();
    let mut is_used = vec![false; outputs.len()];
    // The records of a file stand behind one another.
    let mut records: HashMap<usize, usize> = HashMap::new();
    for (place, (sample, key)) in samples.iter().zip(&keys).enumerate() {
        let Some(&output) = of_input.get(key) else {
            joined.without_output.push(place);
            continue;
        };
        is_used[output] = true;
        let Some((_, record)) = sample.uri.record() else {
            joined.works.push(Work::One { output, place });
            continue;
        };
        let work = *records.entry(output).or_insert_with(|| {
            joined.works.push(Work::Records {
                output,
                places: BTreeMap::new(),
            });
            joined.works.len() - 1
        });
        if let Work::Records { places, .. } = &mut joined.works[work] {
            places.insert(record, place);
        }
    }
    for (output, file) in outputs.iter().enumerate() {
        match () {
            () if is_used[output] => {}
            () if is_list(&file.key) => joined.works.push(Work::Named { output }),
            () => joined.strays.push(output),
        }
    }
    joined
}

/// A key of S3, or a path, in the one form in which both can be held against outputs: with `/`, and without what stands before the
/// first folder.
pub(super) fn key_of(uri: &str) -> String {
    if let Some((_, key)) = uri
        .strip_prefix("s3://")
        .and_then(|rest| rest.split_once('/'))
    {
        return key.to_owned();
    }
    let path = if std::path::MAIN_SEPARATOR == '/' {
        uri.to_owned()
    } else {
        uri.replace(std::path::MAIN_SEPARATOR, "/")
    };
    path.trim_start_matches('/').to_owned()
}

/// Whether the input of this output was a list of images, or of their contents.
fn is_list(key: &str) -> bool {
    let input = key.strip_suffix(OUT).unwrap_or(key).to_ascii_lowercase();
    [".jsonl", ".json", ".jsonlines", ".manifest"]
        .iter()
        .any(|end| input.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::SampleUri;

    fn sample(uri: &str) -> Sample {
        Sample {
            uri: SampleUri::new(uri),
            name: String::new(),
            size_bytes: 1,
            modified_ns: None,
            etag: None,
        }
    }

    fn outputs(keys: &[&str]) -> Vec<OutputFile> {
        let file = |key: &&str| OutputFile {
            key: (*key).to_owned(),
            size_bytes: 1,
            etag: None,
            modified_ns: None,
        };
        keys.iter().map(file).collect()
    }

    #[test]
    fn outputs_find_their_images_and_what_is_missing_or_strange_is_told() {
        let samples = ["/photos/a.jpg", "/photos/b/c.jpg", "/photos/d.jpg"].map(sample);
        let found = join(
            &samples,
            &outputs(&[
                "a.jpg.out",
                "b/c.jpg.out",
                "../../etc/passwd.out",
                "/photos/d.jpg.out",
                "list.jsonl.out",
            ]),
            "photos/",
            &S3Address::new("", ""),
        );
        assert_eq!(
            found,
            Joined {
                works: vec![
                    Work::One {
                        output: 0,
                        place: 0
                    },
                    Work::One {
                        output: 1,
                        place: 1
                    },
                    Work::Named { output: 4 },
                ],
                without_output: vec![2],
                strays: vec![2, 3],
            }
        );
    }

    #[test]
    fn records_are_joined_by_their_number_and_prefixes_are_found_out() {
        let samples = [
            "s3://b/all/photos/t.tfrecord/#0",
            "s3://b/all/photos/t.tfrecord/#2",
            "s3://b/all/photos/x.jpg",
        ]
        .map(sample);
        let found = join(
            &samples,
            &outputs(&["out/photos/t.tfrecord.out", "out/photos/x.jpg.out"]),
            "all/photos/",
            &S3Address::new("b", "out/"),
        );
        assert_eq!(
            found.works,
            [
                Work::Records {
                    output: 0,
                    places: [(0, 0), (2, 1)].into()
                },
                Work::One {
                    output: 1,
                    place: 2
                }
            ]
        );
    }
}
