//! Chooses an interpreter by running those there are, and gets one for each script.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OnceCell;

use super::fresh;
use super::interpreter::{Candidates, Interpreter, candidates};
use super::pool::{Pool, ReadyChild};
use super::script::{Script, ScriptOwner};
use super::stage::InterpreterSetup;
use super::zygote::{WarmUp, Zygote, ZygoteChild};
use super::{CodeConfig, CodeProbe, LibrarySet};
use crate::strength::{MissingFeature, Strength};
use crate::{Sandbox, StartError};

/// How long to delay creating the next child while another is ready: by then, most scripts' first calls are over.
const HEAD_START: Duration = Duration::from_millis(5);

/// The state that all clones of a jail share.
#[derive(Debug)]
pub(super) struct CodeJailState {
    sandbox: Sandbox,
    config: CodeConfig,
    chosen: OnceCell<InterpreterChoice>,
    plain: Pool,
    data: Pool,
}

/// The outcome of the search.
#[derive(Debug)]
pub(super) struct InterpreterChoice {
    pub(super) probe: CodeProbe,
    interpreter: Option<Interpreter>,
    level: Strength,
    landlock: u32,
}

impl CodeJailState {
    pub(super) fn new(sandbox: Sandbox, config: CodeConfig) -> Self {
        Self {
            sandbox,
            config,
            chosen: OnceCell::new(),
            plain: Pool::new(),
            data: Pool::new(),
        }
    }

    fn pool(&self, kind: LibrarySet) -> &Pool {
        match kind {
            LibrarySet::Plain => &self.plain,
            LibrarySet::Data => &self.data,
        }
    }

    pub(super) async fn chosen(&self) -> &InterpreterChoice {
        self.chosen.get_or_init(|| self.choose()).await
    }

