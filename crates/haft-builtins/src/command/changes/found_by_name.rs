//! `FoundByName`: which files of a build output the host's programs find by their names alone.

use std::path::{Component, Path};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::command::changes::taken_from_tree::TAKEN_FROM_TREE;

/// Names that programs look for, from the topmost ignored folder on: startup files and byte code, manifests and settings that editors and
/// tools find as they walk the workspace. A later line wins; those of `TAKEN_FROM_TREE` and then `OWN_OF_TOOLS` follow.
const NAMES: &[&str] = &[
    // Loaded at the start, or in place of their sources.
    "*.elc",
    "*.pth",
    "*.pyc",
    "*.pyo",
    "*.zwc",
    "*._pth",
    "activate",
    "activate.*",
    "activate_this.*",
    "pyvenv.cfg",
    "sitecustomize*",
    "usercustomize*",
    "**/sitecustomize*/**",
    "**/usercustomize*/**",
    // Settings and manifests.
    "*.conf.*",
    "*.config.*",
    "*.gemspec",
    "*.*proj",
    "*.props",
    "*.sln",
    "*.targets",
    "*.workspace.*",
    "Cargo.toml",
    "Gemfile",
    "Package.swift",
    "Rakefile",
    "build.gradle*",
    "bunfig.toml",
    "composer.json",
    "deno.json*",
    "go.work",
    "jsconfig.json",
    "mix.exs",
    "package.json",
    "pnpm-workspace.yaml",
    "pom.xml",
    "project.assets.json",
    "pubspec.yaml",
    "pyproject.toml",
    "pytest.ini",
    "settings.gradle*",
    "setup.cfg",
    "setup.py",
    "tox.ini",
    "tsconfig*.json",
];

/// Those that the tools themselves leave out, as their builds make them.
const OWN_OF_TOOLS: &[&str] = &[
    "!/obj/**/*.cs",
    "!/obj/**/*.cshtml",
    "!/obj/**/*.razor",
    "!/obj/**/*.resx",
    "!/obj/**/*.vb",
    "!/obj/**/*.xaml",
    "!/_build/**/dune",
    "!/_build/**/dune-project",
    "!/out/**/*.scala",
    "!/target/**/*.scala",
    "!/.*/**/*.config.*",
    "!/.*/**/package.json",
    "!/.*/**/tsconfig*.json",
];

/// The names with a dot that builds, tests and caches make and no program takes for settings. Any other such name is asked about: by such
/// names programs find their settings (`.irbrc`, `.eslintrc.js`, `.rubocop.yml`), and there is no end of them.
const HARMLESS_DOTFILES: &[&str] = &[
    // git, documentation, desktops.
    ".DS_Store",
    ".buildinfo*",
    ".doctrees",
    ".gitignore",
    ".gitkeep",
    ".keep",
    ".nojekyll",
    ".well-known",
    // Compilers and their builds: cargo, CMake, ninja, autotools, kbuild, .NET, dune, mix, rebar3, Flutter, Scala.
    ".*.cmd",
    ".*objs",
    ".NET*,Version=*",
    ".cargo-*lock",
    ".cmake",
    ".db",
    ".deps",
    ".digest-db",
    ".dirstamp",
    ".dune",
    ".filesystem-clock",
    ".fingerprint",
    ".future-incompat-report.json",
    ".last_build_id",
    ".libs",
    ".lock",
    ".merlin-conf",
    ".mix",
    ".ninja_*",
    ".ppx",
    ".qt",
    ".rcc",
    ".rebar3",
    ".rpc",
    ".rustc_info.json",
    ".rustdoc_fingerprint.json",
    ".scala-build",
    ".stamp*",
    ".timestamp*",
    // Tests, coverage and bundles.
    ".last-run.json",
    ".last_run.json",
    ".nitro",
    ".resultset.json*",
    ".tmp",
    ".tsbuildinfo",
    ".vite",
    ".vite-temp",
];

/// What Python and Lua load from a folder that has the name of a module: only directly in the output, as `build` and `coverage` are
/// modules.
const OF_A_MODULE: &[&str] = &["__init__.", "__main__.", "init.lua"];

