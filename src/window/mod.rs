//! The window: one folder per area, with its `state`, `update`, `effects` (background tasks) and `ui`.

pub mod app;
/// Opening sources, and the thumbnails of their images.
pub(crate) mod browse {
    pub(crate) mod effects;
    pub(crate) mod state;
    pub(crate) mod ui;
    pub(crate) mod update;
}

/// The image in view: pixels, boxes, zoom, magnifier and full screen.
pub(crate) mod canvas {
    pub(crate) mod effects;
    pub(crate) mod ui;
    pub(crate) mod update;
}

/// Two runs over the same images.
pub(crate) mod comparison {
    pub(crate) mod effects;
    pub(crate) mod state;
    pub(crate) mod ui;
    pub(crate) mod update;
}

/// Groups of duplicates, and sort orders by embeddings.
pub(crate) mod duplicates {
    pub(crate) mod effects;
    pub(crate) mod state;
    pub(crate) mod ui;
    pub(crate) mod update;
}

pub mod effects;
/// SageMaker endpoints: list, page, form, automatic deletion.
pub(crate) mod endpoints {
    pub(crate) mod effects;
    /// The form that deploys an endpoint.
    pub(crate) mod form {
        pub(crate) mod state;
        pub(crate) mod ui;
    }
    pub(crate) mod state;
    pub(crate) mod ui;
    pub(crate) mod update;
}

/// A run measured against ground truth.
pub(crate) mod evaluation {
    pub(crate) mod effects;
    pub(crate) mod state;
    pub(crate) mod ui;
    pub(crate) mod update;
}

/// Which parts of an image a class depends on.
pub(crate) mod explain {
    pub(crate) mod effects;
    pub(crate) mod state;
    pub(crate) mod ui;
    pub(crate) mod update;
}

/// Exporting predictions, comparisons and evaluations.
pub(crate) mod export {
    pub(crate) mod effects;
    pub(crate) mod state;
    pub(crate) mod ui;
    pub(crate) mod update;
}

/// The boxes of a class next to each other.
pub(crate) mod filmstrip {
    pub(crate) mod effects;
    pub(crate) mod state;
    pub(crate) mod ui;
    pub(crate) mod update;
}

/// Batch Transform jobs: list and page, form, rehearsal, prices.
pub(crate) mod jobs {
    pub(crate) mod effects;
    /// The form that starts a job.
    pub(crate) mod form {
        pub(crate) mod state;
        pub(crate) mod ui;
    }
    pub(crate) mod state;
    pub(crate) mod ui;
    pub(crate) mod update;
}

/// Verdicts, notes and tags.
pub(crate) mod judge {
    pub(crate) mod effects;
    pub(crate) mod state;
    pub(crate) mod ui;
    pub(crate) mod update;
}

/// The images placed by their embeddings.
pub(crate) mod map {
    pub(crate) mod effects;
    mod kept;
    pub(crate) mod state;
    pub(crate) mod ui;
    pub(crate) mod update;
}

/// The models to choose from.
pub(crate) mod models {
    /// The dialog that adds or edits a model.
    pub(crate) mod add {
        pub(crate) mod effects;
        pub(crate) mod state;
        pub(crate) mod ui;
        pub(crate) mod update;
    }
    pub(crate) mod effects;
    pub(crate) mod state;
    pub(crate) mod ui;
    pub(crate) mod update;
}

/// Opening the outputs of jobs and the predictions of other tools.
pub(crate) mod outputs {
    pub(crate) mod effects;
    pub(crate) mod state;
    pub(crate) mod ui;
    pub(crate) mod update;
}

/// Predicting on this computer; runs and their results.
pub(crate) mod predict {
    pub(crate) mod effects;
    pub(crate) mod state;
    pub(crate) mod ui {
        pub(crate) mod class_table;
        pub(crate) mod device;
        pub(crate) mod results;
        pub(crate) mod runs;
    }
    pub(crate) mod update;
}

/// The project file of the open source.
pub(crate) mod project {
    pub(crate) mod effects;
    /// Merging the verdicts of another person's project.
    pub(crate) mod merge {
        pub(crate) mod effects;
        pub(crate) mod state;
        pub(crate) mod ui;
        pub(crate) mod update;
    }
    pub(crate) mod state;
    pub(crate) mod ui;
    pub(crate) mod update;
}

/// What jobs, endpoints and outputs share.
pub(crate) mod remote {
    pub(crate) mod effects;
    pub(crate) mod state;
    pub(crate) mod ui;
    pub(crate) mod update;
}

/// Predicting with an endpoint or TensorFlow Serving.
pub(crate) mod remote_inference {
    pub(crate) mod effects;
    pub(crate) mod state;
    pub(crate) mod ui;
    pub(crate) mod update;
}

/// Browsing S3, and signing in to AWS.
pub(crate) mod s3 {
    pub(crate) mod effects;
    pub(crate) mod state;
    pub(crate) mod ui;
    pub(crate) mod update;
}

/// Searching, filtering and sorting images.
pub(crate) mod search {
    pub(crate) mod effects;
    pub(crate) mod state;
    pub(crate) mod ui;
    pub(crate) mod update;
}

pub mod state;
/// Background tasks as the user sees them.
pub(crate) mod tasks {
    pub(crate) mod state;
    pub(crate) mod ui;
    pub(crate) mod update;
}

pub mod ui;
pub(crate) mod update;
/// Uploading images to S3.
pub(crate) mod upload {
    pub(crate) mod effects;
    pub(crate) mod state;
    pub(crate) mod ui;
    pub(crate) mod update;
}
