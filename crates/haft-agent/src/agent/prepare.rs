//! Prepares a request to the model: suggests tools, lists and reactivates skills, compresses a long history.

use bytes::Bytes;
use haft::future::run_blocking;
use haft::session::Activation;
use haft::{ToolCall, call::Origin};
use haft_wire::request::ToolChoice;
use haft_wire::{Declarations, Message, ToolOutput, Usage};

use crate::agent::{Agent, AgentError};
use crate::compress;
use crate::conversation::ConversationEntry;
use crate::event::AgentEvent;
use crate::model::ModelRequest;
use crate::skills::{LOAD_SKILL, catalogue};
use crate::suggest;

impl Agent {
    /// Loads a skill before the model is asked, as if the user chose it; the model receives its instructions.
    ///
    /// # Errors
    /// If there is no such skill or it cannot be loaded, or the conversation cannot be written.
    pub async fn load_skill(&mut self, name: &str) -> Result<(), AgentError> {
        self.check_closed()?;
        // Those of an earlier process first: the note that follows lists everything that is active.
        self.restore_skills().await?;
        let arguments = serde_json::json!({"skill": name}).to_string();
        let call = ToolCall::new(LOAD_SKILL, arguments).from_origin(Origin::Host);
        let outcome = self.executor.execute(&self.session, call).await;
        if !outcome.is_ok() {
            return Err(AgentError::Skill {
                name: name.to_owned(),
                why: outcome.to_model(),
            });
        }
        self.note_skills()?;
        self.note(ConversationEntry::Host(outcome.to_model()))
    }

    /// Records which skills are active, if that has changed.
    pub(super) fn note_skills(&mut self) -> Result<(), AgentError> {
        let active = self.session.active_skills();
        let active = active.iter().map(|skill| skill.name());
        if active
            .clone()
            .eq(self.history.skills.iter().map(String::as_str))
        {
            return Ok(());
        }
        let names: Vec<String> = active.map(str::to_owned).collect();
        self.note(ConversationEntry::Skills(names))
    }

    /// Reactivates the skills that were active when the run was left: the restrictions that they impose must hold again.
    pub(super) async fn restore_skills(&mut self) -> Result<(), AgentError> {
        let active = self.session.active_skills();
        let is_active = |name: &String| active.iter().any(|skill| skill.name() == name);
        let names = self.history.skills.iter();
        let names: Vec<String> = names.filter(|name| !is_active(name)).cloned().collect();
        if names.is_empty() {
            return Ok(());
        }
        let current = match &self.skills {
            Some(skills) => {
                let skills = skills.clone();
                Some(run_blocking(move || skills.current()).await?)
            }
            None => None,
        };
        for name in names {
            let gone = |why: String| AgentError::Skill {
                name: name.clone(),
                why,
            };
            let skill = current.as_ref().and_then(|current| current.find(&name));
            let skill = skill.cloned().ok_or_else(|| {
                gone("it was active in the run but no longer exists, so its limits cannot be enforced".to_owned())
            })?;
            let read = skill.clone();
            let body = run_blocking(move || read.instructions()).await?;
            let body = body.map_err(|error| gone(error.to_string()))?;
            self.executor.activate(
                &self.session,
                &Activation {
                    name: skill.name(),
                    body: &body,
                    folder: Some(skill.dir()),
                    restricts_to: skill.restricts_to(),
                    excludes: skill.excludes(),
                },
            );
        }
        Ok(())
    }

    /// Builds the instructions, including the skills available now.
    pub(super) async fn instruct(&mut self) -> Result<(), AgentError> {
        let mut system = self.options.system.clone();
        if let Some(skills) = &self.skills {
            let skills = skills.clone();
            let current = run_blocking(move || skills.current()).await?;
            let text = catalogue(&current, &self.session);
            if !system.is_empty() && !text.is_empty() {
                system.push_str("\n\n");
            }
            system.push_str(&text);
        }
        self.system = system;
        Ok(())
    }

