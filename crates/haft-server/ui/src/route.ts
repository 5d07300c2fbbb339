// The address as state: every state of the console is a path, so that it can be linked.

import { computed, signal } from "@preact/signals";

const place = signal({ path: location.pathname, query: location.search });

/** The path's parts: `/runs/r-1/call-2` is `["runs", "r-1", "call-2"]`. */
export const parts = computed(() => place.value.path.split("/").filter(Boolean).map(decode));

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
