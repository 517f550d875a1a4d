//! A draft card for a graph with unrecognized conventions, for the user to complete.

use super::{
    Findings, GraphSignature, Port, PortElement, RecognitionRequest, RecognizeError, Refusal, encoder, image_input,
};
use crate::domain::{
    Background, BoxFormat, CardTask, ClassValues, ClassificationOutput, Columns, DetectionOutput, ElementType,
    EmbeddingOutput, ImageInput, LabelSet, ModelCard, OutputConvention, ResizeRule, Tokens,
};

/// Side of the input if the graph does not fix it, in pixels.
const SIDE: u32 = 640;

/// The card of a graph with an image input, with guesses for everything that its dimensions do not show.
///
/// # Errors
/// No input is an image.
pub fn draft_card(model: &RecognitionRequest<'_>) -> Result<ModelCard, RecognizeError> {
    let port = image_input::recognize(model, &mut Findings::default())?;
    let layout = *port.layouts.first().ok_or_else(|| Refusal::new("no input is an image"))?;
    let sizes = port.sizes(layout);
    let resize = ResizeRule::stretch(sizes.width.unwrap_or(SIDE), sizes.height.unwrap_or(SIDE));
    let divide_by = if port.element_type == ElementType::Uint8 { 1.0 } else { 255.0 };
    let output = draft_output(model.graph, likely_task(model.graph));
    Ok(ModelCard {
        origin: super::origin(model.graph),
        file: model.file.clone(),
        input: ImageInput {
            name: Some(port.name.clone()),
            channels: port.channels,
            divide_by,
            fixed_batch: port.fixed_batch,
            auxiliary: port.auxiliary.clone(),
            ..ImageInput::new(layout, port.element_type, resize)
        },
        ..ModelCard::for_predictions(model.id.clone(), model.name.clone(), output)
    })
}

/// One row of numbers is class scores, unless it is likely to be an embedding; anything else may be boxes.
fn likely_task(graph: &GraphSignature) -> CardTask {
    match &graph.outputs[..] {
        outputs if !outputs.is_empty() && outputs.iter().all(encoder::is_likely) => CardTask::Embedding,
        [only] if only.dims.len() <= 2 => CardTask::Classification,
        _ => CardTask::Detection,
    }
}

/// A draft for reading the outputs for a task.
pub fn draft_output(graph: &GraphSignature, task: CardTask) -> OutputConvention {
    let first = graph.outputs.first().map(|port| port.name.clone());
    match task {
        CardTask::Classification => {
            let (values, background) = (ClassValues::Logits, Background::None);
            OutputConvention::Classification(ClassificationOutput { name: first, values, background })
        }
        CardTask::Detection => draft_boxes(graph, &first.unwrap_or_default()),
        CardTask::Embedding => {
            let likely = graph.outputs.iter().find(|port| encoder::is_likely(port)).map(|port| port.name.clone());
            let name = likely.or(first).unwrap_or_default();
            OutputConvention::Embedding(EmbeddingOutput { name, tokens: Tokens::default() })
        }
    }
}

/// `first` is the name of the first output.
fn draft_boxes(graph: &GraphSignature, name: &str) -> OutputConvention {
    let is_whole = |port: &&Port| matches!(port.element, PortElement::Int64 | PortElement::Int32);
    let boxes = graph.outputs.iter().find(|port| port.dims.last().and_then(super::Dimension::fixed) == Some(4));
    let others = || graph.outputs.iter().filter(|port| Some(&port.name) != boxes.map(|boxes| &boxes.name));
    let scores = others().find(|port| !is_whole(port));
    OutputConvention::Detection(match (boxes, scores) {
        (Some(boxes), Some(scores)) => DetectionOutput {
            labels: others().find(is_whole).map(|port| Columns::whole(&port.name)),
            ..DetectionOutput::separate(&boxes.name, "", &scores.name)
        },
        // Everything about a box in one row, as in YOLO since version 8.
        _ => DetectionOutput {
            labels: None,
            scores: Columns::at(name, 4),
            candidates_last: graph.outputs.first().is_some_and(candidates_are_last),
            box_format: BoxFormat::Cxcywh,
            ..DetectionOutput::separate(name, "", name)
        },
    })
}

/// The exporter's class names; empty if there are none.
pub fn found_labels(model: &RecognitionRequest<'_>) -> LabelSet {
    model.notes.labels.first().map(|noted| noted.value.clone()).unwrap_or_default()
}

/// Assumes more candidates than columns.
fn candidates_are_last(port: &Port) -> bool {
    let dims: Vec<Option<u64>> = port.dims.iter().map(super::Dimension::fixed).collect();
    matches!(dims[..], [_, Some(rows), Some(columns)] if rows < columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::recognize::Dimension;

    fn port(name: &str, element: PortElement, dims: &[u64]) -> Port {
        let dims = dims.iter().map(|side| Dimension::Fixed(*side)).collect();
        Port { name: name.to_owned(), element, dims }
    }

    fn output_of(outputs: Vec<Port>) -> (CardTask, OutputConvention) {
        let graph = GraphSignature { outputs, ..GraphSignature::default() };
        let task = likely_task(&graph);
        (task, draft_output(&graph, task))
    }

    #[test]
    fn first_guess_follows_output_shapes() {
        let (task, _) = output_of(vec![port("scores", PortElement::Float32, &[1, 10])]);
        assert_eq!(task, CardTask::Classification);
        for (name, dims) in [("output", &[1, 512][..]), ("embedding", &[1, 100]), ("last_hidden_state", &[1, 50, 96])] {
            let (task, output) = output_of(vec![port(name, PortElement::Float32, dims)]);
            let tokens = Tokens::Mean;
            let expected = OutputConvention::Embedding(EmbeddingOutput { name: name.to_owned(), tokens });
            assert_eq!((task, output), (CardTask::Embedding, expected));
        }

        let (_, packed) = output_of(vec![port("output0", PortElement::Float32, &[1, 84, 8400])]);
        let OutputConvention::Detection(packed) = packed else { panic!("{packed:?}") };
        assert_eq!((packed.scores, packed.candidates_last), (Columns::at("output0", 4), true));

        let (_, several) = output_of(vec![
            port("labels", PortElement::Int64, &[100]),
            port("dets", PortElement::Float32, &[100, 4]),
            port("scores", PortElement::Float32, &[100]),
        ]);
        let OutputConvention::Detection(several) = several else { panic!("{several:?}") };
        assert_eq!((several.boxes, several.scores), (Columns::whole("dets"), Columns::whole("scores")));
        assert_eq!(several.labels, Some(Columns::whole("labels")));
    }
}
