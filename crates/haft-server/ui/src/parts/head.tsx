// The head of every page: its title, and what the page offers beside it. It also names the browser's tab.

import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect } from "preact/hooks";

/** What the tab is named after: the page, and the thing that it shows, if any. */
export const titleOf = signal<string[]>([]);

/** Returns a word as it begins a title or stands on a button. */
export const capitalized = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);

/** Names the browser's tab after the page and, in front of it, what the page shows. */
export function useTitle(page: string, thing?: string): void {
  useLayoutEffect(() => { titleOf.value = thing ? [thing, page] : [page]; }, [page, thing]);
}

/** The title of a page. For the browser's tab, `thing` is what it shows, or `of` names the page to which it belongs. */
export function PageHead({ title, thing, of, children }: { title: string; thing?: string; of?: string; children?: ComponentChildren }) {
  useTitle(of ?? title, of ? title : thing);
  return <header class="page-head"><h1>{title}</h1>{children}</header>;
}
