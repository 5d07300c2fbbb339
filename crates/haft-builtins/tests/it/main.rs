//! The standard tools through a real executor, over a real folder.

#![expect(
    clippy::unwrap_used,
    reason = "a test whose scene cannot be set has failed"
)]

mod judged_pages;
mod lines;
mod agreement;
mod bad_input;
mod commands;
mod discover;
mod encodings;
mod files;
mod full_disk;
mod grants;
mod guards;
mod http;
mod linked;
mod names;
mod office;
mod patches;
mod pictures;
mod scene;
mod search;
mod secrets;
mod skills;
#[expect(
    dead_code,
    reason = "the town of the network's tests, too, which use more of it"
)]
mod town;
mod upstream;
mod url_cases;
mod web;
