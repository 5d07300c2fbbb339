//! The parsed modules of a crate and the items that each defines.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use syn::{Attribute, Item, ItemMod, Visibility};

/// A crate's modules by path (`a::b`; the root is empty).
pub(crate) struct Tree {
    pub(crate) modules: BTreeMap<String, Vec<Item>>,
}

impl Tree {
    /// Reads a crate's source folder, `lib.rs` first.
    pub(crate) fn read(src: &Path) -> Self {
        let mut tree = Self {
            modules: BTreeMap::new(),
        };
        tree.add_file("", &src.join("lib.rs"), src);
        tree
    }

    fn add_file(&mut self, path: &str, file: &Path, children: &Path) {
        let text = fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let parsed = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        self.add(path, parsed.items, children);
    }

    fn add(&mut self, path: &str, items: Vec<Item>, folder: &Path) {
        let mut own = Vec::new();
        for item in items {
            if let Item::Mod(module) = &item {
                if !is_for_tests(&module.attrs) {
                    self.add_module(path, module, folder);
                    own.push(item);
                }
            } else {
                own.push(item);
            }
        }
        self.modules.insert(path.to_owned(), own);
    }

    fn add_module(&mut self, path: &str, module: &ItemMod, folder: &Path) {
        let name = module.ident.to_string();
        let below = join(path, &name);
        let children = folder.join(&name);
        match &module.content {
            Some((_, items)) => self.add(&below, items.clone(), &children),
            None => self.add_file(&below, &folder.join(format!("{name}.rs")), &children),
        }
    }

    /// Returns the item that a module defines under a name.
    pub(crate) fn definition(&self, module: &str, name: &str) -> Option<&Item> {
        self.modules.get(module)?.iter().find(|item| {
            !matches!(item, Item::Use(_) | Item::Impl(_)) && name_of(item).as_deref() == Some(name)
        })
    }
}

/// Joins `a` and `b` to `a::b`; the root adds nothing.
pub(crate) fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        return name.to_owned();
    }
    format!("{path}::{name}")
}

/// Returns whether the item only exists in tests.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Ident>()
                .is_ok_and(|what| what == "test")
    })
}

/// Returns the name of an item that has one.
pub(crate) fn name_of(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Mod(item) => &item.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

/// Returns whether an item is public, not only within its crate.
pub(crate) fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}
