//! Expands a function to a typed tool next to it.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, FnArg, Ident, ItemFn, LitStr};

use crate::options::Options;
use crate::signature::{Field, Head, Parameter};

/// Expands one function: the unchanged function, a braced unit struct with its name, and the tool implementation of the struct.
pub(crate) fn expand(options: &Options, mut function: ItemFn) -> syn::Result<TokenStream> {
    if let Some(receiver @ FnArg::Receiver(_)) = function.sig.inputs.first() {
        let message = "write #[tools] on the impl block, and #[tool] on its methods";
        return Err(Error::new_spanned(receiver, message));
    }
    let head = Head::read(&function.attrs, &mut function.sig)?;
    let (name, visibility) = (&head.name, &function.vis);
    let doc = format!("The tool of the function `{name}`.");
    let tool = typed_tool(options, &head, name, &quote!(#name))?;
    let lints = lints();
    let attributes = function.attrs.iter();
    let conditions: Vec<_> = attributes.filter(|a| a.path().is_ident("cfg")).collect();
    Ok(quote! {
        #lints
        #function

        #(#conditions)*
        #[doc = #doc]
        #[doc(hidden)]
        #[allow(non_camel_case_types, reason = "it has the name of the function")]
        #[derive(Debug, Clone, Copy)]
        #visibility struct #name {}

        #(#conditions)*
        const _: () = {
            #tool

            ::haft::macros::inventory::submit! {
                ::haft::tool::LinkedFunction {
                    function: || ::haft::macros::function_id(&#name),
                    make: || ::haft::tool::TypedTool::into_tool(#name {}),
                }
            }
        };
    })
}

/// Returns the lints that a function cannot satisfy once it is a tool.
pub(crate) fn lints() -> TokenStream {
    quote! {
        #[allow(
            clippy::needless_pass_by_value,
            clippy::unused_async,
            reason = "arguments are read from JSON, and a tool may be async whether it waits or not"
        )]
    }
}

/// Returns the input type and the `TypedTool` implementation for the type `owner`; `function` is the code to run, without arguments.
pub(crate) fn typed_tool(
    options: &Options,
    head: &Head,
    owner: &Ident,
    function: &TokenStream,
) -> syn::Result<TokenStream> {
    let input = input(head);
    let describe = describe(options, head)?;
    let (name, description) = (&head.name, &head.description);
    let text = options.name.clone();
    let text = text.unwrap_or_else(|| LitStr::new(&name.to_string(), name.span()));
    let run = run(head, function);
    let page = options.page.as_ref().map(|file| {
        quote! {
            fn page(&self) -> Option<::haft::spec::ToolPage> {
                Some(::haft::spec::ToolPage::html(::core::include_str!(#file)))
            }
        }
    });
    Ok(quote! {
        #input

        impl ::haft::tool::TypedTool for #owner {
            const NAME: &'static str = #text;
            const DESCRIPTION: &'static str = #description;
            type Input = HaftToolInput;

            fn describe(mut spec: ::haft::spec::ToolSpec) -> ::haft::spec::ToolSpec {
                #describe
                spec
            }

            #page

            fn intent(
                &self,
                _: &HaftToolInput,
                _: ::haft::tool::Depth,
            ) -> ::core::result::Result<::haft::tool::Intent, ::haft::error::ToolError> {
                Ok(::haft::tool::Intent::call_only())
            }

            #run
        }
    })
}

/// Returns the type into which the arguments are deserialized.
fn input(head: &Head) -> TokenStream {
    let fields = head.parameters.iter().filter_map(Parameter::field);
    let fields = fields.map(|field| {
        let Field {
            name,
            ty,
            attributes,
        } = field;
        quote!(#(#attributes)* #name: #ty)
    });
    let doc = format!("The arguments of `{}`.", head.name);
    quote! {
        #[doc = #doc]
        #[derive(::haft::macros::serde::Deserialize, ::haft::macros::schemars::JsonSchema)]
        #[serde(crate = "::haft::macros::serde", deny_unknown_fields)]
        #[schemars(crate = "::haft::macros::schemars")]
        pub struct HaftToolInput { #(#fields),* }
    }
}

/// Returns the tool's `run`, which calls the function with the input's fields.
fn run(head: &Head, function: &TokenStream) -> TokenStream {
    let arguments = head.parameters.iter().map(|parameter| match parameter {
        Parameter::Field(field) => {
            let name = &field.name;
            quote!(input.#name)
        }
        Parameter::Context => quote!(context),
    });
    let wait = head.is_async.then(|| quote!(.await));
    let convert = if head.is_result {
        quote!(returned_result)
    } else {
        quote!(returned_value)
    };
    quote! {
        #[allow(clippy::unused_async, reason = "a tool is async whether it waits or not")]
        async fn run(
            &self,
            input: HaftToolInput,
            context: &::haft::context::CallContext,
        ) -> ::core::result::Result<::haft::result::ToolResult, ::haft::error::ToolError> {
            let _ = (&input, context);
            #[allow(clippy::unit_arg, reason = "a function that returns nothing is a tool, too")]
            ::haft::macros::#convert(#function(#(#arguments),*) #wait)
        }
    }
}

/// Returns statements that fill in the rest of the spec.
fn describe(options: &Options, head: &Head) -> syn::Result<TokenStream> {
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
            other => {
                let message =
                    format!("unknown risk {other:?}: write \"safe\", \"high\" or \"critical\"");
                return Err(Error::new(risk.span(), message));
            }
        };
        filled.extend(quote!(spec.risk = ::haft::spec::Risk::#level;));
    }
    if options.page.is_some() {
        filled.extend(quote!(spec.ui = Some(::haft::spec::ToolUi::of(&spec.name));));
    }
    let Options {
        idempotent,
        concurrency_safe,
        open_world,
        ..
    } = options;
    filled.extend(quote! {
        spec.idempotent = #idempotent;
        spec.concurrency_safe = #concurrency_safe;
        spec.open_world = #open_world;
    });
    let returns = &head.returns;
    let returns = if head.is_result {
        quote!(<#returns as ::haft::macros::Fallible>::Value)
    } else {
        quote!(#returns)
    };
    filled.extend(quote! {
        #[allow(unused_imports, reason = "for types without a schema")]
        use ::haft::macros::WithoutSchema as _;
        spec.output_schema = ::haft::macros::OutputType::<#returns>::new().schema();
    });
    Ok(filled)
}
