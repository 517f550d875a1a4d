use std::sync::mpsc;

use super::super::MemorySource;
use super::index::framed;
use super::*;

/// A length-delimited protobuf field: a message, a text, bytes.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    let mut len = content.len();
    while len >= 0x80 {
        bytes.push(len as u8 | 0x80);
        len >>= 7;
    }
    bytes.push(len as u8);
    bytes.extend(content);
    bytes
}

fn bytes_feature(values: &[&[u8]]) -> Vec<u8> {
    let values: Vec<u8> = values.iter().flat_map(|value| field(1, value)).collect();
    field(1, &values)
}

fn example(features: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let entries = features.iter().flat_map(|(key, feature)| {
        let entry = [field(1, key.as_bytes()), field(2, feature)].concat();
        field(1, &entry)
    });
    field(1, &entries.collect::<Vec<u8>>())
}

fn image(name: &str, pixels: &[u8]) -> Vec<u8> {
    example(&[("image/encoded", bytes_feature(&[pixels])), ("image/filename", bytes_feature(&[name.as_bytes()]))])
}

/// A whole record with an image of this name.
pub(crate) fn record_of(name: &str, pixels: &[u8]) -> Vec<u8> {
    framed(&image(name, pixels))
}

const FILE: &str = "/photos/a.tfrecord";

/// A source with one file of the given bytes.
fn source_of(bytes: Vec<u8>) -> WithRecords {
    WithRecords::over(Arc::new(MemorySource::new([(FILE.to_owned(), bytes)])))
}

fn listing(source: &dyn Source) -> (Vec<Sample>, Vec<String>) {
    let (mut samples, mut problems) = (Vec::new(), Vec::new());
    for page in source.pages() {
        samples.extend(page.samples);
        problems.extend(page.problems.iter().map(ToString::to_string));
    }
    (samples, problems)
}

fn names(samples: &[Sample]) -> Vec<&str> {
    samples.iter().map(|sample| sample.name.as_str()).collect()
}

/// Checks the images that can be listed and read, and the messages about the others.
fn check(bytes: Vec<u8>, expected: &[&str], said: &[&str]) {
    let source = source_of(bytes);
    let (samples, mut problems) = listing(&source);
    let mut read = Vec::new();
    for sample in &samples {
        match source.read(&sample.uri) {
            Ok(_) => read.push(sample.name.as_str()),
            Err(error) => problems.push(format!("{}: {error}", sample.uri)),
        }
    }
    assert_eq!(read, expected, "{problems:?}");
    assert_eq!(problems.len(), said.len(), "{problems:#?}");
    for (problem, said) in problems.iter().zip(said) {
        assert!(problem.contains(said), "{said}: {problem}");
    }
}

fn three_images() -> [Vec<u8>; 3] {
    ["a.jpg", "b.jpg", "c.jpg"].map(|name| record_of(name, name.as_bytes()))
}

#[test]
fn records_are_listed_by_name_and_read_by_number() {
    let nameless = example(&[("image/encoded", bytes_feature(&[b"four"]))]);
    let records = [three_images().concat(), framed(&nameless)].concat();
    let source = source_of(records);
    let (samples, problems) = listing(&source);
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(names(&samples), ["a.tfrecord/a.jpg", "a.tfrecord/b.jpg", "a.tfrecord/c.jpg", "a.tfrecord/3"]);
    assert_eq!(samples[1].uri.as_str(), "/photos/a.tfrecord/#1");
    assert_eq!(samples[3].size_bytes, 4);
    assert_eq!(source.read(&samples[1].uri).unwrap(), b"b.jpg");
    assert_eq!(source.read_range(&samples[3].uri, 1..3).unwrap(), b"ou");
    // Before anything was listed, and out of order.
    let fresh = source_of(three_images().concat());
    for (number, expected) in [(2, "c.jpg"), (0, "a.jpg")] {
        let uri = SampleUri::from_record(FILE, number);
        assert_eq!(fresh.read(&uri).unwrap(), expected.as_bytes());
    }
    let beyond = fresh.read(&SampleUri::from_record(FILE, 3)).unwrap_err();
    assert!(beyond.to_string().contains("record 3"), "{beyond}");
    let other = fresh.read(&SampleUri::from_record("/photos/b.tfrecord", 3));
    assert!(matches!(other, Err(SourceError::NotFound)));
}

#[test]
fn damaged_record_is_reported_and_skipped() {
    let [a, mut b, c] = three_images();
    b[20] ^= 1;
    check([a, b, c].concat(), &["a.tfrecord/a.jpg", "a.tfrecord/c.jpg"], &["/photos/a.tfrecord/#1: "]);
    // In the pixels, which the listing does not read.
    let [a, mut b, c] = three_images();
    let pixel = b.windows(5).position(|window| window == b"b.jpg").unwrap();
    b[pixel] ^= 1;
    check([a, b, c].concat(), &["a.tfrecord/a.jpg", "a.tfrecord/c.jpg"], &["/photos/a.tfrecord/#1: record 1"]);
}

