//! The output file of a command: compared with existing files and the command's inputs before anything is computed.

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::bail;
use serde::Deserialize;

use crate::domain::Sample;
use crate::project::partial_file;

/// A longer first line is not from Spotcheck.
const LONGEST_LINE: u64 = 64 << 20;

/// Whether the path is `-`: standard output.
pub(crate) fn is_stdout(out: &Path) -> bool {
    out.as_os_str() == "-"
}

/// An input of a command, with its name for messages: “the model”.
pub(crate) type Input<'i> = (&'static str, Option<&'i Path>);

/// Which existing files may be replaced without --force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replaceable {
    /// Only an empty file.
    Empty,
    /// A JSON Lines file of `predict` or `transform fetch`.
    JsonLines,
}

/// # Errors
/// The existing `out` would be lost, it is an input of the command (`inputs`, existing or not), or its folder does not
/// exist.
pub(crate) fn check_out(out: &Path, replaceable: Replaceable, inputs: &[Input<'_>]) -> anyhow::Result<()> {
    let found = out.metadata().ok();
    if is_stdout(out) || found.as_ref().is_some_and(is_device) {
        return Ok(());
    }
    check_is_no_input(out, inputs)?;
    let Some(found) = found else {
        return check_folder(out);
    };
    if found.is_dir() {
        bail!("the output is a folder; choose a file name: {}", out.display());
    }
    if found.len() == 0 || replaceable == Replaceable::JsonLines && holds_json_lines(out) {
        return Ok(());
    }
    match replaceable {
        Replaceable::JsonLines => bail!(
            "the file exists and is not JSON Lines from Spotcheck, so it was not replaced; choose another name: {}",
            out.display()
        ),
        Replaceable::Empty => {
            bail!("the file exists and was not replaced; choose another name, or delete it first: {}", out.display())
        }
    }
}

/// # Errors
/// It is an input of the command.
pub(crate) fn check_is_no_input(out: &Path, inputs: &[Input<'_>]) -> anyhow::Result<()> {
    let place = place_of(out);
    for (what, path) in inputs {
        if path.is_some_and(|path| place_of(path) == place) {
            bail!("the output would overwrite {what}; choose another name: {}", out.display());
        }
    }
    Ok(())
}

/// Whether two paths, existing or not, are of the same file.
pub(crate) fn is_same_file(one: &Path, other: &Path) -> bool {
    place_of(one) == place_of(other)
}

/// Whether the output, existing or not, is in a folder or below it.
pub(crate) fn is_below(out: &Path, folder: &Path) -> bool {
    !is_stdout(out) && place_of(out).starts_with(place_of(folder))
}

/// # Errors
/// It exists, and the user did not allow its replacement with --force.
pub(crate) fn check_is_new(out: &Path, force: bool) -> anyhow::Result<()> {
    if !force && out.symlink_metadata().is_ok() {
        bail!("the output exists and was not replaced; choose another name, or add --force: {}", out.display());
    }
    Ok(())
}

/// # Errors
/// One of the images is the file itself.
pub(crate) fn check_is_no_image(out: &Path, samples: &[Sample]) -> anyhow::Result<()> {
    let Some(found) = out.metadata().ok().filter(|found| !is_device(found)) else {
        return Ok(());
    };
    let place = place_of(out);
    // Files of different sizes are not the same; only equal ones need a read.
    let mut alike = samples.iter().filter(|sample| sample.size_bytes == found.len());
    if alike.any(|sample| place_of(Path::new(sample.uri.as_str())) == place) {
        bail!("the output would overwrite one of the images; choose another name: {}", out.display());
    }
    Ok(())
}

/// An unfinished file next to `out`.
///
/// # Errors
/// It cannot be created there; the reason names the folder.
pub(crate) fn partial_next_to(out: &Path) -> anyhow::Result<tempfile::NamedTempFile> {
    check_folder(out)?;
    let folder = folder_of(out);
    partial_file(&folder, ".spotcheck-".as_ref()).map_err(|reason| {
        anyhow::anyhow!(
            "cannot write into the folder ({reason}); choose another one, or change its permissions: {}",
            folder.display()
        )
    })
}

fn check_folder(out: &Path) -> anyhow::Result<()> {
    let folder = folder_of(out);
    if !folder.is_dir() {
        bail!("the output folder does not exist; create it, or choose another one: {}", folder.display());
    }
    Ok(())
}

fn folder_of(out: &Path) -> PathBuf {
    match out.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// The unique name of a file, whether or not it exists yet.
fn place_of(path: &Path) -> PathBuf {
    let not_there = || {
        let folder = folder_of(path).canonicalize().ok()?;
        Some(folder.join(path.file_name()?))
    };
    let there = path.canonicalize().ok();
    there.or_else(not_there).unwrap_or_else(|| path.to_owned())
}

fn is_device(found: &std::fs::Metadata) -> bool {
    !found.is_file() && !found.is_dir()
}

/// Whether the file contains JSON Lines from `predict --out`.
fn holds_json_lines(path: &Path) -> bool {
    #[derive(Deserialize)]
    struct Line {
        #[serde(rename = "uri")]
        _uri: String,
        #[serde(rename = "status")]
        _status: String,
    }
    let read = || -> io::Result<bool> {
        let mut file = BufReader::new(std::fs::File::open(path)?.take(LONGEST_LINE));
        // A binary file may have no line break, so the first line is read up to a limit.
        if !file.fill_buf()?.starts_with(b"{") {
            return Ok(false);
        }
        let mut line = Vec::new();
        file.read_until(b'\n', &mut line)?;
        Ok(serde_json::from_slice::<Line>(&line).is_ok())
    };
    read().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_empty_and_own_files_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let line = "{\"uri\":\"/a.jpg\",\"status\":\"failed\",\"error\":\"empty\"}\n";
        for (content, may_be_replaced) in [
            ("", true),
            (line, true),
            ("{\"uri\":\"/a.jpg\"}\n", false),
            ("{\"uri\":1,\"status\":\"ok\"}\n", false),
            ("[]\n", false),
            ("years of work", false),
            ("\u{89}PNG", false),
        ] {
            let out = folder.path().join("o.jsonl");
            fs::write(&out, content).unwrap();
            let checked = check_out(&out, Replaceable::JsonLines, &[]);
            assert_eq!(checked.is_ok(), may_be_replaced, "{content:?}");
            let checked = check_out(&out, Replaceable::Empty, &[]);
            assert_eq!(checked.is_ok(), content.is_empty(), "{content:?}");
        }
    }

    #[test]
    fn inputs_are_never_written_under_any_spelling() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("inside");
        fs::create_dir(&inside).unwrap();
        fs::write(folder.path().join("empty.txt"), "").unwrap();
        for name in ["empty.txt", "nothing yet"] {
            let labels = folder.path().join(name);
            let out = inside.join("..").join(name);
            let inputs = [("the model", None), ("the labels", Some(&*labels))];
            let refused = check_out(&out, Replaceable::JsonLines, &inputs).unwrap_err();
            assert!(refused.to_string().contains("the labels"), "{refused}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn devices_are_written_into() {
        let null = Path::new("/dev/null");
        check_out(null, Replaceable::JsonLines, &[("the images", Some(null))]).unwrap();
        check_out(Path::new("-"), Replaceable::Empty, &[]).unwrap();
    }

    #[test]
    fn missing_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing");
        for refused in [
            check_out(&missing.join("o.jsonl"), Replaceable::JsonLines, &[]).unwrap_err(),
            partial_next_to(&missing.join("o.jsonl")).unwrap_err(),
        ] {
            let said = refused.to_string();
            assert!(said.contains("does not exist"), "{said}");
            assert!(said.ends_with("missing"), "{said}");
        }
    }
}
