//! `RuleCell`: a kind of effect, the tools and the values that a rule covers; a rule is a few of them.
//!
//! This file says for each rule what `rules/subject.rs` decides for one effect, so that both must change together: the property tests in
//! `diff/tests.rs` judge random calls under random rules by the one, and compare the rules by the other.

use std::rc::Rc;

use super::path_language::PathReading;
use crate::places::PolicyContext;
use crate::rules::argument_pattern::ParamPattern;
use crate::rules::network_pattern::NetworkPattern;
use crate::rules::pattern::{CommandPattern, DomainPattern};
use crate::rules::rule::{Rule, RuleList, Selector, Specifier, parameters};
use crate::rules::sign_pattern::SignPattern;
use haft_files::paths::PathPattern;
use haft_files::secret_names::NamedSecrets;
use haft_types::spec::ToolClass;

/// What rules can match about an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum EffectKind {
    /// The call itself.
    Call,
    /// The same, of critical risk: no rule for a class allows it.
    CriticalCall,
    /// An effect that rules match by its tool alone.
    Other,
    Read,
    Write,
    Remove,
    CriticalWrite,
    CriticalRemove,
    /// What a command runs within its wrappers, where a pattern may allow it.
    Run,
    /// A command that no pattern allows.
    OtherRun,
    /// A spelling of a command, for deny and ask.
    Spelling,
    /// A command without a spelling.
    BareRun,
    Connect,
    Sign,
    /// A file that a command reads or changes.
    CommandReads,
    CommandEdits,
    /// A folder that a command walks, in which a file may lie that a rule on reading names.
    Walk,
    /// A command that could be one that a rule names, once its words are known.
    Doubt,
    /// A command of which it is not known what it reads or changes, if rules say what may not be.
    UnknownReads,
    UnknownEdits,
    /// A redirection that reads a file that is not known.
    UnknownRedirect,
    /// A file that tools which walk folders leave out.
    LeftOut,
    /// A file that programs in the jail do not see, or cannot change.
    Hidden,
    Fixed,
    /// A secret that a rule opens.
    SecretRead,
    SecretWrite,
    CriticalSecretWrite,
}

impl EffectKind {
    /// The effects of calls, which every rule for a tool covers.
    const OF_CALLS: [Self; 11] = [
        Self::Call,
        Self::CriticalCall,
        Self::Other,
        Self::Read,
        Self::Write,
        Self::Remove,
        Self::CriticalWrite,
        Self::CriticalRemove,
        Self::Connect,
        Self::Sign,
        Self::BareRun,
    ];
    const CHANGES: [Self; 4] = [
        Self::Write,
        Self::Remove,
        Self::CriticalWrite,
        Self::CriticalRemove,
    ];
    /// What a deny or ask rule for all commands covers beside their spellings.
    const OF_COMMANDS: [Self; 10] = [
        Self::Run,
        Self::OtherRun,
        Self::Spelling,
        Self::BareRun,
        Self::CommandReads,
        Self::CommandEdits,
        Self::Walk,
        Self::Doubt,
        Self::UnknownReads,
        Self::UnknownEdits,
    ];
    /// Effects that only rules on paths concern, and whose tools no rule but one for a class names.
    pub(super) fn is_path(self) -> bool {
        Self::CHANGES.contains(&self)
            || matches!(
                self,
                Self::Read
                    | Self::CommandReads
                    | Self::CommandEdits
                    | Self::Walk
                    | Self::LeftOut
                    | Self::Hidden
                    | Self::Fixed
                    | Self::SecretRead
                    | Self::SecretWrite
                    | Self::CriticalSecretWrite
            )
    }

    /// Whether it is about a secret that a rule opens.
    fn is_opened_secret(self) -> bool {
        matches!(
            self,
            Self::SecretRead | Self::SecretWrite | Self::CriticalSecretWrite
        )
    }

