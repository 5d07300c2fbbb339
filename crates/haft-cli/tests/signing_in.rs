//! Logging in to a server that requires a token, with a real authorization server: the Python SDK's.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests start real programs, say what they skip, and stop where they cannot go on"
)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

const HAFT: &str = env!("CARGO_BIN_EXE_haft");

/// The server; killed when dropped.
struct Guarded {
    child: Child,
    port: u16,
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Guarded {
    fn start() -> Option<Self> {
        let needs = PathBuf::from(std::env::var_os("HAFT_NEEDS")?);
        let python = Some(needs.join("mcp1/bin/python")).filter(|python| python.exists())?;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("../haft-mcp/tests/clients");
        let child = Command::new(python)
            .arg(clients.join("python_auth.py"))
            .arg(port.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut server = Self {
            child: child.unwrap(),
            port,
        };
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(
                server.child.try_wait().unwrap().is_none(),
                "the server ended"
            );
            std::thread::yield_now();
        }
        Some(server)
    }

    /// Returns what it has seen so far.
    fn seen(mut self) -> String {
        let mut seen = String::new();
        self.child.kill().unwrap();
        let mut output = self.child.stdout.take().unwrap();
        output.read_to_string(&mut seen).unwrap();
        seen
    }
}

/// haft in a folder of its own.
struct Scene(tempfile::TempDir);

impl Scene {
    fn new(port: u16) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config/haft");
        fs::create_dir_all(&config).unwrap();
        fs::create_dir(folder.path().join("ws")).unwrap();
        let settings = format!(
            "[mcp.servers.tickets]\nurl = \"http://127.0.0.1:{port}/mcp\"\n[policy]\nallow = [\"tickets.*\"]\n"
        );
        fs::write(config.join("config.toml"), settings).unwrap();
        Self(folder)
    }

    fn command(&self, args: &[&str]) -> Command {
        let root = self.0.path();
        let mut command = Command::new(HAFT);
        command
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", root)
            .env("USER", "ann")
            .env("HAFT_HOME", root.join("home"))
            .env("XDG_CONFIG_HOME", root.join("config"))
            .env("CI", "1")
            .current_dir(root.join("ws"));
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Logs in: a user's browser opens the printed page, and follows where it leads.
    fn login(&self) -> Value {
        let mut command = self.command(&["mcp", "login", "tickets", "--json"]);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut lines = stderr.lines().map(Result::unwrap);
        let page = lines.find(|line| line.starts_with("http"));
        let page = page.unwrap();
        let redirected = get(&page);
        let back = redirected.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("location")
                .then(|| value.trim().to_owned())
        });
        let back = back.unwrap_or_else(|| panic!("{page}: {redirected}"));
        assert!(get(&back).starts_with("HTTP/1.1 200"), "{back}");
        let rest: Vec<String> = lines.collect();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{rest:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// Returns the whole answer to a GET of an address on this machine.
fn get(url: &str) -> String {
    let rest = url.strip_prefix("http://").unwrap();
    let (authority, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(authority).unwrap();
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Collects all files below a folder, as text.
fn texts(folder: &Path, found: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            texts(&path, found);
        } else if let Ok(bytes) = fs::read(&path) {
            found.push_str(&String::from_utf8_lossy(&bytes));
        }
    }
}

#[test]
fn a_server_is_signed_in_at_used_and_left() {
    let Some(server) = Guarded::start() else {
        eprintln!("SKIPPED: mcp1 is not below HAFT_NEEDS; `make needs` installs it");
        return;
    };
    let scene = Scene::new(server.port);
    let refused = scene.run(&["mcp", "pin", "tickets", "--yes"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && said.contains("haft mcp login tickets"),
        "{said}"
    );

    let login = scene.login();
    let issuer = format!("http://127.0.0.1:{}/", server.port);
    assert_eq!(login["issuer"], issuer.as_str(), "{login}");
    assert_eq!(
        (&login["scopes"][0], &login["tools"]),
        (&"tickets".into(), &1.into()),
        "{login}"
    );

    // A user who logs in again is asked again, whatever haft has stored.
    assert_eq!(scene.login()["issuer"], issuer.as_str());

    let pinned = scene.run(&["mcp", "pin", "tickets", "--yes", "--json"]);
    assert!(
        pinned.status.success(),
        "{}",
        String::from_utf8_lossy(&pinned.stderr)
    );
    let called = scene.run(&["call", "tickets.whoami"]);
    let said = String::from_utf8_lossy(&called.stdout).into_owned();
    assert!(
        said.contains("in with tickets"),
        "{said}{}",
        String::from_utf8_lossy(&called.stderr)
    );

    let mut kept = String::new();
    texts(scene.0.path(), &mut kept);
    assert!(
        !kept.contains("secret-"),
        "a token stands somewhere as it is"
    );

    let left = scene.run(&["mcp", "logout", "tickets", "--json"]);
    let left: Value = serde_json::from_slice(&left.stdout).unwrap();
    assert_eq!(
        (&left["signed_out"], &left["revoked"]),
        (&true.into(), &true.into()),
        "{left}"
    );
    let called = scene.run(&["call", "tickets.whoami"]);
    let said = String::from_utf8_lossy(&called.stderr).into_owned();
    assert!(
        !called.status.success() && said.contains("haft mcp login tickets"),
        "{said}"
    );

    let resource = format!("exchanged http://127.0.0.1:{}/mcp", server.port);
    let seen = server.seen();
    assert!(
        seen.contains(&resource)
            && seen.contains("renewed")
            && seen.contains("revoked RefreshToken"),
        "{seen}"
    );
}
