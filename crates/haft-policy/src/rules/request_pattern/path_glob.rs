//! `PathGlob`: a pattern for paths of requests, name by name: `*` within a name, `**` for any number of names.

use haft_files::glob::{Glob, GlobToken};

/// One name of a pattern, or any number of them.
#[derive(Debug, Clone, PartialEq, Eq)]
enum GlobName {
    Any,
    One(Glob),
}

/// A compiled pattern. Its cost is bounded by the names of the path times those of the pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathGlob {
    names: Box<[GlobName]>,
}

/// The star of a pattern while its text is changed: no path in its normal form has it.
pub(crate) const STAR: char = '\u{10ffff}';

impl PathGlob {
    /// Compiles the text of a pattern, in which [`STAR`] stands for each star that is not escaped. `**` at the end matches at least one
    /// name, which may be empty: all below a folder.
    pub(crate) fn compile(text: &str) -> Self {
        let mut names = names_of(text);
        if names.last() == Some(&GlobName::Any) {
            let one = GlobName::One(Glob::from_pieces([GlobToken::Star]));
            names.insert(names.len() - 1, one);
        }
        Self {
            names: names.into(),
        }
    }

    /// Compiles the pattern of a rule that denies or asks: it also covers the path without a slash at its end, `/a/**` also `/a`, and
    /// letters of both cases.
    pub(crate) fn for_denial(text: &str) -> Self {
        let mut names = names_of(&text.to_ascii_lowercase());
        let empty = GlobName::One(Glob::from_pieces([]));
        if names.len() > 1 && names.last() == Some(&empty) {
            names.pop();
        }
        Self {
            names: names.into(),
        }
    }

    /// Whether the path matches.
    pub(crate) fn matches(&self, path: &str) -> bool {
        let names: Vec<&str> = path.split('/').skip(1).collect();
        self.fits(&names)
    }

    /// Whether a path, given in lower case, matches a pattern for denials.
    pub(crate) fn forbids(&self, path: &str) -> bool {
        let names: Vec<&str> = path.split('/').skip(1).collect();
        let without_slash = match names.split_last() {
            Some((&"", rest)) if !rest.is_empty() => self.fits(rest),
            _ => false,
        };
        without_slash || self.fits(&names)
    }

    /// Whether it matches every path that the other matches. Some `false` answers are wrong.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        if self == other {
            return true;
        }
        let (own, whole) = match self.names.split_last() {
            Some((GlobName::Any, own)) => (own, false),
            _ => (&*self.names, true),
        };
        let fits = if whole {
            own.len() == other.names.len()
        } else {
            own.len() <= other.names.len()
        };
        let mut both = own.iter().zip(&other.names);
        fits && both.all(|(wide, narrow)| match (wide, narrow) {
            (GlobName::One(wide), GlobName::One(narrow)) => wide.covers(narrow),
            _ => false,
        })
    }

    /// Matches name by name. Of several `**`, only the last one is tried again, as of the stars in a text.
    fn fits(&self, names: &[&str]) -> bool {
        let (mut at, mut name) = (0, 0);
        let mut again: Option<(usize, usize)> = None;
        while name < names.len() {
            match self.names.get(at) {
                Some(GlobName::Any) => {
                    at += 1;
                    again = Some((at, name));
                    continue;
                }
                Some(GlobName::One(glob)) if glob.matches(names[name]) => {
                    (at, name) = (at + 1, name + 1);
                    continue;
                }
                _ => {}
            }
            let Some((from, taken)) = again else {
                return false;
            };
            again = Some((from, taken + 1));
            (at, name) = (from, taken + 1);
        }
        let rest = self.names.get(at..).unwrap_or_default();
        rest.iter().all(|one| *one == GlobName::Any)
    }
}

/// Returns the names of a pattern.
fn names_of(text: &str) -> Vec<GlobName> {
    let name = |name: &str| {
        let is_any = name.chars().count() == 2 && name.chars().all(|sign| sign == STAR);
        if is_any {
            return GlobName::Any;
        }
        GlobName::One(Glob::from_pieces(name.chars().map(|sign| match sign {
            STAR => GlobToken::Star,
            sign => GlobToken::Literal(sign),
        })))
    };
    text.split('/').skip(1).map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::{PathGlob, STAR};

    fn text(pattern: &str) -> String {
        pattern.replace('*', &STAR.to_string())
    }

    #[test]
    fn stars_end_at_a_slash_and_two_do_not() {
        for (pattern, path, allows, forbids) in [
            ("/a", "/a", true, true),
            ("/a", "/a/", false, true),
            ("/a/", "/a", false, true),
            ("/a", "/A", false, true),
            ("/a", "/ab", false, false),
            ("/a/*", "/a/b", true, true),
            ("/a/*", "/a/", true, true),
            ("/a/*", "/a/b/c", false, false),
            ("/a/*/c", "/a/b/c", true, true),
            ("/a/b*d/e", "/a/bccd/e", true, true),
            ("/a/**", "/a", false, true),
            ("/a/**", "/a/", true, true),
            ("/a/**", "/a/b/c", true, true),
            ("/a/**", "/ab", false, false),
            ("/**", "/", true, true),
            ("/**", "/a/b", true, true),
            ("/**/c", "/c", true, true),
            ("/**/c", "/a/b/c", true, true),
            ("/**/c", "/a/b/c/d", false, false),
            ("/a/**/c/**/e", "/a/c/x/c/y/e", true, true),
            ("/a/**/c/**/e", "/a/x/e", false, false),
            ("/**/c/**", "/b/c", false, true),
            ("/**/c/**", "/b/c/d", true, true),
            ("/a**", "/abc", true, true),
            ("/a**", "/abc/d", false, false),
        ] {
            let (pattern, shown) = (text(pattern), pattern);
            assert_eq!(
                PathGlob::compile(&pattern).matches(path),
                allows,
                "{shown} {path}"
            );
            let denial = PathGlob::for_denial(&pattern);
            assert_eq!(
                denial.forbids(&path.to_lowercase()),
                forbids,
                "deny {shown} {path}"
            );
        }
    }

    #[test]
    fn a_wider_pattern_covers_a_narrower_one() {
        for (wide, narrow, covers) in [
            ("/a/**", "/a/b", true),
            ("/a/**", "/a/b/**", true),
            ("/a/**", "/a/**", true),
            ("/**", "/a/*/c", true),
            ("/a/*", "/a/b", true),
            ("/a/b", "/a/*", false),
            ("/a/b/**", "/a/**", false),
            ("/a/**", "/a", false),
            ("/a", "/a/**", false),
        ] {
            let read = |pattern: &str| PathGlob::compile(&text(pattern));
            assert_eq!(read(wide).covers(&read(narrow)), covers, "{wide} {narrow}");
        }
    }
}
