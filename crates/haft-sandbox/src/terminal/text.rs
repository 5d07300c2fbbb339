//! `ScreenText`: what a program drew on a terminal, as lines of plain text. A line is passed on when it is complete, or when it is asked for.
//!
//! It knows one line, the one that the cursor is in: a progress bar that draws its line a thousand times is one line at its end. A program
//! that moves around on the whole screen is a line for each place that it drew at.

use super::controls::{Control, Controls, Sequence};

/// Maximum characters of a line that is held; a longer one is passed on in pieces.
const LONGEST: usize = 16 << 10;
/// The distance of tab stops.
const TAB: usize = 8;

/// The line under the cursor, and what of it was passed on.
#[derive(Debug, Default)]
pub(super) struct ScreenText {
    controls: Controls,
    line: DrawnLine,
}

#[derive(Debug, Default)]
struct DrawnLine {
    /// The characters of the line, over all rows that it takes.
    cells: Vec<char>,
    /// Where the row of the cursor starts.
    row: usize,
    /// Where the cursor is.
    at: usize,
    /// What was passed on of this line before it was complete.
    shown: String,
    columns: usize,
    /// Complete lines.
    out: String,
}

impl ScreenText {
    /// Creates the text of a terminal with this many columns.
    pub(super) fn new(columns: u16) -> Self {
        let mut text = Self::default();
        text.set_columns(columns);
        text
    }

    pub(super) fn set_columns(&mut self, columns: u16) {
        self.line.columns = usize::from(columns.max(1));
    }

    /// Adds output and returns the lines that it completed.
    pub(super) fn push(&mut self, bytes: &[u8]) -> String {
        let line = &mut self.line;
        self.controls
            .push(bytes, &mut |control| line.draw(&control));
        std::mem::take(&mut line.out)
    }

    /// Returns what is not passed on yet of the line under the cursor.
    pub(super) fn take_line(&mut self) -> String {
        self.line.show();
        std::mem::take(&mut self.line.out)
    }

    /// Returns what is not passed on yet of the line under the cursor, and leaves it there.
    pub(super) fn line(&self) -> String {
        let text: String = self.line.cells.iter().collect();
        match text.strip_prefix(self.line.shown.as_str()) {
            Some(new) => new.to_owned(),
            None => text,
        }
    }

    /// Returns the rest, at the end of the output.
    pub(super) fn finish(&mut self) -> String {
        let line = &mut self.line;
        self.controls
            .end_character(&mut |control| line.draw(&control));
        self.take_line()
    }
}

impl DrawnLine {
    fn draw(&mut self, control: &Control<'_>) {
        match control {
            Control::Text(text) => text.chars().for_each(|c| self.put(c)),
            Control::Byte(b'\n' | 0x0b | 0x0c) => self.end(),
            Control::Byte(b'\r') => self.at = self.row,
            Control::Byte(0x08) => self.at = self.at.saturating_sub(1).max(self.row),
            Control::Byte(b'\t') => {
                let column = (self.at - self.row) / TAB * TAB + TAB;
                let end = self.row + column.min(self.columns);
                while self.at < end {
                    self.put(' ');
                }
            }
            Control::Escape {
                between: [],
                last: b'D' | b'E' | b'M' | b'c',
            } => {
                self.leave(0);
            }
            Control::Sequence(sequence)
                if sequence.prefix.is_none() && sequence.between.is_empty() =>
            {
                self.obey(sequence);
            }
            _ => {}
        }
    }

    fn put(&mut self, c: char) {
        if self.at - self.row >= self.columns {
            self.row = self.at;
        }
        self.pad();
        match self.cells.get_mut(self.at) {
            Some(cell) => *cell = c,
            None => self.cells.push(c),
        }
        self.at += 1;
        if self.cells.len() >= LONGEST {
            self.show();
            self.clear();
        }
    }

    /// Fills the line up to the cursor.
    fn pad(&mut self) {
        if self.cells.len() < self.at {
            self.cells.resize(self.at, ' ');
        }
    }

    fn obey(&mut self, sequence: &Sequence<'_>) {
        let count = usize::from(sequence.first(1));
        let last_column = self.row + self.columns - 1;
        match sequence.last {
            b'C' => self.at = (self.at + count).min(last_column),
            b'D' => self.at = self.at.saturating_sub(count).max(self.row),
            b'G' | b'`' => self.at = (self.row + count - 1).min(last_column),
            b'K' => self.erase(usize::from(sequence.first(0))),
            b'J' if sequence.first(0) == 0 => self.erase(0),
            b'P' => {
                let end = (self.at + count).min(self.cells.len());
                self.cells.drain(self.at.min(end)..end);
            }
            b'@' => {
                self.pad();
                let room = self.columns.saturating_sub(self.at - self.row);
                let blanks = std::iter::repeat_n(' ', count.min(room));
                self.cells.splice(self.at..self.at, blanks);
                self.cells.truncate(LONGEST);
            }
            b'X' => {
                let end = (self.at + count).min(self.cells.len());
                self.cells[self.at.min(end)..end].fill(' ');
            }
            // A line that takes several rows is one line, as an editor of lines draws it.
            b'A' if self.row >= count.saturating_mul(self.columns) => {
                self.row -= count * self.columns;
                self.at -= count * self.columns;
            }
            b'B' if self.row + count.saturating_mul(self.columns) < self.cells.len() => {
                self.row += count * self.columns;
                self.at += count * self.columns;
            }
            b'H' | b'f' => {
                let column = sequence.numbers().nth(1).flatten().unwrap_or(1).max(1);
                self.leave(usize::from(column) - 1);
            }
            b'A' | b'B' | b'd' | b'e' => self.leave(self.at - self.row),
            b'E' | b'F' | b'J' | b'L' | b'M' | b'S' | b'T' => self.leave(0),
            _ => {}
        }
    }

