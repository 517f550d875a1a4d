//! The repository's cards and label sets, compiled into the program.

use crate::domain::LabelSet;

/// A card in the repository's `models/`; its weights are next to it or can be downloaded.
pub(super) struct BuiltInCard {
    pub id: &'static str,
    pub text: &'static str,
}

macro_rules! built_in {
    ($($id:literal),* $(,)?) => {
        &[$(BuiltInCard {
            id: $id,
            text: include_str!(concat!("../../../models/", $id, "/model.toml")),
        }),*]
    };
}

/// The cards in display order. The first one of a task whose weights are present is that task's default.
pub(super) const CARDS: &[BuiltInCard] = built_in![
    "resnet50-v2",
    "resnet50-v1",
    "resnet50-v1-int8",
    "efficientnet-lite0",
    "faster-rcnn",
    "faster-rcnn-int8",
    "ssd-mobilenet-coco",
];

/// The label sets that a card's `labels` can name without a file.
pub(super) const LABEL_SETS: &[(&str, &str)] = &[
    ("imagenet", include_str!("../../../models/labels/imagenet.txt")),
    ("coco-80", include_str!("../../../models/labels/coco-80.txt")),
    ("coco-91", include_str!("../../../models/labels/coco-91.txt")),
    ("cifar-10", include_str!("../../../models/labels/cifar-10.txt")),
];

const IMAGENET_WORDNET_IDS: &str = include_str!("../../../models/labels/imagenet-wordnet.txt");

/// The number of the `ImageNet` class with this `WordNet` id, as in the names of `ImageNet`'s folders: `n01440764` is
/// 0.
pub fn imagenet_class(wordnet_id: &str) -> Option<u32> {
    let rows = IMAGENET_WORDNET_IDS.lines().filter_map(|line| line.split_once('\t'));
    let (class, _) = rows.into_iter().find(|(_, id)| *id == wordnet_id)?;
    class.parse().ok()
}

pub(super) fn label_set(name: &str) -> Option<&'static str> {
    let found = LABEL_SETS.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text)
}

/// “`imagenet`, `coco-80`, …”, for messages.
pub(super) fn known_label_sets() -> String {
    let names = LABEL_SETS.iter().map(|(name, _)| format!("`{name}`"));
    names.collect::<Vec<_>>().join(", ")
}

/// The class names of a built-in label set; `None` if it does not exist.
pub fn built_in_labels(name: &str) -> Option<LabelSet> {
    label_set(name).map(|text| LabelSet::parse(text).expect("a test parses every label set"))
}
