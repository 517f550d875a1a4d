//! Images of the real window for the README, which therefore cannot show anything that the program does not do.
//!
//! The test always draws and checks them; it writes `screenshots/` only if `SPOTCHECK_WRITE_SCREENSHOTS` is set,
//! because two versions of a software rasterizer differ in the last bit.

use std::cell::OnceCell;
use std::path::Path;

use egui::{Key, Theme};
use egui_kittest::{Harness, HarnessBuilder};
use spotcheck::dirs::AppDirs;
use spotcheck::domain::{Credentials, S3Access};
use spotcheck::review::{GroupBy, SampleBy};
use spotcheck::window::app::App;
use spotcheck::window::state::{
    Action, BrowseCommand, Command, Display, MapCommand, MapStage, MergeCommand, ModelsCommand, ProjectCommand,
    RIGHT_AND_BOTTOM, ReviewCommand, S3Command, SampleDesign, SearchCommand, ViewChange,
};

use crate::adding_models::wait_until_tried;
use crate::browsing::drop_on;
use crate::duplicates::with_copies;
use crate::support::alone::alone;
use crate::support::control_plane::ROLE;
use crate::support::repository;
use crate::support::seaweed::{Bucket, Seaweed, without_aws};
use crate::truth::{open_truth, truth_of_samples};
use crate::window::{
    click, home_with_runtime, open_at, open_with, predict_samples, samples, wait_for, wait_for_notice, wait_until,
    wait_until_idle,
};
use crate::{endpoints, remote};

const CLASSIFIER: &str = "efficientnet-lite0";
const DETECTOR: &str = "ssd-mobilenet-coco";

fn window(model: &str, theme: Theme) -> Harness<'static, App> {
    let mut window = open_with(None, model, |builder| drawn(builder, theme));
    click(&mut window, "Open sample images");
    window
}

fn drawn(builder: HarnessBuilder<App>, theme: Theme) -> HarnessBuilder<App> {
    builder.with_theme(theme).with_pixels_per_point(1.0).with_render_cursor(false).wgpu()
}

/// Every image is predicted, and the named one is shown.
fn predicted(model: &str, theme: Theme, shown: &str, prediction: &str) -> Harness<'static, App> {
    let mut window = window(model, theme);
    predict_samples(&mut window);
    show(&mut window, shown, prediction);
    window
}

fn show(window: &mut Harness<'static, App>, image: &str, prediction: &str) {
    click(window, &format!("{image}, "));
    wait_for(window, prediction);
}

/// Renders once more than needed, so that the last uploaded textures are ready.
fn take(window: &mut Harness<'static, App>, name: &str) {
    wait_until(window, "the finest tiles", |window| {
        let is_ready = matches!(window.state().state().shown.display, Display::Ready(_));
        is_ready && window.state().image_is_complete()
    });
    save(window, name);
}

fn save(window: &mut Harness<'static, App>, name: &str) {
    // By then, everything has faded in.
    window.run_steps(12);
    let image = window.render().unwrap();
    let colors: std::collections::HashSet<[u8; 4]> = image.pixels().map(|pixel| pixel.0).collect();
    assert!(colors.len() > 1000, "{name} shows no image");
    if std::env::var_os("SPOTCHECK_WRITE_SCREENSHOTS").is_some() {
        let folder = repository().join("screenshots");
        std::fs::create_dir_all(&folder).unwrap();
        image.save(folder.join(format!("{name}.png"))).unwrap();
    }
}

#[test]
fn detections_dark() {
    let mut window = predicted(DETECTOR, Theme::Dark, "coffee.png", "cup ");
    take(&mut window, "detection-dark");
}

#[test]
fn similar_boxes_light() {
    let mut window = predicted(DETECTOR, Theme::Light, "coffee.png", "cup ");
    window.state_mut().command(ReviewCommand::SelectBox(Some(0)));
    window.state_mut().command(Action::FindAlikeBoxes);
    wait_until(&mut window, "similar boxes", |window| {
        let strip = window.state().state().filmstrip.as_ref();
        strip.is_some_and(|strip| strip.frames().len() > 3) && window.state().filmstrip_is_complete()
    });
    take(&mut window, "similar-boxes");
}

