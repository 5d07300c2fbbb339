//! `RuleSet`: the rules the user writes; `Rules`: the same rules parsed, checked against their examples and indexed by tool.

pub(crate) mod argument_pattern;
pub(crate) mod names;
pub(crate) mod network_pattern;
pub(crate) mod pattern;
pub(crate) mod request_pattern;
pub(crate) mod rule;
pub(crate) mod sign_pattern;
pub(crate) mod subject;
pub(crate) mod view;
pub(crate) mod words;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::places::PolicyContext;
use crate::rules::names::UnknownName;
use crate::rules::rule::{Rule, RuleList, RuleSyntaxError, SavedCall, Selector, Specifier, parse};
use crate::rules::subject::{ClaimSide, Subject, matches_example};
use haft_files::paths::PathView;
use haft_types::permission::{Effect, Verdict};
use haft_types::spec::{ToolClass, ToolSpec};

/// The layer of a rule without one.
const NO_LAYER: &str = "settings";

/// A rule as written in settings: its text, or a table with examples and a reason.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct RuleText {
    /// `Tool` or `Tool(specifier)`.
    pub rule: String,
    /// Examples it must match: a command line, a path, a URL, `name:value` or a tool name, depending on the rule.
    #[serde(rename = "match", skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<String>,
    /// Examples it must not match.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub no_match: Vec<String>,
    /// The reason given to the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// For an allow rule saved from one approved call: the tool that was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The digest of the arguments that the permissions of that call do not state. Only such calls of that tool are covered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// The settings layer it comes from; not part of the settings.
    #[serde(skip)]
    pub layer: String,
}

impl RuleText {
    /// Creates a rule without examples.
    pub fn new(rule: impl Into<String>) -> Self {
        Self {
            rule: rule.into(),
            ..Self::default()
        }
    }

    /// Limits the rule to calls of this tool whose arguments not stated by the permissions have this digest.
    pub fn kept_for(mut self, tool: impl Into<String>, arguments: impl Into<String>) -> Self {
        (self.tool, self.arguments) = (Some(tool.into()), Some(arguments.into()));
        self
    }

    /// Returns the calls that it is limited to; `None` for a rule that covers any call.
    fn call_limit(&self, list: RuleList) -> Result<Option<SavedCall>, RuleSyntaxError> {
        let form = "both `tool` and `arguments` in an allow rule, as haft wrote them, or neither";
        match (&self.tool, &self.arguments) {
            (None, None) => Ok(None),
            (Some(tool), Some(arguments)) if list == RuleList::Allow => Ok(Some(SavedCall {
                tool: tool.as_str().into(),
                arguments: arguments.as_str().into(),
            })),
            _ => Err(RuleSyntaxError {
                problem: "it is limited to calls in a way that cannot be read".to_owned(),
                form: format!("write {form}"),
            }),
        }
    }

    fn layer(&self) -> &str {
        if self.layer.is_empty() {
            NO_LAYER
        } else {
            &self.layer
        }
    }
}

impl From<&str> for RuleText {
    fn from(rule: &str) -> Self {
        Self::new(rule)
    }
}

impl<'de> Deserialize<'de> for RuleText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct RuleTable {
            rule: String,
            #[serde(default, rename = "match")]
            matches: Vec<String>,
            #[serde(default)]
            no_match: Vec<String>,
            #[serde(default)]
            reason: Option<String>,
            #[serde(default)]
            tool: Option<String>,
            #[serde(default)]
            arguments: Option<String>,
        }
        struct RuleVisitor;
        impl<'de> Visitor<'de> for RuleVisitor {
            type Value = RuleText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a rule, or a table { rule, match, no_match, reason }")
            }

            fn visit_str<E: de::Error>(self, rule: &str) -> Result<RuleText, E> {
                Ok(RuleText::new(rule))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RuleText, A::Error> {
                let table = RuleTable::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(RuleText {
                    rule: table.rule,
                    matches: table.matches,
                    no_match: table.no_match,
                    reason: table.reason,
                    tool: table.tool,
                    arguments: table.arguments,
                    layer: String::new(),
                })
            }
        }
        deserializer.deserialize_any(RuleVisitor)
    }
}

