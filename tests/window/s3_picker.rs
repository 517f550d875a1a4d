//! S3 in the window: the dialog for finding a location, and the signed-in identity. Each test has a separate process,
//! because the AWS settings are those of its process.

use std::path::{Path, PathBuf};
use std::process::Command as Process;

use egui::{Key, Modifiers};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;
use spotcheck::window::app::App;
use spotcheck::window::state::{Action, Overlay};

use crate::support::alone::alone;
use crate::support::seaweed::{ADMIN, BLIND, Bucket, IMPOSTOR, Login, READER, Seaweed, without_aws};
use crate::window::{
    PATH_FIELD, click, open, open_in, samples, sees, text_field, wait_for, wait_for_failed_listing, wait_for_notice,
    wait_for_overlay, wait_until, wait_until_idle,
};

const CLASSIFIER: &str = "efficientnet-lite0";

/// Only the profiles of the server are in the AWS configuration: the address of the server is typed.
fn with_profiles(command: &mut Process) {
    let server = Seaweed::shared();
    server.lend(command);
    without_aws(command, &server.endpoint())
        .env("AWS_CONFIG_FILE", server.aws_config())
        .env_remove("AWS_ENDPOINT_URL_S3")
        .env_remove("AWS_REGION");
}

fn with_config(command: &mut Process, home: &Path, config: &str) {
    with_profiles(command);
    let path = home.join("config");
    std::fs::write(&path, config).unwrap();
    command.env("AWS_CONFIG_FILE", path).env("HOME", home);
}

type Window = Harness<'static, App>;

fn type_into(window: &mut Window, field: &str, text: &str) {
    text_field(window, field).focus();
    window.step();
    text_field(window, field).type_text(text);
    window.step();
}

/// Opens the dialog and types the server's address.
fn dialog(window: &mut Window) {
    window.key_press_modifiers(Modifiers::COMMAND, Key::L);
    wait_for(window, "Open this address");
    click(window, "Server and region");
    wait_for(window, "Server address");
    type_into(window, "Server address", &Seaweed::shared().endpoint());
    window.key_press(Key::Enter);
    window.run_steps(2);
}

fn sign_in_with(window: &mut Window, name: &str) {
    wait_until(window, "the AWS configuration", |window| window.state().state().s3.setup.is_some());
    window.get_by_label("Profile").click_accesskit();
    wait_for(window, name);
    click(window, name);
    window.run_steps(2);
}

/// `photos/may/` with two images, `photos/june/` with one, and a text file.
fn bucket(name: &str) -> Bucket {
    let bucket = Seaweed::shared().bucket(name);
    fill(&bucket);
    bucket
}

fn fill(bucket: &Bucket) {
    let image = std::fs::read(samples().join("chelsea.png")).unwrap();
    for key in ["may/a.png", "may/b.png", "june/c.png"] {
        bucket.put(&format!("photos/{key}"), &image);
    }
    bucket.put("photos/read me.txt", b"text");
}

/// Checks that the program stores no secret.
fn assert_no_secret_is_kept(window: &Window, projects: &Path) {
    let settings = serde_json::to_string(&window.state().state().settings).unwrap();
    let mut kept = vec![settings.into_bytes()];
    for entry in walkdir::WalkDir::new(projects) {
        let entry = entry.unwrap();
        if entry.file_type().is_file() {
            kept.push(std::fs::read(entry.path()).unwrap());
        }
    }
    assert!(kept.len() > 1, "no project");
    for Login { secret_key, access_key, .. } in [ADMIN, READER, BLIND, IMPOSTOR] {
        for text in &kept {
            let has = |secret: &str| text.windows(secret.len()).any(|part| part == secret.as_bytes());
            assert!(!has(secret_key) && !has(access_key));
        }
    }
}

