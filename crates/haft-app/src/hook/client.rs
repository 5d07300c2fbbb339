//! `HookProcess`: a hook's own process. It asks the running server, which has everything in memory, and judges by itself if none runs.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use haft_builtins::web::http::{FetchLimits, Http};
use haft_hook::{Agent, HookEvent, HookEventKind, HookReply, HookVerdict};
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use serde::Deserialize;

use crate::environment::Environment;
use crate::environment_part::EnvironmentPart;
use crate::hook::{HookInvocation, Hooks, agent_process};
use crate::plain_file;
use crate::running::background::ConsoleRequest;
use crate::running::{RunningServer, servers};
use crate::site::{Overrides, Site};

/// Maximum size of a server's answer, in bytes.
const ANSWER: usize = 1 << 20;
/// Maximum size of the token file, in bytes.
const TOKEN: u64 = 4096;
/// The status of an answer that depends on this process's environment (428 Precondition Required).
const NEEDS_ENVIRONMENT: u16 = 428;
/// The status of a server that leaves the call to this process (421 Misdirected Request).
const JUDGE_HERE: u16 = 421;
/// How long a server on this machine may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(2);
/// How often haft checks that a server which has not answered yet is alive.
const LOOK: Duration = Duration::from_secs(5);
/// The variables in which agents name the project that they work in.
const PROJECT: [&str; 5] = [
    "CLAUDE_PROJECT_DIR",
    "CURSOR_PROJECT_DIR",
    "DEVIN_PROJECT_DIR",
    "FACTORY_PROJECT_DIR",
    "GEMINI_PROJECT_DIR",
];

/// The process of a hook: how it was started, and how it gets its answer.
#[derive(Debug)]
pub struct HookProcess {
    site: Site,
    agent: Agent,
    folder: PathBuf,
    headless: bool,
}

/// A reply as the server sends it.
#[derive(Deserialize)]
struct ServerReply {
    stdout: String,
    stderr: String,
    exit: u8,
}

/// The variables that a server needs to know of, as it sends them.
#[derive(Deserialize)]
struct NeededVariables {
    variables: Vec<String>,
}

/// What came of asking the server.
#[derive(Debug)]
enum ServerAnswer {
    Reply(HookReply),
    /// It needs to know what this process's environment has of these variables.
    NeedsEnvironment(Vec<String>),
    /// This process is to judge by itself.
    JudgeHere,
    /// No server of this version runs or answers.
    None,
}

/// An event, as a server is asked about it.
struct ServerQuestion<'a> {
    server: &'a RunningServer,
    bearer: String,
    within: Duration,
    bytes: Bytes,
}

impl ServerQuestion<'_> {
    async fn ask(&self, url: &str) -> ServerAnswer {
        let limits = FetchLimits {
            connect: CONNECT,
            whole: self.within,
            max_bytes: ANSWER,
            ..FetchLimits::default()
        };
        let http = Http::trusted().with_limits(limits);
        let headers = [("authorization", &*self.bearer)];
        let answer = tokio::select! {
            answer = http.post_json(url, &headers, self.bytes.clone()) => answer,
            () = until_silent(self.server) => {
                tracing::warn!(url = self.server.record.url, "the running server does not answer");
                return ServerAnswer::None;
            }
        };
        match answer {
            Ok(answer) if answer.is_success() => match serde_json::from_slice(&answer.body) {
                Ok(ServerReply {
                    stdout,
                    stderr,
                    exit,
                }) => ServerAnswer::Reply(HookReply {
                    stdout,
                    stderr,
                    exit,
                }),
                Err(_) => ServerAnswer::None,
            },
            Ok(answer) if answer.status == NEEDS_ENVIRONMENT => {
                match serde_json::from_slice(&answer.body) {
                    Ok(NeededVariables { variables }) => ServerAnswer::NeedsEnvironment(variables),
                    Err(_) => ServerAnswer::None,
                }
            }
            Ok(answer) if answer.status == JUDGE_HERE => ServerAnswer::JudgeHere,
            Ok(answer) => {
                let status = answer.status;
                tracing::warn!(status, "ask the running server about a call");
                ServerAnswer::None
            }
            Err(error) => {
                tracing::warn!(%error, "ask the running server about a call");
                ServerAnswer::None
            }
        }
    }
}

impl HookProcess {
    /// The process of a hook that was installed for this agent.
    pub fn new(site: &Site, agent: Agent) -> Self {
        let variables = &site.environment;
        let named = PROJECT.iter().find_map(|name| variables.folder(name));
        Self {
            agent,
            folder: named.unwrap_or_else(|| site.workspace.clone()),
            headless: is_headless(variables),
            site: site.clone(),
        }
    }

