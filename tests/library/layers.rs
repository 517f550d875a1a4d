//! The layers of `src/` (ARCHITECTURE.md): a module imports only from the layers below it, and each heavy crate
//! has one home.

use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Each module and those it may import, from the ground up.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("dirs", &[]),
    ("domain", &[]),
    ("tasks", &[]),
    ("aws", &["domain", "tasks"]),
    ("review", &["domain"]),
    ("evaluation", &["domain", "review"]),
    ("cache", &["domain"]),
    ("source", &["domain", "tasks", "aws", "cache"]),
    ("upload", &["domain", "tasks", "aws", "source"]),
    ("decode", &["domain", "cache"]),
    ("vision", &["domain", "tasks"]),
    ("library", &["dirs", "domain", "tasks"]),
    (
        "inference",
        &["dirs", "domain", "tasks", "vision", "library"],
    ),
    (
        "predict",
        &["domain", "tasks", "source", "decode", "vision"],
    ),
    ("store", &["dirs", "domain", "tasks"]),
    (
        "export",
        &[
            "domain",
            "tasks",
            "source",
            "decode",
            "review",
            "evaluation",
            "store",
        ],
    ),
    (
        "remote",
        &[
            "domain",
            "tasks",
            "aws",
            "source",
            "upload",
            "decode",
            "vision",
            "library",
            "predict",
            "review",
            "evaluation",
            "store",
            "export",
        ],
    ),
    ("state", &["domain", "tasks", "review", "evaluation"]),
    (
        "effects",
        &[
            "dirs",
            "domain",
            "tasks",
            "aws",
            "cache",
            "source",
            "upload",
            "decode",
            "vision",
            "library",
            "inference",
            "predict",
            "review",
            "evaluation",
            "store",
            "export",
            "remote",
            "state",
        ],
    ),
    ("ui", &["domain", "tasks", "review", "evaluation", "state"]),
    (
        "cli",
        &[
            "dirs",
            "domain",
            "tasks",
            "aws",
            "source",
            "upload",
            "decode",
            "vision",
            "library",
            "inference",
            "predict",
            "review",
            "evaluation",
            "store",
            "export",
            "remote",
            "app",
        ],
    ),
    (
        "app",
        &["dirs", "domain", "tasks", "state", "effects", "ui"],
    ),
];

/// Heavy crates and the modules that may name them.
const HOMES: &[(&str, &[&str])] = &[
    ("turbojpeg", &["decode"]),
    ("image", &["decode"]),
    ("fast_image_resize", &["decode"]),
    ("exif", &["decode"]),
    ("crc32c", &["source"]),
    ("aws_config", &["aws"]),
    ("aws_credential_types", &["aws"]),
    ("aws_sdk_s3", &["aws"]),
    ("aws_sdk_sagemakerruntime", &["aws"]),
    ("aws_sdk_sts", &["aws"]),
    ("aws_sigv4", &["aws"]),
    ("aws_smithy_http_client", &["aws"]),
    ("aws_smithy_runtime", &["aws"]),
    ("aws_smithy_runtime_api", &["aws"]),
    ("aws_smithy_types", &["aws"]),
    ("aws_types", &["aws"]),
    ("tokio", &["aws"]),
    ("notify", &["source"]),
    ("ort", &["inference"]),
    ("half", &["inference"]),
    ("zip", &["inference"]),
    ("toml", &["library", "remote"]),
    ("flate2", &["remote"]),
    ("tar", &["remote"]),
    ("toml_edit", &["remote"]),
    ("object", &["inference"]),
    ("poll_promise", &["effects"]),
    ("ureq", &["library", "remote"]),
    ("ab_glyph", &["export"]),
    ("csv", &["export"]),
    ("maud", &["export"]),
    ("quick_xml", &["export"]),
    ("rusqlite", &["store"]),
    ("rfd", &["effects"]),
    ("opener", &["effects"]),
    ("egui", &["ui", "app"]),
    ("eframe", &["ui", "app"]),
    ("clap", &["cli"]),
    ("thread_priority", &["tasks"]),
    ("indicatif", &["cli"]),
    ("ctrlc", &["cli"]),
];

#[test]
fn every_module_imports_only_what_it_may() {
    let mut report = String::new();
    for file in rust_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
        let text = std::fs::read_to_string(&file).unwrap();
        for (line, violation) in violations(&module_of(&file), &text) {
            writeln!(report, "{}:{line}: {violation}", file.display()).unwrap();
        }
    }
    assert!(report.is_empty(), "\n{report}");
}

#[test]
fn every_module_has_a_floor() {
    for file in rust_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
        let module = module_of(&file);
        let known = MAY_IMPORT.iter().any(|(name, _)| *name == module);
        assert!(
            known || ["lib", "main"].contains(&module.as_str()),
            "{module} has no floor"
        );
    }
}

#[test]
fn an_upward_import_and_a_crate_away_from_home_are_found_with_their_line() {
    let text = "use crate::domain::Run;\nuse crate::{tasks, ui};\n// use crate::ui;\nlet x = ort::init();\n";
    let found = violations("decode", text);
    let lines: Vec<usize> = found.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [2, 2, 4], "{found:?}");
    assert!(violations("inference", "use ort::session::Session;").is_empty());
    assert!(violations("decode", "let report = import::x(); self.ort = 1;").is_empty());
}

/// Lines (from 1) that break a rule, and which.
fn violations(module: &str, text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let floor = MAY_IMPORT.iter().find(|(name, _)| *name == module);
    for (index, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        if let Some((_, allowed)) = floor {
            let forbidden = imported_modules(code)
                .into_iter()
                .filter(|name| *name != module && !allowed.contains(name));
            found.extend(
                forbidden.map(|name| (index + 1, format!("{module} must not import {name}"))),
            );
        }
        for &(crate_name, homes) in HOMES {
            if names_crate(code, crate_name) && !homes.contains(&module) {
                found.push((
                    index + 1,
                    format!("{crate_name} is at home in {homes:?}, not in {module}"),
                ));
            }
        }
    }
    found
}

/// The modules after each `crate::`, also those in braces.
fn imported_modules(code: &str) -> Vec<&str> {
    let name_of = |path: &'_ str| {
        path.len()
            - path
                .trim_start_matches(|c: char| c.is_alphanumeric() || c == '_')
                .len()
    };
    let mut modules = Vec::new();
    for (start, _) in code.match_indices("crate::") {
        let path = &code[start + "crate::".len()..];
        match path.strip_prefix('{') {
            Some(list) => {
                let list = list.split('}').next().unwrap_or_default();
                modules.extend(
                    list.split(',')
                        .map(str::trim)
                        .map(|path| &path[..name_of(path)]),
                );
            }
            None => modules.push(&path[..name_of(path)]),
        }
    }
    modules.retain(|name| MAY_IMPORT.iter().any(|(module, _)| module == name));
    modules
}

/// Whether the line uses the crate: `name::`, not as the tail of a longer path or word.
fn names_crate(code: &str, crate_name: &str) -> bool {
    code.match_indices(&format!("{crate_name}::"))
        .any(|(start, _)| {
            !code[..start].ends_with(|before: char| {
                before.is_alphanumeric() || before == '_' || before == ':'
            })
        })
}

fn module_of(file: &Path) -> String {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let first = file
        .strip_prefix(src)
        .unwrap()
        .iter()
        .next()
        .unwrap()
        .to_string_lossy();
    first.trim_end_matches(".rs").to_owned()
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}
