//! `Offers`: what haft does for servers in the middle of a call, as they are told it.

/// What haft offers to do for servers (`clientCapabilities`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Offers {
    /// Forms are shown to a person (`elicitation/create`).
    pub elicitation: bool,
    /// A model answers (`sampling/createMessage`).
    pub sampling: bool,
    /// Folders are named (`roots/list`).
    pub roots: bool,
}

impl Offers {
    /// The capabilities as JSON; `tasks` is whether an answer may be a task.
    pub(crate) fn json(self, tasks: bool) -> String {
        let offers = [
            (
                tasks,
                "\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}",
            ),
            (self.elicitation, "\"elicitation\":{}"),
            (self.sampling, "\"sampling\":{}"),
            (self.roots, "\"roots\":{}"),
        ];
        let offers = offers.into_iter().filter(|(is_offered, _)| *is_offered);
        let offers: Vec<&str> = offers.map(|(_, json)| json).collect();
        format!("{{{}}}", offers.join(","))
    }

    /// Whether a request of this method is one that is offered.
    pub(crate) fn include(self, method: &str) -> bool {
        match method {
            "elicitation/create" => self.elicitation,
            "sampling/createMessage" => self.sampling,
            "roots/list" => self.roots,
            _ => false,
        }
    }
}
