//! The agents that can run without an account: how to start them, with which settings, and what their models do.

/// How to start an agent without a user, and what its model does.
pub(crate) struct Row {
    pub(crate) agent: &'static str,
    /// Its name in `haft runs`.
    pub(crate) title: &'static str,
    /// Its path below `HAFT_NEEDS`.
    pub(crate) program: &'static str,
    pub(crate) args: &'static [&'static str],
    /// Variables; `@URL@` is replaced by the model server's address.
    pub(crate) variables: &'static [(&'static str, &'static str)],
    /// A settings file of the user: its path in the home folder, and its text, in which `@URL@` is replaced too.
    pub(crate) settings: (&'static str, &'static str),
    pub(crate) tool: &'static str,
    pub(crate) arguments: &'static str,
    /// Texts in the event; empty if the entry names haft by its full path, so that nothing can record the event.
    pub(crate) event: &'static [&'static str],
    /// Whether a denied call ends the task, so that the model is not told about it.
    pub(crate) stops: bool,
    /// Whether it waits forever for a missing user.
    pub(crate) waits_for_its_user: bool,
}

pub(crate) const ROWS: [Row; 6] = [
    Row {
        agent: "claude",
        title: "Claude Code",
        program: "agents/node_modules/.bin/claude",
        args: &[
            "-p",
            "make it",
            "--allowedTools",
            "Bash",
            "--model",
            "claude-sonnet-4-5",
        ],
        variables: &[
            ("ANTHROPIC_BASE_URL", "@URL@"),
            ("ANTHROPIC_API_KEY", "sk-ant-test"),
            ("DISABLE_TELEMETRY", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("DISABLE_ERROR_REPORTING", "1"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ],
        settings: (".claude/settings.json", "{\"cleanupPeriodDays\": 3}\n"),
        tool: "Bash",
        arguments: "{ command = \"echo hi > made.txt\", description = \"Make a file\" }",
        event: &[
            "\"hook_event_name\":\"PreToolUse\"",
            "\"tool_name\":\"Bash\"",
            "echo hi > made.txt",
        ],
        stops: false,
        waits_for_its_user: false,
    },
    Row {
        agent: "gemini",
        title: "Gemini CLI",
        program: "agents/node_modules/.bin/gemini",
        args: &[
            "-p",
            "make it",
            "--yolo",
            "--skip-trust",
            "-m",
            "gemini-2.5-pro",
        ],
        variables: &[
            ("GOOGLE_GEMINI_BASE_URL", "@URL@"),
            ("GEMINI_API_KEY", "test"),
            ("GEMINI_TELEMETRY_ENABLED", "false"),
        ],
        settings: (
            ".gemini/settings.json",
            "{\n  // no figures go out\n  \"privacy\": {\"usageStatisticsEnabled\": false},\n  \"general\": {\"enableAutoUpdate\": false},\n  \"security\": {\"auth\": {\"selectedType\": \"gemini-api-key\"}}\n}\n",
        ),
        tool: "run_shell_command",
        arguments: "{ command = \"echo hi > made.txt\", description = \"Make a file\" }",
        event: &["BeforeTool", "run_shell_command", "echo hi > made.txt"],
        stops: false,
        waits_for_its_user: true,
    },
    Row {
        agent: "copilot",
        title: "GitHub Copilot CLI",
        program: "agents/node_modules/.bin/copilot",
        args: &["-p", "make it", "--allow-all-tools", "--no-auto-update"],
        variables: &[
            ("COPILOT_OFFLINE", "true"),
            ("COPILOT_PROVIDER_BASE_URL", "@URL@/v1"),
            ("COPILOT_PROVIDER_API_KEY", "test"),
            ("COPILOT_MODEL", "gpt-4.1"),
        ],
        settings: (
            ".copilot/hooks/mine.json",
            "{\"version\": 1, \"hooks\": {}}\n",
        ),
        tool: "bash",
        arguments: "{ command = \"echo hi > made.txt\", description = \"Make a file\" }",
        event: &["\"toolName\":\"bash\"", "echo hi > made.txt"],
        stops: false,
        waits_for_its_user: false,
    },
    Row {
        agent: "opencode",
        title: "OpenCode",
        program: "agents/node_modules/.bin/opencode",
        // With a title, the model is not asked for one.
        args: &["run", "make it", "--title", "A file", "-m", "scripted/m"],
        variables: &[
            ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
        ],
        settings: (
            ".config/opencode/opencode.json",
            "{\"share\": \"disabled\", \"provider\": {\"scripted\": {\"npm\": \"@ai-sdk/openai-compatible\", \"options\": {\"baseURL\": \"@URL@/v1\", \"apiKey\": \"test\"}, \"models\": {\"m\": {}}}}}\n",
        ),
        tool: "bash",
        arguments: "{ command = \"echo hi > made.txt\", description = \"Make a file\" }",
        event: &[],
        stops: false,
        waits_for_its_user: false,
    },
    Row {
        agent: "cline",
        title: "Cline",
        program: "agents/node_modules/.bin/cline",
        args: &["make it"],
        // No process is left running in the background.
        variables: &[("CLINE_SESSION_BACKEND_MODE", "local")],
        settings: (
            ".cline/data/settings/providers.json",
            "{\"version\": 1, \"lastUsedProvider\": \"openai-compatible\", \"modes\": {}, \"providers\": {\"openai-compatible\": {\"settings\": {\"provider\": \"openai-compatible\", \"apiKey\": \"test\", \"model\": \"m\", \"baseUrl\": \"@URL@/v1\"}, \"updatedAt\": \"2026-11-01T00:00:00.000Z\", \"tokenSource\": \"manual\"}}}\n",
        ),
        tool: "run_commands",
        arguments: "{ commands = [\"echo hi > made.txt\"] }",
        event: &[],
        stops: true,
        waits_for_its_user: false,
    },
    Row {
        agent: "droid",
        title: "Factory Droid",
        program: "agents/node_modules/.bin/droid",
        args: &[
            "exec",
            "--skip-permissions-unsafe",
            "-m",
            "custom:m",
            "make it",
        ],
        // Only its vendor's service checks the key.
        variables: &[("FACTORY_API_KEY", "fk-test")],
        settings: (
            ".factory/settings.json",
            "{\"customModels\": [{\"model\": \"m\", \"displayName\": \"m\", \"baseUrl\": \"@URL@/v1\", \"apiKey\": \"test\", \"provider\": \"generic-chat-completion-api\", \"maxOutputTokens\": 4096}]}\n",
        ),
        tool: "Execute",
        arguments: "{ command = \"echo hi > made.txt\", summary = \"Make a file\", riskLevel = \"low\", riskLevelReason = \"a file\", timeout = 60 }",
        event: &["\"PreToolUse\"", "\"Execute\"", "echo hi > made.txt"],
        stops: false,
        waits_for_its_user: false,
    },
];
