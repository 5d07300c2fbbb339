//! Where checkpoints are also written, so that whoever has the key cannot rewrite the log either: a file, or a service at a URL.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use haft::clock;
use haft_builtins::web::http::{FetchLimits, Http};
use http::Request;
use http::header::CONTENT_TYPE;
use serde::{Deserialize, Serialize};

use crate::record_log::{checkpoint, file};

/// The state of the last attempt, in the log's folder.
const STATE: &str = "anchor.json";
/// Maximum size of that file, in bytes.
const MAX_STATE: u64 = 16 << 10;
/// How long a service may take to accept a checkpoint.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of its response, in bytes; the content does not matter.
const MAX_RESPONSE: usize = 64 << 10;
/// The pause after the first failure, in seconds; it doubles with each further one.
const FIRST_PAUSE: i64 = 1;
/// The longest pause, in seconds.
const LONGEST_PAUSE: i64 = 600;
/// Maximum length of a failure that is kept, in bytes.
const MAX_FAULT: usize = 1024;

/// Where checkpoints go.
#[derive(Debug, Clone)]
pub(crate) enum Anchor {
    /// Appended to a file.
    File(PathBuf),
    /// Posted to a URL.
    Url(AnchorService),
}

/// A service that takes checkpoints.
#[derive(Debug, Clone)]
pub(crate) struct AnchorService {
    http: Http,
    url: String,
}

impl AnchorService {
    /// Returns the service at a URL that the operator has named; it may be in the local network.
    pub(crate) fn new(url: &str, http: Http) -> Self {
        let limits = FetchLimits {
            max_bytes: MAX_RESPONSE,
            whole: TIMEOUT,
            ..FetchLimits::default()
        };
        Self {
            http: http.with_limits(limits),
            url: url.to_owned(),
        }
    }

    fn post(&self, note: &str) -> io::Result<()> {
        let request = Request::post(&self.url).header(CONTENT_TYPE, "text/plain; charset=utf-8");
        let request = request
            .body(Bytes::from(note.to_owned()))
            .map_err(io::Error::other)?;
        // The thread that writes the log belongs to no runtime.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let reply = runtime
            .block_on(self.http.send(request))
            .map_err(io::Error::other)?;
        if reply.is_success() {
            Ok(())
        } else {
            Err(io::Error::other(format!(
                "the service answered with status {}",
                reply.status
            )))
        }
    }
}

/// How the last attempt ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct AnchorState {
    /// The size of the last checkpoint that is there.
    pub(super) size: u64,
    /// How often in a row it failed.
    pub(super) failures: u32,
    /// When it failed last, in seconds since 1970.
    pub(super) failed_at: i64,
    /// Why.
    pub(super) fault: Option<String>,
}

impl AnchorState {
    /// Reads the state; a file that is missing or damaged counts as none.
    pub(super) fn read(log: &Path) -> Self {
        let text = file::read(&log.join(STATE), MAX_STATE).ok().flatten();
        text.and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default()
    }

    /// Notes a failed attempt.
    fn fail(&mut self, now: i64, why: &str) {
        self.failures = self.failures.saturating_add(1);
        self.failed_at = now;
        self.fault = Some(cut(why.to_owned()));
    }

    fn write(&self, log: &Path) {
        let text = serde_json::to_string(self).unwrap_or_default();
        if let Err(error) = file::replace(&log.join(STATE), &text) {
            tracing::warn!(%error, "note how the record's checkpoint was anchored");
        }
    }

    /// Returns when the next attempt is due, in seconds since 1970.
    fn due(&self) -> i64 {
        let doubled = 1_i64
            .checked_shl(self.failures.saturating_sub(1))
            .unwrap_or(LONGEST_PAUSE);
        let pause = doubled
            .saturating_mul(FIRST_PAUSE)
            .clamp(FIRST_PAUSE, LONGEST_PAUSE);
        if self.failures == 0 {
            0
        } else {
            self.failed_at + pause
        }
    }

    /// Returns whether it is time for another attempt. A clock that was set back does not stop that.
    fn is_due(&self, now: i64) -> bool {
        now >= self.due() || now < self.failed_at
    }

    /// Returns whether the last attempt failed, and it is time for another one.
    pub(super) fn is_retry_due(&self, now: i64) -> bool {
        self.failures > 0 && self.is_due(now)
    }
}

impl Anchor {
    /// Sends a checkpoint, unless it is there or an attempt failed a moment ago, and notes how that ended. Returns whether it is there.
    /// A later checkpoint stands for all before it.
    pub(super) fn send(&self, log: &Path, note: &str) -> bool {
        let mut state = AnchorState::read(log);
        let size = checkpoint::unproved(note).map_or(0, |head| head.size);
        let now = seconds(clock::now());
        let is_there = state.size == size && state.failures == 0;
        if is_there || !state.is_due(now) {
            return is_there;
        }
        if matches!(self, Self::Url(_)) {
            // The process may end before the service answers; the next one is not to wait for it, too.
            state.fail(now, "a process ended before the service had answered");
            state.write(log);
        }
        let sent = match self {
            Self::File(path) => append(path, note),
            Self::Url(service) => service.post(note),
        };
        match sent {
            Ok(()) => {
                state = AnchorState {
                    size,
                    ..AnchorState::default()
                }
            }
            Err(error) => {
                let why = self.without_secret(&error.to_string());
                tracing::warn!("anchor the record's checkpoint: {why}");
                match self {
                    Self::File(_) => state.fail(now, &why),
                    Self::Url(_) => state.fault = Some(cut(why)),
                }
            }
        }
        state.write(log);
        state.failures == 0
    }

