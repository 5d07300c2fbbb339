//! `CommandView`: a command as rules match it, parsed once per effect.

use haft_command::{TouchedFiles, may_act_by_pattern, only_reads, touched};
use haft_shell::{
    AsWord, Fragments, Layer, Layers, Line, ParseError, alters_shell, base_name, fragments,
    inner_command, is_shell, is_too_long, is_wrapper, join_words, layers, plain_words, push_word,
    script,
};

mod variables;

use crate::commands::folders::RunFolders;
use crate::commands::remembered::parse_line;
use crate::commands::risk::{are_harmless, discards_content};
use haft_files::glob::{Glob, GlobToken};
use haft_files::paths::clean;

/// Maximum nesting of scripts (`sh -c "sh -c …"`) that are inspected.
const MAX_SCRIPT_DEPTH: usize = 8;

/// The kind of allow rule that can cover a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CoverageKind {
    /// Any rule whose pattern matches.
    Pattern,
    /// A rule with exactly this command.
    Exact,
    /// No rule.
    Nothing,
}

/// One simple command, as allow rules match it.
#[derive(Debug)]
struct PartView {
    /// The whole command, and what its wrappers run, both with minimal quoting.
    full: String,
    inner: String,
    reach: CoverageKind,
}

/// A command as rules match it.
#[derive(Debug)]
pub(crate) struct CommandView {
    parts: Vec<PartView>,
    /// Why it could not be parsed.
    pub(crate) unread: Option<ParseError>,
    /// The texts that deny and ask match, in every spelling.
    forms: Vec<String>,
    /// The same for commands with words that are only known at run time: each such word matches any text.
    doubtful: Vec<Glob>,
    /// Files that it names and that rules on files therefore cover, by the folders in which it names them.
    pub(crate) touched: Vec<TouchedIn>,
    /// Whether redirections write files.
    writes: bool,
}

/// Files that commands touch in the same folders.
#[derive(Debug)]
pub(crate) struct TouchedIn {
    /// The folders, for a line that runs at the workspace's root.
    pub(crate) folders: RunFolders,
    /// The files. A target of a redirection counts as edited.
    pub(crate) files: TouchedFiles,
}

impl CommandView {
    /// Parses a command; `argv`, if present, takes precedence over the line.
    pub(crate) fn new(line: &str, argv: Option<&[String]>) -> Self {
        let mut view = Self {
            parts: Vec::new(),
            unread: None,
            forms: Vec::new(),
            doubtful: Vec::new(),
            touched: Vec::new(),
            writes: false,
        };
        if is_too_long(line) {
            view.unread = Some(ParseError::TooLong);
        }
        let read;
        let plain = if argv.is_some() {
            argv
        } else {
            read = plain_words(line);
            read.as_deref()
        };
        let folders = RunFolders::at(".".to_owned());
        if let Some(words) = plain {
            view.add(words, &[], &folders);
            return view;
        }
        match parse_line(line) {
            Ok(line) => {
                for part in &line.commands {
                    view.add(&part.words, &part.assignments, &folders);
                    view.add_assigned(part, &folders, 0);
                }
                view.writes = line.writes.iter().any(|to| !discards_content(&to.text));
                view.add_targets(&line, &folders);
            }
            Err(why) => {
                view.unread = Some(why);
                view.writes = !view.add_fragments(line, &folders, 0);
            }
        }
        view
    }

    /// Marks the command as run under variables that its rules do not show: no allow rule covers it (clause 6).
    pub(crate) fn with_hidden_variables(mut self) -> Self {
        for part in &mut self.parts {
            part.reach = CoverageKind::Nothing;
        }
        self
    }

    /// Returns the kind of allow rule that can cover all of it.
    pub(crate) fn reach(&self) -> CoverageKind {
        let whole = self.unread.is_none() && !self.writes && !self.parts.is_empty();
        let least = self.parts.iter().map(|part| part.reach).max();
        least.filter(|_| whole).unwrap_or(CoverageKind::Nothing)
    }

    /// Whether a pattern without stars matches every part.
    pub(crate) fn all_equal(&self, whole: &Glob) -> bool {
        let fits = |part: &PartView| whole.matches(&part.full) || whole.matches(&part.inner);
        self.reach() < CoverageKind::Nothing && self.parts.iter().all(fits)
    }

