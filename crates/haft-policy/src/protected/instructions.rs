//! The files and folders that tell coding agents what to do, each with the agent that obeys it: text there outlives the run that wrote it.

use super::ProtectedName;

/// A file or folder of instructions.
struct InstructionRow {
    path: &'static str,
    is_folder: bool,
    /// The agent that reads it, and where that is documented.
    #[cfg_attr(not(test), expect(dead_code, reason = "for who reads the table"))]
    source: (&'static str, &'static str),
}

const fn folder(path: &'static str, agent: &'static str, source: &'static str) -> InstructionRow {
    InstructionRow {
        path,
        is_folder: true,
        source: (agent, source),
    }
}

const fn file(path: &'static str, agent: &'static str, source: &'static str) -> InstructionRow {
    InstructionRow {
        path,
        is_folder: false,
        source: (agent, source),
    }
}

/// The names besides those that are protected as a whole, such as `.claude`, `.cursor`, `.cursorrules`, `.junie`, `.kiro` and `.roo`.
/// Compared case-insensitively.
const ROWS: &[InstructionRow] = &[
    folder(
        ".agent",
        "Antigravity",
        "antigravity.google/docs: rules and workflows",
    ),
    folder(
        ".aiassistant",
        "JetBrains AI",
        "jetbrains.com/help/ai-assistant: project rules",
    ),
    folder(
        ".github/agents",
        "Copilot",
        "docs.github.com/copilot: custom agents",
    ),
    folder(
        ".github/chatmodes",
        "Copilot",
        "code.visualstudio.com/docs/copilot: chat modes",
    ),
    folder(
        ".github/instructions",
        "Copilot",
        "docs.github.com/copilot: path-specific instructions",
    ),
    folder(
        ".github/prompts",
        "Copilot",
        "code.visualstudio.com/docs/copilot: prompt files",
    ),
    folder(
        ".openhands",
        "OpenHands",
        "docs.openhands.dev: microagents, setup.sh",
    ),
    folder(
        ".qodo",
        "Qodo",
        "docs.qodo.ai: rules.yaml of the repository",
    ),
    folder(
        ".ruler",
        "Ruler",
        "github.com/intellectronica/ruler: written into the files of all agents",
    ),
    folder(
        ".vibe",
        "Mistral Vibe",
        "docs.mistral.ai: settings and prompts of the project",
    ),
    // A file, or a folder of files.
    folder(
        ".clinerules",
        "Cline",
        "docs.cline.bot/customization/cline-rules",
    ),
    file(
        ".augment-guidelines",
        "Augment",
        "docs.augmentcode.com: workspace guidelines",
    ),
    file(
        ".github/copilot-instructions.md",
        "Copilot",
        "docs.github.com/copilot: repository instructions",
    ),
    file(
        ".hermes.md",
        "Hermes Agent",
        "hermes-agent.nousresearch.com/docs/user-guide/features/context-files",
    ),
    file(
        ".idx/airules.md",
        "Firebase Studio",
        "firebase.google.com/docs/studio: AI rules",
    ),
    file(".roomodes", "Roo Code", "docs.roocode.com: custom modes"),
    file(
        ".roorules",
        "Roo Code",
        "docs.roocode.com: custom instructions",
    ),
    file(".rules", "Zed", "zed.dev/docs/ai/rules"),
    file(
        "AGENT.md",
        "Amp, Zed",
        "ampcode.com/manual; zed.dev/docs/ai/rules",
    ),
    file("AGENTS.md", "coding agents", "agents.md"),
    file(
        "AGENTS.local.md",
        "Roo Code",
        "docs.roocode.com: custom instructions",
    ),
    file(
        "AGENTS.override.md",
        "Codex",
        "developers.openai.com/codex/guides/agents-md",
    ),
    file("CLAUDE.md", "Claude Code", "code.claude.com/docs/en/memory"),
    file(
        "CLAUDE.local.md",
        "Claude Code",
        "code.claude.com/docs/en/memory",
    ),
    file(
        "CODEBUDDY.md",
        "CodeBuddy Code",
        "cloud.tencent.com/document/product/1831/137011: memory",
    ),
    file(
        "CODEBUDDY.local.md",
        "CodeBuddy Code",
        "cloud.tencent.com/document/product/1831/137011: memory",
    ),
    file(
        "CRUSH.md",
        "Crush",
        "github.com/charmbracelet/crush: initialisation",
    ),
    file(
        "firebender.json",
        "Firebender",
        "docs.firebender.com: rules",
    ),
    file(
        "GEMINI.md",
        "Gemini CLI",
        "geminicli.com/docs: context files",
    ),
    file(
        "HERMES.md",
        "Hermes Agent",
        "hermes-agent.nousresearch.com/docs/user-guide/features/context-files",
    ),
    file(
        "IFLOW.md",
        "iFlow CLI",
        "platform.iflow.cn/cli/configuration/iflow: memory",
    ),
    file(
        "QWEN.md",
        "Qwen Code",
        "qwenlm.github.io/qwen-code-docs: context files",
    ),
    file(
        "replit.md",
        "Replit Agent",
        "docs.replit.com/features/project-setup/replit-dot-md",
    ),
    file("WARP.md", "Warp", "docs.warp.dev: project rules"),
];

/// Endings of files of instructions, and how messages name them.
const ENDINGS: &[(&str, &str)] = &[
    // Copilot: agents, chat modes, instructions and prompts of any folder that settings name.
    (".instructions.md", "*.instructions.md"),
    (".chatmode.md", "*.chatmode.md"),
];

/// Beginnings of files of instructions, and how messages name them.
const BEGINNINGS: &[(&str, &str)] = &[
    // Roo Code and Cline: the rules of one mode, `.roorules-code`.
    (".roorules-", ".roorules-*"),
    (".clinerules-", ".clinerules-*"),
];

