//! Where the time of a run goes.

use strum::{IntoStaticStr, VariantArray};

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A step of the pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(const_into_str)]
pub enum Stage {
    #[strum(serialize = "reading")]
    Read,
    #[strum(serialize = "decoding")]
    Decode,
    #[strum(serialize = "preparing")]
    Prepare,
    #[strum(serialize = "the model")]
    Model,
    #[strum(serialize = "writing")]
    Write,
}

/// The busy time of threads, summed per stage.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StageTimes {
    busy: [Duration; 5],
    threads: [usize; 5],
}

impl StageTimes {
    /// The busy time summed over the stage's threads, without waiting.
    pub fn busy(&self, stage: Stage) -> Duration {
        self.busy[stage as usize]
    }

    /// The stage with the highest busy time per thread: the one to optimize first. `None` for an empty run.
    pub fn slowest(&self) -> Option<Stage> {
        let per_thread =
            |stage: Stage| self.busy[stage as usize].as_secs_f64() / self.threads[stage as usize].max(1) as f64;
        let slowest =
            Stage::VARIANTS.iter().copied().max_by(|left, right| per_thread(*left).total_cmp(&per_thread(*right)));
        slowest.filter(|stage| self.busy(*stage) > Duration::ZERO)
    }
}

/// Sums up the busy time of each stage from many threads.
#[derive(Default)]
pub(super) struct StageClock {
    busy_nanos: [AtomicU64; 5],
}

impl StageClock {
    pub(super) fn measure<T>(&self, stage: Stage, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = work();
        let nanos = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.busy_nanos[stage as usize].fetch_add(nanos, Ordering::Relaxed);
        result
    }

    /// `workers` are the threads that decode, prepare and compute, in this order.
    pub(super) fn times(&self, readers: usize, workers: [usize; 3]) -> StageTimes {
        let busy = self.busy_nanos.each_ref().map(|nanos| Duration::from_nanos(nanos.load(Ordering::Relaxed)));
        StageTimes { busy, threads: [readers, workers[0], workers[1], workers[2], 1] }
    }
}
