// The types of the HTTP API's responses, with the fields that the pages read.

import type { Meaning, Preview } from "./previews";

export type { CallEvent, ChangesEvent, Progress } from "./event-shapes";
export type { ChangedLines, Meaning, MeaningKind, Picture, Preview, Side } from "./previews";

export type Risk = "safe" | "high" | "critical";
export type Verdict = "allow" | "ask" | "deny";
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type Schema = { [name: string]: Json };

export type ApprovalStatus =
  | "pending" | "approved" | "denied" | "answered" | "running" | "done" | "expired" | "withdrawn" | "in_doubt";

export interface Decision {
  choice: "approve" | "deny" | "answer";
  scope?: Scope;
  edited?: boolean;
  message?: string;
  stop?: boolean;
  rule?: string;
  by: string;
  from: string;
  at: string;
}

export type Scope = "once" | "session" | "always";

export interface Approval {
  id: string;
  kind: "call" | "question";
  run: string;
  call: string;
  parent?: string;
  tool: string;
  risk: Risk;
  reason: string;
  /** Which two of the Rule of Two the run holds, and what the call would do, if it would be the third. */
  rule_of_two?: string;
  rule: string;
  args_digest: string;
  origin: string;
  door: string;
  client?: string;
  workspace: string;
  /** What it is about; for files, `action` and the numbers of lines if they are known. */
  fact: { kind: string; text: string; action?: string; added?: number; removed?: number };
  created: string;
  expires: string;
  /** The time until which its call waits, if that is earlier. */
  waits_until?: string;
  /** What happens at the earlier of the two times. */
  then?: string;
  status: ApprovalStatus;
  attended: boolean;
  /** Why it cannot be approved together with others. */
  alone?: string;
  decision?: Decision;
  /** What a model says of it that reviews requests: its words, not haft's. */
  review?: { model: string; verdict?: "allow" | "deny" | "pass"; decided: boolean; sentence: string };
  /** Why it ended without its call. */
  why?: string;
}

export interface Permission {
  kind: string;
  value: string;
  /** The target of the links in a path, if it differs; the private addresses that a host name resolves to. */
  target?: string;
  risk: Risk;
  /** The policy's verdict on this effect alone. */
  verdict?: "allow" | "ask" | "deny";
}

export interface Question {
  id: string;
  type: "single" | "multiple" | "text" | "number" | "confirm";
  text: string;
  options?: string[];
  default?: Json;
  allow_other?: boolean;
}

export interface ApprovalDetail extends Approval {
  arguments: string;
  permissions: Permission[];
  /** The number of effects that are not named. */
  more_permissions?: number;
  /** What the settings decide about the call: its sandbox and its network. */
  conditions?: { name: string; value: string }[];
  /** Arguments that the settings fill in. */
  bound?: { [name: string]: Json };
  preview?: Preview[];
  meanings?: Meaning[];
  suggested?: string[];
  fingerprint: string;
  spec_hash: string;
  input_schema?: Schema;
  form?: { title?: string; questions: Question[] };
  edited_arguments?: string;
  outcome?: Outcome;
  rendered?: Part[];
}

/** A part of what a reader gets of a call. */
export interface Part {
  mark: "status" | "stdout" | "stderr" | "text" | "data" | "details" | "media" | "note" | "artifact";
  text: string;
}

export interface Outcome {
  run: string;
  call: string;
  tool: string;
  status: string;
  ok: boolean;
  summary: string;
  content?: { type: string; text?: string }[];
  data?: Json;
  error?: Failure;
  approval?: string;
  duration_ms?: number;
}

export interface Failure {
  kind: string;
  message: string;
  advice?: string;
  /** What prevents an undo. */
  conflicts?: { path: string; why: string }[];
  more_conflicts?: number;
}

export interface RuleMatches {
  ok: boolean;
  error?: string;
  covers?: boolean;
  /** What the rule newly lets through, one line each with an example. */
  newly?: string[];
  matched?: { run: string; call: string; tool: string; text: string; at: string }[];
  /** Number of calls that the rule would have covered; `matched` holds the newest ones. */
  covered?: number;
  looked_at?: number;
}

export interface Run {
  run: string;
  state: "open" | "suspended" | "closed";
  started: string;
  ended?: string;
  duration_ms?: number;
  calls: number;
  door?: string;
  profile?: string;
  workspace?: string;
  client?: string;
  /** The first call, with its most telling argument. */
  first?: { tool: string; argument?: string };
  /** What haft's agent was asked to do. */
  task?: string;
  /** Which of the Rule of Two it holds. */
  rule_of_two?: { untrusted: boolean; private: boolean; sends: boolean };
  /** The status of the last call. */
  outcome?: string;
  /** The exit code of the last call, if its program ended by itself with another one than 0. */
  exit_code?: number;
  /** How many of the calls with the status `error` are such programs. */
  exits?: number;
  /** Number of calls by status. */
  statuses?: Record<string, number>;
  changes?: { files: number; added: number; removed: number };
}

