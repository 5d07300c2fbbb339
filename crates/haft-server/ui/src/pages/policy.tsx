// The policy page: the effective policy, and a form that shows what would happen to a call.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, post, errorText } from "../api";
import { query } from "../route";
import type { ApprovalDetail, PolicyExplanation, Json, PolicyRule, EffectivePolicy, Tool } from "../shapes";
import { StateWord } from "../parts/badges";
import { StoredRules } from "../parts/storedrules";
import { argumentsOf } from "../parts/arguments";
import { PageHead } from "../parts/head";
import { Pending, useReading } from "../parts/reading";
import { Table, type Column } from "../parts/table";
import { SafeText, Sentence } from "../parts/text";

export function Policy() {
  const [changes, setChanges] = useState(0);
  return (
    <div class="page policy">
      <PageHead title="Policy" />
      <WhatWouldHappen />
      <Effective follow={changes} />
      <StoredRules changed={() => setChanges((n) => n + 1)} />
    </div>
  );
}

/** Example values of arguments, by name. */
const LIKELY: Record<string, Json> = { path: "notes.txt", from: "a.txt", to: "b.txt", command: "ls", url: "https://example.com/", pattern: "*.txt" };

/** Returns example arguments for a tool: the required ones. */
function example(tool: Tool | undefined): string {
  const schema = tool?.input_schema;
  const required = Array.isArray(schema?.required) ? schema.required : [];
  const names = tool?.name === "run_command" ? ["command"] : tool?.name === "fetch_url" ? ["url"] : required.map(String);
  return JSON.stringify(Object.fromEntries(names.map((name) => [name, LIKELY[name] ?? "text"])), null, 2);
}

function WhatWouldHappen() {
  const tools = useReading<Tool[]>("/tools");
  const asked = query.value.get("tool");
  const approval = query.value.get("approval");
  const [tool, setTool] = useState(asked ?? "");
  const [args, setArgs] = useState(query.value.get("args") ?? "");
  // A ref, so that an effect reads the current value: an example never replaces what the user has typed in the meantime.
  const typed = useRef(args !== "" || approval !== null);
  const [found, setFound] = useState<{ explained?: PolicyExplanation; problem?: string }>({});
  const list = tools.value ?? [];
  const chosen = tool || list.find((one) => one.name === "write_file")?.name || list[0]?.name || "";
  useEffect(() => {
    if (!approval) return;
    get<ApprovalDetail>(`/approvals/${encodeURIComponent(approval)}`).then(
      (detail) => { setTool(detail.tool); setArgs(JSON.stringify(argumentsOf(detail.arguments) ?? {}, null, 2)); },
      (error) => setFound({ problem: errorText(error) }),
    );
  }, [approval]);
  useEffect(() => {
    if (!typed.current && chosen) setArgs(example(list.find((one) => one.name === chosen)));
  }, [tools.value]);
  // Set together with the tool: an effect runs later and could overwrite what the user has begun to type.
  const choose = (name: string) => {
    typed.current = false;
    setTool(name);
    setArgs(example(list.find((one) => one.name === name)));
  };
  const parsed = useMemo(() => {
    try {
      return { value: JSON.parse(args || "{}") as Json };
    } catch (error) {
      return { problem: error instanceof Error ? error.message : "not valid JSON" };
    }
  }, [args]);
  useEffect(() => {
    // Before the tools are known, there is no example of the arguments yet.
    if (!chosen || parsed.value === undefined || (!typed.current && !tools.value)) return;
    let over = false;
    const timer = setTimeout(() => {
      post<PolicyExplanation>("/policy/explain", { tool: chosen, arguments: parsed.value }).then(
        (explained) => { if (!over) setFound({ explained }); },
        (error) => { if (!over) setFound({ problem: errorText(error) }); },
      );
    }, 200);
    return () => { over = true; clearTimeout(timer); };
  }, [chosen, parsed, tools.value === undefined]);
  return (
    <section class="what" aria-label="what would happen">
      <h2>What would happen</h2>
      <p class="dim">Nothing runs: haft only evaluates the call.</p>
      <div class="what-form">
        <div class="field"><label for="what-tool">Tool</label>
          <select id="what-tool" value={chosen} onChange={(e) => choose(e.currentTarget.value)}>
            {chosen && !list.some((one) => one.name === chosen) && <option value={chosen}>{chosen}</option>}
            {list.map((one) => <option key={one.name} value={one.name}>{one.name}</option>)}
          </select></div>
        <div class="field"><label for="what-args">Arguments</label>
          <textarea id="what-args" class="code" rows={Math.min(14, Math.max(4, args.split("\n").length))} spellcheck={false} value={args} aria-invalid={parsed.problem ? true : undefined}
            aria-describedby="what-args-about" onInput={(e) => { typed.current = true; setArgs(e.currentTarget.value); }} />
          <div class="about" id="what-args-about">{parsed.problem && <span class="bad-text">{parsed.problem}</span>}</div></div>
      </div>
      <div role="status">{found.problem && <p class="bad-text"><SafeText text={found.problem} /></p>}{found.explained && <Explanation explained={found.explained} />}</div>
    </section>
  );
}

