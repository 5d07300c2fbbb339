//! `OwnCommands`: keeps callers whose calls haft judges from running haft's own commands.

use haft_shell::{AsWord, base_name, fragments, layers, may_spell, plain_words};

use crate::commands::remembered::parse_line;
use crate::guards::{Guard, MinimumVerdict};
use crate::judged_call::JudgedCall;
use haft_types::permission::{Effect, Permission};

/// The name of haft's program.
const HAFT: &str = "haft";
/// Programs that end other programs by name.
const KILL_PROGRAMS: &[&str] = &["pkill", "killall", "systemctl", "launchctl", "service"];
/// Maximum nesting of scripts (`sh -c "sh -c …"`) that are inspected; deeper ones count as haft.
const MAX_SCRIPT_DEPTH: usize = 8;

/// Requires approval of starting or ending haft outside a jail: an agent could approve its own requests, trust a folder or remove its
/// hook. In a jail, haft's state is not visible.
#[derive(Debug, Clone, Copy)]
pub struct OwnCommands;

impl Guard for OwnCommands {
    fn name(&self) -> &'static str {
        "own-commands"
    }

    fn concerns(&self, effect: &Effect) -> bool {
        matches!(effect, Effect::Run { jailed: false, .. })
    }

    fn floor(
        &self,
        _call: &JudgedCall<'_>,
        permission: &Permission,
    ) -> Result<MinimumVerdict, String> {
        let Effect::Run { command, argv, .. } = &permission.effect else {
            return Ok(MinimumVerdict::NONE);
        };
        let runs = match argv {
            Some(words) => words_end_haft(words, 0),
            None => line_ends_haft(command, 0),
        };
        Ok(if runs {
            MinimumVerdict::ask("it runs or ends haft itself, which judges this call")
        } else {
            MinimumVerdict::NONE
        })
    }
}

fn line_ends_haft(line: &str, depth: usize) -> bool {
    if !may_spell(line, HAFT) {
        return false;
    }
    if let Some(words) = plain_words(line) {
        return words_end_haft(&words, depth);
    }
    match parse_line(line) {
        Ok(read) => read
            .commands
            .iter()
            .any(|part| words_end_haft(&part.words, depth)),
        Err(_) => fragments(line)
            .commands
            .iter()
            .any(|words| words_end_haft(words, depth)),
    }
}

fn words_end_haft<W: AsWord>(words: &[W], depth: usize) -> bool {
    let all = layers(words);
    let direct = all.commands.iter().any(|layer| {
        let Some((name, rest)) = layer.words.split_first() else {
            return false;
        };
        let name = base_name(name.text());
        name == HAFT
            || (KILL_PROGRAMS.contains(&name) && rest.iter().any(|word| word.text().contains(HAFT)))
    });
    let mut scripts = all.scripts.iter();
    direct
        || scripts
            .any(|script| depth >= MAX_SCRIPT_DEPTH || line_ends_haft(&script.text, depth + 1))
}
