//! Images or boxes in a few groups, for the colors of a map: by class, verdict, error, score, folder or EXIF data.

use std::collections::HashMap;
use std::sync::Arc;

use strum::{IntoStaticStr, VariantArray};

use super::candidate::Candidate;
use super::{ArrangeRequest, OutcomeKind, SAMPLES_PER_CHECK, VerdictKind};
use crate::domain::{ModelTask, Sample, SampleId};

/// The most groups without an order of their own; the images of all others are one group.
pub const MAX_GROUPS: usize = 7;

/// The bins of a score.
const BINS: u32 = 10;

/// What distinguishes the groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, IntoStaticStr, VariantArray)]
#[strum(const_into_str)]
pub enum GroupBy {
    /// Of an image: that of the box with the highest score, or the top class.
    #[default]
    Class,
    Verdict,
    /// Of an image: that of the false positive with the highest score.
    Error,
    /// Of an image: the highest.
    Score,
    /// Below the folder that contains all images.
    Folder,
    Camera,
    #[strum(serialize = "Time of day")]
    TimeOfDay,
    #[strum(serialize = "Month taken")]
    MonthTaken,
    #[strum(serialize = "Year taken")]
    YearTaken,
}

impl GroupBy {
    /// Whether the groups come from predictions or verdicts about them.
    pub fn needs_predictions(self) -> bool {
        matches!(self, Self::Class | Self::Verdict | Self::Error | Self::Score)
    }

    /// Whether the groups come from EXIF data.
    pub fn needs_captures(self) -> bool {
        matches!(self, Self::Camera | Self::TimeOfDay | Self::MonthTaken | Self::YearTaken)
    }
}