    /// Whether this holds for what every part runs, and a pattern may cover all parts.
    pub(crate) fn all_satisfy(&self, fits: impl Fn(&str) -> bool) -> bool {
        self.reach() == CoverageKind::Pattern && self.parts.iter().all(|part| fits(&part.inner))
    }

    /// Whether this holds for any spelling of a part.
    pub(crate) fn any_satisfies(&self, fits: impl Fn(&str) -> bool) -> bool {
        self.forms.iter().any(|form| fits(form))
    }

    /// Whether this could hold for a part once its words are known.
    pub(crate) fn any_could_satisfy(&self, could: impl Fn(&Glob) -> bool) -> bool {
        self.doubtful.iter().any(could)
    }

    /// Whether a word of a part, or a file that it reads, is only known at run time.
    pub(crate) fn is_doubtful(&self) -> bool {
        let is_open =
            |one: &TouchedIn| one.files.is_open() || one.folders.anywhere || one.folders.climbs;
        !self.doubtful.is_empty() || self.touched.iter().any(is_open)
    }

    /// Whether a part runs this program.
    pub(crate) fn runs(&self, name: &str) -> bool {
        let is = |part: &PartView| part.inner.split(' ').next().map(base_name) == Some(name);
        self.parts.iter().any(is)
    }

    fn add<W: AsWord>(&mut self, words: &[W], assigned: &[String], folders: &RunFolders) {
        let all = layers(words);
        let inner = inner_command(words);
        let known = inner.words.first().is_some_and(AsWord::is_known);
        let reach = if !known || !are_harmless(assigned) || all.truncated {
            CoverageKind::Nothing
        } else if may_act_by_pattern(inner) || needs_exact_rule(inner) {
            CoverageKind::Exact
        } else {
            CoverageKind::Pattern
        };
        let full = join(words);
        let mut run = if inner.words.len() == words.len() {
            full.clone()
        } else {
            join(inner.words)
        };
        if inner.fed {
            // No exact rule covers words that are not visible.
            run.push_str(ADDED_WORDS);
        }
        self.parts.push(PartView {
            full,
            inner: run,
            reach,
        });
        self.add_layers(&all, folders, 0);
    }

    /// Adds what a shell runs for a text that it gets, in these folders.
    fn add_script(&mut self, text: &str, folders: &RunFolders, depth: usize) {
        let Ok(read) = parse_line(text) else {
            let anywhere = RunFolders {
                anywhere: true,
                ..folders.clone()
            };
            self.add_fragments(text, &anywhere, depth);
            self.touch(&anywhere, TouchedFiles::unknown());
            return;
        };
        let folders = folders.of_script(&read);
        // A deny sees the text, and what it shows, as it stands there, too.
        self.forms.push(text.trim().to_owned());
        for command in &fragments(text).commands {
            for layer in &layers(command).commands {
                self.add_spellings(layer.words);
            }
        }
        for part in &read.commands {
            self.add_layers(&layers(&part.words), &folders, depth);
            self.add_assigned(part, &folders, depth);
        }
        self.add_targets(&read, &folders);
    }

    /// Adds the commands and targets that a text shows, and returns whether it shows no target.
    fn add_fragments(&mut self, line: &str, folders: &RunFolders, depth: usize) -> bool {
        self.forms.push(line.trim().to_owned());
        let Fragments {
            commands,
            assignments,
            targets,
            reads,
        } = fragments(line);
        self.add_set_by_words(&assignments, folders, depth);
        for command in &commands {
            self.add_layers(&layers(command), folders, depth);
        }
        let named = |paths: &[String]| paths.iter().map(|path| clean(path)).collect();
        let files = TouchedFiles {
            reads: named(&reads),
            edits: named(&targets),
            ..TouchedFiles::default()
        };
        self.touch(folders, files);
        targets.is_empty()
    }

    /// Adds the files that redirections open.
    fn add_targets(&mut self, line: &Line, folders: &RunFolders) {
        let mut files = TouchedFiles::default();
        for (words, paths) in [
            (&line.writes, &mut files.edits),
            (&line.reads, &mut files.reads),
        ] {
            let opened = words.iter().filter(|word| !discards_content(&word.text));
            paths.extend(opened.map(|word| clean(&word.text)));
        }
        let mut opened = line.writes.iter().chain(&line.reads);
        files.unknown = opened.any(|word| !word.is_known());
        self.touch(folders, files);
    }

