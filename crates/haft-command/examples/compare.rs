//! Compares what is derived from the meaning of commands with the tables of before: `cargo run --release --example compare -- LINES SEED`.
#![allow(
    missing_docs,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::pedantic,
    clippy::allow_attributes_without_reason
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use haft_command::old;
use haft_command::{PathAccess, ShellWord, meaning, only_reads, removed, touched, uses};
use haft_shell::{AsWord, Layer, base_name, inner_command, layers, parse, plain_words};

#[derive(Default)]
struct Tally {
    lines: usize,
    parsed: usize,
    commands: usize,
    agree: usize,
    differ: BTreeMap<String, (usize, Vec<String>)>,
}

impl Tally {
    fn note(&mut self, class: String, line: &str, detail: String) {
        let slot = self.differ.entry(class).or_default();
        slot.0 += 1;
        if slot.1.len() < 12 {
            slot.1
                .push(format!("{}   [{detail}]", line.replace('\n', "⏎")));
        }
    }
}

fn old_removed<W: AsWord>(layer: Layer<'_, W>) -> Vec<String> {
    let name = layer.words.first().map(|name| base_name(name.text()));
    if !matches!(name, Some("rm" | "rmdir")) {
        return Vec::new();
    }
    let words = &layer.words[1..];
    let end = words
        .iter()
        .position(|w| w.text() == "--")
        .unwrap_or(words.len());
    let before = words[..end]
        .iter()
        .filter(|w| !w.text().starts_with('-') || w.text() == "-");
    before
        .chain(words.get(end + 1..).unwrap_or_default())
        .map(|w| w.text().to_owned())
        .collect()
}

/// Why a path that the old table listed is none.
fn decided<W: AsWord>(program: &str, path: &str, layer: Layer<'_, W>) -> &'static str {
    let texts: Vec<&str> = layer.words[1..].iter().map(|w| w.text()).collect();
    let is_value = texts
        .iter()
        .any(|t| t.starts_with('-') && (t.ends_with(path) || t.ends_with(&format!("{path}/"))));
    match (program, path) {
        (_, "<()") => "the other end is a command of its own",
        ("cat" | "head" | "tail" | "wc" | "diff" | "grep" | "sed", "-") => "standard input",
        ("diff", ".") if texts.iter().all(|t| t.starts_with('-') || *t == "<()") => {
            "diff without operands ends with an error"
        }
        ("grep" | "sed", _) if is_value => "a value of an option that is no file, or letters",
        ("grep" | "sed", _) => "the pattern or script, or the value of the option before it",
        ("git", "/dev/null") => "holds no folder",
        _ => "UNDECIDED",
    }
}

fn layer_text<W: AsWord>(layer: Layer<'_, W>) -> String {
    layer
        .words
        .iter()
        .map(|w| w.text())
        .collect::<Vec<_>>()
        .join(" ")
}

fn diff(old: &[String], new: &[String]) -> (Vec<String>, Vec<String>) {
    let (o, n): (BTreeSet<_>, BTreeSet<_>) = (old.iter().collect(), new.iter().collect());
    (
        o.difference(&n).map(|s| (*s).clone()).collect(),
        n.difference(&o).map(|s| (*s).clone()).collect(),
    )
}

fn compare_words<W: AsWord>(t: &mut Tally, words: &[W], line: &str) {
    t.commands += 1;
    let before: usize = t.differ.values().map(|d| d.0).sum();
    let inner = inner_command(words);
    let name = |layer: Layer<'_, W>| {
        layer
            .words
            .first()
            .map_or("", |n| base_name(n.text()))
            .to_owned()
    };
    let (o, n) = (old::readers::only_reads(inner), only_reads(inner));
    if o != n {
        t.note(
            format!(
                "unasked {} {}",
                if n { "LOOSER" } else { "stricter" },
                name(inner)
            ),
            line,
            layer_text(inner),
        );
    }
    for layer in &layers(words).commands {
        let program = name(*layer);
        let (o, n) = (old::touched::touched(*layer), touched(*layer));
        for (what, o, n) in [
            ("reads", &o.reads, &n.reads),
            ("edits", &o.edits, &n.edits),
            ("below", &o.below, &n.below),
        ] {
            let (lost, more) = diff(o, n);
            for one in &lost {
                let why = decided(&program, one, *layer);
                t.note(
                    format!("touched.{what} LOOSER {program}: {why}"),
                    line,
                    format!("{}: lost {one:?}", layer_text(*layer)),
                );
            }
            if !more.is_empty() {
                t.note(
                    format!("touched.{what} stricter {program}"),
                    line,
                    format!("{}: more {more:?}", layer_text(*layer)),
                );
            }
        }
        if o.unknown != n.unknown {
            let is_long = |text: &str| {
                let short = text.starts_with('-') && !text.starts_with("--");
                short && (11..=66).contains(&text.chars().count())
            };
            let why = if n.unknown {
                "stricter"
            } else if layer.words.iter().any(|word| is_long(word.text())) {
                "LOOSER: each of at most 64 letters is inspected"
            } else if matches!(&*program, "grep" | "sed") {
                "LOOSER: all options are known, and a pattern or a number is no file"
            } else {
                "LOOSER: UNDECIDED"
            };
            t.note(
                format!("touched.unknown {program} {why}"),
                line,
                layer_text(*layer),
            );
        }
        let (o, n) = (
            old_removed(*layer),
            removed(*layer)
                .unwrap_or_default()
                .iter()
                .map(|w| w.text().to_owned())
                .collect::<Vec<_>>(),
        );
        if o != n {
            t.note(
                format!(
                    "removed {} {program}",
                    if n.len() < o.len() {
                        "LOOSER"
                    } else {
                        "stricter"
                    }
                ),
                line,
                layer_text(*layer),
            );
        }
        if program == "find" {
            let (o, n) = (old::find::only_looks(*layer), meaning(*layer).only_reads);
            if o != n {
                t.note(
                    format!("find exact {}", if n { "LOOSER" } else { "stricter" }),
                    line,
                    layer_text(*layer),
                );
            }
        }
    }
    let after: usize = t.differ.values().map(|d| d.0).sum();
    if before == after {
        t.agree += 1;
    }
}

