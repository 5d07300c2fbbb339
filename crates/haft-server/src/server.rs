//! `serve`: one listener with MCP, the HTTP API, the console and health checks; or MCP on stdin and stdout.

use std::future::pending;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::response::Response;
use axum::routing::get;
use haft::clock;
use haft::toolset::Toolset as _;
use haft::toolset::lazy::CALL_TOOL;
use haft_app::app::App;
use haft_app::config::Settings;
use haft_app::hook::Hooks;
use haft_app::listening::ListenerNote;
use haft_app::oauth::WELL_KNOWN;
use haft_app::problem::{Problem, SourceLocation};
use haft_app::running::background::trim_log;
use haft_app::running::{ServerAnnouncement, ServerDescription, servers};
use haft_app::{follower, others};
use haft_chain::TOOL_CHAIN;
use haft_mcp::http::{Access, McpService};
use haft_mcp::server::{McpServer, ServerInfo, ServerLimits};
use serde_json::json;
use tokio::sync::{oneshot, watch};

use crate::api;
use crate::api::state::Api;
use crate::attach::Attach;
use crate::bounds::ApiLimits;
use crate::console::{About, Console, ConsoleOptions, routes as pages};
use crate::gate::{self, ApiGate};
use crate::listen::Listener;
use crate::opener::ClientRuns;
use crate::people::{self, People};
use crate::reach::{ListenAddress, ListenPlan};
use crate::reply;
use crate::tabs::Tabs;
use crate::token_watch::watch_tokens;
use crate::tokens::TokenFile;

/// Interval between checks for changed skills; a check takes about a microsecond per file.
const SKILL_WATCH: Duration = Duration::from_secs(2);

/// Interval at which the background server checks whether it is still needed.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// How long the background server stays without an open page.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4 * 60 * 60);
/// The server's instructions for models.
const INSTRUCTIONS: &str = "Tools on one folder, under a policy that the user set. Paths are relative to that folder. A denied call says why; large results are stored as artifacts: read them with read_artifact.";

/// Added when only a few of the tools are listed.
const LAZY_INSTRUCTIONS: &str =
    "Only a few tools are listed: tool_search finds the others, and call_tool calls them.";

/// Options of a server.
#[derive(Debug, Clone, Default)]
pub struct ServeOptions {
    /// The address to listen on, as `HOST:PORT`; port 0 picks a free one. Defaults to the setting `serve.http`.
    pub http: Option<String>,
    /// Speak MCP on stdin and stdout; without `http`, no port is opened.
    pub stdio: bool,
    /// Require no token of callers; on loopback only.
    pub no_auth: bool,
    /// The role of this server in relation to the background server, which has the console for all folders.
    pub background: Background,
}

/// A server's relation to the background server. Other values than the default are for the `haft` command only: the program is
/// started again as `haft serve --background`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Background {
    /// No relation: it starts no program.
    #[default]
    Never,
    /// If it opens no port and no haft server is running, it starts one when a request is pending.
    WhenAsked,
    /// It is the background server: the console and its API on a loopback port, without MCP. It ends when
    /// [`stop`](haft_app::running::background::stop) asks it to, or when no page has been open for some hours.
    Itself,
}

/// A server whose routes all respond, and how clients reach it.
#[derive(Debug)]
pub struct ReadyServer {
    /// The address it listens on.
    pub address: SocketAddr,
    /// The URL for clients and browsers, without a trailing slash.
    pub url: String,
    /// The file with the call token.
    pub token_file: PathBuf,
    /// The file with the operator's token.
    pub operator_token_file: PathBuf,
    /// Those of the two files whose old token was replaced because others could have read it.
    pub replaced: Vec<PathBuf>,
    /// A link that logs in to the console, once, within 5 minutes.
    pub login_link: String,
}

