// The policy page marks rules that decide nothing, with the reason, in light, dark and on a phone.

import { accessible, assert, play, visit } from "./stage.mjs";

const settings = `
[policy]
deny = ["Edit(/src/**)", "Bash(git push *)"]
ask = ["Read(/plans/**)"]
allow = ["Edit(/src/gen/**)", "Bash(git push origin docs)", "Edit(/notes/**)", "Edit(/notes/**)", "Read(//etc/**)", "delete_file", "gone.tool"]
`;

await play({ settings, args: ["--trust"] }, async ({ server, page }) => {
  await visit(page, server, "/policy");
  const section = page.getByRole("region", { name: "the rules in force" });
  await section.getByText("6 rules decide nothing.").waitFor();
  const row = (index) => section.locator("tbody tr").nth(index);
  const texts = await section.locator("tbody tr").allTextContents();
  const expect = [
    [/Edit\(\/src\/\*\*\)/, undefined], [/Bash\(git push \*\)/, undefined], [/Read\(\/plans/, undefined],
    [/Edit\(\/src\/gen/, /shadowed the deny rule Edit\(\/src\/\*\*\) of user decides first/], [/git push origin docs/, /shadowed the deny rule Bash\(git push \*\)/],
    [/Edit\(\/notes/, undefined], [/Edit\(\/notes/, /repeated/], [/Read\(\/\/etc/, /outside the workspace/], [/delete_file/, /tool is off/], [/gone\.tool/, /no such tool no connected server has the tool gone\.tool/],
  ];
  assert.equal(texts.length, expect.length, texts.join("\n"));
  for (const [index, [rule, why]] of expect.entries()) {
    assert.match(texts[index], rule);
    assert.equal(await row(index).locator(".dead").count(), why ? 1 : 0, texts[index]);
    if (why) assert.match(texts[index], why);
  }
  await accessible(page, "dead rules");
  await section.getByRole("button", { name: "Show only these rules" }).click();
  assert.equal(await section.locator("tbody tr").count(), 6);
  await section.getByRole("button", { name: "Show all rules" }).click();
  assert.equal(await section.locator("tbody tr").count(), expect.length);
});
