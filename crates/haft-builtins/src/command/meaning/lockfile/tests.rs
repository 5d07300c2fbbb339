//! Lockfiles as their tools write them: what a change says, and what it warns of.

use std::time::Duration;

use haft::approval::meaning::Meaning;

use crate::command::meaning::budget::Budget;

/// What a change means, with room for all of it.
fn meaning(path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> Option<Meaning> {
    super::meaning(
        path,
        before,
        after,
        &mut Budget::new(Duration::from_secs(600)),
    )
}

const NPM: &str = r#"{"name":"x","lockfileVersion":3,"packages":{"":{"name":"x"},
 "node_modules/a":{"version":"1.0.0","resolved":"https://registry.npmjs.org/a/-/a-1.0.0.tgz","integrity":"sha512-AA"},
 "node_modules/b":{"version":"2.0.0","resolved":"https://registry.npmjs.org/b/-/b-2.0.0.tgz","integrity":"sha512-BB"}}}"#;
const NPM_BOTH: &str = r#"{"name":"x","lockfileVersion":2,"packages":{"":{"name":"x"},
 "node_modules/b":{"version":"2.0.0","resolved":"https://registry.npmjs.org/b/-/b-2.0.0.tgz","integrity":"sha512-BB"}},"dependencies":{
 "b":{"version":"2.0.0","resolved":"https://registry.npmjs.org/b/-/b-2.0.0.tgz","integrity":"sha512-BB","requires":{"c":"1"},"dependencies":{
 "c":{"version":"1.0.0","resolved":"https://registry.npmjs.org/c/-/c-1.0.0.tgz","integrity":"sha512-CC"}}}}}"#;
const PNPM: &str = "lockfileVersion: '9.0'\n\npackages:\n\n  '@s/a@1.0.0':\n    resolution: {integrity: sha512-AA}\n\n  b@2.0.0:\n    resolution: {integrity: sha512-BB}\n";
const YARN: &str = "# yarn lockfile v1\n\n\n\"@s/a@^1.0.0\":\n  version \"1.0.0\"\n  resolved \"https://registry.yarnpkg.com/a.tgz#abc\"\n  integrity sha512-AA\n\nb@^2.0.0, b@^2.1.0:\n  version \"2.0.0\"\n  resolved \"https://registry.yarnpkg.com/b.tgz#abc\"\n  integrity sha512-BB\n";
const BERRY: &str = "__metadata:\n  version: 8\n\n\"a@npm:^1.0.0\":\n  version: 1.0.0\n  resolution: \"a@npm:1.0.0\"\n  checksum: 10c0/AA\n\n\"x@workspace:.\":\n  version: 0.0.0-use.local\n  resolution: \"x@workspace:.\"\n";
const CARGO: &str = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = \"registry+https://github.com/rust-lang/crates.io-index\"\nchecksum = \"AA\"\n\n[[package]]\nname = \"own\"\nversion = \"0.1.0\"\ndependencies = [\n \"a\",\n]\n";
const UV: &str = "version = 1\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = { registry = \"https://pypi.org/simple\" }\nsdist = { url = \"https://files.pythonhosted.org/a.tar.gz\", hash = \"sha256:AA\", size = 1 }\nwheels = [\n    { url = \"https://files.pythonhosted.org/a.whl\", hash = \"sha256:BB\", size = 1 },\n]\n\n[[package]]\nname = \"x\"\nversion = \"0.1.0\"\nsource = { editable = \".\" }\n";
const POETRY: &str = "[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nfiles = [\n    {file = \"a.whl\", hash = \"sha256:AA\"},\n]\n\n[metadata]\nlock-version = \"2.0\"\n";
const GO: &str = "m.example/a v1.0.0 h1:AA=\nm.example/a v1.0.0/go.mod h1:BB=\n";

/// A lockfile, what in it is replaced by what, the title's end, and parts of the lines and of the warnings.
type Row = (
    &'static str,
    &'static str,
    (&'static str, &'static str),
    &'static str,
    &'static str,
    &'static str,
);

