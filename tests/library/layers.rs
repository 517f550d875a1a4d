//! Checks the layers of `src/` (ARCHITECTURE.md): a module imports only from the layers below it, sibling modules have
//! no import cycles, and each heavy crate is used in one module.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Modules and those that they may import, from the bottom up. A module inside another may have a row of its own. The
/// areas of the window share the rows of their `state`, `update`, `effects` and `ui`.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("local_file", &[]),
    ("dirs", &[]),
    ("domain", &[]),
    ("tasks", &["domain"]),
    ("alike", &["tasks"]),
    ("sagemaker::spec", &["domain"]),
    ("aws", &["domain", "tasks", "sagemaker::spec"]),
    ("aws::upload::plan", &["domain"]),
    ("annotations::matching", &["domain"]),
    ("review", &["alike", "domain"]),
    ("evaluation", &["domain", "tasks", "annotations::matching", "review"]),
    ("cache", &["domain"]),
    ("image::decode", &["domain", "cache"]),
    ("image::source", &["local_file", "domain", "tasks", "aws", "aws::upload::plan", "review", "cache"]),
    ("annotations::rows", &[]),
    ("annotations::dataset_files", &["annotations::rows"]),
    (
        "annotations",
        &[
            "local_file",
            "domain",
            "tasks",
            "aws",
            "annotations::matching",
            "annotations::rows",
            "annotations::dataset_files",
            "image::source",
        ],
    ),
    ("aws::upload", &["local_file", "domain", "tasks", "aws", "aws::upload::plan", "image::source"]),
    ("image::capture", &["domain", "tasks", "image::decode", "image::source"]),
    ("image::fingerprint", &["alike", "domain", "tasks", "image::decode", "image::source"]),
    ("image::size", &["domain", "image::decode", "image::source"]),
    ("model", &["alike", "domain", "tasks"]),
    ("model::recognize", &["domain", "tasks", "model"]),
    ("model::download", &["local_file", "domain", "tasks"]),
    (
        "model::catalog",
        &["local_file", "dirs", "domain", "tasks", "sagemaker::spec", "model", "model::recognize", "model::download"],
    ),
    ("model::runtime", &["dirs", "domain", "tasks", "model::download"]),
    ("model::diagnostics", &["dirs", "domain", "tasks", "model::catalog", "model::runtime"]),
    (
        "model::onnx",
        &["local_file", "alike", "domain", "tasks", "model", "model::recognize", "model::catalog", "model::runtime"],
    ),
    ("predict", &["alike", "domain", "tasks", "image::source", "image::decode", "model"]),
    ("project", &["local_file", "dirs", "alike", "domain", "tasks"]),
    ("project::export::options", &["domain"]),
    (
        "project::export",
        &[
            "alike",
            "domain",
            "tasks",
            "annotations::matching",
            "annotations::rows",
            "annotations::dataset_files",
            "review",
            "evaluation",
            "image::source",
            "image::decode",
            "project",
            "project::export::options",
        ],
    ),
    (
        "project::export::label_patch",
        &["domain", "tasks", "annotations::matching", "annotations", "image::source", "project", "project::export"],
    ),
    (
        "evaluation::pipeline",
        &[
            "alike",
            "domain",
            "tasks",
            "annotations::matching",
            "review",
            "evaluation",
            "image::source",
            "annotations",
            "model::catalog",
            "project",
        ],
    ),
    (
        "sagemaker",
        &[
            "local_file",
            "dirs",
            "domain",
            "tasks",
            "sagemaker::spec",
            "aws",
            "aws::upload::plan",
            "image::source",
            "annotations::rows",
            "annotations",
            "aws::upload",
            "image::decode",
            "image::size",
            "model",
            "model::catalog",
            "predict",
            "project",
            "project::export",
        ],
    ),
    (
        "annotations::import",
        &[
            "domain",
            "tasks",
            "annotations::matching",
            "annotations::dataset_files",
            "image::source",
            "annotations",
            "image::size",
            "predict",
        ],
    ),
    (
        "similar",
        &[
            "dirs",
            "alike",
            "domain",
            "tasks",
            "image::decode",
            "model",
            "model::catalog",
            "model::onnx",
            "model::runtime",
            "project",
            "project::export::options",
            "project::export",
        ],
    ),
    (
        "window::state",
        &[
            "alike",
            "domain",
            "tasks",
            "sagemaker::spec",
            "aws::upload::plan",
            "annotations::matching",
            "review",
            "evaluation",
            "project::export::options",
        ],
    ),
    ("window::effects", EVERYTHING_ABOVE),
    (
        "window::update",
        &[
            "alike",
            "domain",
            "tasks",
            "sagemaker::spec",
            "aws::upload::plan",
            "annotations::matching",
            "review",
            "evaluation",
            "project::export::options",
            "window::state",
        ],
    ),
    (
        "window::ui",
        &[
            "alike",
            "domain",
            "tasks",
            "sagemaker::spec",
            "aws::upload::plan",
            "annotations::matching",
            "review",
            "evaluation",
            "project::export::options",
            "window::state",
        ],
    ),
    ("window::app", &["dirs", "domain", "tasks", "window::state", "window::update", "window::ui", "window::effects"]),
    ("cli", WORK_AND_APP),
];

