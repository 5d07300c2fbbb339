//! The words of a text as memory search sees them: identifiers split, scripts without spaces in pairs.

/// Maximum number of characters of a word that count; the rest of a longer one (a key, a blob) is ignored.
const MAX_WORD: usize = 64;

/// One word of a text, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchWord {
    /// A word of a script with spaces.
    Plain(String),
    /// An identifier of several words: `getUserName`, `user_name`.
    Joined {
        /// The whole identifier without separators: `getusername`.
        whole: String,
        /// Its words.
        parts: Vec<String>,
    },
    /// A run of characters of a script without spaces (Chinese, Japanese, Korean, Thai …).
    Run(Vec<char>),
}

impl SearchWord {
    /// Adds the terms that find a text with this word.
    fn terms(&self, out: &mut Vec<String>) {
        match self {
            Self::Plain(word) => out.push(word.clone()),
            Self::Joined { whole, parts } => {
                out.push(whole.clone());
                out.extend(parts.iter().cloned());
            }
            Self::Run(run) => {
                out.extend(run.iter().map(char::to_string));
                if run.len() > 1 {
                    out.extend(pairs(run));
                }
            }
        }
    }
}

/// Returns the pairs of adjacent characters in a run; for a single character, that one.
pub fn pairs(run: &[char]) -> Vec<String> {
    if run.len() < 2 {
        return run.iter().map(char::to_string).collect();
    }
    run.windows(2).map(|pair| pair.iter().collect()).collect()
}

/// Returns the terms that find a text, each as often as it occurs.
pub fn terms(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    for word in split(text) {
        word.terms(&mut out);
    }
    out
}

/// Returns the words of a text in order.
pub fn split(text: &str) -> Vec<SearchWord> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(is_word) {
        rest = &rest[start..];
        let first_unspaced = rest.starts_with(is_unspaced);
        let ends = |c: char| !is_word(c) || is_unspaced(c) != first_unspaced;
        let end = rest.find(ends).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        if first_unspaced {
            words.push(SearchWord::Run(word.chars().collect()));
        } else {
            words.extend(identifier(word));
        }
    }
    words
}

/// Returns a word of a spaced script; `None` if it consists of separators only.
fn identifier(word: &str) -> Option<SearchWord> {
    let mut parts: Vec<String> = Vec::new();
    for piece in word.split('_').filter(|piece| !piece.is_empty()) {
        parts.extend(camel_case_words(piece).map(lower));
    }
    match parts.len() {
        0 => None,
        1 => parts.pop().map(SearchWord::Plain),
        _ => Some(SearchWord::Joined {
            whole: clipped(&parts.concat()),
            parts,
        }),
    }
}

/// Splits camel case: `HTTPServerName` into `HTTP`, `Server`, `Name`.
fn camel_case_words(piece: &str) -> impl Iterator<Item = &str> {
    let chars: Vec<(usize, char)> = piece.char_indices().collect();
    let mut cuts = vec![0];
    for (n, (at, c)) in chars.iter().enumerate().skip(1) {
        let before = chars[n - 1].1;
        let next_lower = chars.get(n + 1).is_some_and(|(_, c)| c.is_lowercase());
        let rises = !before.is_uppercase() && c.is_uppercase();
        if rises || (before.is_uppercase() && c.is_uppercase() && next_lower) {
            cuts.push(*at);
        }
    }
    cuts.push(piece.len());
    let ranges: Vec<(usize, usize)> = cuts.windows(2).map(|cut| (cut[0], cut[1])).collect();
    ranges.into_iter().map(|(from, to)| &piece[from..to])
}

fn lower(word: &str) -> String {
    clipped(&word.to_lowercase())
}

fn clipped(word: &str) -> String {
    word.chars().take(MAX_WORD).collect()
}

/// Whether it is a letter, a digit, a separator in identifiers, or a combining accent.
fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || matches!(c, '\u{300}'..='\u{36f}')
}

/// Whether it belongs to a script without spaces between words, by Unicode block.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{0e00}'..='\u{0eff}'       // Thai, Lao
        | '\u{1000}'..='\u{109f}'     // Myanmar
        | '\u{1100}'..='\u{11ff}'     // Hangul Jamo
        | '\u{1780}'..='\u{17ff}'     // Khmer
        | '\u{2e80}'..='\u{2fdf}'     // radicals
        | '\u{3005}'..='\u{3007}'
        | '\u{3040}'..='\u{318f}'     // kana, bopomofo, Hangul
        | '\u{31a0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{a960}'..='\u{a97f}'
        | '\u{ac00}'..='\u{d7ff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ffdc}'
        | '\u{20000}'..='\u{323af}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &str) {
        assert_eq!(terms(text).join(" "), expect, "{text:?}");
    }

    #[test]
    fn identifiers_are_taken_apart_and_kept_whole() {
        check("getUserName", "getusername get user name");
        check("user_name", "username user name");
        check(
            "HTTPServer utf8Text",
            "httpserver http server utf8text utf8 text",
        );
        check("MAX_TTL", "maxttl max ttl");
        check("Plain words, here.", "plain words here");
        check("__init__ _ --flag=3", "init flag 3");
        check("ÄÖ Straße", "äö straße");
        check("cafe\u{301}", "cafe\u{301}");
        check("", "");
        check("\" OR ( * ^ : -", "or");
    }

    #[test]
    fn scripts_without_spaces_are_found_by_pairs() {
        check("部署", "部 署 部署");
        check("用haft部署", "用 haft 部 署 部署");
        check("デプロイ", "デ プ ロ イ デプ プロ ロイ");
        check("한국어", "한 국 어 한국 국어");
        assert_eq!(pairs(&['数', '据', '库']), ["数据", "据库"]);
        assert_eq!(pairs(&['数']), ["数"]);
    }

    #[test]
    fn a_blob_counts_by_its_beginning() {
        let terms = terms(&"a".repeat(100_000));
        assert_eq!(terms, ["a".repeat(MAX_WORD)]);
    }
}