/// Folders of installed packages. What a package brings there tells an agent as much as its README does, and every installation would be
/// asked about.
const PACKAGES: [&str; 2] = ["node_modules", "site-packages"];

pub(super) fn all() -> impl Iterator<Item = ProtectedName> {
    ROWS.iter().map(|row| ProtectedName {
        path: row.path,
        is_folder: row.is_folder,
    })
}

/// Returns the name of instructions to agents at or above this path, or the one that writing the path would replace.
pub fn agent_instructions(path: &str) -> Option<&'static str> {
    changed(&haft_files::paths::segments(path))
}

/// Returns the same for a change by a command: not for what it installs as part of a package.
pub(super) fn changed_by_command(parts: &[&str]) -> Option<&'static str> {
    let found = changed(parts)?;
    let is_package = |part: &&str| PACKAGES.contains(part);
    (!parts.iter().any(is_package)).then_some(found)
}

fn changed(parts: &[&str]) -> Option<&'static str> {
    // Nearly no path has such a part, and of a large change set each path is looked at.
    let from = parts.iter().position(|part| may_begin(part))?;
    let rest = parts.get(from..).unwrap_or_default();
    let named = ROWS.iter().map(|row| row.path);
    let mut named = named.filter(|entry| (0..rest.len()).any(|at| leads_to(entry, &rest[at..])));
    named.next().or_else(|| by_pattern(parts.last()?))
}

/// Returns the pattern that a file's name matches.
fn by_pattern(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    let end = ENDINGS.iter().find(|(end, _)| name.ends_with(end));
    let mut begins = BEGINNINGS.iter();
    let found = end.or_else(|| begins.find(|(begin, _)| name.starts_with(begin)));
    found.map(|(_, shown)| *shown)
}

/// Whether a path that holds this part can be one of instructions: a quick check.
fn may_begin(part: &str) -> bool {
    let first = |entry: &str| {
        let first = entry.split('/').next().unwrap_or(entry);
        part.eq_ignore_ascii_case(first)
    };
    part.starts_with('.') || ROWS.iter().any(|row| first(row.path)) || by_pattern(part).is_some()
}

/// Compares up to the shorter of the two: a path that ends within an entry is a folder above it. `.github` alone is no change of
/// instructions, unless it is replaced as a whole.
fn leads_to(entry: &str, here: &[&str]) -> bool {
    here.iter()
        .zip(entry.split('/'))
        .all(|(a, b)| a.eq_ignore_ascii_case(b))
}

#[cfg(test)]
mod tests {
    use super::{ROWS, agent_instructions, changed_by_command};
    use crate::protected::protected;
    use haft_files::paths::segments;

    #[test]
    fn row_when_read_has_a_name_of_its_own_and_a_source() {
        for (nth, row) in ROWS.iter().enumerate() {
            let (agent, source) = row.source;
            assert!(!agent.is_empty() && !source.is_empty(), "{}", row.path);
            let mut others = ROWS.iter().skip(nth + 1);
            let same = others.find(|other| other.path.eq_ignore_ascii_case(row.path));
            assert!(same.is_none(), "{} twice", row.path);
            // A file tool may write it once a person agreed; of `.clinerules`, the hooks are protected.
            let is_protected = protected(row.path).is_some();
            assert_eq!(is_protected, row.path == ".clinerules", "{}", row.path);
        }
    }

    #[test]
    fn path_when_agents_obey_it_is_found_at_any_depth_and_in_any_case() {
        for (path, expect) in [
            ("AGENTS.md", Some("AGENTS.md")),
            ("agents.MD", Some("AGENTS.md")),
            ("a/b/CLAUDE.md", Some("CLAUDE.md")),
            ("CLAUDE.local.md", Some("CLAUDE.local.md")),
            ("sub/Gemini.md", Some("GEMINI.md")),
            ("src/iflow.md", Some("IFLOW.md")),
            ("CODEBUDDY.local.md", Some("CODEBUDDY.local.md")),
            (".Hermes.md", Some(".hermes.md")),
            ("replit.md", Some("replit.md")),
            (".qodo/rules.yaml", Some(".qodo")),
            (".clinerules", Some(".clinerules")),
            (".clinerules/a.md", Some(".clinerules")),
            (".clinerules-code", Some(".clinerules-*")),
            (
                ".github/copilot-instructions.md",
                Some(".github/copilot-instructions.md"),
            ),
            (
                ".GitHub/Instructions/x.instructions.md",
                Some(".github/instructions"),
            ),
            ("sub/x.instructions.md", Some("*.instructions.md")),
            // It holds such files, so that replacing or removing it is a change of them.
            (".github", Some(".github/agents")),
            (".github/workflows/ci.yml", None),
            (".idx/dev.nix", None),
            ("AGENTS.md.bak", None),
            ("sub/agents.rst", None),
            ("src/rules", None),
            ("claude.md/x", Some("CLAUDE.md")),
            ("README.md", None),
        ] {
            assert_eq!(agent_instructions(path), expect, "{path}");
        }
    }

    #[test]
    fn package_when_a_command_installs_it_may_bring_instructions() {
        let by_command = |path: &str| changed_by_command(&segments(path));
        assert_eq!(by_command("node_modules/x/AGENTS.md"), None);
        assert_eq!(
            by_command(".venv/lib/python3/site-packages/x/CLAUDE.md"),
            None
        );
        assert_eq!(by_command("packages/x/AGENTS.md"), Some("AGENTS.md"));
        assert!(agent_instructions("node_modules/x/AGENTS.md").is_some());
    }
}