/// Parents of modules that import each other in cycles: the areas of the window name each other's states and updates.
const CIRCLES: &[&str] = &["cli", "cli::evaluate", "window::effects", "window::state", "window::ui", "window::update"];

/// May import all rows above.
const EVERYTHING_ABOVE: &[&str] = &["*"];

/// What does the work for both front ends, and the window as a whole.
const WORK_AND_APP: &[&str] = &[
    "local_file",
    "dirs",
    "alike",
    "domain",
    "tasks",
    "sagemaker::spec",
    "aws",
    "aws::upload::plan",
    "annotations::matching",
    "annotations::rows",
    "annotations::dataset_files",
    "review",
    "evaluation",
    "cache",
    "image::source",
    "annotations",
    "aws::upload",
    "image::decode",
    "image::capture",
    "image::fingerprint",
    "image::size",
    "model",
    "model::recognize",
    "model::download",
    "model::catalog",
    "model::runtime",
    "model::diagnostics",
    "model::onnx",
    "predict",
    "project",
    "project::export::options",
    "project::export",
    "project::export::label_patch",
    "evaluation::pipeline",
    "sagemaker",
    "annotations::import",
    "similar",
    "window::app",
];

/// Heavy crates and the modules that may use them.
const HOMES: &[(&str, &[&str])] = &[
    ("turbojpeg", &["image::decode"]),
    ("image", &["image::decode"]),
    ("fast_image_resize", &["image::decode"]),
    ("exif", &["image::decode"]),
    ("hotcoco", &["evaluation"]),
    ("icu_normalizer", &["annotations::matching"]),
    ("crc32c", &["image::source"]),
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
    ("notify", &["image::source"]),
    ("ort", &["model::onnx", "model::runtime"]),
    ("half", &["alike", "model::onnx"]),
    ("matrixmultiply", &["alike"]),
    ("zip", &["model::runtime"]),
    ("toml", &["model::catalog", "sagemaker"]),
    ("flate2", &["sagemaker"]),
    ("tar", &["sagemaker"]),
    ("toml_edit", &["sagemaker"]),
    ("object", &["model::runtime"]),
    ("poll_promise", &["window::effects"]),
    ("ureq", &["model::download", "sagemaker"]),
    ("ab_glyph", &["project::export"]),
    ("csv", &["annotations::matching", "project::export"]),
    ("maud", &["project::export"]),
    ("resvg", &["project::export"]),
    ("quick_xml", &["annotations", "annotations::dataset_files", "project::export"]),
    ("rusqlite", &["project"]),
    ("rfd", &["window::effects"]),
    ("opener", &["window::effects"]),
    ("egui", &["window::app", "window::ui"]),
    ("eframe", &["window::app", "window::ui"]),
    ("clap", &["cli"]),
    ("thread_priority", &["tasks"]),
    ("indicatif", &["cli"]),
    ("ctrlc", &["cli"]),
];

#[test]
fn modules_import_only_allowed_layers() {
    let modules = modules();
    let mut report = String::new();
    for (module, text) in &modules {
        for (line, violation) in violations(&modules, module, text) {
            writeln!(report, "{}:{line}: {violation}", module.join("::")).unwrap();
        }
    }
    assert!(report.is_empty(), "\n{report}");
}

#[test]
fn rows_name_only_rows_above() {
    for (position, (row, allowed)) in MAY_IMPORT.iter().enumerate() {
        for name in allowed.iter().filter(|name| **name != "*") {
            let above = MAY_IMPORT[..position].iter().any(|(above, _)| above == name);
            assert!(above, "{row} names {name}, which is not above it");
        }
    }
}

