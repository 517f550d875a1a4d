//! Strips the program on Linux, and names the Python package index that `runtime install` uses unless pip's settings
//! name another one: the value of `SPOTCHECK_PACKAGE_INDEX`, or pip's own default.

use std::process::Command;

const PRINT_DEFAULT: &str = "from pip._internal.models.index import PyPI; print(PyPI.simple_url)";

fn main() {
    println!("cargo:rerun-if-changed=packaging/build.rs");
    println!("cargo:rerun-if-env-changed=SPOTCHECK_PACKAGE_INDEX");
    // Names of functions are 20 of 80 MB, and messages of panics name file and line without them. `strip` in the profile
    // would do the same to every dependency and to the tests.
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-link-arg-bins=-Wl,--strip-all");
    }
    match std::env::var("SPOTCHECK_PACKAGE_INDEX").ok().or_else(default_of_pip) {
        Some(index) => println!("cargo:rustc-env=SPOTCHECK_PACKAGE_INDEX={index}"),
        None => println!(
            "cargo:warning=Python with pip was not found: this program will ask for PIP_INDEX_URL to install ONNX Runtime"
        ),
    }
}

fn default_of_pip() -> Option<String> {
    ["python3", "python"].iter().find_map(|python| {
        let output = Command::new(python).args(["-c", PRINT_DEFAULT]).output().ok()?;
        let index = String::from_utf8(output.stdout).ok()?.trim().to_owned();
        (output.status.success() && index.starts_with("http")).then_some(index)
    })
}
