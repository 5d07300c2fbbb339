//! The files that a script of `sed` reads and writes.

use crate::script_files::ScriptFiles;

/// Returns the files that a script names; one that is not understood may read any.
pub(super) fn files(script: &str) -> ScriptFiles {
    let mut reader = ScriptReader {
        rest: script,
        found: ScriptFiles::default(),
    };
    match reader.run() {
        Some(()) => reader.found,
        None => ScriptFiles {
            more: true,
            ..reader.found
        },
    }
}

/// A cursor over a script. Each method returns `None` where the script is not understood.
struct ScriptReader<'a> {
    rest: &'a str,
    found: ScriptFiles,
}

impl<'a> ScriptReader<'a> {
    fn run(&mut self) -> Option<()> {
        loop {
            self.skip(|c| c.is_whitespace() || matches!(c, ';' | '}'));
            if self.rest.is_empty() {
                return Some(());
            }
            self.addresses()?;
            self.command()?;
        }
    }

    fn skip(&mut self, skips: impl Fn(char) -> bool) {
        self.rest = self.rest.trim_start_matches(skips);
    }

    fn take(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    /// Returns the rest of the line.
    fn line(&mut self) -> &'a str {
        let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
        self.rest = rest;
        line
    }

    fn blanks(&mut self) {
        self.skip(|c| matches!(c, ' ' | '\t'));
    }

    fn addresses(&mut self) -> Option<()> {
        if self.address(false)? {
            self.blanks();
            if let Some(rest) = self.rest.strip_prefix(',') {
                self.rest = rest;
                self.blanks();
                self.address(true)?.then_some(())?;
            }
        }
        self.skip(|c| matches!(c, ' ' | '\t' | '!'));
        Some(())
    }

    /// Reads one address, and returns whether there is one.
    fn address(&mut self, is_second: bool) -> Option<bool> {
        match self.rest.chars().next()? {
            '$' => {
                self.take();
            }
            '/' => {
                self.take();
                self.until('/', true)?;
                self.skip(|c| matches!(c, 'I' | 'M'));
            }
            '\\' => {
                self.take();
                let end = self.take().filter(|c| !c.is_alphanumeric())?;
                self.until(end, true)?;
                self.skip(|c| matches!(c, 'I' | 'M'));
            }
            c if c.is_ascii_digit() || (is_second && matches!(c, '+' | '~')) => {
                self.skip(|c| c.is_ascii_digit() || matches!(c, '+' | '~'));
            }
            _ => return Some(false),
        }
        Some(true)
    }

    /// Skips a text up to its end. A regular expression may hold the end in brackets.
    fn until(&mut self, end: char, is_regex: bool) -> Option<()> {
        loop {
            match self.take()? {
                c if c == end => return Some(()),
                '\\' => {
                    self.take()?;
                }
                '[' if is_regex => self.bracket()?,
                '\n' if is_regex => return None,
                _ => {}
            }
        }
    }

    /// Skips the rest of a bracket expression.
    fn bracket(&mut self) -> Option<()> {
        self.rest = self.rest.strip_prefix('^').unwrap_or(self.rest);
        self.rest = self.rest.strip_prefix(']').unwrap_or(self.rest);
        loop {
            match self.take()? {
                ']' => return Some(()),
                // Programs differ in whether it quotes here.
                '\\' if self.rest.starts_with(']') => return None,
                '[' => {
                    let kind = self.rest.chars().next()?;
                    if matches!(kind, ':' | '.' | '=') {
                        let end = format!("{kind}]");
                        let at = self.rest[1..].find(&end)?;
                        self.rest = &self.rest[1 + at + 2..];
                    }
                }
                _ => {}
            }
        }
    }

    fn command(&mut self) -> Option<()> {
        match self.take()? {
            '{' | '}' | '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x'
            | 'z' | 'F' => {}
            'l' | 'L' | 'q' | 'Q' => {
                self.blanks();
                self.skip(|c| c.is_ascii_digit());
            }
            // A comment, a version.
            '#' | 'v' => {
                self.line();
            }
            // In some programs the rest of the line belongs to the label, in others it is a command.
            ':' | 'b' | 't' | 'T' => self.label(),
            'a' | 'i' | 'c' => self.text(),
            'r' | 'R' => {
                let path = self.path()?;
                self.found.reads.push(path);
            }
            'w' | 'W' => {
                let path = self.path()?;
                self.found.writes.push(path);
            }
            's' => self.substitution()?,
            'y' => {
                let end = self.take()?;
                self.until(end, false)?;
                self.until(end, false)?;
            }
            // `e` runs a command.
            _ => return None,
        }
        Some(())
    }

    fn substitution(&mut self) -> Option<()> {
        let end = self.take().filter(|c| !matches!(c, '\n' | '\\' | '['))?;
        self.until(end, true)?;
        self.until(end, false)?;
        loop {
            match self.rest.chars().next() {
                Some(c) if c.is_ascii_digit() || "gpiIMm".contains(c) => {
                    self.take();
                }
                Some('w') => {
                    self.take();
                    let path = self.path()?;
                    self.found.writes.push(path);
                    return Some(());
                }
                // It runs the result as a command.
                Some('e') => return None,
                _ => return Some(()),
            }
        }
    }

    /// Returns the file that the rest of the line names.
    fn path(&mut self) -> Option<String> {
        let path = self.line().trim_start();
        (!path.is_empty()).then(|| path.to_owned())
    }

    fn label(&mut self) {
        self.blanks();
        self.skip(|c| !(c.is_whitespace() || matches!(c, ';' | '}')));
    }

    /// Skips lines of text, each but the last with a backslash at its end.
    fn text(&mut self) {
        while self.line().ends_with('\\') {}
    }
}
