//! `CommandView`: a command as rules match it, taken apart once an effect.

use super::command::{Touched, harmless, touched};
use super::fragments::{Fragments, fragments};
use super::glob::{Glob, Piece};
use super::paths::clean;
use super::shell::{Open, Simple, Unread, Word, take_apart};
use super::words::{join_words, plain_words};
use super::wrapper::{
    base_name, is_too_deep, layers, needs_exact_rule, prefix_of, script, unwrapped,
};

/// Scripts within scripts (`sh -c "sh -c …"`) that are looked into.
const DEEPEST_SCRIPT: usize = 8;

/// Programs with options that write or run something: a pattern of files among their words could become one.
const GLOB_SHY: &[&str] = &["find", "sort", "sed", "git"];

/// What an allow must look like to cover a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    /// Any rule whose pattern fits.
    Pattern,
    /// A rule with exactly this command.
    Exact,
    /// No rule covers it.
    Nothing,
}

/// One simple command, as an allow matches it.
#[derive(Debug)]
struct PartView {
    /// As it is, and what its wrappers run; in the least quoting.
    full: String,
    inner: String,
    reach: Reach,
}

/// A command as rules match it.
#[derive(Debug)]
pub(crate) struct CommandView {
    parts: Vec<PartView>,
    /// Why it could not be taken apart.
    pub(crate) unread: Option<Unread>,
    /// What deny and ask match, in every spelling.
    forms: Vec<String>,
    /// The same for commands with words that are only known at run time: each stands for any text.
    doubtful: Vec<Glob>,
    /// Files it names where file rules speak of commands.
    pub(crate) touched: Touched,
    /// Targets of redirections, where they can be seen.
    pub(crate) targets: Vec<String>,
}

impl CommandView {
    /// Looks at a command; `argv` wins over the line where there is one.
    pub(crate) fn new(line: &str, argv: Option<&[String]>) -> Self {
        let mut view = Self {
            parts: Vec::new(),
            unread: None,
            forms: Vec::new(),
            doubtful: Vec::new(),
            touched: Touched::default(),
            targets: Vec::new(),
        };
        let read;
        let plain = if argv.is_some() {
            argv
        } else {
            read = plain_words(line);
            read.as_deref()
        };
        if let Some(words) = plain {
            view.add_plain(words);
            return view;
        }
        match take_apart(line) {
            Ok(line) => {
                line.parts.iter().for_each(|part| view.add(part));
                let targets = line.writes.iter().map(|target| clean(&target.text));
                view.targets
                    .extend(targets.filter(|path| path != "/dev/null"));
            }
            Err(why) => {
                view.unread = Some(why);
                view.look_at_line(line, 0);
            }
        }
        view
    }

    /// The same command under variables that its rules do not show: no allow covers it (clause 6).
    pub(crate) fn out_of_reach(mut self) -> Self {
        for part in &mut self.parts {
            part.reach = Reach::Nothing;
        }
        self
    }

    /// What an allow must look like to cover all of it.
    pub(crate) fn reach(&self) -> Reach {
        let whole = self.unread.is_none() && self.targets.is_empty() && !self.parts.is_empty();
        let least = self.parts.iter().map(|part| part.reach).max();
        least.filter(|_| whole).unwrap_or(Reach::Nothing)
    }

    /// Does a pattern without stars fit every part?
    pub(crate) fn all_are(&self, whole: &Glob) -> bool {
        let fits = |part: &PartView| whole.matches(&part.full) || whole.matches(&part.inner);
        self.reach() < Reach::Nothing && self.parts.iter().all(fits)
    }

    /// Does this hold of what every part runs, and may a pattern speak of them?
    pub(crate) fn all_fit(&self, fits: impl Fn(&str) -> bool) -> bool {
        self.reach() == Reach::Pattern && self.parts.iter().all(|part| fits(&part.inner))
    }

    /// Does this hold of a spelling of a part?
    pub(crate) fn any_fits(&self, fits: impl Fn(&str) -> bool) -> bool {
        self.forms.iter().any(|form| fits(form))
    }

    /// Could this hold of a part, once its words are known?
    pub(crate) fn any_could(&self, could: impl Fn(&Glob) -> bool) -> bool {
        self.doubtful.iter().any(could)
    }

