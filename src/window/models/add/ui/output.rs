//! The rows for the outputs of a model.

use eframe::egui::{CollapsingHeader, Ui};

use crate::domain::{
    BoxFormat, BoxSpace, CellPoint, ClassValues, ClassificationOutput, DetectionOutput, Grid, GridCoding, ModelCard,
    OutputConvention,
};
use crate::window::models::add::ui::help::READING;
use crate::window::models::add::ui::rows::{
    CONTROL_WIDTH, Field, Rows, columns, combo, decimal, heading_ui, list, number, optional_columns, optional_number,
    plain_row, port, tick,
};
use crate::window::state::{Commands, ImportPort, ImportStart, ModelsCommand};

pub(crate) fn output_ui(
    ui: &mut Ui,
    rows: &mut Rows<'_>,
    card: &mut ModelCard,
    start: &ImportStart,
    commands: &mut Commands,
) {
    heading_ui(ui, "Output", |_| {});
    if start.readings.len() > 1 {
        plain_row(ui, READING, "Read as", |ui, field| reading_ui(ui, field, start, commands));
    }
    match &mut card.output {
        OutputConvention::Classification(output) => classes_ui(ui, rows, output, &start.outputs),
        OutputConvention::Detection(output) => {
            boxes_ui(ui, rows, output, &start.outputs);
            scores_ui(ui, rows, output, &start.outputs);
            suppression_ui(ui, rows, output);
            let is_rare = [
                output.batch_index.is_some(),
                output.angle.is_some(),
                output.count.is_some(),
                output.selected.is_some(),
            ];
            let is_open = output.grid.is_some() || is_rare.contains(&true);
            let fold = CollapsingHeader::new("Rarely needed").default_open(is_open);
            fold.show_unindented(ui, |ui| {
                rare_ui(ui, rows, output, &start.outputs);
                grid_ui(ui, rows, output);
                in_graph_ui(ui, rows, output);
            });
        }
    }
}

/// Another reading restarts the form.
fn reading_ui(ui: &mut Ui, field: &Field, start: &ImportStart, commands: &mut Commands) {
    let mut chosen = start.reading;
    let text = start.readings.get(chosen).map_or("", String::as_str);
    combo(ui, field, text, CONTROL_WIDTH, |ui| {
        for (index, reading) in start.readings.iter().enumerate() {
            ui.selectable_value(&mut chosen, index, reading);
        }
    });
    if chosen != start.reading {
        commands.push(ModelsCommand::ChooseReading(chosen));
    }
}

fn classes_ui(ui: &mut Ui, rows: &mut Rows<'_>, output: &mut ClassificationOutput, ports: &[ImportPort]) {
    let path = |field| format!("output.classification.{field}");
    rows.row(ui, &path("name"), "Output", |ui, field| port(ui, field, &mut output.name, ports, None));
    rows.menu_row(ui, &path("values"), "Values", &mut output.values);
    if output.values != ClassValues::ArgMax {
        rows.menu_row(ui, &path("background"), "Background", &mut output.background);
    }
}

fn path(field: &str) -> String {
    format!("output.detection.{field}")
}

fn boxes_ui(ui: &mut Ui, rows: &mut Rows<'_>, output: &mut DetectionOutput, ports: &[ImportPort]) {
    rows.row(ui, &path("boxes"), "Boxes", |ui, field| columns(ui, field, &mut output.boxes, ports));
    rows.row(ui, &path("candidates_last"), "Candidates", |ui, field| {
        tick(ui, field, &mut output.candidates_last, "Last dimension");
    });
    if output.grid.is_some() {
        // The coding determines them.
        return;
    }
    rows.menu_row(ui, &path("box_format"), "Box format", &mut output.box_format);
    rows.menu_row(ui, &path("box_space"), "Box space", &mut output.box_space);
}

fn scores_ui(ui: &mut Ui, rows: &mut Rows<'_>, output: &mut DetectionOutput, ports: &[ImportPort]) {
    rows.row(ui, &path("scores"), "Scores", |ui, field| columns(ui, field, &mut output.scores, ports));
    rows.row(ui, &path("labels"), "Class", |ui, field| {
        optional_columns(ui, field, &mut output.labels, ports, Some("One score per class"));
    });
    rows.menu_row(ui, &path("activation"), "Activation", &mut output.activation);
    if output.labels.is_none() {
        rows.row(ui, &path("classes"), "Class columns", |ui, field| {
            optional_number(ui, field, &mut output.classes, 80, 1..=100_000, "up to the last column");
        });
        rows.menu_row(ui, &path("label_choice"), "Boxes per candidate", &mut output.label_choice);
        rows.menu_row(ui, &path("background"), "Background", &mut output.background);
    }
    rows.row(ui, &path("objectness"), "Objectness", |ui, field| {
        optional_columns(ui, field, &mut output.objectness, ports, Some("None"));
    });
    rows.row(ui, &path("class_offset"), "Class offset", |ui, field| {
        number(ui, field, &mut output.class_offset, -1000..=1000, "");
    });
}

fn suppression_ui(ui: &mut Ui, rows: &mut Rows<'_>, output: &mut DetectionOutput) {
    rows.row(ui, &path("max_boxes"), "Maximum boxes", |ui, field| {
        optional_number(ui, field, &mut output.max_boxes, 300, 1..=100_000, "no limit");
    });
    rows.row(ui, &path("nms_iou"), "NMS (IoU)", |ui, field| {
        optional_number(ui, field, &mut output.nms_iou, 0.7, 0.0..=1.0, "none");
    });
}

