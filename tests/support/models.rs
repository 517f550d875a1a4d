//! Models on the real runtime.

use std::path::Path;
use std::sync::LazyLock;

use spotcheck::dirs::AppDirs;
use spotcheck::domain::{Device, DeviceChoice, LabelSet, Prediction};
use spotcheck::image::decode::{DecodeLimits, decode};
use spotcheck::model::Predictor;
use spotcheck::model::catalog::{Model, parse_card};
use spotcheck::model::onnx::{InspectError, Inspection, LoadOptions, OnnxPredictor};
use spotcheck::model::recognize::{Overrules, Recognition};
use spotcheck::model::runtime::{Loaded, ensure_loaded};
use spotcheck::tasks::{ProgressUnit, TaskControl};

/// ONNX Runtime of the shared home.
pub(crate) struct Runtime(pub(crate) Loaded);

impl Runtime {
    /// One for all tests of a program.
    pub(crate) fn load() -> &'static Self {
        static RUNTIME: LazyLock<Runtime> =
            LazyLock::new(|| Runtime(ensure_loaded(&AppDirs::below(super::runtime_home()), None, &control()).unwrap()));
        &RUNTIME
    }

    /// The model of a plain ONNX file, with how its conventions were determined.
    pub(crate) fn recognize_file(&self, weights: &Path) -> Result<(Model, Recognition), InspectError> {
        let mut inspection = Inspection::open(&self.0, weights)?;
        let recognition = inspection.recognize(None, &Overrules::default(), &control())?;
        Ok((inspection.model(&recognition), recognition))
    }

    pub(crate) fn predictor(&self, model: &Model) -> OnnxPredictor {
        let options =
            LoadOptions { device: DeviceChoice::Only(Device::Cpu), threads: Some(1), ..LoadOptions::default() };
        OnnxPredictor::load(&self.0, model, &options, &control()).unwrap()
    }
}

pub(crate) fn control() -> TaskControl {
    TaskControl::new(ProgressUnit::Images)
}

/// The model of a card with the weights next to it.
pub(crate) fn model_of_card(card: &Path) -> Model {
    let text = std::fs::read_to_string(card).unwrap();
    let parsed = parse_card(&text, card).unwrap();
    Model { weights: card.with_file_name(&parsed.file.name), card: parsed, labels: LabelSet::default() }
}

pub(crate) fn predict(predictor: &OnnxPredictor, image: &Path) -> Prediction {
    let bytes = std::fs::read(image).unwrap();
    let image = decode(&bytes, &DecodeLimits::default()).unwrap().image;
    let prepared = predictor.prepare(&image).unwrap();
    predictor.predict(0, &[prepared], &control()).unwrap().remove(0)
}
