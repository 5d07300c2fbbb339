//! `MarkStore`: what outlives a run of the untrusted content that it read: for its client's later runs, and with the files that it wrote.

use std::fmt;
use std::io;

use crate::permission::Permission;
use crate::untrusted::UntrustedSource;

/// Keeps where content came from beyond a run. Whatever cannot be kept refuses the call that would read or write it.
pub trait MarkStore: Send + Sync + fmt::Debug {
    /// Keeps the sources that a call reads for later runs of the same client, before the call has its result.
    ///
    /// # Errors
    /// They cannot be stored.
    fn keep(&self, sources: &[UntrustedSource]) -> io::Result<()>;

    /// Returns the sources of the files that a call with these effects may read: what runs had read that wrote them unseen by a person.
    ///
    /// # Errors
    /// They cannot be looked up.
    fn of_files(&self, permissions: &[Permission]) -> io::Result<Vec<UntrustedSource>>;

    /// Notes that files are about to be written by a run that has read from these sources. Until [`note_written`](Self::note_written), any
    /// content of theirs counts as such.
    ///
    /// # Errors
    /// That cannot be stored.
    fn expect_writes(
        &self,
        permissions: &[Permission],
        sources: &[UntrustedSource],
    ) -> io::Result<()>;

    /// Notes that files have been written, as they are now; without sources, they are no longer those of an earlier run.
    fn note_written(&self, permissions: &[Permission], sources: &[UntrustedSource]);
}
