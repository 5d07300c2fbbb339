//! `haft run --acp`: serves an editor on stdin and stdout; each session has its own folder and run.

use std::io;

use haft_acp::{AcpOptions, serve};
use haft_app::notices::Notices;
use haft_app::problem::Problem;
use haft_app::run::ApprovalWait;

use crate::args;
use crate::commands::signals::Signals;
use crate::commands::{ExitResult, call, runtime};
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::screen::{stdout, visible};

/// Serves until the editor closes stdin, or a signal arrives. Only the protocol uses stdout.
pub(in crate::commands) fn run(at: &Invocation, args: &args::AgentRunCommand) -> ExitResult {
    if at.options.workspace.is_some() {
        return Err(
            Problem::usage("the editor names the folder of each session")
                .advise("omit --workspace"),
        );
    }
    let out = stdout::open().map_err(|e| stdout::unwritten(&e.to_string()))?;
    let runtime =
        runtime(true).map_err(|e| Problem::failed(format!("cannot start the runtime: {e}")))?;
    let served = runtime.block_on(async {
        let mut signals = Signals::heard()?;
        let stop = async move {
            signals.next().await;
        };
        serve(options(at, args), io::stdin(), out, stop).await
    });
    // A thread may still wait for a line that never arrives; it ends with the process.
    runtime.shutdown_background();
    served.map(|()| Exit::Done)
}

fn options(at: &Invocation, args: &args::AgentRunCommand) -> AcpOptions {
    let screen = at.screen;
    AcpOptions {
        home: at.site.home.clone(),
        environment: at.site.environment.clone(),
        config: at.options.config.clone(),
        set: at.options.set.clone(),
        profile: at.options.profile.clone(),
        trust: at.options.trust,
        model: args.model.clone(),
        base_url: args.base_url.clone(),
        skills: args.skills.clone(),
        max_turns: args.max_turns,
        wait: match args.wait {
            // The user is present: the editor asks.
            None => ApprovalWait::Limit,
            given => call::waits(given, true),
        },
        notices: Notices::new(move |text| screen.warn(&visible::line(text))),
    }
}
