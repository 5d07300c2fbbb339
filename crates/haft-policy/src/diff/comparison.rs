//! `PolicyComparison`: two policies whose rules are compared, and what the newer one lets through.

use std::rc::Rc;

use hashbrown::{HashMap, HashSet};

use super::automaton::{Automaton, SEPARATOR};
use super::cells::{self, EffectKind, RuleCell, Value};
use super::example::{Example, PlainTexts};
use super::inclusion::{AnyText, Effort, Filter, Inclusion, includes};
use super::language::{EncodedEffect, Language, ValueAspect};
use super::parts::{self, CellOf};
use super::private_places::PrivatePlaces;
use super::{RuleDifference, VerdictChange};
use crate::Policy;
use crate::commands::phrase::clip;
use crate::rules::rule::{Rule, RuleList, SavedCall, Specifier};
use crate::rules::view::{CommandView, CoverageKind};
use haft_files::glob::Glob;
use haft_files::secret_names::{NamedSecrets, SecretNames};

/// Maximum length of a rule that is compared, in bytes; of a longer one it is not decided what it matches.
const MAX_RULE: usize = 4_096;
/// Maximum number of pieces of a command's pattern: up to here, `Glob::overlaps` compares it with every command that haft reads.
const MAX_PIECES: usize = 1_600;
/// Maximum number of examples that are tried for one that shows the difference.
const MAX_EXAMPLES: usize = 6;
/// Maximum number of states of all languages together. What rules beyond it cover does not count.
const MAX_STATES: usize = 600_000;

/// The rules of one list of a policy, against which one of the other is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum RuleGroup {
    OldAllow,
    NewDeny,
    NewAsk,
}

/// One rule, and what it covers.
struct Known<'r> {
    rule: &'r Rule,
    cells: Vec<RuleCell<'r>>,
}

/// What a language is about: of a group, what covers cells of one kind, by one aspect, that name these secrets.
type LanguageKey<'r> = (
    RuleGroup,
    EffectKind,
    ValueAspect<'r>,
    Option<Rc<NamedSecrets>>,
);

