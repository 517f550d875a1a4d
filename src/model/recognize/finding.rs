//! What the recognition found, and how certain it is.

use std::fmt;

/// A field of the draft card with the reason for its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The path of the field in the card, `input.layout`.
    pub field: String,
    /// The value as it would be in the card.
    pub value: String,
    pub basis: Basis,
    /// A clause to follow “because”.
    pub because: String,
}

/// What a finding is based on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// Shapes, types or values show it.
    Recognized,
    /// Assumed: the graph does not record it, and this is the most likely value.
    Assumed,
    /// Set by the user.
    Given,
}

/// Why a graph cannot be used: what is wrong, each with what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .reasons.join("; "))]
pub struct Refusal {
    pub reasons: Vec<String>,
    /// The supported convention that is most similar to unsupported outputs.
    pub nearest: Option<Nearest>,
}

/// A supported convention, named after its best-known exporter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nearest {
    pub exporter: &'static str,
    /// A description of its outputs.
    pub outputs: &'static str,
}

impl Refusal {
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reasons: vec![reason.into()], nearest: None }
    }

    /// The finding for a graph that ONNX Runtime does not load, with its message.
    pub fn from_load_error(text: &str) -> Self {
        let lower = text.to_lowercase();
        let advice = if lower.contains("opset") && lower.contains("under development")
            || lower.contains("ir_version") && lower.contains("max supported")
            || lower.contains("unsupported model ir version")
        {
            "The model is newer than this ONNX Runtime: export it with an older opset (17 suits every exporter), or \
            use a newer runtime"
        } else if lower.contains("not a registered function/op")
            || lower.contains("no op registered")
            || lower.contains("no opset import for domain")
            || lower.contains("not_implemented")
            || lower.contains("could not find an implementation")
        {
            "The graph uses an operator that this ONNX Runtime does not have: export it with standard ONNX operators \
            only, or with an older opset"
        } else if lower.contains("protobuf") {
            "The file is damaged or is not an ONNX model: export or copy it again"
        } else if lower.contains("external data") || lower.contains("external_data") {
            "The weights are in a second file that must be next to the model: export the model as one file"
        } else {
            "Check the model with `python -m onnx.checker` or export it again"
        };
        Self::new(format!("ONNX Runtime could not load it: {}. {advice}", text.trim().trim_end_matches('.')))
    }
}

impl fmt::Display for Basis {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Recognized => "recognized",
            Self::Assumed => "assumed",
            Self::Given => "given",
        })
    }
}

/// Collects findings under one prefix.
#[derive(Debug, Default)]
pub(super) struct Findings(pub Vec<Finding>);

impl Findings {
    pub(super) fn recognized(&mut self, field: &str, value: impl fmt::Display, because: impl Into<String>) {
        self.add(Basis::Recognized, field, &value, because.into());
    }

    pub(super) fn assumed(&mut self, field: &str, value: impl fmt::Display, because: impl Into<String>) {
        self.add(Basis::Assumed, field, &value, because.into());
    }

    pub(super) fn add(&mut self, basis: Basis, field: &str, value: &dyn fmt::Display, because: String) {
        self.0.push(Finding { field: field.to_owned(), value: value.to_string(), basis, because });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_error_keeps_the_runtime_text() {
        for (text, advice) in [
            ("Opset 99 is under development and support for this is limited.", "older opset"),
            ("Fatal error: acme:Frobnicate(-1) is not a registered function/op", "operator"),
            ("Protobuf parsing failed.", "damaged"),
            ("something else", "onnx.checker"),
        ] {
            let refusal = Refusal::from_load_error(text).to_string();
            assert!(refusal.contains(text.trim_end_matches('.')), "{refusal}");
            assert!(refusal.contains(advice), "{refusal}");
        }
    }
}
