//! Floods against `haft serve`: with small numbers here, with the review's under `HAFT_SOAK`. What strangers and clients use up never
//! affects the operator.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use rustix::process::{Resource, getrlimit, setrlimit};
use serde_json::{Value, json};

use crate::harness::Lab;
use crate::serve::{Request, Server, get, post};
use crate::signals::{COMMANDS, jailed};

/// Returns the review's number under `HAFT_SOAK`, and a small one otherwise.
fn sized(small: usize, soak: usize) -> usize {
    if std::env::var_os("HAFT_SOAK").is_some() {
        soak
    } else {
        small
    }
}

/// Raises this process's limit of open files to the maximum that the system allows.
fn raise_open_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
}

/// Opens a connection and sends this, without reading; `None` if the server refuses the connection.
fn sent(server: &Server, text: &str) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(&server.address).ok()?;
    let patience = Some(Duration::from_secs(30));
    stream.set_read_timeout(patience).unwrap();
    stream.write_all(text.as_bytes()).ok()?;
    Some(stream)
}

/// Returns a request's head, without the empty line that ends it.
fn head(server: &Server, line: &str, token: Option<&str>) -> String {
    let token = token.map_or_else(String::new, |token| {
        format!("authorization: Bearer {token}\r\n")
    });
    format!("{line} HTTP/1.1\r\nhost: {}\r\n{token}", server.address)
}

/// Opens a stream of events, not read yet; returns it with its status.
fn events(server: &Server, token: &str) -> (u16, BufReader<TcpStream>) {
    let head = head(server, "GET /api/v1/events", Some(token));
    let stream = sent(server, &format!("{head}\r\n")).unwrap();
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    (line.split(' ').nth(1).unwrap().parse().unwrap(), reader)
}

/// Reads the next event of this name.
fn next(stream: &mut BufReader<TcpStream>, name: &str) -> Value {
    let wanted = format!("event: {name}");
    let mut line = String::new();
    loop {
        line.clear();
        assert_ne!(stream.read_line(&mut line).unwrap(), 0, "the stream ended");
        if line.trim_end() != wanted {
            continue;
        }
        loop {
            line.clear();
            stream.read_line(&mut line).unwrap();
            if let Some(data) = line.strip_prefix("data: ") {
                return serde_json::from_str(data.trim_end()).unwrap();
            }
        }
    }
}

