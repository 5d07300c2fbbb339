//! Tests of skills: what loads, what is reported, what is valid.

use std::path::Path;

use super::check::{Rigour, SkillReport, check_text};
use super::lenient::{SkillDeclaration, TextHead, declare};

mod data;
mod files;
mod reading;
mod sets;
mod strictly;

/// Returns what a `SKILL.md` in a folder named `demo` declares.
fn declared(text: &str) -> SkillDeclaration {
    declared_with(text, None)
}

fn declared_with(text: &str, overlay: Option<&str>) -> SkillDeclaration {
    declare(&TextHead { text, whole: true }, overlay, "demo")
}

fn strictly(text: &str) -> SkillReport {
    check_text(text.as_bytes(), None, "demo", Rigour::Strict)
}

/// Writes a file and creates the folders above it.
fn write(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
    let path = path.as_ref();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

/// Returns a `SKILL.md` with that name.
fn skill_md(name: &str) -> String {
    format!("---\nname: {name}\ndescription: About {name}.\n---\n\n# {name}\n")
}
