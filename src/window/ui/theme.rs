//! Colors, fonts and spacing, in the light and dark theme.

use std::num::NonZeroUsize;

use eframe::egui::style::{ScrollStyle, WidgetVisuals};
use eframe::egui::{
    self, Color32, Context, CornerRadius, FontData, FontDefinitions, FontFamily, FontId, Frame, Margin, Rgba, Stroke,
    Style, TextStyle, Theme, ThemePreference, Visuals, vec2,
};

use crate::window::state::{Settings, ThemeChoice};

/// Inter, by Rasmus Andersson, under the SIL Open Font License (`assets/fonts/LICENSE-Inter`).
const REGULAR: &[u8] = include_bytes!("../../../assets/fonts/Inter-Regular.otf");
const SEMIBOLD: &[u8] = include_bytes!("../../../assets/fonts/Inter-SemiBold.otf");

/// The few colors that everything uses.
struct Palette {
    /// Around the image.
    canvas: Color32,
    panel: Color32,
    /// Menus, dialogs, cards.
    raised: Color32,
    /// Text fields, the rails of sliders and bars.
    sunken: Color32,
    line: Color32,
    /// For check boxes and radio buttons.
    outline: Color32,
    button: Color32,
    button_hovered: Color32,
    text: Color32,
    weak: Color32,
    accent: Color32,
    selection: Color32,
    warning: Color32,
    error: Color32,
}

const DARK: Palette = Palette {
    canvas: Color32::from_rgb(0x11, 0x13, 0x17),
    panel: Color32::from_rgb(0x1b, 0x1e, 0x24),
    raised: Color32::from_rgb(0x24, 0x28, 0x30),
    sunken: Color32::from_rgb(0x12, 0x15, 0x19),
    line: Color32::from_rgb(0x32, 0x37, 0x41),
    outline: Color32::from_rgb(0x7a, 0x84, 0x94),
    button: Color32::from_rgb(0x2d, 0x32, 0x3c),
    button_hovered: Color32::from_rgb(0x3a, 0x41, 0x4e),
    text: Color32::from_rgb(0xe4, 0xe7, 0xec),
    weak: Color32::from_rgb(0xa0, 0xa8, 0xb5),
    accent: Color32::from_rgb(0x6a, 0xa6, 0xff),
    selection: Color32::from_rgb(0x2b, 0x4a, 0x7e),
    warning: Color32::from_rgb(0xf2, 0xb1, 0x4c),
    error: Color32::from_rgb(0xff, 0x84, 0x7c),
};

const LIGHT: Palette = Palette {
    canvas: Color32::from_rgb(0xe3, 0xe6, 0xeb),
    panel: Color32::from_rgb(0xf6, 0xf7, 0xf9),
    raised: Color32::from_rgb(0xff, 0xff, 0xff),
    sunken: Color32::from_rgb(0xe9, 0xec, 0xf0),
    line: Color32::from_rgb(0xd3, 0xd8, 0xdf),
    outline: Color32::from_rgb(0x7d, 0x86, 0x94),
    button: Color32::from_rgb(0xe6, 0xe9, 0xee),
    button_hovered: Color32::from_rgb(0xd8, 0xdd, 0xe5),
    text: Color32::from_rgb(0x1b, 0x20, 0x28),
    weak: Color32::from_rgb(0x59, 0x62, 0x70),
    accent: Color32::from_rgb(0x1f, 0x5f, 0xd0),
    selection: Color32::from_rgb(0xc6, 0xda, 0xfb),
    warning: Color32::from_rgb(0x93, 0x58, 0x00),
    error: Color32::from_rgb(0xb4, 0x23, 0x18),
};

fn palette(visuals: &Visuals) -> &'static Palette {
    if visuals.dark_mode { &DARK } else { &LIGHT }
}

/// Around the image.
pub(crate) fn canvas_fill(visuals: &Visuals) -> Color32 {
    palette(visuals).canvas
}

/// For cards inside a panel.
pub(crate) fn raised_fill(visuals: &Visuals) -> Color32 {
    palette(visuals).raised
}

/// For empty parts of bars, and placeholders of images.
pub(crate) fn sunken_fill(visuals: &Visuals) -> Color32 {
    palette(visuals).sunken
}

pub(crate) fn line(visuals: &Visuals) -> Color32 {
    palette(visuals).line
}

/// Around check boxes and radio buttons.
pub(crate) fn outline(visuals: &Visuals) -> Color32 {
    palette(visuals).outline
}

pub(crate) fn accent(visuals: &Visuals) -> Color32 {
    palette(visuals).accent
}