#[test]
fn w2_readers_of_events_that_read_nothing_cost_little_and_keep_nobody_out() {
    let lab = Lab::new();
    if !jailed(&lab) {
        return;
    }
    raise_open_files();
    let server = Server::start(&lab, &COMMANDS);
    let before = server.memory();
    let lazy: Vec<_> = (0..sized(70, 600))
        .map(|_| events(&server, &server.call))
        .collect();
    let taken = lazy.iter().filter(|(status, _)| *status == 200).count();
    assert_eq!(taken, 48, "a client's share of 64");
    assert!(lazy.iter().all(|(status, _)| matches!(status, 200 | 503)));
    // The operator still gets a connection, and sees what the client's commands print.
    let (status, mut own) = events(&server, &server.operator);
    assert_eq!(status, 200);
    next(&mut own, "hello");
    let bytes = sized(4_000_000, 20_000_000);
    let hearing = std::thread::spawn(move || {
        let mut heard = 0;
        while heard < 4 {
            let event = next(&mut own, "progress");
            heard += usize::from(event["closed"] == true && event["stream"] == "stdout");
        }
        own
    });
    let line = format!("head -c {bytes} /dev/zero | tr '\\0' x");
    let arguments = json!({"argv": ["sh", "-c", line], "timeout_s": 60});
    let body = json!({"tool": "run_command", "arguments": arguments}).to_string();
    for _ in 0..4 {
        let outcome = server
            .ask(&post("/api/v1/calls", &server.call, &body))
            .json();
        assert_eq!(outcome["status"], "ok", "{outcome}");
    }
    hearing.join().unwrap();
    let grown = server.memory().saturating_sub(before);
    assert!(grown < 400 << 20, "{} MiB more", grown >> 20);
    drop(lazy);
    // Their connections become available again.
    for _ in 0..1000 {
        if events(&server, &server.call).0 == 200 {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("no place comes back");
}

#[test]
fn w2_w9_a_client_hears_and_reads_its_own_run_alone() {
    let lab = Lab::new();
    lab.file("a.txt", "hello\n");
    let server = Server::start(&lab, &[]);
    let (status, mut client) = events(&server, &server.call);
    assert_eq!(status, 200);
    next(&mut client, "hello");
    let body = r#"{"tool":"read_file","arguments":{"path":"a.txt"}}"#;
    let call = |token: &str| {
        let outcome = server.ask(&post("/api/v1/calls", token, body)).json();
        outcome["run"].as_str().unwrap().to_owned()
    };
    let operators = call(&server.operator);
    let own = call(&server.call);
    assert_ne!(operators, own);
    assert_eq!(next(&mut client, "call")["run"], own.as_str());
    for token in [&server.call, &server.operator] {
        let mine = if token == &server.call {
            &own
        } else {
            &operators
        };
        let calls = server.ask(&get("/api/v1/calls", Some(token))).json();
        let calls = calls.as_array().unwrap();
        assert_eq!(calls.len(), 1);
        assert_eq!(calls[0]["run"], mine.as_str());
    }
    for path in ["", "/verify"] {
        let path = format!("/api/v1/runs/{operators}{path}");
        assert_eq!(server.ask(&get(&path, Some(&server.call))).status, 404);
        assert_eq!(server.ask(&get(&path, Some(&server.operator))).status, 200);
    }
    let runs = server.ask(&get("/api/v1/runs", Some(&server.call))).json();
    assert_eq!(runs.as_array().unwrap().len(), 1);
    assert_eq!(runs[0]["run"], own.as_str());
}

#[test]
fn w4_bodies_that_never_come_keep_nobody_out() {
    let lab = Lab::new();
    raise_open_files();
    // Small: the system allows it few connections. Large: more than it accepts in total.
    let few = sized(2048, 20_000);
    let server = Server::start_with_files(&lab, &[], few);
    let mut silent = Vec::new();
    for nth in 0..sized(600, 16_513) {
        let path = ["/api/v1/login", "/api/v1/webhook/ap-1"][nth % 2];
        let head = head(&server, &format!("POST {path}"), None);
        silent.extend(sent(
            &server,
            &format!("{head}content-length: 4000\r\n\r\n{{"),
        ));
        // Heads that never end, and connections that send nothing.
        silent.extend(sent(&server, ["GET / HTTP/1.1\r\n", ""][nth % 2]));
        if silent.len() > few - 200 {
            silent.drain(..100);
        }
    }
    let login = Request {
        method: "POST",
        body: r#"{"code":"none"}"#,
        ..get("/api/v1/login", None)
    };
    assert_eq!(server.ask(&login).status, 401);
    for token in [None, Some(&server.call), Some(&server.operator)] {
        let health = Request {
            headers: &[],
            ..get("/healthz", token.map(String::as_str))
        };
        assert_eq!(server.ask(&health).status, 200);
    }
    assert_eq!(
        server
            .ask(&get("/api/v1/runs", Some(&server.operator)))
            .status,
        200
    );
    let hello = crate::serve::hello().to_string();
    assert_eq!(server.ask(&post("/mcp", &server.call, &hello)).status, 200);
    drop(silent);
}

#[test]
fn w4_clients_that_hold_connections_take_none_of_the_operators() {
    let lab = Lab::new();
    raise_open_files();
    let server = Server::start_with_files(&lab, &[], 512);
    // Each sends the call token, then the next head slowly.
    let mut held = Vec::new();
    let mut full = 0;
    for _ in 0..160 {
        let ask = head(&server, "GET /api/v1/session", Some(&server.call));
        let Some(mut stream) = sent(&server, &format!("{ask}\r\n")) else {
            continue;
        };
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        full += usize::from(&answer[9..] == b"503");
        let _closed = stream.write_all(b"GET /");
        held.push(stream);
    }
    assert!(full > 0 && full < 160, "{full} of 160");
    assert_eq!(
        server
            .ask(&get("/api/v1/runs", Some(&server.operator)))
            .status,
        200
    );
}

#[test]
fn w4_a_body_that_does_not_come_is_given_up() {
    if std::env::var_os("HAFT_SOAK").is_none() {
        // It takes as long as a client is allowed: 10 s for strangers, 30 s for others.
        return;
    }
    let lab = Lab::new();
    let server = Server::start(&lab, &[]);
    for (line, token) in [
        ("POST /api/v1/login", None),
        ("POST /api/v1/webhook/ap-1", None),
        ("POST /api/v1/calls", Some(server.call.as_str())),
        ("POST /mcp", Some(server.call.as_str())),
    ] {
        let head = head(&server, line, token);
        let more = "content-type: application/json\r\ncontent-length: 4000\r\n\r\n{";
        let mut stream = sent(&server, &format!("{head}{more}")).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(90)))
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 408"), "{line}: {answer}");
    }
}

