//! Serving: one listener with MCP, the HTTP API, the console and health; or MCP on stdin and stdout.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::response::Response;
use axum::routing::get;
use haft::toolset::Toolset as _;
use haft_app::app::App;
use haft_app::config::Settings;
use haft_app::problem::{Place, Problem};
use haft_app::{follower, others};
use haft_chain::TOOL_CHAIN;
use haft_mcp::http::{Access, McpService};
use haft_mcp::server::{McpServer, ServerInfo, ServerLimits};
use serde_json::json;
use tokio::sync::{oneshot, watch};

use crate::api;
use crate::api::state::Api;
use crate::bounds::Bounds;
use crate::console::{About, Console, Options, routes as pages};
use crate::gate::{self, Gate};
use crate::listen::Listener;
use crate::opener::ClientRuns;
use crate::reach::{Reach, Reached};
use crate::reply;
use crate::tokens::TokenFile;

/// How often skills are looked at; the look is about a microsecond a file.
const SKILL_WATCH: Duration = Duration::from_secs(2);

/// What a model is told about the server.
const INSTRUCTIONS: &str = "Tools on one folder, under a policy that the user set. Paths are relative to that folder. A call that is denied says why; large results are kept aside and can be read with read_artifact.";

/// How to serve.
#[derive(Debug, Clone, Default)]
pub struct ServeOptions {
    /// Where to listen, as `HOST:PORT`; port 0 takes a free one. `serve.http` of the settings where it is not given.
    pub http: Option<String>,
    /// Speak MCP on stdin and stdout; without `http` no port is opened.
    pub stdio: bool,
    /// Ask no token of callers; on loopback only.
    pub no_auth: bool,
}

/// A server whose routes all answer, and how it is reached.
#[derive(Debug)]
pub struct Ready {
    /// Where it listens.
    pub address: SocketAddr,
    /// What clients and browsers write, without a slash at its end.
    pub url: String,
    /// The file of the callers' token.
    pub token_file: PathBuf,
    /// The file of the operator's token.
    pub operator_token_file: PathBuf,
    /// Those of the two whose old token was thrown away because others could have read it.
    pub replaced: Vec<PathBuf>,
    /// A link that logs in to the console, once, within 5 minutes.
    pub login_link: String,
}

/// Serves until `stop` ends, or until the client on stdin hangs up. `ready` is called once all routes answer; it is not called
/// where no port is opened. Returns what `stop` gave, or none where the client hung up.
///
/// # Errors
/// The address cannot be listened on or is not safe to, a token file cannot be kept, or `ready` fails.
pub async fn serve<T>(
    app: &App,
    settings: &Settings,
    options: &ServeOptions,
    stop: impl Future<Output = T>,
    ready: impl FnOnce(&Ready) -> Result<(), Problem>,
) -> Result<Option<T>, Problem> {
    let runs = ClientRuns::new(app.clone(), settings);
    let watching = tokio::spawn(watch_skills(app.clone()));
    let hearing = tokio::spawn(others::follow_other_processes(app.clone()));
    let (stop_following, stopped) = oneshot::channel();
    let following = tokio::spawn(follower::follow(app.clone(), stopped));
    if app.tools().snapshot().entry(TOOL_CHAIN).is_some() {
        // The first script finds an interpreter ready.
        app.code().warm();
    }
    let server = McpServer::new(&info(), ServerLimits::default(), Arc::clone(&runs) as _);
    let serving = Serving {
        app,
        server,
        runs: Arc::clone(&runs),
        options,
    };
    let done = serving.until(settings, stop, ready).await;
    watching.abort();
    hearing.abort();
    app.runs().stop_waiting();
    drop(stop_following);
    // What it resumes ends, or is suspended, before the other runs are.
    if let Err(error) = following.await {
        tracing::error!(%error, "stop following decisions");
    }
    runs.release_all().await;
    done
}

/// Looks for changed skills now and then, so that clients hear of them without asking.
async fn watch_skills(app: App) {
    loop {
        tokio::time::sleep(SKILL_WATCH).await;
        let tools = Arc::clone(app.skill_tools());
        let looked = tokio::task::spawn_blocking(move || tools.refresh()).await;
        if let Ok(Err(error)) = looked {
            tracing::warn!(%error, "look for changed skills");
        }
    }
}

/// What is served and how it was asked for.
struct Serving<'a> {
    app: &'a App,
    server: McpServer,
    runs: Arc<ClientRuns>,
    options: &'a ServeOptions,
}

