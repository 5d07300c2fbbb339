//! The protected names, each with the program that runs or obeys what lies there, and the source of that.

/// What a protected name is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProtectedKind {
    /// A folder, with everything in it.
    Folder,
    File,
}

/// A protected name.
pub(super) struct ProtectedRow {
    kind: ProtectedKind,
    path: &'static str,
    /// The program that starts with it, and where that is documented.
    #[cfg_attr(not(test), expect(dead_code, reason = "for who reads the table"))]
    source: (&'static str, &'static str),
}

const fn folder(path: &'static str, program: &'static str, source: &'static str) -> ProtectedRow {
    let kind = ProtectedKind::Folder;
    let source = (program, source);
    ProtectedRow { kind, path, source }
}

const fn file(path: &'static str, program: &'static str, source: &'static str) -> ProtectedRow {
    let kind = ProtectedKind::File;
    let source = (program, source);
    ProtectedRow { kind, path, source }
}

/// The names, besides the startup files of shells. Programs run or obey what lies there as soon as they start in the folder.
const ROWS: &[ProtectedRow] = &[
    folder(
        ".git",
        "git",
        "gitrepository-layout(5): hooks and settings name programs",
    ),
    folder(".haft/skills", "haft", "docs/guide/skills.md"),
    folder(
        ".agents/plugins",
        "coding agents",
        "agents.md: plugins of the project",
    ),
    folder(
        ".agents/skills",
        "coding agents",
        "agentskills.io: skills of the project",
    ),
    folder(".amazonq", "Amazon Q", "its rules, agents and MCP servers"),
    folder(
        ".amp",
        "Amp",
        "ampcode.com/manual: settings of the workspace",
    ),
    folder(".antigravity", "Antigravity", "its rules and hooks"),
    folder(
        ".augment",
        "Augment",
        "docs.augmentcode.com: rules and commands",
    ),
    folder(
        ".claude",
        "Claude Code",
        "code.claude.com/docs/en/settings: settings, hooks, skills",
    ),
    folder(
        ".claude-plugin",
        "Claude Code",
        "code.claude.com/docs/en/plugins",
    ),
    folder(".cline", "Cline", "its settings of the project"),
    folder(".clinerules/hooks", "Cline", "docs.cline.bot: hooks"),
    folder(
        ".codebuddy",
        "CodeBuddy Code",
        "cloud.tencent.com/document/product/1831/137016: settings, hooks, rules, skills",
    ),
    folder(
        ".codex",
        "Codex",
        "developers.openai.com/codex: config.toml, hooks",
    ),
    folder(".config/amp", "Amp", "ampcode.com/manual"),
    folder(".config/devin", "Devin", "its settings"),
    folder(".config/goose", "Goose", "its settings"),
    folder(".config/mise", "mise", "mise.jdx.dev/configuration"),
    folder(".config/opencode", "OpenCode", "opencode.ai/docs/config"),
    folder(
        ".continue",
        "Continue",
        "docs.continue.dev: configuration of the workspace",
    ),
    folder(".copilot", "Copilot CLI", "its settings and hooks"),
    folder(".crush", "Crush", "its settings and data of the project"),
    folder(
        ".cursor",
        "Cursor",
        "cursor.com/docs: hooks.json, mcp.json, rules",
    ),
    folder(
        ".devcontainer",
        "Dev Containers",
        "containers.dev: commands after creation",
    ),
    folder(".devin", "Devin", "its settings of the project"),
    folder(".factory", "Droid", "docs.factory.ai: hooks and settings"),
    folder(".fleet", "Fleet", "run.json and settings.json"),
    folder(
        ".gemini",
        "Gemini CLI",
        "geminicli.com/docs: settings.json, hooks",
    ),
    folder(".githooks", "git", "the usual folder of core.hooksPath"),
    folder(
        ".github/copilot",
        "Copilot",
        "its instructions and settings",
    ),
    folder(".github/hooks", "Copilot", "docs.github.com/copilot: hooks"),
    folder(".goose", "Goose", "its settings of the project"),
    folder(
        ".helix",
        "Helix",
        "docs.helix-editor.com: languages.toml of the project",
    ),
    folder(".hg", "Mercurial", "hg help config: .hg/hgrc has hooks"),
    folder(".husky", "Husky", "typicode.github.io/husky: hooks of git"),
    folder(
        ".iflow",
        "iFlow CLI",
        "platform.iflow.cn/en/cli/configuration/settings: settings, agents, commands",
    ),
    folder(".idea", "JetBrains", "run configurations, external tools"),
    folder(
        ".jj",
        "Jujutsu",
        "jj-vcs.dev: settings of a repository name programs",
    ),
    folder(".junie", "Junie", "its guidelines and MCP servers"),
    folder(".kilocode", "Kilo Code", "its rules and MCP servers"),
    folder(
        ".kiro",
        "Kiro",
        "kiro.dev/docs: hooks, steering, MCP servers",
    ),
    folder(".mise", "mise", "mise.jdx.dev/configuration"),
    folder(".opencode", "OpenCode", "opencode.ai/docs/config: plugins"),
    folder(
        ".qoder",
        "Qoder",
        "docs.qoder.com/user-guide/rules: rules, agents, MCP servers",
    ),
    folder(".qwen", "Qwen Code", "its settings and hooks"),
    folder(".roo", "Roo Code", "its rules and MCP servers"),
    folder(".trae", "Trae", "its rules"),
    folder(
        ".vs",
        "Visual Studio",
        "launch and task settings of a folder",
    ),
    folder(
        ".vscode",
        "VS Code",
        "code.visualstudio.com/docs: tasks.json, settings.json",
    ),
    folder(".windsurf", "Windsurf", "its rules, workflows and hooks"),
    folder(".zed", "Zed", "zed.dev/docs: tasks.json, settings.json"),
    file(
        "haft.toml",
        "haft",
        "docs/reference/contract.md: messages name the first that a pattern could mean",
    ),
    file(
        ".agents/hooks.json",
        "coding agents",
        "hooks of the project",
    ),
    file(
        ".aider.conf.yml",
        "aider",
        "aider.chat/docs/config/aider_conf: lint-cmd and test-cmd are run",
    ),
    file(
        ".byebugrc",
        "byebug",
        "its README: read in the current folder",
    ),
    file(".config/mise.toml", "mise", "mise.jdx.dev/configuration"),
    file(".crush.json", "Crush", "its settings of the project"),
    file(
        ".cursorrules",
        "Cursor",
        "cursor.com/docs: instructions that its agent obeys",
    ),
    file(".devcontainer.json", "Dev Containers", "containers.dev"),
    file(
        ".dir-locals-2.el",
        "Emacs",
        "Emacs manual, Per-Directory Local Variables",
    ),
    file(
        ".dir-locals.el",
        "Emacs",
        "Emacs manual, Per-Directory Local Variables: eval",
    ),
    file(".envrc", "direnv", "direnv(1)"),
    file(
        ".envrc.local",
        "direnv",
        "direnv-stdlib(1): what an .envrc sources by custom",
    ),
    file(
        ".envrc.private",
        "direnv",
        "direnv-stdlib(1): what an .envrc sources by custom",
    ),
    file(".exrc", "vi", "vim: 'exrc'"),
    file(
        ".gdbinit",
        "GDB",
        "GDB manual, Init File in the Current Directory",
    ),
    file(
        ".ghci",
        "GHCi",
        "GHC user's guide, The .ghci and .haskeline files",
    ),
    file(".goosehints", "Goose", "its hints, which its agent obeys"),
    file(".iex.exs", "IEx", "hexdocs.pm/iex: the .iex.exs file"),
    file(
        ".irbrc",
        "irb",
        "docs.ruby-lang.org: IRB, configuration file",
    ),
    file(
        ".lefthook.json",
        "Lefthook",
        "lefthook.dev/configuration: hooks of git",
    ),
    file(".lefthook.toml", "Lefthook", "lefthook.dev/configuration"),
    file(".lefthook.yaml", "Lefthook", "lefthook.dev/configuration"),
    file(".lefthook.yml", "Lefthook", "lefthook.dev/configuration"),
    file(".lldbinit", "LLDB", "lldb(1): --local-lldbinit"),
    file(
        ".mcp.json",
        "MCP clients",
        "code.claude.com/docs/en/mcp: servers that are started",
    ),
    file(".mise.local.toml", "mise", "mise.jdx.dev/configuration"),
    file(".mise.toml", "mise", "mise.jdx.dev/configuration"),
    file(".nvim.lua", "Neovim", "'exrc'"),
    file(".nvimrc", "Neovim", "'exrc'"),
    file(".ocamlinit", "OCaml", "OCaml manual, The toplevel system"),
    file(".octaverc", "Octave", "Octave manual, Startup Files"),
    file(
        ".pdbrc",
        "Python",
        "docs.python.org/3/library/pdb: read in the current folder",
    ),
    file(".pryrc", "Pry", "its README: read in the current folder"),
    file(
        ".rdbgrc",
        "debug.rb",
        "its README: read in the current folder",
    ),
    file(
        ".Rprofile",
        "R",
        "R manual, Startup: read in the current folder",
    ),
    file(
        ".tool-versions",
        "asdf, mise",
        "asdf-vm.com/manage/configuration",
    ),
    file(".vimrc", "Vim", "'exrc'"),
    file(
        ".windsurfrules",
        "Windsurf",
        "instructions that its agent obeys",
    ),
    file(
        "CMakeUserPresets.json",
        "CMake",
        "cmake-presets(7): toolchains and build tools of the user",
    ),
    file("crush.json", "Crush", "its settings of the project"),
    file(
        "lefthook-local.json",
        "Lefthook",
        "lefthook.dev/configuration: of the user alone",
    ),
    file(
        "lefthook-local.toml",
        "Lefthook",
        "lefthook.dev/configuration",
    ),
    file(
        "lefthook-local.yaml",
        "Lefthook",
        "lefthook.dev/configuration",
    ),
    file(
        "lefthook-local.yml",
        "Lefthook",
        "lefthook.dev/configuration",
    ),
    file(
        "lefthook.json",
        "Lefthook",
        "lefthook.dev/configuration: hooks of git",
    ),
    file("lefthook.toml", "Lefthook", "lefthook.dev/configuration"),
    file("lefthook.yaml", "Lefthook", "lefthook.dev/configuration"),
    file("lefthook.yml", "Lefthook", "lefthook.dev/configuration"),
    file("mise.local.toml", "mise", "mise.jdx.dev/configuration"),
    file("mise.toml", "mise", "mise.jdx.dev/configuration"),
    file("opencode.json", "OpenCode", "opencode.ai/docs/config"),
    file("opencode.jsonc", "OpenCode", "opencode.ai/docs/config"),
];

/// Endings of protected files, and how messages name them.
pub(super) const ENDINGS: &[(&str, &str)] = &[
    // VS Code: settings and tasks, as in `.vscode`.
    (".code-workspace", "*.code-workspace"),
];

/// Returns the names of a kind.
pub(super) fn of_kind(kind: ProtectedKind) -> impl Iterator<Item = &'static str> {
    ROWS.iter()
        .filter(move |row| row.kind == kind)
        .map(|row| row.path)
}

#[cfg(test)]
mod tests {
    use super::ROWS;

    #[test]
    fn row_when_read_has_a_name_of_its_own_and_a_source() {
        let mut names: Vec<String> = ROWS
            .iter()
            .map(|row| row.path.to_ascii_lowercase())
            .collect();
        names.sort();
        assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
        for row in ROWS {
            let (program, source) = row.source;
            assert!(!program.is_empty() && !source.is_empty(), "{}", row.path);
        }
    }
}
