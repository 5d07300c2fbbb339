//! What a run changed in the workspace: for the command line and the HTTP API.

mod report;

pub use report::{ChangeReport, FileReport, FileTexts, ReportLimits, report, texts};
