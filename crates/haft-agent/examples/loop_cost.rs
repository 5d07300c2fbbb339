//! Measures what a turn of the loop costs beyond the model and the tools: 1,000 turns with a call each, minus the same calls alone.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement prints, and stops where it cannot go on"
)]

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use haft::future::BoxFuture;
use haft::{Executor, Policy, Session, ToolCall, ToolRegistry, tool};
use haft_agent::model::EventSink;
use haft_agent::testing::function_call;
use haft_agent::{Agent, AgentOptions, Budget, Model, ModelError, ModelRequest, RunEnd};
use haft_wire::{Dialect, Reply, StopReason, Turn, TurnItem, Usage};
use serde_json::value::RawValue;

const TURNS: u32 = 1000;

/// Add two numbers.
#[tool]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// A model that calls `add` a number of times, then answers.
struct Adds(AtomicU32);

impl Model for Adds {
    fn name(&self) -> &'static str {
        "adds"
    }

    fn dialect(&self) -> Dialect {
        Dialect::OpenAiChat
    }

    fn reply<'a>(
        &'a self,
        _request: ModelRequest<'a>,
        _watch: &'a mut EventSink<'_>,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        let turn = self.0.fetch_add(1, Ordering::Relaxed);
        let call = function_call("c", "add", r#"{"a":2,"b":3}"#);
        let (items, stop) = if turn < TURNS {
            (vec![TurnItem::Call(call)], StopReason::Calls)
        } else {
            (vec![TurnItem::Text("5".to_owned())], StopReason::End)
        };
        let turn = Turn {
            dialect: Dialect::OpenAiChat,
            items,
            raw: RawValue::NULL.to_owned(),
        };
        Box::pin(async move {
            Ok(Reply {
                turn,
                stop,
                usage: Usage::default(),
                id: None,
                model: None,
            })
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let session = || Session::new(ToolRegistry::new().with(add).unwrap());
    let executor = Executor::new(Policy::workspace());
    let alone = session();
    let begun = Instant::now();
    for _ in 0..TURNS {
        let call = ToolCall::new("add", r#"{"a":2,"b":3}"#);
        assert!(executor.execute(&alone, call).await.is_ok());
    }
    let calls = begun.elapsed();
    let options = AgentOptions {
        budget: Budget {
            turns: None,
            ..Budget::default()
        },
        ..AgentOptions::default()
    };
    let agent = Agent::new(Adds(AtomicU32::new(0)), executor, session());
    let mut agent = agent.with_options(options);
    let begun = Instant::now();
    let finished = agent.run("add").await.unwrap();
    let all = begun.elapsed();
    assert_eq!(finished.end, RunEnd::Done);
    let turn = all.saturating_sub(calls) / TURNS;
    println!("{turn:?} a turn beside {:?} a call", calls / TURNS);
}
