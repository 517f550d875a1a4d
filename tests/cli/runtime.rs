//! Finding, installing and rejecting ONNX Runtime, and the devices it runs on, with the real program and the real
//! libraries.

#![cfg(unix)]

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use spotcheck::model::runtime::RuntimePackage;

use crate::support::ended::Ended;
use crate::support::http_server::{Ending, HttpServer, Reply, Request};
use crate::support::{lock, repository, runtime_home, software_gpu, spotcheck, spotcheck_at, target_folder};

/// The largest difference of a score between two devices.
const SCORE_TOLERANCE: f64 = 1e-4;

/// The library in the tests' shared home.
fn installed_library() -> PathBuf {
    let folder = runtime_home().join("data/runtime/cpu");
    let files = std::fs::read_dir(folder).unwrap();
    let mut paths = files.map(|file| file.unwrap().path());
    paths
        .find(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.starts_with("libonnxruntime.")
        })
        .unwrap()
}

/// A home folder with a copy of the shared runtime, to damage.
fn home_with_runtime() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let (from, to) = (runtime_home().join("data/runtime/cpu"), home.path().join("data/runtime/cpu"));
    std::fs::create_dir_all(&to).unwrap();
    for file in std::fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
    home
}

fn status(home: &Path) -> Command {
    spotcheck_at(home, &["runtime", "status"])
}

fn status_with_variable(library: &Path) -> Ended {
    let home = tempfile::tempdir().unwrap();
    Ended::run(status(home.path()).env("ORT_DYLIB_PATH", library))
}

