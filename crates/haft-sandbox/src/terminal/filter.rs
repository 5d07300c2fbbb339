//! `ScreenFilter`: what of a jailed program's output may reach a person's own terminal.
//!
//! It lists what is passed on: text, moves of the cursor, colours, the modes that editors and pagers use. Whatever would make the terminal
//! keep something (clipboard, title, files, fonts, print), answer (its name, its state, its title, the cursor's place) or lock the keyboard is
//! dropped; so is all that is not known. What is passed on is built anew from what was understood, so that no terminal
//! reads it otherwise.

use std::collections::BTreeSet;

use super::controls::{Control, Controls, Sequence};

/// The private modes that programs may set, each with what resets it.
///
/// Keys of the cursor and the keypad, reverse video, origin, wrap, blinking and visible cursor, mouse (clicks, drags, moves, and three encodings),
/// focus, alternate screens, saved cursor, bracketed paste, whole updates.
const MODES: [u16; 20] = [
    1, 5, 6, 7, 12, 25, 66, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1047, 1048, 1049, 47, 2004,
    2026,
];
/// The modes that are on in a terminal that was not touched.
const USUALLY_ON: [u16; 2] = [7, 25];

/// The final bytes of sequences without prefix that only draw.
const DRAWING: &[u8] = b"@ABCDEFGHIJKLMPSXZ`adefmrsu";
/// Maximum times that a character may be repeated by one sequence.
const REPEATED: u16 = 1_000;

/// Passes on what of a jailed program's output may reach a person's terminal, and knows what resets the terminal at the end.
///
/// ```
/// let mut filter = haft_sandbox::ScreenFilter::default();
/// assert_eq!(filter.push(b"\x1b[31mred\x1b]52;c;ZXZpbA==\x07"), b"\x1b[31mred");
/// ```
#[derive(Debug, Default)]
pub struct ScreenFilter {
    controls: Controls,
    changed: ChangedModes,
}

/// What differs from a terminal that was not touched.
#[derive(Debug, Default)]
struct ChangedModes {
    modes: BTreeSet<u16>,
    /// Whether the keypad sends sequences of its own.
    keypad: bool,
    /// Whether something was drawn otherwise than as plain text: colours, characters, a region, a shape of the cursor.
    drawing: bool,
}

impl ScreenFilter {
    /// Adds output and returns what may be passed on.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        let changed = &mut self.changed;
        let mut each = |control: Control<'_>| changed.pass(&control, &mut out);
        self.controls.push(bytes, &mut each);
        out
    }

    /// Returns what sets the terminal back to what it was.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        let ChangedModes {
            modes,
            keypad,
            drawing,
        } = std::mem::take(&mut self.changed);
        if drawing {
            // Colours, characters, the cursor's shape, insertion; the region, which moves the cursor, around its saved place.
            out.extend_from_slice(b"\x1b[0m\x1b(B\x1b)B\x0f\x1b[0 q\x1b[4l\x1b7\x1b[r\x1b8");
        }
        if keypad {
            out.extend_from_slice(b"\x1b>");
        }
        // The alternate screens last: they are higher.
        for mode in modes {
            let to = if USUALLY_ON.contains(&mode) { 'h' } else { 'l' };
            out.extend_from_slice(format!("\x1b[?{mode}{to}").as_bytes());
        }
        out
    }
}

impl ChangedModes {
    fn pass(&mut self, control: &Control<'_>, out: &mut Vec<u8>) {
        match control {
            Control::Text(text) => out.extend_from_slice(text.as_bytes()),
            // BEL, BS, HT, LF, VT, FF, CR, and the two that switch between sets of characters. Not ENQ, which a terminal answers.
            Control::Byte(byte @ (0x07..=0x0f)) => {
                self.drawing |= *byte >= 0x0e;
                out.push(*byte);
            }
            Control::Byte(_) => {}
            Control::Escape { between, last } => self.escape(between, *last, out),
            Control::Sequence(sequence) => self.sequence(sequence, out),
        }
    }

