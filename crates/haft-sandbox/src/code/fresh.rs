//! Starts an interpreter for one script, in the same jail and under the same locks, if there can be no zygote.

use std::io;
use std::path::PathBuf;

use parking_lot::Mutex;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::time::timeout;

use super::datagram::pair;
use super::locks::WORKSPACE;
use super::script::{Script, ScriptOwner};
use super::stage::InterpreterSetup;
use super::zygote::{ZygoteChild, locked, pipe};
use crate::held_places::scratch::ScratchFolder;
use crate::jail::{SETUP, launch};
use crate::strength::Strength;
use crate::{Sandbox, StartError};

/// The suffix of its engine's name.
pub(super) const SUFFIX: &str = " (fresh)";

/// Starts one and waits until it has run its first line.
pub(super) async fn start(
    sandbox: &Sandbox,
    stage: &InterpreterSetup<'_>,
) -> Result<Script, StartError> {
    let failed = |step| move |source: io::Error| StartError::System { step, source };
    let scratch = if stage.level > Strength::LandlockSeccomp {
        None
    } else {
        Some(ScratchFolder::make().map_err(failed("make a private folder"))?)
    };
    let folder = scratch
        .as_ref()
        .map_or_else(|| PathBuf::from(WORKSPACE), |scratch| scratch.0.clone());
    let (plan, _files) = stage.fresh(&folder)?;
    let (bridge, theirs) = pair().map_err(failed("make a socket"))?;
    let (_errors, their_errors) = pipe()?;
    let tree = launch(sandbox.config(), &plan, theirs, their_errors).await?;
    let pid = i32::try_from(tree.pid()).ok().and_then(Pid::from_raw);
    let pidfd = pidfd_open(pid.unwrap_or(Pid::INIT), PidfdFlags::empty())
        .map_err(|errno| failed("watch the interpreter")(errno.into()))?;
    let (folder, name) = timeout(SETUP, locked(&bridge))
        .await
        .unwrap_or_else(|_| Err(StartError::Interpreter("it took too long".to_owned())))?;
    let newborn = ZygoteChild {
        bridge,
        pidfd,
        // It takes so long to start that the choice of CPU makes no difference.
        pid: None,
        folder,
        scratch,
    };
    let strength = sandbox.probe().await.strength;
    let engine = format!("{name}{SUFFIX}").into();
    Script::new(
        newborn,
        ScriptOwner::Jail(Mutex::new(tree)),
        strength,
        engine,
    )
}
