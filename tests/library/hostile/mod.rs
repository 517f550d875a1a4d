//! Almost valid bytes from outside: for any input, a parser returns a value that keeps its promises, or rejects it.
//! `fuzz/` searches further with the same parsers, promises and files.

mod mutations;
pub(crate) mod parsers;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use mutations::{Mutations, read_files};

/// Calls `parse`, and reports the bytes if it panics.
#[track_caller]
fn accepts(name: &str, parse: fn(&[u8]) -> bool, bytes: &[u8]) -> bool {
    let accepted = catch_unwind(AssertUnwindSafe(|| parse(bytes)));
    accepted.unwrap_or_else(|_| panic!("{name}: {}", bytes.escape_ascii()))
}

/// Every input found by fuzzing is accepted or rejected.
#[track_caller]
fn check_fuzz_corpus(name: &str, parse: fn(&[u8]) -> bool) {
    for file in read_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(name)) {
        accepts(name, parse, &file);
    }
}

/// Every file of `tests/cases/<name>/` is accepted; `inputs` mutations of them and the fuzz corpus are accepted or
/// rejected.
#[track_caller]
fn check(name: &str, parse: fn(&[u8]) -> bool, inputs: usize, tokens: &'static [&'static [u8]]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(name);
    let mut mutations = Mutations::new(&folder, tokens);
    for file in mutations.corpus() {
        assert!(accepts(name, parse, file), "{name}: {}", file.escape_ascii());
    }
    check_fuzz_corpus(name, parse);
    let taken = (0..inputs).filter(|_| accepts(name, parse, &mutations.next())).count();
    // Otherwise the mutations are too destructive, or there are none.
    let share = taken as f64 / inputs as f64;
    assert!((0.01..0.99).contains(&share), "{name}: {share}");
}

const TOML: &[&[u8]] =
    &[b"nan", b"inf", b"-1", b"0", b"1e400", b"\"\"", b"\"\"\"", b"[[", b"]]", b"= ", b"\n", b"#", b"'", b"{", b"true"];
const JSON: &[&[u8]] = &[
    b"NaN",
    b"Infinity",
    b"-1",
    b"1e999",
    b"null",
    b"[",
    b"]",
    b"{",
    b"}",
    b"\"",
    b"\\u0000",
    b"\\ud800",
    b",",
    b"0.5",
];

#[test]
fn jpegs() {
    check_fuzz_corpus("jpeg", parsers::jpeg);
}

#[test]
fn queries() {
    check(
        "query",
        parsers::query,
        20_000,
        &[
            b"class:",
            b"score>",
            b"tag:",
            b"boxes",
            b"!",
            b"(",
            b")",
            b"\"",
            b"\\",
            b" or ",
            b"0.5",
            b"..",
            b"%",
            b"\xe7\x8c\xab",
        ],
    );
}

#[test]
fn label_maps() {
    check(
        "label_map",
        parsers::label_map,
        20_000,
        &[
            b"item",
            b"{",
            b"}",
            b"id:",
            b"name:",
            b"display_name",
            b"'",
            b"\"",
            b"\\",
            b"\t",
            b"-1",
            b"99999999999",
            b"#",
            b"\n",
        ],
    );
}

#[test]
fn notes_of_exporters() {
    check(
        "notes",
        parsers::notes,
        5000,
        &[b"names", b": ", b"- ", b"&a ", b"*a", b"[", b"]", b"{", b"}", b"'", b"\"", b"\n", b"null", b"-1", b"1e999"],
    );
}

#[test]
fn names_in_graphs() {
    check(
        "graph_names",
        parsers::graph_names,
        5000,
        &[b"vgg16/", b"\x0a", b"\x1a", b"\x3a", b"\xff\xff\xff\xff\x0f", b"\x80"],
    );
}

#[test]
fn cards() {
    check("card", parsers::card, 5000, TOML);
}

#[test]
fn prices() {
    check("prices", parsers::prices, 3000, TOML);
}

#[test]
fn outputs_of_detectors() {
    check(
        "detections",
        parsers::detections,
        10_000,
        &[
            b"\"nan\"",
            b"\"inf\"",
            b"-1",
            b"0",
            b"4294967295",
            b"1e38",
            b"[",
            b"]",
            b"column",
            b"candidates_last\":true,\"",
            b"classes\":7,\"",
            b"max_boxes\":0,\"",
            b"calls\":2,\"",
            b"int64",
            b"xyxy",
            b"cxcywh",
            b"normalized",
        ],
    );
}

#[test]
fn outputs_in_json() {
    check("outputs_json", parsers::outputs_json, 20_000, JSON);
}

#[test]
fn outputs_in_csv() {
    check("outputs_csv", parsers::outputs_csv, 400, JSON);
}

#[test]
fn outputs_in_lines() {
    check("outputs_lines", parsers::outputs_lines, 400, JSON);
}

#[test]
fn tfrecords() {
    check("tfrecord", parsers::tfrecord, 10_000, &[]);
}

#[test]
fn tf_examples() {
    check(
        "tf_example",
        parsers::tf_example,
        10_000,
        &[b"image/encoded", b"image/object/bbox/xmin", b"\x0a", b"\x12", b"\x1a", b"\xff\xff\xff\xff\x0f", b"\x80"],
    );
}

#[test]
fn annotation_files() {
    check(
        "annotation_file",
        parsers::annotation_file,
        3000,
        &[
            b"NaN",
            b"inf",
            b"-1",
            b"1e999",
            b"null",
            b"[",
            b"}",
            b"\"",
            b",",
            b"\n",
            b"\r\n",
            b"\xef\xbb\xbf",
            b"\xff\xfe",
            b"&#x0;",
            b"<object>",
            b"</annotation>",
            b"\"bbox\": []",
            b"names:",
            b"*a",
            b" 0.5",
        ],
    );
}

#[test]
fn projects() {
    check(
        "project",
        parsers::project,
        200,
        &[
            b"answers",
            b"runs",
            b"TEXT",
            b"BLOB",
            b"REFERENCES",
            b"(",
            b"\xff\xff\xff\xff",
            b"\x00\x00\x00\x00",
            b"{}",
            b"NaN",
        ],
    );
}