#[test]
fn modules_have_no_internal_cycles() {
    let found = circles(&modules());
    let found: Vec<&String> =
        found.iter().filter(|circle| !CIRCLES.contains(&circle.split(": ").next().unwrap())).collect();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn cycles_are_found_through_modules_and_reexports() {
    let check = |files: &[(&str, &str)], expected: &[&str]| {
        let modules = files
            .iter()
            .map(|(path, text)| (path.split("::").collect(), (*text).to_owned()))
            .map(|(path, text): (Vec<&str>, _)| (path.into_iter().map(str::to_owned).collect(), text));
        assert_eq!(circles(&modules.collect()), expected, "{files:?}");
    };
    let top = ("top", "mod a;\nmod b;\nmod c;\npub use b::{\n    Thing as Other, inner::Deep,\n};\n");
    let b = ("top::b", "use super::c::f;");
    let c = ("top::c", "fn f() { crate::top::a::g() }");
    check(
        &[top, ("top::a", "use crate::{\n    other,\n    top::{Deep, c::f},\n};"), b, ("top::b::inner", ""), c],
        &["top: a, b, c"],
    );
    let globs = ("top", "mod a;\nmod b;\nmod c;\npub use b::inner::*;\n");
    let inner = ("top::b::inner", "pub struct Deep;");
    check(&[globs, ("top::a", "use super::Deep;"), b, inner, c], &["top: a, b, c"]);
    check(&[top, ("top::a", "use super::helper;"), b, c], &[]);
    let tests = "fn f() {}\n#[cfg(test)]\nmod tests {\n    use super::super::b::g;\n}";
    check(&[top, ("top::a", tests), b, c], &[]);
}

#[test]
fn every_module_has_a_layer() {
    // What only declares the modules below it.
    let hubs = ["", "main", "window"];
    for module in modules().keys() {
        let is_area = module.len() > 1 && module[0] == "window" && row_of(module).is_none();
        let is_hub = hubs.contains(&module.join("::").as_str()) || is_area;
        assert!(is_hub || row_of(module).is_some(), "{module:?} is not in the list");
    }
}

#[test]
fn violations_are_found_with_their_line() {
    let text = "use crate::domain::Run;\nuse crate::{\n    domain::{Run, RgbImage},\n    tasks,\n    predict,\n};\n\
                // use crate::predict;\nlet x = ort::init();\nuse crate::window::jobs;\njobs::ui::draw();\n";
    let find = |module: &str, text: &str| {
        let module: ModulePath = module.split("::").map(str::to_owned).collect();
        let modules =
            BTreeMap::from([(module.clone(), text.to_owned()), (path_from("window::jobs::ui"), String::new())]);
        violations(&modules, &module, text)
    };
    let found = find("image::decode", text);
    let lines: Vec<usize> = found.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [4, 5, 8, 10], "{found:?}");
    assert!(find("model::onnx", "use ort::session::Session;").is_empty());
    assert!(find("image::decode", "let report = import::x(); self.ort = 1;").is_empty());
}

/// Lines (from 1) that break a rule, and which.
fn violations(modules: &BTreeMap<ModulePath, String>, module: &ModulePath, text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let row = row_of(module);
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let paths = paths(code);
    for (path, absolute) in resolved(modules, module, &paths) {
        let first = path.names[0].as_str();
        if let (Some((name, allowed)), Some(target)) = (row, absolute.as_deref().and_then(row_of))
            && target.0 != *name
            && !allowed.contains(&target.0)
            && !(*allowed == EVERYTHING_ABOVE && is_above(target.0, name))
        {
            found.push((path.line, format!("{name} must not import {}", target.0)));
        }
        for &(crate_name, homes) in HOMES {
            let is_home = row.is_some_and(|(name, _)| homes.contains(name));
            if first == crate_name && absolute.is_none() && path.names.len() > 1 && !is_home {
                found.push((path.line, format!("{crate_name} is at home in {homes:?}, not in {module:?}")));
            }
        }
    }
    found
}

/// The paths with where they lead from the root, if they stay in this crate.
fn resolved<'p>(
    modules: &BTreeMap<ModulePath, String>,
    module: &ModulePath,
    paths: &'p [CodePath],
) -> Vec<(&'p CodePath, Option<ModulePath>)> {
    // Modules that the file calls by their last name.
    let imports = paths.iter().filter(|path| path.is_import && path.names[0] == "crate");
    let bound: BTreeMap<&String, &[String]> =
        imports.filter_map(|path| Some((path.names.last()?, &path.names[1..]))).collect();
    let resolve = |path: &'p CodePath| match bound.get(&path.names[0]) {
        Some(target) if !path.is_import => Some([*target, &path.names[1..]].concat()),
        _ if path.is_import || path.names.len() > 1 => absolute(modules, module, path.names.clone()),
        _ => None,
    };
    paths.iter().map(|path| (path, resolve(path))).collect()
}

