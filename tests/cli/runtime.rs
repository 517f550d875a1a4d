//! Finding, installing and rejecting ONNX Runtime, and the devices it runs on, with the real program, the real pip and
//! the real libraries.

#![cfg(unix)]

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::ended::Ended;
use crate::support::{repository, runtime_home, software_gpu, spotcheck, spotcheck_at};

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

#[test]
fn install_without_python_shows_commands() {
    let home = tempfile::tempdir().unwrap();
    let mut predict = spotcheck_at(home.path(), &["predict", "assets/samples", "--model", "efficientnet-lite0"]);
    Ended::run(predict.env("PATH", home.path())).must_fail_with(&[
        "apt-get install python3-pip",
        "pip download",
        "onnxruntime==1.32.0",
        INSTALL,
        "--from FILE.whl",
    ]);
}

#[test]
fn python_without_pip_is_distinguished() {
    let home = tempfile::tempdir().unwrap();
    let python = home.path().join("python3");
    std::fs::write(&python, "#!/bin/sh\necho \"$0: No module named pip\" >&2\nexit 1\n").unwrap();
    make_executable(&python);
    let mut install = spotcheck_at(home.path(), &["runtime", "install", "cpu"]);
    Ended::run(install.env("PATH", home.path())).must_fail_with(&["no pip", "apt-get install python3-pip"]);
}

fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn install_without_network_explains_offline_use() {
    let home = tempfile::tempdir().unwrap();
    let mut install = spotcheck_at(home.path(), &["runtime", "install", "cpu"]);
    install
        .env("PIP_CONFIG_FILE", "/dev/null")
        .env("PIP_CACHE_DIR", home.path())
        .env("PIP_INDEX_URL", "http://127.0.0.1:9/simple");
    Ended::run(&mut install).must_fail_with(&["Python package index", "pip download"]);
    assert!(!home.path().join("data/runtime/cpu").exists());
}

#[test]
fn foreign_wheel_with_the_right_name_is_refused() {
    let (home, index) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let name = format!("onnxruntime-1.32.0-cp311-cp311-manylinux_2_28_{}.whl", std::env::consts::ARCH);
    let metadata = b"Metadata-Version: 2.1\nName: onnxruntime\nVersion: 1.32.0\n";
    wheel(&index.path().join(name), &[(METADATA, metadata)]);
    let mut install = spotcheck_at(home.path(), &["runtime", "install", "cpu"]);
    install.env("PIP_CONFIG_FILE", "/dev/null").env("PIP_NO_INDEX", "1").env("PIP_FIND_LINKS", index.path());
    Ended::run(&mut install).must_fail_with(&["an unexpected sha256", "was not installed", "Got"]);
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
    let start = || {
        let mut install = spotcheck_at(home.path(), &["runtime", "install", "cpu"]);
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
fn ctrl_c_ends_pip_and_leaves_no_files() {
    let home = tempfile::tempdir().unwrap();
    let (python, started) = (home.path().join("python3"), home.path().join("started"));
    Ended::run(Command::new("mkfifo").arg(&started)).must_succeed();
    let script = format!("#!/bin/sh\necho $$ >{}\nexec /bin/sleep 600\n", started.display());
    std::fs::write(&python, script).unwrap();
    make_executable(&python);
    let mut install = spotcheck_at(home.path(), &["runtime", "install", "cpu"]);
    install.env("PATH", home.path()).stderr(Stdio::piped());
    let install = install.spawn().unwrap();
    // Opening the pipe waits for the other side.
    let pip = std::fs::read_to_string(&started).unwrap();
    let kill = |signal: &str, process: &str| {
        let mut kill = Command::new("kill");
        Ended::run(kill.args([signal, process])).code == Some(0)
    };
    assert!(kill("-INT", &install.id().to_string()));
    let output = install.wait_with_output().unwrap();
    let messages = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{messages}");
    assert!(messages.contains("error: Canceled"), "{messages}");
    assert!(!kill("-0", pip.trim()), "pip runs");
    let left = std::fs::read_dir(home.path().join("data/runtime")).unwrap();
    assert_eq!(left.count(), 1, "the lock file");
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
