//! The standard tools: files, search, commands, todo lists, artifacts.
