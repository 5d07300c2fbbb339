// Every page with the keyboard alone: reached by its letters and by the palette, gone through by Tab with the focus always seen, left again.

import { assert, fs, path, play, until } from "./stage.mjs";

const PAGES = [["o", "overview"], ["w", "waiting"], ["r", "runs"], ["t", "tools"], ["s", "skills"], ["m", "memory"], ["p", "policy"], ["h", "health"]];

/** What has the focus, and whether it can be seen that it has. */
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
  await server.call("read_file", { path: "a.txt" });
  await server.call("read_file", { path: "none.txt" });
  await server.call("write_memory", { content: "The tests need Python 3.12", scope: "project", tags: [] });
  const waits = server.call("write_file", { path: "b.txt", content: "two\n" });
  await page.locator(".queue-row", { hasText: "b.txt" }).waitFor();

  for (const [letter, name] of PAGES) {
    await page.locator("body").press("Escape");
    await page.evaluate(() => document.activeElement?.blur?.());
    await page.keyboard.press("g");
    await page.keyboard.press(letter);
    await until(`g ${letter} goes to ${name}`, () => new URL(page.url()).pathname.startsWith(`/${name}`));
    await page.locator("main").getByText("Reading …").waitFor({ state: "detached" });
    // Tab goes through the page: whatever it stops at is on the screen and shows that it has the focus.
    let within = 0;
    const stops = new Set();
    for (let step = 0; step < 40; step += 1) {
      await page.keyboard.press("Tab");
      const at = await focused(page);
      if (!at) break;
      assert.ok(at.on, `${name}: ${at.name} has the focus and no place on the screen`);
      assert.ok(at.seen, `${name}: ${at.name} has the focus, which cannot be seen`);
      within += at.main ? 1 : 0;
      stops.add(at.name);
    }
    assert.ok(within > 0, `${name}: Tab never comes into the page: ${[...stops].join(", ")}`);
    // Every page says its keys.
    await page.evaluate(() => document.activeElement?.blur?.());
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "keys" }).getByText("go to Overview").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog", { name: "keys" }).waitFor({ state: "hidden" });
  }

  // The palette, also from within a field: a page, a tool, a run, a request.
  await page.keyboard.press("g");
  await page.keyboard.press("r");
  await page.keyboard.press("/");
  for (const [words, goes] of [["polic", /\/policy$/], ["read_file tool", /\/tools\/read_file$/], ["b.txt", /\/waiting\/ap-/], ["read_file a.txt http", /\/runs\/[^/]+$/]]) {
    await page.keyboard.press("ControlOrMeta+k");
    await page.getByRole("combobox", { name: /^Go to/ }).waitFor();
    await page.keyboard.type(words);
    await page.getByRole("listbox", { name: "what fits" }).getByRole("option").first().waitFor();
    // Lists are read when the palette opens: the one that fits may come a moment later.
    if (/run|ap-/.test(String(goes))) await page.getByRole("option", { name: goes.source.includes("ap-") ? /pending/ : /^read_file a\.txt.*run$/ }).first().waitFor();
    await page.keyboard.press("Enter");
    await until(`the palette goes to ${words}`, () => goes.test(new URL(page.url()).pathname));
  }

  // In a run: what waits is selected; the failed call by f, others by j and k, the table by t, back by u.
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

  // What waits is decided, too.
  await page.keyboard.press("g");
  await page.keyboard.press("w");
  await page.locator(".card .path", { hasText: "b.txt" }).waitFor();
  await page.keyboard.press("y");
  assert.equal((await waits).status, "ok");
});
