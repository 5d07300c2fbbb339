//! Random command lines: every construct that the reader accepts, mixed with pieces that it does not, and mutations of both.

use crate::vocabulary::{
    COMMANDS, JOINTS, NUMBERS, PARAMETERS, PIECES, REDIRECTIONS, WORDS, WRAPPERS,
};

/// A random number generator with a seed.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number, by the algorithm of Steele, Lea and Flood.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end.max(1)).unwrap_or(1)).unwrap_or(0)
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

/// Generates lines.
#[derive(Debug)]
pub(crate) struct Lines {
    pub(crate) random: Random,
}

impl Lines {
    /// Returns one line, sometimes mutated.
    pub(crate) fn line(&mut self) -> String {
        let mut line = self.list(3);
        if self.random.one_in(3) {
            for _ in 0..=self.random.below(2) {
                line = self.mutated(&line);
            }
        }
        line
    }

    fn mutated(&mut self, line: &str) -> String {
        let mut at = self.random.below(line.len() + 1);
        while !line.is_char_boundary(at) {
            at -= 1;
        }
        let (before, after) = line.split_at(at);
        if self.random.one_in(3) {
            // Drops a character.
            let rest = after.chars().next().map_or("", |c| &after[c.len_utf8()..]);
            return format!("{before}{rest}");
        }
        format!("{before}{}{after}", self.random.pick(PIECES))
    }

    fn list(&mut self, depth: usize) -> String {
        let mut line = self.command(depth);
        for _ in 0..self.random.below(3) {
            line += self.random.pick(JOINTS);
            line += &self.command(depth);
        }
        line
    }

    fn command(&mut self, depth: usize) -> String {
        let mut command = match (depth, self.random.below(24)) {
            (0, _) | (_, 14..) => self.simple(depth),
            (_, kind @ 0..7) => self.compound(kind, depth - 1),
            (_, kind) => self.evaluating(kind, depth - 1),
        };
        if self.random.one_in(6) {
            command += self.random.pick(REDIRECTIONS);
        }
        command
    }

    /// Returns a group, condition, loop over words, case or function.
    fn compound(&mut self, kind: usize, depth: usize) -> String {
        let (first, second) = (self.list(depth), self.list(depth));
        let (word, other) = (self.word(), self.word());
        let name = self.random.pick(&["f", "ls", "c1", "cd"]);
        match kind {
            0 => format!("{{ {first}; }}"),
            1 => format!("({first})"),
            2 => format!("if {first}; then {second}; fi"),
            3 => format!("for v in {word} {other}; do {first}; done"),
            4 => format!("case {word} in {other}) {first};; *) {second};; esac"),
            5 => format!("{name}() {{ {first}; }}; {second}"),
            _ => format!("while {first} && false; do {second}; done"),
        }
    }

    /// Returns a construct that evaluates a text, or sets what a later text is made of.
    fn evaluating(&mut self, kind: usize, depth: usize) -> String {
        let list = self.list(depth);
        let number = self.random.pick(NUMBERS);
        let word = self.word();
        match kind {
            7 => {
                let words = self.random.pick(&["1 2", "{1..2}", "1 $v", "*"]);
                format!("for i in {words}; do {list}; done")
            }
            8 => format!("for ((i = 0; i < {number}; i++)); do {list}; done"),
            9 => format!("[[ {} ]] && {list}", self.condition()),
            10 => format!("(({number})) || {list}"),
            11 => format!("cat <<E\n{word} {}\nE\n{list}", self.expansion()),
            12 => {
                let value = self.random.pick(&["1", "$((i + 1))", "$v", "x"]);
                format!("i={value}; v={word} {list}")
            }
            _ => format!("x[{number}]=1; {list}"),
        }
    }

    fn simple(&mut self, depth: usize) -> String {
        let mut command = String::new();
        for _ in 0..[0, 0, 0, 1, 1, 2][self.random.below(6)] {
            command += self.random.pick(WRAPPERS);
            command.push(' ');
        }
        command += self.random.pick(COMMANDS);
        for _ in 0..self.random.below(3) {
            command.push(' ');
            let word = match self.random.below(5) {
                0 => self.expansion(),
                1 if depth > 0 => format!("$({})", self.list(depth - 1)),
                _ => self.word(),
            };
            command += &word;
        }
        command
    }

    fn word(&mut self) -> String {
        self.random.pick(WORDS).to_owned()
    }

    fn expansion(&mut self) -> String {
        let quote = if self.random.one_in(2) { "\"" } else { "" };
        let inner = if self.random.one_in(2) {
            format!("$(({}))", self.random.pick(NUMBERS))
        } else {
            format!("${{{}}}", self.random.pick(PARAMETERS))
        };
        format!("{quote}{inner}{quote}")
    }

    fn condition(&mut self) -> String {
        let number = self.random.pick(NUMBERS);
        match self.random.below(6) {
            0 => format!("{number} -eq {}", self.random.pick(NUMBERS)),
            1 => format!("{number} -lt 3"),
            2 => format!("-v {}", self.word()),
            3 => format!("{} == {}", self.word(), self.word()),
            4 => format!("-f {} && ! {}", self.word(), self.word()),
            _ => format!("-n {}", self.expansion()),
        }
    }
}