const ROWS: &[Row] = &[
    (
        "package-lock.json",
        NPM,
        ("1.0.0", "1.1.0"),
        "0 added, 0 removed, 1 changed",
        "changed a 1.0.0 → 1.1.0 (registry.npmjs.org)",
        "",
    ),
    (
        "package-lock.json",
        NPM,
        ("sha512-AA", "sha512-CC"),
        "0 added, 0 removed, 1 changed",
        "",
        "a 1.0.0 has another hash at the same version",
    ),
    (
        "package-lock.json",
        NPM,
        (",\"integrity\":\"sha512-AA\"", ""),
        "0 added, 0 removed, 1 changed",
        "",
        "a 1.0.0 has lost its hash",
    ),
    (
        "package-lock.json",
        NPM,
        ("https://registry.npmjs.org/a/", "https://evil.example/a/"),
        "0 added, 0 removed, 1 changed",
        "",
        "a 1.0.0 comes from evil.example, the others from registry.npmjs.org",
    ),
    (
        "package-lock.json",
        NPM,
        (
            "https://registry.npmjs.org/a/-/a-1.0.0.tgz",
            "git+ssh://git@evil.example/a.git#1",
        ),
        "0 added, 0 removed, 1 changed",
        "",
        "comes from a git repository",
    ),
    (
        "package-lock.json",
        NPM,
        (
            "https://registry.npmjs.org/a/",
            "http://registry.npmjs.org/a/",
        ),
        "0 added, 0 removed, 1 changed",
        "",
        "an address without encryption",
    ),
    (
        "package-lock.json",
        NPM,
        (
            "node_modules/a\":{",
            "node_modules/c\":{\"hasInstallScript\":true,",
        ),
        "1 added, 1 removed, 0 changed",
        "removed a 1.0.0",
        "c 1.0.0 runs a script",
    ),
    (
        "package-lock.json",
        NPM,
        ("{\"name\"", "<<<<<<< HEAD\n{\"name\""),
        "are not understood",
        "",
        "conflict markers",
    ),
    (
        "web/pnpm-lock.yaml",
        PNPM,
        ("@s/a@1.0.0", "@s/a@1.1.0"),
        "1 changed",
        "changed @s/a 1.0.0 → 1.1.0",
        "",
    ),
    (
        "pnpm-lock.yaml",
        PNPM,
        (
            "{integrity: sha512-BB}",
            "{tarball: https://evil.example/b.tgz}",
        ),
        "0 added, 0 removed, 1 changed, 1 other changed line",
        "",
        "b 2.0.0 has lost its hash",
    ),
    (
        "yarn.lock",
        YARN,
        ("  version \"2.0.0\"", "  version \"2.0.1\""),
        "1 changed",
        "changed b 2.0.0 → 2.0.1 (registry.yarnpkg.com)",
        "",
    ),
    (
        "yarn.lock",
        YARN,
        (
            "https://registry.yarnpkg.com/b.tgz",
            "https://evil.example/b.tgz",
        ),
        "0 added, 0 removed, 1 changed",
        "",
        "b 2.0.0 comes from evil.example",
    ),
    (
        "yarn.lock",
        BERRY,
        ("  checksum: 10c0/AA", "  checksum: 10c0/BB"),
        "0 added, 0 removed, 1 changed",
        "",
        "a 1.0.0 has another hash",
    ),
    (
        "Cargo.lock",
        CARGO,
        ("version = \"1.0.0\"", "version = \"1.0.1\""),
        "1 changed",
        "changed a 1.0.0 → 1.0.1 (github.com/rust-lang/crates.io-index)",
        "",
    ),
    (
        "Cargo.lock",
        CARGO,
        (
            "registry+https://github.com/rust-lang/crates.io-index\"\nchecksum = \"AA\"",
            "git+https://evil.example/a?rev=1\"",
        ),
        "0 added, 0 removed, 1 changed",
        "",
        "a 1.0.0 comes from a git repository",
    ),
    (
        "uv.lock",
        UV,
        ("sha256:BB", "sha256:CC"),
        "0 added, 0 removed, 1 changed",
        "",
        "a 1.0.0 has another hash",
    ),
    (
        "uv.lock",
        UV,
        (", hash = \"sha256:BB\"", ""),
        "0 added, 0 removed, 1 changed, 1 other changed line",
        "",
        "a 1.0.0 has lost one of its hashes",
    ),
    (
        "uv.lock",
        UV,
        ("https://pypi.org/simple", "http://pypi.org/simple"),
        "0 added, 0 removed, 1 changed",
        "",
        "an address without encryption",
    ),
    (
        "poetry.lock",
        POETRY,
        ("sha256:AA", "sha256:CC"),
        "0 added, 0 removed, 1 changed",
        "",
        "a 1.0.0 has another hash",
    ),
    (
        "poetry.lock",
        POETRY,
        (
            "[metadata]",
            "[package.source]\ntype = \"git\"\nurl = \"https://evil.example/a.git\"\n\n[metadata]",
        ),
        "0 added, 0 removed, 1 changed, 3 other changed lines",
        "",
        "a git repository",
    ),
    (
        "go.sum",
        GO,
        ("v1.0.0 h1", "v1.1.0 h1"),
        "1 changed",
        "changed m.example/a v1.0.0 → v1.0.0, v1.1.0",
        "",
    ),
    (
        "go.sum",
        GO,
        ("h1:AA=", "h1:CC="),
        "0 added, 0 removed, 1 changed",
        "",
        "has another hash at the same version",
    ),
    // Where packages came from before, whatever the others do.
    (
        "Cargo.lock",
        CARGO,
        ("rust-lang/crates.io-index", "evil/crates.io-index"),
        "1 changed",
        "changed a 1.0.0, at the same version (github.com/evil/crates.io-index)",
        "a 1.0.0 comes from github.com/evil/crates.io-index, the others from github.com/rust-lang/crates.io-index",
    ),
    (
        "package-lock.json",
        NPM,
        (
            "node_modules/a\":{\"version\":\"1.0.0\"",
            "node_modules/a\":{\"name\":\"evil\",\"version\":\"1.0.1\"",
        ),
        "1 changed",
        "changed a 1.0.0 → 1.0.1",
        "a 1.0.1 is the package evil under this name",
    ),
    (
        "yarn.lock",
        YARN,
        (
            "https://registry.yarnpkg.com/b.tgz",
            "https://registry.yarnpkg.com/evil/-/evil-2.tgz",
        ),
        "1 changed",
        "changed b 2.0.0, at the same version",
        "b 2.0.0 is the package evil under this name",
    ),
    (
        "uv.lock",
        UV,
        (
            "wheels = [\n",
            "wheels = [\n    { url = \"https://evil.example/a.whl\", hash = \"sha256:EE\", size = 1 },\n",
        ),
        "1 changed",
        "at the same version",
        "a 1.0.0 has a file from evil.example, unlike before\na 1.0.0 has 1 more file at the same version",
    ),
    // The same in other words.
    (
        "Cargo.lock",
        CARGO,
        (
            "[[package]]\nname = \"a\"\nversion",
            "[[\"package\"]]\n\"name\" = 'a'\n\"version\"",
        ),
        "the same as before, 3 other changed lines",
        "",
        "",
    ),
    (
        "Cargo.lock",
        CARGO,
        ("checksum = \"AA\"", "\"checksum\"=\"BB\""),
        "1 changed, 1 other changed line",
        "",
        "a 1.0.0 has another hash",
    ),
    (
        "Cargo.lock",
        CARGO,
        (
            "[[package]]",
            "package = [ { name = \"evil\" } ]\n[[package]]",
        ),
        "are not understood",
        "",
        "",
    ),
    (
        "pnpm-lock.yaml",
        PNPM,
        (
            "{integrity: sha512-BB}",
            "{integrity: sha512-BB, \"tarball\": https://evil.example/b.tgz}",
        ),
        "1 changed, 1 other changed line",
        "changed b 2.0.0, at the same version (evil.example)",
        "b 2.0.0 comes from evil.example; before from where the settings say",
    ),
    (
        "pnpm-lock.yaml",
        PNPM,
        (
            "packages:\n",
            "overrides:\n  b: link:../evil\n\n\"patchedDependencies\": {'@s/a@1.0.0': {path: evil.patch, hash: x}}\n\npackages:\n",
        ),
        "the same as before, 2 other changed lines",
        "",
        "@s/a@1.0.0 is patched: evil.patch\nb is overridden: link:../evil",
    ),
    (
        "pnpm-lock.yaml",
        PNPM,
        (
            "packages:\n",
            "importers:\n\n  .:\n    dependencies:\n      b:\n        specifier: ^2\n        version: link:../evil\n\npackages:\n",
        ),
        "other changed lines",
        "",
        "b comes from link:../evil",
    ),
    (
        "yarn.lock",
        YARN,
        (
            "  resolved \"https://registry.yarnpkg.com/b.tgz",
            "  \"resolved\" \"https://evil.example/b.tgz",
        ),
        "1 changed, 1 other changed line",
        "",
        "b 2.0.0 comes from evil.example",
    ),
    (
        "yarn.lock",
        YARN,
        ("b@^2.0.0, b@^2.1.0:", "b@^2.0.0, \"c@^2.1.0\":"),
        "1 added, 0 removed, 0 changed, 1 other changed line",
        "added c 2.0.0",
        "",
    ),
    (
        "yarn.lock",
        BERRY,
        (
            "resolution: \"a@npm:1.0.0\"",
            "\"resolution\": \"evil@npm:1.0.0\"",
        ),
        "1 changed, 1 other changed line",
        "",
        "a 1.0.0 is the package evil under this name",
    ),
    // The part from which npm 6 installs.
    (
        "package-lock.json",
        NPM_BOTH,
        (
            "\"b\":{\"version\":\"2.0.0\",\"resolved\":\"https://registry.npmjs.org/",
            "\"b\":{\"version\":\"2.0.0\",\"resolved\":\"https://evil.example/",
        ),
        "0 added, 0 removed, 1 changed",
        "changed b 2.0.0, at the same version",
        "b 2.0.0 has a file from evil.example, unlike before\nb 2.0.0 has another address at the same version: https://evil.example/b/-/b-2.0.0.tgz",
    ),
    (
        "package-lock.json",
        NPM_BOTH,
        ("{\"c\":\"1\"}", "{\"c\":\"*\"}"),
        "the same as before, 1 other changed line",
        "",
        "",
    ),
    (
        "yarn.lock",
        YARN,
        (
            "b@^2.0.0, b@^2.1.0:",
            "<<<<<<<\n=======\n>>>>>>>\nb@^2.0.0, b@^2.1.0:",
        ),
        "packages in yarn.lock are not understood, 3 other changed lines",
        "",
        "conflict markers",
    ),
    (
        "yarn.lock",
        YARN,
        (YARN, "<<<<<<< a\n=======\n>>>>>>> b\n"),
        "0 added, 2 removed, 0 changed, 3 other changed lines",
        "removed b 2.0.0",
        "conflict markers",
    ),
    // What is about no package.
    (
        "yarn.lock",
        BERRY,
        ("  version: 8", "  version: 9"),
        "the same as before, 1 other changed line",
        "",
        "",
    ),
    (
        "package-lock.json",
        NPM,
        (
            "\"\":{\"name\":\"x\"}",
            "\"\":{\"name\":\"x\",\"bin\":{\"ls\":\"evil.js\"}}",
        ),
        "the same as before, 3 other changed lines",
        "",
        "",
    ),
    (
        "Cargo.lock",
        CARGO,
        (" \"a\",\n", " \"a\",\n \"b\",\n"),
        "the same as before, 1 other changed line",
        "",
        "",
    ),
];

