//! The rows: a list, a script in the jail, its expected output, the refusals noted, and the connections made.

use std::net::{SocketAddr, TcpListener};

use haft_builtins::command::CommandNetwork;
use haft_sandbox::Sandbox;
use serde_json::Value;

use crate::town::{PUBLIC, Town, page};
use crate::{Scene, allow, direct, public};

/// One attempt.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) hosts: &'static [&'static str],
    pub(crate) script: &'static str,
    /// Texts that the output must contain.
    pub(crate) prints: &'static [&'static str],
    /// The refusals in one line; empty if there must be none.
    pub(crate) refused: &'static str,
    /// Ports that were connected to at the public address.
    pub(crate) connected: &'static [u16],
}

pub(crate) const LIST: &[&str] = &["example.com", "*.example.org", "bücher.example.net"];

#[rustfmt::skip]
const ROWS: &[Row] = &[
    Row { name: "TLS to a listed host", hosts: LIST, script: "get('https://example.com/a?b=c')", prints: &["READ 200 GET /a?b=c HTTP/1.1"], refused: "", connected: &[443] },
    Row { name: "plain HTTP to a listed host", hosts: LIST, script: "get('http://example.com/a?b=c')", prints: &["READ 200 GET /a?b=c HTTP/1.1"], refused: "", connected: &[80] },
    Row { name: "a body goes with its request", hosts: LIST, script: "get(urllib.request.Request('http://example.com/', data=b'x' * 5000))", prints: &["POST / HTTP/1.1", "ontent-length: 5000\r\n"], refused: "", connected: &[80] },
    Row { name: "a body in chunks goes with a GET, too", hosts: LIST, script: "raw('GET http://example.com/ HTTP/1.1\\r\\nHost: example.com\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n3\\r\\nabc\\r\\n0\\r\\n\\r\\n')", prints: &["GET / HTTP/1.1", "ransfer-encoding: chunked\r\n"], refused: "", connected: &[80] },
    Row { name: "names below a name", hosts: LIST, script: "get('https://a.b.example.org/')", prints: &["READ 200"], refused: "", connected: &[443] },
    Row { name: "case, a last dot, IDNA", hosts: LIST, script: "get('http://EXAMPLE.com./')\nget('http://xn--bcher-kva.example.net/')", prints: &["READ 200"], refused: "", connected: &[80, 80] },
    Row { name: "a host that is not listed", hosts: LIST, script: "connect('pypi.org:443')", prints: &["HTTP/1.1 403", "haft: pypi.org:443 is not one of the hosts that commands may reach here"], refused: "pypi.org:443 is not one of the hosts", connected: &[] },
    Row { name: "the same in plain HTTP", hosts: LIST, script: "raw('GET http://pypi.org/ HTTP/1.1\\r\\nHost: pypi.org\\r\\n\\r\\n')", prints: &["HTTP/1.1 403"], refused: "pypi.org:80 is not one of the hosts", connected: &[] },
    Row { name: "nothing is listed", hosts: &[], script: "connect('example.com:443')", prints: &["HTTP/1.1 403"], refused: "example.com:443", connected: &[] },
    Row { name: "another port", hosts: LIST, script: "connect('example.com:8443')", prints: &["HTTP/1.1 403"], refused: "example.com:8443 is not one of the hosts", connected: &[] },
    Row { name: "a port that is listed, and no other", hosts: &["example.com:8443"], script: "get('https://example.com:8443/')\nconnect('example.com:443')", prints: &["READ 200", "HTTP/1.1 403"], refused: "example.com:443", connected: &[8443] },
    Row { name: "a port of another protocol", hosts: LIST, script: "connect('example.com:22')", prints: &["HTTP/1.1 403"], refused: "port 22", connected: &[] },
    Row { name: "CONNECT to a public address", hosts: LIST, script: "connect('93.184.216.34:443')", prints: &["HTTP/1.1 403"], refused: "93.184.216.34:443 is not one of the hosts", connected: &[] },
    Row { name: "CONNECT to an address that is listed", hosts: &["93.184.216.34"], script: "tunnel('93.184.216.34:443', None)\ntunnel('93.184.216.34:443', 'example.com')", prints: &["INSIDE", "NO TLS"], refused: "names example.com", connected: &[443, 443] },
    Row { name: "CONNECT to private addresses", hosts: LIST, script: "for place in ['127.0.0.1:443', '169.254.169.254:80', '[::1]:443', '[::ffff:10.0.0.1]:443', '0x7f.1:443', '2130706433:443', 'localhost:443']: connect(place)", prints: &["HTTP/1.1 403"], refused: "127.0.0.1 is not on the public network", connected: &[] },
    Row { name: "a name of a private address", hosts: &["private.example.com"], script: "connect('private.example.com:443')", prints: &["HTTP/1.1 403", "no setting allows it"], refused: "resolves to 10.0.0.7", connected: &[] },
    Row { name: "a name of the metadata service", hosts: &["meta.example.com"], script: "connect('meta.example.com:80')", prints: &["HTTP/1.1 403"], refused: "resolves to 169.254.169.254", connected: &[] },
    Row { name: "a name with one private address", hosts: &["mixed.example.com"], script: "connect('mixed.example.com:443')", prints: &["HTTP/1.1 403"], refused: "resolves to ::1", connected: &[] },
    Row { name: "a name that changes its address", hosts: &["rebind.example.com"], script: "get('http://rebind.example.com/')\nconnect('rebind.example.com:443')", prints: &["READ 200", "HTTP/1.1 403"], refused: "resolves to 127.0.0.1", connected: &[80] },
    Row { name: "TLS under another name", hosts: LIST, script: "tunnel('example.com:443', 'other.example.org')", prints: &["HTTP/1.1 200", "NO TLS"], refused: "the TLS hello names other.example.org", connected: &[443] },
    Row { name: "TLS under no name", hosts: LIST, script: "tunnel('example.com:443', None)", prints: &["HTTP/1.1 200", "NO TLS"], refused: "names no host", connected: &[443] },
    Row { name: "no TLS in a tunnel", hosts: LIST, script: "through('example.com:443', b'GET / HTTP/1.1\\r\\nHost: evil.example\\r\\n\\r\\n')\nthrough('example.com:80', b'SSH-2.0-x\\r\\n')", prints: &["HTTP/1.1 200", "GOT ''"], refused: "does not begin with TLS", connected: &[443, 80] },
    Row { name: "TLS as it was asked for", hosts: LIST, script: "tunnel('example.com:443', 'example.com')", prints: &["INSIDE HTTP/1.1 200 OK"], refused: "", connected: &[443] },
    Row { name: "a Host of another", hosts: LIST, script: "raw('GET http://example.com/ HTTP/1.1\\r\\nHost: a.example.org\\r\\n\\r\\n')", prints: &["HTTP/1.1 403"], refused: "must name the same host", connected: &[] },
    Row { name: "two Hosts, or none", hosts: LIST, script: "raw('GET http://example.com/ HTTP/1.1\\r\\nHost: example.com\\r\\nHost: a.example.org\\r\\n\\r\\n')\nraw('GET http://example.com/ HTTP/1.1\\r\\n\\r\\n')", prints: &["HTTP/1.1 403"], refused: "must name the same host", connected: &[] },
    Row { name: "a CONNECT with a Host of another", hosts: LIST, script: "raw('CONNECT example.com:443 HTTP/1.1\\r\\nHost: a.example.org\\r\\n\\r\\n')", prints: &["HTTP/1.1 403"], refused: "must name the same host", connected: &[] },
    Row { name: "credentials in the place", hosts: LIST, script: "connect('example.com@evil.example:443')\nraw('GET http://u@example.com/ HTTP/1.1\\r\\nHost: example.com\\r\\n\\r\\n')", prints: &["HTTP/1.1 4"], refused: "a user name or a password", connected: &[] },
    Row { name: "what is no request for a proxy", hosts: LIST, script: "raw('GET / HTTP/1.1\\r\\nHost: example.com\\r\\n\\r\\n')\nraw('GET https://example.com/ HTTP/1.1\\r\\nHost: example.com\\r\\n\\r\\n')\nconnect('example.com')\nraw('GET ftp://example.com/ HTTP/1.1\\r\\nHost: example.com\\r\\n\\r\\n')", prints: &["HTTP/1.1 400"], refused: "this is a proxy", connected: &[] },
    Row { name: "no HTTP", hosts: LIST, script: "raw('\\x16\\x03\\x01\\x00\\x05hello')\nprint('END')", prints: &["END"], refused: "", connected: &[] },
    Row { name: "a head that does not end", hosts: LIST, script: "raw('GET http://example.com/ HTTP/1.1\\r\\nHost: example.com\\r\\nX: ' + 'x' * 20000 + '\\r\\n\\r\\n')", prints: &["HTTP/1.1 431"], refused: "", connected: &[] },
    Row { name: "what belongs to the hop stays here", hosts: LIST, script: "raw('GET http://example.com/ HTTP/1.1\\r\\nHost: EXAMPLE.com:80\\r\\nProxy-Authorization: SECRET\\r\\nProxy-Connection: keep-alive\\r\\nConnection: X-Mine\\r\\nX-Mine: SECRET\\r\\nUpgrade: h2c\\r\\nTE: SECRET\\r\\nX-Other: kept\\r\\n\\r\\n')", prints: &["x-other: kept", "host: example.com\r\n"], refused: "", connected: &[80] },
    Row { name: "one request a connection", hosts: LIST, script: "raw('GET http://example.com/1 HTTP/1.1\\r\\nHost: example.com\\r\\n\\r\\nGET http://example.com/2 HTTP/1.1\\r\\nHost: example.com\\r\\n\\r\\n')", prints: &["GET /1 HTTP/1.1"], refused: "", connected: &[80] },
    Row { name: "two lengths", hosts: LIST, script: "raw('POST http://example.com/ HTTP/1.1\\r\\nHost: example.com\\r\\nContent-Length: 4\\r\\nContent-Length: 5\\r\\n\\r\\nabcde')", prints: &["HTTP/1.1 400"], refused: "", connected: &[] },
    Row { name: "NO_PROXY in the command", hosts: LIST, script: "os.environ['NO_PROXY'] = os.environ['no_proxy'] = '*'\nfails('directly', lambda: get('https://pypi.org/'))\nget('https://example.com/')", prints: &["REFUSED directly", "READ 200"], refused: "pypi.org:443 is not one of the hosts", connected: &[443] },
    Row { name: "around the proxy", hosts: LIST, script: "for place in [('127.0.0.1', int(open('port').read())), ('::1', int(open('port').read())), ('93.184.216.34', 8443), ('2606:4700::1111', 25)]: fails(place[0], lambda: socket.create_connection(place, 5))\nfor place in ['8.8.8.8', '169.254.169.254', '127.0.0.53']: fails('udp ' + place, lambda: (u := socket.socket(socket.AF_INET, socket.SOCK_DGRAM), u.settimeout(1), u.connect((place, 443)), u.send(b'x'), u.recv(1)))", prints: &["REFUSED 127.0.0.1", "REFUSED ::1", "REFUSED 93.184.216.34", "REFUSED 2606", "REFUSED udp 8.8.8.8", "REFUSED udp 169.254", "REFUSED udp 127.0.0.53"], refused: "", connected: &[] },
];

