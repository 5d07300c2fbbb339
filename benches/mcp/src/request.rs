//! What is asked: one tool call in the stateless era, as HTTP and as a line.

/// The protocol's version.
const VERSION: &str = "2026-07-28";

/// A tool, its arguments, and what must be in each answer.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    tool: &'static str,
    arguments: &'static str,
    answer: &'static str,
}

impl Target {
    /// haft's own cheapest tool.
    pub(crate) fn todo() -> Self {
        Self {
            tool: "todo_read",
            arguments: "{}",
            answer: r#""tasks":[]"#,
        }
    }

    /// The peer's echo, with sixty bytes.
    pub(crate) fn echo() -> Self {
        Self {
            tool: "echo",
            arguments: r#"{"text":"sixty bytes that the server gives back just as they came in"}"#,
            answer: "sixty bytes that the server gives back just as they came in",
        }
    }

    pub(crate) fn body(&self, id: u64) -> String {
        let (tool, arguments) = (self.tool, self.arguments);
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"{VERSION}","io.modelcontextprotocol/clientInfo":{{"name":"load","version":"1"}},"io.modelcontextprotocol/clientCapabilities":{{}}}},"name":"{tool}","arguments":{arguments}}}}}"#
        )
    }

    pub(crate) fn headers(&self) -> [(&'static str, &'static str); 5] {
        [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", VERSION),
            ("mcp-method", "tools/call"),
            ("mcp-name", self.tool),
        ]
    }

    /// Ends the measurement where the answer is not the one asked for.
    pub(crate) fn check(&self, answer: &[u8]) {
        let answer = String::from_utf8_lossy(answer);
        assert!(
            answer.contains(self.answer),
            "an answer without {}: {answer}",
            self.answer
        );
    }
}
