//! What haft knows about the settings of other programs: MCP clients and coding agents.
//!
//! [`clients`] adds haft to the MCP servers of a client and removes it again, [`hook_settings`] does the same for the hooks of coding agents
//! and says whether they ask haft. Both edit a file through [`edit`]: haft's entry comes or goes, every other byte stays, and the original
//! is kept in haft's state folder. [`imports`] reads the servers that other programs have. What each program is like says its file in
//! [`programs`].

pub mod clients;
pub mod edit;
pub mod environment;
pub mod hook_settings;
pub mod imports;
pub mod launch;
pub mod literal;
pub mod nearest;
pub mod plain_file;
pub mod problem;
pub mod programs;
pub mod registration;
pub mod server;
pub mod site;
pub mod text_places;
mod imported_rules;
mod parse;
mod program;
