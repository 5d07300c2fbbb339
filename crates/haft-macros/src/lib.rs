//! The #[tool] attribute: a tool from an async function and its doc comment.

use proc_macro::TokenStream;

mod expand;
mod options;

/// Makes a tool of an async function.
///
/// The arguments become the input schema, the doc comment the description; an argument of type `&CallContext` receives the
/// call's context. The function's name then names a unit value that a `ToolRegistry` takes.
///
/// Options: `name = "…"`, `title = "…"`, `category = "…"`, `risk = "safe" | "high" | "critical"`, `idempotent`, `concurrency_safe`.
/// Doc comments and `#[serde(…)]`, `#[schemars(…)]` on an argument belong to its property.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    let expanded = syn::parse(options)
        .and_then(|options| Ok((options, syn::parse(item)?)))
        .and_then(|(options, function)| expand::expand(&options, function));
    expanded
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}
