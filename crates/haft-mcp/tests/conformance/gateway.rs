//! The suite's server behind haft: its tools under their own names, its resources and prompts, all through the executor.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use haft::error::HostFailure;
use haft::executor::Executor;
use haft::future::BoxFuture;
use haft::progress::Pace;
use haft::session::Session;
use haft::toolset::registry::ToolRegistry;
use haft::{CancellationToken, Policy, Profile, Tool};
use haft_mcp::client::http::{Endpoint, HttpWire};
use haft_mcp::client::pipe::LONGEST;
use haft_mcp::client::{ClientError, Dial, Io, Wire};
use haft_mcp::guard::HostGuard;
use haft_mcp::http::{Access, McpService};
use haft_mcp::offer::Offer;
use haft_mcp::opener::{ClientInfo, OpenError, RunFactory};
use haft_mcp::server::{McpServer, ServerInfo, ServerLimits};
use haft_mcp::upstream::{
    Connector, Gateway, ServerRequestPolicy, Upstream, UpstreamTerms, internal_tools,
};
use http::{Response, StatusCode};
use http_body_util::{Either, Empty};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tower_service::Service as _;

/// How haft connects to the suite's server.
#[derive(Debug, Clone, Copy)]
struct Near(SocketAddr);

impl Connector for Near {
    fn open(&self) -> BoxFuture<'_, Result<Arc<dyn Wire>, ClientError>> {
        let url = format!("http://{}/mcp", self.0);
        let endpoint = Endpoint::new(&url, http::HeaderMap::new(), LONGEST).unwrap();
        let wire = HttpWire::new(endpoint, Box::new(*self));
        Box::pin(std::future::ready(Ok(Arc::new(wire) as Arc<dyn Wire>)))
    }
}

impl Dial for Near {
    fn dial<'a>(&'a self, _: &'a str, _: u16, _: bool) -> BoxFuture<'a, io::Result<Box<dyn Io>>> {
        Box::pin(async move {
            let stream = TcpStream::connect(self.0).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn Io>)
        })
    }
}

/// Opens a run for each client, over the tools of the server.
#[derive(Debug)]
struct Behind {
    executor: Executor,
    tools: Arc<ToolRegistry>,
    gateway: Arc<Gateway>,
}

impl RunFactory for Behind {
    fn open(&self, client: ClientInfo) -> BoxFuture<'_, Result<(Executor, Session), OpenError>> {
        Box::pin(async move {
            let session = Session::builder(Arc::clone(&self.tools) as _)
                .with_entry_point("mcp")
                .with_client(Some(client.name))
                .with_cancellation(&CancellationToken::new());
            let session = session.build().map_err(|e| OpenError(HostFailure::of(e)))?;
            Ok((self.executor.clone(), session))
        })
    }

    fn start<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, Result<(), OpenError>> {
        let opened = self.executor.open(session);
        Box::pin(std::future::ready(
            opened.map_err(|e| OpenError(HostFailure::of(e))),
        ))
    }

    fn pace(&self) -> Pace {
        Pace {
            gather: std::time::Duration::ZERO,
            ..Pace::default()
        }
    }

    fn offer(&self) -> Option<Arc<dyn Offer>> {
        Some(Arc::clone(&self.gateway) as _)
    }

    fn release(&self, session: &Session) {
        session.cancel();
    }
}

/// Returns haft in front of the server at this address.
pub(crate) async fn front(address: SocketAddr) -> McpServer {
    let terms = UpstreamTerms {
        prefix: Some(String::new()),
        concurrency: 64,
        passing: ServerRequestPolicy {
            sampling: true,
            client_roots: true,
            ..ServerRequestPolicy::default()
        },
        ..UpstreamTerms::default()
    };
    let near = Near(address);
    let manifest = Upstream::look("suite".into(), &near, terms.limits).await;
    let upstream = Upstream::new("suite", manifest.unwrap(), Arc::new(near), terms);
    let upstream = Arc::new(upstream);
    let (tools, refused) = upstream.tools();
    assert!(refused.is_empty(), "{refused:?}");
    let registry = ToolRegistry::new();
    for tool in tools {
        let added = registry.add_all([Arc::new(tool) as Arc<dyn Tool>]);
        assert!(added.is_ok(), "{added:?}");
    }
    let internal = ToolRegistry::new();
    internal.add_all(internal_tools(&upstream)).unwrap();
    let policy = Policy::builder(Profile::Workspace).allow("*").build();
    let executor = Executor::new(policy.unwrap()).with_internal_tools(Arc::new(internal));
    let behind = Behind {
        executor,
        tools: Arc::new(registry),
        gateway: Arc::new(Gateway::new(move || vec![Arc::clone(&upstream)])),
    };
    let info = ServerInfo {
        name: "haft".into(),
        title: "haft".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        instructions: None,
    };
    let limits = ServerLimits {
        task_after: std::time::Duration::from_millis(300),
        ..ServerLimits::default()
    };
    McpServer::new(&info, limits, Arc::new(behind))
}

/// Serves on a free port, with `legacy` only to clients of the handshake era; returns the address.
pub(crate) async fn serve(server: &McpServer, legacy: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = server.http(Access::without_token(HostGuard::new(address)));
    tokio::spawn(accept(listener, service, legacy));
    address
}

async fn accept(listener: TcpListener, service: McpService, legacy: bool) {
    while let Ok((stream, _)) = listener.accept().await {
        let service = service.clone();
        tokio::spawn(async move {
            let answer = service_fn(move |request: http::Request<hyper::body::Incoming>| {
                let mut service = service.clone();
                async move {
                    // The answer of a server that does not know the stateless era.
                    if legacy && request.headers().contains_key("mcp-method") {
                        let mut unknown = Response::new(Either::Left(Empty::new()));
                        *unknown.status_mut() = StatusCode::BAD_REQUEST;
                        return Ok(unknown);
                    }
                    let answer = service.call(request).await?;
                    Ok::<_, std::convert::Infallible>(answer.map(Either::Right))
                }
            });
            let connection = hyper::server::conn::http1::Builder::new();
            let _hung_up = connection
                .serve_connection(TokioIo::new(stream), answer)
                .await;
        });
    }
}