#[test]
fn address_and_profile_show_images_and_identity() {
    alone("s3_picker::address_and_profile_show_images_and_identity", with_profiles, || {
        let bucket = bucket("typed");
        let projects = tempfile::tempdir().unwrap();
        let mut window = open_in(projects.path(), None, CLASSIFIER);
        dialog(&mut window);
        sign_in_with(&mut window, "reader");
        type_into(&mut window, "S3 address", &bucket.uri("photos/"));
        wait_for(&mut window, "folder photos/");
        window.key_press(Key::Enter);
        wait_for(&mut window, "3 images");
        wait_for(&mut window, "may/a.png, ");
        wait_for(&mut window, "profile reader");
        wait_for(&mut window, "1 predicted");
        wait_for(&mut window, "All saved");
        wait_until_idle(&mut window);
        // The rest of it is in the tooltip, once the label no longer moves away from the pointer.
        let whole = "access key …0001 (not asked";
        assert!(!sees(&window, whole));
        window.get_by_label("profile reader").hover();
        wait_for(&mut window, whole);
        assert_no_secret_is_kept(&window, projects.path());
        // From now on, it is one click away.
        let place = &window.state().state().settings.recent_places[0];
        assert_eq!(place.address.to_string(), bucket.uri("photos/"));
        window.state_mut().command(Action::OpenSamples);
        wait_for(&mut window, "8 images");
        assert!(!sees(&window, "profile reader"));
        click(&mut window, "Recent");
        click(&mut window, &bucket.uri("photos/"));
        wait_for(&mut window, "3 images");
        wait_for(&mut window, "profile reader");
    });
}

#[test]
fn bucket_tree_works_by_keyboard() {
    alone("s3_picker::bucket_tree_works_by_keyboard", with_profiles, || {
        let bucket = bucket("a-tree");
        let mut window = open(None, CLASSIFIER);
        dialog(&mut window);
        // Choosing a profile lists what it may access.
        sign_in_with(&mut window, "reader");
        wait_for(&mut window, &format!("{}, bucket", bucket.name));
        click(&mut window, &format!("Expand {}", bucket.uri("")));
        wait_for(&mut window, "photos, folder");
        window.key_press(Key::ArrowDown);
        window.step();
        window.key_press(Key::ArrowRight);
        wait_for(&mut window, "june, folder");
        wait_for(&mut window, "1 object");
        for _ in 0..2 {
            window.key_press(Key::ArrowDown);
            window.run_steps(2);
        }
        wait_for(&mut window, "folder photos/may/");
        window.key_press(Key::Enter);
        wait_for(&mut window, "2 images");
        assert!(sees(&window, "a.png, "));
    });
}

#[test]
fn folder_opens_without_subfolders() {
    alone("s3_picker::folder_opens_without_subfolders", with_profiles, || {
        let bucket = bucket("shallow");
        bucket.put("photos/top.png", &std::fs::read(samples().join("coffee.png")).unwrap());
        let mut window = open(None, CLASSIFIER);
        dialog(&mut window);
        sign_in_with(&mut window, "reader");
        type_into(&mut window, "S3 address", &bucket.uri("photos/"));
        click(&mut window, "This folder only");
        click(&mut window, "Open this address");
        wait_for(&mut window, "1 image");
        wait_for(&mut window, "top.png, ");
    });
}

#[test]
fn public_bucket_opens_without_sign_in() {
    alone("s3_picker::public_bucket_opens_without_sign_in", with_profiles, || {
        let bucket = Seaweed::shared().public_bucket("window");
        fill(&bucket);
        let mut window = open(None, CLASSIFIER);
        window.key_press_modifiers(Modifiers::COMMAND, Key::L);
        wait_for(&mut window, "Open this address");
        sign_in_with(&mut window, "Anonymous");
        let url = format!("{}/{}/photos/may/", Seaweed::shared().endpoint(), bucket.name);
        type_into(&mut window, "S3 address", &url);
        wait_for(&mut window, &format!("at {}", Seaweed::shared().endpoint()));
        window.key_press(Key::Enter);
        wait_for(&mut window, "2 images");
        wait_for(&mut window, "anonymous");
    });
}

