//! `Rule`: one rule as the user writes it, `Tool` or `Tool(specifier)`, parsed into what it selects and what it covers.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::places::PolicyContext;
use crate::rules::argument_pattern::ArgumentPattern;
use crate::rules::network_pattern::NetworkPattern;
use crate::rules::pattern::{CommandPattern, DomainPattern};
use crate::rules::request_pattern::{self, RequestPattern};
use crate::rules::sign_pattern::SignPattern;
use crate::rules::words::PlainWordsError;
use haft_files::glob::Glob;
use haft_files::paths::{PathPattern, PathProblem};
use haft_types::spec::{ToolClass, ToolSpec};

/// The three lists, in the order they are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleList {
    /// The call may not run.
    Deny,
    /// The call needs approval.
    Ask,
    /// The call may run.
    Allow,
}

impl RuleList {
    /// Returns the name used in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Ask => "ask",
            Self::Allow => "allow",
        }
    }
}

impl fmt::Display for RuleList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Returns the arguments that the class's own specifier covers: a rule on such a parameter would never be checked.
fn covered_parameters(class: ToolClass) -> &'static [&'static str] {
    match class {
        ToolClass::Read | ToolClass::Edit => &["path", "file_path", "from", "to", "patch"],
        ToolClass::Bash => &["command", "argv", "cmd"],
        ToolClass::WebFetch => &["url", "urls"],
        ToolClass::Network => &["host", "port", "domain"],
        ToolClass::Sign => &["purpose"],
    }
}

/// Returns the arguments of the class's tools that a `param:value` rule may name.
pub(crate) fn parameters(class: ToolClass) -> &'static [&'static str] {
    match class {
        ToolClass::Read => &[
            "start_line",
            "max_lines",
            "depth",
            "hidden",
            "limit",
            "pattern",
            "glob",
            "type",
            "output",
            "ignore_case",
            "multiline",
            "before",
            "after",
            "question",
        ],
        ToolClass::Edit => &["mode", "content", "overwrite", "recursive"],
        ToolClass::Bash => &[
            "cwd",
            "timeout_s",
            "background",
            "on_timeout",
            "task",
            "pattern",
        ],
        ToolClass::WebFetch => &["format", "max_chars"],
        ToolClass::Network => &["command", "program"],
        ToolClass::Sign => &["command", "program", "by"],
    }
}

/// Tool names of other programs, and the class that corresponds to them in haft.
const FOREIGN: &[(&str, ToolClass)] = &[
    ("Write", ToolClass::Edit),
    ("MultiEdit", ToolClass::Edit),
    ("NotebookEdit", ToolClass::Edit),
    ("Grep", ToolClass::Read),
    ("Glob", ToolClass::Read),
    ("LS", ToolClass::Read),
    ("BashOutput", ToolClass::Bash),
    ("KillShell", ToolClass::Bash),
];

/// Returns the class that corresponds to another program's tool name.
pub(crate) fn class_of_foreign(name: &str) -> Option<&'static str> {
    let (_, class) = FOREIGN.iter().find(|(foreign, _)| *foreign == name)?;
    Some(class.as_str())
}

/// The tools that a rule covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Selector {
    Any,
    Named(Vec<Box<str>>),
    Glob(Glob),
    Class(ToolClass),
}

impl Selector {
    /// Whether it selects this tool.
    pub(crate) fn selects(&self, spec: &ToolSpec) -> bool {
        match self {
            Self::Class(class) => spec.class == Some(*class),
            _ => self.names(spec.name.as_str()),
        }
    }

    /// Whether it selects a tool of this name, by the name alone.
    pub(crate) fn names(&self, tool: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Named(names) => names.iter().any(|name| **name == *tool),
            Self::Glob(glob) => glob.matches(tool),
            Self::Class(_) => false,
        }
    }
}

/// The calls of a tool that a rule covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Specifier {
    All,
    Command(CommandPattern),
    Path(PathPattern),
    Domain(DomainPattern),
    Network(NetworkPattern),
    Sign(SignPattern),
    Param(ArgumentPattern),
    /// Nothing: such a rule can never match.
    Nothing,
}

/// Why a rule never matches, and the form that works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NeverMatchReason {
    pub(crate) why: String,
    pub(crate) form: String,
}

