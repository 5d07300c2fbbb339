// The address as state: every state of the console is a path, so that it can be linked.

import { computed, signal } from "@preact/signals";
import table from "./routes.json";

/** The pages, in the order of the rail. */
export type PageName = keyof typeof table;
export const PAGES = Object.keys(table) as PageName[];
/** The letter that goes to a page after `g`. */
export const letterOf = (page: PageName): string => table[page].letter;

const place = signal({ path: location.pathname, query: location.search });

/** The path's parts: `/runs/r-1/call-2` is `["runs", "r-1", "call-2"]`. */
export const parts = computed(() => place.value.path.split("/").filter(Boolean).map(decode));

/** The page that the address names: nothing where no route fits it. */
export const page = computed((): PageName | undefined => {
  const [first = "overview", ...rest] = parts.value;
  const named = PAGES.find((name) => name === first);
  return named && table[named].states.some((state) => fits(state, rest)) ? named : undefined;
});

/** Whether a state's parts are these; one that begins with `:` stands for any. */
function fits(state: string, rest: string[]): boolean {
  const wanted = state.split("/").filter(Boolean);
  return wanted.length === rest.length && wanted.every((part, index) => part.startsWith(":") || part === rest[index]);
}

/** The query's members. */
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

/** A path of these parts. */
export function pathOf(...names: string[]): string {
  return "/" + names.map(encodeURIComponent).join("/");
}

/** Goes somewhere; `replace` leaves no step to go back to. */
export function go(path: string, replace = false): void {
  if (path === location.pathname + location.search) return;
  if (replace) history.replaceState(null, "", path);
  else history.pushState(null, "", path);
  now();
}

/** A click on a link of ours, followed without loading the document again. */
export function follow(event: MouseEvent): void {
  const plain = !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) && event.button === 0;
  const link = event.currentTarget as HTMLAnchorElement;
  if (!plain || link.origin !== location.origin) return;
  event.preventDefault();
  go(link.pathname + link.search);
}
