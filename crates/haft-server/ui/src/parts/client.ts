// The name of the client that makes a request.

import type { Approval } from "../shapes";

/** Readable names of the entry points. */
const ENTRY_POINTS: Record<string, string> = { call: "haft call", chain: "haft chain", "mcp stdio": "an MCP client", "mcp http": "an MCP client", "http api": "the HTTP API", undo: "an undo", library: "a program" };

/** Returns the name of the client that makes a request: its own, else that of its entry point. */
export const clientName = (approval: Approval): string => approval.client ?? ENTRY_POINTS[approval.door] ?? approval.door;
