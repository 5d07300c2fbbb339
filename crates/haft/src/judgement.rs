//! `Judgement`: what was judged about a call before it runs. The tool only does what was judged.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::sync::Arc;

use crate::approval::{ApprovalId, CallSnapshot};
use crate::error::ToolError;
use crate::permission::{Effect, PathClaim, Permission, Verdict};
use crate::policy::Ruling;
use crate::spec::Risk;
use crate::workspace::{ResolvedPath, WorkspaceError};

/// What was judged about a call: its declared effects, the ruling, and the decision if the policy required approval.
///
/// A running tool has the judgement of its call ([`CallContext::judgement`](crate::context::CallContext::judgement)). The executor
/// accepts none from outside.
#[derive(Debug, Clone)]
pub struct Judgement {
    /// Shared, since there may be very many: whatever is compared with them later holds only what differs.
    permissions: Arc<Vec<Permission>>,
    ruling: Ruling,
    decision: Option<Consent>,
    shown: Option<CallSnapshot>,
}

/// The consent to a call that needed approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consent {
    /// The user or approver that decided.
    pub by: String,
    /// The request that was decided for this very call; `None` if an approver decided automatically, or a grant of the session covers
    /// the call.
    pub approval: Option<ApprovalId>,
}

impl Judgement {
    /// Creates the judgement of a call with these permissions and this ruling.
    pub(crate) fn new(permissions: Arc<Vec<Permission>>, ruling: Ruling) -> Self {
        Self {
            permissions,
            ruling,
            decision: None,
            shown: None,
        }
    }

    /// Creates a judgement that allows these effects, for what a host does outside any call; no call runs on it.
    pub fn allowing(permissions: Vec<Permission>) -> Self {
        let risks = permissions.iter().map(|permission| permission.risk);
        let risk = risks.max().unwrap_or(Risk::Safe);
        let ruling = Ruling {
            verdict: Verdict::Allow,
            risk,
            rule: "host".into(),
            layer: "host".into(),
            reason: "".into(),
            advice: "".into(),
            operator: "".into(),
            causes: Vec::new(),
        };
        Self::new(Arc::new(permissions), ruling)
    }

    /// Adds the decision that the call runs on, and what the deciding user was shown.
    pub(crate) fn decided(mut self, decision: Consent, shown: Option<CallSnapshot>) -> Self {
        self.decision = Some(decision);
        self.shown = shown;
        self
    }

    /// Returns what the call declared it would do.
    pub fn permissions(&self) -> &[Permission] {
        &self.permissions
    }

    /// Returns the same, to be shared.
    pub(crate) fn shared_permissions(&self) -> &Arc<Vec<Permission>> {
        &self.permissions
    }

    /// Returns the policy's ruling.
    pub fn ruling(&self) -> &Ruling {
        &self.ruling
    }

    /// Returns the decision that it runs on; `None` if the policy allowed it.
    pub fn decision(&self) -> Option<&Consent> {
        self.decision.as_ref()
    }

    /// Returns what the user who approved this very call saw.
    pub fn approved_snapshot(&self) -> Option<&CallSnapshot> {
        self.shown.as_ref()
    }

    /// Returns whether a user saw this very call, with the files it changes, and approved it.
    pub fn is_approved(&self) -> bool {
        let decision = self.decision.as_ref();
        decision.is_some_and(|decision| decision.approval.is_some())
    }

    /// Returns an error unless this effect was judged.
    ///
    /// # Errors
    /// `denied`: the call never declared this effect, so there is no ruling on it.
    pub fn cleared(&self, effect: &Effect) -> Result<(), ToolError> {
        let mut effects = self.permissions.iter().map(|permission| &permission.effect);
        if effects.any(|judged| judged == effect) {
            return Ok(());
        }
        Err(not_cleared(effect.value()))
    }

    /// Returns whether each of these permissions was judged, with its risk.
    pub fn covers(&self, permissions: impl IntoIterator<Item: Borrow<Permission>>) -> bool {
        let (mut in_order, mut judged) = (self.permissions.iter(), None);
        permissions.into_iter().all(|wanted| {
            let wanted: &Permission = wanted.borrow();
            // They usually come in the order in which they were judged: then nothing else need be in memory.
            judged.is_none() && in_order.next() == Some(wanted)
                || judged
                    .get_or_insert_with(|| self.permissions.iter().collect::<HashSet<_>>())
                    .contains(wanted)
        })
    }

