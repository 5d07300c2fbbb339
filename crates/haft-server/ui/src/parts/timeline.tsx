// The timeline of a run: time runs across, with one row per call and a script's calls inside its bar; waits for approval are hatched,
// denied calls outlined.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Call } from "../shapes";
import { now, span } from "../time";
import { spellOut } from "../visible";
import { argumentText } from "./arguments";
import { wordOf } from "./badges";
import { SafeText } from "./text";

/** The status of a call that is pending approval: it has no record yet. */
export const WAITS = "pending";

const ROW = 26;
const BAR = 14;
const AXIS = 24;
const AHEAD = 10;

/** A call with its depth and its position in time. */
interface Placed {
  call: Call;
  depth: number;
  from: number;
  to: number;
  /** Number of rows that its own calls take below it. */
  inside: number;
}

/** Returns the calls in display order: each followed by those it made. */
export function placeCalls(calls: Call[], present: number): Placed[] {
  const known = new Set(calls.map((call) => call.call));
  const children = new Map<string | undefined, Call[]>();
  for (const call of calls) {
    const parent = call.parent !== undefined && known.has(call.parent) && call.parent !== call.call ? call.parent : undefined;
    const list = children.get(parent);
    if (list) list.push(call);
    else children.set(parent, [call]);
  }
  const out: Placed[] = [];
  const add = (call: Call, depth: number) => {
    const started = Date.parse(call.started);
    const ended = call.ended ? Date.parse(call.ended) : call.status && call.status !== WAITS ? started + (call.duration_ms ?? 0) : present;
    // `started` is when the call began to run; its duration also includes the wait for approval before that.
    const from = call.waited_ms && call.ended ? Math.min(started, ended - (call.duration_ms ?? 0)) : started;
    const place: Placed = { call, depth, from, to: Math.max(from, ended), inside: 0 };
    out.push(place);
    const before = out.length;
    // A record that names itself as its own ancestor is drawn once.
    if (depth < 8) (children.get(call.call) ?? []).forEach((child) => add(child, depth + 1));
    place.inside = out.length - before;
  };
  (children.get(undefined) ?? []).forEach((call) => add(call, 0));
  return out;
}

/** Round steps of the axis, in milliseconds. */
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 216e5, 432e5, 864e5];

/** Returns the smallest step of which about `most` fit. */
function stepOf(total: number, most: number): number {
  return STEPS.find((step) => step >= total / most) ?? Math.ceil(total / most / 864e5) * 864e5;
}

/** Returns the exact label of a mark on the axis: 500 ms, 20 s, 2 min 30 s. */
function tickLabel(ms: number): string {
  const parts: [number, string][] = [[Math.floor(ms / 864e5), "d"], [Math.floor(ms / 36e5) % 24, "h"], [Math.floor(ms / 6e4) % 60, "min"], [Math.floor(ms / 1e3) % 60, "s"], [Math.round(ms % 1e3), "ms"]];
  return parts.filter(([count]) => count > 0).map(([count, unit]) => `${count} ${unit}`).join(" ") || "0";
}

