//! `Denials` treat paths as the rules treat them for file tools.

use super::*;
use crate::paths::denials::Denials;
use crate::secret_files::SecretFiles;

/// Returns what rules alone keep from programs.
fn denials(lists: Lists<'_>) -> Denials {
    let builder = builder(Profile::Trusted, lists.set());
    let policy = builder.secret_files(SecretFiles::Allow).build();
    policy.unwrap().denials()
}

const RULES: &[&str] = &[
    ".env",
    "/.env",
    "*.pem",
    "secret/**",
    "/secret/**",
    "a/*",
    "/a/**/x",
    "**/x",
    "**/a/b",
    "**",
    "//home/dev/app/a",
    "~/app/secret/",
    "//etc/**",
];

const PATHS: &[&str] = &[
    ".env",
    "a",
    "a/.env",
    "a/b",
    "a/b/x",
    "a/x",
    "a/x/y",
    "b/a/b",
    "b/secret/k",
    "cert.pem",
    "secret",
    "secret/a/b",
    "x",
];

#[test]
fn denials_say_what_the_rules_say_of_reading() {
    for rule in RULES {
        let (read_rule, edit_rule) = (format!("Read({rule})"), format!("Edit({rule})"));
        let reads = [read_rule.as_str()];
        let lists = Lists {
            deny: &reads,
            ..Lists::default()
        };
        let of_read = denials(lists);
        let edits = [edit_rule.as_str()];
        let edit_lists = Lists {
            deny: &edits,
            ..Lists::default()
        };
        let of_edit = denials(edit_lists);
        for path in PATHS {
            let denied = judge(lists, &read(path)).verdict == Verdict::Deny;
            assert_eq!(of_read.denies_reading(path), denied, "{rule} {path}");
            assert_eq!(of_read.denies_changing(path), denied, "{rule} {path}");
            assert_eq!(of_edit.denies_changing(path), denied, "{rule} {path}");
            assert!(!of_edit.denies_reading(path), "{rule} {path}");
            if !denied {
                continue;
            }
            assert_eq!(
                judge(edit_lists, &write(path)).verdict,
                Verdict::Deny,
                "{rule} {path}"
            );
            assert!(
                of_read.denies_reading(&format!("{path}/below")),
                "{rule} {path}"
            );
            for folder in Path::new(path).ancestors().skip(1) {
                let folder = folder.to_str().unwrap();
                assert!(of_read.may_deny_reading_below(folder), "{rule} {folder}");
                assert!(of_edit.may_deny_changing_below(folder), "{rule} {folder}");
            }
        }
    }
}

#[test]
fn only_deny_rules_on_files_count() {
    let lists = Lists {
        deny: &[
            "Bash(cat .env)",
            "read_file(.env)",
            "Read",
            "WebFetch",
            "write_file(.env)",
        ],
        ask: &["Read(.env)", "Edit(.env)"],
        allow: &["Read(.env)"],
    };
    let none = denials(lists);
    assert!(none.is_empty() && !none.denies_reading(".env") && !none.denies_changing(".env"));
    for (rule, folder, named) in [
        ("Read(.env)", "link", false),
        ("Read(link/**)", "link", false),
        ("Read(/link/.env)", "link", true),
        ("Edit(/link/.env)", "link", true),
        ("Read(/link/.env)", "other", false),
        ("Read(**/link/.env)", "other", true),
    ] {
        let rules = [rule];
        let lists = Lists {
            deny: &rules,
            ..Lists::default()
        };
        let denials = denials(lists);
        assert_eq!(denials.may_name_below(folder), named, "{rule} {folder}");
    }
}
