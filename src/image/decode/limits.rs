//! Limits for decoding: pixels per image, bytes in total.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use parking_lot::{Condvar, Mutex};

use super::DecodeError;

/// Limits for every decode. Clones share one memory budget, and so do all default limits.
#[derive(Debug, Clone)]
pub struct DecodeLimits {
    /// Larger images are refused based on their header, before anything is allocated for them.
    pub max_megapixels: u64,
    pub budget: MemoryBudget,
}

impl Default for DecodeLimits {
    fn default() -> Self {
        Self { max_megapixels: 512, budget: MemoryBudget::shared() }
    }
}

impl DecodeLimits {
    pub fn check(&self, width: u64, height: u64) -> Result<(), DecodeError> {
        if width == 0 || height == 0 {
            return Err(DecodeError::NoPixels);
        }
        if width.saturating_mul(height) > self.max_megapixels.saturating_mul(1_000_000) {
            return Err(DecodeError::TooLarge { width, height, max_megapixels: self.max_megapixels });
        }
        Ok(())
    }

    /// Reserves `bytes` for one decode, waiting until they are free.
    ///
    /// # Errors
    /// The decode alone would take more than the largest allowed image, and more than the default budget.
    pub fn reserve(&self, bytes: u64) -> Result<Reservation, DecodeError> {
        let largest_image = self.max_megapixels.saturating_mul(3_000_000);
        let max_bytes = largest_image.max(MemoryBudget::DEFAULT_CAPACITY);
        if bytes > max_bytes {
            return Err(DecodeError::TooMuchMemory { bytes, max_bytes });
        }
        Ok(self.budget.acquire(bytes))
    }
}

/// Bytes that all holders of one budget may use in total. First come, first served, so that small images cannot delay a
/// giant forever.
#[derive(Debug, Clone)]
pub struct MemoryBudget {
    shared: Arc<Shared>,
}

struct Shared {
    capacity: u64,
    state: Mutex<Usage>,
    changed: Condvar,
    lenders: Mutex<Lenders>,
}

/// Holders of memory that release it when a reservation needs it.
#[derive(Default)]
struct Lenders {
    next: u64,
    release: BTreeMap<u64, Arc<dyn Fn() + Send + Sync>>,
}

#[derive(Debug, Default)]
struct Usage {
    used: u64,
    /// The next caller's number.
    next_ticket: u64,
    /// The number being served.
    serving: u64,
}

impl MemoryBudget {
    /// The default memory for decoding in one process: 1.5 GiB, enough for the largest allowed JPEG.
    const DEFAULT_CAPACITY: u64 = 3 << 29;

    pub fn new(capacity_bytes: u64) -> Self {
        let shared = Shared {
            capacity: capacity_bytes,
            state: Mutex::default(),
            changed: Condvar::new(),
            lenders: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The budget shared by this process.
    pub fn shared() -> Self {
        static PROCESS: OnceLock<MemoryBudget> = OnceLock::new();
        PROCESS.get_or_init(|| Self::new(Self::DEFAULT_CAPACITY)).clone()
    }

    /// Reserves `bytes`, waiting in line until they are free. A request larger than the whole budget waits until it is
    /// alone.
    pub fn acquire(&self, bytes: u64) -> Reservation {
        let mut state = self.shared.state.lock();
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        if state.serving != ticket || !self.shared.fits(&state, bytes) {
            drop(state);
            self.shared.ask_lenders();
            state = self.shared.state.lock();
        }
        while state.serving != ticket || !self.shared.fits(&state, bytes) {
            self.shared.changed.wait(&mut state);
        }
        state.serving += 1;
        state.used += bytes;
        drop(state);
        self.shared.changed.notify_all();
        Reservation { shared: Arc::clone(&self.shared), bytes }
    }

    /// Calls `release` whenever a reservation has to wait for memory, until the returned guard is dropped. Intended for
    /// caches, such as the pixels of an image on screen: `release` drops their reservations. The lender must not keep
    /// its pixels while it acquires more, and must check [`Self::is_waited_for`] after it has acquired them.
    #[must_use = "the memory is not lent any more when the guard is dropped"]
    pub fn lend(&self, release: impl Fn() + Send + Sync + 'static) -> Lending {
        let mut lenders = self.shared.lenders.lock();
        let id = lenders.next;
        lenders.next += 1;
        lenders.release.insert(id, Arc::new(release));
        Lending { shared: Arc::clone(&self.shared), id }
    }

    pub fn is_waited_for(&self) -> bool {
        let state = self.shared.state.lock();
        state.serving != state.next_ticket
    }

    pub fn used_bytes(&self) -> u64 {
        self.shared.state.lock().used
    }
}

impl Shared {
    /// Called without a lock, because lenders return released memory through `give_back`.
    fn ask_lenders(&self) {
        let lenders: Vec<_> = self.lenders.lock().release.values().cloned().collect();
        for release in lenders {
            release();
        }
    }

    fn fits(&self, state: &Usage, bytes: u64) -> bool {
        state.used == 0 || state.used.saturating_add(bytes) <= self.capacity
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:?} of {} bytes", self.state.lock(), self.capacity)
    }
}

/// Ends a [`MemoryBudget::lend`] when dropped.
pub struct Lending {
    shared: Arc<Shared>,
    id: u64,
}

impl Drop for Lending {
    fn drop(&mut self) {
        self.shared.lenders.lock().release.remove(&self.id);
    }
}

/// A share of a [`MemoryBudget`], returned when dropped.
#[derive(Debug)]
pub struct Reservation {
    shared: Arc<Shared>,
    bytes: u64,
}

impl Reservation {
    /// Returns everything above `bytes`.
    pub fn shrink_to(&mut self, bytes: u64) {
        let freed = self.bytes.saturating_sub(bytes);
        self.bytes -= freed;
        self.give_back(freed);
    }

