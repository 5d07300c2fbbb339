//! Which files say what a command does: `npm test` runs what `package.json` says, `make` what the `Makefile` says, `bash x.sh` the script.
//!
//! A rule names the command, not the file. Whoever changes the file changes what the rule allows.

use std::path::Path;

use haft_shell::base_name;

use crate::started::{StartedCommand, started};

/// Programs, and the names of the files that define what they run. `*.x` is any name with that end, `a/` any file in a folder of that name.
const DEFINED_BY: &[(&[&str], &[&str])] = &[
    (
        &[
            "npm",
            "npx",
            "pnpm",
            "pnpx",
            "yarn",
            "bun",
            "bunx",
            "corepack",
            "turbo",
            "nx",
            "lerna",
            "node",
            "tsx",
            "vitest",
            "jest",
            "mocha",
            "vite",
            "webpack",
            "rollup",
            "esbuild",
            "eslint",
            "prettier",
            "playwright",
            "cypress",
            "next",
            "nuxt",
            "astro",
            "deno",
        ],
        &[
            "package.json",
            ".npmrc",
            ".yarnrc.yml",
            ".yarnrc",
            ".pnpmfile.cjs",
            "bunfig.toml",
            "pnpm-workspace.yaml",
            "turbo.json",
            "nx.json",
            "deno.json",
            "deno.jsonc",
            "*.config.js",
            "*.config.cjs",
            "*.config.mjs",
            "*.config.ts",
            "*.config.cts",
            "*.config.mts",
            "*rc.js",
            "*rc.cjs",
            ".mocharc.json",
            ".babelrc",
            "project.json",
        ],
    ),
    (
        &["make", "gmake", "ninja", "cmake", "ctest", "meson"],
        &[
            "Makefile",
            "makefile",
            "GNUmakefile",
            "*.mk",
            "build.ninja",
            "CMakeLists.txt",
            "*.cmake",
            "CMakePresets.json",
            "meson.build",
        ],
    ),
    (&["just"], &["justfile", "Justfile", ".justfile", "*.just"]),
    (&["task"], &["Taskfile.yml", "Taskfile.yaml"]),
    (
        &[
            "pytest", "py.test", "tox", "nox", "python", "python3", "uv", "uvx", "poetry", "hatch",
            "pdm", "pip", "pip3", "pipenv", "mypy", "ruff", "coverage",
        ],
        &[
            "pyproject.toml",
            "tox.ini",
            "setup.py",
            "setup.cfg",
            "pytest.ini",
            "conftest.py",
            "noxfile.py",
            "sitecustomize.py",
            "usercustomize.py",
            "*.pth",
            "mypy.ini",
        ],
    ),
    (
        &["cargo", "rustc", "cross"],
        &[
            "Cargo.toml",
            "build.rs",
            "rust-toolchain",
            "rust-toolchain.toml",
            ".cargo/",
        ],
    ),
    (&["go"], &["go.mod", "go.work"]),
    (
        &["mvn", "mvnw", "gradle", "gradlew", "ant", "sbt"],
        &[
            "pom.xml",
            "build.gradle",
            "build.gradle.kts",
            "settings.gradle",
            "settings.gradle.kts",
            "gradle.properties",
            "gradle-wrapper.properties",
            ".mvn/",
            "build.xml",
            "build.sbt",
        ],
    ),
    (
        &["rake", "bundle", "rspec", "rails", "gem"],
        &[
            "Rakefile",
            "rakefile",
            "*.rake",
            "Gemfile",
            "*.gemspec",
            ".rspec",
            "spec_helper.rb",
        ],
    ),
    (
        &["composer", "phpunit", "php"],
        &["composer.json", "phpunit.xml", "phpunit.xml.dist"],
    ),
    (
        &["dotnet", "msbuild"],
        &[
            "*.csproj",
            "*.fsproj",
            "*.props",
            "*.targets",
            "global.json",
        ],
    ),
    (&["mix", "elixir"], &["mix.exs"]),
    (
        &["docker", "podman", "docker-compose"],
        &[
            "Dockerfile",
            "Containerfile",
            "compose.yml",
            "compose.yaml",
            "docker-compose.yml",
            "docker-compose.yaml",
        ],
    ),
    (
        &["pre-commit", "lefthook", "husky", "git"],
        &[
            ".pre-commit-config.yaml",
            "lefthook.yml",
            ".husky/",
            ".githooks/",
        ],
    ),
];

/// Programs that run the files among their words.
const RUN_THEIR_WORDS: &[&str] = &[
    ".", "ash", "awk", "bash", "bun", "dash", "deno", "elixir", "fish", "gawk", "go", "groovy",
    "java", "julia", "ksh", "lua", "make", "node", "perl", "php", "psql", "pwsh", "python",
    "python2", "python3", "Rscript", "ruby", "sed", "sh", "source", "sqlite3", "swift", "ts-node",
    "tsx", "zsh",
];

