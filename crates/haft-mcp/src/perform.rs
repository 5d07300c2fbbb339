//! Performs each request and writes its result into bytes.

use haft::approval::ApprovalId;
use haft::call::{Origin, ToolCall};
use haft::result::Status;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use crate::core::{Core, write_tail};
use crate::era::{Era, Revision, SUPPORTED};
use crate::filter::MAX_SUBSCRIPTIONS;
use crate::job::{CallJob, Job, TaskJob, TaskRequest};
use crate::offer::{OfferRequest, Reference};
use crate::offered::{self, OfferResult};
use crate::outcome;
use crate::own::is_own;
use crate::prompt;
use crate::resource::{self, page};
use crate::run::{ClientCall, ClientCallEnd, ClientRun};
use crate::tasks::{self, TaskFormat};
use crate::tool_list::{self, ListOptions};
use crate::wire::RpcError;
use crate::wire::reply;

/// How long a client may cache the response to `server/discover`: it changes only with the binary.
const DISCOVER_TTL_MS: u64 = 3_600_000;
/// How long a client may cache a list; one that listens for changes learns of them sooner.
const LIST_TTL_MS: u64 = 5_000;

/// Takes the notifications that precede an answer.
type NotificationSender = Option<mpsc::Sender<Vec<u8>>>;

impl Core {
    /// Performs a job and writes its result; returns the approval that it waits for, if any.
    pub(crate) async fn perform(
        &self,
        out: &mut Vec<u8>,
        run: &ClientRun,
        job: Job,
        notes: NotificationSender,
    ) -> Result<Option<ApprovalId>, RpcError> {
        let page = self.limits.page;
        match job {
            Job::Call(call) => return self.call(out, run, call, notes).await,
            Job::Ping => out.extend_from_slice(b"{}"),
            Job::SetLevel(level) => {
                run.set_log(level);
                out.extend_from_slice(b"{}");
            }
            Job::Initialize(revision, ..) => self.write_handshake(out, run, revision).await,
            Job::Discover => self.write_discovery(out, run).await,
            Job::ListTools(cursor) => {
                out.push(b'{');
                let tools = run.session.tools();
                let options = ListOptions {
                    era: run.era,
                    is_only_task: &|tool| run.host_says_only_task(tool),
                };
                tool_list::write_page(out, &tools, cursor.as_deref(), page, &options)?;
                self.close(out, run.era, LIST_TTL_MS);
            }
            Job::ListTemplates(cursor) => {
                out.push(b'{');
                resource::write_templates(out, run, cursor.as_deref(), page).await?;
                self.close(out, run.era, LIST_TTL_MS);
            }
            Job::ListPrompts(cursor) => {
                out.push(b'{');
                prompt::write_page(out, run, cursor.as_deref(), page).await?;
                self.close(out, run.era, LIST_TTL_MS);
            }
            Job::ListResources(cursor) => {
                out.push(b'{');
                resource::write_page(out, run, cursor.as_deref(), page).await?;
                self.close(out, run.era, 0);
            }
            Job::GetPrompt(job) => return self.prompt(out, run, job, notes).await,
            Job::ReadResource(job) => return self.read(out, run, job, notes).await,
            Job::Complete(reference, params) => self.complete(out, run, reference, params).await?,
            Job::Subscribe(job) => {
                self.subscribe(out, run, job, notes).await?;
                out.extend_from_slice(b"{}");
            }
            Job::Unsubscribe(uri) => {
                check_subscriptions(run)?;
                run.subscribed().remove(&uri);
                out.extend_from_slice(b"{}");
            }
            Job::Task(job) => self.task(out, run, job)?,
            // The transports handle it: its answer is a stream.
            Job::Listen(_) => {
                let message = "subscriptions/listen is not served here";
                return Err(RpcError::new(RpcError::INTERNAL, message));
            }
        }
        Ok(None)
    }

    async fn call(
        &self,
        out: &mut Vec<u8>,
        run: &ClientRun,
        job: CallJob,
        notes: NotificationSender,
    ) -> Result<Option<ApprovalId>, RpcError> {
        let made = |job: &mut CallJob| {
            let (name, arguments) = (&mut job.name, &mut job.arguments);
            let call = ToolCall::new(std::mem::take(name), std::mem::take(arguments));
            ClientCall {
                call: call.from_origin(Origin::Mcp),
                internal: false,
            }
        };
        match run.call(made, job, notes).await? {
            ClientCallEnd::Asks(asked, state) => {
                outcome::write_asks(out, &asked, &state, run.session.run(), self.info());
                Ok(None)
            }
            ClientCallEnd::Task(task) => {
                task.write(out, TaskFormat::Created, self.raw_meta().as_deref());
                Ok(None)
            }
            ClientCallEnd::Outcome(outcome, then) => {
                outcome::write(out, &outcome, &then, run.era, self.info());
                let suspended = outcome.status == Status::Suspended;
                let waits = outcome.approval.filter(|_| suspended);
                Ok(waits.map(ApprovalId::new))
            }
        }
    }

