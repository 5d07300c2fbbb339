//! The files of a skill: bounded, beneath its folder, whatever lies there.
