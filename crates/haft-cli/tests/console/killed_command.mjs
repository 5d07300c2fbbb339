// haft is killed with -9 after a command has ended and while its changes wait for an approval. Restarted on the same home, it
// shows the diff; after the approval the file is as shown, and the run's page can undo it. Changes that the host made meanwhile stay.

import { spawnSync } from "node:child_process";
import { KILLED, assert, connected, fs, play, until, visit } from "./stage.mjs";

const BEFORE = "one\ntwo\nthree\n";
const AFTER = "one\n2\nthree\n";
const COMMAND = "sed -i s/two/2/ tracked.txt";
const card = (page) => page.locator(".card");
const approve = (page) => card(page).getByRole("button", { name: /^Approve/ });

/** Creates a repository with one tracked file. */
function repository(server) {
  fs.writeFileSync(server.file("tracked.txt"), BEFORE);
  for (const words of [["init", "-q"], ["add", "tracked.txt"], ["-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-qm", "first"]]) {
    const git = spawnSync("git", words, { cwd: server.file(""), env: { PATH: process.env.PATH, HOME: server.root }, encoding: "utf8" });
    assert.equal(git.status, 0, git.stderr);
  }
}

/** Runs the command, kills haft while its changes are pending, restarts it, and opens the card. */
async function killed({ server, page }, meanwhile) {
  repository(server);
  void server.call("run_command", { command: COMMAND });
  const request = await until("the request waits", async () => (await server.api("GET", "/approvals")).value[0]);
  assert.deepEqual([request.tool, server.read("tracked.txt")], ["apply_changes", BEFORE]);
  await server.stop("SIGKILL");
  await page.getByText("The connection to haft is lost").waitFor();
  meanwhile?.();
  await server.start(server.port);
  await page.locator(".bar").getByLabel("Login link").fill(server.link);
  await page.locator(".bar").getByRole("button", { name: "Log in" }).click();
  await connected(page);
  await visit(page, server, `/waiting/${request.id}`);
  await card(page).getByRole("group", { name: "the command" }).getByText(COMMAND).waitFor();
  await card(page).locator("td.out", { hasText: "two" }).waitFor();
  await card(page).locator("td.in", { hasText: "2" }).waitFor();
  return request;
}

/** Returns the request's outcome. */
const outcome = (server, request) => until("the outcome", async () => {
  const { value } = await server.api("GET", `/approvals/${request.id}`);
  return value.status === "done" && value.outcome;
});

await play({ name: "approved and undone", expected: KILLED }, async ({ server, page }) => {
  const request = await killed({ server, page });
  assert.equal(server.read("tracked.txt"), BEFORE);
  await approve(page).click();
  await page.locator(".decided", { hasText: /Approved by \S+ from console/ }).waitFor();
  assert.equal((await outcome(server, request)).status, "ok");
  assert.equal(server.read("tracked.txt"), AFTER);

  await card(page).getByRole("link", { name: "open run" }).click();
  await visit(page, server, `/runs/${request.run}`);
  const changes = page.getByRole("region", { name: "changes" });
  await changes.locator("details.file", { hasText: "tracked.txt" }).locator("td.in", { hasText: "2" }).waitFor();
  await changes.getByRole("button", { name: "Undo…" }).click();
  const box = page.getByRole("group", { name: "undo this run" });
  await box.locator("li", { hasText: "tracked.txt" }).getByText("restore").waitFor();
  assert.equal(server.read("tracked.txt"), AFTER);
  await box.getByRole("button", { name: "Undo", exact: true }).click();
  await box.getByText("Undone").waitFor();
  assert.equal(server.read("tracked.txt"), BEFORE);
});

await play({ name: "changed on the host", expected: KILLED }, async ({ server, page }) => {
  const mine = "one\ntwo\nthree, by hand\n";
  const request = await killed({ server, page }, () => fs.writeFileSync(server.file("tracked.txt"), mine));
  await approve(page).click();
  await page.locator(".outcome", { hasText: "conflict" }).waitFor();
  const came = await outcome(server, request);
  assert.deepEqual([came.status, came.error.kind], ["error", "conflict"]);
  assert.match(came.error.message, /tracked\.txt changed after it was shown/);
  assert.equal(server.read("tracked.txt"), mine);
  // Nothing was applied: the run has nothing to show or undo.
  const { value } = await server.api("GET", `/runs/${request.run}/changes`);
  assert.deepEqual(value.changes, []);
});
