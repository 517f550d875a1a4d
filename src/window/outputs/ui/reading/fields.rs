//! The fields of a mapping.

use eframe::egui::ComboBox;
use strum::VariantArray;

use super::{fault_ui, menu_ui, width_next_to_button};
use crate::domain::ModelTask;
use crate::sagemaker::spec::output_mapping::{
    BoxesDraft, ClassesDraft, JsonPlace, MappedBoxFormat, MappedBoxSpace, MappingDraft, MappingFault, MappingField,
    ScoreValues, WHOLE_OUTPUT,
};
use crate::window::ui::prelude::*;

/// `places` are those of the first example; `None` if there is none.
pub(crate) fn fields_ui(
    ui: &mut Ui,
    draft: &mut MappingDraft,
    places: Option<&[JsonPlace]>,
    fault: Option<&MappingFault>,
) {
    let before = draft.task;
    ui.horizontal(|ui| {
        ui.label("Content");
        let mut choice = |task, text| {
            let label = ui.selectable_label(draft.task == task, text);
            if label.clicked() {
                draft.task = task;
            }
        };
        choice(ModelTask::Classification, "Image classes");
        choice(ModelTask::Detection, "Object boxes");
    });
    if before != draft.task {
        draft.fill(places.unwrap_or_default());
    }
    let form = Form { places, fault };
    match draft.task {
        ModelTask::Classification => form.classes_ui(ui, &mut draft.classes),
        ModelTask::Detection => form.boxes_ui(ui, &mut draft.boxes),
    }
    ui.add_space(4.0);
    form.name_ui(ui, draft);
}

#[derive(Clone, Copy)]
struct Form<'f> {
    places: Option<&'f [JsonPlace]>,
    fault: Option<&'f MappingFault>,
}

