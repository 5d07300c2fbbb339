// A thousand calls are pending at once: the page stays usable, and one of them can be found, decided and completed without the others.

import { PATIENCE, assert, connected, fs, play, until } from "./stage.mjs";

const COUNT = 1000;
/** Of the API's own run. */
const OWN = 100;
const name = (index) => `f-${String(index).padStart(4, "0")}.txt`;

await play({}, async ({ server, page }) => {
  const rows = page.locator(".queue-row");
  const says = (count, timeout = PATIENCE) => page.locator(".queue-count", { hasText: `${count.toLocaleString("en")} pending` }).waitFor({ timeout });
  const pathOnCard = (path) => page.locator(".card .path", { hasText: path }).waitFor();

  // They arrive while the page is open, through two servers, since one accepts fewer than a thousand calls at once; at most 100 per run.
  const other = server.another("home");
  await other.start();
  const args = (index) => ({ path: `many/${name(index)}`, content: `${index}` });
  for (let index = 0; index < COUNT - OWN; index += 1) {
    const at = index % 2 ? server : other;
    at.callAs(`client ${Math.floor(index / 100)}`, "write_file", args(index));
  }
  await says(COUNT - OWN, 6 * PATIENCE);
  const calls = Array.from({ length: OWN }, (_, index) => server.call("write_file", args(COUNT - OWN + index)));
  await says(COUNT, 6 * PATIENCE);
  const listed = (await server.api("GET", `/approvals?limit=${COUNT + 1}`)).value;
  // In the page's order: oldest first.
  listed.sort((a, b) => (a.created + a.id < b.created + b.id ? -1 : 1));
  assert.equal(listed.length, COUNT);
  assert.equal(new Set(listed.map((one) => one.fact.text)).size, COUNT);
  assert.equal(await page.title(), `(${COUNT}) Waiting · haft`);

  // Only the visible part is drawn, at the start and at the end of the list, and also after a reload.
  await page.goto(`${server.url}/waiting`);
  await connected(page);
  await says(COUNT);
  const few = async () => assert.ok((await rows.count()) < 60, `${await rows.count()} rows are drawn`);
  await few();
  await page.locator(".queue-list").evaluate((list) => list.scrollTo(0, list.scrollHeight));
  await rows.filter({ hasText: listed.at(-1).fact.text }).waitFor();
  await few();

  // j and k move one row down and up per press; the list follows.
  await page.locator(".queue-list").evaluate((list) => list.scrollTo(0, 0));
  // The page itself opens the one that can wait least, which need not be the oldest.
  await rows.filter({ hasText: listed[0].fact.text }).locator("a").click();
  await page.mouse.move(2, 2);
  await pathOnCard(listed[0].fact.text);
  for (let step = 0; step < 40; step += 1) await page.keyboard.press("j");
  await pathOnCard(listed[40].fact.text);
  await page.locator(".queue-row.current", { hasText: listed[40].fact.text }).waitFor();
  await few();
  for (let step = 0; step < 10; step += 1) await page.keyboard.press("k");
  await pathOnCard(listed[30].fact.text);

  // One is denied by its key, in its place.
  await page.keyboard.press("n");
  await page.locator(".decided", { hasText: "Denied by" }).waitFor();
  await says(COUNT - 1);

  // Another is searched for and approved.
  const wanted = Number(/(\d+)\.txt$/.exec(listed[COUNT - 50].fact.text)[1]);
  await page.keyboard.press("/");
  await page.keyboard.type("no such file");
  await page.getByText("No request matches").waitFor();
  await page.getByLabel("Filter the requests").fill(name(wanted));
  await until("one row fits", async () => (await rows.count()) === 1);
  await rows.locator("a").click();
  await pathOnCard(name(wanted));
  await page.locator(".card").getByRole("button", { name: /^Approve/ }).click();
  await page.locator(".decided", { hasText: "Approved by" }).waitFor();
  const outcome = await calls[wanted - (COUNT - OWN)];
  assert.equal(outcome.status, "ok", JSON.stringify(outcome));
  await page.getByLabel("Filter the requests").fill("");
  await page.mouse.move(2, 2);
  await says(COUNT - 2);
  await until("the title counts", async () => (await page.title()).startsWith(`(${COUNT - 2}) `));

  // Nothing else happened: one file on disk, all others are pending.
  assert.deepEqual(fs.readdirSync(server.file("many")), [name(wanted)]);
  assert.equal(server.read(`many/${name(wanted)}`), `${wanted}`);
  const left = (await server.api("GET", `/approvals?limit=${COUNT + 1}`)).value;
  assert.equal(left.length, COUNT - 2);
  await other.stop();
});
