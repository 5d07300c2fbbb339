//! `Session`: an application for the session's folder, and one run of the agent loop in it.

use std::sync::Arc;

use haft::CancellationToken;
use haft::call::RunId;
use haft_agent::Control;
use haft_app::agent::{AgentRun, AgentTask};
use haft_app::app::App;
use haft_app::config::Settings;
use haft_app::host::{ApproverParts, Host, MakeApprover};
use haft_app::notices::Notices;
use haft_app::problem::Problem;
use haft_app::run::RunOptions;
use haft_app::site::Site;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::AbortHandle;

use crate::client::Client;
use crate::kept;
use crate::limits::{CLOSING, COMMANDS};
use crate::options::AcpOptions;
use crate::permission::EditorApprover;
use crate::protocol::NewSessionParams;
use crate::replay::replay;
use crate::rpc::{INVALID_REQUEST, RpcError};
use crate::updates::{OpenedSession, Updates};

mod modes;
mod turn;

/// The entry point of its runs, as recorded.
const ENTRY: &str = "acp";

/// A conversation of the user with an agent that works in a folder.
#[derive(Debug)]
pub(crate) struct Session {
    id: String,
    app: App,
    /// `None` once the session is closed.
    agent: tokio::sync::Mutex<Option<AgentRun>>,
    /// Stops what is running.
    control: Control,
    /// Cancels the running prompt; `None` if there is none.
    turn: Mutex<Option<CancellationToken>>,
    updates: Arc<Updates>,
    modes: modes::SessionModes,
    sweeper: AbortHandle,
}

/// Opens sessions for a client.
pub(crate) struct Opener<'a> {
    pub(crate) options: &'a Arc<AcpOptions>,
    pub(crate) client: &'a Client,
    /// The client's name for itself.
    pub(crate) name: Option<String>,
}

/// Where a session works, and with which settings.
struct SessionSetup<'a> {
    site: &'a Site,
    settings: &'a Settings,
}

/// The session's running prompt; there is only one at a time.
#[derive(Debug)]
pub(crate) struct RunningPrompt {
    session: Arc<Session>,
    stop: CancellationToken,
}

impl Drop for RunningPrompt {
    fn drop(&mut self) {
        *self.session.turn.lock() = None;
    }
}

impl Opener<'_> {
    /// Opens a session in the folder, or continues an earlier one.
    pub(crate) async fn open(
        &self,
        new: &NewSessionParams,
        earlier: Option<&str>,
    ) -> Result<Session, Problem> {
        let more = new.additional_directories.as_ref();
        if more.is_some_and(|more| !more.is_empty()) {
            return Err(Problem::usage(
                "a session has one folder, and `additionalDirectories` names more",
            )
            .advise("open a session for each"));
        }
        let site = self.options.site(&new.cwd)?;
        let settings = self.options.settings(&site)?;
        let place = SessionSetup {
            site: &site,
            settings: &settings,
        };
        let opened = self.build(new, earlier, place).await;
        opened.map_err(|problem| problem.redacted(&settings.redactor))
    }

    async fn build(
        &self,
        new: &NewSessionParams,
        earlier: Option<&str>,
        place: SessionSetup<'_>,
    ) -> Result<Session, Problem> {
        let SessionSetup { site, settings } = place;
        let earlier = match earlier {
            Some(session) => Some((session, kept::run_of(site.home.path(), session)?)),
            None => None,
        };
        let updates = Updates::new(self.client.clone());
        let app = App::build(site, settings, self.host(&updates))?;
        let run = earlier.as_ref().map(|(_, run)| run.clone());
        let agent = match app.agent(settings, self.task(run, &updates)).await {
            Ok(agent) => agent,
            Err(problem) => {
                app.shut_down().await;
                return Err(problem);
            }
        };
        let id = match earlier {
            Some((session, _)) => {
                kept::note(app.home(), session, agent.id())?;
                session.to_owned()
            }
            None => agent.id().to_string(),
        };
        let window = settings.entry(&["models", agent.model(), "window"]);
        let window = window.and_then(|window| u64::try_from(window.value.as_integer()?).ok());
        updates.attach(OpenedSession {
            session: id.clone(),
            run: agent.id().clone(),
            app: app.clone(),
            window,
        });
        for notice in settings.warnings.iter().chain(agent.notices()) {
            updates.notice(notice);
        }
        servers(new, &app, &updates);
        Ok(Session {
            id,
            control: agent.agent().control(),
            sweeper: app.sweep(),
            agent: tokio::sync::Mutex::new(Some(agent)),
            turn: Mutex::default(),
            modes: modes::SessionModes::new(Arc::clone(self.options), settings),
            app,
            updates,
        })
    }

    fn host(&self, updates: &Arc<Updates>) -> Host {
        let editor = Arc::clone(updates);
        let approver: MakeApprover =
            Box::new(move |parts: ApproverParts| Arc::new(EditorApprover::new(editor, parts)));
        let (log, updates) = (self.options.notices.clone(), Arc::clone(updates));
        Host {
            approver: Some(approver),
            notices: Notices::new(move |text| {
                log.warn(text);
                updates.notice(text);
            }),
            ..Host::default()
        }
    }

    fn task(&self, resume: Option<RunId>, updates: &Arc<Updates>) -> AgentTask {
        let options = self.options;
        AgentTask {
            model: options.model.clone(),
            base_url: options.base_url.clone(),
            // An earlier conversation already has them.
            skills: if resume.is_some() {
                Vec::new()
            } else {
                options.skills.clone()
            },
            resume,
            max_turns: options.max_turns,
            watcher: Some(Arc::clone(updates) as _),
            run: Some(RunOptions {
                progress: Some(Arc::clone(updates) as _),
                wait: options.wait,
                client: self.name.clone(),
                ..RunOptions::new(ENTRY)
            }),
            ..AgentTask::default()
        }
    }
}

