//! `History`: the state that the entries of a conversation add up to: the messages for the model, and the calls without an answer.
//! All entries are read here, so a resumed run is in the state in which it was left.

use haft_wire::{Call, ContentPart, Message, StopReason, ToolOutput, Turn, TurnItem, Usage};
use serde_json::value::RawValue;

use crate::budget::{Prices, Spending};
use crate::conversation::{AnswerText, ConversationEntry};
use crate::repeats::Repeats;

/// A conversation so far.
#[derive(Debug, Default)]
pub(crate) struct History {
    messages: Vec<Message>,
    /// The number of each turn, and its index among the messages.
    places: Vec<(u32, usize)>,
    turns: u32,
    stop: Option<StopReason>,
    open: Option<OpenTurn>,
    pub(crate) prices: Option<Prices>,
    pub(crate) spent: Spending,
    pub(crate) offered: Vec<String>,
    /// The names of the active skills.
    pub(crate) skills: Vec<String>,
    pub(crate) repeats: Repeats,
    /// The denial that ended the run, until the user's next prompt.
    pub(crate) denied: Option<String>,
    last: Usage,
}

/// A turn with unanswered calls.
#[derive(Debug)]
pub(crate) struct OpenTurn {
    /// Its number, from 1.
    pub(crate) number: u32,
    /// Its calls, in order.
    pub(crate) slots: Vec<TurnCall>,
    /// The place of a call that may be truncated: the reply reached its limit in it.
    pub(crate) cut: Option<usize>,
    /// Answers to the provider's requests for permission to run its own tools.
    approvals: Vec<ToolOutput>,
}

/// The reason why a provider may not run a tool that it asks about.
const NOT_JUDGED: &str =
    "haft judges no tool that the provider runs; use a tool of this run in place of it";

/// A call of a turn.
#[derive(Debug)]
pub(crate) struct TurnCall {
    pub(crate) call: Call,
    /// Whether it was about to run.
    pub(crate) begun: bool,
    /// The approval request that it waits or waited for.
    pub(crate) approval: Option<String>,
    /// The requests that it waited for before that one.
    pub(crate) earlier: Vec<String>,
    /// The outcomes of its steps, as JSON text.
    pub(crate) steps: Vec<String>,
    answer: Option<AnswerText>,
}

impl TurnCall {
    fn new(call: Call) -> Self {
        Self {
            call,
            begun: false,
            approval: None,
            earlier: Vec::new(),
            steps: Vec::new(),
            answer: None,
        }
    }

    /// Returns whether it has its answer.
    pub(crate) fn is_answered(&self) -> bool {
        self.answer.is_some()
    }

    /// Returns whether its answer is an error.
    pub(crate) fn has_failed(&self) -> bool {
        self.answer.as_ref().is_some_and(|answer| answer.is_error)
    }

    fn into_answer(self) -> ToolOutput {
        let answer = self.answer.unwrap_or_default();
        ToolOutput {
            call: self.call,
            parts: answer.parts,
            is_error: answer.is_error,
            loads: answer.loads,
            item: answer
                .item
                .and_then(|item| RawValue::from_string(item).ok()),
        }
    }
}

impl History {
    /// Creates an empty history.
    pub(crate) fn new(prices: Option<Prices>) -> Self {
        Self {
            prices,
            ..Self::default()
        }
    }

