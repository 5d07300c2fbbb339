//! `tool_search`, `describe_tools` and `tool_expand_tools`: find tools and skills, describe tools, and expand deferred ones.

mod describe;
mod expand;
#[cfg(feature = "http")]
pub mod embeddings;
pub mod meaning;
mod search;
mod skills;

use std::sync::Arc;

use haft::skill::set::SkillSet;

use crate::discover::meaning::Embedder;

pub use describe::{DescribeData, DescribeInput, DescribeTools, DescribedTool};
pub use expand::{ExpandData, ExpandInput, NameList, ToolExpandTools};
pub use search::{
    CategoryCount, FINDS_LAZILY, FoundSkill, FoundTool, ToolDetail, ToolSearch, ToolSearchData,
    ToolSearchInput,
};

/// The bundle of these tools.
pub const DISCOVER: &str = "discover";

/// What the tool search finds besides tools, and how.
#[derive(Debug, Clone, Default)]
pub struct DiscoverOptions {
    /// Skills to include in searches.
    pub skills: Option<Arc<SkillSet>>,
    /// Finds by meaning too; without it, only by words.
    pub embedder: Option<Arc<dyn Embedder>>,
}