fn is_above(name: &str, row: &str) -> bool {
    let position = |name| MAY_IMPORT.iter().position(|(row, _)| *row == name);
    position(name) < position(row)
}

/// The row of a module, or of what a path names.
fn row_of(path: &[String]) -> Option<&'static (&'static str, &'static [&'static str])> {
    let path = by_kind(path);
    (1..=path.len()).rev().find_map(|len| {
        let name = path[..len].join("::");
        MAY_IMPORT.iter().find(|(row, _)| *row == name)
    })
}

/// The same path with the kind of a part of the window before its area: `window::state::jobs`.
fn by_kind(path: &[String]) -> ModulePath {
    let kind = ["app", "state", "update", "effects", "ui"];
    let mut path = path.to_vec();
    if path.first().is_some_and(|name| name == "window")
        && let Some(position) = path.iter().position(|name| kind.contains(&name.as_str()))
    {
        path[1..=position].rotate_right(1);
    }
    path
}

/// The names of a module from the root: `["decode", "jpeg"]`.
type ModulePath = Vec<String>;

/// A path in the code, such as `crate::domain::Run`.
struct CodePath {
    /// The line number, from 1.
    line: usize,
    names: Vec<String>,
    /// Whether the line belongs to a `use` item.
    is_import: bool,
}

/// Every path of a file, with braces expanded: `use a::{b, c}` is `a::b` and `a::c`.
fn paths(text: &str) -> Vec<CodePath> {
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let code = lines.collect::<Vec<_>>().join("\n");
    let mut found = Vec::new();
    let mut is_import = false;
    let mut at = 0;
    while let Some(letter) = code[at..].chars().next() {
        let follows_name = code[..at].ends_with(|before: char| is_of_name(before) || before == ':' || before == '.');
        if !is_of_name(letter) || follows_name {
            is_import &= letter != ';';
            at += letter.len_utf8();
            continue;
        }
        let known = found.len();
        at = read_path(&code, at, &[], &mut found);
        is_import |= found[known..].iter().any(|path: &CodePath| path.names == ["use"]);
        for path in &mut found[known..] {
            path.is_import = is_import;
        }
    }
    found
}

/// Reads the path, or the paths with a common prefix, at `at`. Returns the end.
fn read_path(code: &str, mut at: usize, beginning: &[String], found: &mut Vec<CodePath>) -> usize {
    let line = code[..at].matches('\n').count() + 1;
    let mut names = beginning.to_vec();
    loop {
        let rest = &code[at..];
        if rest.starts_with('{') && !names.is_empty() {
            at += 1;
            while let Some(letter) = code[at..].chars().next().filter(|letter| *letter != '}') {
                at = if is_of_name(letter) && !code[at..].starts_with("as ") {
                    read_path(code, at, &names, found)
                } else {
                    // The new name in a renaming import is not a separate path.
                    let renamed = code[at..].strip_prefix("as ").map(|name| 3 + name_len(name));
                    at + renamed.unwrap_or(letter.len_utf8())
                };
            }
            return (at + 1).min(code.len());
        }
        let len = name_len(rest);
        if len > 0 {
            names.push(rest[..len].to_owned());
        }
        at += len;
        if len == 0 || !code[at..].starts_with("::") {
            let is_import = false;
            found.push(CodePath { line, names, is_import });
            return at;
        }
        at += 2;
    }
}

fn is_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

fn name_len(text: &str) -> usize {
    text.len() - text.trim_start_matches(is_of_name).len()
}

