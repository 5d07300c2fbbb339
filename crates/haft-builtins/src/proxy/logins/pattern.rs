//! `SecretPatterns`: finds a value in an answer, as ordinary servers write it: as it is, escaped in any way, in base64 and in hexadecimal.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use super::escapes::{Reading, begins_escape, read_all};

/// Minimum length of what is searched for: less would be found in every answer.
const SHORTEST: usize = 4;
/// Maximum number of places at which a value that is begun may be continued: only a value of many backslashes has more.
const MOST_PLACES: usize = 32;
/// Maximum number of line ends and blanks between two characters of base64.
const MOST_BLANKS: usize = 8;
/// Room for each character of a value, in bytes: most stand for themselves, and base64 takes less.
const ROOM: usize = 16;
/// Minimum number of bytes that hold any form of a value. Values of up to 128 characters have the same.
const LEAST_ROOM: usize = 2 << 10;

/// What must not come back of a credential.
#[derive(Debug)]
pub(super) struct SecretPatterns {
    patterns: Vec<Pattern>,
    /// The bytes with which one may begin.
    begins: [bool; 256],
    longest: usize,
}

/// A text, and how its characters may be written.
struct Pattern {
    text: Vec<u8>,
    alphabet: Alphabet,
}

impl std::fmt::Debug for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pattern").finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Alphabet {
    /// Each character is itself.
    Plain,
    /// Two alphabets (RFC 4648 §4 and §5), and lines of any length.
    Base64,
    /// Digits in either case.
    Hex,
}

/// Lists that are used again for each place.
#[derive(Debug, Default)]
pub(super) struct SearchLists {
    first: Vec<Reading>,
    readings: Vec<Reading>,
    now: Vec<(usize, usize)>,
    next: Vec<(usize, usize)>,
}

impl SecretPatterns {
    /// Creates the patterns of these texts.
    pub(super) fn new<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let (mut patterns, mut longest) = (Vec::new(), 0);
        for text in texts {
            longest = longest.max(text.len());
            add_forms(text, &mut patterns);
        }
        let mut begins = [false; 256];
        for byte in 0..=u8::MAX {
            let is_first = |pattern: &Pattern| pattern.takes(0, byte);
            begins[usize::from(byte)] = begins_escape(byte) || patterns.iter().any(is_first);
        }
        let longest = (longest * ROOM).next_power_of_two().max(LEAST_ROOM);
        Self {
            patterns,
            begins,
            longest,
        }
    }

    /// Returns the maximum length of what is found, in bytes. It says little about the value.
    pub(super) const fn longest(&self) -> usize {
        self.longest
    }

    /// Returns where a value ends that begins at this place.
    pub(super) fn end_of(
        &self,
        text: &[u8],
        start: usize,
        lists: &mut SearchLists,
    ) -> Option<usize> {
        let first = *text.get(start)?;
        if !self.begins[usize::from(first)] {
            return None;
        }
        let text = &text[..text.len().min(start + self.longest)];
        let mut first = std::mem::take(&mut lists.first);
        read_all(text, start, &mut first);
        let ends = self.patterns.iter().filter_map(|pattern| {
            let mut begun = std::mem::take(&mut lists.now);
            begun.clear();
            pattern.step(0, &first, &mut begun);
            lists.now = begun;
            if lists.now.is_empty() {
                return None;
            }
            pattern.follow(text, lists)
        });
        let end = ends.max();
        lists.first = first;
        end
    }
}

impl Pattern {
    /// Whether a byte is the next character of the text.
    fn takes(&self, at: usize, byte: u8) -> bool {
        let wanted = self.text[at];
        match self.alphabet {
            // Forms of the web write a blank so.
            Alphabet::Plain => byte == wanted || (wanted == b' ' && byte == b'+'),
            Alphabet::Hex => byte.eq_ignore_ascii_case(&wanted),
            Alphabet::Base64 => {
                byte == wanted || matches!((wanted, byte), (b'+', b'-') | (b'/', b'_'))
            }
        }
    }

    /// Adds the places to which these readings lead: how much of the text stands before each, and where it is.
    fn step(&self, done: usize, readings: &[Reading], into: &mut Vec<(usize, usize)>) {
        for reading in readings {
            let bytes = reading.bytes();
            let after = done + bytes.len();
            if after > self.text.len() {
                continue;
            }
            let mut each = bytes.iter().enumerate();
            let place = (after, reading.end);
            if each.all(|(at, byte)| self.takes(done + at, *byte))
                && into.len() < MOST_PLACES
                && !into.contains(&place)
            {
                into.push(place);
            }
        }
    }

