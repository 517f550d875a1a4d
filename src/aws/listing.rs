//! A complete listing that prefetches pages while the current one is processed.

use std::sync::Arc;

use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::JoinHandle;

use super::connection::S3;
use super::error::AwsError;
use super::objects::{ListRequest, ListedPage};
use crate::tasks::TaskControl;

/// The number of prefetched pages.
const PAGES_AHEAD: usize = 4;

/// The pages of a listing; the first one is already requested. Dropping it ends the requests.
pub struct Listing {
    s3: S3,
    pages: Receiver<Result<ListedPage, AwsError>>,
    task: JoinHandle<()>,
}

impl S3 {
    /// Starts to list everything from `request` on.
    pub fn list(&self, mut request: ListRequest) -> Result<Listing, AwsError> {
        let (sender, pages) = channel(PAGES_AHEAD);
        let connection = Arc::clone(&self.0);
        let task = self.0.network.handle()?.spawn(async move {
            loop {
                let page = connection.page(&request).await;
                let next = page.as_ref().ok().and_then(|page| page.continuation.clone());
                // The listing was dropped.
                if sender.send(page).await.is_err() {
                    return;
                }
                match next {
                    Some(next) => request.continuation = Some(next),
                    None => return,
                }
            }
        });
        Ok(Listing { s3: self.clone(), pages, task })
    }
}

impl Listing {
    /// Waits for the next page; `None` after the last one, and after an error.
    pub fn next_page(&mut self, control: Option<&TaskControl>) -> Option<Result<ListedPage, AwsError>> {
        let pages = &mut self.pages;
        let network = &self.s3.0.network;
        network.wait(control, async { Ok(pages.recv().await) }).unwrap_or_else(|error| Some(Err(error)))
    }
}

impl Drop for Listing {
    fn drop(&mut self) {
        self.task.abort();
    }
}
