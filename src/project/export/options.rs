//! The options of an export. How it is written is up to `export`.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::domain::{ModelTask, one_of};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, EnumString, VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", const_into_str, parse_err_ty = String, parse_err_fn = one_of::<Self>)]
pub enum ExportFormat {
    /// One JSON object per image, as `spotcheck predict --out` writes it.
    Jsonl,
    /// A table with one row per box or class.
    Csv,
    /// One dataset file with scores.
    Coco,
    /// One text file per image.
    Yolo,
    /// One XML file per image.
    Voc,
    /// Images with boxes or classes drawn on them.
    #[serde(rename = "pictures")]
    #[strum(to_string = "images", serialize = "pictures")]
    AnnotatedImages,
    /// One HTML page.
    Report,
}

impl ExportFormat {
    pub fn name(self) -> &'static str {
        match self {
            Self::Jsonl => "JSON Lines",
            Self::Csv => "CSV",
            Self::Coco => "COCO",
            Self::Yolo => "YOLO",
            Self::Voc => "Pascal VOC",
            Self::AnnotatedImages => "Annotated images",
            Self::Report => "HTML report",
        }
    }

    pub fn description(self) -> &'static str {
        match self {
            Self::Jsonl => "One line per image with all data",
            Self::Csv => "One row per box, for spreadsheets",
            Self::Coco => "One dataset file with scores and verdicts",
            Self::Yolo => "One label file per image, for training",
            Self::Voc => "One XML file per image",
            Self::AnnotatedImages => "A folder of images with predictions drawn as on screen",
            Self::Report => "One shareable page: summary, charts, examples",
        }
    }

    /// The extension of the output file; `None` for a folder.
    pub fn extension(self) -> Option<&'static str> {
        match self {
            Self::Jsonl => Some("jsonl"),
            Self::Csv => Some("csv"),
            Self::Coco => Some("json"),
            Self::Report => Some("html"),
            Self::Yolo | Self::Voc | Self::AnnotatedImages => None,
        }
    }

    /// The part of a file or folder name that describes the content: `coco` in `photos-coco.json`.
    pub fn content_word(self) -> &'static str {
        match self {
            Self::Jsonl | Self::Csv => "predictions",
            format => format.into_str(),
        }
    }

    /// Whether the format can hold predictions of this task: dataset formats have only boxes.
    pub fn takes(self, task: ModelTask) -> bool {
        task == ModelTask::Detection || !self.is_dataset()
    }

    /// Whether the format holds only boxes and classes. Verdicts then correct the boxes instead of being written with
    /// them.
    pub fn is_dataset(self) -> bool {
        matches!(self, Self::Coco | Self::Yolo | Self::Voc)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, IntoStaticStr, EnumString, VariantArray)]
#[strum(serialize_all = "lowercase", const_into_str, parse_err_ty = String, parse_err_fn = one_of::<Self>)]
pub enum ComparisonFormat {
    /// One JSON file with the summary and one object per image.
    #[default]
    Json,
    /// A table with one row per image, and a second one with the summary.
    Csv,
    /// A page with the summary and the images that differ most.
    Html,
}

impl ComparisonFormat {
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "JSON",
            Self::Csv => "CSV",
            Self::Html => "HTML report",
        }
    }

    pub fn description(self) -> &'static str {
        match self {
            Self::Html => "A page with the summary, class changes and the images that differ most",
            Self::Json => "One file with a summary and an entry per image",
            Self::Csv => "One row per image, with the summary in NAME-summary.csv",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, VariantArray)]
pub enum EvaluationFormat {
    /// One HTML page.
    #[default]
    Report,
    /// One JSON object with all numbers.
    Json,
    /// A table with one row per class.
    Csv,
    /// A folder with each plot as SVG and PNG.
    Plots,
    /// A table of labels that may be wrong.
    SuspiciousLabels,
}

