//! Lines that one of the agents' shells reads differently from bash, and names that mean something to one.

use std::fs;
use std::os::unix::fs::symlink;

use haft::permission::Verdict::{self, Allow, Ask};

use crate::scene::Scene;

#[track_caller]
fn check(scene: &Scene, expect: Verdict, rules: &[&str], lines: &[&str]) {
    for line in lines {
        let stated = scene.outside.line(line, None).unwrap();
        assert_eq!(
            scene.line(line, rules),
            expect,
            "{line:?} states {stated:#?}"
        );
    }
}

#[test]
fn no_builtin_computes_a_word_that_is_no_number() {
    let scene = Scene::new();
    check(
        &scene,
        Ask,
        &[],
        &[
            "printf %d 'path[$(touch x)]'",
            "printf %d path",
            "printf '%*s' 'a[1]' x",
            "printf '\\x25d' path",
            "printf '%s%d' x y",
            "printf 'x%n' PATH; ls",
            "printf '%5n' PATH",
            "printf 'x%ln' PATH",
            "printf -v PATH x",
            "[ -t 'path[$(touch x)]' ]",
            "[ -t path ]",
            "test 'a[1]' -eq 1",
            "test HOME -eq 1",
            "[ 1 -lt a ]",
            "[ a -eq 1 -o b = c ]",
            "test -v 'a[$(touch x)]'",
            "[[ x -eq 'a[$(touch x)]' ]]",
            "[[ -v 'a[$(touch x)]' ]]",
            "unset 'a[$(touch x)]'",
            "let 'a[$(touch x)]'",
            "echo $((a[$(touch x)]))",
            "echo \"${a[$(touch x)]}\"",
        ],
    );
    check(
        &scene,
        Allow,
        &[],
        &[
            "printf '%s\\n' a b",
            "printf '%-10s|%s\\n' a b",
            "printf '%d%%\\n' 5",
            "printf '%5d %s\\n' -5 7",
            "printf 'plain\\033[0m\\n'",
            "printf %s README*",
            "[ 1 -lt 2 ]",
            "[ -f README.md -a -d src ]",
            "test README.md -nt src && echo newer",
            "for f in src README.md; do [ -d \"$f\" ] && echo \"$f\"; done",
        ],
    );
}

#[test]
fn a_line_sets_only_variables_that_no_shell_reads() {
    let scene = Scene::new();
    for name in [
        "path",
        "fpath",
        "cdpath",
        "manpath",
        "module_path",
        "mailpath",
        "psvar",
        "options",
        "commands",
        "functions",
        "aliases",
        "chpwd_functions",
        "fish_user_paths",
        "https_proxy",
        "npm_config_script_shell",
        "PATH",
        "ENV",
        "BASH_ENV",
        "IFS",
        "PS4",
        "PROMPT_COMMAND",
        "HISTFILE",
        "TMPPREFIX",
        "NULLCMD",
        "READNULLCMD",
        "_",
    ] {
        let lines = [
            format!("for {name} in ./1; do ls; done"),
            format!("{name}=./1; ls"),
            format!("{name}=./1 ls"),
            format!("read {name} < README.md; ls"),
            format!("getopts a {name}; ls"),
            format!("select {name} in 1; do ls; done"),
            format!("printf -v {name} 1; ls"),
            format!(": ${{{name}:=./1}}; ls"),
            format!("(({name} = 1)); ls"),
            format!("[[ -n ${{{name}::=1}} ]]; ls"),
            format!("cat <<< \"$x[{name}=1]\"; ls"),
            format!("for x in 1; do echo \"${{x:{name}=1}}\"; done"),
        ];
        for line in lines {
            check(&scene, Ask, &[], &[&line]);
        }
    }
    for name in ["f", "file", "i", "line", "test_name", "x1"] {
        let line = format!("for {name} in src; do ls \"${name}\"; done");
        check(&scene, Allow, &[], &[&line]);
    }
}

