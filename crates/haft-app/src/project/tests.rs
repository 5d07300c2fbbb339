//! What a scan finds in folders, and that the resulting settings are valid.

use std::fs;
use std::path::Path;

use super::{Project, starter};
use crate::config::document;

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

fn rules(root: &Path) -> Vec<String> {
    let project = Project::scan(root);
    let all = project.allow.iter().chain(&project.ask);
    all.map(|rule| rule.rule.clone()).collect()
}

#[test]
fn each_kind_of_project_gets_its_rules() {
    type Files = &'static [(&'static str, &'static str)];
    let rows: [(Files, &[&str], &[&str]); 7] = [
        (&[], &[], &["Bash("]),
        (
            &[(
                "package.json",
                r#"{"scripts":{"test":"x","start":"y","deploy":"z","lint":"l"}}"#,
            )],
            &["Bash(npm test)", "Bash(npm run test)", "Bash(npm run lint)"],
            &["deploy", "start", "build"],
        ),
        (
            &[
                ("pnpm-workspace.yaml", "packages: [apps/*]"),
                ("package.json", "{}"),
                ("apps/a/package.json", r#"{"scripts":{"build":"x"}}"#),
                ("node_modules/z/package.json", r#"{"scripts":{"test":"x"}}"#),
                ("crates/b/Cargo.toml", ""),
            ],
            &["Bash(pnpm run build)", "Bash(cargo test)"],
            &["npm test", "pnpm test"],
        ),
        (
            &[("pyproject.toml", "[tool.ruff]\n"), ("uv.lock", "")],
            &["Bash(uv run pytest)", "Bash(uv run ruff check .)"],
            &["mypy"],
        ),
        (
            &[("requirements.txt", "mypy\n")],
            &["Bash(pytest)", "Bash(mypy)"],
            &["uv run"],
        ),
        (
            &[("go.mod", "module x"), (".git/HEAD", "")],
            &["Bash(go test ./...)", "Bash(git push *)"],
            &[],
        ),
        (
            &[("Makefile", "test: a\n\tx\nbuild := 1\ncheckers: b\n")],
            &["Bash(make test)"],
            &["make build", "make check"],
        ),
    ];
    for (files, expected, absent) in rows {
        let root = folder(files);
        let found = rules(root.path());
        for rule in expected {
            assert!(found.iter().any(|found| found == rule), "{rule}: {found:?}");
        }
        for part in absent {
            assert!(
                !found.iter().any(|found| found.contains(part)),
                "{part}: {found:?}"
            );
        }
        let text = starter::text(&Project::scan(root.path()));
        document::parse("haft.toml", &text).unwrap();
        for line in text
            .lines()
            .filter(|line| line.trim_start().starts_with('"'))
        {
            assert!(line.contains('#'), "a line without its reason: {line}");
        }
    }
}

#[test]
fn a_folder_that_leads_into_itself_and_names_that_are_no_manifests_do_no_harm() {
    let root = folder(&[("a/Cargo.toml", ""), ("package.json", "not json")]);
    std::os::unix::fs::symlink(root.path(), root.path().join("a/again")).unwrap();
    fs::create_dir(root.path().join("go.mod")).unwrap();
    let project = Project::scan(root.path());
    assert_eq!(project.packages, 2);
    assert!(!project.kinds.contains("Go"), "{:?}", project.kinds);
}
