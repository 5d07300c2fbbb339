//! `ScenarioPlayer`: plays a scenario: tracks which turn comes next, the requests and the answers.

use std::collections::{HashMap, VecDeque};

use haft_wire::Dialect;
use http::HeaderMap;
use parking_lot::Mutex;
use serde_json::Value;

use crate::compose::{ComposedReply, compose};
use crate::conversation::Conversation;
use crate::exchange::{IncomingRequest, RecordedExchange};
use crate::faults::{Delivery, ReplyContent, ReplyCutter};
use crate::random::Random;
use crate::refusal::ProviderError;
use crate::responses::ReplyStore;
use crate::scenario::{ReplyPiece, Scenario, ScenarioTurn, TurnOrder};
use crate::{chat, expect, gemini, messages, responses};

/// Maximum number of exchanges remembered; older ones are dropped.
const EXCHANGES: usize = 1000;
/// Maximum number of bytes of their bodies together.
const BYTES: usize = 64 << 20;

/// A scenario being played.
#[derive(Debug)]
pub(crate) struct ScenarioPlayer {
    pub(crate) scenario: Scenario,
    state: Mutex<PlayerState>,
}

#[derive(Debug, Default)]
struct PlayerState {
    exchanges: VecDeque<RecordedExchange>,
    bytes: usize,
    /// How often each turn was requested.
    attempts: HashMap<TurnPosition, usize>,
    /// The number of turns answered, if turns follow requests.
    answered: usize,
    /// The furthest turn that was completely answered, as a count.
    reached: usize,
    replies: u64,
    memory: ReplyStore,
}

/// A turn of the scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum TurnPosition {
    Turn(usize),
    Aside(usize),
    End,
}

impl ScenarioPlayer {
    pub(crate) fn new(scenario: Scenario) -> Self {
        Self {
            scenario,
            state: Mutex::default(),
        }
    }

    pub(crate) fn exchanges(&self) -> Vec<RecordedExchange> {
        self.state.lock().exchanges.iter().cloned().collect()
    }

    /// Returns whether the last turn was answered.
    pub(crate) fn is_over(&self) -> bool {
        self.state.lock().reached == self.scenario.turns.len()
    }

    /// Answers a request, and remembers it.
    pub(crate) fn play(&self, request: IncomingRequest) -> Delivery {
        let mut state = self.state.lock();
        let mut exchange = request.exchange;
        let read = request.body.and_then(|body| {
            read(&body, &exchange, &state.memory).map(|conversation| Conversation {
                bytes: exchange.body.len(),
                ..conversation
            })
        });
        let delivery = read.and_then(|conversation| {
            self.answer(&mut state, &mut exchange, &conversation, &request.headers)
        });
        let delivery = delivery.unwrap_or_else(|refusal| {
            exchange.problem = Some(refusal.message.clone());
            Delivery::refusal(&refusal, exchange.dialect)
        });
        exchange.status = delivery.status;
        state.remember(exchange);
        delivery
    }

    fn answer(
        &self,
        state: &mut PlayerState,
        exchange: &mut RecordedExchange,
        conversation: &Conversation,
        headers: &HeaderMap,
    ) -> Result<Delivery, ProviderError> {
        exchange.stream = conversation.stream;
        exchange.model.clone_from(&conversation.model);
        let (place, turn) = self.next(state, conversation, headers)?;
        exchange.turn = match place {
            TurnPosition::Turn(at) => Some(at),
            _ => None,
        };
        let name = match place {
            TurnPosition::Turn(at) => format!("turn {}", at + 1),
            TurnPosition::Aside(at) => format!("aside {}", at + 1),
            TurnPosition::End => "the end".to_owned(),
        };
        let refuse = |why: String| ProviderError::scenario(format!("{name}: {why}"));
        expect::check(&turn.expect, conversation, headers, &self.scenario).map_err(refuse)?;
        let number = state.replies + 1;
        let reply = compose(&turn, exchange.dialect, conversation, number).map_err(refuse)?;
        let mut random = Random::new(self.scenario.seed, number);
        let content = self
            .render(&reply, exchange.dialect, conversation, &mut random)
            .map_err(refuse)?;
        state.replies = number;
        let attempt = state.attempts.entry(place).or_default();
        let fault = turn.faults.get(*attempt);
        *attempt += 1;
        exchange.is_faulty = fault.is_some();
        let knife = ReplyCutter {
            cut: self.scenario.pieces,
            random: &mut random,
        };
        let mut delivery = Delivery::reply(content, fault, exchange.dialect, knife);
        if fault.is_none() {
            state.settle(place, &reply, exchange.dialect, conversation);
        }
        if delivery.status == 200 {
            delivery.headers.extend(turn.headers.clone());
        }
        delivery.delay_ms = turn.delay_ms;
        Ok(delivery)
    }

