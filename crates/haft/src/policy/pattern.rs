//! What stands in the brackets of a rule: patterns for commands, domains and parameters.

use serde_json::Value;

use super::command::{Touched, touched};
use super::fragments::{Fragments, fragments};
use super::glob::{Glob, Piece};
use super::words::{NotPlain, join_pieces, join_words, pattern_words, plain_words};
use super::wrapper::{base_name, is_too_deep, layers, needs_exact_rule, script, unwrapped};

/// Scripts within scripts (`sh -c "sh -c …"`) that are looked into.
const DEEPEST_SCRIPT: usize = 8;

/// A command as rules match it, analysed once a call.
#[derive(Debug)]
pub(crate) struct CommandView {
    /// Its words, where it has no shell syntax.
    pub(crate) plain: Option<Vec<String>>,
    /// What an allow matches: the line, and what its wrappers run. Empty without words.
    allow_full: String,
    allow_inner: String,
    /// Only a rule with the exact command allows it.
    pub(crate) exact_only: bool,
    /// What deny and ask match, in every spelling.
    forms: Vec<String>,
    /// Files it names where file rules speak of commands.
    pub(crate) touched: Touched,
    /// Targets of redirections, where they can be seen.
    pub(crate) targets: Vec<String>,
}

impl CommandView {
    /// Looks at a command; `argv` wins over the line where there is one.
    pub(crate) fn new(line: &str, argv: Option<&[String]>) -> Self {
        let plain = argv.map(<[String]>::to_vec).or_else(|| plain_words(line));
        let mut view = Self {
            allow_full: plain.as_deref().map(join_words).unwrap_or_default(),
            allow_inner: plain
                .as_deref()
                .map(unwrapped)
                .map(join_words)
                .unwrap_or_default(),
            exact_only: plain
                .as_deref()
                .is_none_or(|words| needs_exact_rule(unwrapped(words))),
            forms: Vec::new(),
            touched: Touched::default(),
            targets: Vec::new(),
            plain: None,
        };
        match &plain {
            Some(words) => view.look_at(words, 0),
            None => view.look_at_line(line, 0),
        }
        view.plain = plain.filter(|words| !is_too_deep(words));
        view.exact_only |= view.plain.is_none();
        view
    }

    /// The same command under variables that its rules do not show: no allow covers it (clause 6).
    pub(crate) fn under_variables(mut self) -> Self {
        self.plain = None;
        self.exact_only = true;
        self
    }

    fn look_at_line(&mut self, line: &str, depth: usize) {
        self.forms.push(line.trim().to_owned());
        let Fragments { commands, targets } = fragments(line);
        for command in &commands {
            self.look_at(command, depth);
        }
        self.targets
            .extend(targets.iter().map(|target| super::paths::clean(target)));
    }

    fn look_at(&mut self, words: &[String], depth: usize) {
        for layer in layers(words) {
            self.forms.push(join_words(layer));
            self.forms.push(layer.join(" "));
            if let Some((name, rest)) = layer.split_first()
                && name.contains('/')
            {
                let named = [&[base_name(name).to_owned()], rest].concat();
                self.forms.push(join_words(&named));
                self.forms.push(named.join(" "));
            }
            let files = touched(layer);
            self.touched.reads.extend(files.reads);
            self.touched.edits.extend(files.edits);
            if depth < DEEPEST_SCRIPT
                && let Some(text) = script(layer)
            {
                self.look_at_line(&text, depth + 1);
            }
        }
    }
}

/// A pattern for command lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandPattern {
    /// The whole command, in the least quoting.
    whole: Glob,
    /// The same before more words, for a trailing ` *` or `:*`.
    more: Option<Glob>,
    /// The same two without any quoting, for deny and ask.
    bare: Glob,
    bare_more: Option<Glob>,
}

impl CommandPattern {
    /// Reads a pattern; `Err` when it holds shell syntax or an open quote.
    pub(crate) fn parse(text: &str) -> Result<Self, NotPlain> {
        let text = text.trim();
        let prefix = text
            .strip_suffix(":*")
            .or_else(|| text.strip_suffix(" *"))
            .filter(|prefix| !prefix.ends_with('\\'));
        let words = pattern_words(prefix.unwrap_or(text))?;
        let whole = join_pieces(&words);
        let bare: Vec<Piece> = words.join(&Piece::Literal(' '));
        let more = |pieces: &[Piece]| {
            let tail = [Piece::Literal(' '), Piece::Star];
            prefix.map(|_| Glob::from_pieces(pieces.iter().copied().chain(tail)))
        };
        Ok(Self {
            more: more(&whole),
            bare_more: more(&bare),
            whole: Glob::from_pieces(whole),
            bare: Glob::from_pieces(bare),
        })
    }

