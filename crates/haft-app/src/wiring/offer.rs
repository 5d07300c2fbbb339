//! `Offer`: a tool that settings may switch on or off.

/// A tool that could be on.
#[derive(Debug, Clone)]
pub(crate) struct Offer {
    /// Its name.
    pub(crate) name: String,
    /// The bundle it belongs to; empty for none.
    pub(crate) bundle: &'static str,
    /// Whether it is on when nobody says anything.
    pub(crate) default: bool,
}
