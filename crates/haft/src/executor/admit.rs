//! Admit: budget, lookup, exposure, bound arguments, strict JSON, schema.

use std::borrow::Cow;
use std::sync::Arc;

use crate::approval::ApprovalRequest;
use crate::arguments::Arguments;
use crate::call::ToolCall;
use crate::error::ErrorKind;
use crate::executor::ExecutorParts;
use crate::executor::early_end::EarlyEnd;
use crate::executor::effects::{self, ToolInput};
use crate::executor::exit::OpenCall;
use crate::executor::named::{self, ResolveError};
use crate::executor::refs::{self, RefObject};
use crate::json::schema::Violation;
use crate::session::{MAX_DEPTH, Session};
use crate::spec::{CallPhrases, Exposure};
use crate::text::clip;
use crate::tool::{PreparedCall, Tool};
use crate::toolset::lazy::CALL_TOOL;
use crate::toolset::{ToolBackend, ToolEntry};

/// A call of an existing tool with arguments that fit. Only this module creates it.
pub(super) struct AdmittedCall {
    entry: Arc<ToolEntry>,
    input: ToolInput,
    written: Option<Arc<str>>,
    /// Whether the tool is one of the executor's internal tools.
    internal: bool,
}

impl AdmittedCall {
    /// Returns whether the tool is one of the executor's internal tools.
    pub(super) fn is_internal(&self) -> bool {
        self.internal
    }

    pub(super) fn entry(&self) -> &Arc<ToolEntry> {
        &self.entry
    }

    /// Returns the tool with its effective arguments, which can be asked what the call would do.
    pub(super) fn input(&self) -> &ToolInput {
        &self.input
    }

    /// Returns the arguments as users, fingerprints and the record see them: refs stay refs (they are hashes of what they name), and
    /// values that the host fills in are left out.
    pub(super) fn written(&self) -> &str {
        let effective = self.input.arguments().as_str();
        self.written.as_deref().unwrap_or(effective)
    }

    /// Returns the same call with arguments that a user edited, checked like the original ones.
    pub(super) async fn edited(
        self,
        text: String,
        open: &mut OpenCall<'_>,
    ) -> Result<Self, EarlyEnd> {
        let found = FoundTool {
            has_input: self.input.has_input(),
            tool: self.input.into_tool(),
            entry: self.entry,
            internal: self.internal,
        };
        UnboundCall::new(found, text).admit(open).await
    }

    /// Splits the call into its parts, for the one place that runs it.
    pub(super) fn into_parts(self) -> (Arc<ToolEntry>, Box<dyn PreparedCall>) {
        (self.entry, self.input.into_call())
    }
}

/// Arguments that fit a tool.
struct ValidArguments {
    arguments: Arguments,
    /// The caller's own text, if it differs from what runs.
    written: Option<Arc<str>>,
    /// Paths of coerced values.
    coerced: Vec<String>,
}

/// Why arguments do not fit, with their text for the record.
struct ArgumentsRefusal {
    stop: EarlyEnd,
    text: String,
}

impl ArgumentsRefusal {
    /// Records arguments, as the caller wrote them, that the tool's schema rejects.
    fn record_rejected(self, open: &mut OpenCall<'_>) -> EarlyEnd {
        open.record.keep_arguments(self.text);
        self.stop
    }

    /// Records arguments that the schema accepts but the tool rejects.
    fn record_refused(self, open: &mut OpenCall<'_>) -> EarlyEnd {
        open.record.judge(&self.text);
        self.stop
    }
}

impl ValidArguments {
    /// Returns the admitted call, once the tool has parsed the arguments.
    fn admitted(self, found: FoundTool) -> Result<AdmittedCall, Box<ArgumentsRefusal>> {
        let written = self.written;
        match effects::prepare(&found.tool, &self.arguments) {
            Ok(prepared) => Ok(AdmittedCall {
                entry: found.entry,
                input: ToolInput::new(found.tool, self.arguments, prepared)
                    .with_input(found.has_input),
                written,
                internal: found.internal,
            }),
            Err(stop) => {
                let text = written.as_deref().unwrap_or(self.arguments.as_str());
                let text = text.to_owned();
                Err(Box::new(ArgumentsRefusal { stop, text }))
            }
        }
    }
}

