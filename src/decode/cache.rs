//! Thumbnails kept on disk from one start to the next.
//!
//! One file an entry, named after a hash of everything that its pixels depend on, written under another name and renamed
//! when it is whole: a program that is killed, or several at once, leave nothing half. A checksum tells a damaged entry,
//! which is then as good as none. The entries lie in [`SHARDS`] folders, each with its share of the bound, from which the
//! least recently used are dropped: nobody ever has to look through all of them, and programs that run at the same time
//! need not talk to each other.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};

use super::{DecodeLimits, decode, encode};
use crate::domain::{Picture, Sample};

const SHARDS: usize = 64;
/// Changes with the way thumbnails are made or stored; folders of other versions are left to `clear`.
const VERSION: &str = "v1";
const MAGIC: &[u8; 8] = b"spotthm1";
const ENTRY: &str = "thumb";
const UNFINISHED: &str = "part";
/// A file that is still unfinished after so long belonged to a program that was killed.
const ABANDONED_AFTER: Duration = Duration::from_hours(1);
/// Using an entry renews its time no more often than this, to spare the disk.
const RENEWED_EVERY: Duration = Duration::from_hours(1);
/// So often what is in a folder is measured anew: other programs write there too.
const MEASURED_EVERY: u32 = 32;

/// Tells apart what the threads of this program write; programs are told apart by their ids.
static NEXT_NAME: AtomicU64 = AtomicU64::new(0);

/// Thumbnails of any source, bounded. Everything here may block on the disk.
pub struct ThumbnailCache {
    folder: PathBuf,
    max_bytes: AtomicU64,
    /// Writing has failed; it is not tried again before the cache is cleared or its bound is set.
    is_broken: AtomicBool,
    shards: Mutex<Vec<Shard>>,
}

/// What is known of one folder of entries.
#[derive(Clone, Copy, Default)]
struct Shard {
    /// `None` before it was measured.
    bytes: Option<u64>,
    puts: u32,
}

/// Everything that the pixels of a thumbnail depend on, as a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ThumbnailKey([u8; 32]);

/// What the cache takes on the disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheUsage {
    pub bytes: u64,
    pub entries: u64,
}

/// Thumbnails cannot be kept. Said once; they are made anew each time from then on.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    #[error(
        "Thumbnails are not kept on disk, so they are made anew at each start: {cause}; free space or make the folder writable, then choose “Clear cache”: {}",
        folder.display()
    )]
    Write { folder: PathBuf, cause: io::Error },
    #[error("The kept thumbnails could not all be deleted: {cause}: {}", folder.display())]
    Clear { folder: PathBuf, cause: io::Error },
}

impl ThumbnailKey {
    /// `side` is the longer side of the thumbnail in pixels. `None` where nothing would tell that the content has changed.
    pub fn new(sample: &Sample, side: u32) -> Option<Self> {
        let stamp = sample.stamp();
        if stamp.modified_ns.is_none() && stamp.etag.is_none() {
            return None;
        }
        let mut hash = Sha256::new();
        hash.update(side.to_le_bytes());
        hash.update(stamp.size_bytes.to_le_bytes());
        hash.update(stamp.modified_ns.unwrap_or_default().to_le_bytes());
        for text in [
            sample.uri.as_str(),
            stamp.etag.as_deref().unwrap_or_default(),
        ] {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        }
        Some(Self(hash.finalize().into()))
    }

    fn shard(&self) -> usize {
        usize::from(self.0[0]) % SHARDS
    }

    fn file_name(&self) -> String {
        let [high, low] = [&self.0[..16], &self.0[16..]].map(|half| {
            half.iter()
                .fold(0, |number: u128, byte| number << 8 | u128::from(*byte))
        });
        format!("{high:032x}{low:032x}.{ENTRY}")
    }
}

impl ThumbnailCache {
    /// Nothing is read or written before the first entry is.
    pub fn new(folder: PathBuf, max_bytes: u64) -> Self {
        Self {
            folder,
            max_bytes: AtomicU64::new(max_bytes),
            is_broken: AtomicBool::new(false),
            shards: Mutex::new(vec![Shard::default(); SHARDS]),
        }
    }

    /// Zero keeps nothing. What is above the bound goes when entries are added.
    pub fn set_max_bytes(&self, max_bytes: u64) {
        self.max_bytes.store(max_bytes, Ordering::Relaxed);
        self.is_broken.store(false, Ordering::Relaxed);
    }