    fn is_exact(&self) -> bool {
        self.more.is_none() && self.whole.is_exact()
    }

    pub(crate) fn allows(&self, command: &CommandView) -> bool {
        if command.plain.is_none() {
            return false;
        }
        if self.is_exact() {
            return self.whole.matches(&command.allow_full)
                || self.whole.matches(&command.allow_inner);
        }
        !command.exact_only
            && (self.whole.matches(&command.allow_inner)
                || self
                    .more
                    .as_ref()
                    .is_some_and(|more| more.matches(&command.allow_inner)))
    }

    pub(crate) fn forbids(&self, command: &CommandView) -> bool {
        command.forms.iter().any(|form| {
            self.whole.matches(form)
                || self.bare.matches(form)
                || self.more.as_ref().is_some_and(|more| more.matches(form))
                || self
                    .bare_more
                    .as_ref()
                    .is_some_and(|more| more.matches(form))
        })
    }
}

/// A pattern for hosts: `example.com`, `*.example.com` (any depth, not the apex), `*`; another `*` stays within its label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DomainPattern {
    below: bool,
    labels: Box<[Glob]>,
}

impl DomainPattern {
    /// `None` when the text is no host.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim().trim_end_matches('.').to_ascii_lowercase();
        let (below, rest) = match text.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None if text == "*" => (true, ""),
            None => (false, text.as_str()),
        };
        let fine = |c: char| !c.is_whitespace() && !"/@?#\\()".contains(c);
        if (rest.is_empty() && !below)
            || !rest.chars().all(fine)
            || rest.split('.').any(str::is_empty) && !rest.is_empty()
        {
            return None;
        }
        let labels = if rest.starts_with('[') {
            vec![rest]
        } else {
            rest.split('.').collect()
        };
        if !rest.starts_with('[') && rest.contains(':') {
            return None;
        }
        Some(Self {
            below,
            labels: labels
                .into_iter()
                .filter(|l| !l.is_empty())
                .map(Glob::parse)
                .collect(),
        })
    }

    pub(crate) fn matches(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let parts: Vec<&str> = if host.starts_with('[') {
            vec![&host]
        } else {
            host.split('.').collect()
        };
        let extra = parts.len().checked_sub(self.labels.len());
        let fits = match extra {
            Some(0) => !self.below,
            Some(_) => self.below,
            None => false,
        };
        fits && self
            .labels
            .iter()
            .rev()
            .zip(parts.iter().rev())
            .all(|(label, part)| label.matches(part))
    }
}

/// A pattern for one scalar argument, named by its dotted path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ParamPattern {
    pub(crate) path: Box<str>,
    value: Glob,
}

impl ParamPattern {
    /// `name:value`; `None` without a name before a colon.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (path, value) = text.split_once(':')?;
        let path = path.trim();
        let fine = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '$');
        if path.is_empty() || !path.chars().all(fine) {
            return None;
        }
        Some(Self {
            path: path.into(),
            value: Glob::parse(value.trim()),
        })
    }

    /// Does the argument of that path hold a scalar that fits? A number in the path is an index of an array.
    pub(crate) fn matches(&self, arguments: &Value) -> bool {
        let mut value = arguments;
        if let Some(whole) = arguments.get(&*self.path) {
            return self.fits(whole);
        }
        for name in self.path.split('.') {
            let next = match value {
                Value::Array(items) => name.parse().ok().and_then(|at: usize| items.get(at)),
                other => other.get(name),
            };
            match next {
                Some(inner) => value = inner,
                None => return false,
            }
        }
        self.fits(value)
    }

    fn fits(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => self.value.matches(text),
            Value::Bool(_) | Value::Number(_) | Value::Null => {
                self.value.matches(&value.to_string())
            }
            Value::Array(_) | Value::Object(_) => false,
        }
    }

    /// An example `name:value` as a string of that name.
    pub(crate) fn matches_example(&self, example: &str) -> bool {
        example.split_once(':').is_some_and(|(name, value)| {
            name.trim() == &*self.path && self.value.matches(value.trim())
        })
    }
}