/// Why a text is not a valid rule, and the form that works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuleSyntaxError {
    pub(crate) problem: String,
    pub(crate) form: String,
}

/// A parsed rule.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) list: RuleList,
    pub(crate) text: Arc<str>,
    pub(crate) layer: Arc<str>,
    pub(crate) reason: Option<Arc<str>>,
    pub(crate) selector: Selector,
    /// The class of the tool that the selector names, as far as it was known when the rule was parsed.
    pub(crate) class: Option<ToolClass>,
    pub(crate) specifier: Specifier,
    pub(crate) never: Option<NeverMatchReason>,
    /// The calls that the rule is limited to, if it was saved when the user approved one.
    pub(crate) kept_for: Option<SavedCall>,
}

/// The calls that a saved rule covers: those of one tool with the same arguments as the call that was shown, apart from the arguments
/// that the permissions state. It covers no removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SavedCall {
    pub(crate) tool: Box<str>,
    /// The digest of the remaining arguments.
    pub(crate) arguments: Box<str>,
}

impl Rule {
    /// Whether it names one private host and one port and is not a deny rule: then it permits connecting to the private address.
    pub(crate) fn names_place(&self) -> bool {
        let named =
            matches!(&self.specifier, Specifier::Network(pattern) if pattern.opens_private());
        named && self.list != RuleList::Deny
    }

    /// Whether it covers some requests of a host and not others.
    pub(crate) fn judges_requests(&self) -> bool {
        matches!(&self.specifier, Specifier::Network(pattern) if pattern.judges_requests())
    }
}

/// The name in rules of opening a port of a command to this machine, and the tool that does it.
const EXPOSE: &str = "Expose";
const EXPOSE_TOOL: &str = "expose_port";

/// Returns the rule that opens one port: `Expose(3000)`.
pub(crate) fn expose_rule(port: &str) -> String {
    format!("{EXPOSE}({port})")
}

/// Parses the port of `Expose(3000)`.
fn of_port(selector: Selector, port: &str) -> RuleParts {
    let is_port = port
        .parse::<u16>()
        .is_ok_and(|number| number.to_string() == port);
    let pattern = is_port
        .then(|| ArgumentPattern::parse(&format!("port:{port}")))
        .flatten();
    if let Some(pattern) = pattern {
        return (selector, Specifier::Param(pattern), None);
    }
    let why = format!("`{port}` is not a port");
    let never = never(why, &expose_rule("3000"));
    (selector, Specifier::Nothing, Some(never))
}

/// The content of a rule's text: selector, specifier, and why it never matches.
type RuleParts = (Selector, Specifier, Option<NeverMatchReason>);

/// Parses a rule's text.
pub(crate) fn parse(
    text: &str,
    list: RuleList,
    places: &PolicyContext,
) -> Result<RuleParts, RuleSyntaxError> {
    let text = text.trim();
    let Some((tool, rest)) = text.split_once('(') else {
        let selector = selector(text, list)?;
        let never = FOREIGN
            .iter()
            .find(|(name, _)| *name == text)
            .map(|(_, class)| never(format!("haft has no tool {text}"), class.as_str()));
        return Ok((selector, Specifier::All, never));
    };
    let Some(inner) = rest.strip_suffix(')') else {
        return Err(unreadable(
            "it does not end with a bracket",
            &format!("{tool}(…)"),
        ));
    };
    if inner.trim().is_empty() {
        return Err(unreadable("its brackets are empty", tool));
    }
    let tool = tool.trim();
    let selector = selector(tool, list)?;
    if tool == EXPOSE && inner.trim() != "*" {
        return Ok(of_port(selector, inner.trim()));
    }
    if inner.trim() == "*" {
        return Ok((selector, Specifier::All, None));
    }
    if let Some((_, class)) = FOREIGN.iter().find(|(name, _)| *name == tool) {
        let form = format!("{}({inner})", class.as_str());
        let why = format!("{tool} rules are never consulted");
        return Ok((selector, Specifier::Nothing, Some(never(why, &form))));
    }
    let inner = inner.trim_start();
    let at = RuleContext { list, places };
    let result = match &selector {
        Selector::Class(class) => parse_class(*class, tool, inner, at)?,
        Selector::Named(names) => match names.first().and_then(|name| places.classes.of(name)) {
            Some(class) => parse_standard_tool(class, tool, inner, at)?,
            None => parse_parameter(tool, inner),
        },
        Selector::Any if list == RuleList::Allow => {
            return Err(unreadable(
                "an allow rule on a parameter must name its tool",
                &format!("some_tool({inner})"),
            ));
        }
        Selector::Any | Selector::Glob(_) => parse_parameter(tool, inner),
    };
    let (specifier, never) = match result {
        Ok(specifier) => (specifier, None),
        Err(never) => (Specifier::Nothing, Some(never)),
    };
    Ok((selector, specifier, never))
}

