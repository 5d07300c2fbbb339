//! `Language`: the effects of one kind that cells cover, as an automaton over texts: the tool's class, its name, and the value.

use hashbrown::HashMap;

use super::automaton::{Automaton, SEPARATOR, StateId, Symbol};
use super::cells::{CellTools, ClassMask, EffectKind, RuleCell, Value, class_at};
use super::glob_language::write_glob;
use super::host_language::HostWriter;
use super::path_language::{PathWriter, decode};
use crate::rules::rule::Selector;
use haft_files::glob::Glob;
use haft_types::spec::ToolClass;

/// What a text's value is: the effect's own, or one argument's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ValueAspect<'r> {
    /// The value of the effect: rules on arguments match none of it.
    Value,
    /// The argument at this path: of other rules, those count that match every effect of the kind.
    Argument(&'r str),
}

/// One text taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EncodedEffect {
    pub(super) class: Option<ToolClass>,
    pub(super) tool: String,
    pub(super) value: String,
}

impl EncodedEffect {
    /// Takes a text apart.
    pub(super) fn read(text: &str) -> Self {
        let mut chars = text.chars();
        let class = chars.next().and_then(|c| c.to_digit(10)).unwrap_or(0);
        let rest = chars.as_str();
        let (tool, value) = rest.split_once(SEPARATOR).unwrap_or((rest, ""));
        Self {
            class: u8::try_from(class).ok().and_then(class_at),
            tool: tool.to_owned(),
            value: value.to_owned(),
        }
    }

    /// Returns the path that the value stands for.
    pub(super) fn path(&self) -> String {
        decode(&self.value)
    }
}

/// The effects of one kind and aspect.
#[derive(Debug)]
pub(super) struct Language<'r> {
    pub(super) automaton: Automaton,
    kind: EffectKind,
    aspect: ValueAspect<'r>,
    root: Option<&'r str>,
    /// Whether only texts are written that encode an effect. Where texts are only compared with such, what begins like one is enough.
    exact: bool,
    /// The states after the classes and any tool.
    of_any_tool: HashMap<ClassMask, StateId>,
}

impl<'r> Language<'r> {
    /// Creates a language of no effects, whose texts are looked up one by one.
    pub(super) fn exact(kind: EffectKind, aspect: ValueAspect<'r>, root: Option<&'r str>) -> Self {
        Self {
            automaton: Automaton::new(),
            kind,
            aspect,
            root,
            exact: true,
            of_any_tool: HashMap::new(),
        }
    }

    /// Creates a language with which others are compared: it has all texts of its kind that encode no effect.
    pub(super) fn wide(kind: EffectKind, aspect: ValueAspect<'r>, root: Option<&'r str>) -> Self {
        let mut language = Self {
            exact: false,
            ..Self::exact(kind, aspect, root)
        };
        if kind.is_path() && aspect == ValueAspect::Value {
            let start = language.after_any_tool(0x7f);
            language.paths().impossible(start);
        }
        if kind == EffectKind::Connect && aspect == ValueAspect::Value {
            let start = language.after_any_tool(0x7f);
            language.hosts().impossible(start);
        }
        language
    }

    /// Adds the effects of a cell of this kind.
    pub(super) fn add(&mut self, cell: &RuleCell<'r>) {
        let covers = match (self.aspect, cell.value) {
            _ if cell.is_partial && !self.exact => false,
            (ValueAspect::Value, Value::Param(_)) => false,
            (ValueAspect::Value, _) | (ValueAspect::Argument(_), Value::All) => true,
            (ValueAspect::Argument(path), Value::Param(pattern)) => pattern.path() == path,
            (ValueAspect::Argument(_), _) => false,
        };
        if !covers {
            return;
        }
        for start in self.after_tools(cell) {
            self.value(start, cell.value);
        }
    }

    /// Adds every effect of the tools of a cell.
    pub(super) fn add_all(&mut self, cell: &RuleCell<'r>) {
        for start in self.after_tools(cell) {
            self.value(start, Value::All);
        }
    }

