//! `WayBack`: what the connections of a command can carry, back to where the run has read something or anywhere.

use std::collections::BTreeSet;

use haft::policy::CommandLine;
use haft::policy::content_of_fetch;
use haft::untrusted::{ConnectionContent, UntrustedSource};
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

    /// Forgets at which places the command was first: what it has read there by now counts.
    pub(super) fn forget(&self) {
        self.first.lock().clear();
    }

    /// Returns what a connection to this place can carry there.
    pub(super) fn content_to(&self, place: &ConnectionTarget) -> ConnectionContent {
        let party = party(place);
        // With `PATH` or a setting of git among the variables, the line does not say what runs.
        let fetched = if self.sets_variables {
            ConnectionContent::Anything
        } else {
            content_of_fetch(&self.line, party.origin())
        };
        let first = self.first.lock();
        let mut own = first.iter().map(|origin| UntrustedSource::recorded(origin));
        if own.any(|source| source.is_of(party.origin())) {
            return fetched.max(ConnectionContent::NothingBack);
        }
        fetched
    }
}

/// Returns who is behind a place, in the form of a source.
fn party(place: &ConnectionTarget) -> UntrustedSource {
    UntrustedSource::of_host(&place.host, &place.written(), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_when_the_command_was_first_there_is_free_until_something_is_typed() {
        let way_back = WayBack::new(CommandLine::new("bash"), false);
        let place = ConnectionTarget::named("a.example", 443);
        let page = UntrustedSource::of_host("b.example", "https://b.example", "fetch_url");
        assert_eq!(way_back.content_to(&place), ConnectionContent::Anything);
        way_back.note_first(&place, &[page]);
        assert_eq!(way_back.content_to(&place), ConnectionContent::NothingBack);
        way_back.forget();
        let read = UntrustedSource::of_host("a.example", "https://a.example", "connect");
        way_back.note_first(&place, &[read]);
        assert_eq!(way_back.content_to(&place), ConnectionContent::Anything);
    }

    #[test]
    fn line_when_it_only_fetches_carries_nothing_unless_variables_are_set() {
        let place = ConnectionTarget::named("a.example", 443);
        for (sets_variables, expect) in [
            (false, ConnectionContent::Nothing),
            (true, ConnectionContent::Anything),
        ] {
            let way_back = WayBack::new(CommandLine::new("git fetch"), sets_variables);
            assert_eq!(way_back.content_to(&place), expect);
        }
    }
}
