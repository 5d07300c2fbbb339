//! The options in `#[tool(…)]`.

use syn::parse::{Parse, ParseStream};
use syn::{Ident, LitStr, Token};

/// The options of one tool; each at most once.
#[derive(Debug, Default)]
pub(crate) struct Options {
    pub(crate) name: Option<LitStr>,
    pub(crate) title: Option<LitStr>,
    pub(crate) category: Option<LitStr>,
    pub(crate) risk: Option<LitStr>,
    /// An HTML file next to the source: the tool's page.
    pub(crate) page: Option<LitStr>,
    pub(crate) idempotent: bool,
    pub(crate) concurrency_safe: bool,
    pub(crate) open_world: bool,
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut options = Self::default();
        while !input.is_empty() {
            let key: Ident = input.parse()?;
            let text = match key.to_string().as_str() {
                "name" => &mut options.name,
                "title" => &mut options.title,
                "category" => &mut options.category,
                "risk" => &mut options.risk,
                "page" => &mut options.page,
                flag @ ("idempotent" | "concurrency_safe" | "open_world") => {
                    options.idempotent |= flag == "idempotent";
                    options.concurrency_safe |= flag == "concurrency_safe";
                    options.open_world |= flag == "open_world";
                    comma(input)?;
                    continue;
                }
                _ => {
                    let known = "name, title, category, page, risk, idempotent, \
                                 concurrency_safe, open_world";
                    return Err(syn::Error::new(
                        key.span(),
                        format!("unknown option; known: {known}"),
                    ));
                }
            };
            input.parse::<Token![=]>()?;
            if text.replace(input.parse()?).is_some() {
                return Err(syn::Error::new(key.span(), "given twice"));
            }
            comma(input)?;
        }
        Ok(options)
    }
}

fn comma(input: ParseStream<'_>) -> syn::Result<()> {
    if !input.is_empty() {
        input.parse::<Token![,]>()?;
    }
    Ok(())
}
