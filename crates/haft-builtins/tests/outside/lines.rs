//! Lines that pass, and lines that need an approval, each for a reason of its own.

use haft::permission::Verdict::{self, Allow, Ask};

use crate::scene::Scene;

#[track_caller]
fn check(scene: &Scene, expect: Verdict, lines: &[&str]) {
    for line in lines {
        let stated = scene.outside.line(line, None).unwrap();
        assert_eq!(scene.line(line, &[]), expect, "{line:?} states {stated:#?}");
    }
}

#[test]
fn reading_commands_in_the_workspace_pass() {
    let scene = Scene::new();
    check(
        &scene,
        Allow,
        &[
            "ls",
            "ls -la src",
            "cat src/lib.rs",
            "cat src/*.rs",
            "head -n 5 src/lib.rs | tail -2",
            "grep -rn 'fn main' src",
            "grep '^/usr' README.md",
            "grep -rn -A 2 -e text --include '*.rs' src",
            "grep -n -B1 -A1 text src/*.rs",
            "rg -n TODO src",
            "sort -u README.md | uniq -c",
            "find src -name '*.rs' -type f",
            "wc -l src/lib.rs && echo done",
            "cd src && cat lib.rs",
            "cd src && cd ..",
            "for f in src/lib.rs README.md; do stat \"$f\"; done",
            "if [ -f README.md ]; then echo yes; fi",
            "date +%F",
            "echo \"$(date)\"",
            "echo $(date)",
            "echo 'rm -rf /'",
            "printf '%s\\n' a b | cat -",
            "jq -r '.name' package.json",
            "git log --oneline -5",
            "git show HEAD",
            "git blame src/lib.rs",
            "node --version",
            "cat < README.md",
            "ls nothing-there 2>/dev/null",
            "tee",
            "tee >(cat -n)",
            "diff <(sort README.md) <(cat src/lib.rs)",
            "env printf safe",
            "bash -c 'cat <(ls)'",
            "/bin/bash -lc 'cd src && cat lib.rs'",
            "sed -n '1,50p' src/lib.rs",
            "awk -F: '{print $1, $NF}' README.md",
            "cut -d/ -f2 README.md",
            "git rev-parse --abbrev-ref HEAD",
            "cd etc && head -n 1 passwd",
        ],
    );
    check(&scene, Allow, LOOKING);
    let root = scene.root.to_string_lossy();
    check(
        &scene,
        Allow,
        &[
            &format!("cat {root}/README.md"),
            &format!("cd {root} && git status"),
            "cat ~/app/README.md",
        ],
    );
}

/// Lines by which an agent looks where it is, and at what.
#[rustfmt::skip]
const LOOKING: &[&str] = &[
    "uname -a",
    "uname -s && uname -m",
    "df -h",
    "df -h . /",
    "free -m; nproc; uptime -p",
    "id -u && whoami && hostname -f",
    "file README.md src/*.rs",
    "file -b --mime-type package.json",
    "xxd README.md | head -3",
    "xxd -l 16 -s 4 package.json",
    "hexdump -C README.md | head -n 2",
    "tree",
    "tree -L 2 -I 'node_modules|target' src",
    "command -v node",
    "command -v node >/dev/null 2>&1 && echo yes || echo no",
    "type -a node",
    "which node; node -v; npm -v; python3 -V",
    "if command -v rg; then rg --version; fi",
    "echo $PWD",
    "echo \"$PWD\"",
    "ls \"$PWD\"/src",
    "cat $PWD/README.md",
    "cd src && echo $PWD && cat \"$PWD/lib.rs\"",
    "ls; echo $?",
    "ls nothing; echo \"exit code: $?\"",
    "grep -c text README.md; printf 'EXIT %s\\n' \"$?\"",
    "echo \"$USER uses $SHELL, pid $$\"",
    "echo $PATH",
    "echo \"${PATH}\"",
];

