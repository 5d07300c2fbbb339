//! The first haft.toml, written by `haft config init`: every key with its meaning, all commented out.

use std::borrow::Cow;
use std::fmt::Write;

use crate::config::keys::{KEYS, SettingKey, SettingType};

/// Returns the text of the file.
pub fn text() -> String {
    let mut out = String::from(
        "# haft's settings for this folder; they apply once the folder is trusted (`haft trust`).\n\
         # Every line is a comment showing the built-in value or an example. `haft config show` prints the effective settings.\n",
    );
    // Names of the user's (`tools.NAME`) come last: TOML wants a section's own keys before its tables.
    let (named, plain): (Vec<_>, Vec<_>) = KEYS.iter().partition(|key| key.path.contains('*'));
    let (alone, plain): (Vec<_>, Vec<_>) =
        plain.into_iter().partition(|key| !key.path.contains('.'));
    for key in alone {
        line(&mut out, key, key.path);
    }
    // Each section starts once, wherever its keys are in the list.
    let mut sections: Vec<(&str, Vec<(&SettingKey, &str)>)> = Vec::new();
    for key in plain.into_iter().chain(named) {
        let (head, leaf) = key.path.rsplit_once('.').unwrap_or(("", key.path));
        if leaf == "**" {
            continue;
        }
        match sections.iter_mut().find(|(known, _)| *known == head) {
            Some((_, keys)) => keys.push((key, leaf)),
            None => sections.push((head, vec![(key, leaf)])),
        }
    }
    for (head, keys) in sections {
        let shown = head.replace('*', "read_file");
        let mark = if head.contains('*') { "# " } else { "" };
        // Writing to a `String` cannot fail.
        let _ = writeln!(out, "\n{mark}[{shown}]");
        for (key, leaf) in keys {
            line(&mut out, key, leaf);
        }
    }
    out
}

fn line(out: &mut String, key: &SettingKey, name: &str) {
    let value = if key.default.is_empty() {
        example(key)
    } else {
        key.default.into()
    };
    let choices = match key.kind {
        SettingType::Choice(words) => format!(" ({})", words.join(", ")),
        _ => String::new(),
    };
    let _ = writeln!(out, "# {name} = {value}  # {}{choices}", key.doc);
}

fn example(key: &SettingKey) -> Cow<'static, str> {
    let fixed = match (key.path, key.kind) {
        ("policy.allow", _) => "[\"Bash(git status)\", \"Edit(/src/**)\"]",
        ("policy.ask", _) => "[\"Bash(git push *)\"]",
        ("policy.deny", _) => {
            "[\"Read(.env)\", { rule = \"Bash(rm *)\", match = [\"rm -rf x\"], reason = \"…\" }]"
        }
        ("tools.enable", _) => "[\"commands\"]",
        ("tools.disable", _) => "[\"write_file\"]",
        ("tools.*.bind", _) => "{ max_lines = 100 }",
        ("tools.*.i18n", _) => "{ de = \"Liest eine Datei\" }",
        ("locale", _) => "\"en\"",
        (_, SettingType::Choice([first, ..])) => return format!("\"{first}\"").into(),
        (_, SettingType::Flag) => "true",
        (_, SettingType::Whole(_)) => "1024",
        (_, SettingType::Seconds) => "60",
        (_, SettingType::Amount) => "2.5",
        (_, SettingType::Items | SettingType::Rules) => "[]",
        (_, SettingType::Text | SettingType::Choice(_)) => "\"\"",
        (_, SettingType::Map | SettingType::Anything) => "{}",
    };
    fixed.into()
}

#[cfg(test)]
mod tests {
    use super::text;
    use crate::config::document;

    #[test]
    fn the_first_file_is_right_as_it_is_and_with_every_line_in_use() {
        assert_eq!(document::parse("haft.toml", &text()).unwrap().len(), 0);
        let all = text();
        let lines = all.lines().skip(2);
        let used: Vec<&str> = lines
            .map(|line| line.strip_prefix("# ").unwrap_or(line))
            .collect();
        let given = document::parse("haft.toml", &used.join("\n").replace('…', "why")).unwrap();
        assert!(given.len() > 40, "{}", given.len());
    }
}
