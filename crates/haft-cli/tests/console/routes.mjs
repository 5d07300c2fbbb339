// Every address that the console's router knows, with a value in place of each `:name`.

import { assert, fs, path } from "./stage.mjs";

const table = JSON.parse(fs.readFileSync(path.join(import.meta.dirname, "../../../haft-server/ui/src/routes.json"), "utf8"));

/** Each page with its letter, in the order of the rail. */
export const pages = Object.entries(table).map(([name, { letter }]) => ({ name, letter }));

/** Returns each state of each page as an address; `values` must have a value for each of `:request`, `:run`, …. */
export function addresses(values) {
  return Object.entries(table).flatMap(([name, { states }]) => states.map((state) => {
    const below = state.split("/").filter(Boolean).map((part) => {
      if (!part.startsWith(":")) return part;
      const value = values[part.slice(1)];
      assert.ok(value, `the scenario has nothing for ${part} of /${name}/${state}`);
      return encodeURIComponent(value);
    });
    return { page: name, state, address: `/${[name, ...below].join("/")}` };
  }));
}
