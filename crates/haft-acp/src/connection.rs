//! Serves one client from its first line to its last: answers requests concurrently, and holds the sessions.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::sync::Arc;

use haft::CancellationToken;
use haft_app::problem::Problem;
use haft_mcp::stdio::backlog::{Backlog, InputLine};
use haft_mcp::stdio::line::{reader, writer};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::blocks::PromptContent;
use crate::client::Client;
use crate::kept;
use crate::limits::{LAST, MESSAGE, QUEUE, REQUESTS, SESSIONS};
use crate::options::AcpOptions;
use crate::outbox::Outbox;
use crate::protocol::{self, ClientInfo, Initialize, LoadSession, NewSessionParams};
use crate::rpc::{
    self, ClientMessage, INVALID_PARAMS, INVALID_REQUEST, MethodParams, RpcError, RpcId,
};
use crate::session::{Opener, Session};

/// The version of the protocol.
const VERSION: u16 = 1;

/// Serves one client until it closes its end, or until `stop`; everything that runs is cancelled then. Needs a multi-threaded runtime.
///
/// # Errors
/// A [`Problem`] if the threads for the two streams cannot be started.
pub async fn serve(
    options: AcpOptions,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    stop: impl Future<Output = ()>,
) -> Result<(), Problem> {
    let thread =
        |e: std::io::Error| Problem::failed(format!("cannot start a thread for a stream: {e}"));
    let lines = Backlog::new(2 * MESSAGE);
    let (out, to_client) = mpsc::channel(QUEUE);
    reader(input, MESSAGE, Arc::clone(&lines)).map_err(thread)?;
    let written = writer(output, to_client, Arc::default()).map_err(thread)?;
    let outbox = Outbox::default();
    let pump = tokio::spawn(outbox.clone().pump(out));
    let mut connection = Connection {
        server: Arc::new(SharedConnection {
            client: Client::new(outbox.clone()),
            options: Arc::new(options),
            greeting: Mutex::default(),
            slots: Mutex::default(),
            prompts: Mutex::default(),
        }),
        tasks: JoinSet::new(),
    };
    tokio::select! {
        () = connection.run(&lines) => {}
        () = outbox.closed().cancelled() => tracing::warn!("the client does not read what it is sent"),
        () = stop => {}
    }
    lines.close();
    connection.shut_down().await;
    outbox.finish();
    // Do not wait long for a client that does not read the last messages.
    let _late = tokio::time::timeout(LAST, async {
        let _ = pump.await;
        let _ = written.await;
    })
    .await;
    Ok(())
}

struct Connection {
    server: Arc<SharedConnection>,
    tasks: JoinSet<()>,
}

/// The client's first message.
#[derive(Clone)]
struct Greeting {
    /// The client's name, if it gives one.
    client: Option<ClientInfo>,
}

/// The state that all requests share.
struct SharedConnection {
    client: Client,
    options: Arc<AcpOptions>,
    /// What the client sent with `initialize`; `None` before that.
    greeting: Mutex<Option<Greeting>>,
    slots: Mutex<SessionSlots>,
    /// The running prompts, by request.
    prompts: Mutex<HashMap<RpcId, CancellationToken>>,
}

#[derive(Default)]
struct SessionSlots {
    open: HashMap<String, Arc<Session>>,
    /// Sessions that are being opened, and those of them that are being loaded.
    opening: usize,
    loading: Vec<String>,
}

impl Connection {
    /// Handles lines until there are no more.
    async fn run(&mut self, lines: &Backlog) {
        loop {
            let line = tokio::select! {
                biased;
                Some(_) = self.tasks.join_next() => continue,
                line = lines.next() => line,
            };
            match line {
                Some(InputLine::Message(line)) => self.take(&line),
                Some(InputLine::TooLong) => self.answer(None, Err(RpcError::too_long(MESSAGE))),
                Some(InputLine::Broken(error)) => {
                    return tracing::warn!(%error, "read standard input");
                }
                None => return,
            }
        }
    }

    fn answer(&self, id: Option<&RpcId>, result: Result<Value, RpcError>) {
        self.server.answer(id, result);
    }

    fn take(&mut self, line: &[u8]) {
        match ClientMessage::read(line) {
            Err(fault) => self.answer(fault.id.as_ref(), Err(fault.error)),
            Ok(ClientMessage::Response { id, result }) => self.server.client.answered(&id, result),
            Ok(ClientMessage::Notification { method, params }) => {
                self.server.notified(&method, &params);
            }
            Ok(ClientMessage::Request { id, method, params }) => self.request(id, &method, params),
        }
    }

