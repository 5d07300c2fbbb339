//! `ChatCalls`: assembles the calls of one message from their pieces.
//!
//! By the specification, the pieces of a call share its index, and the first one has its id and name. Servers differ, so this is the rule
//! (contract §6, "Calls in a streamed reply"):
//!
//! 1. Only a name starts a call. A piece with an id and no name never does: the id belongs to the call that it completes.
//! 2. A name starts a new call if its index or id is new, or if the arguments of the call that it would continue have ended. Before any
//!    arguments, a name without a new id is a piece of the name, or the name again; what says a complete call again changes nothing.
//! 3. A piece without a name continues the call of its id or index. One without an id for which there is no such call, or whose call has
//!    ended, goes to the call in progress, if there is exactly one.
//! 4. What is left is of no call: the reply is refused, and the error names it. No call of it runs.

use serde_json::value::RawValue;

use super::partial::ChatPartialCall;
use super::piece::{CallPiece, PieceError};
use crate::loose::{Members, list};
use crate::reply::Call;
use crate::stream::Delta;

/// The calls of one message.
#[derive(Debug, Default)]
pub(crate) struct ChatCalls {
    all: Vec<ChatPartialCall>,
    /// Whether the message came in one piece: then each call is a separate one.
    is_whole: bool,
    /// The number of events with calls so far.
    events: u64,
}

/// Where a piece belongs.
enum PiecePlace {
    /// It continues the call at this position.
    Call(usize),
    /// It starts one.
    New,
    /// It says nothing.
    None,
}

