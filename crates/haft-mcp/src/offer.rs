//! `Offer`: what a host offers clients besides tools: resources, prompts and completion, with updates on their changes.
//!
//! Lists consist of raw JSON entries, so members that this server does not know pass through unchanged. Whatever reaches another
//! server, such as reading a resource, is a call of one of the executor's internal tools
//! ([`Executor::with_internal_tools`](haft::executor::Executor::with_internal_tools)): judged, limited and recorded like every
//! call, able to ask its caller, and with the raw result as its data.

use std::fmt;
use std::sync::Arc;

use haft::call::ToolCall;
use haft::error::HostFailure;
use haft::future::BoxFuture;
use haft::session::Session;
use serde_json::value::RawValue;
use tokio::sync::broadcast;

/// Maximum number of entries served per list.
pub const MAX_ENTRIES: usize = 10_000;

/// What a host offers besides tools: see the module.
///
/// Skills and artifacts of the run precede the offer in each list; their URIs and names are never looked up here.
pub trait Offer: Send + Sync + fmt::Debug + 'static {
    /// Returns the kinds that this session may have, for the server's description of itself. Must not block.
    fn kinds(&self, session: &Session) -> OfferKinds;

    /// Returns the resources; each key is the URI.
    fn resources<'a>(
        &'a self,
        session: &'a Session,
    ) -> BoxFuture<'a, Result<Vec<OfferEntry>, HostFailure>>;

    /// Returns the URI templates; each key is the template.
    fn templates<'a>(
        &'a self,
        session: &'a Session,
    ) -> BoxFuture<'a, Result<Vec<OfferEntry>, HostFailure>>;

    /// Returns the prompts; each key is the name.
    fn prompts<'a>(
        &'a self,
        session: &'a Session,
    ) -> BoxFuture<'a, Result<Vec<OfferEntry>, HostFailure>>;

    /// Returns the call of an internal tool that does what is wanted; `None` if there is no such resource, prompt or argument here.
    ///
    /// The call's data is the result as clients receive it: `{"contents":…}` for a read, `{"messages":…}` for a prompt,
    /// `{"completion":…}`; for subscriptions, only success matters. The tool must allow enough room for its result inline
    /// ([`ToolSpec::inline_tokens`](haft::spec::ToolSpec::inline_tokens)), and must fail with `not_found` if the resource or
    /// prompt turns out not to exist.
    fn call<'a>(
        &'a self,
        session: &'a Session,
        wanted: &'a OfferRequest,
    ) -> BoxFuture<'a, Option<ToolCall>>;

    /// Returns a value that keeps [`OfferChange::Updated`] of a resource coming, once the call to
    /// [`Subscribe`](OfferRequest::Subscribe) to it has succeeded. It is dropped when the client unsubscribes or disconnects. `None` if
    /// nothing has to be kept. Must not block.
    fn follow(&self, session: &Session, uri: &str) -> Option<OfferSubscription> {
        let _ = (session, uri);
        None
    }

    /// Returns the changes from now on; `None` if there will be none. A client that misses changes because they come too fast is
    /// told that all lists changed.
    fn changes(&self, session: &Session) -> Option<broadcast::Receiver<OfferChange>> {
        let _ = session;
        None
    }
}

/// A client's request to an offer.
#[derive(Debug, Clone)]
pub enum OfferRequest {
    /// Read the resource with this URI.
    Read {
        /// The URI.
        uri: String,
    },
    /// Get a prompt.
    Prompt {
        /// Its name.
        name: String,
        /// Its arguments as received: an object.
        arguments: String,
    },
    /// List values that complete an argument.
    Complete {
        /// What to complete.
        reference: Reference,
        /// The `params` as received: an object.
        params: Box<RawValue>,
    },
    /// Report changes of the resource with this URI: [`OfferChange::Updated`].
    Subscribe {
        /// The URI.
        uri: String,
    },
}

/// A client's subscription to a resource's changes: dropping it ends the subscription.
pub type OfferSubscription = Box<dyn fmt::Debug + Send + Sync>;

/// What an argument to complete belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// The prompt with this name.
    Prompt(String),
    /// The template, or the URI, of resources.
    Resource(String),
}

/// The kinds that an offer may contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "one for each kind")]
pub struct OfferKinds {
    /// Resources and templates.
    pub resources: bool,
    /// Whether clients can subscribe to changes of single resources.
    pub subscriptions: bool,
    /// Prompts.
    pub prompts: bool,
    /// Completion of arguments.
    pub completions: bool,
}

/// An entry of a list.
#[derive(Debug, Clone)]
pub struct OfferEntry {
    /// Its key, unique in its list.
    pub key: String,
    /// The entry as clients receive it: an object.
    pub json: Arc<RawValue>,
}

/// What changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OfferChange {
    /// The list of resources or templates.
    Resources,
    /// The list of prompts.
    Prompts,
    /// The resource with this URI.
    Updated(Arc<str>),
}