/// Endings of JavaScript and TypeScript, whose test runners take a folder's name, too.
const SCRIPTS: &[&str] = &["cjs", "cts", "js", "jsx", "mjs", "mts", "ts", "tsx"];

/// Endings of other sources that collectors of tests load.
const SOURCES: &[&str] = &[
    "bats", "clj", "cljc", "cljs", "coffee", "dart", "exs", "jl", "kts", "lua", "php", "pl", "ps1",
    "py", "r", "rb", "t",
];

/// Words in a source's name by which collectors know a test.
const TEST_WORDS: &[&str] = &[
    "bench",
    "benchmark",
    "conftest",
    "cy",
    "spec",
    "specs",
    "test",
    "tests",
];

/// Folders whose scripts collectors load, whatever their names.
const TEST_FOLDERS: &[&str] = &[
    "__mocks__",
    "__test__",
    "__tests__",
    "spec",
    "specs",
    "test",
    "tests",
];

/// The rules on names.
#[derive(Debug, Clone)]
pub(super) struct FoundByName {
    names: Gitignore,
    harmless_dotfiles: Gitignore,
}

impl FoundByName {
    pub(super) fn new() -> Result<Self, ignore::Error> {
        let taken = TAKEN_FROM_TREE.iter().flat_map(|tool| tool.names);
        let names = NAMES.iter().chain(taken).chain(OWN_OF_TOOLS);
        Ok(Self {
            names: patterns(names.copied())?,
            harmless_dotfiles: patterns(HARMLESS_DOTFILES.iter().copied())?,
        })
    }

    /// Returns whether programs find the file at `path` by its name. `top` is the topmost ignored path there.
    pub(super) fn finds(&self, top: &Path, path: &Path) -> bool {
        let above = top.parent().unwrap_or(Path::new(""));
        let (Ok(from_top), Ok(below)) = (path.strip_prefix(above), path.strip_prefix(top)) else {
            return true;
        };
        self.names.matched(from_top, false).is_ignore()
            || self.has_dotfile(below)
            || is_build_file(path)
            || is_of_a_module(below)
            || is_test(path)
    }

    fn has_dotfile(&self, below: &Path) -> bool {
        below.components().any(|part| {
            let name = Path::new(part.as_os_str());
            let dotted = matches!(part, Component::Normal(name) if name.as_encoded_bytes().starts_with(b"."));
            dotted && !self.harmless_dotfiles.matched(name, false).is_ignore()
        })
    }
}

/// Returns whether a name is that of a build file of Pants or Please, whatever follows (<https://www.pantsbuild.org/stable/reference/global-options>,
/// `build_patterns`). In small letters it is any build's own.
fn is_build_file(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.as_encoded_bytes().starts_with(b"BUILD.")
}

/// Returns whether a name directly in an output makes its folder a module, or the module's program.
fn is_of_a_module(below: &Path) -> bool {
    let mut parts = below.components();
    let (Some(first), None) = (parts.next(), parts.next()) else {
        return false;
    };
    let name = first.as_os_str().to_string_lossy().to_ascii_lowercase();
    OF_A_MODULE.iter().any(|known| name.starts_with(known))
}

/// Returns whether collectors of tests load a file.
fn is_test(path: &Path) -> bool {
    let lower = |part: &std::ffi::OsStr| part.to_string_lossy().to_ascii_lowercase();
    let name = path.file_name().map(lower).unwrap_or_default();
    let Some((stem, ending)) = name.rsplit_once('.') else {
        return false;
    };
    // A declaration of types is not run.
    let declares = matches!(stem.rsplit_once('.'), Some((_, "d")));
    let script = SCRIPTS.contains(&ending) && !declares;
    if !script && !SOURCES.contains(&ending) {
        return false;
    }
    let words = || stem.split(['.', '_', '-']);
    // unittest takes `testing.py`, too.
    let python = ending == "py" && stem.starts_with("test");
    let is_test_folder = |part: &std::ffi::OsStr| TEST_FOLDERS.contains(&&*lower(part));
    let mut folders = path.parent().into_iter().flat_map(Path::iter);
    python
        || words().any(|word| TEST_WORDS.contains(&word))
        || (script && folders.any(is_test_folder))
}

