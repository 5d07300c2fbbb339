//! `Cards`: shows a run to the user: the model's text on stdout as it arrives, and on stderr one line per call, with its output.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

use haft::audit::redact::Redactor;
use haft::call::{CallId, RunId};
use haft::progress::{ProgressEvent, ProgressSink};
use haft::result::{Outcome, PartMark, milliseconds};
use haft_agent::{AgentEvent, RunEnd, RunResult, Spending, Watcher};
use haft_app::argument;
use haft_app::problem::Problem;
use haft_app::view::when;
use haft_wire::Delta;
use parking_lot::Mutex;

use super::output::UnfinishedLine;
use super::view::RunView;
use super::waiting::WaitingLine;
use crate::commands::call::{colour, excerpt};
use crate::screen::{self, DIM, GREEN, RED, Screen, YELLOW, is_terminal, styled, visible};
use crate::terminal::typed::TypedLines;

/// How often the waiting line is updated.
const TICK: Duration = Duration::from_millis(120);
/// Columns of a call's status.
const STATUS: usize = 9;
/// Maximum number of lines shown of a failure.
const REASON: usize = 3;

/// Shows a run to the user.
pub(super) struct Cards {
    screen: Screen,
    redactor: Redactor,
    /// Whether text goes to stdout as it arrives, for a terminal; otherwise stdout gets only the answer.
    streams: bool,
    /// Whether the user sees what tools print.
    watched: bool,
    state: Mutex<CardsState>,
}

#[derive(Debug)]
struct CardsState {
    run: String,
    model: String,
    works: bool,
    last_printed: LastPrint,
    /// Text that is the answer unless calls follow.
    text: Option<String>,
    calls: HashMap<CallId, RunningCall>,
    /// The call whose output was printed last.
    last: Option<CallId>,
    waiting: WaitingLine,
}

/// What was printed last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastPrint {
    /// A complete line of the model's text, or nothing yet.
    Line,
    /// The beginning of a line of the model's text.
    Beginning,
    /// Output of a call: text after it starts a paragraph.
    Call,
}

/// A running call.
#[derive(Debug)]
struct RunningCall {
    /// The tool and its most informative argument.
    head: String,
    stdout: UnfinishedLine,
    stderr: UnfinishedLine,
    /// Whether its output was shown as it came.
    is_shown: bool,
}

impl Cards {
    /// Creates cards on this screen. Where lines may be redrawn, they draw the waiting line until they are dropped,
    /// except while a prompt is read.
    pub(super) fn watching(screen: Screen, redactor: Redactor, lines: &TypedLines) -> Arc<Self> {
        let cards = Arc::new(Self {
            screen,
            redactor,
            streams: is_terminal(),
            watched: std::io::stderr().is_terminal(),
            state: Mutex::new(CardsState {
                run: String::new(),
                model: String::new(),
                works: false,
                last_printed: LastPrint::Line,
                text: None,
                calls: HashMap::new(),
                last: None,
                waiting: WaitingLine::new(),
            }),
        });
        if screen.is_lively() {
            let weak = Arc::downgrade(&cards);
            lines.before_prompts(move || {
                if let Some(cards) = weak.upgrade() {
                    cards.state.lock().waiting.clear();
                }
            });
            let (weak, lines) = (Arc::downgrade(&cards), lines.clone());
            tokio::spawn(async move {
                while let Some(cards) = weak.upgrade() {
                    if !lines.is_read() {
                        cards.draw();
                    }
                    drop(cards);
                    tokio::time::sleep(TICK).await;
                }
            });
        }
        cards
    }

    fn draw(&self) {
        let mut state = self.state.lock();
        if !state.works || state.last_printed == LastPrint::Beginning {
            return;
        }
        let heads: Vec<&str> = state
            .calls
            .values()
            .map(|call| call.head.as_str())
            .collect();
        let what = match heads.as_slice() {
            [] => format!("waiting for {}", state.model),
            [one] => (*one).to_owned(),
            several => format!("{} calls: {}", several.len(), several.join(", ")),
        };
        state.waiting.draw(&what);
    }

    /// Removes the waiting line, and ends a line of the model's text that is not complete, so that what is printed next
    /// starts a line.
    fn begin_line(&self, state: &mut CardsState) {
        state.waiting.clear();
        if state.last_printed == LastPrint::Beginning {
            state.last_printed = LastPrint::Line;
            // The screen notes what could not be written: the command ends with that.
            let _ = self.screen.out("\n");
        }
    }

    fn say(&self, state: &mut CardsState, line: &str) {
        self.begin_line(state);
        state.last_printed = LastPrint::Call;
        self.screen.say(line);
    }

    /// Prints a piece of the model's text.
    fn stream(&self, state: &mut CardsState, text: &str) {
        state.waiting.clear();
        state.last = None;
        if state.last_printed == LastPrint::Call {
            let _ = self.screen.out("\n");
        }
        let _ = self.screen.out(&visible::block(text));
        state.last_printed = if text.ends_with('\n') {
            LastPrint::Line
        } else {
            LastPrint::Beginning
        };
    }

