//! `Tabs`: the console's open pages, and whether a user would notice a pending request there.

use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_app::home::Home;
use haft_app::running::watched::WatchGuard;
use parking_lot::Mutex;

/// How long a page counts after its last report. Pages report every 30 seconds, but browsers let a hidden page run only once a
/// minute.
const TAB_TIMEOUT: Duration = Duration::from_secs(150);
/// Interval between checks for pages that disappeared without notice.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Maximum number of pages; one more replaces the page that has been silent the longest.
const MAX_TABS: usize = 64;

/// The open pages of one server's console.
#[derive(Debug)]
pub(crate) struct Tabs {
    home: Home,
    state: Mutex<TabsState>,
}

#[derive(Debug, Default)]
struct TabsState {
    /// Event streams that pages read: without one, no page is open.
    streams: usize,
    tabs: Vec<Tab>,
    /// The time at which the last stream ended.
    quiet_since: Option<Instant>,
    /// Held while a user watches a page; tells other processes so.
    watching: Option<WatchGuard>,
}

#[derive(Debug)]
struct Tab {
    id: String,
    /// Whether it is visible, or shows notifications of its own.
    attentive: bool,
    heard: Instant,
}

/// An event stream that a page reads; open until this is dropped.
#[derive(Debug)]
pub(crate) struct OpenStream(Arc<Tabs>);

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.streams = state.streams.saturating_sub(1);
        if state.streams == 0 {
            state.quiet_since = Some(Instant::now());
        }
        self.0.publish_watched(&mut state, Instant::now());
    }
}

impl Tabs {
    /// Creates it without open pages.
    pub(crate) fn new(home: Home) -> Arc<Self> {
        Arc::new(Self {
            home,
            state: Mutex::new(TabsState {
                quiet_since: Some(Instant::now()),
                ..TabsState::default()
            }),
        })
    }

    /// Notes that a page started to read events.
    pub(crate) fn open(self: &Arc<Self>) -> OpenStream {
        let mut state = self.state.lock();
        state.streams += 1;
        state.quiet_since = None;
        self.publish_watched(&mut state, Instant::now());
        OpenStream(Arc::clone(self))
    }

    /// Notes a page's report. `attentive` says whether a user sees it, or would see a notification that it shows.
    pub(crate) fn record_report(&self, id: &str, attentive: bool, now: Instant) {
        let mut state = self.state.lock();
        state.tabs.retain(|tab| tab.id != id);
        state.tabs.sort_by_key(|tab| tab.heard);
        let over = (state.tabs.len() + 1).saturating_sub(MAX_TABS);
        state.tabs.drain(..over);
        state.tabs.push(Tab {
            id: id.to_owned(),
            attentive,
            heard: now,
        });
        self.publish_watched(&mut state, now);
    }

    /// Returns how long no page has been open; `None` while one is.
    pub(crate) fn quiet(&self, now: Instant) -> Option<Duration> {
        let since = self.state.lock().quiet_since?;
        Some(now.saturating_duration_since(since))
    }

    /// Checks for pages that disappeared without notice, for as long as it runs.
    pub(crate) async fn watch(self: Arc<Self>) {
        loop {
            tokio::time::sleep(CHECK_INTERVAL).await;
            self.publish_watched(&mut self.state.lock(), Instant::now());
        }
    }

    /// Tells other processes whether a user watches a page.
    fn publish_watched(&self, state: &mut TabsState, now: Instant) {
        let age = |tab: &Tab| now.saturating_duration_since(tab.heard);
        state.tabs.retain(|tab| age(tab) < TAB_TIMEOUT);
        let attentive = state.streams > 0 && state.tabs.iter().any(|tab| tab.attentive);
        if !attentive {
            state.watching = None;
        } else if state.watching.is_none() {
            match WatchGuard::begin(&self.home) {
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

    use super::{MAX_TABS, TAB_TIMEOUT, Tabs};

    #[test]
    fn a_console_is_looked_at_while_a_page_that_reads_events_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::locate(Some(folder.path()), &Environment::default()).unwrap();
        let (tabs, now) = (Tabs::new(home.clone()), Instant::now());
        let seen = || is_watched(&home);
        tabs.record_report("a", true, now);
        assert!(!seen(), "a page without a stream is gone");
        assert!(tabs.quiet(now + TAB_TIMEOUT).is_some());
        let stream = tabs.open();
        assert!(seen());
        assert!(tabs.quiet(now + TAB_TIMEOUT).is_none());
        tabs.record_report("b", false, now);
        assert!(seen(), "another one is hidden");
        tabs.record_report("a", false, now);
        assert!(!seen());
        tabs.record_report("b", true, now);
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
        tabs.record_report("seen", true, now);
        for number in 0..MAX_TABS {
            let at = now + Duration::from_millis(1);
            tabs.record_report(&number.to_string(), false, at);
        }
        assert_eq!(tabs.state.lock().tabs.len(), MAX_TABS);
        assert!(!is_watched(&home), "the oldest made room");
        tabs.record_report("seen", true, now);
        assert!(is_watched(&home));
        tabs.record_report("other", false, now + TAB_TIMEOUT);
        assert!(!is_watched(&home));
    }
}
