//! Expands the methods of an `impl` block to tools that share its value.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::spanned::Spanned;
use syn::{Error, FnArg, Ident, ImplItem, ImplItemFn, ItemImpl, Meta};

use crate::expand::{lints, typed_tool};
use crate::options::Options;
use crate::signature::Head;

/// Expands an `impl` block: the unchanged block, and the tools of the methods with `#[tool]`.
pub(crate) fn expand(mut block: ItemImpl) -> syn::Result<TokenStream> {
    if let Some((_, path, _)) = &block.trait_ {
        let message = "tools are methods of a type, not of a trait";
        return Err(Error::new(path.span(), message));
    }
    if !block.generics.params.is_empty() {
        let message = "tools cannot be generic: their schemas must be known";
        return Err(Error::new(block.generics.span(), message));
    }
    let owner = (*block.self_ty).clone();
    let (mut modules, mut made) = (Vec::new(), Vec::new());
    for item in &mut block.items {
        let ImplItem::Fn(method) = item else { continue };
        let Some(options) = options(method)? else {
            continue;
        };
        let number = modules.len();
        let name = format_ident!("HaftToolMethod{number}");
        let tool = method_tool(&options, method, &name)?;
        modules.push(quote! {
            struct #name(::std::sync::Arc<#owner>);
            const _: () = { #tool };
        });
        made.push(quote! {
            ::haft::tool::TypedTool::into_tool(#name(::std::sync::Arc::clone(&self)))?
        });
    }
    if made.is_empty() {
        let message = "no method here carries #[tool]";
        return Err(Error::new(owner.span(), message));
    }
    Ok(quote! {
        #block

        const _: () = {
            #(#modules)*

            impl ::haft::tool::ToolGroup for #owner {
                fn into_tools(
                    self: ::std::sync::Arc<Self>,
                ) -> ::core::result::Result<
                    ::std::vec::Vec<::std::sync::Arc<dyn ::haft::tool::Tool>>,
                    ::haft::spec::NameError,
                > {
                    Ok(::std::vec![#(#made),*])
                }
            }
        };
    })
}

/// Removes a method's `#[tool]` and returns its options; `None` if it has none.
fn options(method: &mut ImplItemFn) -> syn::Result<Option<Options>> {
    let is_tool = |attribute: &syn::Attribute| {
        let last = attribute.path().segments.last();
        last.is_some_and(|segment| segment.ident == "tool")
    };
    let Some(at) = method.attrs.iter().position(is_tool) else {
        return Ok(None);
    };
    let attribute = method.attrs.remove(at);
    match &attribute.meta {
        Meta::Path(_) => Ok(Some(Options::default())),
        Meta::List(list) => syn::parse2(list.tokens.clone()).map(Some),
        Meta::NameValue(pair) => Err(Error::new(pair.span(), "write the options in brackets")),
    }
}

fn method_tool(
    options: &Options,
    method: &mut ImplItemFn,
    name: &Ident,
) -> syn::Result<TokenStream> {
    let shared = match method.sig.inputs.first() {
        Some(FnArg::Receiver(receiver)) => {
            receiver.reference.is_some() && receiver.mutability.is_none()
        }
        _ => false,
    };
    if !shared {
        let message = "a tool's method takes `&self`: calls share the value";
        return Err(Error::new(method.sig.ident.span(), message));
    }
    let head = Head::read(&method.attrs, &mut method.sig)?;
    let lints = lints();
    method.attrs.push(syn::parse_quote!(#lints));
    let method = &head.name;
    typed_tool(options, &head, name, &quote!((*self.0).#method))
}