#[test]
fn damaged_length_ends_the_file_with_a_count() {
    for byte in [0, 7, 8, 11] {
        let [a, b, mut c] = three_images();
        c[byte] ^= 0x80;
        check([a, b, c].concat(), &["a.tfrecord/a.jpg", "a.tfrecord/b.jpg"], &["length of record 2"]);
    }
}

#[test]
fn truncated_file_reports_its_position() {
    let whole = three_images().concat();
    let third = whole.len() - three_images()[2].len();
    for len in third + 1..whole.len() {
        check(whole[..len].to_vec(), &["a.tfrecord/a.jpg", "a.tfrecord/b.jpg"], &["of record 2"]);
    }
    check(whole[..third].to_vec(), &["a.tfrecord/a.jpg", "a.tfrecord/b.jpg"], &[]);
}

#[test]
fn impossible_length_is_rejected() {
    for len in [1 << 63, u64::MAX, u64::MAX - 15, 1 << 40] {
        let mut record = framed(b"");
        let header = len_with_checksum(len);
        record[..12].copy_from_slice(&header);
        let [a, ..] = three_images();
        let bytes = [a, record].concat();
        let source = source_of(bytes);
        let (samples, problems) = listing(&source);
        assert_eq!(samples.len(), 1);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains("record 1"), "{problems:?}");
        let read = source.read(&SampleUri::from_record(FILE, 1));
        assert!(read.is_err(), "{len}");
    }
}

/// A length with a valid checksum.
fn len_with_checksum(len: u64) -> Vec<u8> {
    let len = len.to_le_bytes();
    // The checksum of data is computed like that of a length.
    let record = framed(&len);
    [&len[..], &record[record.len() - 4..]].concat()
}

#[test]
fn records_without_an_image_report_their_features() {
    let text = example(&[("label", field(3, b"")), ("text", bytes_feature(&[b"hello"]))]);
    let no_bytes = example(&[("image/encoded", bytes_feature(&[]))]);
    let records =
        [framed(&text), framed(&no_bytes), framed(b"\xff\xff\xff\xff"), framed(b""), record_of("a.jpg", b"a")];
    check(
        records.concat(),
        &["a.tfrecord/a.jpg"],
        &["are label, text", "are image/encoded", "/photos/a.tfrecord/#2: ", "/photos/a.tfrecord/#3: "],
    );
}

#[test]
fn file_without_images_is_not_listed() {
    let text = framed(&example(&[("text", bytes_feature(&[b"hello"]))]));
    let (samples, problems) = listing(&source_of(text.repeat(5000)));
    assert!(samples.is_empty());
    assert_eq!(problems.len(), 21);
    assert!(problems[20].contains("4980 records"), "{}", problems[20]);
}

#[test]
fn other_files_are_identified() {
    for (bytes, said) in [
        (b"".as_slice(), "no records"),
        (b"\x1f\x8b\x08\0\0\0\0\0\0\x03abcdef", "is compressed (gzip)"),
        (b"\x1f\x8b\x08", "is compressed (gzip)"),
        (b"\x78\x9cabcdefghijklmnop", "is compressed (zlib)"),
        (b"this is a text, and a long one", "a TFRecord file"),
        (b"x", "of record 0"),
    ] {
        check(bytes.to_vec(), &[], &[said]);
    }
}

#[test]
fn record_name_cannot_leave_its_file() {
    let records = ["../../etc/passwd", "/abs/b.jpg", "..", "a\nb"].map(|name| record_of(name, b"x"));
    let (samples, _) = listing(&source_of(records.concat()));
    assert_eq!(
        names(&samples),
        ["a.tfrecord/etc/passwd", "a.tfrecord/abs/b.jpg", "a.tfrecord/2", "a.tfrecord/a\u{fffd}b"]
    );
}