    /// Whether a deny rule results in asking only, like an ask rule, since what it is about is only known at run time.
    pub(super) fn is_doubt(self) -> bool {
        matches!(
            self,
            Self::Walk
                | Self::Doubt
                | Self::UnknownReads
                | Self::UnknownEdits
                | Self::UnknownRedirect
                | Self::LeftOut
        )
    }

    /// Whether only deny rules count.
    pub(super) fn is_for_programs(self) -> bool {
        matches!(self, Self::Hidden | Self::Fixed)
    }
}

/// Classes of tools as bits: the first for tools without one.
pub(super) type ClassMask = u8;

/// All classes, and none.
const ALL_CLASSES: ClassMask = 0x7f;
const CLASSES: ClassMask = 0x7e;

fn bit(class: ToolClass) -> ClassMask {
    2 << (class as u8)
}

/// Returns the class of a bit's position.
pub(super) fn class_at(position: u8) -> Option<ToolClass> {
    let position = usize::from(position).checked_sub(1)?;
    ToolClass::ALL.get(position).copied()
}

/// The tools of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CellTools<'r> {
    Any,
    Selected(&'r Selector),
    One(&'r str),
}

/// The values of a cell.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value<'r> {
    /// All of its kind.
    All,
    /// What the pattern allows, written as haft joins words.
    Line(&'r CommandPattern),
    /// Every spelling that the pattern forbids.
    Spelling(&'r CommandPattern),
    Path(&'r PathPattern, PathReading),
    Domain(&'r DomainPattern, RuleList),
    Network(&'r NetworkPattern, RuleList),
    Sign(&'r SignPattern, RuleList),
    /// One argument, whatever the effect is.
    Param(&'r ParamPattern),
}

/// A kind of effect, and the tools and values that a rule covers.
#[derive(Debug, Clone)]
pub(super) struct RuleCell<'r> {
    pub(super) kind: EffectKind,
    pub(super) classes: ClassMask,
    pub(super) tools: CellTools<'r>,
    pub(super) value: Value<'r>,
    /// Whether the rule covers only some of what the cell says: some requests to a host, or calls of which other arguments must fit, too.
    /// What others say of such a cell holds for the rule; what the cell says of others does not.
    pub(super) is_partial: bool,
    /// Of opened secrets: the entries that the rule names. It opens a path if they are all by which the path is secret.
    pub(super) named: Option<Rc<NamedSecrets>>,
}

impl RuleCell<'_> {
    /// Whether what it covers may cover some of another: it is of its kind, and opens whatever secrets the other opens.
    pub(super) fn is_of_kind_of(&self, other: &Self) -> bool {
        let opens = match (&self.named, &other.named) {
            (Some(own), Some(others)) => own.include(others),
            (_, None) => true,
            (None, Some(_)) => false,
        };
        self.kind == other.kind && opens
    }
}

/// Returns what a rule covers. `named` are the entries of the list of secret names that its pattern names.
pub(super) fn of<'r>(
    rule: &'r Rule,
    places: &PolicyContext,
    named: Option<NamedSecrets>,
) -> Vec<RuleCell<'r>> {
    let names_secrets = named.is_some();
    let mut cells = CellList {
        rule,
        classes: match &rule.selector {
            Selector::Named(names) => {
                let each = names.iter().map(|name| places.classes.of(name));
                each.fold(0, |all, one| all | one.map_or(ALL_CLASSES, bit))
            }
            Selector::Any | Selector::Glob(_) | Selector::Class(_) => ALL_CLASSES,
        },
        named: named.map(Rc::new),
        cells: Vec::new(),
    };
    match (rule.list, &rule.selector) {
        (RuleList::Allow, Selector::Class(class)) => cells.allow_class(*class, names_secrets),
        (RuleList::Allow, _) => cells.allow_tool(names_secrets),
        (_, Selector::Class(class)) => cells.forbid_class(*class),
        _ => cells.forbid_tool(),
    }
    match &rule.kept_for {
        None => cells.cells,
        Some(kept) => kept_only(cells.cells, rule, &kept.tool),
    }
}

/// Limits cells to the calls that a saved rule covers: `Subject::is_kept_by`.
fn kept_only<'r>(cells: Vec<RuleCell<'r>>, rule: &'r Rule, tool: &'r str) -> Vec<RuleCell<'r>> {
    let bare = rule.specifier == Specifier::All;
    let covers = |kind: EffectKind| match kind {
        EffectKind::Remove | EffectKind::CriticalRemove => false,
        EffectKind::Call | EffectKind::CriticalCall | EffectKind::Other => true,
        _ => !bare,
    };
    let selected = matches!(rule.selector, Selector::Class(_)) || rule.selector.names(tool);
    let kept = cells
        .into_iter()
        .filter(|cell| selected && covers(cell.kind));
    kept.map(|cell| RuleCell {
        tools: CellTools::One(tool),
        ..cell
    })
    .collect()
}

struct CellList<'r> {
    rule: &'r Rule,
    classes: ClassMask,
    named: Option<Rc<NamedSecrets>>,
    cells: Vec<RuleCell<'r>>,
}

