//! Files of variables (`envFile`): one `NAME=value` per line, with quotes and comments as in dotenv files.

use std::path::Path;

use crate::plain_file;

/// Maximum size of a file, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Returns the variables of a file, in order; or why they cannot be read.
pub(super) fn read(file: &Path) -> Result<Vec<(String, String)>, String> {
    let text = plain_file::read(file, MAX_FILE_BYTES)
        .map_err(|e| format!("its variables are in {}: {e}", file.display()))?;
    let lines = text.lines().enumerate();
    let mut variables = Vec::new();
    for (nth, line) in lines {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = || {
            // The line is not shown, since it may contain a secret.
            let line = nth + 1;
            format!(
                "line {line} of {} is not NAME=value, which haft reads there",
                file.display()
            )
        };
        let (name, value) = line.split_once('=').ok_or_else(wrong)?;
        let name = name.trim();
        let name = name.strip_prefix("export ").unwrap_or(name).trim();
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(wrong());
        }
        let value = unquote(value.trim()).ok_or_else(wrong)?;
        variables.push((name.to_owned(), value));
    }
    Ok(variables)
}

/// Removes the quotes, or the trailing comment; returns `None` if a quote is not closed on its line.
fn unquote(value: &str) -> Option<String> {
    let Some(quote) = value.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
        let value = value.split_once(" #").map_or(value, |(value, _)| value);
        return Some(value.trim_end().to_owned());
    };
    let (inner, behind) = value.get(1..)?.split_once(quote)?;
    let behind = behind.trim_start();
    let is_whole = behind.is_empty() || behind.starts_with('#');
    // Readers disagree on the meaning of escapes.
    (is_whole && !(quote == '"' && inner.contains('\\'))).then(|| inner.to_owned())
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn names_and_values_are_read_and_what_is_anything_else_is_named_without_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(".env");
        for (text, expect) in [
            ("", Some(vec![])),
            (
                "# a\n\nA=1\nexport B = two words # why\nC='# x'\r\nD=\"\"\n",
                Some(vec![
                    ("A", "1"),
                    ("B", "two words"),
                    ("C", "# x"),
                    ("D", ""),
                ]),
            ),
            ("A", None),
            ("=hush", None),
            ("A B=hush", None),
            ("A=\"hush", None),
            ("A='hush' more", None),
            ("A=\"hush\\n\"", None),
        ] {
            std::fs::write(&file, text).unwrap();
            let variables = read(&file);
            let Some(expect) = expect else {
                let why = variables.unwrap_err();
                assert!(
                    why.contains("line 1") && !why.contains("hush"),
                    "{text}: {why}"
                );
                continue;
            };
            let variables = variables.unwrap();
            let pairs = variables.iter().map(|(name, value)| (&**name, &**value));
            assert_eq!(pairs.collect::<Vec<_>>(), expect, "{text}");
        }
        assert!(
            read(&folder.path().join("none"))
                .unwrap_err()
                .contains("none")
        );
    }
}
