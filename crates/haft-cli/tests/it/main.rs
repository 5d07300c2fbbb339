//! The real binary, from outside: what a person or a script sees of each command.

mod help;
mod harness;
mod seed_faults;
mod settings;
mod usage;
