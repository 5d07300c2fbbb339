//! Contracts and pipeline of the tool runtime: a call is admitted, cleared, invoked, shaped, recorded.
