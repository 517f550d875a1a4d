//! Deletes due endpoints when a command starts and while it runs. The window has its own auto-deleter.

use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, bounded};

use super::records;
use crate::aws::Aws;
use crate::dirs::AppDirs;
use crate::sagemaker::endpoints::delete_due;
use crate::tasks::{ProgressUnit, TaskControl, now_ms};

const EVERY: Duration = Duration::from_secs(30);

/// Deletes due endpoints of this computer until `finish`.
pub(crate) struct AutoDeleter {
    control: TaskControl,
    has_looked: Receiver<()>,
    thread: JoinHandle<()>,
}

impl AutoDeleter {
    /// `None` if the program has no data folder.
    pub(crate) fn start() -> Option<Self> {
        let records = records(&AppDirs::find().ok()?);
        let control = TaskControl::new(ProgressUnit::Images);
        let (looked, has_looked) = bounded(1);
        let of_thread = control.clone();
        let thread = std::thread::spawn(move || {
            let aws = Aws::new();
            loop {
                for (record, done) in delete_due(&aws, &records, now_ms(), &of_thread) {
                    match done {
                        Ok(_) => eprintln!("deleted endpoint {}: its auto-delete time was reached", record.name),
                        Err(error) => eprintln!(
                            "endpoint {} is past its auto-delete time but still costs money, because it could not be \
                             deleted: {error}",
                            record.name
                        ),
                    }
                }
                // The command has ended.
                let _ = looked.try_send(());
                if of_thread.sleep(EVERY).is_err() {
                    return;
                }
            }
        });
        Some(Self { control, has_looked, thread })
    }

    /// Waits until it has checked once.
    pub(crate) fn finish(self) {
        // The thread ends early only if it panicked.
        let _ = self.has_looked.recv();
        self.control.cancel();
        let _ = self.thread.join();
    }
}
