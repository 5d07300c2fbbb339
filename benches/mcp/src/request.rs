//! The request: one tool call in either era, as HTTP and as a line.

/// The protocol's version of the stateless era, and one of the handshake era.
const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-06-18";

/// A tool, its arguments, and a text that each answer must contain.
#[derive(Debug, Clone)]
pub struct Target {
    tool: &'static str,
    arguments: &'static str,
    answer: &'static str,
    /// Whether clients begin with a handshake.
    pub legacy: bool,
    /// The server's HTTP path.
    pub path: &'static str,
}

impl Target {
    /// Returns haft's own cheapest tool.
    pub fn todo() -> Self {
        Self {
            tool: "todo_read",
            arguments: "{}",
            answer: r#""tasks":[]"#,
            legacy: false,
            path: "/mcp",
        }
    }

    /// Returns the peer's echo, with sixty bytes.
    pub fn echo() -> Self {
        Self {
            tool: "echo",
            arguments: r#"{"text":"sixty bytes that the server gives back just as they came in"}"#,
            answer: "sixty bytes that the server gives back just as they came in",
            ..Self::todo()
        }
    }

    /// The same tool under another name.
    #[must_use]
    pub fn named(mut self, tool: &'static str) -> Self {
        self.tool = tool;
        self
    }

    /// The same for a client that begins with a handshake.
    #[must_use]
    pub fn by_handshake(mut self) -> Self {
        self.legacy = true;
        self
    }

    /// Returns the request.
    pub fn body(&self, id: u64) -> String {
        let (tool, arguments) = (self.tool, self.arguments);
        let meta = if self.legacy {
            String::new()
        } else {
            format!(
                r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"{MODERN}","io.modelcontextprotocol/clientInfo":{{"name":"load","version":"1"}},"io.modelcontextprotocol/clientCapabilities":{{}}}},"#
            )
        };
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{{meta}"name":"{tool}","arguments":{arguments}}}}}"#
        )
    }

    /// Returns the first messages of a client of the handshake era.
    pub fn handshake() -> [String; 2] {
        [
            format!(
                r#"{{"jsonrpc":"2.0","id":"h","method":"initialize","params":{{"protocolVersion":"{LEGACY}","capabilities":{{}},"clientInfo":{{"name":"load","version":"1"}}}}}}"#
            ),
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned(),
        ]
    }

    /// Returns the headers of every request.
    pub fn headers(&self) -> Vec<(&'static str, &'static str)> {
        let mut headers = vec![
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        if self.legacy {
            headers.push(("mcp-protocol-version", LEGACY));
        } else {
            headers.extend([
                ("mcp-protocol-version", MODERN),
                ("mcp-method", "tools/call"),
                ("mcp-name", self.tool),
            ]);
        }
        headers
    }

    /// Aborts the measurement if the answer is not the expected one.
    pub fn check(&self, answer: &[u8]) {
        let answer = String::from_utf8_lossy(answer);
        assert!(
            answer.contains(self.answer),
            "an answer without {}: {answer}",
            self.answer
        );
    }
}
