// Nothing but the answer of `haft` lets a call run: if it crashes, is missing, is late or says what is not known, the call is denied.
import { spawn } from "node:child_process";

const PROGRAM = "@PROGRAM@";
const AGENT = "@AGENT@";
// A call may wait for its approval in haft's inbox; haft itself answers before this.
const DECIDE_MS = 600_000;
// What happened is only told; a call that ran does not wait long for that.
const REPORT_MS = 10_000;
const MAX_ANSWER = 16 * 1024 * 1024;

// Resolves to what `haft hook` prints for an event, as an object; rejects where there is none.
function run(event, limit) {
  return new Promise((resolve, reject) => {
    // haft takes the folder that it runs in for the workspace; one process of the agent may serve several.
    const child = spawn(PROGRAM, ["hook", AGENT], { cwd: event.cwd, stdio: ["pipe", "pipe", "pipe"] });
    const fail = (why) => {
      clearTimeout(timer);
      child.kill("SIGKILL");
      reject(new Error(`haft did not decide: ${why}`));
    };
    const timer = setTimeout(() => fail(`no answer within ${limit / 1000} s`), limit);
    const output = [];
    let size = 0;
    let errors = "";
    child.on("error", (error) => fail(error.message));
    // That the program does not read its input shows in how it ends.
    child.stdin.on("error", () => {});
    child.stderr.on("data", (data) => {
      errors = (errors + data).slice(-2000);
    });
    child.stdout.on("data", (data) => {
      size += data.length;
      if (size > MAX_ANSWER) {
        fail("its answer is too long");
        return;
      }
      output.push(data);
    });
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      const why = errors.trim();
      if (code !== 0) {
        fail(`it ended with ${signal ?? code}${why ? `: ${why}` : ""}`);
        return;
      }
      try {
        resolve(JSON.parse(Buffer.concat(output).toString("utf8")));
      } catch {
        fail(`its answer is not JSON${why ? `: ${why}` : ""}`);
      }
    });
    child.stdin.end(JSON.stringify(event));
  });
}

// What is decided about a call: `none`, `allow`, `ask` or `deny`, with a reason or another input. Never rejects.
async function decide(event) {
  try {
    const answer = await run({ hook_event_name: "PreToolUse", ...event }, DECIDE_MS);
    if (["none", "allow", "ask", "deny"].includes(answer?.decision)) {
      return { reason: "haft denied this call; its record says why", ...answer };
    }
    return { decision: "deny", reason: "haft did not decide: its answer is not known to this plugin; run `haft hook install` again" };
  } catch (error) {
    return { decision: "deny", reason: `${error.message}; the call is denied` };
  }
}

// Says what happened. A failure is haft's own; the agent goes on.
async function report(event) {
  try {
    await run(event, REPORT_MS);
  } catch {
    // The call has run: there is nothing to hold back.
  }
}

