//! A bounded disk cache that persists between runs: thumbnails, images fetched from a network, and maps of embeddings.
//!
//! One file per entry, named after a hash of everything that its content depends on. It is written under another name
//! and renamed when complete, so that killed or concurrent programs leave no partial entries. A checksum detects
//! damaged entries, which count as missing. The entries are in `SHARDS` folders, each with its share of the limit, from
//! which the least recently used are evicted: no program ever scans all of them, and concurrent programs need not
//! communicate. Knows nothing about the content of entries.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use strum::{EnumCount, EnumString, IntoStaticStr};

use crate::domain::CacheUsage;

/// Few enough that the share of each holds many camera images.
const SHARDS: usize = 16;
/// The largest entry is this fraction of a share, so that one entry never evicts many.
const LARGEST_OF_SHARE: u64 = 4;
/// Changes with the way entries are created or stored; folders of other versions are left to `clear`.
const VERSION: &str = "v2";
const MAGIC: &[u8; 8] = b"spotcac2";
const UNFINISHED: &str = "part";
/// A file that is unfinished after this time belonged to a killed program.
const ABANDONED_AFTER: Duration = Duration::from_hours(1);
/// The time of an entry is renewed no more often than this, to spare the disk.
const RENEWED_EVERY: Duration = Duration::from_hours(1);
/// The number of writes after which the folder is measured again, because other programs write to it as well.
const MEASURED_EVERY: u32 = 32;

/// Distinguishes what threads of this program write; programs are distinguished by their ids.
static NEXT_NAME: AtomicU64 = AtomicU64::new(0);

/// Entries of any source, bounded. All calls can block on the disk.
pub struct DiskCache {
    folder: PathBuf,
    max_bytes: AtomicU64,
    /// Writing failed; it is not retried before the cache is cleared or its limit is set.
    is_broken: AtomicBool,
    shards: Mutex<Vec<Shard>>,
}

/// The state of one folder of entries.
#[derive(Clone, Copy, Default)]
struct Shard {
    /// `None` until measured.
    bytes: Option<u64>,
    puts: u32,
}

/// A kind that takes more than half of the space is evicted first, so that none displaces the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EnumCount, EnumString, IntoStaticStr)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum EntryKind {
    #[strum(serialize = "thumb")]
    Thumbnail,
    /// Encoded, as read from its source.
    #[strum(serialize = "picture")]
    Image,
    /// The positions of images or boxes by their embeddings.
    Map,
}

/// The hash of everything that the content of an entry depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CacheKey {
    kind: EntryKind,
    hash: [u8; 32],
}

/// The cache cannot be used. Reported once; the program continues without it.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    #[error(
        "The disk cache is off, so thumbnails and images from S3 are loaded again at each start: {cause}; free space \
        or make the folder writable, then choose “Clear cache”: {}",
        folder.display()
    )]
    Write { folder: PathBuf, cause: io::Error },
    #[error("Could not delete all of the disk cache: {cause}: {}", folder.display())]
    Clear { folder: PathBuf, cause: io::Error },
}

impl CacheKey {
    /// Two keys are equal if all `parts` are.
    pub fn new(kind: EntryKind, parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let hash = hash.finalize().into();
        Self { kind, hash }
    }

    fn shard(&self) -> usize {
        usize::from(self.hash[0]) % SHARDS
    }

    fn file_name(&self) -> String {
        let [high, low] = [&self.hash[..16], &self.hash[16..]]
            .map(|half| half.iter().fold(0, |number: u128, byte| number << 8 | u128::from(*byte)));
        format!("{high:032x}{low:032x}.{}", self.kind.into_str())
    }
}

impl DiskCache {
    /// A cache in `folder`. Nothing is read or written before the first entry.
    pub fn new(folder: PathBuf, max_bytes: u64) -> Self {
        Self {
            folder,
            max_bytes: AtomicU64::new(max_bytes),
            is_broken: AtomicBool::new(false),
            shards: Mutex::new(vec![Shard::default(); SHARDS]),
        }
    }

    /// Zero disables the cache. Entries above the limit are evicted when new ones are added.
    pub fn set_max_bytes(&self, max_bytes: u64) {
        self.max_bytes.store(max_bytes, Ordering::Relaxed);
        self.is_broken.store(false, Ordering::Relaxed);
    }

