//! The known word that a misspelt one was probably meant to be.

/// The least likeness (Jaro-Winkler, 0 to 1) at which a word is worth suggesting.
const LIKE_ENOUGH: f64 = 0.7;

/// Returns the word that is most like `wrong`, if one is like enough.
///
/// ```
/// use haft_app::nearest::nearest;
///
/// assert_eq!(nearest("polcy", &["policy", "runs"]), Some("policy"));
/// assert_eq!(nearest("zzz", &["policy", "runs"]), None);
/// ```
pub fn nearest<'a>(wrong: &str, words: &[&'a str]) -> Option<&'a str> {
    words
        .iter()
        .map(|word| (strsim::jaro_winkler(wrong, word), *word))
        .filter(|(likeness, _)| *likeness > LIKE_ENOUGH)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, word)| word)
}
