//! `Agent`: the loop. It asks the model, has the executor run the model's calls, and asks again, until there is an answer.

use std::io;
use std::sync::Arc;

use haft::{CancellationToken, Executor, Session, SkillSet};
use haft_wire::request::ToolChoice;
use haft_wire::{ContentPart, Message, Reply, Usage};
use tokio::time::Instant;

use crate::agent::broken::UsageSoFar;
use crate::agent::money::MoneyTracker;
use crate::budget::Spending;
use crate::control::Control;
use crate::conversation::{Conversation, ConversationEntry};
use crate::end::{ExceededBudget, RunEnd, RunResult};
use crate::event::{AgentEvent, Watcher};
use crate::history::{History, is_blank};
use crate::model::{Model, ModelError, ModelEvent, ModelRequest};
use crate::next::{self, NextAction};
use crate::offer::DeclaredTools;
use crate::options::AgentOptions;

mod waited_calls;
mod broken;
mod calls;
mod composed;
mod estimate;
mod money;
mod open_requests;
mod prepare;
mod settle;
mod ticket;
mod unknown;

pub(crate) use unknown::MAY_HAVE_RUN;

/// A model, an executor, a session, and their conversation.
///
/// A [`Conversation`] records each step as an entry; a new agent created from it continues where the previous one stopped,
/// and no call runs twice.
#[derive(Debug)]
pub struct Agent {
    model: Arc<dyn Model>,
    executor: Executor,
    session: Session,
    options: AgentOptions,
    conversation: Option<Arc<dyn Conversation>>,
    watcher: Option<Arc<dyn Watcher>>,
    control: Control,
    history: History,
    offer: DeclaredTools,
    money: MoneyTracker,
    skills: Option<Arc<SkillSet>>,
    /// The instructions of this run.
    system: String,
}

/// The reason why a run failed. The history holds everything that happened before: [`Agent::resume`] tries again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The model did not answer.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The conversation cannot be written. An entry that could not be written did not take effect.
    #[error("cannot keep the conversation: {0}")]
    Conversation(#[from] io::Error),
    /// The prompt is blank: providers refuse it, and the conversation could not continue with it.
    #[error("the prompt is empty; say what is to be done")]
    Empty,
    /// A prompt was given while calls of the last turn have no answer.
    #[error("{0} calls of the last turn have no answer yet; resume the run first")]
    Open(usize),
    /// A skill cannot be loaded or reactivated.
    #[error("skill {name}: {why}")]
    Skill {
        /// The skill's name.
        name: String,
        /// Why it cannot be used.
        why: String,
    },
}

/// Notes the addresses that the user wrote: the user wants them read.
fn note_links(session: &Session, entry: &ConversationEntry) {
    let ConversationEntry::User(parts) = entry else {
        return;
    };
    for part in parts {
        if let ContentPart::Text(text) = part {
            session.links().note_all_in(text, "");
        }
    }
}

impl Agent {
    /// Creates an agent with the default options, whose conversation is kept in memory.
    pub fn new(model: impl Model + 'static, executor: Executor, session: Session) -> Self {
        let model: Arc<dyn Model> = Arc::new(model);
        let options = AgentOptions::default();
        let offer = DeclaredTools::new(model.dialect(), &options, Vec::new());
        Self {
            model,
            executor,
            session,
            options,
            conversation: None,
            watcher: None,
            control: Control::default(),
            history: History::default(),
            offer,
            money: MoneyTracker::default(),
            skills: None,
            system: String::new(),
        }
    }

    /// Sets the options. Must be called before [`keep_in`](Self::keep_in).
    pub fn with_options(mut self, options: AgentOptions) -> Self {
        self.history.prices = options.prices;
        self.offer =
            DeclaredTools::new(self.model.dialect(), &options, self.history.offered.clone());
        self.options = options;
        self
    }

    /// Lists these skills to the model: those that the session sees, if it has the tool `load_skill`.
    pub fn with_skills(mut self, skills: Arc<SkillSet>) -> Self {
        self.skills = Some(skills);
        self
    }

    /// Sets a watcher that receives the events of runs.
    pub fn with_watcher(mut self, watcher: Arc<dyn Watcher>) -> Self {
        self.watcher = Some(watcher);
        self
    }

