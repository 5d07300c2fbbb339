//! How many lines of an agent lead to a prompt, with haft as `haft init --client claude-code` sets it up and with its jail switched off. With
//! the jail each line really runs, so that a question about what it changed or reached counts, too.

use std::thread;

use serde_json::Value;

use crate::harness::{Lab, ended};
use crate::hook::{bash, before};
use crate::hook_given::given;
use crate::serve::{Server, post};
use crate::signals::jailed;

/// How many repositories are worked in at a time.
const LABS: usize = 4;
/// How often a line is tried whose jail does not start.
const TRIES: usize = 10;
/// How long a line may run, in seconds: some of the recorded ones do not end.
const LONGEST: &str = "15";

/// What an agent runs on a day's work in a small repository. Each line is judged by itself, in a repository with these files.
const DAY: &str = "\
ls -la
git status --short
git log --oneline -5
git diff
cat README.md
head -40 src/app.py
grep -rn 'def ' src
find . -name '*.py' -not -path './.git/*'
wc -l src/*.py
rg -n total src || grep -rn total src
sed -n 1,20p tests/test_app.py
python3 -c 'import sys; print(sys.version)'
python3 -m unittest discover -s tests
python3 -B -m unittest tests.test_app 2>&1 | tail -20
make test
node --version
node -e 'console.log(process.cwd())'
bash scripts/check.sh
mkdir -p src/util && touch src/util/__init__.py
printf 'def double(x):\\n    return 2 * x\\n' > src/util/double.py
sed -i 's/return a - b/return a + b/' src/app.py
cp README.md NOTES.md && mv NOTES.md docs.md
rm -f docs.md
python3 - <<'END'\\nfrom pathlib import Path\\nPath('out.txt').write_text('x')\\nEND
diff -u README.md docs.md || true
git add -A && git status --short
git add src && git commit -qm 'Add totals'
git checkout -q -b topic
git stash list
git show --stat HEAD
cd src && python3 -c 'import app; print(app.total(1, 2))'
for f in src/*.py; do python3 -m py_compile \"$f\"; done
export DEBUG=1 && python3 -m unittest discover -s tests
python3 -m venv --without-pip .venv && . .venv/bin/activate && python -V
(python3 -m http.server 0 >/dev/null 2>&1 & sleep 0.3; kill $!) ; echo served
tail -n 50 build.log 2>/dev/null | grep -i error || echo clean
xargs -a files.txt wc -l
env | sort | head -5
ps aux | head -5
du -sh . && df -h . | tail -1
";

/// What differs from the settings that haft writes.
#[derive(Clone, Copy)]
struct Setup {
    wrap: &'static str,
    allow: &'static [&'static str],
}

/// A repository as `haft init --client claude-code` leaves it, and the server that its hooks ask.
struct Repository {
    lab: Lab,
    server: Server,
}

impl Repository {
    fn new(setup: Setup) -> Self {
        let lab = Lab::new();
        for (name, text) in [
            ("README.md", "# Totals\n"),
            (
                "Makefile",
                "test:\n\tpython3 -B -m unittest discover -s tests\n",
            ),
            (
                "package.json",
                "{\"scripts\": {\"test\": \"node --test\"}}\n",
            ),
            (
                "pyproject.toml",
                "[project]\nname = \"totals\"\nversion = \"1\"\n",
            ),
            (
                "Cargo.toml",
                "[package]\nname = \"totals\"\nversion = \"1.0.0\"\n",
            ),
            ("src/app.py", "def total(a, b):\n    return a - b\n"),
            ("src/lib.rs", "// a line\n"),
            (
                "tests/test_app.py",
                "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n        pass\n",
            ),
            ("scripts/check.sh", "echo checked\n"),
            ("files.txt", "README.md\n"),
            (".env", "A=1\n"),
            ("id_rsa", "a line\n"),
        ] {
            lab.file(name, text);
        }
        let git = "git init -q . && git add README.md src && git -c user.name=a -c user.email=a@b commit -qm first && \
                   git config user.name a && git config user.email a@b";
        assert_eq!(
            ended(lab.program("bash", &["-c", git]).spawn().unwrap()).code,
            0
        );
        lab.user_settings("[hook]\nask = \"haft\"\nwait_s = 1\n");
        let ran = lab.run(&["init", "--client", "claude-code", "--yes"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let settings = lab.work().parent().unwrap().join("config/haft/config.toml");
        let text = std::fs::read_to_string(&settings).unwrap();
        assert!(text.contains("wrap = \"jail\""), "{text}");
        let wrap = format!("wrap = \"{}\"", setup.wrap);
        let text = text.replace("wrap = \"jail\"", &wrap);
        std::fs::write(
            settings,
            format!("{text}\n[policy]\nallow = {:?}\n", setup.allow),
        )
        .unwrap();
        let server = Server::start(&lab, &[]);
        Self { lab, server }
    }

    /// Returns whether a line leads to a prompt. With the jail, it runs.
    fn asks(&self, id: &str, line: &str) -> bool {
        let event = before(&self.lab, id, "Bash", &bash(line));
        let reply = self
            .server
            .ask(&post("/api/v1/hooks/claude", &self.server.call, &event));
        if reply.status == 428 {
            // Before it asks a user, the server wants to know the environment of the hook's process.
            return true;
        }
        let said: Value = serde_json::from_str(reply.json()["stdout"].as_str().unwrap()).unwrap();
        let output = &said["hookSpecificOutput"];
        if output["permissionDecision"] != "allow" {
            return true;
        }
        let Some(line) = output["updatedInput"]["command"].as_str() else {
            return false;
        };
        let line = line.replace("--wait 60", "--wait 1");
        let before = self.requests();
        let shell = ["-k", "5", LONGEST, "bash", "-c", &*line];
        for _ in 0..TRIES {
            let child = self.lab.program("timeout", &shell).spawn().unwrap();
            let output = child.wait_with_output().unwrap();
            // On a busy machine a jail may not start in time; such a line has asked nothing.
            let said = String::from_utf8_lossy(&output.stderr);
            if !said.contains("haft: unavailable") && !said.contains("jail ended early") {
                return self.requests() > before;
            }
        }
        panic!("the jail does not start: {line}")
    }

    fn requests(&self) -> usize {
        let all = self
            .lab
            .run(&["approvals", "list", "--all", "--json"])
            .json();
        all.as_array().unwrap().len()
    }
}

/// Returns which of the lines lead to a prompt.
fn prompting_lines(lines: &[String], setup: Setup) -> Vec<String> {
    let share = lines.len().div_ceil(LABS).max(1);
    thread::scope(|scope| {
        let work = |part: &[String]| {
            let repository = Repository::new(setup);
            let asks = |(n, line): &(usize, &String)| repository.asks(&format!("t-{n}"), line);
            let prompting = part.iter().enumerate().filter(asks);
            prompting.map(|(_, line)| line.clone()).collect::<Vec<_>>()
        };
        let parts: Vec<_> = lines
            .chunks(share)
            .map(|part| scope.spawn(move || work(part)))
            .collect();
        parts
            .into_iter()
            .flat_map(|part| part.join().unwrap())
            .collect()
    })
}

#[test]
fn the_jail_leaves_few_of_the_prompts_of_a_day() {
    if std::env::var_os("HAFT_SOAK").is_none() || !jailed(&Lab::new()) {
        return;
    }
    let day: Vec<String> = DAY.lines().map(|line| line.replace("\\n", "\n")).collect();
    let recorded = given().unwrap_or_default().into_iter();
    let recorded = recorded
        .filter(|one| !one.harmful)
        .map(|one| one.command)
        .collect();
    let edits = &["Edit(/**)"][..];
    for (name, lines, rules, allow, most) in [
        ("a day", &day, "init", &[][..], 2),
        ("a day", &day, "init and Edit(/**)", edits, 5),
        ("recorded", &recorded, "init and Edit(/**)", edits, 3),
        ("recorded", &recorded, "init", &[][..], 2),
    ] {
        let of = |wrap| prompting_lines(lines, Setup { wrap, allow });
        let (before, after) = (of("none"), of("jail"));
        let counts = (before.len(), after.len());
        eprintln!(
            "{name}, {rules}: of {} lines, {} lead to a prompt without the jail, {} with it",
            lines.len(),
            counts.0,
            counts.1
        );
        for line in &after {
            eprintln!("  {}", line.escape_debug());
        }
        assert!(counts.1 * most <= counts.0, "{name}, {rules}: {counts:?}");
    }
}
