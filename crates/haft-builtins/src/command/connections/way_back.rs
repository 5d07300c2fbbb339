//! `WayBack`: which connections of a command may return to where the run has read something.

use std::collections::BTreeSet;

use haft::policy::CommandLine;
use haft::policy::only_fetches;
use haft::untrusted::UntrustedSource;
use parking_lot::Mutex;

use super::MAX_PLACES;
use crate::command::connect::ConnectionTarget;

/// Where the connections of one command may return to.
#[derive(Debug)]
pub(super) struct WayBack {
    line: CommandLine,
    /// Whether the call sets variables.
    sets_variables: bool,
    /// The places from which the run had read nothing when the command first connected there: what it reads itself is no reason to ask
    /// about its next connection.
    first: Mutex<BTreeSet<String>>,
}

impl WayBack {
    pub(super) fn new(line: CommandLine, sets_variables: bool) -> Self {
        Self {
            line,
            sets_variables,
            first: Mutex::default(),
        }
    }

    /// Returns the parsed command line.
    pub(super) fn line(&self) -> &CommandLine {
        &self.line
    }

    /// Notes that the command is about to connect to a place for the first time, in a run that has read from these sources.
    pub(super) fn note_first(&self, place: &ConnectionTarget, read: &[UntrustedSource]) {
        let party = party(place);
        let mut first = self.first.lock();
        let is_known = read.iter().any(|source| source.is_of(party.origin()));
        if !is_known && first.len() < MAX_PLACES {
            first.insert(party.origin().to_owned());
        }
    }

    /// Returns true if a connection to this place carries nothing new there.
    pub(super) fn is_free_to(&self, place: &ConnectionTarget) -> bool {
        let party = party(place);
        let first = self.first.lock();
        let mut own = first.iter().map(|origin| UntrustedSource::recorded(origin));
        // With `PATH` or a setting of git among the variables, the line does not say what runs.
        own.any(|source| source.is_of(party.origin()))
            || !self.sets_variables && only_fetches(&self.line, party.origin())
    }
}

/// Returns who is behind a place, in the form of a source.
fn party(place: &ConnectionTarget) -> UntrustedSource {
    UntrustedSource::of_host(&place.host, &place.written(), "")
}
