//! `Classes`: the class that each tool declares, for rules that are parsed before any tool exists.

use std::collections::BTreeMap;
use std::sync::Arc;

use haft_types::spec::{ToolClass, ToolSpec};

/// The classes that tools declare, by tool name. Clones share the table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Classes(Arc<BTreeMap<Box<str>, ToolClass>>);

impl Classes {
    /// Returns the class of a tool; `None` if it has none or is unknown.
    pub fn of(&self, tool: &str) -> Option<ToolClass> {
        self.0.get(tool).copied()
    }

    /// Returns the first tool of a class, by name.
    pub(crate) fn tool_of(&self, class: ToolClass) -> Option<&str> {
        let mut tools = self.0.iter();
        let (name, _) = tools.find(|(_, own)| **own == class)?;
        Some(name)
    }

    /// Adds the classes that these tools declare.
    pub(crate) fn learn(&mut self, specs: &[Arc<ToolSpec>]) {
        let declared = specs
            .iter()
            .filter_map(|spec| Some((spec.name.as_str(), spec.class?)));
        self.extend(declared);
    }
}

impl<'a> Extend<(&'a str, ToolClass)> for Classes {
    fn extend<T: IntoIterator<Item = (&'a str, ToolClass)>>(&mut self, tools: T) {
        let tools = tools.into_iter().map(|(name, class)| (name.into(), class));
        Arc::make_mut(&mut self.0).extend(tools);
    }
}

impl<'a> FromIterator<(&'a str, ToolClass)> for Classes {
    fn from_iter<T: IntoIterator<Item = (&'a str, ToolClass)>>(tools: T) -> Self {
        let mut classes = Self::default();
        classes.extend(tools);
        classes
    }
}