    /// The kept thumbnail; `None` where there is none, or a damaged one.
    pub fn get(&self, key: &ThumbnailKey) -> Option<Picture> {
        if self.max_bytes.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let path = self.path_of(key);
        let mut file = File::open(&path).ok()?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok()?;
        let picture =
            jpeg_of(key, &bytes).and_then(|jpeg| decode(jpeg, &DecodeLimits::default()).ok());
        if picture.is_some() {
            renew(&file);
        } else {
            log::warn!(
                "a kept thumbnail is damaged and will be made again: {}",
                path.display()
            );
            // Where that fails the new one replaces it.
            let _deleted = fs::remove_file(&path);
        }
        picture
    }

    /// Keeps a thumbnail, and drops others where there is no room.
    ///
    /// # Errors
    /// It cannot be written. Later calls do nothing and say nothing.
    pub fn put(&self, key: &ThumbnailKey, picture: &Picture) -> Result<(), CacheError> {
        let max_bytes = self.max_bytes.load(Ordering::Relaxed);
        if max_bytes == 0 || self.is_broken.load(Ordering::Relaxed) {
            return Ok(());
        }
        let Ok(jpeg) = encode::encode_thumbnail(picture) else {
            return Ok(());
        };
        let written = self.write(key, &jpeg).and_then(|bytes| {
            let share = max_bytes / SHARDS as u64;
            self.make_room(key.shard(), bytes, share)
        });
        written.or_else(|cause| {
            let was_broken = self.is_broken.swap(true, Ordering::Relaxed);
            let folder = self.folder.clone();
            if was_broken {
                Ok(())
            } else {
                Err(CacheError::Write { folder, cause })
            }
        })
    }

    /// Looks at every entry, so it may take a while.
    pub fn usage(&self) -> CacheUsage {
        let mut usage = CacheUsage::default();
        for shard in 0..SHARDS {
            for file in files(&self.shard_folder(shard)) {
                usage.bytes += file.bytes;
                usage.entries += u64::from(file.is_entry());
            }
        }
        usage
    }

    /// Deletes every entry, also those of older versions.
    pub fn clear(&self) -> Result<(), CacheError> {
        self.lock().fill(Shard::default());
        self.is_broken.store(false, Ordering::Relaxed);
        match fs::remove_dir_all(&self.folder) {
            Ok(()) => Ok(()),
            // There was nothing, or another program adds to it at this moment.
            Err(cause)
                if matches!(
                    cause.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty
                ) =>
            {
                Ok(())
            }
            Err(cause) => Err(CacheError::Clear {
                folder: self.folder.clone(),
                cause,
            }),
        }
    }

