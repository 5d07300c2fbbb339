// The card of a command's connection: the host in large type, the program that connects, and the command line that started it.

import type { ApprovalDetail } from "../shapes";
import { Arguments, type ArgumentMap } from "./arguments";
import { Command } from "./command";
import { Copy } from "./copy";
import { SafeText } from "./text";

/** Returns whether a request is about a connection of a running command. */
export const isConnection = (detail: ApprovalDetail): boolean => detail.tool === "connect" && detail.permissions.some((permission) => permission.kind === "connect");

/** The usual services by port. */
const SERVICES: Record<string, string> = { 22: "SSH", 25: "mail", 53: "DNS", 80: "HTTP, not encrypted", 443: "HTTPS", 3306: "MySQL", 5432: "PostgreSQL", 6379: "Redis" };

/** Arguments that the card shows in its own way; hosts and their targets are also among the effects. */
const OWN = new Set(["program", "host", "port", "leads_to", "request", "also", "carries", "command", "task"]);

export function Connection({ detail, args }: { detail: ApprovalDetail; args: ArgumentMap }) {
  const text = (name: string) => String(args[name] ?? "");
  const [host, port] = [text("host"), text("port")];
  const connects = detail.permissions.filter((permission) => permission.kind === "connect");
  const others = connects.slice(1);
  const request = (args.request ?? undefined) as { method?: unknown; target?: unknown } | undefined;
  const notes = (detail.conditions ?? []).filter((condition) => condition.name !== "command");
  return (
    <div class="fact">
      <section class="connection" aria-label="where it connects to">
        <p><code class="program"><SafeText text={text("program")} /></code> <span class="dim">{request ? "wants to send a request to" : "wants to connect to"}</span></p>
        <p class="place"><span class="host"><SafeText text={host} /></span><span class="port">:<SafeText text={port} /></span> {SERVICES[port] && <span class="dim">{SERVICES[port]}</span>} <Copy text={`${host}:${port}`} what="the address" /></p>
        {request && <p><strong><SafeText text={String(request.method ?? "")} /></strong> <code><SafeText text={String(request.target ?? "")} /></code></p>}
        {others.length > 0 && <p><span class="dim">and, with the same decision, to</span> {others.map((other, index) => <>{index > 0 && ", "}<code key={other.value}><SafeText text={other.value} /></code></>)}</p>}
      </section>
      {connects.map((connect) => connect.target && (
        <p class="note warn" key={connect.value}><code><SafeText text={connect.value} /></code> leads to <strong><SafeText text={connect.target} /></strong>, a private address: the service there may trust this machine.</p>
      ))}
      {notes.map((note) => <p class="note warn" key={note.name}><strong><SafeText text={note.name} /></strong> <SafeText text={note.value} /></p>)}
      <Command args={{ command: text("command") }} parts={[]} permissions={[]} />
      {Object.keys(args).some((name) => !OWN.has(name)) && <Arguments args={args} but={OWN} titled />}
      <p class="note">The command is paused at this {request ? "request" : "connection"}. “For this session” covers only this command line; “Always…” covers every command.{" "}
        <span class="dim">Task <code><SafeText text={text("task")} /></code></span></p>
    </div>
  );
}