impl EvaluationFormat {
    pub fn name(self) -> &'static str {
        match self {
            Self::Report => "HTML report",
            Self::Json => "JSON",
            Self::Csv => "CSV",
            Self::Plots => "Plots",
            Self::SuspiciousLabels => "Suspicious labels",
        }
    }

    pub fn description(self) -> &'static str {
        match self {
            Self::Report => "One shareable page: metrics, plots, the most confident errors",
            Self::Json => "All metrics in one file, as written by spotcheck evaluate --out",
            Self::Csv => "One row per class",
            Self::Plots => "A folder with each plot as SVG and PNG",
            Self::SuspiciousLabels => "A CSV file of labels that may be wrong, by the AP that a fix would gain",
        }
    }

    pub fn content(self) -> &'static str {
        match self {
            Self::Report => "Evaluation report",
            Self::Json => "Evaluation metrics",
            Self::Csv => "Class table",
            Self::Plots => "Evaluation plots",
            Self::SuspiciousLabels => "Table of suspicious labels",
        }
    }

    /// The extension of the output file; `None` for a folder.
    pub fn extension(self) -> Option<&'static str> {
        match self {
            Self::Report => Some("html"),
            Self::Json => Some("json"),
            Self::Csv | Self::SuspiciousLabels => Some("csv"),
            Self::Plots => None,
        }
    }
}

/// Whose embeddings are exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum EmbeddedPart {
    Images,
    Boxes,
}

impl EmbeddedPart {
    pub const FORMAT_NAME: &'static str = "Embeddings";
    pub const DESCRIPTION: &'static str = "A NumPy array, and a table with the image of each row";
}

/// What to export of a run, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportOptions {
    pub format: ExportFormat,
    pub boxes: BoxChoice,
    pub verdicts: VerdictChoice,
    /// Whether datasets contain corrections.
    pub classes: ClassChoice,
    /// YOLO: adds the score as a sixth column. Many trainers reject it.
    pub yolo_scores: bool,
    /// YOLO and Pascal VOC: copies the images next to the labels, which makes the folder a complete dataset.
    pub with_images: bool,
    #[serde(rename = "picture_kind")]
    pub annotated_kind: AnnotatedKind,
}

impl ExportOptions {
    pub fn for_format(format: ExportFormat) -> Self {
        Self {
            format,
            boxes: BoxChoice::Visible,
            verdicts: VerdictChoice::All,
            classes: ClassChoice::Judged,
            yolo_scores: false,
            with_images: false,
            annotated_kind: AnnotatedKind::AsImage,
        }
    }

    /// Whether boxes and classes are exported as a person left them. Otherwise, formats other than datasets hold both.
    pub fn applies_corrections(&self) -> bool {
        self.verdicts == VerdictChoice::Corrected || self.format.is_dataset() && self.classes == ClassChoice::Judged
    }
}

/// Which boxes (or classes of a classifier) are exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BoxChoice {
    /// The boxes that the view settings show, and those that a person confirmed.
    Visible,
    /// All stored boxes.
    All,
}

/// Which boxes are exported, by verdict. A box without a verdict inherits that of its image (accept, reject or unsure).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, EnumString, VariantArray)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case", const_into_str, parse_err_ty = String, parse_err_fn = one_of::<Self>)]
pub enum VerdictChoice {
    All,
    /// Without rejected boxes, rejected images, and images that go back to the labeler.
    WithoutRejected,
    /// Ground truth: accepted, corrected and added boxes as a person left them, each with a score of 1, of the images
    /// that the verdicts cover ([`covers_image`](crate::domain::covers_image)). For a classifier, the right class.
    #[serde(alias = "accepted")]
    #[strum(to_string = "corrected", serialize = "accepted")]
    Corrected,
}

impl VerdictChoice {
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "All",
            Self::WithoutRejected => "Without rejected",
            Self::Corrected => "Corrected labels",
        }
    }

    pub fn description(self) -> &'static str {
        match self {
            Self::All => "All predictions with their verdicts",
            Self::WithoutRejected => "Without rejected boxes and images; what has no verdict is exported",
            Self::Corrected => {
                "Ground truth: accepted, corrected and added boxes of images that the verdicts cover completely"
            }
        }
    }
}

/// What a dataset contains after a correction. Other formats hold both the model's box and the person's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClassChoice {
    /// The class and the position that the person gave, and the boxes that the person added.
    Judged,
    /// Only the model's boxes, as it returned them.
    Model,
}

/// The file format of annotated images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, EnumString, VariantArray)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case", const_into_str, parse_err_ty = String, parse_err_fn = one_of::<Self>)]
pub enum AnnotatedKind {
    /// JPEG stays JPEG; everything else becomes PNG.
    AsImage,
    Png,
    Jpeg,
}

impl AnnotatedKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::AsImage => "Same as the images",
            Self::Png => "PNG",
            Self::Jpeg => "JPEG",
        }
    }
}
