//! `opaque_debug!`: a trait object in debug output, without `Debug` as a demand on those who implement the trait.

/// Lets trait objects be debug-printed by the trait's name, so that structs that hold one can derive `Debug`.
macro_rules! opaque_debug {
    ($name:ident) => {
        impl std::fmt::Debug for dyn $name + '_ {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    };
}

pub(crate) use opaque_debug;