const SAYS = { allow: "It would run.", ask: "It would need approval.", deny: "It would be denied." };

function Explanation({ explained }: { explained: PolicyExplanation }) {
  return (
    <div class="explained">
      <p class={`verdict ${explained.verdict}`}><StateWord word={explained.verdict} /> <strong>{SAYS[explained.verdict]}</strong>{explained.enabled === false && " The tool is not enabled, so it cannot be called now."}</p>
      <Table label="each effect" columns={EFFECT_COLUMNS} rows={explained.parts.map((part, index) => ({
        key: index, cells: [part.kind, <SafeText text={part.value} />, <StateWord word={part.verdict} />, <SafeText text={part.rule} />, <SafeText text={part.layer} />],
      }))} />
      <Layers layers={explained.layers} verdict={explained.verdict} />
    </div>
  );
}

/** The verdict of each layer. Layers that do not decide are folded. */
function Layers({ layers, verdict }: { layers: PolicyExplanation["layers"]; verdict: PolicyExplanation["verdict"] }) {
  const [open, setOpen] = useState(false);
  const decides = (layer: PolicyExplanation["layers"][number]) => layer.verdict === verdict && (verdict !== "allow" || !layer.layer.startsWith("guard"));
  const deciding = layers.filter(decides);
  const shown = open || !deciding.length ? layers : deciding;
  const rest = layers.length - deciding.length;
  return (
    <>
      <Table label="each layer" columns={LAYER_COLUMNS} rows={shown.map((layer, index) => ({
        key: index, cells: [
          <SafeText text={layer.layer} />, layer.verdict === "none" ? <span class="dim">none</span> : <StateWord word={layer.verdict} />, <SafeText text={layer.rule} />, <Sentence text={layer.reason} />,
        ],
      }))} />
      {rest > 0 && deciding.length > 0 && <button type="button" class="disclosure" aria-expanded={open} onClick={() => setOpen(!open)}>{open ? "Show only the deciding layers" : rest === 1 ? "1 other layer that does not decide" : `${rest} other layers that do not decide`}</button>}
    </>
  );
}

const EFFECT_COLUMNS: Column[] = [{ head: "effect" }, { head: "target", class: "mono" }, { head: "verdict" }, { head: "rule", class: "mono" }, { head: "from" }];
const LAYER_COLUMNS: Column[] = [{ head: "layer" }, { head: "verdict" }, { head: "rule", class: "mono" }, { head: "reason" }];

const SECRETS = { allow: "treated like other files", ask: "need approval, and are hidden from commands until then", deny: "no call may touch them" };

/** Labels for the reasons why a rule decides nothing. */
const DEAD = {
  never_matches: "never matches", shadowed: "shadowed", repeated: "repeated", outside: "outside the workspace", unknown_tool: "no such tool", tool_off: "tool is off", unused: "unused",
};

