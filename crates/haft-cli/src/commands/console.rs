//! `haft console`: opens the console of the running server in the browser, logged in; starts a server if none is running.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use haft_app::problem::Problem;
use haft_app::running::background::{self, ConsoleRequest, ReachedServer};
use haft_sandbox::HostProgram;
use serde_json::json;

use crate::args;
use crate::commands::{ExitResult, runtime};
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::screen::{DIM, styled};

/// Programs that open an address in the user's browser; the first one available is used.
const OPENERS: [&str; 3] = ["xdg-open", "open", "wslview"];
/// How long to wait for a program to fail: one that keeps running is the browser itself.
const FAILS: Duration = Duration::from_secs(2);

/// Opens the console, or stops its server.
pub(crate) fn run(at: &Invocation, args: &args::Console) -> ExitResult {
    if args.stop {
        return stop(at);
    }
    let settings = at.settings_unasked()?;
    let found = ConsoleRequest::new(&at.site, &settings).find_or_start()?;
    say_what_runs(at, &found);
    let runtime =
        runtime(false).map_err(|e| Problem::failed(format!("cannot start the runtime: {e}")))?;
    let link = |opens| runtime.block_on(found.server.login_link(&at.site.home, opens));
    let console = format!("{}/", found.server.record.url);
    let opened = if args.no_open || at.screen.json {
        Ok(false)
    } else {
        match opener(at) {
            Ok(openers) => open(at, &openers, &link(true)?),
            Err(why) => Err(why),
        }
    };
    if at.screen.json {
        at.screen.document(&json!({
            "console": console,
            "login": link(false)?,
            "started": found.fresh,
            "workspace": found.server.record.workspace,
            "version": found.server.record.version,
        }))?;
        return Ok(Exit::Done);
    }
    if opened == Ok(true) {
        at.screen.out(&format!("{console}\n"))?;
        at.screen.say("opened in the browser, logged in");
        return Ok(Exit::Done);
    }
    at.screen.out(&format!("{}\n", link(false)?))?;
    if let Err(why) = opened {
        at.screen.say(&format!("no browser was opened: {why}"));
    }
    at.screen
        .say("open the link in a browser; it logs in once, within 5 minutes");
    if is_remote(at) {
        at.screen.say(&styled(DIM, &forwarding(&found)));
    }
    Ok(Exit::Done)
}

fn stop(at: &Invocation) -> ExitResult {
    let stopped = background::stop(&at.site.home)?;
    if at.screen.json {
        at.screen.document(&json!({ "stopped": stopped }))?;
    } else if stopped {
        at.screen.say("the background server has stopped");
    } else {
        at.screen.say("no background server is running");
    }
    Ok(Exit::Done)
}

/// Says which server it is, if it is not the one that the user expects.
fn say_what_runs(at: &Invocation, found: &ReachedServer) {
    let record = &found.server.record;
    if found.fresh {
        at.screen
            .say("started a background server; `haft console --stop` stops it");
    }
    let own = env!("CARGO_PKG_VERSION");
    if record.version == own {
        return;
    }
    let what = if found.server.is_background() {
        "`haft console --stop`, then `haft console` starts this one"
    } else {
        "start `haft serve` again"
    };
    at.screen.warn(&format!(
        "the server is haft {}, and this is haft {own}: {what}",
        record.version
    ));
}

/// Returns the programs that open an address in the user's browser, in order of preference; or why there are none.
fn opener(at: &Invocation) -> Result<Vec<(&'static str, PathBuf)>, String> {
    let environment = &at.site.environment;
    let set = |name: &str| environment.get(name).is_some_and(|value| !value.is_empty());
    let screen = ["DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME", "BROWSER"];
    if !cfg!(target_os = "macos") && !screen.into_iter().any(set) {
        return Err("there is no desktop session here".to_owned());
    }
    let places = at.places();
    let path = OsStr::new(environment.get("PATH").unwrap_or_default());
    let mut why = format!("none of {} is on PATH", OPENERS.join(", "));
    let mut openers = Vec::new();
    for name in OPENERS {
        match places.program(name, path) {
            Some(Ok(program)) => openers.push((name, program)),
            Some(Err(refused)) => why = refused.to_string(),
            None => {}
        }
    }
    if openers.is_empty() {
        Err(why)
    } else {
        Ok(openers)
    }
}

/// Opens a link with the first of these programs that works; or returns why none did.
fn open(at: &Invocation, openers: &[(&str, PathBuf)], link: &str) -> Result<bool, String> {
    let mut why = String::new();
    // Openers are scripts that look for browsers.
    let variables = at.places().own_variables(at.site.environment.iter());
    for (name, program) in openers {
        let started = HostProgram::new(program, name)
            .with_arguments([link])
            .with_variables(variables.iter().map(|(name, value)| (&**name, &**value)))
            .detach();
        match started.map(|started| started.ended_within(FAILS)) {
            Ok(Some(status)) if !status.success() => why = format!("{name} failed ({status})"),
            Ok(_) => return Ok(true),
            Err(error) => why = format!("start {name}: {error}"),
        }
    }
    Err(why)
}

/// Returns whether the user is logged in from another machine, whose browser cannot reach this one's loopback.
fn is_remote(at: &Invocation) -> bool {
    at.site.environment.get("SSH_CONNECTION").is_some()
}

fn forwarding(found: &ReachedServer) -> String {
    let url = &found.server.record.url;
    let port = url.rsplit(':').next().unwrap_or_default();
    format!("from another machine, first: ssh -L {port}:127.0.0.1:{port} HOST")
}
