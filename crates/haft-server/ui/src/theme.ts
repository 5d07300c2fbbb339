// Light or dark: the system's setting, unless the user chooses.

import { signal } from "@preact/signals";
import { readStored, store } from "./storage";

export type Theme = "auto" | "light" | "dark";

const STORAGE_KEY = "haft-theme";

function storedTheme(): Theme {
  const found = readStored(STORAGE_KEY);
  return found === "light" || found === "dark" ? found : "auto";
}

export const theme = signal<Theme>(storedTheme());

function show(): void {
  if (theme.value === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
}

show();

/** Switches to the next theme: auto, light, dark. */
export function switchTheme(): void {
  theme.value = theme.value === "auto" ? "light" : theme.value === "light" ? "dark" : "auto";
  store(STORAGE_KEY, theme.value);
  show();
}
