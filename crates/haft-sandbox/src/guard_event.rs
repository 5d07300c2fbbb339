//! `GuardEvent`: what happened to guarded paths while a command ran.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

/// An event on a guarded path while a command worked in the live workspace. Paths are relative to it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GuardEvent {
    /// A file or folder appeared under a guarded name and was renamed. It is unknown whether the command or a program outside created it.
    MovedAside {
        /// Its path when it appeared.
        path: PathBuf,
        /// Its path now.
        to: PathBuf,
    },
    /// A program outside replaced or removed the path, which lifts its guard for a moment; it is guarded again. In that moment the
    /// command could change the file that is there now.
    Replaced {
        /// The guarded path.
        path: PathBuf,
    },
    /// A program outside replaced a hidden path, or a protected one in a way that leaves it open to the command, which was killed:
    /// it may have read or changed the file that is there now.
    Exposed {
        /// The guarded path.
        path: PathBuf,
    },
    /// There were more events than are listed. If the command was still running, it was killed.
    TooMany,
    /// The search of the workspace for new guarded names could not be completed.
    Unsearched,
}

impl GuardEvent {
    /// Returns the new path of something moved aside: the `number`th of its name.
    pub(crate) fn aside(path: &Path, number: u32) -> PathBuf {
        let mut name = OsString::from(path.file_name().unwrap_or_default());
        name.push(format!(".moved-aside-{number}"));
        path.with_file_name(name)
    }

    /// Returns its kind, a number and a path, which describe it completely.
    pub(crate) fn parts(&self) -> (i32, i32, &Path) {
        match self {
            Self::MovedAside { path, to } => {
                let to = to.to_string_lossy();
                let number = to.rsplit('-').next().and_then(|last| last.parse().ok());
                (0, number.unwrap_or_default(), path)
            }
            Self::Replaced { path } => (1, 0, path),
            Self::Exposed { path } => (2, 0, path),
            Self::TooMany => (3, 0, Path::new("")),
            Self::Unsearched => (4, 0, Path::new("")),
        }
    }

    /// Restores an event from its [`parts`](Self::parts).
    pub(crate) fn of_parts(kind: i32, number: i32, path: PathBuf) -> Option<Self> {
        Some(match kind {
            0 => Self::MovedAside {
                to: Self::aside(&path, number.try_into().ok()?),
                path,
            },
            1 => Self::Replaced { path },
            2 => Self::Exposed { path },
            3 => Self::TooMany,
            4 => Self::Unsearched,
            _ => return None,
        })
    }
}

impl fmt::Display for GuardEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MovedAside { path, to } => write!(
                f,
                "`{}` appeared while the command ran and is now `{}`",
                path.display(),
                to.display()
            ),
            Self::Replaced { path } => write!(
                f,
                "`{}` was replaced while the command ran, by another program, or by haft as it applied an approved change; the command could \
                change the new one for a moment: check that it holds what you expect",
                path.display()
            ),
            Self::Exposed { path } => write!(
                f,
                "`{}` was replaced outside, and the command may have read or changed it, so it was ended",
                path.display()
            ),
            Self::TooMany => {
                f.write_str("the command kept making guarded names; not all are listed")
            }
            Self::Unsearched => f.write_str(
                "the workspace is too large or deep to look for new guarded names everywhere",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::GuardEvent;

    #[test]
    fn an_event_is_put_together_from_its_parts() {
        let path = || "a/.git".into();
        for event in [
            GuardEvent::MovedAside {
                path: path(),
                to: "a/.git.moved-aside-17".into(),
            },
            GuardEvent::Replaced { path: path() },
            GuardEvent::Exposed { path: path() },
            GuardEvent::TooMany,
            GuardEvent::Unsearched,
        ] {
            let (kind, number, path) = event.parts();
            let again = GuardEvent::of_parts(kind, number, path.to_owned());
            assert_eq!(again, Some(event));
        }
        assert_eq!(GuardEvent::of_parts(9, 0, path()), None);
    }
}
