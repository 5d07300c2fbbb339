// Three coding agents at once under one settings file: their own calls wait in one inbox, a user decides, each agent gets the
// answer in its own format, and the record names agent, rule and user.

import { spawn } from "node:child_process";
import { assert, choose, path, play, until, visit } from "./stage.mjs";

const settings = `
[policy]
deny = ["Bash(shutdown *)"]
ask = [{ rule = "Bash(git push *)", reason = "pushes are looked at" }]
[hook]
ask = "haft"
`;

await play({ settings }, async ({ server, page }) => {
  const ws = path.join(server.root, "ws");
  const env = { PATH: process.env.PATH, HOME: server.root, HAFT_HOME: server.home, XDG_CONFIG_HOME: path.join(server.root, "config"), CI: "1" };

  /** Returns what an agent reads from its hook. */
  const hook = (agent, event) => new Promise((resolve) => {
    const child = spawn(process.env.HAFT_BIN, ["hook", agent], { cwd: ws, env, stdio: ["pipe", "pipe", "inherit"] });
    let said = "";
    child.stdout.on("data", (data) => { said += data; });
    child.on("close", () => resolve(said ? JSON.parse(said) : {}));
    child.stdin.end(JSON.stringify(event));
  });
  const claude = (command, id) => hook("claude", {
    session_id: "c-1", transcript_path: "/t", cwd: ws, permission_mode: "default", hook_event_name: "PreToolUse", tool_name: "Bash",
    tool_input: { command, description: "x" }, tool_use_id: id,
  });
  const codex = (command, id) => hook("codex", {
    session_id: "x-1", turn_id: "t", transcript_path: null, cwd: ws, hook_event_name: "PreToolUse", model: "m", permission_mode: "default",
    tool_name: "Bash", tool_input: { command }, tool_use_id: id,
  });
  const gemini = (command) => hook("gemini", {
    session_id: "g-1", transcript_path: "/t", cwd: ws, hook_event_name: "BeforeTool", timestamp: "2026-11-26T10:00:00Z",
    tool_name: "run_shell_command", tool_input: { command, description: "x" },
  });

  // The same rule denies all three without an approval request.
  assert.equal((await claude("shutdown now", "1")).hookSpecificOutput.permissionDecision, "deny");
  assert.equal((await codex("shutdown now", "1")).hookSpecificOutput.permissionDecision, "deny");
  assert.equal((await gemini("shutdown now")).decision, "deny");

  // The same rule asks about all three, at once.
  const answers = [claude("git push origin a", "2"), codex("git push origin b", "2"), gemini("git push origin c")];
  const open = async (fact) => {
    await page.locator(".queue-row:not(.settled)").filter({ hasText: fact }).locator("a").click();
    await page.locator(".card").filter({ hasText: fact }).first().waitFor();
  };
  const decided = (words) => page.locator(".decided").filter({ hasText: words }).waitFor();
  await until("three requests", async () => (await page.locator(".queue-row:not(.settled)").count()) === 3);
  await open("push origin a");
  await page.getByText("pushes are looked at").first().waitFor();
  await page.getByText("requested by Claude Code").waitFor();
  await page.locator(".card").getByRole("button", { name: /^Approve/ }).click();
  await decided(/Approved by \S+ from console/);
  await open("push origin b");
  await page.getByText("requested by Codex CLI").waitFor();
  await choose(page, "Deny with a note");
  await page.getByLabel("Message to the model").fill("not to b");
  await page.locator(".card").getByRole("button", { name: "Deny with this note" }).click();
  await decided(/Denied by \S+ from console/);
  await open("push origin c");
  await page.getByText("requested by Gemini CLI").waitFor();
  await page.locator(".card").getByRole("button", { name: /^Approve/ }).click();
  const [byClaude, byCodex, byGemini] = await Promise.all(answers);
  assert.equal(byClaude.hookSpecificOutput.permissionDecision, "allow", JSON.stringify(byClaude));
  assert.equal(byCodex.hookSpecificOutput.permissionDecision, "deny", JSON.stringify(byCodex));
  assert.match(byCodex.hookSpecificOutput.permissionDecisionReason, /not to b/);
  assert.equal(byGemini.decision, "allow", JSON.stringify(byGemini));

  // Three runs, each with its agent's name and session; the record says who decided, and by which rule.
  await visit(page, server, "/runs");
  for (const agent of ["Claude Code", "Codex CLI", "Gemini CLI"]) await page.locator(".run-row", { hasText: agent }).waitFor();
  const runs = (await server.api("GET", "/runs")).value;
  const by = (agent) => server.record(runs.find((run) => run.client?.startsWith(`${agent}, session `)).run);
  for (const agent of ["Claude Code", "Codex CLI", "Gemini CLI"]) {
    const line = by(agent).find((one) => one.approval);
    assert.match(line.rule, /Bash\(git push \*\)/, JSON.stringify(line));
    assert.ok(line.decided_by, JSON.stringify(line));
    assert.equal(line.origin, "hook");
  }
});