fn unreadable(problem: impl Into<String>, form: &str) -> RuleSyntaxError {
    RuleSyntaxError {
        problem: problem.into(),
        form: format!("write {form}"),
    }
}

fn never(why: impl Into<String>, form: &str) -> NeverMatchReason {
    NeverMatchReason {
        why: why.into(),
        form: format!("write {form}"),
    }
}

fn selector(tool: &str, list: RuleList) -> Result<Selector, RuleSyntaxError> {
    let tool = tool.trim();
    if tool == "*" {
        return Ok(Selector::Any);
    }
    if let Some(class) = ToolClass::ALL
        .into_iter()
        .find(|class| class.as_str() == tool)
    {
        return Ok(Selector::Class(class));
    }
    if tool == EXPOSE {
        return Ok(Selector::Named(vec![EXPOSE_TOOL.into()]));
    }
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '*');
    if tool.is_empty() || !tool.chars().all(fine) {
        return Err(unreadable(
            format!("{tool:?} is not a tool name"),
            "Tool or Tool(specifier), e.g. Read, Edit(src/**), Bash(npm test), server.tool",
        ));
    }
    if let Some(rest) = tool.strip_prefix("mcp__") {
        return of_server(rest, tool, list);
    }
    if tool.contains('*') {
        let literal = tool.split('*').next().unwrap_or_default();
        if list == RuleList::Allow && !literal.contains('.') {
            return Err(unreadable(
                "an allow rule may contain a * only after the server's name",
                "server.* or name each tool",
            ));
        }
        return Ok(Selector::Glob(Glob::parse(tool)));
    }
    Ok(Selector::Named(vec![tool.into()]))
}

/// Parses `mcp__server`, `mcp__server__*` or `mcp__server__tool`. If the text could be split in several ways, deny and ask use all.
fn of_server(rest: &str, whole: &str, list: RuleList) -> Result<Selector, RuleSyntaxError> {
    let Some((server, tool)) = rest.split_once("__") else {
        if rest.contains('*') && list == RuleList::Allow || rest.is_empty() {
            return Err(unreadable(
                "an allow rule must name its server",
                "mcp__server__*",
            ));
        }
        return Ok(Selector::Glob(Glob::parse(&format!("{rest}.*"))));
    };
    if server.contains('*') && list == RuleList::Allow {
        return Err(unreadable(
            "an allow rule must name its server",
            "mcp__server__*",
        ));
    }
    if whole.contains('*') {
        return Ok(Selector::Glob(Glob::parse(&format!("{server}.{tool}"))));
    }
    let mut names = vec![format!("{server}.{tool}").into()];
    if list != RuleList::Allow {
        let more = rest.match_indices("__").skip(1);
        names.extend(
            more.map(|(at, sep)| format!("{}.{}", &rest[..at], &rest[at + sep.len()..]).into()),
        );
        names.push(whole.into());
    }
    Ok(Selector::Named(names))
}

type SpecifierResult = Result<Result<Specifier, NeverMatchReason>, RuleSyntaxError>;

/// The context of a rule: its list, and the folders that it may name.
#[derive(Clone, Copy)]
struct RuleContext<'a> {
    list: RuleList,
    places: &'a PolicyContext,
}