fn compare_uses(t: &mut Tally, words: &[ShellWord], line: &str) {
    let program = inner_command(words)
        .words
        .first()
        .map_or("", |n| base_name(n.text()))
        .to_owned();
    let (o, n) = (old::uses::uses(words), uses(words));
    if o.understood != n.understood {
        t.note(
            format!(
                "outside.understood {} {program}",
                if n.understood { "LOOSER" } else { "stricter" }
            ),
            line,
            layer_text(inner_command(words)),
        );
        return;
    }
    let text = |all: &[haft_command::PathUse]| -> Vec<String> {
        all.iter()
            .map(|one| match one.how {
                // Which path it is makes no difference to the effects.
                PathAccess::ReadsTracked => "ReadsTracked".to_owned(),
                _ => format!(
                    "{:?} {:?} {:?} {:?}",
                    one.how, one.path, one.known, one.puts
                ),
            })
            .collect()
    };
    let (lost, more) = diff(&text(&o.paths), &text(&n.paths));
    if !lost.is_empty() {
        t.note(
            {
                let is_letters = |one: &String| n.git && one.starts_with("Names ");
                let why = if lost.iter().all(is_letters) {
                    "letters of a known option are no file"
                } else {
                    "UNDECIDED"
                };
                format!("outside.uses LOOSER {program}: {why}")
            },
            line,
            format!("lost {lost:?}"),
        );
    }
    if !more.is_empty() {
        t.note(
            format!("outside.uses stricter {program}"),
            line,
            format!("more {more:?}"),
        );
    }
    if (o.git, o.globs_output, o.prints_words) != (n.git, n.globs_output, n.prints_words) {
        t.note(
            format!("outside.flags {program}"),
            line,
            format!(
                "{:?} {:?}",
                (o.git, o.globs_output, o.prints_words),
                (n.git, n.globs_output, n.prints_words)
            ),
        );
    }
    if old::uses::creates_links(words) != n.links {
        t.note(
            format!(
                "links {} {program}",
                if n.links { "stricter" } else { "LOOSER" }
            ),
            line,
            String::new(),
        );
    }
}

fn compare(t: &mut Tally, line: &str) {
    t.lines += 1;
    if let Some(words) = plain_words(line) {
        compare_words(t, &words, line);
    }
    let Ok(read) = parse(line) else { return };
    t.parsed += 1;
    for command in &read.commands {
        compare_words(t, &command.words, line);
        let words: Vec<ShellWord> = command
            .words
            .iter()
            .flat_map(|w| ShellWord::of(w, &read.loops))
            .collect();
        compare_uses(t, &words, line);
    }
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
    fn pick<'a, S: AsRef<str>>(&mut self, from: &'a [S]) -> &'a str {
        from[self.below(from.len())].as_ref()
    }
}

