//! The only place that starts a process: jailed commands, bounded output, whole trees ended.