    /// The largest possible entry: [`Self::put`] ignores larger ones. Zero if the cache is disabled.
    pub fn max_entry_bytes(&self) -> u64 {
        self.max_bytes.load(Ordering::Relaxed) / SHARDS as u64 / LARGEST_OF_SHARE
    }

    /// The entry's content; `None` if there is none, or it is damaged.
    pub fn get(&self, key: &CacheKey) -> Option<Vec<u8>> {
        if self.max_bytes.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let path = self.path_of(key);
        let mut file = File::open(&path).ok()?;
        let content = read_entry(key, &mut file);
        if content.is_some() {
            renew(&file);
        } else {
            log::warn!("a disk cache entry is damaged and will be replaced: {}", path.display());
            // If this fails, the new one replaces it.
            let _deleted = fs::remove_file(&path);
        }
        content
    }

    /// Stores an entry, evicting others if there is no room.
    ///
    /// # Errors
    /// It cannot be written. Later calls do nothing and report nothing.
    pub fn put(&self, key: &CacheKey, content: &[u8]) -> Result<(), CacheError> {
        let is_too_large = content.len() as u64 > self.max_entry_bytes();
        if is_too_large || self.is_broken.load(Ordering::Relaxed) {
            return Ok(());
        }
        let written = self.write(key, content).and_then(|bytes| {
            let share = self.max_bytes.load(Ordering::Relaxed) / SHARDS as u64;
            self.make_room(key.shard(), bytes, share)
        });
        written.or_else(|cause| {
            let was_broken = self.is_broken.swap(true, Ordering::Relaxed);
            let folder = self.folder.clone();
            if was_broken { Ok(()) } else { Err(CacheError::Write { folder, cause }) }
        })
    }

    /// Looks at every entry, so it can take a while.
    pub fn usage(&self) -> CacheUsage {
        let mut usage = CacheUsage::default();
        for shard in 0..SHARDS {
            for file in files(&self.shard_folder(shard)) {
                match file.kind() {
                    Some(EntryKind::Thumbnail) => usage.thumbnail_bytes += file.bytes,
                    Some(EntryKind::Image) => usage.image_bytes += file.bytes,
                    Some(EntryKind::Map) => usage.map_bytes += file.bytes,
                    None => {}
                }
            }
        }
        usage
    }

    /// Deletes every entry, including those of older versions.
    pub fn clear(&self) -> Result<(), CacheError> {
        self.shards.lock().fill(Shard::default());
        self.is_broken.store(false, Ordering::Relaxed);
        match fs::remove_dir_all(&self.folder) {
            Ok(()) => Ok(()),
            // The folder did not exist, or another program is adding to it.
            Err(cause) if matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty) => Ok(()),
            Err(cause) => Err(CacheError::Clear { folder: self.folder.clone(), cause }),
        }
    }

    /// Returns the size of the file.
    fn write(&self, key: &CacheKey, content: &[u8]) -> io::Result<u64> {
        let path = self.path_of(key);
        let serial = NEXT_NAME.fetch_add(1, Ordering::Relaxed);
        let unfinished = self.unfinished_path_of(key, serial);
        let written = write_entry(&unfinished, key, content).or_else(|error| {
            if error.kind() != io::ErrorKind::NotFound {
                return Err(error);
            }
            fs::create_dir_all(self.shard_folder(key.shard()))?;
            write_entry(&unfinished, key, content)
        });
        let renamed = written.and_then(|bytes| fs::rename(&unfinished, &path).map(|()| bytes));
        renamed.or_else(|error| {
            // Another program has just cleared the cache.
            if error.kind() == io::ErrorKind::NotFound {
                return Ok(0);
            }
            let _deleted = fs::remove_file(&unfinished);
            Err(error)
        })
    }

    /// Accounts for `added` bytes, and evicts the least recently used entries if a folder exceeds its share.
    fn make_room(&self, shard: usize, added: u64, share: u64) -> io::Result<()> {
        let is_over = {
            let mut shards = self.shards.lock();
            let known = &mut shards[shard];
            known.puts += 1;
            known.bytes = match known.bytes {
                Some(bytes) if !known.puts.is_multiple_of(MEASURED_EVERY) => Some(bytes + added),
                _ => Some(files(&self.shard_folder(shard)).map(|file| file.bytes).sum()),
            };
            known.bytes > Some(share)
        };
        if is_over {
            let left = drop_oldest(&self.shard_folder(shard), share / 10 * 9)?;
            self.shards.lock()[shard].bytes = Some(left);
        }
        Ok(())
    }

    fn shard_folder(&self, shard: usize) -> PathBuf {
        self.folder.join(VERSION).join(format!("{shard:02}"))
    }

    fn path_of(&self, key: &CacheKey) -> PathBuf {
        self.shard_folder(key.shard()).join(key.file_name())
    }

    /// The path of an entry while it is written.
    fn unfinished_path_of(&self, key: &CacheKey, serial: u64) -> PathBuf {
        let extension = format!("{}-{serial}.{UNFINISHED}", std::process::id());
        self.path_of(key).with_extension(extension)
    }
}

