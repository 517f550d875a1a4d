//! What a person can choose about an export. How it is written is the business of `export`.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

use super::{ModelTask, one_of};

/// The form in which images, predictions and verdicts leave Spotcheck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, EnumString, VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", const_into_str, parse_err_ty = String, parse_err_fn = one_of::<Self>)]
pub enum ExportFormat {
    /// One JSON object per image, as `spotcheck predict --out` writes it.
    Jsonl,
    /// A table with a row a box, or a row a class.
    Csv,
    /// One dataset file with scores.
    Coco,
    /// A text file an image.
    Yolo,
    /// An XML file an image.
    Voc,
    /// The images with boxes or classes drawn over them.
    #[serde(rename = "pictures")]
    #[strum(to_string = "images", serialize = "pictures")]
    AnnotatedImages,
    /// One HTML page.
    Report,
}

impl ExportFormat {
    /// The name on screen.
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

    /// What one gets.
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

    /// The extension of the one file that is written; `None` if it is a folder.
    pub fn extension(self) -> Option<&'static str> {
        match self {
            Self::Jsonl => Some("jsonl"),
            Self::Csv => Some("csv"),
            Self::Coco => Some("json"),
            Self::Report => Some("html"),
            Self::Yolo | Self::Voc | Self::AnnotatedImages => None,
        }
    }

    /// The part of a file or folder name that stands for its content: `coco` in `photos-coco.json`.
    pub fn content_word(self) -> &'static str {
        match self {
            Self::Jsonl | Self::Csv => "predictions",
            format => format.into_str(),
        }
    }

    /// Whether the format can hold predictions of this task: the dataset formats have only boxes.
    pub fn takes(self, task: ModelTask) -> bool {
        task == ModelTask::Detection || !self.is_dataset()
    }

    /// Formats that hold only boxes and their classes: what is judged is put right in them instead of being written
    /// beside.
    pub fn is_dataset(self) -> bool {
        matches!(self, Self::Coco | Self::Yolo | Self::Voc)
    }
}

/// The form in which the comparison of two runs leaves Spotcheck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, IntoStaticStr, EnumString, VariantArray)]
#[strum(serialize_all = "lowercase", const_into_str, parse_err_ty = String, parse_err_fn = one_of::<Self>)]
pub enum ComparisonFormat {
    /// One JSON file with the summary and an object per image.
    #[default]
    Json,
    /// A table with a row an image, and a second one with the summary.
    Csv,
}

impl ComparisonFormat {
    /// The name on screen.
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "JSON",
            Self::Csv => "CSV",
        }
    }

    /// What one gets.
    pub fn description(self) -> &'static str {
        match self {
            Self::Json => "One file with a summary and an entry per image",
            Self::Csv => "One row per image, with the summary in NAME-summary.csv",
        }
    }
}

/// The form in which an evaluation leaves Spotcheck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, VariantArray)]
pub enum EvaluationFormat {
    /// One HTML page.
    #[default]
    Report,
    /// One JSON object with all numbers.
    Json,
    /// A table with a row a class.
    Csv,
    /// A folder with each plot as SVG and PNG.
    Plots,
}

impl EvaluationFormat {
    /// The name on screen.
    pub fn name(self) -> &'static str {
        match self {
            Self::Report => "HTML report",
            Self::Json => "JSON",
            Self::Csv => "CSV",
            Self::Plots => "Plots",
        }
    }

    /// What one gets.
    pub fn description(self) -> &'static str {
        match self {
            Self::Report => "One shareable page: metrics, plots, the most confident errors",
            Self::Json => "All metrics in one file, as written by spotcheck evaluate --out",
            Self::Csv => "One row per class",
            Self::Plots => "A folder with each plot as SVG and PNG",
        }
    }

    /// What was written.
    pub fn content(self) -> &'static str {
        match self {
            Self::Report => "Evaluation report",
            Self::Json => "Evaluation metrics",
            Self::Csv => "Class table",
            Self::Plots => "Evaluation plots",
        }
    }

    /// The extension of the one file that is written; `None` if it is a folder.
    pub fn extension(self) -> Option<&'static str> {
        match self {
            Self::Report => Some("html"),
            Self::Json => Some("json"),
            Self::Csv => Some("csv"),
            Self::Plots => None,
        }
    }
}

/// What of the run is exported, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportOptions {
    pub format: ExportFormat,
    pub boxes: BoxChoice,
    pub verdicts: VerdictChoice,
    /// Whose classes datasets hold.
    pub classes: ClassChoice,
    /// YOLO: a sixth column with the score. Many trainers refuse it.
    pub yolo_scores: bool,
    /// YOLO and Pascal VOC: copies of the images beside the labels, so that the folder is a whole dataset.
    pub with_images: bool,
    #[serde(rename = "picture_kind")]
    pub annotated_kind: AnnotatedKind,
}

impl ExportOptions {
    /// The defaults of a format.
    pub fn of_format(format: ExportFormat) -> Self {
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

/// Which judged and unjudged boxes are exported. A box without a verdict of its own has the one of its image (accept,
/// reject or unsure).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, EnumString, VariantArray)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case", const_into_str, parse_err_ty = String, parse_err_fn = one_of::<Self>)]
pub enum VerdictChoice {
    All,
    /// Neither rejected boxes nor rejected images.
    WithoutRejected,
    /// Only accepted boxes, and those judged to be of another class, which are exported as that class.
    Accepted,
}

impl VerdictChoice {
    /// The name on screen.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "All",
            Self::WithoutRejected => "Without rejected",
            Self::Accepted => "Only accepted",
        }
    }
}

/// Which class a box has in a dataset that was judged to be of another class. The other formats hold both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClassChoice {
    /// The right one, if it is one of the model's labels.
    Judged,
    /// The model's predictions.
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
    /// The name on screen.
    pub fn name(self) -> &'static str {
        match self {
            Self::AsImage => "Same as the images",
            Self::Png => "PNG",
            Self::Jpeg => "JPEG",
        }
    }
}