/// Legible on [`accent`].
pub(crate) fn on_accent(visuals: &Visuals) -> Color32 {
    if visuals.dark_mode { Color32::from_rgb(0x0d, 0x14, 0x20) } else { Color32::WHITE }
}

/// The color of a class, the same as in exported images.
pub(crate) fn class_color(name: &str) -> Color32 {
    let [red, green, blue] = crate::domain::class_color(name);
    Color32::from_rgb(red, green, blue)
}

/// A color for a strength of `0.0..=1.0`: cividis, from dark blue to bright yellow. It looks much the same to people
/// with red-green color blindness, and its brightness alone shows the order (Nuñez, Anderton and Renslow, “Optimizing
/// colormaps with consideration for color vision deficiency”, PLOS ONE 2018). Linear between ten of its colors.
pub(crate) fn heat_color(strength: f32) -> Color32 {
    const CIVIDIS: [[u8; 3]; 10] = [
        [0x00, 0x22, 0x4e],
        [0x12, 0x35, 0x70],
        [0x3b, 0x49, 0x6c],
        [0x57, 0x5d, 0x6d],
        [0x70, 0x71, 0x73],
        [0x8a, 0x86, 0x78],
        [0xa5, 0x9c, 0x74],
        [0xc3, 0xb3, 0x69],
        [0xe1, 0xcc, 0x55],
        [0xfe, 0xe8, 0x38],
    ];
    let place = strength.clamp(0.0, 1.0) * (CIVIDIS.len() - 1) as f32;
    let lower = (place as usize).min(CIVIDIS.len() - 2);
    let color = |at: usize| {
        let [red, green, blue] = CIVIDIS[at];
        Color32::from_rgb(red, green, blue)
    };
    color(lower).lerp_to_gamma(color(lower + 1), place - lower as f32)
}

/// Black or white, whichever is more legible on `background`.
pub(crate) fn text_on(background: Color32) -> Color32 {
    /// The relative luminance with equal contrast to both, by WCAG 2: `sqrt(1.05 * 0.05) - 0.05`.
    const SAME_CONTRAST: f32 = 0.179;
    let linear = Rgba::from(background);
    let luminance = 0.2126 * linear.r() + 0.7152 * linear.g() + 0.0722 * linear.b();
    if luminance > SAME_CONTRAST { Color32::BLACK } else { Color32::WHITE }
}

/// Around a dialog: a popup with more padding.
pub(crate) fn dialog_frame(ctx: &Context) -> Frame {
    Frame::popup(&ctx.global_style()).inner_margin(18).corner_radius(12)
}

/// The semibold family, for headings and emphasis.
pub(crate) fn strong_family() -> FontFamily {
    FontFamily::Name("strong".into())
}

/// The first pass measures, the next ones draw with the sizes of the previous one; tables need the most.
const PASSES: NonZeroUsize = NonZeroUsize::new(5).expect("five is not zero");

/// Called once, before the first frame.
pub fn apply(ctx: &Context) {
    ctx.set_fonts(fonts());
    for (theme, palette) in [(Theme::Dark, &DARK), (Theme::Light, &LIGHT)] {
        ctx.style_mut_of(theme, |style| {
            set_spacing(style);
            set_visuals(&mut style.visuals, palette);
        });
    }
    // `Command::InterfaceLarger` and related commands do this, so that menus and help include it.
    ctx.options_mut(|options| {
        options.zoom_with_keyboard = false;
        // A dialog that opens is drawn invisibly until its size is known.
        options.max_passes = PASSES;
    });
}

fn fonts() -> FontDefinitions {
    let mut fonts = FontDefinitions::default();
    let faces = [("inter", REGULAR), ("inter-semibold", SEMIBOLD)];
    for (name, bytes) in faces {
        let data = FontData::from_static(bytes);
        fonts.font_data.insert(name.to_owned(), data.into());
    }
    let proportional = fonts.families.entry(FontFamily::Proportional).or_default();
    proportional.insert(0, "inter".to_owned());
    let mut strong = proportional.clone();
    "inter-semibold".clone_into(&mut strong[0]);
    fonts.families.insert(strong_family(), strong);
    fonts
}

fn set_spacing(style: &mut Style) {
    style.text_styles = [
        (TextStyle::Small, FontId::proportional(11.5)),
        (TextStyle::Body, FontId::proportional(13.0)),
        (TextStyle::Button, FontId::proportional(13.0)),
        (TextStyle::Monospace, FontId::monospace(12.0)),
        (TextStyle::Heading, FontId::new(15.0, strong_family())),
    ]
    .into();
    let spacing = &mut style.spacing;
    spacing.item_spacing = vec2(8.0, 6.0);
    spacing.button_padding = vec2(10.0, 4.0);
    spacing.interact_size = vec2(36.0, 26.0);
    spacing.menu_margin = Margin::same(6);
    spacing.window_margin = Margin::same(14);
    spacing.slider_width = 150.0;
    spacing.combo_width = 120.0;
    spacing.indent = 16.0;
    spacing.tooltip_width = 380.0;
    spacing.scroll = scroll_style();
    style.interaction.tooltip_delay = 0.4;
    style.animation_time = 0.1;
}

