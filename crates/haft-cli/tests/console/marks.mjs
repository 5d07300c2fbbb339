// Deceptive arguments: HTML, control characters, right-to-left marks, lookalike letters, a megabyte of them.

import { assert, play } from "./stage.mjs";

const settings = `
[tools]
enable = ["commands"]
`;

await play({ settings }, async ({ server, page }) => {
  const evil = "<script>window.hacked=1</script><img src=x onerror=\"window.hacked=1\"><iframe srcdoc='<script>parent.hacked=1</script>'></iframe>";
  const open = async (tool, args, fact) => {
    const made = server.call(tool, args);
    await page.locator(".queue-row:not(.settled)", { hasText: fact }).locator("a").click();
    return made;
  };
  const clean = async () => {
    assert.equal(await page.evaluate(() => window.hacked), undefined, "something ran");
    for (const tag of ["img", "iframe", "script:not([src='/app.js'])", "svg image"]) assert.equal(await page.locator(`#app ${tag}`).count(), 0, tag);
  };

  // A command with all of it.
  const command = `echo \u202egpj.exe \u0007\u001b[31m p\u0430ypal.com ${evil}`;
  let made = open("run_command", { command }, "echo");
  await page.locator(".command .mark.hidden", { hasText: "\\u{202e}" }).waitFor();
  await page.locator(".command .mark.hidden", { hasText: "\\x1b" }).first().waitFor();
  await page.locator(".command .mark.lookalike", { hasText: "\\u{430}" }).first().waitFor();
  assert.ok((await page.locator(".command pre").first().textContent()).includes("<script>window.hacked=1</script>"));
  await clean();
  await page.locator(".card").getByRole("button", { name: /^Deny n/ }).click();
  assert.equal((await made).status, "denied");

  // A megabyte: folded with its count, cannot be approved before it was opened, and is written unchanged.
  const line = `${evil}\u202e\u0000\u200b tail\n`;
  const content = line.repeat(Math.ceil((1 << 20) / line.length));
  made = open("write_file", { path: "big.txt", content }, "big.txt");
  const approve = page.locator(".card").getByRole("button", { name: /^Approve/ });
  await approve.waitFor();
  await page.locator("button.fold", { hasText: /Show [\d,]+ more/ }).first().waitFor();
  assert.ok(await approve.isDisabled(), "approved what was folded");
  await page.keyboard.press("y");
  await clean();
  // The key opened the folded part instead.
  await page.locator(".card .windowed").first().waitFor();
  const rows = await page.locator(".card .windowed .row").count();
  assert.ok(rows > 5 && rows < 400, `${rows} rows are laid out`);
  await page.locator(".card .windowed").first().evaluate((element) => { element.scrollTop = element.scrollHeight / 2; });
  await page.locator(".card .windowed .mark").first().waitFor();
  await clean();
  await approve.click();
  const outcome = await made;
  assert.equal(outcome.status, "ok", JSON.stringify(outcome).slice(0, 500));
  assert.equal(server.read("big.txt"), content);
  await clean();
});