/// The tool that a call names.
struct FoundTool {
    entry: Arc<ToolEntry>,
    tool: Arc<dyn Tool>,
    /// Whether it is one of the executor's internal tools.
    internal: bool,
    /// Whether the client pipes input in.
    has_input: bool,
}

/// A call of an existing tool whose arguments may name artifacts that are not read yet.
pub(super) struct UnboundCall {
    found: FoundTool,
    text: String,
    refs: Vec<RefObject>,
}

impl UnboundCall {
    fn new(found: FoundTool, text: String) -> Self {
        let text = if text.is_empty() {
            "{}".to_owned()
        } else {
            text
        };
        let refs = refs::find(&text);
        Self { found, text, refs }
    }

    /// Reads the artifacts and admits the call.
    pub(super) async fn admit(self, open: &mut OpenCall<'_>) -> Result<AdmittedCall, EarlyEnd> {
        let (found, fit) = self.bind(open.parts(), open.session()).await;
        found.admit(fit, open)
    }

    async fn bind(self, parts: &ExecutorParts, session: &Session) -> (FoundTool, ArgumentsCheck) {
        let Self { found, text, refs } = self;
        if refs.is_empty() {
            let fit = check(&found.entry, text, None);
            return (found, fit);
        }
        let fit = match refs::bind(parts, session, &found.entry, &text, &refs).await {
            Ok(bound) => check(&found.entry, bound, Some(text)),
            Err(stop) => Err(Box::new(ArgumentsRefusal { stop, text })),
        };
        (found, fit)
    }
}

impl FoundTool {
    fn admit(self, fit: ArgumentsCheck, open: &mut OpenCall<'_>) -> Result<AdmittedCall, EarlyEnd> {
        let mut fit = fit.map_err(|refused| refused.record_rejected(open))?;
        open.record.coerced = std::mem::take(&mut fit.coerced);
        fit.admitted(self)
            .map_err(|refused| refused.record_refused(open))
    }
}

/// The result of admission without waiting.
pub(super) enum Admission {
    Admitted(AdmittedCall),
    /// Artifacts named in the arguments must be read first.
    Unbound(Box<UnboundCall>),
}

/// Admits a call, or returns why it cannot.
pub(super) fn admit(
    parts: &ExecutorParts,
    session: &Session,
    open: &mut OpenCall<'_>,
) -> Result<Admission, EarlyEnd> {
    if session.cancellation().is_cancelled() || session.is_closed() {
        return Err(EarlyEnd::failed(
            ErrorKind::Cancelled,
            "the session has ended",
        ));
    }
    if session.depth() > MAX_DEPTH {
        return Err(EarlyEnd::failed(
            ErrorKind::Budget,
            format!("calls nest deeper than {MAX_DEPTH}"),
        ));
    }
    // If there is a call around an internal one, it has been counted already.
    if !(open.is_internal() && session.nest().is_some())
        && let Err(spent) = session.spend_call()
    {
        return Err(EarlyEnd::failed(ErrorKind::Budget, spent.to_string())
            .advise(spent.advice())
            .for_operator(spent.setting()));
    }
    if session.time_left().is_zero() {
        return Err(
            EarlyEnd::failed(ErrorKind::Budget, "the run's time for tools is used up")
                .advise("start a new run")
                .for_operator("raise limits.total_timeout_s"),
        );
    }
    let internal = open.is_internal();
    let (name, written) = (open.record.name(), open.record.arguments());
    if !internal && let Some(fault) = named::fault(session, name, written) {
        return Err(names_no_tool(&fault));
    }
    let found = look_up(parts, session, name, internal)?;
    let call = UnboundCall::new(found, open.record.take_arguments());
    if call.refs.is_empty() {
        let fit = check(&call.found.entry, call.text, None);
        return call.found.admit(fit, open).map(Admission::Admitted);
    }
    // Recorded even if the call is dropped while the artifacts are read.
    open.record.keep_arguments(call.text.clone());
    Ok(Admission::Unbound(Box::new(call)))
}

