//! `HostProgram`: a program of this machine that haft starts for the user rather than for a tool: a desktop notification, the
//! browser, haft itself in the background.
//!
//! It runs outside any jail, so its path comes from [`Places::program`](crate::places::Places::program), and never through a shell.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::hidden_paths::HiddenPaths;
use crate::places::Places;
use crate::spawn::{self, ResolvedCommand};
use crate::sys::keep_from_programs;

/// How often to check whether a program with a time limit has exited.
const LOOK: Duration = Duration::from_millis(10);

/// A program and how to start it: no input, output discarded, in its own process group.
#[derive(Debug)]
pub struct HostProgram {
    program: PathBuf,
    argv: Vec<OsString>,
    env: BTreeMap<OsString, OsString>,
    folder: PathBuf,
    log: Option<File>,
    /// What it reads, and what is hidden from it, if it is asked for something that only it knows: then it has no terminal either.
    question: Option<(Vec<u8>, Vec<PathBuf>)>,
}

impl HostProgram {
    /// Creates a host program from its path and the name under which it was looked up: some programs behave by their name.
    pub fn new(program: &Path, name: &str) -> Self {
        Self {
            program: program.to_owned(),
            argv: vec![name.into()],
            env: BTreeMap::new(),
            folder: PathBuf::from("/"),
            log: None,
            question: None,
        }
    }

    /// Returns this program: the very file that is running, whatever is at its path by now.
    pub fn this(name: &str) -> Self {
        Self::new(Path::new("/proc/self/exe"), name)
    }

    /// Adds arguments.
    #[must_use]
    pub fn with_arguments<A: Into<OsString>>(
        mut self,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        self.argv.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets these variables, which are the only ones it gets.
    #[must_use]
    pub fn with_variables<'a>(
        mut self,
        variables: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let pairs = variables.into_iter();
        self.env
            .extend(pairs.map(|(name, value)| (name.into(), value.into())));
        self
    }

    /// Sets its working folder, instead of the root.
    #[must_use]
    pub fn in_folder(mut self, folder: &Path) -> Self {
        folder.clone_into(&mut self.folder);
        self
    }

    /// Sets the file that its standard error goes to.
    #[must_use]
    pub fn with_log(mut self, log: File) -> Self {
        self.log = Some(log);
        self
    }

    /// Has it read these bytes, then the end, in a session of its own: it finds no terminal to ask a user at. Nor does it find what tools
    /// may change: there is an empty folder for it. It is not started where the kernel cannot do that.
    #[must_use]
    pub fn with_question(mut self, question: impl Into<Vec<u8>>, places: &Places) -> Self {
        self.question = Some((question.into(), places.changeable().to_vec()));
        self
    }

    /// Runs it until it exits. If it takes longer than `limit`, it is killed with its whole process group. Blocks.
    ///
    /// # Errors
    /// If it cannot be started, or took too long.
    pub fn run(self, limit: Duration) -> io::Result<ExitStatus> {
        let mut child = self.spawn()?;
        let until = Instant::now() + limit;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            if Instant::now() >= until {
                // The timeout is the error to report.
                let _ = end(&mut child);
                return Err(io::ErrorKind::TimedOut.into());
            }
            thread::sleep(LOOK);
        }
    }

    /// Runs it until it exits, at most for `limit`, and returns the first `most` bytes of its standard output until then: what it started may
    /// hold the pipe open for longer. Blocks.
    ///
    /// # Errors
    /// If it cannot be started, took too long, or failed.
    pub fn output(self, limit: Duration, most: usize) -> io::Result<Vec<u8>> {
        let mut child = self.spawn_with(Stdio::piped())?;
        let until = Instant::now() + limit;
        let mut output = PipedOutput::of(&mut child, most)?;
        while !has_ended(&child)? && Instant::now() < until {
            output.read_for(LOOK)?;
        }
        let is_late = !has_ended(&child)?;
        // Its child processes may hold the pipe open. Until it is reaped, its process ID is its group's.
        let status = end(&mut child)?;
        if is_late {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if !status.success() {
            return Err(io::Error::other(format!("it failed ({status})")));
        }
        output.read_for(Duration::ZERO)?;
        Ok(output.bytes)
    }

    /// Starts it and leaves it running, even after this process exits.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn detach(self) -> io::Result<DetachedProgram> {
        let mut child = self.spawn()?;
        let pid = child.id();
        let (tell, ended) = sync_channel(1);
        // A thread waits for it, or it would remain a zombie if it exits before this process does.
        thread::Builder::new()
            .name("haft-detached".to_owned())
            .spawn(move || {
                if let Ok(status) = child.wait() {
                    // Often there is no receiver.
                    let _ = tell.send(status);
                }
            })?;
        Ok(DetachedProgram { pid, ended })
    }

    fn spawn(self) -> io::Result<Child> {
        self.spawn_with(Stdio::null())
    }

    fn spawn_with(self, stdout: Stdio) -> io::Result<Child> {
        let start = ResolvedCommand {
            program: &self.program,
            argv: &self.argv,
            env: &self.env,
            cwd: &self.folder,
        };
        // A long-running program would keep open what haft's own caller had open: a lock, or a pipe whose reader waits for it to
        // close. Linux before 5.11 does not support this.
        let _ = keep_from_programs(3);
        if let Some((question, changeable)) = self.question {
            let hidden = HiddenPaths::new(&changeable)?;
            return start.spawn_apart(spawn::memory_file(&question)?.into(), stdout, hidden);
        }
        let log = self.log.map_or_else(Stdio::null, Stdio::from);
        start.spawn(Stdio::null(), stdout, log)
    }
}

