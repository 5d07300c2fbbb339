//! The user's variables for a program that runs outside of any jail.

use std::path::Path;

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
                    kept.filter(|part| part.starts_with('/') && !self.names_changeable(part));
                let kept: Vec<&str> = kept.collect();
                return Some((name.to_owned(), kept.join(":")));
            }
            (!self.names_changeable(value)).then(|| (name.to_owned(), value.to_owned()))
        })
        .collect()
    }

    /// Whether a text names, by an absolute path, a file or folder that tools may change or create.
    pub fn names_changeable(&self, text: &str) -> bool {
        let mut paths = text.split(|c: char| c.is_whitespace() || ":=,;\"'!".contains(c));
        paths.any(|path| {
            let mut above = Path::new(path).ancestors();
            path.starts_with('/') && above.any(|folder| self.may_change(folder))
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
        let workspace = folder.path().canonicalize().unwrap().join("w");
        std::fs::create_dir_all(workspace.join("bin")).unwrap();
        let places = Places::declared([PathBuf::from("/nonexistent")], [workspace.clone()]);
        let at = workspace.display();
        let path = format!("{at}/bin:/usr/bin:.:bin:{at}/.venv/bin:/bin");
        let values = [
            ("PATH", &*path),
            ("HOME", "/home/ann"),
            ("LANG", "C.UTF-8"),
            ("EMPTY", ""),
            ("XDG_CONFIG_HOME", &*format!("{at}/not/there")),
            ("LD_PRELOAD", &*format!("/usr/lib/x.so {at}/y.so")),
            ("NODE_OPTIONS", &*format!("--require={at}/x.js")),
            ("PYTHONPATH", &*format!("/opt/x:{at}")),
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
                "EMPTY="
            ]
        );
    }
}
