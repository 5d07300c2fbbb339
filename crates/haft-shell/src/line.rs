//! `Line`: every simple command that a command line runs, wherever it is, and every file that its redirections name.
//!
//! The parser understands a small subset of bash exactly (docs/reference/shell-rules.md lists it) and rejects everything else.

use crate::builtin::{SetByBuiltin, runs_quoted, sets};
use crate::command::{AssignedValue, SimpleCommand};
use crate::counting::COUNTING;
use crate::each::Loop;
use crate::error::{LONGEST_LINE, ParseError, is_too_long};
use crate::parser::{self, TextParts};
#[cfg(feature = "grammar")]
use crate::tree;
use crate::variables::{Variables, is_private};
use crate::walk::InnerText;
use crate::word::{Expansions, Word};

/// Maximum number of distinct commands and targets per line; more would be too much for a user to review.
pub const MOST_PARTS: usize = 128;

/// Maximum substitution text that is parsed again, in bytes; nesting repeats it.
const MAX_INNER: usize = 4 * LONGEST_LINE;

/// The commands, writes and reads of a line, without duplicates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    /// Every simple command that the shell may start, wherever it is in the line.
    pub commands: Vec<SimpleCommand>,
    /// Files that redirections open for writing.
    pub writes: Vec<Word>,
    /// Files that redirections open for reading.
    pub reads: Vec<Word>,
    /// Loops over words, with the values of their variables.
    pub loops: Vec<Loop>,
    /// Functions that the line defines.
    pub functions: Vec<String>,
    /// Variables of loops over words that the line does not list: `for NAME; do`.
    pub unlisted: Vec<String>,
    /// True if part of the line may run more than once: in a loop or a function.
    pub repeats: bool,
    /// True if part of the line runs in the background.
    pub background: bool,
    /// True if another shell may find other commands or words in it.
    pub ambiguous: bool,
}

impl Line {
    /// Returns the words that a variable may hold where this command of the line uses it: those of its loops. `None` if it may hold
    /// anything else, because the command is in none of its loops or something else sets it, too.
    pub fn values(&self, name: &str, command: &SimpleCommand) -> Option<Vec<&Word>> {
        let is_loops = command.within.iter().any(|within| within == name) && !self.may_set(name);
        let loops = self.loops.iter().filter(|one| one.name == name);
        is_loops.then(|| loops.flat_map(|one| &one.words).collect())
    }

    /// Returns the values that assignments of the line give a variable that nothing else sets. Before them it is not set; `None` if it may
    /// hold anything else.
    pub fn assigned(&self, name: &str) -> Option<Vec<&AssignedValue>> {
        let each = self.commands.iter();
        let each = each.flat_map(|part| part.assignments.iter().zip(&part.values));
        let values = each.filter(|(set, _)| *set == name).map(|(_, value)| value);
        let values: Vec<&AssignedValue> = values.collect();
        let is_looped = self.loops.iter().any(|one| one.name == name)
            || self.unlisted.iter().any(|unlisted| unlisted == name);
        // A program of this name that is another one may print anything.
        let is_other = || {
            let sets_path = |part: &SimpleCommand| part.assignments.iter().any(|set| set == "PATH");
            self.functions.iter().any(|function| function == "mktemp")
                || self.commands.iter().any(sets_path)
        };
        let is_known = |value: &&AssignedValue| match value {
            AssignedValue::Word(_) => true,
            AssignedValue::Fresh => !is_other(),
            AssignedValue::Unknown => false,
        };
        let is_plain = !values.is_empty()
            && is_private(name)
            && !is_looped
            && values.iter().all(is_known)
            && !self.commands.iter().any(|part| may_be_set(part, name));
        is_plain.then_some(values)
    }

    /// Returns true if numbers may not be what they were taken for, or may split: a builtin may set any variable, or one sets `IFS`.
    fn may_split_numbers(&self) -> bool {
        let splits = |part: &SimpleCommand| {
            // Before `read` it holds for that alone.
            let lasts = part.words.first().is_none_or(|name| name.text != "read");
            lasts && part.assignments.iter().any(|name| name == "IFS") || may_be_set(part, "IFS")
        };
        self.loops.iter().any(|one| one.name == "IFS") || self.commands.iter().any(splits)
    }

