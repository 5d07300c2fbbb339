// Light or dark: as the system says, until the switch says otherwise.

import { signal } from "@preact/signals";
import { readStored, store } from "./storage";

export type Theme = "auto" | "light" | "dark";

const KEPT = "haft-theme";

function kept(): Theme {
  const found = readStored(KEPT);
  return found === "light" || found === "dark" ? found : "auto";
}

export const theme = signal<Theme>(kept());

function show(): void {
  if (theme.value === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
}

show();

/** Auto, light, dark, and round again. */
export function turn(): void {
  theme.value = theme.value === "auto" ? "light" : theme.value === "light" ? "dark" : "auto";
  store(KEPT, theme.value);
  show();
}