impl<'r> CellList<'r> {
    fn add(&mut self, kinds: &[EffectKind], classes: ClassMask, value: Value<'r>) {
        let tools = match &self.rule.selector {
            Selector::Class(_) | Selector::Any => CellTools::Any,
            selector => CellTools::Selected(selector),
        };
        let classes = classes & self.classes;
        if classes == 0 {
            return;
        }
        let is_partial = match &self.rule.specifier {
            Specifier::Network(pattern) => pattern.judges_requests(),
            Specifier::Param(pattern) => pattern.arguments().len() > 1,
            _ => false,
        };
        self.cells.extend(kinds.iter().map(|kind| RuleCell {
            kind: *kind,
            classes,
            tools: tools.clone(),
            value,
            is_partial,
            named: self.named.clone().filter(|_| kind.is_opened_secret()),
        }));
    }

    /// The effects that belong to a class, and the calls of its tools.
    fn all_of(&mut self, class: ToolClass) {
        self.add(&[EffectKind::Call], bit(class), Value::All);
        let (kinds, classes): (&[EffectKind], _) = match class {
            ToolClass::Read => (&[EffectKind::Read], ALL_CLASSES),
            ToolClass::Edit => (&[EffectKind::Write, EffectKind::Remove], ALL_CLASSES),
            ToolClass::Bash => (&[EffectKind::Run], ALL_CLASSES),
            ToolClass::WebFetch => (
                &[EffectKind::Connect],
                ALL_CLASSES & !bit(ToolClass::Network),
            ),
            ToolClass::Network => (&[EffectKind::Connect], bit(ToolClass::Network)),
            ToolClass::Sign => (&[EffectKind::Sign], ALL_CLASSES),
        };
        self.add(kinds, classes, Value::All);
    }

    fn allow_class(&mut self, class: ToolClass, names_secrets: bool) {
        let list = RuleList::Allow;
        match &self.rule.specifier {
            Specifier::All => self.all_of(class),
            Specifier::Path(pattern) => {
                let value = Value::Path(pattern, PathReading::Allows);
                let (kinds, secret): (&[EffectKind], _) = match class {
                    ToolClass::Read => (&[EffectKind::Read], EffectKind::SecretRead),
                    _ => (
                        &[EffectKind::Write, EffectKind::Remove],
                        EffectKind::SecretWrite,
                    ),
                };
                self.add(kinds, ALL_CLASSES, value);
                if names_secrets {
                    self.add(&[secret], ALL_CLASSES, value);
                }
            }
            specifier => self.common(specifier, list, class == ToolClass::Network),
        }
    }

