//! The access to S3: the profile, the server and its region.

use crate::domain::{AwsProfile, AwsSetup, Credentials, EndpointError, S3Access, parse_endpoint};
use crate::window::state::S3Command;
use crate::window::ui::prelude::*;

const FIELD_WIDTH: f32 = 230.0;

#[derive(Default)]
pub(crate) struct AccessMemory {
    /// The access that the drafts were taken from.
    taken_from: S3Access,
    endpoint: String,
    region: String,
}

impl AccessMemory {
    pub(crate) fn is_valid(&self) -> bool {
        self.parsed_endpoint().is_ok()
    }

    fn parsed_endpoint(&self) -> Result<Option<String>, EndpointError> {
        parse_endpoint(&self.endpoint)
    }

    /// The access with the typed text, even if the field still has the focus. Invalid text is ignored.
    pub(crate) fn with_drafts(&self, access: S3Access) -> S3Access {
        if access.endpoint != self.taken_from.endpoint || access.region != self.taken_from.region {
            // An address that was just typed contains it.
            return access;
        }
        let region = self.region.trim();
        S3Access {
            endpoint: self.parsed_endpoint().unwrap_or(access.endpoint),
            region: (!region.is_empty()).then(|| region.to_owned()),
            ..access
        }
    }

    fn take_over(&mut self, access: &S3Access) {
        if self.taken_from != *access {
            self.taken_from = access.clone();
            self.endpoint = access.endpoint.clone().unwrap_or_default();
            self.region = access.region.clone().unwrap_or_default();
        }
    }
}

pub(crate) fn access_ui(ui: &mut Ui, state: &State, memory: &mut AccessMemory, commands: &mut Commands) {
    let access = &state.s3.access;
    memory.take_over(access);
    let mut wanted = access.clone();
    ui.horizontal_wrapped(|ui| {
        ui.label("Sign in with");
        if credentials_ui(ui, state, &mut wanted.credentials) {
            let wanted = memory.with_drafts(wanted.clone());
            let asks = wanted.credentials != Credentials::Anonymous;
            commands.push(S3Command::SetAccess(wanted));
            // A profile was just chosen: show what it gives access to.
            if asks {
                commands.push(S3Command::ListBuckets);
            }
        }
    });
    if let Some(who) = state.sign_ins.get(access).and_then(who_text) {
        note_ui(ui, who);
    }
    if let Some(Err(reason)) = &state.s3.setup {
        message_ui(ui, Tone::Warning, reason);
    }
    sign_in_banner_ui(ui, access, state, commands);
    let is_special = *access != S3Access { credentials: access.credentials.clone(), ..S3Access::default() };
    CollapsingHeader::new("Server and region")
        .default_open(is_special)
        .show(ui, |ui| server_ui(ui, access, memory, commands));
}

/// Returns true if other credentials were chosen.
fn credentials_ui(ui: &mut Ui, state: &State, wanted: &mut Credentials) -> bool {
    let setup = state.s3.known_setup();
    let before = wanted.clone();
    let text = credentials_text(wanted, setup);
    ui.spacing_mut().combo_height = 320.0;
    Field::new("Profile").width(FIELD_WIDTH).list_ui(ui, &text, |ui| {
        ui.set_min_width(340.0);
        option_ui(
            ui,
            wanted,
            Credentials::Ambient,
            "Environment and default profile",
            &setup.map_or_else(String::new, |setup| setup.ambient.to_string()),
        );
        option_ui(ui, wanted, Credentials::Anonymous, "Anonymous", "public buckets");
        ui.separator();
        match setup {
            None => drop(ui.weak("Reading the AWS configuration…")),
            Some(setup) if setup.profiles.is_empty() => {
                ui.weak("No profiles in ~/.aws/config or ~/.aws/credentials");
            }
            Some(setup) => {
                for profile in &setup.profiles {
                    let credentials = Credentials::Profile(profile.name.clone());
                    let name = &profile.name;
                    option_ui(ui, wanted, credentials, name, &profile_text(profile));
                }
            }
        }
    });
    *wanted != before
}

fn option_ui(ui: &mut Ui, wanted: &mut Credentials, credentials: Credentials, name: &str, explanation: &str) {
    let button = Button::selectable(*wanted == credentials, name).right_text(RichText::new(explanation).weak());
    if ui.add(button).clicked() {
        *wanted = credentials;
        ui.close();
    }
}

/// “single sign-on, eu-west-1”.
fn profile_text(profile: &AwsProfile) -> String {
    match &profile.region {
        Some(region) => format!("{}, {region}", profile.means),
        None => profile.means.to_string(),
    }
}

fn credentials_text(credentials: &Credentials, setup: Option<&AwsSetup>) -> String {
    match (credentials, setup) {
        (Credentials::Ambient, Some(setup)) => format!("Default: {}", setup.ambient),
        (Credentials::Ambient, None) => "Environment and default profile".to_owned(),
        (Credentials::Profile(name), _) => format!("Profile {name}"),
        (Credentials::Anonymous, _) => "Anonymous".to_owned(),
    }
}

fn server_ui(ui: &mut Ui, access: &S3Access, memory: &mut AccessMemory, commands: &mut Commands) {
    let mut wanted = access.clone();
    let mut is_done = false;
    Grid::new("server and region").num_columns(2).show(ui, |ui| {
        ui.label("Server");
        let hint = "AWS, or http://127.0.0.1:9000";
        is_done |= text_ui(ui, &mut memory.endpoint, "Server address", hint);
        ui.end_row();
        ui.label("Region");
        let region = &mut memory.region;
        is_done |= text_ui(ui, region, "Bucket region", "automatic");
        ui.end_row();
        ui.label("Bucket");
        let choices = [(None, "automatic"), (Some(true), "in the path"), (Some(false), "in the host name")];
        Field::new("Bucket name")
            .help("AWS uses the host name; most other servers use the path")
            .width(FIELD_WIDTH)
            .choice_ui(ui, &mut wanted.path_style, &choices);
        ui.end_row();
        ui.label("");
        checkbox_ui(ui, &mut wanted.requester_pays, "Requester pays")
            .on_hover_text("Requests and downloads are charged to your AWS account");
        ui.end_row();
    });
    if let Err(error) = memory.parsed_endpoint() {
        problem_ui(ui, error);
        is_done = false;
    }
    if is_done {
        wanted = memory.with_drafts(wanted);
    }
    if wanted != *access {
        commands.push(S3Command::SetAccess(wanted));
    }
}

/// Returns true if its text counts: Enter was pressed, or the field was left.
fn text_ui(ui: &mut Ui, text: &mut String, name: &str, hint: &str) -> bool {
    let field = Field::new(name).hint(hint).width(FIELD_WIDTH).text_ui(ui, text);
    field.lost_focus() && !ui.input(|input| input.key_pressed(Key::Escape))
}

/// The hint above the tree until the buckets are listed.
pub(crate) fn invitation(credentials: &Credentials) -> &'static str {
    match credentials {
        Credentials::Anonymous => {
            "Buckets cannot be listed without signing in; enter the address of a public bucket above and browse it"
        }
        Credentials::Ambient | Credentials::Profile(_) => {
            "Not listed yet; list the buckets, or enter an address above and browse it"
        }
    }
}

pub(crate) fn heading(credentials: &Credentials) -> RichText {
    strong(match credentials {
        Credentials::Anonymous => "Public buckets".to_owned(),
        Credentials::Ambient | Credentials::Profile(_) => "Buckets".to_owned(),
    })
}
