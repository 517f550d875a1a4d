//! The state of the S3 sign-in: the identity, when it ends, and what to do without one.

use std::time::Duration;

use eframe::egui::containers::menu::MenuButton;

use crate::domain::{Credentials, Identity, S3Access};
use crate::tasks::now_ms;
use crate::window::state::{Failure, S3Command, SignIn};
use crate::window::ui::prelude::*;

/// How often the remaining minutes are redrawn.
const PERIOD: Duration = Duration::from_secs(20);
const POPUP_WIDTH: f32 = 420.0;

/// Renews active sign-ins that are about to end, and keeps the remaining time on screen up to date.
pub(crate) fn renew_in_time(ctx: &Context, access: &S3Access, state: &State, commands: &mut Commands) {
    let Some(sign_in) = state.sign_ins.get(access) else {
        return;
    };
    if sign_in.ends_ms().is_some() {
        ctx.request_repaint_after(PERIOD);
    }
    if sign_in.wants_renewal(now_ms()) {
        commands.push(S3Command::SignIn(access.clone()));
    }
}

/// “alice, account 123456789012, profile work”; with a sign if something is wrong.
fn sign_in_text(access: &S3Access, sign_in: Option<&SignIn>) -> String {
    let credentials = access.credentials.to_string();
    match sign_in.and_then(who_text) {
        // The identity already contains the credentials, as “anonymous” does.
        Some(who) if who.starts_with(&credentials) => who,
        Some(who) => format!("{who}, {credentials}"),
        None => credentials,
    }
}

/// “profile work”, “access key …0001”: distinguishes sign-ins at a glance; with a sign if something is wrong.
fn short_text(access: &S3Access, sign_in: Option<&SignIn>) -> String {
    let who = sign_in.and_then(|sign_in| sign_in.identity.as_ref());
    let who = match (&access.credentials, who) {
        // The tooltip has the rest.
        (Credentials::Ambient, Some(identity)) => {
            let who = identity.who.split(" (").next().unwrap_or_default();
            who.to_owned()
        }
        (Credentials::Ambient, None) => "AWS credentials".to_owned(),
        (Credentials::Profile(_), _) => access.credentials.to_string(),
        (Credentials::Anonymous, _) => "anonymous".to_owned(),
    };
    let Some(sign_in) = sign_in else {
        return who;
    };
    match (sign_in.ending_ms(now_ms()), &sign_in.failure) {
        (Some(left), _) => format!("⚠ {who}, {}", end_text(left)),
        (None, Some(_)) if sign_in.identity.is_none() => "⚠ not signed in".to_owned(),
        (None, Some(_)) => format!("⚠ {who}"),
        (None, None) => who,
    }
}

/// “alice, account 123456789012, ends in 2 h 10 min”; with a sign if something is wrong. `None` while nothing is known.
pub(crate) fn who_text(sign_in: &SignIn) -> Option<String> {
    let now = now_ms();
    let Some(identity) = &sign_in.identity else {
        return match &sign_in.failure {
            Some(_) => Some("⚠ not signed in".to_owned()),
            None => sign_in.is_asking().then(|| "signing in…".to_owned()),
        };
    };
    let is_wrong = sign_in.failure.is_some() || sign_in.ending_ms(now).is_some();
    let mark = if is_wrong { "⚠ " } else { "" };
    let mut parts = vec![format!("{mark}{}", identity.who)];
    parts.extend(identity.account.as_ref().map(|account| format!("account {account}")));
    parts.extend(identity.expires_ms.map(|end| end_text(end - now)));
    Some(parts.join(", "))
}

/// At the bottom: who is signed in to the open location. A click opens details.
pub(crate) fn sign_in_menu_ui(ui: &mut Ui, access: &S3Access, state: &State, commands: &mut Commands) {
    let sign_in = state.sign_ins.get(access);
    let text = short_text(access, sign_in);
    let button = Button::new(RichText::new(text).weak()).truncate();
    let (response, _) = MenuButton::from_button(button).ui(ui, |ui| {
        // More than a menu: text, and buttons that look like buttons.
        ui.reset_style();
        ui.set_max_width(POPUP_WIDTH);
        ui.vertical(|ui| sign_in_details_ui(ui, access, state, commands));
    });
    response.on_hover_text(sign_in_text(access, sign_in));
}

fn sign_in_details_ui(ui: &mut Ui, access: &S3Access, state: &State, commands: &mut Commands) {
    let sign_in = state.sign_ins.get(access);
    ui.set_min_width(POPUP_WIDTH);
    ui.label(strong("Signed in to S3"));
    if let Some(identity) = sign_in.and_then(|sign_in| sign_in.identity.as_ref()) {
        identity_ui(ui, identity);
    }
    key_value_ui(ui, "Credentials", &access.credentials.to_string());
    let server = access.endpoint.as_deref().unwrap_or("AWS");
    key_value_ui(ui, "Server", server);
    if let Some(region) = &access.region {
        key_value_ui(ui, "Region", region);
    }
    ui.add_space(4.0);
    if !sign_in_banner_ui(ui, access, state, commands) {
        ui.horizontal(|ui| try_again_ui(ui, access, sign_in, "Check again", commands));
    }
    if ui.button("Open with other settings…").clicked() {
        commands.push(Action::OpenS3);
        ui.close();
    }
}

fn identity_ui(ui: &mut Ui, identity: &Identity) {
    key_value_ui(ui, "Identity", &identity.who);
    if let Some(account) = &identity.account {
        key_value_ui(ui, "Account", account);
    }
    if let Some(arn) = &identity.arn {
        key_value_ui(ui, "ARN", arn);
    }
    let end = match identity.expires_ms {
        Some(end) => end_text(end - now_ms()),
        None => "expiry unknown".to_owned(),
    };
    key_value_ui(ui, "Until", &end);
}

