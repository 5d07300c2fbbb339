//! `haft serve`: one listener with MCP, the HTTP API and health; or MCP on stdin and stdout.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::response::Response;
use axum::routing::get;
use haft_chain::TOOL_CHAIN;
use haft_console::{About, Console, Options};
use haft_mcp::http::Access;
use haft_mcp::server::{Limits, McpServer, ServerInfo};
use serde_json::json;
use tokio::sync::{oneshot, watch};

use crate::args;
use crate::assemble::House;
use crate::commands::Done;
use crate::commands::signals::{Signal, Signals};
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::problem::{Place, Problem};
use crate::screen::{BOLD, DIM, styled};
use crate::serve::api::Api;
use crate::serve::bounds::Bounds;
use crate::serve::door::Doors;
use crate::serve::gate::Gate;
use crate::serve::listen::Listener;
use crate::serve::reach::{Reach, Reached};
use crate::serve::tokens::TokenFile;
use crate::settings::Settings;

mod api;
mod bounds;
mod door;
mod follower;
mod gate;
mod listen;
mod query;
pub(crate) mod reach;
mod reply;
mod tokens;

/// How often skills are looked at; the look is about a microsecond a file.
const SKILL_WATCH: Duration = Duration::from_secs(2);

/// What a model is told about the server.
const INSTRUCTIONS: &str = "Tools on one folder, under a policy that a person set. Paths are relative to that folder. A call that is denied says why; large results are kept aside and can be read with read_artifact.";

/// Serves until a signal comes, or until the client on stdin hangs up.
pub(crate) async fn run(
    at: &Invocation,
    settings: &Settings,
    house: House,
    args: &args::Serve,
) -> Done {
    // Heard from here on: a signal that comes right after the ready line must not find nobody listening.
    let signals = Signals::heard()?;
    let doors = Doors::new(house.clone(), settings);
    let watching = tokio::spawn(watch_skills(house.clone()));
    let (stop_following, stopped) = oneshot::channel();
    let following = tokio::spawn(follower::follow(house.clone(), stopped));
    if house.tools().snapshot().entry(TOOL_CHAIN).is_some() {
        // The first script finds an interpreter ready.
        house.code().warm();
    }
    let server = McpServer::new(&info(), Limits::default(), Arc::clone(&doors) as _);
    let open = Open {
        server,
        doors: Arc::clone(&doors),
        signals,
        args,
    };
    let done = serve(at, settings, house, open).await;
    watching.abort();
    doors.leave();
    drop(stop_following);
    // What it resumes ends, or is left to be resumed, before the runs are sealed.
    if let Err(error) = following.await {
        tracing::error!(%error, "stop following decisions");
    }
    doors.sealed().await;
    done
}

/// Looks for changed skills now and then, so that clients hear of them without asking.
async fn watch_skills(house: House) {
    loop {
        tokio::time::sleep(SKILL_WATCH).await;
        let tools = Arc::clone(house.skill_tools());
        let looked = tokio::task::spawn_blocking(move || tools.refresh()).await;
        if let Ok(Err(error)) = looked {
            tracing::warn!(%error, "look for changed skills");
        }
    }
}

async fn serve(at: &Invocation, settings: &Settings, house: House, open: Open<'_>) -> Done {
    let args = open.args;
    if args.stdio && args.http.is_none() {
        return over_pipes(open).await;
    }
    let reach = Reach::of(args, settings)?;
    raise_open_files();
    http(at, house, reach, open).await
}

/// What is served and how it was asked for.
struct Open<'a> {
    server: McpServer,
    doors: Arc<Doors>,
    signals: Signals,
    args: &'a args::Serve,
}

async fn http(at: &Invocation, house: House, reach: Reach, mut open: Open<'_>) -> Done {
    let listener = Listener::bind(&reach).await.map_err(|e| {
        Problem::failed(format!("listen: {e}"))
            .at(Place::named(reach.address.to_string()))
            .advise("choose another: --http 127.0.0.1:0 takes a free port")
    })?;
    let reached = reach.at(listener.address)?;
    let tokens = Tokens {
        call: TokenFile::call(&at.home)?,
        operator: TokenFile::operator(&at.home)?,
    };
    if let Some(webhook) = house.webhook() {
        webhook.listens(reached.url.clone());
    }
    open.doors
        .listens(reached.url.clone(), tokens.operator.secret());
    let console = console(at, &house, &reached);
    let bounds = Arc::new(Bounds::default());
    let gate = Gate {
        console: Arc::clone(&console),
        hosts: reached.hosts.clone(),
        call: (!open.args.no_auth).then(|| tokens.call.secret().to_owned()),
        operator: tokens.operator.secret().to_owned(),
        principal: house.principal().clone(),
        bounds: Arc::clone(&bounds),
    };
    let (stop, stopped) = watch::channel(false);
    let api = Api::new(house.clone(), at.clone(), stopped.clone(), bounds);
    // The gate stands before it.
    let mcp = open.server.http(Access::checked_before());
    let routes = gate::before(
        Arc::new(gate),
        routes(Arc::clone(&api), &console, mcp.clone()),
    );
    let serving = tokio::spawn(listener.serve(routes, stopped));
    ready(at, &house, &tokens, &console, &reached)?;
    let signal = if open.args.stdio {
        tokio::select! {
            signal = open.signals.next() => Some(signal),
            _ = open.server.serve_stdio(std::io::stdin(), std::io::stdout()) => None,
        }
    } else {
        Some(open.signals.next().await)
    };
    // Nobody new is let in; what waits for a person goes on waiting; then what runs is cancelled and recorded.
    let _ = stop.send(true);
    open.doors.leave();
    mcp.shutdown();
    api.close().await;
    if serving.await.is_err() {
        at.screen.warn("the listener broke off");
    }
    Ok(ended(signal))
}