/// A wheel with the given files.
fn wheel(path: &Path, files: &[(&str, &[u8])]) {
    use std::io::Write;
    let mut writer = zip::ZipWriter::new(std::fs::File::create(path).unwrap());
    for (name, bytes) in files {
        let options = zip::write::SimpleFileOptions::default();
        writer.start_file(*name, options).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap();
}

/// The command recommended by messages.
const INSTALL: &str = "spotcheck runtime install cpu";
const METADATA: &str = "onnxruntime-1.32.0.dist-info/METADATA";

#[test]
fn status_reports_search_path_and_devices() {
    let prediction = Ended::run(&mut spotcheck(&["runtime", "status"])).must_succeed();
    prediction.must_show(&[
        "ORT_DYLIB_PATH: nothing",
        "ONNX Runtime 1.32.0",
        "own folder: /",
        "on CPU because",
        "on WebGPU because ",
        "efficientnet-lite0: ",
        ": p50 ",
        "; sessions: ",
    ]);
}

#[test]
fn status_without_a_runtime_names_the_install_command() {
    let home = tempfile::tempdir().unwrap();
    Ended::run(&mut status(home.path())).must_fail_with(&[INSTALL]);
    assert!(!home.path().join("data").exists());
}

/// The pinned wheel for the CPU, downloaded by pip once for all tests.
fn pinned_wheel() -> (&'static str, Vec<u8>) {
    let name = RuntimePackage::Cpu.pin().unwrap().wheel;
    let folder = target_folder("test-tools/wheel");
    let _lock = lock(&folder);
    let path = folder.join(name);
    if !path.exists() {
        let platform = name.trim_end_matches(".whl").rsplit('-').next().unwrap();
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--python-version", "3.11"]);
        pip.args(["--implementation", "cp", "--abi", "cp311", "--platform", platform, "onnxruntime==1.32.0"]);
        Ended::run(pip.arg("--dest").arg(&folder)).must_succeed();
    }
    (name, std::fs::read(path).unwrap())
}

/// `runtime install cpu` with this package index, and without Python or settings of pip.
fn install_from(index: &str, home: &Path) -> Command {
    let mut install = spotcheck_at(home, &["runtime", "install", "cpu"]);
    for name in ["PIP_CERT", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX", "PIP_PROXY", "VIRTUAL_ENV"] {
        install.env_remove(name);
    }
    install.env("PATH", home).env("PIP_CONFIG_FILE", "/dev/null").env("PIP_INDEX_URL", index);
    install
}

const PAGE: &str = "/simple/onnxruntime/";

/// A package index whose page for ONNX Runtime is `html`.
fn index_with(html: String, file: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> HttpServer {
    HttpServer::start(move |request| match request.path.as_str() {
        PAGE => Reply::whole(html.as_bytes()).header("Content-Type", "text/html"),
        path if path.starts_with("/files/") => file(request),
        _ => Reply::status("404 Not Found"),
    })
}

fn link_with(sha256: &str) -> String {
    let name = RuntimePackage::Cpu.pin().unwrap().wheel;
    format!("<!DOCTYPE html><body><a href=\"../../files/{name}#sha256={sha256}\">{name}</a></body>")
}

fn pinned_sha256() -> &'static str {
    RuntimePackage::Cpu.pin().unwrap().wheel_sha256
}

#[test]
fn install_needs_no_python() {
    let home = tempfile::tempdir().unwrap();
    let (_, wheel) = pinned_wheel();
    let index = index_with(link_with(pinned_sha256()), move |request| {
        let reply = Reply::file(&wheel, "\"1\"", request);
        // The first connection breaks.
        if request.range_start.is_none() { reply.ending(Ending::CutAfter(20_000_000)) } else { reply }
    });
    Ended::run(&mut install_from(&index.url("/simple"), home.path()))
        .must_succeed()
        .must_show(&["ONNX Runtime 1.32.0"]);
    assert_eq!(index.range_starts(), [None, None, Some(20_000_000)]);
    Ended::run(&mut status(home.path())).must_succeed().must_show(&["running on CPU", "ONNX Runtime 1.32.0"]);
}

#[test]
fn settings_of_pip_apply() {
    let home = tempfile::tempdir().unwrap();
    let name = RuntimePackage::Cpu.pin().unwrap().wheel;
    let json = format!(r#"{{"files": [{{"filename": "{name}", "url": "/files/{name}", "hashes": {{}}}}]}}"#);
    let (_, wheel) = pinned_wheel();
    let index = HttpServer::start(move |request| {
        if request.headers.get("authorization").map(String::as_str) != Some("Basic YW5uOnBAc3M=") {
            return Reply::status("401 Unauthorized");
        }
        match request.path.as_str() {
            PAGE => {
                assert!(request.headers["accept"].contains("application/vnd.pypi.simple.v1+json"));
                Reply::whole(json.as_bytes()).header("Content-Type", "application/vnd.pypi.simple.v1+json")
            }
            _ => Reply::whole(&wheel),
        }
    });
    let empty = HttpServer::start(|_| Reply::status("404 Not Found"));
    let pip = home.path().join("pip.conf");
    // The proxy answers for a host that does not exist.
    let text = format!(
        "[global]\nindex-url = {}\nextra-index-url =\n    http://ann:p%40ss@index.invalid/simple/\nproxy = {}\n",
        empty.url("/simple"),
        index.url("")
    );
    std::fs::write(&pip, text).unwrap();
    let mut install = install_from("", home.path());
    Ended::run(install.env("PIP_CONFIG_FILE", &pip).env_remove("PIP_INDEX_URL")).must_succeed();
    let hosts: Vec<_> = index.exchanges().into_iter().map(|exchange| exchange.request.proxy_for).collect();
    assert_eq!(hosts, [Some("index.invalid:80".to_owned()), Some("index.invalid:80".to_owned())]);
    assert_eq!(empty.exchanges().len(), 1);
}

#[test]
fn install_without_network_explains_offline_use() {
    let home = tempfile::tempdir().unwrap();
    let wheel = RuntimePackage::Cpu.pin().unwrap().wheel;
    Ended::run(&mut install_from("http://127.0.0.1:9/simple", home.path())).must_fail_with(&[
        "127.0.0.1",
        "PIP_INDEX_URL",
        wheel,
        INSTALL,
        "--from FILE.whl",
    ]);
    let mut no_index = install_from("http://127.0.0.1:9/simple", home.path());
    Ended::run(no_index.env("PIP_NO_INDEX", "1")).must_fail_with(&["PIP_INDEX_URL", wheel]);
    let mut predict = spotcheck_at(home.path(), &["predict", "assets/samples", "--model", "efficientnet-lite0"]);
    Ended::run(predict.env("PIP_INDEX_URL", "http://127.0.0.1:9/simple")).must_fail_with(&[wheel, INSTALL]);
    let left = std::fs::read_dir(home.path().join("data/runtime")).unwrap();
    assert_eq!(left.count(), 1, "the lock file");
}

#[test]
fn login_page_of_a_network_is_recognized() {
    let check = |index: &HttpServer| {
        let home = tempfile::tempdir().unwrap();
        let ended = Ended::run(&mut install_from(&index.url("/simple"), home.path()));
        ended.must_fail_with(&["a web page", "login page"]);
        assert!(!home.path().join("data/runtime/cpu").exists());
    };
    let login = || Reply::whole(b"<html><form>Welcome to the hotel</form></html>").header("Content-Type", "text/html");
    check(&HttpServer::start(move |_| login()));
    check(&index_with(link_with(pinned_sha256()), move |_| login()));
}

#[test]
fn foreign_wheel_with_the_right_name_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let other = "0".repeat(64);
    let index = index_with(link_with(&other), |_| Reply::whole(b"never requested"));
    let ended = Ended::run(&mut install_from(&index.url("/simple"), home.path()));
    ended.must_fail_with(&["unexpected sha256", "was not installed", &other]);
    assert_eq!(index.exchanges().len(), 1);

    // The right hash is listed, but the content has another.
    let length = pinned_wheel().1.len();
    let index = index_with(link_with(pinned_sha256()), move |_| Reply::whole(&vec![0; length]));
    Ended::run(&mut install_from(&index.url("/simple"), home.path())).must_fail_with(&["wrong content", "sha256"]);
    assert!(!home.path().join("data/runtime/cpu").exists());
}

#[test]
fn user_wheel_is_installed_as_unpinned() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("mine.whl");
    let library = std::fs::read(installed_library()).unwrap();
    let metadata = b"Metadata-Version: 2.1\nName: onnxruntime\nVersion: 1.30.0\n";
    let libraries = "onnxruntime/capi/libonnxruntime.so.1.32.0";
    wheel(
        &path,
        &[(METADATA, metadata), (libraries, &library), ("onnxruntime/capi/../../../../escaped.so", b"outside")],
    );
    let mut install = spotcheck_at(home.path(), &["runtime", "install", "cpu", "--from"]);
    let prediction = Ended::run(install.arg(&path)).must_succeed();
    assert!(prediction.stderr.contains("not pinned"), "{}", prediction.stderr);
    let found = Ended::run(&mut status(home.path())).must_succeed();
    found.must_show(&["running on CPU", "ONNX Runtime 1.32.0", INSTALL]);
    let stray = walkdir::WalkDir::new(home.path()).into_iter().flatten();
    assert_eq!(stray.filter(|file| file.file_name() == "escaped.so").count(), 0);
}

