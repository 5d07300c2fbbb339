// How calls look: one that waits for approval has a look of its own, and a program's exit code is no failure of haft's.

import { spawnSync } from "node:child_process";
import { accessible, assert, path, play, until, visit } from "./stage.mjs";

const settings = "[policy]\nask = [\"Edit(/asks/**)\"]\n";

await play({ name: "exit codes", settings, args: ["--profile", "trusted"] }, async ({ server, page }) => {
  const tests = await server.call("run_command", { command: "echo one test ran; echo expected 4, got 5 >&2; exit 3" });
  assert.equal(tests.status, "error", JSON.stringify(tests));

  // The first page counts it by itself, and lists no failed run.
  await visit(page, server, "/overview");
  const figure = page.locator(".figure", { hasText: "failed today" });
  await figure.getByText("+ 1 non-zero exit").waitFor();
  assert.equal(await figure.locator(".figure-value").textContent(), "0");
  await page.getByText("Nothing failed or was denied since midnight.").waitFor();
  await page.getByText("1 program ended with an exit code other than 0.").waitFor();
  await accessible(page, "an exit code on the overview");

  // Neither the list nor the run paint it red.
  await visit(page, server, "/runs");
  const row = page.locator(".run-row", { hasText: "HTTP API" });
  await row.waitFor();
  assert.equal(await row.locator(".run-wrong").textContent(), "");
  assert.equal((await row.boundingBox()).height, 36);
  await row.locator("a").click();
  await page.locator(".call-detail .badge", { hasText: "exit 3" }).waitFor();
  assert.equal(await page.locator(".call-detail .failure, .took.failed").count(), 0);
  await page.locator(".took.exit").waitFor();

  // The exit code comes first, then the two streams, told apart.
  const result = page.getByRole("region", { name: "result" });
  await result.getByText("exit code 3").waitFor();
  await result.getByRole("group", { name: "stdout" }).getByText("one test ran").waitFor();
  await result.getByRole("group", { name: "stderr" }).getByText("expected 4, got 5").waitFor();
  await accessible(page, "the result of a command");

  // A call that failed in itself is one.
  await server.call("read_file", { path: "none.txt" });
  await visit(page, server, "/overview");
  await until("one failed", async () => (await page.locator(".figure", { hasText: "failed today" }).locator(".figure-value").textContent()) === "1");
  const failed = page.getByRole("list", { name: "runs with a failed or denied call" }).locator(".run-row");
  // The run goes on, but that is not why it is listed.
  await failed.locator(".badge", { hasText: /^failed$/ }).waitFor();
  await failed.locator(".run-wrong", { hasText: "1 failed" }).waitFor();
});

await play({ name: "suspended", settings }, async ({ server, page }) => {
  const env = { PATH: process.env.PATH, HOME: server.root, HAFT_HOME: server.home, XDG_CONFIG_HOME: path.join(server.root, "config") };
  const left = spawnSync(process.env.HAFT_BIN, ["call", "write_file", "path=asks/a.txt", "content=a"], { cwd: path.join(server.root, "ws"), env, encoding: "utf8" });
  assert.equal(left.status, 4, left.stderr);
  await visit(page, server, "/runs");
  const row = page.locator(".run-row", { hasText: "haft call" });
  await row.locator(".badge.held", { hasText: "waits for approval" }).waitFor();
  assert.equal(await row.locator(".run-wrong").textContent(), "");
  await accessible(page, "a suspended run");
  await row.locator("a").click();
  await page.locator(".call-detail .badge.held", { hasText: "waits for approval" }).waitFor();
  await page.locator(".waited.suspended").waitFor();
  assert.equal(await page.locator(".took.failed").count(), 0);
  await page.getByText("It waits for approval:").getByRole("link", { name: "decide" }).waitFor();
  await accessible(page, "a suspended call");
  // Nothing of it counts as a failure.
  await visit(page, server, "/overview");
  await page.getByText("Nothing failed or was denied since midnight.").waitFor();
  await page.getByRole("region", { name: "pending" }).getByText("asks/a.txt").waitFor();
});
