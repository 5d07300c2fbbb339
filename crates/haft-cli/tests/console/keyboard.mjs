// A user decides with the keyboard alone: moves, looks, takes a decision back, decides.

import { assert, play, until } from "./stage.mjs";

await play({}, async ({ server, page }) => {
  const first = server.call("write_file", { path: "one.txt", content: "one" });
  await page.locator(".queue-row", { hasText: "one.txt" }).waitFor();
  const second = server.call("write_file", { path: "two.txt", content: "two" });
  await page.locator(".queue-row", { hasText: "two.txt" }).waitFor();
  const third = server.call("write_file", { path: "three.txt", content: "three" });
  await page.locator(".queue-row", { hasText: "three.txt" }).waitFor();
  const card = (name) => page.locator(".card .path", { hasText: name }).waitFor();
  await card("one.txt");

  // j and k move, and the address follows.
  await page.keyboard.press("j");
  await card("two.txt");
  assert.match(page.url(), /\/waiting\/ap-/);
  await page.keyboard.press("k");
  await card("one.txt");

  // ? shows all keys, Escape closes it.
  await page.keyboard.press("?");
  const keys = page.getByRole("dialog");
  await keys.getByText("approve for this session").waitFor();
  await page.keyboard.press("Escape");
  await keys.waitFor({ state: "hidden" });

  // An approval that is taken back within its half-second is never sent.
  await page.keyboard.press("y");
  await page.getByText("Approving").waitFor();
  await page.keyboard.press("Escape");
  await page.locator(".card").getByRole("button", { name: /^Approve/ }).waitFor();
  const still = (await server.api("GET", "/approvals")).value;
  assert.equal(still.length, 3);
  assert.equal(server.read("one.txt"), undefined);

  // An approval that is sent. Its response is slow, and the next decision does not wait for it.
  let release;
  const held = new Promise((resolve) => { release = resolve; });
  await page.route("**/approvals/*/approve", async (route) => {
    const response = await route.fetch();
    await held;
    await route.fulfill({ response });
  }, { times: 1 });
  await page.keyboard.press("y");
  assert.equal((await first).status, "ok");
  assert.equal(server.read("one.txt"), "one");
  await page.locator(".decided", { hasText: "Approved" }).waitFor();

  // The next request opens by itself, below the verdict; for a moment, no press decides about it.
  await card("two.txt");
  await page.locator(".decided.pinned", { hasText: "one.txt" }).waitFor();
  await page.locator(".card button.deny:enabled").waitFor();

  // A denial.
  await page.keyboard.press("n");
  assert.equal((await second).status, "denied");
  release();

  // Edit, by keys alone: the form takes the focus, Tab moves through it, Enter on its button decides.
  await card("three.txt");
  await page.locator(".card button.deny:enabled").waitFor();
  await page.keyboard.press("e");
  await until("the form has the focus", () => page.evaluate(() => document.activeElement?.closest(".panel") !== null));
  await page.keyboard.press("Tab");
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.type("thrice, with y and n typed as letters");
  await page.keyboard.press("Tab");
  for (let step = 0; step < 6; step += 1) {
    if (await page.evaluate(() => document.activeElement?.textContent?.startsWith("Approve with"))) break;
    await page.keyboard.press("Tab");
  }
  await page.keyboard.press("Enter");
  assert.equal((await third).status, "ok");
  assert.equal(server.read("three.txt"), "thrice, with y and n typed as letters");
});