    /// Returns the turn that a request is for.
    fn next(
        &self,
        state: &PlayerState,
        conversation: &Conversation,
        headers: &HeaderMap,
    ) -> Result<(TurnPosition, ScenarioTurn), ProviderError> {
        let scenario = &self.scenario;
        let fits = |aside: &ScenarioTurn| {
            expect::check(&aside.expect, conversation, headers, scenario).is_ok()
        };
        if let Some(at) = scenario.asides.iter().position(fits) {
            return Ok((TurnPosition::Aside(at), scenario.asides[at].clone()));
        }
        let at = match scenario.follow {
            TurnOrder::History => conversation.turns.len(),
            TurnOrder::Requests => state.answered,
        };
        if let Some(turn) = scenario.turns.get(at) {
            return Ok((TurnPosition::Turn(at), turn.clone()));
        }
        let Some(end) = &scenario.end else {
            let turns = scenario.turns.len();
            return Err(ProviderError::scenario(format!(
                "it has {turns} turns, and this request is for turn {}; add a turn, or `end`",
                at + 1
            )));
        };
        let turn = ScenarioTurn {
            say: vec![ReplyPiece::Text(end.clone())],
            ..ScenarioTurn::default()
        };
        Ok((TurnPosition::End, turn))
    }

    fn render(
        &self,
        reply: &ComposedReply,
        dialect: Dialect,
        conversation: &Conversation,
        random: &mut Random,
    ) -> Result<ReplyContent, String> {
        let own = &conversation.own;
        let ids = self.scenario.gemini_ids;
        Ok(match (dialect, conversation.stream) {
            (Dialect::OpenAiChat, false) => ReplyContent::Body(chat::reply::whole(reply)),
            (Dialect::OpenAiChat, true) => {
                ReplyContent::Events(chat::reply::events(reply, own.usage, random))
            }
            (Dialect::OpenAiResponses, false) => {
                ReplyContent::Body(responses::reply::whole(reply, own))
            }
            (Dialect::OpenAiResponses, true) => {
                ReplyContent::Events(responses::reply::events(reply, own, random))
            }
            (Dialect::Anthropic, false) => ReplyContent::Body(messages::reply::whole(reply)?),
            (Dialect::Anthropic, true) => {
                ReplyContent::Events(messages::reply::events(reply, random))
            }
            (Dialect::Gemini, false) => ReplyContent::Body(gemini::reply::whole(reply, ids)?),
            (Dialect::Gemini, true) => {
                ReplyContent::Events(gemini::reply::events(reply, ids, random)?)
            }
        })
    }
}

/// Reads a request in its dialect.
fn read(
    body: &Value,
    exchange: &RecordedExchange,
    memory: &ReplyStore,
) -> Result<Conversation, ProviderError> {
    match exchange.dialect {
        Dialect::OpenAiChat => chat::read(body),
        Dialect::OpenAiResponses => responses::read(body, memory),
        Dialect::Anthropic => messages::read(body),
        Dialect::Gemini => gemini::read(body, &exchange.model, exchange.stream),
    }
}

impl PlayerState {
    /// Records that a turn was completely answered.
    fn settle(
        &mut self,
        place: TurnPosition,
        reply: &ComposedReply,
        dialect: Dialect,
        conversation: &Conversation,
    ) {
        if let TurnPosition::Turn(at) = place {
            self.reached = self.reached.max(at + 1);
            self.answered += 1;
        }
        if dialect == Dialect::OpenAiResponses {
            let own = &conversation.own;
            let output = responses::reply::items(reply, own);
            let id = responses::reply::id(reply);
            self.memory.add(id, own.items.clone(), output, own.store);
        }
    }

    fn remember(&mut self, exchange: RecordedExchange) {
        self.bytes += exchange.body.len();
        self.exchanges.push_back(exchange);
        while self.exchanges.len() > EXCHANGES || self.bytes > BYTES {
            let Some(oldest) = self.exchanges.pop_front() else {
                break;
            };
            self.bytes -= oldest.body.len();
        }
    }
}
