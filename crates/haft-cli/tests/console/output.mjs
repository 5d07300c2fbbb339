// A command's output is visible while it runs: followed, searched, stderr distinguished; and the timeline shows the wait before it.

import { assert, fs, play, until, visit } from "./stage.mjs";

const settings = `
[policy]
commands = "ask"
[sandbox]
changes = "direct"
`;

await play({ settings }, async ({ server, page }) => {
  const health = (await server.api("GET", "/health")).value;
  if (!["full", "no-proc"].includes(health.sandbox.strength)) {
    console.log(`SKIPPED: the jail's strength here is ${health.sandbox.strength}; played to the end`);
    return;
  }
  const command = "i=0; while [ $i -lt 40 ]; do i=$((i+1)); echo line-$i '<b>bold</b>'; done; echo oops >&2; until [ -e go ]; do sleep 0.05; done; echo last";
  const made = server.call("run_command", { command, timeout_s: 60 });
  const [asked] = await until("it asks", async () => { const all = (await server.api("GET", "/approvals")).value; return all.length ? all : undefined; });
  await visit(page, server, `/runs/${asked.run}/${asked.call}`);
  await page.getByText("It waits for approval").waitFor();
  assert.equal(await page.locator(".bar-row .waited").count(), 1);
  await server.api("POST", `/approvals/${asked.id}/approve`, {});
  await page.locator(".terminal-lines .line", { hasText: "line-40 <b>bold</b>" }).waitFor();
  await page.locator(".terminal-lines .line.stderr", { hasText: "oops" }).waitFor();
  await page.getByLabel("Find in the output").fill("line-7");
  await page.locator(".terminal-lines .found", { hasText: "line-7" }).waitFor();
  await page.getByLabel("Find in the output").fill("");
  await page.getByRole("button", { name: "Follow" }).click();
  // It still runs; new output is followed.
  fs.writeFileSync(server.file("go"), "");
  await page.locator(".terminal-lines .line", { hasText: "last" }).waitFor();
  assert.equal((await made).status, "ok");
  await page.locator(".call-detail .badge", { hasText: "ok" }).waitFor();
  await page.locator(".bar-row .waited").waitFor();
});
