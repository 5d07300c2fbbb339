//! `TypedLines`: the lines typed at the terminal, for one reader at a time: a prompt for a request, or a conversation.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex as Held;
use tokio::sync::{Mutex, MutexGuard, mpsc};

use crate::terminal::stdin::StdinRouter;

/// The lines of stdin. A thread starts reading them with the first reader. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct TypedLines {
    lines: Arc<Mutex<Option<mpsc::Receiver<String>>>>,
    router: Arc<StdinRouter>,
    /// Clears the screen for a prompt.
    clear: Arc<Held<Option<ScreenClearer>>>,
}

/// Removes what is drawn from the screen.
type ScreenClearer = Box<dyn Fn() + Send + Sync>;

impl fmt::Debug for TypedLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TypedLines")
    }
}

impl TypedLines {
    /// Sets a function to call before a prompt is shown.
    pub(crate) fn before_prompts(&self, clear: impl Fn() + Send + Sync + 'static) {
        *self.clear.lock() = Some(Box::new(clear));
    }

    /// Returns what reads standard input.
    pub(crate) fn router(&self) -> &Arc<StdinRouter> {
        &self.router
    }

    /// Returns whether there is a reader.
    pub(crate) fn is_read(&self) -> bool {
        self.lines.try_lock().is_err()
    }

    /// Returns the lines once there is no other reader, with the screen cleared for a prompt.
    pub(crate) async fn for_a_prompt(&self) -> TypedLineReader<'_> {
        let reading = self.read().await;
        if let Some(clear) = &*self.clear.lock() {
            clear();
        }
        reading
    }

    /// Returns the lines once there is no other reader.
    pub(crate) async fn read(&self) -> TypedLineReader<'_> {
        let mut lines = self.lines.lock().await;
        lines.get_or_insert_with(|| self.router.lines());
        TypedLineReader {
            lines,
            router: &self.router,
        }
    }
}

/// The lines, reserved for one reader.
pub(crate) struct TypedLineReader<'a> {
    lines: MutexGuard<'a, Option<mpsc::Receiver<String>>>,
    router: &'a Arc<StdinRouter>,
}

impl TypedLineReader<'_> {
    /// Returns the receiver of the lines.
    pub(crate) fn receiver(&mut self) -> &mut mpsc::Receiver<String> {
        self.lines.get_or_insert_with(|| self.router.lines())
    }
}
