//! `Updates`: reports what happens in a session as updates of the protocol: text and thinking as they arrive, tool calls with their
//! output and diffs, the plan, the context usage.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use haft::approval::ApprovalRequest;
use haft::approval::preview::{FileChange, FileChangeKind};
use haft::audit::redact::Redactor;
use haft::call::{CallId, RunId};
use haft::change::ChangesMade;
use haft::progress::{ProgressEvent, ProgressSink};
use haft::result::{Content, Outcome};
use haft::spec::ToolClass;
use haft::text::visible;
use haft_agent::{AgentEvent, RunEnd, Spending, Watcher};
use haft_app::app::App;
use haft_app::run::selection::RunSelection;
use haft_app::view::changes::{ReportLimits, texts};
use haft_wire::{Delta, Usage};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::TryRecvError;

use crate::client::Client;
use crate::limits::{IMAGE, OUTPUT};

pub(crate) mod card;
mod plan;
pub(crate) mod text;

/// Reports to the client what happens in one session.
pub(crate) struct Updates {
    client: Client,
    state: Mutex<UpdatesState>,
}

#[derive(Default)]
struct UpdatesState {
    session: String,
    run: Option<RunId>,
    /// The session's application, until the session is closed.
    app: Option<App>,
    /// The size of the model's window, in tokens.
    window: Option<u64>,
    /// The changes that calls made.
    made: Option<Receiver<ChangesMade>>,
    changed: HashSet<CallId>,
    /// Running calls, with the end of each one's output.
    calls: HashMap<CallId, String>,
    /// Calls that wait for a decision and that the model did not make.
    beside: Vec<CallId>,
    /// Whether text of the current reply was sent as it arrived.
    streams: bool,
    /// Notices to send with the next prompt.
    notices: Vec<String>,
}

impl fmt::Debug for Updates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Updates").finish_non_exhaustive()
    }
}

/// The parts of an opened session.
pub(crate) struct OpenedSession {
    pub(crate) session: String,
    pub(crate) run: RunId,
    pub(crate) app: App,
    pub(crate) window: Option<u64>,
}

impl Updates {
    pub(crate) fn new(client: Client) -> Arc<Self> {
        Arc::new(Self {
            client,
            state: Mutex::default(),
        })
    }

    /// Attaches the opened session.
    pub(crate) fn attach(&self, parts: OpenedSession) {
        let mut state = self.state.lock();
        state.made = parts.app.changes().ok().map(|log| log.watch());
        state.session = parts.session;
        state.run = Some(parts.run);
        state.window = parts.window;
        state.app = Some(parts.app);
    }

    /// Detaches the closed session and drops its parts.
    pub(crate) fn detach(&self) {
        let mut state = self.state.lock();
        (state.app, state.made) = (None, None);
    }