const WRAPPERS: &[&str] = &[
    "timeout 5",
    "nice -n 5",
    "nohup",
    "command",
    "xargs",
    "xargs -I X",
    "xargs -n 1",
    "env",
    "env A=1",
    "sudo",
    "sudo -u root",
    "find . -exec",
    "time",
    "/bin/env",
    "stdbuf -oL",
    "NO_COLOR=1",
];
const WORDS: &[&str] = &[
    "a",
    "a.txt",
    "src/b.rs",
    ".env",
    "../x",
    "/etc/passwd",
    "~/.ssh/id_rsa",
    "~",
    "$x",
    "\"$x\"",
    "$f",
    "\"$f\"",
    "*.rs",
    "*",
    "a*",
    "-",
    "--",
    "/",
    ".",
    "..",
    "{a,b}",
    "'a b'",
    "$(cat l)",
    "\"$(cat l)\"",
    "<(sort b)",
    "X",
    "{}",
    "HEAD",
    "HEAD:a",
    "main..b",
    "5",
    "1,5p",
    "s/a/b/",
    "{print $1}",
    "'{print $1}'",
    ".a",
    "+%F",
    "'%s\\n'",
    "%d",
    "key=val",
    "=ls",
    "https://a.b/c",
    "file:///etc/x",
    "/proc/self/cwd/a",
    "/dev/null",
    "list",
    "-exec",
    "';'",
    "+",
    "rm",
    "x^y",
    "\"$HOME/a\"",
    "a/../..",
    "**/a",
    "'a[$(x)]'",
    "-name",
    "-delete",
    "!",
    "(",
    "]",
    "-L",
    "-R",
    "-r",
    "-i",
    "-e",
    "-f",
    "-o",
    "-s",
    "-c",
    "-n",
    "--version",
    "show",
    "status",
    "log",
    "diff",
    "-p",
    "-Sxyz",
    "-nfx",
    "-L1,5:a",
];

struct Generator {
    random: Random,
    programs: Vec<String>,
    options: BTreeMap<String, Vec<String>>,
    all: Vec<String>,
}

impl Generator {
    fn new(seed: u64) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/programs");
        let (mut programs, mut options, mut all) = (Vec::new(), BTreeMap::new(), Vec::new());
        let mut files: Vec<_> = std::fs::read_dir(&folder)
            .unwrap()
            .map(|e| e.unwrap().path())
            .filter(|p| p.is_file())
            .collect();
        files.sort();
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            let mut text = text.split("#[cfg(test)]").next().unwrap().to_owned();
            if file.ends_with("git.rs") {
                text += &std::fs::read_to_string(folder.join("git/tables.rs")).unwrap();
            }
            let names: Vec<String> = text
                .split("Program::new(")
                .nth(1)
                .unwrap()
                .split(']')
                .next()
                .unwrap()
                .split('"')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
                .collect();
            let mut own = Vec::new();
            for literal in text.split('"').skip(1).step_by(2) {
                for word in literal.split_whitespace() {
                    let fine = word.len() > 1
                        && word
                            .chars()
                            .all(|c| c.is_ascii_alphanumeric() || "-=…_".contains(c));
                    if !fine || names.iter().any(|n| n == word) {
                        continue;
                    }
                    let word = word.trim_end_matches('…').to_owned();
                    if word.starts_with('-') {
                        own.push(word);
                    } else {
                        own.push(format!("--{word}"));
                        own.push(format!("--{word}="));
                        own.push(word);
                    }
                }
            }
            for name in &names {
                options.insert(name.clone(), own.clone());
            }
            all.extend(own);
            programs.extend(names);
        }
        programs.extend(
            [
                "foo", "curl", "python3", "rustc", "shred", "dd", "egrep", "busybox",
            ]
            .map(str::to_owned),
        );
        Self {
            random: Random(seed),
            programs,
            options,
            all,
        }
    }

    fn word(&mut self) -> String {
        self.random.pick(WORDS).to_owned()
    }

    fn option(&mut self, program: &str) -> String {
        let r = &mut self.random;
        match r.below(10) {
            0 | 1 | 2 => {
                let letters = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
                let mut text = "-".to_owned();
                for _ in 0..=r.below(3) {
                    text.push(letters[r.below(letters.len())] as char);
                }
                if r.below(12) == 0 {
                    text.push_str(&"v".repeat(r.below(90)));
                }
                text
            }
            3 => self.all[r.below(self.all.len())].clone(),
            _ => match self.options.get(program).filter(|o| !o.is_empty()) {
                Some(own) => {
                    let mut text = own[r.below(own.len())].clone();
                    if text.ends_with('=') {
                        text.push_str(r.pick(WORDS));
                    }
                    text
                }
                None => "-x".to_owned(),
            },
        }
    }

    fn simple(&mut self) -> String {
        let mut line = String::new();
        for _ in 0..[0, 0, 0, 0, 1, 1, 2][self.random.below(7)] {
            line += self.random.pick(WRAPPERS);
            line.push(' ');
        }
        let at = self.random.below(self.programs.len());
        let program = match self.random.below(8) {
            0 => "git".to_owned(),
            1 => ["grep", "sed", "rm", "cat", "diff", "find", "rg", "cp"][self.random.below(8)]
                .to_owned(),
            _ => self.programs[at].clone(),
        };
        match self.random.below(30) {
            0 => line += &format!("/usr/bin/{program}"),
            1 => line += &format!("'{program}'"),
            2 => line += &format!("./{program}"),
            _ => line += &program,
        }
        if program == "git" && self.random.below(8) > 0 {
            let commands = [
                "status",
                "log",
                "diff",
                "show",
                "blame",
                "reflog",
                "branch",
                "tag",
                "rev-parse",
                "ls-files",
                "describe",
                "shortlog",
                "stash",
                "remote",
                "commit",
                "--no-pager",
                "-P",
                "push",
            ];
            line.push(' ');
            line += self.random.pick(&commands);
        }
        for _ in 0..self.random.below(6) {
            line.push(' ');
            let word = match self.random.below(5) {
                0 | 1 => self.option(&program),
                _ => self.word(),
            };
            line += &word;
        }
        line
    }

    fn line(&mut self) -> String {
        let mut line = self.simple();
        match self.random.below(12) {
            0 => line = format!("for f in a b '*.c' src/x; do {line}; done"),
            1 => line = format!("if {line}; then {}; fi", self.simple()),
            2 => line = format!("echo $({line})"),
            _ => {}
        }
        for _ in 0..[0, 0, 0, 1, 1, 2][self.random.below(6)] {
            line += self.random.pick(&[" | ", " && ", "; ", " || "]);
            line += &self.simple();
        }
        if self.random.below(10) == 0 {
            line += self
                .random
                .pick(&[" > /dev/null", " 2>&1", " < a", " > out"]);
        }
        line
    }
}

