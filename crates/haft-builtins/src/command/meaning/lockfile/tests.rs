//! Lockfiles as their tools write them: what a change says, and what it warns of.

use super::meaning;
use super::package::Package;

const NPM: &str = r#"{"name":"x","lockfileVersion":3,"packages":{"":{"name":"x"},
 "node_modules/a":{"version":"1.0.0","resolved":"https://registry.npmjs.org/a/-/a-1.0.0.tgz","integrity":"sha512-AA"},
 "node_modules/b":{"version":"2.0.0","resolved":"https://registry.npmjs.org/b/-/b-2.0.0.tgz","integrity":"sha512-BB"}}}"#;
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
        "the same as before",
        "",
        "a 1.0.0 has another hash at the same version",
    ),
    (
        "package-lock.json",
        NPM,
        (",\"integrity\":\"sha512-AA\"", ""),
        "the same as before",
        "",
        "a 1.0.0 has lost its hash",
    ),
    (
        "package-lock.json",
        NPM,
        ("https://registry.npmjs.org/a/", "https://evil.example/a/"),
        "the same as before",
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
        "the same as before",
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
        "the same as before",
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
        "the same as before",
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
        "the same as before",
        "",
        "b 2.0.0 comes from evil.example",
    ),
    (
        "yarn.lock",
        BERRY,
        ("  checksum: 10c0/AA", "  checksum: 10c0/BB"),
        "the same as before",
        "",
        "a 1.0.0 has another hash",
    ),
    (
        "Cargo.lock",
        CARGO,
        ("version = \"1.0.0\"", "version = \"1.0.1\""),
        "1 changed",
        "changed a 1.0.0 → 1.0.1 (github.com)",
        "",
    ),
    (
        "Cargo.lock",
        CARGO,
        (
            "registry+https://github.com/rust-lang/crates.io-index\"\nchecksum = \"AA\"",
            "git+https://evil.example/a?rev=1\"",
        ),
        "the same as before",
        "",
        "a 1.0.0 comes from a git repository",
    ),
    (
        "uv.lock",
        UV,
        ("sha256:BB", "sha256:CC"),
        "the same as before",
        "",
        "a 1.0.0 has another hash",
    ),
    (
        "uv.lock",
        UV,
        (", hash = \"sha256:BB\"", ""),
        "the same as before",
        "",
        "a 1.0.0 has lost one of its hashes",
    ),
    (
        "uv.lock",
        UV,
        ("https://pypi.org/simple", "http://pypi.org/simple"),
        "the same as before",
        "",
        "an address without encryption",
    ),
    (
        "poetry.lock",
        POETRY,
        ("sha256:AA", "sha256:CC"),
        "the same as before",
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
        "the same as before",
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
        "the same as before",
        "",
        "has another hash at the same version",
    ),
];

#[test]
fn a_lockfile_says_which_packages_change_and_where_they_come_from() {
    for (path, before, (from, to), title, line, warning) in ROWS {
        let after = before.replacen(from, to, 1);
        assert_ne!(*before, after, "{path}: {from}");
        let found = meaning(path, Some(before.as_bytes()), Some(after.as_bytes())).unwrap();
        let shown = format!("{path} {from} → {to}: {found:#?}");
        assert!(found.title.ends_with(title), "{shown}");
        assert!(found.lines.join("\n").contains(line), "{shown}");
        let warnings = found.warnings.join("\n");
        assert!(warnings.contains(warning), "{shown}");
        assert_eq!(warnings.is_empty(), warning.is_empty(), "{shown}");
    }
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
fn a_lockfile_of_20_mb_is_read_and_a_longer_one_is_not() {
    let mut text = "version = 4\n\n".to_owned();
    while text.len() < 19 << 20 {
        let number = text.len();
        let package = format!(
            "[[package]]\nname = \"p{number}\"\nversion = \"1.0.0\"\nsource = \"registry+https://github.com/rust-lang/crates.io-index\"\nchecksum = \"{number:064}\"\n\n"
        );
        text.push_str(&package);
    }
    let found = meaning("Cargo.lock", None, Some(text.as_bytes())).unwrap();
    assert!(found.title.contains(" added, 0 removed"), "{}", found.title);
    assert!(found.lines.len() <= 201);
    let long = vec![b'#'; 21 << 20];
    let found = meaning("Cargo.lock", None, Some(&long)).unwrap();
    assert!(found.title.contains("are not read"));
}

/// A package that is listed at many versions, or with many hashes, takes no more time than as many packages.
#[test]
fn a_lockfile_of_one_package_with_very_many_versions_or_hashes_is_compared_at_once() {
    let versions: String = (0..15_000)
        .rev()
        .map(|at| format!("m.example/a v1.{at}.0 h1:{at}=\n"))
        .collect();
    let hashes: String = (0..30_000)
        .rev()
        .map(|at| format!("m.example/a v1.0.0 h1:{at}=\n"))
        .collect();
    for (text, added) in [(versions, "1 added"), (hashes, "1 added")] {
        let found = meaning("go.sum", None, Some(text.as_bytes())).unwrap();
        assert!(found.title.contains(added), "{}", found.title);
        let same = meaning("go.sum", Some(text.as_bytes()), Some(text.as_bytes())).unwrap();
        assert!(same.title.ends_with("the same as before"), "{}", same.title);
        assert!(same.warnings.is_empty(), "{:?}", same.warnings);
    }
}

/// A hundred thousand packages take about 30 MB.
#[test]
fn a_package_of_a_lockfile_takes_little_memory() {
    assert!(size_of::<((String, String), Package)>() <= 120);
}

#[test]
fn an_npm_lockfile_says_the_same_of_its_packages_however_many_they_are() {
    let entries: Vec<String> = (0..1_000)
        .map(|at| {
            format!(
                r#""node_modules/p{at}":{{"version":"1.0.0","resolved":"https://registry.npmjs.org/p{at}.tgz","integrity":"sha512-{at}"}}"#
            )
        })
        .collect();
    let lock = |entries: &str| format!(r#"{{"lockfileVersion":3,"packages":{{{entries}}}}}"#);
    let before = lock(&entries.join(","));
    let after = before.replace("sha512-77\"", "sha512-x\"");
    let found = meaning("package-lock.json", None, Some(before.as_bytes())).unwrap();
    assert!(
        found.title.contains("1000 added, 0 removed"),
        "{}",
        found.title
    );
    assert_eq!(found.lines.len(), 201);
    assert_eq!(found.lines.last().unwrap(), "and 800 more packages");
    let bytes = (Some(before.as_bytes()), Some(after.as_bytes()));
    let found = meaning("package-lock.json", bytes.0, bytes.1).unwrap();
    let expect = ["p77 1.0.0 has another hash at the same version"];
    assert_eq!(found.warnings, expect);
}
