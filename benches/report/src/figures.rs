//! The rows that the measurements printed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// A line of a measurement: a series or a fact.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Line {
    Row(Row),
    Fact { fact: String, value: String },
}

/// A series: one value per round.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) unit: String,
    pub(crate) rounds: Vec<f64>,
}

impl Row {
    /// Returns the best value of the series: the lowest time, the highest rate, the most memory.
    pub(crate) fn best(&self) -> f64 {
        let values = self.rounds.iter().copied();
        if self.unit == "ns" || self.unit == "us" || self.unit == "ms" {
            values.fold(f64::INFINITY, f64::min)
        } else {
            values.fold(0.0, f64::max)
        }
    }

    /// Returns the median.
    pub(crate) fn median(&self) -> f64 {
        let mut values = self.rounds.clone();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or_default()
    }
}

/// The output of one program, in all its runs.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Printed {
    pub(crate) facts: BTreeMap<String, String>,
    pub(crate) rows: Vec<Row>,
}

/// All figures, by program.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub(crate) members: BTreeMap<String, Printed>,
}

impl Figures {
    /// Adds a program's lines; the rounds of several runs are joined.
    pub(crate) fn take(&mut self, member: &str, lines: &str) -> Result<(), String> {
        let printed = self.members.entry(member.to_owned()).or_default();
        for line in lines.lines() {
            let line: Line =
                serde_json::from_str(line).map_err(|e| format!("{member}: {line:?}: {e}"))?;
            match line {
                Line::Fact { fact, value } => {
                    printed.facts.insert(fact, value);
                }
                Line::Row(row) => match printed.rows.iter_mut().find(|r| r.name == row.name) {
                    Some(known) => known.rounds.extend(row.rounds),
                    None => printed.rows.push(row),
                },
            }
        }
        Ok(())
    }

    /// Returns a series by its name.
    pub(crate) fn row(&self, name: &str) -> Option<&Row> {
        let mut rows = self.members.values().flat_map(|printed| &printed.rows);
        rows.find(|row| row.name == name)
    }

    /// Writes all rounds, one file per program.
    pub(crate) fn keep(&self, folder: &Path) -> Result<(), String> {
        fs::create_dir_all(folder).map_err(|e| format!("make {}: {e}", folder.display()))?;
        for (member, printed) in &self.members {
            let text = serde_json::to_string(printed).map_err(|e| e.to_string())?;
            // One line per series, so that diffs are readable.
            let text = text.replace("{\"name\"", "\n{\"name\"") + "\n";
            crate::save(&folder.join(format!("{member}.json")), &text)?;
        }
        Ok(())
    }
}
