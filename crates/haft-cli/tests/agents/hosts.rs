//! `Hosts`: a registry of packages and a git server on loopback, under public names behind a proxy, so that nothing leaves the machine.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use serde_json::json;

/// The host of the registry, which has one package.
pub(crate) const REGISTRY: &str = "registry.example.com";
/// The host of the git server, which has `shop.git`.
pub(crate) const GIT: &str = "git.example.com";
/// The package's name.
pub(crate) const PACKAGE: &str = "shop-tax";
/// Maximum size of a request's body, in bytes.
const LARGEST: usize = 16 << 20;

/// The proxy behind which the hosts are, until the test's process ends.
#[derive(Debug)]
pub(crate) struct Hosts {
    folder: PathBuf,
    port: u16,
}

impl Hosts {
    /// Starts the hosts with their files in `folder`; `None` without git's program for HTTP.
    pub(crate) fn start(folder: &Path) -> Option<Self> {
        let program = git(folder).arg("--exec-path").output().ok()?;
        let program = String::from_utf8(program.stdout).ok()?;
        if !Path::new(program.trim()).join("git-http-backend").exists() {
            return None;
        }
        run(git(folder).args(["init", "-q", "--bare", "-b", "main", "shop.git"]));
        run(git(folder).args(["-C", "shop.git", "config", "http.receivepack", "true"]));
        make_package(folder);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let root: Arc<Path> = folder.into();
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let root = Arc::clone(&root);
                // A client that closes ends its connection.
                std::thread::spawn(move || serve(stream, &root));
            }
        });
        Some(Self {
            folder: folder.to_owned(),
            port,
        })
    }

    /// The proxy's URL.
    pub(crate) fn proxy(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The commit that a branch of `shop.git` is at, or an empty text.
    pub(crate) fn tip(&self, branch: &str) -> String {
        let asked = git(&self.folder)
            .args(["-C", "shop.git", "rev-parse", "-q", "--verify", branch])
            .output()
            .unwrap();
        String::from_utf8(asked.stdout).unwrap().trim().to_owned()
    }
}

/// Returns git in a folder, without the settings of this machine's user.
pub(crate) fn git(folder: &Path) -> Command {
    let mut git = Command::new("git");
    git.current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null");
    git
}

/// Runs a program that must succeed.
pub(crate) fn run(command: &mut Command) {
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{command:?}: {ran:?}");
}

/// Writes the only package and what the registry says about it.
fn make_package(folder: &Path) {
    let inside = folder.join("package");
    std::fs::create_dir(&inside).unwrap();
    let manifest = json!({"name": PACKAGE, "version": "1.0.0", "main": "index.js"}).to_string();
    std::fs::write(inside.join("package.json"), manifest).unwrap();
    std::fs::write(inside.join("index.js"), "exports.rate = 0.2;\n").unwrap();
    run(Command::new("tar")
        .current_dir(folder)
        .args(["-czf", "package.tgz", "package"]));
}

/// Serves one request.
fn serve(stream: TcpStream, root: &Path) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let request = Request::read(&mut stream)?;
    let answer = match (request.host(), request.path()) {
        (GIT, _) => request.by_git(root),
        (REGISTRY, path) if path == format!("/{PACKAGE}") => answer("200 OK", &known_package()),
        (REGISTRY, path) if path == tarball() => {
            answer("200 OK", &std::fs::read(root.join("package.tgz"))?)
        }
        _ => answer("404 Not Found", b"{}"),
    };
    stream.get_mut().write_all(&answer)
}

/// The path of the package's archive.
fn tarball() -> String {
    format!("/{PACKAGE}/-/{PACKAGE}-1.0.0.tgz")
}

fn known_package() -> Vec<u8> {
    let tarball = format!("http://{REGISTRY}{}", tarball());
    let version = json!({"name": PACKAGE, "version": "1.0.0", "dist": {"tarball": tarball}});
    let all =
        json!({"name": PACKAGE, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}});
    all.to_string().into_bytes()
}

fn answer(status: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    [head.as_bytes(), body].concat()
}

/// A request as a client sends it to a proxy.
struct Request {
    method: String,
    /// The URL without `http://`.
    target: String,
    fields: Vec<String>,
    body: Vec<u8>,
}

impl Request {
    fn read(stream: &mut BufReader<TcpStream>) -> io::Result<Self> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if line == "\r\n" {
                break;
            }
            lines.push(line.trim_end().to_owned());
        }
        let first = lines.first().cloned().unwrap_or_default();
        let mut words = first.split(' ').map(str::to_owned);
        let (method, url) = (words.next(), words.next().unwrap_or_default());
        let mut request = Self {
            method: method.unwrap_or_default(),
            target: url.trim_start_matches("http://").to_owned(),
            fields: lines.split_off(1.min(lines.len())),
            body: Vec::new(),
        };
        if let Some(length) = request.field("content-length") {
            let length: usize = length.parse().map_err(io::Error::other)?;
            request.body = vec![0; length.min(LARGEST)];
            stream.read_exact(&mut request.body)?;
        } else if request.field("transfer-encoding").is_some() {
            request.body = chunks(stream)?;
        }
        Ok(request)
    }

    fn field(&self, name: &str) -> Option<&str> {
        let fields = self.fields.iter().filter_map(|line| line.split_once(": "));
        let mut found = fields.filter(|(key, _)| key.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value)
    }

    fn host(&self) -> &str {
        let host = self.target.split('/').next().unwrap_or_default();
        host.trim_end_matches(":80")
    }

    fn path(&self) -> &str {
        let start = self.target.find('/').unwrap_or(self.target.len());
        let target = &self.target[start..];
        target.split('?').next().unwrap_or_default()
    }

    /// Has git's own program answer (RFC 3875).
    fn by_git(&self, root: &Path) -> Vec<u8> {
        let query = self.target.split_once('?').map_or("", |(_, query)| query);
        let mut program = git(root);
        program
            .arg("http-backend")
            .env("GIT_PROJECT_ROOT", root)
            .env("GIT_HTTP_EXPORT_ALL", "1")
            .env("REMOTE_USER", "ann")
            .env("REQUEST_METHOD", &self.method)
            .env("PATH_INFO", self.path())
            .env("QUERY_STRING", query)
            .env(
                "CONTENT_TYPE",
                self.field("content-type").unwrap_or_default(),
            )
            .env("CONTENT_LENGTH", self.body.len().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        if let Some(packed) = self.field("content-encoding") {
            program.env("HTTP_CONTENT_ENCODING", packed);
        }
        let mut started = program.spawn().unwrap();
        let mut stdin = started.stdin.take().unwrap();
        // It may answer without reading.
        let _ = stdin.write_all(&self.body);
        drop(stdin);
        let output = started.wait_with_output().unwrap().stdout;
        let end = output.windows(4).position(|four| four == b"\r\n\r\n");
        let (fields, body) = output.split_at(end.map_or(output.len(), |end| end + 4));
        let fields = String::from_utf8_lossy(fields);
        let status = fields
            .lines()
            .find_map(|line| line.strip_prefix("Status: "));
        let status = status.unwrap_or("200 OK").to_owned();
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n{fields}"
        );
        [head.as_bytes(), body].concat()
    }
}

fn chunks(stream: &mut BufReader<TcpStream>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let length = usize::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
        let mut part = vec![0; length.min(LARGEST) + 2];
        stream.read_exact(&mut part)?;
        if length == 0 || body.len() > LARGEST {
            return Ok(body);
        }
        body.extend(&part[..length]);
    }
}