#[test]
fn repaired_boxes_dark() {
    let mut window = predicted(DETECTOR, Theme::Dark, "coffee.png", "cup ");
    wait_until(&mut window, "the project", |window| window.state().state().project.is_writable());
    window.state_mut().command(Action::GoOnAfterVerdict);
    for (class, bounds) in [("spoon", [320.0, 205.0, 424.0, 326.0]), ("saucer", [74.0, 130.0, 482.0, 392.0])] {
        window.state_mut().command(Action::DrawBox);
        window.state_mut().command(ReviewCommand::DrawBox(bounds.into()));
        window.state_mut().command(ReviewCommand::ChooseClass(class.to_owned()));
    }
    window.state_mut().command(ReviewCommand::SelectBox(Some(0)));
    window.state_mut().command(ReviewCommand::NudgeBox { by: [3.0, 2.0], edges: RIGHT_AND_BOTTOM });
    take(&mut window, "repair-dark");
}

#[test]
fn review_report_light() {
    let mut window = predicted(DETECTOR, Theme::Light, "coffee.png", "cup ");
    wait_until(&mut window, "the project", |window| window.state().state().project.is_writable());
    let coffee = window.state().state().shown_sample().unwrap();
    window.state_mut().command(Action::GoOnAfterVerdict);
    window.state_mut().command(Action::SelectAll);
    window.state_mut().command(Action::Accept);
    window.state_mut().command(BrowseCommand::Show(coffee));
    window.state_mut().command(ReviewCommand::SelectBox(Some(1)));
    window.state_mut().command(ReviewCommand::ChooseClass("desk".to_owned()));
    window.state_mut().command(ReviewCommand::SelectBox(None));
    window.state_mut().command(Command::DismissNotice);
    wait_for(&mut window, "8 of 8 images judged");
    window.state_mut().command(Action::ReviewReport);
    wait_for(&mut window, "Precision");
    take(&mut window, "review-light");
}

/// A sample of 5 of the 6 boxes, of which `judged` have a verdict.
fn spot_check(theme: Theme, judged: usize) -> Harness<'static, App> {
    let mut window = predicted(DETECTOR, theme, "coffee.png", "cup ");
    wait_until(&mut window, "the project", |window| window.state().state().project.is_writable());
    window.state_mut().command(Action::SpotCheck);
    wait_for(&mut window, "Judge a random sample");
    let design = SampleDesign { count: 5, by: SampleBy::Random, seed: 1 };
    window.state_mut().command(ReviewCommand::DrawSample(design));
    wait_for(&mut window, "Sample: 0 of 5 judged");
    wait_until_idle(&mut window);
    for number in 1..=judged {
        wait_until(&mut window, "a box", |window| window.state().state().shown.selected_box.is_some());
        match number {
            2 => window.state_mut().command(ReviewCommand::ChooseClass("tiger".to_owned())),
            _ => window.state_mut().command(Action::Accept),
        }
        wait_for(&mut window, &format!("Sample: {number} of 5 judged"));
    }
    window.state_mut().command(Command::DismissNotice);
    window
}

#[test]
fn spot_check_dark() {
    let mut window = spot_check(Theme::Dark, 4);
    take(&mut window, "spot-check-dark");
}

#[test]
fn end_of_spot_check_light() {
    let mut window = spot_check(Theme::Light, 5);
    wait_for(&mut window, "The sample is judged");
    wait_for(&mut window, "Precision 0.8");
    take(&mut window, "spot-check-end-light");
}

#[test]
fn classes_light() {
    let mut window = predicted(CLASSIFIER, Theme::Light, "chelsea.png", "tiger cat 38.3%");
    click(&mut window, "Device");
    take(&mut window, "classification-light");
}

#[test]
#[ignore = "needs the models of scripts/train-demo-models, which take minutes"]
fn yolo_model() {
    let home = tempfile::tempdir().unwrap();
    let mut window = opened_file(home.path(), "yolo", Theme::Light);
    show(&mut window, "grace_hopper.jpg", "tie ");
    take(&mut window, "yolo-light");
}

