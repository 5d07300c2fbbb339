//! Parts of the server for a program's own routes: MCP, and the API of approvals, each behind checks of its own.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, DefaultBodyLimit, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use haft_app::Haft;
use haft_app::problem::Problem;
use haft_mcp::http::{Access, Denied, McpService};
use haft_mcp::server::{McpServer, ServerInfo, ServerLimits};
use tokio::sync::watch;

use crate::api::approvals;
use crate::api::state::Api;
use crate::bounds::Bounds;
use crate::caller::{Caller, Peer, Way};
use crate::gate::{Refusal, harden};
use crate::opener::ClientRuns;
use crate::tabs::Tabs;

/// An application's tools over MCP: on stdin and stdout, or as an HTTP service among a program's own routes. Every client's calls are a
/// run of the application.
///
/// ```no_run
/// use axum::Router;
/// use haft_app::Haft;
/// use haft_server::{Access, Caller, HostGuard, Mcp};
///
/// # async fn example(haft: Haft) -> Result<(), Box<dyn std::error::Error>> {
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:7421").await?;
/// let hosts = HostGuard::new(listener.local_addr()?);
/// let access = Access::bearer(hosts, |token| -> Option<Caller> { None });
/// let mcp = Mcp::new(&haft).named("mine", "My product").http(access);
/// axum::serve(listener, Router::new().route_service("/mcp", mcp)).await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Mcp {
    runs: Arc<ClientRuns>,
    info: ServerInfo,
    limits: ServerLimits,
}

impl Mcp {
    /// A server over the tools of an application.
    pub fn new(haft: &Haft) -> Self {
        Self {
            runs: ClientRuns::new(haft.app().clone(), haft.settings()),
            info: ServerInfo {
                name: "haft".to_owned(),
                title: "haft".to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                instructions: None,
            },
            limits: ServerLimits::default(),
        }
    }

    /// Calls itself this way: a name for programs, a title for users.
    pub fn named(mut self, name: impl Into<String>, title: impl Into<String>) -> Self {
        self.info.name = name.into();
        self.info.title = title.into();
        self
    }

    /// Says that it is of this version, instead of haft's.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.info.version = version.into();
        self
    }

    /// Tells models how to use it.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.info.instructions = Some(text.into());
        self
    }

    /// Bounds what clients may make it hold.
    pub fn limits(mut self, limits: ServerLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Serves one client on stdin and stdout until it hangs up. Its run is suspended or finished then; every other run of the application
    /// goes on.
    ///
    /// # Errors
    /// A stream cannot be read or written.
    pub async fn stdio(self) -> Result<(), Problem> {
        self.client(std::io::stdin(), std::io::stdout()).await
    }

    /// Serves one client on two streams until it hangs up.
    async fn client<R, W>(self, input: R, output: W) -> Result<(), Problem>
    where
        R: std::io::Read + Send + 'static,
        W: std::io::Write + Send + 'static,
    {
        let runs = self.runs.apart();
        let server = McpServer::new(&self.info, self.limits, Arc::clone(&runs) as _);
        let served = server.serve_stdio(input, output).await;
        runs.release_held().await;
        served.map_err(|e| Problem::failed(e.to_string()))
    }

    /// The HTTP service, for those whom `access` lets in: it checks Host, Origin and token before it looks at a request. Clones share
    /// their sessions. A program that stops calls [`McpService::shutdown`] first, then [`Haft::shut`].
    pub fn http(&self, access: Access) -> McpService {
        let runs = Arc::clone(&self.runs);
        McpServer::new(&self.info, self.limits.clone(), runs as _).http(access)
    }
}

/// The routes by which operators see and decide requests, to be nested in a program's own:
/// `GET /` (`?status=`, `?run=`), `GET /{id}`, `POST /{id}/approve | deny | answer`, `POST /batch`, as below `/api/v1/approvals` of
/// `haft serve` (docs/reference/contract.md §9).
///
/// They are for operators alone: `access` must say of a caller that it is one ([`Caller::operator`](haft_mcp::http::Caller)) and who it
/// is. A token with which a model's calls come decides about none of them. An operator sees the requests of its own tenant.
pub fn approvals(haft: &Haft, access: Access) -> Router {
    let bounds = Arc::new(Bounds::default());
    // Nothing here follows events, which end when a server stops.
    let (_, stopped) = watch::channel(false);
    let api = Api::new(
        haft.app().clone(),
        stopped,
        Arc::clone(&bounds),
        Tabs::new(haft.app().site().home.clone()),
        None,
    );
    let entrance = Arc::new(Entrance { access, bounds });
    Router::new()
        .route("/", get(approvals::list))
        .route("/batch", post(approvals::batch))
        .route("/{id}", get(approvals::show))
        .route("/{id}/{decision}", post(approvals::decide))
        // The entrance has read the body within its bounds.
        .layer(DefaultBodyLimit::disable())
        .with_state(api)
        .layer(middleware::from_fn_with_state(entrance, check))
}

/// What stands before the routes of approvals.
struct Entrance {
    access: Access,
    bounds: Arc<Bounds>,
}

/// Lets an operator's request through to the routes, or answers it.
async fn check(State(entrance): State<Arc<Entrance>>, request: Request, next: Next) -> Response {
    let passed = entrance.pass(request, next).await;
    let mut response = passed.unwrap_or_else(IntoResponse::into_response);
    harden(response.headers_mut());
    response
}

impl Entrance {
    async fn pass(&self, mut request: Request, next: Next) -> Result<Response, Refusal> {
        let admitted = self.access.admit(&request);
        let caller = admitted.map_err(|denied| match denied {
            Denied::Foreign(foreign) => Refusal::Foreign(foreign),
            Denied::NoToken => Refusal::UnknownToken,
        })?;
        let operator = caller.principal.filter(|_| caller.operator);
        let operator = operator.ok_or(Refusal::NotTheOperator)?;
        let connection = request.extensions().get::<ConnectInfo<SocketAddr>>();
        let peer = connection.map(|ConnectInfo(address)| Peer(address.ip()));
        let extensions = request.extensions_mut();
        if let Some(peer) = peer {
            extensions.insert(peer);
        }
        extensions.insert(Caller::Operator);
        extensions.insert(Way::Token);
        extensions.insert(operator);
        let places = &self.bounds.requests;
        let class = Caller::Operator.class();
        self.bounds.pass(places, class, request, next).await
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use haft::call::{Principal, ToolCall};
    use haft::policy::Profile;
    use haft::result::Status;
    use haft_app::Haft;

    use crate::mount::Mcp;

    /// Says hello.
    #[haft::tool]
    fn hello() -> String {
        "hello".to_owned()
    }

    #[tokio::test]
    async fn a_run_of_the_program_goes_on_when_a_client_on_stdio_hangs_up() {
        let haft = Haft::builder().tool(hello).policy(Profile::Trusted);
        let haft = haft.build().unwrap();
        let run = haft.run(Principal::local("ann")).await.unwrap();
        let input = concat!(
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
            "\n",
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            "\n",
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hello","arguments":{}}}"#,
            "\n",
        );
        let mcp = Mcp::new(&haft);
        mcp.client(Cursor::new(input), std::io::sink())
            .await
            .unwrap();
        let outcome = run.call(ToolCall::new("hello", "{}")).await;
        assert_eq!(outcome.status, Status::Ok, "{outcome:?}");
        run.finish().await.unwrap();
        haft.shut().await;
    }
}