/// Runs all rows and returns their number.
pub(crate) async fn all(sandbox: &Sandbox) -> usize {
    let own = TcpListener::bind("127.0.0.1:0").unwrap();
    for row in ROWS.iter().chain(direct::ROWS) {
        check(sandbox, row, own.local_addr().unwrap()).await;
    }
    own.set_nonblocking(true).unwrap();
    assert!(own.accept().is_err(), "the host's loopback was reached");
    ROWS.len() + direct::ROWS.len()
}

async fn check(sandbox: &Sandbox, row: &Row, own: SocketAddr) {
    let name = row.name;
    // Header names are case-insensitive.
    let town = Town::new(|asked| page("text/plain", lower_names(&asked.text))).await;
    town.answers("private.example.com", &[&["10.0.0.7"]]);
    town.answers("meta.example.com", &[&["169.254.169.254"]]);
    town.answers("mixed.example.com", &[&[PUBLIC, "::1"]]);
    town.answers("rebind.example.com", &[&[PUBLIC], &["127.0.0.1"]]);
    let network = CommandNetwork::allow_list(allow(row.hosts, &town));
    let scene = Scene::new(sandbox, network);
    scene.trust(&town);
    std::fs::write(scene.root().join("port"), own.port().to_string()).unwrap();
    let seen = scene.script(row.script).await;
    let out = seen.data["stdout"].as_str().unwrap_or_default();
    assert!(seen.ok, "{name}: {}", seen.shown);
    assert!(
        seen.strength.contains(", network allow-list"),
        "{name}: {}",
        seen.strength
    );
    for prints in row.prints {
        assert!(out.contains(prints), "{name}: {prints:?} is not in {out}");
    }
    assert!(
        !out.contains("REACHED") && !out.contains("SECRET"),
        "{name}: {out}"
    );
    assert!(!out.contains("GET /2"), "{name}: {out}");
    let answered =
        out.contains("HTTP/1.1 200") || out.contains("READ 200") || out.contains("INSIDE");
    assert_eq!(answered, !row.connected.is_empty(), "{name}: {out}");
    let lines = lines(&seen.data["network_refused"]);
    let noted = lines.iter().any(|line| line.contains(row.refused));
    assert_eq!(noted, !row.refused.is_empty(), "{name}: {lines:?}");
    assert_eq!(
        lines.is_empty(),
        row.refused.is_empty(),
        "{name}: {lines:?}"
    );
    let ports: Vec<SocketAddr> = row.connected.iter().map(|port| public(*port)).collect();
    assert_eq!(town.connected(), ports, "{name}");
}

fn lower_names(text: &str) -> String {
    let lower = |line: &str| match line.split_once(": ") {
        Some((name, value)) => format!("{}: {value}", name.to_lowercase()),
        None => line.to_owned(),
    };
    text.split("\r\n")
        .map(lower)
        .collect::<Vec<_>>()
        .join("\r\n")
}

fn lines(value: &Value) -> Vec<String> {
    let lines = value.as_array().into_iter().flatten();
    lines
        .filter_map(|line| Some(line.as_str()?.to_owned()))
        .collect()
}
