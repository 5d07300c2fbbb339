//! Which files of a crate use each other, read from their `use` statements and from paths in their code.
//!
//! A name is followed through re-exports to the file that defines it: `pub use` and `mod` in a parent are not a use of the
//! child. Code under `#[cfg(test)]` is left out.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A module's path below the root of its crate: `["policy", "rule"]`.
type Module = Vec<String>;

/// Maximum number of re-exports through which a name is followed.
const MAX_EXPORTS: usize = 8;

/// One name that a `use` statement imports.
#[derive(Debug, Clone)]
struct Import {
    /// The path as written.
    path: Vec<String>,
    /// The name in this file; `*` for a glob.
    name: String,
    is_public: bool,
    /// The inline module that contains it, below the file's.
    within: Module,
}

/// The content of one file.
#[derive(Debug, Default)]
struct File {
    children: BTreeSet<String>,
    imports: Vec<Import>,
    /// Paths in code with the inline module that contains them.
    paths: Vec<(Vec<String>, Module)>,
}

/// The uses between the files of one crate.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    files: BTreeMap<Module, File>,
}

/// Returns the module of a file, from its path below `src`.
fn module_of(file: &str) -> Module {
    let path = file.strip_suffix(".rs").unwrap_or(file);
    let parts = path.split('/').map(str::to_owned);
    match path {
        "lib" | "main" => Module::new(),
        _ => parts.collect(),
    }
}

/// Returns the name of a module in the table and in messages.
fn name_of(module: &[String]) -> String {
    match module {
        [] => "lib.rs".to_owned(),
        parts => format!("{}.rs", parts.join("/")),
    }
}

impl Uses {
    /// Reads a crate's files: paths below `src` with their texts.
    pub(crate) fn new<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut uses = Self::default();
        for (name, text) in files {
            let tokens: TokenStream = text
                .parse()
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            let mut file = File::default();
            file.read(tokens, &Module::new());
            uses.files.insert(module_of(name), file);
        }
        uses
    }

    /// Returns the files that each file uses.
    pub(crate) fn edges(&self) -> BTreeMap<String, BTreeSet<String>> {
        let edges = self.files.iter().map(|(module, file)| {
            let mut targets = BTreeSet::new();
            for import in &file.imports {
                let spoken = !import.is_public || file.says(&import.name);
                if spoken {
                    targets.extend(self.home(module, &import.within, &import.path, MAX_EXPORTS));
                }
            }
            for (path, within) in &file.paths {
                targets.extend(self.home(module, within, path, MAX_EXPORTS));
            }
            targets.remove(module);
            let targets = targets.iter().map(|target| name_of(target)).collect();
            (name_of(module), targets)
        });
        edges.collect()
    }

    /// Returns the file that defines what a path names, seen from an inline module of a file; `None` if another crate does.
    fn home(
        &self,
        module: &[String],
        within: &[String],
        path: &[String],
        depth: usize,
    ) -> Option<Module> {
        let first = path.first()?;
        let is_child = within.is_empty() && self.files.get(module)?.children.contains(first);
        if !is_child && !is_keyword(first) {
            return None;
        }
        let mut at = [module, within].concat();
        let mut rest = path;
        while let Some((first, tail)) = rest.split_first().filter(|(first, _)| is_keyword(first)) {
            match first.as_str() {
                "crate" => at.clear(),
                "super" => drop(at.pop()),
                _ => {}
            }
            rest = tail;
        }
        self.walk(at, rest, depth)
    }

    /// Follows modules and re-exports as far as the path goes.
    fn walk(&self, mut at: Module, mut rest: &[String], depth: usize) -> Option<Module> {
        while let Some((first, tail)) = rest.split_first() {
            at.push(first.clone());
            if !self.files.contains_key(&at) {
                at.pop();
                break;
            }
            rest = tail;
        }
        // An inline module belongs to its file.
        while !self.files.contains_key(&at) {
            at.pop()?;
        }
        let imports = &self.files.get(&at)?.imports;
        let name = rest.first().filter(|_| depth > 0);
        let import = name.and_then(|name| imports.iter().find(|import| import.name == *name));
        let home = import.and_then(|import| {
            let full = [import.path.as_slice(), &rest[1..]].concat();
            self.home(&at, &import.within, &full, depth - 1)
        });
        home.or(Some(at))
    }
}

impl File {
    /// Returns whether code mentions an imported name.
    fn says(&self, name: &str) -> bool {
        self.paths
            .iter()
            .any(|(path, _)| path.first().is_some_and(|first| first == name))
    }

