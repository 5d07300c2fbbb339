//! How the start of a jail went, as its processes report it to the host.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use tokio::io::{AsyncWriteExt, Interest};

use super::SETUP;
use super::plan::SupervisorPlan;
use crate::StartError;
use crate::report::{ActiveMechanisms, JailReport, receive, send_files};

/// What a jail reported first.
#[derive(Debug)]
pub(super) enum StartReport {
    /// The command was executed; these mechanisms confine it.
    Started(ActiveMechanisms),
    /// The jail has ended already, before it could report that: the command may have run. This is the report in place of that, if there was
    /// one.
    Ended(Option<JailReport>),
}

/// Sends a supervisor its plan and receives the first report, with the descriptors that may come with it.
pub(super) async fn receive_first(
    link: UnixStream,
    plan: &SupervisorPlan,
    input: Option<OwnedFd>,
) -> Result<(StartReport, Vec<OwnedFd>), StartError> {
    let mut files = Vec::new();
    let heard = tokio::time::timeout(SETUP, talk(link, &plan.encode(), input, &mut files)).await;
    let report = match heard.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
        Ok(JailReport::Ready(held)) => StartReport::Started(held),
        Ok(JailReport::NoProgram { errno }) => {
            return Err(StartError::Program {
                program: plan
                    .argv
                    .first()
                    .map_or_else(String::new, |name| name.display().to_string()),
                source: io::Error::from_raw_os_error(errno),
            });
        }
        Ok(JailReport::Failed { step, errno }) => {
            return Err(StartError::Jail {
                step,
                source: io::Error::from_raw_os_error(errno),
            });
        }
        Ok(
            ended @ (JailReport::Ended { .. }
            | JailReport::TooMuch { .. }
            | JailReport::Guard(_)
            | JailReport::LeftRunning(_)
            | JailReport::LeftFiles(_)
            | JailReport::Handed
            | JailReport::Prepared),
        ) => StartReport::Ended(Some(ended)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => StartReport::Ended(None),
        Err(source) => return Err(unheard(source)),
    };
    Ok((report, files))
}

/// Returns the error for a supervisor that does not say how the start went.
pub(super) fn unheard(source: io::Error) -> StartError {
    StartError::Jail {
        step: "hear from the supervisor".into(),
        source,
    }
}

/// Returns the error for a jail that has ended although nothing in it could.
pub(super) fn ended_early() -> StartError {
    StartError::Jail {
        step: "wait for the start".into(),
        source: io::Error::other("the jail ended before it told how it started"),
    }
}

/// Sends the plan and reads the first report, with the descriptors that may come with it.
async fn talk(
    link: UnixStream,
    plan: &[u8],
    input: Option<OwnedFd>,
    files: &mut Vec<OwnedFd>,
) -> io::Result<JailReport> {
    link.set_nonblocking(true)?;
    let mut link = tokio::net::UnixStream::from_std(link)?;
    link.write_all(plan).await?;
    if let Some(input) = input {
        let send = || send_files(&link, b"i", std::slice::from_ref(&input));
        link.async_io(Interest::WRITABLE, send).await?;
    }
    // Reads how the start went and nothing after it: the next report tells the exit. Dropping the stream leaves the
    // connection open, because the tree holds another handle to it.
    loop {
        let mut bytes = vec![0; JailReport::HEAD];
        receive(&link, &mut bytes, files).await?;
        bytes.resize(JailReport::HEAD + JailReport::text_length(&bytes), 0);
        receive(&link, &mut bytes[JailReport::HEAD..], files).await?;
        match JailReport::decode(&bytes) {
            Some((JailReport::Handed | JailReport::Prepared, _)) => {}
            Some((report, _)) => return Ok(report),
            None => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
}