    /// Returns the text of an error without the URL, which may hold a secret.
    fn without_secret(&self, text: &str) -> String {
        let Self::Url(service) = self else {
            return text.to_owned();
        };
        let normal = url::Url::parse(&service.url).map_or_else(|_| String::new(), String::from);
        let mut text = text.to_owned();
        for url in [service.url.as_str(), &normal] {
            if !url.is_empty() {
                text = text.replace(url, &self.describe());
            }
        }
        text
    }

    /// Returns the file, if it is one.
    pub(super) fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Url(_) => None,
        }
    }

    /// Describes where checkpoints go. A URL may hold a secret behind its host.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Url(service) => match url::Url::parse(&service.url) {
                Ok(url) => format!("{}://{}", url.scheme(), url.host_str().unwrap_or_default()),
                Err(_) => "the service".to_owned(),
            },
        }
    }
}

/// Bounds the text of a failure.
fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_FAULT));
    text
}

/// Returns a time of the clock in whole seconds.
pub(super) fn seconds(nanoseconds: i128) -> i64 {
    i64::try_from(nanoseconds / 1_000_000_000).unwrap_or(i64::MAX)
}

/// Appends a checkpoint, on lines of its own whatever a power cut left there, and waits until it is on disk.
fn append(path: &Path, note: &str) -> io::Result<()> {
    let mut file = file::open(
        path,
        OpenOptions::new().read(true).append(true).create(true),
    )?;
    let before = file.metadata()?.len();
    let separator = match file::last_byte(&mut file)? {
        None => "",
        Some(b'\n') => "\n",
        Some(_) => "\n\n",
    };
    let text = format!("{separator}{note}");
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all());
    written.map_err(|error| {
        // A full disk may have taken a part; another process may have appended since.
        if file
            .metadata()
            .is_ok_and(|now| now.len() < before + text.len() as u64)
        {
            let _ = file.set_len(before);
        }
        file::named(path, &error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_anchor_is_tried_again_later_and_later() {
        let failed = |failures, at| AnchorState {
            failures,
            failed_at: at,
            ..AnchorState::default()
        };
        let rows = [
            ("never failed", failed(0, 0), 0, true),
            ("failed now", failed(1, 1000), 1000, false),
            ("a second later", failed(1, 1000), 1001, true),
            ("failed four times", failed(4, 1000), 1007, false),
            ("eight seconds later", failed(4, 1000), 1008, true),
            ("failed for days", failed(u32::MAX, 1000), 1599, false),
            ("ten minutes later", failed(u32::MAX, 1000), 1600, true),
            ("the clock was set back", failed(9, 1000), 10, true),
        ];
        for (name, state, now, expect) in rows {
            assert_eq!(state.is_due(now), expect, "{name}");
        }
    }

    #[test]
    fn checkpoints_in_a_file_follow_one_another_also_after_half_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("anchor");
        append(&path, "a\n\n\u{2014} k s\n").unwrap();
        append(&path, "b\n\n\u{2014} k s\n").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "a\n\n\u{2014} k s\n\nb\n\n\u{2014} k s\n");
        std::fs::write(&path, "a\n\n\u{2014} k s\nhalf a li").unwrap();
        append(&path, "c\n\n\u{2014} k s\n").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "a\n\n\u{2014} k s\nhalf a li\n\nc\n\n\u{2014} k s\n");
    }

    #[test]
    fn an_anchor_that_is_no_file_or_full_says_so_and_is_noted() {
        let pair = ring::signature::Ed25519KeyPair::from_seed_unchecked(&[1; 32]).unwrap();
        let head = checkpoint::Checkpoint {
            origin: "haft-record/1".to_owned(),
            size: 3,
            root: [7; 32],
        };
        let note = head.sign(&pair);
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path().join("elsewhere"), &link).unwrap();
        let rows = [
            (link, "link"),
            (folder.path().to_owned(), ""),
            (PathBuf::from("/dev/full"), "not a regular file"),
            (folder.path().join("no/such/folder"), "No such file"),
        ];
        for (path, part) in rows {
            let log = tempfile::tempdir().unwrap();
            assert!(
                !Anchor::File(path.clone()).send(log.path(), &note),
                "{path:?}"
            );
            let state = AnchorState::read(log.path());
            let fault = state.fault.clone().unwrap_or_default();
            assert!(
                fault.contains(part) && state.failures == 1,
                "{path:?}: {state:?}"
            );
            assert_eq!(state.size, 0);
        }
        assert!(!folder.path().join("elsewhere").exists());
    }
}
