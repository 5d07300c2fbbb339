//! haft's client against haft's server, over both transports and in both eras.

use std::io;
use std::sync::Arc;

use haft::future::BoxFuture;
use haft_mcp::client::http::{Endpoint, HttpWire};
use haft_mcp::client::pipe::{LONGEST, PipeWire, ServerProcess};
use haft_mcp::client::{Client, ClientError, ClientLimits, Dial, Io, Wire};
use haft_mcp::era::{Era, Revision};
use haft_mcp::http::{Access, McpService};
use haft_mcp::server::{McpServer, ServerLimits};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tower_service::Service as _;

use crate::support::server;

struct Inside;

impl ServerProcess for Inside {
    fn stderr_tail(&self) -> String {
        String::new()
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Returns a wire to a server of this process over real pipes.
fn pipes(server: &McpServer) -> PipeWire {
    let (their_input, our_output) = io::pipe().unwrap();
    let (our_input, their_output) = io::pipe().unwrap();
    let server = server.clone();
    tokio::spawn(async move { server.serve_stdio(their_input, their_output).await });
    let input = tokio::net::unix::pipe::Sender::from_owned_fd(our_output.into()).unwrap();
    let output = tokio::net::unix::pipe::Receiver::from_owned_fd(our_input.into()).unwrap();
    PipeWire::new(input, output, Box::new(Inside), LONGEST)
}

/// Connects to a service of this process over real HTTP/1, and counts the connections.
struct Near {
    service: McpService,
    dialled: Arc<Mutex<usize>>,
}

impl Dial for Near {
    fn dial<'a>(&'a self, _: &'a str, _: u16, _: bool) -> BoxFuture<'a, io::Result<Box<dyn Io>>> {
        let (client, server) = tokio::io::duplex(64 * 1024);
        let service = self.service.clone();
        *self.dialled.lock() += 1;
        tokio::spawn(async move {
            let answer = hyper::service::service_fn(move |request| service.clone().call(request));
            let connection = hyper::server::conn::http1::Builder::new();
            let _hung_up = connection
                .serve_connection(TokioIo::new(server), answer)
                .await;
        });
        Box::pin(std::future::ready(Ok(Box::new(client) as Box<dyn Io>)))
    }
}

fn over_http(service: McpService) -> (HttpWire, Arc<Mutex<usize>>) {
    let dialled = Arc::<Mutex<usize>>::default();
    let near = Near {
        service,
        dialled: Arc::clone(&dialled),
    };
    let headers = http::HeaderMap::new();
    let endpoint = Endpoint::new("http://127.0.0.1/mcp", headers, LONGEST).unwrap();
    (HttpWire::new(endpoint, Box::new(near)), dialled)
}

#[tokio::test]
async fn our_client_uses_our_server_over_every_wire_and_in_every_era() {
    let known = [None, Some(Era::Legacy(Revision::V2025_11_25))];
    for known in known {
        let (server, opener) = server(ServerLimits::default());
        let (http, dialled) = over_http(server.http(Access::checked_before()));
        let wires: [Arc<dyn Wire>; 2] = [Arc::new(pipes(&server)), Arc::new(http)];
        for wire in wires {
            let client = Client::connect(wire, known, ClientLimits::default())
                .await
                .unwrap();
            assert_eq!(client.era(), known.unwrap_or(Era::Modern));
            assert_eq!(client.server().name, "haft");
            assert_eq!(
                client.server().instructions.as_deref(),
                Some("Use the tools.")
            );
            let tools = client.tools().await.unwrap();
            assert!(tools.iter().any(|tool| tool.name == "echo"), "{tools:?}");
            let arguments = r#"{"z":1,"text":"gr\u00fcn","a":[]}"#;
            for _ in 0..20 {
                let reply = client.call_tool("echo", arguments, None).await.unwrap();
                assert!(!reply.is_error, "{reply:?}");
            }
            assert_eq!(opener.calls().last().unwrap().1, arguments);
            let missing = client.call_tool("nothing", "{}", None).await;
            assert!(missing.is_err() || missing.is_ok_and(|reply| reply.is_error));
            client.close().await;
        }
        // One connection is reused; in the handshake era the server's own stream has another one.
        let own = usize::from(known.is_some());
        assert_eq!(*dialled.lock(), 1 + own);
    }
}

#[tokio::test]
async fn a_session_that_the_server_forgot_is_said_to_be_over() {
    let (server, _) = server(ServerLimits::default());
    let service = server.http(Access::checked_before());
    let (http, _) = over_http(service.clone());
    let known = Some(Era::Legacy(Revision::V2025_11_25));
    let client = Client::connect(Arc::new(http), known, ClientLimits::default())
        .await
        .unwrap();
    service.shutdown();
    let error = client.call_tool("echo", "{}", None).await.unwrap_err();
    assert!(matches!(error, ClientError::SessionOver), "{error}");
    assert!(error.is_before_effect());
}