    fn escape(&mut self, between: &[u8], last: u8, out: &mut Vec<u8>) {
        match (between, last) {
            // The cursor saved and restored, lines fed. No tab is set or cleared: which there were cannot be restored.
            ([], b'7' | b'8' | b'D' | b'E' | b'M') => {}
            ([], b'=' | b'>') => self.keypad = last == b'=',
            // A full reset.
            ([], b'c') => *self = Self::default(),
            // A set of characters: ASCII, the British one, lines.
            ([b'(' | b')'], b'0' | b'A' | b'B') => self.drawing = true,
            _ => return,
        }
        out.push(0x1b);
        out.extend_from_slice(between);
        out.push(last);
    }

    fn sequence(&mut self, sequence: &Sequence<'_>, out: &mut Vec<u8>) {
        match (sequence.prefix, sequence.between, sequence.last) {
            (None, [], last) if DRAWING.contains(&last) => {
                self.drawing |= matches!(last, b'm' | b'r');
                emit(sequence, sequence.parameters, out);
            }
            // More parameters would begin to track the mouse.
            (None, [], b'T') if sequence.numbers().count() == 1 => {
                emit(sequence, sequence.parameters, out);
            }
            (None, [], b'b') => {
                let count = sequence.first(1).min(REPEATED);
                emit(sequence, count.to_string().as_bytes(), out);
            }
            // Insertion of characters; the other modes lock the keyboard or change what a return is.
            (None, [], b'h' | b'l') if sequence.parameters == b"4" => {
                self.drawing = true;
                emit(sequence, sequence.parameters, out);
            }
            // The cursor's shape; a soft reset.
            (None, b" ", b'q') | (None, b"!", b'p') => {
                self.drawing = true;
                emit(sequence, sequence.parameters, out);
            }
            (Some(b'?'), [], b'h' | b'l') => self.modes(sequence, out),
            (Some(b'?'), [], b'J' | b'K') => emit(sequence, sequence.parameters, out),
            _ => {}
        }
    }

    fn modes(&mut self, sequence: &Sequence<'_>, out: &mut Vec<u8>) {
        let known = sequence.numbers().flatten();
        for mode in known.filter(|mode| MODES.contains(mode)) {
            let is_on = sequence.last == b'h';
            if is_on == USUALLY_ON.contains(&mode) {
                self.modes.remove(&mode);
            } else {
                self.modes.insert(mode);
            }
            emit(sequence, mode.to_string().as_bytes(), out);
        }
    }
}

fn emit(sequence: &Sequence<'_>, parameters: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"\x1b[");
    out.extend(sequence.prefix);
    out.extend_from_slice(parameters);
    out.extend_from_slice(sequence.between);
    out.push(sequence.last);
}

#[cfg(test)]
mod tests {
    use super::ScreenFilter;

    fn check(rows: &[(&str, &str)]) {
        for (written, passed) in rows {
            for step in [1, usize::MAX] {
                let mut filter = ScreenFilter::default();
                let mut got = Vec::new();
                for piece in written.as_bytes().chunks(step.min(written.len())) {
                    got.extend(filter.push(piece));
                }
                assert_eq!(String::from_utf8_lossy(&got), *passed, "{written:?}");
            }
        }
    }

    #[test]
    fn what_draws_is_passed_on() {
        check(&[
            ("plain ü 字\r\n\t\x08\x07", "plain ü 字\r\n\t\x08\x07"),
            ("\x1b[1;31mred\x1b[0m", "\x1b[1;31mred\x1b[0m"),
            ("\x1b[38;2;1;2;3mx\x1b[4:3m", "\x1b[38;2;1;2;3mx\x1b[4:3m"),
            (
                "\x1b[?1049h\x1b[2J\x1b[H\x1b[5;10r",
                "\x1b[?1049h\x1b[2J\x1b[H\x1b[5;10r",
            ),
            (
                "\x1b[?25l\x1b[?25h\x1b[?2004h",
                "\x1b[?25l\x1b[?25h\x1b[?2004h",
            ),
            (
                "\x1b7\x1b8\x1b=\x1b>\x1b(0q\x1b(B",
                "\x1b7\x1b8\x1b=\x1b>\x1b(0q\x1b(B",
            ),
            ("\x1b[4 q\x1b[!p\x1b[3T", "\x1b[4 q\x1b[!p\x1b[3T"),
            ("a\x1b[999999b", "a\x1b[1000b"),
            ("\x1b[?1;3;25h", "\x1b[?1h\x1b[?25h"),
        ]);
    }