#[test]
fn unusable_wheels_are_refused_with_the_reason() {
    let home = tempfile::tempdir().unwrap();
    let check = |files: &[(&str, &[u8])], reason: &str| {
        let path = home.path().join("mine.whl");
        wheel(&path, files);
        let mut install = spotcheck_at(home.path(), &["runtime", "install", "cpu", "--from"]);
        Ended::run(install.arg(&path)).must_fail_with(&[reason, "mine.whl"]);
    };
    check(&[("readme.txt", b"hello")], "no METADATA");
    check(&[(METADATA, b"Name: onnxruntime\nVersion: 1.19.2\n")], "1.24 or newer");
    check(&[(METADATA, b"Name: onnxruntime-gpu\nVersion: 1.32.0\n")], "spotcheck runtime install cuda");
    check(&[(METADATA, b"Name: onnxruntime\nVersion: 1.32.0\n")], "no library");
    check(
        &[
            (METADATA, b"Name: onnxruntime\nVersion: 1.32.0\n"),
            ("onnxruntime/capi/libonnxruntime.so.1.32.0", b"not ELF"),
        ],
        "a shared library",
    );
}

#[test]
fn truncated_library_is_refused_before_loading() {
    let home = home_with_runtime();
    let name = installed_library().file_name().unwrap().to_owned();
    let library = home.path().join("data/runtime/cpu").join(name);
    let length = std::fs::metadata(&library).unwrap().len();
    let file = std::fs::OpenOptions::new().write(true).open(&library).unwrap();
    file.set_len(length / 2).unwrap();
    Ended::run(&mut status(home.path())).must_fail_with(&["damaged", "bytes instead of", INSTALL]);
}

