//! Tests of the strict scan, schemas, coercion and bound arguments.

mod agreement;
mod bind;
mod coerce;
mod keywords;
mod scan;
