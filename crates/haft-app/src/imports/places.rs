//! Where clients store the servers that they use.

use std::path::{Path, PathBuf};

use crate::clients::{ClientProgram, InstallScope};
use crate::site::Site;

/// A file that may contain servers.
pub(super) struct CandidateFile {
    pub(super) client: &'static str,
    pub(super) file: PathBuf,
    /// Whether it is in the workspace.
    pub(super) in_workspace: bool,
}

/// The files of goose and Windsurf, below the folder of the user's settings or the user's folder.
const GOOSE: &str = "goose/config.yaml";
const WINDSURF: &str = ".codeium/windsurf/mcp_config.json";
/// The files of Claude Code's permissions, below a folder.
const CLAUDE: [&str; 2] = [".claude/settings.json", ".claude/settings.local.json"];

/// Returns the files of all clients: those of the user, then those of the workspace.
pub(super) fn all(at: &Site) -> Vec<CandidateFile> {
    let mut files = Vec::new();
    let mut add = |client, file: PathBuf, in_workspace| {
        files.push(CandidateFile {
            client,
            file,
            in_workspace,
        });
    };
    for level in [InstallScope::User, InstallScope::Project] {
        let clients = ClientProgram::names()
            .into_iter()
            .filter_map(|name| ClientProgram::find(name).ok());
        for client in clients.filter(|client| client.has(level)) {
            if let Ok(file) = client.file(level, at.setup()) {
                add(client.name, file, level == InstallScope::Project);
            }
        }
        let home = at.environment.folder("HOME");
        if level == InstallScope::Project {
            for name in CLAUDE {
                add("claude-code", at.workspace.join(name), true);
            }
        } else if let Some(home) = home {
            let config = at.environment.folder("XDG_CONFIG_HOME");
            let config = config.unwrap_or_else(|| home.join(".config"));
            add("goose", config.join(GOOSE), false);
            add("windsurf", home.join(WINDSURF), false);
            add("claude-code", home.join(CLAUDE[0]), false);
        }
    }
    files
}

/// Returns the client that a file belongs to, judging by its path.
pub(super) fn client_of(file: &Path) -> &'static str {
    const PATH_ENDINGS: [(&str, &str); 16] = [
        ("/.mcp.json", "claude-code"),
        ("/.claude.json", "claude-code"),
        ("/.claude/settings.json", "claude-code"),
        ("/.claude/settings.local.json", "claude-code"),
        ("claude_desktop_config.json", "claude-desktop"),
        ("/.cursor/mcp.json", "cursor"),
        ("/.vscode/mcp.json", "vscode"),
        ("/User/mcp.json", "vscode"),
        ("/.codex/config.toml", "codex"),
        ("/.gemini/settings.json", "gemini"),
        ("/zed/settings.json", "zed"),
        ("/opencode.json", "opencode"),
        ("/opencode.jsonc", "opencode"),
        (GOOSE, "goose"),
        (WINDSURF, "windsurf"),
        (".toml", "codex"),
    ];
    let path = file.to_string_lossy();
    let found = PATH_ENDINGS.iter().find(|(end, _)| path.ends_with(end));
    let by_form = || {
        let is_yaml = path.ends_with(".yaml") || path.ends_with(".yml");
        if is_yaml { "goose" } else { "a client" }
    };
    found.map_or_else(by_form, |(_, client)| client)
}