export function Timeline({ calls, selected, select }: { calls: Call[]; selected: string | undefined; select: (call: string) => void }) {
  const outer = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState({ width: 800, top: 0, room: 500 });
  const [peek, setPeek] = useState<number>();
  const runs = calls.some((call) => call.status === undefined || call.status === WAITS);
  const present = runs ? now.value : 0;
  const rows = useMemo(() => placeCalls(calls, present), [calls, present]);
  const measure = () => {
    const element = outer.current;
    if (element) setSize({ width: element.clientWidth, top: element.scrollTop, room: element.clientHeight });
  };
  useLayoutEffect(() => {
    measure();
    const watch = new ResizeObserver(measure);
    if (outer.current) watch.observe(outer.current);
    return () => watch.disconnect();
  }, []);
  const at = rows.findIndex((row) => row.call.call === selected);
  useEffect(() => {
    const element = outer.current;
    if (!element || at < 0) return;
    if (at * ROW < element.scrollTop || (at + 1) * ROW + AXIS > element.scrollTop + element.clientHeight) element.scrollTop = Math.max(0, at * ROW - element.clientHeight / 3);
  }, [at]);
  const gutter = size.width < 560 ? 132 : Math.min(360, Math.round(size.width * 0.4));
  const start = Math.min(...rows.map((row) => row.from));
  const total = Math.max(1, Math.max(...rows.map((row) => row.to)) - start);
  const scale = Math.max(1, size.width - gutter - 70) / total;
  const x = (time: number) => gutter + (time - start) * scale;
  const first = Math.max(0, Math.floor((size.top - AXIS) / ROW) - AHEAD);
  const last = Math.min(rows.length, Math.ceil((size.top + size.room) / ROW) + AHEAD);
  const step = stepOf(total, Math.max(2, Math.floor((size.width - gutter - 70) / 90)));
  const ticks = Array.from({ length: Math.floor(total / step) + 1 }, (_, index) => index * step);
  const height = AXIS + rows.length * ROW + 6;
  const move = (by: number) => {
    const next = rows[Math.min(rows.length - 1, Math.max(0, at + by))];
    if (next) select(next.call.call);
  };
  const bands = rows.map((row, index) => ({ row, index })).filter(({ row, index }) => row.inside > 0 && index < last && index + row.inside >= first);
  const has = (kind: string) => rows.some((row) => kindOf(row.call) === kind);
  const over = peek === undefined ? undefined : rows[peek];
  return (
    <div class="timeline-frame">
      <div class="timeline" ref={outer} onScroll={measure} onPointerLeave={() => setPeek(undefined)}>
        <svg width={size.width} height={height} role="listbox" aria-label="timeline of calls" tabIndex={0} aria-activedescendant={selected ? `bar-${selected}` : undefined}
          onKeyDown={(e) => {
            if (e.key === "ArrowDown") { e.preventDefault(); move(1); setPeek(Math.min(rows.length - 1, at + 1)); }
            if (e.key === "ArrowUp") { e.preventDefault(); move(-1); setPeek(Math.max(0, at - 1)); }
          }} onFocus={() => setPeek(at < 0 ? undefined : at)} onBlur={() => setPeek(undefined)}>
          <defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="hatch-ground" width="6" height="6" /><line class="hatch-line" x1="0" y1="0" x2="0" y2="6" /></pattern>
            <pattern id="hatch-held" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)"><rect class="held-ground" width="6" height="6" /><line class="held-line" x1="0" y1="0" x2="0" y2="6" /></pattern></defs>
          <g aria-hidden="true" class="axis">{ticks.map((tick) => <g key={tick}><line x1={x(start + tick)} x2={x(start + tick)} y1={AXIS - 4} y2={height} /><text x={x(start + tick) + 3} y={14}>{tickLabel(tick)}</text></g>)}</g>
          {bands.map(({ row, index }) => <rect key={row.call.call} class="band" aria-hidden="true" x={x(row.from) - 2} width={Math.max(6, (row.to - row.from) * scale + 4)} y={AXIS + (index + 1) * ROW} height={row.inside * ROW} rx={3} />)}
          {rows.slice(first, last).map((row, offset) => (
            <BarRow key={row.call.call} row={row} index={first + offset} gutter={gutter} width={size.width} x={x} scale={scale} current={row.call.call === selected}
              choose={() => select(row.call.call)} peek={() => setPeek(first + offset)} />
          ))}
        </svg>
      </div>
      {over && peek !== undefined && <Peek row={over} top={AXIS + (peek + 1) * ROW - size.top + 4} below={size.room} />}
      <p class="legend" aria-hidden="true"><span><span class="key ok" />ran</span>{has("suspended") && <span><span class="key suspended" />waits for approval</span>}<span><span class="key waited" />waited for approval</span>{has("exit") && <span><span class="key exit" />ended otherwise</span>}<span><span class="key denied" />denied</span><span><span class="key failed" />failed</span><span><span class="key live" />running</span></p>
    </div>
  );
}

