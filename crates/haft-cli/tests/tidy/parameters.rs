//! A function's parameters have names: a tuple must not replace several of them.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::sources;

/// Returns the functions of a file that take a tuple.
fn offenders(text: &str) -> BTreeSet<String> {
    let tokens: TokenStream = text.parse().unwrap_or_else(|error| panic!("{error}"));
    let mut found = BTreeSet::new();
    collect(tokens, &mut found);
    found
}

fn collect(tokens: TokenStream, found: &mut BTreeSet<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => collect(group.stream(), found),
            TokenTree::Ident(keyword) if keyword == "fn" => {
                if let Some(TokenTree::Ident(name)) = tokens.get(at + 1)
                    && parameters(&tokens[at + 2..]).is_some_and(|list| has_tuple(&list))
                {
                    found.insert(name.to_string());
                }
            }
            _ => {}
        }
    }
}

/// Returns whether a token opens or closes a list of generic arguments: 1, -1; 0 otherwise. `->` closes none.
fn angle(before: Option<&TokenTree>, token: &TokenTree) -> i32 {
    let is = |token: &TokenTree, c| matches!(token, TokenTree::Punct(p) if p.as_char() == c);
    if is(token, '<') {
        return 1;
    }
    let arrow = before.is_some_and(|before| is(before, '-'));
    if is(token, '>') && !arrow { -1 } else { 0 }
}

/// Returns the parameters, given the tokens after the name of a function and its generics.
fn parameters(after_name: &[TokenTree]) -> Option<Vec<TokenTree>> {
    let mut depth = 0;
    for (at, token) in after_name.iter().enumerate() {
        match token {
            TokenTree::Group(group)
                if depth == 0 && group.delimiter() == Delimiter::Parenthesis =>
            {
                return Some(group.stream().into_iter().collect());
            }
            token => depth += angle(at.checked_sub(1).map(|at| &after_name[at]), token),
        }
    }
    None
}

fn has_tuple(list: &[TokenTree]) -> bool {
    split(list, ',').iter().any(|parameter| {
        let parts = split_once_colon(parameter);
        is_group(parts.pattern.first()) || is_tuple(parts.kind)
    })
}

/// The two sides of a parameter.
struct Parameter<'a> {
    pattern: &'a [TokenTree],
    kind: &'a [TokenTree],
}

fn split_once_colon(parameter: &[TokenTree]) -> Parameter<'_> {
    let is_colon = |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.as_char() == ':');
    match parameter.iter().position(is_colon) {
        Some(at) => Parameter {
            pattern: &parameter[..at],
            kind: &parameter[at + 1..],
        },
        None => Parameter {
            pattern: &[],
            kind: &[],
        },
    }
}

/// Returns the parts between separators outside generic arguments.
fn split(tokens: &[TokenTree], separator: char) -> Vec<&[TokenTree]> {
    let (mut parts, mut begin, mut depth) = (Vec::new(), 0, 0);
    for (at, token) in tokens.iter().enumerate() {
        depth += angle(at.checked_sub(1).map(|at| &tokens[at]), token);
        let separates =
            matches!(token, TokenTree::Punct(p) if p.as_char() == separator) && depth == 0;
        if separates {
            parts.push(&tokens[begin..at]);
            begin = at + 1;
        }
    }
    parts.push(&tokens[begin..]);
    parts
}

fn is_group(token: Option<&TokenTree>) -> bool {
    matches!(token, Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis)
}

/// Returns whether a type is a tuple, or a reference to one. `&(dyn A + B)` is not.
fn is_tuple(kind: &[TokenTree]) -> bool {
    let mut rest = kind.iter().peekable();
    while let Some(token) = rest.peek() {
        match token {
            TokenTree::Punct(p) if matches!(p.as_char(), '&' | '\'') => {
                let lifetime = p.as_char() == '\'';
                rest.next();
                if lifetime {
                    rest.next();
                }
            }
            TokenTree::Ident(word) if word == "mut" => {
                rest.next();
            }
            TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis => {
                let inside: Vec<TokenTree> = group.stream().into_iter().collect();
                return split(&inside, ',').len() > 1;
            }
            _ => return false,
        }
    }
    false
}

#[test]
fn no_function_takes_a_tuple() {
    let mut found = Vec::new();
    for (file, text) in sources() {
        for function in offenders(&text) {
            found.push(format!("{file}: {function}"));
        }
    }
    assert!(
        found.is_empty(),
        "give the tuple a struct with a name: {found:#?}"
    );
}

#[test]
fn a_tuple_is_found_in_pattern_and_type() {
    for (function, expect) in [
        ("fn f(a: u8, b: &str) {}", false),
        ("fn f((a, b): Pair) {}", true),
        ("fn f(a: (u8, u8)) {}", true),
        ("fn f(a: &(u8, u8)) {}", true),
        ("fn f(a: &'a mut (u8, u8)) {}", true),
        ("fn f<T: Fn(u8, u8) -> u8>(a: T) {}", false),
        ("fn f<const N: usize>(a: &(dyn Fn() + Send)) {}", false),
        ("fn f(a: HashMap<u8, (u8, u8)>, b: Vec<(u8, u8)>) {}", false),
        ("fn f(a: ()) {}", false),
        ("fn f() { let g = |(a, b): (u8, u8)| a; }", false),
        ("impl A { fn f(&mut self, (a, b): (u8, u8)) {} }", true),
        ("mod m { fn f<A>(a: A, b: (A, A)) where A: Copy {} }", true),
        ("struct S { f: fn((u8, u8)) -> u8 }", false),
    ] {
        assert_eq!(!offenders(function).is_empty(), expect, "{function}");
    }
}
