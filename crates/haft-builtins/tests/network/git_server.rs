//! `GitServer`: repositories over HTTPS, by git's own `http-backend`, of which some want a login.

use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use haft_builtins::web::network::{BoxFuture, Network};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::town::{PUBLIC, Town};

/// The server, and a network in which every name leads to it.
#[derive(Debug)]
pub(crate) struct GitServer {
    folder: tempfile::TempDir,
    at: SocketAddr,
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test's server is a program of its own"
)]
fn git(folder: &Path) -> Command {
    let mut git = Command::new("git");
    git.current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null");
    git
}

impl GitServer {
    /// Starts a server with an empty `private.git`, which wants this login, and a `public.git`; `None` without git's program for it.
    pub(crate) async fn new(town: &Town, login: &str) -> Option<Arc<Self>> {
        let folder = tempfile::tempdir().unwrap();
        let program = git(folder.path()).arg("--exec-path").output().ok()?;
        let program = String::from_utf8(program.stdout).ok()?;
        if !Path::new(program.trim()).join("git-http-backend").exists() {
            return None;
        }
        for name in ["private.git", "public.git"] {
            let made = git(folder.path())
                .args(["init", "-q", "--bare", "-b", "main", name])
                .status();
            assert!(made.unwrap().success());
            let open = ["-C", name, "config", "http.receivepack", "true"];
            assert!(git(folder.path()).args(open).status().unwrap().success());
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let server = Arc::new(Self { folder, at });
        let (tls, root) = (town.tls().clone(), server.folder.path().to_owned());
        let login = format!("basic {}", STANDARD.encode(login));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (tls, root, login) = (tls.clone(), root.clone(), login.clone());
                tokio::spawn(async move {
                    if let Ok(stream) = tls.accept(stream).await {
                        // A client that closes ends its connection.
                        let _ = serve(BufReader::new(stream), &root, &login).await;
                    }
                });
            }
        });
        Some(server)
    }

    /// Returns whether a repository has a reference.
    pub(crate) fn has(&self, repository: &str, reference: &str) -> bool {
        let asked = ["-C", repository, "rev-parse", "-q", "--verify", reference];
        let folder = self.folder.path();
        git(folder)
            .args(asked)
            .stdout(Stdio::null())
            .status()
            .unwrap()
            .success()
    }
}

impl Network for GitServer {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(std::future::ready(Ok(vec![PUBLIC.parse().unwrap()])))
    }

    fn connect(&self, _: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>> {
        Box::pin(TcpStream::connect(self.at))
    }
}

/// Serves requests one after another.
async fn serve<S>(mut stream: BufReader<S>, root: &Path, login: &str) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            if line == "\r\n" {
                break;
            }
            head.push(line.trim_end().to_owned());
        }
        let field = |name: &str| {
            let fields = head.iter().filter_map(|line| line.split_once(": "));
            let mut found = fields.filter(|(key, _)| key.eq_ignore_ascii_case(name));
            found.next().map(|(_, value)| value.to_owned())
        };
        let body = match field("content-length") {
            Some(length) => {
                let mut body = vec![0; length.parse().unwrap()];
                stream.read_exact(&mut body).await?;
                body
            }
            None if field("transfer-encoding").is_some() => chunks(&mut stream).await?,
            None => Vec::new(),
        };
        let known = field("authorization").is_some_and(|value| value.eq_ignore_ascii_case(login));
        let answer = if head[0].contains("/private.git") && !known {
            b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 5\r\n\r\nwho?\n".to_vec()
        } else {
            let root = root.to_owned();
            let about = BodyForm {
                kind: field("content-type").unwrap_or_default(),
                packed: field("content-encoding"),
            };
            let line = head[0].clone();
            let run = move || backend(&root, &line, &about, &body);
            tokio::task::spawn_blocking(run).await.unwrap()
        };
        stream.write_all(&answer).await?;
        stream.flush().await?;
    }
}

async fn chunks<S: AsyncRead + Unpin>(stream: &mut BufReader<S>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let length = usize::from_str_radix(line.trim(), 16).unwrap();
        let mut part = vec![0; length + 2];
        stream.read_exact(&mut part).await?;
        if length == 0 {
            return Ok(body);
        }
        body.extend(&part[..length]);
    }
}

/// What a request says about its body.
struct BodyForm {
    kind: String,
    packed: Option<String>,
}

/// Runs git's program for one request (RFC 3875).
fn backend(root: &Path, line: &str, about: &BodyForm, body: &[u8]) -> Vec<u8> {
    let mut words = line.split(' ');
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut program = git(root);
    program
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REMOTE_USER", "ann")
        .env("REQUEST_METHOD", method)
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("CONTENT_TYPE", &about.kind)
        .env("CONTENT_LENGTH", body.len().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    if let Some(packed) = &about.packed {
        program.env("HTTP_CONTENT_ENCODING", packed);
    }
    let mut started = program.spawn().unwrap();
    started.stdin.take().unwrap().write_all(body).unwrap();
    let output = started.wait_with_output().unwrap().stdout;
    let end = output
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap();
    let (fields, body) = (String::from_utf8_lossy(&output[..end]), &output[end + 4..]);
    let status = fields
        .lines()
        .find_map(|line| line.strip_prefix("Status: "));
    let status = status.unwrap_or("200 OK");
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\n{fields}\r\nContent-Length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}