/// An image, or one of its boxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MapRow {
    pub sample: SampleId,
    /// Among the boxes of the prediction; `None` for the image.
    pub index: Option<u16>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    pub name: String,
    pub kind: GroupKind,
    pub count: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum GroupKind {
    /// Numbered by size, largest first; or by date.
    Named(usize),
    Verdict(VerdictKind),
    /// The middle of a range of scores.
    Score(f32),
    /// Images of other groups, or of none.
    Rest,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Groups {
    pub groups: Vec<Group>,
    /// The position of the group of each row.
    pub group_of: Arc<[u8]>,
}

/// Groups images and boxes, whatever the query; `None` if `cancelled`, which is polled, returned true.
pub fn group_rows(
    request: &ArrangeRequest,
    rows: &[MapRow],
    by: GroupBy,
    cancelled: &dyn Fn() -> bool,
) -> Option<Groups> {
    let gate = request.gate();
    let sample_of = |id: SampleId| request.samples.get(id.index());
    let folders = Folders::new(rows.iter().filter_map(|row| sample_of(row.sample)));
    let mut names = Names::default();
    let mut keys = Vec::with_capacity(rows.len());
    let mut counts: HashMap<Option<u32>, usize> = HashMap::new();
    for (number, &MapRow { sample: id, index }) in rows.iter().enumerate() {
        if number.is_multiple_of(SAMPLES_PER_CHECK) && cancelled() {
            return None;
        }
        let key = sample_of(id).and_then(|sample| {
            let candidate = request.candidate(id, sample, gate.as_ref(), None);
            let index = index.map(usize::from);
            if index.is_some_and(|index| !is_visible(&candidate, index)) {
                return Some(HIDDEN);
            }
            match (by, index) {
                (GroupBy::Class, None) => top_class(&candidate),
                (GroupBy::Class, Some(index)) => candidate.summary?.classes.get(index).copied(),
                (GroupBy::Verdict, None) => candidate.verdict.map(|kind| kind as u32),
                (GroupBy::Verdict, Some(index)) => candidate.mark?.of_box(index).map(|kind| kind as u32),
                (GroupBy::Error, None) => error(&candidate),
                (GroupBy::Error, Some(index)) => {
                    candidate.outcomes?.boxes().find(|found| found.index == index).map(|found| found.kind as u32)
                }
                (GroupBy::Score, None) => candidate.facts().and_then(|facts| facts.best).map(bin),
                (GroupBy::Score, Some(index)) => candidate.summary?.scores.get(index).map(|score| bin(*score)),
                (GroupBy::Folder, _) => Some(names.number(folders.below(&sample.name))),
                (GroupBy::Camera, _) => Some(names.number(sample.capture.as_ref()?.camera.as_deref()?)),
                (GroupBy::TimeOfDay, _) => Some(names.number(sample.capture.as_ref()?.part_of_day()?)),
                (GroupBy::MonthTaken, _) => sample.capture.as_ref()?.month(),
                (GroupBy::YearTaken, _) => Some(sample.capture.as_ref()?.month()? / 12),
            }
        });
        *counts.entry(key).or_default() += 1;
        keys.push(key);
    }
    let name = |key: u32| match by {
        GroupBy::Class => request.labels.name(key),
        GroupBy::Verdict => VERDICTS[key as usize].participle().to_owned(),
        GroupBy::Error => error_name(key).to_owned(),
        GroupBy::Score => format!("{}–{}%", key * 100 / BINS, (key + 1) * 100 / BINS),
        GroupBy::Folder | GroupBy::Camera | GroupBy::TimeOfDay => names.names[key as usize].to_owned(),
        GroupBy::MonthTaken => format!("{}-{:02}", key / 12, key % 12 + 1),
        GroupBy::YearTaken => key.to_string(),
    };
    let has_boxes = gate.as_ref().is_some_and(|gate| gate.task() == ModelTask::Detection);
    let (groups, position_of) = groups(by, &counts, &name, has_boxes);
    let group_of = keys.iter().map(|key| position_of.get(key).map_or(groups.len() - 1, |&position| position) as u8);
    Some(Groups { group_of: group_of.collect(), groups })
}

/// The key of boxes that the filters hide.
const HIDDEN: u32 = u32::MAX;

fn is_visible(candidate: &Candidate<'_>, index: usize) -> bool {
    let (Some(gate), Some(summary)) = (candidate.gate, candidate.summary) else {
        return false;
    };
    let found = summary.classes.get(index).zip(summary.scores.get(index));
    found.is_some_and(|(class, score)| gate.visible(candidate.id).contains(index, *class, *score))
}

const VERDICTS: &[VerdictKind] = VerdictKind::VARIANTS;

/// The groups in the order of a legend, and the position of each key that has a group of its own. The others are in the
/// last group.
fn groups(
    by: GroupBy,
    counts: &HashMap<Option<u32>, usize>,
    name: &dyn Fn(u32) -> String,
    has_boxes: bool,
) -> (Vec<Group>, HashMap<Option<u32>, usize>) {
    let mut keys: Vec<(u32, usize)> = counts.iter().filter_map(|(key, count)| Some(((*key)?, *count))).collect();
    keys.retain(|(key, _)| *key != HIDDEN);
    match by {
        GroupBy::Score => keys.sort_unstable_by_key(|(key, _)| std::cmp::Reverse(*key)),
        GroupBy::Verdict => keys.sort_unstable(),
        _ => keys.sort_unstable_by_key(|(key, count)| (std::cmp::Reverse(*count), *key)),
    }
    let is_ordered = matches!(by, GroupBy::Score | GroupBy::Verdict);
    let kept = if is_ordered { keys.len() } else { keys.len().min(MAX_GROUPS) };
    if matches!(by, GroupBy::MonthTaken | GroupBy::YearTaken) {
        keys[..kept].sort_unstable();
    }
    let kind = |number: usize, key: u32| match by {
        GroupBy::Verdict => GroupKind::Verdict(VERDICTS[key as usize]),
        GroupBy::Score => GroupKind::Score((key as f32 + 0.5) / BINS as f32),
        _ => GroupKind::Named(number),
    };
    let own = keys[..kept].iter().enumerate();
    let mut groups: Vec<Group> =
        own.map(|(number, &(key, count))| Group { name: name(key), kind: kind(number, key), count }).collect();
    let mut position_of: HashMap<Option<u32>, usize> =
        keys[..kept].iter().enumerate().map(|(position, (key, _))| (Some(*key), position)).collect();
    let mut add_rest = |name: &str, count: usize| {
        if count > 0 {
            groups.push(Group { name: name.to_owned(), kind: GroupKind::Rest, count });
        }
        count > 0
    };
    let none = counts.get(&None).copied().unwrap_or(0);
    let without = match by {
        GroupBy::Class if has_boxes => "no box",
        GroupBy::Class => "no class",
        GroupBy::Verdict => "unjudged",
        GroupBy::Error => "not evaluated",
        GroupBy::Score => "no score",
        GroupBy::Folder => "no folder",
        GroupBy::Camera => "no known camera",
        GroupBy::TimeOfDay => "no known time",
        GroupBy::MonthTaken | GroupBy::YearTaken => "no known date",
    };
    let mut position = kept;
    let hidden = counts.get(&Some(HIDDEN)).copied().unwrap_or(0);
    for (key, name, count) in [(None, without, none), (Some(HIDDEN), "hidden by filters", hidden)] {
        if add_rest(name, count) {
            position_of.insert(key, position);
            position += 1;
        }
    }
    add_rest("other", keys[kept..].iter().map(|(_, count)| count).sum());
    (groups, position_of)
}

fn top_class(candidate: &Candidate<'_>) -> Option<u32> {
    let (gate, summary) = (candidate.gate?, candidate.summary?);
    if gate.task() == ModelTask::Classification {
        return gate.top_class(summary).map(|(class, _)| class);
    }
    let visible = gate.visible(candidate.id);
    let best = visible.boxes(summary).max_by(|&left, &right| summary.scores[left].total_cmp(&summary.scores[right]));
    best.map(|index| summary.classes[index])
}

/// Follows the kinds of false positives.
const MISSED: u32 = OutcomeKind::VARIANTS.len() as u32;

fn error(candidate: &Candidate<'_>) -> Option<u32> {
    let outcomes = candidate.outcomes?;
    let wrong = outcomes.boxes().filter(|found| found.kind.is_wrong());
    let worst = wrong.max_by(|left, right| left.score.total_cmp(&right.score));
    let missed = || if outcomes.missed().next().is_some() { MISSED } else { OutcomeKind::Correct as u32 };
    Some(worst.map_or_else(missed, |found| found.kind as u32))
}

fn error_name(key: u32) -> &'static str {
    let kind = OutcomeKind::VARIANTS.get(key as usize);
    kind.map_or("only false negatives", |kind| kind.why().unwrap_or("no error"))
}