/// Like [`admit`], but for a call that is only inspected: spends nothing.
pub(super) async fn look(
    parts: &ExecutorParts,
    session: &Session,
    call: ToolCall,
    internal: bool,
) -> Result<AdmittedCall, EarlyEnd> {
    let found = look_up(parts, session, &call.name, internal)?;
    let (found, fit) = UnboundCall::new(found, call.arguments)
        .bind(parts, session)
        .await;
    let fit = fit.map_err(|refused| refused.stop)?;
    fit.admitted(found).map_err(|refused| refused.stop)
}

type ToolLookup = Result<(Arc<ToolEntry>, Arc<dyn Tool>), EarlyEnd>;

fn look_up(
    parts: &ExecutorParts,
    session: &Session,
    name: &str,
    internal: bool,
) -> Result<FoundTool, EarlyEnd> {
    let (entry, tool) = if internal {
        parts.lookup_internal(name)?
    } else {
        find(session, name)?
    };
    Ok(FoundTool {
        entry,
        tool,
        internal,
        has_input: session.input().is_some() && !internal,
    })
}

/// Returns the entry of a name, if this session may call it.
fn find(session: &Session, name: &str) -> ToolLookup {
    let reach = session.reach();
    let entry = reach
        .entry(name)
        .filter(|entry| entry.spec().exposure != Exposure::Hidden);
    let Some(entry) = entry else {
        let tools = session.tools();
        let near = tools.nearest(name).join(", ");
        let off = session.unknown_tool_hint(name);
        let advice = match &off {
            Some(_) => "the tool is off here".to_owned(),
            None if near.is_empty() => String::new(),
            None => format!("did you mean {near}?"),
        };
        let shown = clip(name, 128);
        return Err(
            EarlyEnd::failed(ErrorKind::NotFound, format!("no tool {shown:?}"))
                .advise(advice)
                .for_operator(off.unwrap_or_default()),
        );
    };
    if entry.spec().exposure == Exposure::Deferred {
        return Err(EarlyEnd::failed(
            ErrorKind::Unavailable,
            format!("tool {name:?} is not expanded"),
        )
        .advise(format!(
            "call tool_expand_tools with {{\"tool_names\":[{name:?}]}} first"
        )));
    }
    Ok((Arc::clone(entry), local_tool(entry)?))
}

impl ExecutorParts {
    /// Returns whether a request is for one of the executor's internal tools, not for a session's tool of the same name.
    pub(super) fn is_internal(&self, request: &ApprovalRequest) -> bool {
        let tools = self.internal.snapshot();
        let entry = tools.entry(request.tool.as_str());
        entry.is_some_and(|entry| entry.spec_hash() == request.spec_hash)
    }

    /// Returns the tool of a request if it is one of the executor's internal tools.
    pub(super) fn internal_tool(&self, request: &ApprovalRequest) -> Option<Arc<dyn Tool>> {
        let (entry, tool) = self.lookup_internal(request.tool.as_str()).ok()?;
        (entry.spec_hash() == request.spec_hash).then_some(tool)
    }

    /// Returns what is said of the call of a request where it did not run.
    pub(super) fn phrases(&self, request: &ApprovalRequest) -> CallPhrases {
        let tool = self.internal_tool(request);
        tool.map_or_else(CallPhrases::default, |tool| tool.spec().phrases)
    }

    /// Looks up one of the executor's internal tools, which only other tools call.
    fn lookup_internal(&self, name: &str) -> ToolLookup {
        let tools = self.internal.snapshot();
        let absent = || {
            EarlyEnd::failed(
                ErrorKind::NotFound,
                format!("the host has no tool {name:?} of its own"),
            )
        };
        let entry = tools.entry(name).ok_or_else(absent)?;
        Ok((Arc::clone(entry), local_tool(entry)?))
    }
}

fn local_tool(entry: &ToolEntry) -> Result<Arc<dyn Tool>, EarlyEnd> {
    if let Some(tool) = entry.tool() {
        return Ok(Arc::clone(tool));
    }
    if matches!(entry.run, ToolBackend::Named) {
        return Err(only_forwards(entry));
    }
    let name = &entry.spec().name;
    let message = format!("tool \"{name}\" is run by the provider, not here");
    Err(EarlyEnd::failed(ErrorKind::Unavailable, message))
}