/// Lines that look like those, and leave the workspace, write, or show what is no fact.
#[rustfmt::skip]
const NOT_LOOKING: &[&str] = &[
    "uname x",
    "hostname x",
    "hostname -F README.md",
    "df ../other",
    "df --sync",
    "file -C -m src/lib.rs",
    "file -f README.md",
    "file -z README.md",
    "file ../other/file",
    "file linked/away/file",
    "file .env",
    "xxd .env",
    "xxd id_*",
    "xxd -r README.md",
    "xxd -r -p README.md src/lib.rs",
    "xxd README.md src/lib.rs",
    "xxd README.md Makefile",
    "xxd -p .env | head -1",
    "xxd ~/.ssh/id_rsa",
    "hexdump -C .env",
    "hexdump -f .env README.md",
    "tree -o README.md",
    "tree -R -L 1 -H . src",
    "tree --fromfile .env",
    "tree ..",
    "tree ~",
    "tree -l",
    "tree linked/away",
    "command node",
    "command -p node",
    "command -v \"$x\"",
    "command -v ~/.ssh/id_rsa",
    "node -v x.js",
    "node -r ./x.js -v",
    "NODE_OPTIONS='--require ./x.js' node -v",
    "PATH=. node -v",
    "./node -v",
    "cargo -V",
    "yarn -v",
    "echo $HOME/*",
    "echo $AWS_KEY $?",
    "echo \"$?$AWS_KEY\"",
    "echo \"$USER_TOKEN\"",
    "echo ${!PATH}",
    "echo ${USER:-$TOKEN}",
    "read USER < README.md; echo $USER",
    "USER=$(cat README.md); echo $USER",
    "for USER in $TOKEN; do echo $USER; done",
    "cat \"$?\"",
    "cat $PWD/.env",
    "cat \"$PWD/../other/file\"",
    "cat $PWD/linked/away/file",
    "PWD=/etc; cat $PWD/passwd",
    "cd linked/away && cat $PWD/file",
    "printf $PWD 1",
    "mkdir '*'; cd '*' && echo $PWD/*",
];

/// Lines that leave the workspace, or whose effects are unknown.
#[rustfmt::skip]
const OUT: &[&str] = &[
    "cat /etc/passwd",
    "cat ~/.ssh/id_rsa",
    "cat \"$HOME\"/.ssh/id_rsa",
    "cat $HOME/other/file",
    "cat ../other/file",
    // It leaves, and comes back.
    "cat ../app/README.md",
    "cat linked/away/file",
    "cat linked/*/file",
    "cat src/../../other/file",
    "cat \"$FILE\"",
    "cat $(echo README.md)",
    "cat ~root/x",
    "ls /",
    "ls linked/away",
    "echo $AWS_SECRET_ACCESS_KEY",
    "echo \"${TOKEN}\"",
    "echo ~",
    "echo /etc/*",
    "echo $(echo '/etc/*')",
    "echo $(cat README.md)",
    "cat =ls",
    "cat **/id_rsa",
    // Behind `--`, or behind `--` among the matches, it is a file.
    "cat -- -x",
    "head -n 1 -- -x",
    "cat -*",
    "sort -- -x",
    "cd .. && cat other/file",
    "cd src && cd ../..",
    "cd src; cd ..",
    "! cd src && cd ..",
    "cd missing && cd ..",
    "cd src && cd .. && cd ..",
    "cd src && cd .. && cat /etc/passwd",
    // A shell resolves `..` by names, a program by folders.
    "cd linked/away/../.. && cat README.md",
    "cd src/../.. && ls",
    "cd linked/away && cat file",
    "cd; cat other/file",
    "cd - && ls",
    "while true; do cd linked && ls; done",
    "pushd /tmp",
    "for f in /etc/passwd; do true; done",
    // Without quotes an empty value is no word, and a name that a pattern matches may be several.
    "for i in ''; do grep -r $i KEY; done",
    "for i in ''; do find . -maxdepth 0 -not -name $i -name -delete; done",
    "for i in ''; do git branch --sort $i --list x; done",
    "for f in src/*; do cat $f; done",
    "for f in src/*; do sort ${f}; done",
    "uniq src/*",
    "uniq README.md -u",
    "awk --assign 'BEGIN{x}' '{print}' README.md",
    "cat .?/file",
    "ls src/.*",
    "base64 -i README.md -o haft.toml",
    "for f in $(ls); do cat \"$f\"; done",
    "cat \"$f\"; for f in /etc/passwd; do true; done",
    "cat < /etc/passwd",
    "cat < \"$x\"",
    "grep -f/etc/passwd x README.md",
    "grep -R text linked",
    "grep --label -- -R text",
    "grep -R -A 2 text",
    "diff -r linked src",
    "diff -rx --no-dereference linked src",
    "diff -x -- -l README.md src/lib.rs",
    "rg --follow text linked",
    "find -L src",
    "wc --files0-from=README.md",
    "ls | xargs cat",
    "date -s tomorrow",
    "date 01010000",
    "sort -o src/lib.rs README.md",
    "sort --compress-program=./x README.md",
    "uniq README.md src/lib.rs",
    "rg --pre ./x text src",
    "jq 'include \"m\"; .' package.json",
    "jq -n env package.json",
    "jq -n '$ENV' package.json",
    "git diff --output=x",
    "git log -1 --decorate-refs -- --output=Makefile --format=x",
    "git log --decorate-refs-exclude -- --output=x",
    "git show -s --decorate-refs -- --output=.git/config",
    "git shortlog --since -- --output=README.md",
    "git log -L -- --output=x",
    "git blame --since -- --contents=.env README.md",
    "git describe --always --match -- --dirty",
    "git branch --sort --list topic",
    "git -c core.pager=./x log",
    "git push",
    "git fetch origin",
    "npm install",
    "curl https://example.com/",
    "python -c 'print(1)'",
    "bash -c 'cat /etc/passwd'",
    "bash -c 'haft trust'",
    "bash -c \"$x\"",
    "bash -xc ls",
    "bash script.sh",
    "bash <(ls)",
    "env -i ls",
    "env A=b ls",
    "ls | xargs env cat",
    "sed -n '1w x' README.md",
    "sed -n '1e' README.md",
    "sed -i 1d README.md",
    "sed 's/a/b/e' README.md",
    "awk 'BEGIN{system(\"ls\")}'",
    "awk '{print > \"x\"}' README.md",
    "awk 'BEGIN{while((getline x)>0)print x}'",
    "awk 'BEGIN{print ENVIRON[\"HOME\"]}'",
    "awk 'BEGIN{ARGV[1]=\"/etc/passwd\"} {print}' README.md",
    "awk -f x README.md",
    "strings @/etc/passwd",
    "md5sum -bc README.md",
    "echo x >! /etc/x",
    "env",
    "printenv",
    "./ls",
    "while true; do cat README.md & done",
    "f() { ls; }; f",
    "kill 1",
];

