// Requests to the HTTP API: the session's secret on every one, errors as the server words them.

import { readStored, store } from "./storage";
import type { Failure } from "./shapes";

const KEPT = "haft-secret";

/** The session's secret. All tabs of this server share it; the storage of another port's pages is another one. */
export const secret = (): string => readStored(KEPT) ?? "";

/** Keeps the secret that a login gave, or forgets it. */
export function holdSecret(value: string | undefined): void {
  store(KEPT, value);
}

/** Calls back when another tab has logged in or out. */
export function onSecretChange(changed: () => void): void {
  addEventListener("storage", (event) => {
    if (event.key === KEPT || event.key === null) changed();
  });
}

/** The headers of every request. */
export const credentials = (): Record<string, string> => ({ "x-haft-console": secret() });

/** What the server, or the lack of one, answered instead of a result. */
export class Refused extends Error {
  constructor(readonly status: number, readonly failure: Failure) {
    super(failure.message);
  }
}

/** Called when a request finds the session gone. */
export const onUnauthorized = { run: () => {} };

async function ask<T>(method: string, path: string, body?: unknown): Promise<{ value: T; headers: Headers }> {
  const headers: Record<string, string> = { ...credentials(), accept: "application/json" };
  if (body !== undefined) headers["content-type"] = "application/json";
  let response: Response;
  try {
    response = await fetch(`/api/v1${path}`, {
      method, headers, credentials: "same-origin", body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new Refused(0, { kind: "unavailable", message: "haft does not answer" });
  }
  const text = await response.text();
  if (response.ok) return { value: (text ? JSON.parse(text) : undefined) as T, headers: response.headers };
  if (response.status === 401 && path !== "/login") onUnauthorized.run();
  throw new Refused(response.status, failureOf(text, response.status));
}

function failureOf(text: string, status: number): Failure {
  try {
    const parsed = JSON.parse(text) as { error?: Failure };
    if (parsed.error?.message) return parsed.error;
  } catch {
    // An answer that is not JSON is told by its status.
  }
  return { kind: "failed", message: `haft answered with status ${status}` };
}

export const get = async <T>(path: string): Promise<T> => (await ask<T>("GET", path)).value;
export const getWithHeaders = <T>(path: string) => ask<T>("GET", path);
export const post = async <T>(path: string, body?: unknown): Promise<T> => (await ask<T>("POST", path, body)).value;
export const put = async <T>(path: string, body: unknown): Promise<T> => (await ask<T>("PUT", path, body)).value;
export const del = async <T>(path: string): Promise<T> => (await ask<T>("DELETE", path)).value;

/** An address that the browser can open by itself, once and soon: for a frame or a download, where no header can be set. */
export async function openable(path: string, query: Record<string, string> = {}): Promise<string> {
  const full = `/api/v1${path}`;
  const { ticket } = await post<{ ticket: string }>("/tickets", { path: full });
  return `${full}?${new URLSearchParams({ ...query, ticket })}`;
}

/** An error as one line for a person. */
export function told(error: unknown): string {
  if (error instanceof Refused) {
    const { message, advice } = error.failure;
    return advice ? `${message}. ${advice}` : message;
  }
  return error instanceof Error ? error.message : String(error);
}
