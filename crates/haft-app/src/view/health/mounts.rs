//! Checks for bind mounts that give files of the workspace a second name, which no path rule knows.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::{HealthCheck, check};
use crate::site::Site;

/// Maximum number of bytes of the list of mounts that are read.
const MAX_MOUNTS: u64 = 4 * 1024 * 1024;
/// Maximum number of second names that the report names.
const MAX_NAMED: usize = 3;

/// Names the mounts below the workspace that show files of the workspace a second time; `None` if there are none.
pub(super) fn second_names(at: &Site) -> Option<HealthCheck> {
    let mut text = String::new();
    let list = File::open("/proc/self/mountinfo").ok()?;
    list.take(MAX_MOUNTS).read_to_string(&mut text).ok()?;
    let root = at.workspace.canonicalize().ok()?;
    let found = find(&text, &root);
    if found.is_empty() {
        return None;
    }
    let named: Vec<String> = found.iter().take(MAX_NAMED).map(Alias::to_text).collect();
    let more = match found.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let detail = format!("{}{more}", named.join(", "));
    let advice = "path rules, secret names and protected names apply to each name separately: unmount it, or write rules for both names";
    Some(check("mounts", false, detail, advice))
}

/// Two places in the workspace that show the same files; relative to its root, which is empty.
#[derive(Debug, PartialEq, Eq)]
struct Alias {
    place: PathBuf,
    same_as: PathBuf,
}

impl Alias {
    fn to_text(&self) -> String {
        let name = |path: &Path| match path.to_string_lossy() {
            path if path.is_empty() => "the workspace itself".to_owned(),
            path => path.into_owned(),
        };
        format!(
            "{} is a mount of {}",
            name(&self.place),
            name(&self.same_as)
        )
    }
}

/// A part of a file system and where it is seen.
#[derive(Debug, Clone)]
struct Mount {
    device: String,
    /// The path within the file system.
    shows: PathBuf,
    /// The mount point, absolute.
    at: PathBuf,
}

/// Finds the mounts below a folder that show what another path in it shows (`proc_pid_mountinfo(5)`).
fn find(mountinfo: &str, root: &Path) -> Vec<Alias> {
    let mounts: Vec<Mount> = mountinfo.lines().filter_map(Mount::read).collect();
    // Of several mounts at one place, the last is seen.
    let above = mounts.iter().filter(|mount| root.starts_with(&mount.at));
    let Some(own) = above.max_by_key(|mount| mount.at.components().count()) else {
        return Vec::new();
    };
    let within = root.strip_prefix(&own.at).unwrap_or(Path::new(""));
    let whole = Mount {
        shows: own.shows.join(within),
        at: root.to_owned(),
        ..own.clone()
    };
    let below = |mount: &&Mount| mount.at.starts_with(root) && mount.at != root;
    let below: Vec<&Mount> = mounts.iter().filter(below).collect();
    let mut found = Vec::new();
    for (at, mount) in below.iter().enumerate() {
        let earlier = below.get(..at).unwrap_or_default().iter().copied();
        let other = std::iter::once(&whole).chain(earlier);
        let same = other.filter_map(|other| other.place_of(mount));
        let same = same.filter(|same| *same != mount.at);
        found.extend(same.take(1).map(|same| {
            let inside = |path: &Path| path.strip_prefix(root).unwrap_or(path).to_owned();
            Alias {
                place: inside(&mount.at),
                same_as: inside(&same),
            }
        }));
    }
    found
}

impl Mount {
    fn read(line: &str) -> Option<Self> {
        let mut words = line.split(' ').skip(2);
        Some(Self {
            device: words.next()?.to_owned(),
            shows: unescaped(words.next()?),
            at: unescaped(words.next()?),
        })
    }

    /// Returns where this mount shows files that the other one shows, too.
    fn place_of(&self, other: &Self) -> Option<PathBuf> {
        if self.device != other.device {
            return None;
        }
        if let Ok(rest) = other.shows.strip_prefix(&self.shows) {
            return Some(plain(&self.at.join(rest)));
        }
        let is_above = self.shows.starts_with(&other.shows);
        is_above.then(|| self.at.clone())
    }
}

/// Returns the path without a slash at its end.
fn plain(path: &Path) -> PathBuf {
    path.components().collect()
}

/// Replaces `\040` and the like, as the kernel writes blanks.
fn unescaped(text: &str) -> PathBuf {
    let mut rest = text;
    let mut out = String::new();
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let code = after.get(..3).map(|code| u8::from_str_radix(code, 8));
        match code {
            Some(Ok(code)) if code.is_ascii() => {
                out.push(char::from(code));
                rest = after.get(3..).unwrap_or_default();
            }
            _ => {
                out.push('\\');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    PathBuf::from(out)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Alias, find};

    #[test]
    fn mounts_below_the_workspace_that_show_its_files_again_are_found() {
        for (mounts, expect) in [
            // A folder of the workspace, a file of it, and one with a blank in its name.
            (
                &["8:1 /home/w/db /home/w/mirror"][..],
                &[("mirror", "db")][..],
            ),
            (&["8:1 /home/w/.env /home/w/conf"], &[("conf", ".env")]),
            (&["8:1 /home/w/a\\040b /home/w/c\\040d"], &[("c d", "a b")]),
            // A folder above the workspace.
            (&["8:1 /home /home/w/up"], &[("up", "")]),
            // The same folder from elsewhere, twice.
            (
                &["8:2 /data /home/w/one", "8:2 /data/x /home/w/two"],
                &[("two", "one/x")],
            ),
            // Other files, a mount of a folder on itself, one outside, and another device.
            (
                &[
                    "8:1 /srv/x /home/w/x",
                    "8:1 /home/w/self /home/w/self",
                    "8:1 /home/w/db /mnt",
                    "0:9 /home/w/db /home/w/y",
                ],
                &[],
            ),
        ] {
            let line =
                |(at, mount): (usize, &&str)| format!("{at} 1 {mount} rw - ext4 /dev/x rw\n");
            let all = ["8:1 / /"].iter().chain(mounts);
            let text: String = all.enumerate().map(line).collect();
            let expect: Vec<Alias> = expect
                .iter()
                .map(|(place, same_as)| Alias {
                    place: place.into(),
                    same_as: same_as.into(),
                })
                .collect();
            assert_eq!(find(&text, Path::new("/home/w")), expect, "{mounts:?}");
        }
    }
}
