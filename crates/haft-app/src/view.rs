//! The data behind screens: the command line, the HTTP API and the console show the same.

pub mod approvals;
pub mod changes;
pub mod health;
pub mod metrics;
pub mod ocsf;
pub mod overview;
pub mod policy;
pub mod prefix;
pub mod rule;
pub mod run_log;
pub mod runs;
pub mod services;
pub mod skills;
pub mod timeline;
pub mod tools;
pub mod when;

pub use crate::coverage;
