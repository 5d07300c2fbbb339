//! haft's client as the conformance suite starts it: the server's URL is the last argument, the scenario's name is in
//! `MCP_CONFORMANCE_SCENARIO`, and its data in `MCP_CONFORMANCE_CONTEXT`.

use std::any::Any;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use haft::future::BoxFuture;
use haft_mcp::client::http::{Endpoint, HttpWire};
use haft_mcp::client::oauth::{Fetch, OAuth, OAuthGrants, OAuthTerms, Vault, Visit};
use haft_mcp::client::pipe::LONGEST;
use haft_mcp::client::{
    CallReply, Client, ClientLimits, Dial, Io, OwnCapabilities, Respond, Responder, ToolRecord,
    default_values,
};
use http::header::{HOST, LOCATION};
use http::{HeaderValue, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use url::Url;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Connects to the address of a URL, wherever it is.
struct Anywhere(String, u16);

impl Dial for Anywhere {
    fn dial<'a>(&'a self, _: &'a str, _: u16, _: bool) -> BoxFuture<'a, io::Result<Box<dyn Io>>> {
        Box::pin(async move {
            let stream = TcpStream::connect((self.0.as_str(), self.1)).await?;
            Ok(Box::new(stream) as Box<dyn Io>)
        })
    }
}

/// Accepts every form: with its proposed values, or with a yes if it has none.
struct Yes;

impl Respond for Yes {
    fn respond<'a>(
        &'a self,
        _method: &'a str,
        params: Option<&'a RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, String>> {
        let mut content = params.map(default_values).unwrap_or_default();
        if content.is_empty() {
            content.insert("confirmed".into(), true.into());
        }
        let answer = to_raw_value(&json!({"action": "accept", "content": content}));
        Box::pin(std::future::ready(answer.map_err(|e| e.to_string())))
    }
}

/// Fetches from this machine, where the suite's authorization servers run.
struct Here;

impl Here {
    async fn send(request: Request<Vec<u8>>) -> Result<Response<Vec<u8>>, Failure> {
        let (mut head, body) = request.into_parts();
        let authority = head.uri.authority().ok_or("no host")?.clone();
        let stream = TcpStream::connect(authority.as_str()).await?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        head.headers
            .insert(HOST, HeaderValue::from_str(authority.as_str())?);
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
        head.uri = path.parse()?;
        let request = Request::from_parts(head, Full::new(Bytes::from(body)));
        let (head, body) = sender.send_request(request).await?.into_parts();
        let body = body.collect().await?.to_bytes().to_vec();
        Ok(Response::from_parts(head, body))
    }
}

impl Fetch for Here {
    fn fetch(&self, request: Request<Vec<u8>>) -> BoxFuture<'_, Result<Response<Vec<u8>>, String>> {
        Box::pin(async move { Self::send(request).await.map_err(|e| e.to_string()) })
    }
}

/// Agrees to everything: the suite's pages redirect back at once.
impl Visit for Here {
    fn redirect_uri(&self) -> String {
        "http://127.0.0.1:3000/callback".to_owned()
    }

    fn visit<'a>(&'a self, page: Url, _issuer: &'a str) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move {
            let failed = |e: &dyn std::fmt::Display| e.to_string();
            let request = Request::get(page.as_str()).body(Vec::new());
            let request = request.map_err(|e| failed(&e))?;
            let response = Self::send(request).await.map_err(|e| failed(&e))?;
            let back = response
                .headers()
                .get(LOCATION)
                .ok_or("the page sends nobody back")?;
            let back = back.to_str().map_err(|e| failed(&e))?;
            let back = Url::parse(back).map_err(|e| failed(&e))?;
            Ok(back.query().unwrap_or_default().to_owned())
        })
    }
}

/// Stores grants for the lifetime of this process.
#[derive(Default)]
struct Memory(Mutex<OAuthGrants>);

impl Vault for Memory {
    fn load(&self) -> Result<OAuthGrants, String> {
        Ok(self.0.lock().clone())
    }

    fn save(&self, grants: &OAuthGrants) -> Result<(), String> {
        *self.0.lock() = grants.clone();
        Ok(())
    }