    /// Returns true if anything but a loop over listed words may set the variable.
    pub fn may_set(&self, name: &str) -> bool {
        let sets = |part: &SimpleCommand| {
            part.assignments.iter().any(|set| set == name) || may_be_set(part, name)
        };
        self.unlisted.iter().any(|unlisted| unlisted == name) || self.commands.iter().any(sets)
    }
}

/// Returns true if a builtin that the command is may set the variable.
fn may_be_set(part: &SimpleCommand, name: &str) -> bool {
    match sets(&part.words) {
        SetByBuiltin::Nothing => false,
        SetByBuiltin::Names(names) => names.iter().any(|(set, _)| *set == name),
        SetByBuiltin::Anything => true,
    }
}

fn sets_anything(part: &SimpleCommand) -> bool {
    matches!(sets(&part.words), SetByBuiltin::Anything)
}

/// Takes back that words are numbers.
fn forget_numbers(commands: &mut [SimpleCommand]) {
    for word in commands.iter_mut().flat_map(|part| &mut part.words) {
        word.expansions = word.expansions.without(Expansions::NUMBER);
    }
}

/// Parses a line. The cost is bounded for every text, since length, nesting and the grammar's steps are limited.
///
/// # Errors
/// If the line is too long, too deep, has too many parts, or uses syntax outside the supported subset.
pub fn parse(line: &str) -> Result<Line, ParseError> {
    if is_too_long(line) {
        return Err(ParseError::TooLong);
    }
    if line.contains('\0') {
        return Err(ParseError::Syntax("it holds a NUL"));
    }
    let mut found = Line::default();
    let mut inner = vec![InnerText {
        text: line.to_owned(),
        ..InnerText::default()
    }];
    let mut variables = Variables::default();
    let (mut at, mut read) = (0, 0);
    while let Some(next) = inner.get_mut(at) {
        let next = std::mem::take(next);
        at += 1;
        read += next.text.len();
        if read > line.len() + MAX_INNER {
            return Err(ParseError::TooDeep);
        }
        let one = parser::read(&next)?;
        if one.structured {
            second_reading(&next.text, &one)?;
        }
        inner.extend(one.inner);
        variables.add(&one.variables);
        add(&mut found.commands, one.commands);
        add(&mut found.writes, one.writes);
        add(&mut found.reads, one.reads);
        add(&mut found.loops, one.loops);
        add(&mut found.functions, one.functions);
        add(&mut found.unlisted, one.unlisted);
        found.repeats |= one.repeats;
        found.background |= one.background;
        found.ambiguous |= one.ambiguous;
        if found.commands.len() + found.writes.len() + found.reads.len() > MOST_PARTS {
            return Err(ParseError::TooMany);
        }
    }
    check_variables(&mut found, &variables)?;
    Ok(found)
}

/// Rejects a line in which arithmetic, or a builtin, may evaluate more than the line says; takes back that words are numbers where they may
/// not be.
fn check_variables(found: &mut Line, variables: &Variables) -> Result<(), ParseError> {
    if !variables.are_counted() || found.may_split_numbers() {
        forget_numbers(&mut found.commands);
    }
    variables.check()?;
    if variables.printed
        && found
            .functions
            .iter()
            .any(|name| COUNTING.contains(&&**name))
    {
        return Err(ParseError::Syntax(
            "arithmetic uses what a function of the line prints",
        ));
    }
    if found.commands.iter().any(|part| runs_quoted(&part.words)) {
        return Err(ParseError::Syntax(
            "a builtin may run what stands quoted among its words",
        ));
    }
    if variables.are_computed() && found.commands.iter().any(sets_anything) {
        return Err(ParseError::Syntax(
            "arithmetic uses a variable that a builtin may set",
        ));
    }
    Ok(())
}

/// Checks a text with the tree-sitter grammar as well.
#[cfg(feature = "grammar")]
fn second_reading(text: &str, found: &TextParts) -> Result<(), ParseError> {
    tree::check_agreement(text, found)
}