    /// Is a word of a part only known at run time?
    pub(crate) fn is_doubtful(&self) -> bool {
        !self.doubtful.is_empty()
    }

    /// Does a part run this program?
    pub(crate) fn runs(&self, name: &str) -> bool {
        let is = |part: &PartView| part.inner.split(' ').next() == Some(name);
        self.parts.iter().any(is)
    }

    fn add_plain(&mut self, words: &[String]) {
        let inner = unwrapped(words);
        let reach = if words.is_empty() || is_too_deep(words) {
            Reach::Nothing
        } else if needs_exact_rule(inner) {
            Reach::Exact
        } else {
            Reach::Pattern
        };
        self.parts.push(PartView {
            full: join_words(words),
            inner: join_words(inner),
            reach,
        });
        self.look_at(words, 0);
    }

    fn add(&mut self, part: &Simple) {
        let texts: Vec<String> = part.words.iter().map(|word| word.text.clone()).collect();
        let inner = &part.words[prefix_of(&part.words)..];
        let plain = &texts[texts.len() - inner.len()..];
        let mut open = Open::NOTHING;
        for word in inner {
            open |= word.open;
        }
        let shy = open.has(Open::GLOB | Open::BRACE)
            && inner
                .first()
                .is_some_and(|name| GLOB_SHY.contains(&base_name(&name.text)));
        let known = inner.first().is_some_and(|name| name.open.is_nothing());
        let reach = if !known || !harmless(&part.assigned) || is_too_deep(&texts) {
            Reach::Nothing
        } else if shy || needs_exact_rule(plain) {
            Reach::Exact
        } else {
            Reach::Pattern
        };
        self.parts.push(PartView {
            full: join_read(&part.words),
            inner: join_read(inner),
            reach,
        });
        self.look_at(&texts, 0);
        if part.words.iter().any(|word| !word.open.is_nothing()) {
            self.doubt(&part.words, &texts);
        }
    }

    /// Notes what the part could be, for each wrapper that is looked through.
    fn doubt(&mut self, words: &[Word], texts: &[String]) {
        for layer in layers(texts) {
            let from = texts.len() - layer.len();
            let mut pieces = Vec::new();
            // An unknown word may be none or several: the blanks around it are its own.
            let mut before_known = false;
            for word in &words[from..] {
                if word.open.is_nothing() {
                    pieces.extend(before_known.then_some(Piece::Literal(' ')));
                    pieces.extend(word.text.chars().map(Piece::Literal));
                } else {
                    pieces.push(Piece::Star);
                }
                before_known = word.open.is_nothing();
            }
            self.doubtful.push(Glob::from_pieces(pieces));
        }
        self.touched.unknown |= layers(texts).into_iter().any(|layer| {
            let from = texts.len() - layer.len();
            let open = words[from..].iter().any(|word| !word.open.is_nothing());
            open && layer
                .first()
                .is_some_and(|name| super::command::prints(name))
        });
    }

    fn look_at_line(&mut self, line: &str, depth: usize) {
        self.forms.push(line.trim().to_owned());
        let Fragments { commands, targets } = fragments(line);
        for command in &commands {
            self.look_at(command, depth);
        }
        self.targets
            .extend(targets.iter().map(|target| clean(target)));
    }

    fn look_at(&mut self, words: &[String], depth: usize) {
        for layer in layers(words) {
            let (quoted, bare) = (join_words(layer), layer.join(" "));
            if quoted != bare {
                self.forms.push(bare);
            }
            self.forms.push(quoted);
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

/// Words as one line: known ones in the least quoting, the others as they are written. Equal lines mean equal words.
fn join_read(words: &[Word]) -> String {
    let mut line = String::new();
    for (at, word) in words.iter().enumerate() {
        if at > 0 {
            line.push(' ');
        }
        if word.open.is_nothing() {
            line.push_str(&join_words(&[&word.text]));
        } else if word.text.contains([' ', '\t', '\n', '\'']) {
            line.push('"');
            line.push_str(&word.text);
            line.push('"');
        } else {
            line.push_str(&word.text);
        }
    }
    line
}
