//! Random command lines.

use std::collections::BTreeMap;
use std::path::Path;

/// A random number generator with a seed.
struct Random(u64);

impl Random {
    /// Returns the next number, by the algorithm of Steele, Lea and Flood.
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

/// Makes lines from the names and options that the programs' files list, with words, wrappers, pipes and loops.
pub(crate) struct Generator {
    random: Random,
    programs: Vec<String>,
    options: BTreeMap<String, Vec<String>>,
    all: Vec<String>,
}

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
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

    pub(crate) fn line(&mut self) -> String {
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
