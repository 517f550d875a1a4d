//! Matches outputs with inputs. Pure; the only code with this rule.
//!
//! SageMaker writes `<output folder>/<relative input key>.out`. Its documentation and its users disagree on what the
//! key is relative to: to the prefix if that is a folder that contains all keys, otherwise to the last slash of the
//! prefix. The rule therefore states an expectation, and the listing of outputs decides.

use crate::domain::S3Address;

/// SageMaker's suffix of output keys.
pub const OUT: &str = ".out";

/// One job's rule from input keys to output keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputKeys {
    /// The prefix of input keys that output keys omit: empty, or with a trailing slash.
    base: String,
    /// The prefix of output keys: empty, or with a trailing slash.
    folder: String,
}

impl OutputKeys {
    /// The rule before there are outputs. `prefix` is that of the input, or the folder of a manifest; `inputs` are full
    /// keys.
    pub fn expected<'k>(prefix: &str, inputs: impl IntoIterator<Item = &'k str>, output: &S3Address) -> Self {
        let as_folder =
            if prefix.is_empty() || prefix.ends_with('/') { prefix.to_owned() } else { format!("{prefix}/") };
        let base = if inputs.into_iter().all(|key| key.starts_with(&as_folder)) {
            as_folder
        } else {
            prefix[..after_last_slash(prefix)].to_owned()
        };
        Self { base, folder: output.as_folder().prefix }
    }

    /// The rule that explains most outputs: the expected one, unless another one explains more. `inputs` are full keys
    /// in byte order, as S3 lists them.
    pub fn confirmed<'k>(
        prefix: &str,
        inputs: &[&str],
        output: &S3Address,
        outputs: impl IntoIterator<Item = &'k str>,
    ) -> Self {
        let expected = Self::expected(prefix, inputs.iter().copied(), output);
        // The names in a manifest can begin with the slash, or with the rest of a folder's name.
        let mut bases = vec![expected.base, prefix.to_owned()];
        bases.extend(folders_around(prefix).map(str::to_owned));
        Self::chosen(bases, inputs, output, outputs)
    }

    /// The first of the bases that explain most outputs. `inputs` are full keys in byte order.
    pub fn chosen<'k>(
        bases: impl IntoIterator<Item = String>,
        inputs: &[&str],
        output: &S3Address,
        outputs: impl IntoIterator<Item = &'k str>,
    ) -> Self {
        let folder = output.as_folder().prefix;
        let mut candidates: Vec<Self> = Vec::new();
        for base in bases {
            let folder = folder.clone();
            let candidate = Self { base, folder };
            if !candidates.contains(&candidate) {
                candidates.push(candidate);
            }
        }
        let mut explained = vec![0_u64; candidates.len()];
        for key in outputs {
            for (candidate, count) in candidates.iter().zip(&mut explained) {
                let input = candidate.input_of(key);
                let is_input = |key: String| inputs.binary_search(&key.as_str()).is_ok();
                *count += u64::from(input.is_some_and(is_input));
            }
        }
        let best = explained.iter().copied().max().unwrap_or_default();
        let mut ranked = candidates.into_iter().zip(explained);
        let first = ranked.find(|(_, count)| *count == best);
        first.map_or_else(|| Self { base: String::new(), folder }, |(candidate, _)| candidate)
    }

    /// The output key for an input key; `None` for a key that is not below the input.
    pub fn output_of(&self, input: &str) -> Option<String> {
        let relative = input.strip_prefix(&self.base)?;
        Some(format!("{}{relative}{OUT}", self.folder))
    }

    /// The input key for an output key; `None` if it is not an output of this job.
    pub fn input_of(&self, output: &str) -> Option<String> {
        let relative = output.strip_prefix(&self.folder)?.strip_suffix(OUT)?;
        (!relative.is_empty()).then(|| format!("{}{relative}", self.base))
    }
}

/// `a/b/`, `a/` and the root for `a/b/c`: itself if it is a folder, and all parent folders.
pub fn folders_around(prefix: &str) -> impl Iterator<Item = &str> {
    let slashes = prefix.match_indices('/').rev();
    let folders = slashes.map(|(slash, _)| &prefix[..=slash]);
    folders.chain(std::iter::once(""))
}

fn after_last_slash(prefix: &str) -> usize {
    prefix.rfind('/').map_or(0, |slash| slash + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output() -> S3Address {
        S3Address::new("bucket", "out/job")
    }

    fn check(prefix: &str, inputs: &[&str], outputs: &[&str], expected: &[(&str, &str)]) {
        let keys = OutputKeys::confirmed(prefix, inputs, &output(), outputs.iter().copied());
        for (input, output) in expected {
            assert_eq!(keys.output_of(input).as_deref(), Some(*output), "{prefix}");
            assert_eq!(keys.input_of(output).as_deref(), Some(*input), "{prefix}");
        }
    }

    #[test]
    fn keys_are_relative_to_a_folder_prefix() {
        for prefix in ["photos/", "photos"] {
            check(
                prefix,
                &["photos/a.jpg", "photos/b/c.jpg"],
                &[],
                &[("photos/a.jpg", "out/job/a.jpg.out"), ("photos/b/c.jpg", "out/job/b/c.jpg.out")],
            );
        }
        check("", &["a.jpg"], &[], &[("a.jpg", "out/job/a.jpg.out")]);
    }

    #[test]
    fn sibling_folder_keys_start_after_the_last_slash() {
        check(
            "all/photos",
            &["all/photos-old/b.jpg", "all/photos/a.jpg"],
            &[],
            &[
                ("all/photos/a.jpg", "out/job/photos/a.jpg.out"),
                ("all/photos-old/b.jpg", "out/job/photos-old/b.jpg.out"),
            ],
        );
        check("cat", &["cat.jpg"], &[], &[("cat.jpg", "out/job/cat.jpg.out")]);
    }

    #[test]
    fn listing_overrides_the_naming_rule() {
        let inputs = ["all/photos/a.jpg", "all/photos/b.jpg"];
        check(
            "all/photos/",
            &inputs,
            &["out/job/photos/a.jpg.out", "out/job/stray.out"],
            &[("all/photos/b.jpg", "out/job/photos/b.jpg.out")],
        );
        check(
            "all/photos/",
            &inputs,
            &["out/job/all/photos/a.jpg.out"],
            &[("all/photos/b.jpg", "out/job/all/photos/b.jpg.out")],
        );
        check("all/photos", &inputs, &["out/job/a.jpg.out"], &[("all/photos/b.jpg", "out/job/b.jpg.out")]);
    }

    #[test]
    fn manifest_names_follow_its_prefix() {
        check(
            "photos",
            &["photos-old/b.jpg", "photos/a.jpg"],
            &["out/job//a.jpg.out", "out/job/-old/b.jpg.out"],
            &[("photos/a.jpg", "out/job//a.jpg.out"), ("photos-old/b.jpg", "out/job/-old/b.jpg.out")],
        );
    }

    #[test]
    fn non_outputs_have_no_input() {
        let keys = OutputKeys::expected("photos/", ["photos/a.jpg"], &output());
        for stray in ["out/job/a.jpg", "out/job2/a.jpg.out", "out/job/.out", "photos/a.jpg.out"] {
            assert_eq!(keys.input_of(stray), None, "{stray}");
        }
        assert_eq!(keys.output_of("other/a.jpg"), None);
        let whole = OutputKeys::expected("", ["a.jpg"], &S3Address::new("bucket", ""));
        assert_eq!(whole.output_of("a.jpg").as_deref(), Some("a.jpg.out"));
    }
}
