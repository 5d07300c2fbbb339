//! `tool_search`: finds tools and skills by a few words, lists a category's tools, or lists the categories.

use std::fmt::Write as _;
use std::sync::Arc;

use haft::context::CallContext;
use haft::error::ToolError;
use haft::plural::counted;
use haft::result::ToolResult;
use haft::skill::Skill;
use haft::spec::{Exposure, ToolSpec};
use haft::tool::{Depth, Intent, TypedTool};
use haft::toolset::search::{SearchHit, category_of};
use haft::toolset::{ToolEntry, ToolsetSnapshot};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::describe::{builtin, known_as, read_only};
use crate::discover::DiscoverOptions;
use crate::discover::meaning::SemanticSearch;
use crate::discover::skills::SkillFinder;

/// The tool that loads the skills found.
const LOAD_SKILL: &str = "load_skill";
/// Default number of tools returned.
const DEFAULT_LIMIT: usize = 8;
/// Maximum length of a description in a list, in bytes.
const MAX_DESCRIPTION: usize = 300;
/// Maximum size of all schemas in one result, in bytes.
const MAX_SCHEMAS: usize = 32 * 1024;

/// The description of `tool_search` when it is one of the few tools listed.
pub const FINDS_LAZILY: &str = "Find tools and skills for a task before you say that there are none: give a few words as query, or a \
    category. With neither, lists the categories. Call what it finds with call_tool; describe_tools, or format=schema here, gives \
    input schemas.";

/// How much is told of a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolDetail {
    /// A line each.
    #[default]
    Text,
    /// The whole description and input schema of each.
    Schema,
}

/// What `tool_search` takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolSearchInput {
    /// The task in a few words, or a tool's name. Without it: the category's tools, or all categories.
    #[serde(default)]
    #[schemars(with = "String", length(max = 2_000))]
    pub query: Option<String>,
    /// Only tools of this category.
    #[serde(default)]
    #[schemars(with = "String", length(max = 128))]
    pub category: Option<String>,
    /// The most tools to return.
    #[serde(default = "limit")]
    #[schemars(range(min = 1, max = 100))]
    pub limit: usize,
    /// One line for each, or the whole input schema.
    #[serde(default)]
    pub format: ToolDetail,
}

fn limit() -> usize {
    DEFAULT_LIMIT
}

/// A tool that was found.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FoundTool {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Its category.
    pub category: String,
    /// It must be expanded with `tool_expand_tools` before it can be called.
    pub deferred: bool,
    /// Relevance; comparable within one answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f32>,
    /// The schema of its arguments, with `format` = `schema`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Arc<Value>>,
}

/// A skill that was found.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FoundSkill {
    /// Its name, for `load_skill`.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Relevance; comparable among skills.
    pub score: f32,
}

/// A category.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CategoryCount {
    /// Its name.
    pub category: String,
    /// How many tools it has.
    pub tools: usize,
}

/// What `tool_search` gives.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct ToolSearchData {
    /// The tools, best first; a category's in the order of their names.
    pub tools: Vec<FoundTool>,
    /// The skills, best first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<FoundSkill>,
    /// The categories, if neither query nor category was given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<CategoryCount>,
    /// How many tools the category has, if it was listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<usize>,
}

/// The tool `tool_search`.
#[derive(Debug)]
pub struct ToolSearch {
    skills: Option<SkillFinder>,
    meaning: Option<Arc<SemanticSearch>>,
}

impl ToolSearch {
    /// Creates a search with these options.
    pub fn new(options: &DiscoverOptions) -> Self {
        Self {
            skills: options.skills.clone().map(SkillFinder::new),
            meaning: options.embedder.clone().map(SemanticSearch::new),
        }
    }
}