fn rare_ui(ui: &mut Ui, rows: &mut Rows<'_>, output: &mut DetectionOutput, ports: &[ImportPort]) {
    rows.row(ui, &path("count"), "Box count", |ui, field| port(ui, field, &mut output.count, ports, Some("None")));
    rows.row(ui, &path("selected"), "Selected boxes", |ui, field| {
        port(ui, field, &mut output.selected, ports, Some("None"));
    });
    rows.row(ui, &path("batch_index"), "Image number", |ui, field| {
        optional_columns(ui, field, &mut output.batch_index, ports, Some("None"));
    });
    if output.box_format == BoxFormat::Cxcywh {
        rows.row(ui, &path("angle"), "Angle", |ui, field| {
            optional_columns(ui, field, &mut output.angle, ports, Some("None"));
        });
    }
}

/// What the graph itself does with its boxes.
fn in_graph_ui(ui: &mut Ui, rows: &mut Rows<'_>, output: &mut DetectionOutput) {
    rows.row(ui, &path("min_score_in_graph"), "Score in graph", |ui, field| {
        decimal(ui, field, &mut output.min_score_in_graph);
    });
    rows.row(ui, &path("nms_iou_in_graph"), "NMS in graph", |ui, field| {
        optional_number(ui, field, &mut output.nms_iou_in_graph, 0.5, 0.0..=1.0, "none");
    });
    rows.row(ui, &path("max_boxes_in_graph"), "Boxes in graph", |ui, field| {
        optional_number(ui, field, &mut output.max_boxes_in_graph, 100, 1..=100_000, "any number");
    });
}

/// Boxes that are relative to the cells of a grid.
fn grid_ui(ui: &mut Ui, rows: &mut Rows<'_>, output: &mut DetectionOutput) {
    rows.row(ui, &path("grid"), "Box decoding", |ui, field| {
        let text = |grid: Option<&Grid>| match grid.map(|grid| &grid.coding) {
            None => "None: boxes are decoded",
            Some(GridCoding::Offsets {}) => "Offsets (YOLOX)",
            Some(GridCoding::DistanceBins { .. }) => "Distance bins (NanoDet)",
            Some(GridCoding::Distances { .. }) => "Distances (SCRFD)",
            Some(GridCoding::Anchors { .. }) => "Anchors (YOLOv5)",
            Some(GridCoding::Priors { .. }) => "Priors (RetinaFace)",
        };
        let chosen = text(output.grid.as_ref());
        combo(ui, field, chosen, CONTROL_WIDTH, |ui| {
            for (grid, format) in grids(output.grid.as_ref()) {
                let name = text(grid.as_ref());
                if ui.selectable_label(name == chosen, name).clicked() && name != chosen {
                    output.grid = grid;
                    output.box_format = format.unwrap_or(output.box_format);
                    output.box_space = BoxSpace::ModelPixels;
                }
            }
        });
    });
    let Some(grid) = &mut output.grid else {
        return;
    };
    rows.row(ui, &path("grid.strides"), "Strides", |ui, field| {
        list(ui, field, &mut grid.strides, "8, 16, 32", ToString::to_string, |text| text.parse().ok());
    });
    let sizes_path = match &grid.coding {
        GridCoding::Priors { .. } => path("grid.coding.priors.sizes"),
        _ => path("grid.coding.anchors.sizes"),
    };
    match &mut grid.coding {
        GridCoding::Offsets {} => {}
        GridCoding::DistanceBins { bins, point } => {
            rows.row(ui, &path("grid.coding.distance-bins.bins"), "Bins", |ui, field| {
                number(ui, field, bins, 1..=1024, "");
            });
            rows.menu_row(ui, &path("grid.coding.distance-bins.point"), "Point of a cell", point);
        }
        GridCoding::Distances { anchors, point } => {
            rows.row(ui, &path("grid.coding.distances.anchors"), "Boxes per cell", |ui, field| {
                number(ui, field, anchors, 1..=64, "");
            });
            rows.menu_row(ui, &path("grid.coding.distances.point"), "Point of a cell", point);
        }
        GridCoding::Anchors { sizes } | GridCoding::Priors { sizes } => {
            rows.row(ui, &sizes_path, "Anchors", |ui, field| {
                list(
                    ui,
                    field,
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

/// Each coding with its box format and the current strides.
fn grids(now: Option<&Grid>) -> [(Option<Grid>, Option<BoxFormat>); 6] {
    let strides = now.map_or_else(|| vec![8, 16, 32], |grid| grid.strides.clone());
    let with = |coding| Some(Grid { strides: strides.clone(), coding });
    [
        (None, None),
        (with(GridCoding::Offsets {}), Some(BoxFormat::Cxcywh)),
        (with(GridCoding::DistanceBins { bins: 8, point: CellPoint::Center }), Some(BoxFormat::Xyxy)),
        (with(GridCoding::Distances { anchors: 2, point: CellPoint::TopLeft }), Some(BoxFormat::Xyxy)),
        (with(GridCoding::Anchors { sizes: GridCoding::YOLOV5_ANCHORS.to_vec() }), Some(BoxFormat::Cxcywh)),
        (with(GridCoding::Priors { sizes: GridCoding::RETINA_FACE_PRIORS.to_vec() }), Some(BoxFormat::Cxcywh)),
    ]
}
