//! What of the answers is worth looking at: compact answers of a run, and, over them, searching, sorting and counting.
//!
//! Pure: knows nothing of threads, files or the window. The window asks it on a worker with snapshots, which are cheap
//! to take; the command line asks it directly.

mod answers;

pub use answers::{AnswerStatus, Answers, Summary};