export interface Call {
  call: string;
  parent?: string;
  tool: string;
  origin?: string;
  args_digest?: string;
  arguments?: Json;
  verdict?: Verdict;
  rule?: string;
  decided_by?: string;
  review?: { model: string; verdict?: string; reason?: string; opinion?: string };
  status?: string;
  started: string;
  ended?: string;
  duration_ms?: number;
  waited_ms?: number;
  artifacts?: (string | { ref: string; media_type?: string; bytes?: number })[];
  summary?: string;
  /** The beginning of the result. */
  result?: string;
  rendered?: Part[];
  error?: { kind: string; message: string };
  /** The exit code, if the program ended by itself with another one than 0. */
  exit_code?: number;
  /** The most telling argument. */
  argument?: string;
  /** Id of the approval request that the call is waiting for. */
  approval?: string;
}

/** One file, link or folder that a run changed. */
export interface ChangedPath {
  path: string;
  action: "create" | "modify" | "delete" | "move" | "replace" | "chmod";
  from?: string;
  before?: FileState;
  after?: FileState;
  /** A unified diff. */
  diff?: string;
  note?: string;
}

export interface FileState {
  kind: "file" | "link" | "folder" | "other";
  bytes?: number;
  mode?: number;
  target?: string;
}

export interface Changes {
  run: string;
  /** What the changes amount to. */
  meanings?: Meaning[];
  changes: ChangedPath[];
  more_changes?: number;
}

/** The preview of an undo. */
export interface UndoPlan {
  run: string;
  call?: string;
  plan: string;
  steps: { action: "move_back" | "remove" | "restore"; path: string; from?: string }[];
  more_steps?: number;
  left_alone: string[];
  more_left_alone?: number;
}

export interface VerifyReport {
  ok: boolean;
  state: string;
  lines: number;
  first_bad?: number | null;
  /** What is wrong with that line. */
  problem?: string;
  torn?: boolean;
}

export interface Tool {
  name: string;
  title: string;
  description: string;
  category: string;
  risk: Risk;
  exposure: string;
  source: string;
  input_schema: Schema;
  output_schema?: Schema;
  ui?: { uri: string };
  verdict?: Verdict;
}

export interface Skill {
  name: string;
  description: string;
  path: string;
  source: string;
  valid: boolean;
  body?: string;
  resources?: (string | { path: string })[];
}

export interface MemoryRecord {
  id: string;
  scope: string;
  key?: string;
  path?: string;
  content: string;
  tags: string[];
  state: "candidate" | "accepted" | "rejected";
  created: string;
  updated: string;
  revision: number;
  replaces?: { path?: string };
  deletes?: boolean;
  author?: string;
  decided_by?: string;
  run?: string;
  call?: string;
}

export interface PolicyRule {
  list: Verdict;
  rule: string;
  layer: string;
  reason?: string;
  matched?: number;
  /** Why the rule decides nothing. */
  dead?: { cause: "never_matches" | "shadowed" | "repeated" | "outside" | "unknown_tool" | "tool_off" | "unused"; problem: string; advice: string; by?: number };
}

export interface EffectivePolicy {
  profile: string;
  rules: PolicyRule[];
  guards: { name: string }[];
  secret_files: Verdict;
  findings: { rule: string; problem: string; advice: string }[];
  looked_at?: number;
  /** Time of the oldest call that was examined. */
  looked_since?: string;
  sandbox: { require: string; network: string };
  skills: { name: string; requests: string[]; restricts_to?: string[]; excludes?: string[] }[];
}

export interface PolicyExplanation {
  tool: string;
  verdict: Verdict;
  enabled?: boolean;
  parts: { kind: string; value: string; verdict: Verdict; rule: string; layer: string }[];
  layers: { layer: string; verdict: Verdict | "none"; rule: string; reason: string }[];
}

export interface Health {
  checks: { name: string; ok: boolean; detail: string; advice?: string }[];
  sandbox: { backend: string; strength: string };
  version: string;
  uptime_s: number;
  disk?: Disk | null;
  clients?: Client[];
}

export interface Disk {
  runs: number;
  artifacts: number;
  database: number;
  total: number;
  measured: string;
}

/** A client whose run is open. */
export interface Client {
  run: string;
  client?: string;
  door: string;
  since: string;
  workspace?: string;
}

export interface Hour {
  start: string;
  calls: number;
  failed: number;
  denied: number;
  exits?: number;
}

export interface Overview {
  hours: Hour[];
  today: { since: string; calls: number; failed: number; denied: number; exits?: number; decided: number; mean_wait_ms?: number };
  failed: Run[];
  clients: Client[];
}

export interface SearchResults {
  matches: { run: string; call: string; tool: string; status: string; at: string; text: string }[];
  looked_at: number;
  truncated: boolean;
}

export interface Session {
  /** Absent for the background server, which shows all folders. */
  workspace?: string;
  profile: string;
  strength?: string;
  version: string;
  user: string;
}
