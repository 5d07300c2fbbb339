//! `named_programs`: which program of a line a request names where one of its processes connects or uses a login.

use haft::policy::{CommandLine, CommandPart};
use haft::spec::Risk;

/// Maximum number of programs that are named.
const NAMED: usize = 3;
/// Commands of shells that connect to nothing.
const OF_SHELLS: &[&str] = &[
    ".", ":", "[", "[[", "alias", "break", "cd", "continue", "declare", "echo", "exit", "export",
    "false", "hash", "local", "popd", "printf", "pushd", "pwd", "read", "readonly", "return",
    "set", "shift", "shopt", "source", "test", "trap", "true", "type", "ulimit", "umask",
    "unalias", "unset", "wait",
];

/// Returns the programs of a line that may connect: haft does not look for the process, so it leaves out what only reads and what the
/// shell does itself.
pub(super) fn named_programs(line: &str) -> String {
    let read = CommandLine::new(line);
    let all = || read.parts.iter().filter_map(CommandPart::program);
    let connects = |part: &&CommandPart| part.risk != Risk::Safe;
    let mut named: Vec<&str> = Vec::new();
    let programs = read.parts.iter().filter(connects);
    for program in programs.filter_map(CommandPart::program) {
        if !OF_SHELLS.contains(&program) && !named.contains(&program) {
            named.push(program);
        }
    }
    let more = named.len() > NAMED;
    named.truncate(NAMED);
    if more {
        named.push("another program of the line");
    }
    match named.len() {
        0 => all().next().unwrap_or("bash").to_owned(),
        _ => named.join(" or "),
    }
}

#[cfg(test)]
mod tests {
    use super::named_programs;

    #[test]
    fn the_programs_of_a_line_that_may_connect_are_named() {
        for (line, expect) in [
            ("npm install", "npm"),
            (". venv/bin/activate && pip install -q pytest", "pip"),
            ("source venv/bin/activate; cd sub && pip install x", "pip"),
            (
                "python3 -m venv .venv && . .venv/bin/activate && pip install x",
                "python3 or pip",
            ),
            ("timeout 5 curl -s https://a.example/x", "curl"),
            ("cat list.txt; git fetch && git pull", "git"),
            (
                "a; b; c; d; e",
                "a or b or c or another program of the line",
            ),
            ("echo", "echo"),
            ("", "bash"),
        ] {
            assert_eq!(named_programs(line), expect, "{line}");
        }
    }
}