/// Without the grammar, rejects every text with more than words and lists.
#[cfg(not(feature = "grammar"))]
fn second_reading(_: &str, _: &TextParts) -> Result<(), ParseError> {
    Err(ParseError::Syntax(
        "it holds more than words and lists, and this build has no grammar",
    ))
}

/// Adds the items that are not there yet, so that each is judged once.
fn add<T: PartialEq>(to: &mut Vec<T>, more: Vec<T>) {
    for one in more {
        if !to.contains(&one) {
            to.push(one);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{parse, sets_anything};
    use crate::command::SimpleCommand;

    /// Lines in which arithmetic uses nothing but numbers.
    const COMPUTED: &[&str] = &[
        "i=0; ls $((i))",
        "i=0\nls $((i))",
        "i=0; while [ \"$i\" -lt 3 ]; do i=$((i + 1)); done; ls $((i))",
        "for i in 1 2; do ls $((i + 1)); done",
        "for i in {1..3}; do ls; done; ls $((i))",
        "((i = 5)); ls $((i))",
        "for ((i = 0; i < 3; i++)); do ls $((i)); done; ls $((i))",
        "i=0 && ls $((i))",
        "i=0; if ls; then ls $((i)); fi",
        "if i=0; then ls $((i)); fi; ls $((i))",
        "{ i=0; }; ls $((i))",
        "i=0; ls | cat $((i))",
        "i=0; ls \"$(ls $((i)))\"",
        "i=0; ls ${x:-$((i))}",
        "i=0; ls ${x:i}",
        "i=0; f() { ls $((i)); }; f",
        "x || y && i=0 && ls $((i))",
        "(i=0; ls $((i)))",
        "i=0; cat <<E\n$((i))\nE",
        "i=0; [[ $i -gt 1 ]] && ls $((i))",
        "i=0; while [ $i -lt 3 ]; do i=$((i + 1)); done",
        "c=0; while read -r l; do c=$((c + 1)); done < a",
        "c=0; while IFS= read -r a b; do c=$((c + 1)); done < a; [ $c -gt 1 ]",
        "c=0; read -rp 'a b' -t 5 x; ls $((c))",
        "n=$(wc -l < a); ls $((n / 2))",
        "n=\"$(ls | wc -l)\"; ls $((n / 2))",
        "T=$(date +%s); sleep 1; echo $(($(date +%s) - T))",
        "make -j$(($(nproc) + 1))",
        "for i in $(seq 1 5); do echo $((i * 2)); done",
        "export A=1 B; i=0; ls $((i))",
    ];

    /// Lines in which it may use more.
    const EVALUATED: &[&str] = &[
        "ls $((i))",
        "ls $((i)); i=0",
        "ls \"$(ls $((i)))\"; i=0",
        "ls ${x:-$((i))}; i=0",
        "ls ${x:i}; i=0",
        "[[ $i -gt 1 ]]; i=0",
        "false && i=0; ls $((i))",
        "true || i=0; ls $((i))",
        "x || i=0 && ls $((i))",
        "x && i=0 || ls $((i))",
        "(i=0); ls $((i))",
        "i=0 | ls; ls $((i))",
        "ls | i=0; ls $((i))",
        "i=0 & ls $((i))",
        "{ i=0; } & ls $((i))",
        "i=0 ls; ls $((i))",
        "i=0 <x; ls $((i))",
        "ls $(i=0); ls $((i))",
        "if a; then i=0; fi; ls $((i))",
        "if a; then b; elif i=0; then c; fi; ls $((i))",
        "while a; do i=0; done; ls $((i))",
        "while ls $((i)); do i=0; done",
        "case a in a) i=0;; esac; ls $((i))",
        "f() { i=0; }; f; ls $((i))",
        "f() { ls $((i)); }; i=0; f",
        "for i in; do ls; done; ls $((i))",
        "for ((; ; i = 5)); do ls $((i)); done",
        "for ((j = 0; j < 2; j++)); do i=0; done; ls $((i))",
        "((0 && (i = 1))); ls $((i))",
        "((i = )); ls $((i)); i=0",
        "i=$((1 / 0))\nls $((i))",
        "cat <<E; i=0\n$((i))\nE",
        "for i in $(seq 1 3); do ls; done; ls $((i))",
        "for i in $(seq 1 $n); do ls $((i)); done",
        "n=$(cat a); ls $((n))",
        "n=$(wc -l a); ls $((n))",
        "wc() { echo 'x[$(id)]'; }; n=$(wc -l < a); ls $((n))",
        "wc() { echo 'x[$(id)]'; }; ls $(($(wc -l < a) + 1))",
        "ls $(($(cat a) + 1))",
        "n=0; ls $((n$(nproc)))",
        "ls $(($(nproc)x))",
        "ls $((`nproc`))",
        "n=0; read n; ls $((n))",
        "n=0; read -a n; ls $((n))",
        "n=0; read $x; ls $((n))",
        "n=0; read -rp a n; ls $((n))",
        "n=0; export n=a; ls $((n))",
        "n=0; export $x; ls $((n))",
        "n=0; export x=$y; ls $((n))",
        "n=0; export -n n; ls $((n))",
        "BASH_COMMAND=0; ls $((BASH_COMMAND))",
        "RANDOM=0; ls $((RANDOM))",
    ];

    #[test]
    fn arithmetic_with_a_variable_is_read_only_where_the_line_has_set_it_before() {
        for line in COMPUTED {
            assert!(parse(line).is_ok(), "{line}: {:?}", parse(line));
        }
        for line in EVALUATED {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_test_is_a_builtin_that_may_set_nothing_where_each_word_is_one_number() {
        for (line, sets) in [
            ("n=0; while [ $n -lt 3 ]; do n=$((n + 1)); done", false),
            ("n=0; [ ${n} -lt 3 ]", false),
            ("if [ $(ls | wc -l) -gt 3 ]; then ls; fi", false),
            ("[ $? -eq 0 ]", false),
            ("test $# -gt 1", false),
            ("for i in 1 2; do [ $i -eq 1 ]; done", false),
            ("[ $n -lt 3 ]; n=0", true),
            ("n=0; [ $n -lt 3 ]; n=$(cat a)", true),
            ("n=0; [ ${n:-$x} -lt 3 ]", true),
            ("n=0; [ $n$x -lt 3 ]", true),
            ("n=0; IFS=0; [ $n -lt 3 ]", true),
            ("n=0; for IFS in 0; do [ $n -lt 3 ]; done", true),
            ("n=0; read IFS; [ $n -lt 3 ]", true),
            ("n=0; export IFS=0; [ $n -lt 3 ]", true),
            ("n=0; eval x; [ $n -lt 3 ]", true),
            ("n=0; [ $n $o 3 ]", true),
            ("for f in *; do [ -f $f ]; done", true),
            ("[ $(ls) -gt 3 ]", true),
        ] {
            let read = parse(line).unwrap();
            let tests = |part: &&SimpleCommand| matches!(&*part.words[0].text, "[" | "test");
            let named = read.commands.iter().filter(|part| !part.words.is_empty());
            assert_eq!(
                named.clone().filter(tests).any(sets_anything),
                sets,
                "{line}"
            );
        }
    }

    #[test]
    fn loops_and_what_is_not_waited_for_are_noted() {
        for (line, repeats, background) in [
            ("ls", false, false),
            ("ls &", false, true),
            ("ls && ls", false, false),
            ("for f in a; do ls; done", true, false),
            ("while true; do ls & done", true, true),
            ("until false; do ls; done", true, false),
            ("f() { ls; }", true, false),
            ("ls $(ls &)", false, true),
            ("if true; then ls; fi", false, false),
        ] {
            let read = parse(line).unwrap();
            assert_eq!(
                (read.repeats, read.background),
                (repeats, background),
                "{line}"
            );
        }
        let read = parse("for f in a 'b c' *.d; do ls; done; for g; do ls; done").unwrap();
        let words = read.loops[0].words.iter().map(|word| word.text.as_str());
        assert_eq!(read.loops.len(), 1);
        assert_eq!(read.loops[0].name, "f");
        assert_eq!(words.collect::<Vec<_>>(), ["a", "b c", "*.d"]);
    }
}
