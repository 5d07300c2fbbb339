//! `OwnCapabilities`: what haft offers to do for servers in the middle of a call.

/// What haft offers to do for servers (`clientCapabilities`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct OwnCapabilities {
    /// Show forms to a user (`elicitation/create`).
    pub elicitation: bool,
    /// Have a model answer (`sampling/createMessage`).
    pub sampling: bool,
    /// List folders (`roots/list`).
    pub roots: bool,
}

impl OwnCapabilities {
    /// Returns the capabilities as JSON; `tasks` says whether an answer may be a task.
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

    /// Returns whether requests of this method are offered.
    pub(crate) fn include(self, method: &str) -> bool {
        match method {
            "elicitation/create" => self.elicitation,
            "sampling/createMessage" => self.sampling,
            "roots/list" => self.roots,
            _ => false,
        }
    }
}
