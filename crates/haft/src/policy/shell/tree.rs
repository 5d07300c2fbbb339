//! The second reading: the bash grammar of tree-sitter must find no error, and the same commands at the same places.

use std::ops::ControlFlow;

use tree_sitter::{Node, ParseOptions, Parser, Tree};

use super::Unread;
use super::grammar::Found;

/// How often the grammar's progress is looked at before it is given up; each stands for about a hundred steps.
/// A line of 10,000 characters that is well formed takes about a tenth.
const MOST_STEPS: usize = 5_000;

/// Nodes that hold texts of their own, which are read on their own.
const APART: &[&str] = &[
    "command_substitution",
    "process_substitution",
    "string",
    "raw_string",
    "ansi_c_string",
    "expansion",
    "arithmetic_expansion",
    "heredoc_body",
    "array",
    "test_command",
];

/// Fails when the grammar finds an error, or commands elsewhere than they were found.
pub(super) fn agrees(text: &str, found: &Found) -> Result<(), Unread> {
    let tree = parsed(text).ok_or(Unread::Syntax("its grammar cannot be told in time"))?;
    if tree.root_node().has_error() {
        return Err(Unread::Syntax("its grammar has an error"));
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
        Err(Unread::Doubtful)
    }
}

fn parsed(text: &str) -> Option<Tree> {
    let mut parser = Parser::new();
    parser
        .set_language(&tree_sitter_bash::LANGUAGE.into())
        .ok()?;
    let bytes = text.as_bytes();
    let mut steps = 0_usize;
    let mut watch = |_: &tree_sitter::ParseState| {
        steps += 1;
        if steps > MOST_STEPS {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    parser.parse_with_options(
        &mut |at, _| bytes.get(at..).unwrap_or_default(),
        None,
        Some(ParseOptions::new().progress_callback(&mut watch)),
    )
}

/// Where the tree names commands, without those in texts that are read on their own.
fn names(tree: &Tree) -> Vec<usize> {
    let mut found = Vec::new();
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        note(node, &mut found);
        if !APART.contains(&node.kind()) && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return found;
            }
        }
    }
}

fn note(node: Node<'_>, found: &mut Vec<usize>) {
    match node.kind() {
        "command_name" | "declaration_command" | "unset_command" => found.push(node.start_byte()),
        // `[` is a command like others; `[[` is not.
        "test_command" => {
            let single = node.child(0).is_some_and(|child| child.kind() == "[");
            if single {
                found.push(node.start_byte());
            }
        }
        _ => {}
    }
}