#[test]
fn w5_calls_that_wait_leave_room_for_whoever_decides_about_them() {
    let lab = Lab::new();
    let server = Server::start(&lab, &[]);
    let write = json!({"path": "a.txt", "content": ""});
    // More than may run at a time, all with the operator's token.
    let waiting: Vec<_> = (0..80)
        .map(|nth| {
            let mut write = write.clone();
            write["path"] = json!(format!("{nth}.txt"));
            let body = json!({"tool": "write_file", "arguments": write}).to_string();
            let head = head(&server, "POST /api/v1/calls", Some(&server.operator));
            let more = format!(
                "content-type: application/json\r\ncontent-length: {}",
                body.len()
            );
            sent(&server, &format!("{head}{more}\r\n\r\n{body}")).unwrap()
        })
        .collect();
    let pending = || {
        let list = get("/api/v1/approvals", Some(&server.operator));
        let reply = server.ask(&list);
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply.json()
    };
    let found = loop {
        let found = pending();
        if found.as_array().unwrap().len() == 64 {
            break found;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let approve = format!(
        "/api/v1/approvals/{}/approve",
        found[0]["id"].as_str().unwrap()
    );
    let reply = server.ask(&post(&approve, &server.operator, "{}"));
    assert_eq!(reply.status, 200, "{}", reply.body);
    drop(waiting);
}

#[test]
fn w6_a_run_of_the_api_that_was_stopped_is_replaced() {
    let lab = Lab::new();
    lab.file("a.txt", "hello\n");
    let server = Server::start(&lab, &["-c", "limits.max_calls=2"]);
    let read = r#"{"tool":"read_file","arguments":{"path":"a.txt"}}"#;
    let call = |body: &str| {
        server
            .ask(&post("/api/v1/calls", &server.call, body))
            .json()
    };
    // Its budget of two calls is used up twice.
    let runs: Vec<Value> = (0..5)
        .map(|_| {
            let outcome = call(read);
            assert_eq!(outcome["status"], "ok", "{outcome}");
            outcome["run"].clone()
        })
        .collect();
    assert!(runs[0] == runs[1] && runs[1] != runs[2] && runs[2] == runs[3] && runs[3] != runs[4]);
    // A client can still read what it did before.
    let before = format!("/api/v1/runs/{}", runs[0].as_str().unwrap());
    assert_eq!(server.ask(&get(&before, Some(&server.call))).status, 200);

    let write = json!({"path": "b.txt", "content": ""});
    let asker = crate::approvals::call_in_background(&server, "write_file", &write);
    let waiting = loop {
        let found = server
            .ask(&get("/api/v1/approvals", Some(&server.operator)))
            .json();
        if let Some(first) = found.get(0) {
            break first["id"].as_str().unwrap().to_owned();
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let deny = format!("/api/v1/approvals/{waiting}/deny");
    let stop = server.ask(&post(&deny, &server.operator, r#"{"stop":true}"#));
    assert_eq!(stop.status, 200);
    let stopped = asker.join().unwrap().unwrap().json();
    assert_eq!(stopped["status"], "denied", "{stopped}");
    let after = call(read);
    assert_eq!(after["status"], "ok", "{after}");
    assert_ne!(after["run"], stopped["run"]);
}

#[test]
fn w16_an_artifact_is_read_in_parts() {
    let lab = Lab::new();
    let text = "0123456789".repeat(20_000);
    lab.file("long.txt", &text);
    let server = Server::start(&lab, &["-c", "limits.inline_tokens=100"]);
    let body = r#"{"tool":"read_file","arguments":{"path":"long.txt"}}"#;
    let outcome = server
        .ask(&post("/api/v1/calls", &server.call, body))
        .json();
    let reference = outcome["artifacts"][0]["ref"].as_str().unwrap();
    let path = format!("/api/v1/artifacts/{reference}");
    let read = |range: Option<&str>| {
        let headers: Vec<_> = range.map(|range| ("range", range)).into_iter().collect();
        server.ask(&Request {
            headers: &headers,
            ..get(&path, Some(&server.call))
        })
    };
    let whole = read(None);
    assert_eq!(whole.status, 200);
    assert!(
        whole.head.contains("accept-ranges: bytes"),
        "{}",
        whole.head
    );
    assert!(whole.head.contains("content-disposition: attachment"));
    let size = whole.body.len();
    for (range, status, part) in [
        ("bytes=5-14", 206, &whole.body[5..15]),
        ("bytes=-4", 206, &whole.body[size - 4..]),
        ("bytes=100-", 206, &whole.body[100..]),
        ("lines=1-2", 200, &whole.body[..]),
    ] {
        let reply = read(Some(range));
        assert_eq!(
            (reply.status, reply.body.as_str()),
            (status, part),
            "{range}"
        );
    }
    let outside = read(Some("bytes=999999999-"));
    assert_eq!(outside.status, 416);
    let all = format!("content-range: bytes */{size}");
    assert!(outside.head.contains(&all), "{}", outside.head);
}

#[test]
fn w13_what_a_failure_says_is_bounded_on_every_way_out() {
    let lab = Lab::new();
    let deny = "policy.deny=[\"Edit(secret*)\", \"Bash(rm *)\"]";
    let server = Server::start(&lab, &["-c", "tools.enable=commands", "-c", deny]);
    let long = "x".repeat(3_000_000);
    let (mut own, mut unknown) = (json!({"path": "a"}), json!({}));
    own[&long] = json!(1);
    unknown[&long] = json!(1);
    let rows = [
        (
            "write_file",
            json!({"path": format!("secret{}", &long[..240]), "content": ""}),
            "denied",
        ),
        ("run_command", json!({"argv": ["rm", &long]}), "denied"),
        ("read_file", json!({"path": &long}), ""),
        ("read_file", json!({"path": format!("../{long}")}), ""),
        ("read_file", json!({"path": [&long]}), "invalid_arguments"),
        ("read_file", own, "invalid_arguments"),
        ("read_artifact", json!({"ref": &long}), ""),
        ("fetch_url", json!({"url": format!("http://{long}/")}), ""),
        (long.as_str(), json!({}), "not_found"),
    ];
    for (nth, (tool, arguments, kind)) in rows.iter().enumerate() {
        let body = json!({"tool": tool, "arguments": arguments}).to_string();
        let reply = server.ask(&post("/api/v1/calls", &server.call, &body));
        let error = &reply.json()["error"];
        // AW5: the answer does not repeat it elsewhere either.
        assert!(reply.json().to_string().len() < 20_000, "row {nth}");
        assert!(
            error["kind"].as_str().unwrap().contains(kind),
            "row {nth}: {error:.200}"
        );
        for part in ["message", "advice"] {
            let text = error[part].as_str().unwrap_or_default();
            assert!(
                text.len() <= 4096,
                "row {nth}: {} bytes of {part}",
                text.len()
            );
        }
    }
    // An invalid call gets an equally short message.
    let typed = json!({"tool": [], "arguments": {}}).to_string();
    let odd = format!("{{\"tool\": \"read_file\", \"{long}\": 1}}");
    for body in [typed, odd, unknown.to_string(), long] {
        for path in ["/api/v1/calls", "/api/v1/chains", "/mcp"] {
            let reply = server.ask(&post(path, &server.call, &body));
            let size = reply.body.len();
            assert!(size < 20_000, "{path}: {size} bytes: {:.100}", reply.body);
        }
    }
}

/// Returns the bytes that the kernel keeps in the server's send buffers for its clients.
fn unsent(server: &Server) -> usize {
    let port: u16 = server.address.rsplit_once(':').unwrap().1.parse().unwrap();
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let local = format!(":{port:04X}");
    let queues = table.lines().skip(1).filter_map(|line| {
        let mut columns = line.split_whitespace().skip(1);
        let is_servers = columns.next()?.ends_with(&local);
        let (unsent, _) = columns.nth(2)?.split_once(':')?;
        is_servers.then(|| usize::from_str_radix(unsent, 16).unwrap())
    });
    queues.sum()
}

#[test]
fn n1_answers_that_nobody_reads_fill_no_buffers_of_the_kernel() {
    let lab = Lab::new();
    raise_open_files();
    let server = Server::start(&lab, &[]);
    let connections = sized(20, 200);
    for (path, token) in [
        ("/api/v1/openapi.json", Some(&*server.call)),
        ("/api/v1/tools", Some(&*server.call)),
        ("/app.js", None),
    ] {
        let head = head(&server, &format!("GET {path}"), token);
        let requests = format!("{head}\r\n").repeat(100);
        let unread: Vec<_> = (0..connections)
            .filter_map(|_| {
                let mut stream = TcpStream::connect(&server.address).ok()?;
                // Some are refused, or cut off in the middle.
                let _cut = stream.set_nonblocking(true);
                let _written = stream.write(requests.as_bytes());
                Some(stream)
            })
            .collect();
        // While they are there, the operator is answered.
        for _ in 0..20 {
            let health = server.ask(&get("/api/v1/health", Some(&server.operator)));
            assert_eq!(health.status, 200);
        }
        // Twice 128 KiB, and what the kernel adds for a segment.
        let most = connections * (320 << 10);
        let unsent = unsent(&server);
        assert!(unsent < most, "{path}: {} KiB unsent", unsent >> 10);
        drop(unread);
    }
}