    /// Splits off `bytes` of this share (at most all of it) as a separate reservation.
    pub fn split_off(&mut self, bytes: u64) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Self { shared: Arc::clone(&self.shared), bytes }
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn give_back(&self, bytes: u64) {
        if bytes > 0 {
            self.shared.state.lock().used -= bytes;
            self.shared.changed.notify_all();
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.give_back(self.bytes);
    }
}

/// A zeroed buffer, or an error if the system refuses the memory, instead of aborting.
pub(super) fn zeroed(bytes: u64) -> Result<Vec<u8>, DecodeError> {
    let error = DecodeError::OutOfMemory { bytes };
    let length = usize::try_from(bytes).map_err(|_| error.clone())?;
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(length).map_err(|_| error)?;
    buffer.resize(length, 0);
    Ok(buffer)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn two_huge_images_are_never_held_together() {
        let budget = MemoryBudget::new(100);
        let giant = budget.acquire(80);
        let (sender, receiver) = mpsc::channel();
        let other = budget.clone();
        let waiter = thread::spawn(move || {
            let reservation = other.acquire(80);
            sender.send(other.used_bytes()).unwrap();
            drop(reservation);
        });
        assert!(receiver.try_recv().is_err());
        drop(giant);
        assert_eq!(receiver.recv().unwrap(), 80);
        waiter.join().unwrap();
        assert_eq!(budget.used_bytes(), 0);
    }

    #[test]
    fn borrowed_memory_is_released_for_a_reservation() {
        let budget = MemoryBudget::new(100);
        let kept = Arc::new(Mutex::new(Some(budget.acquire(80))));
        let lent = Arc::clone(&kept);
        let lending = budget.lend(move || drop(lent.lock().take()));
        drop(budget.acquire(20));
        assert!(kept.lock().is_some(), "there was room");
        drop(budget.acquire(1000));
        assert!(kept.lock().is_none());
        assert_eq!(budget.used_bytes(), 0);
        drop(lending);
        assert!(!budget.is_waited_for());
    }

    #[test]
    fn split_reservation_is_fully_returned() {
        let budget = MemoryBudget::new(100);
        let mut whole = budget.acquire(80);
        let part = whole.split_off(30);
        assert_eq!((whole.bytes(), part.bytes()), (50, 30));
        drop(whole);
        assert_eq!(budget.used_bytes(), 30);
        drop(part);
        assert_eq!(budget.used_bytes(), 0);
    }

    #[test]
    fn request_above_the_budget_runs_alone() {
        let budget = MemoryBudget::new(100);
        let mut giant = budget.acquire(1000);
        assert_eq!(budget.used_bytes(), 1000);
        giant.shrink_to(60);
        let _small = budget.acquire(40);
        assert_eq!(budget.used_bytes(), 100);
    }

    #[test]
    fn many_threads_never_exceed_the_budget() {
        let budget = MemoryBudget::new(100);
        thread::scope(|scope| {
            for step in 0..8_u64 {
                let budget = &budget;
                scope.spawn(move || {
                    for round in 0..200 {
                        let _reservation = budget.acquire(1 + (step * 31 + round * 17) % 100);
                        assert!(budget.used_bytes() <= 100);
                    }
                });
            }
        });
        assert_eq!(budget.used_bytes(), 0);
    }

    #[test]
    fn image_over_the_limit_is_refused_with_its_size() {
        let limits = DecodeLimits { max_megapixels: 1, ..DecodeLimits::default() };
        assert_eq!(limits.check(1000, 1000), Ok(()));
        let message = limits.check(1001, 1000).unwrap_err().to_string();
        assert!(message.contains("1001 x 1000 is 2 megapixels"), "{message}");
        assert!(limits.check(u64::MAX, u64::MAX).is_err());
    }
}