impl Serving<'_> {
    async fn until<T>(
        self,
        settings: &Settings,
        stop: impl Future<Output = T>,
        ready: impl FnOnce(&Ready) -> Result<(), Problem>,
    ) -> Result<Option<T>, Problem> {
        if self.options.stdio && self.options.http.is_none() {
            return self.over_pipes(stop).await;
        }
        let reach = Reach::of(self.options.http.as_deref(), self.options.no_auth, settings)?;
        raise_open_files();
        self.over_http(reach, stop, ready).await
    }

    async fn over_pipes<T>(self, stop: impl Future<Output = T>) -> Result<Option<T>, Problem> {
        tokio::select! {
            served = self.server.serve_stdio(std::io::stdin(), std::io::stdout()) => {
                served.map_err(|e| Problem::failed(e.to_string()))?;
                Ok(None)
            }
            stopped = stop => Ok(Some(stopped)),
        }
    }

    async fn over_http<T>(
        self,
        reach: Reach,
        stop: impl Future<Output = T>,
        ready: impl FnOnce(&Ready) -> Result<(), Problem>,
    ) -> Result<Option<T>, Problem> {
        let listener = Listener::bind(&reach).await.map_err(|e| {
            Problem::failed(format!("listen: {e}"))
                .at(Place::named(reach.address.to_string()))
                .advise("choose another: --http 127.0.0.1:0 takes a free port")
        })?;
        let reached = reach.at(listener.address)?;
        let tokens = Tokens {
            call: TokenFile::call(&self.app.site().home)?,
            operator: TokenFile::operator(&self.app.site().home)?,
        };
        if let Some(webhook) = self.app.webhook() {
            webhook.listens(reached.url.clone());
        }
        self.runs
            .listens(reached.url.clone(), tokens.operator.secret());
        let console = console(self.app, &reached);
        let bounds = Arc::new(Bounds::default());
        let gate = self.gate(&console, &reached, &tokens, &bounds);
        let (tell, told) = watch::channel(false);
        let api = Api::new(self.app.clone(), told.clone(), bounds);
        // The gate stands before it.
        let mcp = self.server.http(Access::checked_before());
        let routes = routes(Arc::clone(&api), &console, mcp.clone());
        let listening = tokio::spawn(listener.serve(gate::before(Arc::new(gate), routes), told));
        ready(&tokens.ready(&reached, &console)?)?;
        let stopped = if self.options.stdio {
            tokio::select! {
                stopped = stop => Some(stopped),
                _ = self.server.serve_stdio(std::io::stdin(), std::io::stdout()) => None,
            }
        } else {
            Some(stop.await)
        };
        // No new client is let in; what waits for an approval goes on waiting; then what runs is cancelled and recorded.
        let _ = tell.send(true);
        self.app.runs().stop_waiting();
        mcp.shutdown();
        api.release().await;
        if listening.await.is_err() {
            self.app.warn("the listener stopped early");
        }
        Ok(stopped)
    }

    fn gate(
        &self,
        console: &Arc<Console>,
        reached: &Reached,
        tokens: &Tokens,
        bounds: &Arc<Bounds>,
    ) -> Gate {
        Gate {
            console: Arc::clone(console),
            hosts: reached.hosts.clone(),
            call: (!self.options.no_auth).then(|| tokens.call.secret().to_owned()),
            operator: tokens.operator.secret().to_owned(),
            principal: self.app.principal().clone(),
            bounds: Arc::clone(bounds),
        }
    }
}

fn routes(api: Arc<Api>, console: &Arc<Console>, mcp: McpService) -> Router {
    Router::new()
        .fallback(pages::unknown)
        .with_state(Arc::clone(console))
        .merge(pages::router(Arc::clone(console)))
        .route("/healthz", get(health))
        .route_service("/mcp", mcp)
        .route(
            "/metrics",
            get(api::metrics::show).with_state(Arc::clone(&api)),
        )
        .nest("/api/v1", api::routes(api))
}

async fn health() -> Response {
    reply::document(&json!({"ok": true, "version": env!("CARGO_PKG_VERSION")}))
}

/// The console of this server; how strong the sandbox is comes to it as soon as that is tried.
fn console(app: &App, reached: &Reached) -> Arc<Console> {
    let console = Console::new(Options {
        port: reached.address.port(),
        https: reached.https,
        about: About {
            workspace: app.workspace().to_owned(),
            profile: app.profile().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            user: app.principal().subject.to_string(),
        },
        #[cfg(feature = "testing")]
        pages: app
            .site()
            .environment
            .get("HAFT_TESTING_UI_DIR")
            .map(Into::into),
    });
    let (shared, app) = (Arc::clone(&console), app.clone());
    tokio::spawn(async move {
        shared.found_strength(app.sandbox().probe().await.strength.word());
    });
    console
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

impl Tokens {
    fn ready(&self, reached: &Reached, console: &Console) -> Result<Ready, Problem> {
        let replaced = [&self.call, &self.operator]
            .into_iter()
            .filter(|file| file.replaced)
            .map(|file| file.path.clone());
        let link = console.login_link(&reached.url);
        Ok(Ready {
            address: reached.address,
            url: reached.url.clone(),
            token_file: self.call.path.clone(),
            operator_token_file: self.operator.path.clone(),
            replaced: replaced.collect(),
            login_link: link.map_err(|e| Problem::failed(e.to_string()))?,
        })
    }
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
