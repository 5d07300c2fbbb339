//! `haft console` and the server that it starts: only one, reused, replaced after a kill, and never another home's.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::approvals::wait;
use crate::harness::{Lab, Ran, ended};
use crate::serve::{Caller, Reply, Request, Server, get, post};

/// A lab whose background server is stopped with the test.
pub(crate) struct Scene(pub(crate) Lab);

impl Scene {
    pub(crate) fn new() -> Self {
        Self(Lab::new())
    }

    /// Returns the records of the existing servers.
    pub(crate) fn records(&self) -> Vec<Value> {
        let Ok(folder) = fs::read_dir(self.0.home().join("servers")) else {
            return Vec::new();
        };
        let files = folder.map(|entry| entry.unwrap().path());
        let records = files.filter(|path| path.extension().is_some_and(|e| e == "json"));
        let texts = records.filter_map(|path| fs::read_to_string(path).ok());
        texts
            .filter_map(|text| serde_json::from_str(&text).ok())
            .collect()
    }

    /// Returns the server's record, once it runs.
    pub(crate) fn record(&self) -> Value {
        wait("a server", || self.records().into_iter().next())
    }

    /// Sends a request to the background server with the operator's token.
    pub(crate) fn ask(&self, request: &Request<'_>) -> Reply {
        let address = address(&self.record());
        let token = fs::read_to_string(self.0.home().join("operator-token")).unwrap();
        let caller = Caller::at(&address);
        let token = Some(token.trim());
        caller.try_ask(&Request { token, ..*request }).unwrap()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let ran = self.0.run(&["console", "--stop"]);
        assert!(ran.code == 0 || std::thread::panicking(), "{}", ran.stderr);
    }
}

fn address(record: &Value) -> String {
    let url = record["url"].as_str().unwrap();
    url.trim_start_matches("http://").to_owned()
}

