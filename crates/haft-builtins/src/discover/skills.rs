//! `SkillFinder`: the search index of the skills, rebuilt when the skills change.

use std::sync::Arc;

use haft::skill::Skill;
use haft::skill::set::{Catalogue, SkillSet};
use haft::toolset::search::document;
use haft_search::Index;
use parking_lot::Mutex;

/// Finds skills that a model may load.
#[derive(Debug)]
pub(super) struct SkillFinder {
    set: Arc<SkillSet>,
    made: Mutex<Option<BuiltIndex>>,
}

/// An index and the catalogue it was built from.
#[derive(Debug, Clone)]
struct BuiltIndex {
    catalogue: Arc<Catalogue>,
    index: Arc<Index>,
}

impl SkillFinder {
    pub(super) fn new(set: Arc<SkillSet>) -> Self {
        Self {
            set,
            made: Mutex::new(None),
        }
    }

    /// Returns the skills that fit a query best, best first, among those that `sees` accepts.
    pub(super) fn search(
        &self,
        query: &str,
        limit: usize,
        sees: impl Fn(&Skill) -> bool,
    ) -> Vec<(Skill, f32)> {
        let BuiltIndex { catalogue, index } = self.made();
        let skills = catalogue.skills();
        let keep = |place: usize| {
            let skill = skills.get(place);
            skill.is_some_and(|skill| skill.front().model_invocable && sees(skill))
        };
        let hits = index.search(query, limit, keep).into_iter();
        hits.filter_map(|hit| Some((skills.get(hit.document)?.clone(), hit.score)))
            .collect()
    }

    fn made(&self) -> BuiltIndex {
        let catalogue = self.set.current();
        let mut made = self.made.lock();
        if let Some(made) = made
            .as_ref()
            .filter(|made| Arc::ptr_eq(&made.catalogue, &catalogue))
        {
            return made.clone();
        }
        let documents = catalogue.skills().iter().map(document::of_skill);
        let index = Arc::new(Index::new(documents.enumerate()));
        made.insert(BuiltIndex { catalogue, index }).clone()
    }
}
