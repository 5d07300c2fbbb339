//! The README's library example is short. The doctest of the module of this name in the library compiles and runs it.

#[test]
fn the_library_example_has_at_most_25_lines_of_code() {
    let readme = include_str!("../../../../README.md");
    let (_, after) = readme.split_once("```rust\n").unwrap();
    let (example, _) = after.split_once("```").unwrap();
    let code = example
        .lines()
        .filter(|line| !line.trim().is_empty())
        .count();
    assert!(code <= 25, "{code} lines");
}
