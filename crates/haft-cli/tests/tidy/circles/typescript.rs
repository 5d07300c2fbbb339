//! The console's pages in TypeScript: which file imports which, of values and of types.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Edges, circles};
use crate::root;

/// The folder with the pages' sources.
const SOURCES: &str = "crates/haft-server/ui/src";

/// Returns the TypeScript files below a folder, as paths relative to it with their texts.
fn files(folder: &Path) -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "ts" || e == "tsx") {
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                files.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    files
}

/// Returns the modules that a text names relative to itself, after `from`, `import` or `import(`.
fn named(text: &str) -> impl Iterator<Item = &str> {
    let statements = text.split(['"', '\'', '`']).collect::<Vec<_>>();
    let pairs: Vec<(&str, &str)> = statements
        .windows(2)
        .map(|pair| (pair[0], pair[1]))
        .collect();
    pairs.into_iter().filter_map(|(before, module)| {
        let before = before.trim_end().trim_end_matches('(').trim_end();
        let imports = before.ends_with("from") || before.ends_with("import");
        (imports && module.starts_with('.')).then_some(module)
    })
}

/// Returns the path of a module, named by a file of this folder: `./a` and `../b` without their dots.
fn resolved(folder: &Path, module: &str) -> PathBuf {
    let mut path = folder.to_owned();
    for part in module.split('/') {
        match part {
            "." => {}
            ".." => drop(path.pop()),
            part => path.push(part),
        }
    }
    path
}

/// Returns which file imports which. A module without an ending is a file that ends in `.ts` or `.tsx`.
fn edges(files: &[(String, String)]) -> Edges {
    let exists = |name: &str| files.iter().any(|(file, _)| file == name);
    let edges = files.iter().map(|(file, text)| {
        let folder = Path::new(file).parent().unwrap_or(Path::new(""));
        let targets = named(text).filter_map(|module| {
            let path = resolved(folder, module).display().to_string();
            let names = [path.clone(), format!("{path}.ts"), format!("{path}.tsx")];
            names.into_iter().find(|name| exists(name))
        });
        (file.clone(), targets.collect())
    });
    edges.collect()
}

#[test]
fn pages_of_the_console_import_each_other_in_one_direction() {
    let edges = edges(&files(&root().join(SOURCES)));
    let imports: usize = edges.values().map(std::collections::BTreeSet::len).sum();
    assert!(imports >= 200, "{imports} imports are read");
    let found = circles(edges.clone());
    let drawn = found
        .iter()
        .map(|circle| super::drawing(SOURCES, &edges, circle));
    let drawn: Vec<String> = drawn.collect();
    assert!(drawn.is_empty(), "circles:\n{}", drawn.join("\n"));
}

#[test]
fn a_circle_of_imports_is_found_in_every_form_of_an_import() {
    let rows = [
        ("import { b } from \"./parts/b\";", true),
        ("import type { B } from './parts/b';", true),
        ("export { b } from \"./parts/b\";", true),
        ("import {\n  b,\n  c as d,\n} from \"./parts/b\";", true),
        ("import \"./parts/b\";", true),
        ("const b = await import(\"./parts/b.tsx\");", true),
        ("import { b } from \"preact\";", false),
        ("import \"./parts/b.css\";", false),
        ("const b = \"./parts/b\";", false),
    ];
    for (text, expect) in rows {
        let back = "import { a } from \"../a\";";
        let files = [("a.ts", text), ("parts/b.tsx", back)];
        let files = files.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let found = circles(edges(&files));
        assert_eq!(!found.is_empty(), expect, "{text}: {found:?}");
    }
}
