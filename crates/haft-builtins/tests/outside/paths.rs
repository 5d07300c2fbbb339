//! Calls that name one path or one URL, and the folder that a call runs in.

use std::fs;

use haft::permission::Verdict::{self, Allow, Ask, Deny};
use haft::permission::{Effect, Permission};
use haft::spec::Risk;

use crate::scene::Scene;

fn value(permission: &Permission) -> (&str, &str, Risk) {
    (
        permission.effect.kind(),
        permission.effect.value(),
        permission.risk,
    )
}

#[test]
fn a_path_is_relative_to_the_root_or_absolute() {
    let scene = Scene::new();
    let (root, home) = (scene.root.to_string_lossy(), scene.home.to_string_lossy());
    let in_home = |path: &str| format!("{home}/{path}");
    for (path, cwd, expect, risk) in [
        ("README.md", None, "README.md".to_owned(), Risk::Safe),
        ("lib.rs", Some("src"), "src/lib.rs".to_owned(), Risk::Safe),
        (
            "lib.rs",
            Some(&*format!("{root}/src")),
            "src/lib.rs".to_owned(),
            Risk::Safe,
        ),
        (
            &*format!("{root}/README.md"),
            Some("/tmp"),
            "README.md".to_owned(),
            Risk::Safe,
        ),
        (
            "../README.md",
            Some("src"),
            "README.md".to_owned(),
            Risk::Safe,
        ),
        ("~/app/README.md", None, "README.md".to_owned(), Risk::Safe),
        ("../other/file", None, in_home("other/file"), Risk::High),
        (
            "file",
            Some(&*in_home("other")),
            in_home("other/file"),
            Risk::High,
        ),
        ("linked/away/file", None, in_home("other/file"), Risk::High),
        ("linked/away/new", None, in_home("other/new"), Risk::High),
        ("~/.ssh/id_rsa", None, in_home(".ssh/id_rsa"), Risk::High),
        ("/etc/passwd", None, "/etc/passwd".to_owned(), Risk::High),
    ] {
        let read = scene.outside.read(path, cwd).unwrap();
        assert_eq!(value(&read), ("read", &*expect, risk), "{path} in {cwd:?}");
        let write = scene.outside.change(path, cwd, false).unwrap().remove(0);
        assert_eq!(
            value(&write),
            ("write", &*expect, Risk::High),
            "{path} in {cwd:?}"
        );
    }
    for path in ["~root/x", "nothing/../../x"] {
        let read = scene.outside.read(path, None).unwrap();
        assert!(matches!(read.effect, Effect::Other { .. }), "{read:?}");
    }
    assert!(scene.outside.read("", None).is_err());
    assert!(scene.outside.line(" ", None).is_err());
    assert!(scene.outside.argv(&[], None).is_err());
}

#[test]
fn a_command_elsewhere_reads_what_lies_there() {
    let scene = Scene::new();
    let elsewhere = scene.home.join("other");
    let elsewhere = elsewhere.to_string_lossy();
    for (line, cwd, expect) in [
        ("cat file", Some(&*elsewhere), Ask),
        ("ls", Some(&*elsewhere), Ask),
        ("git log", Some(&*elsewhere), Ask),
        ("cat lib.rs", Some("src"), Allow),
        ("cd ..", Some("src"), Allow),
        ("cd ../..", Some("src"), Ask),
        ("cat file", Some("linked/away"), Ask),
        ("cat file", Some("~root"), Ask),
    ] {
        let stated = scene.outside.line(line, cwd).unwrap();
        assert_eq!(
            scene.verdict(&[], &stated),
            expect,
            "{line} in {cwd:?}: {stated:#?}"
        );
    }
    assert_eq!(
        scene.outside.folder(Some("linked/away")).unwrap(),
        *elsewhere
    );
    assert_eq!(
        scene
            .outside
            .folder(Some(&scene.root.to_string_lossy()))
            .unwrap(),
        "."
    );
    assert!(scene.outside.folder(Some("~root")).is_err());
}

