//! `docs/reference/settings.md` lists every key exactly as the settings table has it.
//!
//! `HAFT_DOCS=write cargo test -p haft-app --test settings_page` regenerates the page.

#![expect(
    clippy::unwrap_used,
    reason = "a test whose scene cannot be set has failed"
)]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use haft_app::config::keys::{KEYS, SettingKey, SettingType, Untrusted};

const HEAD: &str = "\
# Every setting

This page is made from the table that haft itself reads, so it lists every key, its default, and what a folder's `haft.toml` may do with
the key before you trust the folder. [Settings](../guide/settings.md) explains layers, trust and secrets; `haft config explain KEY` shows
where a value comes from.

In a key, `*` stands for a name of yours, as in `tools.read_file.enabled`, and `**` for any keys below. Lists of all layers are combined.
";

#[test]
fn the_settings_page_lists_every_key_as_haft_reads_it() {
    let page = page();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/settings.md");
    if std::env::var_os("HAFT_DOCS").is_some_and(|value| value == "write") {
        fs::write(&file, &page).unwrap();
    }
    let written = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        written == page,
        "docs/reference/settings.md is not what the table of settings says; \
         HAFT_DOCS=write cargo test -p haft-app --test settings_page writes it anew"
    );
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    let mut section = "";
    for key in KEYS {
        let of = key.path.split('.').next().unwrap_or_default();
        if of != section {
            section = of;
            write!(
                page,
                "\n## {section}\n\n| key | value | default | untrusted folder | |\n|---|---|---|---|---|\n"
            )
            .unwrap();
        }
        page.push_str(&row(key));
    }
    page
}

fn row(key: &SettingKey) -> String {
    let default = match key.default {
        "" => "–".to_owned(),
        default => format!("`{default}`"),
    };
    let row = [
        format!("`{}`", key.path),
        values(key.kind),
        default,
        untrusted(key.untrusted),
        key.doc.to_owned(),
    ];
    format!(
        "| {} |\n",
        row.map(|cell| cell.replace('|', "\\|")).join(" | ")
    )
}

fn values(kind: SettingType) -> String {
    match kind {
        SettingType::Flag => "`true`, `false`".to_owned(),
        SettingType::Whole(least) => format!("whole number, at least {least}"),
        SettingType::Seconds => "seconds".to_owned(),
        SettingType::Amount => "a number, at least 0".to_owned(),
        SettingType::Text => "text".to_owned(),
        SettingType::Choice(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("`\"{word}\"`")).collect();
            words.join(", ")
        }
        SettingType::Items => "list of texts".to_owned(),
        SettingType::Rules => "list of rules".to_owned(),
        SettingType::Map => "table of texts".to_owned(),
        SettingType::Anything => "see the guide".to_owned(),
    }
}

fn untrusted(may: Untrusted) -> String {
    match may {
        Untrusted::Ignored => "ignored".to_owned(),
        Untrusted::Adds => "may add".to_owned(),
        Untrusted::Only(value) => format!("`{value}` only"),
        Untrusted::Stricter => "stricter only".to_owned(),
    }
}
