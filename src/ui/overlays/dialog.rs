//! The frame of every dialog.

use eframe::egui::{Align2, AreaState, Context, Id, LayerId, Modal, Order, vec2};

use super::super::theme;

/// Between a dialog and the edges of the window.
const MARGIN: f32 = 12.0;

/// A dialog over everything, in the middle when it opens. What it holds may come and go: its top stays where it is as long as there is
/// room below, so that nothing moves under the pointer.
pub(super) fn dialog(ctx: &Context, id: &str) -> Modal {
    let id = Id::unique(id);
    // Below its own lists: of layers of one order, the one that was clicked last is above.
    let order = Order::Middle;
    let area = Modal::default_area(id).order(order);
    let height = AreaState::load(ctx, id)
        .and_then(|state| state.size)
        .map(|size| size.y);
    let area = match height {
        Some(height) => {
            let lowest = ctx.content_rect().height() - MARGIN - height;
            let was_open =
                ctx.memory(|memory| memory.areas().visible_last_frame(&LayerId::new(order, id)));
            let top = ctx.data_mut(|data| {
                let before = data.get_temp(id).filter(|_| was_open);
                let top = before.unwrap_or_else(|| f32::midpoint(MARGIN, lowest));
                let top = top.min(lowest).max(MARGIN);
                data.insert_temp(id, top);
                top
            });
            area.anchor(Align2::CENTER_TOP, vec2(0.0, top))
        }
        None => area,
    };
    Modal::new(id).area(area).frame(theme::dialog_frame(ctx))
}
