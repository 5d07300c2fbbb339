//! `SessionGrants`: what a user allowed for a session of an agent, on disk, where each of its runs finds it.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use haft::approval::Grant;
use haft::session::GrantStore;

use crate::plain_file;
use crate::session_group::{LIFETIME, touch};

/// Maximum number of grants of a session. The oldest makes room.
const MOST: usize = 256;
/// Maximum size of the file, in bytes.
const MAX_BYTES: u64 = 4 << 20;

/// The grants of one session, a line each.
#[derive(Debug)]
pub(super) struct SessionGrants {
    path: PathBuf,
}

impl SessionGrants {
    /// The grants in this file, which need not exist.
    pub(super) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    fn read(&self) -> io::Result<Vec<Grant>> {
        let age = match self.path.symlink_metadata() {
            Ok(meta) => meta.modified()?.elapsed().unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        if age > LIFETIME {
            return Ok(Vec::new());
        }
        let text = plain_file::read(&self.path, MAX_BYTES)?;
        touch(&self.path);
        // One of another version of haft covers nothing: the user is asked again.
        Ok(text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect())
    }

    fn write(&self, grant: &Grant) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        plain_file::private_folder(folder)?;
        // Commands that the agent runs at the same time each add what was allowed.
        let _lock = plain_file::lock_folder(folder)?;
        let mut all = self.read().unwrap_or_default();
        all.retain(|known| known != grant);
        all.push(grant.clone());
        let mut lines = Vec::new();
        for grant in all.iter().rev().take(MOST) {
            lines.push(serde_json::to_string(grant)?);
        }
        let mut size = 0;
        let fits = |line: &String| {
            size += line.len() as u64 + 1;
            size <= MAX_BYTES
        };
        let mut lines: Vec<String> = lines.into_iter().take_while(fits).collect();
        lines.reverse();
        plain_file::write_private(&self.path, &(lines.join("\n") + "\n"))
    }
}

impl GrantStore for SessionGrants {
    fn grants(&self) -> Vec<Grant> {
        self.read().unwrap_or_else(|error| {
            tracing::warn!(%error, path = %self.path.display(), "read what was allowed for an agent's session");
            Vec::new()
        })
    }

    fn add(&self, grant: &Grant) {
        if let Err(error) = self.write(grant) {
            tracing::warn!(%error, path = %self.path.display(), "keep what was allowed for an agent's session");
        }
    }
}
