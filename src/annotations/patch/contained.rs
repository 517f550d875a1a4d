//! Which changes the labels of an image already contain, in formats without ids.
//!
//! Equal labels cannot be told apart, so they are counted: a list of changes says how many of each the image had.

use super::{Label, LabelChange};

/// Of how many changes to the same labels any part may be contained; of more, only all or none.
const MOST_MIXED: usize = 12;

const PARTLY: &str = "the list has several lines like this one, of which a part has been applied, perhaps this one; apply \
    them together";

/// What to do for a change.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// Change the label at this position, if any, or add one.
    Apply(Option<usize>),
    Unchanged,
}

/// Labels that cannot be told apart.
struct Equal {
    label: Label,
    /// How many the image had before any change.
    before: usize,
    /// The positions of those that it has.
    now: Vec<usize>,
    group: usize,
}

/// What to do for each change of an image with these labels.
pub(super) fn steps(changes: &[LabelChange], labels: &[Label]) -> Vec<Result<Step, String>> {
    let mut all_changes = changes.to_vec();
    for change in changes {
        let present = all_changes.iter().filter(|other| other.has_same_labels(change)).count();
        let missing = change.equal.unwrap_or_default().min(MOST_MIXED).saturating_sub(present);
        all_changes.extend(std::iter::repeat_n(change.clone(), missing));
    }
    let mut steps = steps_of_all(&all_changes, labels);
    let missing = changes.len()..all_changes.len();
    let is = |at: usize, unchanged: bool| steps[at].as_ref().is_ok_and(|step| (*step == Step::Unchanged) == unchanged);
    let is_unclear = |at: &usize| {
        let equal = || (0..all_changes.len()).filter(|other| all_changes[*other].has_same_labels(&all_changes[*at]));
        equal().any(|other| missing.contains(&other))
            && equal().any(|other| is(other, true))
            && equal().any(|other| is(other, false))
    };
    let unclear: Vec<usize> = (0..changes.len()).filter(is_unclear).collect();
    for at in unclear {
        steps[at] = Err(PARTLY.to_owned());
    }
    steps.truncate(changes.len());
    steps
}

/// As [`steps`], for all equal lines of the list.
fn steps_of_all(changes: &[LabelChange], labels: &[Label]) -> Vec<Result<Step, String>> {
    let mut all: Vec<Equal> = Vec::new();
    let mut ends = Vec::new();
    for change in changes {
        let end =
            [&change.before, &change.after].map(|label| Some(position(&mut all, label.as_ref()?, change, labels)));
        if let [Some(from), Some(to)] = end {
            let (kept, replaced) = (all[from].group, all[to].group);
            all.iter_mut().filter(|equal| equal.group == replaced).for_each(|equal| equal.group = kept);
        }
        ends.push(end);
    }
    let mut steps: Vec<Result<Step, String>> = changes.iter().map(|_| changed()).collect();
    for group in 0..all.len() {
        let is_of_group = |end: &[Option<usize>; 2]| end.iter().flatten().any(|at| all[*at].group == group);
        let members: Vec<usize> = (0..changes.len()).filter(|change| is_of_group(&ends[*change])).collect();
        let Some(contained) = contained(&all, &ends, &members, group) else { continue };
        for (change, is_contained) in members.into_iter().zip(contained) {
            steps[change] = match ends[change][0] {
                _ if is_contained && is_unclear(&changes[change], changes, labels) => changed(),
                _ if is_contained => Ok(Step::Unchanged),
                None => Ok(Step::Apply(None)),
                Some(from) if all[from].now.is_empty() => changed(),
                Some(from) => Ok(Step::Apply(Some(all[from].now.remove(0)))),
            };
        }
    }
    steps
}

fn changed() -> Result<Step, String> {
    Err("the label, or one equal to it, has changed since the review".to_owned())
}

/// The position of the labels that equal the one before or after a change.
fn position(all: &mut Vec<Equal>, label: &Label, change: &LabelChange, labels: &[Label]) -> usize {
    all.iter().position(|equal| equal.label.is_same(label)).unwrap_or_else(|| {
        let before = change.near.iter().chain(&change.before).filter(|near| near.is_same(label)).count();
        let now = labels.iter().enumerate().filter(|(_, known)| known.is_same(label)).map(|(at, _)| at).collect();
        all.push(Equal { label: label.clone(), before, now, group: all.len() });
        all.len() - 1
    })
}

/// Which of the changes to the same labels are contained; `None` if no choice explains the labels.
fn contained(all: &[Equal], ends: &[[Option<usize>; 2]], members: &[usize], group: usize) -> Option<Vec<bool>> {
    let explains = |contained: &Vec<bool>| {
        let of_group = all.iter().enumerate().filter(|(_, equal)| equal.group == group);
        of_group.into_iter().all(|(at, equal)| {
            let made = members.iter().zip(contained).filter(|(_, contained)| **contained);
            let count = |end: usize| made.clone().filter(|(change, _)| ends[**change][end] == Some(at)).count();
            equal.before + count(1) == equal.now.len() + count(0)
        })
    };
    let whole = [false, true].into_iter().map(|value| vec![value; members.len()]);
    let mixed = if members.len() <= MOST_MIXED { 1_u32 << members.len() } else { 0 };
    let mixed = (0..mixed).map(|bits| (0..members.len()).map(|at| bits >> at & 1 == 1).collect());
    whole.chain(mixed).find(explains)
}

/// Whether a label that looks deleted may be there, with another class or box: the image has one that neither it had
/// nor the changes make.
fn is_unclear(change: &LabelChange, changes: &[LabelChange], labels: &[Label]) -> bool {
    let (Some(deleted), None) = (&change.before, &change.after) else { return false };
    labels.iter().filter(|label| label.is_near(deleted)).any(|label| {
        let made = changes.iter().filter_map(|change| change.after.as_ref());
        let explained = change.near.iter().chain(made).filter(|known| known.is_same(label)).count();
        labels.iter().filter(|other| other.is_same(label)).count() > explained + usize::from(label.is_same(deleted))
    })
}