#[test]
fn library_with_one_changed_byte_is_refused() {
    use std::os::unix::fs::FileExt;
    let home = home_with_runtime();
    let name = installed_library().file_name().unwrap().to_owned();
    let library = home.path().join("data/runtime/cpu").join(name);
    let file = std::fs::OpenOptions::new().read(true).write(true).open(&library).unwrap();
    let mut byte = [0];
    file.read_at(&mut byte, 1 << 20).unwrap();
    file.write_at(&[!byte[0]], 1 << 20).unwrap();
    Ended::run(&mut status(home.path())).must_fail_with(&["damaged", "have changed"]);
}

#[test]
fn damaged_plug_in_does_not_stop_the_rest() {
    let home = home_with_runtime();
    let plugin = home.path().join("data/runtime/webgpu");
    std::fs::create_dir_all(&plugin).unwrap();
    std::fs::write(plugin.join("manifest.json"), "{").unwrap();
    let prediction = Ended::run(&mut status(home.path())).must_succeed();
    prediction.must_show(&[
        "on CPU because",
        "on WebGPU because",
        "onnxruntime-ep-webgpu is damaged",
        "spotcheck runtime install webgpu",
    ]);
}

#[test]
fn parallel_installations_both_succeed() {
    let home = tempfile::tempdir().unwrap();
    let (_, wheel) = pinned_wheel();
    let index = index_with(link_with(pinned_sha256()), move |_| Reply::whole(&wheel));
    let start = || {
        let mut install = install_from(&index.url("/simple"), home.path());
        let quiet = install.stdout(Stdio::null()).stderr(Stdio::null());
        quiet.spawn().unwrap()
    };
    let both = [start(), start()];
    for mut install in both {
        assert!(install.wait().unwrap().success());
    }
    Ended::run(&mut status(home.path())).must_succeed();
    let entries = std::fs::read_dir(home.path().join("data/runtime")).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, [".lock", "cpu"]);
}

#[test]
fn canceled_download_resumes() {
    let home = tempfile::tempdir().unwrap();
    let (_, wheel) = pinned_wheel();
    let index = index_with(link_with(pinned_sha256()), move |request| {
        let reply = Reply::file(&wheel, "\"1\"", request);
        if request.range_start.is_none() { reply.ending(Ending::StallAfter(1_000_000)) } else { reply }
    });
    let mut install = install_from(&index.url("/simple"), home.path());
    let install = install.stderr(Stdio::piped()).spawn().unwrap();
    index.wait_until_stalled();
    let part = home.path().join("data/runtime/download");
    let part = part.join(format!("{}.part", RuntimePackage::Cpu.pin().unwrap().wheel));
    while std::fs::metadata(&part).map_or(0, |part| part.len()) < 1_000_000 {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    Ended::run(Command::new("kill").args(["-INT", &install.id().to_string()])).must_succeed();
    let output = install.wait_with_output().unwrap();
    let messages = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{messages}");
    assert!(messages.contains("error: Canceled"), "{messages}");
    Ended::run(&mut install_from(&index.url("/simple"), home.path())).must_succeed();
    assert_eq!(index.range_starts(), [None, None, None, Some(1_000_000)]);
    assert!(!part.exists());
}

#[test]
fn foreign_library_is_an_error_and_never_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("libonnxruntime.so");
    let whole = std::fs::read(installed_library()).unwrap();
    for (bytes, reason) in [
        (&b"hello"[..], "a shared library"),
        (&b"\x7fELF\x02\x01\x01"[..], "truncated"),
        (&whole[..100], "truncated"),
        (&whole[..whole.len() / 2], "truncated"),
        (&whole[..whole.len() - 1000], "truncated"),
    ] {
        std::fs::write(&library, bytes).unwrap();
        status_with_variable(&library).must_fail_with(&[reason, "libonnxruntime.so"]);
    }
    status_with_variable(&folder.path().join("nothing.so")).must_fail_with(&[
        "ORT_DYLIB_PATH",
        "nothing.so",
        "does not exist",
    ]);
}

