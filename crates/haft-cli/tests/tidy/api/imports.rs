//! The names in `use` statements, followed to their items.

use syn::{Item, ItemUse, UseTree};

use super::tree::{Tree, is_public, join};

/// The name in a `pub use`: the path, and the name under which it is public.
pub(crate) struct Import {
    pub(crate) path: Vec<String>,
    pub(crate) name: String,
}

/// Returns every name that a `use` statement imports.
pub(crate) fn imports(import: &ItemUse) -> Vec<Import> {
    let mut found = Vec::new();
    let mut open = vec![(Vec::new(), &import.tree)];
    while let Some((mut path, tree)) = open.pop() {
        match tree {
            UseTree::Path(step) => {
                path.push(step.ident.to_string());
                open.push((path, &step.tree));
            }
            UseTree::Group(group) => {
                open.extend(group.items.iter().map(|tree| (path.clone(), tree)));
            }
            UseTree::Name(name) if name.ident == "self" => {
                let name = path.last().cloned().unwrap_or_default();
                found.push(Import { path, name });
            }
            UseTree::Name(name) => {
                let name = name.ident.to_string();
                path.push(name.clone());
                found.push(Import { path, name });
            }
            UseTree::Rename(rename) => {
                path.push(rename.ident.to_string());
                let name = rename.rename.to_string();
                found.push(Import { path, name });
            }
            // Our globs are of private modules; a public one would hide what is public.
            UseTree::Glob(_) => assert!(!is_public(&import.vis), "pub use {}::*", path.join("::")),
        }
    }
    found
}

/// Returns the item of this crate that an import names, through any number of imports.
pub(crate) fn defined_by<'t>(tree: &'t Tree, module: &str, import: &Import) -> Option<&'t Item> {
    let (name, home) = import.path.split_last()?;
    let home = match home.split_first() {
        Some((first, rest)) if first == "crate" => rest.join("::"),
        Some((first, rest)) if first == "self" => join_all(module, rest),
        Some((first, rest)) if first == "super" => {
            let above = module.rsplit_once("::").map_or("", |(above, _)| above);
            join_all(above, rest)
        }
        _ => join_all(module, home),
    };
    if let Some(item) = tree.definition(&home, name) {
        return Some(item);
    }
    let items = tree.modules.get(&home)?.iter();
    let uses = items.filter_map(|item| match item {
        Item::Use(import) => Some(import),
        _ => None,
    });
    let next = uses
        .flat_map(imports)
        .find(|next| next.name == *name && next.path != import.path)?;
    defined_by(tree, &home, &next)
}

fn join_all(path: &str, names: &[String]) -> String {
    names
        .iter()
        .fold(path.to_owned(), |path, name| join(&path, name))
}
