//! `opaque_debug!`: debug output for trait objects without requiring `Debug` of the trait's implementors.

/// Implements `Debug` for a trait object by printing the trait's name, so that structs that hold one can derive `Debug`.
#[macro_export]
macro_rules! opaque_debug {
    ($name:ident) => {
        impl std::fmt::Debug for dyn $name + '_ {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    };
}
