//! `Screen`: prints results to stdout and explanations to stderr, with colours only where they have a meaning.

use std::io::{self, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::args::{Color, GlobalOptions};
use crate::exit::Exit;
use haft_app::problem::Problem;

pub(crate) mod list;
pub(crate) mod stdout;
pub(crate) mod visible;

/// The style for denied or failed.
pub(crate) const RED: Style = AnsiColor::Red.on_default();
/// The style for suspended or pending.
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();
/// The style for done.
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
/// The style for details.
pub(crate) const DIM: Style = Style::new().dimmed();
/// The style for the deciding fact.
pub(crate) const BOLD: Style = Style::new().bold();

/// The width, in columns, if that of the terminal is unknown.
const WIDTH: usize = 100;

/// Where a command prints.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Screen {
    /// Whether to print one JSON document on stdout.
    pub(crate) json: bool,
    quiet: bool,
    verbose: u8,
    color: Color,
}

/// Returns text in a style, followed by a reset.
pub(crate) fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

impl Screen {
    /// Creates the screen that the options ask for.
    pub(crate) fn new(options: &GlobalOptions) -> Self {
        Self {
            json: options.json,
            quiet: options.quiet,
            verbose: options.verbose,
            color: options.color,
        }
    }

    /// Creates the screen of a command line that could not be read.
    pub(crate) fn without_options() -> Self {
        Self {
            json: false,
            quiet: false,
            verbose: 0,
            color: Color::Auto,
        }
    }

    fn choice(self, stream: &impl anstream::stream::RawStream) -> ColorChoice {
        match self.color {
            Color::Auto => AutoStream::choice(stream),
            Color::Always => ColorChoice::AlwaysAnsi,
            Color::Never => ColorChoice::Never,
        }
    }

    /// Writes text to stdout.
    pub(crate) fn out(self, text: &str) -> Result<(), Problem> {
        let choice = self.choice(&io::stdout());
        stdout::write(|stdout| AutoStream::new(stdout, choice).write_all(text.as_bytes()))
    }

    /// Writes raw bytes to stdout.
    #[expect(clippy::unused_self, reason = "every way to print is the screen's")]
    pub(crate) fn raw(self, bytes: &[u8]) -> Result<(), Problem> {
        stdout::write(|mut stdout| stdout.write_all(bytes))
    }

    /// Writes one JSON document, on a single line if stdout is not a terminal.
    pub(crate) fn document<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Problem> {
        let text = if is_terminal() {
            serde_json::to_string_pretty(value)
        } else {
            serde_json::to_string(value)
        };
        let text = text.map_err(|e| Problem::failed(format!("cannot print JSON: {e}")))?;
        self.raw(format!("{text}\n").as_bytes())
    }

    /// Prints a line for the user on stderr, unless `--quiet` is set.
    pub(crate) fn say(self, line: &str) {
        if !self.quiet {
            self.err(line);
        }
    }

    /// Prints a detail on stderr if `--verbose` is set.
    pub(crate) fn detail(self, line: &str) {
        if self.verbose > 0 {
            self.err(&styled(DIM, line));
        }
    }

    /// Returns whether `--verbose` is set.
    pub(crate) fn is_verbose(self) -> bool {
        self.verbose > 0
    }

    /// Returns whether stderr is a screen on which a line may be redrawn.
    pub(crate) fn is_lively(self) -> bool {
        !self.quiet
            && self.choice(&io::stderr()) != ColorChoice::Never
            && io::stderr().is_terminal()
    }

    /// Prints a warning, unless `--quiet` is set.
    pub(crate) fn warn(self, line: &str) {
        self.say(&format!("{}: {line}", styled(YELLOW, "warning")));
    }

    /// Prints a line on stderr that is never suppressed.
    pub(crate) fn err(self, line: &str) {
        let choice = self.choice(&io::stderr());
        let mut stream = AutoStream::new(io::stderr().lock(), choice);
        // If stderr is closed, there is nowhere to report.
        let _ = writeln!(stream, "{line}");
    }

    /// Writes text to stderr without a line break at its end.
    pub(crate) fn err_text(self, text: &str) {
        let choice = self.choice(&io::stderr());
        let mut stream = AutoStream::new(io::stderr().lock(), choice);
        // If stderr is closed, there is nowhere to print.
        let _ = stream
            .write_all(text.as_bytes())
            .and_then(|()| stream.flush());
    }

    /// Prints a problem in its three parts and returns its exit code.
    pub(crate) fn problem(self, problem: &Problem) -> Exit {
        let what = visible::line(problem.what());
        self.err(&format!("{}: {what}", styled(RED.bold(), "error")));
        if let Some(place) = problem.place() {
            self.err(&format!("  at {}", visible::line(&place.to_string())));
            if let Some(spot) = place.spot.as_ref().filter(|spot| !spot.text.is_empty()) {
                let (line, marks) = marked(&spot.text, spot.column, spot.width);
                self.err(&format!("    {line}"));
                self.err(&format!("    {}", styled(RED, &marks)));
            }
        }
        if let Some(advice) = problem.advice() {
            self.err(&format!("  {}", visible::line(advice)));
        }
        Exit::from(problem)
    }
}

/// Returns the width of stdout in columns; a default if it is not a terminal.
pub(crate) fn width() -> usize {
    columns_of(io::stdout()).unwrap_or(WIDTH)
}

/// Returns the width of stderr in columns, where requests are shown; a default if it is not a terminal.
pub(crate) fn columns() -> usize {
    columns_of(io::stderr()).unwrap_or(WIDTH)
}

/// Returns the width of a terminal in columns; `None` if the stream is not a terminal, or if the width is below 20: 0
/// means that it was never set.
fn columns_of(stream: impl std::os::fd::AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns >= 20)
}

/// Returns whether stdout is a terminal: lists are clipped for it, but not for pipes.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Returns a line, cut around the spot if it is long, and the marks to print under it.
fn marked(text: &str, column: usize, width: usize) -> (String, String) {
    const SHOWN: usize = 90;
    const BEFORE: usize = 40;
    let from = if column > SHOWN - 10 {
        column - BEFORE
    } else {
        0
    };
    let shown: String = text
        .chars()
        .skip(from)
        .take(SHOWN)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let before: String = shown
        .chars()
        .take(column.saturating_sub(from + 1))
        .collect();
    let here: String = shown
        .chars()
        .skip(before.chars().count())
        .take(width)
        .collect();
    let blank = " ".repeat(visible::columns(&before));
    let marks = "^".repeat(visible::columns(&here).max(1));
    (shown.trim_end().to_owned(), format!("{blank}{marks}"))
}