/// Returns the size of the file.
fn write_entry(path: &Path, key: &CacheKey, content: &[u8]) -> io::Result<u64> {
    let mut file = File::create(path)?;
    let mut header = MAGIC.to_vec();
    header.extend_from_slice(&checksum(key, content).to_le_bytes());
    file.write_all(&header)?;
    file.write_all(content)?;
    Ok((header.len() + content.len()) as u64)
}

/// `None` if the entry is damaged or belongs to another key.
fn read_entry(key: &CacheKey, file: &mut File) -> Option<Vec<u8>> {
    let mut header = [0; MAGIC.len() + 4];
    file.read_exact(&mut header).ok()?;
    let sum = header.strip_prefix(MAGIC)?;
    let mut content = Vec::new();
    file.read_to_end(&mut content).ok()?;
    (sum == checksum(key, &content).to_le_bytes()).then_some(content)
}

fn checksum(key: &CacheKey, content: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&key.hash);
    hasher.update(content);
    hasher.finalize()
}

/// Marks an entry as used. If that fails, it is merely evicted sooner.
fn renew(file: &File) {
    let now = SystemTime::now();
    let modified = file.metadata().and_then(|metadata| metadata.modified());
    let age = modified.ok().and_then(|modified| now.duration_since(modified).ok());
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
    /// `None` for unfinished files.
    fn kind(&self) -> Option<EntryKind> {
        self.path.extension()?.to_str()?.parse().ok()
    }

    fn is_abandoned(&self) -> bool {
        let age = SystemTime::now().duration_since(self.modified);
        self.kind().is_none() && age.is_ok_and(|age| age > ABANDONED_AFTER)
    }
}

