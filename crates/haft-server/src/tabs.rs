//! `Tabs`: the open pages of the console, and whether a person would see there that a request waits.

use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_app::home::Home;
use haft_app::running::watched::Watching;
use parking_lot::Mutex;

/// How long a page counts after it was last heard of. It says that it is there every 30 seconds; browsers let one that is not
/// seen speak once a minute.
const STALE: Duration = Duration::from_secs(150);
/// How often pages are looked for that are gone without a word.
const LOOK: Duration = Duration::from_secs(5);
/// Pages at once; a further one takes the place of the one that was silent for longest.
const TABS: usize = 64;

/// The pages of one server's console.
#[derive(Debug)]
pub(crate) struct Tabs {
    home: Home,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Streams of events that pages read: without one there is no page.
    streams: usize,
    tabs: Vec<Tab>,
    /// When the last stream ended.
    quiet_since: Option<Instant>,
    /// Held while a page is looked at: it says so to other processes.
    watching: Option<Watching>,
}

#[derive(Debug)]
struct Tab {
    id: String,
    /// It is seen, or shows notices of its own.
    attentive: bool,
    heard: Instant,
}

/// A stream of events that a page reads, as long as this value lives.
#[derive(Debug)]
pub(crate) struct OpenStream(Arc<Tabs>);

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.streams = state.streams.saturating_sub(1);
        if state.streams == 0 {
            state.quiet_since = Some(Instant::now());
        }
        self.0.settle(&mut state, Instant::now());
    }
}

impl Tabs {
    /// No page is open yet.
    pub(crate) fn new(home: Home) -> Arc<Self> {
        Arc::new(Self {
            home,
            state: Mutex::new(State {
                quiet_since: Some(Instant::now()),
                ..State::default()
            }),
        })
    }

    /// A page begins to read events.
    pub(crate) fn open(self: &Arc<Self>) -> OpenStream {
        let mut state = self.state.lock();
        state.streams += 1;
        state.quiet_since = None;
        self.settle(&mut state, Instant::now());
        OpenStream(Arc::clone(self))
    }

    /// A page says how it is. `attentive` is whether a person sees it, or would see a notice of its own.
    pub(crate) fn hear(&self, id: &str, attentive: bool, now: Instant) {
        let mut state = self.state.lock();
        state.tabs.retain(|tab| tab.id != id);
        state.tabs.sort_by_key(|tab| tab.heard);
        let over = (state.tabs.len() + 1).saturating_sub(TABS);
        state.tabs.drain(..over);
        state.tabs.push(Tab {
            id: id.to_owned(),
            attentive,
            heard: now,
        });
        self.settle(&mut state, now);
    }

    /// How long no page has been open; none while one is.
    pub(crate) fn quiet(&self, now: Instant) -> Option<Duration> {
        let since = self.state.lock().quiet_since?;
        Some(now.saturating_duration_since(since))
    }

    /// Looks for pages that are gone without a word, as long as it runs.
    pub(crate) async fn watch(self: Arc<Self>) {
        loop {
            tokio::time::sleep(LOOK).await;
            self.settle(&mut self.state.lock(), Instant::now());
        }
    }

    /// Says to other processes whether a page is looked at.
    fn settle(&self, state: &mut State, now: Instant) {
        let age = |tab: &Tab| now.saturating_duration_since(tab.heard);
        state.tabs.retain(|tab| age(tab) < STALE);
        let attentive = state.streams > 0 && state.tabs.iter().any(|tab| tab.attentive);
        if !attentive {
            state.watching = None;
        } else if state.watching.is_none() {
            match Watching::begin(&self.home) {
                Ok(watching) => state.watching = Some(watching),
                Err(error) => tracing::warn!(%error, "say that the console is looked at"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use haft_app::environment::Environment;
    use haft_app::home::Home;
    use haft_app::running::watched::is_watched;

    use super::{STALE, TABS, Tabs};

    #[test]
    fn a_console_is_looked_at_while_a_page_that_reads_events_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::locate(Some(folder.path()), &Environment::default()).unwrap();
        let (tabs, now) = (Tabs::new(home.clone()), Instant::now());
        let seen = || is_watched(&home);
        tabs.hear("a", true, now);
        assert!(!seen(), "a page without a stream is gone");
        assert!(tabs.quiet(now + STALE).is_some());
        let stream = tabs.open();
        assert!(seen());
        assert!(tabs.quiet(now + STALE).is_none());
        tabs.hear("b", false, now);
        assert!(seen(), "another one is hidden");
        tabs.hear("a", false, now);
        assert!(!seen());
        tabs.hear("b", true, now);
        assert!(seen());
        drop(stream);
        assert!(!seen(), "the browser was closed");
    }

    #[test]
    fn pages_that_are_silent_do_not_count_and_their_number_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::locate(Some(folder.path()), &Environment::default()).unwrap();
        let (tabs, now) = (Tabs::new(home.clone()), Instant::now());
        let _stream = tabs.open();
        tabs.hear("seen", true, now);
        for number in 0..TABS {
            let at = now + Duration::from_millis(1);
            tabs.hear(&number.to_string(), false, at);
        }
        assert_eq!(tabs.state.lock().tabs.len(), TABS);
        assert!(!is_watched(&home), "the oldest made room");
        tabs.hear("seen", true, now);
        assert!(is_watched(&home));
        tabs.hear("other", false, now + STALE);
        assert!(!is_watched(&home));
    }
}