    /// Gives the size of the file.
    fn write(&self, key: &ThumbnailKey, jpeg: &[u8]) -> io::Result<u64> {
        let mut bytes = Vec::with_capacity(MAGIC.len() + 4 + jpeg.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&checksum(key, jpeg).to_le_bytes());
        bytes.extend_from_slice(jpeg);
        let path = self.path_of(key);
        let serial = NEXT_NAME.fetch_add(1, Ordering::Relaxed);
        let unfinished = self.unfinished_path_of(key, serial);
        let written = fs::write(&unfinished, &bytes).or_else(|error| {
            if error.kind() != io::ErrorKind::NotFound {
                return Err(error);
            }
            fs::create_dir_all(self.shard_folder(key.shard()))?;
            fs::write(&unfinished, &bytes)
        });
        let renamed = written.and_then(|()| fs::rename(&unfinished, &path));
        match renamed {
            Ok(()) => Ok(bytes.len() as u64),
            // Another program has just cleared the cache.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => {
                let _deleted = fs::remove_file(&unfinished);
                Err(error)
            }
        }
    }

    /// Takes `added` bytes into account, and drops what was not used for longest where a folder is above its share.
    fn make_room(&self, shard: usize, added: u64, share: u64) -> io::Result<()> {
        let is_over = {
            let mut shards = self.lock();
            let known = &mut shards[shard];
            known.puts += 1;
            known.bytes = match known.bytes {
                Some(bytes) if !known.puts.is_multiple_of(MEASURED_EVERY) => Some(bytes + added),
                _ => Some(
                    files(&self.shard_folder(shard))
                        .map(|file| file.bytes)
                        .sum(),
                ),
            };
            known.bytes > Some(share)
        };
        if is_over {
            let left = drop_oldest(&self.shard_folder(shard), share / 10 * 9)?;
            self.lock()[shard].bytes = Some(left);
        }
        Ok(())
    }

    fn shard_folder(&self, shard: usize) -> PathBuf {
        self.folder.join(VERSION).join(format!("{shard:02}"))
    }

    fn path_of(&self, key: &ThumbnailKey) -> PathBuf {
        self.shard_folder(key.shard()).join(key.file_name())
    }

    /// Where an entry lies while it is written.
    fn unfinished_path_of(&self, key: &ThumbnailKey, serial: u64) -> PathBuf {
        let extension = format!("{}-{serial}.{UNFINISHED}", std::process::id());
        self.path_of(key).with_extension(extension)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Shard>> {
        // Estimates only: a panic elsewhere leaves nothing worse than a wrong one.
        self.shards.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn checksum(key: &ThumbnailKey, jpeg: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&key.0);
    hasher.update(jpeg);
    hasher.finalize()
}

/// `None` where the entry is damaged or another one's.
fn jpeg_of<'bytes>(key: &ThumbnailKey, bytes: &'bytes [u8]) -> Option<&'bytes [u8]> {
    let (sum, jpeg) = bytes.strip_prefix(MAGIC)?.split_first_chunk::<4>()?;
    (u32::from_le_bytes(*sum) == checksum(key, jpeg)).then_some(jpeg)
}

/// Marks an entry as used. Where that fails it is only dropped sooner.
fn renew(file: &File) {
    let now = SystemTime::now();
    let modified = file.metadata().and_then(|metadata| metadata.modified());
    let age = modified
        .ok()
        .and_then(|modified| now.duration_since(modified).ok());
    if age.is_some_and(|age| age > RENEWED_EVERY) {
        let _renewed = file.set_modified(now);
    }
}

struct StoredFile {
    path: PathBuf,
    bytes: u64,
    modified: SystemTime,
}

impl StoredFile {
    fn is_entry(&self) -> bool {
        self.path.extension() == Some(OsStr::new(ENTRY))
    }

    fn is_abandoned(&self) -> bool {
        let age = SystemTime::now().duration_since(self.modified);
        !self.is_entry() && age.is_ok_and(|age| age > ABANDONED_AFTER)
    }
}

/// Empty where the folder is not there.
fn files(folder: &Path) -> impl Iterator<Item = StoredFile> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(Result::ok).filter_map(|entry| {
        let metadata = entry.metadata().ok()?;
        metadata.is_file().then(|| StoredFile {
            path: entry.path(),
            bytes: metadata.len(),
            modified: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
        })
    })
}

