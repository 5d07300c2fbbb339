//! Commands that run other commands: which are looked through, and how far.

use super::builtin::{evaluates, evaluates_unknown, queries, unsettles};
use super::options::Options;
use super::shell::AsWord;
use table::{Stripped, Wrapper, wrapper};

mod table;

/// Shells that run the text after `-c`.
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "ash"];

/// Commands that no pattern allows, only a rule with the exact command: clause 7 of the shell rules.
const NEVER_BY_PATTERN: &[&str] = &["watch", "setsid", "ionice", "flock"];

/// Most commands that one may turn out to run; one with more is asked about.
const MOST_LAYERS: usize = 64;

/// A command as it is written, or one that a wrapper runs.
#[derive(Debug)]
pub(crate) struct Layer<'a, W> {
    pub(crate) words: &'a [W],
    /// Whether a program adds words that the line does not show, as `xargs` does.
    pub(crate) fed: bool,
    /// What stands for such words: `{}` of `find -exec`. An empty text: every word may be another.
    placeholder: Option<&'a str>,
}

impl<W> Clone for Layer<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Layer<'_, W> {}

impl<'a, W: AsWord> Layer<'a, W> {
    fn new(words: &'a [W]) -> Self {
        Self {
            words,
            fed: false,
            placeholder: None,
        }
    }

    /// The same from this word on.
    fn from(self, at: usize) -> Self {
        Self {
            words: self.words.get(at..).unwrap_or_default(),
            ..self
        }
    }

    /// Any command at all.
    fn unknown(self) -> Self {
        Self {
            words: &[],
            fed: true,
            ..self
        }
    }

    /// Is this word of it known before the command runs?
    pub(crate) fn knows(&self, word: &W) -> bool {
        let replaced = |sign: &str| word.text().contains(sign);
        word.is_known() && !self.placeholder.is_some_and(replaced)
    }

    /// Is the whole command known before it runs?
    pub(crate) fn is_known(&self) -> bool {
        !self.fed && self.words.iter().all(|word| self.knows(word))
    }
}

/// Every command that deny and ask must look at.
#[derive(Debug)]
pub(crate) struct Layers<'a, W> {
    /// The words themselves, and what each wrapper, known or likely, would run.
    pub(crate) commands: Vec<Layer<'a, W>>,
    /// Texts that are handed to a shell.
    pub(crate) scripts: Vec<String>,
    /// Whether there are more than are looked at.
    pub(crate) cut: bool,
}

/// The last part of a command name written as a path.
pub(crate) fn base_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// The command within the wrappers of clause 5, one after another; a wrapper with an option that is not known, or with a word
/// of its own that is only known at run time, stays as it is.
pub(crate) fn unwrapped<W: AsWord>(words: &[W]) -> Layer<'_, W> {
    let mut layer = Layer::new(words);
    while let Some(name) = layer.words.first().filter(|name| name.is_known()) {
        let Some(wrapper) = wrapper(name.text()).filter(|w| w.stripped != Stripped::Never) else {
            break;
        };
        let bare = Wrapper {
            options: Options::NONE,
            ..*wrapper
        };
        let known = if wrapper.stripped == Stripped::Bare {
            &bare
        } else {
            wrapper
        };
        let Some(next) = within(known, layer) else {
            break;
        };
        layer = next;
    }
    layer
}

/// Looks through every wrapper.
pub(crate) fn layers<W: AsWord>(words: &[W]) -> Layers<'_, W> {
    let mut found = Layers {
        commands: Vec::new(),
        scripts: Vec::new(),
        cut: false,
    };
    found.look_through(Layer::new(words));
    found
}

impl<'a, W: AsWord> Layers<'a, W> {
    fn look_through(&mut self, layer: Layer<'a, W>) {
        if self.commands.len() >= MOST_LAYERS {
            self.cut = true;
            return;
        }
        self.commands.push(layer);
        let Some((name, rest)) = layer.words.split_first() else {
            return;
        };
        let name = base_name(name.text());
        self.scripts.extend(script(layer.words));
        let hands_on = matches!(name, "find" | "eval") || SHELLS.contains(&name);
        if (hands_on && !layer.is_known()) || evaluates_unknown(layer.words) {
            // A word that is not known may say what it runs.
            self.commands.push(layer.unknown());
        }
        if name == "find" {
            for inner in executed(layer) {
                self.look_through(inner);
            }
        }
        if evaluates(layer.words) {
            let texts = rest.iter().map(AsWord::text);
            let texts = texts.filter(|text| text.contains([' ', '\t', '\n', '$', '`']));
            self.scripts.extend(texts.map(str::to_owned));
        }
        let Some(wrapper) = wrapper(name) else {
            return;
        };
        if rest.is_empty() && !layer.fed || name == "command" && queries(rest) {
            return;
        }
        match within(wrapper, layer) {
            Some(inner) if name == "watch" => {
                self.scripts.extend(rest.iter().flat_map(spaced));
                self.look_through(inner);
            }
            Some(inner) => self.look_through(inner),
            None => self.every_suffix(layer),
        }
    }

    /// Each word of a wrapper whose own words are not known may begin the command that it runs, or be the text of one.
    fn every_suffix(&mut self, layer: Layer<'a, W>) {
        let mut layer = layer;
        for (at, word) in layer.words.iter().enumerate() {
            let text = word.text();
            if base_name(text) == "xargs" {
                layer.fed = true;
                layer.placeholder = Some("");
            }
            self.scripts.extend(spaced(word));
            if at == 0 || text.starts_with('-') {
                continue;
            }
            if self.commands.len() >= MOST_LAYERS {
                self.cut = true;
                return;
            }
            self.commands.push(layer.from(at));
        }
        if layer.fed {
            self.commands.push(layer.unknown());
        }
    }
}

