//! `haft serve`: serves until a signal arrives or the client on stdin disconnects, and says how to connect.

use haft_app::app::App;
use haft_app::config::Settings;
use haft_app::problem::Problem;
use haft_app::reload::Reloader;
use haft_sandbox::{Sandbox, Strength};
use haft_server::server::{self, Background, ReadyServer, ServeOptions};
use serde_json::json;

use crate::args;
use crate::commands::ExitResult;
use crate::commands::signals::{Signal, Signals};
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::screen::{BOLD, DIM, stdout, styled};

/// Serves until a signal arrives or the client on stdin disconnects.
pub(crate) async fn run(
    at: &Invocation,
    settings: &Settings,
    app: &App,
    args: &args::Serve,
) -> ExitResult {
    if args.stdio {
        stdout::open().map_err(|e| stdout::unwritten(&e.to_string()))?;
    }
    // Listen from here on: a signal right after the ready line must not be lost.
    let mut signals = Signals::heard()?;
    let options = ServeOptions {
        http: args.http.clone(),
        stdio: args.stdio,
        no_auth: args.no_auth,
        background: if args.background {
            Background::Itself
        } else {
            Background::WhenAsked
        },
    };
    if args.stdio && args.http.is_none() {
        tokio::spawn(release_start(app.sandbox().clone()));
    }
    let config = at.options.config.as_deref();
    let reloader = Reloader::new(app, settings, config, at.reload());
    let reloading = tokio::spawn(reloader.watch());
    let ready = |ready: &ReadyServer| {
        tokio::spawn(release_start(app.sandbox().clone()));
        print(at, app, ready, args.background)
    };
    let signal = server::serve(app, settings, &options, signals.next(), ready).await;
    reloading.abort();
    let signal = signal?;
    // SIGTERM is the normal way to stop a server; Ctrl-C is an interruption.
    Ok(match signal {
        Some(Signal::Interrupt) => Exit::Interrupted,
        Some(Signal::Terminate) | None => Exit::Done,
    })
}

/// Releases the memory of the binary that only startup has used: most of it. The sandbox is probed during startup.
async fn release_start(sandbox: Sandbox) {
    sandbox.probe().await;
    let released = tokio::task::spawn_blocking(haft_sandbox::release_program_pages).await;
    match released {
        Ok(Ok(bytes)) => tracing::debug!(bytes, "released the pages of the program"),
        Ok(Err(error)) => tracing::debug!(%error, "release the pages of the program"),
        Err(error) => tracing::error!(%error, "release the pages of the program"),
    }
}

/// Says what confines commands, in words that read as a fact and not as something that is missing.
fn confinement(required: Strength) -> String {
    match required {
        Strength::None => "commands may run without a jail".to_owned(),
        _ => format!("commands run only in {}", required.meaning()),
    }
}

/// Says that all routes are ready, then how to connect; a background server keeps its login link out of its log.
fn print(at: &Invocation, app: &App, ready: &ReadyServer, background: bool) -> Result<(), Problem> {
    let (screen, url) = (at.screen, &ready.url);
    let (token, operator) = (&ready.token_file, &ready.operator_token_file);
    screen.err(&format!("listening on {url}"));
    if !url.ends_with(&ready.address.to_string()) {
        screen.err(&format!("socket     {}", ready.address));
    }
    if background {
        return Ok(());
    }
    if screen.json {
        return screen.document(&json!({
            "address": ready.address,
            "mcp": format!("{url}/mcp"),
            "console": format!("{url}/"),
            "token_file": token,
            "operator_token_file": operator,
        }));
    }
    for path in &ready.replaced {
        screen.warn(&format!(
            "{} was not private: it holds a new token",
            path.display()
        ));
    }
    let link = &ready.login_link;
    screen.say(&format!(
        "console    {link} (one-time login link, valid for 5 minutes)"
    ));
    let profile = styled(BOLD, app.profile());
    screen.say(&format!(
        "workspace  {} · profile {profile} · {}",
        app.workspace(),
        confinement(app.sandbox().config().require)
    ));
    screen.say(&format!(
        "tokens     {} (call), {} (operator)",
        token.display(),
        operator.display()
    ));
    screen.say(&format!(
        "connect    claude mcp add --transport http haft {url}/mcp --header \"Authorization: Bearer $(cat {})\"",
        token.display()
    ));
    let settings = json!({"mcpServers": {"haft": {"type": "http", "url": format!("{url}/mcp"), "headers": {"Authorization": "Bearer ${HAFT_TOKEN}"}}}});
    screen.say(&styled(DIM, &format!("or paste   {settings}")));
    Ok(())
}