/// Empty if the folder does not exist.
fn files(folder: &Path) -> impl Iterator<Item = StoredFile> + use<> {
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

/// Deletes files, least recently used first, until at most `wanted_bytes` are left; returns what is left.
fn drop_oldest(folder: &Path, wanted_bytes: u64) -> io::Result<u64> {
    let mut stored: Vec<StoredFile> = files(folder).collect();
    stored.sort_by_key(|file| (!file.is_abandoned(), file.modified));
    let mut left: u64 = stored.iter().map(|file| file.bytes).sum();
    let mut of_kind = [0; EntryKind::COUNT];
    for file in &stored {
        if let Some(kind) = file.kind() {
            of_kind[kind as usize] += file.bytes;
        }
    }
    for file in stored {
        let kind = file.kind().map(|kind| kind as usize);
        let takes_too_much = |bytes: &u64| *bytes > wanted_bytes / 2;
        let is_evictable =
            kind.is_some_and(|kind| takes_too_much(&of_kind[kind])) || !of_kind.iter().any(takes_too_much);
        let is_in_the_way = left > wanted_bytes && is_evictable;
        if !is_in_the_way && !file.is_abandoned() {
            continue;
        }
        match fs::remove_file(&file.path) {
            Ok(()) => {}
            // Another program was faster.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        left -= file.bytes;
        if let Some(kind) = kind {
            of_kind[kind] -= file.bytes;
        }
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLENTY: u64 = 1 << 30;

    fn key(name: &str) -> CacheKey {
        CacheKey::new(EntryKind::Thumbnail, &[name.as_bytes()])
    }

    fn image_key(name: &str) -> CacheKey {
        CacheKey::new(EntryKind::Image, &[name.as_bytes()])
    }

    fn content(value: u8) -> Vec<u8> {
        vec![value; 700]
    }

    fn entries(cache: &DiskCache) -> usize {
        let shards = (0..SHARDS).flat_map(|shard| files(&cache.shard_folder(shard)));
        shards.filter(|file| file.kind().is_some()).count()
    }

    fn only_file(folder: &Path) -> PathBuf {
        let shards = fs::read_dir(folder.join(VERSION)).unwrap();
        let mut found = shards.flat_map(|shard| files(&shard.unwrap().path()).collect::<Vec<_>>());
        let file = found.next().unwrap().path;
        assert!(found.next().is_none());
        file
    }

    fn grow_old(cache: &DiskCache, key: &CacheKey) {
        let old = SystemTime::now() - Duration::from_hours(48);
        if let Ok(file) = File::open(cache.path_of(key)) {
            file.set_modified(old).unwrap();
        }
    }

    #[test]
    fn entry_survives_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let cache = DiskCache::new(folder.path().join("c"), PLENTY);
        assert_eq!(cache.get(&key("a")), None);
        cache.put(&key("a"), &content(90)).unwrap();
        let cache = DiskCache::new(folder.path().join("c"), PLENTY);
        assert_eq!(cache.get(&key("a")), Some(content(90)));
        assert_eq!(cache.get(&key("b")), None);
        assert_eq!(cache.get(&image_key("a")), None);
        cache.put(&image_key("a"), b"").unwrap();
        assert_eq!(cache.get(&image_key("a")), Some(Vec::new()));
        let usage = CacheUsage { thumbnail_bytes: 712, image_bytes: 12, map_bytes: 0 };
        assert_eq!(cache.usage(), usage);
    }

    #[test]
    fn key_parts_do_not_run_together() {
        let of = |parts: &[&[u8]]| CacheKey::new(EntryKind::Image, parts);
        assert_ne!(of(&[b"ab", b"c"]), of(&[b"a", b"bc"]));
        assert_eq!(of(&[b"ab", b"c"]), of(&[b"ab", b"c"]));
    }

    #[test]
    fn damaged_entry_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let cache = DiskCache::new(folder.path().to_owned(), PLENTY);
        cache.put(&key("a"), &content(90)).unwrap();
        let file = only_file(folder.path());
        let whole = fs::read(&file).unwrap();
        let mut flipped = whole.clone();
        flipped[whole.len() / 2] ^= 1;
        for damaged in [&flipped[..], &whole[..whole.len() - 3], &whole[..5], b""] {
            fs::write(&file, damaged).unwrap();
            assert_eq!(cache.get(&key("a")), None);
            assert!(!file.exists());
            cache.put(&key("a"), &content(90)).unwrap();
            assert!(cache.get(&key("a")).is_some());
        }
    }

    #[test]
    fn entry_under_another_name_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let cache = DiskCache::new(folder.path().to_owned(), PLENTY);
        cache.put(&key("a"), &content(90)).unwrap();
        let other = cache.path_of(&key("b"));
        fs::create_dir_all(other.parent().unwrap()).unwrap();
        fs::rename(only_file(folder.path()), other).unwrap();
        assert_eq!(cache.get(&key("b")), None);
    }

    #[test]
    fn recently_used_entries_stay_within_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let max_bytes = 712 * 10 * SHARDS as u64;
        let cache = DiskCache::new(folder.path().to_owned(), max_bytes);
        cache.put(&key("used"), &content(0)).unwrap();
        for number in 0..1000 {
            let entry = key(&number.to_string());
            cache.put(&entry, &content(1)).unwrap();
            // All entries become old; only one is read.
            grow_old(&cache, &entry);
            assert!(cache.get(&key("used")).is_some());
        }
        let bytes = cache.usage().thumbnail_bytes;
        assert!(bytes <= max_bytes, "{bytes} of {max_bytes}");
        assert!(entries(&cache) > 5 * SHARDS);
    }

    #[test]
    fn images_and_thumbnails_have_separate_limits() {
        let folder = tempfile::tempdir().unwrap();
        let cache = DiskCache::new(folder.path().to_owned(), 712 * 20 * SHARDS as u64);
        let few = || (0..4 * SHARDS).map(|number| format!("few {number}"));
        for (few_key, many_key) in [(key as fn(&str) -> CacheKey, image_key as fn(&str) -> CacheKey), (image_key, key)]
        {
            for name in few() {
                cache.put(&few_key(&name), &content(1)).unwrap();
                grow_old(&cache, &few_key(&name));
            }
            for number in 0..40 * SHARDS {
                cache.put(&many_key(&number.to_string()), &content(2)).unwrap();
            }
            let kept = few().filter(|name| cache.get(&few_key(name)).is_some());
            // By chance, one folder can get more than half of its share.
            assert!(kept.count() > 3 * SHARDS);
            cache.clear().unwrap();
        }
    }

    #[test]
    fn three_kinds_stay_within_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let share = folder.path();
        for kind in ["thumb", "picture", "map"] {
            for number in 0..3 {
                fs::write(share.join(format!("{number}.{kind}")), [0; 100]).unwrap();
            }
        }
        // Each kind takes less than half.
        assert_eq!(drop_oldest(share, 700).unwrap(), 700);
        assert_eq!(files(share).map(|file| file.bytes).sum::<u64>(), 700);
    }

    #[test]
    fn oversized_entry_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let cache = DiskCache::new(folder.path().to_owned(), 1 << 20);
        assert_eq!(cache.max_entry_bytes(), 16 << 10);
        cache.put(&image_key("large"), &vec![1; (16 << 10) + 1]).unwrap();
        assert_eq!(cache.get(&image_key("large")), None);
        cache.put(&image_key("fits"), &vec![1; 16 << 10]).unwrap();
        assert!(cache.get(&image_key("fits")).is_some());
    }

    #[test]
    fn unfinished_entry_of_a_killed_program_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let cache = DiskCache::new(folder.path().to_owned(), PLENTY);
        let key = key("a");
        let unfinished = cache.path_of(&key).with_extension("7-0.part");
        fs::create_dir_all(unfinished.parent().unwrap()).unwrap();
        fs::write(&unfinished, b"spot").unwrap();
        assert_eq!(cache.get(&key), None);
        cache.put(&key, &content(9)).unwrap();
        assert!(cache.get(&key).is_some());
        let old = SystemTime::now() - Duration::from_hours(2);
        File::options().write(true).open(&unfinished).unwrap().set_modified(old).unwrap();
        drop_oldest(unfinished.parent().unwrap(), PLENTY).unwrap();
        assert!(!unfinished.exists());
        assert!(cache.get(&key).is_some());
    }

    #[test]
    fn parallel_programs_find_only_whole_entries() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let folder = folder.path().to_owned();
                scope.spawn(move || {
                    let cache = DiskCache::new(folder, 256 << 10);
                    for round in 0..200_u8 {
                        let value = round % 8;
                        let key = key(&value.to_string());
                        cache.put(&key, &content(value)).unwrap();
                        if let Some(found) = cache.get(&key) {
                            assert_eq!(found, content(value));
                        }
                    }
                });
            }
        });
    }

    #[test]
    fn read_only_folder_is_reported_once_until_cleared() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("c");
        // A file in place of the folder: it cannot be written whatever the permissions.
        fs::write(&place, b"in the way").unwrap();
        let cache = DiskCache::new(place.clone(), PLENTY);
        let message = cache.put(&key("a"), &content(1)).unwrap_err().to_string();
        assert!(message.contains("is off"), "{message}");
        assert!(cache.put(&key("b"), &content(1)).is_ok());
        assert_eq!(cache.get(&key("b")), None);
        fs::remove_file(&place).unwrap();
        cache.clear().unwrap();
        cache.put(&key("a"), &content(1)).unwrap();
        assert!(cache.get(&key("a")).is_some());
    }

    /// `/dev/full` behaves like a full disk.
    #[cfg(target_os = "linux")]
    #[test]
    fn full_disk_is_reported_once() {
        let folder = tempfile::tempdir().unwrap();
        let cache = DiskCache::new(folder.path().to_owned(), PLENTY);
        let (before, keys) = (key("before"), [key("a"), key("b")]);
        cache.put(&before, &content(7)).unwrap();
        // Whatever number the next unfinished files get: other tests also count up.
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
        let message = cache.put(&keys[0], &content(1)).unwrap_err().to_string();
        assert!(message.contains("No space left on device"), "{message}");
        assert!(message.contains("free space"), "{message}");
        cache.put(&keys[1], &content(1)).unwrap();
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
        cache.put(&keys[0], &content(1)).unwrap();
        assert!(cache.get(&keys[0]).is_some());
    }

    #[test]
    fn limit_of_zero_keeps_no_entry() {
        let folder = tempfile::tempdir().unwrap();
        let cache = DiskCache::new(folder.path().join("c"), 0);
        cache.put(&key("a"), &content(1)).unwrap();
        assert_eq!(cache.usage(), CacheUsage::default());
        cache.set_max_bytes(PLENTY);
        cache.put(&key("a"), &content(1)).unwrap();
        assert_eq!(entries(&cache), 1);
        cache.clear().unwrap();
        assert_eq!(cache.usage(), CacheUsage::default());
        assert_eq!(cache.get(&key("a")), None);
    }
}
