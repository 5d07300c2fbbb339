//! Builds the session of a run from its options, with what its client's earlier runs have read.

use std::sync::Arc;

use haft::call::Principal;
use haft::session::{Session, SessionBuilder, WaitMode};

use crate::provenance::{ClientMarks, MarkOwner, RunProvenance};
use crate::run::{ApprovalWait, RunOptions, Runs, limits, narrowed};

impl Runs {
    /// Returns where a run keeps what it reads beyond itself. A conversation with a client of MCP or of the API outlives its connection, and
    /// haft does not see which of the client's conversations a run is about.
    fn provenance(
        &self,
        principal: &Principal,
        client: Option<&String>,
        entry: &str,
    ) -> RunProvenance {
        let (parts, terms) = (&self.parts, self.parts.terms());
        let outlives = entry.starts_with("mcp ") || entry == "http api";
        let owner = || MarkOwner {
            principal: format!("{}/{}", principal.tenant, principal.subject),
            client: client.map(|client| without_version(client).to_owned()),
            workspace: terms.workspace.clone(),
        };
        let keeps = outlives && !terms.keep_marks.is_zero();
        let home = parts.archive.home();
        RunProvenance {
            client: keeps.then(|| ClientMarks::of(home, owner(), terms.keep_marks)),
            files: Arc::clone(&parts.files),
        }
    }

    pub(super) fn builder(&self, options: RunOptions) -> SessionBuilder {
        let (parts, terms) = (&self.parts, self.parts.terms());
        let mut limits = terms.limits.clone();
        let alone = options.is_for_one_call();
        let wait_mode = match options.wait {
            ApprovalWait::Never if terms.durable => WaitMode::SuspendAtOnce,
            ApprovalWait::For(limit) => {
                limits.approval_timeout = limit;
                terms.on_timeout
            }
            ApprovalWait::Limit | ApprovalWait::Never => terms.on_timeout,
        };
        limits::extend(&mut limits, &options);
        let is_narrowed = options.tools.is_some();
        let tools = options.tools.or(options.served);
        let tools = tools.unwrap_or_else(|| Arc::clone(&parts.tools));
        // A run that cannot load skills is shown none.
        let without_skills = is_narrowed && !narrowed::has_skills(&*tools);
        let principal = options.principal.unwrap_or_else(|| terms.principal.clone());
        let provenance = self.provenance(&principal, options.client.as_ref(), options.entry);
        let known = provenance.known();
        let mut builder = Session::builder(tools)
            .with_provenance(Arc::new(provenance), known)
            .with_wait_mode(wait_mode)
            .with_principal(principal)
            .with_class(options.class)
            .with_entry_point(options.entry)
            .with_client(options.client)
            .with_shell_report(options.shell_report)
            .with_group(options.group)
            .with_limits(limits)
            .with_pace(terms.pace)
            .with_skill_tokens(terms.skill_tokens)
            .with_other_runs(Arc::clone(&parts.live) as _)
            .with_unknown_tool_hint(Arc::clone(&parts.absent));
        if is_narrowed {
            builder = builder.narrowed();
        }
        if alone {
            builder = builder.for_one_call();
        }
        if without_skills {
            builder = builder.with_skills([]);
        }
        if let Some(input) = options.input {
            builder = builder.with_input(input);
        }
        if options.attends {
            builder = builder.attending();
        }
        if let Some(sink) = options.progress {
            builder = builder.with_progress(sink);
        }
        if let Some(parent) = &options.cancellation {
            builder = builder.with_cancellation(parent);
        }
        builder
    }
}

/// Returns a client's name without its version: an update of the client does not end a conversation.
fn without_version(client: &str) -> &str {
    client.rsplit_once(' ').map_or(client, |(name, _)| name)
}
