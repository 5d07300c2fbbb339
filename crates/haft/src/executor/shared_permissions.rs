//! `SharedPermissions`: what a call would do at a later moment, held only as far as it differs from an earlier one.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::approval::ApprovalRequest;
use crate::call::{CallId, RunId};
use crate::permission::Permission;

/// Permissions of a call that are added one by one.
pub(super) struct SharedPermissions<'a> {
    known: &'a Arc<Vec<Permission>>,
    /// Number of known ones that were added, in order.
    same: usize,
    /// All that were added, once one of them is not the known one.
    others: Option<Vec<Permission>>,
}

impl<'a> SharedPermissions<'a> {
    /// Expects those that are known from an earlier moment; none if there was none.
    pub(super) fn like(known: &'a Arc<Vec<Permission>>) -> Self {
        Self {
            known,
            same: 0,
            others: None,
        }
    }

    /// Adds one.
    pub(super) fn add(&mut self, permission: Permission) {
        if self.others.is_none() && self.known.get(self.same) == Some(&permission) {
            self.same += 1;
            return;
        }
        let so_far = || self.known.iter().take(self.same).cloned().collect();
        self.others.get_or_insert_with(so_far).push(permission);
    }

    /// Returns those that were added so far.
    pub(super) fn so_far(&self) -> &[Permission] {
        let known = self.known.get(..self.same).unwrap_or_default();
        self.others.as_deref().unwrap_or(known)
    }

    /// Returns all.
    pub(super) fn finish(self) -> Arc<Vec<Permission>> {
        match self.others {
            None if self.same == self.known.len() => Arc::clone(self.known),
            None => Arc::new(self.so_far().to_vec()),
            Some(mut others) => {
                others.shrink_to_fit();
                Arc::new(others)
            }
        }
    }
}

/// What the calls would do that wait for a decision in this process: whoever checks the decision compares with that.
#[derive(Debug, Default)]
pub(super) struct PendingPermissions(Mutex<HashMap<WaitingKey, Weak<Vec<Permission>>>>);

/// The run and the call.
type WaitingKey = (RunId, CallId);

/// A call that waits for a decision, until this is dropped.
pub(super) struct WaitingCallGuard {
    calls: Arc<PendingPermissions>,
    key: WaitingKey,
}

impl PendingPermissions {
    /// Adds the call of a request.
    pub(super) fn add(
        self: &Arc<Self>,
        request: &ApprovalRequest,
        permissions: &Arc<Vec<Permission>>,
    ) -> WaitingCallGuard {
        let key = (request.run.clone(), request.call.clone());
        self.0
            .lock()
            .insert(key.clone(), Arc::downgrade(permissions));
        let calls = Arc::clone(self);
        WaitingCallGuard { calls, key }
    }

    /// Returns what the call of a request would do; empty if it does not wait here.
    pub(super) fn of(&self, request: &ApprovalRequest) -> Arc<Vec<Permission>> {
        let key = (request.run.clone(), request.call.clone());
        let known = self.0.lock().get(&key).and_then(Weak::upgrade);
        known.unwrap_or_default()
    }
}

impl Drop for WaitingCallGuard {
    fn drop(&mut self) {
        self.calls.0.lock().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permission::PathClaim;

    #[test]
    fn permissions_when_they_are_the_known_ones_are_shared_and_otherwise_their_own() {
        let all = |paths: &str| {
            let each = paths.chars().map(String::from);
            let each = each.map(|path| Permission::write(PathClaim::plain(path)));
            each.collect::<Vec<_>>()
        };
        for (known, added, is_shared) in [
            ("abc", "abc", true),
            ("", "", true),
            ("", "abc", false),
            ("abc", "", false),
            ("abc", "ab", false),
            ("abc", "abcd", false),
            ("abc", "acb", false),
            ("abc", "xbc", false),
            ("abc", "abx", false),
            ("aab", "ab", false),
        ] {
            let known = Arc::new(all(known));
            let mut shared = SharedPermissions::like(&known);
            for (at, one) in all(added).into_iter().enumerate() {
                assert_eq!(shared.so_far(), &all(added)[..at]);
                shared.add(one);
            }
            assert_eq!(shared.so_far(), all(added));
            let found = shared.finish();
            assert_eq!(*found, all(added), "{added}");
            assert_eq!(Arc::ptr_eq(&found, &known), is_shared, "{added}");
        }
    }
}
