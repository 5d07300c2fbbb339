//! Lines that a checker reads otherwise than the shell.

use crate::entries::Entry;
use crate::scene::Scene;

/// Lines of which each part that a simple reader sees is allowed by the rules, and which run `touch` all the same.
const LINES: &[&str] = &[
    // GHSA-g8r9-g2v8-jv6f (Copilot CLI): expansions that run what a variable holds.
    "a='$(touch ran)'; echo ${a@P}",
    "echo ${a:='$(touch ran)'} ${a@P}",
    "b=a; a='$(touch ran)'; echo ${!b@P}",
    "echo $[$(touch ran)]",
    "echo 'x[$(touch ran)]'; echo $((_))",
    "echo \"$(echo \"$(touch ran)\")\"",
    "cat <(touch ran)",
    "echo x >& >(touch ran)",
    // CVE-2026-22708 (Cursor): builtins that prepare what an allowed command then runs.
    "export PAGER='touch ran'; git log",
    "export GIT_EXTERNAL_DIFF='touch ran'; git diff",
    "declare -x BASH_ENV=f; echo x",
    "typeset PATH=.; ls",
    "alias ls='touch ran'; ls",
    "ls() { touch ran; }; ls",
    "trap 'touch ran' EXIT; ls",
    "PROMPT_COMMAND='touch ran'; ls",
    "set -- touch ran; \"$@\"",
    "printf -v PATH .; ls",
    "enable -f ./f x; ls",
    "hash -p ./f ls; ls",
    // google-gemini/gemini-cli#25935 and others: wrappers, groups, new lines, many parts.
    "(touch ran) < a > b",
    "{ touch ran; } 2>&1 | cat",
    "cd sub && git -C .. -c core.pager='touch ran' log",
    "env -S 'touch ran'",
    "ls\ntouch ran",
    "ls & touch ran",
    "ls \\\n; touch ran",
    "find . -maxdepth 0 -exec touch ran \\;",
    "echo ran | xargs touch",
    "ls $'\\x3b' ; $'touch' ran",
    "cat <<E\n$(touch ran)\nE",
    "if ls; then touch ran; fi",
    "echo {a,$(touch ran)}",
    "echo `touch ran`",
    "[[ -v 'x[$(touch ran)]' ]]",
    "test -v 'x[$(touch ran)]'",
    "ls | tee >(touch ran)",
    "time -p touch ran",
    "coproc touch ran",
];

/// GHSA-g8r9-g2v8-jv6f, google-gemini/gemini-cli#25935, CVE-2026-22708: what a checker took for reading, or for allowed commands, ran
/// something else in the shell.
#[test]
fn a_line_runs_unasked_only_if_each_of_its_commands_would() {
    let settings = "policy.profile = \"read-only\"\npolicy.allow = [\"Bash(ls *)\", \"Bash(ls)\", \"Bash(echo *)\", \"Bash(cat *)\", \
        \"Bash(cd *)\", \"Bash(git log)\", \"Bash(git diff)\", \"Bash(tee *)\", \"Bash(test *)\"]\n";
    let many = format!("{}; touch ran", vec!["ls"; 60].join("; "));
    let lines = LINES.iter().copied().chain([many.as_str()]);
    let entries = [Entry::Call, Entry::Hook];
    for (nth, line) in lines.enumerate() {
        // Each line through one entry point, in turn: all of them ask the same judge.
        let entry = entries[nth % entries.len()];
        let scene = Scene::new(settings);
        scene.file("work/sub/x", "");
        scene.file("work/f", "touch ran\n");
        let said = entry.command(&scene, line);
        let ran = ["work/ran", "work/sub/ran"]
            .iter()
            .any(|path| scene.at(path).exists());
        assert!(!ran, "{entry:?}: {line}: {said}");
        // In a jail the file may be kept from the workspace: the line itself must not have run.
        let refused = said.contains("denied") || said.contains("\"deny\"");
        assert!(refused, "{entry:?}: {line}: {said}");
    }
    // What the same rules allow runs, so that a refusal above means something.
    for entry in entries {
        let scene = Scene::new(settings);
        scene.file("work/here", "");
        let said = entry.command(&scene, "ls && echo fine | cat");
        assert!(
            said.contains("here") && said.contains("fine"),
            "{entry:?}: {said}"
        );
    }
}
