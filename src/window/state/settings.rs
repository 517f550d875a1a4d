//! Settings that persist across sessions.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use strum::VariantArray;

use super::{CompareLayout, EndpointDraft, JobDraft, JobId, RehearsalOptions};
use crate::domain::{DeviceChoice, Look, ModelCard, S3Place, ViewSettings};
use crate::sagemaker::spec::remote_model::RemoteModel;

const MAX_RECENT: usize = 10;

pub const MEGAPIXELS: RangeInclusive<u64> = 1..=65_536;

/// Stored in the configuration folder. Fields missing in an older file take their defaults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own on screen")]
pub struct Settings {
    pub theme: ThemeChoice,
    /// `1.0` is the system's own size.
    pub interface_zoom: f32,
    /// The size in points.
    pub thumbnail_side: f32,
    pub show_images_panel: bool,
    /// The folder tree below the thumbnails.
    pub show_folders: bool,
    pub show_inspector: bool,
    pub show_tasks_panel: bool,
    /// The time per image in presentation mode, in seconds.
    pub slide_secs: f32,
    /// Whether a presentation shows the model, and the position, name and note of the image.
    pub show_caption: bool,
    /// Whether to show the judging bar below the image.
    pub show_judging: bool,
    /// Who judges: written with each verdict. Empty for nobody.
    pub reviewer: String,
    /// Whether the window has asked for the reviewer, which it does once.
    pub asked_for_reviewer: bool,
    /// The version that ran last, to offer the list of changes after an update.
    pub seen_version: String,
    pub show_thumbnail_boxes: bool,
    /// Whether to show boxes stored with an image.
    pub show_stored_boxes: bool,
    /// Whether boxes on the image have neither labels nor marks.
    pub outlines_only: bool,
    /// See [`Look`].
    brightness: f32,
    contrast: f32,
    /// Whether a verdict on a single image advances to the next image, and one on a box to the next box.
    pub next_after_verdict: bool,
    /// Whether thumbnails replace the image.
    pub thumbnails_only: bool,
    /// Newest first.
    pub recent: Vec<PathBuf>,
    /// S3 locations, newest first.
    pub recent_places: Vec<S3Place>,
    /// Used remote models, newest first.
    pub recent_remote_models: Vec<RemoteModel>,
    /// The id of the last used model.
    pub model: Option<String>,
    /// Ids of the models whose download is no longer offered.
    pub dismissed_offers: BTreeSet<String>,
    /// The assumptions about a model that the user confirmed, by model id.
    confirmed_assumptions: BTreeMap<String, Vec<String>>,
    pub device: DeviceChoice,
    pub batch: Option<usize>,
    pub threads: Option<usize>,
    /// An ONNX Runtime library to use instead of the detected ones.
    pub runtime_library: Option<PathBuf>,
    pub compare_layout: CompareLayout,
    /// The line between the sides of a divided image, `0.0..=1.0` of its visible width.
    pub divider: f32,
    /// The fields of the last job form that the next one may reuse.
    pub job: JobDraft,
    /// The fields of the last endpoint form that the next one may reuse.
    pub endpoint: EndpointDraft,
    /// Watched jobs, so that watching continues after a restart.
    pub watched_jobs: Vec<JobId>,
    /// The options for local tests of jobs.
    pub rehearsal: RehearsalOptions,
    /// Whether opening an image predicts it.
    pub predict_on_open: bool,
    /// Whether predicting saves embeddings next to the project.
    pub save_embeddings: bool,
    /// How much the explanation dims the image, `0.0..=1.0`.
    pub explanation_opacity: f32,
    /// The limit above which images are rejected.
    pub max_megapixels: u64,
    /// The size limit of the disk cache for thumbnails and images from S3; 0 disables it.
    #[serde(alias = "thumbnail_cache_bytes")]
    pub cache_bytes: u64,
    /// The live filters of the open project by model id. The project stores them.
    #[serde(skip)]
    views: BTreeMap<String, ViewSettings>,
    /// The classes that the user assigned to the digits 1 to 9, by model id.
    class_digits: BTreeMap<String, BTreeMap<u8, String>>,
}

