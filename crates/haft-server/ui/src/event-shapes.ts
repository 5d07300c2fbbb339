// The types of the events that the HTTP API streams, with the fields that the pages read.

export interface Progress {
  run: string;
  tool_call_id: string;
  text: string;
  stream: "stdout" | "stderr" | "info";
  closed: boolean;
  ts: string;
  offset?: number;
}

/** An event: a call changed paths in the workspace. */
export interface ChangesEvent {
  run: string;
  call: string;
  paths: number;
}

export interface CallEvent {
  run: string;
  call: string;
  parent?: string;
  tool: string;
  phase: "started" | "ended";
  status?: string;
  duration_ms?: number;
  at: string;
}
