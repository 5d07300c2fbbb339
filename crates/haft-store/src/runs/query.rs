//! The SQL that lists runs: a condition for each filter member that is set, the same for both databases.

use std::fmt::Write as _;

use haft::audit::index::{EXIT, FAILED, RunFilter, RunState};
use haft::result::Status;

use crate::number::nanoseconds;

/// A value in a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BindValue {
    Text(String),
    Number(i64),
}

/// How a database names its tables and parameters.
#[derive(Debug, Clone, Copy)]
pub(super) struct SqlDialect {
    /// Prefix of table names.
    pub(super) schema: &'static str,
    /// Prefix of parameter numbers.
    pub(super) mark: char,
}

/// The conditions of a list, while they are built.
struct Conditions {
    dialect: SqlDialect,
    sql: String,
    values: Vec<BindValue>,
}

impl Conditions {
    /// Adds a value and returns its parameter.
    fn bind(&mut self, value: BindValue) -> String {
        self.values.push(value);
        format!("{}{}", self.dialect.mark, self.values.len())
    }

    fn text(&mut self, condition: &str, value: &str) {
        let parameter = self.bind(BindValue::Text(value.to_owned()));
        let _ = write!(self.sql, " AND {condition} {parameter}");
    }

    /// Adds the condition that a call has one of these statuses. Programs that ended with an exit code other than 0 are counted by
    /// themselves; their status is `error`.
    fn words(&mut self, statuses: &[Status]) {
        let words = statuses.iter().map(|status| status.as_str()).chain([EXIT]);
        let words: Vec<String> = words.map(|word| format!("'{word}'")).collect();
        let _ = write!(self.sql, " AND c.status IN ({})", words.join(", "));
    }

    fn time(&mut self, condition: &str, at: Option<i128>) {
        if let Some(at) = at {
            let parameter = self.bind(BindValue::Number(nanoseconds(at)));
            let _ = write!(self.sql, " AND {condition} {parameter}");
        }
    }
}

/// Returns the statement that lists runs, newest first, and its values. If only failed runs are wanted, the index of failed runs
/// drives the query; so does the time of the notes if it is given.
pub(super) fn list(dialect: SqlDialect, filter: &RunFilter) -> (String, Vec<BindValue>) {
    let schema = dialect.schema;
    let noted_only = filter.failed || filter.noted_since.is_some();
    let (join, order) = match (filter.failed, noted_only) {
        (true, _) => ("JOIN", "n.started"),
        (_, true) => ("JOIN", "r.started"),
        _ => ("LEFT JOIN", "r.started"),
    };
    let mut all = Conditions {
        dialect,
        sql: format!(
            "SELECT r.*, n.notes FROM {schema}runs r {join} {schema}run_notes n ON n.run = r.run WHERE 1 = 1"
        ),
        values: Vec::new(),
    };
    if let Some(principal) = &filter.principal {
        all.text("r.tenant =", &principal.tenant);
        all.text("r.subject =", &principal.subject);
    }
    match filter.state {
        // The partial index for these contains no closed runs.
        Some(RunState::Closed) => all.text("r.state =", "closed"),
        Some(state) => {
            all.sql.push_str(" AND r.state <> 'closed'");
            all.text("r.state =", state.as_str());
        }
        None => {}
    }
    if let Some(workspace) = &filter.workspace {
        all.text("r.workspace =", workspace);
    }
    if filter.failed {
        all.sql.push_str(" AND n.failed > 0");
    }
    calls(&mut all, filter);
    all.time(&format!("{order} >="), filter.since);
    all.time(&format!("{order} <"), filter.until);
    all.time("n.noted >=", filter.noted_since);
    if let Some(after) = &filter.after {
        let parameter = all.bind(BindValue::Text(after.to_string()));
        let _ = write!(
            all.sql,
            " AND ({order}, r.run) < (SELECT started, run FROM {schema}runs WHERE run = {parameter})"
        );
    }
    let limit = all.bind(BindValue::Number(filter.limit.into()));
    let _ = write!(all.sql, " ORDER BY {order} DESC, r.run DESC LIMIT {limit}");
    (all.sql, all.values)
}

/// Adds the condition on calls.
fn calls(all: &mut Conditions, filter: &RunFilter) {
    if filter.tool.is_none() && filter.status.is_none() {
        return;
    }
    let schema = all.dialect.schema;
    let _ = write!(
        all.sql,
        " AND EXISTS (SELECT 1 FROM {schema}run_calls c WHERE c.run = r.run"
    );
    if let Some(tool) = &filter.tool {
        all.text("c.tool =", tool);
    }
    match filter.status {
        Some(Status::Error) => all.words(&[Status::Error]),
        Some(status) => all.text("c.status =", status.as_str()),
        None if filter.failed => all.words(&FAILED),
        None => {}
    }
    all.sql.push(')');
}
