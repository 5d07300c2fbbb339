// Requests to the HTTP API: adds the session's secret to each one and reports errors in the server's words.

import { readStored, store } from "./storage";
import type { Failure } from "./shapes";

const STORAGE_KEY = "haft-secret";

/** Returns the session's secret. All tabs of this server share it; pages on another port have their own storage. */
export const secret = (): string => readStored(STORAGE_KEY) ?? "";

/** Stores the secret that a login returned, or deletes it. */
export function storeSecret(value: string | undefined): void {
  store(STORAGE_KEY, value);
}

/** Calls `changed` when another tab logs in or out. */
export function onSecretChange(changed: () => void): void {
  addEventListener("storage", (event) => {
    if (event.key === STORAGE_KEY || event.key === null) changed();
  });
}

/** Returns the headers that every request carries. */
export const credentials = (): Record<string, string> => ({ "x-haft-console": secret() });

/** A failed request: the server's error, or status 0 if the server does not answer. */
export class RequestError extends Error {
  constructor(readonly status: number, readonly failure: Failure) {
    super(failure.message);
  }
}

/** Called when a request finds that the session has ended. */
export const onUnauthorized = { run: () => {} };

async function request<T>(method: string, path: string, body?: unknown): Promise<{ value: T; headers: Headers }> {
  const headers: Record<string, string> = { ...credentials(), accept: "application/json" };
  if (body !== undefined) headers["content-type"] = "application/json";
  let response: Response;
  try {
    response = await fetch(`/api/v1${path}`, {
      method, headers, credentials: "same-origin", body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new RequestError(0, { kind: "unavailable", message: "haft does not answer" });
  }
  const text = await response.text();
  if (response.ok) return { value: (text ? JSON.parse(text) : undefined) as T, headers: response.headers };
  if (response.status === 401 && path !== "/login") onUnauthorized.run();
  throw new RequestError(response.status, failureOf(text, response.status));
}

function failureOf(text: string, status: number): Failure {
  try {
    const parsed = JSON.parse(text) as { error?: Failure };
    if (parsed.error?.message) return parsed.error;
  } catch {
    // A response that is not JSON is reported by its status.
  }
  return { kind: "failed", message: `haft answered with status ${status}` };
}

export const get = async <T>(path: string): Promise<T> => (await request<T>("GET", path)).value;
export const getWithHeaders = <T>(path: string) => request<T>("GET", path);
export const post = async <T>(path: string, body?: unknown): Promise<T> => (await request<T>("POST", path, body)).value;
export const put = async <T>(path: string, body: unknown): Promise<T> => (await request<T>("PUT", path, body)).value;
export const del = async <T>(path: string): Promise<T> => (await request<T>("DELETE", path)).value;

/** Returns a short-lived URL that the browser can open once without headers: for frames and downloads. */
export async function openable(path: string, query: Record<string, string> = {}): Promise<string> {
  const full = `/api/v1${path}`;
  const { ticket } = await post<{ ticket: string }>("/tickets", { path: full });
  return `${full}?${new URLSearchParams({ ...query, ticket })}`;
}

/** Returns an error as one line of text for the user. */
export function errorText(error: unknown): string {
  if (error instanceof RequestError) {
    const { message, advice } = error.failure;
    return advice ? `${message}. ${advice}` : message;
  }
  return error instanceof Error ? error.message : String(error);
}