#[test]
fn labels_and_boxes_are_read_with_the_record() {
    let floats = |values: &[f32]| {
        let packed: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        field(2, &field(1, &packed))
    };
    let record = example(&[
        ("image/object/bbox/xmin", floats(&[0.25, 0.5])),
        ("image/object/bbox/ymin", floats(&[0.0, 0.5])),
        ("image/object/bbox/xmax", floats(&[0.75, 1.0])),
        ("image/object/bbox/ymax", floats(&[1.0])),
        ("image/object/class/text", bytes_feature(&[b"cat", b"dog"])),
        // Packed: 17, 300; and one by one: 282.
        ("image/object/class/label", field(3, &field(1, b"\x11\xac\x02"))),
        ("image/class/label", field(3, b"\x08\x9a\x02")),
        ("image/encoded", bytes_feature(&[b"pixels"])),
    ]);
    let source = source_of(framed(&record));
    let (bytes, truth) = source.read_with_truth(&SampleUri::from_record(FILE, 0)).unwrap();
    assert_eq!(bytes, b"pixels");
    assert_eq!(truth.labels[0].number, Some(282));
    assert_eq!(truth.boxes.len(), 1);
    assert_eq!(truth.boxes[0].in_pixels([100, 200]), [25.0, 0.0, 75.0, 200.0].into());
    assert_eq!(truth.boxes[0].label.to_string(), "cat (17)");
    assert!(truth.notes[0].contains("[2, 2, 2, 1]"), "{:?}", truth.notes);
}

#[test]
fn million_boxes_are_cut_and_reported() {
    let packed = vec![0; 4_000_000];
    let sides = BOX_SIDES.map(|side| (side, field(2, &field(1, &packed))));
    let image = ("image/encoded", bytes_feature(&[b"pixels"]));
    let record = example(&[sides.as_slice(), &[image]].concat());
    let source = source_of(framed(&record));
    let (_, truth) = source.read_with_truth(&SampleUri::from_record(FILE, 0)).unwrap();
    assert_eq!(truth.boxes.len(), 10_000);
    assert!(truth.notes[0].contains("more than 10000"), "{:?}", truth.notes);
}

const BOX_SIDES: [&str; 4] =
    ["image/object/bbox/xmin", "image/object/bbox/ymin", "image/object/bbox/xmax", "image/object/bbox/ymax"];

/// Random damage everywhere: nothing may panic, and no wrong image may be returned.
#[test]
fn damaged_files_never_panic_or_give_wrong_images() {
    let whole = three_images().concat();
    let mut read = 0;
    for place in 0..whole.len() {
        for bit in 0..8 {
            let mut bytes = whole.clone();
            bytes[place] ^= 1 << bit;
            let source = source_of(bytes);
            for sample in listing(&source).0 {
                if let Ok(image) = source.read(&sample.uri) {
                    let name = sample.name.trim_start_matches("a.tfrecord/");
                    assert_eq!(image, name.as_bytes(), "byte {place}, bit {bit}");
                    read += 1;
                }
            }
        }
    }
    assert!(read > whole.len(), "{read}");
}

/// As above, but with valid checksums, as a program may write them.
#[test]
fn damaged_examples_never_panic() {
    let floats = field(2, &field(1, &[0; 12]));
    let example = example(&[
        ("image/encoded", bytes_feature(&[b"pixels", b"more"])),
        ("image/filename", bytes_feature(&["고양이.jpg".as_bytes()])),
        ("image/class/label", field(3, &field(1, b"\x11\xac\x02"))),
        ("image/class/text", bytes_feature(&[b"cat"])),
        (BOX_SIDES[0], floats.clone()),
        (BOX_SIDES[1], floats.clone()),
        (BOX_SIDES[2], floats.clone()),
        (BOX_SIDES[3], floats),
    ]);
    for place in 0..example.len() {
        for value in [0, 1, 2, 5, 8, 0x0a, 0x0b, 0x7f, 0x80, 0xff] {
            let mut damaged = example.clone();
            damaged[place] = value;
            let source = source_of([framed(&damaged), framed(&damaged[..place])].concat());
            for sample in listing(&source).0 {
                drop(source.read_with_truth(&sample.uri));
            }
        }
    }
}

#[test]
fn first_page_of_a_large_file_needs_few_reads() {
    let folder = tempfile::tempdir().unwrap();
    let record = record_of("a.jpg", &vec![7; 20_000]);
    std::fs::write(folder.path().join("a.tfrecord"), record.repeat(3000)).unwrap();
    let source = WithRecords::open(folder.path()).unwrap();
    let lens: Vec<usize> = source.pages().map(|page| page.samples.len()).collect();
    assert_eq!(lens[..3], [32, 64, 128]);
    assert_eq!(lens.iter().sum::<usize>(), 3000);
}

/// Counts the bytes read from a file.
struct Counting {
    files: MemorySource,
    reads: Arc<Mutex<Vec<u64>>>,
}

impl Source for Counting {
    fn name(&self) -> String {
        self.files.name()
    }

    fn pages(&self) -> Box<dyn Iterator<Item = Page> + Send> {
        self.files.pages()
    }

    fn read(&self, uri: &SampleUri) -> Result<Vec<u8>, SourceError> {
        self.files.read(uri)
    }

    fn read_range(&self, uri: &SampleUri, range: std::ops::Range<u64>) -> Result<Vec<u8>, SourceError> {
        let bytes = self.files.read_range(uri, range)?;
        self.reads.lock().push(bytes.len() as u64);
        Ok(bytes)
    }
}

