//! Desktop notices: how the program that shows them is called, and when it is not called.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::approvals::{call_in_background, wait};
use crate::harness::Lab;
use crate::pty::Pty;
use crate::serve::{Request, Server, post, tool_call};
use crate::stdio_console::Client;

/// Creates a lab with a desktop, whose program records its arguments, one per line, and `end` after the last.
fn lab() -> Lab {
    let mut lab = Lab::new();
    let folder = lab.program_folder("notify-send", "printf '%s\\n' \"$@\" end >> \"$NOTE\"");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder).chain(std::env::split_paths(&path));
    lab.set("PATH", std::env::join_paths(folders).unwrap());
    lab.set("DBUS_SESSION_BUS_ADDRESS", "unix:path=/none");
    lab
}

/// Returns the arguments of each call so far.
fn notices(lab: &Lab) -> Vec<Vec<String>> {
    let text = fs::read_to_string(lab.note()).unwrap_or_default();
    let whole = text
        .split_inclusive("end\n")
        .filter_map(|call| call.strip_suffix("end\n"));
    whole
        .map(|call| call.lines().map(str::to_owned).collect())
        .collect()
}

fn first(lab: &Lab) -> Vec<String> {
    wait("a notice", || notices(lab).into_iter().next())
}

fn write(path: &str) -> Value {
    json!({"path": path, "content": "x"})
}

/// Waits long enough for a notice that should not come.
fn give_a_notice_time() {
    // slow on purpose: a missing notice shows only after the time in which it would have come.
    thread::sleep(Duration::from_millis(1500));
}

#[test]
fn a_request_of_a_server_on_pipes_is_told_as_plain_text() {
    let lab = lab();
    let mut client = Client::start(&lab, &[]);
    client.send(&tool_call(
        2,
        "write_file",
        &write("--icon=<b>&\u{1b}[2J\\74.txt"),
    ));
    let said = first(&lab);
    assert_eq!(
        said[..3],
        ["--app-name=haft", "--", "haft: write_file needs approval"]
    );
    assert!(
        said[3].starts_with("create $'--icon=&lt;b&gt;&amp;"),
        "{said:?}"
    );
    assert!(said[3].contains("\\\\74.txt"), "{said:?}");
    assert!(!said[3].contains('\u{1b}'), "{said:?}");
    assert_eq!(said[4..], ["Decide with: haft console"]);
    client.end();
}

#[test]
fn many_requests_are_one_notice() {
    let lab = lab();
    let server = Server::start(&lab, &[]);
    let asking =
        ["a", "b", "c"].map(|name| call_in_background(&server, "write_file", &write(name)));
    let said = first(&lab);
    assert_eq!(notices(&lab).len(), 1);
    assert!(said[2].starts_with("haft: "), "{said:?}");
    drop(server);
    for asking in asking {
        asking.join().unwrap();
    }
    // The next process keeps the same interval.
    let server = Server::start(&lab, &[]);
    let asking = call_in_background(&server, "write_file", &write("d"));
    give_a_notice_time();
    assert_eq!(notices(&lab).len(), 1);
    drop(server);
    asking.join().unwrap();
}

#[test]
fn a_page_that_is_looked_at_takes_the_place_of_notices() {
    let lab = lab();
    let server = Server::start(&lab, &[]);
    let page = Page::open(&server);
    page.say(&server, true, 204);
    let seen = call_in_background(&server, "write_file", &write("seen.txt"));
    give_a_notice_time();
    page.say(&server, false, 204);
    let unseen = call_in_background(&server, "write_file", &write("unseen.txt"));
    let said = first(&lab);
    assert_eq!(said[3], "create unseen.txt +1 −0");
    // A client may not claim that a user is looking.
    let reply = server.ask(&post("/api/v1/tabs", &server.call, "{}"));
    assert_eq!(reply.status, 403, "{}", reply.body);
    drop(server);
    seen.join().unwrap();
    unseen.join().unwrap();
}