impl Form<'_> {
    fn classes_ui(self, ui: &mut Ui, draft: &mut ClassesDraft) {
        let scores = ("Scores", "one per class, in class order");
        self.place_ui(ui, &mut draft.scores, MappingField::Scores, scores);
        ui.horizontal(|ui| {
            ui.label("Score range");
            for &values in ScoreValues::VARIANTS {
                let hint = match values {
                    ScoreValues::Probabilities => "From 0 to 1",
                    ScoreValues::Logits => "Logits; Spotcheck applies the softmax",
                };
                radio_ui(ui, &mut draft.values, values, values.into_str()).on_hover_text(hint);
            }
        });
        fault_ui(ui, self.fault, MappingField::Values);
        checkbox_ui(ui, &mut draft.background, "Class 0 is the background")
            .on_hover_text("The background is skipped, and class 1 gets the first name");
        let classes = ("Classes", "only if the prediction lists just the best classes");
        self.place_ui(ui, &mut draft.classes, MappingField::Classes, classes);
        let best = ("Best class, for checking", "optional");
        self.place_ui(ui, &mut draft.best, MappingField::Best, best);
    }

    fn boxes_ui(self, ui: &mut Ui, draft: &mut BoxesDraft) {
        let boxes = ("Boxes", "four numbers each");
        self.place_ui(ui, &mut draft.boxes, MappingField::Boxes, boxes);
        Grid::new("numbers of a box").num_columns(2).show(ui, |ui| {
            ui.label("Number order");
            ComboBox::from_id_salt("order of the numbers")
                .width(ui.available_width())
                .selected_text(format_text(draft.box_format))
                .show_ui(ui, |ui| {
                    for &format in MappedBoxFormat::VARIANTS {
                        let text = format_text(format);
                        ui.selectable_value(&mut draft.box_format, format, text);
                    }
                })
                .response
                .accessible_name("Order of a box's four numbers");
            ui.end_row();
            ui.label("Unit");
            ComboBox::from_id_salt("box units")
                .width(ui.available_width())
                .selected_text(space_text(draft.box_space))
                .show_ui(ui, |ui| {
                    for &space in MappedBoxSpace::VARIANTS {
                        ui.selectable_value(&mut draft.box_space, space, space_text(space));
                    }
                })
                .response
                .accessible_name("Box units");
            ui.end_row();
        });
        let classes = ("Classes", "a number or a name per box");
        self.place_ui(ui, &mut draft.classes, MappingField::Classes, classes);
        ui.horizontal(|ui| {
            ui.label("Add to class numbers");
            ui.add(number_field(&mut draft.class_offset).range(-1000..=1000))
                .on_hover_text("−1 if the predictions count classes from 1 and the names from 0")
                .accessible_name("Number to add to class numbers");
        });
        let scores = ("Scores", "one per box, from 0 to 1");
        self.place_ui(ui, &mut draft.scores, MappingField::Scores, scores);
        let count = ("Number of valid boxes", "optional");
        self.place_ui(ui, &mut draft.count, MappingField::Count, count);
    }

    fn name_ui(self, ui: &mut Ui, draft: &mut MappingDraft) {
        ui.columns(2, |columns| {
            let ui = &mut columns[0];
            ui.label(RichText::new("Mapping name").small().weak());
            let field = TextEdit::singleline(&mut draft.name).desired_width(f32::INFINITY);
            ui.add(field).accessible_name("Mapping name");
            fault_ui(ui, self.fault, MappingField::Name);
            let ui = &mut columns[1];
            ui.label(RichText::new("Id and file name").small().weak());
            let of_name = MappingDraft { id: String::new(), ..draft.clone() };
            let field = TextEdit::singleline(&mut draft.id).hint_text(of_name.id()).desired_width(f32::INFINITY);
            ui.add(field).accessible_name("Mapping id");
        });
    }

    /// A field for a place in the prediction, and a menu of suitable ones.
    fn place_ui(self, ui: &mut Ui, text: &mut String, field: MappingField, (name, hint): (&str, &str)) {
        ui.label(RichText::new(name).small().weak());
        ui.horizontal(|ui| {
            let edit = TextEdit::singleline(text).hint_text(hint).desired_width(width_next_to_button(ui));
            ui.add(edit)
                .on_hover_text("A JSON Pointer such as /predictions/0/scores; * matches every element of a list")
                .accessible_name(name);
            let menu = menu_ui(ui, "Choose", |ui| self.places_ui(ui, text, field));
            menu.accessible_name(format!("Choose: {name}"));
        });
        fault_ui(ui, self.fault, field);
    }

    fn places_ui(self, ui: &mut Ui, text: &mut String, field: MappingField) {
        let Some(places) = self.places else {
            ui.weak("Preview predictions first to choose one of their fields");
            return;
        };
        let mut suiting = places.iter().filter(|place| place.suits(field)).peekable();
        if suiting.peek().is_none() {
            ui.weak("No field of the first prediction fits");
        }
        ScrollArea::vertical().max_height(300.0).show(ui, |ui| {
            for place in suiting {
                let path = match place.pointer.as_str() {
                    "" => WHOLE_OUTPUT,
                    path => path,
                };
                let holds = RichText::new(place.holds.words()).weak();
                let line = Button::selectable(text.trim() == path, path).right_text(holds);
                if ui.add(line).clicked() {
                    path.clone_into(text);
                    ui.close();
                }
            }
            if !text.trim().is_empty() && ui.button("None").clicked() {
                text.clear();
                ui.close();
            }
        });
    }
}

/// A unit with its usual short form.
fn format_text(format: MappedBoxFormat) -> String {
    let short = match format {
        MappedBoxFormat::Xyxy => "xyxy",
        MappedBoxFormat::Yxyx => "yxyx",
        MappedBoxFormat::Xywh => "xywh",
        MappedBoxFormat::Cxcywh => "cxcywh",
    };
    format!("{} ({short})", format.into_str())
}

fn space_text(space: MappedBoxSpace) -> &'static str {
    match space {
        MappedBoxSpace::Pixels => "pixels of the image",
        MappedBoxSpace::Normalized => "fractions of the image, from 0 to 1",
    }
}
