//! Code mode: a script calls tools, in a jail, through the same executor as everybody.