/// Two policies that are compared.
pub(super) struct PolicyComparison<'r> {
    old: &'r Policy,
    new: &'r Policy,
    groups: [(RuleGroup, Vec<Known<'r>>); 3],
    languages: HashMap<LanguageKey<'r>, Rc<Language<'r>>>,
    /// The number of states of all languages.
    states: usize,
    effort: Effort,
}

impl<'r> PolicyComparison<'r> {
    pub(super) fn new(old: &'r Policy, new: &'r Policy) -> Self {
        let of = |group, policy: &'r Policy, list| {
            let rules = policy.rules.all().iter();
            let rules = rules.filter(|rule| rule.list == list && is_comparable(rule));
            let known = rules.map(|rule| Known {
                rule,
                cells: cells_of(policy, &old.secrets.names, rule),
            });
            (group, known.collect())
        };
        Self {
            old,
            new,
            groups: [
                of(RuleGroup::OldAllow, old, RuleList::Allow),
                of(RuleGroup::NewDeny, new, RuleList::Deny),
                of(RuleGroup::NewAsk, new, RuleList::Ask),
            ],
            languages: HashMap::new(),
            states: 0,
            effort: Effort::default(),
        }
    }

    /// Returns what the new policy lets through that the old one does not.
    pub(super) fn looser(mut self) -> Vec<RuleDifference> {
        let mut found = Vec::new();
        let (old, new) = (self.old, self.new);
        for rule in missing(new, old) {
            if rule.list == RuleList::Allow {
                found.extend(self.added(rule));
            }
        }
        for rule in missing(old, new) {
            if rule.list != RuleList::Allow {
                found.extend(self.removed(rule));
            }
        }
        let known: HashSet<String> = found.iter().map(|one| one.rule.clone()).collect();
        let changed = missing(new, old).into_iter().chain(missing(old, new));
        let opened = PrivatePlaces::new(old, new, changed).opened(&known, &self.effort);
        found.extend(opened);
        found
    }

    fn root(&self) -> Option<&'r str> {
        self.new.places.workspace.as_deref()
    }

    /// Whether it can be decided what a rule matches: its paths mean the same in both policies, and it is not too long.
    fn can_decide(&self, rule: &Rule) -> bool {
        self.old.places.reads_rules_as(&self.new.places) && is_comparable(rule)
    }

    /// Compares an allow rule that only the new policy has.
    fn added(&mut self, rule: &'r Rule) -> Option<RuleDifference> {
        let groups = [RuleGroup::OldAllow, RuleGroup::NewDeny, RuleGroup::NewAsk];
        if !self.can_decide(rule) {
            return Some(undecided(VerdictChange::NewlyAllowed, rule));
        }
        let change = VerdictChange::NewlyAllowed;
        for cell in cells_of(self.new, &self.old.secrets.names, rule) {
            if let Value::Line(pattern) = cell.value {
                if pattern.is_exact() {
                    match self.covers_exact(rule, &cell) {
                        Inclusion::Holds => continue,
                        Inclusion::Fails(text) => {
                            return Some(self.by_example(change, rule, &cell, &text));
                        }
                        Inclusion::Undecided => return Some(undecided(change, rule)),
                    }
                }
                let covered = self.covers(rule, &cell, &groups) == Inclusion::Holds;
                if covered && !self.one_covers(rule, &cell) {
                    return Some(of_several_commands(rule));
                }
            }
            if self.covers(rule, &cell, &groups) != Inclusion::Holds {
                return Some(self.difference(change, rule, &cell, &groups));
            }
        }
        None
    }

    /// Compares a deny or ask rule that only the old policy has.
    fn removed(&mut self, rule: &'r Rule) -> Vec<RuleDifference> {
        let is_deny = rule.list == RuleList::Deny;
        let open = if is_deny {
            VerdictChange::NoLongerDenied
        } else {
            VerdictChange::NoLongerAsked
        };
        if !self.can_decide(rule) {
            return vec![undecided(open, rule)];
        }
        let (mut asked, mut found, mut of_programs) = (None, None, None);
        for cell in cells_of(self.old, &self.old.secrets.names, rule) {
            // These are compared as spellings.
            if matches!(cell.kind, EffectKind::Run | EffectKind::OtherRun) {
                continue;
            }
            let (deny, both) = (
                &[RuleGroup::NewDeny][..],
                &[RuleGroup::NewDeny, RuleGroup::NewAsk][..],
            );
            if self.covers(rule, &cell, deny) == Inclusion::Holds {
                continue;
            }
            let (change, place, groups) = if cell.kind.is_for_programs() {
                (VerdictChange::OpenToPrograms, &mut of_programs, deny)
            } else if self.covers(rule, &cell, both) != Inclusion::Holds {
                (open, &mut found, both)
            } else if is_deny && !cell.kind.is_doubt() {
                (VerdictChange::AskedNow, &mut asked, deny)
            } else {
                continue;
            };
            if place.is_none() {
                *place = Some(self.difference(change, rule, &cell, groups));
            }
        }
        // Where calls are no longer asked about at all, that is said alone.
        found.or(asked).into_iter().chain(of_programs).collect()
    }

    /// Whether the rules of these groups cover a cell of a rule.
    fn covers(&mut self, rule: &'r Rule, cell: &RuleCell<'r>, groups: &[RuleGroup]) -> Inclusion {
        if cell.is_partial && self.one_covers_part(rule, cell, groups) {
            return Inclusion::Holds;
        }
        let right = self.others(rule, cell, groups);
        let others: Vec<&Automaton> = right.iter().map(|one| &one.automaton).collect();
        let left = self.alone(cell);
        includes(&others, &left.automaton, &AnyText, &self.effort)
    }

    /// Whether one rule of these groups covers a cell of which a rule covers only some.
    fn one_covers_part(&self, rule: &Rule, cell: &RuleCell<'r>, groups: &[RuleGroup]) -> bool {
        let narrow = CellOf { rule, cell };
        let of_groups = self.groups.iter().filter(|(own, _)| groups.contains(own));
        let mut rules = of_groups.flat_map(|(_, rules)| rules);
        rules.any(|known| {
            let rule = known.rule;
            let mut cells = known.cells.iter();
            self.effort.allows(cells.len())
                && cells.any(|cell| parts::covers(&CellOf { rule, cell }, &narrow))
        })
    }

    /// Returns the language of one cell.
    fn alone(&self, cell: &RuleCell<'r>) -> Language<'r> {
        let mut left = Language::exact(cell.kind, aspect_of(cell), self.root());
        left.add(cell);
        left
    }

    /// Returns what the rules of these groups cover of a cell's kind.
    fn others(
        &mut self,
        rule: &'r Rule,
        cell: &RuleCell<'r>,
        groups: &[RuleGroup],
    ) -> Vec<Rc<Language<'r>>> {
        let aspect = aspect_of(cell);
        let mut right: Vec<Rc<Language<'r>>> = Vec::new();
        for group in groups {
            right.push(self.language(*group, cell, aspect));
        }
        if let Some(kept) = &rule.kept_for {
            right.push(Rc::new(self.saved_calls(kept, cell, aspect)));
        }
        right
    }

    /// Returns the language of a group's rules that apply to every call.
    fn language(
        &mut self,
        group: RuleGroup,
        of: &RuleCell<'r>,
        aspect: ValueAspect<'r>,
    ) -> Rc<Language<'r>> {
        let key = (group, of.kind, aspect, of.named.clone());
        if let Some(known) = self.languages.get(&key) {
            return Rc::clone(known);
        }
        let mut language = Language::wide(of.kind, aspect, self.root());
        for (_, rules) in self.groups.iter().filter(|(own, _)| *own == group) {
            for known in rules.iter().filter(|known| known.rule.kept_for.is_none()) {
                for cell in known.cells.iter().filter(|cell| cell.is_of_kind_of(of)) {
                    if self.states + language.automaton.len() < MAX_STATES {
                        language.add(cell);
                    }
                }
            }
        }
        self.states += language.automaton.len();
        let language = Rc::new(language);
        self.languages.insert(key, Rc::clone(&language));
        language
    }

    /// Returns the language of the old allow rules for calls like one that was approved.
    fn saved_calls(
        &self,
        kept: &SavedCall,
        of: &RuleCell<'r>,
        aspect: ValueAspect<'r>,
    ) -> Language<'r> {
        let mut language = Language::wide(of.kind, aspect, self.root());
        for known in self.old_allow() {
            if known.rule.kept_for.as_ref() == Some(kept) {
                let cells = known.cells.iter().filter(|cell| cell.is_of_kind_of(of));
                cells.for_each(|cell| language.add(cell));
            }
        }
        language
    }

    fn old_allow(&self) -> &[Known<'r>] {
        &self.groups[0].1
    }

    /// Whether the other rules cover the one command of an exact rule, as they judge it: what reaches an exact rule may not reach a
    /// pattern.
    fn covers_exact(&self, rule: &'r Rule, cell: &RuleCell<'r>) -> Inclusion {
        let Value::Line(pattern) = cell.value else {
            return Inclusion::Undecided;
        };
        let line = pattern.lines().next().map(Glob::to_text);
        let line = line.unwrap_or_default();
        let view = CommandView::new(&line, None);
        let mut right = Language::wide(cell.kind, ValueAspect::Value, self.root());
        for known in self.groups.iter().flat_map(|(_, rules)| rules) {
            let other = known.rule;
            let applies = other.kept_for.is_none() || other.kept_for == rule.kept_for;
            let allows = other.list == RuleList::Allow;
            let covers = applies
                && match &other.specifier {
                    Specifier::All if allows => view.reach() == CoverageKind::Pattern,
                    Specifier::All => true,
                    Specifier::Command(pattern) if allows => pattern.allows(&view),
                    Specifier::Command(pattern) => pattern.forbids(&view),
                    _ => false,
                };
            if covers {
                let own = known.cells.iter().filter(|own| own.kind == cell.kind);
                own.for_each(|own| right.add_all(own));
            }
        }
        let mut left = Language::exact(cell.kind, ValueAspect::Value, self.root());
        left.add(cell);
        includes(&[&right.automaton], &left.automaton, &AnyText, &self.effort)
    }

    /// Whether one allow rule of the old policy covers all of a cell for commands that the new deny and ask rules leave. An effect of
    /// several commands needs one rule that covers each of them.
    fn one_covers(&mut self, rule: &Rule, cell: &RuleCell<'r>) -> bool {
        let strict = [RuleGroup::NewDeny, RuleGroup::NewAsk];
        let strict = strict.map(|group| self.language(group, cell, ValueAspect::Value));
        let strict: Vec<&Automaton> = strict.iter().map(|one| &one.automaton).collect();
        let mut left = Language::exact(cell.kind, ValueAspect::Value, self.root());
        left.add(cell);
        let text = match includes(&strict, &left.automaton, &AnyText, &self.effort) {
            Inclusion::Fails(text) => text,
            Inclusion::Holds => return true,
            Inclusion::Undecided => return false,
        };
        let sample = EncodedEffect::read(&text).value;
        let fits = |own: &RuleCell<'_>| {
            own.kind == cell.kind
                && match own.value {
                    Value::All => true,
                    Value::Line(pattern) => pattern.lines().any(|glob| glob.matches(&sample)),
                    _ => false,
                }
        };
        self.old_allow().iter().any(|known| {
            let kept = &known.rule.kept_for;
            let applies = kept.is_none() || *kept == rule.kept_for;
            let own: Vec<&RuleCell<'r>> = known.cells.iter().filter(|own| fits(own)).collect();
            if !applies || own.is_empty() {
                return false;
            }
            let mut language = Language::wide(cell.kind, ValueAspect::Value, self.root());
            for cell in &own {
                language.add(cell);
            }
            let mut right = strict.clone();
            right.push(&language.automaton);
            includes(&right, &left.automaton, &AnyText, &self.effort) == Inclusion::Holds
        })
    }

    /// Describes what of a cell the rules of these groups do not cover, by a short example that the new policy judges more loosely, or
    /// else by the shortest.
    fn difference(
        &mut self,
        change: VerdictChange,
        rule: &'r Rule,
        cell: &RuleCell<'r>,
        groups: &[RuleGroup],
    ) -> RuleDifference {
        let right = self.others(rule, cell, groups);
        let left = self.alone(cell);
        let plain = PlainTexts { kind: cell.kind };
        let (mut tried, mut first) = (Vec::new(), None);
        while tried.len() < MAX_EXAMPLES {
            let known = Automaton::of_texts(&tried);
            let mut others: Vec<&Automaton> = right.iter().map(|one| &one.automaton).collect();
            others.push(&known);
            let next =
                |filter: &dyn Filter| includes(&others, &left.automaton, filter, &self.effort);
            let text = match next(&plain) {
                Inclusion::Fails(text) => text,
                _ if tried.is_empty() => match next(&AnyText) {
                    Inclusion::Fails(text) => text,
                    _ => break,
                },
                _ => break,
            };
            let found = self.by_example(change, rule, cell, &text);
            if found.before > found.after {
                return found;
            }
            first = first.or(Some(found));
            tried.push(text);
        }
        first.unwrap_or_else(|| undecided(change, rule))
    }

    /// Describes a difference by this text.
    fn by_example(
        &self,
        change: VerdictChange,
        rule: &Rule,
        cell: &RuleCell<'_>,
        text: &str,
    ) -> RuleDifference {
        if cell.is_partial {
            return of_a_part(change, rule, cell);
        }
        let argument = match aspect_of(cell) {
            ValueAspect::Argument(path) => Some(path),
            ValueAspect::Value => None,
        };
        let unstated = rule.kept_for.as_ref().map(|kept| &*kept.arguments);
        let example = Example::of(cell.kind, text, argument, self.new);
        let rules = self.old.rules.all().len() + self.new.rules.all().len();
        let verdict = |policy| {
            let judges = self.effort.allows_judging(rules);
            judges.then(|| example.verdict(policy, unstated)).flatten()
        };
        RuleDifference {
            before: verdict(self.old),
            after: verdict(self.new),
            what: Some(example.what.to_owned()),
            example: Some(clip(&example.value)),
            tool: Some(example.tool).filter(|tool| !tool.is_empty()),
            ..RuleDifference::of(change, rule)
        }
    }
}