#[test]
fn a_registry_that_all_packages_change_to_is_not_usual() {
    let after = NPM.replace("registry.npmjs.org", "evil.example");
    let found = meaning(
        "package-lock.json",
        Some(NPM.as_bytes()),
        Some(after.as_bytes()),
    );
    let warnings = found.unwrap().warnings;
    let says = "2 packages come from evil.example, the others from registry.npmjs.org; before from registry.npmjs.org: a 1.0.0, b 2.0.0";
    assert!(warnings.contains(&says.to_owned()), "{warnings:?}");
}

#[test]
fn a_lockfile_says_which_packages_change_and_where_they_come_from() {
    let mut wrong = Vec::new();
    for (path, before, (from, to), title, line, warning) in ROWS {
        let after = before.replacen(from, to, 1);
        assert_ne!(*before, after, "{path}: {from}");
        let found = meaning(path, Some(before.as_bytes()), Some(after.as_bytes())).unwrap();
        let warnings = found.warnings.join("\n");
        let is_right = found.title.ends_with(title)
            && found.lines.join("\n").contains(line)
            && warnings.contains(warning)
            && warnings.is_empty() == warning.is_empty();
        if !is_right {
            wrong.push(format!("{path} {from} → {to}: {found:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for text in [NPM, PNPM, YARN, BERRY, CARGO, UV, POETRY, GO] {
        for path in [
            "package-lock.json",
            "pnpm-lock.yaml",
            "yarn.lock",
            "Cargo.lock",
            "go.sum",
        ] {
            // Any text in any file: read, or not understood.
            assert!(meaning(path, None, Some(text.as_bytes())).is_some());
        }
    }
}

#[test]
fn a_lockfile_of_12_mib_with_what_it_was_is_read_and_a_longer_one_is_not() {
    let mut text = "version = 4\n\n".to_owned();
    while text.len() < 11 << 20 {
        let number = text.len();
        let package = format!(
            "[[package]]\nname = \"p{number}\"\nversion = \"1.0.0\"\nsource = \"registry+https://github.com/rust-lang/crates.io-index\"\nchecksum = \"{number:064}\"\n\n"
        );
        text.push_str(&package);
    }
    let found = meaning("Cargo.lock", None, Some(text.as_bytes())).unwrap();
    assert!(found.title.contains(" added, 0 removed"), "{}", found.title);
    assert!(found.lines.len() <= 201);
    let long = vec![b'#'; 13 << 20];
    let (half, rest) = long.split_at(6 << 20);
    for (before, after) in [(None, Some(&*long)), (Some(half), Some(rest))] {
        let found = meaning("Cargo.lock", before, after).unwrap();
        assert!(found.title.contains("are not read"), "{}", found.title);
    }
}
