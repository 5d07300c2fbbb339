//! `Controls`: splits what a program writes to a terminal into text, control characters and escape sequences (ECMA-48), in bounded memory.
//!
//! Strings of terminals (OSC, DCS, APC, PM, SOS, a title of `screen`) carry clipboards, titles, pictures and queries; none is of use
//! here, so their content is dropped as it comes and never held.

/// Maximum bytes of a sequence between its start and its last byte; a longer one is dropped.
const LONGEST: usize = 64;

const ESCAPE: u8 = 0x1b;
const BELL: u8 = 0x07;

/// One element of a terminal's output.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Control<'a> {
    /// Text without control characters.
    Text(&'a str),
    /// A control character of C0, except `ESC`.
    Byte(u8),
    /// `ESC`, intermediate bytes, a last byte.
    Escape { between: &'a [u8], last: u8 },
    /// `CSI`: a whole control sequence.
    Sequence(Sequence<'a>),
}

/// A control sequence without its introducer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sequence<'a> {
    /// One of `<=>?`, if it begins with one.
    pub(super) prefix: Option<u8>,
    /// Digits, `;` and `:`.
    pub(super) parameters: &'a [u8],
    /// Intermediate bytes.
    pub(super) between: &'a [u8],
    pub(super) last: u8,
}

impl<'a> Sequence<'a> {
    fn of(body: &'a [u8], last: u8) -> Option<Self> {
        let (prefix, rest) = match body {
            [first @ b'<'..=b'?', rest @ ..] => (Some(*first), rest),
            rest => (None, rest),
        };
        let is_parameter = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b';' | b':');
        let end = rest.iter().position(|byte| !is_parameter(byte));
        let (parameters, between) = rest.split_at(end.unwrap_or(rest.len()));
        let is_whole = between.iter().all(|byte| (0x20..0x30).contains(byte));
        is_whole.then_some(Self {
            prefix,
            parameters,
            between,
            last,
        })
    }

    /// Returns the numbers; one that is left out is `None`, and a large one is 9,999.
    pub(super) fn numbers(&self) -> impl Iterator<Item = Option<u16>> + 'a {
        let each = self.parameters.split(|byte| *byte == b';');
        each.map(|digits| {
            let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
            digits.fold(None, |number: Option<u16>, digit| {
                let digit = u16::from(digit - b'0');
                let next = number.unwrap_or_default().saturating_mul(10);
                Some(next.saturating_add(digit).min(9_999))
            })
        })
    }

    /// Returns the first number, or `otherwise` if it is left out or 0.
    pub(super) fn first(&self, otherwise: u16) -> u16 {
        let first = self.numbers().next().flatten();
        first.filter(|number| *number > 0).unwrap_or(otherwise)
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    Escape,
    Sequence,
    /// A sequence that is too long.
    Dropped,
    /// The content of a string.
    Content,
}

/// The state between two pieces of output.
#[derive(Debug, Default)]
pub(super) struct Controls {
    state: State,
    /// The start of a character whose rest is missing.
    character: Vec<u8>,
    /// The bytes of an unfinished sequence.
    sequence: Vec<u8>,
}

