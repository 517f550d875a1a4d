//! Numbers that are typed, dragged or slid. A typed number takes effect when Enter is pressed or the field is left, not
//! with each key. Drawing alone never changes a number, even outside the range.

use std::ops::RangeInclusive;

use eframe::egui::{DragValue, Slider, SliderClamping, emath::Numeric};

#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub(crate) fn number_field<N: Numeric>(value: &mut N) -> DragValue<'_> {
    DragValue::new(value).update_while_editing(false).clamp_existing_to_range(false)
}

#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub(crate) fn slider<N: Numeric>(value: &mut N, range: RangeInclusive<N>) -> Slider<'_> {
    Slider::new(value, range).update_while_editing(false).clamping(SliderClamping::Edits)
}
