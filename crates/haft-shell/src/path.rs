//! Paths as a command writes them.

/// Removes `.` and `//` and resolves `..` by text alone. The start itself is `.`; leading `..` of a relative path remain.
pub fn clean(path: &str) -> String {
    let absolute = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => match parts.last() {
                Some(&last) if last != ".." => {
                    parts.pop();
                }
                _ if absolute => {}
                _ => parts.push(".."),
            },
            part => parts.push(part),
        }
    }
    let joined = parts.join("/");
    match (absolute, joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".to_owned(),
        (false, false) => joined,
    }
}

/// Cleans a path, as [`clean`] does; most are clean already.
pub fn cleaned(path: String) -> String {
    let parts = path.strip_prefix('/').unwrap_or(&path).split('/');
    let mut parts = parts.map(|part| !matches!(part, "" | "." | ".."));
    if parts.all(|is_plain| is_plain) {
        path
    } else {
        clean(&path)
    }
}

#[cfg(test)]
mod tests {
    use super::{clean, cleaned};

    #[test]
    fn a_path_is_cleaned_in_one_way() {
        for (path, expect) in [
            ("", "."),
            ("a/b", "a/b"),
            ("/a/b", "/a/b"),
            ("/", "/"),
            ("//a", "/a"),
            ("a//b/", "a/b"),
            ("./a/../b", "b"),
            ("../a", "../a"),
            ("/../a", "/a"),
            (".a/..b", ".a/..b"),
        ] {
            assert_eq!(clean(path), expect, "{path}");
            assert_eq!(cleaned(path.to_owned()), expect, "{path}");
        }
    }
}
