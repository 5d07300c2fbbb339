// Requests to the HTTP API: the session's secret on every change, errors as the server words them.

import type { Failure } from "./shapes";

let secret = "";

/** Keeps the session's secret for the changes that follow. */
export function holdSecret(value: string): void {
  secret = value;
}

/** What the server, or the lack of one, answered instead of a result. */
export class Refused extends Error {
  constructor(readonly status: number, readonly failure: Failure) {
    super(failure.message);
  }
}

/** Called when a request finds the session gone. */
export const onUnauthorized = { run: () => {} };

async function ask<T>(method: string, path: string, body?: unknown): Promise<{ value: T; headers: Headers }> {
  const headers: Record<string, string> = { accept: "application/json" };
  if (method !== "GET") headers["x-haft-console"] = secret;
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
    // An answer that is no JSON is told by its status.
  }
  return { kind: "failed", message: `haft answered with status ${status}` };
}

export const get = async <T>(path: string): Promise<T> => (await ask<T>("GET", path)).value;
export const getWithHeaders = <T>(path: string) => ask<T>("GET", path);
export const post = async <T>(path: string, body?: unknown): Promise<T> => (await ask<T>("POST", path, body)).value;

/** An error as one line for a person. */
export function told(error: unknown): string {
  if (error instanceof Refused) {
    const { message, advice } = error.failure;
    return advice ? `${message}. ${advice}` : message;
  }
  return error instanceof Error ? error.message : String(error);
}