#[test]
#[ignore = "needs the models of scripts/train-demo-models, which take minutes"]
fn rt_detr_model() {
    let home = tempfile::tempdir().unwrap();
    let mut window = opened_file(home.path(), "rt-detr", Theme::Dark);
    show(&mut window, "coffee.png", "cup ");
    take(&mut window, "rt-detr-dark");
}

/// Drops a model of `scripts/train-demo-models` on the window and adds it with the default form.
fn opened_file(home: &Path, family: &str, theme: Theme) -> Harness<'static, App> {
    let file = repository().join(format!("target/demo-models/{family}/tiny-{family}.onnx"));
    assert!(file.exists(), "{}: run scripts/train-demo-models", file.display());
    let mut window = open_at(home_with_runtime(home), |builder| drawn(builder, theme));
    drop_on(&mut window, &file);
    wait_until_tried(&mut window);
    click(&mut window, "Add this model");
    wait_for_notice(&mut window, &format!("tiny-{family}"));
    window.state_mut().command(Command::DismissNotice);
    click(&mut window, "Open sample images");
    predict_samples(&mut window);
    wait_for(&mut window, &format!("tiny-{family} on CPU"));
    window.state_mut().command(Action::ToggleThumbnailBoxes);
    window
}

#[test]
fn model_form() {
    let mut window = predicted(CLASSIFIER, Theme::Dark, "coffee.png", "espresso ");
    let model = repository().join("tests/cases/conventions/tensorflow-resnet50/model.onnx");
    drop_on(&mut window, &model);
    wait_for(&mut window, "made from coffee.png");
    take(&mut window, "own-model-dark");
}

#[test]
fn search_and_verdicts() {
    let mut window = predicted(DETECTOR, Theme::Light, "astronaut.png", "person ");
    window.state_mut().command(Action::ToggleThumbnailBoxes);
    window.state_mut().command(Action::Accept);
    wait_for(&mut window, "1 of 8 images");
    window.state_mut().command(SearchCommand::SetQuery("score>0.5".to_owned()));
    wait_for(&mut window, "of 8 images");
    wait_for(&mut window, "All saved");
    take(&mut window, "judging-light");
}

#[test]
fn filmstrip_and_magnifier() {
    let mut window = predicted(DETECTOR, Theme::Dark, "coffee.png", "cup ");
    window.state_mut().command(ReviewCommand::ChangeView(ViewChange::MinScore(0.1)));
    let cup = window.state().state().shown.prediction.as_ref().unwrap().detections()[0].class_id;
    window.state_mut().command(ReviewCommand::OpenFilmstrip(cup));
    wait_for(&mut window, "%, coffee.png");
    window.state_mut().command(ReviewCommand::SelectBox(Some(0)));
    wait_for(&mut window, "% of the image");
    wait_for(&mut window, "All saved");
    wait_until(&mut window, "the filmstrip", |window| window.state().filmstrip_is_complete());
    take(&mut window, "filmstrip-dark");
}

#[test]
fn confusion_matrix() {
    for (theme, name) in [(Theme::Dark, "evaluation-dark"), (Theme::Light, "confusion-light")] {
        let folder = tempfile::tempdir().unwrap();
        let mut window = window(DETECTOR, theme);
        predict_samples(&mut window);
        open_truth(&mut window, truth_of_samples(folder.path()));
        wait_for(&mut window, "Best F1");
        if theme == Theme::Light {
            click(&mut window, "Confusion matrix");
            click(&mut window, "dog predicted as");
            wait_until(&mut window, "the box", |window| {
                let strip = window.state().state().filmstrip.as_ref();
                strip.is_some_and(|strip| strip.frames().len() == 1) && window.state().filmstrip_is_complete()
            });
        }
        save(&mut window, name);
    }
}

/// True positives, false positives and false negatives in one image: in this ground truth, the tie is elsewhere.
#[test]
fn evaluation_errors() {
    let folder = tempfile::tempdir().unwrap();
    let mut window = window(DETECTOR, Theme::Dark);
    predict_samples(&mut window);
    open_truth(&mut window, truth_of_samples(folder.path()));
    click(&mut window, "FP 3");
    window.state_mut().command(Action::Filmstrip);
    window.state_mut().command(ReviewCommand::SetFilmClass(None));
    show(&mut window, "grace_hopper.jpg", "tie · FP, background");
    wait_until(&mut window, "the boxes", |window| {
        let strip = window.state().state().filmstrip.as_ref().unwrap();
        strip.frames().len() == 3 && window.state().filmstrip_is_complete()
    });
    take(&mut window, "truth-on-image");
}

