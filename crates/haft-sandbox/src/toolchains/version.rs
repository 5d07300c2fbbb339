//! Chooses which of the installed versions to use.

use std::cmp::Ordering;

/// Returns the version that the first matching wish names, else the newest; `None` if a wish asks for the system's own.
pub(super) fn choose(installed: &[String], wishes: &[String]) -> Option<String> {
    for wish in wishes.iter().map(|wish| wish.trim()) {
        if wish == "system" {
            return None;
        }
        let fits = |version: &&String| fits(version, wish);
        if let Some(version) = installed.iter().filter(fits).max_by(|a, b| order(a, b)) {
            return Some(version.clone());
        }
    }
    installed.iter().max_by(|a, b| order(a, b)).cloned()
}

/// Returns whether a version is the wished one, or matches a wish that leaves its end open: `20`, `v20.1`.
fn fits(version: &str, wish: &str) -> bool {
    let (version, wish) = (bare(version), bare(wish));
    let rest = version.strip_prefix(wish);
    !wish.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn bare(version: &str) -> &str {
    version.strip_prefix('v').unwrap_or(version)
}

/// Compares by numbers; if they are equal, the one without a suffix (`rc1`) is newer.
fn order(one: &str, other: &str) -> Ordering {
    let (numbers, rest) = split(one);
    let (others, other_rest) = split(other);
    let plain = |rest: &str| rest.is_empty();
    numbers
        .cmp(&others)
        .then_with(|| plain(rest).cmp(&plain(other_rest)))
        .then_with(|| rest.cmp(other_rest))
}

fn split(version: &str) -> (Vec<u64>, &str) {
    let mut numbers = Vec::new();
    let mut rest = bare(version);
    while let Some(end) = number_end(rest) {
        numbers.push(rest[..end].parse().unwrap_or(u64::MAX));
        rest = &rest[end..];
        match rest.strip_prefix('.') {
            Some(after) if number_end(after).is_some() => rest = after,
            _ => break,
        }
    }
    (numbers, rest)
}

fn number_end(text: &str) -> Option<usize> {
    let end = text.find(|letter: char| !letter.is_ascii_digit());
    Some(end.unwrap_or(text.len())).filter(|end| *end > 0)
}

#[cfg(test)]
mod tests {
    use super::choose;

    #[test]
    fn a_wish_chooses_and_else_the_newest_is_used() {
        let installed = ["v18.20.4", "v20.9.0", "v20.11.1", "v9.1.0", "v22.0.0-rc.1"];
        let installed = installed.map(str::to_owned);
        for (wishes, expect) in [
            (&["v20.9.0"][..], Some("v20.9.0")),
            (&["20"], Some("v20.11.1")),
            (&["18.20"], Some("v18.20.4")),
            (&["1"], Some("v22.0.0-rc.1")),
            (&["lts/*", "18"], Some("v18.20.4")),
            (&["system"], None),
            (&[""], Some("v22.0.0-rc.1")),
            (&[], Some("v22.0.0-rc.1")),
        ] {
            let wishes: Vec<_> = wishes.iter().map(|&wish| wish.to_owned()).collect();
            assert_eq!(choose(&installed, &wishes).as_deref(), expect, "{wishes:?}");
        }
        let pythons = ["3.9.18", "3.13.0rc1", "3.13.0"].map(str::to_owned);
        assert_eq!(choose(&pythons, &[]).as_deref(), Some("3.13.0"));
        assert_eq!(choose(&[], &[]), None);
    }
}
