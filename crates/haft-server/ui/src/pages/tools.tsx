// The tools page: the tools that a model has, with the model's own search; each with schema, verdict and a form for a real call.

import { useEffect, useRef, useState } from "preact/hooks";
import { openable, post, errorText } from "../api";
import { steps, useKeys } from "../keys";
import { mayAct } from "../live";
import { follow, go, parts, pathOf, query } from "../route";
import { fieldsOf } from "../schema";
import { session } from "../session";
import type { Json, Outcome, Schema, Tool } from "../shapes";
import { RiskWord, StateWord } from "../parts/badges";
import { SchemaForm, faultsOf, type Values } from "../parts/form";
import { Empty, wide } from "../parts/frame";
import { PageHead } from "../parts/head";
import { OutcomeView } from "../parts/outcome";
import { Pending, useReading } from "../parts/reading";
import { Inline, Markdown } from "../parts/markdown";
import { Table, type Column } from "../parts/table";
import { SafeText } from "../parts/text";

export function Tools() {
  const named = parts.value[1];
  const words = query.value.get("q") ?? "";
  const [typed, setTyped] = useState(words);
  useEffect(() => {
    const timer = setTimeout(() => {
      const search = typed.trim() ? `?q=${encodeURIComponent(typed.trim())}` : "";
      if (search !== location.search && location.pathname.startsWith("/tools")) go(location.pathname + search, true);
    }, 120);
    return () => clearTimeout(timer);
  }, [typed]);
  const tools = useReading<Tool[]>(words ? `/tools?q=${encodeURIComponent(words)}` : "/tools");
  const list = tools.value ?? [];
  const selected = named ?? (wide.value ? list[0]?.name : undefined);
  const search = words ? `?q=${encodeURIComponent(words)}` : "";
  const finding = useRef<HTMLInputElement>(null);
  useKeys(() => [
    ...steps("tool", list.map((tool) => tool.name), selected, (name) => go(pathOf("tools", name) + search, named !== undefined)),
    { key: "/", does: "search the tools", run: () => finding.current?.focus() },
  ]);
  return (
    <>
    <PageHead title="Tools" thing={named} />
    <div class="split with-detail">
      {(wide.value || !named) && (
        <section class="side" aria-label="all tools">
          <input ref={finding} type="search" placeholder="Search as the model does" aria-label="Search the tools" value={typed} onInput={(e) => setTyped(e.currentTarget.value)} />
          <Pending reading={tools} />
          {tools.value && !list.length && (words ? <p class="note">No tool matches “{words}”.</p> : <Empty title="No tools"><p>Settings turn tools on: <code>tools.enable</code>.</p></Empty>)}
          <ul class="side-list" aria-label="tools">
            {list.map((tool) => (
              <li key={tool.name}><a href={pathOf("tools", tool.name) + search} onClick={follow} aria-current={tool.name === selected ? "true" : undefined}>
                <span class="side-name"><SafeText text={tool.name} /></span> <RiskWord risk={tool.risk} />
                <span class="side-about"><SafeText text={(tool.description.split("\n")[0] ?? "").replaceAll("`", "").slice(0, 110)} /></span>
              </a></li>
            ))}
          </ul>
        </section>
      )}
      {selected && <ToolDetail key={selected} name={selected} />}
    </div>
    </>
  );
}

function ToolDetail({ name }: { name: string }) {
  const reading = useReading<Tool>(`/tools/${encodeURIComponent(name)}`);
  const tool = reading.value;
  return (
    <section class="detail" aria-label="the selected tool">
      {!wide.value && <a class="back" href="/tools" onClick={follow}>All tools</a>}
      {!tool ? <Pending reading={reading} /> : (
        <>
          <h2><SafeText text={tool.title} /> {tool.title !== tool.name && <code><SafeText text={tool.name} /></code>}</h2>
          <div class="meta"><RiskWord risk={tool.risk} />{tool.verdict && <span>policy verdict <StateWord word={tool.verdict} /></span>}
            <span class="dim">from <SafeText text={tool.source} /> · <SafeText text={tool.category} /> · <SafeText text={tool.exposure} /></span>
            <a href={`/policy?tool=${encodeURIComponent(name)}`} onClick={follow}>What would happen</a></div>
          <Description text={tool.description} />
          <Try tool={tool} />
          {tool.ui && <Interface tool={tool} />}
          <h3>Arguments</h3>
          <SchemaTable schema={tool.input_schema} />
          {tool.output_schema && <details><summary>Result</summary><SchemaTable schema={tool.output_schema} /></details>}
        </>
      )}
    </section>
  );
}

/** Number of paragraphs of a description shown while it is folded. */
const AT_ONCE = 1;

