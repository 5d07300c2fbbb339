//! The span of a call, as a program that subscribes with `tracing` sees it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use haft::testing::TestTool;
use haft::{Executor, Policy, Session, ToolCall, ToolRegistry};
use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

type Fields = BTreeMap<String, String>;

/// Collects the fields of every span of a call.
#[derive(Debug, Clone, Default)]
struct Spans(Arc<Mutex<Vec<Fields>>>);

struct Into<'a>(&'a mut Fields);

impl Visit for Into<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }
}

impl Subscriber for Spans {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "haft::call"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields::new();
        span.record(&mut Into(&mut fields));
        let mut spans = self.0.lock();
        spans.push(fields);
        Id::from_u64(spans.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut spans = self.0.lock();
        let at = usize::try_from(span.into_u64()).unwrap() - 1;
        values.record(&mut Into(&mut spans[at]));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn a_call_is_a_span_with_the_names_of_the_conventions() {
    let spans = Spans::default();
    let _listening = tracing::subscriber::set_default(spans.clone());
    let tools = ToolRegistry::new();
    let echo = TestTool::of(TestTool::echo("echo"));
    tools.add_all([echo.arc()]).unwrap();
    let session = Session::new(tools);
    let executor = Executor::new(Policy::workspace());
    for name in ["echo", "gone"] {
        executor.execute(&session, ToolCall::new(name, "{}")).await;
    }

    let spans = spans.0.lock().clone();
    assert_eq!(spans.len(), 2);
    let run = session.run().to_string();
    let check = |at: usize, field: &str, expect: Option<&str>| {
        let found = spans[at].get(field).map(String::as_str);
        assert_eq!(found, expect, "{field} of {:?}", spans[at]);
    };
    for at in [0, 1] {
        check(at, "gen_ai.operation.name", Some("execute_tool"));
        check(at, "gen_ai.conversation.id", Some(&run));
    }
    check(0, "otel.name", Some("execute_tool echo"));
    check(0, "gen_ai.tool.name", Some("echo"));
    check(0, "gen_ai.tool.call.id", Some("call-1"));
    check(0, "haft.status", Some("ok"));
    check(0, "error.type", None);
    check(1, "haft.status", Some("error"));
    check(1, "error.type", Some("not_found"));
}
