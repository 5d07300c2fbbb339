//! `load_skill`, `invoke_skill` and a skill as a tool: one loader that differs in who may call it and with which arguments.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use haft::arguments::Arguments;
use haft::call::Origin;
use haft::context::CallContext;
use haft::error::ToolError;
use haft::future::BoxFuture;
use haft::result::ToolResult;
use haft::session::{Activation, ActivationResult};
use haft::skill::{Skill, SkillResources};
use haft::spec::{Annotations, Exposure, NameError, ToolName, ToolSpec};
use haft::tool::{Depth, Intent, PreparedCall, Tool};
use haft::workspace::Workspace;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::describe::{builtin, known_as, stays_in_run};
use crate::skills::body::{PlaceholderValues, fill_placeholders, holds_commands};
use crate::skills::content::{named, wrap_skill};
use crate::skills::{SKILLS, SkillShelf, visibility_check};
use crate::work::blocking;

/// Maximum number of names in the schema's enum; for a larger set, only `list_skills` names them.
const MAX_NAMES: usize = 100;
/// Maximum size of the catalogue in the description, in bytes.
const MAX_CATALOGUE: usize = 16 * 1024;
/// Maximum length of a description in the catalogue, in characters.
const MAX_LINE: usize = 250;
/// Maximum size of a skill's file that is returned, in bytes.
const MAX_FILE: u64 = 1024 * 1024;

/// What the tools take together; each one's schema has what it uses.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LoadSkillInput {
    /// The skill's name.
    pub skill: String,
    /// A file of the skill's to read instead of loading it, as its resources name it.
    pub resource: Option<String>,
    /// What the user wrote after the skill's name.
    pub arguments: Option<String>,
}

/// What they give besides the text.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct LoadSkillData {
    /// The skill.
    pub name: String,
    /// Its folder.
    pub directory: String,
    /// Its other files, which `resource` reads.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// Rules that it asks for; they grant nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<String>,
    /// While it is active, only calls that match these rules may run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restricts_to: Option<Vec<String>>,
    /// While it is active, no call that matches these rules may run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub excludes: Vec<String>,
    /// The number of tokens of its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<usize>,
    /// Whether it was already active; its text was returned before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub already_active: bool,
    /// Skills that were deactivated, with their limits, to stay within the token budget.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evicted: Vec<String>,
}

/// Who may call the tool, and for which skill.
#[derive(Debug)]
enum LoaderKind {
    /// `load_skill`: any skill that models may load.
    Any,
    /// `invoke_skill`: any skill that users may choose; not for a model.
    User,
    /// A separate tool for this skill.
    Single(String),
}

/// One of the tools that load a skill.
#[derive(Debug)]
pub(super) struct LoadSkill {
    spec: Arc<ToolSpec>,
    shelf: Arc<SkillShelf>,
    way: LoaderKind,
}

impl LoadSkill {
    /// Creates `load_skill`.
    pub(super) fn load_skill_tool(
        shelf: &Arc<SkillShelf>,
        skills: &[&Skill],
    ) -> Result<Arc<dyn Tool>, NameError> {
        let description = format!(
            "Load a skill: instructions for a kind of work, and the files that go with it. Load it before you do what its \
             description names. With `resource`, read one of the skill's files instead. While a skill is active, its limits \
             hold for every call.{}",
            catalogue(skills)
        );
        let schema = json!({
            "type": "object",
            "properties": {
                "skill": name_schema(skills),
                "resource": {"type": "string", "description": "A file of the skill's to read instead of loading it, as its resources name it: references/forms.md."}
            },
            "required": ["skill"],
            "additionalProperties": false
        });
        let spec = spec("load_skill", &description, schema)?;
        let spec = known_as(spec, &["skill", "activate_skill", "use_skill"]);
        Ok(Self::to_tool(spec, shelf, LoaderKind::Any))
    }

    /// Creates `invoke_skill`, which is callable but never listed.
    ///
    /// Its schema names no skills, because arguments are validated before the caller is known.
    pub(super) fn invoke_skill_tool(shelf: &Arc<SkillShelf>) -> Result<Arc<dyn Tool>, NameError> {
        let description = "Load a skill that the user chose, with what the user wrote after its name. Not for models.";
        let schema = json!({
            "type": "object",
            "properties": {"skill": {"type": "string"}, "arguments": {"type": "string"}},
            "required": ["skill"],
            "additionalProperties": false
        });
        let spec = ToolSpec {
            exposure: Exposure::Unlisted,
            ..spec("invoke_skill", description, schema)?
        };
        Ok(Self::to_tool(spec, shelf, LoaderKind::User))
    }

