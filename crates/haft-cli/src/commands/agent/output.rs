//! The output of a running call, as complete lines to be shown below the call.

/// Maximum length of an unfinished line in bytes.
const LONGEST: usize = 4096;

/// The unfinished line at the end of a call's output.
#[derive(Debug, Default)]
pub(super) struct UnfinishedLine(String);

impl UnfinishedLine {
    /// Takes output; returns the lines that are complete now. Of a line that was overwritten, like a progress bar, it keeps the last state.
    pub(super) fn take(&mut self, text: &str) -> Vec<String> {
        self.0.push_str(text);
        let mut lines = Vec::new();
        while let Some(at) = self.0.find('\n') {
            let rest = self.0.split_off(at + 1);
            lines.push(last_state(&self.0));
            self.0 = rest;
        }
        if self.0.len() > LONGEST {
            lines.extend(self.rest());
        }
        lines
    }

    /// Returns what is left at the end.
    pub(super) fn rest(&mut self) -> Option<String> {
        let rest = std::mem::take(&mut self.0);
        (!rest.is_empty()).then(|| last_state(&rest))
    }
}

fn last_state(line: &str) -> String {
    let line = line.trim_end_matches(['\r', '\n']);
    line.rsplit('\r').next().unwrap_or(line).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_comes_as_whole_lines_however_it_was_cut() {
        let rows: [(&[&str], &[&str]); 5] = [
            (&["a\nb\n"], &["a", "b"]),
            (&["a", "b\nc", ""], &["ab", "c"]),
            (&["10 %\r50 %", "\r100 %\r\n"], &["100 %"]),
            (&["\n\n"], &["", ""]),
            (&[], &[]),
        ];
        for (pieces, expect) in rows {
            let mut partial = UnfinishedLine::default();
            let mut lines: Vec<String> = pieces
                .iter()
                .flat_map(|piece| partial.take(piece))
                .collect();
            lines.extend(partial.rest());
            assert_eq!(lines, expect, "{pieces:?}");
        }
        let mut partial = UnfinishedLine::default();
        assert_eq!(partial.take(&"x".repeat(LONGEST + 1)).len(), 1);
    }
}
