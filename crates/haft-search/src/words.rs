//! Splits texts into terms: words and their parts, without stop words and endings.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

/// Maximum length of a term, in bytes.
const MAX_TERM: usize = 64;

/// Words that do not help a search, sorted for binary search.
const STOP: [&str; 72] = [
    "a", "about", "also", "an", "and", "any", "are", "as", "at", "be", "by", "can", "could", "do",
    "each", "for", "from", "has", "have", "help", "how", "i", "if", "in", "into", "is", "it",
    "its", "just", "know", "let", "like", "me", "more", "my", "need", "of", "on", "or", "our",
    "please", "should", "so", "some", "than", "that", "the", "their", "them", "then", "there",
    "these", "they", "this", "those", "to", "us", "using", "want", "was", "we", "were", "what",
    "when", "where", "which", "who", "will", "with", "would", "you", "your",
];

/// Returns the first `max` bytes of a text, cut between characters.
pub fn clip(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max)).unwrap_or(text)
}

/// The kind of a character, which decides where words are split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CharClass {
    /// A separator between words.
    Gap,
    Upper,
    /// Includes letters without case.
    Lower,
    Digit,
    /// A character of a script without spaces between words, or of Hangul.
    Dense,
}

fn class(c: char) -> CharClass {
    if c.is_ascii() {
        return match c {
            'a'..='z' => CharClass::Lower,
            'A'..='Z' => CharClass::Upper,
            '0'..='9' => CharClass::Digit,
            _ => CharClass::Gap,
        };
    }
    match c {
        // Thai, Lao, Myanmar, Khmer; kana, Han and its extensions; Hangul.
        '\u{0e00}'..='\u{0eff}'
        | '\u{1000}'..='\u{109f}'
        | '\u{1780}'..='\u{17ff}'
        | '\u{3041}'..='\u{30ff}'
        | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}' => CharClass::Dense,
        c if c.is_uppercase() => CharClass::Upper,
        c if c.is_numeric() => CharClass::Digit,
        c if c.is_alphanumeric() => CharClass::Lower,
        _ => CharClass::Gap,
    }
}

/// Calls `each` with every term of a text, in order: the terms that an [`Index`](crate::Index) stores and looks up.
///
/// ```
/// let mut terms = Vec::new();
/// haft_search::terms("Lists the HTTPServer's users", |term| terms.push(term.to_owned()));
/// assert_eq!(terms, ["list", "http", "server", "s", "user"]);
/// ```
pub fn terms(text: &str, mut each: impl FnMut(&str)) {
    let text = if text.is_ascii() {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.nfkc().collect())
    };
    let mut term = String::with_capacity(MAX_TERM);
    let mut start = 0;
    let mut before = CharClass::Gap;
    let mut last = 0;
    for (at, c) in text.char_indices() {
        let now = class(c);
        let cut = match (before, now) {
            (CharClass::Gap, _) => {
                start = at;
                None
            }
            (CharClass::Dense, CharClass::Dense) | (CharClass::Upper, CharClass::Upper) => None,
            (_, CharClass::Gap | CharClass::Dense)
            | (CharClass::Dense, _)
            | (CharClass::Lower | CharClass::Digit, CharClass::Upper) => Some(at),
            // The last of several capitals begins the next word (`HTTPServer`), unless a plural `s` follows: `URLs`.
            (CharClass::Upper, CharClass::Lower) if last > start && !is_plural(&text, at) => {
                Some(last)
            }
            _ => None,
        };
        if let Some(cut) = cut {
            piece(
                text.get(start..cut).unwrap_or_default(),
                before,
                &mut term,
                &mut each,
            );
            start = cut;
        }
        (before, last) = (now, at);
    }
    if before != CharClass::Gap {
        piece(
            text.get(start..).unwrap_or_default(),
            before,
            &mut term,
            &mut each,
        );
    }
}

/// Whether the `s` at this position ends a word.
fn is_plural(text: &str, at: usize) -> bool {
    let mut rest = text.get(at..).unwrap_or_default().chars();
    rest.next() == Some('s') && rest.next().is_none_or(|c| class(c) != CharClass::Lower)
}