    fn request(&mut self, id: RpcId, method: &str, params: MethodParams) {
        let server = &self.server;
        if method == "initialize" {
            let result = server.initialize(&params);
            return self.answer(Some(&id), result);
        }
        if server.greeting.lock().is_none() {
            let message = "the first request is `initialize`";
            return self.answer(Some(&id), Err(RpcError::new(INVALID_REQUEST, message)));
        }
        if self.tasks.len() >= REQUESTS {
            let message = format!("{REQUESTS} requests are under way; wait for one of them");
            return self.answer(Some(&id), Err(RpcError::new(INVALID_REQUEST, message)));
        }
        let server = Arc::clone(server);
        let work: std::pin::Pin<Box<dyn Future<Output = ()> + Send>> = match method {
            "session/new" => Box::pin(async move { server.new_session(&id, &params).await }),
            "session/load" => Box::pin(async move { server.load(&id, &params, true).await }),
            "session/resume" => Box::pin(async move { server.load(&id, &params, false).await }),
            "session/close" => Box::pin(async move { server.close(&id, &params).await }),
            "session/list" => Box::pin(async move {
                let listed = async { kept::list(&server.options, &params.read()?).await };
                let result = listed.await;
                server.answer(Some(&id), result);
            }),
            "session/set_mode" => Box::pin(async move {
                let result = server.set_mode(&params);
                server.answer(Some(&id), result);
            }),
            // The order of the lines decides which prompt comes first.
            "session/prompt" => match server.begin(&id, &params) {
                Err(error) => return self.answer(Some(&id), Err(error)),
                Ok((busy, prompt)) => Box::pin(async move {
                    let result = busy.work(prompt).await;
                    server.prompts.lock().remove(&id);
                    server.answer(Some(&id), result);
                }),
            },
            "authenticate" => {
                let message = "there is nothing to authenticate with: `authMethods` is empty";
                return self.answer(Some(&id), Err(RpcError::new(INVALID_PARAMS, message)));
            }
            other => return self.answer(Some(&id), Err(RpcError::no_method(other))),
        };
        self.tasks.spawn(work);
    }

    /// Cancels everything that runs, and closes every session.
    async fn shut_down(&mut self) {
        let sessions: Vec<_> = {
            let mut slots = self.server.slots.lock();
            slots.open.drain().map(|(_, session)| session).collect()
        };
        for session in &sessions {
            session.cancel();
        }
        let mut closing = JoinSet::new();
        for session in sessions {
            closing.spawn(async move { session.close().await });
        }
        closing.join_all().await;
        self.tasks.shutdown().await;
        // A session that was being opened may be open by now.
        let late: Vec<_> = {
            let mut slots = self.server.slots.lock();
            slots.open.drain().map(|(_, session)| session).collect()
        };
        for session in late {
            session.close().await;
        }
    }
}

impl SharedConnection {
    fn answer(&self, id: Option<&RpcId>, result: Result<Value, RpcError>) {
        self.client.outbox().send(&rpc::response(id, result));
    }

    fn initialize(&self, params: &MethodParams) -> Result<Value, RpcError> {
        let said: Initialize = params.read()?;
        *self.greeting.lock() = Some(Greeting {
            client: said.client_info,
        });
        Ok(json!({
            // The latest version that haft knows, whatever the client supports.
            "protocolVersion": VERSION,
            "agentInfo": {"name": "haft", "title": "haft", "version": env!("CARGO_PKG_VERSION")},
            "agentCapabilities": {
                "loadSession": true,
                "promptCapabilities": {"image": true, "audio": false, "embeddedContext": true},
                "mcpCapabilities": {"http": false, "sse": false},
                "sessionCapabilities": {"list": {}, "resume": {}, "close": {}},
            },
            "authMethods": [],
        }))
    }

    fn notified(&self, method: &str, params: &MethodParams) {
        match method {
            "session/cancel" => {
                let session = params
                    .read()
                    .and_then(|of: protocol::SessionParams| self.session(&of.session_id));
                match session {
                    Ok(session) => session.cancel(),
                    Err(error) => tracing::warn!(message = %error.message, "session/cancel"),
                }
            }
            "$/cancel_request" => {
                let Ok(of) = params.read::<protocol::CancelRequest>() else {
                    return;
                };
                if let Some(stop) = self.prompts.lock().get(&of.request_id) {
                    stop.cancel();
                }
            }
            other => tracing::debug!(method = other, "a notification that says nothing here"),
        }
    }