    /// Declares the deferred tools that match what the user says, within the session's view.
    pub(super) async fn suggest(&mut self) {
        let tools = self.session.tools();
        let query = suggest::query(self.history.messages());
        let mut names = Vec::new();
        if let Some(model) = &self.options.chooser {
            match suggest::chosen(model, &tools, &query).await {
                Ok((chosen, usage)) => {
                    names = chosen;
                    self.history
                        .spent
                        .count(&usage, self.options.prices.as_ref());
                }
                Err(error) => tracing::warn!(%error, "no model chooses tools; they are ranked"),
            }
        }
        if names.is_empty() {
            names = suggest::ranked(&tools, &query, suggest::SUGGESTED);
        }
        let expanded = self.session.expand(names.iter().map(String::as_str));
        if !expanded.is_empty() {
            let names: Vec<&str> = expanded.iter().map(haft::ToolName::as_str).collect();
            let text = format!("tools suggested: {}", names.join(", "));
            self.tell_watcher(AgentEvent::Notice { text: &text });
        }
    }

    /// Compresses the history if it is too long for the model's window.
    pub(super) async fn compress(&mut self) -> Result<(), AgentError> {
        let Some(window) = self.options.window else {
            return Ok(());
        };
        if !compress::is_due(self.history.last_usage(), window) {
            return Ok(());
        }
        self.shorten().await?;
        if compress::is_due(self.history.last_usage(), window) {
            self.sum_up(window).await?;
        }
        Ok(())
    }

    /// Returns whether an answer holds the instructions of an active skill.
    fn is_of_active_skill(&self, answer: &ToolOutput) -> bool {
        let loads = self.offer.now().called(&answer.call) == Some(LOAD_SKILL);
        let active = self.session.active_skills();
        loads
            && active
                .iter()
                .any(|skill| answer.call.arguments.contains(skill.name()))
    }

    /// Moves long results of older turns to the artifact store.
    async fn shorten(&mut self) -> Result<(), AgentError> {
        let long = compress::long_answers(&self.history, |answer| self.is_of_active_skill(answer));
        let readable = self.session.tools().entry("read_artifact").is_some();
        let count = long.len();
        for answer in long {
            let mut reference = None;
            if let Some(store) = self.executor.artifacts().filter(|_| readable) {
                let bytes = Bytes::from(answer.text.clone());
                let stored = store.put(self.session.owner(), "text/plain", bytes).await;
                reference = stored.ok().map(|reference| reference.as_str().to_owned());
            }
            let text = compress::shortened(&answer.text, reference.as_deref());
            self.note(ConversationEntry::Shortened {
                turn: answer.turn,
                place: answer.place,
                text,
            })?;
        }
        if count > 0 {
            let text = format!("{count} old results shortened");
            self.tell_watcher(AgentEvent::Notice { text: &text });
        }
        Ok(())
    }

    /// Has the model summarize what is older than the last turns.
    async fn sum_up(&mut self, window: u64) -> Result<(), AgentError> {
        let Some(turn) = compress::boundary(&self.history) else {
            return Ok(());
        };
        let at = self.history.begin_of(turn).unwrap_or_default();
        let old: Vec<Message> = self.history.messages()[..at].to_vec();
        let mut usage = Usage::default();
        let mut summary = String::new();
        for batch in compress::batches(&old, window) {
            let text = match summary.as_str() {
                "" => batch,
                before => {
                    format!("The summary of what came before:\n{before}\n\nWhat followed:\n{batch}")
                }
            };
            let messages = [Message::user(text)];
            let request = ModelRequest {
                system: compress::SUMMARY_SYSTEM,
                messages: &messages,
                tools: &Declarations::none(self.model.dialect()),
                choice: &ToolChoice::Auto,
                parallel: false,
                max_tokens: Some(compress::summary_tokens(window)),
                extra: &[],
            };
            let reply = match self.model.reply(request, &mut |_| {}).await {
                Ok(reply) => reply,
                Err(error) => {
                    let text = format!(
                        "older turns stay as they are, as they could not be summarized: {error}"
                    );
                    self.tell_watcher(AgentEvent::Notice { text: &text });
                    return Ok(());
                }
            };
            usage.input += reply.usage.input;
            usage.cached += reply.usage.cached;
            usage.output += reply.usage.output;
            summary = compress::rendered(&reply.turn.text(), window);
        }
        let skills: Vec<String> = old
            .iter()
            .flat_map(|message| match message {
                Message::Results(answers) => answers.as_slice(),
                _ => &[],
            })
            .filter(|answer| self.is_of_active_skill(answer))
            .map(ToolOutput::texts)
            .collect();
        let text = compress::message(&summary, &old);
        self.note(ConversationEntry::Summary { turn, text, usage })?;
        for skill in skills {
            self.note(ConversationEntry::Host(skill))?;
        }
        self.tell_watcher(AgentEvent::Notice {
            text: "older turns summarized",
        });
        Ok(())
    }
}