fn parse_class(class: ToolClass, tool: &str, inner: &str, at: RuleContext<'_>) -> SpecifierResult {
    if let Some((name, value)) = inner.split_once(':')
        && covered_parameters(class).contains(&name)
    {
        let why = format!("{tool} rules do not support the parameter {name}");
        let form = match class {
            ToolClass::WebFetch => format!("{tool}(domain:example.com)"),
            _ => format!("{tool}({value})"),
        };
        return Ok(Err(never(why, &form)));
    }
    match class {
        ToolClass::Bash => parse_command(tool, inner),
        ToolClass::WebFetch => Ok(parse_domain(tool, inner)),
        ToolClass::Network => Ok(parse_network(tool, inner)),
        ToolClass::Sign => Ok(parse_sign(tool, inner)),
        ToolClass::Read | ToolClass::Edit => of_path(tool, inner, at),
    }
}

fn parse_standard_tool(
    class: ToolClass,
    tool: &str,
    inner: &str,
    at: RuleContext<'_>,
) -> SpecifierResult {
    let name = inner.split(':').next().unwrap_or_default();
    if inner.contains(':') && parameters(class).contains(&name) {
        let read = parse_parameter(tool, inner);
        let covered = |name: &&str| covered_parameters(class).contains(name);
        if let Ok(Specifier::Param(pattern)) = &read
            && let Some(name) = pattern.names().find(covered)
        {
            let why = format!("{tool} rules do not support the parameter {name}");
            let form = format!("a rule with {name} alone, as {}(…)", class.as_str());
            return Ok(Err(never(why, &form)));
        }
        return Ok(read);
    }
    parse_class(class, tool, inner, at)
}

fn parse_command(tool: &str, inner: &str) -> SpecifierResult {
    match CommandPattern::parse(inner) {
        Ok(pattern) => Ok(Ok(Specifier::Command(pattern))),
        Err(PlainWordsError::Open) => Err(unreadable(
            "a quote is not closed",
            &format!("{tool}(npm run *)"),
        )),
        Err(PlainWordsError::Syntax) => Ok(Err(never(
            "a command line is split at ; & | and newlines before it is matched, and targets of > are writes",
            &forms_of_parts(tool, inner),
        ))),
    }
}

/// Returns the rules for the parts of a line, if splitting it is all that it takes.
fn forms_of_parts(tool: &str, line: &str) -> String {
    let splits = |c: char| matches!(c, ';' | '&' | '|' | '\n');
    if line.contains(['<', '>', '(', ')', '`', '\'', '"', '\\']) {
        return format!("a rule for each part, e.g. {tool}(curl *), and Edit(…) for a target");
    }
    let parts = line
        .split(splits)
        .map(str::trim)
        .filter(|part| !part.is_empty());
    let rules: Vec<String> = parts.map(|part| format!("{tool}({part})")).collect();
    rules.join(" and ")
}

/// Splits a place and the requests there, which a colon and a blank separate: `example.com:8443: GET /x`.
pub(crate) fn split_requests(inner: &str) -> (&str, Option<&str>) {
    let blank = |(at, _): &(usize, &str)| inner[at + 1..].starts_with(char::is_whitespace);
    match inner.match_indices(':').find(blank) {
        Some((at, _)) => (&inner[..at], Some(&inner[at + 1..])),
        None => (inner, None),
    }
}

/// Limits a rule for a place to requests there.
fn limit(
    tool: &str,
    place: NetworkPattern,
    requests: Option<&str>,
) -> Result<Specifier, NeverMatchReason> {
    let Some(requests) = requests else {
        return Ok(Specifier::Network(place));
    };
    let form = format!("{tool}(HOST: {})", request_pattern::FORM);
    let read = RequestPattern::parse(requests).map_err(|why| never(why, &form))?;
    let none = || {
        let why = "what passes a socket is not judged by method and path";
        never(why, &format!("{tool}(unix:/run/x.sock)"))
    };
    place
        .with_request(read)
        .map(Specifier::Network)
        .ok_or_else(none)
}

fn parse_domain(tool: &str, inner: &str) -> Result<Specifier, NeverMatchReason> {
    let form = format!(
        "{tool}(domain:example.com), {tool}(domain:*.example.com) or {tool}(domain:example.com: GET /docs/**)"
    );
    let Some(domain) = inner.strip_prefix("domain:") else {
        return Err(never("it names no domain", &form));
    };
    let (domain, requests) = split_requests(domain);
    // With a port, the rule covers exactly that host and port.
    if domain.contains(':') || requests.is_some() {
        let fits =
            |place: &NetworkPattern| place.is_exact() || requests.is_some() && !place.has_port();
        if let Some(place) = NetworkPattern::host_and_port(domain).filter(fits) {
            return limit(tool, place, requests);
        }
    }
    if requests.is_some() {
        return Err(never(no_host(domain, "is not a host"), &form));
    }
    DomainPattern::parse(domain)
        .map(Specifier::Domain)
        .ok_or_else(|| never(no_host(domain, "is not a host"), &form))
}