    fn stage<'a>(
        &'a self,
        chosen: &'a InterpreterChoice,
        of: &'a Interpreter,
        kind: LibrarySet,
    ) -> InterpreterSetup<'a> {
        InterpreterSetup {
            config: &self.config,
            interpreter: of,
            places: &self.sandbox.config().places,
            kind,
            level: chosen.level,
            landlock: chosen.landlock,
        }
    }

    /// Runs interpreters in the jail until one works: as a zygote, else from scratch for each script.
    async fn choose(&self) -> InterpreterChoice {
        let jail = self.sandbox.probe().await;
        let mut chosen = InterpreterChoice {
            probe: CodeProbe {
                python: None,
                version: String::new(),
                zygote: false,
                why_not: None,
                data: false,
                strength: jail.strength,
                missing: None,
                passed_over: Vec::new(),
            },
            interpreter: None,
            level: jail.level,
            landlock: jail.landlock_abi,
        };
        if let Err(error) = jail.admit(self.sandbox.config().require) {
            chosen.probe.missing = Some(MissingFeature {
                what: "a jail for scripts".into(),
                why: error.to_string(),
                fix: "run `haft doctor`".into(),
                decides: true,
            });
            return chosen;
        }
        let places = &self.sandbox.config().places;
        let Candidates { found, passed_over } = candidates(places, self.config.python.as_deref());
        chosen.probe.passed_over = passed_over.iter().map(ToString::to_string).collect();
        let mut errors = Vec::new();
        if self.config.force_fresh {
            chosen.probe.why_not = Some("the configuration wants none".into());
        } else if self.choose_zygote(&mut chosen, &found, &mut errors).await {
            return chosen;
        } else {
            chosen.probe.why_not = Some(errors.join("; "));
        }
        self.choose_fresh(&mut chosen, found, errors).await;
        chosen
    }

    async fn choose_fresh(
        &self,
        chosen: &mut InterpreterChoice,
        found: Vec<Interpreter>,
        mut errors: Vec<String>,
    ) {
        for interpreter in found {
            match fresh::start(
                &self.sandbox,
                &self.stage(chosen, &interpreter, LibrarySet::Plain),
            )
            .await
            {
                Ok(script) => {
                    let engine = script.engine().trim_end_matches(fresh::SUFFIX);
                    chosen.choose(interpreter, engine.to_owned());
                    return;
                }
                Err(error) => errors.push(format!("{}: {error}", interpreter.program.display())),
            }
        }
        errors.extend(chosen.probe.passed_over.iter().cloned());
        let why = if errors.is_empty() {
            "there is none on the PATH, in /usr/bin or in /usr/local/bin".into()
        } else {
            errors.join("; ")
        };
        chosen.probe.missing = Some(MissingFeature {
            what: "a Python that works in the jail".into(),
            why,
            fix: "install python3 (3.9 or later; on Debian and Ubuntu `apt install python3`)"
                .into(),
            decides: true,
        });
    }

    async fn choose_zygote(
        &self,
        chosen: &mut InterpreterChoice,
        found: &[Interpreter],
        errors: &mut Vec<String>,
    ) -> bool {
        for interpreter in found {
            let stage = self.stage(chosen, interpreter, LibrarySet::Plain);
            let tried = match Zygote::start(self.sandbox.config(), &stage).await {
                // A zygote that cannot create a child is useless.
                Ok(zygote) => zygote.spawn(WarmUp::Warmed).await.map(|newborn| {
                    super::zygote::kill(&newborn.pidfd);
                    zygote
                }),
                Err(error) => Err(error),
            };
            match tried {
                Ok(zygote) => {
                    chosen.probe.zygote = true;
                    chosen.probe.data = zygote.data;
                    chosen.choose(interpreter.clone(), zygote.name.clone());
                    // If the jail is already shut down, there will be no script either.
                    let _ = self.plain.put(zygote);
                    return true;
                }
                Err(error) => errors.push(format!("{}: {error}", interpreter.program.display())),
            }
        }
        false
    }

    /// Returns an interpreter for a script, the fastest way available now.
    pub(super) async fn take(&self, kind: LibrarySet) -> Result<Script, StartError> {
        let chosen = self.chosen().await;
        let Some(interpreter) = &chosen.interpreter else {
            let jail = self.sandbox.probe().await;
            jail.admit(self.sandbox.config().require)?;
            let missing = chosen.probe.missing.clone();
            return Err(missing.map_or(StartError::NotEntered, StartError::NoInterpreter));
        };
        let stage = self.stage(chosen, interpreter, kind);
        if chosen.probe.zygote {
            let ready = match self.pool(kind).pop() {
                Some(ready) => Ok(ready),
                None => self.made(&stage, WarmUp::AtOnce).await,
            };
            match ready {
                Ok((newborn, zygote)) => return chosen.script(newborn, zygote),
                Err(StartError::Shut) => return Err(StartError::Shut),
                // No zygote can be started for now; the jail is the same without one.
                Err(_) => {}
            }
        }
        fresh::start(&self.sandbox, &stage).await
    }

    /// Creates a child now; by another zygote if the present one is gone.
    async fn made(
        &self,
        stage: &InterpreterSetup<'_>,
        warmth: WarmUp,
    ) -> Result<ReadyChild, StartError> {
        let pool = self.pool(stage.kind);
        let mut again = true;
        loop {
            let zygote = pool
                .zygote_or(Zygote::start(self.sandbox.config(), stage))
                .await?;
            match zygote.spawn(warmth).await {
                Ok(newborn) => return Ok((newborn, zygote)),
                Err(error) => {
                    pool.discard(&zygote);
                    if !std::mem::take(&mut again) {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Fills the pool of a kind, with children of a new zygote if the old one is due for replacement.
    pub(super) async fn fill(&self, kind: LibrarySet) {
        let chosen = self.chosen().await;
        let (Some(interpreter), true) = (&chosen.interpreter, chosen.probe.zygote) else {
            return;
        };
        let pool = self.pool(kind);
        let Some(filling) = pool.begin(&self.config) else {
            return;
        };
        if pool.has_ready() {
            // The script that was just handed out has the processors to itself for its first moments.
            tokio::time::sleep(HEAD_START).await;
        }
        let stage = self.stage(chosen, interpreter, kind);
        if pool.is_due(&self.config)
            && let Ok(next) = Zygote::start(self.sandbox.config(), &stage).await
        {
            let _ = pool.put(next);
        }
        while filling.wants(self.config.idle) {
            let Ok(ready) = self.made(&stage, WarmUp::Warmed).await else {
                return;
            };
            filling.keep(ready);
        }
    }

    pub(super) async fn shut_down(&self) {
        self.plain.shut_down().await;
        self.data.shut_down().await;
    }
}

impl InterpreterChoice {
    fn choose(&mut self, interpreter: Interpreter, version: String) {
        self.probe.python = Some(interpreter.program.clone());
        self.probe.version = version;
        self.interpreter = Some(interpreter);
    }

    fn script(&self, newborn: ZygoteChild, zygote: Arc<Zygote>) -> Result<Script, StartError> {
        let engine: Arc<str> = format!("{} (zygote)", zygote.name).into();
        let keeper = ScriptOwner::Zygote(zygote);
        Script::new(newborn, keeper, self.probe.strength, engine)
    }
}