fn bin(score: f32) -> u32 {
    ((score * BINS as f32) as u32).min(BINS - 1)
}

/// Names as keys, numbered as they occur.
#[derive(Default)]
struct Names<'s> {
    names: Vec<&'s str>,
    numbers: HashMap<&'s str, u32>,
}

impl<'s> Names<'s> {
    fn number(&mut self, name: &'s str) -> u32 {
        *self.numbers.entry(name).or_insert_with(|| {
            self.names.push(name);
            self.names.len() as u32 - 1
        })
    }
}

/// The folders of images, one level below the folder that contains them all.
struct Folders {
    /// The length of what all paths start with.
    common: usize,
}

impl Folders {
    fn new<'s>(samples: impl Iterator<Item = &'s Sample>) -> Self {
        let mut folders = samples.map(|sample| folder_of(&sample.name));
        let mut common = folders.next().unwrap_or_default();
        for folder in folders {
            while !folder.starts_with(common) {
                common = folder_of(common.trim_end_matches('/'));
            }
        }
        Self { common: common.len() }
    }

    fn below<'n>(&self, name: &'n str) -> &'n str {
        let below = folder_of(name).get(self.common..).unwrap_or_default();
        below.split_once('/').map_or("this folder", |(folder, _)| folder)
    }
}

