//! The attributes `#[tool]` and `#[tools]`, which make tools from functions and methods and their doc comments.

use proc_macro::TokenStream;

mod expand;
mod group;
mod options;
mod signature;

/// Makes a tool from a function, which can still be called directly. See `haft::tool`.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    let expanded = syn::parse(options)
        .and_then(|options| Ok((options, syn::parse(item)?)))
        .and_then(|(options, function)| expand::expand(&options, function));
    expanded
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}

/// Makes tools from the methods of an `impl` block that have `#[tool]`. See `haft::tools`.
#[proc_macro_attribute]
pub fn tools(options: TokenStream, item: TokenStream) -> TokenStream {
    let expanded = syn::parse::<syn::parse::Nothing>(options)
        .and_then(|_| syn::parse(item))
        .and_then(group::expand);
    expanded
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}