fn no_host(text: &str, why: &str) -> String {
    let form = if text.is_ascii() {
        ""
    } else {
        "; write its form with xn--"
    };
    format!("{text:?} {why}{form}")
}

fn parse_network(tool: &str, inner: &str) -> Result<Specifier, NeverMatchReason> {
    let form = format!(
        "{tool}(example.com), {tool}(*.example.com:8443), {tool}(private:example.com:443), {tool}(unix:/run/x.sock), {tool}(npm) or \
         {tool}(example.com: GET /docs/**)"
    );
    let (place, requests) = split_requests(inner);
    let none = || never(no_host(inner, "is neither a host nor a bundle"), &form);
    limit(
        tool,
        NetworkPattern::parse(place).ok_or_else(none)?,
        requests,
    )
}

fn parse_sign(tool: &str, inner: &str) -> Result<Specifier, NeverMatchReason> {
    let form = format!(
        "{tool}(https:example.com), {tool}(ssh:example.com), {tool}(git) or {tool}(gpg:FINGERPRINT)"
    );
    SignPattern::parse(inner)
        .map(Specifier::Sign)
        .ok_or_else(|| never(no_host(inner, "names nothing that is signed for"), &form))
}

fn of_path(tool: &str, inner: &str, at: RuleContext<'_>) -> SpecifierResult {
    let RuleContext { list, places } = at;
    let inner = inner.trim_end();
    match PathPattern::parse(inner, places.home.as_deref(), list != RuleList::Allow) {
        Ok(pattern) => Ok(Ok(Specifier::Path(pattern))),
        Err(PathProblem::Negated) => Err(unreadable(
            "a pattern cannot be negated",
            &format!("{tool}({}) in another list", inner.trim_start_matches('!')),
        )),
        Err(PathProblem::Escapes) => Ok(Err(never(
            "paths of calls never contain ..",
            &format!("{tool}(//absolute/path/**)"),
        ))),
        Err(PathProblem::NoHome) => Ok(Err(never(
            "the home folder is not known",
            &format!("{tool}(//absolute/path/**)"),
        ))),
    }
}

/// Says which rules to write instead of one that names requests to a host for tools of any class: it would be about an argument that is
/// called like the host, and match nothing.
fn requests_of_any_tool(tool: &str, inner: &str) -> Option<NeverMatchReason> {
    let is_host = |host: &str, place: &str| {
        let named = host.contains(['.', ':', '*']) || host == "localhost" || host != place;
        named && NetworkPattern::parse(host).is_some()
    };
    let ends = inner.match_indices(':').filter(|_| tool.contains('*'));
    let mut splits = ends.map(|(at, _)| (inner[..at].trim(), inner[at + 1..].trim()));
    let (host, requests) = splits.find_map(|(place, requests)| {
        let host = place.strip_prefix("domain:").unwrap_or(place).trim();
        let is_one = is_host(host, place) && RequestPattern::parse(requests).is_ok();
        is_one.then_some((host, requests))
    })?;
    Some(never(
        format!(
            "requests to {host} are covered by rules for Network and WebFetch, and a rule for {tool} is about arguments"
        ),
        &format!("Network({host}: {requests}) and WebFetch(domain:{host}: {requests})"),
    ))
}

fn parse_parameter(tool: &str, inner: &str) -> Result<Specifier, NeverMatchReason> {
    if let Some(wrong) = requests_of_any_tool(tool, inner) {
        return Err(wrong);
    }
    ArgumentPattern::parse(inner)
        .map(Specifier::Param)
        .ok_or_else(|| {
            let why = format!("a rule for {tool} must name a parameter");
            never(
                why,
                &format!("{tool}(parameter:value) or {tool}(one: value, other: value)"),
            )
        })
}
