//! Reads from a function's signature what its tool needs: arguments, description, return type.

use syn::spanned::Spanned;
use syn::{
    Attribute, Error, Expr, ExprLit, FnArg, Ident, Lit, Meta, Pat, PatType, ReturnType, Signature,
    Type,
};

/// An argument that clients send.
pub(crate) struct Field {
    pub(crate) name: Ident,
    pub(crate) ty: Type,
    pub(crate) attributes: Vec<Attribute>,
}

/// An argument of the function.
pub(crate) enum Parameter {
    Field(Box<Field>),
    Context,
}

impl Parameter {
    /// Returns the argument if clients send it.
    pub(crate) fn field(&self) -> Option<&Field> {
        match self {
            Self::Field(field) => Some(field),
            Self::Context => None,
        }
    }
}

/// A function's signature, read for its tool.
pub(crate) struct Head {
    pub(crate) name: Ident,
    pub(crate) description: String,
    /// In order, without `&self`.
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) is_async: bool,
    /// The type as written; `()` if there is none.
    pub(crate) returns: Type,
    /// Whether that is a `Result`, judged by the name of the type.
    pub(crate) is_result: bool,
}

impl Head {
    /// Reads a function's signature. Attributes of arguments move to the input's fields, where `serde` and `schemars` find them.
    pub(crate) fn read(attributes: &[Attribute], signature: &mut Signature) -> syn::Result<Self> {
        check(signature)?;
        let description = description(attributes);
        let name = signature.ident.clone();
        if description.is_empty() {
            let message = "a tool needs a doc comment: it is what the model reads";
            return Err(Error::new(name.span(), message));
        }
        let returns = match &signature.output {
            ReturnType::Default => syn::parse_quote!(()),
            ReturnType::Type(_, ty) => (**ty).clone(),
        };
        let arguments = signature.inputs.iter_mut();
        let parameters: syn::Result<_> = arguments
            .filter(|argument| matches!(argument, FnArg::Typed(_)))
            .map(parameter)
            .collect();
        Ok(Self {
            name,
            description,
            parameters: parameters?,
            is_async: signature.asyncness.is_some(),
            is_result: last_name(&returns).is_some_and(|name| name == "Result"),
            returns,
        })
    }
}

fn check(signature: &Signature) -> syn::Result<()> {
    if !signature.generics.params.is_empty() {
        let message = "a tool cannot be generic: its schema must be known";
        return Err(Error::new(signature.generics.span(), message));
    }
    if let Some(unsafety) = &signature.unsafety {
        let message = "a tool cannot be unsafe: anyone may call it";
        return Err(Error::new(unsafety.span(), message));
    }
    Ok(())
}

fn parameter(argument: &mut FnArg) -> syn::Result<Parameter> {
    let FnArg::Typed(PatType { attrs, pat, ty, .. }) = argument else {
        let message = "a method's tool belongs to an impl block with #[tools]";
        return Err(Error::new(argument.span(), message));
    };
    if is_context(ty) {
        return Ok(Parameter::Context);
    }
    let Pat::Ident(name) = pat.as_ref() else {
        let message = "name this argument: the name is its property in the schema";
        return Err(Error::new(pat.span(), message));
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
    last_name(&reference.elem).is_some_and(|name| name == "CallContext")
}

/// Returns the last segment of a path: `Result` of `std::result::Result<i64, Error>`.
fn last_name(ty: &Type) -> Option<&Ident> {
    let Type::Path(path) = ty else {
        return None;
    };
    path.path.segments.last().map(|segment| &segment.ident)
}

/// Returns the doc comment, without the space after each `///`.
fn description(attributes: &[Attribute]) -> String {
    let text = |attribute: &Attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit {
                lit: Lit::Str(text),
                ..
            }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    };
    let lines: Vec<String> = attributes
        .iter()
        .filter_map(text)
        .map(|line| line.strip_prefix(' ').unwrap_or(&line).to_owned())
        .collect();
    lines.join("\n").trim().to_owned()
}
