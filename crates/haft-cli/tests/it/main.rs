//! The real binary, from outside: what a person or a script sees of each command.
#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod advice;
mod again;
mod approvals;
mod bounds;
mod bucket;
#[path = "../../../haft-store/tests/bucket/server.rs"]
mod bucket_server;
mod call;
mod carriers;
mod chain;
mod changes;
mod chain_kill;
#[path = "../../../haft-store/tests/it/cluster.rs"]
mod cluster;
mod confinement;
mod copies;
mod deciding;
mod discover;
mod first_minutes;
mod help;
mod gate;
mod harness;
mod inbox;
mod install;
mod kept_rules;
mod kill;
mod limits;
mod memory;
mod memory_tools;
mod names;
mod network;
mod once;
mod outputs;
mod proposals;
mod pty;
mod reach;
mod requests;
mod reload;
mod relocations;
mod seed_faults;
mod serve;
mod servers;
mod settings;
mod shapes;
mod shared_inbox;
mod showing;
mod signals;
mod skills;
mod terminal;
mod toolchains;
mod undo_http;
mod usage;
mod web;
mod webhook;
