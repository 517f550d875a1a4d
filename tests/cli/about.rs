//! The program about itself: versions, diagnostics, completion scripts and manual pages.

use std::process::Command;

use crate::support::ended::Ended;
use crate::support::{spotcheck, spotcheck_at};

#[test]
fn version_names_the_runtime() {
    let version = Ended::run(&mut spotcheck(&["--version"])).must_succeed();
    let lines: Vec<&str> = version.stdout.lines().collect();
    assert!(lines[0].starts_with(concat!("spotcheck ", env!("CARGO_PKG_VERSION"))), "{lines:?}");
    assert!(lines[1].starts_with("ONNX Runtime 1.32.0 from "), "{lines:?}");
    let home = tempfile::tempdir().unwrap();
    let version = Ended::run(&mut spotcheck_at(home.path(), &["-V"])).must_succeed();
    version.must_show(&["ONNX Runtime not installed"]);
}

#[test]
fn diagnostics_name_folders_runtime_and_models() {
    let home = tempfile::tempdir().unwrap();
    let found = Ended::run(&mut spotcheck_at(home.path(), &["diagnostics"])).must_succeed();
    let data = format!("data: {}", home.path().join("data").display());
    found.must_show(&[&data, "system: linux", "ORT_DYLIB_PATH: nothing", "efficientnet-lite0"]);
    assert!(!home.path().join("data").exists());
}

/// bash itself completes the names of commands and options.
#[test]
fn bash_completes_commands_and_options() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("spotcheck.bash");
    std::fs::write(&script, Ended::run(&mut spotcheck(&["completions", "bash"])).must_succeed().stdout).unwrap();
    let complete = |words: &str, count: usize| {
        let ask = format!(
            "source {}; COMP_WORDS=({words}); COMP_CWORD={count}; _spotcheck spotcheck \"${{COMP_WORDS[{count}]}}\" ''; \
             echo \"${{COMPREPLY[@]}}\"",
            script.display()
        );
        Ended::run(Command::new("bash").args(["-c", &ask])).must_succeed().stdout
    };
    assert_eq!(complete("spotcheck pred", 1).trim(), "predict");
    assert_eq!(complete("spotcheck predict --resu", 2).trim(), "--resume");
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        let script = Ended::run(&mut spotcheck(&["completions", shell])).must_succeed().stdout;
        assert!(script.contains("endpoint"), "{shell}");
    }
}

#[test]
fn each_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    Ended::run(spotcheck(&["man"]).arg(folder.path())).must_succeed();
    let help = Ended::run(&mut spotcheck(&["help"])).must_succeed().stdout;
    let commands = help.split("Commands:").nth(1).unwrap().split("Arguments:").next().unwrap();
    let names: Vec<&str> = commands.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.len() > 10, "{names:?}");
    for name in names.into_iter().filter(|name| *name != "help") {
        let page = std::fs::read_to_string(folder.path().join(format!("spotcheck-{name}.1"))).unwrap();
        assert!(page.contains(".SH SYNOPSIS"), "{name}");
    }
    assert!(folder.path().join("spotcheck.1").exists());
}
