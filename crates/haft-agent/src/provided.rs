//! Provider-defined tools that haft runs: maps a call of one to haft's own calls, and their outcomes to the provider's item.
//!
//! Nothing here runs anything: each step is a call of the executor, judged by what it does.

use haft::Outcome;
use haft_wire::{Call, CallKind, Dialect, ToolDeclaration};
use serde_json::value::RawValue;
use serde_json::{Value, json};

mod computer;
mod editor;
mod patch;
mod shell;
mod step;

pub(crate) use computer::{BATCH_FAILED, pending_checks};
pub(crate) use step::{Next, ToolStep};

/// A provider-defined tool that haft runs with its own tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProviderTool {
    /// Responses: `apply_patch`, by haft's `apply_patch`.
    ApplyPatch,
    /// Responses: `shell`, by `run_command`, one call per command.
    Shell,
    /// Responses: `local_shell`, by `run_command`.
    LocalShell,
    /// Responses: `computer`, by a tool `computer` of the host.
    Computer,
    /// Anthropic: `bash`, by `run_command`.
    Bash,
    /// Anthropic: `str_replace_based_edit_tool`, by `read_file`, `list_files`, `edit_file` and `write_file`.
    TextEditor,
    /// Anthropic: `memory`, by haft's `memory`.
    Memory,
    /// Anthropic: the computer toolset, by a tool `computer` of the host.
    ComputerToolset,
    /// Anthropic: the browser toolset, by a tool `browser` of the host.
    BrowserToolset,
}

impl ProviderTool {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::ApplyPatch,
        Self::Shell,
        Self::LocalShell,
        Self::Computer,
        Self::Bash,
        Self::TextEditor,
        Self::Memory,
        Self::ComputerToolset,
        Self::BrowserToolset,
    ];

    /// Returns its name in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ApplyPatch => "apply_patch",
            Self::Shell => "shell",
            Self::LocalShell => "local_shell",
            Self::Computer => "computer",
            Self::Bash => "bash",
            Self::TextEditor => "text_editor",
            Self::Memory => "memory",
            Self::ComputerToolset => "computer_toolset",
            Self::BrowserToolset => "browser_toolset",
        }
    }

    /// Returns the dialect that has it.
    pub fn dialect(self) -> Dialect {
        match self {
            Self::ApplyPatch | Self::Shell | Self::LocalShell | Self::Computer => {
                Dialect::OpenAiResponses
            }
            Self::Bash
            | Self::TextEditor
            | Self::Memory
            | Self::ComputerToolset
            | Self::BrowserToolset => Dialect::Anthropic,
        }
    }

    /// Returns its declaration; `None` if JSON cannot be written.
    pub(crate) fn declared(self) -> Option<ToolDeclaration> {
        let spec = match self {
            Self::ApplyPatch => json!({"type": "apply_patch"}),
            Self::Shell => json!({"type": "shell", "environment": {"type": "local"}}),
            Self::LocalShell => json!({"type": "local_shell"}),
            Self::Computer => json!({"type": "computer"}),
            Self::Bash => json!({"type": "bash_20250124", "name": "bash"}),
            Self::TextEditor => {
                json!({"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"})
            }
            Self::Memory => json!({"type": "memory_20250818", "name": "memory"}),
            Self::ComputerToolset => json!({"type": "computer_toolset_20260801"}),
            Self::BrowserToolset => json!({"type": "browser_toolset_20260801"}),
        };
        Some(ToolDeclaration::Provider {
            dialect: self.dialect(),
            spec: RawValue::from_string(spec.to_string()).ok()?,
        })
    }

    /// Returns the tool of haft or of the host that it needs.
    pub(crate) fn needs(self) -> &'static str {
        match self {
            Self::ApplyPatch => "apply_patch",
            Self::Shell | Self::LocalShell | Self::Bash => "run_command",
            Self::TextEditor => "edit_file",
            Self::Memory => "memory",
            Self::Computer | Self::ComputerToolset => "computer",
            Self::BrowserToolset => "browser",
        }
    }

    /// Returns which of these tools a call is for.
    pub(crate) fn of(call: &Call, among: &[Self]) -> Option<Self> {
        let is = |provided: &&Self| match (&call.kind, provided) {
            (CallKind::Provider(kind), Self::ApplyPatch) => kind == "apply_patch_call",
            (CallKind::Provider(kind), Self::Shell) => kind == "shell_call",
            (CallKind::Provider(kind), Self::LocalShell) => kind == "local_shell_call",
            (CallKind::Provider(kind), Self::Computer) => kind == "computer_call",
            (CallKind::Function, Self::ComputerToolset) => {
                call.toolset.as_deref() == Some("computer")
            }
            (CallKind::Function, Self::BrowserToolset) => {
                call.toolset.as_deref() == Some("browser")
            }
            (CallKind::Function, _) if call.toolset.is_some() => false,
            (CallKind::Function, Self::Bash) => call.name == "bash",
            (CallKind::Function, Self::TextEditor) => call.name == "str_replace_based_edit_tool",
            (CallKind::Function, Self::Memory) => call.name == "memory",
            _ => false,
        };
        among.iter().find(is).copied()
    }

    /// Returns what to do next for a call, after these steps.
    pub(crate) fn next(self, call: &Call, done: &[Outcome]) -> Next {
        let Ok(input) = serde_json::from_str::<Value>(&call.arguments) else {
            return Next::failed("invalid_arguments: the call's arguments are not JSON");
        };
        match self {
            Self::ApplyPatch => patch::next(&input, done),
            Self::Shell => shell::shell(&input, done),
            Self::LocalShell => shell::local_shell(&input, done),
            Self::Bash => shell::bash(&input, done),
            Self::TextEditor => editor::next(&input, done),
            Self::Memory => step::one(done, || ToolStep::new("memory", input.clone())),
            Self::Computer => computer::computer(&input, done),
            Self::ComputerToolset | Self::BrowserToolset => {
                computer::member(self.needs(), &call.name, &input, done)
            }
        }
    }
}

/// Returns the item that reports a provider's call as failed; `None` for calls that are answered with text.
pub(crate) fn failed_item(call: &Call, text: &str) -> Option<String> {
    let CallKind::Provider(kind) = &call.kind else {
        return None;
    };
    let id = call.id.as_str();
    Some(match kind.as_str() {
        "apply_patch_call" => patch::item(id, Some(text)),
        "shell_call" => shell::shell_item(id, &Value::Null, &[shell::failure(text)]),
        "local_shell_call" => shell::local_item(call.item.as_deref().unwrap_or(id), text),
        "computer_call" => computer::failed_item(id),
        _ => return None,
    })
}
