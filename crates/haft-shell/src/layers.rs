//! `Layers`: every command that a command may end up running: itself, the commands of its wrappers, and texts passed to a shell.

use crate::builtin::{evaluates, evaluates_unknown, queries};
use crate::word::AsWord;
use crate::wrapper::{Layer, LayerFolder, base_name, within, wrapper};

/// Shells that run the text after `-c`.
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "ash"];

/// Returns true for the name of a shell that runs the text after `-c`.
pub fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name)
}

/// Maximum number of commands followed for one command; if there are more, [`Layers::truncated`] is set.
const MAX_LAYERS: usize = 64;

/// Every command that a command may end up running.
#[derive(Debug)]
pub struct Layers<'a, W> {
    /// The command itself, and what each known or likely wrapper would run.
    pub commands: Vec<Layer<'a, W>>,
    /// Texts passed to a shell.
    pub scripts: Vec<ShellText<'a>>,
    /// True if there are more commands than [`layers`] follows.
    pub truncated: bool,
}

/// A text passed to a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellText<'a> {
    /// The text.
    pub text: String,
    /// The folder in which the shell starts.
    pub folder: LayerFolder<'a>,
}

/// Follows every known or likely wrapper and collects the texts passed to a shell. It errs towards finding too much, so use its
/// result to decide what to forbid, not what to allow.
pub fn layers<W: AsWord>(words: &[W]) -> Layers<'_, W> {
    let mut found = Layers {
        commands: Vec::new(),
        scripts: Vec::new(),
        truncated: false,
    };
    found.add_layer(Layer::new(words));
    found
}

impl<'a, W: AsWord> Layers<'a, W> {
    fn add_layer(&mut self, layer: Layer<'a, W>) {
        if self.commands.len() >= MAX_LAYERS {
            self.truncated = true;
            return;
        }
        self.commands.push(layer);
        let Some((name, rest)) = layer.words.split_first() else {
            return;
        };
        let name = base_name(name.text());
        self.add_scripts(script(layer.words), layer.folder);
        let hands_on = matches!(name, "find" | "eval") || SHELLS.contains(&name);
        if (hands_on && !layer.is_known()) || evaluates_unknown(layer.words) {
            // An unknown word may name the command to run.
            self.commands.push(layer.unknown());
        }
        if name == "find" {
            for inner in find_commands(layer) {
                self.add_layer(inner);
            }
        }
        if evaluates(layer.words) {
            let texts = rest.iter().map(AsWord::text);
            let texts = texts.filter(|text| text.contains([' ', '\t', '\n', '$', '`']));
            // `alias NAME=TEXT`.
            let named = texts.clone().filter(|_| name == "alias");
            let named = named.filter_map(|text| Some(text.split_once('=')?.1));
            let texts = texts.chain(named).map(str::to_owned);
            self.add_scripts(texts, layer.folder);
        }
        let Some(wrapper) = wrapper(name) else {
            return;
        };
        if rest.is_empty() && !layer.fed || name == "command" && queries(rest) {
            return;
        }
        match within(wrapper, layer) {
            Some(inner) if name == "watch" => {
                self.add_scripts(rest.iter().flat_map(command_line_parts), layer.folder);
                self.add_layer(inner);
            }
            Some(inner) => self.add_layer(inner),
            None => self.every_suffix(Layer {
                folder: layer.folder.behind::<W>(wrapper.name, None),
                ..layer
            }),
        }
    }

    fn add_scripts(&mut self, texts: impl IntoIterator<Item = String>, folder: LayerFolder<'a>) {
        let scripts = texts.into_iter().map(|text| ShellText { text, folder });
        self.scripts.extend(scripts);
    }

    /// Adds each suffix of an unparsed wrapper: any of its words may begin the command that it runs, or be a command line.
    fn every_suffix(&mut self, layer: Layer<'a, W>) {
        let mut layer = layer;
        for (at, word) in layer.words.iter().enumerate() {
            let text = word.text();
            if base_name(text) == "xargs" {
                layer.fed = true;
                layer.placeholder = Some("");
            }
            let parts = command_line_parts(word);
            if base_name(layer.words[0].text()) == "env" {
                // `env -S TEXT`: the text may begin with options of its own.
                let parts = parts.iter().map(String::as_str);
                let whole = Some(text).filter(|text| text.contains([' ', '\t', '\n']));
                let again = parts.chain(whole).map(|part| format!("env {part}"));
                self.add_scripts(again, layer.folder);
            }
            self.add_scripts(parts, layer.folder);
            if at == 0 || text.starts_with('-') {
                continue;
            }
            if self.commands.len() >= MAX_LAYERS {
                self.truncated = true;
                return;
            }
            self.commands.push(layer.from(at));
        }
        if layer.fed {
            self.commands.push(layer.unknown());
        }
    }
}

/// Returns the commands that `find` runs for each file.
fn find_commands<W: AsWord>(layer: Layer<'_, W>) -> Vec<Layer<'_, W>> {
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
            // In the folder of the file, if it is one of `-execdir` and `-okdir`.
            folder: if layer.words[at].text().ends_with("dir") {
                LayerFolder::Anywhere
            } else {
                layer.folder
            },
            ..layer
        }
    });
    inner.collect()
}

/// Returns the parts of a word that may be a command line, including those after an option's letter or name.
fn command_line_parts<W: AsWord>(word: &W) -> Vec<String> {
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

/// Returns the text that a command passes to a shell: `sh -c TEXT`, `eval TEXT…`.
pub fn script<W: AsWord>(words: &[W]) -> Option<String> {
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
    // The name of an option (`-o NAME`) may come before the text.
    let named = behind.iter().take_while(|word| is_option(word));
    let named = rest[flag..=flag]
        .iter()
        .chain(named)
        .any(|word| word.text().ends_with(['o', 'O']));
    let text = text.map_or(behind.len(), |at| at + usize::from(named));
    Some(join(behind.get(text..).unwrap_or_default()))
}
