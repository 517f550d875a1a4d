//! Training jobs in the window, with a working control plane.

use spotcheck::aws::Aws;
use spotcheck::domain::{S3Access, S3Address};
use spotcheck::sagemaker::jobs::StartFolders;
use spotcheck::sagemaker::spec::training::{
    Algorithm, Channel, MetricDefinition, OutputConfig, StoppingCondition, TrainingPlan, TrainingSource, TrainingSpec,
    source_archive,
};
use spotcheck::sagemaker::spec::transform::{JobKind, Resources, SageMakerAccess};
use spotcheck::sagemaker::training::{TrainingRecords, start};
use spotcheck::tasks::{ProgressUnit, TaskControl, now_ms};
use spotcheck::window::state::{Action, JobId, ModelFrom, Overlay, RemoteCommand};

use crate::remote::{open_place, replace_in, serve, start_the_job};
use crate::support::alone::alone;
use crate::support::control_plane::{IMAGE, REGION, ROLE};
use crate::support::repository;
use crate::support::seaweed::{Bucket, Seaweed};
use crate::window::{click, sees, wait_for, wait_for_overlay, wait_until};

/// Starts a training job with the script of the tests.
fn train(bucket: &Bucket, job: &str, hyperparameters: &[(&str, &str)]) {
    let output = S3Address::new(&bucket.name, "models/");
    let source = TrainingSource {
        folder: repository().join("tests/training/source"),
        entry_point: "train.py".to_owned(),
        mpi: None,
        archive: source_archive(&output, job),
    };
    let hyperparameters = hyperparameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let spec = TrainingSpec {
        job_name: job.to_owned(),
        hyperparameters: hyperparameters.collect(),
        algorithm: Algorithm {
            image: "763104351884.dkr.ecr.us-east-1.amazonaws.com/tensorflow-training:2.19.0-cpu-py312".to_owned(),
            metrics: vec![MetricDefinition { name: "loss".to_owned(), regex: "loss=([0-9.]+)".to_owned() }],
            ..Algorithm::default()
        },
        role: ROLE.to_owned(),
        channels: vec![Channel::new("training", &S3Address::new(&bucket.name, "photos/"))],
        output: OutputConfig { folder: output.to_string(), kms_key: None },
        resources: Resources { volume_gb: Some(30), ..Resources::default() },
        stopping: StoppingCondition { max_run_s: 600, max_wait_s: None },
        ..TrainingSpec::default()
    };
    let plan = TrainingPlan {
        sagemaker: SageMakerAccess { region: Some(REGION.to_owned()), ..SageMakerAccess::default() },
        s3: S3Access { region: Some(REGION.to_owned()), ..S3Access::default() },
        spec: spec.with_source(&source, REGION),
        source: Some(source),
        usd_per_hour: None,
    };
    let folder = tempfile::tempdir().unwrap();
    let records = TrainingRecords::in_folder(folder.path().join("jobs"));
    let folders = StartFolders { records: &records, unfinished: folder.path() };
    let control = TaskControl::new(ProgressUnit::Bytes);
    start(&Aws::new(), &plan, folders, now_ms(), &control).unwrap();
}

#[test]
fn trained_model_goes_into_the_forms() {
    let mut plane = None;
    alone("training::trained_model_goes_into_the_forms", serve(&mut plane), || {
        let bucket = Seaweed::shared().bucket("window-training");
        for name in ["cat-1.png", "dog-2.png"] {
            let image = std::fs::read(repository().join("assets/samples/chelsea.png")).unwrap();
            bucket.put(&format!("photos/{name}"), &image);
        }
        train(&bucket, "well", &[("epochs", "2")]);
        train(&bucket, "broken", &[("crash", "oh no")]);
        let mut window = open_place(&bucket, 2);
        window.state_mut().command(Action::Jobs);
        click(&mut window, "List jobs");
        wait_until(&mut window, "both jobs", |window| window.state().state().remote.jobs.list.rows.len() == 2);

        // Opened by its name, like a job of any other computer.
        let access = window.state().state().s3.access.clone();
        let broken = JobId::new(&access, JobKind::Training, "broken");
        window.state_mut().command(RemoteCommand::Open(broken));
        wait_for(&mut window, "AlgorithmError");
        wait_for(&mut window, "✗ failed");
        wait_for(&mut window, "oh no: the labels do not match");
        assert!(!sees(&window, "Run on images with this model"));

        let well = JobId::new(&access, JobKind::Training, "well");
        window.state_mut().command(RemoteCommand::Open(well.clone()));
        wait_for(&mut window, "✓ completed");
        wait_for(&mut window, "loss");
        let archive = bucket.uri("models/well/output/model.tar.gz");
        click(&mut window, "On an endpoint…");
        wait_for_overlay(&mut window, Overlay::DeployEndpoint);
        let model = &window.state().state().remote.endpoint_form.draft.model;
        assert_eq!((model.from, &model.archive), (ModelFrom::Archive, &archive));

        window.state_mut().command(RemoteCommand::Open(well.clone()));
        wait_for(&mut window, "In a Batch Transform job…");
        click(&mut window, "In a Batch Transform job…");
        wait_for_overlay(&mut window, Overlay::StartJob);
        let model = &window.state().state().remote.job_form.draft.model;
        assert_eq!((model.from, &model.archive), (ModelFrom::Archive, &archive));
        assert_eq!(model.role, ROLE);
        replace_in(&mut window, "Container image", IMAGE);
        start_the_job(&mut window);
        wait_for(&mut window, "2 of 2 outputs");
        let open = window.state().state().remote.jobs.open.clone().unwrap();
        assert!(bucket.get(&format!("spotcheck/{}/cat-1.png.out", open.name)).is_some());

        // The page of the training job lists the job that used its model.
        window.state_mut().command(RemoteCommand::Open(well));
        wait_for(&mut window, "Compare its outputs with…");
        assert_eq!(window.state().state().remote.jobs.shown().unwrap().used_by, [open]);
    });
}
