//! `ServiceRecord`: the file by which other processes of this user find a command that serves, or works in the background.
//!
//! Removing it is how the command is asked to end. Only haft writes here: no jail shows its state folder.

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use haft_sandbox::{JailPlace, ListeningPorts};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::files::sha256;
use crate::services::exposed::ExposedPort;

/// The suffix of a record's name.
const SUFFIX: &str = ".json";
/// The prefix of the name of one about an exposed port.
const EXPOSED: &str = "exposed-";
/// Maximum number of records of a group that are read, and their size in bytes.
const MAX_RECORDS: usize = 128;
const MAX_RECORD: u64 = 64 << 10;
/// Maximum number of ports in a record.
pub(super) const MAX_PORTS: usize = 64;

/// A port at which a command serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedPort {
    /// Its number.
    pub port: u16,
    /// Whether it answers at 127.0.0.1.
    pub v4: bool,
    /// Whether it answers at `::1`.
    pub v6: bool,
}

/// A command that serves, or that works in the background.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceRecord {
    /// The run that started it.
    pub run: String,
    /// Its command line, cut.
    pub command: String,
    /// Its name among the run's background commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// When it started, in seconds since 1970, UTC.
    pub began: i64,
    /// Its jail.
    pub place: String,
    /// Which commands reach it: those with the same value.
    #[serde(skip)]
    pub group: String,
    /// The first ports at which it serves.
    #[serde(default)]
    pub ports: Vec<ServedPort>,
    /// How many there are besides.
    #[serde(default)]
    pub more_ports: u64,
}

impl ServiceRecord {
    /// Returns its jail.
    pub fn jail(&self) -> Option<JailPlace> {
        self.place.parse().ok()
    }

    /// Returns whether it serves at this port.
    pub fn serves(&self, port: u16) -> bool {
        self.ports.iter().any(|served| served.port == port)
    }

    /// Sets the ports that it serves at; returns whether that changes it.
    pub(super) fn set_ports(&mut self, ports: &ListeningPorts) -> bool {
        let first = ports.iter().take(MAX_PORTS).map(|port| ServedPort {
            port: port.port,
            v4: port.v4,
            v6: port.v6,
        });
        let first: Vec<ServedPort> = first.collect();
        let more = ports.len().saturating_sub(MAX_PORTS) as u64;
        let changed = first != self.ports || more != self.more_ports;
        (self.ports, self.more_ports) = (first, more);
        changed
    }
}

/// Returns a name for the folder of a group: any name is a valid one.
pub(super) fn file_name(group: &str) -> String {
    let plain = group.len() <= 100
        && !group.is_empty()
        && group
            .bytes()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_'));
    if plain {
        group.to_owned()
    } else {
        format!("sha256-{}", sha256(group.as_bytes()))
    }
}

/// The file of one record, removed when the value is dropped.
#[derive(Debug)]
pub(super) struct RecordFile {
    folder: PathBuf,
    path: PathBuf,
    written: bool,
    ended: bool,
}

impl RecordFile {
    pub(super) fn new(folder: &Path, place: JailPlace) -> Self {
        Self::named(folder, &place.to_string())
    }

    /// A record of an exposed port, by the process that serves it.
    pub(super) fn of_exposure(folder: &Path, process: JailPlace, port: u16) -> Self {
        Self::named(folder, &format!("{EXPOSED}{port}-{process}"))
    }

    fn named(folder: &Path, name: &str) -> Self {
        Self {
            folder: folder.to_owned(),
            path: folder.join(format!("{name}{SUFFIX}")),
            written: false,
            ended: false,
        }
    }

    pub(super) fn is_written(&self) -> bool {
        self.written
    }

    /// Returns whether another process removed it.
    pub(super) fn was_removed(&self) -> bool {
        let gone = |error: io::Error| error.kind() == io::ErrorKind::NotFound;
        self.written && fs::symlink_metadata(&self.path).is_err_and(gone)
    }

