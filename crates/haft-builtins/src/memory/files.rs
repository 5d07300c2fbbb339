//! `memory`: the file interface of the memory, as used by models that were trained on `/memories`.

use haft::context::CallContext;
use haft::error::ToolError;
use haft::memory::MemoryScope;
use haft::permission::Permission;
use haft::result::ToolResult;
use haft::spec::{Annotations, ToolSpec};
use haft::tool::{Depth, Intent, TypedTool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::describe::builtin;
use crate::memory::files::path::MemoryPath;
use crate::memory::files::tree::MemoryTree;
use crate::memory::{Memory, remember, risk};

mod path;
mod text;
mod tree;

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemoryCommand {
    /// Show a file with line numbers, or a directory.
    View,
    /// Create a new file.
    Create,
    /// Replace a text that occurs once in a file.
    StrReplace,
    /// Insert a text after a line; line 0 is the beginning.
    Insert,
    /// Delete a file, or a directory and everything in it.
    Delete,
    /// Rename or move a file or a directory.
    Rename,
}

/// What `memory` takes: the command, and what that command needs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryInput {
    /// What to do.
    pub command: MemoryCommand,
    /// For all but rename: the file or directory, `/memories` or below.
    #[serde(default)]
    #[schemars(with = "String")]
    pub path: Option<String>,
    /// For view of a file: first and last line; -1 is the end.
    #[serde(default)]
    #[schemars(with = "Vec<i64>", length(min = 2, max = 2))]
    pub view_range: Option<Vec<i64>>,
    /// For create: the file's text. At most 16 KiB.
    #[serde(default)]
    #[schemars(with = "String")]
    pub file_text: Option<String>,
    /// For `str_replace`: the text to replace; it must occur once.
    #[serde(default)]
    #[schemars(with = "String")]
    pub old_str: Option<String>,
    /// For `str_replace`: the new text. Default: empty.
    #[serde(default)]
    #[schemars(with = "String")]
    pub new_str: Option<String>,
    /// For insert: the line after which to insert.
    #[serde(default)]
    #[schemars(with = "i64")]
    pub insert_line: Option<i64>,
    /// For insert: the text to insert.
    #[serde(default)]
    #[schemars(with = "String")]
    pub insert_text: Option<String>,
    /// For rename: the current path.
    #[serde(default)]
    #[schemars(with = "String")]
    pub old_path: Option<String>,
    /// For rename: the new path.
    #[serde(default)]
    #[schemars(with = "String")]
    pub new_path: Option<String>,
}

/// What `memory` gives besides the text.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MemoryData {
    /// What was done.
    pub command: MemoryCommand,
    /// The file or directory.
    pub path: String,
    /// For a change: candidate (the user decides; this run already sees it) or accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<&'static str>,
}

/// The tool `memory`; `AT_ONCE` is write mode `external`.
#[derive(Debug)]
pub(crate) struct MemoryFiles<const AT_ONCE: bool>(pub(crate) Memory);

impl<const AT_ONCE: bool> TypedTool for MemoryFiles<AT_ONCE> {
    const NAME: &'static str = "memory";
    const DESCRIPTION: &'static str = "Read and write files under /memories that outlive this run, one set per project. command: view, \
        create, str_replace, insert, delete or rename. view {path, view_range}; create {path, file_text}; \
        str_replace {path, old_str, new_str}; insert {path, insert_line, insert_text}; delete {path}; rename \
        {old_path, new_path}.";
    type Input = MemoryInput;

    fn describe(spec: ToolSpec) -> ToolSpec {
        let spec = builtin::<MemoryData>(spec, "memory");
        ToolSpec {
            risk: risk(AT_ONCE),
            annotations: Annotations {
                read_only_hint: Some(false),
                destructive_hint: Some(AT_ONCE),
                ..spec.annotations
            },
            ..spec
        }
    }

    fn intent(&self, input: &Self::Input, _: Depth) -> Result<Intent, ToolError> {
        Ok(match change::<AT_ONCE>(input) {
            Some(change) => Intent::of([change]),
            None => Intent::call_only(),
        })
    }

    async fn run(
        &self,
        input: Self::Input,
        context: &CallContext,
    ) -> Result<ToolResult, ToolError> {
        if let Some(change) = change::<AT_ONCE>(&input) {
            context.cleared(&change.effect)?;
        }
        let command = input.command;
        let mut tree = MemoryTree::load(&self.0, context).await?;
        let (path, reply) = command.run(&input, &mut tree)?;
        let state = tree.save(&self.0, context).await?;
        let data = MemoryData {
            command,
            path: path.to_string(),
            state: state.map(haft::memory::MemoryState::as_str),
        };
        let summary = match state {
            Some(haft::memory::MemoryState::Candidate) => {
                format!("{} (a person decides)", first_line(&reply))
            }
            _ => first_line(&reply).to_owned(),
        };
        ToolResult::text(reply)
            .with_summary(summary)
            .with_data_for_programs(&data)
    }
}

/// Returns the permission to change the files; `None` if the input only views them.
fn change<const AT_ONCE: bool>(input: &MemoryInput) -> Option<Permission> {
    let changes = !matches!(input.command, MemoryCommand::View);
    changes.then(|| remember(MemoryScope::Project, &input.text(), AT_ONCE))
}

impl MemoryInput {
    /// Returns the complete text of a change, for its digest.
    fn text(&self) -> String {
        let line = self.insert_line.map(|line| line.to_string());
        let parts = [
            &self.path,
            &self.file_text,
            &self.old_str,
            &self.new_str,
            &line,
            &self.insert_text,
            &self.old_path,
            &self.new_path,
        ];
        let parts = parts.map(|part| part.as_deref().unwrap_or_default());
        format!("{}\0{}", self.command.word(), parts.join("\0"))
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

impl MemoryCommand {
    /// Runs the command on the tree. Returns the path and the reference implementation's text for it.
    fn run(
        self,
        input: &MemoryInput,
        tree: &mut MemoryTree,
    ) -> Result<(MemoryPath, String), ToolError> {
        let text = |name: &str, value: &Option<String>| {
            let missing = || ToolError::invalid_arguments(format!("{} needs {name}", self.word()));
            value.clone().ok_or_else(missing)
        };
        if self == Self::Rename {
            let from = MemoryPath::parse(&text("old_path", &input.old_path)?)?;
            let to = MemoryPath::parse(&text("new_path", &input.new_path)?)?;
            let reply = tree.rename(&from, &to)?;
            return Ok((to, reply));
        }
        let path = MemoryPath::parse(&text("path", &input.path)?)?;
        let said = match self {
            Self::View => tree.view(&path, input.view_range.as_deref())?,
            Self::Create => tree.create(&path, &text("file_text", &input.file_text)?)?,
            Self::StrReplace => {
                let new = input.new_str.as_deref().unwrap_or_default();
                tree.replace(&path, &text("old_str", &input.old_str)?, new)?
            }
            Self::Insert => {
                let line = input.insert_line;
                let line =
                    line.ok_or_else(|| ToolError::invalid_arguments("insert needs insert_line"))?;
                tree.insert(&path, line, &text("insert_text", &input.insert_text)?)?
            }
            Self::Delete | Self::Rename => tree.delete(&path)?,
        };
        Ok((path, said))
    }

    fn word(self) -> &'static str {
        match self {
            Self::View => "view",
            Self::Create => "create",
            Self::StrReplace => "str_replace",
            Self::Insert => "insert",
            Self::Delete => "delete",
            Self::Rename => "rename",
        }
    }
}