#[test]
fn judged_labels() {
    let folder = tempfile::tempdir().unwrap();
    let mut window = window(DETECTOR, Theme::Dark);
    predict_samples(&mut window);
    open_truth(&mut window, truth_of_samples(folder.path()));
    wait_until(&mut window, "the project", |window| window.state().state().project.is_writable());
    window.state_mut().command(Action::GoOnAfterVerdict);
    window.state_mut().command(SearchCommand::SetQuery("fn".to_owned()));
    window.state_mut().command(Action::Filmstrip);
    window.state_mut().command(ReviewCommand::SetFilmClass(None));
    show(&mut window, "grace_hopper.jpg", "tie · FN");
    window.state_mut().command(ReviewCommand::SelectObject(1));
    window.state_mut().command(Action::Reject);
    wait_for(&mut window, "label is wrong");
    wait_until(&mut window, "the objects", |window| {
        let state = window.state().state();
        state.judgments.saving() == 0 && window.state().filmstrip_is_complete()
    });
    take(&mut window, "labels-dark");
}

#[test]
fn suspicious_labels() {
    let folder = tempfile::tempdir().unwrap();
    let mut window = window(DETECTOR, Theme::Dark);
    predict_samples(&mut window);
    open_truth(&mut window, truth_of_samples(folder.path()));
    wait_until(&mut window, "the project", |window| window.state().state().project.is_writable());
    window.state_mut().command(SearchCommand::SetQuery("suspicious".to_owned()));
    window.state_mut().command(Action::Filmstrip);
    window.state_mut().command(ReviewCommand::SetFilmClass(None));
    wait_until(&mut window, "the labels", |window| {
        let strip = window.state().state().filmstrip.as_ref().unwrap();
        !strip.frames().is_empty() && window.state().filmstrip_is_complete()
    });
    let frame = window.state().state().filmstrip.as_ref().unwrap().frames()[0];
    window.state_mut().command(ReviewCommand::ShowBox(frame.sample, frame.shows));
    wait_until(&mut window, "the label", |window| !window.state().state().selected_suspects().is_empty());
    window.state_mut().command(Action::FixLabel);
    wait_for(&mut window, "AP of the corrected labels");
    wait_until(&mut window, "the numbers", |window| {
        let state = window.state().state();
        state.judgments.saving() == 0 && state.tasks.is_idle() && window.state().filmstrip_is_complete()
    });
    take(&mut window, "suspicious-dark");
}

#[test]
fn comparison_of_two_runs() {
    let home = tempfile::tempdir().unwrap();
    let mut window = open_at(home_with_another_detector(home.path()), |builder| drawn(builder, Theme::Dark));
    click(&mut window, "Open sample images");
    for model in [DETECTOR, "ssd-mobilenet-bgr"] {
        let choose = Command::Models(ModelsCommand::Choose(model.to_owned()));
        window.state_mut().command(choose);
        wait_for(&mut window, "1 predicted");
        window.state_mut().command(Action::PredictAll);
        wait_for(&mut window, "8 predicted");
        wait_for(&mut window, "All saved");
        wait_until(&mut window, "the task to end", |window| window.state().state().tasks.is_idle());
    }
    click(&mut window, "Compare with ");
    wait_for(&mut window, "% agree");
    click(&mut window, "grace_hopper.jpg, ");
    click(&mut window, "Side by side");
    take(&mut window, "comparing-dark");
    let folder = tempfile::tempdir().unwrap();
    open_truth(&mut window, truth_of_samples(folder.path()));
    window.state_mut().command(Action::Comparison);
    wait_for(&mut window, "Precision-recall curves for all classes");
    wait_until_idle(&mut window);
    save(&mut window, "comparison-dark");
}

