// The deciding fact of a request, whole: the command with its parts, the change, the address, else the arguments in the schema's order.

import { fieldsOf } from "../schema";
import type { ApprovalDetail, Json, Permission, Schema } from "../shapes";
import { spelled } from "../visible";
import { StateWord } from "./badges";
import { Copy } from "./copy";
import { FileChange } from "./diffview";
import { Block, Shown } from "./text";

type Named = { [name: string]: Json };

/** The arguments as an object; none when they are no object. */
export function argumentsOf(text: string): Named | undefined {
  try {
    const parsed = JSON.parse(text) as Json;
    return parsed && typeof parsed === "object" && !Array.isArray(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}

export function Fact({ detail }: { detail: ApprovalDetail }) {
  const args = argumentsOf(detail.edited_arguments ?? detail.arguments);
  const runs = detail.permissions.filter((permission) => permission.kind === "run");
  const connects = detail.permissions.filter((permission) => permission.kind === "connect");
  const shown = new Set<string>();
  const parts = [];
  if (args && detail.tool === "apply_changes") return <Applied detail={detail} args={args} />;
  if (args && (typeof args.command === "string" || Array.isArray(args.argv))) {
    parts.push(<Command args={args} parts={runs} permissions={detail.permissions} />);
    shown.add("command").add("argv");
  }
  if (connects.length) {
    parts.push(<Addresses connects={connects} />);
    shown.add("url").add("urls");
  }
  const preview = detail.preview ?? [];
  if (preview.length) {
    parts.push(...preview.map((file, index) => <FileChange key={index} file={file} />));
    const texts = preview.every((file) => !file.binary && !file.clipped && (file.after !== undefined || file.action === "delete"));
    if (texts) ["path", "content", "edits", "patch", "from", "to"].forEach((name) => shown.add(name));
  }
  return (
    <div class="fact">
      {parts}
      {args ? <Arguments args={args} but={shown} schema={detail.input_schema} titled={parts.length > 0} />
        : <Block text={detail.arguments} label="the arguments, which are not a JSON object" />}
    </div>
  );
}

/** What a command changed on its copy: the command, then the change; what only binds the approval stays folded away. */
function Applied({ detail, args }: { detail: ApprovalDetail; args: Named }) {
  const preview = detail.preview ?? [];
  const shown = new Set(preview.flatMap((file) => [file.path, file.to ?? file.path]));
  const others = detail.permissions.filter((permission) => permission.kind !== "apply" && !shown.has(permission.value));
  const network = Array.isArray(args.network) ? args.network.filter((line) => typeof line === "string") : [];
  return (
    <div class="fact">
      <Command args={args} parts={[]} permissions={[]} />
      <p class="note">The command has ended. Approving applies what it changed; nothing of this is in the workspace yet.</p>
      {network.length > 0 && (
        <ul class="parts" aria-label="the network of the command">
          {network.map((line) => <li key={line}><Shown text={line} /></li>)}
        </ul>
      )}
      {preview.map((file, index) => <FileChange key={index} file={file} />)}
      {others.length > 0 && (
        <ul class="parts" aria-label="what else it changes">
          {others.map((part, index) => <Part key={index} part={part} does={part.kind === "remove" ? "removes" : part.kind === "write" ? "writes" : part.kind} />)}
        </ul>
      )}
      <details class="bound">
        <summary>What the approval is bound to</summary>
        <Arguments args={args} but={new Set(["command", "network"])} />
      </details>
    </div>
  );
}

function Command({ args, parts, permissions }: { args: Named; parts: Permission[]; permissions: Permission[] }) {
  const argv = Array.isArray(args.argv) ? args.argv.map((word) => (typeof word === "string" ? word : JSON.stringify(word))) : undefined;
  const line = typeof args.command === "string" ? args.command : argv?.map(quoted).join(" ") ?? "";
  const writes = permissions.filter((permission) => permission.kind === "write");
  const several = parts.length > 1 || writes.length > 0;
  return (
    <div class="command">
      <div class="prompt"><span class="dollar" aria-hidden="true">$</span><Block text={line} label="the command" /><Copy text={line} what="the command" /></div>
      {several && (
        <ul class="parts" aria-label="what it comes to">
          {parts.map((part, index) => <Part key={index} part={part} does="runs" />)}
          {writes.map((part, index) => <Part key={`w${index}`} part={part} does="writes" />)}
        </ul>
      )}
    </div>
  );
}

/** A part with what the policy says of it, before what it says itself. */
function Part({ part, does }: { part: Permission; does: string }) {
  return (
    <li>
      {part.verdict && <><StateWord word={part.verdict} />{" "}</>}<span class="what">{does}</span>{" "}
      <code class={does === "writes" ? "writes" : ""}><Shown text={part.value} /></code> <span class={`risk-${part.risk} small`}>{part.risk}</span>
    </li>
  );
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

function Addresses({ connects }: { connects: Permission[] }) {
  return (
    <ul class="addresses" aria-label="where it connects to">
      {connects.map((connect, index) => <li key={index}><Address url={connect.value} />{connect.target && <span class="note warn">leads to {connect.target}, a private address</span>}</li>)}
    </ul>
  );
}

/** An address with its host large; a host that is not plain ASCII is spelled out, too. */
function Address({ url }: { url: string }) {
  let host = "";
  try {
    host = new URL(url).host;
  } catch {
    return <span class="url"><Shown text={url} /></span>;
  }
  const at = url.toLowerCase().indexOf(host);
  const [before, own, after] = at < 0 ? ["", url, ""] : [url.slice(0, at), url.slice(at, at + host.length), url.slice(at + host.length)];
  return (
    <>
      <span class="host"><Shown text={host} /></span>
      <span class="url"><Shown text={before} /><strong><Shown text={own} /></strong><Shown text={after} /></span>
    </>
  );
}

/** Arguments one by one in the schema's order; `but` those that are shown already. */
export function Arguments({ args, but = new Set(), schema, titled = false }: { args: Named; but?: Set<string>; schema?: Schema; titled?: boolean }) {
  const properties = fieldsOf(schema, {}).map((field) => field.name);
  const names = Object.keys(args).filter((name) => !but.has(name));
  const place = (name: string) => { const at = properties.indexOf(name); return at < 0 ? properties.length : at; };
  names.sort((a, b) => place(a) - place(b));
  if (!names.length) return titled ? null : <p class="note">It takes no arguments.</p>;
  return (
    <dl class="arguments" aria-label="arguments">
      {names.map((name) => (
        <div key={name}>
          <dt><Shown text={name} /></dt>
          <dd><Value value={args[name] ?? null} label={spelled(name)} /></dd>
        </div>
      ))}
    </dl>
  );
}

/** A value of the arguments as text. */
export function Value({ value, label }: { value: Json; label: string }) {
  if (typeof value === "string") return value === "" ? <span class="dim">empty text</span> : <Block text={value} label={label} />;
  if (value === null || typeof value !== "object") return <code>{String(value)}</code>;
  return <Block text={JSON.stringify(value, null, 2)} label={label} />;
}
