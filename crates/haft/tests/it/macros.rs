//! `#[tool]` and `#[tools]`: schemas from arguments and results, description from the doc comment, functions that stay functions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use haft::spec::ToolSpec;
use haft::toolset::registry::RegistryError;
use haft::{
    CallContext, Context, Depth, ErrorKind, Executor, Intent, JsonSchema, Outcome, Policy, Session,
    Status, ToolCall, ToolError, ToolRegistry, ToolResult, Toolset, TypedTool, tool, tools,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Serialize)]
struct Weather {
    city: String,
    degrees: i64,
}

/// Look up the weather of a city.
///
/// Degrees are Celsius.
#[tool(title = "Weather", category = "web", idempotent, concurrency_safe)]
async fn get_weather(
    /// The city's name.
    city: String,
    plus: Option<i64>,
    context: &CallContext,
) -> Result<Weather, ToolError> {
    assert_eq!(context.origin().as_str(), "host");
    Ok(Weather {
        city,
        degrees: 20 + plus.unwrap_or(0),
    })
}

/// Says hello.
#[tool(name = "say.hello")]
async fn hello() -> Result<String, ToolError> {
    Ok("hello".to_owned())
}

/// Add two numbers.
#[tool]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// Do nothing.
#[tool]
fn rest() {}

/// Greet somebody.
#[tool]
fn greet(name: String) -> String {
    format!("hello {name}")
}

#[derive(Debug, Serialize, JsonSchema, PartialEq)]
#[schemars(crate = "haft::schemars")]
struct Balance {
    account: String,
    cents: i64,
}

/// Read a balance, if there is one.
#[tool]
async fn find(account: String) -> Option<Balance> {
    (account != "none").then_some(Balance { account, cents: 1 })
}

/// Read a number from a text.
#[tool]
fn parse(text: String) -> Result<i64, std::num::ParseIntError> {
    text.parse()
}

/// Read a number from a text, and say what it is for.
#[tool]
fn parse_age(text: String) -> haft::Result<i64> {
    text.parse().context("cannot read the age")
}

/// Give back whatever came.
#[tool]
fn raw(value: Value) -> ToolResult {
    ToolResult::text(value.to_string())
}

/// Is in no test.
#[tool]
#[cfg(not(test))]
fn never() {}

fn not_a_tool(a: i64) -> i64 {
    a
}

struct Bank {
    cents: AtomicI64,
}

#[tools]
impl Bank {
    fn new(cents: i64) -> Self {
        Self {
            cents: cents.into(),
        }
    }

    /// Move cents into the account.
    #[tool(category = "money", concurrency_safe)]
    async fn deposit(
        &self,
        /// How many.
        cents: i64,
        context: &CallContext,
    ) -> haft::Result<Balance> {
        Ok(Balance {
            account: context.principal().subject.to_string(),
            cents: self.cents.fetch_add(cents, Ordering::Relaxed) + cents,
        })
    }

    /// Read the balance.
    #[tool(name = "bank.balance")]
    fn balance(&self) -> i64 {
        self.cents.load(Ordering::Relaxed)
    }
}

/// Calls one tool of a registry.
async fn call(tools: ToolRegistry, name: &str, arguments: &str) -> Outcome {
    let session = Session::new(tools);
    let executor = Executor::new(Policy::workspace());
    executor
        .execute(&session, ToolCall::new(name, arguments))
        .await
}

/// Returns the structured content of an outcome.
fn data(outcome: &Outcome) -> Value {
    let data = outcome.data.as_ref().map(|raw| raw.get());
    data.map_or(Value::Null, |raw| serde_json::from_str(raw).unwrap())
}

/// Returns the spec of a tool.
fn spec(tools: &ToolRegistry, name: &str) -> ToolSpec {
    let snapshot = tools.snapshot();
    ToolSpec::clone(snapshot.entry(name).unwrap().spec())
}

