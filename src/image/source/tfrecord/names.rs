//! Recognizes files with records by name.

/// The extensions of TFRecord files, ignoring case, without the dot.
pub const RECORD_EXTENSIONS: [&str; 4] = ["tfrecord", "tfrecords", "tfrec", "record"];

/// `train.tfrecord`, `train.tfrecords`, `train.tfrec`, `train.record`, each possibly as a shard
/// (`train.tfrecord-00000-of-00010`) or compressed (`train.tfrecord.gz`); case is ignored.
pub(crate) fn is_tfrecord_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let name = without_shard(name).unwrap_or(name);
    name.rsplit_once('.').is_some_and(|(_, extension)| RECORD_EXTENSIONS.contains(&extension))
}

/// `train-00000-of-00010`: may contain records, like ImageNet's files; only the content decides.
pub(crate) fn is_shard_name(name: &str) -> bool {
    without_shard(name).is_some_and(|name| !name.is_empty())
}

/// A record's name for its image, as a path below the file; `None` if nothing is left of it. The name can be anything:
/// a path on another computer, or one made to escape from a folder.
pub(super) fn clean_name(name: &str) -> Option<String> {
    let is_named = |part: &&str| !["", ".", ".."].contains(part) && !part.ends_with(':');
    let parts: Vec<&str> = name.split(['/', '\\']).map(str::trim).filter(is_named).collect();
    let visible = |letter: char| {
        if letter.is_control() { '\u{fffd}' } else { letter }
    };
    let name: String = parts.join("/").chars().map(visible).collect();
    (!name.is_empty()).then_some(name)
}

/// The name before `-00000-of-00010`.
fn without_shard(name: &str) -> Option<&str> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let (rest, count) = name.rsplit_once("-of-")?;
    let (name, number) = rest.rsplit_once('-')?;
    (is_number(count) && is_number(number)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tfrecord_files_are_known_by_name() {
        for (name, expected) in [
            ("train.tfrecord", true),
            ("TRAIN.TFRECORDS", true),
            ("a/b/train.tfrec", true),
            ("pet_train.record", true),
            ("train.tfrecord-00000-of-00010", true),
            ("mnist-train-00000-of-00010.tfrecord", true),
            ("train.tfrecord.gz", true),
            ("train.record-3-of-9.gz", true),
            ("train-00000-of-00010", false),
            ("cat.jpg", false),
            ("tfrecord", false),
            ("my.records", false),
            ("notes.tfrecord.txt", false),
        ] {
            assert_eq!(is_tfrecord_name(name), expected, "{name}");
        }
    }

    #[test]
    fn record_name_stays_below_its_file() {
        for (name, expected) in [
            ("cat.jpg", Some("cat.jpg")),
            ("train/n01/cat 1.JPEG", Some("train/n01/cat 1.JPEG")),
            ("/home/me/cat.jpg", Some("home/me/cat.jpg")),
            ("C:\\pictures\\cat.jpg", Some("pictures/cat.jpg")),
            ("../../etc/./passwd", Some("etc/passwd")),
            ("a\nb\0.jpg", Some("a\u{fffd}b\u{fffd}.jpg")),
            ("고양이.jpg", Some("고양이.jpg")),
            ("", None),
            ("../ /", None),
        ] {
            assert_eq!(clean_name(name).as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn shard_without_an_extension_may_hold_records() {
        for (name, expected) in [
            ("train-00000-of-00010", true),
            ("train-00000-of-", false),
            ("-1-of-2", false),
            ("state-of-the-art", false),
        ] {
            assert_eq!(is_shard_name(name), expected, "{name}");
        }
    }
}
