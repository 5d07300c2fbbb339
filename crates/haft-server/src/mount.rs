//! Parts of the server for an embedding program's own routes: MCP and the approvals API, each with its own access checks.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, DefaultBodyLimit, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use haft_app::Haft;
use haft_app::problem::Problem;
use haft_mcp::http::{Access, AccessDenied, McpService};
use haft_mcp::server::{McpServer, ServerInfo, ServerLimits};
use tokio::sync::watch;

use crate::api::approvals;
use crate::api::state::Api;
use crate::bounds::ApiLimits;
use crate::caller::{ApiCaller, AuthMethod, Peer};
use crate::gate::{GateRefusal, harden};
use crate::opener::ClientRuns;
use crate::tabs::Tabs;

/// An application's tools over MCP: on stdin and stdout, or as an HTTP service among a program's own routes. The calls of each
/// client form a run of the application.
///
/// ```no_run
/// use axum::Router;
/// use haft_app::Haft;
/// use haft_server::{Access, TokenOwner, HostGuard, Mcp};
///
/// # async fn example(haft: Haft) -> Result<(), Box<dyn std::error::Error>> {
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:7421").await?;
/// let hosts = HostGuard::new(listener.local_addr()?);
/// let access = Access::bearer(hosts, |token| -> Option<TokenOwner> { None });
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
    /// Creates a server for the tools of an application.
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

    /// Sets the server's name, for programs, and its title, for users.
    pub fn named(mut self, name: impl Into<String>, title: impl Into<String>) -> Self {
        self.info.name = name.into();
        self.info.title = title.into();
        self
    }

    /// Sets the server's version, which is haft's by default.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.info.version = version.into();
        self
    }

    /// Sets the instructions for models.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.info.instructions = Some(text.into());
        self
    }

    /// Limits what clients may make the server hold.
    pub fn limits(mut self, limits: ServerLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Serves one client on stdin and stdout until it disconnects, then suspends or finishes its run. Other runs of the
    /// application continue.
    ///
    /// # Errors
    /// A stream cannot be read or written.
    pub async fn stdio(self) -> Result<(), Problem> {
        self.client(std::io::stdin(), std::io::stdout()).await
    }

    /// Serves one client on two streams until it disconnects.
    async fn client<R, W>(self, input: R, output: W) -> Result<(), Problem>
    where
        R: std::io::Read + Send + 'static,
        W: std::io::Write + Send + 'static,
    {
        let runs = self.runs.for_other_clients();
        let server = McpServer::new(&self.info, self.limits, Arc::clone(&runs) as _);
        let served = server.serve_stdio(input, output).await;
        runs.release_held().await;
        served.map_err(|e| Problem::failed(e.to_string()))
    }

    /// Returns the HTTP service for callers that `access` admits: it checks Host, Origin and token before anything else in a request.
    /// Clones share their sessions. When the program stops, it must call [`McpService::shutdown`] first, then [`Haft::shut_down`].
    pub fn http(&self, access: Access) -> McpService {
        let runs = Arc::clone(&self.runs);
        McpServer::new(&self.info, self.limits.clone(), runs as _).http(access)
    }
}

/// Returns the routes by which operators view and decide requests, to be nested in a program's own: `GET /` (`?status=`,
/// `?run=`), `GET /{id}`, `POST /{id}/approve | deny | answer`, `POST /batch`, as below `/api/v1/approvals` of `haft serve`
/// (docs/reference/contract.md §9).
///
/// They are for operators only: `access` must identify a caller as one ([`TokenOwner::operator`](haft_mcp::http::TokenOwner)) and say who
/// it is. A token that a model's calls use decides nothing. An operator sees the requests of its own tenant.
pub fn approvals(haft: &Haft, access: Access) -> Router {
    let bounds = Arc::new(ApiLimits::default());
    // No route here follows events, which would end when a server stops.
    let (_, stopped) = watch::channel(false);
    let api = Api::new(
        haft.app().clone(),
        stopped,
        Arc::clone(&bounds),
        Tabs::new(haft.app().site().home.clone()),
        None,
    );
    let entrance = Arc::new(ApprovalAccess { access, bounds });
    Router::new()
        .route("/", get(approvals::list))
        .route("/batch", post(approvals::batch))
        .route("/{id}", get(approvals::show))
        .route("/{id}/{decision}", post(approvals::decide))
        // The entrance has already read the body, within its limits.
        .layer(DefaultBodyLimit::disable())
        .with_state(api)
        .layer(middleware::from_fn_with_state(entrance, check))
}

/// The checks in front of the approval routes.
struct ApprovalAccess {
    access: Access,
    bounds: Arc<ApiLimits>,
}

/// Passes an operator's request to the routes, or answers it.
async fn check(
    State(entrance): State<Arc<ApprovalAccess>>,
    request: Request,
    next: Next,
) -> Response {
    let passed = entrance.handle_request(request, next).await;
    let mut response = passed.unwrap_or_else(IntoResponse::into_response);
    harden(response.headers_mut());
    response
}

impl ApprovalAccess {
    async fn handle_request(
        &self,
        mut request: Request,
        next: Next,
    ) -> Result<Response, GateRefusal> {
        let admitted = self.access.admit(&request);
        let caller = admitted.map_err(|denied| match denied {
            AccessDenied::Foreign(foreign) => GateRefusal::Foreign(foreign),
            AccessDenied::NoToken => GateRefusal::UnknownToken,
        })?;
        let operator = caller.principal.filter(|_| caller.operator);
        let operator = operator.ok_or(GateRefusal::NotTheOperator)?;
        let connection = request.extensions().get::<ConnectInfo<SocketAddr>>();
        let peer = connection.map(|ConnectInfo(address)| Peer(address.ip()));
        let extensions = request.extensions_mut();
        if let Some(peer) = peer {
            extensions.insert(peer);
        }
        extensions.insert(ApiCaller::Operator);
        extensions.insert(AuthMethod::Token);
        extensions.insert(operator);
        let places = &self.bounds.requests;
        let class = ApiCaller::Operator.class();
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
        haft.shut_down().await;
    }
}
