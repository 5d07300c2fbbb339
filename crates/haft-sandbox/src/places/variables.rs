//! The user's variables for a program that runs outside of any jail.

use std::path::{Path, PathBuf};

use super::Places;

impl Places {
    /// Returns these variables without what leads to files that tools may change or create: programs and libraries are looked up there, and
    /// settings read. `PATH` keeps its other folders.
    pub fn own_variables<'a>(
        &self,
        all: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Vec<(String, String)> {
        let all = all.into_iter();
        all.filter_map(|(name, value)| {
            if name == "PATH" {
                let kept = value.split(':');
                let kept =
                    kept.filter(|part| part.starts_with('/') && !self.may_change(Path::new(part)));
                let kept: Vec<&str> = kept.collect();
                return Some((name.to_owned(), kept.join(":")));
            }
            (!self.names_changeable(value)).then(|| (name.to_owned(), value.to_owned()))
        })
        .collect()
    }

    /// Whether a text names, by an absolute path, a file or folder that tools may change or create: such a folder's own name stands somewhere
    /// in it, whatever stands around it, or a path leads there over links. A path may have any characters, and begin after any (`-I/w/lib`).
    fn names_changeable(&self, text: &str) -> bool {
        // `/w` does not stand in `/www`.
        let goes_on = |c: char| c.is_alphanumeric() || "_.-".contains(c);
        let has = |folder: &PathBuf| {
            let mut found = folder.to_str().into_iter().flat_map(|name| {
                text.match_indices(name)
                    .map(|(at, name)| &text[at + name.len()..])
            });
            found.any(|rest| !rest.starts_with(goes_on))
        };
        let ends = |c: char| c.is_whitespace() || ":=,;\"'!".contains(c);
        let mut words = text.split_inclusive(ends).scan(0, |at, word| {
            let begin = *at;
            *at += word.len();
            Some((begin, word))
        });
        self.changeable().iter().any(has)
            || words.any(|(at, word)| {
                let slash = word.find('/');
                let paths = slash.and_then(|slash| {
                    Some([
                        word.get(slash..)?.trim_end_matches(ends),
                        text.get(at + slash..)?,
                    ])
                });
                let mut paths = paths.into_iter().flatten();
                paths.any(|path| self.may_change(Path::new(path)))
            })
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::Places;

    #[test]
    fn a_variable_that_leads_to_what_tools_may_change_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let workspace = folder.join("my w=1");
        std::fs::create_dir_all(workspace.join("bin")).unwrap();
        std::os::unix::fs::symlink(&workspace, folder.join("a link")).unwrap();
        let link = folder.join("a link");
        let link = link.display();
        let places = Places::declared([PathBuf::from("/nonexistent")], [workspace.clone()]);
        let at = workspace.display();
        let path = format!("{at}/bin:/usr/bin:.:bin:{at}/.venv/bin:{link}/bin:/bin");
        let values = [
            ("PATH", &*path),
            ("HOME", "/home/ann"),
            ("LANG", "C.UTF-8"),
            ("EMPTY", ""),
            ("XDG_CONFIG_HOME", &*format!("{at}/not/there")),
            ("LD_PRELOAD", &*format!("/usr/lib/x.so {at}/y.so")),
            ("NODE_OPTIONS", &*format!("--require={at}/x.js")),
            ("PYTHONPATH", &*format!("/opt/x:{at}")),
            ("RUBYOPT", &*format!("-I{at}/lib -rx")),
            ("BY_LINK", &*format!("-I{link}/lib")),
            ("URL", "https://example.com/a/b?c=/d"),
            ("BESIDE", &*format!("{at}x/lib")),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let given = values.iter().map(|(name, value)| (&**name, &**value));
        let kept = places.own_variables(given);
        let kept: Vec<String> = kept
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        assert_eq!(
            kept,
            [
                "PATH=/usr/bin:/bin",
                "HOME=/home/ann",
                "LANG=C.UTF-8",
                "EMPTY=",
                "URL=https://example.com/a/b?c=/d",
                &*format!("BESIDE={at}x/lib")
            ]
        );
    }
}
