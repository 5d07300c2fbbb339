//! The tools served to MCP clients: all or only a few of them listed, in full or through a view from the settings.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use haft::spec::Exposure;
use haft::toolset::Toolset;
use haft::toolset::lazy::{CALL_TOOL, LazyListing};
use haft::toolset::search::is_findable;
use haft::toolset::view::{ReplaceableToolset, ToolsetExt as _, merged};
use haft_builtins::discover::FINDS_LAZILY;
use haft_chain::TOOL_CHAIN;

use crate::config::{Settings, typed, views};
use crate::problem::Problem;
use crate::site::Site;
use crate::wiring::chain::Scripts;
use crate::wiring::parts::{self, ToolCatalogue, ToolConfig};
use crate::wiring::selection::{self, ToolSelection};

/// The tool that finds the others.
const SEARCH_TOOL: &str = "tool_search";
/// The tool that returns schemas; off by default, but present wherever only a few tools are listed.
const DESCRIBE_TOOL: &str = "describe_tools";

/// The served toolsets, each replaceable.
#[derive(Debug)]
pub(crate) struct ServedToolsets {
    /// For clients without a view.
    pub(crate) whole: Arc<ReplaceableToolset>,
    /// By view name.
    pub(crate) views: BTreeMap<String, Arc<ReplaceableToolset>>,
}

/// The toolsets themselves.
pub(crate) struct ServedTools {
    whole: Arc<dyn Toolset>,
    views: BTreeMap<String, Arc<dyn Toolset>>,
}

impl ServedToolsets {
    /// Starts with these toolsets.
    pub(crate) fn new(tools: ServedTools) -> Self {
        let replaceable = |tools| Arc::new(ReplaceableToolset::new(tools));
        Self {
            whole: replaceable(tools.whole),
            views: tools
                .views
                .into_iter()
                .map(|(name, tools)| (name, replaceable(tools)))
                .collect(),
        }
    }

    /// Replaces the toolsets. The set of views stays the same while the process runs.
    pub(crate) fn replace(&self, tools: ServedTools) {
        self.whole.replace(tools.whole);
        for (name, tools) in tools.views {
            if let Some(view) = self.views.get(&name) {
                view.replace(tools);
            }
        }
    }
}

/// What the toolsets are built from.
#[derive(Clone, Copy)]
pub(crate) struct ToolsetParts<'a> {
    pub(crate) at: &'a Site,
    pub(crate) wishes: ToolConfig<'a>,
    pub(crate) all: &'a ToolCatalogue,
    pub(crate) on: &'a BTreeSet<String>,
    pub(crate) scripts: Scripts<'a>,
}

/// Builds the served toolsets. `base` has the tools that are on, without `tool_chain`; `offered` includes it.
pub(crate) fn tools(
    kit: ToolsetParts<'_>,
    base: &Arc<dyn Toolset>,
    offered: &Arc<dyn Toolset>,
) -> Result<ServedTools, Problem> {
    let settings = kit.wishes.settings;
    let pinned = selection::resolve_selection(kit.all.offers(), settings, "serve.pinned")?;
    let mut views = BTreeMap::new();
    for name in views::names(settings)? {
        let view = ViewSettings::read(kit.all, settings, &name)?;
        let on: BTreeSet<String> = kit
            .on
            .iter()
            .filter(|name| view.has(name))
            .cloned()
            .collect();
        let kit = ToolsetParts { on: &on, ..kit };
        let narrow: Arc<dyn Toolset> = {
            let view = view.clone();
            Arc::new(Arc::clone(base).matching(move |name| view.has(name)))
        };
        let tools = if kit.is_lazy(&narrow) {
            // The finder only finds tools of the view.
            let narrow =
                Arc::clone(base).matching(move |name| name == SEARCH_TOOL || view.has(name));
            kit.lazily(Arc::new(narrow), &pinned)?
        } else {
            parts::with_chain(kit.at, kit.wishes, narrow, kit.on, kit.scripts)?
        };
        views.insert(name, tools);
    }
    let whole = if kit.is_lazy(base) {
        kit.lazily(Arc::clone(base), &pinned)?
    } else {
        Arc::clone(offered)
    };
    Ok(ServedTools { whole, views })
}

