//! Compact predictions of a run, and searching, sorting and counting over them.
//!
//! Pure: no threads, files or window. The window calls it on a worker with snapshots, which are cheap to take; the CLI
//! calls it directly.

mod arrange;
mod binomial;
mod by_class;
mod candidate;
mod duplicates;
mod facts;
mod filmstrip;
mod folders;
mod grouping;
mod image_draw;
mod kappa;
mod marks;
mod nothing_found;
mod outcome_counts;
mod outcomes;
mod population;
mod predictions;
mod query;
mod report;
mod sampling;
mod sort;
mod statement;
mod statistics;
mod suppressed;
mod suspects;
#[cfg(test)]
mod testing;
mod uncertain;

pub use arrange::{ArrangeRequest, Arrangement, Arranger, FilterCounts, OtherRun, arrange};
pub use duplicates::{DuplicatePlaces, GroupPlace};
pub use facts::{count_boxes, verdict_of_image};
pub use filmstrip::{BoxChoice, FilmFrame, FilmOrder, FilmRequest, filmstrip};
pub use folders::{Folder, FolderCounts, Folders};
pub use grouping::{Group, GroupBy, GroupKind, Groups, MAX_GROUPS, MapRow, group_rows};
pub use image_draw::{DrawBy, DrawnImages, ImageDraw};
pub use kappa::{Kappa, cohens_kappa, kappas};
pub use marks::{Mark, Marks, VerdictKind};
pub use nothing_found::NothingFound;
pub use outcome_counts::{Confusion, OutcomeCounts, outcome_counts};
pub use outcomes::{
    BoxOutcome, ClassOutcomes, ImageOutcomes, NO_OBJECT, NamedOutcome, ObjectOutcome, OutcomeClass, OutcomeKind,
    Outcomes, ShownSuspect, share,
};
pub use population::{Judged, Population, judged};
pub use predictions::{PredictionStatus, Predictions, Summary};
pub use query::{
    BoxQuery, BoxTerm, ClassChanges, ClassName, Completion, KnownNames, OutcomeWord, Query, QueryError, Span,
    change_key, change_term, class_term, complete, folder_in, folder_term, has_term, with_term, without_comparison,
    without_folders, without_term,
};
pub use report::{
    Acceptance, Added, ClassPart, Correction, ImageFrame, Part, PrecisionAt, ReportRequest, ReviewReport,
    SampleProgress, ScorePart, Target, Withheld, more_sentence, review_report,
};
pub use sampling::{
    Drawn, ImageClusters, LoadedSample, LoadedUnit, ReviewSample, SampleBy, SampledUnit, Stratum, Unit, draw,
    draw_from_clusters,
};
pub use sort::{Direction, Sort, SortBy};
pub use statement::{Basis, CountedImages, Judgment, Proportion, ReviewedUnit, Statement, Verdicts};
pub use statistics::{ClassRow, ClassTable, ScoreHistogram, Statistics, statistics};
pub use suppressed::Suppressed;
pub use suspects::{FilmBox, Suspect, SuspectKind, SuspectOrder};
pub use uncertain::{margin, next_less_certain};

/// The number of samples processed between two checks for cancellation.
const SAMPLES_PER_CHECK: usize = 1024;
