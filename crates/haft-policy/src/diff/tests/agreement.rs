//! Automata and matchers agree on random texts: what a rule matches is written twice.

use proptest::prelude::*;

use crate::address::socket_path;
use crate::diff::automaton::{Automaton, SEPARATOR, Symbol};
use crate::diff::cells::{CellTools, EffectKind, RuleCell, Value};
use crate::diff::inclusion::{AnyText, Effort, Inclusion, includes};
use crate::diff::language::{Language, ValueAspect};
use crate::diff::path_language::PathReading;
use crate::rules::network_pattern::{ConnectionView, NetworkPattern};
use crate::rules::pattern::{CommandPattern, DomainPattern, canonical_host};
use crate::rules::rule::RuleList;
use crate::rules::sign_pattern::SignPattern;
use haft_files::paths::{PathPattern, PathView};

const ROOT: &str = "/a/b";

/// A connection of whose requests nothing is known.
fn connection(host: &str, port: Option<u16>) -> ConnectionView<'_> {
    ConnectionView {
        host,
        port,
        request: None,
    }
}

/// Whether a cell with this value has a text, as it is looked for and as others are compared with it.
fn has(kind: EffectKind, value: Value<'_>, text: &str) -> bool {
    let cell = RuleCell {
        kind,
        classes: 1,
        tools: CellTools::Any,
        value,
        is_partial: false,
        named: None,
    };
    let one = {
        let mut one = Automaton::new();
        let end = one.text(0, &format!("0tool{SEPARATOR}{text}"));
        one.accept(end);
        one
    };
    let both = [Language::exact, Language::wide].map(|new| {
        let mut language = new(kind, ValueAspect::Value, Some(ROOT));
        language.add(&cell);
        includes(&[&language.automaton], &one, &AnyText, &Effort::default()) == Inclusion::Holds
    });
    assert_eq!(both[0], both[1], "{value:?} {text:?}");
    both[0]
}

/// Writes a path as texts do.
fn encode(path: &str) -> String {
    let (side, rest) = match path.strip_prefix(ROOT) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => ('I', rest),
        _ if path.starts_with('/') => ('O', path),
        _ => ('I', path),
    };
    let names = rest
        .split('/')
        .filter(|name| !name.is_empty() && *name != ".");
    let names: String = names.flat_map(|name| [name, "/"]).collect();
    format!("{side}{names}")
}

