//! `Intent`: what a call would do, stated by its tool in one place; `Depth`: how much of it is needed.

use crate::approval::meaning::Meaning;
use crate::approval::preview::FileChange;
use crate::permission::{Condition, Permission};

/// How much of an [`Intent`] is needed. A tool states the permissions each time; what lies deeper is asked for only where it is used,
/// because it may have to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// The permissions: for a ruling.
    Permissions,
    /// The conditions as well: for a grant of the session, which holds only while they stay the same.
    Conditions,
    /// The files as well: for an approval request, and to compare them with it before the call runs.
    Files,
}

/// What a call would do, as its tool states it before the policy decides.
///
/// There is no empty default: a tool whose calls have no effects that policy asks about says so with
/// [`call_only`](Self::call_only).
///
/// ```
/// use haft::tool::{Depth, Intent};
/// use haft::{PathClaim, Permission};
///
/// let intent = Intent::of([Permission::read(PathClaim::plain("a"))])
///     .with_stated(&["path"])
///     .with_preview(Depth::Permissions, || unreachable!("a ruling needs no files"));
/// assert!(intent.preview.is_empty());
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Intent {
    /// The permissions that the call needs.
    pub permissions: Vec<Permission>,
    /// The names of the top-level arguments that these permissions state in full. An approval for the session, or for good, covers
    /// other values of them while the permissions stay the same; a call that changes any other argument needs approval again.
    pub stated: &'static [&'static str],
    /// What settings, not arguments, decide about the call: how it is confined, what it can reach. The user sees it in the request, and
    /// an approval holds only while it stays the same.
    pub conditions: Vec<Condition>,
    /// The files that the call would change, read now. An approval holds only while they stay as they are.
    pub preview: Vec<FileChange>,
    /// What these changes amount to: a commit rather than the files in which git stores it.
    pub meanings: Vec<Meaning>,
}

impl Intent {
    /// Creates the intent of a call that needs these permissions.
    pub fn of(permissions: impl Into<Vec<Permission>>) -> Self {
        Self {
            permissions: permissions.into(),
            stated: &[],
            conditions: Vec::new(),
            preview: Vec::new(),
            meanings: Vec::new(),
        }
    }

    /// Creates the intent of a call that needs no permission beyond that to call the tool: rules decide by its name and its risk.
    pub fn call_only() -> Self {
        Self::of(Vec::new())
    }

    /// Returns the intent without its permissions, which are passed to `each` in their order.
    pub(crate) fn pass_permissions(mut self, each: &mut dyn FnMut(Permission)) -> Self {
        std::mem::take(&mut self.permissions)
            .into_iter()
            .for_each(each);
        self
    }

    /// Sets the names of the top-level arguments that the permissions state in full.
    pub fn with_stated(mut self, arguments: &'static [&'static str]) -> Self {
        self.stated = arguments;
        self
    }

    /// Sets the conditions, if they are needed.
    pub fn with_conditions(mut self, depth: Depth, read: impl FnOnce() -> Vec<Condition>) -> Self {
        if depth >= Depth::Conditions {
            self.conditions = read();
        }
        self
    }

    /// Sets the files that the call would change, if they are needed. `read` changes nothing.
    pub fn with_preview(mut self, depth: Depth, read: impl FnOnce() -> Vec<FileChange>) -> Self {
        if depth >= Depth::Files {
            self.preview = read();
        }
        self
    }

    /// Sets what the changes amount to, if it is needed.
    pub fn with_meanings(mut self, depth: Depth, read: impl FnOnce() -> Vec<Meaning>) -> Self {
        if depth >= Depth::Files {
            self.meanings = read();
        }
        self
    }
}
