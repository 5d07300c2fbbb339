//! A hook's own process: asks the server that runs, which has everything in memory; judges by itself where none does.

use std::path::PathBuf;
use std::time::Duration;

use haft_builtins::web::http::{FetchLimits, Http};
use haft_hook::{Agent, Event, Reply, Verdict};
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use serde::Deserialize;

use crate::environment::Environment;
use crate::hook::{Hooks, Incoming, agent_process};
use crate::plain_file;
use crate::running::background::Wanted;
use crate::running::{Server, servers};
use crate::site::{Overrides, Site};

/// The largest answer of a server, in bytes.
const ANSWER: usize = 1 << 20;
/// The largest token, in bytes.
const TOKEN: u64 = 4096;
/// How long a server on this machine may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(2);
/// How often a server that has not answered is looked at.
const LOOK: Duration = Duration::from_secs(5);
/// The variables by which agents say in which project they work.
const PROJECT: [&str; 5] = [
    "CLAUDE_PROJECT_DIR",
    "CURSOR_PROJECT_DIR",
    "DEVIN_PROJECT_DIR",
    "FACTORY_PROJECT_DIR",
    "GEMINI_PROJECT_DIR",
];

/// What a hook's process knows of how it was started.
#[derive(Debug)]
pub struct HookProcess {
    site: Site,
    agent: Agent,
    folder: PathBuf,
    headless: bool,
}

#[derive(Deserialize)]
struct Answered {
    stdout: String,
    stderr: String,
    exit: u8,
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

    /// What the agent is answered.
    pub async fn answer(&self, bytes: Vec<u8>) -> Reply {
        let event = match haft_hook::read(self.agent, &bytes) {
            Ok(event) => event,
            Err(error) => return haft_hook::refusal(self.agent, &error.to_string()),
        };
        let process = event.session.is_empty().then(agent_process::name);
        let asked = self.by_server(&event, process.as_deref(), bytes.clone());
        if let Some(reply) = asked.await {
            return reply;
        }
        if event.call().is_none() {
            // Nothing is decided, and this process has not followed the call.
            return haft_hook::reply(&event, &Verdict::NoOpinion);
        }
        self.start_server();
        let hooks = Hooks::new(&self.site, false);
        let reply = hooks
            .answer(Incoming {
                agent: self.agent,
                bytes: &bytes,
                folder: Some(&self.folder),
                process: process.as_deref(),
                headless: self.headless,
            })
            .await;
        hooks.shut().await;
        reply
    }

    /// What the server answers that runs over the same state; none where none of this version does, or it does not answer.
    async fn by_server(
        &self,
        event: &Event,
        process: Option<&str>,
        bytes: Vec<u8>,
    ) -> Option<Reply> {
        let server = self.server()?;
        let token = plain_file::read(&self.site.home.join("token"), TOKEN).ok()?;
        let bearer = format!("Bearer {}", token.trim());
        let limits = FetchLimits {
            connect: CONNECT,
            whole: event.agent.limits().wait,
            max_bytes: ANSWER,
            ..FetchLimits::default()
        };
        let http = Http::trusted().with_limits(limits);
        let url = format!(
            "{}/api/v1/hooks/{}?folder={}&headless={}&process={}",
            server.record.url,
            self.agent.name(),
            percent_encode(self.folder.as_os_str().as_encoded_bytes(), NON_ALPHANUMERIC),
            self.headless,
            process.unwrap_or_default(),
        );
        let headers = [("authorization", &*bearer)];
        let answer = tokio::select! {
            answer = http.post_json(&url, &headers, bytes) => answer,
            () = fell_silent(&server) => {
                tracing::warn!(url = server.record.url, "the running server does not answer");
                return None;
            }
        };
        let answer = match answer {
            Ok(answer) if answer.is_success() => answer,
            Ok(answer) => {
                tracing::warn!(
                    status = answer.status,
                    "ask the running server about a call"
                );
                return None;
            }
            Err(error) => {
                tracing::warn!(%error, "ask the running server about a call");
                return None;
            }
        };
        let Answered {
            stdout,
            stderr,
            exit,
        } = serde_json::from_slice(&answer.body).ok()?;
        Some(Reply {
            stdout,
            stderr,
            exit,
        })
    }

    /// The server to ask: that in the background, else the newest.
    fn server(&self) -> Option<Server> {
        let all = servers(&self.site.home).ok()?.into_iter();
        let mut all = all.filter(|server| {
            let record = &server.record;
            record.version == env!("CARGO_PKG_VERSION") && record.url.starts_with("http://")
        });
        let first = all.next()?;
        if first.is_background() {
            return Some(first);
        }
        Some(all.find(Server::is_background).unwrap_or(first))
    }

    /// Starts the server in the background, for the calls that come after this one.
    fn start_server(&self) {
        let started = self.site.trust().and_then(|trust| {
            let trusted = trust.trusts(&self.site.workspace);
            let settings = self.site.settings(&Overrides::default(), trusted)?;
            Wanted::new(&self.site, &settings).unasked().begin()
        });
        if let Err(problem) = started {
            tracing::warn!(%problem, "start a server for hooks");
        }
    }
}

/// Ends when a server that is asked about a call answers nothing else either: it is stopped, or hangs. One that waits for a person
/// goes on answering.
async fn fell_silent(server: &Server) {
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

/// Whether no user sits before the agent, as far as its variables say.
fn is_headless(variables: &Environment) -> bool {
    let is_on = |name: &str| !matches!(variables.get(name), None | Some("" | "0" | "false"));
    let by_program = variables
        .get("CLAUDE_CODE_ENTRYPOINT")
        .is_some_and(|entry| entry.starts_with("sdk"));
    is_on("CI") || by_program
}

/// How long an agent waits for its hook; a hook that has not answered somewhat earlier denies.
pub fn last_moment(agent: Agent) -> Duration {
    let wait = agent.limits().wait;
    wait.saturating_sub((wait / 20).min(Duration::from_secs(5)))
}
