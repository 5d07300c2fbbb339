//! From an async function to a unit value that is a typed tool.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, Expr, ExprLit, FnArg, Ident, ItemFn, Lit, LitStr, Meta, Pat, PatType, Type,
};

use crate::options::Options;

/// One argument that callers send.
struct Field {
    name: Ident,
    ty: Type,
    attributes: Vec<Attribute>,
}

/// What the function takes, in its order.
enum Parameter {
    Field(Box<Field>),
    Context,
}

/// Expands one function: a unit value, its input type, and the tool behind it.
pub(crate) fn expand(options: &Options, mut function: ItemFn) -> syn::Result<TokenStream> {
    check(&function)?;
    let description = description(&function.attrs);
    let name = function.sig.ident.clone();
    if description.is_empty() {
        let message = "a tool needs a doc comment: it is what the model reads";
        return Err(Error::new(name.span(), message));
    }
    let parameters = parameters(&mut function)?;
    let attributes = std::mem::take(&mut function.attrs);
    let visibility = std::mem::replace(&mut function.vis, syn::Visibility::Inherited);
    let input = input(&name, &parameters);
    let describe = describe(options)?;
    let text = options
        .name
        .clone()
        .unwrap_or_else(|| LitStr::new(&name.to_string(), name.span()));
    let run = run(function, &parameters);
    Ok(quote! {
        #(#attributes)*
        #[allow(non_camel_case_types, reason = "a function's name stands for its tool")]
        #[derive(Debug, Clone, Copy)]
        #visibility struct #name;

        const _: () = {
            #input

            impl ::haft::tool::TypedTool for #name {
                const NAME: &'static str = #text;
                const DESCRIPTION: &'static str = #description;
                type Input = Input;

                fn describe(mut spec: ::haft::spec::ToolSpec) -> ::haft::spec::ToolSpec {
                    #describe
                    spec
                }

                #run
            }

            ::haft::macros::inventory::submit! {
                ::haft::tool::Collected { make: || ::haft::tool::TypedTool::into_tool(#name) }
            }
        };
    })
}

/// The type that the arguments are read into.
fn input(name: &Ident, parameters: &[Parameter]) -> TokenStream {
    let fields = parameters.iter().filter_map(field).map(|field| {
        let Field {
            name,
            ty,
            attributes,
        } = field;
        quote!(#(#attributes)* #name: #ty)
    });
    let doc = format!("The arguments of `{name}`.");
    quote! {
        #[doc = #doc]
        #[derive(::haft::macros::serde::Deserialize, ::haft::macros::schemars::JsonSchema)]
        #[serde(crate = "::haft::macros::serde", deny_unknown_fields)]
        #[schemars(crate = "::haft::macros::schemars")]
        pub struct Input { #(#fields),* }
    }
}

/// The tool's `run`: the function itself, called with the input's fields.
fn run(mut function: ItemFn, parameters: &[Parameter]) -> TokenStream {
    let arguments = parameters.iter().map(|parameter| match parameter {
        Parameter::Field(field) => {
            let name = &field.name;
            quote!(input.#name)
        }
        Parameter::Context => quote!(context),
    });
    let body = format_ident!("body");
    function.sig.ident = body.clone();
    quote! {
        async fn run(
            &self,
            input: Input,
            context: &::haft::context::CallContext,
        ) -> ::core::result::Result<::haft::result::ToolResult, ::haft::error::ToolError> {
            #[allow(clippy::unused_async, reason = "a tool is async whether it waits or not")]
            #function
            let _ = (&input, context);
            ::haft::tool::IntoToolResult::into_tool_result(#body(#(#arguments),*).await?)
        }
    }
}

fn check(function: &ItemFn) -> syn::Result<()> {
    let signature = &function.sig;
    if signature.asyncness.is_none() {
        return Err(Error::new(
            signature.fn_token.span(),
            "a tool is an async fn",
        ));
    }
    if !signature.generics.params.is_empty() {
        return Err(Error::new(
            signature.generics.span(),
            "a tool has no generics: its schema must be known",
        ));
    }
    Ok(())
}

/// The function's parameters; their attributes move to the input's fields.
fn parameters(function: &mut ItemFn) -> syn::Result<Vec<Parameter>> {
    function.sig.inputs.iter_mut().map(parameter).collect()
}

fn parameter(argument: &mut FnArg) -> syn::Result<Parameter> {
    let FnArg::Typed(PatType { attrs, pat, ty, .. }) = argument else {
        return Err(Error::new(
            argument.span(),
            "a tool is a free function; write a TypedTool for one with state",
        ));
    };
    if is_context(ty) {
        return Ok(Parameter::Context);
    }
    let Pat::Ident(name) = pat.as_ref() else {
        return Err(Error::new(pat.span(), "a tool's argument is a plain name"));
    };
    let field = Field {
        name: name.ident.clone(),
        ty: (**ty).clone(),
        attributes: std::mem::take(attrs),
    };
    Ok(Parameter::Field(Box::new(field)))
}

fn is_context(ty: &Type) -> bool {
    let Type::Reference(reference) = ty else {
        return false;
    };
    let Type::Path(path) = reference.elem.as_ref() else {
        return false;
    };
    path.path
        .segments
        .last()
        .is_some_and(|last| last.ident == "CallContext")
}

fn field(parameter: &Parameter) -> Option<&Field> {
    match parameter {
        Parameter::Field(field) => Some(field),
        Parameter::Context => None,
    }
}

/// The doc comment, without the blank that follows each `///`.
fn description(attributes: &[Attribute]) -> String {
    let lines = attributes
        .iter()
        .filter_map(|attribute| match &attribute.meta {
            Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
                Expr::Lit(ExprLit {
                    lit: Lit::Str(text),
                    ..
                }) => Some(text.value()),
                _ => None,
            },
            _ => None,
        });
    let lines: Vec<String> = lines
        .map(|l| l.strip_prefix(' ').unwrap_or(&l).to_owned())
        .collect();
    lines.join("\n").trim().to_owned()
}

/// Statements that fill in the rest of the spec.
fn describe(options: &Options) -> syn::Result<TokenStream> {
    let mut filled = TokenStream::new();
    if let Some(title) = &options.title {
        filled.extend(quote!(spec.title = Some(#title.into());));
    }
    if let Some(category) = &options.category {
        filled.extend(quote!(spec.category = Some(#category.into());));
    }
    if let Some(risk) = &options.risk {
        let level = match risk.value().as_str() {
            "safe" => quote!(Safe),
            "high" => quote!(High),
            "critical" => quote!(Critical),
            _ => {
                return Err(Error::new(
                    risk.span(),
                    "risk is \"safe\", \"high\" or \"critical\"",
                ));
            }
        };
        filled.extend(quote!(spec.risk = ::haft::spec::Risk::#level;));
    }
    let Options {
        idempotent,
        concurrency_safe,
        ..
    } = options;
    filled
        .extend(quote!(spec.idempotent = #idempotent; spec.concurrency_safe = #concurrency_safe;));
    Ok(filled)
}