/// The rules of all layers, as written.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RuleSet {
    /// Rules for calls that may run.
    pub allow: Vec<RuleText>,
    /// Rules for calls that need approval.
    pub ask: Vec<RuleText>,
    /// Rules for calls that may not run.
    pub deny: Vec<RuleText>,
}

impl RuleSet {
    /// Sets the layer of all rules.
    pub fn in_layer(mut self, layer: &str) -> Self {
        for rule in self
            .allow
            .iter_mut()
            .chain(&mut self.ask)
            .chain(&mut self.deny)
        {
            layer.clone_into(&mut rule.layer);
        }
        self
    }

    /// Adds another layer's rules after these.
    pub fn extend(&mut self, other: Self) {
        self.allow.extend(other.allow);
        self.ask.extend(other.ask);
        self.deny.extend(other.deny);
    }

    /// Returns every rule with its list, in the order they are checked.
    pub(crate) fn all(&self) -> impl Iterator<Item = (RuleList, &RuleText)> {
        let lists = [
            (RuleList::Deny, &self.deny),
            (RuleList::Ask, &self.ask),
            (RuleList::Allow, &self.allow),
        ];
        lists
            .into_iter()
            .flat_map(|(list, rules)| rules.iter().map(move |rule| (list, rule)))
    }
}

/// The reason why rules cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RulesError {
    /// The text is not a valid rule.
    #[error("read the {list} rule {rule:?} of {layer}: {problem}; {form}")]
    Unreadable {
        /// The rule as written.
        rule: String,
        /// Its list.
        list: RuleList,
        /// The layer of settings that it comes from.
        layer: String,
        /// What is wrong with its text.
        problem: String,
        /// A form that works.
        form: String,
    },
    /// One of its examples is wrong.
    #[error(
        "keep the {list} rule {rule:?} of {layer}: its example {example:?} should be {expected}, but is {got}"
    )]
    Example {
        /// The rule as written.
        rule: String,
        /// Its list.
        list: RuleList,
        /// The layer of settings that it comes from.
        layer: String,
        /// The example.
        example: String,
        /// What the example should be: `match` or `no_match`.
        expected: &'static str,
        /// What it is: the other of the two.
        got: &'static str,
    },
    /// It names a tool, class or parameter that does not exist.
    #[error("{0}")]
    Unknown(Box<UnknownName>),
    /// It can never match a call.
    #[error("{0}")]
    NeverMatches(Box<RuleFinding>),
}

/// A rule that has no effect, and the form that works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuleFinding {
    /// Its list. In any list a rule that never matches fails `policy check`; in `deny` and `ask` it also leaves open
    /// what it names.
    pub list: RuleList,
    /// The rule as written.
    pub rule: String,
    /// The layer of settings that it comes from.
    pub layer: String,
    /// Why it never matches, to follow `it never matches:`.
    pub problem: String,
    /// What to write instead.
    pub advice: String,
}

impl RuleFinding {
    /// Whether all forms of such rules are haft's own, so that no other program's list has this one: connections, logins, ports.
    pub fn has_closed_forms(&self) -> bool {
        let tool = self.rule.split('(').next().unwrap_or_default();
        ["Expose", "Network", "Sign", "WebFetch"].contains(&tool.trim())
    }
}

impl fmt::Display for RuleFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            list,
            rule,
            layer,
            problem,
            advice,
        } = self;
        write!(
            f,
            "the {list} rule {rule:?} of {layer} never matches: {problem}; {advice}"
        )
    }
}