    /// Returns the place if reading it was judged and its path still has the same target.
    ///
    /// # Errors
    /// `denied` if reading it was not judged, `conflict` if its path has another target now.
    pub fn cleared_to_read(&self, place: ResolvedPath) -> Result<ResolvedPath, ToolError> {
        self.cleared_place(place, |effect| match effect {
            Effect::Read(claim) => Some(claim),
            _ => None,
        })
    }

    /// Returns the place if changing or removing it was judged and its path still has the same target.
    ///
    /// # Errors
    /// `denied` if changing it was not judged, `conflict` if its path has another target now.
    pub fn cleared_to_change(&self, place: ResolvedPath) -> Result<ResolvedPath, ToolError> {
        self.cleared_place(place, Effect::changed_path)
    }

    fn cleared_place(
        &self,
        place: ResolvedPath,
        claimed: impl Fn(&Effect) -> Option<&PathClaim>,
    ) -> Result<ResolvedPath, ToolError> {
        let now = place.claim()?;
        let claims = || self.permissions.iter().filter_map(|p| claimed(&p.effect));
        if claims().any(|claim| *claim == now) {
            return Ok(place);
        }
        if claims().any(|claim| claim.path == now.path) {
            return Err(WorkspaceError::Changed(place.display()).into());
        }
        Err(not_cleared(&place.display()))
    }
}

fn not_cleared(what: &str) -> ToolError {
    ToolError::denied(format!("the call was not cleared for {what:?}"))
}

#[cfg(test)]
mod tests {
    use super::Judgement;
    use crate::error::ErrorKind;
    use crate::permission::{Effect, PathClaim, Permission};
    use crate::spec::Risk;
    use crate::workspace::Workspace;

    fn connect(host: &str) -> Effect {
        Effect::connect(format!("https://{host}/"), host)
    }

    #[test]
    fn what_was_not_judged_is_refused() {
        let judged = Permission::read(PathClaim::plain("a"));
        let judgement = Judgement::allowing(vec![judged.clone()]);
        assert!(judgement.cleared(&judged.effect).is_ok());
        for effect in [
            Effect::Write(PathClaim::plain("a")),
            Effect::Read(PathClaim::plain("b")),
            connect("example.org"),
            Effect::Question,
        ] {
            let refused = judgement.cleared(&effect).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Denied, "{effect:?}");
        }
        assert!(
            Judgement::allowing(Vec::new())
                .cleared(&judged.effect)
                .is_err()
        );
    }

    #[test]
    fn permissions_are_covered_in_any_order_and_with_their_risk() {
        let write = |path: &str| Permission::write(PathClaim::plain(path));
        let judgement = Judgement::allowing(["a", "b", "c"].map(write).to_vec());
        let rows: &[(&[&str], bool)] = &[
            (&[], true),
            (&["a", "b", "c"], true),
            (&["a", "b"], true),
            (&["a", "c", "b"], true),
            (&["c", "c", "a"], true),
            (&["a", "b", "c", "a"], true),
            (&["a", "d"], false),
            (&["d", "a"], false),
            (&["a", "b", "c", "d"], false),
        ];
        for (wanted, covered) in rows {
            let wanted: Vec<_> = wanted.iter().copied().map(write).collect();
            assert_eq!(judgement.covers(&wanted), *covered, "{wanted:?}");
        }
        assert!(!judgement.covers([write("a").at(Risk::Critical)]));
    }

    #[test]
    fn a_place_is_cleared_for_what_was_judged_and_while_it_leads_there() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "1").unwrap();
        std::fs::write(folder.path().join("b"), "2").unwrap();
        let workspace = Workspace::open(folder.path()).unwrap();
        let place = |path: &str| workspace.place(path).unwrap();
        let reads = Judgement::allowing(vec![Permission::read(workspace.claim("a").unwrap())]);
        let kind =
            |cleared: Result<_, crate::error::ToolError>| cleared.map(drop).map_err(|e| e.kind());
        assert_eq!(kind(reads.cleared_to_read(place("a"))), Ok(()));
        assert_eq!(
            kind(reads.cleared_to_read(place("b"))),
            Err(ErrorKind::Denied)
        );
        assert_eq!(
            kind(reads.cleared_to_change(place("a"))),
            Err(ErrorKind::Denied)
        );
        std::fs::remove_file(folder.path().join("a")).unwrap();
        std::os::unix::fs::symlink("b", folder.path().join("a")).unwrap();
        assert_eq!(
            kind(reads.cleared_to_read(place("a"))),
            Err(ErrorKind::Conflict)
        );
    }
}
