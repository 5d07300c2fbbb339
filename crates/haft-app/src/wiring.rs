//! Components built from settings, one file each; none of them knows the application that they become part of.

pub(crate) mod absent;
pub(crate) mod approvals;
pub(crate) mod artifacts;
pub(crate) mod changes;
pub(crate) mod certificates;
pub(crate) mod chain;
pub(crate) mod credentials;
pub(crate) mod discover;
pub(crate) mod inventory;
pub(crate) mod memory;
pub(crate) mod memory_server;
pub(crate) mod names;
pub(crate) mod network;
pub(crate) mod oauth;
pub(crate) mod offer;
#[cfg(feature = "testing")]
pub(crate) mod paged;
pub(crate) mod parts;
pub(crate) mod policy;
pub(crate) mod selection;
pub(crate) mod skills;
pub(crate) mod stores;
pub(crate) mod surroundings;
pub(crate) mod served;
pub(crate) mod servers;
pub(crate) mod web;
