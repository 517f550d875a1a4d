//! Persists settings in `settings.json` in the configuration folder.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::window::state::Settings;

const FILE_NAME: &str = "settings.json";

/// Remembers what was written last, so that unchanged settings cost nothing.
pub(crate) struct SettingsFile {
    path: PathBuf,
    written: String,
}

impl SettingsFile {
    pub(crate) fn new(config: &Path) -> Self {
        Self { path: config.join(FILE_NAME), written: String::new() }
    }

    /// Defaults if there is no file. An unreadable file is kept as `settings.json.unreadable`, because the next write
    /// would replace it, and the log reports it.
    pub(crate) fn read(&mut self) -> Settings {
        match std::fs::read_to_string(&self.path) {
            Ok(text) => serde_json::from_str::<Settings>(&text)
                .inspect(|_| self.written = text)
                .unwrap_or_else(|error| self.set_aside(&error)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Settings::default(),
            Err(error) => self.set_aside(&error),
        }
        .checked()
    }

    fn set_aside(&self, error: &dyn std::error::Error) -> Settings {
        let aside = self.path.with_extension("json.unreadable");
        let kept = std::fs::rename(&self.path, &aside);
        log::warn!(
            "{} could not be read, starting with defaults: {error}; {}",
            self.path.display(),
            match kept {
                Ok(()) => format!("the unreadable file is now {}", aside.display()),
                Err(error) => format!("no backup could be made: {error}"),
            }
        );
        Settings::default()
    }

    /// Replaces the file atomically; a few kilobytes, and only after a change. Errors are logged.
    pub(crate) fn write(&mut self, settings: &Settings) {
        let text = match serde_json::to_string_pretty(settings) {
            Ok(text) if text == self.written => return,
            Ok(text) => text,
            Err(error) => return log::error!("the settings could not be written: {error}"),
        };
        match self.replace(&text) {
            Ok(()) => self.written = text,
            Err(error) => log::error!("the settings could not be written: {error}: {}", self.path.display()),
        }
    }

    fn replace(&self, text: &str) -> std::io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.persist(&self.path)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_restored_at_start() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("not yet there");
        let mut file = SettingsFile::new(&config);
        let mut settings = file.read();
        settings.predict_on_open = false;
        file.write(&settings);
        assert_eq!(SettingsFile::new(&config).read(), settings);
    }

    #[test]
    fn unreadable_settings_are_kept_aside() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE_NAME), "{ half a").unwrap();
        let mut file = SettingsFile::new(folder.path());
        assert_eq!(file.read(), Settings::default());
        file.write(&Settings::default());
        let aside = folder.path().join("settings.json.unreadable");
        assert_eq!(std::fs::read_to_string(aside).unwrap(), "{ half a");
    }
}
