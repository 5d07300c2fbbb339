//! The table that each program's file checks: what the command of a line means.

use haft_shell::{AsWord as _, inner_command, parse};

use crate::programs::meaning;

/// Checks lines and what their command means, as text.
pub(crate) fn check(rows: &[(&str, &str)]) {
    let wrong = rows.iter().filter(|(line, expect)| text(line) != *expect);
    let wrong: Vec<String> = wrong
        .map(|(line, _)| format!("{line}: {}", text(line)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns whether the first command of a line shows the files that it names.
pub(crate) fn shows_files(line: &str) -> bool {
    let read = parse(line).unwrap();
    meaning(inner_command(&read.commands[0].words)).shows
}

fn text(line: &str) -> String {
    let read = parse(line).unwrap();
    let name = line.split(' ').next();
    // Commands in substitutions are commands of their own.
    let mut commands = read.commands.iter();
    let command = commands.find(|one| one.text.split(' ').next() == name);
    let command = command.unwrap();
    let layer = inner_command(&command.words);
    let found = meaning(layer);
    let mut says: Vec<String> = Vec::new();
    let mut note = |holds: bool, text: &str| says.extend(holds.then(|| text.to_owned()));
    note(found.only_reads, "only reads");
    for one in &found.uses {
        note(true, &format!("{:?} {}", one.how, one.path));
    }
    let destroys = found
        .destroys
        .iter()
        .flatten()
        .map(|at| layer.words[*at].text());
    let destroys: Vec<&str> = destroys.collect();
    note(
        !destroys.is_empty(),
        &format!("destroys {}", destroys.join(" ")),
    );
    note(found.links, "links");
    note(found.globs_output, "globs output");
    note(found.prints_words, "prints words");
    note(found.shows_more, "shows more");
    note(found.unknown, "unknown");
    if says.is_empty() {
        return "nothing".to_owned();
    }
    says.join(", ")
}
