//! `tool_search`, `describe_tools` and `tool_expand_tools`: finding tools and skills, what they take, and having deferred tools listed.

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
pub use expand::{ExpandData, ExpandInput, Names, ToolExpandTools};
pub use search::{
    CategoryCount, FINDS_LAZILY, Format, FoundSkill, FoundTool, ToolSearch, ToolSearchData,
    ToolSearchInput,
};

/// The bundle of these tools.
pub const DISCOVER: &str = "discover";

/// What can be found besides tools, and how.
#[derive(Debug, Clone, Default)]
pub struct DiscoverOptions {
    /// Skills, which are found, too.
    pub skills: Option<Arc<SkillSet>>,
    /// Finds by meaning, too; without it by words alone.
    pub embedder: Option<Arc<dyn Embedder>>,
}
