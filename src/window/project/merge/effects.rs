//! Comparing two projects, and writing the merged one.

use std::collections::HashMap;
use std::sync::Arc;

use crate::domain::{Pair, Prefer, RunInfo};
use crate::project::export::merge_projects;
use crate::project::{MergeError, OpenMode, OpenRequest, Project, StoreError, run_to_merge, write_merged};
use crate::review::kappas;
use crate::tasks::TaskControl;
use crate::window::effects::Shared;
use crate::window::project::effects::PROGRAM;
use crate::window::state::{Failure, MergeEffect, MergeEvent, MergeFindings, MergeRequest, ProjectEvent};

pub(crate) fn carry_out(shared: &Arc<Shared>, effect: MergeEffect) {
    match effect {
        MergeEffect::Compare { request, ticket } => shared.run_task(
            "compare two projects",
            ticket,
            move |shared, ticket| compare(shared, &request, &ticket.control),
            |task, result| ProjectEvent::Merge(MergeEvent::Compared(task, result)),
        ),
        MergeEffect::Save { request, choices, target, ticket } => shared.run_task(
            "write a merged project",
            ticket,
            move |shared, ticket| {
                let control = &ticket.control;
                let (projects, other_run) = both(shared, &request)?;
                let choices: HashMap<Pair, Prefer> = choices.into_iter().collect();
                let kept = |pair: &Pair| choices.get(pair).copied().unwrap_or(Prefer::None);
                let [first, second] = &projects;
                let merge = merge_projects([first, second], [&request.run, &other_run], kept, control);
                let written = merge.and_then(|merge| write_merged(first, &merge.changes, &target, PROGRAM, control));
                written.map_err(failure)
            },
            |task, result| ProjectEvent::Merge(MergeEvent::Saved(task, result)),
        ),
    }
}

fn compare(shared: &Shared, request: &MergeRequest, control: &TaskControl) -> Result<MergeFindings, Failure> {
    let (projects, other_run) = both(shared, request)?;
    let [first, second] = &projects;
    let merge = merge_projects([first, second], [&request.run, &other_run], |_| Prefer::None, control);
    let merge = merge.map_err(failure)?;
    let (kappa, classes) = kappas(&merge.pairs);
    Ok(MergeFindings {
        kappa,
        classes: classes.into_iter().map(|(class, found)| (class.map(str::to_owned), found)).collect(),
        notes: merge.notes,
        added: merge.added,
        pairs: merge.pairs.len(),
        conflicts: merge.pairs.into_iter().filter(Pair::is_conflict).collect(),
    })
}

/// The open project with everything saved, the other one, and the run of the other one.
fn both(shared: &Shared, request: &MergeRequest) -> Result<([Project; 2], RunInfo), Failure> {
    let first = shared.project(request.source).ok_or(Failure::Cancelled)?;
    first.flush()?;
    let open = OpenRequest { path: &request.other, root: None, mode: OpenMode::Read, program: PROGRAM };
    let second = Project::open(&open, |_| ())?.project;
    if first.path().is_some() && first.path() == second.path() {
        let text = "This is the open project; choose that of another person";
        return Err(Failure::new(format!("{text}: {}", request.other.display())));
    }
    let run = run_to_merge(&second, &request.run).map_err(failure)?;
    Ok(([first, second], run))
}

fn failure(error: MergeError) -> Failure {
    match error {
        MergeError::Store(StoreError::Cancelled(_)) => Failure::Cancelled,
        error => Failure::new(error.to_string()),
    }
}