    fn session(&self, id: &str) -> Result<Arc<Session>, RpcError> {
        let slots = self.slots.lock();
        let session = slots.open.get(id).cloned();
        session.ok_or_else(|| RpcError::no_session(id))
    }

    fn begin(
        &self,
        id: &RpcId,
        params: &MethodParams,
    ) -> Result<(crate::session::RunningPrompt, PromptContent), RpcError> {
        let said: protocol::PromptParams = params.read()?;
        let session = self.session(&said.session_id)?;
        let prompt = PromptContent::read(said.prompt, session.workspace())?;
        let busy = session.begin()?;
        let stop = busy.stop().clone();
        self.prompts.lock().insert(id.clone(), stop);
        Ok((busy, prompt))
    }

    async fn new_session(&self, id: &RpcId, params: &MethodParams) {
        let opened = async {
            let new: NewSessionParams = params.read()?;
            self.open(&new, None).await
        };
        match opened.await {
            Err(error) => self.answer(Some(id), Err(error)),
            Ok(session) => {
                let result = json!({"sessionId": session.id(), "modes": session.modes()});
                self.answer(Some(id), Ok(result));
                session.announce();
            }
        }
    }

    async fn load(&self, id: &RpcId, params: &MethodParams, replays: bool) {
        let opened = async {
            let load: LoadSession = params.read()?;
            let session = self.open(&load.new, Some(&load.session_id)).await?;
            if replays {
                session.replay().await?;
            }
            Ok(session)
        };
        match opened.await {
            Err(error) => self.answer(Some(id), Err(error)),
            Ok(session) => {
                self.answer(Some(id), Ok(json!({"modes": session.modes()})));
                session.announce();
            }
        }
    }

    /// Opens a session if there is room for it.
    async fn open(
        &self,
        new: &NewSessionParams,
        earlier: Option<&str>,
    ) -> Result<Arc<Session>, RpcError> {
        let _room = OpeningSlot::take(self, earlier)?;
        let greeting = self.greeting.lock().clone();
        let info = greeting.and_then(|greeting| greeting.client);
        let opener = Opener {
            options: &self.options,
            client: &self.client,
            name: info.map(|info| info.title.unwrap_or(info.name)),
        };
        let session = Arc::new(opener.open(new, earlier).await?);
        let mut slots = self.slots.lock();
        slots
            .open
            .insert(session.id().to_owned(), Arc::clone(&session));
        Ok(session)
    }

    async fn close(&self, id: &RpcId, params: &MethodParams) {
        let closed = async {
            let of: protocol::SessionParams = params.read()?;
            let session = self.slots.lock().open.remove(&of.session_id);
            let session = session.ok_or_else(|| RpcError::no_session(&of.session_id))?;
            session.close().await;
            Ok(json!({}))
        };
        let result = closed.await;
        self.answer(Some(id), result);
    }

    fn set_mode(&self, params: &MethodParams) -> Result<Value, RpcError> {
        let said: protocol::SetMode = params.read()?;
        self.session(&said.session_id)?.set_mode(&said.mode_id)?;
        Ok(json!({}))
    }
}

/// Room for a session that is being opened.
struct OpeningSlot<'a> {
    server: &'a SharedConnection,
    loads: Option<String>,
}

impl<'a> OpeningSlot<'a> {
    fn take(server: &'a SharedConnection, loads: Option<&str>) -> Result<Self, RpcError> {
        let mut slots = server.slots.lock();
        if slots.open.len() + slots.opening >= SESSIONS {
            let message = format!("{SESSIONS} sessions are open; close one with session/close");
            return Err(RpcError::new(INVALID_REQUEST, message));
        }
        if let Some(id) = loads {
            if slots.open.contains_key(id) || slots.loading.iter().any(|known| known == id) {
                let message = format!("session {id} is open here already");
                return Err(RpcError::new(INVALID_REQUEST, message));
            }
            slots.loading.push(id.to_owned());
        }
        slots.opening += 1;
        Ok(Self {
            server,
            loads: loads.map(str::to_owned),
        })
    }
}

impl Drop for OpeningSlot<'_> {
    fn drop(&mut self) {
        let mut slots = self.server.slots.lock();
        slots.opening -= 1;
        if let Some(id) = &self.loads {
            slots.loading.retain(|known| known != id);
        }
    }
}