impl TypedTool for ToolSearch {
    const NAME: &'static str = "tool_search";
    const DESCRIPTION: &'static str = "Find tools and skills for a task: give a few words as query, or a category. With neither, lists the \
        categories. format=schema returns whole input schemas. Expand deferred tools with tool_expand_tools \
        before you call them.";
    type Input = ToolSearchInput;

    fn describe(spec: ToolSpec) -> ToolSpec {
        let spec = read_only(builtin::<ToolSearchData>(spec, "discover"));
        known_as(spec, &["find_tool", "list_tools", "capability_search"])
    }

    fn intent(&self, _: &Self::Input, _: Depth) -> Result<Intent, ToolError> {
        Ok(Intent::call_only())
    }

    async fn run(
        &self,
        input: Self::Input,
        context: &CallContext,
    ) -> Result<ToolResult, ToolError> {
        let tools = context.tools();
        let query = input.query.as_deref().map(str::trim).unwrap_or_default();
        let category = input.category.as_deref().map(str::trim);
        let category = category.filter(|category| !category.is_empty());
        if let Some(category) = category {
            known(&tools, category)?;
        }
        let mut notice = None;
        let data = match (query, category) {
            ("", None) => categories(&tools),
            ("", Some(category)) => browse(&tools, category, &input),
            (query, category) => {
                let wanted = ToolQuery { query, category };
                let (data, message) = self.search(&tools, wanted, &input, context).await;
                notice = message;
                data
            }
        };
        let summary = summary(&data);
        let text = render(&data, notice.as_deref());
        let result = ToolResult::text(text).with_data_for_programs(&data)?;
        Ok(result.with_summary(summary))
    }
}

/// The query and category of a search.
struct ToolQuery<'a> {
    query: &'a str,
    category: Option<&'a str>,
}

impl ToolSearch {
    async fn search(
        &self,
        tools: &Arc<ToolsetSnapshot>,
        wanted: ToolQuery<'_>,
        input: &ToolSearchInput,
        context: &CallContext,
    ) -> (ToolSearchData, Option<String>) {
        let ToolQuery { query, category } = wanted;
        let (found, notice) = match &self.meaning {
            None => (tools.search(query, category, input.limit), None),
            Some(meaning) => {
                let ranked = meaning.search(tools, query, category, input.limit).await;
                (ranked.found, ranked.notice)
            }
        };
        let scored = found
            .into_iter()
            .map(|SearchHit { entry, score }| (&**entry, Some(score)));
        let mut data = ToolSearchData {
            tools: list_tools(scored, input.format),
            ..ToolSearchData::default()
        };
        // Skills are useful only to callers that can load them.
        let loads = category.is_none() && tools.entry(LOAD_SKILL).is_some();
        if let Some(skills) = self.skills.as_ref().filter(|_| loads) {
            let sees = |skill: &Skill| context.sees_skill(skill.name());
            let found = skills.search(query, input.limit, sees).into_iter();
            data.skills = found
                .map(|(skill, score)| FoundSkill {
                    name: skill.name().to_owned(),
                    description: clipped(skill.description()),
                    score,
                })
                .collect();
        }
        (data, notice)
    }
}

/// Fails for a category that no tool has, and lists the existing ones.
fn known(tools: &ToolsetSnapshot, category: &str) -> Result<(), ToolError> {
    let categories = tools.categories();
    if categories.contains_key(category) {
        return Ok(());
    }
    let names: Vec<&str> = categories.into_keys().take(50).collect();
    let message = format!("no category {category:?}");
    Err(ToolError::not_found(message)
        .with_advice(format!("the categories are {}", names.join(", "))))
}

fn categories(tools: &ToolsetSnapshot) -> ToolSearchData {
    let counts = tools.categories().into_iter();
    let counts = counts.map(|(category, tools)| CategoryCount {
        category: category.to_owned(),
        tools,
    });
    ToolSearchData {
        categories: counts.collect(),
        ..ToolSearchData::default()
    }
}