interface BarProps {
  row: Placed; index: number; gutter: number; width: number; x: (time: number) => number; scale: number; current: boolean; choose: () => void; peek: () => void;
}

function BarRow({ row, index, gutter, width, x, scale, current, choose, peek }: BarProps) {
  const { call } = row;
  const top = AXIS + index * ROW;
  const y = top + (ROW - BAR) / 2;
  const left = x(row.from);
  const long = Math.max(3, (row.to - row.from) * scale);
  const waits = call.status === WAITS || call.status === "suspended";
  const waited = waits ? long : Math.min(long, (call.waited_ms ?? 0) * scale);
  const kind = kindOf(call);
  const room = Math.floor((gutter - 14 - row.depth * 14) / 7.3);
  const name = spellOut(call.tool);
  const label = cut(name, Math.max(4, room));
  const argument = cut(spellOut(call.argument ?? ""), room - label.length - 1);
  const took = span(call.status ? call.duration_ms ?? row.to - row.from : row.to - row.from);
  const after = left + long + 6;
  const words = `${name}${call.argument ? ` ${spellOut(call.argument)}` : ""}, ${statusWords(call)}, ${took}${call.waited_ms ? `, waited ${span(call.waited_ms)} for approval` : ""}`;
  return (
    <g id={`bar-${call.call}`} class={`bar-row ${current ? "current" : ""}`} role="option" aria-selected={current} aria-label={words} onClick={choose} onPointerEnter={peek}>
      <rect class="ground" x={0} y={top} width={width} height={ROW} />
      <text class="name" x={8 + row.depth * 14} y={top + 17}>{label}{argument && <tspan class="argument"> {argument}</tspan>}</text>
      {waited > 0 && <rect class={waits ? "waited suspended" : "waited"} x={left} y={y} width={waited} height={BAR} rx={2} />}
      <rect class={`took ${kind}`} x={left + waited} y={kind === "denied" ? y + 0.75 : y} width={waits ? 0 : Math.max(2, long - waited)} height={kind === "denied" ? BAR - 1.5 : BAR} rx={2} />
      <text class="duration" x={after > width - 52 ? left - 6 : after} y={top + 17} text-anchor={after > width - 52 ? "end" : "start"}>{took}</text>
    </g>
  );
}

/** Returns the look of a call's bar. A program's own exit code is no failure of the call. */
function kindOf({ status, exit_code }: Call): string {
  if (status === undefined) return "live";
  if (status === "denied" || status === "ok") return status;
  if (status === "suspended" || status === WAITS) return "suspended";
  return exit_code === undefined && status !== "cancelled" ? "failed" : "exit";
}

/** Returns how a call stands, in words. */
const statusWords = (call: Call): string => (call.exit_code !== undefined ? `exit ${call.exit_code}` : wordOf(call.status === WAITS ? "suspended" : call.status ?? "running"));

/** Cuts a text to `room` characters; returns an empty text if too few would remain to recognize it. */
function cut(text: string, room: number): string {
  if (text.length <= room) return text;
  return room < 4 ? "" : `${text.slice(0, room - 1)}…`;
}

/** The preview of a call on hover or focus. */
function Peek({ row, top, below }: { row: Placed; top: number; below: number }) {
  const args = argumentText(row.call).replace(/\s+/g, " ");
  const place = top > below - 60 ? { bottom: `${below - top + ROW + 36}px` } : { top: `${top}px` };
  return (
    <div class="peek" aria-hidden="true" style={place}>
      <strong><SafeText text={row.call.tool} /></strong> {statusWords(row.call)}
      {args && <div class="mono clip"><SafeText text={args.slice(0, 300)} /></div>}
      {row.call.summary && <div class="clip"><SafeText text={row.call.summary.slice(0, 300)} /></div>}
      {row.call.result && row.call.result !== row.call.summary && <div class="mono clip dim"><SafeText text={row.call.result.slice(0, 300)} /></div>}
    </div>
  );
}