    /// Returns the messages for the model.
    pub(crate) fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Returns the approximate size of the messages in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.messages.iter().map(bytes).sum()
    }

    /// Returns the turn with unanswered calls.
    pub(crate) fn open(&self) -> Option<&OpenTurn> {
        self.open.as_ref()
    }

    /// Returns the usage of the last reply.
    pub(crate) fn last_usage(&self) -> Usage {
        self.last
    }

    /// Returns why the model stopped, if its turn is the last message.
    pub(crate) fn stop(&self) -> Option<&StopReason> {
        match self.messages.last() {
            Some(Message::Model(_)) => self.stop.as_ref(),
            _ => None,
        }
    }

    /// Returns the last turn.
    pub(crate) fn last_turn(&self) -> Option<&Turn> {
        self.messages
            .iter()
            .rev()
            .find_map(|message| match message {
                Message::Model(turn) => Some(turn),
                _ => None,
            })
    }

    /// Returns the turns kept unchanged, with the indexes of their messages, oldest first.
    pub(crate) fn places(&self) -> &[(u32, usize)] {
        &self.places
    }

    /// Applies an entry.
    pub(crate) fn apply(&mut self, entry: ConversationEntry) {
        match entry {
            // A blank prompt that an older version accepted: no provider takes it, and it has no content.
            ConversationEntry::User(parts) if is_blank(&parts) => {}
            ConversationEntry::User(parts) => {
                self.spent.begin_prompt();
                self.repeats.clear();
                self.denied = None;
                self.messages.push(Message::User(parts));
            }
            ConversationEntry::Host(text) => self.messages.push(Message::Host(text)),
            ConversationEntry::Turn { turn, stop, usage } => self.turn(turn, stop, usage),
            ConversationEntry::Begun(places) => {
                for place in places {
                    self.with_slot(place, |slot| slot.begun = true);
                }
            }
            ConversationEntry::Stepped { place, outcome } => self.with_slot(place, |slot| {
                slot.steps.push(outcome);
                slot.begun = false;
                slot.approval = None;
                slot.earlier.clear();
            }),
            ConversationEntry::Suspended { place, approval } => self.with_slot(place, |slot| {
                slot.begun = false;
                let before = slot.approval.replace(approval);
                let is_other = |id: &String| slot.approval.as_ref() != Some(id);
                slot.earlier.extend(before.filter(is_other));
            }),
            ConversationEntry::Answered { place, answer } => self.answered(place, answer),
            ConversationEntry::Offered(names) => self.offered = names,
            ConversationEntry::Skills(names) => self.skills = names,
            ConversationEntry::Shortened { turn, place, text } => self.shorten(turn, place, text),
            ConversationEntry::Spent { usage, is_estimate } => {
                self.spent.count(&usage, self.prices.as_ref());
                if is_estimate {
                    self.spent.estimated = self
                        .spent
                        .estimated
                        .saturating_add(usage.input)
                        .saturating_add(usage.output);
                    self.last.input = self.last.input.saturating_add(usage.input);
                    self.last.output = self.last.output.saturating_add(usage.output);
                }
            }
            ConversationEntry::Summary { turn, text, usage } => {
                self.spent.count(&usage, self.prices.as_ref());
                self.summarize(turn, text);
            }
            ConversationEntry::Denied(why) => self.denied = Some(why),
        }
    }

    fn with_slot(&mut self, place: usize, change: impl FnOnce(&mut TurnCall)) {
        let open = self.open.as_mut();
        if let Some(slot) = open.and_then(|open| open.slots.get_mut(place)) {
            change(slot);
        }
    }

    fn turn(&mut self, turn: Turn, stop: StopReason, usage: Usage) {
        self.turns += 1;
        self.spent.add(&usage, self.prices.as_ref());
        self.last = usage;
        let approvals: Vec<ToolOutput> = turn.items.iter().filter_map(refusal).collect();
        let slots: Vec<TurnCall> = turn.calls().cloned().map(TurnCall::new).collect();
        if !slots.is_empty() {
            let last = turn.items.last();
            let ends_in_call = matches!(last, Some(TurnItem::Call(_)));
            self.open = Some(OpenTurn {
                number: self.turns,
                cut: (stop == StopReason::Length && ends_in_call).then(|| slots.len() - 1),
                slots,
                approvals: Vec::new(),
            });
        }
        self.stop = Some(stop);
        self.places.push((self.turns, self.messages.len()));
        self.messages.push(Message::Model(turn));
        match &mut self.open {
            Some(open) => open.approvals = approvals,
            None if approvals.is_empty() => {}
            None => self.messages.push(Message::Results(approvals)),
        }
    }

    fn answered(&mut self, place: usize, answer: AnswerText) {
        let Some(open) = self.open.as_mut() else {
            return;
        };
        if let Some(slot) = open.slots.get_mut(place) {
            self.repeats.note(&slot.call, open.number, answer.is_error);
            slot.answer = Some(answer);
        }
        if open.slots.iter().all(TurnCall::is_answered)
            && let Some(open) = self.open.take()
        {
            let answers = open.slots.into_iter().map(TurnCall::into_answer);
            let answers = answers.chain(open.approvals);
            self.messages.push(Message::Results(answers.collect()));
        }
    }

    fn shorten(&mut self, turn: u32, place: usize, text: String) {
        let at = self.places.iter().find(|(number, _)| *number == turn);
        let results = at.and_then(|(_, at)| self.messages.get_mut(at + 1));
        if let Some(Message::Results(answers)) = results
            && let Some(answer) = answers.get_mut(place)
        {
            let before: usize = answer.parts.iter().map(size).sum();
            let left = before.saturating_sub(text.len());
            // About four bytes per token, until the next reply reports how many were read.
            self.last.input = self.last.input.saturating_sub(left as u64 / 4);
            answer.parts = vec![ContentPart::Text(text)];
        }
    }

    /// Returns where the messages kept unchanged from this turn on begin: with the user's message before it.
    pub(crate) fn begin_of(&self, turn: u32) -> Option<usize> {
        let (_, mut at) = self
            .places
            .iter()
            .copied()
            .find(|(number, _)| *number == turn)?;
        let before = |at: usize| at.checked_sub(1).and_then(|at| self.messages.get(at));
        while matches!(before(at), Some(Message::User(_) | Message::Host(_))) {
            at -= 1;
        }
        Some(at)
    }

    fn summarize(&mut self, turn: u32, text: String) {
        let Some(at) = self.begin_of(turn) else {
            return;
        };
        self.messages.splice(..at, [Message::user(text)]);
        self.places.retain(|(_, place)| *place >= at);
        for (_, place) in &mut self.places {
            *place = *place - at + 1;
        }
        self.last = Usage::default();
    }
}

