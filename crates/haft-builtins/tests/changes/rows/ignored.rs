//! What happens to a command's changes to files that git ignores.

use haft::ErrorKind;

use crate::rows::{Row, row};
use crate::scene::Settings;

/// Files that git ignores and that programs of the user run or load.
#[expect(clippy::too_many_lines, reason = "a table")]
pub(super) fn need_approval() -> Vec<Row> {
    let asked = |name, line| Row {
        settings: Settings {
            says_no: true,
            ..Settings::default()
        },
        questions: 1,
        fails: Some(ErrorKind::Denied),
        ..row(name, line)
    };
    vec![
        Row {
            left: &["__pycache__", "__pycache__/a.cpython-311.pyc"],
            ..asked(
                "k2_byte_code_is_asked_about",
                "mkdir __pycache__; echo evil > __pycache__/a.cpython-311.pyc",
            )
        },
        Row {
            left: &["out/pkg", "out/pkg/a.pyc"],
            ..asked(
                "k2_byte_code_in_a_build_output_is_asked_about",
                "mkdir -p out/pkg; echo evil > out/pkg/a.pyc",
            )
        },
        Row {
            left: &["out/conftest.py"],
            ..asked(
                "k2_what_a_collector_of_tests_loads_is_asked_about",
                "echo evil > out/conftest.py",
            )
        },
        Row {
            left: &["out/bin", "out/bin/ls"],
            ..asked(
                "k2_a_program_in_a_folder_of_path_is_asked_about",
                "mkdir out/bin; echo evil > out/bin/ls",
            )
        },
        Row {
            left: &["node_modules/.bin", "node_modules/.bin/tool"],
            ..asked(
                "k2_a_program_of_a_dependency_is_asked_about",
                "mkdir node_modules/.bin; echo evil > node_modules/.bin/tool",
            )
        },
        Row {
            left: &["node_modules/dist", "node_modules/dist/a.js"],
            ..asked(
                "k2_the_name_of_a_build_output_below_an_ignored_folder_says_nothing",
                "mkdir node_modules/dist; echo evil > node_modules/dist/a.js",
            )
        },
        Row {
            left: &["ign", "ign/x", "tracked"],
            ..asked(
                "k2_what_git_ignores_is_not_left_behind_by_a_denial",
                "mkdir ign; echo evil > ign/x; echo y > tracked",
            )
        },
        Row {
            left: &["node_modules/a"],
            ..asked(
                "k2_a_removed_dependency_is_asked_about",
                "rm node_modules/a",
            )
        },
    ]
}

/// What builds and checks make: applied unasked.
pub(super) fn unasked() -> Vec<Row> {
    vec![
        Row {
            changed: &["node_modules/.vite/vitest/results.json={}\n"],
            ..row(
                "what a tool remembers in a folder of dependencies is applied unasked",
                "mkdir -p node_modules/.vite/vitest; echo {} > node_modules/.vite/vitest/results.json",
            )
        },
        Row {
            changed: &[
                "out/lib/pkg/__init__.py=a\n",
                "out/lib/pkg/tests/helper.py=a\n",
                "out/assets/index.js=a\n",
                "out/.gitignore=a\n",
            ],
            ..row(
                "what usual builds make is applied unasked",
                "mkdir -p out/lib/pkg/tests out/assets; for f in lib/pkg/__init__.py lib/pkg/tests/helper.py assets/index.js .gitignore; do \
                 echo a > out/$f; done",
            )
        },
        Row {
            changed: &["out/old.test.js="],
            ..row(
                "what goes from a build output is not asked about",
                "rm out/old.test.js",
            )
        },
        Row {
            changed: &["out/a=", "out/l=a"],
            ..row(
                "a link within a build output is applied unasked",
                "touch out/a; ln -s a out/l",
            )
        },
        Row {
            changed: &[".pytest_cache/v/x=1\n"],
            ..row(
                "d14_a_cache_that_ignores_itself_is_a_build_output",
                "mkdir .pytest_cache/v; echo 1 > .pytest_cache/v/x",
            )
        },
        Row {
            changed: &[".mypy_cache/.gitignore=*\n", ".mypy_cache/x=1\n"],
            ..row(
                "m3_a_new_cache_that_ignores_itself_is_a_build_output",
                "mkdir .mypy_cache; echo '*' > .mypy_cache/.gitignore; echo 1 > .mypy_cache/x",
            )
        },
        Row {
            changed: &[".gradle/8.5/fileHashes/x=1\n"],
            ..row(
                "what gradle remembers of files is applied unasked",
                "mkdir -p .gradle/8.5/fileHashes; echo 1 > .gradle/8.5/fileHashes/x",
            )
        },
    ]
}

