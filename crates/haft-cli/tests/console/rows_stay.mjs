// No row moves by itself under the pointer: neither after the list has scrolled, nor when what is out of sight is decided elsewhere. A press that
// begins on one row and ends on another would be lost.

import { assert, play, until } from "./stage.mjs";

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

  // A press on the row that was just scrolled into view opens that one.
  await top("a.txt", 0);
  await sign("below").waitFor();
  const row = page.locator(".queue-row", { hasText: "k.txt" }).locator("a");
  await row.evaluate((link) => link.scrollIntoView({ block: "center" }));
  const box = await row.boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
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
});