/// What is or soon will be wrong with a sign-in, and what to do. Returns false if all is well.
pub(crate) fn sign_in_banner_ui(ui: &mut Ui, access: &S3Access, state: &State, commands: &mut Commands) -> bool {
    let Some(sign_in) = state.sign_ins.get(access) else {
        return false;
    };
    let (tone, message) = match (&sign_in.failure, sign_in.ending_ms(now_ms())) {
        (Some(Failure::Failed { message, .. }), _) => (Tone::Error, message.clone()),
        (_, Some(left)) => {
            let what = ending_message(access, sign_in, left);
            let tone = if left > 0 { Tone::Warning } else { Tone::Error };
            (tone, what)
        }
        (Some(Failure::Cancelled), None) => (Tone::Warning, "Signing in was canceled".to_owned()),
        (None, None) => return false,
    };
    banner_ui(ui, tone, &message, |ui| {
        ui.horizontal_wrapped(|ui| {
            copy_renewal_ui(ui, sign_in, commands);
            try_again_ui(ui, access, Some(sign_in), "Retry", commands);
        });
    });
    true
}

fn ending_message(access: &S3Access, sign_in: &SignIn, left_ms: i64) -> String {
    let whose = &access.credentials;
    let when = if left_ms > 0 { format!("expires in {}", duration_text(left_ms)) } else { "has expired".to_owned() };
    let what_to_do = match &sign_in.renewal {
        Some(command) => format!("run `{command}`, then try again"),
        None => "renew it with its provider, then try again".to_owned(),
    };
    format!("The sign-in with {whose} {when}; {what_to_do}")
}

/// A button that copies the sign-in command, if one is needed.
pub(crate) fn copy_renewal_ui(ui: &mut Ui, sign_in: &SignIn, commands: &mut Commands) {
    let renewal = match &sign_in.failure {
        Some(Failure::Failed { renewal, .. }) => renewal.as_deref(),
        _ => sign_in.renewal.as_deref(),
    };
    if let Some(command) = renewal {
        copy_command_ui(ui, command, commands);
    }
}

/// The same for a failure of something other than signing in.
pub(crate) fn copy_sign_in_ui(ui: &mut Ui, failure: Option<&Failure>, commands: &mut Commands) {
    if let Some(Failure::Failed { renewal: Some(command), .. }) = failure {
        copy_command_ui(ui, command, commands);
    }
}

/// A button that copies a command to the clipboard.
pub(crate) fn copy_command_ui(ui: &mut Ui, command: &str, commands: &mut Commands) {
    ui.button("Copy command")
        .on_hover_text(format!("Copies `{command}`"))
        .on_click(commands, || Command::CopyCommand(command.to_owned()));
}

fn try_again_ui(ui: &mut Ui, access: &S3Access, sign_in: Option<&SignIn>, label: &str, commands: &mut Commands) {
    let is_asking = sign_in.is_some_and(SignIn::is_asking);
    ui.add_enabled(!is_asking, Button::new(label)).on_click(commands, || S3Command::SignIn(access.clone()));
    if is_asking {
        ui.spinner();
    }
}

/// “ends in 12 min”.
fn end_text(left_ms: i64) -> String {
    if left_ms > 0 { format!("expires in {}", duration_text(left_ms)) } else { "has expired".to_owned() }
}

/// Rounded down to natural units: `less than a minute`, `12 min`, `2 h 10 min`, `3 days`.
pub(crate) fn duration_text(ms: i64) -> String {
    let minutes = ms / 60_000;
    match minutes {
        ..1 => "less than a minute".to_owned(),
        1..60 => format!("{minutes} min"),
        60..2880 => format!("{} h {} min", minutes / 60, minutes % 60),
        _ => format!("{} days", minutes / 1440),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_is_rounded() {
        const MINUTE: i64 = 60_000;
        for (ms, text) in [
            (1, "less than a minute"),
            (MINUTE, "1 min"),
            (59 * MINUTE, "59 min"),
            (130 * MINUTE, "2 h 10 min"),
            (3 * 1440 * MINUTE, "3 days"),
        ] {
            assert_eq!(duration_text(ms), text);
        }
        assert_eq!(end_text(-1), "has expired");
    }

    #[test]
    fn identity_is_shown_with_profile_and_expiry() {
        let access = S3Access { credentials: Credentials::Profile("work".to_owned()), ..S3Access::default() };
        let mut sign_in = SignIn::default();
        assert_eq!(sign_in_text(&access, None), "profile work");
        let arn = "arn:aws:iam::123456789012:user/alice";
        let end = now_ms() + 130 * 60_000 + 30_000;
        sign_in.identity = Some(Identity::from_arn("123456789012", arn, Some(end)));
        assert_eq!(
            sign_in_text(&access, Some(&sign_in)),
            "alice, account 123456789012, expires in 2 h 10 min, profile work"
        );
        assert_eq!(short_text(&access, Some(&sign_in)), "profile work");
        let anonymous = S3Access { credentials: Credentials::Anonymous, ..S3Access::default() };
        let anyone = Credentials::Anonymous.to_string();
        sign_in.identity = Some(Identity::unasked(&anyone, None));
        assert_eq!(sign_in_text(&anonymous, Some(&sign_in)), anyone);
        assert_eq!(short_text(&anonymous, Some(&sign_in)), "anonymous");
        let usual = S3Access::default();
        assert_eq!(short_text(&usual, None), "AWS credentials");
        let key = "access key …0001";
        let unasked = format!("{key} (not asked: custom endpoint)");
        sign_in.identity = Some(Identity::unasked(unasked, None));
        assert_eq!(short_text(&usual, Some(&sign_in)), key);
    }
}
