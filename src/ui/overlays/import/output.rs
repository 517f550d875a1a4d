//! The rows about the outputs of a model.

use eframe::egui::{CollapsingHeader, ComboBox, Ui};
use strum::VariantArray;

use super::super::super::widgets::{checkbox_ui, strong};
use super::rows::{CONTROL_WIDTH, Rows, columns, list, menu, number, optional_columns, optional_number, port};
use crate::domain::{
    Activation, Background, BoxFormat, BoxSpace, CellPoint, ClassValues, ClassificationOutput, DetectionOutput, Grid,
    GridCoding, LabelChoice, ModelCard, OutputConvention,
};
use crate::state::{ImportPort, ImportStart};

pub(super) fn output_ui(ui: &mut Ui, rows: &mut Rows<'_>, card: &mut ModelCard, start: &ImportStart) {
    ui.label(strong("Output"));
    match &mut card.output {
        OutputConvention::Classification(output) => classes_ui(ui, rows, output, &start.outputs),
        OutputConvention::Detection(output) => {
            boxes_ui(ui, rows, output, &start.outputs);
            scores_ui(ui, rows, output, &start.outputs);
            suppression_ui(ui, rows, output);
            let is_rare = [output.batch_index.is_some(), output.angle.is_some(), output.count.is_some()];
            let is_open = output.grid.is_some() || is_rare.contains(&true);
            let fold = CollapsingHeader::new("Rarely needed").default_open(is_open);
            fold.show_unindented(ui, |ui| {
                rare_ui(ui, rows, output, &start.outputs);
                grid_ui(ui, rows, output);
            });
        }
    }
}

fn classes_ui(ui: &mut Ui, rows: &mut Rows<'_>, output: &mut ClassificationOutput, ports: &[ImportPort]) {
    let path = |field| format!("output.classification.{field}");
    rows.row(ui, &path("name"), "Output", |ui| port(ui, "Output", &mut output.name, ports, None));
    rows.row(ui, &path("values"), "Values", |ui| menu(ui, "Values", &mut output.values, ClassValues::VARIANTS));
    if output.values != ClassValues::ArgMax {
        background_ui(ui, rows, &path("background"), &mut output.background);
    }
}

fn background_ui(ui: &mut Ui, rows: &mut Rows<'_>, path: &str, background: &mut Background) {
    rows.row(ui, path, "Background", |ui| menu(ui, "Background", background, Background::VARIANTS));
}

fn path(field: &str) -> String {
    format!("output.detection.{field}")
}

fn boxes_ui(ui: &mut Ui, rows: &mut Rows<'_>, output: &mut DetectionOutput, ports: &[ImportPort]) {
    rows.row(ui, &path("boxes"), "Boxes", |ui| columns(ui, "Boxes", &mut output.boxes, ports));
    rows.row(ui, &path("candidates_last"), "Candidates", |ui| {
        checkbox_ui(ui, &mut output.candidates_last, "Last dimension");
    });
    if output.grid.is_some() {
        // The coding decides them.
        return;
    }
    rows.row(ui, &path("box_format"), "Box format", |ui| {
        menu(ui, "Box format", &mut output.box_format, BoxFormat::VARIANTS);
    });
    rows.row(ui, &path("box_space"), "Box space", |ui| {
        menu(ui, "Box space", &mut output.box_space, BoxSpace::VARIANTS);
    });
}

fn scores_ui(ui: &mut Ui, rows: &mut Rows<'_>, output: &mut DetectionOutput, ports: &[ImportPort]) {
    rows.row(ui, &path("scores"), "Scores", |ui| columns(ui, "Scores", &mut output.scores, ports));
    rows.row(ui, &path("labels"), "Class", |ui| {
        optional_columns(ui, "Class", &mut output.labels, ports, Some("A score for each class"));
    });
    rows.row(ui, &path("activation"), "Activation", |ui| {
        menu(ui, "Activation", &mut output.activation, Activation::VARIANTS);
    });
    if output.labels.is_none() {
        rows.row(ui, &path("classes"), "Class columns", |ui| {
            optional_number(ui, "Class columns", &mut output.classes, 80, 1..=100_000, "up to the last column");
        });
        rows.row(ui, &path("label_choice"), "Each candidate", |ui| {
            menu(ui, "Each candidate", &mut output.label_choice, LabelChoice::VARIANTS);
        });
        background_ui(ui, rows, &path("background"), &mut output.background);
    }
    rows.row(ui, &path("objectness"), "Objectness", |ui| {
        optional_columns(ui, "Objectness", &mut output.objectness, ports, Some("None"));
    });
    rows.row(ui, &path("class_offset"), "Class offset", |ui| {
        number(ui, "Class offset", &mut output.class_offset, -1000..=1000, "");
    });
}

