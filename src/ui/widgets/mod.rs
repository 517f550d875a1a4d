//! Small widgets for several panels.

mod action;
mod choice;
mod class_table;
mod endpoint;
mod ends;
mod lines;
mod number;
mod outcome;
mod progress;
mod recent;
mod rows;
mod score_bar;
mod sign_in;
mod sketch;
mod text;
mod verdict;

pub(super) use crate::domain::grouped;
pub(super) use action::{
    action_button_ui, action_icon_ui, action_menu_ui, button_of_action_ui, primary_action_button_ui, primary_button,
};
pub(super) use choice::{checkbox_ui, radio_ui};
pub(super) use class_table::{ClassTable, ClassTableMemory, TABLE_ROW_HEIGHT, TableColumn, table_number_ui};
pub(super) use endpoint::{
    delete_endpoint_button, endpoint_cost_text, endpoint_end_text, endpoint_sign, endpoint_word,
};
pub(super) use ends::{ends_or_lines_ui, ends_ui};
pub(super) use lines::{stepped_line, taken_line_steps};
pub(super) use number::{number_field, slider};
pub(super) use outcome::{MARK_SIZE, paint_missed, paint_wrong, paint_wrong_small};
pub(super) use progress::{progress_text, progress_ui};
pub(super) use recent::{RecentLine, recent_line_ui};
pub(super) use rows::rows_in_sight_ui;
pub(super) use score_bar::{SCORE_ROW_HEIGHT, score_row_ui};
pub(super) use sign_in::{
    copy_command_ui, copy_renewal_ui, copy_sign_in_ui, renew_in_time, sign_in_banner_ui, sign_in_menu_ui, who_text,
};
pub(super) use sketch::paint_detections;
pub(super) use text::{
    FIELD_PADDING, Tone, ago_text, banner_ui, box_count, elided_in_middle, fitting, focus_whole_text, human_duration,
    image_count, key_value_ui, line_banner_ui, section_ui, strong, titled_section_ui, truncated,
};
pub(super) use verdict::{class_text, paint_verdict, verdict_color, verdict_sign, verdict_text, verdict_word};
