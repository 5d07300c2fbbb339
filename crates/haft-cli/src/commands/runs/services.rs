//! What `haft runs` says and does about the commands of a run that serve or work in the background.

use std::fmt::Write as _;

use std::time::Duration;

use haft::call::ToolCall;
use haft::plural::counted;
use haft::result::Status;
use haft_app::app::App;
use haft_app::problem::Problem;
use haft_app::run::RunOptions;
use haft_app::view::services::{ExposedPort, RunningService, of_run as services_of, stop};
use haft_app::view::when;
use serde_json::json;

use crate::commands::ExitResult;
use crate::commands::call::{cancellable, options, print_outcome, waits};
use crate::commands::signals::Signals;
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::screen::{BOLD, DIM, styled, visible};

/// Maximum number of ports in a line.
const PORTS: usize = 8;
/// How often haft looks whether the run still serves.
const LOOK: Duration = Duration::from_secs(1);

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

/// Describes the ports of a run that are open to this machine, one a line.
pub(super) fn exposed_lines(exposed: &[ExposedPort]) -> String {
    let mut out = String::new();
    for one in exposed {
        let at = styled(BOLD, &format!("http://{}/", one.at));
        let _ = writeln!(out, "exposed  {at} leads to its port {}", one.port);
    }
    out
}

/// Opens a port of a run to this machine until the user interrupts it, or nothing of the run serves any more.
pub(super) async fn expose(at: &Invocation, app: &App, run: &str, port: u16) -> ExitResult {
    let mut signals = Signals::heard()?;
    let options = RunOptions {
        wait: waits(None, false),
        ..options(at, "call")
    };
    let call = ToolCall::new("expose_port", json!({"port": port, "run": run}).to_string());
    let (own, call) = app.start_for(options, call).await?;
    let outcome = cancellable(own.call(call), own.session(), &mut signals).await;
    let printed = print_outcome(at, &outcome);
    let opened = outcome.status == Status::Ok;
    if opened && printed.is_ok() {
        at.screen.say("Ctrl-C closes it");
        let over = async {
            while !services_of(app, run).await.is_empty() {
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::select! {
            _ = signals.next() => {}
            () = over => at.screen.say("nothing of the run serves any more"),
        }
        own.session().cancel();
    }
    own.release().await;
    printed?;
    Ok(Exit::of(&outcome, true))
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
