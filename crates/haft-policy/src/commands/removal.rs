//! Removals that could destroy a whole system, home or workspace: clause 15 of the shell rules.

use std::cell::OnceCell;

use haft_command::{Bindings, PathShape, removed};
use haft_shell::{AsWord, Expansions, Layer, Line, SimpleCommand, fragments, layers};

use crate::commands::critical_paths::CriticalPaths;
use crate::commands::folders::RunFolders;
use crate::commands::remembered::parse_line;
use crate::judged_call::JudgedCall;
use crate::places::PolicyContext;
use haft_types::permission::{Effect, Permission};

/// Maximum nesting of scripts (`sh -c "sh -c …"`) that are inspected; deeper ones are critical.
const MAX_SCRIPT_DEPTH: usize = 8;
/// The home folder of a user that is not known.
const SOME_HOME: &str = "/home/user";

/// The folders where a removal runs, and what must not be removed there. The folders are computed on first use.
#[derive(Debug)]
pub(crate) struct RemovalContext<'a> {
    places: &'a PolicyContext,
    call: Option<&'a JudgedCall<'a>>,
    folders: OnceCell<RunFolders>,
}

impl<'a> RemovalContext<'a> {
    /// Creates the context of a command that runs at the workspace's root.
    pub(crate) fn root(places: &'a PolicyContext) -> Self {
        Self {
            places,
            call: None,
            folders: OnceCell::new(),
        }
    }

    /// Creates the context of a call, whose commands run in the folders that its `cwd` and each `cd` name.
    pub(crate) fn of(call: &'a JudgedCall<'a>, places: &'a PolicyContext) -> Self {
        Self {
            call: Some(call),
            ..Self::root(places)
        }
    }

    fn folders(&self) -> &RunFolders {
        self.folders.get_or_init(|| {
            self.call
                .map_or_else(|| RunFolders::at(".".to_owned()), RunFolders::of)
        })
    }

    /// Whether its commands may find variables that the line does not set: those of the call, or of a shell that is not haft's own.
    fn inherits(&self) -> bool {
        let Some(call) = self.call else {
            return false;
        };
        let variables = call.value().get("env");
        let is_outside = |one: &Permission| matches!(one.effect, Effect::Run { jailed: false, .. });
        variables.is_some_and(|variables| !variables.is_null())
            || call.permissions.iter().any(is_outside)
    }

    /// Returns the value of `HOME`, unless the call sets it.
    fn home(&self) -> Option<&str> {
        let variables = self.call.and_then(|call| call.value().get("env"));
        let is_set = variables.is_some_and(|variables| variables.get("HOME").is_some());
        (!is_set).then(|| self.places.home.as_deref().unwrap_or(SOME_HOME))
    }
}

/// Whether the words remove a critical path, also within wrappers and in text passed to a shell.
pub(crate) fn removes_critical<W: AsWord>(words: &[W], ground: &RemovalContext<'_>) -> bool {
    Removal {
        ground,
        folders: None,
        depth: 0,
    }
    .of_words(words, &Bindings::NONE)
}

/// Whether a command of a line removes a critical path.
pub(crate) fn part_removes_critical(
    part: &SimpleCommand,
    line: &Line,
    ground: &RemovalContext<'_>,
) -> bool {
    let mut bindings = Bindings::of(line, part).with_home(ground.home());
    if !ground.inherits() {
        bindings = bindings.in_fresh_shell();
    }
    Removal {
        ground,
        folders: None,
        depth: 0,
    }
    .of_words(&part.words, &bindings)
}

/// Whether a line removes a critical path. One that cannot be parsed does if it shows any removal.
pub(crate) fn line_removes_critical(line: &str, ground: &RemovalContext<'_>) -> bool {
    match parse_line(line) {
        Ok(read) => {
            let mut parts = read.commands.iter();
            parts.any(|part| part_removes_critical(part, &read, ground))
        }
        Err(_) => shows_removal(line, 0),
    }
}

/// The search for critical removals: in the line itself, or in a text that a shell gets.
struct Removal<'a> {
    ground: &'a RemovalContext<'a>,
    /// The folders of the text; `None` for those of the line.
    folders: Option<&'a RunFolders>,
    depth: usize,
}

impl Removal<'_> {
    fn of_words<W: AsWord>(&self, words: &[W], bindings: &Bindings<'_>) -> bool {
        let all = layers(words);
        let direct = all.commands.iter().any(|layer| {
            removed(*layer).is_some_and(|words| {
                let mut words = words.into_iter();
                layer.fed || words.any(|word| self.is_critical(*layer, word, bindings))
            })
        });
        let mut scripts = all.scripts.iter();
        direct
            || scripts.any(|script| {
                let folders = self.folders().behind(script.folder);
                self.depth >= MAX_SCRIPT_DEPTH || self.of_script(&script.text, &folders)
            })
    }

    fn folders(&self) -> &RunFolders {
        self.folders.unwrap_or_else(|| self.ground.folders())
    }

    /// Whether a script removes a critical path. It is a command line of its own and may change the folder.
    fn of_script(&self, text: &str, folders: &RunFolders) -> bool {
        let Ok(read) = parse_line(text) else {
            return shows_removal(text, self.depth);
        };
        let inner = Removal {
            ground: self.ground,
            folders: Some(&folders.of_script(&read)),
            depth: self.depth + 1,
        };
        let mut parts = read.commands.iter();
        parts.any(|part| {
            let bindings = Bindings::of(&read, part).with_home(self.ground.home());
            inner.of_words(&part.words, &bindings)
        })
    }

    fn is_critical<W: AsWord>(
        &self,
        layer: Layer<'_, W>,
        word: &W,
        bindings: &Bindings<'_>,
    ) -> bool {
        let folders = self.folders().behind(layer.folder);
        let paths = CriticalPaths::new(self.ground.places, &folders);
        if word.is_known() {
            // A program may replace the word with any path.
            return !layer.knows(word) || paths.hold(word.text());
        }
        if word
            .expansions()
            .intersects(Expansions::OUTPUT | Expansions::TILDE)
        {
            return true;
        }
        let shapes = PathShape::of(word, bindings);
        shapes.iter().any(|shape| paths.may_hold(shape))
    }
}

/// Whether a text that cannot be parsed shows a command that removes something.
fn shows_removal(text: &str, depth: usize) -> bool {
    let seen = fragments(text).commands;
    seen.iter().any(|words| {
        let all = layers(words);
        let mut scripts = all.scripts.iter();
        all.commands.iter().any(|layer| removed(*layer).is_some())
            || scripts
                .any(|script| depth >= MAX_SCRIPT_DEPTH || shows_removal(&script.text, depth + 1))
    })
}