    /// Returns the answer to an event.
    pub async fn answer(&self, bytes: Vec<u8>) -> HookReply {
        let event = match haft_hook::read(self.agent, &bytes) {
            Ok(event) => event,
            Err(error) => return haft_hook::refusal(self.agent, &error.to_string()),
        };
        let process = event.session.is_empty().then(agent_process::name);
        let asked = self.by_server(&event, process.as_deref(), &bytes).await;
        if let ServerAnswer::Reply(reply) = asked {
            return reply;
        }
        let is_end = matches!(event.kind, HookEventKind::SessionEnd);
        if event.call().is_none() && !is_end {
            // There is nothing to decide, and this process did not follow the call.
            return haft_hook::reply(&event, &HookVerdict::NoOpinion);
        }
        if !is_end && matches!(asked, ServerAnswer::None) {
            self.start_server();
        }
        let hooks = Hooks::new(&self.site, false);
        let answer = hooks.answer(HookInvocation {
            agent: self.agent,
            bytes: &bytes,
            folder: Some(&self.folder),
            process: process.as_deref(),
            headless: self.headless,
            environment: None,
        });
        let reply = answer.await;
        hooks.shut_down().await;
        reply.into_reply(self.agent)
    }

    /// Asks the server that runs over the same state: once more with what it needs to know of this process's environment.
    async fn by_server(
        &self,
        event: &HookEvent,
        process: Option<&str>,
        bytes: &[u8],
    ) -> ServerAnswer {
        let Some(server) = self.server() else {
            return ServerAnswer::None;
        };
        let Ok(token) = plain_file::read(&self.site.home.join("token"), TOKEN) else {
            return ServerAnswer::None;
        };
        let url = format!(
            "{}/api/v1/hooks/{}?folder={}&headless={}&process={}",
            server.record.url,
            self.agent.name(),
            percent_encode(self.folder.as_os_str().as_encoded_bytes(), NON_ALPHANUMERIC),
            self.headless,
            process.unwrap_or_default(),
        );
        let question = ServerQuestion {
            server: &server,
            bearer: format!("Bearer {}", token.trim()),
            within: event.agent.limits().wait,
            bytes: Bytes::copy_from_slice(bytes),
        };
        let first = question.ask(&url).await;
        let ServerAnswer::NeedsEnvironment(names) = first else {
            return first;
        };
        let part = EnvironmentPart::of(names, &self.site.environment).to_text();
        let part = percent_encode(part.as_bytes(), NON_ALPHANUMERIC);
        question.ask(&format!("{url}&environment={part}")).await
    }

    /// The server to ask: the one in the background, else the newest.
    fn server(&self) -> Option<RunningServer> {
        let all = servers(&self.site.home).ok()?.into_iter();
        let mut all = all.filter(|server| {
            let record = &server.record;
            record.version == env!("CARGO_PKG_VERSION") && record.url.starts_with("http://")
        });
        let first = all.next()?;
        if first.is_background() {
            return Some(first);
        }
        Some(all.find(RunningServer::is_background).unwrap_or(first))
    }

    /// Starts the server in the background, for the calls after this one.
    fn start_server(&self) {
        let started = self.site.trust().and_then(|trust| {
            let trusted = trust.trusts(&self.site.workspace);
            let settings = self.site.settings(&Overrides::default(), trusted)?;
            ConsoleRequest::new(&self.site, &settings).unasked().begin()
        });
        if let Err(problem) = started {
            tracing::warn!(%problem, "start a server for hooks");
        }
    }
}

/// Completes when a server that has a call to answer answers nothing else either, because it stopped or hangs. A server that waits for a
/// person still answers.
async fn until_silent(server: &RunningServer) {
    let limits = FetchLimits {
        connect: CONNECT,
        whole: CONNECT,
        max_bytes: ANSWER,
        ..FetchLimits::default()
    };
    let http = Http::trusted().with_limits(limits);
    let url = format!("{}/healthz", server.record.url);
    loop {
        tokio::time::sleep(LOOK).await;
        if http.get(&url, &[]).await.is_err() {
            return;
        }
    }
}

/// Whether the agent runs without a user, as far as its variables say.
fn is_headless(variables: &Environment) -> bool {
    let is_on = |name: &str| !matches!(variables.get(name), None | Some("" | "0" | "false"));
    let by_program = variables
        .get("CLAUDE_CODE_ENTRYPOINT")
        .is_some_and(|entry| entry.starts_with("sdk"));
    is_on("CI") || by_program
}

/// Returns how long a hook may take: somewhat less than the agent waits for it. A hook that has not answered by then denies.
pub fn last_moment(agent: Agent) -> Duration {
    let wait = agent.limits().wait;
    wait.saturating_sub((wait / 20).min(Duration::from_secs(5)))
}