/// Serves until `stop` completes or the client on stdin disconnects. Calls `ready` once all routes respond, but not if no port is
/// opened. Returns the output of `stop`, or `None` if the client disconnected.
///
/// # Errors
/// The address is unavailable or unsafe, a token file cannot be stored, or `ready` fails.
pub async fn serve<T>(
    app: &App,
    settings: &Settings,
    options: &ServeOptions,
    stop: impl Future<Output = T>,
    ready: impl FnOnce(&ReadyServer) -> Result<(), Problem>,
) -> Result<Option<T>, Problem> {
    let runs = ClientRuns::new(app.clone(), settings);
    let watching = tokio::spawn(watch_skills(app.clone()));
    let hearing = tokio::spawn(others::follow_other_processes(app.clone()));
    let (stop_following, stopped) = oneshot::channel();
    let following = tokio::spawn(follower::follow(app.clone(), stopped));
    if app.tools().snapshot().entry(TOOL_CHAIN).is_some() {
        // The first script finds a warm interpreter.
        app.code().warm();
    }
    let server = McpServer::new(&info(app), ServerLimits::default(), Arc::clone(&runs) as _);
    let serving = ServeContext {
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
    // The runs that it resumes end, or are suspended, before the others.
    if let Err(error) = following.await {
        tracing::error!(%error, "stop following decisions");
    }
    runs.release_all().await;
    done
}

/// Checks for changed skills periodically, so that clients learn of them without asking.
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

/// What to serve, and how.
struct ServeContext<'a> {
    app: &'a App,
    server: McpServer,
    runs: Arc<ClientRuns>,
    options: &'a ServeOptions,
}

