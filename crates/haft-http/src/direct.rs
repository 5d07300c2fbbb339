//! `Direct`: connects directly, and trusts the system's root certificates.

use std::io;

use tokio::net::TcpStream;

use crate::dial::{BoxFuture, Dial, Io};
use crate::tls::Tls;

/// Connects directly, and trusts the system's root certificates.
#[derive(Debug, Default)]
pub struct Direct {
    tls: Tls,
}

impl Direct {
    async fn connect(&self, host: &str, port: u16, secure: bool) -> io::Result<Box<dyn Io>> {
        let bare = host.trim_matches(['[', ']']);
        let stream = TcpStream::connect((bare, port)).await?;
        // A request is small, and its sender waits for the answer.
        let _ = stream.set_nodelay(true);
        if !secure {
            return Ok(Box::new(stream));
        }
        Ok(Box::new(self.tls.wrap(stream, host).await?))
    }
}

impl Dial for Direct {
    fn dial<'a>(
        &'a self,
        host: &'a str,
        port: u16,
        secure: bool,
    ) -> BoxFuture<'a, io::Result<Box<dyn Io>>> {
        Box::pin(self.connect(host, port, secure))
    }
}
