//! The `tracing` span of a call, named after OpenTelemetry's conventions for generative AI.

use tracing::Span;
use tracing::field::Empty;

use crate::executor::call_result::OutcomeContent;
use crate::executor::exit::OpenCall;

/// Returns the span of a call. If nothing subscribes, it is disabled and costs nothing.
///
/// <https://github.com/open-telemetry/semantic-conventions-genai>: `execute-tool.md`, in development.
pub(super) fn for_call(open: &OpenCall<'_>) -> Span {
    let span = tracing::info_span!(
        target: "haft::call",
        "execute_tool",
        otel.name = Empty,
        otel.kind = "internal",
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = open.record.name(),
        gen_ai.tool.call.id = open.id().as_str(),
        gen_ai.conversation.id = open.session().run().as_str(),
        haft.origin = open.record.origin().as_str(),
        haft.status = Empty,
        error.type = Empty,
    );
    if !span.is_disabled() {
        // The name of a `tracing` span is fixed; OpenTelemetry exporters use this field instead.
        span.record("otel.name", format!("execute_tool {}", open.record.name()));
    }
    span
}

/// Records how the call ended.
pub(super) fn end(span: &Span, end: &OutcomeContent) {
    span.record("haft.status", end.status.as_str());
    if let Some(error) = &end.error {
        span.record("error.type", error.kind.as_str());
    }
}