#[test]
fn old_library_is_refused_with_its_version() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("old.c");
    std::fs::write(
        &source,
        "static const void *api(unsigned v) { return 0; }\nstatic const char *version(void) { return \"1.20.1\"; }\n\
         static const struct { const void *(*a)(unsigned); const char *(*v)(void); } base = { api, version };\n\
         const void *OrtGetApiBase(void) { return &base; }\n",
    )
    .unwrap();
    let library = folder.path().join("libonnxruntime.so");
    let mut compile = Command::new("cc");
    compile.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source);
    Ended::run(&mut compile).must_succeed();
    status_with_variable(&library).must_fail_with(&["1.20", "too old", "1.24 or newer", INSTALL]);
    let versioned = folder.path().join("libonnxruntime.so.1.20.1");
    symlink(&library, &versioned).unwrap();
    status_with_variable(folder.path()).must_fail_with(&["1.20", "too old"]);
}

#[test]
fn other_libraries_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("other.c");
    std::fs::write(&source, "int nothing(void) { return 0; }\n").unwrap();
    let library = folder.path().join("libonnxruntime.so");
    let mut compile = Command::new("cc");
    compile.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source);
    Ended::run(&mut compile).must_succeed();
    status_with_variable(&library).must_fail_with(&["not ONNX Runtime"]);
}

#[test]
fn ort_dylib_path_overrides_the_installed_runtime() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("libonnxruntime.so");
    symlink(installed_library(), &library).unwrap();
    let mut command = spotcheck(&["runtime"]);
    let prediction = Ended::run(command.env("ORT_DYLIB_PATH", &library)).must_succeed();
    let expected = format!("from ORT_DYLIB_PATH: {}", library.display());
    assert!(prediction.stdout.contains(&expected), "{}", prediction.stdout);
}

/// As `pip install 'spotcheck[cpu]'` makes it, with the link of uv and pipx.
#[test]
fn runtime_is_found_in_the_programs_python_environment() {
    let (home, prefix) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (tools, links) = (prefix.path().join("tool/bin"), prefix.path().join("bin"));
    let packages = prefix.path().join("tool/lib/python3.11/site-packages");
    let (core, plugin) = (packages.join("onnxruntime/capi"), packages.join("onnxruntime_ep_webgpu"));
    let metadata = packages.join("onnxruntime_ep_webgpu-0.4.0.dist-info");
    for folder in [&tools, &links, &core, &plugin, &metadata] {
        std::fs::create_dir_all(folder).unwrap();
    }
    std::fs::copy(env!("CARGO_BIN_EXE_spotcheck"), tools.join("spotcheck")).unwrap();
    symlink(tools.join("spotcheck"), links.join("spotcheck")).unwrap();
    let library = core.join("libonnxruntime.so.1.32.0");
    std::fs::copy(installed_library(), &library).unwrap();
    let plugin_name = "libonnxruntime_providers_webgpu.so";
    let installed_plugin = runtime_home().join("data/runtime/webgpu").join(plugin_name);
    std::fs::copy(installed_plugin, plugin.join(plugin_name)).unwrap();
    let status = || {
        let mut status = Command::new(links.join("spotcheck"));
        let status = status.args(["runtime", "status"]).env("SPOTCHECK_HOME", home.path());
        Ended::run(status.env_remove("ORT_DYLIB_PATH"))
    };
    let found = format!("ONNX Runtime 1.32.0 from the packages next to Spotcheck: {}", library.display());
    status().must_succeed().must_show(&[&found, "with the WebGPU plug-in of ONNX Runtime 0.4.0: "]);
    // An old or damaged one that another package needs does not stop Spotcheck: the search goes on.
    std::fs::write(&library, "damaged").unwrap();
    let status = status().must_fail_with(&[INSTALL]);
    let damaged = "the packages next to Spotcheck: the file is not a shared library";
    assert!(status.stdout.contains(damaged), "{}", status.stdout);
}