#[test]
fn a_search_reads_the_secrets_below() {
    let scene = Scene::new();
    let stated = scene.outside.search(".", None).unwrap();
    assert!(
        stated.iter().any(|one| one.effect.value() == ".env"),
        "{stated:?}"
    );
    assert_eq!(scene.outside.search("src", None).unwrap().len(), 1);
}

#[test]
fn a_url_is_a_connection_or_a_file() {
    let scene = Scene::new();
    for (url, expect) in [
        (
            "https://Example.com/x",
            ("connect", "https://Example.com/x", Risk::High),
        ),
        (
            "example.com/x",
            ("connect", "https://example.com/x", Risk::High),
        ),
        ("file:///etc/passwd", ("read", "/etc/passwd", Risk::High)),
    ] {
        assert_eq!(value(&scene.outside.fetch(url).unwrap()), expect, "{url}");
    }
    assert_eq!(
        scene
            .outside
            .fetch("data:text/plain,x")
            .unwrap()
            .effect
            .kind(),
        "using what is not known before it runs:"
    );
    assert!(scene.outside.fetch("https://").is_err());
    let private = scene
        .outside
        .fetch("http://169.254.169.254/latest")
        .unwrap();
    assert_eq!(scene.verdict(&[], &[private]), Deny);
}

/// A user's settings of git, and the verdicts on `git log` and `git status`.
const USER_SETTINGS: &[(&str, Verdict, Verdict)] = &[
    ("", Allow, Allow),
    ("[core]\n\thooksPath = .githooks\n", Allow, Ask),
    ("[Core] HOOKSPATH = \"./.githooks\" ; all\n", Allow, Ask),
    ("[core]\n\thooksPath = notes\n", Allow, Allow),
    ("[core]\n\thooksPath = ~/hooks\n", Allow, Allow),
    ("[core]\n\thooksPath = ~/app/notes\n", Allow, Ask),
    ("[core]\n\thooksPath = /etc/hooks\n", Allow, Allow),
    ("[core]\n\tpager = delta --dark | less -FRX\n", Allow, Allow),
    ("[core]\n\tpager = /usr/bin/less\n", Allow, Allow),
    ("[core]\n\tpager = $HOME/bin/page\n", Allow, Allow),
    ("[core]\n\tpager = ./page\n", Ask, Ask),
    ("[core]\n\tpager = sh page.sh\n", Ask, Ask),
    ("[core]\n\tpager = less -kREADME.md\n", Ask, Ask),
    ("[core]\n\tpager = env LESS=x tools/page\n", Ask, Ask),
    ("[core]\n\tpager = $PWD/page\n", Ask, Ask),
    ("[core]\n\tpager = $(cat page)\n", Ask, Ask),
    ("[core]\n\tpager = ~/app/page\n", Ask, Ask),
    ("[core]\n\tpager = ~root/page\n", Ask, Ask),
    ("[pager]\n\tlog = tools/page\n", Ask, Ask),
    ("[core]\n\tfsmonitor = true\n", Allow, Allow),
    ("[core]\n\tfsmonitor = .git/watch\n", Ask, Ask),
    ("[core]\n\texcludesFile = ~/.gitignore\n", Allow, Allow),
    ("[core]\n\tattributesFile = attributes\n", Ask, Ask),
    ("[core]\n\teditor = ./edit\n", Allow, Allow),
    (
        "[diff]\n\texternal = difft\n\tcolorMoved = zebra\n",
        Allow,
        Allow,
    ),
    ("[diff]\n\texternal = bin/difft\n", Ask, Ask),
    ("[diff]\n\tsubmodule = log\n", Allow, Allow),
    ("[diff]\n\tsubmodule = diff\n", Ask, Ask),
    (
        "[diff \"x\"]\n\txfuncname = \"^[a/b]$\"\n\ttextconv = exif\n",
        Allow,
        Allow,
    ),
    ("[diff \"x\"]\n\ttextconv = tools/exif\n", Ask, Ask),
    (
        "[filter \"lfs\"]\n\tprocess = git-lfs filter-process\n\trequired = true\n",
        Allow,
        Allow,
    ),
    ("[filter \"x\"]\n\tclean = node clean.js\n", Ask, Ask),
    ("[hook \"x\"]\n\tcommand = ./x\n", Ask, Ask),
    (
        "[gpg \"ssh\"]\n\tprogram = /opt/op-ssh-sign\n\tallowedSignersFile = ~/.ssh/s\n",
        Allow,
        Allow,
    ),
    ("[gpg \"ssh\"]\n\tallowedSignersFile = signers\n", Ask, Ask),
    (
        "[user]\n\tname = A / B\n[alias]\n\tx = !./x\n[init]\n\tdefaultBranch = main\n",
        Allow,
        Allow,
    ),
    (
        "[delta]\n\tfeatures = side-by-side decorations\n",
        Allow,
        Allow,
    ),
    ("[remote \"x\"]\n\tpromisor = true\n", Allow, Allow),
    ("[include]\n\tpath = more\n", Allow, Ask),
    (
        "[includeIf \"gitdir:/nowhere/\"]\n\tpath = ~/more\n",
        Allow,
        Ask,
    ),
    ("[include]\n\tpath = missing\n", Allow, Allow),
    ("[include]\n\tpath = app/missing\n", Ask, Ask),
    ("[include]\n\tpath = app/plain\n", Allow, Allow),
    ("[include]\n\tpath = app/paging\n", Ask, Ask),
    ("[include]\n\tpath = .gitconfig\n", Ask, Ask),
    ("[include]\n\tpath = other\n", Ask, Ask),
    ("[core\n", Ask, Ask),
];