#[test]
fn what_leads_out_or_is_not_known_is_asked_about() {
    let scene = Scene::new();
    check(&scene, Ask, OUT);
    check(&scene, Ask, NOT_LOOKING);
}

#[test]
fn secrets_are_asked_about_however_they_are_read() {
    let scene = Scene::new();
    check(
        &scene,
        Ask,
        &[
            "cat .env",
            "cat plain.txt",
            "cat id_*",
            "cat .e*",
            "grep -r text .",
            "grep -r text",
            "rg text",
            "rg -. -r --files text",
            "grep -rn -A 2 text",
            "grep -rn text -A 2",
            "grep -r -m 1 text",
            "grep -rn --include '*' --context 1 text",
            "grep -rin -e text -A 2",
            "grep -d recurse text",
            "grep -rf README.md",
            "grep --label -- -r text",
            "grep --include -- -re text",
            "grep --exclude -- -r text",
            "egrep --binary-files -- -r text",
            "fgrep -A -- -r text",
            "grep -r tex*",
            "awk '{print}' -F .env",
            "diff . src",
            "sort --files0-from .env",
            "base64 id_rsa",
            "cat < .env",
            "cp .env copy",
            "mv id_rsa loot",
            "git show HEAD:.env",
            "git log -p -- .env",
            "git log -L1,5:.env",
            "git show -L:name:.env",
            "for f in .env; do cat $f; done",
        ],
    );
    // A rule for a command opens no secret.
    assert_eq!(scene.line("make .env", &["Bash(make *)"]), Ask);
    assert_eq!(scene.line("make all", &["Bash(make *)"]), Allow);
}

#[test]
fn a_rule_for_a_command_covers_no_word_that_leads_out() {
    let scene = Scene::new();
    let rules = [
        "Bash(npm test *)",
        "Bash(npm test)",
        "Bash(git commit *)",
        "Bash(curl *)",
        "Read",
        "Edit",
        "Edit(/**)",
    ];
    for (line, expect) in [
        ("npm test", Allow),
        ("npm test -- src/lib.rs", Allow),
        ("npm test -- /etc/passwd", Ask),
        ("npm test --config=/etc/x", Ask),
        ("npm test -c/etc/x", Ask),
        ("npm test ~/x", Ask),
        ("npm test \"$x\"", Ask),
        ("npm test $(cat README.md)", Ask),
        ("npm test ../other", Ask),
        ("npm test linked/away/file", Ask),
        ("npm test a,/etc/passwd", Ask),
        ("npm test \"require('/etc/passwd')\"", Ask),
        ("npm test > out.txt", Allow),
        ("npm test > /tmp/out.txt", Ask),
        ("npm test > .git/config", Ask),
        ("npm test .claude/settings.json", Ask),
        ("npm test && curl https://example.com/", Ask),
        ("curl http://localhost:3000/", Ask),
        ("curl file:///etc/passwd", Ask),
        ("git commit -m 'Fix /api and ~/x'", Allow),
        ("git commit -m \"$(cat <<'E'\nText of $x\nE\n)\"", Allow),
        ("git commit -F /etc/passwd", Ask),
        ("PATH=. npm test", Ask),
    ] {
        let stated = scene.outside.line(line, None).unwrap();
        assert_eq!(
            scene.line(line, &rules),
            expect,
            "{line:?} states {stated:#?}"
        );
    }
    let rules = ["Bash(curl *)", "WebFetch(domain:example.com)"];
    assert_eq!(scene.line("curl https://example.com/", &rules), Allow);
}

