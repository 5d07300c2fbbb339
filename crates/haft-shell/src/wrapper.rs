//! Wrappers: commands that run other commands, and how far the rules look through them.

use crate::options::Options;
use crate::word::{AsWord, is_assignment};
use table::{Transparency, Wrapper};

pub use folder::LayerFolder;
pub(crate) use table::wrapper;

mod folder;
mod table;

/// A command as written, or one that a wrapper runs.
#[derive(Debug)]
pub struct Layer<'a, W> {
    /// The words of the command.
    pub words: &'a [W],
    /// True if a program adds words that are not on the line, as `xargs` does.
    pub fed: bool,
    /// The placeholder for such words: `{}` of `find -exec`. If empty, they may replace any word.
    pub(crate) placeholder: Option<&'a str>,
    /// The folder in which it runs.
    pub folder: LayerFolder<'a>,
}

impl<W> Clone for Layer<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Layer<'_, W> {}

impl<'a, W: AsWord> Layer<'a, W> {
    pub(crate) fn new(words: &'a [W]) -> Self {
        Self {
            words,
            fed: false,
            placeholder: None,
            folder: LayerFolder::Same,
        }
    }

    /// Returns the layer that starts at this word.
    pub(crate) fn from(self, at: usize) -> Self {
        Self {
            words: self.words.get(at..).unwrap_or_default(),
            ..self
        }
    }

    /// Returns a layer that may be any command.
    pub(crate) fn unknown(self) -> Self {
        Self {
            words: &[],
            fed: true,
            ..self
        }
    }

    /// Returns true if this word of the command is known before it runs.
    pub fn knows(&self, word: &W) -> bool {
        let replaced = |sign: &str| word.text().contains(sign);
        word.is_known() && !self.placeholder.is_some_and(replaced)
    }

    /// Returns true if the whole command is known before it runs.
    pub fn is_known(&self) -> bool {
        !self.fed && self.words.iter().all(|word| self.knows(word))
    }
}

/// Returns true for the name of a command that runs the command among its words.
pub fn is_wrapper(name: &str) -> bool {
    wrapper(name).is_some()
}

/// Returns the last component of a command name that is written as a path.
pub fn base_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Returns the command inside the wrappers of clause 5, which it unwraps one after another. Leaves a wrapper as it is if it has an
/// unknown option, or a word of its own that is known only at run time.
pub fn inner_command<W: AsWord>(words: &[W]) -> Layer<'_, W> {
    let mut layer = Layer::new(words);
    while let Some(name) = layer.words.first().filter(|name| name.is_known()) {
        let Some(wrapper) = wrapper(name.text()).filter(|w| w.transparency != Transparency::None)
        else {
            break;
        };
        let bare = Wrapper {
            options: Options::NONE,
            ..*wrapper
        };
        let known = if wrapper.transparency == Transparency::Bare {
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

/// Returns the command that a wrapper runs, if every word before it is understood.
pub(crate) fn within<'a, W: AsWord>(
    wrapper: &Wrapper,
    layer: Layer<'a, W>,
) -> Option<Layer<'a, W>> {
    let own = 1 + wrapper.options.count(layer.words.get(1..)?)?;
    let begin = own + wrapper.operands?;
    let operands = layer.words.get(own..begin)?;
    let mut inner = layer.from(begin);
    let given = wrapper.options.split(&layer.words[1..own]);
    inner.folder = layer.folder.behind(wrapper.name, given.as_ref());
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
        inner.placeholder = replacement_text(&layer.words[1..own]).or(inner.placeholder);
        inner.fed = true;
    }
    Some(inner)
}

/// Returns the text that `xargs` replaces with its input, if an option sets one.
fn replacement_text<W: AsWord>(options: &[W]) -> Option<&str> {
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