/// What is read of a child's standard output, never waiting for more than is there.
#[derive(Debug)]
struct PipedOutput {
    /// Closed once enough was read: the child's next write fails.
    pipe: Option<ChildStdout>,
    bytes: Vec<u8>,
    most: usize,
}

impl PipedOutput {
    fn of(child: &mut Child, most: usize) -> io::Result<Self> {
        let pipe = child.stdout.take();
        if let Some(pipe) = &pipe {
            fcntl_setfl(pipe, fcntl_getfl(pipe)? | OFlags::NONBLOCK)?;
        }
        Ok(Self {
            pipe,
            bytes: Vec::new(),
            most,
        })
    }

    /// Reads what is there, or comes within this time.
    fn read_for(&mut self, time: Duration) -> io::Result<()> {
        let Some(pipe) = &mut self.pipe else {
            thread::sleep(time);
            return Ok(());
        };
        let time = Timespec::try_from(time).map_err(|_| io::ErrorKind::InvalidInput)?;
        poll(&mut [PollFd::new(pipe, PollFlags::IN)], Some(&time))?;
        let left = (self.most - self.bytes.len()) as u64;
        match pipe.take(left).read_to_end(&mut self.bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
            Ok(_) => {
                self.pipe = None;
                Ok(())
            }
        }
    }
}

/// Returns whether a child has exited, without reaping it.
fn has_ended(child: &Child) -> io::Result<bool> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    Ok(waitid(WaitId::Pid(Pid::from_child(child)), options)?.is_some())
}

/// Kills a child with its process group, and reaps it.
fn end(child: &mut Child) -> io::Result<ExitStatus> {
    // It may have exited by itself just now.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    child.wait()
}

/// A program that was started and left running.
#[derive(Debug)]
pub struct DetachedProgram {
    pid: u32,
    ended: Receiver<ExitStatus>,
}