impl ChatCalls {
    /// Creates the calls of a message that comes in one piece.
    pub(crate) fn whole() -> Self {
        Self {
            is_whole: true,
            ..Self::default()
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Adds the pieces of one event: a list of them, or one alone.
    ///
    /// # Errors
    /// If there are more than `most` calls, or a piece belongs to none.
    pub(crate) fn take_event(
        &mut self,
        value: &RawValue,
        most: usize,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), PieceError> {
        self.events += 1;
        let pieces = if value.get().starts_with('[') {
            list(value)?
        } else {
            vec![value]
        };
        for one in pieces {
            self.take(&Members::of(one)?, deltas)?;
            if self.all.len() > most {
                return Err(PieceError::Calls(most));
            }
        }
        Ok(())
    }

    fn take(&mut self, members: &Members<'_>, deltas: &mut Vec<Delta>) -> Result<(), PieceError> {
        let piece = CallPiece::read(members)?;
        let index = match self.place(&piece)? {
            PiecePlace::Call(at) => at,
            PiecePlace::New => self.start(&piece),
            PiecePlace::None => return Ok(()),
        };
        let call = &mut self.all[index];
        call.is_freeform |= piece.is_freeform;
        if call.id.is_empty() {
            call.id.push_str(&piece.id);
        }
        if call.add_name(&piece.name) {
            call.event = self.events;
            deltas.push(Delta::Call {
                index,
                name: call.name.clone(),
            });
        }
        if call.add_arguments(&piece)? {
            let text = piece.arguments.into_owned();
            deltas.push(Delta::Arguments { index, text });
        }
        Ok(call.carry(members)?)
    }

    fn start(&mut self, piece: &CallPiece<'_>) -> usize {
        for call in &mut self.all {
            call.is_closed |= call.index == piece.index;
        }
        self.all
            .push(ChatPartialCall::new(piece.index, self.events));
        self.all.len() - 1
    }

    fn place(&self, piece: &CallPiece<'_>) -> Result<PiecePlace, PieceError> {
        if self.is_whole {
            return Ok(PiecePlace::New);
        }
        match self.find(piece) {
            Some(at) if piece.name.is_empty() => self.tail(at, piece),
            Some(at) if !self.is_start(at, piece)? => Ok(PiecePlace::Call(at)),
            None if piece.name.is_empty() => self.orphan(piece),
            Some(_) | None => Ok(PiecePlace::New),
        }
    }

    /// Returns the call that the id and index of a piece name.
    fn find(&self, piece: &CallPiece<'_>) -> Option<usize> {
        let last = |fits: &dyn Fn(&ChatPartialCall) -> bool| self.all.iter().rposition(fits);
        let has_id = |call: &ChatPartialCall| !piece.id.is_empty() && call.id == piece.id;
        let is_near = |call: &ChatPartialCall| piece.index.is_none() || call.index == piece.index;
        last(&|call| has_id(call) && is_near(call))
            .or_else(|| last(&is_near))
            .or_else(|| last(&has_id).filter(|_| piece.name.is_empty()))
    }

    /// Returns whether a piece with a name starts a new call rather than continue this one.
    fn is_start(&self, at: usize, piece: &CallPiece<'_>) -> Result<bool, PieceError> {
        let call = &self.all[at];
        let both_have_ids = !call.id.is_empty() && !piece.id.is_empty();
        if both_have_ids && call.id != piece.id {
            return Ok(true);
        }
        if call.name.is_empty() {
            return Ok(false);
        }
        let is_same_name = call.name == piece.name;
        let has_arguments = !piece.arguments.trim().is_empty();
        if call.has_ended() {
            if is_same_name && !has_arguments {
                return Ok(!(both_have_ids || call.repeats_name || !call.id.is_empty()));
            }
            let is_again = is_same_name
                && (call.arguments.is_repeated_by(&piece.arguments)
                    || (both_have_ids && call.arguments.is_placeholder()));
            // Without ids, a call that says the same in one piece, as the first did, is the second of two.
            let is_known = !call.id.is_empty() || call.arguments.is_split();
            return Ok(!(is_again && is_known));
        }
        if call.arguments.is_empty() {
            // Of two names in one event, without ids to tell them apart, neither is a piece of the other.
            let is_apart = call.event == self.events && call.id.is_empty() && piece.id.is_empty();
            return Ok(is_apart);
        }
        // Whether the text of a freeform call goes on or a second one begins, only an id can say.
        if is_same_name && (both_have_ids || !call.is_freeform || !has_arguments) {
            return Ok(false);
        }
        let what = "another name before its arguments had ended";
        Err(PieceError::unassigned(call.label(), what))
    }

    /// Returns where a piece without a name belongs, whose id or index names a call.
    fn tail(&self, at: usize, piece: &CallPiece<'_>) -> Result<PiecePlace, PieceError> {
        let call = &self.all[at];
        if piece.arguments.is_empty() || call.is_in_progress() {
            return Ok(PiecePlace::Call(at));
        }
        if call.name.is_empty() {
            return Err(PieceError::unassigned(&call.id, "arguments before a name"));
        }
        let is_own = !piece.id.is_empty();
        Ok(PiecePlace::Call(match self.in_progress() {
            Some(other) if !is_own => other,
            _ => at,
        }))
    }

    /// Returns where a piece without a name belongs, whose id and index name no call.
    fn orphan(&self, piece: &CallPiece<'_>) -> Result<PiecePlace, PieceError> {
        if piece.arguments.trim().is_empty() {
            let is_head = !piece.id.is_empty();
            return Ok(if is_head {
                PiecePlace::New
            } else {
                PiecePlace::None
            });
        }
        match self.in_progress() {
            Some(at) if piece.id.is_empty() => Ok(PiecePlace::Call(at)),
            _ => {
                let what = "arguments, but no call with a name to which they belong";
                Err(PieceError::unassigned(&piece.label(), what))
            }
        }
    }

    /// Returns the call in progress, if there is exactly one.
    fn in_progress(&self) -> Option<usize> {
        let mut all = self.all.iter().enumerate();
        let (at, _) = all.by_ref().find(|(_, call)| call.is_in_progress())?;
        all.all(|(_, call)| !call.is_in_progress()).then_some(at)
    }

    /// Fails if a call of a stream never got a name.
    pub(crate) fn check(&self) -> Result<(), PieceError> {
        match self.all.iter().find(|call| call.name.is_empty()) {
            Some(call) if !self.is_whole => Err(PieceError::unassigned(&call.id, "no name")),
            _ => Ok(()),
        }
    }

    /// Fails unless each of `others` is one of these: what a server says a second time in another member.
    pub(crate) fn check_repeats(&self, others: &Self) -> Result<(), PieceError> {
        let is_known = |other: &ChatPartialCall| {
            let arguments = other.whole_arguments();
            self.all.iter().any(|call| {
                call.name == other.name && is_same_json(&call.whole_arguments(), &arguments)
            })
        };
        match others.all.iter().find(|other| !is_known(other)) {
            Some(other) => {
                let what = "two accounts, which differ";
                Err(PieceError::unassigned(other.label(), what))
            }
            None => Ok(()),
        }
    }

    /// Returns the ids of the calls. A call without one, or with that of an earlier call, gets one by its position: its result needs an id
    /// of its own.
    fn ids(&self) -> Vec<String> {
        let mut ids: Vec<String> = Vec::with_capacity(self.all.len());
        for (at, call) in self.all.iter().enumerate() {
            let mut id = if call.id.is_empty() {
                format!("call-{at}")
            } else {
                call.id.clone()
            };
            while ids.contains(&id) {
                id = format!("{id}-{at}");
            }
            ids.push(id);
        }
        ids
    }

    /// Returns whether two calls came with the same id.
    pub(crate) fn shares_ids(&self) -> bool {
        let mut all = self.all.iter().zip(self.ids());
        all.any(|(call, id)| !call.id.is_empty() && call.id != id)
    }

    /// Returns the calls for the host to answer.
    pub(crate) fn calls(&self) -> impl Iterator<Item = Call> {
        let all = self.all.iter().zip(self.ids());
        all.map(|(call, id)| call.call(id))
    }

    /// Writes the calls as in a message.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.push(b'[');
        for (at, (call, id)) in self.all.iter().zip(self.ids()).enumerate() {
            if at > 0 {
                out.push(b',');
            }
            call.write(out, &id);
        }
        out.push(b']');
    }
}

fn is_same_json(one: &str, other: &str) -> bool {
    let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
    one == other || read(one).is_some_and(|one| Some(one) == read(other))
}