fn console(lab: &Lab) -> Ran {
    let ran = lab.run(&["console", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ran
}

#[test]
fn all_that_want_a_console_at_once_get_one_server() {
    let scene = Scene::new();
    let start = |_| scene.0.command(&["console", "--json"]).spawn().unwrap();
    let children: Vec<Child> = (0..5).map(start).collect();
    let all: Vec<Value> = children
        .into_iter()
        .map(|child| ended(child).json())
        .collect();
    let started = all.iter().filter(|one| one["started"] == true).count();
    assert_eq!(started, 1, "{all:?}");
    assert_eq!(scene.records().len(), 1);
    let first = &all[0]["console"];
    assert!(all.iter().all(|one| one["console"] == *first), "{all:?}");
    assert!(first.as_str().unwrap().starts_with("http://127.0.0.1:"));
    // A second background server exits by itself.
    let home = scene.0.home();
    let ran = scene
        .0
        .run(&["serve", "--background", "--home", home.to_str().unwrap()]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("already running in the background"),
        "{}",
        ran.stderr
    );
}

#[test]
fn the_link_logs_in_once_and_the_server_serves_no_mcp() {
    let scene = Scene::new();
    let said = console(&scene.0).json();
    let link = said["login"].as_str().unwrap();
    let code = link.split_once("#login=").unwrap().1;
    let body = json!({ "code": code }).to_string();
    let login = post("/api/v1/login", "", &body);
    let caller = Caller::at(&address(&scene.record()));
    let login = |expect: u16| {
        let reply = caller
            .try_ask(&Request {
                token: None,
                ..login
            })
            .unwrap();
        assert_eq!(reply.status, expect, "{}", reply.body);
    };
    login(200);
    login(401);
    assert_eq!(scene.ask(&get("/api/v1/approvals", None)).status, 200);
    assert_eq!(scene.ask(&post("/mcp", "", "{}")).status, 404);
    // It has no folder of the user, and makes no calls.
    let overview = scene.ask(&get("/api/v1/overview", None));
    assert_eq!(overview.status, 200, "{}", overview.body);
    let call = json!({"tool": "list_files", "arguments": {}}).to_string();
    let refused = scene.ask(&post("/api/v1/calls", "", &call));
    assert_eq!(refused.status, 409, "{}", refused.body);
    assert!(
        refused.body.contains("has no workspace"),
        "{}",
        refused.body
    );
}

#[test]
fn w17_a_link_that_opens_a_browser_logs_in_a_browser_of_the_same_user_once() {
    let scene = Scene::new();
    console(&scene.0);
    let asked = post("/api/v1/login-link", "", r#"{"same_user":true}"#);
    let link = scene.ask(&asked).json()["url"].as_str().unwrap().to_owned();
    let body = json!({"code": link.split_once("#login=").unwrap().1}).to_string();
    let login = post("/api/v1/login", "", &body);
    let caller = Caller::at(&address(&scene.record()));
    for expect in [200, 401] {
        let reply = caller
            .try_ask(&Request {
                token: None,
                ..login
            })
            .unwrap();
        assert_eq!(reply.status, expect, "{}", reply.body);
    }
    let wrong = post("/api/v1/login-link", "", r#"{"same":true}"#);
    assert_eq!(scene.ask(&wrong).status, 400);
}

#[test]
fn a_server_that_was_killed_is_replaced_and_one_that_is_stopped_is_gone() {
    let scene = Scene::new();
    console(&scene.0);
    let first = scene.record();
    let pid = Pid::from_raw(first["pid"].as_i64().unwrap().try_into().unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    // Its files are closed with the last of its threads, after the first one is a zombie.
    let folder = format!("/proc/{}", pid.as_raw_nonzero());
    wait("its end", || {
        let stat = fs::read_to_string(format!("{folder}/stat"));
        let threads = fs::read_dir(format!("{folder}/task")).map_or(0, Iterator::count);
        let over = stat.map_or(true, |stat| stat.contains(") Z") && threads <= 1);
        over.then_some(())
    });
    assert_eq!(
        scene.records().len(),
        1,
        "the record of a server that is gone"
    );
    let said = console(&scene.0).json();
    assert_eq!(said["started"], true);
    assert_eq!(scene.records().len(), 1);
    assert_ne!(scene.record()["pid"], first["pid"]);

    // A server that is started while another one exits takes its place.
    assert_eq!(scene.0.run(&["console", "--stop"]).code, 0);
    assert_eq!(console(&scene.0).json()["started"], true);
    for (stopped, says) in [(true, "has stopped"), (false, "no background server")] {
        let ran = scene.0.run(&["console", "--stop"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(ran.stderr.contains(says), "{stopped}: {}", ran.stderr);
        assert!(scene.records().is_empty());
    }
}

/// Takes a port once the server of another test has left it. One that stays in use belongs to somebody else, and is taken just as well.
fn taken_or_in_use_elsewhere(address: &str) -> Option<TcpListener> {
    for _ in 0..3_000 {
        if let Ok(port) = TcpListener::bind(address) {
            return Some(port);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    None
}

#[test]
fn another_programs_port_and_another_homes_server_are_left_alone() {
    let _taken = taken_or_in_use_elsewhere("127.0.0.1:7421");
    let (one, two) = (Scene::new(), Scene::new());
    let consoles = [&one, &two].map(|scene| console(&scene.0).json()["console"].clone());
    assert_ne!(consoles[0], consoles[1]);
    assert!(
        !consoles.iter().any(|url| url == "http://127.0.0.1:7421/"),
        "{consoles:?}"
    );
}

#[test]
fn a_server_in_the_foreground_is_the_one_whose_console_opens() {
    let scene = Scene::new();
    let server = Server::start(&scene.0, &[]);
    let said = console(&scene.0).json();
    assert_eq!(said["started"], false);
    assert_eq!(said["console"], format!("http://{}/", server.address));
    drop(server);
    let said = console(&scene.0).json();
    assert_eq!(
        said["started"], true,
        "its record is that of a server that is gone"
    );
}

#[test]
fn a_server_of_another_version_is_named() {
    let scene = Scene::new();
    console(&scene.0);
    let mut record = scene.record();
    record["version"] = json!("0.0.9");
    let folder = scene.0.home().join("servers");
    let file = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let file = file
        .into_iter()
        .find(|path| path.extension().is_some_and(|e| e == "json"));
    fs::write(file.unwrap(), record.to_string()).unwrap();
    let ran = console(&scene.0);
    assert!(ran.stderr.contains("haft 0.0.9"), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("`haft console --stop`"),
        "{}",
        ran.stderr
    );
}

#[test]
fn what_keeps_a_server_from_starting_is_said_with_what_to_do() {
    let lab = Lab::new();
    let file = lab.file("file", "");
    let below = file.join("home");
    let database = "store.url=sqlite:/tmp/other.db";
    #[rustfmt::skip]
    let rows: [(&[&str], i32, &str, &str); 3] = [
        (&["-c", "console.start=never"], 1, "none is started", "haft serve"),
        (&["-c", database], 1, "a database of its own", "haft serve"),
        (&["--home", below.to_str().unwrap()], 5, "cannot create the state folder", "--home DIR or HAFT_HOME"),
    ];
    for (options, code, says, advice) in rows {
        let ran = lab.run(&[&["console"], options].concat());
        assert_eq!(ran.code, code, "{options:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(says), "{options:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(advice), "{options:?}: {}", ran.stderr);
    }
    // A server that does not start: the error shows the end of its log.
    lab.user_settings("policy.profile = \"no such\"\n");
    let ran = lab.run(&["console", "-c", "policy.profile=workspace"]);
    assert_eq!(ran.code, 5, "{}", ran.stderr);
}

#[test]
fn a_browser_opens_the_link_and_without_one_it_is_printed() {
    let scene = Scene::new();
    let lab = &scene.0;
    let folder = lab.program_folder("xdg-open", "echo \"$0\" \"$@\" > \"$NOTE\"");
    let opener = |path: &Path| {
        // The machine may have its own.
        let mut command = lab.command(&["console"]);
        command.env("DISPLAY", ":7").env("PATH", path);
        ended(command.spawn().unwrap())
    };
    let ran = opener(&folder);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let note = wait("the browser", || fs::read_to_string(lab.note()).ok());
    let url = scene.record()["url"].as_str().unwrap().to_owned();
    assert!(note.trim().contains(&format!("{url}/#login=")), "{note}");
    assert_eq!(
        ran.stdout,
        format!("{url}/\n"),
        "the code is for the browser alone"
    );
    assert!(
        ran.stderr.contains("opened in the browser"),
        "{}",
        ran.stderr
    );

    // No desktop, and an opener that tools could have put there.
    fs::remove_file(lab.note()).unwrap();
    let work = lab.work().join("bin");
    fs::create_dir(&work).unwrap();
    fs::copy(folder.join("xdg-open"), work.join("xdg-open")).unwrap();
    for ran in [lab.run(&["console"]), opener(&work)] {
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(
            ran.stdout.starts_with(&format!("{url}/#login=")),
            "{}",
            ran.stdout
        );
        assert!(
            ran.stderr.contains("no browser was opened"),
            "{}",
            ran.stderr
        );
    }
    assert!(!lab.note().exists());
}