#[test]
fn settings_of_the_user_count_where_they_lead_into_the_workspace() {
    let scene = Scene::new();
    fs::write(scene.home.join("more"), "[core]\nhooksPath = .githooks\n").unwrap();
    fs::write(scene.root.join("plain"), "[user]\nname = x\n").unwrap();
    fs::write(scene.root.join("paging"), "[core]\npager = less\n").unwrap();
    fs::create_dir(scene.root.join(".githooks")).unwrap();
    fs::write(scene.root.join(".githooks/post-index-change"), "").unwrap();
    let xdg = scene.home.join(".config/git");
    fs::create_dir_all(&xdg).unwrap();
    let check = |text: &str, log, status| {
        assert_eq!(scene.line("git log --oneline", &[]), log, "{text:?}");
        assert_eq!(scene.line("git status", &[]), status, "{text:?}");
    };
    for (text, log, status) in USER_SETTINGS {
        fs::write(scene.home.join(".gitconfig"), text).unwrap();
        check(text, *log, *status);
    }
    let git = scene.root.join(".git/config");
    let relative = "[core]\n\thooksPath = .githooks\n";
    fs::write(scene.home.join(".gitconfig"), relative).unwrap();
    fs::write(&git, "[core]\n\thooksPath = notes\n").unwrap();
    check("the repository's own hooks", Allow, Allow);
    fs::write(&git, "[core]\n").unwrap();
    fs::remove_file(scene.home.join(".gitconfig")).unwrap();
    fs::write(xdg.join("config"), relative).unwrap();
    check("XDG", Allow, Ask);
    fs::write(xdg.join("config"), format!("# {}\n", "x".repeat(300_000))).unwrap();
    check("a large file", Ask, Ask);
    fs::remove_file(xdg.join("config")).unwrap();
    fs::create_dir(xdg.join("config")).unwrap();
    check("a folder", Ask, Ask);
}