    /// Performs a request about a task of this caller.
    fn task(&self, out: &mut Vec<u8>, run: &ClientRun, job: TaskJob) -> Result<(), RpcError> {
        let (tasks, meta) = (run.tasks(), self.raw_meta());
        let task = tasks.get(&job.id, run.task_caller());
        let task = task.ok_or_else(|| tasks::unknown(&job.id))?;
        match job.what {
            TaskRequest::Get => {
                task.write(out, TaskFormat::Whole, meta.as_deref());
                return Ok(());
            }
            TaskRequest::Update(responses) => task.update(responses),
            TaskRequest::Cancel => tasks.cancel(&task),
        }
        let meta = self.meta();
        offered::write_with(
            out,
            "{}",
            &[("resultType", "\"complete\""), ("_meta", &meta)],
        );
        Ok(())
    }

    /// Returns the `_meta` of a stateless result, as raw JSON.
    fn raw_meta(&self) -> Option<Box<RawValue>> {
        RawValue::from_string(self.meta()).ok()
    }

    async fn prompt(
        &self,
        out: &mut Vec<u8>,
        run: &ClientRun,
        job: CallJob,
        notes: NotificationSender,
    ) -> Result<Option<ApprovalId>, RpcError> {
        if let Some(skill) = prompt::find(run, &job.name).await? {
            out.push(b'{');
            prompt::write(out, run, &skill, &job.arguments).await?;
            self.close(out, run.era, 0);
            return Ok(None);
        }
        let wanted = OfferRequest::Prompt {
            name: job.name.clone(),
            arguments: job.arguments.clone(),
        };
        let given = offered::get(run, &wanted, job, notes).await?;
        self.write_result(out, run, given)
    }

    async fn read(
        &self,
        out: &mut Vec<u8>,
        run: &ClientRun,
        job: CallJob,
        notes: NotificationSender,
    ) -> Result<Option<ApprovalId>, RpcError> {
        let uri = job.name.clone();
        if is_own(&uri) {
            out.push(b'{');
            resource::write_contents(out, run, &uri, self.limits.resource_bytes).await?;
            self.close(out, run.era, resource::ttl_ms(&uri));
            return Ok(None);
        }
        if let Some(tool) = page::of(run, &uri) {
            out.push(b'{');
            page::write(out, &tool).await?;
            self.close(out, run.era, 0);
            return Ok(None);
        }
        let given = offered::get(run, &OfferRequest::Read { uri }, job, notes).await?;
        self.write_result(out, run, given)
    }

    /// Subscribes a handshake-era client to a resource's changes.
    async fn subscribe(
        &self,
        out: &mut Vec<u8>,
        run: &ClientRun,
        job: CallJob,
        notes: NotificationSender,
    ) -> Result<(), RpcError> {
        check_subscriptions(run)?;
        let uri = job.name.clone();
        if run.subscribed().contains_key(&uri) {
            return Ok(());
        }
        let wanted = OfferRequest::Subscribe { uri: uri.clone() };
        let given = offered::get(run, &wanted, job, notes).await?;
        if !matches!(given, OfferResult::Result(_)) {
            return self.write_result(out, run, given).map(drop);
        }
        let held = run.offer();
        let held = held.and_then(|offer| offer.follow(&run.session, &uri));
        let mut subscribed = run.subscribed();
        if subscribed.len() >= MAX_SUBSCRIPTIONS {
            let message = "too many subscriptions: end some first";
            return Err(RpcError::new(RpcError::BUSY, message));
        }
        subscribed.insert(uri, held);
        Ok(())
    }

    async fn complete(
        &self,
        out: &mut Vec<u8>,
        run: &ClientRun,
        reference: Result<Reference, RpcError>,
        params: Box<RawValue>,
    ) -> Result<(), RpcError> {
        if !offered::kinds(run).completions {
            let message = "this server completes no arguments";
            return Err(RpcError::new(RpcError::METHOD_NOT_FOUND, message));
        }
        let reference = reference?;
        // Nothing is known about values for a skill's arguments.
        let own = match &reference {
            Reference::Prompt(name) => prompt::find(run, name).await?.is_some(),
            Reference::Resource(uri) => is_own(uri),
        };
        if own {
            out.extend_from_slice(b"{\"completion\":{\"values\":[],\"total\":0,\"hasMore\":false}");
            self.close(out, run.era, 0);
            return Ok(());
        }
        let wanted = OfferRequest::Complete { reference, params };
        let given = offered::get_alone(run, &wanted).await?;
        self.write_result(out, run, given).map(|_| ())
    }

