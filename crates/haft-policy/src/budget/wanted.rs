//! `EffectEstimate`: what a call would use of the budgets, and whether this is known before it runs.

use super::{Budgets, CountedEffect, EffectCounts};
use haft_types::permission::{Effect, Permission};
use haft_types::spec::{Risk, ToolSpec};

/// What a call would use.
#[derive(Debug, Clone, Copy)]
pub struct EffectEstimate {
    /// The part that can be counted.
    pub(crate) uses: EffectCounts,
    /// Whether it may delete files that cannot be counted, although there is a budget of deletions.
    pub(crate) uncounted: bool,
}

impl EffectEstimate {
    /// Returns the counts of a call without budgets.
    pub fn unlimited(spec: &ToolSpec, permissions: &[Permission]) -> Self {
        Self {
            uses: EffectCounts::of(spec, permissions),
            uncounted: false,
        }
    }
}

impl Budgets {
    /// Returns what a call would use of the budgets.
    pub fn wanted(&self, spec: &ToolSpec, permissions: &[Permission]) -> EffectEstimate {
        let mut uses = EffectCounts::of(spec, permissions);
        let sends = permissions.iter().filter(|one| self.is_send(one)).count();
        uses.sends = uses.sends.saturating_add(sends as u64);
        EffectEstimate {
            uses,
            uncounted: permissions
                .iter()
                .any(|one| self.is_uncounted(permissions, one)),
        }
    }

    /// Returns what an effect of a call counts as.
    pub(crate) fn counted(
        &self,
        spec: &ToolSpec,
        permissions: &[Permission],
        permission: &Permission,
    ) -> impl Iterator<Item = CountedEffect> {
        let own = CountedEffect::of(spec, permissions, &permission.effect);
        let deletes = self
            .is_uncounted(permissions, permission)
            .then_some(CountedEffect::Deletions);
        let sends = self.is_send(permission).then_some(CountedEffect::Sends);
        [deletes, own, sends].into_iter().flatten()
    }

    /// Returns whether it is a command that works on the workspace directly, so that its deletions cannot be counted, although there is
    /// a budget of deletions. A command that only reads deletes nothing; changes on a copy are judged file by file. One that declares
    /// what it removes may name a folder with any number of files.
    pub(crate) fn is_uncounted(&self, permissions: &[Permission], permission: &Permission) -> bool {
        let mut limits = [self.run(), self.day()].into_iter();
        if !limits.any(|limits| limits.deletions.is_some()) {
            return false;
        }
        let removes = |one: &Permission| matches!(one.effect, Effect::Remove(_));
        let directly = matches!(permission.effect, Effect::Run { on_copy: false, .. });
        directly && (permission.risk > Risk::Safe || permissions.iter().any(removes))
    }

    /// Returns whether it is a command that may connect to any host.
    fn is_send(&self, permission: &Permission) -> bool {
        let Effect::Run {
            jailed, on_copy, ..
        } = permission.effect
        else {
            return false;
        };
        let confined = jailed && (on_copy || !self.commands_reach_out);
        !confined && permission.risk > Risk::Safe
    }
}