fn recorded() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut lines = Vec::new();
    for entry in std::fs::read_dir(root.join("crates/haft-shell/tests/corpus/shell")).unwrap() {
        lines.push(
            String::from_utf8_lossy(&std::fs::read(entry.unwrap().path()).unwrap()).into_owned(),
        );
    }
    let page = std::fs::read_to_string(root.join("docs/reference/shell-rules.md")).unwrap();
    for row in page.lines().filter(|l| l.starts_with('|')) {
        let row = row.replace("\\|", "\u{1}");
        for cell in row.split('|') {
            let code = cell
                .trim()
                .trim_matches('`')
                .trim()
                .replace('\u{1}', "|")
                .replace('⏎', "\n");
            lines.push(code);
        }
    }
    if let Some(data) = std::env::var_os("HAFT_DATA") {
        for file in ["commands/given.jsonl", "shell-policy/given.jsonl"] {
            let text = std::fs::read_to_string(Path::new(&data).join(file)).unwrap();
            for row in text.lines() {
                let row: serde_json::Value = serde_json::from_str(row).unwrap();
                lines.push(row["command"].as_str().unwrap().to_owned());
            }
        }
    }
    lines
}

fn report(name: &str, t: &Tally) {
    println!(
        "== {name}: {} lines, {} read, {} commands, {} without a difference in what is judged in a jail",
        t.lines, t.parsed, t.commands, t.agree
    );
    for (class, (count, examples)) in &t.differ {
        println!("{count:>8} {class}");
        for one in examples {
            println!("           {one}");
        }
    }
}

fn main() {
    let args: Vec<u64> = std::env::args()
        .skip(1)
        .map(|a| a.parse().unwrap())
        .collect();
    let mut t = Tally::default();
    for line in recorded() {
        compare(&mut t, &line);
    }
    report("recorded", &t);
    let mut generator = Generator::new(args.get(1).copied().unwrap_or(31));
    let mut t = Tally::default();
    for _ in 0..args.first().copied().unwrap_or(100_000) {
        let line = generator.line();
        compare(&mut t, &line);
    }
    report("random", &t);
}