    fn touch(&mut self, folders: &RunFolders, files: TouchedFiles) {
        if files == TouchedFiles::default() {
            return;
        }
        match self.touched.iter_mut().find(|one| one.folders == *folders) {
            Some(one) => one.files.add(files),
            None => self.touched.push(TouchedIn {
                folders: folders.clone(),
                files,
            }),
        }
    }

    /// Records every spelling of what a command runs, for deny and ask.
    fn add_layers<W: AsWord>(&mut self, all: &Layers<'_, W>, folders: &RunFolders, depth: usize) {
        for layer in &all.commands {
            self.add_spellings(layer.words);
            if !layer.is_known() {
                self.doubtful.push(to_pattern(*layer));
            }
            let files = touched(*layer);
            if files != TouchedFiles::default() {
                self.touch(&folders.behind(layer.folder), files);
            }
        }
        if let Some(whole) = all.commands.first() {
            self.add_set_by_words(whole.words, folders, depth);
        }
        for script in &all.scripts {
            let folders = folders.behind(script.folder);
            if depth < MAX_SCRIPT_DEPTH {
                self.add_script(&script.text, &folders, depth + 1);
            } else {
                self.touch(&folders, TouchedFiles::unknown());
            }
        }
    }

    fn add_spellings<W: AsWord>(&mut self, words: &[W]) {
        let Some((name, rest)) = words.split_first() else {
            return;
        };
        let texts = || rest.iter().map(AsWord::text);
        let both = |name: &str, forms: &mut Vec<String>| {
            let words: Vec<&str> = std::iter::once(name).chain(texts()).collect();
            let quoted = join_words(&words);
            // Quoting only adds characters: without it, both are equal.
            let length = words.iter().map(|word| word.len() + 1).sum::<usize>() - 1;
            forms.extend((quoted.len() != length).then(|| words.join(" ")));
            forms.push(quoted);
        };
        both(name.text(), &mut self.forms);
        if name.text().contains('/') {
            both(base_name(name.text()), &mut self.forms);
        }
    }
}

/// Placeholder for words that a program adds.
const ADDED_WORDS: &str = " $()";

/// Commands that no pattern allows, only a rule with the exact command: clause 7 of the shell rules.
const EXACT_RULE_WRAPPERS: &[&str] = &["watch", "setsid", "ionice", "flock"];

/// Whether only a rule with exactly this command may allow it, not a pattern or a bare tool name.
fn needs_exact_rule<W: AsWord>(layer: Layer<'_, W>) -> bool {
    let Some(name) = layer.words.first().map(|name| base_name(name.text())) else {
        return true;
    };
    EXACT_RULE_WRAPPERS.contains(&name)
        || script(layer.words).is_some()
        || alters_shell(layer.words)
        || (name == "find" && !only_reads(layer))
        || (layer.fed && (is_shell(name) || is_wrapper(name)))
}

/// Returns a pattern for what a command could be: unknown words match any text.
fn to_pattern<W: AsWord>(layer: Layer<'_, W>) -> Glob {
    let mut pieces = Vec::new();
    // An unknown word may expand to no words or several: its star includes the blanks around it.
    let mut before_known = false;
    for word in layer.words {
        let known = layer.knows(word);
        if known {
            pieces.extend(before_known.then_some(GlobToken::Literal(' ')));
            pieces.extend(word.text().chars().map(GlobToken::Literal));
        } else {
            pieces.push(GlobToken::Star);
        }
        before_known = known;
    }
    pieces.extend(layer.fed.then_some(GlobToken::Star));
    Glob::from_pieces(pieces)
}

/// Joins words to one line: known ones with minimal quoting, the others as written. Equal lines mean equal words.
fn join<W: AsWord>(words: &[W]) -> String {
    let mut line = String::new();
    for (at, word) in words.iter().enumerate() {
        let text = word.text();
        if at > 0 {
            line.push(' ');
        }
        if word.is_known() {
            push_word(&mut line, text);
        } else if text.contains([' ', '\t', '\n', '\'']) {
            line.push('"');
            line.push_str(text);
            line.push('"');
        } else {
            line.push_str(text);
        }
    }
    line
}
