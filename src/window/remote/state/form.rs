//! The state that the job and endpoint forms share.

use std::sync::Arc;

use super::model_draft::ModelDraft;
use crate::domain::{S3Address, S3Link};
use crate::sagemaker::spec::transform::{CheckGrade, Preflight};
use crate::window::state::{Loadable, State};

/// A form with the draft `D`, whose check results in a plan `P`.
#[derive(Debug)]
pub struct Form<D, P> {
    /// A number that changes whenever the form is refilled.
    pub serial: u64,
    /// The last draft that was or is being checked.
    pub draft: D,
    /// The fields to complete before a check.
    pub missing: Option<String>,
    pub check: Loadable<FormCheck<P>>,
    /// Packing, uploading and starting.
    pub start: Loadable<()>,
}

impl<D: Default, P> Default for Form<D, P> {
    fn default() -> Self {
        Self { serial: 0, draft: D::default(), missing: None, check: Loadable::NotLoaded, start: Loadable::NotLoaded }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct FormCheck<P> {
    pub preflight: Preflight,
    /// The plan as `aws` command lines, if it can be expressed that way.
    pub commands: Vec<String>,
    /// The plan as checked and started, with the open fields of the draft filled in.
    pub plan: Arc<P>,
}

impl<P> FormCheck<P> {
    /// Whether no problem was found.
    pub fn is_startable(&self) -> bool {
        self.preflight.grade() != CheckGrade::Problem
    }
}

/// The draft of a form, with access to its form.
pub(crate) trait Draft: Clone + Default + 'static {
    type Plan: 'static;

    fn form(state: &mut State) -> &mut Form<Self, Self::Plan>;
    fn model(&mut self) -> &mut ModelDraft;
    /// The S3 folder to upload the model to.
    fn base(&mut self) -> &mut String;
}

/// `None` for an empty field.
pub(crate) fn folder_of(text: &str) -> Option<Result<S3Address, String>> {
    let text = text_of(text)?;
    let link = S3Link::parse(&text).map_err(|error| error.to_string());
    Some(link.map(|link| link.address.as_folder()))
}

pub(crate) fn text_of(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