/// The command that a wrapper runs, if all words before it are known for what they are.
fn within<'a, W: AsWord>(wrapper: &Wrapper, layer: Layer<'a, W>) -> Option<Layer<'a, W>> {
    let own = 1 + wrapper.options.count(layer.words.get(1..)?)?;
    let begin = own + wrapper.operands?;
    let operands = layer.words.get(own..begin)?;
    let mut inner = layer.from(begin);
    if matches!(wrapper.name, "env" | "sudo" | "doas") {
        let assigned = inner
            .words
            .iter()
            .take_while(|word| is_assignment(word.text()));
        inner = inner.from(assigned.count());
    }
    let known = operands.iter().all(|word| layer.knows(word));
    let begins = inner
        .words
        .first()
        .filter(|name| !name.text().starts_with('-'));
    if !known || begins.is_none() {
        return None;
    }
    if wrapper.name == "xargs" {
        inner.placeholder = replaced(&layer.words[1..own]).or(inner.placeholder);
        inner.fed = true;
    }
    Some(inner)
}

/// What `xargs` replaces by what it reads, where an option says so.
fn replaced<W: AsWord>(options: &[W]) -> Option<&str> {
    let mut found = None;
    for (at, word) in options.iter().enumerate() {
        let text = word.text();
        let next = || options.get(at + 1).map_or("", |next| next.text());
        let value = match text.strip_prefix("--replace") {
            Some(value) => Some(value.trim_start_matches('=')),
            None if text.starts_with("--") => None,
            None => {
                let letter = text.find(['I', 'i']).filter(|_| text.starts_with('-'));
                letter.map(|at| match &text[at..] {
                    "I" => next(),
                    short => &short[1..],
                })
            }
        };
        found = value.map(|v| if v.is_empty() { "{}" } else { v }).or(found);
    }
    found
}

/// What `find` runs for each file.
fn executed<W: AsWord>(layer: Layer<'_, W>) -> Vec<Layer<'_, W>> {
    let runs = ["-exec", "-execdir", "-ok", "-okdir"];
    let starts = layer.words.iter().enumerate();
    let starts = starts.filter(|(_, word)| runs.contains(&word.text()));
    let inner = starts.map(|(at, _)| {
        let rest = &layer.words[at + 1..];
        let end = rest
            .iter()
            .position(|word| matches!(word.text(), ";" | "+"));
        Layer {
            words: &rest[..end.unwrap_or(rest.len())],
            placeholder: layer.placeholder.or(Some("{}")),
            ..layer
        }
    });
    inner.collect()
}

/// What of a word may be a command line of its own, also behind the letter or the name of an option.
fn spaced<W: AsWord>(word: &W) -> Vec<String> {
    let text = word.text();
    if !text.contains([' ', '\t', '\n']) {
        return Vec::new();
    }
    let option = text.strip_prefix('-');
    let behind_letter = option.and_then(|option| option.get(1..));
    let behind_name = option.and_then(|option| Some(option.split_once(['=', 'S'])?.1));
    let whole = option.is_none().then_some(text);
    let texts = [whole, behind_letter, behind_name].into_iter().flatten();
    texts.map(str::to_owned).collect()
}

/// Text that a command hands to a shell: `sh -c TEXT`, `eval TEXT…`.
pub(crate) fn script<W: AsWord>(words: &[W]) -> Option<String> {
    let (name, rest) = words.split_first()?;
    let name = base_name(name.text());
    let join = |words: &[W]| words.iter().map(AsWord::text).collect::<Vec<_>>().join(" ");
    if name == "eval" {
        let options = usize::from(rest.first().is_some_and(|word| word.text() == "--"));
        return Some(join(&rest[options..]));
    }
    if !SHELLS.contains(&name) {
        return None;
    }
    let is_option = |word: &W| word.text().starts_with(['-', '+']);
    let flag = rest.iter().position(|word| {
        is_option(word) && !word.text().starts_with("--") && word.text().contains('c')
    })?;
    let behind = &rest[flag + 1..];
    let text = behind.iter().position(|word| !is_option(word));
    // The name of an option may stand before the text.
    let named = behind.iter().take_while(|word| is_option(word));
    let named = rest[flag..=flag]
        .iter()
        .chain(named)
        .any(|word| word.text().ends_with(['o', 'O']));
    let text = text.map_or(behind.len(), |at| at + usize::from(named));
    Some(join(behind.get(text..).unwrap_or_default()))
}

/// A command that a pattern or a bare tool name may not allow, only a rule with exactly this command.
pub(crate) fn needs_exact_rule<W: AsWord>(layer: Layer<'_, W>) -> bool {
    let Some(name) = layer.words.first().map(|name| base_name(name.text())) else {
        return true;
    };
    NEVER_BY_PATTERN.contains(&name)
        || script(layer.words).is_some()
        || unsettles(layer.words)
        || (name == "find" && !super::find::only_looks(layer))
        || (layer.fed && (SHELLS.contains(&name) || wrapper(name).is_some()))
}

/// `NAME=value`, `NAME+=value` or `NAME[index]=value`.
pub(crate) fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else {
        return false;
    };
    let name = name.strip_suffix('+').unwrap_or(name);
    let name = name.split('[').next().unwrap_or(name);
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
