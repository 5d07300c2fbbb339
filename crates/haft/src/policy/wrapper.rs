//! Commands that run other commands: which are looked through, and how far.

use super::shell::Word;

/// Shells that run the text after `-c`.
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "ash"];

/// Commands that no pattern allows, only a rule with the exact command: clause 7 of the shell rules.
const NEVER_BY_PATTERN: &[&str] = &["watch", "setsid", "ionice", "flock"];

/// Tests and actions of `find` that run, write or delete.
pub(crate) const FIND_ACTIONS: &[&str] = &[
    "-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls",
];

/// Seen through by deny and ask alone, beside those of clause 5.
const RUNS_OTHERS: &[&str] = &[
    "env", "sudo", "doas", "exec", "setsid", "ionice", "watch", "busybox", "chroot", "unshare",
];

/// Wrappers within wrappers that are looked through; a command with more is asked about.
const MOST_LAYERS: usize = 32;

/// The last part of a command name written as a path.
pub(crate) fn base_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// The command within `timeout time nice nohup stdbuf command builtin noglob` and bare `xargs`, one after another; a form
/// with an option that is not known stays as it is (clause 5).
pub(crate) fn unwrapped(words: &[String]) -> &[String] {
    let mut words = words;
    while let Some(inner) = inner(words) {
        words = inner;
    }
    words
}

/// How many words of a command are wrappers that are looked through; none where one of them is only known at run time.
pub(crate) fn prefix_of(words: &[Word]) -> usize {
    let texts: Vec<String> = words.iter().map(|word| word.text.clone()).collect();
    let length = words.len() - unwrapped(&texts).len();
    let known = words[..length].iter().all(|word| word.open.is_nothing());
    if known { length } else { 0 }
}

/// Every command that deny and ask must look at: the words themselves and what each wrapper, known or likely, would run.
pub(crate) fn layers(words: &[String]) -> Vec<&[String]> {
    let mut found = vec![words];
    let mut words = words;
    while let Some(next) = inner(words).or_else(|| loosely_inner(words)) {
        if found.len() > MOST_LAYERS {
            break;
        }
        found.push(next);
        words = next;
    }
    found
}

/// Are there more wrappers than are looked through?
pub(crate) fn is_too_deep(words: &[String]) -> bool {
    layers(words).len() > MOST_LAYERS
}

/// Text that a command hands to a shell: `sh -c TEXT`, `eval TEXT…`.
pub(crate) fn script(words: &[String]) -> Option<String> {
    let (name, rest) = words.split_first()?;
    let name = base_name(name);
    if name == "eval" {
        return Some(rest.join(" "));
    }
    if !SHELLS.contains(&name) {
        return None;
    }
    let flag = rest
        .iter()
        .position(|w| w.starts_with(['-', '+']) && !w.starts_with("--") && w.contains('c'))?;
    Some(rest[flag + 1..].join(" "))
}

/// A command that a pattern or a bare tool name may not allow, only a rule with exactly this command.
pub(crate) fn needs_exact_rule(words: &[String]) -> bool {
    let Some(name) = words.first().map(|name| base_name(name)) else {
        return true;
    };
    NEVER_BY_PATTERN.contains(&name)
        || script(words).is_some()
        || (name == "find" && words.iter().any(|w| FIND_ACTIONS.contains(&w.as_str())))
}

/// What a wrapper of clause 5 runs, where its options are known.
fn inner(words: &[String]) -> Option<&[String]> {
    let (name, rest) = words.split_first()?;
    let rest = match name.as_str() {
        "timeout" => {
            let rest = options(rest, &["-k", "-s", "--kill-after", "--signal"], &|w| {
                ["--kill-after=", "--signal=", "-k", "-s"]
                    .iter()
                    .any(|p| w.starts_with(p))
                    || ["--preserve-status", "--foreground", "--verbose", "-v"].contains(&w)
            })?;
            let (duration, rest) = rest.split_first()?;
            is_duration(duration).then_some(rest)?
        }
        "nice" => options(rest, &["-n", "--adjustment"], &|w| {
            w.starts_with("--adjustment=") || w[1..].trim_start_matches('n').parse::<i8>().is_ok()
        })?,
        "stdbuf" => options(rest, &["-i", "-o", "-e"], &|w| {
            ["-i", "-o", "-e", "--input=", "--output=", "--error="]
                .iter()
                .any(|p| w.starts_with(p))
        })?,
        "time" => options(rest, &[], &|w| w == "-p")?,
        "nohup" | "command" | "builtin" | "noglob" | "xargs" => rest,
        _ => return None,
    };
    rest.first()
        .is_some_and(|w| !w.starts_with('-'))
        .then_some(rest)
}

/// Skips leading options: those of `with_value` as a word of their own take the next word; any other must be `known`.
fn options<'a>(
    words: &'a [String],
    with_value: &[&str],
    known: &dyn Fn(&str) -> bool,
) -> Option<&'a [String]> {
    let mut words = words;
    while let Some((first, rest)) = words.split_first() {
        if !first.starts_with('-') || first.len() < 2 {
            break;
        }
        words = if with_value.contains(&first.as_str()) {
            rest.get(1..)?
        } else if known(first) {
            rest
        } else {
            return None;
        };
    }
    Some(words)
}

fn is_duration(word: &str) -> bool {
    let number = word.strip_suffix(['s', 'm', 'h', 'd']).unwrap_or(word);
    number.parse::<f64>().is_ok_and(f64::is_finite)
}

/// What a wrapper probably runs: the first word that is no option, no assignment and no number.
fn loosely_inner(words: &[String]) -> Option<&[String]> {
    let (name, rest) = words.split_first()?;
    let name = base_name(name);
    let wraps = RUNS_OTHERS.contains(&name)
        || matches!(name, "timeout" | "time" | "nice" | "nohup" | "stdbuf")
        || matches!(name, "command" | "builtin" | "noglob" | "xargs");
    let at = rest
        .iter()
        .position(|w| !w.starts_with('-') && !is_assignment(w) && !is_duration(w) && w != "{}")?;
    wraps.then(|| &rest[at..])
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
