//! The skills that a run has loaded, as its session sees them.

use std::sync::Arc;

use crate::policy::{JudgedCall, Policy, Ruling};
use crate::session::{Activation, ActivationResult, ActiveSkill, Session};
use crate::spec::Risk;
use crate::tokens::Tokenizer;

impl Session {
    /// Returns the skills active in this run, oldest first.
    pub fn active_skills(&self) -> Arc<Vec<Arc<ActiveSkill>>> {
        self.parts.run.active.list()
    }

    /// Deactivates a skill and its limits; returns false if it is not active.
    pub fn deactivate(&self, skill: &str) -> bool {
        self.parts.run.active.deactivate(skill)
    }

    /// Returns whether the session sees a skill of this name.
    pub fn sees_skill(&self, name: &str) -> bool {
        self.parts
            .run
            .skills
            .as_ref()
            .is_none_or(|seen| seen.contains(name))
    }

    /// Loads a skill into the run.
    pub(crate) fn activate(
        &self,
        skill: &Activation<'_>,
        policy: &Policy,
        tokenizer: &dyn Tokenizer,
    ) -> ActivationResult {
        self.parts.run.active.activate(skill, policy, tokenizer)
    }

    /// Returns the denial of a call by an active skill, if any.
    pub(crate) fn skill_denial(
        &self,
        policy: &Policy,
        call: &JudgedCall<'_>,
        risk: Risk,
    ) -> Option<Ruling> {
        self.parts.run.active.judge(policy, call, risk)
    }
}
