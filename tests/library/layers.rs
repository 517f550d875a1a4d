//! Checks the layers of `src/` (ARCHITECTURE.md): a module imports only from the layers below it, sibling modules have
//! no import cycles, and each heavy crate is used in one module.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The modules whose parts import each other without cycles; a part may use its parent.
const WITHOUT_CIRCLES: &[&str] = &[
    "domain",
    "tasks",
    "aws",
    "matching",
    "review",
    "evaluation",
    "source",
    "annotations",
    "upload",
    "decode",
    "vision",
    "library",
    "inference",
    "predict",
    "store",
    "evaluate",
    "export",
    "import",
];

/// Each module and those it may import, from the bottom up.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("dirs", &[]),
    ("domain", &[]),
    ("tasks", &[]),
    ("aws", &["domain", "tasks"]),
    ("matching", &["domain"]),
    ("review", &["domain"]),
    ("evaluation", &["domain", "matching", "review"]),
    ("cache", &["domain"]),
    ("source", &["domain", "tasks", "aws", "cache"]),
    ("annotations", &["domain", "tasks", "matching", "aws", "source"]),
    ("upload", &["domain", "tasks", "aws", "source"]),
    ("decode", &["domain", "cache"]),
    ("vision", &["domain", "tasks"]),
    ("library", &["dirs", "domain", "tasks", "vision"]),
    ("inference", &["dirs", "domain", "tasks", "vision", "library"]),
    ("predict", &["domain", "tasks", "source", "decode", "vision"]),
    ("store", &["dirs", "domain", "tasks"]),
    (
        "evaluate",
        &["domain", "tasks", "aws", "source", "library", "matching", "annotations", "review", "evaluation", "store"],
    ),
    ("export", &["domain", "tasks", "source", "decode", "matching", "review", "evaluation", "store"]),
    (
        "remote",
        &[
            "domain",
            "tasks",
            "aws",
            "source",
            "annotations",
            "evaluate",
            "matching",
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
    ("import", &["domain", "tasks", "source", "matching", "annotations", "predict", "remote"]),
    ("state", &["domain", "tasks", "matching", "review", "evaluation"]),
    (
        "effects",
        &[
            "dirs",
            "domain",
            "tasks",
            "aws",
            "cache",
            "source",
            "annotations",
            "evaluate",
            "matching",
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
            "import",
            "state",
        ],
    ),
    ("ui", &["domain", "tasks", "matching", "review", "evaluation", "state"]),
    (
        "cli",
        &[
            "dirs",
            "domain",
            "tasks",
            "aws",
            "source",
            "annotations",
            "evaluate",
            "matching",
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
            "import",
            "app",
        ],
    ),
    ("app", &["dirs", "domain", "tasks", "state", "effects", "ui"]),
];

/// Heavy crates and the modules that may use them.
const HOMES: &[(&str, &[&str])] = &[
    ("turbojpeg", &["decode"]),
    ("image", &["decode"]),
    ("fast_image_resize", &["decode"]),
    ("exif", &["decode"]),
    ("hotcoco", &["evaluation"]),
    ("icu_normalizer", &["matching"]),
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
    ("csv", &["export", "matching"]),
    ("maud", &["export"]),
    ("resvg", &["export"]),
    ("quick_xml", &["annotations", "export"]),
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
fn modules_import_only_allowed_layers() {
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
fn modules_have_no_internal_cycles() {
    let files = rust_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    let modules = files.iter().map(|file| {
        let text = std::fs::read_to_string(file).unwrap();
        (path_of(file), text)
    });
    let found = circles(&modules.collect());
    let found: Vec<&String> =
        found.iter().filter(|circle| WITHOUT_CIRCLES.contains(&circle.split(':').next().unwrap())).collect();
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
    check(&[top, ("top::a", "use super::helper;"), b, c], &[]);
    let tests = "fn f() {}\n#[cfg(test)]\nmod tests {\n    use super::super::b::g;\n}";
    check(&[top, ("top::a", tests), b, c], &[]);
}

#[test]
fn every_module_has_a_layer() {
    let files = rust_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(files.len() > 200, "{}", files.len());
    for file in files {
        let module = module_of(&file);
        let known = MAY_IMPORT.iter().any(|(name, _)| *name == module);
        assert!(known || ["lib", "main"].contains(&module.as_str()), "{module} is not in the list");
    }
}

#[test]
fn violations_are_found_with_their_line() {
    let text = "use crate::domain::Run;\nuse crate::{\n    domain::{Run, RgbImage},\n    tasks,\n    ui,\n};\n\
                // use crate::ui;\nlet x = ort::init();\n";
    let found = violations("decode", text);
    let lines: Vec<usize> = found.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [4, 5, 8], "{found:?}");
    assert!(violations("inference", "use ort::session::Session;").is_empty());
    assert!(violations("decode", "let report = import::x(); self.ort = 1;").is_empty());
}

/// The lines (from 1) that break a rule, and the rule.
fn violations(module: &str, text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let layer = MAY_IMPORT.iter().find(|(name, _)| *name == module);
    for path in paths(text) {
        let first = path.names[0].as_str();
        if let (Some((_, allowed)), "crate", Some(name)) = (layer, first, path.names.get(1)) {
            let is_module = MAY_IMPORT.iter().any(|(known, _)| known == name);
            if is_module && name != module && !allowed.contains(&name.as_str()) {
                found.push((path.line, format!("{module} must not import {name}")));
            }
        }
        for &(crate_name, homes) in HOMES {
            if first == crate_name && path.names.len() > 1 && !homes.contains(&module) {
                let message = format!("{crate_name} is at home in {homes:?}, not in {module}");
                found.push((path.line, message));
            }
        }
    }
    found
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
    for (module, text) in modules {
        if module.last().is_some_and(|name| name.starts_with("test")) {
            continue;
        }
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let absolute = paths(code).into_iter().filter_map(|path| {
            let is_import = path.is_import;
            Some((absolute(modules, module, path.names)?, is_import))
        });
        paths_of.insert(module, absolute.collect());
    }
    // By parent: which part imports which.
    let mut imports: BTreeMap<&[String], BTreeMap<&str, BTreeSet<String>>> = BTreeMap::new();
    for (module, paths) in &paths_of {
        for (path, _) in paths {
            let home = home(&paths_of, path, 8);
            let common = module.iter().zip(&home).take_while(|(left, right)| left == right).count();
            if let (Some(part), Some(other), true) = (module.get(common), home.get(common), common > 0) {
                let parts = imports.entry(&module[..common]).or_default();
                parts.entry(part).or_default().insert(other.clone());
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
        let circular: Vec<&str> = parts.keys().copied().filter(|part| reached(part).contains(*part)).collect();
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
fn home(paths_of: &BTreeMap<&ModulePath, Vec<(ModulePath, bool)>>, path: &[String], depth: usize) -> ModulePath {
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
    match imported {
        Some((imported, _)) if depth > 0 => {
            let mut imported = imported.clone();
            imported.extend_from_slice(&path[len + 1..]);
            home(paths_of, &imported, depth - 1)
        }
        _ => module,
    }
}

/// The module of a file, from the root.
fn path_of(file: &Path) -> ModulePath {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let names = file.strip_prefix(src).unwrap().with_extension("");
    let names = names.iter().map(|name| name.to_string_lossy().into_owned());
    names.filter(|name| name != "mod").collect()
}

fn module_of(file: &Path) -> String {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let first = file.strip_prefix(src).unwrap().iter().next().unwrap().to_string_lossy();
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