#[test]
fn large_object_is_listed_with_few_requests() {
    for (count, image_len, most_reads, most_bytes) in [(1000, 20_000, 12, 21_000_000), (10, 5_000_000, 11, 11 * 65_536)]
    {
        let record = record_of("a.jpg", &vec![7; image_len]);
        let file = ("s3://b/a.tfrecord".to_owned(), record.repeat(count));
        let reads = Arc::<Mutex<Vec<u64>>>::default();
        let source =
            WithRecords::over(Arc::new(Counting { files: MemorySource::new([file]), reads: Arc::clone(&reads) }));
        let (samples, problems) = listing(&source);
        assert_eq!((samples.len(), problems.len()), (count, 0));
        let listed = std::mem::take(&mut *reads.lock());
        assert!(listed.len() <= most_reads, "{listed:?}");
        assert!(listed.iter().sum::<u64>() <= most_bytes, "{listed:?}");
        assert_eq!(source.read(&samples[7].uri).unwrap().len(), image_len);
        let read = reads.lock();
        assert_eq!(*read, [record.len() as u64], "one request for one image");
    }
}

#[test]
fn records_are_listed_among_images() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    };
    write("1.jpg", b"1");
    write("2/b.record", &three_images().concat());
    write("3-00000-of-00001", &three_images()[0]);
    write("4-00000-of-00001", b"a shard of something else");
    write("5.jpg", b"5");
    let (samples, problems) = listing(&WithRecords::open(folder.path()).unwrap());
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(
        names(&samples),
        ["1.jpg", "2/b.record/a.jpg", "2/b.record/b.jpg", "2/b.record/c.jpg", "3-00000-of-00001/a.jpg", "5.jpg"]
    );
}

#[test]
fn any_file_name_and_single_records_open() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("train.bin");
    std::fs::write(&file, three_images().concat()).unwrap();
    let opened = WithRecords::open(&file).unwrap();
    assert_eq!(listing(&opened).0.len(), 3);
    let record = file.join("#1");
    let opened = WithRecords::open(&record).unwrap();
    assert_eq!(opened.name(), record.to_str().unwrap());
    let (samples, problems) = listing(&opened);
    assert_eq!(names(&samples), ["train.bin/b.jpg"]);
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(opened.read(&samples[0].uri).unwrap(), b"b.jpg");
    assert_eq!(super::super::folder_of(&record), folder.path());
    let (samples, problems) = listing(&WithRecords::from_paths([file.join("#2"), file.join("#7")]));
    assert_eq!(names(&samples), ["train.bin/c.jpg"]);
    assert!(problems[0].contains("#7: "), "{problems:?}");
    assert!(matches!(WithRecords::open(&folder.path().join("none.tfrecord/#1")), Err(SourceError::NoSuchPlace)));
}

#[test]
fn rewritten_file_is_reread() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.tfrecord");
    std::fs::write(&file, three_images().concat()).unwrap();
    let source = WithRecords::open(&file).unwrap();
    let (samples, _) = listing(&source);
    let [a, b, _] = three_images();
    let long = record_of("long.jpg", &[1; 1000]);
    std::fs::write(&file, [long, a, b].concat()).unwrap();
    assert_eq!(source.read(&samples[2].uri).unwrap(), b"b.jpg");
    std::fs::write(&file, b"something else").unwrap();
    assert!(source.read(&samples[2].uri).is_err());
}

#[test]
fn file_change_reports_its_records() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.tfrecord");
    std::fs::write(&file, three_images().concat()).unwrap();
    let source = WithRecords::open(folder.path()).unwrap();
    let (sender, changes) = mpsc::channel();
    source.watch(Box::new(move |change| drop(sender.send(change))));
    assert_eq!(listing(&source).0.len(), 3);
    let [a, b, _] = three_images();
    let other = tempfile::tempdir().unwrap();
    std::fs::write(other.path().join("new"), b).unwrap();
    std::fs::rename(other.path().join("new"), &file).unwrap();
    let mut growing = std::fs::File::options().append(true).open(&file).unwrap();
    std::io::Write::write_all(&mut growing, &a).unwrap();
    let told = changes.recv().unwrap();
    let ListingChange::FileRelisted { file: told, page } = told else {
        panic!("{told:?}");
    };
    assert_eq!(told.as_str(), file.to_str().unwrap());
    assert_eq!(names(&page.samples), ["a.tfrecord/b.jpg", "a.tfrecord/a.jpg"]);
    std::fs::remove_file(&file).unwrap();
    let told = changes.recv().unwrap();
    assert!(matches!(told, ListingChange::Gone(_)), "{told:?}");
}
