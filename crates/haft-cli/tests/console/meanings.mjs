// A card shows first what a change set amounts to: a commit with its files, a lockfile's packages, a picture, the commits of a rebase; the paths that
// this explains are folded. The server's answer is completed here: what is shown must not depend on what it can read by now.

import { accessible, assert, fs, play } from "./stage.mjs";

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const many = (count, line) => Array.from({ length: count }, (_, index) => `${line} ${index + 1}\n`).join("");

const commit = {
  kind: "commit", title: "commit 'Fix the discount' on main: 2 files, +2 −1", warnings: ["The commit contains .mcp.json, which names paths of this machine."],
  lines: ["The discount was taken twice."],
  files: [
    { path: "src/price.js", action: "change", before: "let a = 1;\nlet b = 2;\n", after: "let a = 1;\nlet b = 3;\n" },
    { path: "data.csv", action: "change", before_bytes: 900_000, after_bytes: 900_010, after_sha256: "ab".repeat(32), hunks: [{ before_line: 41_000, after_line: 41_000, before: "same\nold\n", after: "same\nnew\nmore\n" }] },
    { path: "gone.csv", action: "change", hunks: [{ before_line: 7, after_line: 7, before: "x\n", after: "y\n" }] },
    { path: "app.min.js", action: "change", folded: "it is minified", before_bytes: 2048, after_bytes: 4096 },
  ],
  covers: [".git/index", ".git/COMMIT_EDITMSG", ".git/objects/ab/cd", "kept.txt"],
};
const lockfile = { kind: "lockfile", title: "package-lock.json: 1 package added, 1 changed", warnings: ["left-pad comes from https://mirror.example.org."], lines: ["+ left-pad 1.3.0", "~ react 18.2.0 → 19.0.0"], covers: ["package-lock.json"] };
const image = { kind: "image", title: "logo.png: 1 × 1, 67 B → 1 × 1, 70 B", pictures: { before: { media_type: "image/png", width: 1, height: 1, bytes: 67, thumbnail: PIXEL }, after: { media_type: "image/png", width: 1, height: 1, bytes: 70, thumbnail: PIXEL } } };
const rebase = { kind: "rebase", title: "rebase of main onto v2: 2 commits", parts: [{ kind: "commit", title: "Add <b>a</b> test", files: [{ path: "test.js", action: "create", after: "test();\n" }] }, { kind: "commit", title: "Fix it" }] };

await play({ expected: [/status of 404/] }, async ({ server, page }) => {
  fs.writeFileSync(server.file("kept.txt"), "one\ntwo\n");
  await page.route(/\/approvals\/ap-[^/]+$/, async (route) => {
    if (route.request().method() !== "GET") return route.continue();
    const response = await route.fetch();
    const detail = await response.json();
    return route.fulfill({ response, json: { ...detail, meanings: [commit, lockfile, image, rebase, { kind: "git_internals", title: "git's own files" }] } });
  });
  await page.route(/\/approvals\/ap-[^/]+\/file\?path=data\.csv$/, (route) => route.fulfill({ json: { before: `${many(40_999, "row")}same\nold\n`, after: `${many(40_999, "row")}same\nnew\nmore\n` } }));
  await page.route(/\/approvals\/ap-[^/]+\/file\?path=gone\.csv$/, (route) => route.fulfill({ status: 404, json: { error: { kind: "not_found", message: "it is gone" } } }));

  const made = server.call("run_command", { command: "sed -i s/two/2/ kept.txt" });
  const card = page.locator(".card");
  const meanings = card.getByRole("region", { name: "what it amounts to" });
  await meanings.getByRole("heading", { name: commit.title }).waitFor();
  // It is above the command.
  const top = async (locator) => (await locator.boundingBox()).y;
  assert.ok(await top(meanings) < await top(card.locator(".command")), "the meaning is not first");
  await meanings.locator(".note.marked", { hasText: ".mcp.json" }).waitFor();
  await meanings.getByText("The discount was taken twice.").waitFor();
  const file = (name) => meanings.locator(".file", { hasText: name });
  await file("src/price.js").locator("td.in", { hasText: "let b = 3;" }).waitFor();

  // A long file: its hunks, with line numbers, then the whole file on demand; without one, no button.
  await file("data.csv").locator("tr.change .number", { hasText: "41001" }).first().waitFor();
  await file("data.csv").getByText("40,999 unchanged lines").waitFor();
  await file("data.csv").getByText("878.9 KiB → 878.9 KiB").waitFor();
  await file("data.csv").getByRole("button", { name: "Load the whole file" }).click();
  await file("data.csv").getByText("Too large to show in full").waitFor({ state: "detached" });
  await file("data.csv").locator("td.in", { hasText: "more" }).waitFor();
  await file("gone.csv").getByRole("button", { name: "Load the whole file" }).click();
  await file("gone.csv").getByRole("button", { name: "Load the whole file" }).waitFor({ state: "detached" });
  await file("app.min.js").getByText("Its content is not shown: it is minified").waitFor();

  // Packages, pictures, the commits of a rebase: text that looks like HTML stays text.
  await meanings.getByRole("list", { name: "packages" }).getByText("react 18.2.0 → 19.0.0").waitFor();
  for (const side of ["before", "after"]) {
    const picture = meanings.getByRole("img", { name: `the picture ${side}` });
    await picture.waitFor();
    assert.ok(await picture.evaluate((image) => image.decode().then(() => image.naturalWidth > 0)), `the picture ${side} is not drawn`);
  }
  // A few commits are open at once, and fold.
  const part = meanings.locator(".meaning-part .path", { hasText: "test.js" });
  await part.waitFor();
  await meanings.getByRole("button", { name: "Add <b>a</b> test" }).click();
  await part.waitFor({ state: "detached" });
  await meanings.getByRole("button", { name: "Add <b>a</b> test" }).click();
  await part.waitFor();

  // The paths that this explains are one line, and unfold.
  const covered = card.getByRole("button", { name: "git's own files: 3, files explained above: 2" });
  assert.equal(await card.locator(".covered td.in").count(), 0);
  await covered.click();
  await card.locator(".covered").getByText(".git/COMMIT_EDITMSG").waitFor();
  await card.locator(".covered td.in", { hasText: "2" }).waitFor();
  await accessible(page, "what a change set amounts to");
  await card.getByRole("button", { name: /^Approve/ }).click();
  assert.equal((await made).status, "ok");
  assert.equal(server.read("kept.txt"), "one\n2\n");
  await page.unrouteAll({ behavior: "ignoreErrors" });
});