    /// Returns the last end of the text, of which the first character was read.
    fn follow(&self, text: &[u8], lists: &mut SearchLists) -> Option<usize> {
        let SearchLists {
            readings,
            now,
            next,
            ..
        } = lists;
        let mut found = None;
        while !now.is_empty() {
            next.clear();
            for (done, mut at) in now.drain(..) {
                if done == self.text.len() {
                    found = found.max(Some(at));
                    continue;
                }
                read_all(text, at, readings);
                self.step(done, readings, next);
                let mut blanks = 0;
                while self.alphabet == Alphabet::Base64 && blanks < MOST_BLANKS {
                    let is_blank = |reading: &&Reading| {
                        matches!(reading.bytes(), [b'\r' | b'\n' | b' ' | b'\t'])
                    };
                    let Some(blank) = readings.iter().find(is_blank) else {
                        break;
                    };
                    (at, blanks) = (blank.end, blanks + 1);
                    read_all(text, at, readings);
                    self.step(done, readings, next);
                }
            }
            std::mem::swap(now, next);
        }
        found
    }
}

/// Adds the text, what base64 has of it wherever it begins in what is encoded, and its bytes in hexadecimal.
fn add_forms(text: &str, patterns: &mut Vec<Pattern>) {
    let mut add = |text: Vec<u8>, alphabet| {
        let is_known = |known: &Pattern| known.text == text;
        if text.len() >= SHORTEST && !patterns.iter().any(is_known) {
            patterns.push(Pattern { text, alphabet });
        }
    };
    add(text.as_bytes().to_vec(), Alphabet::Plain);
    for before in 0..3 {
        let mut bytes = vec![0; before];
        bytes.extend_from_slice(text.as_bytes());
        let whole = STANDARD_NO_PAD.encode(&bytes);
        // The characters at both ends hold bits of what stands beside the text.
        let from = before + usize::from(before > 0);
        let to = whole.len() - usize::from(bytes.len() % 3 != 0);
        let inner = whole.get(from..to).unwrap_or_default();
        add(inner.as_bytes().to_vec(), Alphabet::Base64);
    }
    let digits = text.bytes().map(|byte| format!("{byte:02x}"));
    add(digits.collect::<String>().into_bytes(), Alphabet::Hex);
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};

    use super::{SearchLists, SecretPatterns};

    /// Values with all that is escaped anywhere.
    const VALUES: [&str; 4] = [
        "kq/8f2a+never/Zx81==",
        "p&s'w0rd<x>\"9!",
        r"a\b%41&amp;\\c d",
        "gé-password-ü",
    ];

    /// Returns whether some of the text is found, and all that is before and after it stays.
    fn is_found(value: &str, written: &str) -> bool {
        let patterns = SecretPatterns::new([value]);
        let text = format!("?a={written}&b");
        let (mut lists, mut covered) = (SearchLists::default(), vec![false; text.len()]);
        for start in 0..text.len() {
            if let Some(end) = patterns.end_of(text.as_bytes(), start, &mut lists) {
                covered[start..end].fill(true);
            }
        }
        let last = text.len() - 2;
        covered[3..last].iter().filter(|byte| **byte).count() + 4 >= last - 3
            && !covered[..3].contains(&true)
    }

    /// Returns the text with each of its characters that `is_plain` does not name written by `escape`.
    fn escaped(value: &str, is_plain: fn(char) -> bool, escape: fn(char) -> String) -> String {
        let each = value.chars();
        each.map(|character| {
            if is_plain(character) {
                character.to_string()
            } else {
                escape(character)
            }
        })
        .collect()
    }

    fn percent(character: char) -> String {
        let mut utf8 = [0; 4];
        let bytes = character.encode_utf8(&mut utf8).bytes();
        bytes.fold(String::new(), |all, byte| format!("{all}%{byte:02X}"))
    }

    fn percent_lower(character: char) -> String {
        percent(character).to_lowercase()
    }

    fn unicode(character: char) -> String {
        format!("\\u{:04x}", u32::from(character))
    }

    fn html(character: char) -> String {
        match character {
            '&' => "&amp;".to_owned(),
            '<' => "&lt;".to_owned(),
            '>' => "&gt;".to_owned(),
            '"' => "&#34;".to_owned(),
            '\'' => "&#039;".to_owned(),
            other => format!("&#x{:X};", u32::from(other)),
        }
    }

    #[test]
    fn a_value_is_found_however_ordinary_servers_write_it() {
        let word = |character: char| character.is_ascii_alphanumeric();
        for value in VALUES {
            let json = serde_json::to_string(value).unwrap();
            let json = json.trim_matches('"');
            let twice = serde_json::to_string(json).unwrap();
            // Libraries differ in what they leave as it is.
            let path = |character: char| {
                character.is_ascii_alphanumeric() || "/$&+:=@'!".contains(character)
            };
            let text = |character: char| !"&<>\"'".contains(character);
            let forms = [
                value.to_owned(),
                escaped(value, word, percent),
                escaped(value, word, percent_lower),
                escaped(value, path, percent),
                escaped(value, |_| false, percent),
                escaped(&escaped(value, word, percent), word, percent),
                escaped(value, word, percent).replace("%20", "+"),
                json.to_owned(),
                json.replace('/', "\\/"),
                twice.trim_matches('"').to_owned(),
                escaped(value, word, unicode),
                escaped(value, |_| false, unicode),
                escaped(&escaped(value, word, unicode), word, percent),
                escaped(value, text, html),
                escaped(value, word, html),
                escaped(&escaped(value, text, html), text, html),
                escaped(&escaped(value, text, html), word, percent),
                value
                    .bytes()
                    .fold(String::new(), |all, byte| format!("{all}{byte:02x}")),
                value
                    .bytes()
                    .fold(String::new(), |all, byte| format!("{all}{byte:02X}")),
            ];
            for form in forms {
                assert!(is_found(value, &form), "{value}: {form}");
            }
        }
    }

    #[test]
    fn a_value_is_found_in_base64_wherever_it_begins_and_in_lines() {
        for value in VALUES {
            for before in ["", "x", "xy", "Bearer ", &"x".repeat(100)] {
                let text = format!("{before}{value}and more");
                let whole = STANDARD.encode(&text);
                let lines = |length: usize, end: &str| {
                    let bytes = whole.as_bytes().chunks(length);
                    let lines = bytes.map(|line| String::from_utf8_lossy(line).into_owned());
                    lines.collect::<Vec<_>>().join(end)
                };
                for form in [
                    whole.clone(),
                    URL_SAFE.encode(&text),
                    lines(76, "\n"),
                    lines(64, "\r\n"),
                    lines(4, "\r\n "),
                    lines(19, "\\n"),
                    lines(60, "%0D%0A"),
                    whole.replace('/', "\\/"),
                    whole.replace('/', "%2F").replace('+', "%2B"),
                ] {
                    let patterns = SecretPatterns::new([value]);
                    let mut lists = SearchLists::default();
                    let mut starts = 0..form.len();
                    let found =
                        starts.any(|at| patterns.end_of(form.as_bytes(), at, &mut lists).is_some());
                    assert!(found, "{value}: {form}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_value_is_left_as_it_is() {
        let patterns = SecretPatterns::new(["kq/8f2a+never/Zx81=="]);
        let mut lists = SearchLists::default();
        for text in [
            "kq/8f2a+never/Zx81=",
            "kq/8f2a+never/Zx81%3",
            "kq 8f2a never/Zx81==",
            "KQ/8F2A+NEVER/ZX81==",
            "%6b%71",
            "&&&&&&&&%%%%%%%\\\\\\\\\\\\",
            "",
        ] {
            for at in 0..text.len() {
                let found = patterns.end_of(text.as_bytes(), at, &mut lists);
                assert_eq!(found, None, "{text} {at}");
            }
        }
    }

    #[test]
    fn a_value_of_escapes_alone_is_searched_in_bounded_steps() {
        let value = "\\".repeat(400);
        let patterns = SecretPatterns::new([value.as_str()]);
        let mut lists = SearchLists::default();
        let text = "\\".repeat(4000);
        assert!(patterns.end_of(text.as_bytes(), 0, &mut lists).is_some());
        assert_eq!(
            patterns.end_of(&text.as_bytes()[..399], 0, &mut lists),
            None
        );
    }
}