    /// Creates the tool of a single skill.
    pub(super) fn single_skill_tool(
        shelf: &Arc<SkillShelf>,
        name: &str,
        skill: &Skill,
    ) -> Result<Arc<dyn Tool>, NameError> {
        let schema = json!({
            "type": "object",
            "properties": {
                "arguments": {"type": "string", "description": skill.front().argument_hint.as_deref().unwrap_or("What the skill is to be used on.")}
            },
            "additionalProperties": false
        });
        let spec = ToolSpec {
            title: Some(skill.name().to_owned()),
            tags: skill.front().tags.clone(),
            aliases: skill.front().aliases.clone(),
            ..spec(name, skill.description(), schema)?
        };
        Ok(Self::to_tool(
            spec,
            shelf,
            LoaderKind::Single(skill.name().to_owned()),
        ))
    }

    fn to_tool(spec: ToolSpec, shelf: &Arc<SkillShelf>, way: LoaderKind) -> Arc<dyn Tool> {
        Arc::new(Self {
            spec: Arc::new(spec),
            shelf: Arc::clone(shelf),
            way,
        })
    }

    async fn run(
        &self,
        input: LoadSkillInput,
        context: &CallContext,
    ) -> Result<ToolResult, ToolError> {
        let by_person = matches!(context.origin(), Origin::Host | Origin::Prompt);
        if matches!(self.way, LoaderKind::User) && !by_person {
            return Err(ToolError::denied("only users choose a skill this way")
                .with_advice("load_skill loads the skills that models may load"));
        }
        let name = match &self.way {
            LoaderKind::Single(name) => name.clone(),
            LoaderKind::Any | LoaderKind::User => input.skill.clone(),
        };
        let (shelf, seen) = (Arc::clone(&self.shelf), visibility_check(context));
        let for_person = matches!(self.way, LoaderKind::User);
        let resource = input.resource.clone();
        let read = blocking(move |_| {
            let skill = shelf.find(&seen, &name)?;
            check_open(&skill, for_person)?;
            match resource {
                Some(path) => Ok(SkillContent::File(Box::new(file(&skill, &path)?))),
                None => Ok(SkillContent::Whole(WholeSkill {
                    text: skill.instructions()?,
                    files: skill.resources()?,
                    skill,
                })),
            }
        })
        .await?;
        match read {
            SkillContent::File(result) => Ok(*result),
            SkillContent::Whole(whole) => self.load(&whole, &input, context),
        }
    }

    /// Activates the skill and returns its text.
    fn load(
        &self,
        whole: &WholeSkill,
        input: &LoadSkillInput,
        context: &CallContext,
    ) -> Result<ToolResult, ToolError> {
        let WholeSkill { skill, text, files } = whole;
        let active = context.activate(&Activation {
            name: skill.name(),
            body: text,
            folder: Some(skill.dir()),
            restricts_to: skill.restricts_to(),
            excludes: skill.excludes(),
        });
        // The user's arguments are new for each call, so the text is returned again.
        let arguments = match &self.way {
            LoaderKind::User => Some(input.arguments.as_deref().unwrap_or_default()),
            LoaderKind::Any | LoaderKind::Single(_) => input.arguments.as_deref(),
        };
        let data = LoadSkillData {
            name: skill.name().to_owned(),
            directory: skill.dir().to_string_lossy().into_owned(),
            resources: named(files),
            requests: skill.requests().to_vec(),
            restricts_to: skill.restricts_to().map(<[String]>::to_vec),
            excludes: skill.excludes().to_vec(),
            tokens: Some(active.tokens),
            already_active: active.already,
            evicted: active.evicted.clone(),
        };
        if active.already && arguments.is_none() {
            let message = format!(
                "The skill {} is active already; its text was given before and has not changed.",
                skill.name()
            );
            return ToolResult::text(message).with_data_for_programs(&data);
        }
        let body = fill_placeholders(
            text,
            &PlaceholderValues {
                folder: &skill.dir().to_string_lossy(),
                workspace: &self.shelf.options.workspace.root().to_string_lossy(),
                run: context.run().as_str(),
                arguments,
                names: &skill.front().arguments,
            },
        );
        let notes = notes(skill, text, &active, files);
        let summary = format!("skill {} ({} tokens)", skill.name(), active.tokens);
        let whole = ToolResult::text(wrap_skill(skill, &body, files, &notes));
        Ok(whole.with_data_for_programs(&data)?.with_summary(summary))
    }
}

/// What was read on the blocking thread.
enum SkillContent {
    File(Box<ToolResult>),
    Whole(WholeSkill),
}

/// A skill with its text and the names of its files.
struct WholeSkill {
    skill: Skill,
    text: String,
    files: SkillResources,
}

impl Tool for LoadSkill {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn workspace(&self) -> Option<&Workspace> {
        None
    }

    fn prepare(self: Arc<Self>, arguments: &Arguments) -> Result<Box<dyn PreparedCall>, ToolError> {
        Ok(Box::new(LoadSkillCall {
            input: arguments.parse()?,
            tool: self,
        }))
    }
}

/// A call of one of these tools.
struct LoadSkillCall {
    tool: Arc<LoadSkill>,
    input: LoadSkillInput,
}

impl PreparedCall for LoadSkillCall {
    fn intent(&self, _: Depth) -> Result<Intent, ToolError> {
        Ok(Intent::call_only())
    }

