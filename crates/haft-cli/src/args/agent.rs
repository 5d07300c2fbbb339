//! `haft run` as typed.

use clap::Args;

/// `haft run`.
#[derive(Debug, Args)]
pub(crate) struct AgentRunCommand {
    /// The task; - reads it from stdin; without a task, starts a conversation at a terminal
    pub(crate) prompt: Option<String>,
    /// The model to use [default: model.default]
    #[arg(long, value_name = "PROVIDER:MODEL")]
    pub(crate) model: Option<String>,
    /// The base URL of the provider [default: model.base_url, or the provider's own]
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Load this skill first; may be given several times
    #[arg(long = "skill", value_name = "NAME")]
    pub(crate) skills: Vec<String>,
    /// Resume this run: suspended, interrupted or finished
    #[arg(long, value_name = "RUN")]
    pub(crate) resume: Option<String>,
    /// Work on a copy of the folder and show what would have happened
    #[arg(long = "dry-run", conflicts_with = "resume")]
    pub(crate) on_copy: bool,
    /// The most replies of the model to one prompt [default: agent.max_turns]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turns: Option<u32>,
    /// Serve an editor over the Agent Client Protocol on stdin and stdout
    #[arg(long = "acp", conflicts_with_all = ["prompt", "resume", "on_copy"])]
    pub(crate) serves_editor: bool,
    /// Wait for an approval decision [default: limits.approval_timeout_s]
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true)]
    #[expect(
        clippy::option_option,
        reason = "absent, given bare, given with a number: clap's own form"
    )]
    pub(crate) wait: Option<Option<u64>>,
}

impl AgentRunCommand {
    /// Whether the prompt comes from stdin, which then cannot answer questions.
    pub(crate) fn is_from_stdin(&self) -> bool {
        self.prompt.as_deref() == Some("-")
    }
}
