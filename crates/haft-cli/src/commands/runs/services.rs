//! What `haft runs` says and does about the commands of a run that serve or work in the background.

use std::fmt::Write as _;

use haft::plural::counted;
use haft_app::app::App;
use haft_app::problem::Problem;
use haft_app::view::services::{RunningService, stop};
use haft_app::view::when;

use crate::commands::ExitResult;
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::screen::{BOLD, DIM, styled, visible};

/// Maximum number of ports in a line.
const PORTS: usize = 8;

/// Describes the running commands of a run, one a line.
pub(super) fn lines(services: &[RunningService]) -> String {
    let mut out = String::new();
    for one in services {
        let command = visible::clipped(&visible::line(&one.command), 80);
        let mut facts = vec![when::ago(&one.started)];
        facts.extend(one.task.as_deref().map(visible::line));
        let facts = styled(DIM, &format!("({})", facts.join(", ")));
        let _ = writeln!(
            out,
            "running  {} {command} {facts}",
            styled(BOLD, &ports(one))
        );
    }
    out
}

/// Returns the ports of a command as its run's other commands reach them.
fn ports(one: &RunningService) -> String {
    if one.ports.is_empty() {
        return "no port".to_owned();
    }
    let shown = one.ports.iter().take(PORTS);
    let shown: Vec<String> = shown.map(|port| format!("127.0.0.1:{port}")).collect();
    let hidden = one.ports.len().saturating_sub(PORTS) as u64 + one.more_ports;
    let more = if hidden > 0 {
        format!(
            " and {} more",
            counted(usize::try_from(hidden).unwrap_or(usize::MAX), "port")
        )
    } else {
        String::new()
    };
    format!("{}{more}", shown.join(", "))
}

/// Ends commands of a run.
pub(super) async fn end(at: &Invocation, app: &App, run: &str, one: Option<&str>) -> ExitResult {
    let count = stop(app, run, one).await?;
    if count == 0 {
        let what = match one {
            Some(name) => format!("no running command `{name}` of the run {run}"),
            None => format!("no command of the run {run} serves or works in the background"),
        };
        return Err(Problem::usage(what).advise(format!("haft runs show {run} lists them")));
    }
    at.screen
        .say(&format!("ended {}", counted(count, "command")));
    Ok(Exit::Done)
}
