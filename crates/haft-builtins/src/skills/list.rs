//! `list_skills`: lists the skills, one line each.

use std::sync::Arc;

use haft::context::CallContext;
use haft::error::ToolError;
use haft::plural::counted;
use haft::result::ToolResult;
use haft::spec::{NameError, ToolSpec};
use haft::tool::{Depth, Intent, Tool, TypedTool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::describe::{builtin, known_as, read_only, stays_in_run};
use crate::skills::{SKILLS, SkillShelf, visibility_check};
use crate::work::blocking;

/// What `list_skills` takes: nothing.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListSkillsInput {}

/// A skill in a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SkillLine {
    /// Its name, for `load_skill`.
    pub name: String,
    /// What it is for and when to use it.
    pub description: String,
    /// Whether it is active in this run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub active: bool,
}

/// What `list_skills` gives.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ListSkillsData {
    /// The skills that may be loaded.
    pub skills: Vec<SkillLine>,
}

/// The tool `list_skills`.
#[derive(Debug)]
pub(super) struct ListSkills(Arc<SkillShelf>);

impl ListSkills {
    pub(super) fn tool(shelf: &Arc<SkillShelf>) -> Result<Arc<dyn Tool>, NameError> {
        Self(Arc::clone(shelf)).into_tool()
    }
}

impl TypedTool for ListSkills {
    const NAME: &'static str = "list_skills";
    const DESCRIPTION: &'static str = "List the skills: packages of instructions for kinds of work. Load one with load_skill before you do \
        what its description names.";
    type Input = ListSkillsInput;

    fn describe(spec: ToolSpec) -> ToolSpec {
        let spec = read_only(stays_in_run(builtin::<ListSkillsData>(spec, SKILLS)));
        known_as(spec, &["skills", "available_skills"])
    }

    fn intent(&self, _: &Self::Input, _: Depth) -> Result<Intent, ToolError> {
        Ok(Intent::call_only())
    }

    async fn run(&self, _: Self::Input, context: &CallContext) -> Result<ToolResult, ToolError> {
        let (shelf, seen) = (Arc::clone(&self.0), visibility_check(context));
        let active = context.active_skills();
        let skills = blocking(move |_| {
            let shown = |skill: &haft::skill::Skill| {
                let is_active = active.iter().any(|one| one.name() == skill.name());
                SkillLine {
                    name: skill.name().to_owned(),
                    description: skill.description().to_owned(),
                    active: is_active,
                }
            };
            let skills = shelf.skills()?;
            let open = skills
                .iter()
                .filter(|skill| skill.front().model_invocable && seen(skill.name()));
            Ok(open.map(shown).collect::<Vec<_>>())
        })
        .await?;
        let summary = counted(skills.len(), "skill");
        Ok(ToolResult::data(&ListSkillsData { skills })?.with_summary(summary))
    }
}
