// Two tabs decide the same request at the same moment: one wins, the other shows who decided.

import { assert, enter, play, watch } from "./stage.mjs";

const expected = [/status of 409/];

await play({ expected }, async ({ server, context, page }) => {
  const other = await context.newPage();
  watch(other, expected);
  await other.goto(`${server.url}/waiting`);
  for (let round = 0; round < 3; round += 1) {
    const name = `race-${round}.txt`;
    const made = server.call("write_file", { path: name, content: name });
    // A request that has just opened by itself is protected from a press that was meant for the last one, but not from a user who opens it.
    if (round > 0) for (const tab of [page, other]) await tab.locator(".queue-row.current:not(.settled)", { hasText: name }).waitFor();
    for (const tab of [page, other]) {
      await tab.locator(".queue-row:not(.settled)", { hasText: name }).locator("a").click();
      await tab.locator(".card .path", { hasText: name }).waitFor();
      // New rows wait until the pointer has left the list.
      await tab.mouse.move(2, 2);
    }
    await Promise.all([
      page.locator(".card").getByRole("button", { name: /^Approve/ }).dispatchEvent("click"),
      other.locator(".card").getByRole("button", { name: /^Deny n/ }).dispatchEvent("click"),
    ]);
    const outcome = await made;
    const approved = outcome.status === "ok";
    assert.ok(approved || outcome.status === "denied", outcome.status);
    assert.equal(server.read(name), approved ? name : undefined);
    for (const tab of [page, other]) await tab.locator(".decided", { hasText: approved ? "Approved by" : "Denied by" }).waitFor();
  }
  // A third user comes with their own link and sees the same.
  const guest = await context.browser().newContext();
  const third = await guest.newPage();
  watch(third);
  await enter(third, await server.freshLink());
});
