//! Compares the public interface of the libraries that others embed with the snapshots next to this file.
//!
//! A snapshot lists every public item at the path by which a user reaches it. It is read from the sources, so it
//! needs no particular toolchain; `unreachable_pub` is a lint, so whatever is `pub` can be reached. After an intended
//! change, `HAFT_API=write cargo test -p haft-cli --test tidy api` updates the snapshots, and the change of the
//! snapshot is part of the commit.

use std::fs;

use crate::root;

mod imports;
mod items;
mod tree;

/// Crates whose interface has a snapshot: those on which programs of others build.
const CRATES: [&str; 5] = ["haft", "haft-app", "haft-files", "haft-skill", "haft-types"];

#[test]
fn public_interfaces_are_as_their_snapshots_say() {
    let write = std::env::var_os("HAFT_API").is_some_and(|value| value == "write");
    for name in CRATES {
        let folder = root().join("crates").join(name);
        let tree = tree::Tree::read(&folder.join("src"));
        let interface = items::list(&tree).join("\n") + "\n";
        let file = folder.join("api.txt");
        if write {
            fs::write(&file, &interface).unwrap();
            continue;
        }
        let before = fs::read_to_string(&file).unwrap_or_default();
        let changes = changes(&before, &interface);
        assert!(
            changes.is_empty(),
            "the public interface of {name} changed; if on purpose, run this test with HAFT_API=write:\n{changes}"
        );
    }
}

/// Returns lines that only one side has, marked `-` and `+`.
fn changes(before: &str, after: &str) -> String {
    let only = |mark: char, these: &str, those: &str| -> Vec<String> {
        let those: std::collections::HashSet<&str> = those.lines().collect();
        let these = these.lines().filter(|line| !those.contains(line));
        these.map(|line| format!("{mark} {line}")).collect()
    };
    let mut lines = only('-', before, after);
    lines.extend(only('+', after, before));
    lines.join("\n")
}

#[test]
fn an_interface_lists_what_a_user_reaches_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write(
        "lib.rs",
        "pub mod open; mod hidden; pub use hidden::{Thing, turn as spin}; pub use serde::Serialize;
         #[cfg(test)] pub mod tests { pub fn not_listed() {} }",
    );
    write(
        "open.rs",
        "/// Doc.\n#[non_exhaustive] #[derive(Clone, Debug)] pub struct Open { pub field: u8, private: u8 }
         impl Open { pub async fn get<'a>(&'a self, n: Option<&str>) -> Result<(), E> { body() } fn no(&self) {} }
         impl From<u8> for Open { fn from(_: u8) -> Self { todo!() } }
         pub(crate) fn inner() {}
         pub trait Host: Send { const N: usize = 3; type Out; fn must(&self); fn may(&self) -> bool { true } }",
    );
    write(
        "hidden.rs",
        "pub enum Thing { A, B(u8), C { d: String } } pub fn turn(x: i64) {} pub fn unreached() {}
         impl Thing { pub const fn new() -> Self { Self::A } }",
    );
    let found = items::list(&tree::Tree::read(folder.path()));
    let expected = [
        "fn spin(x: i64)",
        "enum Thing { A, B(u8), C { d: String } }",
        "impl Thing: const fn new() -> Self",
        "mod open",
        "#[derive(Clone, Debug)] #[non_exhaustive] struct open::Open { field: u8, .. }",
        "impl open::Open: async fn get<'a>(&'a self, n: Option<&str>) -> Result<(), E>",
        "impl From<u8> for open::Open",
        "trait open::Host: Send",
        "trait open::Host: const N: usize = default",
        "trait open::Host: type Out",
        "trait open::Host: fn may(&self) -> bool = default",
        "trait open::Host: fn must(&self)",
        "use serde::Serialize as Serialize",
    ];
    let mut expected: Vec<String> = expected.map(str::to_owned).to_vec();
    expected.sort();
    assert_eq!(found, expected);
}
