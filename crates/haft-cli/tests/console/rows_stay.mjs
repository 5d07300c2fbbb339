// No row moves by itself under the pointer: neither after the list has scrolled, nor when what is out of sight is decided elsewhere. A press that
// begins on one row and ends on another would be lost.

import { assert, play, until, visit } from "./stage.mjs";

const NAMES = "abcdefghijkl".split("").map((letter) => `${letter}.txt`);

await play({ height: 560 }, async ({ server, page }) => {
  const calls = [];
  for (const [index, name] of NAMES.entries()) {
    calls.push(server.call("write_file", { path: name, content: name }));
    await until(`${name} waits`, async () => (await server.api("GET", "/approvals")).value.length > index);
  }
  const sign = (where) => page.getByRole("button", { name: new RegExp(`more waits? ${where}`) });
  await page.mouse.move(2, 2);
  await sign("below").waitFor();

  /** Returns where a row is on the screen, after the list has scrolled to `to`, or at once. */
  const top = (name, to) => page.locator(".queue-list").evaluate((list, { name, to }) => {
    if (to !== undefined) list.scrollTo(0, to);
    return [...list.querySelectorAll(".queue-row")].find((row) => row.textContent.includes(name)).getBoundingClientRect().top;
  }, { name, to });
  const frames = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

  // The list's end: nothing waits below it any more.
  const end = await top("l.txt", 9_999);
  await sign("below").waitFor({ state: "detached" });
  await frames();
  assert.equal(await top("l.txt"), end, "a row moves after the list has scrolled to its end");

  // A press where a row was right after the scroll opens that row.
  await top("a.txt", 0);
  await sign("below").waitFor();
  const row = page.locator(".queue-row", { hasText: "k.txt" }).locator("a");
  const at = await row.evaluate((link) => {
    link.scrollIntoView({ block: "center" });
    const box = link.getBoundingClientRect();
    return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  });
  await page.mouse.move(at.x, at.y);
  await page.mouse.down();
  await frames();
  await page.mouse.up();
  await page.locator(".card.seen .path", { hasText: "k.txt" }).waitFor();

  // What is above is decided by another user while the pointer is on a row.
  const middle = await top("g.txt", 3 * 72);
  await sign("above").waitFor();
  await frames();
  assert.equal(await top("g.txt"), middle, "a row moves after the list has scrolled to its middle");
  for (const one of (await server.api("GET", "/approvals")).value.slice(0, 5)) await server.api("POST", `/approvals/${one.id}/deny`, {});
  await sign("above").waitFor({ state: "detached" });
  await frames();
  assert.equal(await top("g.txt"), middle, "a row moves when others are decided");
  for (const one of (await server.api("GET", "/approvals")).value) await server.api("POST", `/approvals/${one.id}/deny`, {});
  await Promise.all(calls);

  // So does the list of runs: a run that begins is counted below it until the pointer leaves, and the selection stays with its run.
  await server.callAs("first", "read_file", { path: "a.txt" });
  await visit(page, server, "/runs");
  const run = (name) => page.locator(".run-row", { hasText: name });
  await run("first").waitFor();
  await page.keyboard.press("j");
  await page.locator(".run-row.at", { hasText: "first" }).waitFor();
  await run("first").hover();
  const was = await run("first").boundingBox();
  await server.callAs("second", "read_file", { path: "a.txt" });
  await page.getByRole("button", { name: "1 new run" }).waitFor();
  assert.deepEqual(await run("first").boundingBox(), was, "a row of the runs moves under the pointer");
  await page.mouse.move(2, 2);
  await run("second").waitFor();
  await page.locator(".run-row.at", { hasText: "first" }).waitFor();
});