/** The first paragraph of a description, and the rest on demand, so that the form fits on the first screen. */
function Description({ text }: { text: string }) {
  const [open, setOpen] = useState(false);
  const paragraphs = text.trim().split(/\n\s*\n/);
  const shown = open ? text : paragraphs.slice(0, AT_ONCE).join("\n\n");
  return (
    <div class="prose">
      <Markdown text={shown} />
      {paragraphs.length > AT_ONCE && <button type="button" class="fold" aria-expanded={open} onClick={() => setOpen(!open)}>{open ? "Show less" : "Show the full description"}</button>}
    </div>
  );
}

/** A server's own page for a tool, in a frame without an origin, so that it cannot access the console. */
function Interface({ tool }: { tool: Tool }) {
  const [open, setOpen] = useState(false);
  const [source, setSource] = useState("");
  const route = `/tools/${encodeURIComponent(tool.name)}/ui`;
  // Checked first, so that an unavailable page gives an error message, not a broken frame.
  const about = useReading<{ bytes: number }>(open ? route : undefined);
  const [trouble, setTrouble] = useState("");
  const had = open && about.value !== undefined && !about.trouble;
  useEffect(() => {
    setSource("");
    setTrouble("");
    if (had) openable(`${route}/page`).then(setSource, (error) => setTrouble(errorText(error)));
  }, [had, route]);
  return (
    <details onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>The tool's own page <span class="dim mono"><SafeText text={tool.ui?.uri ?? ""} /></span></summary>
      {open && <Pending reading={about} />}
      {trouble && <p class="bad-text">{trouble}</p>}
      {source && <iframe class="interface" sandbox="allow-scripts" referrerpolicy="no-referrer" title={`page of ${tool.name}`} src={source} />}
    </details>
  );
}

function typeOf(schema: Schema): string {
  const type = Array.isArray(schema.type) ? schema.type.join(" or ") : schema.type;
  if (Array.isArray(schema.enum)) return schema.enum.map((value) => (typeof value === "string" ? value : JSON.stringify(value))).join(", ");
  if (type === "array" && schema.items && typeof schema.items === "object" && !Array.isArray(schema.items)) return `list of ${typeOf(schema.items)}`;
  return typeof type === "string" ? type : "any";
}

function SchemaTable({ schema }: { schema: Schema }) {
  const fields = fieldsOf(schema, {});
  if (!fields.length) return <p class="note">None.</p>;
  return (
    <Table label="schema" columns={FIELD_COLUMNS} rows={fields.map(({ name, schema: field, required }) => ({
      key: name, cells: [
        <code>{name}</code>, typeOf(field),
        required ? <strong>required</strong> : field.default !== undefined && field.default !== null ? JSON.stringify(field.default) : "",
        typeof field.description === "string" && <Inline text={field.description} />,
      ],
    }))} />
  );
}

const FIELD_COLUMNS: Column[] = [{ head: "name" }, { head: "type", class: "mono" }, { head: "default", class: "mono" }, { head: "description" }];

/** A form for a real call, on the same path as a model's calls. */
function Try({ tool }: { tool: Tool }) {
  const [values, setValues] = useState<Values>({});
  const [faults, setFaults] = useState(() => faultsOf(tool.input_schema, {}));
  const [state, setState] = useState<{ busy: boolean; outcome?: Outcome; problem?: string }>({ busy: false });
  const call = () => {
    setState({ busy: true });
    post<Outcome>("/calls", { tool: tool.name, arguments: values as Json }).then(
      (outcome) => setState({ busy: false, outcome }),
      (error) => setState({ busy: false, problem: errorText(error) }),
    );
  };
  if (session.value && session.value.workspace === undefined) {
    return <p class="dim">This console is for all folders. To try the tool, open the console of a <code>haft serve</code> in a folder, or use <code>haft call</code>.</p>;
  }
  return (
    <details class="try">
      <summary>Try it</summary>
      <form onSubmit={(e) => { e.preventDefault(); if (!state.busy && faults === 0) call(); }}>
        <p class="dim">This makes a real call: the policy applies, and the call is recorded.</p>
        <SchemaForm schema={tool.input_schema} values={values} idBase={`try-${tool.name}`} change={(next, wrong) => { setValues(next); setFaults(wrong); }} />
        <div class="choices"><button type="submit" class="primary" disabled={state.busy || faults > 0 || !mayAct()}>{state.busy ? "Running …" : "Call"}</button>
          {state.busy && <a href="/waiting" onClick={follow}>It may need your approval</a>}</div>
      </form>
      <div role="status">{state.problem && <p class="bad-text">{state.problem}</p>}{state.outcome && <OutcomeView outcome={state.outcome} />}</div>
    </details>
  );
}