impl ServeContext<'_> {
    async fn until<T>(
        self,
        settings: &Settings,
        stop: impl Future<Output = T>,
        ready: impl FnOnce(&ReadyServer) -> Result<(), Problem>,
    ) -> Result<Option<T>, Problem> {
        raise_open_files();
        if self.options.stdio && self.options.http.is_none() {
            let starts = self.options.background == Background::WhenAsked;
            self.runs.set_console_finder(Attach::new(self.app, starts));
            return self.over_pipes(stop).await;
        }
        if self.is_background() {
            let alone = self.app.wanted_console().lock()?;
            let _alone = alone.ok_or_else(|| {
                Problem::failed("a haft server is already running in the background")
                    .advise("`haft console` opens its console; `haft console --stop` ends it")
            })?;
            let reach = ListenPlan::background();
            return self.over_http(reach, stop, ready).await;
        }
        if self.options.no_auth && self.app.oauth().is_some() {
            let what = "--no-auth and serve.oauth contradict each other";
            return Err(Problem::usage(what).advise("leave --no-auth out, or unset serve.oauth"));
        }
        let reach = ListenPlan::of(self.options.http.as_deref(), self.options.no_auth, settings)?;
        self.over_http(reach, stop, ready).await
    }

    fn is_background(&self) -> bool {
        self.options.background == Background::Itself
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
        reach: ListenPlan,
        stop: impl Future<Output = T>,
        ready: impl FnOnce(&ReadyServer) -> Result<(), Problem>,
    ) -> Result<Option<T>, Problem> {
        let listener = Listener::bind(&reach).map_err(|e| self.cannot_listen(&reach, &e))?;
        let home = self.app.site().home.path();
        let _noted = ListenerNote::note(home, listener.address).map_err(|e| {
            Problem::failed(format!("cannot note where it listens: {e}"))
                .at(SourceLocation::file(home))
        })?;
        let reached = reach.at(listener.address)?;
        let tokens = TokenFiles {
            call: TokenFile::call(&self.app.site().home)?,
            operator: TokenFile::operator(&self.app.site().home)?,
        };
        if let Some(webhook) = self.app.webhook() {
            webhook.listens(reached.url.clone());
        }
        self.runs
            .listens(reached.url.clone(), tokens.operator.secret());
        let tabs = Tabs::new(self.app.site().home.clone());
        let console = self.console(&reached, &tabs);
        let bounds = Arc::new(ApiLimits::default());
        let gate = self.gate(&console, &reached, &tokens, &bounds);
        let (tell, told) = watch::channel(false);
        let hooks = Hooks::new(self.app.site(), true);
        let api = Api::new(
            self.app.clone(),
            told.clone(),
            bounds,
            Arc::clone(&tabs),
            Some(hooks.clone()),
        );
        // The gate in front of it has checked the request.
        let mcp = self.server.http(Access::checked_before());
        let watching = tokio::spawn(watch_tokens(self.app.clone(), mcp.clone()));
        let served = (!self.is_background()).then(|| mcp.clone());
        let routes = routes(Arc::clone(&api), &console, served);
        let routes = with_metadata(routes, self.app);
        let listening = tokio::spawn(listener.serve(gate::before(Arc::new(gate), routes), told));
        let announced = ServerAnnouncement::new(&self.app.site().home, &self.record(&reached))?;
        ready(&tokens.ready(&reached, &console)?)?;
        let counting = tokio::spawn(Arc::clone(&tabs).watch());
        let stopped = tokio::select! {
            stopped = stop => Some(stopped),
            () = self.client_disconnected() => None,
            () = self.left_alone(&announced, &tabs, &hooks) => None,
        };
        counting.abort();
        watching.abort();
        // Before the port is free: a process that finds the record may rely on who answers there.
        drop(announced);
        // First no new client is accepted and pending approvals are left to wait; then running calls are cancelled and recorded.
        let _ = tell.send(true);
        self.app.runs().stop_waiting();
        mcp.shutdown();
        api.release().await;
        if listening.await.is_err() {
            self.app.warn("the listener stopped early");
        }
        Ok(stopped)
    }

    /// Returns the error for a failed bind; if another server of this user has the port, it says which.
    fn cannot_listen(&self, reach: &ListenPlan, error: &std::io::Error) -> Problem {
        let address = reach.address.to_string();
        let servers = servers(&self.app.site().home).unwrap_or_default();
        let has_port = |url: &str| url.strip_suffix(&address).is_some();
        let other = servers.iter().find(|server| has_port(&server.record.url));
        let advice = match other.and_then(|server| server.record.workspace.as_deref()) {
            Some(folder) => format!(
                "a `haft serve` in {folder} has it, and `haft console` opens its console; --http 127.0.0.1:0 takes a free port"
            ),
            None => "choose another: --http 127.0.0.1:0 takes a free port".to_owned(),
        };
        Problem::failed(format!("cannot listen: {error}"))
            .at(SourceLocation::named(address))
            .advise(advice)
    }

    /// Waits until the client on stdin disconnects; forever if there is none.
    async fn client_disconnected(&self) {
        if !self.options.stdio {
            return pending().await;
        }
        // However it ends, the client is gone.
        let _ended = self
            .server
            .serve_stdio(std::io::stdin(), std::io::stdout())
            .await;
    }

    /// Waits until the background server is no longer needed; forever for any other server.
    async fn left_alone(&self, announced: &ServerAnnouncement, tabs: &Tabs, hooks: &Hooks) {
        if !self.is_background() {
            return pending().await;
        }
        let home = &self.app.site().home;
        loop {
            tokio::time::sleep(CHECK_INTERVAL).await;
            let quiet = tabs.quiet(Instant::now()).unwrap_or_default();
            let quiet = quiet > IDLE_TIMEOUT && hooks.is_quiet();
            if quiet || !announced.stands() {
                return;
            }
            trim_log(home);
        }
    }

    /// Returns the folder that it serves; `None` if that is not a folder of the user's.
    fn folder(&self) -> Option<String> {
        let has_folder = self.app.site().has_folder();
        has_folder.then(|| self.app.workspace().to_owned())
    }

    /// Returns the record by which other processes find this server.
    fn record(&self, reached: &ListenAddress) -> ServerDescription {
        ServerDescription {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            url: reached.url.clone(),
            workspace: self.folder(),
            store: self.app.wanted_console().store().to_owned(),
            pid: std::process::id(),
            began: clock::now(),
        }
    }

    /// Creates this server's console and sets the sandbox's strength once it is known.
    fn console(&self, reached: &ListenAddress, tabs: &Arc<Tabs>) -> Arc<Console> {
        let app = self.app.clone();
        let console = Console::new(ConsoleOptions {
            port: reached.address.port(),
            https: reached.https,
            tabs: Arc::clone(tabs),
            about: About {
                workspace: self.folder(),
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
        let shared = Arc::clone(&console);
        tokio::spawn(async move {
            shared.set_strength(app.sandbox().probe().await.strength.word());
        });
        console
    }

    fn gate(
        &self,
        console: &Arc<Console>,
        reached: &ListenAddress,
        tokens: &TokenFiles,
        bounds: &Arc<ApiLimits>,
    ) -> ApiGate {
        ApiGate {
            console: Arc::clone(console),
            hosts: reached.hosts.clone(),
            call: (!self.options.no_auth).then(|| tokens.call.secret().to_owned()),
            operator: tokens.operator.secret().to_owned(),
            people: People::new(self.app),
            principal: self.app.principal().clone(),
            bounds: Arc::clone(bounds),
        }
    }
}

fn routes(api: Arc<Api>, console: &Arc<Console>, mcp: Option<McpService>) -> Router {
    let router = Router::new()
        .fallback(pages::unknown)
        .with_state(Arc::clone(console))
        .merge(pages::router(Arc::clone(console)));
    let router = match mcp {
        Some(mcp) => router.route_service("/mcp", mcp),
        None => router,
    };
    router
        .route("/healthz", get(health))
        .route(
            "/metrics",
            get(api::metrics::show).with_state(Arc::clone(&api)),
        )
        .nest("/api/v1", api::routes(api))
}

/// Adds the metadata that tells clients of the authorization server, if there is one.
fn with_metadata(routes: Router, app: &App) -> Router {
    let (Some(oauth), Some(metadata)) = (app.oauth(), people::metadata(app)) else {
        return routes;
    };
    let mut places = vec![WELL_KNOWN.to_owned(), oauth.metadata_path()];
    places.dedup();
    places.into_iter().fold(routes, |routes, place| {
        let metadata = metadata.clone();
        let show = move || async move { reply::document(&metadata) };
        routes.route(&place, get(show))
    })
}

async fn health() -> Response {
    reply::document(&json!({"ok": true, "version": env!("CARGO_PKG_VERSION")}))
}

fn info(app: &App) -> ServerInfo {
    let served = app.served(None);
    let lazy = served.is_some_and(|tools| tools.snapshot().entry(CALL_TOOL).is_some());
    let instructions = if lazy {
        format!("{INSTRUCTIONS} {LAZY_INSTRUCTIONS}")
    } else {
        INSTRUCTIONS.to_owned()
    };
    ServerInfo {
        name: "haft".to_owned(),
        title: "haft".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        instructions: Some(instructions),
    }
}

/// Both token files.
struct TokenFiles {
    call: TokenFile,
    operator: TokenFile,
}

impl TokenFiles {
    fn ready(&self, reached: &ListenAddress, console: &Console) -> Result<ReadyServer, Problem> {
        let replaced = [&self.call, &self.operator]
            .into_iter()
            .filter(|file| file.replaced)
            .map(|file| file.path.clone());
        let link = console.login_link(&reached.url);
        Ok(ReadyServer {
            address: reached.address,
            url: reached.url.clone(),
            token_file: self.call.path.clone(),
            operator_token_file: self.operator.path.clone(),
            replaced: replaced.collect(),
            login_link: link.map_err(|e| Problem::failed(e.to_string()))?,
        })
    }
}

/// Raises the limit of open files to the maximum: many concurrent clients need as many descriptors as the system grants.
fn raise_open_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(e) = setrlimit(Resource::Nofile, limit) {
        tracing::debug!(error = %e, "raise the limit of open files");
    }
}
