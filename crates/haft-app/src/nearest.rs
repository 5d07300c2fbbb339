//! The known word that a misspelt one was probably meant to be.

/// The least likeness (Jaro-Winkler, 0 to 1) at which a word is worth suggesting: a wrong suggestion costs more than none.
const LIKE_ENOUGH: f64 = 0.8;

/// Returns the word that is most like `wrong`, if one is like enough.
///
/// ```
/// use haft_app::nearest::nearest;
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
        .filter(|(likeness, _)| *likeness > LIKE_ENOUGH)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, word)| word)
}

/// The letters and digits of a word, in lower case: case and dashes do not make another word.
fn plain(word: &str) -> String {
    let letters = word.chars().filter(|c| !matches!(c, '_' | '-'));
    letters.flat_map(char::to_lowercase).collect()
}