    /// Prints text that was not the answer, because calls follow.
    fn spend_text(&self, state: &mut CardsState) {
        if let Some(text) = state.text.take() {
            self.say(state, &visible::block(text.trim_end()));
        }
    }

    fn head(&self, tool: &str, arguments: &str) -> String {
        let tool = visible::line(tool);
        match argument::of_text(arguments, &self.redactor) {
            Some(argument) => format!("{tool} {}", visible::line(&argument)),
            None => tool,
        }
    }

    fn begin_call(&self, state: &mut CardsState, id: &CallId, head: String) {
        self.spend_text(state);
        self.begin_line(state);
        let running = RunningCall {
            head,
            stdout: UnfinishedLine::default(),
            stderr: UnfinishedLine::default(),
            is_shown: false,
        };
        state.calls.insert(id.clone(), running);
    }

    /// Prints the line of a finished call.
    fn card(&self, state: &mut CardsState, id: &CallId, tool: &str, ended: &CallEnding<'_>) {
        let call = state.calls.remove(id);
        let head = call
            .as_ref()
            .map_or_else(|| visible::line(tool), |call| call.head.clone());
        let is_shown = call.as_ref().is_some_and(|call| call.is_shown);
        if let Some(mut call) = call {
            let rest: Vec<String> = [call.stdout.rest(), call.stderr.rest()]
                .into_iter()
                .flatten()
                .collect();
            self.output(state, &head, id, &rest);
        }
        state.last = None;
        let mut tail = String::new();
        if let Some(took) = ended.took {
            let _ = write!(tail, " ({})", when::duration(took));
        }
        let room = screen::columns().saturating_sub(STATUS + 1 + tail.chars().count());
        let head = visible::middle(&head, room.max(20));
        let status = format!("{:<STATUS$}", ended.status);
        let line = format!(
            "{} {head}{}",
            styled(ended.style, &status),
            styled(DIM, &tail)
        );
        self.say(state, &line);
        let indent = " ".repeat(STATUS + 1);
        let room = screen::columns().saturating_sub(indent.len()).max(20);
        for reason in ended
            .reason
            .lines()
            .filter(|line| !line.trim().is_empty())
            .take(REASON)
        {
            let reason = self.redactor.redact(reason);
            let reason = visible::clipped(&visible::line(&reason), room);
            self.screen
                .say(&format!("{indent}{}", styled(DIM, &reason)));
        }
        for line in ended.output(is_shown) {
            let line = self.redactor.redact(&line);
            self.screen.say(&format!("{indent}{}", styled(DIM, &line)));
        }
    }

    /// Prints the lines that a call printed, below its name.
    fn output(&self, state: &mut CardsState, head: &str, id: &CallId, lines: &[String]) {
        if lines.is_empty() {
            return;
        }
        if state.last.as_ref() != Some(id) {
            self.say(state, &styled(DIM, head));
            state.last = Some(id.clone());
        }
        state.waiting.clear();
        for line in lines {
            self.screen
                .say(&format!("  {}", styled(DIM, &visible::block(line))));
        }
    }

    fn done(&self, state: &mut CardsState, finished: &RunResult) {
        let text = state.text.take();
        match (text, &finished.end) {
            (Some(text), _) if !self.streams => self.answer(&text),
            // Nothing was left to do: the answer is the previous one.
            (None, RunEnd::Done) if state.works && !self.streams && !finished.text.is_empty() => {
                self.answer(&finished.text);
            }
            _ => {}
        }
        state.works = false;
        let (style, word) = match finished.end {
            RunEnd::Done => (GREEN, "done"),
            RunEnd::Suspended(_) => (YELLOW, "suspended"),
            _ => (RED, finished.end.as_str()),
        };
        let line = format!(
            "{} {}",
            styled(style, word),
            styled(
                DIM,
                &format!("({}, run {})", spent(&finished.spent), state.run)
            )
        );
        self.say(state, &line);
        if !matches!(finished.end, RunEnd::Done | RunEnd::Suspended(_)) {
            self.screen.say(&format!("  {}", finished.end.describe()));
        }
    }

    fn answer(&self, text: &str) {
        let _ = self
            .screen
            .out(&format!("{}\n", visible::block(text.trim_end())));
    }
}

/// How a call ended.
struct CallEnding<'a> {
    style: anstyle::Style,
    status: &'a str,
    /// Milliseconds.
    took: Option<f64>,
    reason: &'a str,
    outcome: Option<&'a Outcome>,
}

impl<'a> CallEnding<'a> {
    fn of(outcome: &'a Outcome) -> Self {
        let failure = outcome.error.as_ref();
        Self {
            style: colour(outcome.status),
            status: outcome.status.as_str(),
            took: Some(milliseconds(outcome.duration)),
            reason: failure.map_or("", |failure| &failure.message),
            outcome: Some(outcome),
        }
    }

    /// Describes a call that did not run, or of which only the model's text is known: `cancelled: …`.
    fn without_outcome(text: &'a str) -> Self {
        let (status, reason) = text.split_once(": ").unwrap_or(("error", text));
        let known = matches!(status, "not run" | "cancelled" | "unknown");
        Self {
            style: RED,
            status: if known { status } else { "error" },
            took: None,
            reason: if known { reason } else { text },
            outcome: None,
        }
    }