#[test]
fn a_path_counts_in_every_way_that_a_tool_may_read_it() {
    let scene = Scene::new();
    let root = scene.root.to_string_lossy();
    for (path, is_quiet) in [
        ("README.md\n".to_owned(), true),
        (format!("file://{root}/README.md"), true),
        (".env ".to_owned(), false),
        (".env\n".to_owned(), false),
        ("\u{feff}.env".to_owned(), false),
        ("\".env\"".to_owned(), false),
        (" /etc/passwd".to_owned(), false),
        ("file:///etc/passwd".to_owned(), false),
        ("FILE:/etc/passwd".to_owned(), false),
        (format!("file://{root}/%2eenv"), false),
        (format!(" file://{root}/.env?x"), false),
    ] {
        let stated = scene.outside.search(&path, None).unwrap();
        let search = scene.verdict(&[], &stated);
        assert_eq!(search == Allow, is_quiet, "search {path:?}: {stated:?}");
        let stated = scene.outside.read(&path, None).unwrap();
        let read = scene.verdict(&[], &[stated]);
        assert!(read != Allow || is_quiet, "read {path:?}");
        let stated = scene.outside.change(&path, None, false).unwrap();
        let change = scene.verdict(&["Edit"], &stated);
        assert!(change != Allow || !path.contains("etc"), "change {path:?}");
    }
    let decoded = scene.outside.fetch(&format!("file://{root}/%2eenv"));
    assert_eq!(scene.verdict(&[], &[decoded.unwrap()]), Ask);
    let stated = scene.outside.change(".mcp.json\n", None, false).unwrap();
    assert_eq!(scene.verdict(&["Edit"], &stated), Deny);
}

#[test]
fn git_reads_quietly_only_where_the_repository_names_no_program() {
    let scene = Scene::new();
    let git = scene.root.join(".git");
    fs::create_dir_all(git.join("hooks")).unwrap();
    fs::create_dir(scene.root.join("hooked;x")).unwrap();
    fs::create_dir(scene.root.join("hooked")).unwrap();
    fs::write(scene.root.join("hooked/post-index-change"), "").unwrap();
    for (config, log, status) in [
        ("[core]\n\tbare = false\n", Allow, Allow),
        ("[core]\n\tfsmonitor = ./x\n", Ask, Ask),
        ("[core]\n\tpager = ./x\n", Ask, Ask),
        ("[core]\n\tsshCommand = ./x\n", Ask, Ask),
        ("[core]\n\tworktree = ../other\n", Ask, Ask),
        ("[gpg]\n\tprogram = ./x\n", Ask, Ask),
        ("[diff \"x\"]\n\ttextconv = ./x\n", Ask, Ask),
        ("[include]\n\tpath = ../x\n", Ask, Ask),
        ("[core]\n\thooksPath = notes\n", Allow, Allow),
        ("[core]\n\thooksPath = ../other\n", Allow, Ask),
        ("[core]\n\thooksPath = /other\n", Allow, Ask),
        ("[core]\n\thooksPath = missing\n", Allow, Ask),
        ("[core]\n\thooksPath = ~/notes\n", Allow, Ask),
        ("[core]\n\thooksPath = src ; notes\n", Allow, Allow),
        ("[core]\n\thooksPath = hooked;x\n", Allow, Ask),
        ("[core]\n\thooksPath = \"no\"tes # x\n", Allow, Allow),
        ("[core]\n\thooksPath = \\x\n", Allow, Ask),
    ] {
        fs::write(git.join("config"), config).unwrap();
        assert_eq!(scene.line("git log --oneline", &[]), log, "{config:?}");
        assert_eq!(scene.line("git status", &[]), status, "{config:?}");
    }
    fs::write(git.join("config"), "[core]\n").unwrap();
    fs::write(git.join("hooks/post-index-change"), "").unwrap();
    assert_eq!(scene.line("git status", &[]), Ask);
    assert_eq!(scene.line("git log", &[]), Allow);
}

#[test]
fn a_text_that_is_handed_to_a_shell_is_what_it_says() {
    let scene = Scene::new();
    for (text, expect) in [
        ("cat README.md", Allow),
        ("cat /etc/passwd", Ask),
        ("npm test", Allow),
        ("npm publish", Ask),
        ("haft trust", Ask),
        ("", Ask),
    ] {
        let words = ["bash", "-lc", text].map(str::to_owned);
        let stated = scene.outside.argv(&words, None).unwrap();
        let verdict = scene.verdict(&["Bash(npm test)"], &stated);
        assert_eq!(verdict, expect, "{text:?}");
    }
}
