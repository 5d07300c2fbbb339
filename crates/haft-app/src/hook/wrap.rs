//! `line`: a command of an agent, in another form: run by haft in its jail.

use std::env;

use haft::policy::join_words;
use haft_hook::Call;

use crate::app::App;
use crate::hook::only_line;

/// The line that runs a call's command by `haft exec`; none where the call is no plain command line.
pub(super) fn line(app: &App, call: &Call) -> Option<String> {
    let line = only_line(call)?;
    let program = env::current_exe().ok()?;
    let words = [
        program.to_str()?,
        "exec",
        "--workspace",
        app.workspace(),
        "--home",
        app.home().to_str()?,
        "--",
        line,
    ];
    Some(join_words(&words.map(str::to_owned)))
}
