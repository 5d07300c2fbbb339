// A person approves what commands did in a real repository: a commit, a rebase and an update of packages. The card shows the message, the files and
// their lines before the approval; only the approval brings them to the disk, and what is there is what was shown.

import { accessible, assert, fs, play, until } from "./stage.mjs";
import { BODY, COMMIT, LOCKFILE, REBASE, SUBJECT, UPDATED, edit, git, shop } from "./shop.mjs";

await play({}, async ({ server, page }) => {
  shop(server);
  const card = page.locator(".card");
  const meanings = card.getByRole("region", { name: "what it amounts to" });
  const file = (name) => meanings.locator(".file", { hasText: name });
  /** Runs a command and opens the card of its changes. */
  const ran = async (command) => {
    const made = server.call("run_command", { command });
    const request = await until(`a request about ${command}`, async () => (await server.api("GET", "/approvals")).value.find((one) => one.tool === "apply_changes"));
    await page.locator(`.queue-row a[href$="${request.id}"]`).click();
    await card.getByRole("group", { name: "the command" }).getByText(command).waitFor();
    await meanings.waitFor();
    return made.then((outcome) => ({ outcome }));
  };
  const approve = async (made) => {
    await page.locator(".card.seen").waitFor();
    await card.getByRole("button", { name: /^Approve/ }).click();
    await page.locator(".decided", { hasText: /Approved by \S+ from console/ }).first().waitFor();
    const { outcome } = await made;
    assert.equal(outcome.status, "ok", JSON.stringify(outcome));
  };

  // A commit: its message, and each file with its lines.
  edit(server);
  const before = git(server, "rev-parse", "main");
  let made = ran(COMMIT);
  await meanings.getByRole("heading", { name: SUBJECT }).waitFor();
  await meanings.getByText(BODY).waitFor();
  await file("src/price.js").locator("td.out", { hasText: "return sum - sum * percent;" }).waitFor();
  await file("src/price.js").locator("td.in", { hasText: "return Math.round(sum * (100 - percent) / 100);" }).waitFor();
  await file("test/price.test.js").locator("td.in", { hasText: "takes off a tenth" }).waitFor();
  await accessible(page, "a commit");
  assert.equal(git(server, "rev-parse", "main"), before);
  await approve(made);
  assert.equal(git(server, "log", "-1", "--format=%s%n%b", "main"), `${SUBJECT}\n${BODY}`);
  assert.equal(git(server, "rev-parse", "main~1"), before);
  assert.equal(git(server, "status", "--porcelain"), "");
  assert.match(git(server, "show", "main", "--", "src/price.js"), /\+ {2}return Math\.round/);

  // A rebase: the commits that move, and the file that they write.
  git(server, "switch", "-q", "vat");
  const old = git(server, "rev-parse", "vat");
  made = ran(REBASE);
  for (const message of ["Add the tax of each country", "Show prices with their tax"]) await meanings.getByText(message).first().waitFor();
  await file("src/vat.js").first().getByText("export const VAT = { de: 19, fr: 20, se: 25 };").first().waitFor();
  await accessible(page, "a rebase");
  assert.equal(git(server, "rev-parse", "vat"), old);
  await approve(made);
  assert.equal(git(server, "log", "--reverse", "--format=%s", "main..vat"), "Add the tax of each country\nShow prices with their tax");
  assert.equal(git(server, "merge-base", "main", "vat"), git(server, "rev-parse", "main"));
  assert.equal(git(server, "status", "--porcelain"), "");
  assert.match(server.read("src/price.js"), /Math\.round/);

  // An update of packages: each with its versions, and the one from another registry stands out.
  made = ran(LOCKFILE);
  const packages = meanings.getByRole("list", { name: "packages" });
  for (const name of ["dayjs", "1.11.13", "nanoid", "left-pad"]) await packages.getByText(name).first().waitFor();
  await meanings.locator(".note.marked", { hasText: "packages.example.org" }).first().waitFor();
  await card.locator(".file", { hasText: "package.json" }).locator("td.in", { hasText: "nanoid" }).waitFor();
  await accessible(page, "an update of packages");
  assert.notEqual(server.read("package-lock.json"), UPDATED["package-lock.json"]);
  await approve(made);
  for (const [name, text] of Object.entries(UPDATED)) assert.equal(server.read(name), text);
  assert.ok(fs.existsSync(server.file("src/vat.js")));
});