/// Each has a command, a variable or another word for one shell, and not for bash.
#[rustfmt::skip]
const AMBIGUOUS: &[&str] = &[
    // fish
    r"echo 'a\' 'b; touch x; #'",
    r"echo 'a\\'",
    "echo a `ls; ls` b",
    "cat {.env}",
    "cat {/etc/passwd}",
    r"cat \x2e\x2e/other/file",
    "ls; [[ ( ./x ) ]]",
    "echo \"$x[(touch x)]\"",
    // sh without `[[`, `((` and `$'…'`
    "ls; [[ a || ./x ]]",
    "ls; [[ a > x ]]",
    "ls; ((1))",
    r"echo $'a\' ; touch x; #'",
    // zsh
    "echo $=AWS_SECRET_ACCESS_KEY",
    "echo $~HOME",
    "echo 'a''b'",
    "cat =ls",
    "cat i#d_rsa",
    "cat ^x",
    "cd +1 && ls",
    "ls # ; touch x",
    "cat README.md # ../other/file",
    // An interactive shell
    "echo !curl",
    "echo \"!curl\"",
    "echo \"Done!\" \"; touch x; echo \" '\"'\\'",
    "find . # -delete",
    "cat README.md # .env",
    "for f in xetc/passwd; do head -1 $f:s,x,/,; done",
    "echo '\r'",
    "echo '\u{3}'",
];

#[test]
fn a_line_that_shells_read_differently_is_asked_about() {
    let scene = Scene::new();
    check(&scene, Ask, &[], AMBIGUOUS);
    // No rule for a command covers what it is elsewhere.
    check(
        &scene,
        Ask,
        &["Bash(echo *)"],
        &[r"echo 'a\' 'b; touch x; #'"],
    );
    check(
        &scene,
        Ask,
        &["Edit(/**)"],
        &["echo x >| src/x", "ls; [[ a > src/x ]]"],
    );
    for (shell, text) in [
        ("zsh", r"echo 'a\' 'b; touch x; #'"),
        ("sh", "echo $'a\\' ; touch x; #'"),
        ("bash", "printf 'x%n' PATH; ls"),
    ] {
        let words = [shell, "-c", text].map(str::to_owned);
        let stated = scene.outside.argv(&words, None).unwrap();
        assert_eq!(scene.verdict(&[], &stated), Ask, "{text}");
    }
    check(
        &scene,
        Allow,
        &[],
        &[
            "echo 'it'\\''s'",
            "[ ! -f x ] || echo yes",
            "if [[ -f README.md && -d src ]]; then echo yes; fi",
            "grep 'a\\.b' README.md",
            "grep \"^a.*b$\" README.md",
            "find src -name \\*.rs",
            "ls src/[!a]*",
            "git show HEAD^",
            "echo `date`",
            "# List the files, twice.\nls\nls",
        ],
    );
}

#[test]
fn a_link_is_not_put_where_it_leads_elsewhere() {
    let scene = Scene::new();
    fs::create_dir_all(scene.root.join("tree/deep")).unwrap();
    symlink(&scene.home, scene.root.join("tree/deep/out")).unwrap();
    symlink("../README.md", scene.root.join("src/near")).unwrap();
    let rules = ["Edit(/**)", "Bash(mv *)", "Bash(cp *)", "Bash(ln *)"];
    check(
        &scene,
        Ask,
        &rules,
        &[
            "mv linked/away there && cat there/file",
            "mv linked/away there && echo x > there/file",
            "mv linked/away there && rm there/file",
            "mv src/near near; cat near",
            "mv plain.txt other.txt",
            "mv -T src/near near",
            "mv tree other && cat other/deep/out/other/file",
            "cp -a tree other && cat other/deep/out/other/file",
            "cp -P src/near near",
            "cp -R tree/deep other",
            "ln -s src/near near && cat near",
            "ln src/lib.rs new && cat new",
            "cp -s README.md src/x && cat src/x",
        ],
    );
    check(
        &scene,
        Allow,
        &rules,
        &[
            "mv README.md moved.md && cat moved.md",
            "cp src/near near && cat near",
            "cp -a notes other",
        ],
    );
}

#[test]
fn names_behind_links_that_lead_out_are_asked_about() {
    let scene = Scene::new();
    check(
        &scene,
        Ask,
        &[],
        &[
            "ls -LR",
            "ls -lRL linked",
            "ls --dereference -R",
            "du -aL",
            "du -a --dereference .",
            "ls -L linked",
        ],
    );
    check(
        &scene,
        Allow,
        &[],
        &[
            "ls -R",
            "ls -lL src",
            "ls -L README.md",
            "du -a",
            "du -aL src",
        ],
    );
    // A link within the workspace leads to one that leads out.
    symlink("../linked", scene.root.join("src/more")).unwrap();
    check(&scene, Ask, &[], &["ls -LR src", "diff -r src notes"]);
}