/// A view in the settings.
#[derive(Debug, Clone)]
struct ViewSettings {
    /// `None` for all tools.
    tools: Option<ToolSelection>,
    deny: ToolSelection,
}

impl ViewSettings {
    fn read(all: &ToolCatalogue, settings: &Settings, name: &str) -> Result<Self, Problem> {
        let list = |leaf: &str| {
            let key = format!("views.{name}.{leaf}");
            selection::resolve_selection(all.offers(), settings, &key)
        };
        let says = settings.entry(&["views", name, "tools"]).is_some();
        Ok(Self {
            tools: says.then(|| list("tools")).transpose()?,
            deny: list("deny")?,
        })
    }

    fn has(&self, name: &str) -> bool {
        let chosen = self.tools.as_ref().is_none_or(|tools| tools.has(name));
        chosen && !self.deny.has(name)
    }
}

impl ToolsetParts<'_> {
    /// Returns whether only a few of these tools are to be listed.
    fn is_lazy(&self, base: &Arc<dyn Toolset>) -> bool {
        let settings = self.wishes.settings;
        match settings.get(typed::SERVED_TOOLS).as_str() {
            "lazy" => true,
            "auto" => {
                let scripts = usize::from(self.on.contains(TOOL_CHAIN));
                let listed = base.snapshot().listed().count() + scripts;
                listed > settings.get(typed::LAZY_ABOVE)
            }
            _ => false,
        }
    }

    /// Returns these tools with only a few of them listed, plus `tool_chain` if it is on.
    fn lazily(
        &self,
        base: Arc<dyn Toolset>,
        pinned: &ToolSelection,
    ) -> Result<Arc<dyn Toolset>, Problem> {
        let (settings, policy) = (self.wishes.settings, self.wishes.policy);
        let snapshot = base.snapshot();
        let finder = snapshot.entry(SEARCH_TOOL).map(|entry| entry.spec());
        if !finder.is_some_and(|spec| is_findable(spec)) {
            let problem = Problem::settings(format!(
                "`serve.tools` lists few tools, which needs `{SEARCH_TOOL}`, and that is off"
            ));
            return Err(problem.advise(format!(
                "turn `{SEARCH_TOOL}` on, or set `serve.tools = \"all\"`: without it the other tools cannot be found"
            )));
        }
        let off = settings.entry(&["tools", DESCRIBE_TOOL, "enabled"]);
        let off = off.is_some_and(|entry| entry.value.as_bool() == Some(false));
        let describes = (!off && policy.removes(DESCRIBE_TOOL).is_none()).then_some(DESCRIBE_TOOL);
        let own = Arc::clone(&self.all.registry).only(describes);
        let tools = snapshot.entries().iter().map(|entry| entry.spec());
        let tools = tools.filter(|spec| {
            spec.exposure == Exposure::Listed || spec.exposure == Exposure::Deferred
        });
        let mut listed: BTreeSet<String> = tools
            .map(|spec| spec.name.as_str())
            .filter(|name| pinned.has(name))
            .map(str::to_owned)
            .collect();
        listed.extend([SEARCH_TOOL, DESCRIBE_TOOL].map(str::to_owned));
        let lazy = LazyListing {
            finder: SEARCH_TOOL.to_owned(),
            finder_description: Some(FINDS_LAZILY.to_owned()),
            listed,
        };
        let all = merged([base, Arc::new(own) as _]);
        let lazy = all.lazily(lazy).map_err(|e| {
            Problem::settings(format!("cannot offer `{CALL_TOOL}`: {e}"))
                .advise("set `serve.tools = \"all\"`, or rename the other tool")
        })?;
        parts::with_chain(self.at, self.wishes, Arc::new(lazy), self.on, self.scripts)
    }
}