    fn erase(&mut self, part: usize) {
        let end = self.cells.len().min(self.at);
        match part {
            0 => self.cells.truncate(self.at),
            1 => self.cells[self.row.min(end)..end].fill(' '),
            _ => self.cells.truncate(self.row),
        }
    }

    /// Ends the line because the cursor goes elsewhere; a line of which nothing is new is not passed on again.
    fn leave(&mut self, column: usize) {
        if self.cells.iter().any(|c| *c != ' ') {
            self.end();
        } else {
            self.clear();
        }
        self.at = column.min(self.columns - 1);
    }

    fn end(&mut self) {
        self.show();
        self.out.push('\n');
        self.clear();
    }

    fn clear(&mut self) {
        self.cells.clear();
        self.shown.clear();
        (self.row, self.at) = (0, 0);
    }

    /// Passes on the line as it is now; if another text was passed on for it before, as a line of its own.
    fn show(&mut self) {
        let text: String = self.cells.iter().collect();
        if let Some(more) = text.strip_prefix(self.shown.as_str()) {
            self.out.push_str(more);
        } else {
            self.out.push('\n');
            self.out.push_str(&text);
        }
        self.shown = text;
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::{LONGEST, ScreenText};

    #[test]
    fn what_a_program_draws_becomes_lines_of_text() {
        let mut bar = String::new();
        for n in 0..=100 {
            write!(bar, "\rdone {n:3}%").unwrap();
        }
        let rows: &[(&str, &str)] = &[
            ("one\r\ntwo\r\n", "one\ntwo\n"),
            ("\x1b[1;31mred\x1b[0m\tx\r\n", "red     x\n"),
            (&format!("{bar}\r\nend\r\n"), "done 100%\nend\n"),
            ("building\r\x1b[Kok\r\n", "ok\n"),
            ("abc\x08\x08X\r\n", "aXc\n"),
            ("a\x1b]52;c;eA==\x07b\x1b]0;t\x1b\\c\r\n", "abc\n"),
            (
                "\x1b[?25l\x1b[2J\x1b[1;1Htop\x1b[5;3Hbelow\x1b[?25h\r\n",
                "top\n  below\n",
            ),
            ("lost\x1b[2K\rkept\r\n", "kept\n"),
            ("abcdef\x1b[3D\x1b[2P\r\n", "abcf\n"),
            ("abcdef\x1b[4G\x1b[2@\r\n", "abc  def\n"),
            ("x\x1b[5Cy\r\n", "x     y\n"),
            // Wrapped at twenty columns, and drawn again from the row above.
            (
                "0123456789012345678901234\r\x1b[Aab\r\n",
                "ab23456789012345678901234\n",
            ),
            ("\x1b[A\x1b[A", ""),
            ("prompt> ", "prompt> "),
        ];
        for (drawn, expect) in rows {
            for step in [1, 3, usize::MAX] {
                let mut text = ScreenText::new(20);
                let mut got = String::new();
                for piece in drawn.as_bytes().chunks(step.min(drawn.len())) {
                    got += &text.push(piece);
                }
                got += &text.finish();
                assert_eq!(&got, expect, "{drawn:?}");
            }
        }
    }

    #[test]
    fn line_when_it_is_asked_for_is_passed_on_once() {
        let mut text = ScreenText::new(80);
        assert_eq!(text.push(b">>> "), "");
        assert_eq!(
            (text.line(), text.take_line()),
            (">>> ".into(), ">>> ".into())
        );
        assert_eq!(
            (text.line(), text.take_line()),
            (String::new(), String::new())
        );
        assert_eq!(text.push(b"1+1\r\n2\r\n>>> "), "1+1\n2\n");
        assert_eq!(text.take_line(), ">>> ");
        // Drawn anew: another line.
        assert_eq!(text.push(b"\r10%"), "");
        assert_eq!(text.take_line(), "\n10% ");
        assert_eq!(text.push(b"\r20%\r30%"), "");
        assert_eq!(text.finish(), "\n30% ");
    }

    #[test]
    fn line_when_it_never_ends_takes_bounded_memory_and_loses_nothing() {
        let mut text = ScreenText::new(80);
        let mut got = String::new();
        for _ in 0..10_000 {
            got += &text.push(b"0123456789");
            assert!(text.line.cells.len() <= LONGEST);
        }
        got += &text.finish();
        assert_eq!(got, "0123456789".repeat(10_000));
        // Far to the right, again and again.
        for _ in 0..1_000 {
            text.push(b"\x1b[9999C\x1b[9999D\x1b[9999@");
            assert!(text.line.cells.len() <= LONGEST);
        }
    }
}