    /// Writes the record whole; who reads meanwhile sees it as it was.
    pub(super) fn write(&mut self, record: &impl Serialize) -> io::Result<()> {
        if self.ended {
            return Ok(());
        }
        let draft = self.path.with_extension("draft");
        let bytes = serde_json::to_vec(record).map_err(io::Error::other)?;
        // The last command of the group may have removed the folder since.
        for _ in 0..3 {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&self.folder)?;
            let file = fs::OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&draft);
            match file {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                file => {
                    io::Write::write_all(&mut file?, &bytes)?;
                    fs::rename(&draft, &self.path)?;
                    self.written = true;
                    return Ok(());
                }
            }
        }
        Err(io::ErrorKind::NotFound.into())
    }
}

impl RecordFile {
    /// Removes it for good.
    pub(super) fn remove(&mut self) {
        self.ended = true;
        if std::mem::take(&mut self.written) {
            let _ = fs::remove_file(&self.path);
            // Fails while the group has other members.
            let _ = fs::remove_dir(&self.folder);
        }
    }
}

impl Drop for RecordFile {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Reads the records of a group, and removes those of commands that have ended.
pub(super) fn read(folder: &Path) -> Vec<ServiceRecord> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let group = folder
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let mut found = Vec::new();
    for path in entries
        .take(MAX_RECORDS)
        .flatten()
        .map(|entry| entry.path())
    {
        let name = path.file_name().and_then(|name| name.to_str());
        let Some(place) = name.and_then(|name| name.strip_suffix(SUFFIX)) else {
            continue;
        };
        let Ok(jail) = place.parse::<JailPlace>() else {
            continue;
        };
        if !jail.is_alive() {
            if jail.is_visible() {
                let _ = fs::remove_file(&path);
                let _ = fs::remove_dir(folder);
            }
            continue;
        }
        if let Some(mut record) = read_one::<ServiceRecord>(&path) {
            place.clone_into(&mut record.place);
            group.clone_into(&mut record.group);
            record.ports.truncate(MAX_PORTS);
            found.push(record);
        }
    }
    found.sort_by(|one, two| (one.began, &one.place).cmp(&(two.began, &two.place)));
    found
}

/// Reads which ports of a group are exposed, and removes the records of processes that have ended.
pub(super) fn read_exposed(folder: &Path) -> Vec<ExposedPort> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for path in entries
        .take(MAX_RECORDS)
        .flatten()
        .map(|entry| entry.path())
    {
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.and_then(|name| name.strip_prefix(EXPOSED)?.strip_suffix(SUFFIX));
        let Some((_, process)) = name.and_then(|name| name.split_once('-')) else {
            continue;
        };
        let Ok(process) = process.parse::<JailPlace>() else {
            continue;
        };
        if process.is_alive() {
            found.extend(read_one::<ExposedPort>(&path));
        } else if process.is_visible() {
            let _ = fs::remove_file(&path);
            let _ = fs::remove_dir(folder);
        }
    }
    found.sort_by_key(|one| one.port);
    found
}

fn read_one<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path).ok()?;
    file.take(MAX_RECORD).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Removes a record, which ends its command; returns whether it was there.
pub(super) fn remove(folder: &Path, record: &ServiceRecord) -> io::Result<bool> {
    let Some(jail) = record.jail() else {
        return Ok(false);
    };
    let path = folder
        .join(file_name(&record.group))
        .join(format!("{jail}{SUFFIX}"));
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::file_name;

    #[test]
    fn a_groups_folder_lies_in_haft_own_whatever_its_name() {
        for (name, kept) in [
            ("20261121-221530-0a1b2c3d", true),
            ("session-00ff", true),
            ("..", false),
            ("a/b", false),
            ("", false),
            ("a\0b", false),
        ] {
            let file = file_name(name);
            assert_eq!(file == name, kept, "{name:?}");
            assert!(
                !file.is_empty() && !file.contains(['/', '.', '\0']),
                "{file}"
            );
        }
    }
}