/** A rule, marked if it decides nothing. */
function RuleCell({ rule, all }: { rule: PolicyRule; all: PolicyRule[] }) {
  const { dead } = rule;
  const by = dead?.by === undefined ? undefined : all[dead.by];
  return (
    <>
      <code><SafeText text={rule.rule} /></code>
      {dead && (
        <span class="dead">
          <span class={`badge ${dead.cause === "unused" ? "plain" : "wait"}`}>{DEAD[dead.cause]}</span>{" "}
          {by && dead.cause === "shadowed" ? <>the {by.list} rule <code><SafeText text={by.rule} /></code> of <SafeText text={by.layer} /> decides first</> : <Sentence text={dead.problem} />}
          <span class="dim"> – <Sentence text={dead.advice} /></span>
        </span>
      )}
    </>
  );
}

function Effective({ follow }: { follow: number }) {
  const reading = useReading<EffectivePolicy>("/policy", follow);
  const [deadAlone, setDeadAlone] = useState(false);
  const shown = reading.value;
  if (!shown) return <Pending reading={reading} />;
  const counted = shown.rules.some((rule) => rule.matched !== undefined);
  const dead = shown.rules.filter((rule) => rule.dead);
  const rules = deadAlone && dead.length ? dead : shown.rules;
  const explained = shown.rules.some((rule) => rule.reason);
  const columns: Column[] = [{ head: "rule", class: "rule-cell" }, { head: "list" }, { head: "from" }, ...(counted ? [{ head: "decided", class: "decisions" }] : []), ...(explained ? [{ head: "reason" }] : [])];
  return (
    <section aria-label="the rules in force">
      <h2>Rules in force</h2>
      <p>Profile <strong>{shown.profile}</strong> decides where no rule matches. Deny rules are checked first, then ask, then allow.
        {counted && shown.looked_at !== undefined && ` The numbers show how many of the last ${shown.looked_at.toLocaleString("en")} calls each rule decided.`}</p>
      {dead.length > 0 && (
        <p class="note warn dead-rules">{dead.length === 1 ? "1 rule decides nothing." : `${dead.length} rules decide nothing.`}{" "}
          {dead.length < shown.rules.length && <button type="button" class="link" aria-pressed={deadAlone} onClick={() => setDeadAlone(!deadAlone)}>{deadAlone ? "Show all rules" : dead.length === 1 ? "Show only this rule" : "Show only these rules"}</button>}</p>
      )}
      {shown.rules.length > 0 ? (
        <Table label="rules" columns={columns} rows={rules.map((rule, index) => ({
          key: index, class: rule.dead ? "is-dead" : undefined, cells: [
            <RuleCell rule={rule} all={shown.rules} />, <StateWord word={rule.list} />, <SafeText text={rule.layer} />,
            ...(counted ? [rule.matched?.toLocaleString("en")] : []), ...(explained ? [rule.reason && <SafeText text={rule.reason} />] : []),
          ],
        }))} />
      ) : <p class="note">No rules: the profile alone decides. Rules go into <code>policy.allow</code>, <code>policy.ask</code> and <code>policy.deny</code> in haft.toml, or come from “Always…” on a request.</p>}
      <dl class="facts">
        <div><dt>secret files</dt><dd>{SECRETS[shown.secret_files]}</dd></div>
        <div><dt>guards</dt><dd>{shown.guards.map((guard) => guard.name).join(", ")}</dd></div>
        <div><dt>sandbox</dt><dd>at least {shown.sandbox.require}, network {shown.sandbox.network}</dd></div>
        {shown.skills.map((skill) => <div key={skill.name}><dt>skill <SafeText text={skill.name} /></dt><dd>{skill.requests.length ? <>asks for <SafeText text={skill.requests.join(", ")} /> (grants nothing)</> : "restricts itself"}</dd></div>)}
      </dl>
    </section>
  );
}
