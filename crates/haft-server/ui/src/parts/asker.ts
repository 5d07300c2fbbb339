// Who makes a request, by name.

import type { Approval } from "../shapes";

/** Entry points as people call them. */
const DOORS: Record<string, string> = { call: "haft call", chain: "haft chain", "mcp stdio": "an MCP client", "mcp http": "an MCP client", "http api": "the HTTP API", undo: "an undo", library: "a program" };

/** Who asks, by name: the client's own, else what stands at the other end. */
export const askerOf = (approval: Approval): string => approval.client ?? DOORS[approval.door] ?? approval.door;