#[tokio::test]
async fn a_function_becomes_a_tool_with_schema_and_result() {
    let tools = ToolRegistry::new()
        .with(get_weather)
        .unwrap()
        .with(hello)
        .unwrap();
    let spec = spec(&tools, "get_weather");
    assert_eq!(
        spec.description,
        "Look up the weather of a city.\n\nDegrees are Celsius."
    );
    assert_eq!(spec.title.as_deref(), Some("Weather"));
    assert!(spec.idempotent && spec.concurrency_safe);
    let city = &spec.input_schema["properties"]["city"];
    assert_eq!(city["type"], json!("string"));
    assert_eq!(city["description"], json!("The city's name."));
    assert_eq!(spec.input_schema["required"], json!(["city"]));

    let outcome = call(tools, "get_weather", r#"{"city":"Oslo"}"#).await;
    assert_eq!(data(&outcome), json!({"city": "Oslo", "degrees": 20}));
    let tools = ToolRegistry::new().with(hello).unwrap();
    assert_eq!(call(tools, "say.hello", "").await.text(), "hello");
}

#[tokio::test]
async fn a_tool_stays_the_function_that_it_was() {
    assert_eq!(add(2, 3), 5);
    assert_eq!([1, 2].map(|n| add(n, 1)), [2, 3]);
    assert_eq!(find("none".into()).await, None);
    assert!(parse("x".into()).is_err());
    assert_eq!(Bank::new(3).balance(), 3);
    assert_eq!(<add as TypedTool>::NAME, "add");
}

#[tokio::test]
async fn what_a_function_returns_becomes_content_or_structured_content() {
    let all = || {
        let registry = ToolRegistry::new().with(add).unwrap();
        let registry = registry.with(rest).unwrap().with(greet).unwrap();
        registry.with(find).unwrap().with(raw {}).unwrap()
    };
    let outcome = call(all(), "add", r#"{"a":2,"b":3}"#).await;
    assert_eq!(data(&outcome), json!({"result": 5}));
    let outcome = call(all(), "rest", "{}").await;
    assert!(outcome.is_ok() && outcome.content.is_empty() && outcome.data.is_none());
    let outcome = call(all(), "greet", r#"{"name":"ann"}"#).await;
    assert_eq!(
        (outcome.text().as_str(), data(&outcome)),
        ("hello ann", Value::Null)
    );
    let outcome = call(all(), "find", r#"{"account":"a"}"#).await;
    assert_eq!(data(&outcome), json!({"account": "a", "cents": 1}));
    assert!(call(all(), "find", r#"{"account":"none"}"#).await.is_ok());
    let outcome = call(all(), "raw", r#"{"value":[1]}"#).await;
    assert_eq!(outcome.text(), "[1]");
}

#[test]
fn the_output_schema_is_that_of_the_value_where_it_is_always_structured() {
    let registry = ToolRegistry::new().with(add).unwrap();
    let registry = registry.with(rest).unwrap().with(greet).unwrap();
    let registry = registry.with(find).unwrap().with(raw).unwrap();
    let registry = registry.with(get_weather).unwrap();
    let registry = registry.with_tools(Bank::new(0)).unwrap();
    let output = |name: &str| spec(&registry, name).output_schema.map(|s| (*s).clone());
    let balance = output("deposit").unwrap();
    assert_eq!(balance["type"], "object");
    assert_eq!(balance["required"], json!(["account", "cents"]));
    for wrapped in ["add", "bank.balance"] {
        let schema = output(wrapped).unwrap();
        assert_eq!(
            schema["properties"]["result"]["type"], "integer",
            "{wrapped}"
        );
        assert_eq!(schema["required"], json!(["result"]), "{wrapped}");
    }
    // Text is not structured content, `()` has none, and a type without a schema declares none.
    for without in ["rest", "greet", "find", "raw", "get_weather"] {
        assert_eq!(output(without), None, "{without}");
    }
}

#[tokio::test]
async fn an_error_of_any_type_is_a_failure_with_its_source() {
    let registry = || {
        let registry = ToolRegistry::new().with(parse).unwrap();
        registry.with(parse_age).unwrap()
    };
    let text = |outcome: &Outcome| outcome.error.as_ref().unwrap().message.clone();
    let plain = call(registry(), "parse", r#"{"text":"x"}"#).await;
    assert_eq!(text(&plain), "invalid digit found in string");
    let outcome = call(registry(), "parse_age", r#"{"text":"x"}"#).await;
    assert_eq!(text(&outcome), "cannot read the age");
    assert_eq!(outcome.error.unwrap().kind, ErrorKind::Failed);

    let error = parse_age("x".into()).unwrap_err();
    let source = std::error::Error::source(&error).unwrap();
    assert!(source.is::<std::num::ParseIntError>());
    let own = Err::<(), _>(ToolError::not_found("account 7").with_advice("list them"));
    let own = own.context("cannot close the account").unwrap_err();
    assert_eq!(own.message(), "cannot close the account: account 7");
    assert_eq!(
        (own.kind(), own.advice()),
        (ErrorKind::NotFound, Some("list them"))
    );
}

#[tokio::test]
async fn methods_share_the_value_they_are_called_on() {
    let bank = Arc::new(Bank::new(5));
    let tools = ToolRegistry::new().with_tools(Arc::clone(&bank)).unwrap();
    assert_eq!(spec(&tools, "deposit").category.as_deref(), Some("money"));
    let outcome = call(tools, "deposit", r#"{"cents":2}"#).await;
    assert_eq!(data(&outcome), json!({"account": "user", "cents": 7}));
    assert_eq!(bank.balance(), 7);
    let tools = ToolRegistry::new().with_tools(bank).unwrap();
    assert_eq!(
        data(&call(tools, "bank.balance", "").await),
        json!({"result": 7})
    );
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "haft::schemars")]
struct Open {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "haft::schemars")]
struct Gathers {
    #[serde(flatten)]
    rest: BTreeMap<String, i64>,
}

struct Opens;
struct Sums;

impl TypedTool for Opens {
    const NAME: &'static str = "open";
    const DESCRIPTION: &'static str = "Open it.";
    type Input = Open;

    fn intent(&self, _: &Open, _: Depth) -> Result<Intent, ToolError> {
        Ok(Intent::call_only())
    }

    async fn run(&self, input: Open, _: &CallContext) -> Result<ToolResult, ToolError> {
        Ok(ToolResult::text(input.name))
    }
}

impl TypedTool for Sums {
    const NAME: &'static str = "sum";
    const DESCRIPTION: &'static str = "Add all numbers.";
    type Input = Gathers;

    fn intent(&self, _: &Gathers, _: Depth) -> Result<Intent, ToolError> {
        Ok(Intent::call_only())
    }

    async fn run(&self, input: Gathers, _: &CallContext) -> Result<ToolResult, ToolError> {
        ToolResult::data(&input.rest.values().sum::<i64>())
    }
}

#[tokio::test]
async fn arguments_that_a_tool_does_not_name_are_refused_unless_it_gathers_them() {
    let tools = || {
        let registry = ToolRegistry::new().with(Opens).unwrap();
        registry.with(Arc::new(Sums)).unwrap().with(add).unwrap()
    };
    let refused = [
        ("open", r#"{"name":"a","mode":"r"}"#),
        ("add", r#"{"a":1,"b":2,"c":3}"#),
    ];
    for (name, arguments) in refused {
        let outcome = call(tools(), name, arguments).await;
        assert_eq!(outcome.status, Status::Error, "{name}");
        let kind = outcome.error.unwrap().kind;
        assert_eq!(kind, ErrorKind::InvalidArguments, "{name}");
    }
    assert!(call(tools(), "open", r#"{"name":"a"}"#).await.is_ok());
    let sum = call(tools(), "sum", r#"{"a":1,"b":2}"#).await;
    assert_eq!(data(&sum), json!({"result": 3}));
}

#[test]
fn a_function_that_is_no_tool_is_refused_by_name() {
    let refused = ToolRegistry::new().with(not_a_tool).unwrap_err();
    let RegistryError::NotTool(name) = refused else {
        panic!("{refused}");
    };
    assert!(name.ends_with("not_a_tool"), "{name}");
}

#[test]
fn functions_are_collected_when_a_host_asks() {
    let names: Vec<_> = haft::tool::collected()
        .unwrap()
        .iter()
        .map(|t| t.spec().name.to_string())
        .collect();
    assert!(names.contains(&"get_weather".to_owned()) && names.contains(&"say.hello".to_owned()));
}