    pub(crate) fn session(&self) -> String {
        self.state.lock().session.clone()
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Sends one update.
    pub(crate) fn send(&self, update: &Value) {
        self.client.update(&self.session(), update);
    }

    /// Sends a message in haft's own name, as a paragraph of the agent's text.
    pub(crate) fn say(&self, what: &str) {
        let what = format!("\n\n{what}\n\n");
        self.send(&json!({"sessionUpdate": "agent_message_chunk", "content": text::block(&what)}));
    }

    /// Keeps a notice to send with the next prompt.
    pub(crate) fn notice(&self, what: &str) {
        let mut state = self.state.lock();
        if !state.notices.iter().any(|known| known == what) {
            state.notices.push(what.to_owned());
        }
    }

    /// Sends the kept notices.
    pub(crate) fn say_notices(&self) {
        let notices = std::mem::take(&mut self.state.lock().notices);
        for notice in notices {
            self.say(&format!("haft: {}", text::plain(&notice)));
        }
    }

    fn thought(&self, what: &str) {
        self.send(&json!({"sessionUpdate": "agent_thought_chunk", "content": text::block(what)}));
    }

    fn app(&self) -> Option<App> {
        self.state.lock().app.clone()
    }

    fn redactor(&self) -> Redactor {
        let app = self.app();
        app.map_or_else(Redactor::default, |app| app.redactor().clone())
    }

    /// Returns the class of a tool.
    pub(crate) fn class(&self, tool: &str) -> Option<ToolClass> {
        self.app()?.tools().snapshot().entry(tool)?.spec().class
    }

    fn call(&self, id: &CallId, tool: &str, arguments: &str) {
        let Some(app) = self.app() else { return };
        self.state.lock().calls.insert(id.clone(), String::new());
        let redactor = app.redactor();
        self.send(&json!({
            "sessionUpdate": "tool_call",
            "toolCallId": id,
            "title": card::title(tool, arguments, redactor),
            "name": tool,
            "kind": card::kind(tool, self.class(tool)),
            "status": "in_progress",
            "locations": card::locations(arguments, app.workspace()),
            "rawInput": text::raw(arguments, redactor),
        }));
    }

    /// Reports that a call waits for a decision made elsewhere. Announces a call unknown to the client, such as one for more money.
    pub(crate) fn waits(&self, id: &CallId, tool: &str, why: &str) {
        let is_new = {
            let mut state = self.state.lock();
            let is_new = !state.calls.contains_key(id) && !state.beside.contains(id);
            if is_new {
                state.beside.push(id.clone());
            }
            is_new
        };
        let mut update = json!({
            "sessionUpdate": "tool_call_update", "toolCallId": id, "status": "pending",
            "content": [text::content(why)],
        });
        if is_new {
            update["sessionUpdate"] = json!("tool_call");
            update["title"] = json!(card::title(tool, "{}", &self.redactor()));
            update["kind"] = json!(card::kind(tool, self.class(tool)));
        }
        self.send(&update);
    }

    /// Reports, when the run continues or ends, that the calls announced in addition to its own no longer wait.
    fn nothing_waits(&self, status: &str) {
        let beside = std::mem::take(&mut self.state.lock().beside);
        for id in beside {
            self.send(
                &json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status}),
            );
        }
    }

    /// Reports that a call no longer waits for the user, and whether the user rejected it.
    pub(crate) fn settled(&self, id: &CallId, rejected: bool) {
        // A nested call has no result of its own here.
        let is_own = self.state.lock().calls.contains_key(id);
        let status = match (is_own, rejected) {
            (true, _) => "in_progress",
            (false, true) => "failed",
            (false, false) => "completed",
        };
        self.send(
            &json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status}),
        );
    }

    fn result(&self, id: &CallId, ended: &EndedCall<'_>) {
        self.state.lock().calls.remove(id);
        let redactor = self.redactor();
        let mut content = self.diffs(id);
        content.extend(result_blocks(ended, &redactor));
        let mut update = json!({
            "sessionUpdate": "tool_call_update",
            "toolCallId": id,
            "status": if ended.is_error { "failed" } else { "completed" },
            "content": content,
        });
        if let Some(Ok(outcome)) = ended.outcome.map(serde_json::to_string) {
            update["rawOutput"] = text::raw(&outcome, &redactor);
        }
        self.send(&update);
        if let Some(plan) = ended.outcome.and_then(plan::of) {
            self.send(&plan);
        }
    }

    /// Returns the text files that a call changed, according to the record of changes.
    fn diffs(&self, id: &CallId) -> Vec<Value> {
        if !self.has_changed(id) {
            return Vec::new();
        }
        let (app, run) = {
            let state = self.state.lock();
            (state.app.clone(), state.run.clone())
        };
        let (Some(app), Some(run)) = (app, run) else {
            return Vec::new();
        };
        let of = RunSelection {
            run,
            call: Some(id.to_string()),
        };
        let read = || texts(&app, &of, &ReportLimits::http(app.redactor()));
        let read = match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
            // Read files where that does not block other tasks.
            Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(read),
            _ => read(),
        };
        match read {
            Ok(files) => files
                .into_iter()
                .map(|file| {
                    json!({
                        "type": "diff",
                        "path": std::path::Path::new(app.workspace()).join(file.path),
                        "oldText": file.before,
                        "newText": file.after.unwrap_or_default(),
                    })
                })
                .collect(),
            Err(problem) => {
                tracing::warn!(%problem, "what a call changed");
                Vec::new()
            }
        }
    }

    /// Returns whether a call, or a nested one, has changed anything.
    fn has_changed(&self, id: &CallId) -> bool {
        let mut state = self.state.lock();
        let Some(mut made) = state.made.take() else {
            return false;
        };
        let mut was_missed = false;
        loop {
            match made.try_recv() {
                Ok(one) if Some(&one.run) == state.run.as_ref() => {
                    state.changed.insert(one.call);
                }
                Ok(_) => {}
                Err(TryRecvError::Lagged(_)) => was_missed = true,
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        state.made = Some(made);
        let of_call = |call: &CallId| {
            let rest = call.as_str().strip_prefix(id.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let has = state.changed.iter().any(of_call);
        state.changed.retain(|call| !of_call(call));
        has || was_missed
    }

    /// Returns what a request would change: what it means, and the diffs of its files. Of a long file there is a diff for each piece that
    /// changes.
    pub(crate) fn previews(&self, request: &ApprovalRequest) -> Vec<Value> {
        let snapshot = &request.snapshot;
        let mut shown = Vec::new();
        for meaning in &snapshot.meanings {
            let texts = [&meaning.title].into_iter().chain(&meaning.warnings);
            let texts: Vec<&str> = texts.chain(&meaning.lines).map(String::as_str).collect();
            let words = self.redactor().redact(&texts.join("\n")).into_owned();
            shown.push(text::content(&text::plain(&words)));
            shown.extend(self.diffs_of(request, &meaning.files));
        }
        let covers = snapshot.meanings.iter().flat_map(|meaning| &meaning.covers);
        let covers: HashSet<&str> = covers.map(String::as_str).collect();
        shown.extend(
            self.diffs_of(
                request,
                snapshot
                    .preview
                    .iter()
                    .filter(|file| !file.is_among(&covers)),
            ),
        );
        shown
    }

    fn diffs_of<'a>(
        &self,
        request: &ApprovalRequest,
        files: impl IntoIterator<Item = &'a FileChange>,
    ) -> Vec<Value> {
        let redactor = self.redactor();
        let mut shown = Vec::new();
        for file in files {
            let path = file.to.as_ref().unwrap_or(&file.path);
            if let Some(why) = &file.folded {
                let words = format!("{}: {why}", visible::path(path));
                shown.push(text::content(&text::plain(&redactor.redact(&words))));
                continue;
            }
            let is_new = file.action == FileChangeKind::Create;
            let moves = file.action == FileChangeKind::Move;
            for piece in file.pieces() {
                let old = redactor.redact(&piece.before);
                shown.push(json!({
                    "type": "diff",
                    "path": std::path::Path::new(&request.workspace).join(path),
                    "oldText": (!is_new || moves).then_some(old),
                    "newText": redactor.redact(&piece.after),
                }));
            }
        }
        shown
    }

    fn usage(&self, usage: &Usage, spent: &Spending) {
        let Some(size) = self.state.lock().window else {
            return;
        };
        let mut update = json!({
            "sessionUpdate": "usage_update", "used": usage.input + usage.output, "size": size,
        });
        if let Some(money) = spent.money {
            // The currency of the prices is unknown.
            update["cost"] = json!({"amount": money, "currency": "money"});
        }
        self.send(&update);
    }
}

/// How a call ended.
struct EndedCall<'a> {
    outcome: Option<&'a Outcome>,
    text: &'a str,
    is_error: bool,
}

/// Returns what the user sees of a call: images, then everything that is text.
fn result_blocks(ended: &EndedCall<'_>, redactor: &Redactor) -> Vec<Value> {
    let Some(outcome) = ended.outcome else {
        return vec![text::output(&redactor.redact(ended.text))];
    };
    let mut shown: Vec<Value> = outcome.content.iter().filter_map(picture).collect();
    let rendered = outcome.render_beside(|content| picture(content).is_some());
    let rendered = rendered.to_text();
    if !rendered.is_empty() {
        shown.push(text::output(&redactor.redact(&rendered)));
    }
    shown
}

/// Returns an image of a result.
fn picture(content: &Content) -> Option<Value> {
    match content {
        Content::Image { data, mime_type } if data.len() <= IMAGE => Some(json!({
            "type": "content",
            "content": {"type": "image", "data": data, "mimeType": mime_type},
        })),
        _ => None,
    }
}

impl Watcher for Updates {
    fn event(&self, event: AgentEvent<'_>) {
        match event {
            AgentEvent::Delta(Delta::Text(piece)) => {
                self.state.lock().streams = true;
                self.send(&json!({
                    "sessionUpdate": "agent_message_chunk", "content": text::block(piece),
                }));
            }
            AgentEvent::Delta(Delta::Thinking(piece)) => self.thought(piece),
            AgentEvent::Message { text: whole } => {
                self.nothing_waits("completed");
                let streamed = std::mem::take(&mut self.state.lock().streams);
                if !streamed && !whole.is_empty() {
                    self.send(&json!({
                        "sessionUpdate": "agent_message_chunk", "content": text::block(whole),
                    }));
                }
            }
            AgentEvent::ToolCall {
                id,
                tool,
                arguments,
            } => self.call(id, tool, arguments),
            AgentEvent::ToolResult {
                id,
                outcome,
                text,
                is_error,
                ..
            } => self.result(
                id,
                &EndedCall {
                    outcome,
                    text,
                    is_error,
                },
            ),
            AgentEvent::Approval { id, tool, approval } => {
                self.waits(id, tool, &format!("It waits in the inbox as {approval}."));
            }
            AgentEvent::Done(finished) if !matches!(finished.end, RunEnd::Suspended(_)) => {
                self.nothing_waits("failed");
            }
            AgentEvent::Retry { why, .. } => self.thought(&format!("{why}\n\n")),
            AgentEvent::Notice { text } => self.thought(&format!("{text}\n\n")),
            AgentEvent::Usage { usage, spent, .. } => self.usage(usage, spent),
            _ => {}
        }
    }
}

impl ProgressSink for Updates {
    fn progress(&self, event: ProgressEvent) {
        if event.text.is_empty() {
            return;
        }
        let shown = {
            let mut state = self.state.lock();
            // The output of a nested call belongs to the call that the client knows.
            let call = event.call.as_str();
            let own = call.split_once('.').map_or(call, |(own, _)| own);
            let own = CallId::new(own);
            let Some(printed) = state.calls.get_mut(&own) else {
                return;
            };
            printed.push_str(&event.text);
            *printed = text::tail(printed, OUTPUT).to_owned();
            json!({
                "sessionUpdate": "tool_call_update", "toolCallId": own,
                "content": [text::output(printed)],
            })
        };
        self.send(&shown);
    }
}

#[cfg(test)]
mod tests {
    use haft::testing::rendering::check;

    use super::*;

    #[test]
    fn an_editor_shows_everything_that_a_tool_gave() {
        check("editor", |outcome| {
            let ended = EndedCall {
                outcome: Some(outcome),
                text: "",
                is_error: !outcome.is_ok(),
            };
            let shown = result_blocks(&ended, &Redactor::default())
                .into_iter()
                .map(|block| {
                    let text = block["content"]["text"].as_str();
                    text.map_or_else(|| block.to_string(), str::to_owned)
                });
            shown.collect::<Vec<_>>().join("\n")
        });
    }
}
