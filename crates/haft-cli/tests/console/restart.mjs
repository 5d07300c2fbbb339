// haft is killed while a request is pending and the console is open: the page says so, keeps its content, and allows no decision;
// haft restarts on the same port, the user logs in again, and an approved write happens once.

import { KILLED, assert, connected, play, until } from "./stage.mjs";

await play({ expected: KILLED }, async ({ server, page }) => {
  void server.call("write_file", { path: "kept.txt", content: "kept" });
  await page.locator(".queue-row", { hasText: "kept.txt" }).locator("a").click();
  const approve = page.locator(".card").getByRole("button", { name: /^Approve/ });
  await approve.waitFor();
  const address = page.url();

  await server.stop("SIGKILL");
  await page.getByText("The connection to haft is lost").waitFor();
  await page.locator(".card .path", { hasText: "kept.txt" }).waitFor();
  assert.ok(await approve.isDisabled(), "a decision nobody can take");
  await page.keyboard.press("y");
  assert.equal(await page.getByText("Approving").count(), 0);

  await server.start(server.port);
  // Sessions ended with the old server: the bar asks for the new link and keeps the page.
  await page.locator(".bar").getByLabel("Login link").fill(server.link);
  await page.locator(".bar").getByRole("button", { name: "Log in" }).click();
  await connected(page);
  assert.equal(page.url(), address);
  await page.locator(".bar").waitFor({ state: "detached" });
  await approve.click();
  await page.locator(".decided", { hasText: "Approved by" }).waitFor();
  await until("the file is written", () => server.read("kept.txt") === "kept");
});