    fn allow_tool(&mut self, names_secrets: bool) {
        let named = matches!(self.rule.selector, Selector::Named(_));
        // Clause 13: no rule for commands covers what a redirection writes.
        let changing = if named {
            ALL_CLASSES & !bit(ToolClass::Bash)
        } else {
            ALL_CLASSES
        };
        let calls = EffectKind::OF_CALLS.into_iter();
        let calls: Vec<EffectKind> = calls.filter(|kind| *kind != EffectKind::BareRun).collect();
        match &self.rule.specifier {
            Specifier::All => {
                let others = calls.iter().copied();
                let others = others.filter(|kind| !EffectKind::CHANGES.contains(kind));
                let others: Vec<EffectKind> = others.collect();
                self.add(&others, ALL_CLASSES, Value::All);
                self.add(&EffectKind::CHANGES, changing, Value::All);
                self.add(&[EffectKind::Run], ALL_CLASSES, Value::All);
            }
            Specifier::Path(pattern) => {
                let value = Value::Path(pattern, PathReading::Allows);
                self.add(&[EffectKind::Read], ALL_CLASSES, value);
                self.add(&EffectKind::CHANGES, ALL_CLASSES, value);
                if names_secrets {
                    let secrets = [
                        EffectKind::SecretRead,
                        EffectKind::SecretWrite,
                        EffectKind::CriticalSecretWrite,
                    ];
                    self.add(&secrets, ALL_CLASSES, value);
                }
            }
            Specifier::Param(pattern) => {
                let Some(first) = pattern.arguments().first() else {
                    return;
                };
                let value = Value::Param(first);
                self.add(&calls, ALL_CLASSES, value);
                self.add(&[EffectKind::Run], ALL_CLASSES, value);
                // The tool of a server states no command: for it, every call that a rule on an argument allows is one that its name does.
                if !self.is_of_server() {
                    self.add(&[EffectKind::OtherRun], ALL_CLASSES, value);
                }
            }
            specifier => self.tool_common(specifier, RuleList::Allow),
        }
    }

    /// Whether it names tools of servers alone, `server.tool`.
    fn is_of_server(&self) -> bool {
        match &self.rule.selector {
            Selector::Named(names) => names.iter().all(|name| name.contains('.')),
            Selector::Glob(glob) => glob.to_text().contains('.'),
            Selector::Any | Selector::Class(_) => false,
        }
    }

    fn forbid_class(&mut self, class: ToolClass) {
        let list = self.rule.list;
        match &self.rule.specifier {
            Specifier::All => {
                self.all_of(class);
                self.add(&[EffectKind::CriticalCall], bit(class), Value::All);
                let kinds: &[EffectKind] = match class {
                    ToolClass::Read => &[EffectKind::CommandReads, EffectKind::UnknownRedirect],
                    ToolClass::Edit => &[
                        EffectKind::CriticalWrite,
                        EffectKind::CriticalRemove,
                        EffectKind::CommandEdits,
                    ],
                    ToolClass::Bash => &EffectKind::OF_COMMANDS,
                    ToolClass::WebFetch | ToolClass::Network | ToolClass::Sign => &[],
                };
                self.add(kinds, ALL_CLASSES, Value::All);
            }
            Specifier::Path(pattern) if class == ToolClass::Read => {
                let forbids = Value::Path(pattern, PathReading::Forbids);
                self.add(
                    &[EffectKind::Read, EffectKind::CommandReads],
                    ALL_CLASSES,
                    forbids,
                );
                self.add(&[EffectKind::LeftOut], ALL_CLASSES, forbids);
                let walk = Value::Path(pattern, PathReading::MayLieBelow);
                self.add(&[EffectKind::Walk], ALL_CLASSES, walk);
                let unknown = [EffectKind::UnknownReads, EffectKind::UnknownRedirect];
                self.add(&unknown, ALL_CLASSES, Value::All);
                if list == RuleList::Deny {
                    self.add(&EffectKind::CHANGES, ALL_CLASSES, forbids);
                    self.add(
                        &[EffectKind::Hidden, EffectKind::Fixed],
                        ALL_CLASSES,
                        forbids,
                    );
                }
            }
            Specifier::Path(pattern) => {
                let above = Value::Path(pattern, PathReading::ForbidsAbove);
                self.add(&EffectKind::CHANGES, ALL_CLASSES, above);
                let forbids = Value::Path(pattern, PathReading::Forbids);
                self.add(&[EffectKind::CommandEdits], ALL_CLASSES, forbids);
                self.add(&[EffectKind::UnknownEdits], ALL_CLASSES, Value::All);
                if list == RuleList::Deny {
                    self.add(&[EffectKind::Fixed], ALL_CLASSES, forbids);
                }
            }
            specifier => self.common(specifier, list, class == ToolClass::Network),
        }
    }