    #[test]
    fn what_a_terminal_would_keep_or_answer_is_dropped() {
        check(&[
            // The clipboard, written and asked for; the title, set, pushed and reported; a link; a notice; colours asked for.
            ("a\x1b]52;c;cm0gLXJmIH4=\x07b", "ab"),
            ("a\x1b]52;c;?\x1b\\b", "ab"),
            ("\x1b]0;rm -rf ~\x07\x1b[21t\x1b[22;2t", ""),
            (
                "\x1b]8;;file:///etc/passwd\x1b\\click\x1b]8;;\x1b\\",
                "click",
            ),
            ("\x1b]9;now\x07\x1b]777;notify;a;b\x07\x1b]10;?\x07", ""),
            (
                "\x1b]7;file://host/\x07\x1b]133;A\x07\x1b]1337;File=inline=1:AAAA\x07",
                "",
            ),
            // Its name, its version, its state, the cursor's place, a checksum, its answer to ENQ.
            ("\x1b[c\x1b[0c\x1b[>c\x1b[=c\x1b[>q\x1bZ\x05", ""),
            (
                "\x1b[5n\x1b[6n\x1b[?6n\x1b[?15n\x1b[x\x1b[1;1;1;1;1;1*y",
                "",
            ),
            ("\x1b[?1$p\x1b[4$p\x1b[?u\x1b[>1u\x1b[>4;2m\x1b[?996n", ""),
            ("\x1bP$qm\x1b\\\x1bP+q544e\x1b\\\x1bP1$r\x1b\\", ""),
            ("\x1b_Ga=q;AAAA\x1b\\\x1b^x\x1b\\\x1bXx\x1b\\", ""),
            ("\x1bPtmux;\x1b\x1b]52;c;eA==\x07\x1b\\z", "z"),
            // The keyboard locked, a return of two characters, print, the width of the screen, macros, tracking of the mouse by `T`.
            ("\x1b[2h\x1b[20h\x1b[4h", "\x1b[4h"),
            ("\x1b[5i\x1b[4i\x1b[?5i\x1b[?3h\x1b[1*z", ""),
            ("\x1b[1;1;1;1;1T", ""),
            // Tab stops.
            ("\x1b[3g\x1bHa\x1b[g", "a"),
            // The forms of C1, as bytes and as characters.
            ("\u{9d}52;c;eA==\u{9c}", "52;c;eA=="),
            ("\u{90}\u{9b}6n", "6n"),
            // In pieces, within each other, interrupted.
            ("\x1b\x1b[6n\x1b[\x1b]52;c;eA==\x07", ""),
            ("\x1b]52;c;eA==", ""),
            ("\x1b[6\x18n", "n"),
        ]);
    }

    #[test]
    fn modes_when_left_on_are_reset_at_the_end() {
        let mut filter = ScreenFilter::default();
        filter.push(b"\x1b[?1049h\x1b[?1003h\x1b[?1006h\x1b[?25l\x1b=\x1b[?2004h\x1b[?2004l");
        let end = String::from_utf8(filter.finish()).unwrap();
        assert_eq!(end, "\x1b>\x1b[?25h\x1b[?1003l\x1b[?1006l\x1b[?1049l");
        assert_eq!(filter.finish(), b"");
        filter.push(b"\x1b[31m");
        assert!(filter.finish().starts_with(b"\x1b[0m"));
        filter.push(b"text only\r\n");
        assert_eq!(filter.finish(), b"");
    }
}