/// A number of the settings that only changes what is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, VariantArray)]
pub enum ViewNumber {
    InterfaceZoom,
    ThumbnailSide,
    SlideSecs,
    ExplanationOpacity,
    Brightness,
    Contrast,
    Divider,
}

impl ViewNumber {
    pub const fn range(self) -> RangeInclusive<f32> {
        match self {
            Self::InterfaceZoom => 0.5..=3.0,
            Self::ThumbnailSide => 72.0..=256.0,
            Self::SlideSecs => 1.0..=60.0,
            Self::ExplanationOpacity | Self::Divider => 0.0..=1.0,
            Self::Brightness => -1.0..=1.0,
            Self::Contrast => 0.2..=4.0,
        }
    }

    fn value_in(self, settings: &mut Settings) -> &mut f32 {
        match self {
            Self::InterfaceZoom => &mut settings.interface_zoom,
            Self::ThumbnailSide => &mut settings.thumbnail_side,
            Self::SlideSecs => &mut settings.slide_secs,
            Self::ExplanationOpacity => &mut settings.explanation_opacity,
            Self::Brightness => &mut settings.brightness,
            Self::Contrast => &mut settings.contrast,
            Self::Divider => &mut settings.divider,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThemeChoice {
    #[default]
    System,
    Light,
    Dark,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            theme: ThemeChoice::System,
            interface_zoom: 1.0,
            thumbnail_side: 112.0,
            show_images_panel: true,
            show_folders: false,
            show_inspector: true,
            show_tasks_panel: false,
            slide_secs: 5.0,
            show_caption: false,
            show_judging: true,
            reviewer: String::new(),
            asked_for_reviewer: false,
            seen_version: env!("CARGO_PKG_VERSION").to_owned(),
            show_thumbnail_boxes: false,
            show_stored_boxes: true,
            outlines_only: false,
            brightness: Look::default().brightness,
            contrast: Look::default().contrast,
            next_after_verdict: true,
            thumbnails_only: false,
            recent: Vec::new(),
            recent_places: Vec::new(),
            recent_remote_models: Vec::new(),
            model: None,
            dismissed_offers: BTreeSet::new(),
            confirmed_assumptions: BTreeMap::new(),
            device: DeviceChoice::Auto,
            batch: None,
            threads: None,
            runtime_library: None,
            compare_layout: CompareLayout::default(),
            divider: 0.5,
            job: JobDraft::default(),
            endpoint: EndpointDraft::default(),
            watched_jobs: Vec::new(),
            rehearsal: RehearsalOptions::default(),
            predict_on_open: true,
            save_embeddings: true,
            explanation_opacity: 0.65,
            max_megapixels: 512,
            cache_bytes: 1 << 30,
            class_digits: BTreeMap::new(),
            views: BTreeMap::new(),
        }
    }
}

impl Settings {
    /// The name to save with verdicts.
    pub fn reviewer_name(&self) -> Option<String> {
        Some(self.reviewer.trim().to_owned()).filter(|name| !name.is_empty())
    }

    /// Corrects values in the settings file that would make the window unusable, such as a zoom of zero.
    pub fn checked(mut self) -> Self {
        for &number in ViewNumber::VARIANTS {
            let value = *number.value_in(&mut self);
            let usual = *number.value_in(&mut Self::default());
            self.set(number, if value.is_finite() { value } else { usual });
        }
        self.max_megapixels = self.max_megapixels.clamp(*MEGAPIXELS.start(), *MEGAPIXELS.end());
        self.recent.truncate(MAX_RECENT);
        self
    }

    pub(crate) fn set(&mut self, number: ViewNumber, value: f32) {
        let range = number.range();
        *number.value_in(self) = value.clamp(*range.start(), *range.end());
    }

    /// How the image is drawn.
    pub fn look(&self) -> Look {
        Look { brightness: self.brightness, contrast: self.contrast }
    }

    pub(crate) fn remember_recent(&mut self, path: &Path) {
        self.recent.retain(|known| known != path);
        self.recent.insert(0, path.to_owned());
        self.recent.truncate(MAX_RECENT);
    }

