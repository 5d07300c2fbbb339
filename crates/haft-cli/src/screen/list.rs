//! `TextTable`: rows in aligned columns, fitted to the screen; the last column is clipped if it is too long.

use crate::screen::{self, DIM, styled, visible};

/// How a cell is shortened if the row is too wide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Truncation {
    /// Not at all.
    Never,
    /// In the middle: paths, ids.
    Middle,
    /// At the end: sentences.
    End,
}

/// A table of texts.
#[derive(Debug)]
pub(crate) struct TextTable {
    columns: Vec<(&'static str, Truncation)>,
    rows: Vec<Vec<String>>,
}

impl TextTable {
    /// Creates a list with these columns and no rows.
    pub(crate) fn new(columns: &[(&'static str, Truncation)]) -> Self {
        Self {
            columns: columns.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row; control characters are made visible.
    pub(crate) fn row<const N: usize>(&mut self, cells: [&str; N]) {
        self.rows
            .push(cells.iter().map(|cell| visible::line(cell)).collect());
    }

    /// Renders the list; on a screen only up to a limit, with the number of remaining rows.
    pub(crate) fn render(&self) -> String {
        const SCREENFUL: usize = 200;
        let shown = if screen::is_terminal() {
            SCREENFUL
        } else {
            usize::MAX
        };
        let width = if screen::is_terminal() {
            screen::width()
        } else {
            usize::MAX
        };
        let widths = self.widths(width);
        let mut out = String::new();
        let heads: Vec<String> = self
            .columns
            .iter()
            .map(|(head, _)| (*head).to_owned())
            .collect();
        out.push_str(&styled(DIM, &self.line(&heads, &widths)));
        out.push('\n');
        for row in self.rows.iter().take(shown) {
            out.push_str(&self.line(row, &widths));
            out.push('\n');
        }
        if self.rows.len() > shown {
            let more = format!("… {} more; --json lists all", self.rows.len() - shown);
            out.push_str(&styled(DIM, &more));
            out.push('\n');
        }
        out
    }

    fn widths(&self, total: usize) -> Vec<usize> {
        let mut widths: Vec<usize> = (0..self.columns.len())
            .map(|i| {
                let cells = self.rows.iter().filter_map(|row| row.get(i));
                let widest = cells.map(|cell| visible::columns(cell)).max().unwrap_or(0);
                widest.max(self.columns[i].0.len())
            })
            .collect();
        let gaps = 2 * widths.len().saturating_sub(1);
        let mut over = (widths.iter().sum::<usize>() + gaps).saturating_sub(total);
        // Shorten sentences first, then paths.
        for cut in [Truncation::End, Truncation::Middle] {
            for (width, (_, how)) in widths.iter_mut().zip(&self.columns) {
                if *how == cut && over > 0 {
                    let give = over.min(width.saturating_sub(12));
                    *width -= give;
                    over -= give;
                }
            }
        }
        widths
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let mut out = String::new();
        for ((cell, width), (_, cut)) in cells.iter().zip(widths).zip(&self.columns) {
            let cell = match cut {
                Truncation::Never => cell.clone(),
                Truncation::Middle => visible::middle(cell, *width),
                Truncation::End => visible::clipped(cell, *width),
            };
            let pad = width.saturating_sub(visible::columns(&cell));
            out.push_str(&cell);
            out.push_str(&" ".repeat(pad + 2));
        }
        out.trim_end().to_owned()
    }
}