/// Whether changing this file may change what some command runs, whose rule stays the same. Any file may be a script; one that is not listed
/// counts only for a command that names it.
pub fn defines_commands(path: &str) -> bool {
    let mut all = DEFINED_BY.iter().flat_map(|(_, files)| files.iter());
    all.any(|file| is_named(path, file))
}

/// Returns those of these files that define what the line runs. A line that cannot be read may run what any of them says.
pub fn definitions<'f>(line: &str, files: impl Iterator<Item = &'f str>) -> Vec<&'f str> {
    let all = started(line);
    let defines = |file: &&str| {
        let all = all.as_ref();
        all.is_none_or(|all| all.iter().any(|command| is_defined_by(command, file)))
    };
    files.filter(defines).collect()
}

fn is_defined_by(command: &StartedCommand, file: &str) -> bool {
    let name = command.name();
    let mut rows = DEFINED_BY.iter();
    let by_name = rows.any(|(programs, files)| {
        programs.contains(&name) && files.iter().any(|one| is_named(file, one))
    });
    if by_name {
        return true;
    }
    let written = command.words.first().map_or("", String::as_str);
    if written.contains('/') && is_path_to(written, file) {
        return true;
    }
    // `python3.12`, but also `.`.
    let unversioned = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let runs_words = |name: &str| RUN_THEIR_WORDS.contains(&name);
    (runs_words(name) || runs_words(unversioned))
        && command.words.iter().skip(1).any(|word| {
            // A value may follow the option in the same word: `-fscript.awk`, `--require=./x.js`.
            let mut ends = word.char_indices().map(|(at, _)| &word[at..]);
            is_path_to(word, file)
                || (word.starts_with('-') && ends.any(|end| is_path_to(end, file)))
        })
}

/// Whether a word may be a path to the file: it ends alike, as far as the shorter one goes.
fn is_path_to(word: &str, file: &str) -> bool {
    let parts = |path: &str| -> Vec<String> {
        let parts = path
            .split('/')
            .filter(|part| !matches!(*part, "" | "." | ".."));
        parts.map(str::to_owned).collect()
    };
    let (word, file) = (parts(word), parts(file));
    let both = word.iter().rev().zip(file.iter().rev());
    !word.is_empty() && !file.is_empty() && both.clone().all(|(one, other)| one == other)
}

/// Whether the path has a name as in the table.
fn is_named(path: &str, listed: &str) -> bool {
    if let Some(folder) = listed.strip_suffix('/') {
        let parts = Path::new(path).parent().into_iter().flat_map(Path::iter);
        return parts.into_iter().any(|part| part == folder);
    }
    let name = base_name(path);
    match listed.strip_prefix('*') {
        Some(end) => name.len() > end.len() && name.ends_with(end),
        None => name == listed,
    }
}

#[cfg(test)]
mod tests {
    use super::{defines_commands, definitions};

    #[test]
    fn a_changed_file_defines_the_commands_that_run_what_it_says() {
        for (line, file, expect) in [
            ("npm test", "/w/package.json", true),
            ("cd a && npm run build", "/w/package.json", true),
            ("bash -c 'npm test'", "/w/package.json", true),
            ("npx vitest run", "/w/vitest.config.ts", true),
            ("make", "/w/Makefile", true),
            ("make -C sub all", "/w/sub/rules.mk", true),
            ("pytest -q", "/w/tests/conftest.py", true),
            ("python -m pytest", "/w/pyproject.toml", true),
            ("tox", "/w/tox.ini", true),
            ("cargo test -p x", "/w/x/build.rs", true),
            ("cargo build", "/w/.cargo/config.toml", true),
            ("./gradlew test", "/w/build.gradle.kts", true),
            ("./scripts/check", "/w/scripts/check", true),
            ("scripts/check --fast", "/w/scripts/check", true),
            ("bash scripts/check", "/w/scripts/check", true),
            ("node tools/gen.js", "/w/tools/gen.js", true),
            ("node --require=./a.js b.js", "/w/a.js", true),
            ("python3.12 a.py", "/w/a.py", true),
            ("awk -fa.awk x", "/w/a.awk", true),
            (". ./env.sh", "/w/env.sh", true),
            ("git commit -m x", "/w/.husky/pre-commit", true),
            ("if", "/w/a", true),
            ("npm test", "/w/Makefile", false),
            ("npm test", "/w/src/a.js", false),
            ("make", "/w/package.json", false),
            ("cargo test", "/w/src/lib.rs", false),
            ("node a.js", "/w/b.js", false),
            ("cat package.json", "/w/package.json", false),
            ("./other/check", "/w/scripts/check", false),
        ] {
            let found = definitions(line, [file].into_iter());
            assert_eq!(!found.is_empty(), expect, "{line} by {file}");
        }
        assert!(defines_commands("a/package.json") && defines_commands(".cargo/config.toml"));
        assert!(!defines_commands("src/a.js") && !defines_commands("config.js"));
    }
}
