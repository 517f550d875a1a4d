//! Small widgets for several panels.

mod action;
mod bars;
mod class_table;
mod controls;
mod layout;
mod marks;
mod text;

pub(crate) use crate::domain::grouped;
pub(crate) use crate::window::endpoints::ui::words::{
    delete_endpoint_button, endpoint_cost_text, endpoint_end_text, endpoint_sign, endpoint_word,
};
pub(crate) use crate::window::s3::ui::sign_in::{
    copy_command_ui, copy_renewal_ui, copy_sign_in_ui, renew_in_time, sign_in_banner_ui, sign_in_menu_ui, who_text,
};
pub(crate) use action::{
    action_button_ui, action_icon_ui, action_menu_ui, button_of_action_ui, command_button_ui, primary_action_button_ui,
    primary_button, primary_button_ui,
};
pub(crate) use bars::{SCORE_ROW_HEIGHT, progress_text, progress_ui, score_row_ui};
pub(crate) use class_table::{ClassTable, ClassTableMemory, TABLE_ROW_HEIGHT, TableColumn, table_number_ui};
pub(crate) use controls::{
    RecentLine, checkbox_ui, enter_pressed, number_field, radio_ui, recent_line_ui, slider, view_slider_ui,
};
pub(crate) use layout::{ends_or_lines_ui, ends_ui, rows_in_sight_ui};
pub(crate) use marks::{
    MARK_SIZE, class_text, label_verdict_text, paint_detections, paint_missed, paint_verdict, paint_wrong,
    paint_wrong_small, verdict_color, verdict_sign, verdict_text,
};
pub(crate) use text::{
    FIELD_PADDING, Tone, ago_text, banner_ui, box_count, elided_in_middle, fitting, focus_whole_text, human_duration,
    image_count, key_value_ui, line_banner_ui, message_ui, note_line_ui, note_ui, problem_ui, section_ui,
    small_note_line_ui, small_note_ui, strong, titled_section_ui, truncated, waiting_ui, warning_ui,
};