/// Parses one rule and checks it against its examples; returns every problem.
pub(crate) fn read(
    list: RuleList,
    text: &RuleText,
    places: &PolicyContext,
) -> Result<Rule, Vec<RulesError>> {
    let layer = text.layer();
    let unreadable = |e: RuleSyntaxError| {
        vec![RulesError::Unreadable {
            rule: text.rule.clone(),
            list,
            layer: layer.to_owned(),
            problem: e.problem,
            form: e.form,
        }]
    };
    let (selector, specifier, never) = parse(&text.rule, list, places).map_err(unreadable)?;
    let kept_for = text.call_limit(list).map_err(unreadable)?;
    let class = match &selector {
        Selector::Named(names) => names.first().and_then(|name| places.classes.of(name)),
        _ => None,
    };
    let rule = Rule {
        list,
        class,
        text: text.rule.trim().into(),
        layer: layer.into(),
        reason: text.reason.as_deref().map(Into::into),
        selector,
        specifier,
        never,
        kept_for,
    };
    let wanted = text.matches.iter().map(|e| (e, true));
    let unwanted = text.no_match.iter().map(|e| (e, false));
    let word = |matched| if matched { "match" } else { "no_match" };
    let wrong: Vec<RulesError> = wanted
        .chain(unwanted)
        .filter(|(example, expected)| matches_example(&rule, example, places) != *expected)
        .map(|(example, expected)| RulesError::Example {
            rule: text.rule.clone(),
            list,
            layer: layer.to_owned(),
            example: example.clone(),
            expected: word(expected),
            got: word(!expected),
        })
        .collect();
    if wrong.is_empty() {
        Ok(rule)
    } else {
        Err(wrong)
    }
}

/// The rules of one list, indexed by tool name and by kind of effect.
#[derive(Debug, Default)]
struct RuleBucket {
    named: HashMap<Box<str>, Vec<usize>, foldhash::fast::RandomState>,
    /// Bare rules of each class, in the order of [`ToolClass::ALL`].
    classed: [Vec<usize>; ToolClass::ALL.len()],
    wide: Vec<usize>,
    reads: Vec<usize>,
    writes: Vec<usize>,
    runs: Vec<usize>,
    connects: Vec<usize>,
    signs: Vec<usize>,
}

impl RuleBucket {
    fn add(&mut self, at: usize, rule: &Rule) {
        match &rule.selector {
            Selector::Any | Selector::Glob(_) => self.wide.push(at),
            Selector::Named(names) => names.iter().for_each(|name| self.name(name, at)),
            Selector::Class(class) => {
                if rule.specifier == Specifier::All {
                    self.classed[*class as usize].push(at);
                }
                self.kinds(*class, rule.list)
                    .into_iter()
                    .for_each(|kind| kind.push(at));
            }
        }
    }

    fn name(&mut self, name: &str, at: usize) {
        self.named.entry(name.into()).or_default().push(at);
    }

    fn kinds(&mut self, class: ToolClass, list: RuleList) -> Vec<&mut Vec<usize>> {
        match (class, list) {
            (ToolClass::Read, RuleList::Allow) => vec![&mut self.reads],
            (ToolClass::Read, _) => vec![&mut self.reads, &mut self.writes, &mut self.runs],
            (ToolClass::Edit, RuleList::Allow) => vec![&mut self.writes],
            (ToolClass::Edit, _) => vec![&mut self.writes, &mut self.runs],
            (ToolClass::Bash, _) => vec![&mut self.runs],
            (ToolClass::WebFetch | ToolClass::Network, _) => vec![&mut self.connects],
            (ToolClass::Sign, _) => vec![&mut self.signs],
        }
    }

    fn of_kind(&self, effect: &Effect) -> &[usize] {
        match effect {
            Effect::Read(_) => &self.reads,
            Effect::Write(_) | Effect::Remove(_) => &self.writes,
            Effect::Run { .. } => &self.runs,
            Effect::Connect { .. } => &self.connects,
            Effect::Sign { .. } => &self.signs,
            Effect::Call
            | Effect::Apply { .. }
            | Effect::Remember { .. }
            | Effect::Question
            | Effect::Other { .. } => &[],
        }
    }