/// Deletes files, the least recently used first, until no more than `wanted_bytes` are left; gives what is left.
fn drop_oldest(folder: &Path, wanted_bytes: u64) -> io::Result<u64> {
    let mut stored: Vec<StoredFile> = files(folder).collect();
    stored.sort_by_key(|file| (!file.is_abandoned(), file.modified));
    let mut left: u64 = stored.iter().map(|file| file.bytes).sum();
    for file in stored {
        let is_in_the_way = left > wanted_bytes && file.is_entry();
        if !is_in_the_way && !file.is_abandoned() {
            continue;
        }
        match fs::remove_file(&file.path) {
            Ok(()) => left -= file.bytes,
            // Another program was faster.
            Err(error) if error.kind() == io::ErrorKind::NotFound => left -= file.bytes,
            Err(error) => return Err(error),
        }
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::SampleUri;

    const PLENTY: u64 = 1 << 30;

    fn sample(name: &str) -> Sample {
        Sample {
            uri: SampleUri::new(format!("/photos/{name}")),
            name: name.to_owned(),
            size_bytes: 1000,
            modified_ns: Some(77),
            etag: None,
        }
    }

    fn key(name: &str) -> ThumbnailKey {
        ThumbnailKey::new(&sample(name), 128).unwrap()
    }

    fn grey(value: u8) -> Picture {
        Picture::new(32, 24, vec![value; 32 * 24 * 3]).unwrap()
    }

    fn value_of(picture: &Picture) -> u8 {
        picture.pixel(5, 5).unwrap()[0]
    }

    fn only_file(folder: &Path) -> PathBuf {
        let shards = fs::read_dir(folder.join(VERSION)).unwrap();
        let mut found = shards.flat_map(|shard| files(&shard.unwrap().path()).collect::<Vec<_>>());
        let file = found.next().unwrap().path;
        assert!(found.next().is_none());
        file
    }

    #[test]
    fn a_kept_thumbnail_comes_back_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let cache = ThumbnailCache::new(folder.path().join("c"), PLENTY);
        assert_eq!(cache.get(&key("a")), None);
        cache.put(&key("a"), &grey(90)).unwrap();
        let cache = ThumbnailCache::new(folder.path().join("c"), PLENTY);
        let picture = cache.get(&key("a")).unwrap();
        assert_eq!((picture.width(), picture.height()), (32, 24));
        assert!(value_of(&picture).abs_diff(90) < 3);
        assert_eq!(cache.get(&key("b")), None);
    }

    #[test]
    fn a_file_that_was_written_anew_moved_or_is_wanted_larger_has_another_key() {
        let original = sample("a");
        let with = |change: fn(&mut Sample)| {
            let mut changed = original.clone();
            change(&mut changed);
            ThumbnailKey::new(&changed, 128)
        };
        let keys = [
            with(|_| ()),
            ThumbnailKey::new(&original, 256),
            with(|sample| sample.etag = Some("e".into())),
            with(|sample| sample.etag = Some("f".into())),
            with(|sample| sample.size_bytes = 1001),
            with(|sample| sample.modified_ns = Some(78)),
            ThumbnailKey::new(&sample("b"), 128),
        ];
        let different: std::collections::HashSet<_> = keys.iter().collect();
        assert_eq!(different.len(), keys.len());
        assert_eq!(with(|sample| sample.modified_ns = None), None);
    }

    #[test]
    fn a_damaged_entry_is_as_good_as_none_and_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let cache = ThumbnailCache::new(folder.path().to_owned(), PLENTY);
        cache.put(&key("a"), &grey(90)).unwrap();
        let file = only_file(folder.path());
        let whole = fs::read(&file).unwrap();
        let mut flipped = whole.clone();
        flipped[whole.len() / 2] ^= 1;
        for damaged in [&flipped[..], &whole[..whole.len() - 3], &whole[..5], b""] {
            fs::write(&file, damaged).unwrap();
            assert_eq!(cache.get(&key("a")), None);
            assert!(!file.exists());
            cache.put(&key("a"), &grey(90)).unwrap();
            assert!(cache.get(&key("a")).is_some());
        }
    }

    #[test]
    fn an_entry_under_the_name_of_another_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let cache = ThumbnailCache::new(folder.path().to_owned(), PLENTY);
        cache.put(&key("a"), &grey(90)).unwrap();
        let other = cache.path_of(&key("b"));
        fs::create_dir_all(other.parent().unwrap()).unwrap();
        fs::rename(only_file(folder.path()), other).unwrap();
        assert_eq!(cache.get(&key("b")), None);
    }

    #[test]
    fn the_bound_holds_and_what_was_used_lately_stays() {
        let folder = tempfile::tempdir().unwrap();
        let entry_bytes = {
            let cache = ThumbnailCache::new(folder.path().to_owned(), PLENTY);
            cache.put(&key("used"), &grey(0)).unwrap();
            cache.usage().bytes
        };
        let max_bytes = entry_bytes * 10 * SHARDS as u64;
        let cache = ThumbnailCache::new(folder.path().to_owned(), max_bytes);
        let old = SystemTime::now() - Duration::from_hours(48);
        for number in 0..2000 {
            let entry = key(&number.to_string());
            cache.put(&entry, &grey(1)).unwrap();
            let file = File::open(cache.path_of(&entry));
            // All that is there grows old, only one entry is looked at.
            file.and_then(|file| file.set_modified(old)).unwrap_or(());
            assert!(cache.get(&key("used")).is_some());
        }
        let usage = cache.usage();
        assert!(usage.bytes <= max_bytes, "{usage:?} of {max_bytes}");
        assert!(usage.entries > 5 * SHARDS as u64, "{usage:?}");
    }

    #[test]
    fn what_a_killed_program_left_unfinished_is_no_entry_and_goes() {
        let folder = tempfile::tempdir().unwrap();
        let cache = ThumbnailCache::new(folder.path().to_owned(), PLENTY);
        let key = key("a");
        let unfinished = cache.path_of(&key).with_extension("7-0.part");
        fs::create_dir_all(unfinished.parent().unwrap()).unwrap();
        fs::write(&unfinished, b"spot").unwrap();
        assert_eq!(cache.get(&key), None);
        cache.put(&key, &grey(9)).unwrap();
        assert!(cache.get(&key).is_some());
        let old = SystemTime::now() - Duration::from_hours(2);
        File::options()
            .write(true)
            .open(&unfinished)
            .unwrap()
            .set_modified(old)
            .unwrap();
        drop_oldest(unfinished.parent().unwrap(), PLENTY).unwrap();
        assert!(!unfinished.exists());
        assert!(cache.get(&key).is_some());
    }

    #[test]
    fn several_programs_at_once_find_only_whole_entries() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let folder = folder.path().to_owned();
                scope.spawn(move || {
                    let cache = ThumbnailCache::new(folder, 256 << 10);
                    for round in 0..200_u8 {
                        let value = round % 8;
                        let key = key(&value.to_string());
                        cache.put(&key, &grey(value * 30)).unwrap();
                        if let Some(picture) = cache.get(&key) {
                            assert!(value_of(&picture).abs_diff(value * 30) < 3);
                        }
                    }
                });
            }
        });
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_said_once_and_tried_again_after_clearing() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("c");
        // Where the folder should be, a file lies: it cannot be written by anybody.
        fs::write(&place, b"in the way").unwrap();
        let cache = ThumbnailCache::new(place.clone(), PLENTY);
        let message = cache.put(&key("a"), &grey(1)).unwrap_err().to_string();
        assert!(message.contains("not kept on disk"), "{message}");
        assert!(cache.put(&key("b"), &grey(1)).is_ok());
        assert_eq!(cache.get(&key("b")), None);
        fs::remove_file(&place).unwrap();
        cache.clear().unwrap();
        cache.put(&key("a"), &grey(1)).unwrap();
        assert!(cache.get(&key("a")).is_some());
    }

    /// `/dev/full` takes nothing, as a full disk.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_said_once_and_leaves_neither_half_an_entry_nor_more_attempts() {
        let folder = tempfile::tempdir().unwrap();
        let cache = ThumbnailCache::new(folder.path().to_owned(), PLENTY);
        let (before, keys) = (key("before"), [key("a"), key("b")]);
        cache.put(&before, &grey(7)).unwrap();
        // Whatever number the next unfinished files get: other tests count, too.
        let next = NEXT_NAME.load(Ordering::Relaxed);
        let unfinished: Vec<PathBuf> = keys
            .iter()
            .flat_map(|key| (next..next + 5000).map(move |serial| (key, serial)))
            .map(|(key, serial)| cache.unfinished_path_of(key, serial))
            .collect();
        for path in &unfinished {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink("/dev/full", path).unwrap();
        }
        let message = cache.put(&keys[0], &grey(1)).unwrap_err().to_string();
        assert!(message.contains("No space left on device"), "{message}");
        assert!(message.contains("free space"), "{message}");
        cache.put(&keys[1], &grey(1)).unwrap();
        for key in &keys {
            assert_eq!(cache.get(key), None);
            assert!(!cache.path_of(key).exists());
        }
        assert!(cache.get(&before).is_some(), "what is kept is still read");
        // There is room again.
        for path in &unfinished {
            let _gone = fs::remove_file(path);
        }
        cache.set_max_bytes(PLENTY);
        cache.put(&keys[0], &grey(1)).unwrap();
        assert!(cache.get(&keys[0]).is_some());
    }

    #[test]
    fn a_bound_of_zero_keeps_nothing_and_clearing_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let cache = ThumbnailCache::new(folder.path().join("c"), 0);
        cache.put(&key("a"), &grey(1)).unwrap();
        assert_eq!(cache.usage(), CacheUsage::default());
        cache.set_max_bytes(PLENTY);
        cache.put(&key("a"), &grey(1)).unwrap();
        assert_eq!(cache.usage().entries, 1);
        cache.clear().unwrap();
        assert_eq!(cache.usage(), CacheUsage::default());
        assert_eq!(cache.get(&key("a")), None);
    }
}