    fn after_class(&mut self, classes: ClassMask) -> StateId {
        let positions = (0..7u8).filter(|at| classes & (1 << at) != 0);
        let digit = |at: u8| char::from(b'0' + at);
        let ranges = positions.map(|at| (digit(at), digit(at))).collect();
        self.automaton.step(0, Symbol::In(ranges))
    }

    fn after_any_tool(&mut self, classes: ClassMask) -> StateId {
        if let Some(state) = self.of_any_tool.get(&classes) {
            return *state;
        }
        let class = self.after_class(classes);
        let tool = self.automaton.repeat(class, Symbol::any());
        let end = self.automaton.step(tool, Symbol::Char(SEPARATOR));
        self.of_any_tool.insert(classes, end);
        end
    }

    fn after_tools(&mut self, cell: &RuleCell<'r>) -> Vec<StateId> {
        let names: Vec<&str> = match &cell.tools {
            CellTools::Any | CellTools::Selected(Selector::Any | Selector::Class(_)) => {
                return vec![self.after_any_tool(cell.classes)];
            }
            CellTools::Selected(Selector::Glob(glob)) => {
                let class = self.after_class(cell.classes);
                let end = write_glob(&mut self.automaton, class, &glob.pieces(), &[]);
                return vec![self.automaton.step(end, Symbol::Char(SEPARATOR))];
            }
            CellTools::Selected(Selector::Named(names)) => {
                names.iter().map(|name| &**name).collect()
            }
            CellTools::One(name) => vec![name],
        };
        let class = self.after_class(cell.classes);
        let one = |name: &&str| {
            let end = self.automaton.text(class, name);
            self.automaton.step(end, Symbol::Char(SEPARATOR))
        };
        names.iter().map(one).collect()
    }

    fn paths(&mut self) -> PathWriter<'_> {
        PathWriter {
            automaton: &mut self.automaton,
            root: self.root,
            exact: self.exact,
        }
    }

    fn hosts(&mut self) -> HostWriter<'_> {
        HostWriter {
            automaton: &mut self.automaton,
        }
    }

    fn value(&mut self, start: StateId, value: Value<'r>) {
        match value {
            Value::All => self.all(start),
            Value::Line(pattern) => pattern.lines().for_each(|glob| self.glob(start, glob)),
            Value::Spelling(pattern) => {
                let mut written: Vec<&Glob> = Vec::new();
                for glob in pattern.spellings() {
                    if !written.contains(&glob) {
                        written.push(glob);
                        self.glob(start, glob);
                    }
                }
            }
            Value::Path(pattern, reading) => self.paths().pattern(start, pattern, reading),
            Value::Domain(pattern, list) => self.hosts().domain(start, pattern, list),
            Value::Network(pattern, list) => self.hosts().network(start, pattern, list),
            Value::Sign(pattern, list) => self.hosts().sign(start, pattern, list),
            Value::Param(pattern) => self.glob(start, pattern.value()),
        }
    }

    fn glob(&mut self, start: StateId, glob: &Glob) {
        let end = write_glob(&mut self.automaton, start, &glob.pieces(), &[]);
        self.automaton.accept(end);
        if !self.exact && glob.ends_with_star() {
            self.automaton.accept_all(end);
        }
    }

    /// Writes every value of the kind.
    fn all(&mut self, start: StateId) {
        if !self.exact {
            return self.automaton.accept_all(start);
        }
        if self.aspect != ValueAspect::Value {
            let end = self.automaton.repeat(start, Symbol::any());
            return self.automaton.accept(end);
        }
        match self.kind {
            kind if kind.is_path() => self.paths().all(start),
            EffectKind::Connect => self.hosts().all_connections(start),
            EffectKind::Sign => self.hosts().all_logins(start),
            EffectKind::Run | EffectKind::OtherRun | EffectKind::Spelling | EffectKind::Doubt => {
                let end = self.automaton.repeat(start, Symbol::any());
                self.automaton.accept(end);
            }
            _ => self.automaton.accept(start),
        }
    }
}