fn browse(tools: &ToolsetSnapshot, category: &str, input: &ToolSearchInput) -> ToolSearchData {
    let of = tools
        .findable()
        .filter(|entry| category_of(entry) == category);
    let first = of
        .clone()
        .take(input.limit)
        .map(|entry| (&**entry, None::<f32>));
    ToolSearchData {
        tools: list_tools(first, input.format),
        total: Some(of.count()),
        ..ToolSearchData::default()
    }
}

fn list_tools<'a>(
    found: impl Iterator<Item = (&'a ToolEntry, Option<f32>)>,
    format: ToolDetail,
) -> Vec<FoundTool> {
    let mut room = MAX_SCHEMAS;
    let tool = |(entry, score): (&ToolEntry, Option<f32>)| {
        let spec = entry.spec();
        let schema = (format == ToolDetail::Schema).then(|| Arc::clone(&spec.input_schema));
        // The first schema that does not fit ends the list, because later tools fit the query less well.
        let schema = schema.filter(|schema| {
            let bytes = schema.to_string().len() + spec.description.len();
            room = room.saturating_sub(bytes);
            room > 0
        });
        FoundTool {
            name: spec.name.to_string(),
            description: match schema {
                Some(_) => spec.description.clone(),
                None => clipped(&spec.description),
            },
            category: category_of(entry).to_owned(),
            deferred: spec.exposure == Exposure::Deferred,
            score,
            input_schema: schema,
        }
    };
    found.map(tool).collect()
}

/// Shortens a description to its first paragraph, at a length for lists.
fn clipped(text: &str) -> String {
    let text = text.trim();
    let first = text.split("\n\n").next().unwrap_or_default();
    let end = first.floor_char_boundary(MAX_DESCRIPTION);
    let cut = first.get(..end).unwrap_or_default();
    let mut line = cut.split_whitespace().collect::<Vec<_>>().join(" ");
    if cut.len() < text.len() {
        line.push('…');
    }
    line
}

fn summary(data: &ToolSearchData) -> String {
    if !data.categories.is_empty() {
        return counted(data.categories.len(), "category");
    }
    match data.skills.len() {
        0 => counted(data.tools.len(), "tool"),
        skills => {
            let tools = counted(data.tools.len(), "tool");
            format!("{tools}, {}", counted(skills, "skill"))
        }
    }
}

fn render(data: &ToolSearchData, notice: Option<&str>) -> String {
    let mut text = String::new();
    for count in &data.categories {
        let tools = counted(count.tools, "tool");
        let _ = writeln!(text, "{} ({tools})", count.category);
    }
    for tool in &data.tools {
        let deferred = if tool.deferred { " (deferred)" } else { "" };
        let _ = writeln!(text, "{}{deferred}: {}", tool.name, tool.description);
        if let Some(schema) = &tool.input_schema {
            let _ = writeln!(text, "  input_schema: {schema}");
        }
    }
    for skill in &data.skills {
        let _ = writeln!(text, "skill {}: {}", skill.name, skill.description);
    }
    if text.is_empty() {
        text.push_str(
            "nothing found; try other words, or omit query and category to list the categories\n",
        );
    }
    if let Some(total) = data.total.filter(|total| *total > data.tools.len()) {
        let shown = data.tools.len();
        let _ = writeln!(text, "{shown} of {total}: a higher limit shows more");
    }
    let deferred: Vec<&str> = data
        .tools
        .iter()
        .filter(|tool| tool.deferred)
        .map(|tool| tool.name.as_str())
        .collect();
    if !deferred.is_empty() {
        let names = serde_json::json!({ "tool_names": deferred });
        let _ = writeln!(
            text,
            "call tool_expand_tools before a deferred one, for example with {names}"
        );
    }
    if !data.skills.is_empty() {
        text.push_str("load_skill loads a skill\n");
    }
    if let Some(notice) = notice {
        let _ = writeln!(text, "note: {notice}");
    }
    text
}
