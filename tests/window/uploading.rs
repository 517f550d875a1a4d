//! Uploading from the window to a real S3 server. The test has a separate process, because the AWS settings are those
//! of its process.

use egui_kittest::kittest::Queryable;
use spotcheck::window::state::Action;

use crate::support::alone::alone;
use crate::support::seaweed::{ADMIN, Seaweed};
use crate::window::{click, folder_of, open, sees, wait_for, wait_until, wait_until_idle};

const OPEN_FOLDER: &str = "Open this S3";

#[test]
fn upload_shows_its_plan_and_opens_its_folder() {
    alone(
        "uploading::upload_shows_its_plan_and_opens_its_folder",
        |command| {
            let server = Seaweed::shared();
            server.lend(command);
            ADMIN.sign_in(command, &server.endpoint());
        },
        || {
            let bucket = Seaweed::shared().bucket("window-upload");
            let folder = folder_of(3, "chelsea.png");
            let mut names: Vec<String> = std::fs::read_dir(folder.path())
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            bucket.put(&format!("photos/{}", names[0]), b"hers");
            let mut window = open(Some(folder.path()), "efficientnet-lite0");
            wait_for(&mut window, "3 images");

            window.state_mut().command(Action::Upload);
            wait_for(&mut window, "Preview upload");
            assert!(sees(&window, "All images (3)"));
            let field = window.get_by_label("S3 folder");
            field.focus();
            window.step();
            let address = bucket.uri("photos");
            window.get_by_label("S3 folder").type_text(&address);
            window.run_steps(2);
            click(&mut window, "Preview upload");
            wait_for(&mut window, "2 files (");
            wait_for(&mut window, "different content");
            wait_for(&mut window, "(4 B)");
            assert_eq!(bucket.get(&format!("photos/{}", names[1])), None);

            click(&mut window, "Upload now");
            wait_for(&mut window, OPEN_FOLDER);
            wait_for(&mut window, "Kept: ");
            for name in &names[1..] {
                let content = std::fs::read(folder.path().join(name)).unwrap();
                let arrived = bucket.get(&format!("photos/{name}"));
                assert!(arrived == Some(content), "{name}");
            }
            let kept = bucket.get(&format!("photos/{}", names[0]));
            assert_eq!(kept.as_deref(), Some(&b"hers"[..]));

            click(&mut window, OPEN_FOLDER);
            let place = bucket.uri("photos/");
            wait_until(&mut window, "the S3 folder", |window| {
                let source = window.state().state().source.as_ref();
                source.is_some_and(|source| source.name == place)
            });
            wait_for(&mut window, "3 images");
        },
    );
}

#[test]
fn empty_upload_is_closed_and_not_canceled() {
    alone(
        "uploading::empty_upload_is_closed_and_not_canceled",
        |command| {
            let server = Seaweed::shared();
            server.lend(command);
            ADMIN.sign_in(command, &server.endpoint());
        },
        || {
            let bucket = Seaweed::shared().bucket("window-upload-again");
            let folder = folder_of(1, "chelsea.png");
            let mut window = open(Some(folder.path()), "efficientnet-lite0");
            wait_for(&mut window, "1 image");
            wait_until_idle(&mut window);
            window.state_mut().command(Action::Upload);
            wait_for(&mut window, "Preview upload");
            window.get_by_label("S3 folder").focus();
            window.step();
            window.get_by_label("S3 folder").type_text(&bucket.uri("photos"));
            window.run_steps(2);
            click(&mut window, "Preview upload");
            wait_for(&mut window, "Upload now");
            assert!(window.query_by_label("Cancel").is_some());
            click(&mut window, "Upload now");
            wait_for(&mut window, OPEN_FOLDER);
            click(&mut window, "Close");
            wait_until_idle(&mut window);
            window.state_mut().command(Action::Upload);
            wait_for(&mut window, "Preview upload");
            click(&mut window, "Preview upload");
            let present = "already in S3";
            wait_for(&mut window, present);
            assert!(sees(&window, "1 file (235 KiB)"));
            assert!(window.query_by_label("Cancel").is_none());
            click(&mut window, "Close");
            wait_until(&mut window, "the dialog to close", |window| !sees(window, present));
        },
    );
}