    /// Records the conversation here, and continues from the entries that it already has.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn keep_in(
        mut self,
        conversation: Arc<dyn Conversation>,
    ) -> Result<Self, AgentError> {
        let mut history = History::new(self.options.prices);
        for entry in conversation.entries().await? {
            note_links(&self.session, &entry);
            history.apply(entry);
        }
        self.offer =
            DeclaredTools::new(self.model.dialect(), &self.options, history.offered.clone());
        // Declared tools stay declared, as far as the session's view includes them.
        self.session
            .expand(history.offered.iter().map(String::as_str));
        self.money = MoneyTracker::spent(history.spent.money);
        self.history = history;
        self.conversation = Some(conversation);
        Ok(self)
    }

    /// Returns a handle that stops calls or the run from another task.
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// Returns the session in which its calls run.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Returns the history, as sent to the model.
    pub fn messages(&self) -> &[Message] {
        self.history.messages()
    }

    /// Returns what the conversation has used up so far.
    pub fn spent(&self) -> Spending {
        self.history.spent
    }

    /// Returns whether calls of the last turn have no answer: [`resume`](Self::resume) continues with them.
    pub fn is_open(&self) -> bool {
        self.history.open().is_some()
    }

    /// Returns whether nothing is left to do without another prompt: [`resume`](Self::resume) would end at once.
    pub fn is_over(&self) -> bool {
        matches!(self.next(false), NextAction::End(_))
    }

    /// Adds a note to the model to the next request, in addition to the user's prompts.
    ///
    /// # Errors
    /// If the conversation cannot be written, or calls of the last turn have no answer.
    pub fn tell(&mut self, text: impl Into<String>) -> Result<(), AgentError> {
        self.check_closed()?;
        self.note(ConversationEntry::Host(text.into()))
    }

    /// Sends a prompt to the model, and runs until it has answered.
    ///
    /// # Errors
    /// If the model does not answer, the conversation cannot be written, or calls of the last turn have no answer.
    pub async fn run(&mut self, prompt: impl Into<String>) -> Result<RunResult, AgentError> {
        self.run_with(vec![ContentPart::Text(prompt.into())]).await
    }

    /// Like [`run`](Self::run), for prompts with more than text.
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    pub async fn run_with(&mut self, prompt: Vec<ContentPart>) -> Result<RunResult, AgentError> {
        // Before anything that takes time, so that a cancellation meanwhile takes effect.
        let stop = self.control.begin();
        self.check_closed()?;
        if is_blank(&prompt) {
            return Err(AgentError::Empty);
        }
        self.note(ConversationEntry::User(prompt))?;
        if self.options.suggest {
            self.suggest().await;
        }
        self.run_loop(stop).await
    }

    /// Continues where an earlier run ended: with calls that waited for a decision, or with a request that failed.
    ///
    /// A call that has its answer is not run again. An approved call runs now, exactly as it was shown to the operator. A call that was
    /// about to run when its process exited is not run again either: the model is told that it may have run.
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    pub async fn resume(&mut self) -> Result<RunResult, AgentError> {
        let stop = self.control.begin();
        self.run_loop(stop).await
    }

    fn check_closed(&self) -> Result<(), AgentError> {
        let Some(open) = self.history.open() else {
            return Ok(());
        };
        let waiting = open.slots.iter().filter(|slot| !slot.is_answered());
        Err(AgentError::Open(waiting.count()))
    }

    /// Records an entry, and applies it to the history.
    fn note(&mut self, entry: ConversationEntry) -> Result<(), AgentError> {
        if let Some(conversation) = &self.conversation {
            conversation.append(&entry)?;
        }
        note_links(&self.session, &entry);
        self.history.apply(entry);
        Ok(())
    }

    fn tell_watcher(&self, event: AgentEvent<'_>) {
        if let Some(watcher) = &self.watcher {
            watcher.event(event);
        }
    }

    /// Takes turns until the run ends, within the time limit.
    async fn run_loop(&mut self, stop: CancellationToken) -> Result<RunResult, AgentError> {
        let deadline = self.options.budget.time.map(|time| Instant::now() + time);
        self.restore_skills().await?;
        self.instruct().await?;
        let end = self.turns(&stop, deadline).await;
        self.count_money().await;
        if let Some(conversation) = &self.conversation {
            conversation.sync().await?;
        }
        let text = self.history.last_turn().map(haft_wire::Turn::text);
        let finished = RunResult {
            end: end?,
            text: text.unwrap_or_default(),
            spent: self.history.spent,
        };
        self.tell_watcher(AgentEvent::Done(&finished));
        Ok(finished)
    }

    async fn turns(
        &mut self,
        stop: &CancellationToken,
        deadline: Option<Instant>,
    ) -> Result<RunEnd, AgentError> {
        let mut asked = false;
        loop {
            match self.next(asked) {
                NextAction::End(end) => return Ok(end),
                NextAction::Calls => {
                    if let Some(end) = self.run_calls(stop, deadline).await? {
                        return Ok(end);
                    }
                }
                NextAction::Ask => {
                    if let Some(end) = self.stopped(stop).or_else(|| self.exceeded(deadline)) {
                        return Ok(end);
                    }
                    if let Some(end) = self.out_of_money().await {
                        return Ok(end);
                    }
                    let asked_end = self.ask(stop, deadline).await;
                    self.count_money().await;
                    if let Some(end) = asked_end? {
                        return Ok(end);
                    }
                    asked = true;
                }
            }
        }
    }

    /// Decides what to do next from the history alone. `asked` says whether the model was asked in this run.
    fn next(&self, asked: bool) -> NextAction {
        match next::next(&self.history, asked) {
            NextAction::End(RunEnd::Repeating { tool, times }) => {
                let declared = self.offer.now().names.canonical(&tool);
                let tool = declared.map_or(tool.clone(), str::to_owned);
                NextAction::End(RunEnd::Repeating { tool, times })
            }
            next => next,
        }
    }

    /// Returns the end if the run or its session was cancelled.
    fn stopped(&self, stop: &CancellationToken) -> Option<RunEnd> {
        let ended = stop.is_cancelled() || self.session.cancellation().is_cancelled();
        ended.then(|| self.cancelled())
    }

    /// Returns the end of a cancelled run.
    fn cancelled(&self) -> RunEnd {
        match self.session.ended_by_denial() {
            Some(denial) => RunEnd::Denied(denial.to_owned()),
            None => RunEnd::Cancelled,
        }
    }

    /// Returns the budget that is used up, if any.
    fn exceeded(&self, deadline: Option<Instant>) -> Option<RunEnd> {
        let exceeded = next::exceeded(&self.options.budget, &self.history);
        let late = || deadline.is_some_and(|deadline| deadline <= Instant::now());
        exceeded
            .or_else(|| late().then(|| self.out_of_time()))
            .map(RunEnd::Budget)
    }

    fn out_of_time(&self) -> ExceededBudget {
        ExceededBudget::Time(self.options.budget.time.unwrap_or_default())
    }

    /// Asks the model, and records its turn.
    async fn ask(
        &mut self,
        stop: &CancellationToken,
        deadline: Option<Instant>,
    ) -> Result<Option<RunEnd>, AgentError> {
        self.compress().await?;
        if let Some(names) = self.offer.refresh(&self.session.tools()) {
            self.note(ConversationEntry::Offered(names))?;
        }
        let mut broken = UsageSoFar::default();
        let came = {
            let watcher = self.watcher.as_deref();
            let mut watch = |event: ModelEvent| {
                broken.hear(&event);
                tell(watcher, &event);
            };
            let request = ModelRequest {
                system: &self.system,
                messages: self.history.messages(),
                tools: self.offer.now(),
                choice: &ToolChoice::Auto,
                parallel: self.options.parallel,
                max_tokens: self.options.max_tokens,
                extra: &self.options.extra,
            };
            let answering = self.model.reply(request, &mut watch);
            tokio::select! {
                biased;
                reply = answering => RequestResult::Reply(reply),
                () = stop.cancelled() => RequestResult::End(RunEnd::Cancelled),
                () = self.session.cancellation().cancelled() => RequestResult::End(self.cancelled()),
                () = until(deadline) => RequestResult::End(RunEnd::Budget(self.out_of_time())),
            }
        };
        let lost = broken.lost(matches!(came, RequestResult::Reply(Ok(_))));
        if lost != Usage::default() {
            self.note(ConversationEntry::Spent {
                usage: lost,
                is_estimate: false,
            })?;
        }
        match came {
            RequestResult::Reply(reply) => self.take_reply(reply?),
            RequestResult::End(end) => Ok(Some(end)),
        }
    }

    /// Records a reply, and reports it.
    fn take_reply(&mut self, reply: Reply) -> Result<Option<RunEnd>, AgentError> {
        let (usage, text) = (reply.usage, reply.turn.text());
        let estimate = self.estimate(&reply);
        self.note(ConversationEntry::Turn {
            turn: reply.turn,
            stop: reply.stop,
            usage,
        })?;
        if estimate != Usage::default() {
            self.count_estimate(estimate)?;
        }
        self.tell_watcher(AgentEvent::Message { text: &text });
        self.tell_watcher(AgentEvent::Usage {
            model: self.model.name(),
            usage: &usage,
            spent: &self.history.spent,
        });
        Ok(None)
    }
}

/// What is said of a reply that broke off after some of it was shown.
const DISCARDED: &str = "; what came of the reply does not count";

/// The result of a request.
enum RequestResult {
    Reply(Result<Reply, ModelError>),
    End(RunEnd),
}

/// Reports events while the model answers.
fn tell(watcher: Option<&dyn Watcher>, event: &ModelEvent) {
    let Some(watcher) = watcher else {
        return;
    };
    match event {
        ModelEvent::Delta(delta) => watcher.event(AgentEvent::Delta(delta)),
        ModelEvent::Usage(_) => {}
        ModelEvent::Retry {
            pause,
            why,
            discards,
        } => {
            let lost = if *discards { DISCARDED } else { "" };
            watcher.event(AgentEvent::Retry {
                pause_ms: u64::try_from(pause.as_millis()).unwrap_or(u64::MAX),
                why: &format!("{why}{lost}"),
                discards: *discards,
            });
        }
    }
}

/// Waits until the deadline; forever if there is none.
async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
