//! `Offer`: what a host offers clients beside tools: resources, prompts, completion, with word of their changes.
//!
//! Lists are entries of raw JSON, so that members which this server does not know pass as they are. What reaches a server of its
//! own, such as reading a resource, is a call of one of the executor's internal tools
//! ([`Executor::with_internal_tools`](haft::executor::Executor::with_internal_tools)): judged, bounded and recorded like every
//! call, able to ask its caller, and with the raw result as its data.

use std::fmt;
use std::sync::Arc;

use haft::call::ToolCall;
use haft::error::Failure;
use haft::future::BoxFuture;
use haft::session::Session;
use serde_json::value::RawValue;
use tokio::sync::broadcast;

/// The most entries of one list that are served.
pub const MOST_ENTRIES: usize = 10_000;

/// What a host offers beside tools: see the module.
///
/// Skills and artifacts of the run come before it in each list, and their addresses and names are never looked up here.
pub trait Offer: Send + Sync + fmt::Debug + 'static {
    /// Which kinds there may be in this session, for the account that clients get of the server. Must not wait.
    fn kinds(&self, session: &Session) -> Kinds;

    /// The resources; each key is the address.
    fn resources<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, Result<Vec<Entry>, Failure>>;

    /// The templates of addresses; each key is the template.
    fn templates<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, Result<Vec<Entry>, Failure>>;

    /// The prompts; each key is the name.
    fn prompts<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, Result<Vec<Entry>, Failure>>;

    /// The call of an internal tool that does what is wanted; none where there is no such resource, prompt or argument here.
    ///
    /// The call's data is the result as clients get it: `{"contents":…}` of a read, `{"messages":…}` of a prompt,
    /// `{"completion":…}`; of subscriptions nothing is looked at but whether it succeeded. The tool must allow its result enough
    /// room inline ([`ToolSpec::inline_tokens`](haft::spec::ToolSpec::inline_tokens)), and fails with `not_found` where the
    /// resource or prompt turns out not to be there.
    fn call<'a>(
        &'a self,
        session: &'a Session,
        wanted: &'a Wanted,
    ) -> BoxFuture<'a, Option<ToolCall>>;

    /// What keeps [`OfferChange::Updated`] of a resource coming to clients, after the call to [`Subscribe`](Wanted::Subscribe) to it
    /// has succeeded; it is dropped when the client does not want to hear of it any more, or is gone. None where nothing has to be
    /// kept for that. Must not wait.
    fn follow(&self, session: &Session, uri: &str) -> Option<Held> {
        let _ = (session, uri);
        None
    }

    /// Word of changes from now on; none where there will be none. Of what came too fast to be heard one by one, a client hears
    /// that all lists changed.
    fn changes(&self, session: &Session) -> Option<broadcast::Receiver<OfferChange>> {
        let _ = session;
        None
    }
}

/// What clients want of an offer.
#[derive(Debug, Clone)]
pub enum Wanted {
    /// To read the resource of this address.
    Read {
        /// The address.
        uri: String,
    },
    /// A prompt.
    Prompt {
        /// Its name.
        name: String,
        /// Its arguments as they came: an object.
        arguments: String,
    },
    /// Values that would complete an argument.
    Complete {
        /// What is completed.
        reference: Reference,
        /// The params as they came: an object.
        params: Box<RawValue>,
    },
    /// To hear when the resource of this address changes: [`OfferChange::Updated`].
    Subscribe {
        /// The address.
        uri: String,
    },
}

/// What is kept for one client that hears of a resource's changes: dropping it ends that.
pub type Held = Box<dyn fmt::Debug + Send + Sync>;

/// Whose argument is completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// The prompt of this name.
    Prompt(String),
    /// The template, or the address, of resources.
    Resource(String),
}

/// What an offer may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "one for each kind")]
pub struct Kinds {
    /// Resources and templates.
    pub resources: bool,
    /// Whether clients may hear of changes of single resources.
    pub subscriptions: bool,
    /// Prompts.
    pub prompts: bool,
    /// Completion of arguments.
    pub completions: bool,
}

/// An entry of a list.
#[derive(Debug, Clone)]
pub struct Entry {
    /// What it is known by: once in its list.
    pub key: String,
    /// The entry as clients get it: an object.
    pub json: Arc<RawValue>,
}

/// What changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OfferChange {
    /// The list of resources or templates.
    Resources,
    /// The list of prompts.
    Prompts,
    /// The resource of this address.
    Updated(Arc<str>),
}