#[test]
fn explicit_device_never_falls_back() {
    let predict = |device: &str| {
        let args = ["predict", "assets/samples", "--limit", "1", "--model", "efficientnet-lite0"];
        Ended::run(spotcheck(&args).args(["--device", device]))
    };
    let cuda = predict("cuda");
    let cuda = cuda.must_fail_with(&["CUDA cannot be", "CUDA execution provider"]);
    assert_eq!(cuda.stdout, "");
    predict("webgpu").must_fail_with(&["WebGPU cannot be"]);
    assert_eq!(predict("abacus").code, Some(2));
}

#[test]
fn auto_falls_back_and_reports_the_reason() {
    let args = ["predict", "assets/samples", "--limit", "1", "--model", "efficientnet-lite0"];
    let prediction = Ended::run(&mut spotcheck(&args)).must_succeed();
    for line in ["efficientnet-lite0 on CPU", "on CUDA because", "CUDA execution provider", "on WebGPU because"] {
        assert!(prediction.stderr.contains(line), "{line}:\n{}", prediction.stderr);
    }
}

/// A home with the shared runtime and a model small enough for a software GPU.
fn home_with_tiny_model() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let model = home.path().join("data/models/tiny");
    std::fs::create_dir_all(&model).unwrap();
    symlink(runtime_home().join("data/runtime"), home.path().join("data/runtime")).unwrap();
    std::fs::copy(repository().join("tests/device/model.toml"), model.join("model.toml")).unwrap();
    std::fs::copy(repository().join("src/model/onnx/tiny.onnx"), model.join("model.onnx")).unwrap();
    home
}

#[test]
fn webgpu_predictions_match_the_cpu() {
    let home = home_with_tiny_model();
    let predict = |device: &str| {
        let args = ["predict", "assets/samples", "--model", "tiny", "--out", "-"];
        let mut command = spotcheck_at(home.path(), &args);
        command
            .args(["--top-k", "10", "--device", device])
            .envs(software_gpu().iter().map(|(name, value)| (name, value)));
        Ended::run(&mut command).must_succeed()
    };
    let (cpu, webgpu) = (predict("cpu"), predict("webgpu"));
    assert!(webgpu.stderr.contains("tiny on WebGPU"), "{}", webgpu.stderr);
    let (expected, got) = (scores(&cpu.stdout), scores(&webgpu.stdout));
    assert_eq!(got.len(), 80);
    for ((uri, class, got), (_, _, expected)) in got.iter().zip(&expected) {
        assert!(
            (got - expected).abs() <= SCORE_TOLERANCE,
            "{uri}, class {class}: got {got}, expected {expected} ± {SCORE_TOLERANCE}"
        );
    }
}

#[test]
fn auto_skips_software_gpus() {
    let home = home_with_tiny_model();
    let args = ["predict", "assets/samples", "--limit", "1", "--model", "tiny"];
    let mut command = spotcheck_at(home.path(), &args);
    command.envs(software_gpu().iter().map(|(name, value)| (name, value)));
    let prediction = Ended::run(&mut command).must_succeed();
    assert!(prediction.stderr.contains("tiny on CPU"), "{}", prediction.stderr);
    assert!(prediction.stderr.contains("a software adapter"), "{}", prediction.stderr);
}

/// Image, class and score of each line, sorted by image and class.
fn scores(lines: &str) -> Vec<(String, u64, f64)> {
    let mut scores = Vec::new();
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let uri = line["uri"].as_str().unwrap();
        for class in line["classes"].as_array().unwrap() {
            let (index, score) = (&class["index"], &class["score"]);
            scores.push((uri.to_owned(), index.as_u64().unwrap(), score.as_f64().unwrap()));
        }
    }
    scores.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
    scores
}
