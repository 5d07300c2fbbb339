//! The public items of a crate, one line each.

use quote::ToTokens;
use syn::{Attribute, Fields, ImplItem, Item, ItemImpl, Signature, TraitItem, Type, Visibility};

use super::imports::{Import, defined_by, imports};
use super::tree::{Tree, is_public, join, name_of};

/// Returns every public item at the path by which it is reached, sorted. The members of an item with several paths
/// are listed once, at the shortest.
pub(crate) fn list(tree: &Tree) -> Vec<String> {
    let mut lines = Vec::new();
    let mut items = Vec::new();
    list_module(tree, "", &mut lines, &mut items);
    items.sort_by_key(|reached| (reached.path.len(), reached.path.clone()));
    let mut known: Vec<&Item> = Vec::new();
    for Reached { path, item } in items {
        let line = definition(item, &path);
        if line.is_some() && !known.iter().any(|one| std::ptr::eq(*one, item)) {
            known.push(item);
            list_members(tree, item, &path, &mut lines);
        }
        lines.extend(line);
    }
    lines.sort();
    lines.dedup();
    lines
}

/// An item, and a path by which a user reaches it.
struct Reached<'t> {
    path: String,
    item: &'t Item,
}

fn list_module<'t>(
    tree: &'t Tree,
    module: &str,
    lines: &mut Vec<String>,
    items: &mut Vec<Reached<'t>>,
) {
    for item in tree.modules.get(module).into_iter().flatten() {
        match item {
            Item::Use(import) if is_public(&import.vis) => {
                for import in imports(import) {
                    let path = join(module, &import.name);
                    match defined_by(tree, module, &import) {
                        Some(item) => items.push(Reached { path, item }),
                        None => lines.push(format!("use {} as {path}", import.path.join("::"))),
                    }
                }
            }
            Item::Mod(inner) if is_public(&inner.vis) => {
                let path = join(module, &inner.ident.to_string());
                lines.push(format!("{}mod {path}", marks(&inner.attrs)));
                list_module(tree, &path, lines, items);
            }
            item => {
                if let Some(name) = name_of(item) {
                    let path = join(module, &name);
                    items.push(Reached { path, item });
                }
            }
        }
    }
}

/// Returns an item's own line, if it is public.
fn definition(item: &Item, path: &str) -> Option<String> {
    match item {
        Item::Fn(item) => public(&item.vis, &item.attrs, || {
            signature(&item.sig).replacen(&item.sig.ident.to_string(), path, 1)
        }),
        Item::Const(item) => public(&item.vis, &item.attrs, || {
            format!("const {path}: {}", text(&item.ty))
        }),
        Item::Static(item) => public(&item.vis, &item.attrs, || {
            format!("static {path}: {}", text(&item.ty))
        }),
        Item::Type(item) => public(&item.vis, &item.attrs, || {
            format!("type {path}{} = {}", text(&item.generics), text(&item.ty))
        }),
        Item::Struct(item) => public(&item.vis, &item.attrs, || {
            format!(
                "struct {path}{}{}",
                text(&item.generics),
                fields(&item.fields, false)
            )
        }),
        Item::Enum(item) => public(&item.vis, &item.attrs, || {
            let variants: Vec<String> = item
                .variants
                .iter()
                .map(|variant| format!("{}{}", variant.ident, fields(&variant.fields, true)))
                .collect();
            format!(
                "enum {path}{} {{ {} }}",
                text(&item.generics),
                variants.join(", ")
            )
        }),
        Item::Trait(item) => public(&item.vis, &item.attrs, || {
            let bounds = text(&item.supertraits);
            let colon = if bounds.is_empty() { "" } else { ": " };
            format!("trait {path}{}{colon}{bounds}", text(&item.generics))
        }),
        Item::Macro(item) if item.attrs.iter().any(|a| a.path().is_ident("macro_export")) => {
            Some(format!("macro {path}"))
        }
        _ => None,
    }
}

fn list_members(tree: &Tree, item: &Item, path: &str, lines: &mut Vec<String>) {
    match item {
        Item::Trait(item) => {
            let members = item.items.iter().filter_map(trait_member);
            lines.extend(members.map(|member| format!("trait {path}: {member}")));
        }
        Item::Struct(_) | Item::Enum(_) => list_impls(tree, item, path, lines),
        _ => {}
    }
}

fn public(
    visibility: &Visibility,
    attributes: &[Attribute],
    line: impl FnOnce() -> String,
) -> Option<String> {
    is_public(visibility).then(|| format!("{}{}", marks(attributes), line()))
}

