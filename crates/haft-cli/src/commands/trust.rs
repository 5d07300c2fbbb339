//! `haft trust`: lets a folder's own settings apply, or revokes that.

use serde_json::json;

use crate::args;
use crate::commands::ExitResult;
use crate::exit::Exit;
use crate::invocation::Invocation;
use haft_app::trust::{TrustChoice, TrustStore};

/// Changes the trust store and says so.
pub(crate) fn run(at: &Invocation, args: &args::Trust) -> ExitResult {
    let folder = args.dir.as_deref().unwrap_or(&at.site.workspace);
    let answer = if args.remove {
        TrustChoice::Forget
    } else {
        TrustChoice::Trust
    };
    let was = TrustStore::change(&at.site.home, folder, answer)?;
    let shown = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    if at.screen.json {
        at.screen.document(
            &json!({"dir": shown, "trusted": !args.remove, "changed": was == args.remove}),
        )?;
        return Ok(Exit::Done);
    }
    let shown = shown.display();
    at.screen.say(&match (args.remove, was) {
        (false, false) => format!("{shown} is trusted: haft uses its haft.toml in full"),
        (false, true) => format!("{shown} was already trusted"),
        (true, true) => format!("{shown} is no longer trusted"),
        (true, false) => format!("{shown} was not trusted"),
    });
    Ok(Exit::Done)
}
