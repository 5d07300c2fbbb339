// Every address of the router with the keyboard alone: reached by its letters, its links and the palette, traversed by Tab with a visible focus, and left again.

import { assert, fs, path, play, until } from "./stage.mjs";
import { addresses, pages } from "./routes.mjs";

/** Maximum number of Tab presses until a link has the focus. */
const STOPS = 200;

/** Returns the focused element, and whether the focus is visible. */
const focused = (page) => page.evaluate(() => {
  const element = document.activeElement;
  if (!element || element === document.body) return undefined;
  const box = element.getBoundingClientRect();
  const style = getComputedStyle(element);
  const seen = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
  const name = element.getAttribute("aria-label") || element.textContent?.trim().slice(0, 40) || element.id;
  return { name: `${element.tagName} ${name}`, seen: seen || element.id === "main", on: box.width > 0 && box.height > 0, main: element.closest("main") !== null };
});

await play({ args: ["--trust"] }, async ({ server, page }) => {
  fs.writeFileSync(server.file("a.txt"), "alpha\n");
  const skill = path.join(server.file(".agents/skills"), "release");
  fs.mkdirSync(skill, { recursive: true });
  fs.writeFileSync(path.join(skill, "SKILL.md"), "---\nname: release\ndescription: How a release is cut\n---\n# Release\n\nTag it.\n");
  const read = await server.call("read_file", { path: "a.txt" });
  await server.call("read_file", { path: "none.txt" });
  await server.call("write_memory", { content: "The tests need Python 3.12", scope: "project", tags: [] });
  const waits = server.call("write_file", { path: "b.txt", content: "two\n" });
  // They are listed in the order in which they came.
  await page.locator(".queue-row", { hasText: "b.txt" }).waitFor();
  const more = server.call("write_file", { path: "c.txt", content: "three\n" });
  await page.locator(".queue-row", { hasText: "c.txt" }).waitFor();

  const pathname = () => new URL(page.url()).pathname;
  const blur = () => page.evaluate(() => document.activeElement?.blur?.());
  /** Goes to a page by its two keys. */
  const leap = async ({ letter, name }) => {
    await blur();
    await page.keyboard.press("g");
    await page.keyboard.press(letter);
    await until(`g ${letter} goes to ${name}`, () => pathname() === `/${name}`);
    await page.locator("main").getByText("Loading …").first().waitFor({ state: "detached" });
  };
  /** Goes to an address below the current page: by a link that Tab reaches, otherwise by the keys of a list. */
  const descend = async (address) => {
    await page.locator(`main a[href="${address}"], main [role=listbox]`).first().waitFor();
    await blur();
    for (let step = 0; step < STOPS; step += 1) {
      await page.keyboard.press("Tab");
      const at = await page.evaluate(() => ({ link: document.activeElement?.getAttribute("href"), main: document.activeElement?.closest("main") !== null, list: document.activeElement?.getAttribute("role") === "listbox" }));
      if (at.main && at.link === address) {
        await page.keyboard.press("Enter");
        break;
      }
      if (at.list) {
        // Upwards, to the first.
        await until(`the list's keys go to ${address}`, async () => { await page.keyboard.press("ArrowUp"); return pathname() === address; });
        break;
      }
    }
    await until(`the keyboard goes to ${address}`, () => pathname() === address);
  };
  /** Tabs through the page: every stop is on the screen and shows its focus. */
  const walk = async (address) => {
    await blur();
    let within = 0;
    const stops = new Set();
    for (let step = 0; step < 40; step += 1) {
      await page.keyboard.press("Tab");
      const at = await focused(page);
      if (!at) break;
      assert.ok(at.on, `${address}: ${at.name} has the focus and no place on the screen`);
      assert.ok(at.seen, `${address}: ${at.name} has the focus, which cannot be seen`);
      within += at.main ? 1 : 0;
      stops.add(at.name);
    }
    assert.ok(within > 0, `${address}: Tab never comes into the page: ${[...stops].join(", ")}`);
    // Every page lists its keys.
    await blur();
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "keys" }).getByText("go to Overview").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog", { name: "keys" }).waitFor({ state: "hidden" });
  };
  const [request] = (await server.api("GET", "/approvals")).value;
  for (const { page: name, state, address } of addresses({ request: request.id, run: read.run, call: read.call, tool: "read_file", skill: "release" })) {
    await leap(pages.find((one) => one.name === name));
    const steps = state.split("/").filter(Boolean).length;
    for (let step = 1; step <= steps; step += 1) await descend(address.split("/").slice(0, 2 + step).join("/"));
    assert.equal(pathname(), address);
    await page.locator("main").getByText("Loading …").first().waitFor({ state: "detached" });
    await walk(address);
  }

  // The palette, also from within a field: a page, a tool, a run, a request.
  await page.keyboard.press("g");
  await page.keyboard.press("r");
  await page.keyboard.press("/");
  for (const [words, goes] of [["polic", /\/policy$/], ["read_file tool", /\/tools\/read_file$/], ["b.txt", /\/waiting\/ap-/], ["read_file a.txt http", /\/runs\/[^/]+$/]]) {
    await page.keyboard.press("ControlOrMeta+k");
    await page.getByRole("combobox", { name: /^Go to/ }).waitFor();
    await page.keyboard.type(words);
    await page.getByRole("listbox", { name: "matches" }).getByRole("option").first().waitFor();
    // The palette reads its lists when it opens: the matching entry may appear a moment later.
    if (/run|ap-/.test(String(goes))) await page.getByRole("option", { name: goes.source.includes("ap-") ? /pending/ : /^read_file a\.txt.*run$/ }).first().waitFor();
    await page.keyboard.press("Enter");
    await until(`the palette goes to ${words}`, () => goes.test(new URL(page.url()).pathname));
  }

  // In a run: the pending call is selected; f selects the failed call, j and k others, t the table, u goes back.
  await page.locator(".bar-row.current", { hasText: "write_file" }).waitFor();
  await page.keyboard.press("f");
  await page.locator(".bar-row.current", { hasText: "none.txt" }).waitFor();
  await page.keyboard.press("k");
  await page.locator(".bar-row.current", { hasText: "a.txt" }).waitFor();
  await page.keyboard.press("j");
  await page.locator(".bar-row.current", { hasText: "none.txt" }).waitFor();
  await page.keyboard.press("t");
  await page.getByRole("rowheader", { name: "read_file" }).first().waitFor();
  await page.keyboard.press("u");
  await page.locator(".run-row").first().waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await until("Enter opens a run", () => /\/runs\/./.test(new URL(page.url()).pathname));

  // All eligible requests are reviewed and approved by keys alone.
  await page.keyboard.press("g");
  await page.keyboard.press("w");
  await descend("/waiting/eligible");
  await page.locator(".eligible-list > li", { hasText: "c.txt" }).waitFor();
  await blur();
  for (const name of ["b.txt", "c.txt"]) {
    await page.keyboard.press("j");
    await page.locator(".eligible-list > li.open", { hasText: name }).waitFor();
    await page.locator(".eligible-list > li.open .path", { hasText: name }).waitFor();
  }
  await page.getByRole("button", { name: "Approve 2 of 2" }).waitFor();
  await page.keyboard.press("k");
  await page.locator(".eligible-list > li.open", { hasText: "b.txt" }).waitFor();
  await page.keyboard.press("x");
  await page.getByRole("button", { name: "Approve 1 of 2" }).waitFor();
  for (let step = 0; step < STOPS && !(await focused(page))?.name.includes("Approve 1 of 2"); step += 1) await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  assert.equal((await more).status, "ok");

  // The cards of a connection and of a proposed rule: denied and accepted by keys.
  const connects = server.call("run_command", { command: "curl -sS https://packages.example.org/x" });
  const connection = await until("it connects", async () => (await server.api("GET", "/approvals")).value.find((one) => one.tool === "connect"));
  const proposes = server.callAs("codex", "propose_rule", { rule: "Edit(/b.txt)", reason: "Again and again." });
  const proposal = await until("a rule is proposed", async () => (await server.api("GET", "/approvals")).value.find((one) => one.tool === "propose_rule"));
  await proposes;
  for (const request of [connection, proposal]) {
    await page.keyboard.press("g");
    await page.keyboard.press("w");
    await page.locator(".queue-row").first().waitFor();
    await until("j goes to it", async () => { await blur(); await page.keyboard.press("j"); return pathname() === `/waiting/${request.id}`; });
    await page.locator(`.card[aria-label$="${request.tool}"]`).waitFor();
    await walk(pathname());
    if (request === connection) {
      await page.keyboard.press("n");
      assert.equal((await connects).status, "error");
      continue;
    }
    await page.locator(".card.seen").waitFor();
    await page.keyboard.press("y");
    await page.getByLabel("The rule that will be stored").waitFor();
    // The panel takes the focus once it is drawn, so the first Tab may start elsewhere.
    await until("Tab goes to the word", async () => {
      await page.keyboard.press("Tab");
      return page.evaluate(() => document.activeElement?.labels?.[0]?.textContent?.startsWith("Type "));
    });
    await page.keyboard.type("propose_rule");
    await page.locator(".panel button.critical:enabled").waitFor();
    await page.keyboard.press("Enter");
    await until("the rule is kept", async () => (await server.api("GET", "/policy/rules")).value.length === 1);
  }

  // The pending requests are decided, too.
  await page.keyboard.press("g");
  await page.keyboard.press("w");
  await page.locator(".card .path", { hasText: "b.txt" }).waitFor();
  await page.keyboard.press("y");
  assert.equal((await waits).status, "ok");
});
