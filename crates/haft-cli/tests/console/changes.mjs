// A run's page shows its changes, each file with its diff, and can undo them: first the plan, then the undo or the conflict.

import { accessible, assert, fs, play, until, visit } from "./stage.mjs";

const COMMAND = "sed -i s/two/2/ kept.txt; rm gone.txt; chmod +x kept.txt";
const BEFORE = { "kept.txt": "one\ntwo\nthree\n", "gone.txt": "still here\n" };

/** Makes a run with two calls that change files, and returns its id. */
async function changed(server) {
  for (const [name, text] of Object.entries(BEFORE)) fs.writeFileSync(server.file(name), text);
  assert.equal((await server.call("write_file", { path: "new.txt", content: "first\nsecond\n" })).status, "ok");
  const outcome = await server.call("run_command", { command: COMMAND });
  assert.equal(outcome.status, "ok", JSON.stringify(outcome));
  return outcome.run;
}

const changesOf = (page) => page.getByRole("region", { name: "changes" });
const file = (page, name) => changesOf(page).locator("details.file", { hasText: name });
const undoButton = (page) => changesOf(page).getByRole("button", { name: "Undo…" });

await play({ name: "undo", args: ["--profile", "trusted"], expected: [/status of 409/] }, async ({ server, page }) => {
  const run = await changed(server);
  await visit(page, server, `/runs/${run}`);
  await changesOf(page).getByText("3 files").waitFor();
  for (const [name, action] of [["new.txt", "created"], ["kept.txt", "modified"], ["gone.txt", "deleted"]]) {
    await file(page, name).locator(".action", { hasText: action }).waitFor();
  }
  await file(page, "kept.txt").locator("td.out", { hasText: "two" }).waitFor();
  await file(page, "kept.txt").locator("td.in", { hasText: "2" }).waitFor();
  await file(page, "kept.txt").getByText("mode 644 → 755").waitFor();
  await file(page, "new.txt").getByText("second").waitFor();
  await accessible(page, "changes of a run");

  // The plan shows what the undo would do, and changes nothing. Escape closes it.
  await undoButton(page).click();
  const box = page.getByRole("group", { name: "undo this run" });
  await box.getByText("Undoing this run would change 3 paths").waitFor();
  await box.locator("li", { hasText: "new.txt" }).getByText("remove").waitFor();
  await box.locator("li", { hasText: "gone.txt" }).getByText("restore").waitFor();
  await accessible(page, "the plan of an undo");
  await page.keyboard.press("Escape");
  await box.waitFor({ state: "detached" });
  assert.equal(server.read("gone.txt"), undefined);
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), "Undo…");

  // Changed on the host since: nothing is undone, and the page says which file and why.
  const after = server.read("kept.txt");
  fs.writeFileSync(server.file("kept.txt"), "mine\n");
  await undoButton(page).click();
  await box.getByText("Nothing was undone").waitFor();
  await box.locator("li", { hasText: "kept.txt" }).getByText("it was changed after the run").waitFor();
  await accessible(page, "the conflict of an undo");
  assert.equal(server.read("kept.txt"), "mine\n");
  assert.equal(server.read("new.txt"), "first\nsecond\n");
  fs.writeFileSync(server.file("kept.txt"), after);
  await box.getByRole("button", { name: "Close" }).click();

  // With the keyboard alone: one call, whose page shows only its own changes.
  await page.keyboard.press("Tab");
  await visit(page, server, `/runs/${run}/call-2`);
  await changesOf(page).getByText("2 files").waitFor();
  assert.equal(await file(page, "new.txt").count(), 0);
  await undoButton(page).focus();
  await page.keyboard.press("Enter");
  const plan = page.getByRole("group", { name: "undo this call" });
  await plan.getByText("Undoing this call would change 2 paths").waitFor();
  // The list, then the button, once the plan has the focus.
  await page.waitForFunction(() => document.activeElement?.getAttribute("aria-label") === "undo this call");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await plan.getByText("Undone").waitFor();
  await plan.locator("li", { hasText: "gone.txt" }).getByText("restored").waitFor();
  await accessible(page, "an undo that is done");
  for (const [name, text] of Object.entries(BEFORE)) assert.equal(server.read(name), text);
  assert.equal(fs.statSync(server.file("kept.txt")).mode & 0o777, 0o644);
  assert.equal(server.read("new.txt"), "first\nsecond\n");

  // The undo is a run, and can be undone on its page.
  await plan.getByRole("link", { name: "The undo's run" }).click();
  await until("the page of the undo's run", () => !page.url().includes(run));
  await page.getByText("archive verified").waitFor();
  await changesOf(page).getByText("2 files").waitFor();
  await undoButton(page).click();
  await box.getByRole("button", { name: "Undo", exact: true }).click();
  await box.getByText("Undone").waitFor();
  assert.equal(server.read("kept.txt"), after);
  assert.equal(server.read("gone.txt"), undefined);

  // Changes of a call appear on the open page at once, through the event stream.
  await visit(page, server, `/runs/${run}`);
  await changesOf(page).getByText("3 files").waitFor();
  assert.equal((await server.call("write_file", { path: "later.txt", content: "later\n" })).run, run);
  await changesOf(page).getByText("4 files").waitFor();
});

// A run without changes has no such section. A pending one with its page open gets the section after the decision.
await play({ name: "request" }, async ({ server, page }) => {
  fs.writeFileSync(server.file("kept.txt"), BEFORE["kept.txt"]);
  const read = await server.call("read_file", { path: "kept.txt" });
  await visit(page, server, `/runs/${read.run}`);
  await page.getByText("archive verified").waitFor();
  assert.equal(await changesOf(page).count(), 0);

  const command = "sed -i s/two/2/ kept.txt; mkdir empty";
  void server.call("run_command", { command });
  await visit(page, server, "/waiting");
  await page.locator(".queue-row a").first().click();
  const card = page.locator(".card");
  await card.getByRole("group", { name: "the command" }).getByText(command).waitFor();
  await card.getByText("The command has ended.").waitFor();
  await card.locator("td.in", { hasText: "2" }).waitFor();
  // A folder has no text to show: its line says what it is.
  await card.getByText("new empty folder").waitFor();
  // The values that only bind the approval are hidden until the user opens them.
  const bound = card.getByText("sha256");
  assert.ok(!(await bound.isVisible()));
  await accessible(page, "a command's changes");
  await card.getByText("What the approval is bound to").click();
  await bound.waitFor();
  await card.getByRole("button", { name: /^Approve/ }).click();
  await until("the file is changed", () => server.read("kept.txt") === "one\n2\nthree\n");
  await visit(page, server, `/runs/${read.run}`);
  await changesOf(page).getByText("2 files").waitFor();
});
