//! Small widgets for several panels.

mod action;
mod choice;
mod class_table;
mod ends;
mod lines;
mod number;
mod outcome;
mod progress;
mod recent;
mod rows;
mod score_bar;
mod sketch;
mod text;
mod verdict;

pub(crate) use crate::domain::grouped;
pub(crate) use crate::window::endpoints::ui::words::{
    delete_endpoint_button, endpoint_cost_text, endpoint_end_text, endpoint_sign, endpoint_word,
};
pub(crate) use crate::window::s3::ui::sign_in::{
    copy_command_ui, copy_renewal_ui, copy_sign_in_ui, renew_in_time, sign_in_banner_ui, sign_in_menu_ui, who_text,
};
pub(crate) use action::{
    action_button_ui, action_icon_ui, action_menu_ui, button_of_action_ui, primary_action_button_ui, primary_button,
};
pub(crate) use choice::{checkbox_ui, radio_ui};
pub(crate) use class_table::{ClassTable, ClassTableMemory, TABLE_ROW_HEIGHT, TableColumn, table_number_ui};
pub(crate) use ends::{ends_or_lines_ui, ends_ui};
pub(crate) use lines::{stepped_line, taken_line_steps};
pub(crate) use number::{number_field, slider};
pub(crate) use outcome::{MARK_SIZE, paint_missed, paint_wrong, paint_wrong_small};
pub(crate) use progress::{progress_text, progress_ui};
pub(crate) use recent::{RecentLine, recent_line_ui};
pub(crate) use rows::rows_in_sight_ui;
pub(crate) use score_bar::{SCORE_ROW_HEIGHT, score_row_ui};
pub(crate) use sketch::paint_detections;
pub(crate) use text::{
    FIELD_PADDING, Tone, ago_text, banner_ui, box_count, elided_in_middle, fitting, focus_whole_text, human_duration,
    image_count, key_value_ui, line_banner_ui, section_ui, strong, titled_section_ui, truncated,
};
pub(crate) use verdict::{class_text, paint_verdict, verdict_color, verdict_sign, verdict_text, verdict_word};