/// Emits the terms of one piece of a text, which consists of one kind of script.
fn piece(piece: &str, class: CharClass, term: &mut String, each: &mut impl FnMut(&str)) {
    if class == CharClass::Dense {
        return grams(piece, each);
    }
    term.clear();
    if piece.is_ascii() {
        term.push_str(clip(piece, MAX_TERM));
        term.make_ascii_lowercase();
    } else {
        term.extend(clip(piece, MAX_TERM).chars().flat_map(char::to_lowercase));
    }
    if STOP.binary_search(&term.as_str()).is_ok() {
        return;
    }
    stem(term);
    each(term);
}

/// Emits each character and each pair of adjacent ones: words in such scripts have one to a few characters.
fn grams(piece: &str, each: &mut impl FnMut(&str)) {
    let mut starts = piece.char_indices().map(|(at, _)| at).chain([piece.len()]);
    let (Some(mut first), Some(mut second)) = (starts.next(), starts.next()) else {
        return;
    };
    each(piece.get(first..second).unwrap_or_default());
    for third in starts {
        each(piece.get(first..third).unwrap_or_default());
        each(piece.get(second..third).unwrap_or_default());
        (first, second) = (second, third);
    }
}

/// Strips the most common English endings, so that `lists`, `listing` and `listed` match. Conservative: a wrong match costs more than a
/// missed one.
fn stem(word: &mut String) {
    let whole = word.is_ascii() && word.len() >= 4;
    if !whole || word.ends_with(|c: char| c.is_ascii_digit()) {
        return;
    }
    plural(word);
    for (ending, least) in [("ing", 6), ("ed", 5)] {
        if word.len() >= least
            && let Some(rest) = word.strip_suffix(ending)
            && rest.contains(['a', 'e', 'i', 'o', 'u', 'y'])
        {
            word.truncate(rest.len());
            undouble(word);
            break;
        }
    }
    if word.len() > 4 && word.ends_with('e') {
        word.pop();
    }
    // calculate, calculation, calculator.
    if word.len() > 6 && (word.ends_with("tion") || word.ends_with("sion")) {
        word.truncate(word.len() - 3);
    } else if word.len() > 6 && word.ends_with("tor") {
        word.truncate(word.len() - 2);
    }
}

fn plural(word: &mut String) {
    let long = word.len() > 4;
    if long && word.ends_with("ies") {
        word.truncate(word.len() - 3);
        word.push('y');
    } else if word.ends_with("sses")
        || long
            && ["xes", "zes", "ches", "shes"]
                .iter()
                .any(|end| word.ends_with(end))
    {
        word.truncate(word.len() - 2);
    } else if word.ends_with('s') && !["ss", "us", "is"].iter().any(|end| word.ends_with(end)) {
        word.pop();
    }
}

/// Removes a doubled final consonant: `planned` stems to `plan`.
fn undouble(word: &mut String) {
    let mut last = word.bytes().rev();
    if let (Some(a), Some(b)) = (last.next(), last.next())
        && a == b
        && word.len() > 2
        && !matches!(a, b'l' | b's' | b'z')
    {
        word.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::{STOP, terms};

    fn check(text: &str, expect: &str) {
        let mut found = Vec::new();
        terms(text, |term| found.push(term.to_owned()));
        assert_eq!(found.join(" "), expect, "{text:?}");
    }

    #[test]
    fn names_and_sentences_come_apart_into_terms() {
        assert!(STOP.is_sorted());
        for (text, expect) in [
            ("", ""),
            ("?!… -- '", ""),
            ("read_file", "read file"),
            ("readFile2", "read file2"),
            ("HTTPServer.getURLs", "http server get url"),
            ("XMLHttpRequest", "xml http request"),
            ("a_B-c9", "b c9"),
            ("please Let me list the files", "list file"),
            (
                "calculate calculation calculator",
                "calculat calculat calculat",
            ),
            (
                "planned filing boxes queries status pass",
                "plan fil box query status pass",
            ),
            ("ÜBER straße", "über straße"),
            ("ﬁle ①", "file 1"),
            ("天気を知る", "天 天気 気 気を を を知 知 知る る"),
            ("get天気now", "get 天 天気 気 now"),
            ("猫", "猫"),
            ("поиск файлов", "поиск файлов"),
        ] {
            check(text, expect);
        }
        check(&"x".repeat(1_000_000), &"x".repeat(64));
        check(&"é".repeat(1_000), &"é".repeat(32));
    }
}
