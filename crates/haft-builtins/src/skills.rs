//! Skills as tools: `list_skills`, `load_skill`, `invoke_skill`, and optionally each skill as a separate tool.

use std::path::Path;
use std::sync::{Arc, Weak};

use haft::context::CallContext;
use haft::error::ToolError;
use haft::skill::Skill;
use haft::skill::set::SkillSet;
use haft::spec::NameError;
use haft::tool::Tool;
use haft::toolset::registry::{BUILTIN, RegistryError, ToolRegistry};
use haft::workspace::Workspace;
use parking_lot::Mutex;

mod body;
mod content;
mod list;
mod load;
mod names;

pub use list::{ListSkillsData, SkillLine};
pub use load::{LoadSkillData, LoadSkillInput};

use crate::skills::list::ListSkills;
use crate::skills::load::LoadSkill;
use haft::text::clip;

/// The name of the bundle, and the category of its tools. No active skill excludes a tool of this bundle.
pub const SKILLS: &str = "skills";
/// Tools of this bundle that exist while there is a skill.
pub const SKILL_TOOLS: [&str; 3] = ["list_skills", "load_skill", "invoke_skill"];
/// The prefix of a skill's name as a separate tool.
pub const AS_TOOL: &str = "skill.";

/// Options for offering skills.
#[derive(Debug, Clone)]
pub struct SkillOptions {
    /// The workspace. Its root is `${CLAUDE_PROJECT_DIR}` in a skill's text. A skill whose folder contains a hidden path, or is
    /// in one, is not offered.
    pub workspace: Workspace,
    /// True to offer each skill as a separate tool too.
    pub as_tools: bool,
    /// Which of [`SKILL_TOOLS`] to offer.
    pub on: Vec<String>,
}

impl SkillOptions {
    /// Enables all of the tools, in this workspace.
    pub fn new(workspace: Workspace) -> Self {
        Self {
            workspace,
            as_tools: false,
            on: SKILL_TOOLS.map(str::to_owned).into(),
        }
    }
}

/// The tools for a set of skills. They follow changes to the skills, and there are none without a skill.
#[derive(Debug)]
pub struct SkillTools {
    shelf: Arc<SkillShelf>,
    registry: Arc<ToolRegistry>,
    /// The version of the catalogue that the tools were built from.
    made: Mutex<u64>,
}

impl SkillTools {
    /// Creates the tools for this set, from the current state of its folders.
    ///
    /// # Errors
    /// [`RegistryError`] if two tools of the set have the same name.
    pub fn new(set: Arc<SkillSet>, options: SkillOptions) -> Result<Arc<Self>, RegistryError> {
        let tools = Arc::new_cyclic(|tools: &Weak<Self>| Self {
            shelf: Arc::new(SkillShelf {
                set,
                options,
                tools: Weak::clone(tools),
            }),
            registry: Arc::new(ToolRegistry::new()),
            made: Mutex::new(0),
        });
        tools.refresh()?;
        Ok(tools)
    }

    /// Returns the registry of the tools.
    pub fn registry(&self) -> &Arc<ToolRegistry> {
        &self.registry
    }

    /// Returns the skills that are currently offered. Reads files and blocks meanwhile.
    pub fn skills(&self) -> Vec<Skill> {
        self.shelf.available(self.shelf.set.current().skills())
    }

    /// Checks whether a skill changed, and rebuilds the tools if one did. Reads files and blocks meanwhile.
    ///
    /// # Errors
    /// [`RegistryError`] if two tools of the set have the same name; the previous tools stay.
    pub fn refresh(&self) -> Result<(), RegistryError> {
        let mut made = self.made.lock();
        let catalogue = self.shelf.set.current();
        if *made != catalogue.version() {
            let tools = self.tools(&self.shelf.available(catalogue.skills()))?;
            self.registry.replace_all(BUILTIN, tools)?;
            *made = catalogue.version();
        }
        Ok(())
    }

    fn tools(&self, skills: &[Skill]) -> Result<Vec<Arc<dyn Tool>>, NameError> {
        let on = |name: &str| self.shelf.options.on.iter().any(|on| on == name);
        let for_models: Vec<&Skill> = skills
            .iter()
            .filter(|s| s.front().model_invocable)
            .collect();
        let for_people: Vec<&Skill> = skills.iter().filter(|s| s.front().user_invocable).collect();
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        if !for_models.is_empty() {
            if on("list_skills") {
                tools.push(ListSkills::tool(&self.shelf)?);
            }
            if on("load_skill") {
                tools.push(LoadSkill::load_skill_tool(&self.shelf, &for_models)?);
            }
        }
        if on("invoke_skill") && !for_people.is_empty() {
            tools.push(LoadSkill::invoke_skill_tool(&self.shelf)?);
        }
        if self.shelf.options.as_tools {
            for (name, skill) in names::tool_names(&for_models) {
                tools.push(LoadSkill::single_skill_tool(&self.shelf, &name, skill)?);
            }
        }
        Ok(tools)
    }
}

/// The skills, with what decides which are offered.
#[derive(Debug)]
pub(crate) struct SkillShelf {
    set: Arc<SkillSet>,
    options: SkillOptions,
    tools: Weak<SkillTools>,
}

impl SkillShelf {
    /// Returns the skills that are currently offered. Reads files and blocks meanwhile.
    fn skills(&self) -> Result<Vec<Skill>, ToolError> {
        if let Some(tools) = self.tools.upgrade() {
            let made = tools.refresh();
            made.map_err(|e| ToolError::unavailable(format!("offer the skills: {e}")))?;
        }
        Ok(self.available(self.set.current().skills()))
    }

    /// Returns the skills whose folders do not overlap with haft's own files.
    fn available(&self, skills: &[Skill]) -> Vec<Skill> {
        let free = |skill: &&Skill| !self.overlaps_own_files(skill.dir());
        skills.iter().filter(free).cloned().collect()
    }

    fn overlaps_own_files(&self, folder: &Path) -> bool {
        let own = self.options.workspace.hidden();
        own.iter()
            .any(|own| own.starts_with(folder) || folder.starts_with(own))
    }

    /// Returns the skill with this name, if this session sees it.
    fn find(&self, seen: &dyn Fn(&str) -> bool, name: &str) -> Result<Skill, ToolError> {
        let skills = self.skills()?;
        let found = skills.iter().find(|skill| skill.name() == name);
        found.filter(|_| seen(name)).cloned().ok_or_else(|| {
            let shown = clip(name, 64);
            ToolError::not_found(format!("no skill {shown:?}"))
                .with_advice("list_skills names the skills there are")
        })
    }
}

/// Returns a check whether the session of this call sees a skill; it can move to another thread.
fn visibility_check(context: &CallContext) -> impl Fn(&str) -> bool + Send + 'static {
    let context = context.clone();
    move |name| context.sees_skill(name)
}