/// The failure of a `call_tool` call that does not name another tool correctly.
fn names_no_tool(fault: &ResolveError) -> EarlyEnd {
    let stop = match fault {
        ResolveError::Arguments(entry, violations) => invalid(entry, violations),
        ResolveError::Itself => EarlyEnd::failed(
            ErrorKind::InvalidArguments,
            format!("{CALL_TOOL} calls other tools, not itself"),
        ),
    };
    stop.advise(
        "give {\"tool\": NAME, \"arguments\": {…}} with the name and the arguments of one tool",
    )
}

/// The failure of a direct call to a tool that only forwards to the tool it names.
fn only_forwards(entry: &ToolEntry) -> EarlyEnd {
    let name = &entry.spec().name;
    let message = format!("a call of \"{name}\" is one of the tool that it names");
    EarlyEnd::failed(ErrorKind::Unavailable, message).advise("name that tool itself")
}

/// Arguments that fit, or why they do not.
type ArgumentsCheck = Result<ValidArguments, Box<ArgumentsRefusal>>;

/// Fills in bound values, parses strict JSON, coerces and checks the schema. `written` is the caller's own text if refs in it were
/// bound.
fn check(entry: &ToolEntry, text: String, written: Option<String>) -> ArgumentsCheck {
    match effective(entry, &text) {
        Ok((changed, coerced)) => {
            let filled = || entry.bound.is_some().then(|| text.clone());
            let written = written.or_else(filled).map(Arc::from);
            let arguments = Arguments::new(changed.unwrap_or(text));
            Ok(ValidArguments {
                arguments,
                written,
                coerced,
            })
        }
        Err(violations) => Err(Box::new(ArgumentsRefusal {
            stop: invalid(entry, &violations),
            text: written.unwrap_or(text),
        })),
    }
}

/// The changed text, if any, and the paths of coerced values.
type CoercionResult = Result<(Option<String>, Vec<String>), Vec<Violation>>;

fn effective(entry: &ToolEntry, text: &str) -> CoercionResult {
    match &entry.bound {
        None => entry.input.admit(text, true).map(|admitted| {
            let owned = match admitted.text {
                Cow::Borrowed(_) => None,
                Cow::Owned(changed) => Some(changed),
            };
            (owned, admitted.coerced)
        }),
        Some(bound) => bound.fill(text).and_then(|filled| {
            let admitted = entry.input.admit(&filled, true)?;
            let (text, coerced) = (admitted.text.into_owned(), admitted.coerced);
            Ok((Some(text), coerced))
        }),
    }
}

/// Makes the same checks for a call that is only inspected: spends nothing, runs nothing.
pub(super) fn admit_for_inspection(entry: &ToolEntry, text: &str) -> Result<ToolInput, EarlyEnd> {
    let tool = local_tool(entry)?;
    let text = if text.is_empty() { "{}" } else { text };
    let (changed, _) = effective(entry, text).map_err(|violations| invalid(entry, &violations))?;
    let arguments = Arguments::new(changed.unwrap_or_else(|| text.to_owned()));
    let prepared = effects::prepare(&tool, &arguments)?;
    Ok(ToolInput::new(tool, arguments, prepared))
}

/// Returns the arguments that identify a repeated call: as they would run, however they are written, without values that the host
/// fills in. Refs stay refs; arguments that do not fit are returned unchanged.
pub(super) fn identifying_arguments(entry: &ToolEntry, text: &str) -> String {
    let text = if text.is_empty() { "{}" } else { text };
    let Ok((changed, _)) = effective(entry, text) else {
        return text.to_owned();
    };
    let whole = changed.unwrap_or_else(|| text.to_owned());
    match &entry.bound {
        Some(bound) => bound.without(&whole),
        None => whole,
    }
}

/// The failure that lists all violations, each with its path.
fn invalid(entry: &ToolEntry, violations: &[Violation]) -> EarlyEnd {
    let lines: Vec<String> = violations.iter().map(ToString::to_string).collect();
    let message = format!(
        "invalid arguments for {}: {}",
        entry.spec().name,
        lines.join("; ")
    );
    EarlyEnd::failed(ErrorKind::InvalidArguments, message)
}