proptest! {
    #[test]
    fn commands(pattern in "[ab*'\\\\ :]{0,7}", text in "[ab' ]{0,8}") {
        if let Ok(pattern) = CommandPattern::parse(&pattern) {
            let lines = pattern.lines().any(|glob| glob.matches(&text));
            prop_assert_eq!(has(EffectKind::Run, Value::Line(&pattern), &text), lines);
            let spelled = pattern.spellings().any(|glob| glob.matches(&text));
            prop_assert_eq!(has(EffectKind::Spelling, Value::Spelling(&pattern), &text), spelled);
        }
    }

    #[test]
    fn paths(
        start in "(/|//|\\./|)", names in prop::collection::vec("\\*\\*|[ab*?]{1,3}|\\[[!]?[ab-]{1,2}\\]|\\\\\\*", 1..5), end in "(/\\*\\*|/|)",
        strict: bool, path in "(/a/b|/|)(/?[ab]{1,2}){0,5}",
    ) {
        let text = format!("{start}{}{end}", names.join("/"));
        let path = haft_files::paths::clean(&path);
        if let Ok(pattern) = PathPattern::parse(&text, None, strict) {
            let view = PathView::new(&path, Some(ROOT));
            let encoded = encode(&path);
            let has = |reading| has(EffectKind::Read, Value::Path(&pattern, reading), &encoded);
            prop_assert_eq!(has(PathReading::Allows), pattern.allows(&view), "{} {}", &text, &path);
            prop_assert_eq!(has(PathReading::Forbids), pattern.forbids(&view), "{} {}", &text, &path);
            let above = pattern.forbids(&view) || pattern.lies_below(&view);
            prop_assert_eq!(has(PathReading::ForbidsAbove), above, "{} {}", &text, &path);
            prop_assert_eq!(has(PathReading::MayLieBelow), pattern.may_lie_below(&view), "{} {}", &text, &path);
        }
    }

    #[test]
    fn hosts(pattern in "(\\*\\.|)([ab*]{1,2}\\.){0,2}[ab*]{1,2}|\\*|\\[::1\\]", host in "([ab]{1,2}\\.){0,3}[ab]{1,2}|\\[::1\\]") {
        if let Some(pattern) = DomainPattern::parse(&pattern) {
            let kind = if host.starts_with('[') { 'B' } else { 'H' };
            let text = format!("u443 {kind}{host}");
            let found = has(EffectKind::Connect, Value::Domain(&pattern, RuleList::Allow), &text);
            prop_assert_eq!(found, pattern.matches(&host));
        }
    }

    #[test]
    fn sockets(pattern in "(\\*\\.|)[ab*]{1,2}(\\.[abs*]{1,2})?|\\*", path in "/[abAB.]{1,4}(\\.[abS]{1,2})?\\.{0,2}") {
        let host = format!("unix:{path}");
        // Other paths are no sockets, and no effect names them.
        prop_assume!(socket_path(&host).is_some());
        if let Some(pattern) = NetworkPattern::parse(&pattern) {
            let text = format!("un S{host}");
            let found = has(EffectKind::Connect, Value::Network(&pattern, RuleList::Deny), &text);
            prop_assert_eq!(found, pattern.forbids(connection(&canonical_host(&host), None)), "{:?}", host);
        }
    }

    #[test]
    fn ports(port in prop::sample::select(vec!["", ":80", ":443", ":8443"]), at in prop::sample::select(vec![None, Some(80), Some(443), Some(8443)]), allows: bool) {
        let pattern = NetworkPattern::parse(&format!("a.b{port}")).unwrap();
        let (list, matches) = if allows {
            (RuleList::Allow, pattern.allows(connection("a.b", at)))
        } else {
            (RuleList::Deny, pattern.forbids(connection("a.b", at)))
        };
        let port = at.map_or("un".to_owned(), |at| format!("x{at}"));
        prop_assert_eq!(has(EffectKind::Connect, Value::Network(&pattern, list), &format!("{port} Ha.b")), matches);
    }

    #[test]
    fn logins(
        pattern in prop::sample::select(vec!["git", "https:a.b", "https:*.b", "ssh:a.b", "ssh:a.b:22", "ssh:*:2222", "gpg:*"]),
        purpose in prop::sample::select(vec![
            ("git", "g"), ("https:a.b", "h443 Ha.b"), ("https:a.b:8443", "h8443 Ha.b"), ("https:c.b", "h443 Hc.b"), ("ssh:a.b", "s22 Ha.b"),
            ("ssh:a.b:2222", "s2222 Ha.b"), ("ssh:?", "?s"), ("https:?", "?h"),
            ("gpg:9DB163C3B5314D2D1519C27D20327E4CAFE743A3", "k9DB163C3B5314D2D1519C27D20327E4CAFE743A3"),
        ]),
        allows: bool,
    ) {
        let pattern = SignPattern::parse(pattern).unwrap();
        let (list, matches) = if allows {
            (RuleList::Allow, pattern.allows(purpose.0))
        } else {
            (RuleList::Deny, pattern.forbids(purpose.0))
        };
        prop_assert_eq!(has(EffectKind::Sign, Value::Sign(&pattern, list), purpose.1), matches, "{:?} {:?}", pattern, purpose);
    }

    #[test]
    fn an_inclusion_holds_where_no_text_contradicts_it(left in "[ab*]{0,5}", right in prop::collection::vec("[ab*]{0,4}", 0..4), text in "[ab]{0,8}") {
        let glob = |pattern: &str| {
            let mut automaton = Automaton::new();
            let end = pattern.chars().fold(0, |at, c| match c {
                '*' => automaton.repeat(at, Symbol::any()),
                c => automaton.step(at, Symbol::Char(c)),
            });
            automaton.accept(end);
            automaton
        };
        let matches = |pattern: &str, text: &str| haft_files::glob::Glob::parse(pattern).matches(text);
        let among = |text: &str| right.iter().any(|one| matches(one, text));
        let others: Vec<Automaton> = right.iter().map(|one| glob(one)).collect();
        let others: Vec<&Automaton> = others.iter().collect();
        match includes(&others, &glob(&left), &AnyText, &Effort::default()) {
            Inclusion::Holds => prop_assert!(!matches(&left, &text) || among(&text)),
            Inclusion::Fails(example) => prop_assert!(matches(&left, &example) && !among(&example)),
            Inclusion::Undecided => prop_assert!(false),
        }
    }
}
