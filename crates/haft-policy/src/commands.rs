//! Command lines as the policy judges them: their parts, their folders, what they remove, how harmful they are.

pub(crate) mod phrase;
pub(crate) mod remembered;
pub(crate) mod fetching_lines;
pub(crate) mod folders;
pub(crate) mod parts;
mod critical_paths;
pub(crate) mod removal;
pub(crate) mod risk;
