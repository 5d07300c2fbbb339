//! `BoxFuture`: what a method of a trait object returns where it waits.

use std::pin::Pin;

/// A future that a trait object can return.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
