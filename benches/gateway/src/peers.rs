//! The other gateways, each started as its own documentation says.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use mcp::processor;
use mcp::request::Target;
use mcp::server::Server;

/// The versions that `scripts/bench` installs.
pub(crate) const VERSIONS: &str = "mcp-proxy 0.13.0, supergateway 4.0.0, fastmcp 4.1.2";

/// A proxy by fastmcp, over HTTP on both sides: its arguments are the port and the server behind it.
const FASTMCP: &str = "
import sys
from fastmcp.server import create_proxy
create_proxy(sys.argv[2]).run(transport='http', host='127.0.0.1', port=int(sys.argv[1]), show_banner=False)
";

/// Returns all of them. mcp-proxy and supergateway cannot forward over HTTP: theirs is a process.
pub(crate) fn all(
    folder: &Path,
    rmcp: &Path,
    backend: &str,
) -> Vec<(&'static str, Server, Target)> {
    let target = Target::echo().by_handshake();
    let start = |program: &Path, arguments: &dyn Fn(&mut Command, &str)| {
        let mut command = processor::server(program);
        let port = free_port().to_string();
        arguments(&mut command, &port);
        Server::start_at(command, format!("127.0.0.1:{port}"))
    };
    let mcp_proxy = start(&folder.join("mcp-proxy/bin/mcp-proxy"), &|command, port| {
        command.args(["--port", port, "--"]).arg(rmcp).arg("stdio");
    });
    let supergateway = start(
        &folder.join("node_modules/.bin/supergateway"),
        &|command, port| {
            let stdio = format!("{} stdio", rmcp.display());
            command.args(["--stdio", &stdio, "--outputTransport", "streamableHttp"]);
            command.args(["--stateful", "--logLevel", "none", "--port", port]);
        },
    );
    let fastmcp = start(&folder.join("fastmcp/bin/python"), &|command, port| {
        command.args(["-c", FASTMCP, port, &format!("http://{backend}/mcp")]);
    });
    vec![
        ("mcp-proxy", mcp_proxy, target.clone()),
        ("supergateway", supergateway, target.clone()),
        ("fastmcp", fastmcp, target),
    ]
}

/// Returns a port that was free just now.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}