    /// Remembers a location with the access used last.
    pub(crate) fn remember_place(&mut self, place: &S3Place) {
        self.forget_place(place);
        self.recent_places.insert(0, place.clone());
        self.recent_places.truncate(MAX_RECENT);
    }

    /// Replaces the earlier settings of a remote model with these.
    pub(crate) fn remember_remote_model(&mut self, model: &RemoteModel) {
        self.recent_remote_models.retain(|known| known.at != model.at);
        self.recent_remote_models.insert(0, model.clone());
        self.recent_remote_models.truncate(MAX_RECENT);
    }

    pub(crate) fn forget_place(&mut self, place: &S3Place) {
        let identity = place.identity();
        self.recent_places.retain(|known| known.identity() != identity);
    }

    /// Whether the user confirmed the assumptions about this model and no others were added since.
    pub fn has_confirmed_assumptions(&self, card: &ModelCard) -> bool {
        self.confirmed_assumptions.get(&card.id) == Some(&card.assumed)
    }

    pub(crate) fn confirm_assumptions(&mut self, card: &ModelCard) {
        self.confirmed_assumptions.insert(card.id.clone(), card.assumed.clone());
    }

    /// The classes of a model that digits choose, lowest digit first.
    pub fn class_digits(&self, model_id: &str) -> impl Iterator<Item = (u8, &str)> {
        let digits = self.class_digits.get(model_id).into_iter().flatten();
        digits.map(|(digit, class)| (*digit, class.as_str()))
    }

    /// Lets a digit choose a class and no other digit choose it; frees the digit if it does already. Returns whether it
    /// chooses the class now.
    pub(crate) fn toggle_class_digit(&mut self, model_id: &str, digit: u8, class: &str) -> bool {
        let digits = self.class_digits.entry(model_id.to_owned()).or_default();
        let frees = digits.get(&digit).is_some_and(|known| known == class);
        digits.retain(|_, known| known != class);
        if !frees {
            digits.insert(digit, class.to_owned());
        }
        !frees
    }

    pub(crate) fn reset_class_digits(&mut self, model_id: &str) {
        self.class_digits.remove(model_id);
    }

    pub(crate) fn view_of(&self, card: &ModelCard) -> Cow<'_, ViewSettings> {
        self.views.get(&card.id).map_or_else(|| Cow::Owned(ViewSettings::from_card(card)), Cow::Borrowed)
    }

    pub(crate) fn view_of_mut(&mut self, card: &ModelCard) -> &mut ViewSettings {
        self.views.entry(card.id.clone()).or_insert_with(|| ViewSettings::from_card(card))
    }

    /// Returns to the default filters: those of one project do not apply to another.
    pub(crate) fn forget_views(&mut self) {
        self.views.clear();
    }

    pub(crate) fn set_view(&mut self, model_id: &str, view: ViewSettings) {
        self.views.insert(model_id.to_owned(), view);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_round_trip() {
        let settings = Settings { theme: ThemeChoice::Dark, ..Settings::default() };
        let text = serde_json::to_string(&settings).unwrap();
        assert_eq!(serde_json::from_str::<Settings>(&text).unwrap(), settings);
    }

    #[test]
    fn older_settings_use_defaults() {
        let settings: Settings = serde_json::from_str(r#"{"theme":"light","gone":1}"#).unwrap();
        assert_eq!(settings.theme, ThemeChoice::Light);
        assert!(settings.predict_on_open);
    }

    #[test]
    fn invalid_settings_are_clamped() {
        let settings =
            Settings { interface_zoom: 0.0, thumbnail_side: f32::NAN, max_megapixels: 0, ..Settings::default() }
                .checked();
        assert!(settings.interface_zoom >= 0.5);
        assert!(ViewNumber::ThumbnailSide.range().contains(&settings.thumbnail_side));
        assert!(MEGAPIXELS.contains(&settings.max_megapixels));
    }

    #[test]
    fn reopened_folder_moves_to_the_front() {
        let mut settings = Settings::default();
        for path in ["a", "b", "a"] {
            settings.remember_recent(Path::new(path));
        }
        assert_eq!(settings.recent, [PathBuf::from("a"), PathBuf::from("b")]);
    }
}
