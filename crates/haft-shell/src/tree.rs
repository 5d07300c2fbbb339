//! The second reading: the tree-sitter grammar of bash must find no error, and the same commands at the same positions.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::LazyLock;

use tree_sitter::{Language, Node, ParseOptions, Parser, Tree};

use crate::error::ParseError;
use crate::parser::TextParts;

/// Maximum number of progress reports before the grammar is abandoned; each stands for about a hundred steps.
/// A well-formed line of 10,000 characters takes about a tenth of that.
const MAX_STEPS: usize = 5_000;

/// Nodes with a text of their own, which is read separately.
const SEPARATE_NODES: &[&str] = &[
    "command_substitution",
    "process_substitution",
    "string",
    "raw_string",
    "ansi_c_string",
    "expansion",
    "arithmetic_expansion",
    "heredoc_body",
    "array",
];

/// The role of a node of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The start of a named command.
    Command,
    /// `[ … ]` or `[[ … ]]`.
    Test,
    /// A node with a text of its own.
    Apart,
    Other,
}

static LANGUAGE: LazyLock<Language> = LazyLock::new(|| tree_sitter_bash::LANGUAGE.into());

/// The role of each node kind, indexed by the grammar's kind id.
static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let numbers = 0..u16::try_from(LANGUAGE.node_kind_count()).unwrap_or(u16::MAX);
    let kind = |number| match LANGUAGE.node_kind_for_id(number).unwrap_or_default() {
        "command_name" | "declaration_command" | "unset_command" => Kind::Command,
        "test_command" => Kind::Test,
        name if SEPARATE_NODES.contains(&name) => Kind::Apart,
        _ => Kind::Other,
    };
    numbers.map(kind).collect()
});

thread_local! {
    /// Reused for its memory; it retains nothing of a text.
    static PARSER: RefCell<Parser> = RefCell::new(Parser::new());
}

/// Fails if the grammar finds an error, or commands at other positions.
pub(crate) fn check_agreement(text: &str, found: &TextParts) -> Result<(), ParseError> {
    let tree = parse_tree(text).ok_or(ParseError::Syntax("its grammar cannot be told in time"))?;
    if tree.root_node().has_error() {
        return Err(ParseError::Syntax("its grammar has an error"));
    }
    let mut seen = names(&tree);
    seen.sort_unstable();
    let known =
        |at: &usize| found.names.iter().any(|name| name.at == *at) || found.prefixes.contains(at);
    let there = found
        .names
        .iter()
        .all(|name| name.prefixed || seen.binary_search(&name.at).is_ok());
    if there && seen.iter().all(known) {
        Ok(())
    } else {
        Err(ParseError::Ambiguous)
    }
}

fn parse_tree(text: &str) -> Option<Tree> {
    let bytes = text.as_bytes();
    let mut steps = 0_usize;
    let mut watch = |_: &tree_sitter::ParseState| {
        steps += 1;
        if steps > MAX_STEPS {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    PARSER.with_borrow_mut(|parser| {
        parser.set_language(&LANGUAGE).ok()?;
        // Without a reset, the parser would continue where it was abandoned.
        parser.reset();
        parser.parse_with_options(
            &mut |at, _| bytes.get(at..).unwrap_or_default(),
            None,
            Some(ParseOptions::new().progress_callback(&mut watch)),
        )
    })
}

/// Returns the positions where the tree names commands, except in texts that are read separately.
fn names(tree: &Tree) -> Vec<usize> {
    let mut found = Vec::new();
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        let kind = KINDS.get(usize::from(node.kind_id()));
        let kind = kind.copied().unwrap_or(Kind::Other);
        if kind == Kind::Command || (kind == Kind::Test && is_single(node)) {
            found.push(node.start_byte());
        }
        let apart = matches!(kind, Kind::Test | Kind::Apart);
        if !apart && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return found;
            }
        }
    }
}

/// Returns true for `[`, which is an ordinary command; `[[` is not.
fn is_single(test: Node<'_>) -> bool {
    test.child(0).is_some_and(|child| child.kind() == "[")
}