/// Findings of an attack on which ignored files are applied unasked: each command was.
#[expect(clippy::too_many_lines, reason = "a table")]
pub(super) fn attacks() -> Vec<Row> {
    let asked = |name, line, left| Row {
        settings: Settings {
            says_no: true,
            ..Settings::default()
        },
        questions: 1,
        fails: Some(ErrorKind::Denied),
        left,
        ..row(name, line)
    };
    vec![
        asked(
            "g1_a_cache_of_archives_that_a_tool_unpacks_is_asked_about",
            "mkdir .turbo; echo evil > .turbo/a.tar.zst",
            &[".turbo", ".turbo/a.tar.zst"],
        ),
        asked(
            "g1_a_store_that_packages_are_installed_from_is_asked_about",
            "mkdir .pnpm-store; echo evil > .pnpm-store/a-index.json",
            &[".pnpm-store", ".pnpm-store/a-index.json"],
        ),
        asked(
            "g1_a_cache_in_a_folder_of_dependencies_is_asked_about",
            "mkdir node_modules/.cache; echo evil > node_modules/.cache/a.js",
            &["node_modules/.cache", "node_modules/.cache/a.js"],
        ),
        asked(
            "g1_what_gradle_runs_at_its_start_is_asked_about",
            "mkdir -p .gradle/init.d; echo evil > .gradle/init.d/a.gradle",
            &[".gradle", ".gradle/init.d", ".gradle/init.d/a.gradle"],
        ),
        asked(
            "g2_the_program_of_a_module_with_the_name_of_an_output_is_asked_about",
            "echo evil > out/__main__.py",
            &["out/__main__.py"],
        ),
        asked(
            "g2_a_package_that_python_loads_at_its_start_is_asked_about",
            "mkdir out/sitecustomize; echo evil > out/sitecustomize/__init__.py",
            &["out/sitecustomize", "out/sitecustomize/__init__.py"],
        ),
        asked(
            "g2_a_test_in_javascript_is_asked_about",
            "echo evil > out/x.test.js",
            &["out/x.test.js"],
        ),
        asked(
            "g2_settings_in_a_file_with_a_dot_are_asked_about",
            "echo evil > out/.irbrc",
            &["out/.irbrc"],
        ),
        asked(
            "g4_an_output_that_becomes_a_link_is_asked_about",
            "ln -s keep dist",
            &["dist"],
        ),
        asked(
            "g4_a_link_out_of_an_output_is_asked_about",
            "ln -s ../keep out/l",
            &["out/l"],
        ),
        asked(
            "g4_a_link_from_an_output_to_a_cache_beside_it_is_asked_about",
            "mkdir -p .gradle/8.5/fileHashes; ln -s ../../init.d .gradle/8.5/fileHashes/l",
            &[
                ".gradle",
                ".gradle/8.5",
                ".gradle/8.5/fileHashes",
                ".gradle/8.5/fileHashes/l",
            ],
        ),
        asked(
            "g5_a_pattern_that_git_reads_otherwise_ignores_nothing",
            "mkdir tab/out; echo evil > tab/out/a",
            &["tab/out", "tab/out/a"],
        ),
        asked(
            "m3_a_new_folder_of_another_name_that_ignores_itself_is_asked_about",
            "mkdir hid; echo '*' > hid/.gitignore; echo evil > hid/x",
            &["hid", "hid/.gitignore", "hid/x"],
        ),
        asked(
            "m3_a_new_cache_that_does_not_ignore_itself_is_asked_about",
            "mkdir .mypy_cache; printf '*\n!x\n' > .mypy_cache/.gitignore; echo evil > .mypy_cache/x",
            &[".mypy_cache", ".mypy_cache/.gitignore", ".mypy_cache/x"],
        ),
    ]
}
