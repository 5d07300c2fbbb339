//! Suggestions for misspelled words.

/// The minimum similarity (Jaro-Winkler, 0 to 1) of a suggestion: a wrong one costs more than none.
const MIN_SIMILARITY: f64 = 0.8;

/// Returns the word that is most similar to `wrong`, if one is similar enough.
///
/// ```
/// use haft_setup::nearest::nearest;
///
/// assert_eq!(nearest("polcy", &["policy", "runs"]), Some("policy"));
/// assert_eq!(nearest("Runs", &["policy", "runs"]), Some("runs"));
/// assert_eq!(nearest("yolo", &["read-only", "workspace", "trusted"]), None);
/// ```
pub fn nearest<'a>(wrong: &str, words: &[&'a str]) -> Option<&'a str> {
    let wrong = plain(wrong);
    words
        .iter()
        .map(|word| (strsim::jaro_winkler(&wrong, &plain(word)), *word))
        .filter(|(likeness, _)| *likeness > MIN_SIMILARITY)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, word)| word)
}

/// Returns a word in lower case without dashes and underscores, which make no difference.
fn plain(word: &str) -> String {
    let letters = word.chars().filter(|c| !matches!(c, '_' | '-'));
    letters.flat_map(char::to_lowercase).collect()
}