/// The sibling modules that import in a cycle, as `parent: a, b`.
fn circles(modules: &BTreeMap<ModulePath, String>) -> Vec<String> {
    let mut paths_of: BTreeMap<&ModulePath, Vec<(ModulePath, bool)>> = BTreeMap::new();
    let mut items_of: BTreeMap<&ModulePath, BTreeSet<&str>> = BTreeMap::new();
    for (module, text) in modules {
        if module.last().is_some_and(|name| name.starts_with("test")) {
            continue;
        }
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let paths = paths(code);
        let resolved = resolved(modules, module, &paths).into_iter();
        let inside = resolved.filter_map(|(path, absolute)| Some((absolute?, path.is_import)));
        paths_of.insert(module, inside.collect());
        items_of.insert(module, items(code));
    }
    // By parent: which part imports which.
    let mut imports: BTreeMap<ModulePath, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for (module, paths) in &paths_of {
        for (path, _) in paths {
            let (module, home) = (by_kind(module), by_kind(&home(&paths_of, &items_of, path, 8)));
            if home.len() < 3 && home.first().is_some_and(|name| name == "window") {
                // An area as a whole: its parts are named where they are used.
                continue;
            }
            let common = module.iter().zip(&home).take_while(|(left, right)| left == right).count();
            if let (Some(part), Some(other), true) = (module.get(common), home.get(common), common > 0) {
                let parts = imports.entry(module[..common].to_vec()).or_default();
                parts.entry(part.clone()).or_default().insert(other.clone());
            }
        }
    }
    let mut found = Vec::new();
    for (parent, parts) in imports {
        let reached = |from: &str| {
            let mut reached = BTreeSet::new();
            let mut rest = vec![from.to_owned()];
            while let Some(part) = rest.pop() {
                let next = parts.get(part.as_str()).into_iter().flatten();
                rest.extend(next.filter(|next| reached.insert((*next).clone())).cloned());
            }
            reached
        };
        let circular: Vec<&str> =
            parts.keys().map(String::as_str).filter(|part| reached(part).contains(*part)).collect();
        if !circular.is_empty() {
            found.push(format!("{}: {}", parent.join("::"), circular.join(", ")));
        }
    }
    found
}

/// The path from the root; `None` for one outside this crate.
fn absolute(modules: &BTreeMap<ModulePath, String>, module: &ModulePath, mut names: Vec<String>) -> Option<ModulePath> {
    let mut base = module.clone();
    match names[0].as_str() {
        "crate" => base.clear(),
        "self" | "super" => {}
        child => {
            base.push(child.to_owned());
            names.insert(0, String::new());
            modules.get(&base)?;
            base.pop();
        }
    }
    let supers = names.iter().take_while(|name| *name == "super").count();
    base.truncate(base.len().saturating_sub(supers));
    let rest = names.into_iter().skip(supers.max(1));
    base.extend(rest.filter(|name| name != "self"));
    Some(base)
}

/// The module that defines what a path refers to, even if a parent reexports it.
fn home(
    paths_of: &BTreeMap<&ModulePath, Vec<(ModulePath, bool)>>,
    items_of: &BTreeMap<&ModulePath, BTreeSet<&str>>,
    path: &[String],
    depth: usize,
) -> ModulePath {
    let Some(len) = (1..=path.len()).rev().find(|len| paths_of.contains_key(&path[..*len].to_vec())) else {
        return Vec::new();
    };
    let module = path[..len].to_vec();
    let Some(name) = path.get(len) else {
        return module;
    };
    let imported = paths_of[&module]
        .iter()
        .find(|(imported, is_import)| *is_import && imported.last() == Some(name) && imported[..] != path[..=len]);
    let defines = |module: &ModulePath| items_of.get(module).is_some_and(|items| items.contains(name.as_str()));
    if let (Some((imported, _)), true) = (imported, depth > 0) {
        return home(paths_of, items_of, &[imported, &path[len + 1..]].concat(), depth - 1);
    }
    let glob = paths_of[&module].iter().find(|(imported, is_import)| *is_import && defines(imported));
    match glob.filter(|_| !defines(&module)) {
        Some((imported, _)) => imported.clone(),
        None => module,
    }
}

/// The names that a module defines.
fn items(code: &str) -> BTreeSet<&str> {
    let words: Vec<&str> = code.split(|letter| !is_of_name(letter)).filter(|word| !word.is_empty()).collect();
    let kinds = ["struct", "enum", "trait", "type", "fn", "const", "static"];
    words.windows(2).filter(|pair| kinds.contains(&pair[0])).map(|pair| pair[1]).collect()
}

fn modules() -> BTreeMap<ModulePath, String> {
    let files = rust_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    files.iter().map(|file| (path_of(file), std::fs::read_to_string(file).unwrap())).collect()
}

fn path_from(text: &str) -> ModulePath {
    text.split("::").map(str::to_owned).collect()
}

/// The module of a file, from the root.
fn path_of(file: &Path) -> ModulePath {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let names = file.strip_prefix(src).unwrap().with_extension("");
    let names = names.iter().map(|name| name.to_string_lossy().into_owned());
    names.filter(|name| !["mod", "lib", "core", "compute"].contains(&name.as_str())).collect()
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