#[test]
fn wrong_secret_and_missing_permission_are_located() {
    alone("s3_picker::wrong_secret_and_missing_permission_are_located", with_profiles, || {
        let bucket = bucket("refused");
        let mut window = open(None, CLASSIFIER);
        dialog(&mut window);
        sign_in_with(&mut window, "impostor");
        let wrong = "of profile impostor";
        wait_for(&mut window, wrong);
        assert!(!sees(&window, IMPOSTOR.secret_key));
        // Without the permission to list, the missing permission is shown in the requested folder.
        sign_in_with(&mut window, "blind");
        wait_until(&mut window, "the other's refusal to go", |window| !sees(window, wrong));
        type_into(&mut window, "S3 address", &bucket.uri("photos/"));
        click(&mut window, "Browse");
        wait_for(&mut window, "s3:ListBucket");
        click(&mut window, "Open this address");
        let failure = wait_for_failed_listing(&mut window);
        assert!(failure.contains("profile blind") && failure.contains("s3:ListBucket"), "{failure}");
        assert!(sees(&window, "Open it again"));
    });
}

#[test]
fn invalid_address_sends_no_request() {
    let mut window = open(None, CLASSIFIER);
    type_into(&mut window, PATH_FIELD, "s3://a/b");
    window.key_press(Key::Enter);
    wait_for_overlay(&mut window, Overlay::OpenS3);
    wait_for(&mut window, "“a”");
    assert!(sees(&window, "Open this address"));
    window.key_press(Key::Escape);
    wait_until(&mut window, "the dialog to close", |window| !sees(window, "Open this address"));
}

/// A profile whose credential process returns the admin's key, valid until the time in the file `expires`.
fn ending_profile(home: &Path) -> String {
    let script: PathBuf = home.join("give-keys.sh");
    let text = format!(
        "cat <<END\n{{\"Version\": 1, \"AccessKeyId\": \"{}\", \"SecretAccessKey\": \"{}\", \"Expiration\": \"$(cat \
        '{}/expires')\"}}\nEND\n",
        ADMIN.access_key,
        ADMIN.secret_key,
        home.display()
    );
    std::fs::write(&script, text).unwrap();
    format!("[profile tool]\nregion = us-east-1\ncredential_process = sh {}\n", script.display())
}

#[test]
fn expiring_sign_in_warns_until_renewed() {
    let home = tempfile::tempdir().unwrap();
    let config = ending_profile(home.path());
    alone(
        "s3_picker::expiring_sign_in_warns_until_renewed",
        |command| with_config(command, home.path(), &config),
        || {
            let home = std::env::home_dir().unwrap();
            let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_mins(6);
            std::fs::write(home.join("expires"), format!("{soon:.0}")).unwrap();
            let bucket = bucket("ending");
            let mut window = open(None, CLASSIFIER);
            dialog(&mut window);
            sign_in_with(&mut window, "tool");
            type_into(&mut window, "S3 address", &bucket.uri("photos/"));
            window.key_press(Key::Enter);
            wait_for(&mut window, "3 images");
            let warning = "tool expires in";
            wait_for(&mut window, warning);
            std::fs::write(home.join("expires"), "2099-01-02T03:04:05Z").unwrap();
            click(&mut window, "Retry");
            wait_until(&mut window, "the warning to go", |window| !sees(window, warning));
            // Not by hovering: when the warning disappears, the label moves away from the pointer.
            window.get_by_label("profile tool").click_accesskit();
            wait_for(&mut window, " days");
        },
    );
}

#[test]
fn expired_sso_offers_the_renewal_command() {
    let home = tempfile::tempdir().unwrap();
    let config = "[profile work]\nsso_session = company\nsso_account_id = 123456789012\nsso_role_name = \
        Reader\nregion = us-east-1\n\n\
         [sso-session company]\nsso_region = us-east-1\nsso_start_url = https://example.awsapps.com/start\n";
    alone(
        "s3_picker::expired_sso_offers_the_renewal_command",
        |command| with_config(command, home.path(), config),
        || {
            let mut window = open(None, CLASSIFIER);
            dialog(&mut window);
            sign_in_with(&mut window, "work");
            wait_for(&mut window, "aws sso login --profile work");
            click(&mut window, "Copy command");
            wait_for_notice(&mut window, "command");
        },
    );
}