    /// Returns the rules for calls of this tool, by its name and by its class, in the order they are checked.
    fn of_tool(&self, spec: &ToolSpec) -> Cow<'_, [usize]> {
        let named = self.of_name(spec.name.as_str());
        let classed = spec
            .class
            .map_or(&[][..], |class| &self.classed[class as usize]);
        match (named, classed) {
            (all, []) | ([], all) => Cow::Borrowed(all),
            _ => {
                let mut all = [named, classed].concat();
                all.sort_unstable();
                Cow::Owned(all)
            }
        }
    }

    fn of_name(&self, tool: &str) -> &[usize] {
        if self.named.is_empty() {
            return &[];
        }
        self.named.get(tool).map_or(&[], Vec::as_slice)
    }
}

/// The rules of each list that name a given tool or its class.
#[derive(Debug)]
pub(crate) struct ToolRuleIndex<'a>([Cow<'a, [usize]>; 3]);

/// The rules, parsed and indexed: rules for other tools cost a call nothing.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    all: Vec<Rule>,
    deny: RuleBucket,
    ask: RuleBucket,
    allow: RuleBucket,
    /// Tools with rules limited to single approved calls.
    saved_call_tools: HashSet<Box<str>, foldhash::fast::RandomState>,
}

impl Rules {
    /// Parses a set; fails at the first wrong rule or example.
    pub(crate) fn new(set: &RuleSet, places: &PolicyContext) -> Result<Self, RulesError> {
        let mut rules = Self::default();
        for (list, text) in set.all() {
            let rule = read(list, text, places).map_err(|mut wrong| wrong.swap_remove(0))?;
            let at = rules.all.len();
            match list {
                RuleList::Deny => rules.deny.add(at, &rule),
                RuleList::Ask => rules.ask.add(at, &rule),
                RuleList::Allow => rules.allow.add(at, &rule),
            }
            rules
                .saved_call_tools
                .extend(rule.kept_for.iter().map(|kept| kept.tool.clone()));
            rules.all.push(rule);
        }
        Ok(rules)
    }

    pub(crate) fn all(&self) -> &[Rule] {
        &self.all
    }