impl DetachedProgram {
    /// Returns its process ID.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns how it exited, if it does within this time. Blocks.
    pub fn ended_within(&self, limit: Duration) -> Option<ExitStatus> {
        self.ended.recv_timeout(limit).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::ErrorKind;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::time::Duration;

    use super::HostProgram;
    use crate::places::Places;

    const LONG: Duration = Duration::from_secs(60);

    fn shell(script: &str) -> HostProgram {
        HostProgram::new(Path::new("/bin/sh"), "sh")
            .with_arguments(["-c", script])
            .with_variables([("ONLY", "this one")])
    }

    #[test]
    fn a_program_sees_its_own_variables_and_its_end_is_heard() {
        let status = shell("test \"$ONLY\" = 'this one' && test -z \"$HOME\" && ! read line");
        assert!(status.run(LONG).unwrap().success());
        assert_eq!(shell("exit 3").run(LONG).unwrap().code(), Some(3));
        let ended = shell("exit 4").detach().unwrap().ended_within(LONG);
        assert_eq!(ended.unwrap().code(), Some(4));
    }

    #[test]
    fn a_program_that_takes_too_long_is_ended_with_what_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let program = shell("sleep 1000 & echo $! > child; wait").in_folder(folder.path());
        let error = program
            .with_variables([("PATH", "/usr/bin:/bin")])
            .run(Duration::from_secs(2))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        let child = fs::read_to_string(folder.path().join("child")).unwrap();
        let status = format!("/proc/{}/stat", child.trim());
        // It is a zombie until the init process has reaped it.
        let is_over = || fs::read_to_string(&status).map_or(true, |stat| stat.contains(") Z"));
        while !is_over() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn what_a_program_prints_is_read_up_to_a_limit() {
        let output = |script: &str| shell(script).output(LONG, 9);
        assert_eq!(output("echo 2.1.332; echo more >&2").unwrap(), b"2.1.332\n");
        // It must not wait for child processes, also of another session, nor for a program that never stops printing.
        assert_eq!(output("echo 1; /bin/sleep 1000 &").unwrap(), b"1\n");
        assert_eq!(
            output("/usr/bin/setsid /bin/sleep 2 & echo 1").unwrap(),
            b"1\n"
        );
        assert_eq!(
            output("yes 1234 | head -c 100000; true").unwrap(),
            b"1234\n1234"
        );
        assert!(
            output("echo 1; exit 3")
                .unwrap_err()
                .to_string()
                .contains("failed")
        );
        let late = shell("echo 1; /bin/sleep 1000").output(Duration::from_secs(1), 9);
        assert_eq!(late.unwrap_err().kind(), ErrorKind::TimedOut);
    }

    #[test]
    fn a_program_that_is_asked_reads_the_question_and_has_no_terminal() {
        let asked = shell("cat; (: </dev/tty) 2>/dev/null && echo terminal; ps -o sid= -p $$ | tr -d ' '; echo $$")
            .with_variables([("PATH", "/usr/bin:/bin")])
            .with_question("host=example.com\n", &Places::default());
        let output = String::from_utf8(asked.output(LONG, 100).unwrap()).unwrap();
        let lines: Vec<&str> = output.lines().collect();
        assert_eq!(lines[0], "host=example.com");
        assert_eq!(lines.len(), 3, "{output}");
        assert_eq!(lines[1], lines[2], "{output}");
    }

    #[test]
    fn a_program_that_is_asked_finds_nothing_that_tools_may_change() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let work = root.join("my work");
        fs::create_dir_all(work.join("bin")).unwrap();
        fs::write(work.join("bin/tell"), "#!/bin/sh\necho escaped\n").unwrap();
        fs::set_permissions(work.join("bin/tell"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(root.join("one"), "escaped\n").unwrap();
        fs::write(root.join("other"), "kept\n").unwrap();
        std::os::unix::fs::symlink(work.join("bin/tell"), root.join("link")).unwrap();
        let below = work.join("bin");
        let changeable = [below, work, root.join("one"), root.join("missing")];
        let places = Places::declared([root.join("state")], changeable);
        let script = "cd \"$ROOT\"; ./link; tell; sh './my work/bin/tell'; cat one other; ls -A 'my work'; touch other 'my work/x'; id -u";
        let asked = HostProgram::new(Path::new("/bin/sh"), "sh")
            .with_arguments(["-c", script])
            .with_variables([
                ("ROOT", root.to_str().unwrap()),
                (
                    "PATH",
                    &format!("{0}/my work/bin:/usr/bin:/bin", root.display()),
                ),
            ])
            .with_question("", &places);
        let output = String::from_utf8(asked.output(LONG, 100).unwrap()).unwrap();
        let user = rustix::process::getuid().as_raw();
        assert_eq!(output, format!("kept\n{user}\n"));
        assert!(root.join("my work/bin/tell").exists());
    }

    #[test]
    fn a_program_on_the_path_is_started_only_where_no_tool_could_have_put_it() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let program = |folder: &str| {
            let folder = root.join(folder);
            fs::create_dir_all(&folder).unwrap();
            let file = folder.join("tell");
            fs::write(&file, "#!/bin/sh\n").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
            file
        };
        let (work, state, bin) = (program("work/bin"), program("state"), program("bin"));
        let places = Places::declared([root.join("state")], [root.join("work")]);
        let path = |files: &[&Path]| {
            let folders = files.iter().map(|file| file.parent().unwrap());
            std::env::join_paths(folders).unwrap()
        };
        let found = places.program("tell", &path(&[&work, &state, &bin]));
        assert_eq!(found.unwrap().unwrap(), bin);
        let found = places.program("tell", &path(&[&work]));
        let refused = found.unwrap().unwrap_err().to_string();
        assert!(refused.contains("tools may change"), "{refused}");
        assert!(places.program("other", &path(&[&bin])).is_none());
        assert!(places.program("tell", "bin:.".as_ref()).is_none());
    }
}