    /// Nothing else changes them.
    fn version(&self) -> u64 {
        0
    }

    fn hold(&self) -> BoxFuture<'_, Result<Box<dyn Any + Send>, String>> {
        Box::pin(std::future::ready(Ok(Box::new(()) as _)))
    }
}

/// Returns how a client must identify itself in this scenario.
fn terms(context: &Value) -> OAuthTerms {
    let text = |name: &str| context[name].as_str().map(str::to_owned);
    let document = "https://conformance-test.local/client-metadata.json";
    OAuthTerms {
        client_id: text("client_id").or_else(|| Some(document.to_owned())),
        client_secret: text("client_secret"),
        issuer: None,
        scopes: Vec::new(),
    }
}

fn main() -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(run())
}

async fn run() -> Result<(), Failure> {
    let url = std::env::args().next_back().ok_or("no URL")?;
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    let context: Value = serde_json::from_str(&context).unwrap_or_default();
    let endpoint = Endpoint::new(&url, http::HeaderMap::new(), LONGEST)?;
    let dial = Anywhere(endpoint.host().to_owned(), endpoint.port());
    let vault = Arc::new(Memory::default());
    let oauth = OAuth::new(&url, terms(&context), Arc::new(Here), vault)?;
    let oauth = Arc::new(oauth.with_visit(Arc::new(Here)));
    let wire = HttpWire::known(endpoint, Box::new(dial), Arc::default(), Some(oauth));
    let wire = Arc::new(wire);
    let offers = OwnCapabilities {
        elicitation: true,
        ..OwnCapabilities::default()
    };
    let limits = ClientLimits::default();
    let client = Client::connect_offering(wire, None, limits, offers).await?;
    let session = Session {
        client,
        responder: Responder::new(offers, Arc::new(Yes)),
    };
    let done = session.play(&scenario, &context).await;
    session.client.close().await;
    done
}

struct Session {
    client: Client,
    responder: Responder,
}

impl Session {
    async fn play(&self, scenario: &str, context: &Value) -> Result<(), Failure> {
        let tools = self.client.tools().await?;
        match scenario {
            // The server only lists.
            "json-schema-ref-no-deref" | "request-metadata" => {}
            "json-schema-2020-12-preservation" => self.echo_schema(&tools).await?,
            "http-custom-headers" => {
                for call in context["toolCalls"].as_array().into_iter().flatten() {
                    let name = call["name"].as_str().unwrap_or_default();
                    self.call(name, &call["arguments"]).await?;
                }
            }
            _ => {
                for tool in &tools {
                    self.call(&tool.name, &arguments(tool)?).await?;
                }
            }
        }
        Ok(())
    }

    async fn call(&self, name: &str, arguments: &Value) -> Result<CallReply, Failure> {
        let responder = Some(self.responder.clone());
        let arguments = arguments.to_string();
        let reply = self
            .client
            .call_tool_with(name, &arguments, None, responder);
        Ok(reply.await?)
    }

    /// Sends a tool's schema back unchanged.
    async fn echo_schema(&self, tools: &[ToolRecord]) -> Result<(), Failure> {
        let focal = tools
            .iter()
            .find(|tool| tool.name == "json_schema_2020_12_tool");
        let focal: Value = serde_json::from_str(focal.ok_or("no such tool")?.raw.get())?;
        let arguments = json!({"schema": focal["inputSchema"]});
        self.call("json_schema_echo", &arguments).await.map(drop)
    }
}

/// Returns arguments that match a tool's schema: a value for each required field.
fn arguments(tool: &ToolRecord) -> Result<Value, Failure> {
    let tool: Value = serde_json::from_str(tool.raw.get())?;
    let schema = &tool["inputSchema"];
    let mut arguments = serde_json::Map::new();
    for name in schema["required"].as_array().into_iter().flatten() {
        let name = name.as_str().unwrap_or_default();
        let value = match schema["properties"][name]["type"].as_str() {
            Some("number" | "integer") => json!(2),
            Some("boolean") => json!(true),
            _ => json!("eu"),
        };
        arguments.insert(name.to_owned(), value);
    }
    Ok(arguments.into())
}