    fn forbid_tool(&mut self) {
        match &self.rule.specifier {
            Specifier::All => self.everything(ALL_CLASSES),
            Specifier::Path(pattern) => {
                let forbids = Value::Path(pattern, PathReading::Forbids);
                self.add(
                    &[EffectKind::Read, EffectKind::LeftOut],
                    ALL_CLASSES,
                    forbids,
                );
                let above = Value::Path(pattern, PathReading::ForbidsAbove);
                self.add(&EffectKind::CHANGES, ALL_CLASSES, above);
            }
            Specifier::Param(pattern) => {
                let Some(first) = pattern.arguments().first() else {
                    return;
                };
                self.add(&EffectKind::OF_CALLS, ALL_CLASSES, Value::Param(first));
                let runs = [EffectKind::Run, EffectKind::OtherRun];
                self.add(&runs, ALL_CLASSES, Value::Param(first));
                let misread = ToolClass::ALL.into_iter().filter(|class| {
                    let known = parameters(*class);
                    !pattern.names().all(|name| known.contains(&name))
                });
                self.misread(misread.fold(0, |all, class| all | bit(class)));
            }
            Specifier::Nothing => self.misread(CLASSES),
            specifier => self.tool_common(specifier, self.rule.list),
        }
    }

    /// A rule that was read without the class of its tool forbids every call of tools with these: `Subject::is_misread`.
    fn misread(&mut self, classes: ClassMask) {
        if matches!(self.rule.selector, Selector::Named(_)) && self.rule.class.is_none() {
            self.everything(classes);
        }
    }

    fn everything(&mut self, classes: ClassMask) {
        self.add(&EffectKind::OF_CALLS, classes, Value::All);
        self.add(&EffectKind::OF_COMMANDS, classes, Value::All);
        self.add(&[EffectKind::UnknownRedirect], classes, Value::All);
    }

    fn common(&mut self, specifier: &'r Specifier, list: RuleList, of_commands: bool) {
        let network = bit(ToolClass::Network);
        let classes = match specifier {
            Specifier::Domain(_) | Specifier::Network(_) if of_commands => network,
            Specifier::Domain(_) | Specifier::Network(_) => ALL_CLASSES & !network,
            _ => ALL_CLASSES,
        };
        self.of_value(specifier, list, classes);
    }

    fn tool_common(&mut self, specifier: &'r Specifier, list: RuleList) {
        self.of_value(specifier, list, ALL_CLASSES);
    }

    fn of_value(&mut self, specifier: &'r Specifier, list: RuleList, classes: ClassMask) {
        match specifier {
            Specifier::Command(pattern) => {
                self.add(&[EffectKind::Run], classes, Value::Line(pattern));
                if list != RuleList::Allow {
                    // Every spelling of what an allow rule's pattern matches is among those that deny and ask match.
                    let spelled = [EffectKind::Spelling, EffectKind::Doubt];
                    self.add(&spelled, classes, Value::Spelling(pattern));
                }
            }
            Specifier::Domain(pattern) => {
                self.add(
                    &[EffectKind::Connect],
                    classes,
                    Value::Domain(pattern, list),
                );
            }
            Specifier::Network(pattern) => {
                self.add(
                    &[EffectKind::Connect],
                    classes,
                    Value::Network(pattern, list),
                );
            }
            Specifier::Sign(pattern) => {
                self.add(&[EffectKind::Sign], classes, Value::Sign(pattern, list));
            }
            Specifier::All | Specifier::Path(_) | Specifier::Param(_) | Specifier::Nothing => {}
        }
    }
}
