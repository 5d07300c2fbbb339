//! `FileOrigins`: the sources that a call reads with files, and those that stay with the files that it writes.

use std::io;
use std::sync::Arc;

use crate::error::ErrorKind;
use crate::executor::ExecutorParts;
use crate::executor::early_end::EarlyEnd;
use crate::executor::judge::ClearedCall;
use crate::permission::{Effect, Permission};
use crate::provenance::MarkStore;
use crate::session::Session;
use crate::untrusted::{UntrustedSource, WORKSPACE};

/// What a call that is about to run has to do with the origins of files.
pub(super) struct FileOrigins {
    provenance: Arc<dyn MarkStore>,
    written: Arc<Vec<Permission>>,
    /// Whether nobody saw what it writes.
    unseen: bool,
}

impl FileOrigins {
    /// Adds the sources of the files that a cleared call may read to its others, `all`, keeps them, and notes those of the files, before it
    /// runs: what a command writes while it runs has the labels of what it read. Returns what is left to do when it has run.
    pub(super) fn before(
        parts: &ExecutorParts,
        session: &Session,
        cleared: &ClearedCall,
        all: &mut Vec<UntrustedSource>,
    ) -> Result<Option<Self>, EarlyEnd> {
        let mut read = Vec::new();
        let permissions = cleared.judgement().shared_permissions();
        let is_seen = |one: &Permission| matches!(one.effect, Effect::Read(_) | Effect::Run { .. });
        if parts.policy.now().distrusts_workspace() && permissions.iter().any(is_seen) {
            let tool = &cleared.spec().name;
            let source = format!("{WORKSPACE}: files of the workspace by {tool}");
            read.push(UntrustedSource::recorded(&source));
        }
        let provenance = session.provenance();
        if let Some(provenance) = provenance.filter(|_| permissions.iter().any(is_seen)) {
            read.extend(provenance.of_files(permissions).map_err(|e| failed(&e))?);
        }
        all.extend(read.iter().cloned());
        session.note_untrusted(read);
        let Some(provenance) = provenance else {
            return Ok(None);
        };
        if !all.is_empty() {
            provenance.keep(all).map_err(|e| failed(&e))?;
        }
        let changes = |one: &Permission| one.effect.changed_path().is_some();
        // An agent's own tool writes when haft no longer sees it.
        if cleared.spec().is_foreign() || !permissions.iter().any(changes) {
            return Ok(None);
        }
        let origins = Self {
            provenance: Arc::clone(provenance),
            written: Arc::clone(permissions),
            unseen: !cleared.judgement().is_approved(),
        };
        let sources = origins.sources(session, all);
        let expected = origins.provenance.expect_writes(permissions, &sources);
        expected.map_err(|e| failed(&e))?;
        Ok(Some(origins))
    }

    /// Notes the files that the call has written.
    pub(super) fn after(self, session: &Session) {
        let sources = self.sources(session, &[]);
        self.provenance.note_written(&self.written, &sources);
    }

    /// Returns the sources that stay with what is written: none if a person saw it.
    fn sources(&self, session: &Session, more: &[UntrustedSource]) -> Vec<UntrustedSource> {
        if !self.unseen {
            return Vec::new();
        }
        let mut all = session.untrusted().to_vec();
        all.extend(more.iter().cloned());
        all
    }
}

fn failed(error: &io::Error) -> EarlyEnd {
    let message = format!("cannot note where the content that this call uses comes from: {error}");
    EarlyEnd::failed(ErrorKind::Unavailable, message)
        .advise("nothing ran; try again")
        .for_operator("make the state folder writable; `haft doctor` checks it")
}
