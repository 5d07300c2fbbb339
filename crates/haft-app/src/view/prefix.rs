//! Abbreviated ids: a prefix that only one id has stands for it.

use crate::problem::Problem;

/// Maximum number of ids that an ambiguous prefix lists.
const MAX_LISTED: usize = 5;

/// Returns the id that equals `typed`, or the only one that starts with it; if there is none, `typed` itself, so that its reader reports
/// the error. `what` is the plural noun for these ids.
///
/// ```
/// use haft_app::view::prefix::find;
///
/// let ids = ["run-12", "run-34", "run-3"].map(str::to_owned);
/// assert_eq!(find("runs", "run-1", ids.clone()).unwrap(), "run-12");
/// assert_eq!(find("runs", "run-3", ids.clone()).unwrap(), "run-3");
/// assert_eq!(find("runs", "x", ids.clone()).unwrap(), "x");
/// assert!(find("runs", "run", ids).is_err());
/// ```
///
/// # Errors
/// Several ids start with it.
pub fn find(
    what: &str,
    typed: &str,
    ids: impl IntoIterator<Item = String>,
) -> Result<String, Problem> {
    let mut alike = Vec::new();
    for id in ids {
        if id == typed {
            return Ok(id);
        }
        if !typed.is_empty() && id.starts_with(typed) {
            alike.push(id);
        }
    }
    match alike.as_slice() {
        [] => Ok(typed.to_owned()),
        [one] => Ok(one.clone()),
        several => Err(ambiguous(what, typed, several)),
    }
}

/// Returns the problem that several ids start with what the user typed, with a list of them.
pub fn ambiguous(what: &str, typed: &str, alike: &[String]) -> Problem {
    let mut listed = alike[..alike.len().min(MAX_LISTED)].join(", ");
    if alike.len() > MAX_LISTED {
        listed.push_str(", …");
    }
    Problem::usage(format!("{} {what} begin with `{typed}`", alike.len()))
        .advise(format!("type more of one: {listed}"))
}
