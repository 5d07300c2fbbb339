//! Random command lines.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::vocabulary::{FREQUENT, GIT, OTHERS, WORDS, WRAPPERS};

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

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end.max(1)).unwrap()).unwrap()
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<'a, S: AsRef<str>>(&mut self, from: &'a [S]) -> &'a str {
        from[self.below(from.len())].as_ref()
    }
}

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
        let mut made = Self {
            random: Random(seed),
            programs: OTHERS.iter().map(|name| (*name).to_owned()).collect(),
            options: BTreeMap::new(),
            all: Vec::new(),
        };
        let files = fs::read_dir(&folder).unwrap();
        let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        files.retain(|file| file.is_file());
        files.sort();
        for file in files {
            let mut text = fs::read_to_string(&file).unwrap();
            text.truncate(text.find("#[cfg(test)]").unwrap_or(text.len()));
            if file.ends_with("git.rs") {
                text += &fs::read_to_string(folder.join("git/tables.rs")).unwrap();
            }
            made.add_file(&text);
        }
        made
    }

    /// Adds the programs of a file, with every literal of it that may be an option.
    fn add_file(&mut self, text: &str) {
        let (_, declared) = text.split_once("Program::new(").unwrap();
        let names = literals(declared.split(']').next().unwrap());
        let mut options = Vec::new();
        for word in literals(text).iter().flat_map(|text| text.split(' ')) {
            let is_part = |c: char| c.is_ascii_alphanumeric() || "-=…_".contains(c);
            if word.len() < 2 || !word.chars().all(is_part) || names.contains(&word) {
                continue;
            }
            let word = word.trim_end_matches('…');
            if !word.starts_with('-') {
                options.push(format!("--{word}"));
                options.push(format!("--{word}="));
            }
            options.push(word.to_owned());
        }
        for name in names {
            self.options.insert(name.to_owned(), options.clone());
            self.programs.push(name.to_owned());
        }
        self.all.extend(options);
    }

    fn option(&mut self, program: &str) -> String {
        let own = self.options.get(program).filter(|own| !own.is_empty());
        match (self.random.below(10), own) {
            (0..3, _) => self.letters(),
            (3, _) | (_, None) => self.random.pick(&self.all).to_owned(),
            (_, Some(own)) => {
                let mut text = self.random.pick(own).to_owned();
                if text.ends_with('=') {
                    text.push_str(self.random.pick(WORDS));
                }
                text
            }
        }
    }

    fn letters(&mut self) -> String {
        let letters: Vec<String> = ('a'..='z')
            .chain('A'..='Z')
            .chain('0'..='9')
            .map(String::from)
            .collect();
        let mut text = "-".to_owned();
        for _ in 0..=self.random.below(3) {
            text.push_str(self.random.pick(&letters));
        }
        if self.random.one_in(12) {
            text.push_str(&"v".repeat(self.random.below(90)));
        }
        text
    }

    fn simple(&mut self) -> String {
        let mut line = String::new();
        for _ in 0..[0, 0, 0, 0, 1, 1, 2][self.random.below(7)] {
            line += self.random.pick(WRAPPERS);
            line.push(' ');
        }
        let program = match self.random.below(8) {
            0 => "git",
            1 => self.random.pick(FREQUENT),
            _ => self.random.pick(&self.programs),
        };
        let program = program.to_owned();
        let name = match self.random.below(30) {
            0 => format!("/usr/bin/{program}"),
            1 => format!("'{program}'"),
            2 => format!("./{program}"),
            _ => program.clone(),
        };
        line += &name;
        if program == "git" && !self.random.one_in(8) {
            line.push(' ');
            line += self.random.pick(GIT);
        }
        for _ in 0..self.random.below(6) {
            line.push(' ');
            if self.random.below(5) < 2 {
                line += &self.option(&program);
            } else {
                line += self.random.pick(WORDS);
            }
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
        if self.random.one_in(10) {
            line += self
                .random
                .pick(&[" > /dev/null", " 2>&1", " < a", " > out"]);
        }
        line
    }
}

/// Returns the texts between quotation marks.
fn literals(text: &str) -> Vec<&str> {
    text.split('"').skip(1).step_by(2).collect()
}
