//! Endpoints that are to be deleted by now are deleted beside whatever else a command does: at its start, and while it runs. The window has a
//! keeper of its own.

use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, bounded};

use super::records;
use crate::aws::Aws;
use crate::dirs::AppDirs;
use crate::remote::endpoint::delete_due;
use crate::tasks::{ProgressUnit, TaskControl, now_ms};

const EVERY: Duration = Duration::from_secs(30);

/// Looks after the endpoints of this machine until it is finished.
pub(in crate::cli) struct AutoDeleter {
    control: TaskControl,
    has_looked: Receiver<()>,
    thread: JoinHandle<()>,
}

impl AutoDeleter {
    /// `None` where the program has no folder to keep anything in.
    pub(in crate::cli) fn start() -> Option<Self> {
        let records = records(&AppDirs::find().ok()?);
        let control = TaskControl::new(ProgressUnit::Images);
        let (looked, has_looked) = bounded(1);
        let of_thread = control.clone();
        let thread = std::thread::spawn(move || {
            let aws = Aws::new();
            loop {
                for (record, done) in delete_due(&aws, &records, now_ms(), &of_thread) {
                    match done {
                        Ok(_) => eprintln!(
                            "the endpoint {} was deleted: its time was over",
                            record.name
                        ),
                        Err(error) => eprintln!(
                            "the time of the endpoint {} is over, and it still costs money, as it could not be deleted yet: {error}",
                            record.name
                        ),
                    }
                }
                // Nobody waits for it any more.
                let _ = looked.try_send(());
                if of_thread.sleep(EVERY).is_err() {
                    return;
                }
            }
        });
        Some(Self {
            control,
            has_looked,
            thread,
        })
    }

    /// Waits until it has looked once.
    pub(in crate::cli) fn finish(self) {
        // It ended early only where it panicked.
        let _ = self.has_looked.recv();
        self.control.cancel();
        let _ = self.thread.join();
    }
}