impl Controls {
    /// Adds output and passes on each element that is complete.
    pub(super) fn push(&mut self, mut bytes: &[u8], each: &mut impl FnMut(Control<'_>)) {
        while let Some(byte) = bytes.first().copied() {
            if self.state == State::Text && !is_control(byte) {
                let end = bytes.iter().position(|byte| is_control(*byte));
                let (text, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
                self.text(text, end.is_some(), each);
                bytes = rest;
                continue;
            }
            bytes = &bytes[1..];
            self.end_character(each);
            self.byte(byte, each);
        }
    }

    /// Passes on the start of a character that nothing completed.
    pub(super) fn end_character(&mut self, each: &mut impl FnMut(Control<'_>)) {
        if !self.character.is_empty() {
            self.character.clear();
            each(Control::Text("\u{fffd}"));
        }
    }

    /// Passes on text; its end may be the start of a character if nothing follows yet.
    fn text(&mut self, new: &[u8], ended: bool, each: &mut impl FnMut(Control<'_>)) {
        let joined;
        let bytes = if self.character.is_empty() {
            new
        } else {
            joined = [&std::mem::take(&mut self.character)[..], new].concat();
            &joined
        };
        let mut at = 0;
        for chunk in bytes.utf8_chunks() {
            printable(chunk.valid(), each);
            at += chunk.valid().len() + chunk.invalid().len();
            if chunk.invalid().is_empty() {
                continue;
            }
            let is_begun = at == bytes.len() && !ended && is_start(chunk.invalid());
            if is_begun {
                self.character.extend_from_slice(chunk.invalid());
            } else {
                each(Control::Text("\u{fffd}"));
            }
        }
    }

    fn byte(&mut self, byte: u8, each: &mut impl FnMut(Control<'_>)) {
        match (self.state, byte) {
            (_, ESCAPE) => {
                self.sequence.clear();
                self.state = State::Escape;
            }
            // CAN and SUB end a sequence.
            (State::Content, BELL) | (_, 0x18 | 0x1a) => self.state = State::Text,
            (State::Content, _) | (State::Dropped, 0x20..0x40) | (State::Text, 0x7f) => {}
            (_, 0x00..0x20) => each(Control::Byte(byte)),
            (State::Escape, b'[') if self.sequence.is_empty() => self.state = State::Sequence,
            // DCS, SOS, OSC, PM, APC, and the title of `screen`.
            (State::Escape, b'P' | b'X' | b']' | b'^' | b'_' | b'k')
                if self.sequence.is_empty() =>
            {
                self.state = State::Content;
            }
            (State::Escape, 0x30..0x7f) => {
                self.state = State::Text;
                let between = &self.sequence;
                each(Control::Escape {
                    between,
                    last: byte,
                });
            }
            (State::Sequence, 0x40..0x7f) => {
                self.state = State::Text;
                if let Some(sequence) = Sequence::of(&self.sequence, byte) {
                    each(Control::Sequence(sequence));
                }
            }
            (State::Escape | State::Sequence, 0x20..0x40) => {
                if self.sequence.len() == LONGEST {
                    self.state = State::Dropped;
                } else {
                    self.sequence.push(byte);
                }
            }
            // The end of one that was dropped, and what no sequence contains.
            _ => self.state = State::Text,
        }
    }
}

fn is_control(byte: u8) -> bool {
    byte < 0x20 || byte == 0x7f
}

/// Passes on text without the controls of C1, which some terminals obey in this form, too.
fn printable(text: &str, each: &mut impl FnMut(Control<'_>)) {
    let is_control = |c: char| matches!(c, '\u{80}'..='\u{9f}');
    for part in text.split(is_control).filter(|part| !part.is_empty()) {
        each(Control::Text(part));
    }
}

/// Returns whether bytes that are no character yet may become one.
fn is_start(bytes: &[u8]) -> bool {
    let length = match bytes.first() {
        Some(0xc2..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf4) => 4,
        _ => 0,
    };
    bytes.len() < length
}

#[cfg(test)]
mod tests {
    use super::{Control, Controls};

    /// What is passed on, in one word for each element.
    fn split(pieces: &[&[u8]]) -> String {
        let (mut controls, mut out) = (Controls::default(), Vec::new());
        let mut each = |control: Control<'_>| {
            out.push(match control {
                Control::Text(text) => format!("{text:?}"),
                Control::Byte(byte) => format!("{byte:02x}"),
                Control::Escape { between, last } => {
                    format!("E{}{}", String::from_utf8_lossy(between), char::from(last))
                }
                Control::Sequence(sequence) => {
                    let numbers: Vec<_> = sequence
                        .numbers()
                        .map(|n| n.map_or(-1, i32::from))
                        .collect();
                    let prefix = sequence.prefix.map(char::from).map(String::from);
                    let between = String::from_utf8_lossy(sequence.between);
                    let last = char::from(sequence.last);
                    format!("S{}{numbers:?}{between}{last}", prefix.unwrap_or_default())
                }
            });
        };
        for piece in pieces {
            controls.push(piece, &mut each);
        }
        out.join(" ")
    }

    #[test]
    fn output_is_split_into_elements_wherever_it_is_cut() {
        let rows: &[(&[u8], &str)] = &[
            (b"plain", r#""plain""#),
            (b"a\r\nb\x7f\x08", r#""a" 0d 0a "b" 08"#),
            (b"\x1b[31mred\x1b[m", r#"S[31]m "red" S[-1]m"#),
            (b"\x1b[?1049h\x1b[>c\x1b[2 q", "S?[1049]h S>[-1]c S[2] q"),
            (b"\x1b[99999999;;7H", "S[9999, -1, 7]H"),
            (b"\x1b(B\x1b7\x1bc", "E(B E7 Ec"),
            // A clipboard, a title, a query of a terminal's capabilities, a picture, what tmux passes through.
            (b"a\x1b]52;c;ZXZpbA==\x07b", r#""a" "b""#),
            (b"a\x1b]0;title\x1b\\b", r#""a" E\ "b""#),
            (b"\x1bP+q544e\x1b\\\x1b_Gi=1;AAAA\x1b\\", r"E\ E\"),
            (b"\x1bPtmux;\x1b\x1b]52;c;eA==\x07\x1b\\", r"E\"),
            (b"\x1bktitle\x1b\\x", r#"E\ "x""#),
            // A sequence within another, one that is interrupted, a control within one.
            (b"\x1b[3\x1b[4mx", r#"S[4]m "x""#),
            (b"\x1b[3\x18mx", r#""mx""#),
            (b"\x1b[3\n1m", "0a S[31]m"),
            // Those that are not well formed.
            (b"\x1b[1?hx", r#""x""#),
            (
                "\u{9b}31mx\u{9d}0;t\u{9c}y".as_bytes(),
                r#""31mx" "0;t" "y""#,
            ),
            (b"\x9b31m\xff", "\"\u{fffd}\" \"31m\" \"\u{fffd}\""),
            ("zwölf 字 🙂".as_bytes(), r#""zwölf 字 🙂""#),
            (b"\xe5\xad\x1b[mx", "\"\u{fffd}\" S[-1]m \"x\""),
        ];
        for (bytes, expect) in rows {
            assert_eq!(&split(&[bytes]), expect, "{bytes:?}");
            let joined = |text: String| text.replace("\" \"", "");
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(
                joined(split(&single)),
                joined((*expect).to_owned()),
                "{bytes:?}"
            );
        }
    }

    #[test]
    fn sequence_when_it_never_ends_takes_no_memory() {
        let mut controls = Controls::default();
        let mut count = 0;
        for start in ["\x1b[", "\x1b]52;c;", "\x1b ", "\u{fffd}"] {
            controls.push(start.as_bytes(), &mut |_| count += 1);
            for _ in 0..1_000 {
                controls.push(b"1111111111111111", &mut |_| count += 1);
            }
            assert!(controls.sequence.capacity() <= 128, "{start:?}");
            assert!(controls.character.capacity() <= 16, "{start:?}");
            controls.push(b"\x18", &mut |_| {});
        }
    }
}
