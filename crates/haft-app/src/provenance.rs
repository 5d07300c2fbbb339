//! What is kept of untrusted content beyond a run: marks of clients, and the files that marked runs wrote unseen.

mod client_marks;
mod file_content;
mod file_labels;

use std::io;
use std::path::Path;
use std::sync::Arc;

use haft::permission::Permission;
use haft::provenance::MarkStore;
use haft::untrusted::UntrustedSource;

pub(crate) use client_marks::ClientMarks;
pub use client_marks::{KeptMarks, MarkOwner, clear, list};
pub(crate) use file_labels::FileLabels;

/// The folder below haft's state folder.
const FOLDER: &str = "marks";
/// The source that stands for what cannot be told.
const UNKNOWN: &str = "many: marks that haft cannot read";

/// Forgets which files marked runs wrote, in all workspaces. Returns of how many workspaces there was something.
///
/// # Errors
/// It cannot be removed.
pub fn clear_file_labels(home: &Path) -> io::Result<usize> {
    file_labels::clear(home)
}

/// What one run keeps, and where.
#[derive(Debug)]
pub(crate) struct RunProvenance {
    /// The marks of its client, if its client's later runs take them over.
    pub(crate) client: Option<ClientMarks>,
    pub(crate) files: Arc<FileLabels>,
}

impl RunProvenance {
    /// Returns what its client's earlier runs have read. What cannot be read counts as something.
    pub(crate) fn known(&self) -> Vec<UntrustedSource> {
        let Some(client) = &self.client else {
            return Vec::new();
        };
        client.sources().unwrap_or_else(|error| {
            tracing::error!(%error, "read the marks of a client's earlier runs");
            vec![UntrustedSource::recorded(UNKNOWN)]
        })
    }
}

impl MarkStore for RunProvenance {
    fn keep(&self, sources: &[UntrustedSource]) -> io::Result<()> {
        self.client
            .as_ref()
            .map_or(Ok(()), |client| client.keep(sources))
    }

    fn of_files(&self, permissions: &[Permission]) -> io::Result<Vec<UntrustedSource>> {
        self.files.of_reads(permissions)
    }

    fn expect_writes(
        &self,
        permissions: &[Permission],
        sources: &[UntrustedSource],
    ) -> io::Result<()> {
        self.files.expect(permissions, sources)
    }

    fn note_written(&self, permissions: &[Permission], sources: &[UntrustedSource]) {
        if let Err(error) = self.files.written(permissions, sources) {
            // What was expected stays noted: any content of these files counts.
            tracing::error!(%error, "note what a run has written");
        }
    }
}