/// With a slash at the end; empty for an image in the opened folder.
fn folder_of(name: &str) -> &str {
    name.rfind('/').map_or("", |end| &name[..=end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Capture, LabelSet, SampleUri, SharedList, ViewSettings};
    use crate::review::{Mark, Marks, Predictions};

    /// Detections of cats (0), dogs (1) and many other classes; the last image has no box.
    fn request() -> ArrangeRequest {
        let mut predictions = Predictions::new(ModelTask::Detection);
        let mut samples = SharedList::default();
        for index in 0..20_u32 {
            let name = format!("all/{}/{index}.jpg", if index < 12 { "left/deep" } else { "right" });
            let uri = SampleUri::new(format!("/photos/{name}"));
            samples.push(Sample::new(uri, name, 1));
            let class = if index < 6 { 0 } else { index - 5 };
            if index < 19 {
                predictions.record_summary(SampleId(index), 9, 9, &[99, class, 1], &[0.3, 0.9, 0.6]);
            } else {
                predictions.record_summary(SampleId(index), 9, 9, &[1], &[0.05]);
            }
        }
        let labels = LabelSet::parse("cat\ndog").unwrap();
        let view = ViewSettings { min_score: 0.5, ..ViewSettings::default() };
        ArrangeRequest { samples, predictions: Some(predictions), labels, view, ..ArrangeRequest::default() }
    }

    fn grouped(request: &ArrangeRequest, by: GroupBy) -> Groups {
        let images = (0..request.samples.len()).map(SampleId::from_index);
        let rows: Vec<MapRow> = images.map(|sample| MapRow { sample, index: None }).collect();
        group_rows(request, &rows, by, &|| false).unwrap()
    }

    fn names(groups: &Groups) -> Vec<(&str, usize)> {
        groups.groups.iter().map(|group| (group.name.as_str(), group.count)).collect()
    }

    #[test]
    fn largest_classes_have_groups_of_their_own() {
        let groups = grouped(&request(), GroupBy::Class);
        let named = names(&groups);
        assert_eq!(named[..2], [("cat", 6), ("dog", 1)]);
        assert_eq!(named[MAX_GROUPS..], [("no box", 1), ("other", 7)]);
        assert_eq!(groups.group_of[0], 0);
        assert_eq!(groups.group_of[18], MAX_GROUPS as u8 + 1);
        assert_eq!(groups.group_of[19], MAX_GROUPS as u8);
        assert_eq!(groups.groups.iter().map(|group| group.count).sum::<usize>(), 20);
    }

    #[test]
    fn scores_verdicts_folders_and_captures_are_groups() {
        let mut request = request();
        let scores = grouped(&request, GroupBy::Score);
        assert_eq!(names(&scores), [("90–100%", 19), ("0–10%", 1)]);
        assert_eq!(scores.groups[0].kind, GroupKind::Score(0.95));
        let folders = grouped(&request, GroupBy::Folder);
        assert_eq!(names(&folders), [("left", 12), ("right", 8)]);
        for (index, (camera, hour)) in [(Some("Canon"), 22), (Some("Canon"), 5), (None, 12)].into_iter().enumerate() {
            let taken = Some(jiff::civil::date(2026, 3, 1).at(hour, 0, 0, 0));
            let capture = Capture { taken, camera: camera.map(Into::into), location: None };
            request.samples.get_mut(index).unwrap().capture = Some(Arc::new(capture));
        }
        let cameras = grouped(&request, GroupBy::Camera);
        assert_eq!(names(&cameras), [("Canon", 2), ("no known camera", 18)]);
        let times = grouped(&request, GroupBy::TimeOfDay);
        assert_eq!(names(&times), [("night (21:00–5:59)", 2), ("day (11:00–16:59)", 1), ("no known time", 17)]);
        for (index, (year, month)) in [(2025, 11), (2024, 12), (2024, 12)].into_iter().enumerate() {
            let taken = Some(jiff::civil::date(year, month, 30).at(1, 0, 0, 0));
            request.samples.get_mut(index).unwrap().capture = Some(Arc::new(Capture { taken, ..Capture::default() }));
        }
        let months = grouped(&request, GroupBy::MonthTaken);
        assert_eq!(names(&months), [("2024-12", 2), ("2025-11", 1), ("no known date", 17)]);
        assert_eq!(&months.group_of[..4], [1, 0, 0, 2]);
        assert_eq!(names(&grouped(&request, GroupBy::YearTaken)), [("2024", 2), ("2025", 1), ("no known date", 17)]);
        let mut marks = Marks::default();
        marks.set(SampleId(3), Mark { verdict: Some(VerdictKind::Reject), ..Mark::default() });
        request.marks = marks;
        let verdicts = grouped(&request, GroupBy::Verdict);
        assert_eq!(names(&verdicts), [("rejected", 1), ("unjudged", 19)]);
        let errors = grouped(&request, GroupBy::Error);
        assert_eq!(names(&errors), [("not evaluated", 20)]);
        let nothing = grouped(&ArrangeRequest::default(), GroupBy::Class);
        assert!(nothing.groups.is_empty() && nothing.group_of.is_empty());
        let row = MapRow { sample: SampleId(1), index: None };
        assert_eq!(group_rows(&request, &[row], GroupBy::Score, &|| true), None);
    }

    #[test]
    fn boxes_have_groups_of_their_own() {
        let mut request = request();
        let mut marks = Marks::default();
        marks.set(SampleId(3), Mark { boxes: [(1, VerdictKind::Reject)].into(), ..Mark::default() });
        request.marks = marks;
        let rows: Vec<MapRow> = (0..3).map(|index| MapRow { sample: SampleId(3), index: Some(index) }).collect();
        let grouped = |by| group_rows(&request, &rows, by, &|| false).unwrap();
        let hidden = grouped(GroupBy::Class);
        assert_eq!(names(&hidden), [("cat", 1), ("dog", 1), ("hidden by filters", 1)]);
        assert_eq!(&*hidden.group_of, [2, 0, 1]);
        request.view.min_score = 0.0;
        let grouped = |by| group_rows(&request, &rows, by, &|| false).unwrap();
        assert_eq!(names(&grouped(GroupBy::Class)), [("cat", 1), ("dog", 1), ("class 99", 1)]);
        assert_eq!(names(&grouped(GroupBy::Score)), [("90–100%", 1), ("60–70%", 1), ("30–40%", 1)]);
        assert_eq!(names(&grouped(GroupBy::Verdict)), [("rejected", 1), ("unjudged", 2)]);
        assert_eq!(names(&grouped(GroupBy::Folder)), [("this folder", 3)]);
    }
}
