// The first page: pending requests, today's failures, calls per hour, waiting times, connected clients and disk usage.

import type { ComponentChildren } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { waiting } from "../approvals";
import { useKeys } from "../keys";
import { runsChanged } from "../live";
import { follow, go, pathOf } from "../route";
import type { Client, Disk, Hour, Overview as Shape } from "../shapes";
import { ago, bytes, midnight, now, span } from "../time";
import { RiskWord } from "../parts/badges";
import { clientName } from "../parts/client";
import { Pending, useReading } from "../parts/reading";
import { RunRow, folderName } from "../parts/runrow";
import { SafeText } from "../parts/text";
import { When } from "../parts/when";

/** Maximum number of requests listed here. */
const WAITING = 5;
const AGAIN = 30_000;

export function Overview() {
  const since = midnight(now.value).toISOString();
  const beat = useMemo(() => runsChanged.value, [Math.floor(now.value / 5000)]);
  const reading = useReading<{ overview: Shape; disk: Disk | null }>(`/overview?since=${encodeURIComponent(since)}`, beat);
  useEffect(() => {
    const timer = setInterval(reading.again, AGAIN);
    return () => clearInterval(timer);
  }, []);
  useKeys(() => [{ key: "Enter", does: "open the oldest request", run: () => { const [first] = waiting.value; if (first) go(pathOf("waiting", first.id)); } }]);
  const shown = reading.value?.overview;
  return (
    <div class="page overview">
      <Pending reading={reading} />
      <PendingRequests />
      {shown && (
        <>
          <div class="figures">
            <Figure name="calls today" value={shown.today.calls.toLocaleString("en")} href="/runs?time=1" />
            <Figure name="failed today" value={shown.today.failed.toLocaleString("en")} tone={shown.today.failed ? "bad" : ""} href="/runs?time=1&status=error" />
            <Figure name="denied today" value={shown.today.denied.toLocaleString("en")} href="/runs?time=1&status=denied" />
            <Figure name={shown.today.decided === 1 ? "wait for 1 decision" : `mean wait, ${shown.today.decided.toLocaleString("en")} decisions`}
              value={shown.today.mean_wait_ms === undefined ? "–" : span(shown.today.mean_wait_ms)} href="/waiting/history" />
            <Figure name="disk used" value={reading.value?.disk ? bytes(reading.value.disk.total) : "…"} href="/health" />
          </div>
          <Chart hours={shown.hours} />
          <div class="columns">
            <section aria-label="failed or denied today"><h2>Failed or denied today</h2>
              {shown.failed.length === 0 ? <p class="note">Nothing failed or was denied since midnight.</p>
                : <div role="list" aria-label="runs with a failed or denied call">{shown.failed.map((run) => <RunRow key={run.run} run={run} at={now.value} />)}</div>}
            </section>
            <ConnectedClients clients={shown.clients} />
          </div>
        </>
      )}
    </div>
  );
}

/** The pending requests, oldest first. */
function PendingRequests() {
  const list = waiting.value;
  if (!list.length) return <section class="pressing calm" aria-label="pending"><h2>No pending requests</h2><p class="dim">Approval requests appear here as they arrive. <a href="/waiting" onClick={follow}>Waiting</a></p></section>;
  return (
    <section class="pressing" aria-label="pending">
      <h2>{list.length === 1 ? "1 pending request" : `${list.length.toLocaleString("en")} pending requests`}</h2>
      <ul>{list.slice(0, WAITING).map((approval) => (
        <li key={approval.id}><a href={pathOf("waiting", approval.id)} onClick={follow}>
          <RiskWord risk={approval.risk} /> <span class="mono clipped"><SafeText text={approval.fact.text} /></span>
          <span class="dim clipped client"><SafeText text={clientName(approval)} /></span> <span class="dim">{ago(approval.created, now.value)}</span>
        </a></li>
      ))}</ul>
      {list.length > WAITING && <p><a href="/waiting" onClick={follow}>{(list.length - WAITING).toLocaleString("en")} more</a></p>}
    </section>
  );
}

function Figure({ name, value, href, tone = "" }: { name: ComponentChildren; value: string; href: string; tone?: string }) {
  return <a class={`figure ${tone}`} href={href} onClick={follow}><span class="figure-value">{value}</span><span class="dim">{name}</span></a>;
}

const WIDTH = 720;
const HEIGHT = 120;
const FOOT = 18;
const HOUR = new Intl.DateTimeFormat(undefined, { hour: "2-digit", hour12: false });

/** A bar chart of calls per hour, with failed and denied calls marked in each bar. */
function Chart({ hours }: { hours: Hour[] }) {
  const most = Math.max(1, ...hours.map((hour) => hour.calls));
  const wide = WIDTH / Math.max(1, hours.length);
  const high = (count: number) => (count / most) * (HEIGHT - FOOT - 12);
  const sum = (of: (hour: Hour) => number) => hours.reduce((all, hour) => all + of(hour), 0);
  const words = `${sum((hour) => hour.calls)} calls in the last 24 hours, ${sum((hour) => hour.failed)} failed, ${sum((hour) => hour.denied)} denied; at most ${most} in an hour`;
  return (
    <section aria-label="calls per hour">
      <h2>Calls per hour</h2>
      <div class="chart">
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={words} preserveAspectRatio="none">
          <line class="base" x1="0" x2={WIDTH} y1={HEIGHT - FOOT} y2={HEIGHT - FOOT} />
          {hours.map((hour, index) => {
            const [all, failed, denied] = [high(hour.calls), high(hour.failed), high(hour.denied)];
            const [x, width, foot] = [index * wide + 2, wide - 4, HEIGHT - FOOT];
            return (
              <g key={hour.start}>
                <title>{`${HOUR.format(new Date(hour.start))}: ${hour.calls} calls, ${hour.failed} failed, ${hour.denied} denied`}</title>
                <rect class="reach" x={index * wide} width={wide} y={0} height={foot} />
                <rect class="ran" x={x} width={width} y={foot - all} height={Math.max(0, all - failed - denied)} />
                <rect class="failed" x={x} width={width} y={foot - failed - denied} height={failed} />
                <rect class="denied" x={x} width={width} y={foot - denied} height={denied} />
              </g>
            );
          })}
        </svg>
        <div class="hours" aria-hidden="true">{hours.map((hour, index) => <span key={hour.start}>{(hours.length - 1 - index) % 4 === 0 ? HOUR.format(new Date(hour.start)) : ""}</span>)}</div>
      </div>
      <p class="legend" aria-hidden="true"><span><span class="key ok" />ran</span><span><span class="key failed" />failed</span><span><span class="key denied" />denied</span></p>
    </section>
  );
}

export function ConnectedClients({ clients }: { clients: Client[] }) {
  return (
    <section aria-label="connected clients">
      <h2>Connected clients</h2>
      {clients.length === 0 ? <p class="note">No client is connected. <code>haft mcp snippet</code> prints the settings for yours.</p> : (
        <ul class="clients">{clients.map((client) => (
          <li key={client.run}><a href={pathOf("runs", client.run)} onClick={follow}><SafeText text={client.client ?? client.door} /></a>
            <span class="dim clipped" title={client.workspace}>{client.workspace && <SafeText text={folderName(client.workspace)} />}</span>
            <span class="dim">since <When at={client.since} /></span></li>
        ))}</ul>
      )}
    </section>
  );
}
