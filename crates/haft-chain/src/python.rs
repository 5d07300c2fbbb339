//! `PythonEngine`: runs scripts with `CPython` in the code profile of the jail.

use std::io;
use std::os::fd::BorrowedFd;

use haft::future::BoxFuture;
use haft_sandbox::code::{CodeJail, LibrarySet, Script};

use crate::engine::{Engine, EngineError, Worker};

/// Packages for which a script gets the interpreter with the packages installed beyond the standard library.
const DATA: [&str; 16] = [
    "numpy",
    "pandas",
    "scipy",
    "matplotlib",
    "sklearn",
    "polars",
    "pyarrow",
    "openpyxl",
    "PIL",
    "sympy",
    "networkx",
    "statsmodels",
    "yaml",
    "bs4",
    "lxml",
    "dateutil",
];

/// `CPython` in the jail.
#[derive(Debug)]
pub struct PythonEngine {
    jail: CodeJail,
}

impl PythonEngine {
    /// Creates the engine over this jail, whose configuration has [`RUNTIME`](crate::RUNTIME) as its runtime. Nothing is tried
    /// before the first script, because most commands of a host have none.
    pub fn new(jail: CodeJail) -> Self {
        Self { jail }
    }

    /// Returns the jail that provides the interpreters.
    pub fn jail(&self) -> &CodeJail {
        &self.jail
    }
}

/// Returns the data kind if a script imports a package that only the data interpreter has.
fn kind(code: &str) -> LibrarySet {
    let imports = |line: &str| {
        let line = line.trim_start();
        let rest = line
            .strip_prefix("import ")
            .or_else(|| line.strip_prefix("from "));
        let words = rest.into_iter().flat_map(|rest| rest.split(','));
        let mut roots = words.filter_map(|word| word.trim().split(['.', ' ']).next());
        roots.any(|root| DATA.contains(&root))
    };
    if code.lines().any(imports) {
        LibrarySet::Data
    } else {
        LibrarySet::Plain
    }
}

impl Engine for PythonEngine {
    fn describe(&self) -> String {
        "Runs CPython with its standard library (numpy and pandas where the machine has them); nothing can be installed."
            .to_owned()
    }

    fn start<'a>(&'a self, code: &'a str) -> BoxFuture<'a, Result<Box<dyn Worker>, EngineError>> {
        Box::pin(async move {
            let probe = self.jail.probe().await;
            if let Some(missing) = &probe.missing {
                return Err(EngineError {
                    message: format!("{}: {}", missing.what, missing.why),
                    advice: Some(missing.fix.clone()),
                });
            }
            let wanted = if probe.data {
                kind(code)
            } else {
                LibrarySet::Plain
            };
            let script = self.jail.take(wanted).await.map_err(|error| EngineError {
                message: error.to_string(),
                advice: None,
            })?;
            Ok(Box::new(script) as Box<dyn Worker>)
        })
    }
}

impl Worker for Script {
    fn recv<'a>(&'a self, frame: &'a mut [u8]) -> BoxFuture<'a, io::Result<usize>> {
        Box::pin(Script::recv(self, frame))
    }

    fn try_recv(&self, frame: &mut [u8]) -> io::Result<usize> {
        Script::try_recv(self, frame)
    }

    fn try_send(&self, frame: &[u8]) -> io::Result<()> {
        Script::try_send(self, frame)
    }

    fn send<'a>(&'a self, frame: &'a [u8]) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(Script::send(self, frame))
    }

    fn folder(&self) -> BorrowedFd<'_> {
        Script::folder(self)
    }

    fn folder_path(&self) -> &str {
        Script::folder_path(self)
    }

    fn strength(&self) -> String {
        Script::strength(self).word().to_owned()
    }

    fn kill(&self) {
        Script::kill(self);
    }

    fn ended(&self) -> BoxFuture<'_, ()> {
        Box::pin(Script::ended(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_gets_the_interpreter_that_it_imports_for() {
        for (code, expect) in [
            ("print(1)", LibrarySet::Plain),
            ("import json, re", LibrarySet::Plain),
            ("import numpy as np", LibrarySet::Data),
            ("import json, pandas", LibrarySet::Data),
            (
                "def f():\n    from numpy.linalg import norm",
                LibrarySet::Data,
            ),
            ("# import numpy\nx = 'numpy'", LibrarySet::Plain),
        ] {
            assert_eq!(kind(code), expect, "{code}");
        }
    }
}