#[test]
fn what_is_shown_at_a_terminal_or_switched_off_is_not_told() {
    let lab = lab();
    let off = Server::start(&lab, &["-c", "console.notify=never"]);
    let asking = call_in_background(&off, "write_file", &write("off.txt"));
    let mut terminal = Pty::start(&lab, &["serve", "--http", "127.0.0.1:0", "--no-auth"]);
    let listening = terminal.expect("listening on http://").to_owned();
    assert!(!listening.is_empty());
    let address = wait("its record", || {
        let folder = fs::read_dir(lab.home().join("servers")).ok()?;
        let texts = folder.filter_map(|entry| fs::read_to_string(entry.ok()?.path()).ok());
        let records = texts.filter_map(|text| serde_json::from_str::<Value>(&text).ok());
        let urls = records.filter_map(|record| Some(record["url"].as_str()?.to_owned()));
        let addresses = urls.map(|url| url.trim_start_matches("http://").to_owned());
        addresses
            .into_iter()
            .find(|address| *address != off.address)
    });
    let shown = thread::spawn(move || {
        let body = json!({"tool": "write_file", "arguments": write("shown.txt")}).to_string();
        crate::serve::Caller::at(&address).try_ask(&Request {
            token: None,
            ..post("/api/v1/calls", "", &body)
        })
    });
    terminal.expect("shown.txt");
    give_a_notice_time();
    assert!(notices(&lab).is_empty(), "{:?}", notices(&lab));
    terminal.kill();
    drop(off);
    asking.join().unwrap();
    shown.join().unwrap();
}

#[test]
fn what_comes_while_the_inbox_is_open_at_a_terminal_is_not_told() {
    let lab = lab();
    let server = Server::start(&lab, &[]);
    let first = call_in_background(&server, "write_file", &write("first.txt"));
    let said = wait("a notice", || notices(&lab).into_iter().next());
    assert_eq!(said[3], "create first.txt +1 −0");
    let mut inbox = Pty::whole(&lab, &["approvals", "--color", "never"], 100);
    inbox.expect("first.txt");
    // The interval alone would delay a second one.
    fs::remove_file(lab.home().join("servers/notified.lock")).unwrap();
    let second = call_in_background(&server, "write_file", &write("second.txt"));
    give_a_notice_time();
    assert_eq!(notices(&lab).len(), 1);
    inbox.kill();
    drop(server);
    first.join().unwrap();
    second.join().unwrap();
}

#[test]
fn doctor_names_the_console_and_what_shows_notices() {
    let lab = lab();
    let detail = |options: &[&str], name: &str| {
        let report = lab.run(&[&["doctor", "--json"], options].concat()).json();
        let checks = report["checks"].as_array().unwrap().clone();
        let check = checks.into_iter().find(|check| check["name"] == name);
        check.unwrap()["detail"].as_str().unwrap().to_owned()
    };
    assert!(detail(&[], "notices").ends_with("bin/notify-send"));
    let off = detail(&["-c", "console.notify=never"], "notices");
    assert_eq!(off, "none: console.notify = never");
    assert!(detail(&[], "console").starts_with("none is running; haft starts one"));
    let server = Server::start(&lab, &[]);
    assert!(detail(&[], "console").contains(&server.address));
}

/// A page of the console that is logged in and reads events.
struct Page {
    cookie: String,
    secret: String,
    _events: BufReader<TcpStream>,
}

impl Page {
    fn open(server: &Server) -> Self {
        let link = server.ask(&post("/api/v1/login-link", &server.operator, "{}"));
        let link = link.json()["url"].as_str().unwrap().to_owned();
        let body = json!({"code": link.split_once("#login=").unwrap().1}).to_string();
        let login = server.ask(&Request {
            token: None,
            ..post("/api/v1/login", "", &body)
        });
        let cookie = login.head.split_once("set-cookie: ").unwrap().1;
        let cookie = cookie.split(';').next().unwrap().to_owned();
        let secret = login.json()["secret"].as_str().unwrap().to_owned();
        let address = &server.address;
        let mut stream = TcpStream::connect(address).unwrap();
        write!(
            stream,
            "GET /api/v1/events HTTP/1.1\r\nhost: {address}\r\ncookie: {cookie}\r\nx-haft-console: {secret}\r\n\r\n"
        )
        .unwrap();
        let mut events = BufReader::new(stream);
        let mut line = String::new();
        while !line.contains("hello") {
            line.clear();
            assert!(events.read_line(&mut line).unwrap() > 0);
        }
        Self {
            cookie,
            secret,
            _events: events,
        }
    }

    /// Reports whether a user sees it.
    fn say(&self, server: &Server, attentive: bool, expect: u16) {
        let body = json!({"tab": "one", "attentive": attentive}).to_string();
        let headers = [
            ("content-type", "application/json"),
            ("cookie", &self.cookie),
            ("x-haft-console", &self.secret),
        ];
        let reply = server.ask(&Request {
            token: None,
            headers: &headers,
            ..post("/api/v1/tabs", "", &body)
        });
        assert_eq!(reply.status, expect, "{}", reply.body);
    }
}