    /// Returns the rules that name a tool or its class; looked up once per call.
    pub(crate) fn naming(&self, spec: &ToolSpec) -> ToolRuleIndex<'_> {
        ToolRuleIndex([&self.deny, &self.ask, &self.allow].map(|bucket| bucket.of_tool(spec)))
    }

    /// Whether any rule could apply to this effect of the tool.
    pub(crate) fn may_apply(&self, naming: &ToolRuleIndex<'_>, effect: &Effect) -> bool {
        let buckets = [&self.deny, &self.ask, &self.allow];
        buckets.iter().zip(&naming.0).any(|(bucket, named)| {
            !named.is_empty() || !bucket.wide.is_empty() || !bucket.of_kind(effect).is_empty()
        })
    }

    /// Returns the rule that decides on an effect, among those that `only` accepts, and its verdict: the first list that matches wins.
    /// A deny or ask rule that could match once the words are known at run time results in ask.
    pub(crate) fn decide(
        &self,
        naming: &ToolRuleIndex<'_>,
        subject: &Subject<'_>,
        only: &dyn Fn(&Rule) -> bool,
    ) -> Option<(&Rule, Verdict)> {
        let ToolRuleIndex([denied, asked, allowed]) = naming;
        let find = |named: &[usize], bucket: &RuleBucket, covers: &dyn Fn(&Rule) -> bool| {
            named
                .iter()
                .chain(bucket.of_kind(subject.effect()))
                .chain(&bucket.wide)
                .filter_map(|at| self.all.get(*at))
                .find(|rule| {
                    let glob = matches!(rule.selector, Selector::Glob(_));
                    only(rule)
                        && (!glob || rule.selector.names(subject.tool()))
                        && subject.is_kept_by(rule)
                        && covers(rule)
                })
        };
        let covered = |rule: &Rule| subject.covered_by(rule, ClaimSide::Path);
        let doubted = |rule: &Rule| subject.could_be_covered_by(rule);
        if let Some(rule) = find(denied, &self.deny, &covered) {
            return Some((rule, Verdict::Deny));
        }
        if let Some(rule) = find(asked, &self.ask, &covered) {
            return Some((rule, Verdict::Ask));
        }
        if subject.is_doubtful()
            && let Some(rule) =
                find(denied, &self.deny, &doubted).or_else(|| find(asked, &self.ask, &doubted))
        {
            return Some((rule, Verdict::Ask));
        }
        let rule = find(allowed, &self.allow, &covered)?;
        let reached = !subject.has_target()
            || find(allowed, &self.allow, &|rule| {
                subject.covered_by(rule, ClaimSide::Target)
            })
            .is_some();
        reached.then_some((rule, Verdict::Allow))
    }

    /// Whether an allow rule that `only` accepts covers this side of an effect.
    pub(crate) fn allows(
        &self,
        naming: &ToolRuleIndex<'_>,
        subject: &Subject<'_>,
        side: ClaimSide,
        only: &dyn Fn(&Rule) -> bool,
    ) -> bool {
        let ToolRuleIndex([.., allowed]) = naming;
        let found = allowed.iter().chain(self.allow.of_kind(subject.effect()));
        let mut found = found.filter_map(|at| self.all.get(*at));
        found.any(|rule| only(rule) && subject.is_kept_by(rule) && subject.covered_by(rule, side))
    }

    /// Whether a deny or ask rule for this tool or for the class `Read` covers the path.
    pub(crate) fn withholds(&self, tool: &str, path: &PathView<'_>) -> bool {
        [&self.deny, &self.ask].into_iter().any(|bucket| {
            let found = bucket.of_name(tool).iter().chain(&bucket.reads);
            found
                .filter_map(|at| self.all.get(*at))
                .any(|rule| match &rule.specifier {
                    Specifier::Path(pattern) => pattern.forbids(path),
                    _ => false,
                })
        })
    }

    /// Whether there is a deny or ask rule on paths that this tool might read.
    pub(crate) fn withholds_from(&self, tool: &str) -> bool {
        [&self.deny, &self.ask].into_iter().any(|bucket| {
            let mut found = bucket.of_name(tool).iter().chain(&bucket.reads);
            found.any(|at| {
                let rule = self.all.get(*at);
                rule.is_some_and(|rule| matches!(rule.specifier, Specifier::Path(_)))
            })
        })
    }

    /// Returns the deny rule that removes a tool from every list, if any.
    pub(crate) fn removal(&self, tool: &str, places: &PolicyContext) -> Option<&Rule> {
        let selects = |selector: &Selector| match selector {
            Selector::Class(class) => places.classes.of(tool) == Some(*class),
            _ => selector.names(tool),
        };
        self.all.iter().find(|rule| {
            rule.list == RuleList::Deny
                && rule.specifier == Specifier::All
                && selects(&rule.selector)
        })
    }

    /// Whether a rule covers a single approved call of the tool.
    pub(crate) fn covers_saved_calls_of(&self, tool: &str) -> bool {
        !self.saved_call_tools.is_empty() && self.saved_call_tools.contains(tool)
    }

    pub(crate) fn findings(&self) -> Vec<RuleFinding> {
        self.all.iter().filter_map(finding).collect()
    }

    /// Returns the layers that contain rules, in order of first appearance.
    pub(crate) fn layers(&self) -> Vec<Arc<str>> {
        let mut layers: Vec<Arc<str>> = Vec::new();
        for rule in &self.all {
            if !layers.contains(&rule.layer) {
                layers.push(Arc::clone(&rule.layer));
            }
        }
        layers
    }
}

/// Describes a rule that never matches.
pub(crate) fn finding(rule: &Rule) -> Option<RuleFinding> {
    let never = rule.never.as_ref()?;
    Some(RuleFinding {
        list: rule.list,
        rule: rule.text.to_string(),
        layer: rule.layer.to_string(),
        problem: never.why.clone(),
        advice: never.form.clone(),
    })
}