    fn read(&mut self, tokens: TokenStream, within: &Module) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            at = self.read_at(&tokens, at, within);
        }
    }

    /// Reads what is here; returns where to continue.
    fn read_at(&mut self, tokens: &[TokenTree], at: usize, within: &Module) -> usize {
        match &tokens[at] {
            TokenTree::Punct(mark) if mark.as_char() == '#' => {
                let end = attribute_end(tokens, at);
                let text = tokens[at..end].iter().map(ToString::to_string);
                let text: String = text.collect::<String>().replace(' ', "");
                if text.contains("[cfg(test)]") || text.contains("[cfg(all(test") {
                    return item_end(tokens, end);
                }
                end
            }
            TokenTree::Ident(word) if *word == "pub" => {
                at + 1 + usize::from(is_restriction(tokens.get(at + 1)))
            }
            TokenTree::Ident(word) if *word == "use" => {
                let is_public = is_public(tokens, at);
                let end = statement_end(tokens, at);
                let mut names = Vec::new();
                tree(&tokens[at + 1..end], &mut Vec::new(), &mut names);
                let imports = names.into_iter().map(|(path, name)| Import {
                    path,
                    name,
                    is_public,
                    within: within.clone(),
                });
                self.imports.extend(imports);
                end + 1
            }
            TokenTree::Ident(word) if *word == "mod" => {
                let name = tokens[at + 1].to_string();
                match tokens.get(at + 2) {
                    Some(TokenTree::Group(body)) => {
                        let mut within = within.clone();
                        within.push(name);
                        self.read(body.stream(), &within);
                    }
                    _ => {
                        self.children.insert(name);
                    }
                }
                at + 3
            }
            TokenTree::Ident(_) => {
                let after_dot =
                    at > 0 && matches!(&tokens[at - 1], TokenTree::Punct(p) if p.as_char() == '.');
                let after_path = at > 1 && is_colons(tokens, at - 2);
                let (path, end) = path_at(tokens, at);
                // `self` alone names nothing.
                let names = path.len() > 1 || !is_keyword(&path[0]);
                if names && !after_dot && !after_path {
                    self.paths.push((path, within.clone()));
                }
                end
            }
            TokenTree::Group(group) => {
                self.read(group.stream(), within);
                at + 1
            }
            _ => at + 1,
        }
    }
}

fn is_keyword(word: &str) -> bool {
    matches!(word, "crate" | "self" | "super")
}

fn is_mark(token: Option<&TokenTree>, mark: char) -> bool {
    matches!(token, Some(TokenTree::Punct(p)) if p.as_char() == mark)
}

fn is_colons(tokens: &[TokenTree], at: usize) -> bool {
    is_mark(tokens.get(at), ':') && is_mark(tokens.get(at + 1), ':')
}

/// Returns the path `a::b::c` that starts here, and where it ends.
fn path_at(tokens: &[TokenTree], mut at: usize) -> (Vec<String>, usize) {
    let mut path = vec![tokens[at].to_string()];
    at += 1;
    while is_colons(tokens, at)
        && let Some(TokenTree::Ident(next)) = tokens.get(at + 2)
    {
        path.push(next.to_string());
        at += 3;
    }
    (path, at)
}

/// Returns whether this is the `(super)` or `(in crate::a)` of a `pub`.
fn is_restriction(token: Option<&TokenTree>) -> bool {
    let Some(TokenTree::Group(group)) = token else {
        return false;
    };
    let first = group.stream().into_iter().next();
    first.is_some_and(|first| first.to_string() == "in" || is_keyword(&first.to_string()))
}

/// Returns whether the `use` here is `pub` or `pub(…)`.
fn is_public(tokens: &[TokenTree], at: usize) -> bool {
    let word = |at: usize| matches!(&tokens[at], TokenTree::Ident(word) if *word == "pub");
    let bracket = |at: usize| matches!(&tokens[at], TokenTree::Group(_));
    at > 0 && word(at - 1) || at > 1 && bracket(at - 1) && word(at - 2)
}

/// Returns the position after the attribute that starts here.
fn attribute_end(tokens: &[TokenTree], at: usize) -> usize {
    at + 1 + usize::from(is_mark(tokens.get(at + 1), '!')) + 1
}

/// Returns the position of the `;` that ends a statement.
fn statement_end(tokens: &[TokenTree], at: usize) -> usize {
    (at..tokens.len())
        .find(|at| is_mark(tokens.get(*at), ';'))
        .unwrap_or(tokens.len())
}

/// Returns the position after the item that starts here: its `;`, its braces, or the `,` of a field.
fn item_end(tokens: &[TokenTree], at: usize) -> usize {
    let ends = |token: &TokenTree| match token {
        TokenTree::Punct(p) => matches!(p.as_char(), ';' | ','),
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        _ => false,
    };
    let end = tokens[at..].iter().position(ends);
    end.map_or(tokens.len(), |end| at + end + 1)
}

/// Adds the names that a `use` tree imports, with their paths.
fn tree(tokens: &[TokenTree], path: &mut Vec<String>, names: &mut Vec<(Vec<String>, String)>) {
    for part in tokens.split(|token| is_mark(Some(token), ',')) {
        let depth = path.len();
        let mut alias = None;
        let mut is_leaf = true;
        let mut words = part.iter();
        while let Some(token) = words.next() {
            match token {
                TokenTree::Ident(word) if *word == "as" => alias = words.next(),
                TokenTree::Ident(word) => path.push(word.to_string()),
                TokenTree::Punct(mark) if mark.as_char() == '*' => path.push("*".to_owned()),
                TokenTree::Group(group) => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    tree(&inner, path, names);
                    is_leaf = false;
                }
                _ => {}
            }
        }
        if is_leaf && path.len() > depth {
            let mut full = path.clone();
            if full.last().is_some_and(|last| last == "self") {
                full.pop();
            }
            let name = full.last().cloned().unwrap_or_default();
            let name = alias.map_or(name, ToString::to_string);
            names.push((full, name));
        }
        path.truncate(depth);
    }
}