/// Scroll bars that are always visible, next to their content.
fn scroll_style() -> ScrollStyle {
    let mut scroll = ScrollStyle::solid();
    scroll.bar_width = 8.0;
    let width = scroll.allocated_width();
    // Only floating bars have handles with an opacity of their own: in the color of a button, they are nearly invisible
    // on a light panel, and in that of the text, they would be black.
    scroll.floating = true;
    scroll.floating_width = scroll.bar_width;
    scroll.floating_allocated_width = width;
    scroll.foreground_color = true;
    scroll.dormant_handle_opacity = 0.28;
    scroll.active_handle_opacity = 0.4;
    scroll.interact_handle_opacity = 0.6;
    scroll.dormant_background_opacity = 0.0;
    scroll.active_background_opacity = 0.6;
    scroll.interact_background_opacity = 0.6;
    scroll
}

fn set_visuals(visuals: &mut Visuals, palette: &Palette) {
    visuals.panel_fill = palette.panel;
    visuals.window_fill = palette.raised;
    visuals.window_stroke = Stroke::new(1.0, palette.line);
    visuals.window_corner_radius = CornerRadius::same(10);
    visuals.menu_corner_radius = CornerRadius::same(8);
    visuals.extreme_bg_color = palette.sunken;
    visuals.text_edit_bg_color = Some(palette.sunken);
    visuals.code_bg_color = palette.sunken;
    visuals.faint_bg_color = palette.raised;
    visuals.weak_text_color = Some(palette.weak);
    visuals.hyperlink_color = palette.accent;
    visuals.warn_fg_color = palette.warning;
    visuals.error_fg_color = palette.error;
    visuals.selection.bg_fill = palette.selection;
    visuals.selection.stroke = Stroke::new(1.0, palette.text);
    visuals.slider_trailing_fill = true;
    visuals.handle_shape = egui::style::HandleShape::Circle;
    visuals.striped = false;
    let widgets = &mut visuals.widgets;
    set_widget(&mut widgets.noninteractive, palette.panel, palette.line, palette.text);
    set_widget(&mut widgets.inactive, palette.button, palette.line, palette.text);
    set_widget(&mut widgets.hovered, palette.button_hovered, palette.line, palette.text);
    set_widget(&mut widgets.active, palette.selection, palette.accent, palette.text);
    set_widget(&mut widgets.open, palette.button_hovered, palette.line, palette.text);
}

fn set_widget(widget: &mut WidgetVisuals, fill: Color32, line: Color32, text: Color32) {
    widget.bg_fill = fill;
    widget.weak_bg_fill = fill;
    widget.bg_stroke = Stroke::new(1.0, line);
    widget.fg_stroke = Stroke::new(1.2, text);
    widget.corner_radius = CornerRadius::same(6);
    widget.expansion = 0.0;
}

/// The settings that the context already follows.
#[derive(Default)]
pub(crate) struct Applied {
    theme: Option<ThemeChoice>,
    zoom: Option<f32>,
}

pub(crate) fn follow_settings(ctx: &Context, applied: &mut Applied, settings: &Settings) {
    if applied.theme != Some(settings.theme) {
        // A test chooses its theme itself; the system's choice must not override it.
        if applied.theme.is_some() || settings.theme != ThemeChoice::System {
            ctx.set_theme(match settings.theme {
                ThemeChoice::System => ThemePreference::System,
                ThemeChoice::Light => ThemePreference::Light,
                ThemeChoice::Dark => ThemePreference::Dark,
            });
        }
        applied.theme = Some(settings.theme);
    }
    if applied.zoom != Some(settings.interface_zoom) {
        if applied.zoom.is_some() || (settings.interface_zoom - 1.0).abs() > f32::EPSILON {
            ctx.set_zoom_factor(settings.interface_zoom);
        }
        applied.zoom = Some(settings.interface_zoom);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_uses_the_better_contrast() {
        for name in ["cup", "person", "tie", "bottle", "helmet"] {
            assert_eq!(text_on(class_color(name)), Color32::BLACK, "{name}");
        }
        for (background, expected) in
            [(LIGHT.accent, Color32::WHITE), (LIGHT.warning, Color32::WHITE), (DARK.accent, Color32::BLACK)]
        {
            assert_eq!(text_on(background), expected, "{background:?}");
        }
    }
}
