//! `Ledger`: the counts of a day, in a small file that all processes of a user share.
//!
//! Days are UTC, so that processes in different time zones count the same day. Under a lock, a new file is written beside the old one
//! and replaces it; readers need no lock. It is not synced to disk: a power cut may lose the last counts.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use parking_lot::Mutex;
use rustix::fs::OFlags;

use super::day::DayCounts;
use super::{BudgetError, EffectCounts, EffectLimits, Period};
use haft_types::clock;
use haft_types::error::HostFailure;
use haft_types::file_lock::FileLock;

/// Maximum size of the file, in bytes.
const MAX_FILE_BYTES: u64 = 4096;
/// Maximum wait for other processes that count, far longer than one of them takes.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// Counts days, in a folder. Clones share it.
#[derive(Debug, Clone)]
pub struct Ledger {
    folder: Arc<Path>,
    /// Locked while this process counts, so that its threads wait here rather than for the file.
    counting: Arc<Mutex<()>>,
}

/// Why a day cannot be counted.
#[derive(Debug, Clone, thiserror::Error)]
#[error(transparent)]
pub struct LedgerError {
    why: HostFailure,
}

impl LedgerError {
    /// What the operator can do about it.
    pub(super) const ADVICE: &str =
        "make the file readable and writable, or remove it: the day's counts then start at zero";
}

impl Ledger {
    /// Creates a ledger in this folder, which is created at the first count.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into().into(),
            counting: Arc::default(),
        }
    }

    /// Returns the path of the file with the counts.
    pub fn file(&self) -> PathBuf {
        self.folder.join("day.json")
    }

    /// Returns the counts of today.
    ///
    /// # Errors
    /// The file cannot be read or is not a ledger file.
    pub fn today(&self) -> Result<DayCounts, LedgerError> {
        self.on(day())
    }

    /// Counts money spent on a model today, and returns the new counts.
    ///
    /// # Errors
    /// It cannot be counted.
    pub fn spend(&self, money: f64) -> Result<DayCounts, LedgerError> {
        let money = if money.is_finite() {
            money.max(0.0)
        } else {
            0.0
        };
        self.change(day(), |today| {
            today.money += money;
            Ok(())
        })
        .map_err(|no_room| match no_room {
            BudgetError::Unknown(error) => error,
            no_room => self.error(&no_room.to_string()),
        })
    }

    /// Counts these if there is room for all of them; always without limits. Returns the day.
    pub(super) fn take(
        &self,
        uses: EffectCounts,
        limits: Option<&EffectLimits>,
    ) -> Result<Date, BudgetError> {
        self.reserve_on(day(), uses, limits)
    }

    fn reserve_on(
        &self,
        day: Date,
        uses: EffectCounts,
        limits: Option<&EffectLimits>,
    ) -> Result<Date, BudgetError> {
        let counted = self.change(day, |today| {
            let no_room = limits.and_then(|limits| {
                let used = today.uses;
                limits.first_exceeded(Period::Day, used, uses)
            });
            if let Some(used_up) = no_room {
                return Err(BudgetError::UsedUp(used_up));
            }
            today.uses = today.uses.plus(uses);
            Ok(())
        });
        counted.map(|today| today.day)
    }

    /// Removes these counts, if that day is not over.
    pub(super) fn give_back(&self, uses: EffectCounts, day: Date) -> Result<(), BudgetError> {
        self.change(day, |today| {
            if today.day == day {
                today.uses = today.uses.minus(uses);
            }
            Ok(())
        })
        .map(drop)
    }

    /// Returns the counts as of this day.
    fn on(&self, day: Date) -> Result<DayCounts, LedgerError> {
        let text = match self.read() {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(DayCounts::begun(day));
            }
            Err(error) => return Err(self.error(&error.to_string())),
        };
        let known = DayCounts::read(&text).map_err(|why| self.error(&why))?;
        if known.day < day {
            return Ok(DayCounts::begun(day));
        }
        // A clock that is set back does not start the day anew.
        let tomorrow = day.checked_add(1.day()).unwrap_or(day);
        if known.day > tomorrow {
            return Err(self.error(&format!("it is for {}, but today is {day}", known.day)));
        }
        Ok(known)
    }

    fn read(&self) -> io::Result<Vec<u8>> {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let mut options = OpenOptions::new();
        let options = options.read(true).custom_flags(flags.bits().cast_signed());
        let file = options.open(self.file())?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let mut text = Vec::new();
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut text)?;
        if text.len() as u64 > MAX_FILE_BYTES {
            return Err(io::Error::other(format!(
                "it has more than {MAX_FILE_BYTES} bytes"
            )));
        }
        Ok(text)
    }

    /// Changes the day's counts, one process at a time.
    fn change(
        &self,
        day: Date,
        change: impl FnOnce(&mut DayCounts) -> Result<(), BudgetError>,
    ) -> Result<DayCounts, BudgetError> {
        let _counting = self.counting.lock();
        let _locked = self.lock().map_err(|e| self.error(&e.to_string()))?;
        let mut today = self.on(day)?;
        change(&mut today)?;
        let text = today.write().map_err(|why| self.error(&why))?;
        self.write(&text).map_err(|e| self.error(&e.to_string()))?;
        Ok(today)
    }

    fn lock(&self) -> io::Result<FileLock> {
        let mut folder = DirBuilder::new();
        folder.recursive(true).mode(0o700).create(&self.folder)?;
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(false).mode(0o600);
        let options = options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
        let file = options.open(self.folder.join("lock"))?;
        FileLock::exclusive_within(file, LOCK_TIMEOUT)?.ok_or_else(|| {
            let seconds = LOCK_TIMEOUT.as_secs();
            io::Error::other(format!(
                "other processes have it locked for more than {seconds} s"
            ))
        })
    }

    fn write(&self, text: &[u8]) -> io::Result<()> {
        let new = self.folder.join("day.json.new");
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        let options = options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
        options.open(&new)?.write_all(text)?;
        std::fs::rename(&new, self.file())
    }

    pub(super) fn error(&self, why: &str) -> LedgerError {
        let file = self.file();
        LedgerError {
            why: HostFailure::new(format!("{}: {why}", file.display())),
        }
    }
}

/// Returns the current day in UTC.
fn day() -> Date {
    let now = Timestamp::from_nanosecond(clock::now()).unwrap_or(Timestamp::UNIX_EPOCH);
    now.to_zoned(TimeZone::UTC).date()
}

#[cfg(test)]
mod tests;
