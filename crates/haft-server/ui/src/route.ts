// Routing: every state of the console has an address, so that it can be linked.

import { computed, signal } from "@preact/signals";
import table from "./routes.json";

/** The pages, in the order of the rail. */
export type PageName = keyof typeof table;
export const PAGES = Object.keys(table) as PageName[];
/** Returns the letter that, after `g`, opens a page. */
export const letterOf = (page: PageName): string => table[page].letter;

const place = signal({ path: location.pathname, query: location.search });

/** The parts of the path: `/runs/r-1/call-2` is `["runs", "r-1", "call-2"]`. */
export const parts = computed(() => place.value.path.split("/").filter(Boolean).map(decode));

/** The page at the current address; `undefined` if no route matches it. */
export const page = computed((): PageName | undefined => {
  const [first = "overview", ...rest] = parts.value;
  const named = PAGES.find((name) => name === first);
  return named && table[named].states.some((state) => fits(state, rest)) ? named : undefined;
});

/** Returns whether a state matches these parts; a part that begins with `:` matches any. */
function fits(state: string, rest: string[]): boolean {
  const wanted = state.split("/").filter(Boolean);
  return wanted.length === rest.length && wanted.every((part, index) => part.startsWith(":") || part === rest[index]);
}

/** The query parameters. */
export const query = computed(() => new URLSearchParams(place.value.query));

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function now(): void {
  place.value = { path: location.pathname, query: location.search };
}

addEventListener("popstate", now);

/** Returns the path with these parts. */
export function pathOf(...names: string[]): string {
  return "/" + names.map(encodeURIComponent).join("/");
}

/** Navigates to a path; `replace` adds no history entry. */
export function go(path: string, replace = false): void {
  if (path === location.pathname + location.search) return;
  if (replace) history.replaceState(null, "", path);
  else history.pushState(null, "", path);
  now();
}

/** Follows a click on an internal link without reloading the document. */
export function follow(event: MouseEvent): void {
  const plain = !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) && event.button === 0;
  const link = event.currentTarget as HTMLAnchorElement;
  if (!plain || link.origin !== location.origin) return;
  event.preventDefault();
  go(link.pathname + link.search);
}
