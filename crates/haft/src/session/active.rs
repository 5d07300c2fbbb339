//! `ActiveSkills`: the skills that a run has loaded, with their token budget and the restrictions they impose.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::sync::watch;

use crate::permission::Verdict;
use crate::policy::{JudgedCall, Label, Policy, Ruling};
use crate::session::activation::{Activation, ActivationResult, ActiveSkill};
use crate::spec::Risk;
use crate::tokens::Tokenizer;
use crate::toolset::{ToolsetChanges, ToolsetSnapshot};

/// Default maximum number of tokens of all active skills together (the seed's figure; the format advises at most 5,000 per body).
pub const SKILL_TOKENS: usize = 18_000;

type SkillList = Arc<Vec<Arc<ActiveSkill>>>;

/// The active skills of a run, oldest first; shared by all its sessions.
#[derive(Debug)]
pub(crate) struct ActiveSkills {
    list: ArcSwap<Vec<Arc<ActiveSkill>>>,
    /// Number of changes of the run's restrictions; zero while no skill has ever restricted it.
    generation: AtomicU64,
    changed: watch::Sender<u64>,
    /// Locked during changes.
    changing: Mutex<()>,
    max_tokens: AtomicUsize,
}

impl Default for ActiveSkills {
    fn default() -> Self {
        Self {
            list: ArcSwap::default(),
            generation: AtomicU64::new(0),
            changed: watch::Sender::new(0),
            changing: Mutex::default(),
            max_tokens: AtomicUsize::new(SKILL_TOKENS),
        }
    }
}

impl ActiveSkills {
    /// Sets the maximum number of tokens of all active skills together.
    pub(crate) fn limit(&self, max_tokens: usize) {
        self.max_tokens.store(max_tokens, Ordering::Relaxed);
    }

    /// Returns the active skills, oldest first.
    pub(crate) fn list(&self) -> SkillList {
        self.list.load_full()
    }

    /// Returns a receiver of changes to the run's restrictions.
    pub(crate) fn changes(&self) -> ToolsetChanges {
        ToolsetChanges::of(self.changed.subscribe())
    }

    /// Loads a skill. While the total exceeds the budget, the oldest are evicted, but never the one just loaded.
    pub(crate) fn activate(
        &self,
        skill: &Activation<'_>,
        policy: &Policy,
        tokenizer: &dyn Tokenizer,
    ) -> ActivationResult {
        let digest = digest(skill);
        // A token is at least one byte long, so this counts every text.
        let tokens = tokenizer
            .fits(skill.body, skill.body.len())
            .unwrap_or(skill.body.len());
        let restriction = policy.restriction(skill.restricts_to, skill.excludes);
        let _alone = self.changing.lock();
        let before = self.list.load_full();
        if before
            .iter()
            .any(|known| known.name == skill.name && known.digest == digest)
        {
            return ActivationResult {
                already: true,
                tokens,
                ..ActivationResult::default()
            };
        }
        let unread = restriction.unread().to_vec();
        let mut after: Vec<_> = before
            .iter()
            .filter(|known| known.name != skill.name)
            .cloned()
            .collect();
        after.push(Arc::new(ActiveSkill {
            name: skill.name.to_owned(),
            folder: skill.folder.map(Path::to_path_buf),
            tokens,
            digest,
            restriction,
        }));
        let max = self.max_tokens.load(Ordering::Relaxed);
        let mut evicted = Vec::new();
        while after.len() > 1 && after.iter().map(|skill| skill.tokens).sum::<usize>() > max {
            evicted.push(after.remove(0).name.clone());
        }
        self.replace(&before, after);
        ActivationResult {
            already: false,
            tokens,
            evicted,
            unread,
        }
    }

    /// Deactivates a skill and its limits; returns false if it is not active.
    pub(crate) fn deactivate(&self, name: &str) -> bool {
        let _alone = self.changing.lock();
        let before = self.list.load_full();
        let after: Vec<_> = before
            .iter()
            .filter(|known| known.name != name)
            .cloned()
            .collect();
        let was = after.len() < before.len();
        if was {
            self.replace(&before, after);
        }
        was
    }

    fn replace(&self, before: &[Arc<ActiveSkill>], after: Vec<Arc<ActiveSkill>>) {
        let narrows =
            |list: &[Arc<ActiveSkill>]| list.iter().any(|skill| !skill.restriction.is_empty());
        let narrowed = narrows(before) || narrows(&after);
        self.list.store(Arc::new(after));
        if narrowed {
            // After the list is stored: a reader that sees the new count sees the new list.
            let generation = self.generation.fetch_add(1, Ordering::Release) + 1;
            self.changed.send_replace(generation);
        }
    }

    /// Returns the number of changes of the run's restrictions; nonzero if a skill restricts the run, or did.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Returns the ruling of the first active skill whose restriction the call violates.
    pub(crate) fn judge(
        &self,
        policy: &Policy,
        call: &JudgedCall<'_>,
        risk: Risk,
    ) -> Option<Ruling> {
        if self.generation() == 0 {
            return None;
        }
        let active = self.list.load();
        active.iter().find_map(|skill| {
            let outside = policy.outside(&skill.restriction, call)?;
            let name = &skill.name;
            let reason = format!(
                "the active skill {name} limits this run to {}, which excludes {}",
                outside.within, outside.what
            );
            let advice = format!(
                "use only what the skill {name} allows; its limits end with the run, or when newer skills replace it"
            );
            Some(Ruling {
                verdict: Verdict::Deny,
                risk,
                rule: format!("skill {name}").into(),
                layer: "skill".into(),
                reason: reason.into(),
                advice: advice.into(),
                operator: Label::EMPTY,
                causes: Vec::new(),
            })
        })
    }
}

fn digest(skill: &Activation<'_>) -> [u8; 32] {
    let mut hash = Sha256::new();
    let mut part = |text: &str| {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    };
    part(skill.body);
    part(if skill.restricts_to.is_some() {
        "only"
    } else {
        ""
    });
    skill
        .restricts_to
        .into_iter()
        .flatten()
        .for_each(|rule| part(rule));
    part("not");
    skill.excludes.iter().for_each(|rule| part(rule));
    hash.finalize().into()
}

/// A snapshot as the active skills narrow it, computed once per change of either.
#[derive(Debug, Default)]
pub(crate) struct NarrowingCache(ArcSwapOption<NarrowedTools>);

/// A tool list, the generation of restrictions, and the remaining tools.
#[derive(Debug)]
struct NarrowedTools {
    whole: Arc<ToolsetSnapshot>,
    generation: u64,
    rest: Arc<ToolsetSnapshot>,
}

impl NarrowingCache {
    /// Returns the part of the snapshot that the active skills leave.
    pub(crate) fn of(
        &self,
        active: &ActiveSkills,
        generation: u64,
        whole: Arc<ToolsetSnapshot>,
    ) -> Arc<ToolsetSnapshot> {
        if let Some(seen) = &*self.0.load()
            && seen.generation == generation
            && Arc::ptr_eq(&seen.whole, &whole)
        {
            return Arc::clone(&seen.rest);
        }
        let skills = active.list();
        let shown = whole.entries().iter().filter(|entry| {
            let spec = entry.spec();
            skills.iter().all(|skill| skill.restriction.shows(spec))
        });
        // Both numbers only increase, so the sum increases with every change of either.
        let rest = Arc::new(ToolsetSnapshot::new(
            whole.version() + generation,
            shown.cloned(),
        ));
        self.0.store(Some(Arc::new(NarrowedTools {
            whole,
            generation,
            rest: Arc::clone(&rest),
        })));
        rest
    }
}
