//! pip's settings: the user's package index, proxy and certificates apply here as well, without Python.
//!
//! Sources: <https://pip.pypa.io/en/stable/topics/configuration/>

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use directories::BaseDirs;

const FILE_NAME: &str = if cfg!(windows) { "pip.ini" } else { "pip.conf" };

/// The sections that apply, the later before the earlier.
const SECTIONS: [&str; 3] = ["global", "download", "install"];

/// Values by pip's long option: `index-url`, `proxy`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PipSettings(HashMap<String, String>);

impl PipSettings {
    /// The settings in pip's files and environment variables, of which the latter win.
    pub(super) fn read() -> Self {
        let mut settings = Self::default();
        for file in files() {
            match std::fs::read_to_string(&file) {
                Ok(text) => settings.add_file(&text),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => log::warn!("skipped pip's settings: {error}: {}", file.display()),
            }
        }
        let variables = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        for (name, value) in variables {
            if let (Some(option), Ok(value)) = (name.strip_prefix("PIP_"), value.into_string()) {
                settings.0.insert(option_name(option), value);
            }
        }
        settings
    }

    fn add_file(&mut self, text: &str) {
        let lines = lines(text);
        for section in SECTIONS {
            let own = lines.iter().filter(|line| line.section == section);
            self.0.extend(own.map(|line| (line.option.clone(), line.value.clone())));
        }
    }

    /// `None` if it is not set, or empty.
    fn value(&self, option: &str) -> Option<&str> {
        self.0.get(option).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    /// The addresses of package indexes, the main one first. `default` is used if pip would use its own default.
    pub(super) fn indexes<'a>(&'a self, default: Option<&'a str>) -> Vec<&'a str> {
        if self.value("no-index").is_some_and(|value| !["0", "false", "no", "off"].contains(&value)) {
            return Vec::new();
        }
        let main = self.value("index-url").or(default);
        main.into_iter().chain(self.value("extra-index-url").unwrap_or_default().split_whitespace()).collect()
    }

    pub(super) fn proxy(&self) -> Option<String> {
        self.value("proxy").map(str::to_owned)
    }

    pub(super) fn certificates(&self) -> Option<PathBuf> {
        self.value("cert").map(PathBuf::from)
    }
}

/// pip's files, the most important last.
fn files() -> Vec<PathBuf> {
    let named = std::env::var_os("PIP_CONFIG_FILE").map(PathBuf::from);
    if named.as_deref().is_some_and(|named| named == Path::new(if cfg!(windows) { "nul" } else { "/dev/null" })) {
        return Vec::new();
    }
    let replaces_user = named.as_deref().is_some_and(Path::exists);
    let mut files: Vec<PathBuf> = named.into_iter().collect();
    files.extend(global_folders().into_iter().map(|folder| folder.join(FILE_NAME)));
    if let Some(dirs) = BaseDirs::new().filter(|_| !replaces_user) {
        files.push(dirs.home_dir().join(if cfg!(windows) { "pip" } else { ".pip" }).join(FILE_NAME));
        files.push(user_folder(&dirs).join(FILE_NAME));
    }
    let environment = std::env::var_os("VIRTUAL_ENV").map(PathBuf::from);
    files.extend(environment.map(|environment| environment.join(FILE_NAME)));
    files
}

fn user_folder(dirs: &BaseDirs) -> PathBuf {
    let config = dirs.config_dir().join("pip");
    if cfg!(target_os = "macos") && !config.exists() {
        return dirs.home_dir().join(".config/pip");
    }
    config
}

fn global_folders() -> Vec<PathBuf> {
    if cfg!(windows) {
        return std::env::var_os("ProgramData").map(|folder| Path::new(&folder).join("pip")).into_iter().collect();
    }
    if cfg!(target_os = "macos") {
        return vec!["/Library/Application Support/pip".into()];
    }
    let folders = std::env::var_os("XDG_CONFIG_DIRS").filter(|folders| !folders.is_empty());
    let folders = folders.unwrap_or_else(|| "/etc/xdg".into());
    let mut folders: Vec<_> = std::env::split_paths(&folders).map(|folder| folder.join("pip")).collect();
    folders.push("/etc".into());
    folders
}

struct Line {
    section: String,
    option: String,
    value: String,
}

/// The options in a file like Python's `configparser` reads it: an indented line continues the value above it.
fn lines(text: &str) -> Vec<Line> {
    let mut section = String::new();
    let mut lines: Vec<Line> = Vec::new();
    for line in text.lines() {
        let content = line.trim();
        if content.is_empty() || content.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = content.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            name.clone_into(&mut section);
        } else if line.starts_with([' ', '\t'])
            && let Some(last) = lines.last_mut()
        {
            last.value.push('\n');
            last.value.push_str(content);
        } else if let Some((option, value)) = content.split_once(['=', ':']) {
            let value = value.trim().to_owned();
            lines.push(Line { section: section.clone(), option: option_name(option.trim()), value });
        }
    }
    lines
}

/// pip accepts `index_url` and `INDEX_URL` for `index-url`.
fn option_name(name: &str) -> String {
    name.to_lowercase().replace('_', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checked with pip's own `configuration.py`.
    #[test]
    fn settings_are_read_as_pip_reads_them() {
        let mut settings = PipSettings::default();
        settings.add_file(
            "[install]\n\
             index_url = https://install.example/simple\n\
             [global]\n\
             ; a comment\n\
             index-url: https://global.example/simple\n\
             extra-index-url =\n    https://a.example/simple\n    https://b.example/simple\n\
             proxy=http://proxy.example:3128\n\
             cert =\n\
             [wheel]\n\
             cert = /unrelated.pem\n",
        );
        assert_eq!(
            settings.indexes(Some("https://default.example/simple")),
            ["https://install.example/simple", "https://a.example/simple", "https://b.example/simple"]
        );
        assert_eq!(settings.proxy().as_deref(), Some("http://proxy.example:3128"));
        assert_eq!(settings.certificates(), None);
        settings.add_file("[global]\nno-index = true\n");
        assert!(settings.indexes(Some("https://default.example/simple")).is_empty());
    }
}
