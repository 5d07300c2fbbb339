// The haft that asked is killed with -9 while its request is pending. The user's decision in the console then takes effect
// once: in the same haft after a restart or, if two share a PostgreSQL database, in the remaining one.

import { KILLED, assert, choose, connected, fs, play, until } from "./stage.mjs";

/** Databases of the test, one per row; empty for a single haft that is restarted. */
const stores = (process.env.HAFT_STORES ?? "").split(" ").filter(Boolean);

const OLD = "old\n";
const card = (page) => page.locator(".card");
const approve = (page) => card(page).getByRole("button", { name: /^Approve/ });
const decided = (page, words) => page.locator(".decided").filter({ hasText: words }).waitFor();

/** The user's action, the status of request and outcome, the file afterwards, and the number of runs of the call. */
const ROWS = [
  {
    name: "approved", status: "done", outcome: "ok", log: `${OLD}line\n`, ran: 1,
    async act(page) {
      await approve(page).click();
      await decided(page, /Approved by \S+ from console/);
    },
  },
  {
    name: "denied", status: "denied", outcome: "denied", log: OLD, ran: 0,
    async act(page) {
      await choose(page, "Deny with a note");
      await page.getByLabel("Message to the model").fill("not into this file");
      await card(page).getByRole("button", { name: "Deny with this note" }).click();
      await decided(page, /Denied by \S+ from console/);
      await page.locator(".decided .said", { hasText: "not into this file" }).waitFor();
    },
    check(entry) {
      assert.equal(entry.decision.message, "not into this file");
      assert.match(entry.decision.from, /^console/);
      assert.match(entry.outcome.error.message, /not into this file/);
    },
  },
  {
    name: "edited", status: "done", outcome: "ok", log: `${OLD}as the person wrote it\n`, ran: 1,
    async act(page) {
      await card(page).getByRole("button", { name: /^Edit/ }).click();
      await page.getByLabel("content").fill("as the person wrote it\n");
      await card(page).getByRole("button", { name: "Approve with these edits" }).click();
      await decided(page, /Approved with edits by/);
    },
    check(entry, lines) {
      assert.deepEqual(JSON.parse(entry.edited_arguments), { ...ASKED, content: "as the person wrote it\n" });
      assert.deepEqual(JSON.parse(entry.arguments), ASKED);
      const ended = lines.filter((line) => line.type === "call_ended" && line.status === "ok");
      assert.equal(ended.length, 1);
      // Both digests are stored: the request has that of the original arguments, the record that of the executed ones.
      assert.match(entry.args_digest, /^[0-9a-f]{64}$/);
      assert.notEqual(ended[0].args_digest, entry.args_digest);
    },
  },
  {
    name: "changed file", status: "done", outcome: "error", log: "somebody else's\n", ran: 1,
    meanwhile: (server) => fs.writeFileSync(server.file("log.txt"), "somebody else's\n"),
    async act(page) {
      await approve(page).click();
      await decided(page, /Approved by/);
      await page.locator(".outcome", { hasText: "conflict" }).waitFor();
    },
    check: (entry) => assert.equal(entry.outcome.error.kind, "conflict"),
  },
  {
    name: "expired", status: "expired", log: OLD, ran: 0,
    settings: '[limits]\napproval_timeout_s = 8\n[policy]\non_approval_timeout = "deny"\n',
    async act(page) {
      await decided(page, "No decision in time");
      assert.equal(await approve(page).count(), 0);
    },
  },
];

const ASKED = { path: "log.txt", content: "line\n", mode: "append" };

/** Makes a request in a haft, kills it, and opens the card. */
async function killed(row, { server, page }) {
  fs.writeFileSync(server.file("log.txt"), OLD);
  const asker = stores.length ? server.another("other") : server;
  if (asker !== server) await asker.start();
  void asker.call("write_file", ASKED);
  const request = await until("the request waits", async () => (await server.api("GET", "/approvals")).value[0]);
  const opened = row.status === "expired" ? undefined : page.locator(".queue-row", { hasText: "log.txt" }).locator("a").click().then(() => approve(page).waitFor());
  await opened;
  assert.equal(request.status, "pending");
  await asker.stop("SIGKILL");
  row.meanwhile?.(server);
  if (asker === server) await again(server, page);
  if (!opened) await page.goto(`${server.url}/waiting/${request.id}`);
  return { asker, id: request.id };
}

/** Restarts the haft and logs in with the bar of the page that stayed open. */
async function again(server, page) {
  await page.getByText("The connection to haft is lost").waitFor();
  await server.start(server.port);
  await page.locator(".bar").getByLabel("Login link").fill(server.link);
  await page.locator(".bar").getByRole("button", { name: "Log in" }).click();
  await connected(page);
}

assert.ok(stores.length === 0 || stores.length === ROWS.length, `${stores.length} databases for ${ROWS.length} rows`);
for (const [index, row] of ROWS.entries()) {
  const store = stores.length ? ["-c", `store.url=${stores[index]}`] : [];
  const expected = stores.length ? [] : KILLED;
  await play({ name: row.name, args: store, settings: row.settings, expected }, async ({ server, page }) => {
    const { asker, id } = await killed(row, { server, page });
    await row.act(page);
    const entry = await until(`${row.name}: the outcome`, async () => {
      const { value } = await server.api("GET", `/approvals/${id}`);
      return value.status === row.status && (!row.outcome || value.outcome) && value;
    });
    assert.equal(entry.outcome?.status, row.outcome);
    // A later decision finds it decided.
    assert.ok([409, 410].includes((await server.api("POST", `/approvals/${id}/approve`, {})).status));
    assert.equal(server.read("log.txt"), row.log);
    const lines = [...new Set([asker, server])].flatMap((one) => one.record(entry.run));
    assert.equal(lines.filter((line) => line.type === "call_started").length, row.ran, JSON.stringify(lines));
    row.check?.(entry, lines);
  });
}
