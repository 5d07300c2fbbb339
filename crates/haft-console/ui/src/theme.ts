// Light or dark: as the system says, until the switch says otherwise.

import { signal } from "@preact/signals";

export type Theme = "auto" | "light" | "dark";

const KEPT = "haft-theme";

function kept(): Theme {
  try {
    const found = localStorage.getItem(KEPT);
    return found === "light" || found === "dark" ? found : "auto";
  } catch {
    return "auto";
  }
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
  try {
    localStorage.setItem(KEPT, theme.value);
  } catch {
    // A browser that keeps nothing shows it until the page is closed.
  }
  show();
}