    /// Writes the host's result, with the members that this era's results need.
    fn write_result(
        &self,
        out: &mut Vec<u8>,
        run: &ClientRun,
        given: OfferResult,
    ) -> Result<Option<ApprovalId>, RpcError> {
        match given {
            OfferResult::Asks(result) => out.extend_from_slice(&result),
            OfferResult::Result(result) if run.era.is_modern() => {
                let meta = self.meta();
                let more = [
                    ("resultType", "\"complete\""),
                    ("ttlMs", "0"),
                    ("cacheScope", "\"private\""),
                    ("_meta", &meta),
                ];
                offered::write_with(out, result.get(), &more);
            }
            OfferResult::Result(result) => out.extend_from_slice(result.get().as_bytes()),
            OfferResult::Waits(approval) => {
                let message = format!(
                    "the request waits for approval {approval}: repeat it once that is decided"
                );
                return Err(RpcError::new(RpcError::INTERNAL, message));
            }
        }
        Ok(None)
    }

    async fn write_handshake(&self, out: &mut Vec<u8>, run: &ClientRun, revision: Revision) {
        out.extend_from_slice(b"{\"protocolVersion\":");
        reply::json(out, revision.as_str());
        out.push(b',');
        self.write_capabilities(out, run).await;
        out.extend_from_slice(b",\"serverInfo\":");
        out.extend_from_slice(self.info().get().as_bytes());
        out.push(b'}');
    }

    async fn write_discovery(&self, out: &mut Vec<u8>, run: &ClientRun) {
        out.extend_from_slice(b"{\"supportedVersions\":");
        reply::json(out, &SUPPORTED);
        out.push(b',');
        self.write_capabilities(out, run).await;
        self.close(out, Era::Modern, DISCOVER_TTL_MS);
    }

    async fn write_capabilities(&self, out: &mut Vec<u8>, run: &ClientRun) {
        let kinds = offered::kinds(run);
        out.extend_from_slice(
            b"\"capabilities\":{\"tools\":{\"listChanged\":true},\"logging\":{},\"resources\":",
        );
        out.extend_from_slice(match (kinds.resources, kinds.subscriptions) {
            (true, true) => b"{\"listChanged\":true,\"subscribe\":true}",
            (true, false) => b"{\"listChanged\":true}",
            _ => b"{}",
        });
        // Only for a client that could use it: one that is told of prompts asks for them.
        if prompt::any(run).await {
            run.note_prompts_announced();
            out.extend_from_slice(b",\"prompts\":");
            out.extend_from_slice(if kinds.prompts {
                b"{\"listChanged\":true}"
            } else {
                b"{}"
            });
        }
        if kinds.completions {
            out.extend_from_slice(b",\"completions\":{}");
        }
        if run.era.is_modern() {
            out.extend_from_slice(b",\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}");
        }
        out.push(b'}');
        if let Some(instructions) = self.instructions() {
            out.extend_from_slice(b",\"instructions\":");
            reply::json(out, instructions);
        }
    }

    /// Returns the `_meta` of a stateless result.
    fn meta(&self) -> String {
        let mut meta = b"{".to_vec();
        write_tail(&mut meta, self.info());
        meta.push(b'}');
        String::from_utf8(meta).unwrap_or_default()
    }

    /// Ends a result that clients may cache for a while.
    fn close(&self, out: &mut Vec<u8>, era: Era, ttl_ms: u64) {
        if era.is_modern() {
            out.extend_from_slice(b",\"resultType\":\"complete\",\"ttlMs\":");
            reply::json(out, &ttl_ms);
            // Lists depend on the caller.
            out.extend_from_slice(b",\"cacheScope\":\"private\",\"_meta\":{");
            write_tail(out, self.info());
            out.push(b'}');
        }
        out.push(b'}');
    }
}

/// Returns an error if changes of single resources are not reported.
fn check_subscriptions(run: &ClientRun) -> Result<(), RpcError> {
    if offered::kinds(run).subscriptions {
        return Ok(());
    }
    let message = "this server does not report changes of single resources";
    Err(RpcError::new(RpcError::METHOD_NOT_FOUND, message))
}