#[test]
fn changes_are_effects_that_rules_on_files_decide() {
    let scene = Scene::new();
    let rules = ["Edit(/**)"];
    for (line, expect) in [
        ("echo x > out.txt", Allow),
        ("{ echo x; date; } >> notes/out.txt", Allow),
        ("echo x | tee out.txt", Allow),
        ("cp src/lib.rs copy.rs", Allow),
        ("cp src/lib.rs src/main.rs notes", Allow),
        ("mv README.md moved.md", Allow),
        ("rm README.md", Allow),
        ("mkdir -p a/b", Allow),
        ("touch new.txt", Allow),
        ("rm -r notes", Ask),
        ("mv notes elsewhere", Ask),
        ("cp -r notes elsewhere", Ask),
        ("cp README.md /tmp", Ask),
        ("cp README.md .claude", Ask),
        ("cp README.md new/.claude/settings.json", Ask),
        ("mkdir x; cp a/.mcp.json x", Ask),
        ("echo x > .git/index", Ask),
        ("rm .git/objects/aa", Ask),
        ("rm backup.git/objects", Ask),
        ("echo x > .env", Ask),
        ("rm .env", Ask),
        ("echo x > linked/away/file", Ask),
        ("ln -s /etc x", Ask),
        ("chmod +x README.md", Ask),
        ("cp \"$x\" y", Ask),
    ] {
        let stated = scene.outside.line(line, None).unwrap();
        assert_eq!(
            scene.line(line, &rules),
            expect,
            "{line:?} states {stated:#?}"
        );
        assert_eq!(scene.line(line, &[]), Ask, "{line:?}");
    }
}

#[test]
fn settings_of_agents_and_haft_itself_are_never_changed_unasked() {
    let scene = Scene::new();
    let rules = [
        "Edit",
        "Edit(/**)",
        "Bash",
        "Bash(haft *)",
        "Bash(cp *)",
        "Bash(sed *)",
        "Bash(pkill *)",
    ];
    for path in [
        ".claude/settings.json",
        ".claude/settings.local.json",
        ".codex/config.toml",
        ".cursor/hooks.json",
        ".gemini/settings.json",
        ".github/hooks/x.json",
        ".github/copilot/settings.local.json",
        ".opencode/plugins/x.js",
        ".cline/hooks/x",
        ".factory/settings.json",
        ".windsurf/hooks.json",
        ".devin/config.json",
        ".agents/plugins/x",
        ".amp/plugins/x.ts",
        ".copilot/hooks/x.json",
        ".config/opencode/plugins/x.js",
        ".config/amp/plugins/x.ts",
        ".config/devin/config.json",
        ".config/goose/config.yaml",
        "haft.toml",
    ] {
        for line in [
            format!("echo x > {path}"),
            format!("echo x > ~/{path}"),
            format!("rm {path}"),
            format!("cp README.md {path}"),
            format!("sed -i s/a/b/ {path}"),
        ] {
            assert_eq!(scene.line(&line, &rules), Ask, "{line}");
        }
    }
    for line in [
        "haft approvals approve 1",
        "haft trust",
        "haft hook uninstall claude",
        "/usr/local/bin/haft trust",
        "timeout 5 haft trust",
        "env X=1 haft trust",
        "ls; haft -C . trust",
        "sh -c 'haft trust'",
        "bash -c \"ls && haft approvals approve 1\"",
        "echo | xargs haft trust",
        "pkill haft",
        "pkill -f 'haft serve'",
        "killall haft",
    ] {
        assert_eq!(scene.line(line, &rules), Ask, "{line}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_name_that_is_not_utf_8_is_asked_about() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    let scene = Scene::new();
    let folder = scene.root.join("odd");
    std::fs::create_dir(&folder).unwrap();
    let name = OsStr::from_bytes(b"z\xe9");
    std::os::unix::fs::symlink("/etc/hostname", folder.join(name)).unwrap();
    let lines = [
        "cat odd/z*",
        "grep -R v odd",
        "rg v odd",
        "for f in odd/*; do cat \"$f\"; done",
    ];
    check(&scene, Ask, &lines);
    assert_eq!(scene.line("echo x | tee odd/z*", &["Edit(/**)"]), Ask);
}