    /// Returns the lines of what the tool gave, without the output of a command that was shown as it came.
    fn output(&self, is_shown: bool) -> Vec<String> {
        let Some(outcome) = self.outcome else {
            return Vec::new();
        };
        let whole = format!("haft runs show {} {}", outcome.run, outcome.call);
        let is_wanted = |mark| match mark {
            PartMark::Status => false,
            PartMark::Stdout | PartMark::Stderr => !is_shown,
            _ => true,
        };
        let lines = excerpt::lines(&outcome.render(), is_wanted, &whole);
        lines.into_iter().map(|(_, line)| line).collect()
    }
}

/// Returns what was used up, as text.
fn spent(spent: &Spending) -> String {
    let turns = match spent.turns {
        1 => "1 turn".to_owned(),
        turns => format!("{turns} turns"),
    };
    let (input, output) = (grouped(spent.input), grouped(spent.output));
    let mut text = format!("{turns}, {input} tokens in, {output} out");
    if let Some(money) = spent.money {
        let _ = write!(text, ", cost {money:.4}");
    }
    text
}

/// Returns a number with thousands separators.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

impl Watcher for Cards {
    fn event(&self, event: AgentEvent<'_>) {
        let state = &mut *self.state.lock();
        match event {
            AgentEvent::Delta(Delta::Text(text)) if self.streams => self.stream(state, text),
            AgentEvent::Delta(Delta::Thinking(text)) if self.screen.is_verbose() => {
                state.waiting.clear();
                self.screen.err_text(&styled(DIM, &visible::block(text)));
            }
            AgentEvent::Message { text } if self.streams => {
                let _ = text;
                self.begin_line(state);
            }
            AgentEvent::Message { text } => {
                self.spend_text(state);
                state.text = (!text.trim().is_empty()).then(|| text.to_owned());
            }
            AgentEvent::ToolCall {
                id,
                tool,
                arguments,
            } => self.begin_call(state, id, self.head(tool, arguments)),
            AgentEvent::ToolResult {
                id,
                tool,
                outcome,
                text,
                ..
            } => {
                let ended = match outcome {
                    Some(outcome) => CallEnding::of(outcome),
                    None => CallEnding::without_outcome(text),
                };
                self.card(state, id, tool, &ended);
            }
            AgentEvent::Approval { id, tool, approval } => {
                let ended = CallEnding {
                    style: YELLOW,
                    status: "waits",
                    took: None,
                    reason: approval,
                    outcome: None,
                };
                self.card(state, id, tool, &ended);
            }
            AgentEvent::Retry { pause_ms, why, .. } => {
                #[expect(clippy::cast_precision_loss, reason = "milliseconds, for people")]
                let pause = when::duration(pause_ms as f64);
                let text = format!("{}; again in {pause}", visible::line(why));
                self.say(state, &styled(DIM, &text));
            }
            AgentEvent::Notice { text } => self.say(state, &styled(DIM, &visible::line(text))),
            AgentEvent::Done(finished) => self.done(state, finished),
            _ => {}
        }
    }
}

impl ProgressSink for Cards {
    fn progress(&self, event: ProgressEvent) {
        use haft::progress::ProgressStream;
        if !self.watched {
            return;
        }
        let state = &mut *self.state.lock();
        let Some(call) = state.calls.get_mut(&event.call) else {
            return;
        };
        let head = call.head.clone();
        call.is_shown |= event.stream != ProgressStream::Info;
        let lines = match event.stream {
            ProgressStream::Stdout => call.stdout.take(&event.text),
            ProgressStream::Stderr => call.stderr.take(&event.text),
            ProgressStream::Info => event.text.lines().map(str::to_owned).collect(),
        };
        self.output(state, &head, &event.call, &lines);
    }
}

impl RunView for Cards {
    fn begins(&self, run: &RunId, model: &str) {
        let mut state = self.state.lock();
        state.run = run.to_string();
        model.clone_into(&mut state.model);
    }

    fn notice(&self, text: &str) {
        let state = &mut *self.state.lock();
        self.say(state, &styled(DIM, &visible::line(text)));
    }

    fn works(&self, works: bool) {
        let mut state = self.state.lock();
        state.waiting.clear();
        state.works = works;
    }

    fn failed(&self, _problem: &Problem) {
        let state = &mut *self.state.lock();
        self.spend_text(state);
        self.begin_line(state);
        state.works = false;
    }
}

#[cfg(test)]
mod tests {
    use haft::testing::rendering::check;

    use super::{CallEnding, grouped};

    /// An image is named, and a call that waits has a card of its own.
    #[test]
    fn a_card_shows_everything_that_a_tool_gave() {
        check("card", |outcome| {
            let ended = CallEnding::of(outcome);
            let waits = outcome.approval.iter().map(|_| outcome.to_model());
            format!("{}\n{}", ended.reason, ended.output(false).join("\n"))
                + &waits.collect::<String>()
        });
    }

    #[test]
    fn numbers_are_grouped_by_three_digits() {
        for (number, expect) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(number), expect);
        }
    }
}
