//! `ToolOffer`: a tool that settings can turn on or off.

/// A tool that can be on.
#[derive(Debug, Clone)]
pub(crate) struct ToolOffer {
    /// Its name.
    pub(crate) name: String,
    /// The bundle it belongs to; empty if none.
    pub(crate) bundle: &'static str,
    /// Whether it is on by default.
    pub(crate) default: bool,
}