    fn run(self: Box<Self>, context: &CallContext) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        Box::pin(async move { self.tool.run(self.input, context).await })
    }
}

fn spec(name: &str, description: &str, schema: Value) -> Result<ToolSpec, NameError> {
    let spec = ToolSpec::new(ToolName::new(name)?, description, schema);
    let spec = stays_in_run(builtin::<LoadSkillData>(spec, SKILLS));
    Ok(ToolSpec {
        idempotent: true,
        annotations: Annotations {
            read_only_hint: Some(true),
            idempotent_hint: Some(true),
            ..spec.annotations
        },
        ..spec
    })
}

/// Returns the schema of the argument that names a skill: an enum if the list is short.
fn name_schema(skills: &[&Skill]) -> Value {
    let names: Vec<&str> = skills.iter().map(|skill| skill.name()).collect();
    if names.len() > MAX_NAMES {
        return json!({"type": "string", "description": "The skill's name; list_skills names them all."});
    }
    json!({"type": "string", "enum": names, "description": "The skill's name."})
}

/// Returns names and descriptions for a model that sees nothing else about the skills.
fn catalogue(skills: &[&Skill]) -> String {
    let mut out = String::from("\nSkills:");
    for (index, skill) in skills.iter().enumerate() {
        let words = skill
            .description()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        let mut line: String = words.chars().take(MAX_LINE).collect();
        if line.len() < words.len() {
            line.push('…');
        }
        if out.len() + line.len() + skill.name().len() > MAX_CATALOGUE {
            let _ = write!(
                out,
                "\n{} more: list_skills names them.",
                skills.len() - index
            );
            break;
        }
        let _ = write!(out, "\n- {}: {line}", skill.name());
    }
    out
}

fn check_open(skill: &Skill, for_person: bool) -> Result<(), ToolError> {
    let front = skill.front();
    let name = skill.name();
    if for_person && !front.user_invocable {
        return Err(
            ToolError::denied(format!("only models may load the skill {name}"))
                .with_advice("load_skill loads it"),
        );
    }
    if !for_person && !front.model_invocable {
        return Err(
            ToolError::denied(format!("only users may choose the skill {name}")).for_operator(
                "choose it as a prompt of the MCP server, or with `haft call invoke_skill`",
            ),
        );
    }
    Ok(())
}

/// Reads one of the skill's files, if it is text.
fn file(skill: &Skill, path: &str) -> Result<ToolResult, ToolError> {
    let slice = skill.read_resource(path, 0..MAX_FILE)?;
    let shown = skill.dir().join(path);
    let place = shown.to_string_lossy();
    if slice.total > MAX_FILE {
        let message = format!("{path:?} has {} bytes, over {MAX_FILE}", slice.total);
        return Err(ToolError::failed(message).with_advice(format!(
            "while the skill is active, a command may read {place}"
        )));
    }
    let text = String::from_utf8(slice.bytes)
        .ok()
        .filter(|text| !text.contains('\0'));
    let Some(text) = text else {
        return Err(
            ToolError::failed(format!("{path:?} is not text")).with_advice(format!(
                "while the skill is active, a command may read {place}"
            )),
        );
    };
    let data = LoadSkillData {
        name: skill.name().to_owned(),
        directory: skill.dir().to_string_lossy().into_owned(),
        resources: vec![path.to_owned()],
        ..LoadSkillData::default()
    };
    let name = Path::new(path)
        .file_name()
        .unwrap_or_default()
        .to_string_lossy();
    let summary = format!("{name} of the skill {}", skill.name());
    Ok(ToolResult::text(text)
        .with_data_for_programs(&data)?
        .with_summary(summary))
}

/// Returns the notes that accompany the text.
fn notes(
    skill: &Skill,
    text: &str,
    active: &ActivationResult,
    files: &SkillResources,
) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(only) = skill.restricts_to() {
        notes.push(match only {
            [] => "while this skill is active, only the tools that find, load and keep lists work"
                .to_owned(),
            only => format!(
                "while this skill is active only these work: {}",
                only.join(", ")
            ),
        });
    }
    if !skill.excludes().is_empty() {
        notes.push(format!(
            "while this skill is active these do not work: {}",
            skill.excludes().join(", ")
        ));
    }
    if !skill.requests().is_empty() {
        notes.push(format!(
            "the skill asks for {}; asking grants nothing, the policy decides on each call",
            skill.requests().join(", ")
        ));
    }
    if !active.unread.is_empty() {
        notes.push(format!(
            "these of its limits cannot be read and allow nothing: {}",
            active.unread.join(", ")
        ));
    }
    if holds_commands(text) {
        notes.push("commands written as !`…` in it were not run and appear as text".to_owned());
    }
    if !active.evicted.is_empty() {
        notes.push(format!(
            "no longer active, with their limits, to stay within the token budget: {}",
            active.evicted.join(", ")
        ));
    }
    notes.extend(files.problems.iter().take(5).map(ToString::to_string));
    notes
}
