// Runs of another process on the same state: listed as they happen, with their calls; a run whose record was changed is marked.

import { spawnSync } from "node:child_process";
import { assert, fs, path, play, until, visit } from "./stage.mjs";

await play({}, async ({ server, page }) => {
  fs.writeFileSync(server.file("a.txt"), "alpha\n");
  const env = { PATH: process.env.PATH, HOME: server.root, HAFT_HOME: server.home, XDG_CONFIG_HOME: path.join(server.root, "config") };
  const haft = (...args) => spawnSync(process.env.HAFT_BIN, args, { cwd: path.join(server.root, "ws"), env, encoding: "utf8" });
  await visit(page, server, "/runs");
  await page.getByText("No runs yet").waitFor();

  // It appears without a reload.
  assert.equal(haft("call", "read_file", "--args", '{"path":"a.txt"}').status, 0);
  await page.locator(".run-row", { hasText: "read_file a.txt" }).waitFor();
  const failed = haft("call", "read_file", "--args", '{"path":"none.txt"}', "--json");
  const { run } = JSON.parse(failed.stdout);
  await page.locator(".run-row", { hasText: "none.txt" }).waitFor();
  const listed = (await server.api("GET", "/runs?status=failed")).value;
  assert.deepEqual(listed.map((one) => [one.run, one.outcome, one.first.tool, one.first.argument]), [[run, "error", "read_file", "none.txt"]]);
  assert.ok(listed[0].duration_ms >= 0 && listed[0].ended > listed[0].started);
  await page.locator(".run-row", { hasText: "none.txt" }).click();
  await page.locator(".call-detail .failure", { hasText: "not_found" }).waitFor();

  // The record is edited: the page says where, and what that means.
  const record = path.join(server.home, "runs", run, "events.jsonl");
  fs.writeFileSync(record, fs.readFileSync(record, "utf8").replace("none.txt", "nine.txt"));
  await page.reload();
  await page.getByRole("alert").filter({ hasText: /does not verify at line \d+/ }).waitFor();
  await page.locator(".bar-row").first().waitFor();

  // Prometheus metrics count this process's calls, and require a token.
  await server.call("read_file", { path: "a.txt" });
  assert.equal((await fetch(`${server.url}/metrics`)).status, 401);
  const metrics = await fetch(`${server.url}/metrics`, { headers: { authorization: `Bearer ${server.token}` } });
  assert.match(metrics.headers.get("content-type"), /^text\/plain; version=0\.0\.4/);
  const text = await metrics.text();
  assert.match(text, /^haft_calls_total\{tool="read_file",status="ok"\} 1$/m);
  assert.match(text, /^haft_runs_open 1$/m);
  await until("the overview counts both", async () => {
    const { overview } = (await server.api("GET", "/overview")).value;
    return overview.today.calls === 3 && overview.today.failed === 1 && overview.clients.length === 1;
  });
});
