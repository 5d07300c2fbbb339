//! `AgentSession`: one connection of a command to its agent.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use haft::text::visible;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::CommandAgent;
use super::host_key::has_signed;
use super::known_hosts::KnownHosts;
use super::signed::SignedData;
use super::wire::WireReader;
use crate::proxy::LoginUse;
use crate::signatures::MAX_SIGNATURES;

/// Maximum size of a message (OpenSSH's own limit).
const MAX_MESSAGE: u32 = 256 << 10;
/// Maximum number of sessions that are bound on one connection.
const MAX_BINDINGS: usize = 16;
/// Maximum time that a connection is idle, and that the host's agent takes: its user may have to confirm.
const PATIENCE: Duration = Duration::from_secs(120);
/// Maximum length of the name of a user of a server, in bytes.
const MAX_USER: usize = 64;
/// Maximum length of a key's comment as it is shown.
const MAX_COMMENT: usize = 80;

/// Messages (draft-ietf-sshm-ssh-agent §6.1).
const FAILURE: u8 = 5;
const SUCCESS: u8 = 6;
const REQUEST_IDENTITIES: u8 = 11;
const IDENTITIES_ANSWER: u8 = 12;
const SIGN_REQUEST: u8 = 13;
const SIGN_RESPONSE: u8 = 14;
const EXTENSION: u8 = 27;
/// The extension by which a client says which server a session is with (OpenSSH, `PROTOCOL.agent`).
const SESSION_BIND: &[u8] = b"session-bind@openssh.com";
/// The port of SSH (IANA), and those of the web.
const SSH: u16 = 22;
const WEB: [u16; 2] = [80, 443];

/// A session that its server has signed.
#[derive(Debug)]
struct BoundSession {
    session: Vec<u8>,
    host_key: Vec<u8>,
}

/// One connection.
#[derive(Debug)]
pub(super) struct AgentSession {
    agent: Arc<CommandAgent>,
    upstream: Option<UnixStream>,
    bound: Vec<BoundSession>,
    /// Whether the connection carries requests of a server to which the agent is forwarded.
    forwarded: bool,
}

impl AgentSession {
    pub(super) fn new(agent: Arc<CommandAgent>) -> Self {
        Self {
            agent,
            upstream: None,
            bound: Vec::new(),
            forwarded: false,
        }
    }

    /// Answers requests until the client disconnects, is idle or sends what is no message.
    pub(super) async fn serve(mut self, mut client: UnixStream) {
        while let Ok(Ok(request)) = timeout(PATIENCE, receive(&mut client)).await {
            let answer = self.answer(&request).await.unwrap_or(vec![FAILURE]);
            if !matches!(
                timeout(PATIENCE, send(&mut client, &answer)).await,
                Ok(Ok(()))
            ) {
                return;
            }
        }
    }

    /// Returns the answer to a request; `None` stands for a failure.
    async fn answer(&mut self, request: &[u8]) -> Option<Vec<u8>> {
        let (kind, body) = request.split_first()?;
        match *kind {
            REQUEST_IDENTITIES if body.is_empty() => self.identities().await,
            SIGN_REQUEST => self.sign(request, WireReader(body)).await,
            EXTENSION => self.bind(request, WireReader(body)).await,
            _ => None,
        }
    }

    async fn identities(&mut self) -> Option<Vec<u8>> {
        let answer = self.ask(&[REQUEST_IDENTITIES]).await?;
        (answer.first() == Some(&IDENTITIES_ANSWER)).then_some(answer)
    }

    /// Notes which server a session is with, if that server has signed it.
    async fn bind(&mut self, request: &[u8], mut body: WireReader<'_>) -> Option<Vec<u8>> {
        if body.string()? != SESSION_BIND {
            return None;
        }
        let (host_key, session, signature) = (body.string()?, body.string()?, body.string()?);
        let forwards = body.byte()? != 0;
        if forwards {
            self.forwarded = true;
        }
        if !body.is_empty()
            || self.forwarded
            || self.bound.len() >= MAX_BINDINGS
            || !has_signed(host_key, session, signature)
        {
            return None;
        }
        self.bound.push(BoundSession {
            session: session.to_owned(),
            host_key: host_key.to_owned(),
        });
        // The host's agent may have keys for certain servers alone. An older one knows no such request.
        self.ask(request).await;
        Some(vec![SUCCESS])
    }

    /// Has the host's agent sign, if the use of the key for this purpose is allowed.
    async fn sign(&mut self, request: &[u8], mut body: WireReader<'_>) -> Option<Vec<u8>> {
        let (key, data) = (body.string()?, body.string()?);
        let _flags = body.number()?;
        if !body.is_empty() {
            return None;
        }
        let (purposes, about) = match self.purposes(data, key) {
            Ok(known) => known,
            Err(why) => {
                self.agent.judge.note_refused("a key of ssh-agent", why);
                return None;
            }
        };
        let comment = self.comment(key).await?;
        let print = fingerprint(key);
        // Servers with one key cannot be told apart: the signature would do for each of them.
        for purpose in &purposes {
            let login = LoginUse {
                by: format!("the key {print} ({comment}) of ssh-agent{about}"),
                purpose: purpose.clone(),
            };
            self.agent.judge.judge(&login).await.ok()?;
        }
        if self.agent.signatures.fetch_add(1, Ordering::Relaxed) >= MAX_SIGNATURES {
            let why = format!("the command has had {MAX_SIGNATURES} signatures, and gets no more");
            self.agent.judge.note_refused(&purposes.join(", "), why);
            return None;
        }
        let answer = self.ask(request).await?;
        (answer.first() == Some(&SIGN_RESPONSE)).then_some(answer)
    }

