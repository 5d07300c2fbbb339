// The name of the client that makes a request.

import type { Approval, Run } from "../shapes";

/** Readable names of the entry points. */
const ENTRY_POINTS: Record<string, string> = { call: "haft call", chain: "haft chain", "mcp stdio": "an MCP client", "mcp http": "an MCP client", "http api": "the HTTP API", undo: "an undo", run: "haft run", library: "a program" };

/** Returns the name of the client that makes a request: its own, else that of its entry point. */
export const clientName = (approval: Approval): string => approval.client ?? ENTRY_POINTS[approval.door] ?? approval.door;

/** The entry points as titles of runs. */
const TITLES: Record<string, string> = { ...ENTRY_POINTS, "mcp stdio": "MCP client", "mcp http": "MCP client", "http api": "HTTP API", undo: "Undo", library: "Program" };

/** Returns the name of the client of a run: its own, else that of its entry point. */
export const clientOf = (run: Pick<Run, "client" | "door">): string => run.client ?? TITLES[run.door ?? ""] ?? run.door ?? "unknown client";
