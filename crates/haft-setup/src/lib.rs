//! What haft knows about the settings of other programs: MCP clients and coding agents.
//!
//! [`edit`] changes settings files in place: haft's own entry comes or goes, and every other byte stays.

pub mod edit;
pub mod launch;
