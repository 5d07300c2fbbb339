//! `docs/performance.md`: the text stays, the parts between its marks are regenerated.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::figures::Figures;
use crate::goals::with_median;
use crate::machine::Machine;

const BEGIN: &str = "<!-- measured: begin -->";
const END: &str = "<!-- measured: end -->";

/// Writes the figures into the page.
pub(crate) fn write(
    path: &Path,
    machine: &Machine,
    figures: &Figures,
    table: &str,
) -> Result<(), String> {
    let page = fs::read_to_string(path).map_err(|e| format!("read {}: {e}", path.display()))?;
    let marks = page.split_once(BEGIN).and_then(|(head, rest)| {
        let (_, tail) = rest.split_once(END)?;
        Some((head, tail))
    });
    let (head, tail) = marks.ok_or_else(|| format!("{} has no marks", path.display()))?;
    let middle = measured(machine, figures, table);
    crate::save(path, &format!("{head}{BEGIN}\n{middle}{END}{tail}"))
}

fn measured(machine: &Machine, figures: &Figures, table: &str) -> String {
    let Machine {
        date,
        processor,
        cores,
        kernel,
        compiler,
        load_before,
        load_after,
    } = machine;
    let mut text = format!(
        "\nMeasured {date} by `make bench` on {processor}, {cores} cores, {kernel}, {compiler}. \
         Load of the last minute: {load_before} before, {load_after} after.\n\n## Goals\n\n{table}\n## Facts\n\n"
    );
    for (member, printed) in &figures.members {
        for (fact, value) in &printed.facts {
            let _ = writeln!(text, "- {member}: {fact}: {value}");
        }
    }
    text.push_str("\n## All series\n\n| measured by | series | best (median) | unit | rounds |\n|---|---|---|---|---|\n");
    for (member, printed) in &figures.members {
        for row in &printed.rows {
            let (name, unit, rounds) = (&row.name, &row.unit, row.rounds.len());
            let figure = with_median(row);
            let _ = writeln!(text, "| {member} | {name} | {figure} | {unit} | {rounds} |");
        }
    }
    text.push('\n');
    text
}