/// Returns what matches one of these patterns, in any case of letters.
pub(super) fn patterns<'a>(
    names: impl Iterator<Item = &'a str>,
) -> Result<Gitignore, ignore::Error> {
    let mut builder = GitignoreBuilder::new("");
    builder.case_insensitive(true)?;
    for name in names {
        builder.add_line(None, name)?;
    }
    builder.build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_in_a_build_output_when_programs_find_it_by_its_name_is_found() {
        let rules = FoundByName::new().unwrap();
        // The topmost ignored path, files below it that are found, and files that are not.
        for (top, found, not) in [
            (
                "build",
                "a.pyc lib/sitecustomize.py lib/sitecustomize/__init__.py lib/usercustomize.cpython-311-x86_64-linux-gnu.so \
                 x.pth python._pth __main__.py __init__.py __init__.cpython-311.so init.lua testevil.py lib/test_a.py lib/a_test.py lib/conftest.py \
                 gen.go a/gen_test.go Program.cs BUILD a/dune Cargo.toml evil.props Evil.razor a/Evil.cshtml S.resx a.xaml all.slnx BUCK \
                 a/package.mill BUILD.gen a/REPO.bazel x.scala a.robot any.bats rust-project.json lib.gdextension terragrunt.hcl",
                "lib/pkg/__init__.py lib/pkg/__main__.py lib/pkg/contest/latest.py lib/pkg/tests/helper.py CMakeCache.txt Makefile libl.so \
                 CMakeFiles/x.dir/a.c.o test/foo_test classes/java/test/FooTest.class reports/tests/test/index.html .cmake/api/v1/query \
                 CMakeFiles/.timestamp .ninja_log .gitignore build.ninja build.log a.class",
            ),
            (
                "dist",
                "x.test.js x.spec.ts a/x-test.mjs test/helper.js __tests__/a.jsx X.TEST.JS a_spec.rb a.bench.ts a.cy.ts vite.config.js \
                 karma.conf.js package.json esm/package.json .eslintrc.js .irbrc .npmrc .cargo/config.toml a/.rubocop.yml .pnpmfile.cjs \
                 node_modules/.bin/tool",
                "assets/index-Bte.js index.html a.js a.d.ts x.test.d.ts x.test.js.map testing/a.js protest.js latest-a.js \
                 .vite/manifest.json .nojekyll .well-known/security.txt app.runtimeconfig.json",
            ),
            (
                "target",
                "debug/a_test.py .irbrc",
                ".rustc_info.json debug/.fingerprint/w-1/lib-w debug/.cargo-lock debug/deps/test_a-12.d debug/deps/it-34 doc/.lock \
                 scala-3.3/src_managed/main/a.scala doc/w/fn.test.html debug/incremental/w/s/query-cache.bin debug/build/w-1/out/gen.rs test-classes/FooTest.class",
            ),
            (
                "tmp",
                ".Rprofile bunfig.toml pytest.ini jest.config.js .mocharc.js tests/a.ts",
                "a.txt cache.js a.py",
            ),
            (
                ".next",
                "server/app/test/page.js",
                "app.config.mjs package.json server/app/page.js types/app/page.ts",
            ),
            (
                "obj",
                "a.csproj.nuget.g.props project.assets.json",
                "Debug/net8.0/a.AssemblyInfo.cs Debug/net8.0/.NETCoreApp,Version=v8.0.AssemblyAttributes.cs Debug/net8.0/a.dll \
                 Debug/net8.0/Views/a.cshtml Debug/net8.0/a.xaml",
            ),
            ("test/out", "a.js d.ts", "a.txt a.d.ts"),
            (
                ".pytest_cache",
                ".envrc",
                "v/cache/lastfailed .gitignore README.md",
            ),
        ] {
            let top = Path::new(top);
            for (files, expect) in [(found, true), (not, false)] {
                for file in files.split_whitespace() {
                    let path = top.join(file);
                    assert_eq!(rules.finds(top, &path), expect, "{}", path.display());
                }
            }
        }
        for top in ["a.log", ".coverage", "dist", "a.tsbuildinfo"] {
            assert!(!rules.finds(Path::new(top), Path::new(top)), "{top}");
        }
    }
}