fn undecided(change: VerdictChange, rule: &Rule) -> RuleDifference {
    RuleDifference {
        undecided: true,
        ..RuleDifference::of(change, rule)
    }
}

fn of_several_commands(rule: &Rule) -> RuleDifference {
    RuleDifference {
        what: Some("several commands in one effect, which no single rule allowed".to_owned()),
        ..RuleDifference::of(VerdictChange::NewlyAllowed, rule)
    }
}

/// Returns the difference of a rule that covers only some of a cell: an example of the cell need not be one of the rule.
fn of_a_part(change: VerdictChange, rule: &Rule, cell: &RuleCell<'_>) -> RuleDifference {
    let what = match cell.value {
        Value::Network(..) => "requests that it names",
        _ => "calls with all of these arguments",
    };
    RuleDifference {
        what: Some(what.to_owned()),
        ..RuleDifference::of(change, rule)
    }
}

fn aspect_of<'r>(cell: &RuleCell<'r>) -> ValueAspect<'r> {
    match cell.value {
        Value::Param(pattern) => ValueAspect::Argument(pattern.path()),
        _ => ValueAspect::Value,
    }
}

/// Returns what a rule of a policy covers. Secrets are those of one list for both policies: what a list with more entries opens, one
/// with fewer opens, too.
fn cells_of<'r>(policy: &Policy, names: &SecretNames, rule: &'r Rule) -> Vec<RuleCell<'r>> {
    let named = match &rule.specifier {
        Specifier::Path(pattern) if rule.list == RuleList::Allow => Some(names.named_by(pattern)),
        _ => None,
    };
    let named = named.filter(|named| !named.is_empty());
    cells::of(rule, &policy.places, named)
}

/// Whether it can be decided what a rule matches.
fn is_comparable(rule: &Rule) -> bool {
    let short = match &rule.specifier {
        Specifier::Command(pattern) => pattern
            .spellings()
            .all(|glob| glob.pieces().len() <= MAX_PIECES),
        _ => true,
    };
    short && rule.text.len() <= MAX_RULE && !rule.text.contains(SEPARATOR)
}

/// Returns the rules of one policy that another does not have.
fn missing<'r>(of: &'r Policy, other: &Policy) -> Vec<&'r Rule> {
    type RuleIdentity<'a> = (RuleList, &'a str, Option<(&'a str, &'a str)>);
    fn identity(rule: &Rule) -> RuleIdentity<'_> {
        let kept = rule.kept_for.as_ref();
        let kept = kept.map(|kept| (&*kept.tool, &*kept.arguments));
        (rule.list, &rule.text, kept)
    }
    let mut known: HashSet<RuleIdentity<'_>> = HashSet::new();
    if of.places.reads_rules_as(&other.places) {
        known.extend(other.rules.all().iter().map(identity));
    }
    let rules = of.rules.all().iter();
    rules.filter(|rule| known.insert(identity(rule))).collect()
}