/// Warns about the client's MCP servers that are not started: those that are not in the settings. haft never starts a program that
/// the user has not added and pinned just because a client names it.
fn servers(new: &NewSessionParams, app: &App, updates: &Updates) {
    let known = app.servers().list();
    let named = new.mcp_servers.iter().flatten();
    let names: Vec<&str> = named
        .map(|server| server.name.as_str())
        .filter(|name| !known.iter().any(|known| known.name == *name))
        .take(20)
        .collect();
    if !names.is_empty() {
        updates.notice(&format!(
            "the editor's MCP servers {} were not started: haft starts only those in its own settings; haft mcp add NAME adds one",
            names.join(", ")
        ));
    }
}

impl Session {
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn workspace(&self) -> &str {
        self.app.workspace()
    }

    /// Returns its modes and the current one, for the response that opens a session.
    pub(crate) fn modes(&self) -> Value {
        self.modes.state()
    }

    /// Activates a mode.
    pub(crate) fn set_mode(&self, mode: &str) -> Result<(), RpcError> {
        let set = self.modes.set(&self.app, mode);
        set.map_err(|problem| problem.redacted(self.app.redactor()).into())
    }

    /// Replays the conversation so far.
    pub(crate) async fn replay(&self) -> Result<(), Problem> {
        let agent = self.agent.lock().await;
        if let Some(agent) = agent.as_ref() {
            let entries = agent.entries().await?;
            replay(&self.updates, &self.app, entries).await;
        }
        Ok(())
    }

    /// Announces the commands: the skills that a user may choose.
    pub(crate) fn announce(&self) {
        let skills = self.app.skills().current();
        let skills = skills.skills().iter();
        let commands = skills
            .filter(|skill| skill.front().user_invocable)
            .take(COMMANDS)
            .map(|skill| {
                json!({
                    "name": skill.name(),
                    "description": skill.description(),
                    "input": {"hint": "what to do with it"},
                })
            });
        let commands: Vec<Value> = commands.collect();
        if !commands.is_empty() {
            self.updates.send(&json!({
                "sessionUpdate": "available_commands_update", "availableCommands": commands,
            }));
        }
    }

    /// Takes the session for a prompt; a running prompt is not interrupted.
    pub(crate) fn begin(self: &Arc<Self>) -> Result<RunningPrompt, RpcError> {
        let mut turn = self.turn.lock();
        if turn.is_some() {
            let message = format!(
                "session {} works at a prompt; wait for its end, or end it with session/cancel",
                self.id
            );
            return Err(RpcError::new(INVALID_REQUEST, message));
        }
        let stop = CancellationToken::new();
        *turn = Some(stop.clone());
        Ok(RunningPrompt {
            session: Arc::clone(self),
            stop,
        })
    }

    /// Cancels the running prompt, if any.
    pub(crate) fn cancel(&self) {
        if let Some(stop) = &*self.turn.lock() {
            stop.cancel();
        }
    }

    /// Stops what is running, and releases the run: it can be loaded again.
    pub(crate) async fn close(&self) {
        self.cancel();
        let agent = tokio::time::timeout(CLOSING, self.agent.lock()).await;
        if let Ok(mut agent) = agent
            && let Some(agent) = agent.take()
        {
            agent.release().await;
        }
        self.sweeper.abort();
        self.app.shut_down().await;
        self.updates.detach();
    }
}

impl RunningPrompt {
    /// Returns the token that cancels the prompt.
    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.stop
    }
}