async fn over_pipes(mut open: Open<'_>) -> Done {
    tokio::select! {
        served = open.server.serve_stdio(std::io::stdin(), std::io::stdout()) => {
            served.map_err(|e| Problem::failed(e.to_string()))?;
            Ok(Exit::Done)
        }
        signal = open.signals.next() => Ok(ended(Some(signal))),
    }
}

/// Being told to stop is how a server ends; Ctrl-C is an interruption.
fn ended(signal: Option<Signal>) -> Exit {
    match signal {
        Some(Signal::Interrupt) => Exit::Interrupted,
        Some(Signal::Terminate) | None => Exit::Done,
    }
}

fn routes(api: Arc<Api>, console: &Arc<Console>, mcp: haft_mcp::http::McpService) -> Router {
    Router::new()
        .merge(console.router())
        .route("/healthz", get(health))
        .route_service("/mcp", mcp)
        .nest("/api/v1", api.routes())
        .fallback(unknown)
}

async fn health() -> Response {
    reply::document(&json!({"ok": true, "version": env!("CARGO_PKG_VERSION")}))
}

/// The console of this server; how strong the sandbox is comes to it as soon as that is tried.
fn console(at: &Invocation, house: &House, reached: &Reached) -> Arc<Console> {
    let console = Console::new(Options {
        port: reached.address.port(),
        https: reached.https,
        about: About {
            workspace: house.workspace().to_owned(),
            profile: house.profile().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            user: house.principal().subject.to_string(),
        },
        #[cfg(feature = "testing")]
        pages: at.environment.get("HAFT_TESTING_UI_DIR").map(Into::into),
    });
    #[cfg(not(feature = "testing"))]
    let _ = at;
    let (told, house) = (Arc::clone(&console), house.clone());
    tokio::spawn(async move {
        told.found_strength(house.sandbox().probe().await.strength.word());
    });
    console
}

async fn unknown() -> Response {
    reply::not_found("no such route")
}

fn info() -> ServerInfo {
    ServerInfo {
        name: "haft".to_owned(),
        title: "haft".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        instructions: Some(INSTRUCTIONS.to_owned()),
    }
}

/// Both token files.
struct Tokens {
    call: TokenFile,
    operator: TokenFile,
}

/// Says that all routes answer, then how to connect.
fn ready(
    at: &Invocation,
    house: &House,
    tokens: &Tokens,
    console: &Console,
    reached: &Reached,
) -> Result<(), Problem> {
    let (screen, url) = (at.screen, &reached.url);
    let (token, operator) = (&tokens.call.path, &tokens.operator.path);
    screen.err(&format!("listening on {url}"));
    if !url.ends_with(&reached.address.to_string()) {
        screen.err(&format!("socket     {}", reached.address));
    }
    if screen.json {
        return screen.document(&json!({
            "address": reached.address,
            "mcp": format!("{url}/mcp"),
            "console": format!("{url}/"),
            "token_file": token,
            "operator_token_file": operator,
        }));
    }
    for replaced in [&tokens.call, &tokens.operator]
        .iter()
        .filter(|file| file.replaced)
    {
        screen.warn(&format!(
            "{} was not private: it holds a new token",
            replaced.path.display()
        ));
    }
    let link = console
        .login_link(url)
        .map_err(|e| Problem::failed(e.to_string()))?;
    screen.say(&format!("console    {link} (once, within 5 minutes)"));
    let profile = styled(BOLD, house.profile());
    screen.say(&format!(
        "workspace  {} · profile {profile} · sandbox at least {}",
        house.workspace(),
        house.sandbox().config().require
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

/// Many clients at once need as many descriptors as the system grants.
fn raise_open_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(e) = setrlimit(Resource::Nofile, limit) {
        tracing::debug!(error = %e, "raise the limit of open files");
    }
}
