// The login: redeems the code in the address, resumes the session (a cookie and a secret), and handles its end.

import { signal } from "@preact/signals";
import { RequestError, get, storeSecret, onSecretChange, onUnauthorized, post, secret, errorText } from "./api";
import type { Session } from "./shapes";

export type Login = "unknown" | "in" | "out";

export const login = signal<Login>("unknown");
export const session = signal<Session | undefined>(undefined);
/** Why the user is logged out, if there is something to say. */
export const loginTrouble = signal("");

onUnauthorized.run = () => {
  if (login.value === "in") loginTrouble.value = "The session has ended: haft was restarted, or you were away for twelve hours.";
  login.value = "out";
};

// All tabs log in and out together.
onSecretChange(() => {
  if (secret()) void resume();
  else forget();
});

/** Returns the code in a login link or in pasted text. */
export function codeIn(text: string): string | undefined {
  const found = /(?:#login=|^)([0-9a-f]{32,128})\s*$/.exec(text.trim());
  return found?.[1];
}

/** Removes the code from the address before anything else can see it, then logs in with it or resumes the session. */
export async function begin(): Promise<void> {
  const code = codeIn(location.hash.startsWith("#login=") ? location.hash : "");
  if (location.hash) history.replaceState(null, "", location.pathname + location.search);
  if (code) await redeem(code);
  else await resume();
}

/** Logs in with a code, which works once. */
export async function redeem(code: string): Promise<void> {
  try {
    const fresh = await post<{ secret: string }>("/login", { code });
    storeSecret(fresh.secret);
    loginTrouble.value = "";
  } catch (error) {
    // When a used link is reloaded, its session still exists.
    if (await resume()) return;
    loginTrouble.value = errorText(error);
    return;
  }
  await resume();
}

/** Restores this browser's session; resolves to false if that fails. */
export async function resume(): Promise<boolean> {
  if (!secret()) {
    login.value = "out";
    return false;
  }
  try {
    session.value = await get<Session>("/session");
    login.value = "in";
    loginTrouble.value = "";
    return true;
  } catch (error) {
    if (error instanceof RequestError && error.status !== 0) login.value = "out";
    return false;
  }
}

/** Logs out. */
export async function leave(): Promise<void> {
  await post("/logout").catch(() => {});
  storeSecret(undefined);
  forget();
}

function forget(): void {
  loginTrouble.value = "You have logged out.";
  session.value = undefined;
  login.value = "out";
}