#[test]
fn merge_of_two_projects() {
    let (home, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut window = open_at(home_with_runtime(home.path()), |builder| drawn(builder, Theme::Light));
    click(&mut window, "Open sample images");
    window.state_mut().command(Command::Models(ModelsCommand::Choose(DETECTOR.to_owned())));
    wait_for(&mut window, "1 predicted");
    window.state_mut().command(Action::PredictAll);
    wait_for(&mut window, "8 predicted");
    let judge = |window: &mut Harness<'static, App>, keys: [Key; 2]| {
        click(window, "coffee.png, ");
        wait_for(window, "cup ");
        for (index, key) in keys.into_iter().enumerate() {
            window.state_mut().command(ReviewCommand::SelectBox(Some(index)));
            window.run_steps(2);
            window.key_press(key);
            window.run_steps(2);
        }
        wait_for(window, "All saved");
        wait_until_idle(window);
    };
    judge(&mut window, [Key::A, Key::R]);
    let first = window.state().state().project.path.clone().unwrap();
    let second = folder.path().join("second.spotcheck");
    window.state_mut().command(Command::Project(ProjectCommand::StartSecondPass(second)));
    wait_for(&mut window, "Blind second pass");
    wait_for(&mut window, "8 predicted");
    judge(&mut window, [Key::A, Key::A]);
    window.state_mut().command(Command::Project(ProjectCommand::Merge(MergeCommand::Compare(first))));
    wait_for(&mut window, "Conflict 1 of 1");
    wait_until_idle(&mut window);
    take(&mut window, "merge-light");
}

/// The detector once more, with swapped color channels: a common unnoticed mistake in deployments.
fn home_with_another_detector(home: &Path) -> AppDirs {
    let dirs = home_with_runtime(home);
    let built_in = repository().join("models").join(DETECTOR);
    let own = dirs.data.join("models/ssd-mobilenet-bgr");
    std::fs::create_dir_all(&own).unwrap();
    let card = std::fs::read_to_string(built_in.join("model.toml")).unwrap();
    let card = card
        .replace(DETECTOR, "ssd-mobilenet-bgr")
        .replace("SSD MobileNet v2\"", "SSD MobileNet v2, fed BGR\"")
        .replace("channels = \"rgb\"", "channels = \"bgr\"");
    std::fs::write(own.join("model.toml"), card).unwrap();
    std::fs::copy(built_in.join("model.onnx"), own.join("model.onnx")).unwrap();
    dirs
}

#[test]
fn presentation_mode() {
    let mut window = predicted(DETECTOR, Theme::Dark, "coffee.png", "cup ");
    window.key_press(Key::F11);
    wait_for(&mut window, "Escape exits");
    wait_for(&mut window, "cup 96%");
    // The boxes would restart on the next image.
    window.state_mut().command(ReviewCommand::PlaySlides(false));
    take(&mut window, "presenting");
}

#[test]
fn s3_picker() {
    // On the shared server, the buckets of other tests would be in the image.
    let server = OnceCell::new();
    alone(
        "screenshots::s3_picker",
        |command| {
            let server = server.get_or_init(Seaweed::start);
            server.lend(command);
            without_aws(command, &server.endpoint()).env("AWS_CONFIG_FILE", server.aws_config());
        },
        || {
            let server = Seaweed::shared();
            let images = server.bucket_of_one_test("street-images");
            for folder in ["2024/may", "2024/june", "2025/january", "2025/march"] {
                images.put(&format!("{folder}/readme.txt"), b"text");
                images.put_folder(&format!("{folder}/"), &samples());
            }
            server.bucket_of_one_test("crops-for-training").put("a.png", b"");
            let mut window = predicted(DETECTOR, Theme::Dark, "coffee.png", "cup ");
            let reader = S3Access { credentials: Credentials::Profile("reader".to_owned()), ..S3Access::default() };
            window.state_mut().command(Action::OpenS3);
            window.state_mut().command(S3Command::SetAccess(reader));
            window.state_mut().command(S3Command::ListBuckets);
            wait_for(&mut window, "street-images, bucket");
            for (folder, inner) in [("", "2024"), ("2024/", "may")] {
                click(&mut window, &format!("Expand {}", images.uri(folder)));
                wait_for(&mut window, &format!("{inner}, folder"));
            }
            click(&mut window, &format!("Expand {}", images.uri("2024/may/")));
            wait_for(&mut window, "objects");
            wait_for(&mut window, "access key …0001");
            wait_until(&mut window, "all predictions", |window| window.state().state().tasks.is_idle());
            take(&mut window, "open-s3-dark");
        },
    );
}

