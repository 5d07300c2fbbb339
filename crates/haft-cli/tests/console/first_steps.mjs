// A user who has never used haft does what the first page says, word by word: a call in a terminal, its request, the approval, and the undo.

import { spawnSync } from "node:child_process";
import { accessible, assert, fs, path, play, until } from "./stage.mjs";

await play({}, async ({ server, page }) => {
  await page.getByRole("navigation", { name: "pages" }).getByRole("link", { name: "Overview" }).click();
  const steps = page.getByRole("region", { name: "first steps" });
  await steps.getByText(server.file("").replace(/\/$/, "")).waitFor();
  await accessible(page, "first steps");
  const title = page.getByRole("heading", { level: 1 });
  const top = (await title.boundingBox()).y;

  // What the page says is typed as it stands, where it says.
  const typed = await steps.locator("pre").textContent();
  const env = { PATH: `${path.dirname(process.env.HAFT_BIN)}:${process.env.PATH}`, HOME: server.root, HAFT_HOME: server.home, XDG_CONFIG_HOME: path.join(server.root, "config") };
  const done = spawnSync("sh", ["-c", typed], { cwd: server.file(""), env, encoding: "utf8" });
  assert.equal(done.status, 4, done.stderr);
  await page.getByRole("heading", { name: "1 pending request" }).waitFor();
  assert.equal((await title.boundingBox()).y, top, "the page moves when a request arrives");
  assert.equal(server.read("hello.txt"), undefined);

  await page.getByRole("region", { name: "pending" }).getByRole("link").first().click();
  const card = page.locator(".card");
  await card.locator(".path", { hasText: "hello.txt" }).waitFor();
  await card.getByRole("button", { name: /^Approve/ }).click();
  await until("the file is there", () => server.read("hello.txt") === "hi");
  // The card leads to the undo.
  await card.getByRole("link", { name: "See what it changed, or undo it" }).click();
  const changes = page.getByRole("region", { name: "changes" });
  await changes.locator("details.file", { hasText: "hello.txt" }).waitFor();
  await changes.getByRole("button", { name: "Undo…" }).click();
  await changes.getByRole("button", { name: "Undo", exact: true }).click();
  await changes.getByText("Undone").waitFor();
  assert.ok(!fs.existsSync(server.file("hello.txt")));

  // Once something has run, the first page has figures instead.
  await page.getByRole("navigation", { name: "pages" }).getByRole("link", { name: "Overview" }).click();
  await page.locator(".figures").waitFor();
  assert.equal(await steps.count(), 0);
});