fn suppression_ui(ui: &mut Ui, rows: &mut Rows<'_>, output: &mut DetectionOutput) {
    rows.row(ui, &path("max_boxes"), "Most boxes", |ui| {
        optional_number(ui, "Most boxes", &mut output.max_boxes, 300, 1..=100_000, "all");
    });
    rows.row(ui, &path("nms_iou"), "NMS (IoU)", |ui| {
        optional_number(ui, "NMS (IoU)", &mut output.nms_iou, 0.7, 0.0..=1.0, "none");
    });
}

fn rare_ui(ui: &mut Ui, rows: &mut Rows<'_>, output: &mut DetectionOutput, ports: &[ImportPort]) {
    rows.row(ui, &path("count"), "Box count", |ui| port(ui, "Box count", &mut output.count, ports, Some("None")));
    rows.row(ui, &path("batch_index"), "Image number", |ui| {
        optional_columns(ui, "Image number", &mut output.batch_index, ports, Some("None"));
    });
    if output.box_format == BoxFormat::Cxcywh {
        rows.row(ui, &path("angle"), "Angle", |ui| {
            optional_columns(ui, "Angle", &mut output.angle, ports, Some("None"));
        });
    }
}

/// Boxes that are relative to the cells of a grid.
fn grid_ui(ui: &mut Ui, rows: &mut Rows<'_>, output: &mut DetectionOutput) {
    rows.row(ui, &path("grid"), "Box decoding", |ui| {
        let text = |grid: Option<&Grid>| match grid.map(|grid| &grid.coding) {
            None => "None: boxes are decoded",
            Some(GridCoding::Offsets {}) => "Offsets (YOLOX)",
            Some(GridCoding::DistanceBins { .. }) => "Distance bins (NanoDet)",
            Some(GridCoding::Anchors { .. }) => "Anchors (YOLOv5)",
        };
        let chosen = text(output.grid.as_ref());
        let combo = ComboBox::from_id_salt("grid").width(CONTROL_WIDTH).selected_text(chosen).truncate();
        let combo = combo.show_ui(ui, |ui| {
            for (grid, format) in grids(output.grid.as_ref()) {
                let name = text(grid.as_ref());
                if ui.selectable_label(name == chosen, name).clicked() && name != chosen {
                    output.grid = grid;
                    output.box_format = format.unwrap_or(output.box_format);
                    output.box_space = BoxSpace::ModelPixels;
                }
            }
        });
        combo.response.accessible_name("Box decoding");
    });
    let Some(grid) = &mut output.grid else {
        return;
    };
    rows.row(ui, &path("grid.strides"), "Strides", |ui| {
        list(ui, "Strides", &mut grid.strides, "8, 16, 32", ToString::to_string, |text| text.parse().ok());
    });
    match &mut grid.coding {
        GridCoding::Offsets {} => {}
        GridCoding::DistanceBins { bins, point } => {
            rows.row(ui, &path("grid.coding.distance-bins.bins"), "Bins", |ui| {
                number(ui, "Bins", bins, 1..=1024, "");
            });
            rows.row(ui, &path("grid.coding.distance-bins.point"), "Point of a cell", |ui| {
                menu(ui, "Point of a cell", point, CellPoint::VARIANTS);
            });
        }
        GridCoding::Anchors { sizes } => {
            rows.row(ui, &path("grid.coding.anchors.sizes"), "Anchors", |ui| {
                list(
                    ui,
                    "Anchors",
                    sizes,
                    "10x13, 16x30",
                    |[width, height]| format!("{width}x{height}"),
                    |text| {
                        let (width, height) = text.split_once('x')?;
                        Some([width.trim().parse().ok()?, height.trim().parse().ok()?])
                    },
                );
            });
        }
    }
}

/// Each coding with the format of its boxes, and the strides that are there.
fn grids(now: Option<&Grid>) -> [(Option<Grid>, Option<BoxFormat>); 4] {
    let strides = now.map_or_else(|| vec![8, 16, 32], |grid| grid.strides.clone());
    let with = |coding| Some(Grid { strides: strides.clone(), coding });
    [
        (None, None),
        (with(GridCoding::Offsets {}), Some(BoxFormat::Cxcywh)),
        (with(GridCoding::DistanceBins { bins: 8, point: CellPoint::Centre }), Some(BoxFormat::Xyxy)),
        (with(GridCoding::Anchors { sizes: GridCoding::YOLOV5_ANCHORS.to_vec() }), Some(BoxFormat::Cxcywh)),
    ]
}