fn list_impls(tree: &Tree, item: &Item, path: &str, lines: &mut Vec<String>) {
    for block in impls(tree, item) {
        if let Some((_, of, _)) = &block.trait_ {
            lines.push(format!("impl {} for {path}", text(of)));
            continue;
        }
        for member in &block.items {
            let member = match member {
                ImplItem::Fn(member) => {
                    public(&member.vis, &member.attrs, || signature(&member.sig))
                }
                ImplItem::Const(member) => public(&member.vis, &member.attrs, || {
                    format!("const {}: {}", member.ident, text(&member.ty))
                }),
                _ => None,
            };
            lines.extend(member.map(|member| format!("impl {path}: {member}")));
        }
    }
}

/// Returns the `impl` blocks of a type, wherever they are.
fn impls<'t>(tree: &'t Tree, of: &'t Item) -> impl Iterator<Item = &'t ItemImpl> {
    let all = tree
        .modules
        .iter()
        .flat_map(|(module, items)| items.iter().map(move |item| (module, item)));
    all.filter_map(move |(module, item)| match item {
        Item::Impl(block) if is_named(block, of) && is_for(tree, module, block, of) => Some(block),
        _ => None,
    })
}

fn is_named(block: &ItemImpl, of: &Item) -> bool {
    let Type::Path(path) = &*block.self_ty else {
        return false;
    };
    path.path.segments.last().map(|last| last.ident.to_string()) == name_of(of)
}

/// Returns whether the type that a block names in its module is this one, and not another one with the same name.
fn is_for(tree: &Tree, module: &str, block: &ItemImpl, of: &Item) -> bool {
    let Type::Path(path) = &*block.self_ty else {
        return false;
    };
    let path: Vec<String> = path
        .path
        .segments
        .iter()
        .map(|part| part.ident.to_string())
        .collect();
    let name = path.last().cloned().unwrap_or_default();
    let found = tree.definition(module, &name).filter(|_| path.len() == 1);
    let found = found.or_else(|| defined_by(tree, module, &Import { path, name }));
    found.is_some_and(|found| std::ptr::eq(found, of))
}

fn trait_member(member: &TraitItem) -> Option<String> {
    let default = |has: bool| if has { " = default" } else { "" };
    Some(match member {
        TraitItem::Fn(member) => {
            format!(
                "{}{}",
                signature(&member.sig),
                default(member.default.is_some())
            )
        }
        TraitItem::Const(member) => {
            let (name, kind) = (&member.ident, text(&member.ty));
            format!("const {name}: {kind}{}", default(member.default.is_some()))
        }
        TraitItem::Type(member) => format!("type {}", member.ident),
        _ => return None,
    })
}

/// Returns a struct's or variant's fields; private ones are `..`.
fn fields(fields: &Fields, all: bool) -> String {
    let listed = |field: &syn::Field| all || is_public(&field.vis);
    let mut parts: Vec<String> = fields
        .iter()
        .filter(|field| listed(field))
        .map(|field| match &field.ident {
            Some(name) => format!("{name}: {}", text(&field.ty)),
            None => text(&field.ty),
        })
        .collect();
    if fields.iter().any(|field| !listed(field)) {
        parts.push("..".into());
    }
    match fields {
        Fields::Unit => String::new(),
        Fields::Named(_) => format!(" {{ {} }}", parts.join(", ")),
        Fields::Unnamed(_) => format!("({})", parts.join(", ")),
    }
}

/// Returns attributes that affect what a user may do with the item.
fn marks(attributes: &[Attribute]) -> String {
    let mut marks: Vec<String> = attributes
        .iter()
        .filter(|attribute| {
            let path = attribute.path();
            ["derive", "non_exhaustive", "deprecated", "cfg"]
                .iter()
                .any(|name| path.is_ident(name))
        })
        .map(text)
        .collect();
    marks.sort();
    marks.into_iter().map(|mark| mark + " ").collect()
}

fn signature(signature: &Signature) -> String {
    text(signature)
}

/// Returns tokens in their usual notation, on one line.
fn text(tokens: impl ToTokens) -> String {
    let mut text = tokens.to_token_stream().to_string();
    text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let tight = [
        (" :: ", "::"),
        (":: ", "::"),
        (" ::", "::"),
        (" <", "<"),
        ("< ", "<"),
        (" >", ">"),
        (" ,", ","),
        (" ;", ";"),
        ("& ", "&"),
        ("# ", "#"),
        ("[ ", "["),
        (" ]", "]"),
        (" (", "("),
        ("( ", "("),
        (" )", ")"),
        (" :", ":"),
        ("-> (", "-> ("),
        ("->(", "-> ("),
        (",)", ")"),
        (",>", ">"),
        ("#[derive (", "#[derive("),
        (" !", "!"),
        (", }", " }"),
        ("- >", "->"),
    ];
    for (from, to) in tight {
        text = text.replace(from, to);
    }
    text.replace("->", " ->")
        .replace("  ->", " ->")
        .replace(">(", "> (")
        .replace("> (", ">(")
}
