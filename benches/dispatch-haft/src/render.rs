//! Rendering outcomes of 12,000 tokens: a command's output, a text that repeats its data.

use std::hint::black_box;

use haft::call::{CallId, RunId};
use haft::result::{Content, Outcome, Status};
use measure::{Row, Step, each};
use serde_json::json;
use serde_json::value::RawValue;

/// Repetitions per round.
const MANY: usize = 100;
/// Bytes of 12,000 tokens of such lines.
const BYTES: usize = 48_000;

/// The outcomes.
pub(crate) struct Outcomes(Vec<(&'static str, Outcome)>);

impl Outcomes {
    pub(crate) fn new() -> Self {
        let line = "test price::of_a_basket ... FAILED at src/price.rs:41\n";
        let text = line.repeat(BYTES / line.len());
        let outcome = |data: serde_json::Value| {
            let mut outcome =
                Outcome::new(RunId::new("run"), CallId::new("call-1"), "tool", Status::Ok);
            outcome.data = RawValue::from_string(data.to_string()).ok();
            outcome
        };
        let data = json!({"lines": text.lines().collect::<Vec<_>>()});
        let mut repeated = outcome(data.clone());
        let pretty = serde_json::to_string_pretty(&data).expect("a value");
        repeated.content = vec![Content::text(pretty)];
        Self(vec![
            ("command", outcome(json!({"stdout": text, "stderr": ""}))),
            ("repeated", repeated),
        ])
    }

    pub(crate) fn steps(&self) -> Vec<Step<'_>> {
        let steps = self.0.iter().map(|(name, outcome)| {
            let render = move || {
                each(MANY, || {
                    for _ in 0..MANY {
                        black_box(outcome.to_model());
                    }
                })
            };
            let row = Row::new(format!("haft/render/{name}"), "ns");
            (row, Box::new(render) as Box<dyn FnMut() -> f64 + '_>)
        });
        steps.collect()
    }
}
