//! Memories that a user adds, edits and removes: accepted at once, since no agent proposes them.

use haft::memory::{
    CandidateDecision, MemoryAccess, MemoryDraft, MemoryError, MemoryId, MemoryRecord, MemoryScope,
    MemoryState, MemoryUpdate, Provenance, Shelf,
};

use crate::app::App;

/// The new contents of a memory.
#[derive(Debug, Clone, Default)]
pub struct MemoryText {
    /// The text; `None` leaves it as it is.
    pub content: Option<String>,
    /// Tags to find it by; `None` leaves them as they are.
    pub tags: Option<Vec<String>>,
}

/// Adds a memory to the user's own shelf or to the workspace's.
///
/// # Errors
/// [`MemoryError::Invalid`] if the scope is neither, the text is empty or something is too long; otherwise an error of the store.
pub async fn add(
    app: &App,
    scope: MemoryScope,
    text: MemoryText,
    by: &str,
) -> Result<MemoryRecord, MemoryError> {
    let shelf = match scope {
        MemoryScope::User => Shelf::user(),
        MemoryScope::Project => Shelf::project(app.workspace()),
        MemoryScope::Agent | MemoryScope::Session => {
            let message = format!(
                "invalid scope `{}`: a user can add memories only to `user` or `project`",
                scope.as_str()
            );
            return Err(MemoryError::Invalid(message));
        }
    };
    let provenance = Provenance {
        run: None,
        call: None,
        agent: None,
        author: by.to_owned(),
    };
    let content = checked(text.content.unwrap_or_default())?;
    let mut draft = MemoryDraft::new(shelf, content, provenance)?;
    draft.tags = text.tags.unwrap_or_default();
    draft.state = MemoryState::Accepted;
    app.memory()
        .put(&MemoryAccess::now(app.principal()), draft)
        .await
}

/// Changes a memory's text or tags. If two users change the same revision, only one succeeds.
///
/// # Errors
/// [`MemoryError::NotFound`], [`MemoryError::Changed`] if it is no longer at `revision`, or an error of the store.
pub async fn edit(
    app: &App,
    id: &MemoryId,
    revision: Option<u64>,
    text: MemoryText,
    by: &str,
) -> Result<MemoryRecord, MemoryError> {
    let asker = MemoryAccess::now(app.principal());
    let revision = at(app, &asker, id, revision).await?;
    let change = MemoryUpdate {
        content: text.content.map(checked).transpose()?,
        tags: text.tags,
        path: None,
        by: by.to_owned(),
    };
    let memory = app.memory();
    memory.update(&asker, id.clone(), revision, change).await
}

/// Removes a memory with its history and returns its last version.
///
/// # Errors
/// [`MemoryError::NotFound`], [`MemoryError::Changed`] if it is no longer at `revision`, or an error of the store.
pub async fn remove(
    app: &App,
    id: &MemoryId,
    revision: Option<u64>,
) -> Result<MemoryRecord, MemoryError> {
    let asker = MemoryAccess::now(app.principal());
    let revision = at(app, &asker, id, revision).await?;
    app.memory().delete(&asker, id.clone(), revision).await
}

/// Decides about a candidate of this app's principal, or of another principal of its tenant: the operator reviews what people with
/// tokens of their own would remember, as it decides about their calls. It enters the memory of the one whose run proposed it.
///
/// # Errors
/// [`MemoryError::NotFound`], [`MemoryError::Decided`] if it is no longer a candidate, or an error of the store.
pub async fn decide(
    app: &App,
    id: &MemoryId,
    decision: &CandidateDecision,
) -> Result<MemoryRecord, MemoryError> {
    let (memory, asker) = (app.memory(), MemoryAccess::now(app.principal()));
    let own = memory.decide(&asker, id, decision).await;
    let Err(MemoryError::NotFound(_)) = &own else {
        return own;
    };
    let pending = memory.candidates(&asker).await?.into_iter();
    let mut of_id = pending.filter(|candidate| candidate.record.id == *id);
    match of_id.next() {
        Some(found) => {
            let asker = MemoryAccess::now(&found.principal);
            memory.decide(&asker, id, decision).await
        }
        None => own,
    }
}

/// Returns the revision to change: the one that the user saw, or else the current one.
async fn at(
    app: &App,
    asker: &MemoryAccess,
    id: &MemoryId,
    seen: Option<u64>,
) -> Result<u64, MemoryError> {
    if let Some(seen) = seen {
        return Ok(seen);
    }
    let found = app.memory().get(asker, id).await?;
    let record = found.ok_or_else(|| MemoryError::NotFound(id.clone()))?;
    Ok(record.revision)
}

fn checked(content: String) -> Result<String, MemoryError> {
    if content.trim().is_empty() {
        return Err(MemoryError::Invalid("the memory has no content".into()));
    }
    Ok(content)
}