/// Returns whether a prompt has no content.
pub(crate) fn is_blank(parts: &[ContentPart]) -> bool {
    let says_nothing =
        |part: &ContentPart| matches!(part, ContentPart::Text(text) if text.trim().is_empty());
    parts.iter().all(says_nothing)
}

/// Returns the approximate size of a message in a request, in bytes.
fn bytes(message: &Message) -> usize {
    match message {
        Message::User(parts) => parts.iter().map(size).sum(),
        Message::Host(text) => text.len(),
        Message::Model(turn) => turn.raw.get().len(),
        Message::Results(answers) => {
            let of = |answer: &ToolOutput| -> usize {
                let item = answer.item.as_ref().map_or(0, |item| item.get().len());
                answer.parts.iter().map(size).sum::<usize>() + item
            };
            answers.iter().map(of).sum()
        }
    }
}

/// Returns the approximate size of a part in a request, in bytes.
fn size(part: &ContentPart) -> usize {
    match part {
        ContentPart::Text(text) => text.len(),
        ContentPart::Image { data, .. }
        | ContentPart::Audio { data, .. }
        | ContentPart::File { data, .. } => data.len(),
    }
}

/// Returns the answer to a provider that asks whether it may run its own tool: haft cannot judge what it would do.
fn refusal(item: &TurnItem) -> Option<ToolOutput> {
    match item {
        TurnItem::Approval { id, .. } => Some(ToolOutput::approval(id, false, Some(NOT_JUDGED))),
        _ => None,
    }
}