#[test]
fn occlusion_explanation() {
    let mut window = predicted(CLASSIFIER, Theme::Light, "chelsea.png", "tiger cat 38.3%");
    click(&mut window, "Explain");
    wait_for(&mut window, "the whole image");
    wait_until(&mut window, "the task to end", |window| window.state().state().tasks.is_idle());
    take(&mut window, "explaining-light");
}

#[test]
fn class_table() {
    let mut window = predicted(DETECTOR, Theme::Light, "coffee.png", "cup ");
    // The model is known; the sections below it matter here.
    for section in ["Model", "Magnifier"] {
        click(&mut window, section);
    }
    let threshold = Command::Review(ReviewCommand::ChangeView(ViewChange::MinScore(0.3)));
    window.state_mut().command(threshold);
    window.state_mut().command(Action::ToggleThumbnailBoxes);
    wait_for(&mut window, "Classes in 8 images");
    wait_for(&mut window, "All saved");
    take(&mut window, "classes-light");
}

#[test]
fn export_dialog() {
    let mut window = predicted(DETECTOR, Theme::Dark, "coffee.png", "cup ");
    wait_for(&mut window, "All saved");
    window.key_press_modifiers(egui::Modifiers::COMMAND, Key::E);
    wait_for(&mut window, "Search results (8, with ");
    take(&mut window, "exporting-dark");
}

/// The outcome of a job, and its outputs compared with the local run.
#[test]
fn sagemaker_job() {
    let mut plane = None;
    alone("screenshots::sagemaker_job", remote::serve(&mut plane), || {
        let bucket = Seaweed::shared().bucket_of_one_test("holiday-images");
        bucket.put_folder("photos/", &samples());
        bucket.delete("photos/CREDITS.md");
        let mut window = on_bucket(&bucket, Theme::Dark);
        click(&mut window, "Predict all");
        wait_for(&mut window, "8 images, 8 predicted");
        click(&mut window, "coffee.png, ");
        wait_for(&mut window, "cup ");
        fill_in(&mut window);
        take(&mut window, "sagemaker-form-dark");
        click(&mut window, "Start the job");
        wait_for(&mut window, "✓ completed");
        click(&mut window, "Container log");
        take(&mut window, "sagemaker-job-dark");
        click(&mut window, "Open outputs");
        wait_until(&mut window, "the job outputs", |window| {
            let run = window.state().state().run();
            run.is_some_and(|run| !run.info.key.made.is_here() && run.predictions.predicted() == 8)
        });
        wait_for(&mut window, "All saved");
        window.state_mut().command(Action::CompareWithLocal);
        remote::agrees_with_local(&mut window, 8);
        click(&mut window, "coffee.png, ");
        wait_for(&mut window, "cup ");
        click(&mut window, "Side by side");
        take(&mut window, "sagemaker-compare-dark");
    });
}

/// The cost of an endpoint stays in view.
#[test]
fn endpoint_with_costs() {
    let mut plane = None;
    alone("screenshots::endpoint_with_costs", endpoints::account(&mut plane), || {
        let bucket = Seaweed::shared().bucket_of_one_test("models-of-ours");
        let home = tempfile::tempdir().unwrap();
        let mut window = open_at(endpoints::home_with_prices(home.path()), |builder| drawn(builder, Theme::Light));
        let choose = Command::Models(ModelsCommand::Choose(DETECTOR.to_owned()));
        window.state_mut().command(choose);
        click(&mut window, "Open sample images");
        wait_for(&mut window, "1 predicted");
        click(&mut window, "coffee.png, ");
        wait_for(&mut window, "cup ");
        let name = endpoints::fill_in(&mut window, &bucket);
        click(&mut window, "Deploy the model");
        wait_for(&mut window, &format!("Endpoint {name}: InService"));
        click(&mut window, "List endpoints");
        wait_for(&mut window, &format!("Endpoint {name}, InService"));
        wait_until(&mut window, "all predictions", |window| window.state().state().tasks.is_idle());
        window.state_mut().command(Command::DismissNotice);
        take(&mut window, "endpoint-light");
    });
}