    /// Returns what a signature is for, as rules name it, and more in words; the error says why nothing is signed.
    ///
    /// A server is known only where what is signed names its key (`publickey-hostbound-v00@openssh.com`, OpenSSH 8.9): the server compares that
    /// with its own. That a session is bound to a key says only that somebody who has the key signed it, which a command may do itself.
    fn purposes(&self, data: &[u8], key: &[u8]) -> Result<(Vec<String>, String), String> {
        if self.forwarded {
            return Err(
                "nothing is signed for a server to which the agent is forwarded".to_owned(),
            );
        }
        let (session, user, certified, stated) = match SignedData::read(data, key) {
            SignedData::Git => return Ok((vec!["git".to_owned()], String::new())),
            SignedData::Other(what) => return Err(format!("{what} is not signed for a command")),
            SignedData::Login {
                session,
                user,
                certified,
                host_key,
            } => (session, user, certified, host_key),
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || "._@%+-".contains(c);
        if user.is_empty() || user.len() > MAX_USER || !user.chars().all(is_name) {
            return Err("a login under a name that is none is not signed for a command".to_owned());
        }
        let mut bound = self.bound.iter();
        let bound = bound.find(|one| one.session == session);
        let bound = bound.filter(|one| stated == Some(one.host_key.as_slice()));
        // Whoever agreed to one such session has agreed to no other.
        let number = fingerprint(session);
        let unknown = |about: String| {
            let about = format!("{about}; its session is {number}");
            Ok((vec!["ssh:?".to_owned()], about))
        };
        let Some(bound) = bound else {
            return unknown(format!(
                ", for `{user}` at a server that is not known: what is signed does not name its key (OpenSSH 8.9 and later do)"
            ));
        };
        let server = fingerprint(&bound.host_key);
        let known = &self.agent.known;
        let places = self.agent.judge.places();
        let unknown_place = places
            .iter()
            .any(|(host, port)| may_be_any_server(known, host, *port));
        let named = places.into_iter();
        let named = named.filter(|(host, port)| known.has(host, *port, &bound.host_key));
        let named: Vec<(String, u16)> = named.collect();
        if named.is_empty() {
            return unknown(format!(
                ", for `{user}` at a server with the key {server}, which known_hosts has for no host that the command connected to"
            ));
        }
        if unknown_place && known.is_of_others(&bound.host_key, &named) {
            return unknown(format!(
                ", for `{user}` at a server with the key {server}, which known_hosts has for several hosts: the command has also connected to one that it does not have"
            ));
        }
        let purposes = named.iter().map(|(host, port)| purpose(host, *port));
        let certificate = if certified {
            ", with its certificate"
        } else {
            ""
        };
        Ok((purposes.collect(), format!("{certificate}, as `{user}`")))
    }

    /// Returns the comment of a key of the agent; `None` if it has no such key.
    async fn comment(&mut self, key: &[u8]) -> Option<String> {
        let answer = self.identities().await?;
        let mut list = WireReader(answer.get(1..)?);
        for _ in 0..list.number()? {
            let (own, comment) = (list.string()?, list.string()?);
            if own == key {
                let comment = String::from_utf8_lossy(comment);
                let short: String = comment.chars().take(MAX_COMMENT).collect();
                return Some(visible::line(&short));
            }
        }
        None
    }

    /// Sends a request to the host's agent and returns its answer.
    async fn ask(&mut self, request: &[u8]) -> Option<Vec<u8>> {
        let exchange = async {
            let mut upstream = match self.upstream.take() {
                Some(open) => open,
                None => UnixStream::connect(&self.agent.socket).await?,
            };
            send(&mut upstream, request).await?;
            let answer = receive(&mut upstream).await?;
            self.upstream = Some(upstream);
            io::Result::Ok(answer)
        };
        timeout(PATIENCE, exchange).await.ok()?.ok()
    }
}

/// Whether the server at a place to which a command connected could have the key of any host: `known_hosts` does not have the place. A name at a
/// port of the web counts for none.
fn may_be_any_server(known: &KnownHosts, host: &str, port: u16) -> bool {
    let by_address = host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    (by_address || !WEB.contains(&port)) && !known.knows(host, port)
}

/// Returns the use of a key at this place, as rules name it.
fn purpose(host: &str, port: u16) -> String {
    match port {
        SSH => format!("ssh:{host}"),
        port => format!("ssh:{host}:{port}"),
    }
}

/// Returns a key's fingerprint as `ssh-keygen -l` shows it.
fn fingerprint(key: &[u8]) -> String {
    format!("SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(key)))
}

async fn receive(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let length = stream.read_u32().await?;
    if !(1..=MAX_MESSAGE).contains(&length) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut message = Vec::new();
    stream.take(length.into()).read_to_end(&mut message).await?;
    if message.len() as u64 != u64::from(length) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(message)
}

async fn send(stream: &mut UnixStream, message: &[u8]) -> io::Result<()> {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    stream
        .write_all(&[&length.to_be_bytes()[..], message].concat())
        .await
}
