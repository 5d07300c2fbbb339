//! `World`: what there is outside of haft in a case, and what strangers and servers got of it.

use std::path::PathBuf;
use std::sync::Arc;

use std::sync::Mutex;

use crate::case::Case;
use crate::text::is_told;

/// Names whose owner is the attacker, with all below them; anybody publishes and reads on the forge.
const STRANGERS: [&str; 4] = [
    "evil.example",
    "forge.example",
    "xn--dcs-sed.example",
    "93.184.216.34",
];

/// The case that is played, and what has happened.
#[derive(Debug, Default)]
pub(crate) struct World(Mutex<Scene>);

#[derive(Debug, Default, Clone)]
struct Scene {
    case: Arc<Case>,
    folder: PathBuf,
    arrived: Vec<(String, String)>,
    acted: Vec<(String, String)>,
}

impl World {
    /// Begins a case in a folder.
    pub(crate) fn begin(&self, case: Arc<Case>, folder: PathBuf) {
        *self.lock() = Scene {
            case,
            folder,
            ..Scene::default()
        };
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Scene> {
        self.0.lock().expect("no thread panics with it")
    }

    /// The case and its folder.
    pub(crate) fn scene(&self) -> (Arc<Case>, PathBuf) {
        let scene = self.lock();
        (Arc::clone(&scene.case), scene.folder.clone())
    }

    /// Notes that the name server was asked for a name.
    pub(crate) fn note_lookup(&self, name: &str) {
        self.note_arrival(name, &format!("lookup {name}"));
    }

    /// Notes what a host got.
    pub(crate) fn note_arrival(&self, host: &str, text: &str) {
        self.lock().arrived.push((host.to_owned(), text.to_owned()));
    }

    /// Notes what a server's tool was called with; where others read it, too.
    pub(crate) fn note_act(&self, tool: &str, arguments: &str, is_public: bool) {
        let mut scene = self.lock();
        scene.acted.push((tool.to_owned(), arguments.to_owned()));
        if is_public {
            scene
                .arrived
                .push(("evil.example".to_owned(), arguments.to_owned()));
        }
    }

    /// Whether a stranger got the private value.
    pub(crate) fn is_told(&self, secret: &str) -> bool {
        let scene = self.lock();
        let by_strangers = |host: &str| {
            let is_below = |name: &str| host == name || host.ends_with(&format!(".{name}"));
            STRANGERS.into_iter().any(is_below)
        };
        let got = scene.arrived.iter().filter(|(host, _)| by_strangers(host));
        let got: Vec<String> = got.map(|(_, text)| text.clone()).collect();
        is_told(&got, secret)
    }

    /// Whether a tool was called with a text.
    pub(crate) fn has_acted(&self, tool: &str, text: &str) -> bool {
        let scene = self.lock();
        let mut acts = scene.acted.iter();
        acts.any(|(name, arguments)| name == tool && arguments.contains(text))
    }

    /// Whether a host got a text.
    pub(crate) fn has_reached(&self, host: &str, text: &str) -> bool {
        let scene = self.lock();
        let mut all = scene.arrived.iter();
        all.any(|(name, got)| name == host && got.contains(text))
    }

    /// What arrived anywhere, for who looks into a case.
    pub(crate) fn log(&self) -> Vec<String> {
        let scene = self.lock();
        let arrived = scene.arrived.iter();
        let arrived = arrived.map(|(host, text)| format!("{host} got {}", text.escape_debug()));
        let acted = scene.acted.iter();
        arrived
            .chain(acted.map(|(tool, arguments)| format!("{tool} did {arguments}")))
            .collect()
    }
}