/// A window on the images in a bucket.
fn on_bucket(bucket: &Bucket, theme: Theme) -> Harness<'static, App> {
    let mut window = open_with(None, DETECTOR, |builder| {
        builder.with_theme(theme).with_pixels_per_point(1.0).with_render_cursor(false).wgpu()
    });
    let place = Box::new(remote::place(bucket));
    window.state_mut().command(BrowseCommand::OpenPlace(place));
    wait_for(&mut window, "8 images, 1 predicted");
    remote::wait_for_listing(&mut window);
    window
}

/// Completes the form until the check finds no problem.
fn fill_in(window: &mut Harness<'static, App>) {
    window.state_mut().command(Action::StartJob);
    wait_for(window, "Start the job");
    remote::type_into(window, "Execution role", ROLE);
    wait_for(window, "No problems found");
}

/// Parts of the sample images, one folder for each of them.
fn parts_of_samples() -> std::path::PathBuf {
    const PARTS: u32 = 24;
    let folder = std::env::temp_dir().join("parts-of-sample-images");
    for name in ["coffee.png", "chelsea.png", "rocket.jpg", "astronaut.png", "hubble_deep_field.jpg"] {
        let image = image::open(samples().join(name)).unwrap().to_rgb8();
        let parts = folder.join(name.split('.').next().unwrap());
        std::fs::create_dir_all(&parts).unwrap();
        for part in 0..PARTS {
            // Spread evenly over positions and sizes.
            let share = |step: u32| f64::from(part * step % PARTS) / f64::from(PARTS);
            let side = |whole: u32| (f64::from(whole) * (0.45 + 0.4 * share(7))) as u32;
            let [width, height] = [side(image.width()), side(image.height())];
            let x = (f64::from(image.width() - width) * share(5)) as u32;
            let y = (f64::from(image.height() - height) * share(11)) as u32;
            let view = image::imageops::crop_imm(&image, x, y, width, height).to_image();
            view.save(parts.join(format!("{part:02}.png"))).unwrap();
        }
    }
    folder
}

#[test]
fn duplicates_in_both_themes() {
    let folder = tempfile::tempdir().unwrap();
    with_copies(folder.path());
    let mut window = open_with(Some(folder.path()), CLASSIFIER, |builder| drawn(builder, Theme::Dark));
    wait_for(&mut window, "1 predicted");
    click(&mut window, "Predict all");
    wait_for(&mut window, "12 predicted");
    wait_until_idle(&mut window);
    window.state_mut().command(Action::FindDuplicates);
    wait_for(&mut window, "Alike by efficientnet-lite0");
    wait_for(&mut window, "small cat.jpg, ");
    click(&mut window, "small cat.jpg, ");
    take(&mut window, "duplicates-dark");
    window.state_mut().command(Action::ThemeLight);
    take(&mut window, "duplicates-light");
}

#[test]
fn map_in_both_themes() {
    let folder = parts_of_samples();
    let mut window = open_with(Some(&folder), CLASSIFIER, |builder| drawn(builder, Theme::Dark));
    wait_for(&mut window, "120 images");
    click(&mut window, "Predict all");
    wait_for(&mut window, "120 predicted");
    wait_until_idle(&mut window);
    window.state_mut().command(Action::Map);
    wait_until(&mut window, "the map", |window| {
        let state = window.state().state();
        let is_finished = state.map_layout().is_some_and(|layout| layout.stage == MapStage::Finished);
        is_finished && state.map_groups().is_some()
    });
    wait_until_idle(&mut window);
    save(&mut window, "map-dark");
    window.state_mut().command(Action::ThemeLight);
    window.state_mut().command(MapCommand::GroupBy(GroupBy::Folder));
    wait_for(&mut window, "% rocket");
    click(&mut window, "Select cluster 1: 24 images");
    click(&mut window, "Show only these");
    wait_for(&mut window, "24 of 120 images");
    wait_until_idle(&mut window);
    save(&mut window, "map-light");
    std::fs::remove_dir_all(folder).unwrap();
}
