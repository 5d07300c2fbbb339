// The frame of every page: the rail, the top bar, the notice bars and the list of keys.

import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { waiting } from "../approvals";
import { allKeys, keysOpen, openPalette, useKeys } from "../keys";
import { link, nextTry, tryNow } from "../live";
import { allow, answered, decline, notify } from "../notify";
import { PAGES, follow, go, letterOf, page as routed } from "../route";
import { codeIn, leave, login, loginTrouble, redeem, session } from "../session";
import { theme, switchTheme } from "../theme";
import { now } from "../time";
import { spellOut } from "../visible";
import { capitalized, titleOf } from "./head";
import { Icon } from "./icons";
import { Palette, paletteOpen } from "./palette";

const query = matchMedia("(min-width: 1000px)");
/** Whether there is room for a list and its detail side by side. */
export const wide = signal(query.matches);
query.addEventListener("change", () => { wide.value = query.matches; });

export function Frame({ children }: { children: ComponentChildren }) {
  const here = routed.value;
  const count = waiting.value.length;
  const critical = waiting.value.some((approval) => approval.risk === "critical");
  const title = [...titleOf.value.map((part) => spellOut(part).slice(0, 80)), "haft"].join(" · ");
  useEffect(() => { document.title = count ? `(${count}) ${title}` : title; }, [title, count]);
  useKeys(() => [
    { key: "?", does: "show all keys", run: () => { keysOpen.value = true; } },
    { key: COMMANDS, does: "go to anything by name", run: () => { paletteOpen.value = true; } },
    ...PAGES.map((page) => ({ key: `g ${letterOf(page)}`, does: `go to ${capitalized(page)}`, run: () => go(`/${page}`) })),
  ]);
  return (
    <div class="frame">
      <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); document.getElementById("main")?.focus(); }}>Skip to content</a>
      <TopBar />
      <nav class="rail" aria-label="pages">
        {PAGES.map((page) => (
          <a key={page} href={`/${page}`} onClick={follow} aria-current={page === here ? "page" : undefined}>
            <Icon sign={page} /><span>{capitalized(page)}</span>{page === "waiting" && count > 0 && <span class={critical ? "count critical" : "count"}>{count.toLocaleString("en")}<span class="unseen"> pending{critical && ", critical among them"}</span></span>}
          </a>
        ))}
      </nav>
      <AskToNotify />
      <main id="main" tabIndex={-1}>
        <Bars />
        {children}
      </main>
      <Announcer />
      <KeyList />
      <Palette />
    </div>
  );
}

function TopBar() {
  const who = session.value;
  const state = login.value === "out" ? "logged out" : link.value === "open" ? "connected" : link.value === "lost" ? "not connected" : "connecting";
  return (
    <header class="top">
      <a class="brand" href="/overview" onClick={follow}>haft</a>
      {who && <span class="where" title={who.workspace}><bdi>{who.workspace === undefined ? "all folders" : spellOut(who.workspace)}</bdi></span>}
      {who && <span class="profile"><span class="dim">profile</span> {who.profile}</span>}
      {who?.strength && <span class="profile strength"><span class="dim">sandbox</span> {who.strength}</span>}
      <span class="gap" />
      <span class={`dot ${state === "connected" ? "on" : "off"}`} role="status">{state}</span>
      <button type="button" class="quiet palette-button" onClick={() => { paletteOpen.value = true; }} aria-label="commands">Go to… <kbd>{COMMANDS}</kbd></button>
      <button type="button" class="quiet theme-button" onClick={switchTheme} aria-label={`theme: ${theme.value}`} title={`Theme: ${theme.value === "auto" ? "as the system's" : theme.value}`}><Icon sign={theme.value} /><span>{capitalized(theme.value)}</span></button>
      <button type="button" class="quiet keys-button" onClick={() => { keysOpen.value = true; }} aria-label="all keys"><kbd>?</kbd></button>
      {login.value === "in" && <button type="button" class="quiet" onClick={() => void leave()}>Log out</button>}
    </header>
  );
}

function Bars() {
  if (login.value === "out" && session.value) return <div class="bar" role="alert"><LoginBox short /></div>;
  if (link.value !== "lost") return null;
  const left = Math.max(0, Math.ceil((nextTry.value - now.value) / 1000));
  return (
    <div class="bar" role="alert">
      <span>The connection to haft is lost. This page may be out of date, and you cannot decide anything.</span>
      <button type="button" onClick={tryNow}>Try now</button><span class="dim">{left > 0 ? `next try in ${left} s` : "trying …"}</span>
    </div>
  );
}

/** Asks once whether to show desktop notifications, and only while a request is pending; below the pages' names, where it moves nothing. */
function AskToNotify() {
  if (answered.value || !waiting.value.length || !["overview", "waiting"].includes(routed.value ?? "")) return null;
  return (
    <div class="notice" role="region" aria-label="notifications">
      <span>Show a desktop notification when a request arrives while you look elsewhere?</span>
      <span class="choices"><button type="button" onClick={() => void allow()}>Show</button> <button type="button" class="quiet" onClick={decline}>No</button></span>
    </div>
  );
}

/** A form for a login link or code. */
export function LoginBox({ short = false }: { short?: boolean }) {
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const code = codeIn(text);
  const wrong = text.trim() !== "" && !code;
  return (
    <form class="login" onSubmit={(e) => {
      e.preventDefault();
      if (!code || busy) return;
      setBusy(true);
      void redeem(code).then(() => { setBusy(false); setText(""); tryNow(); });
    }}>
      {loginTrouble.value && <p class={short ? "" : "note warn"} role="status">{loginTrouble.value}</p>}
      <label for="login-link">Login link or code, as <code>haft console --no-open</code> prints it</label>
      <div class="login-row">
        <input id="login-link" type="text" autocomplete="off" spellcheck={false} value={text} aria-invalid={wrong || undefined} onInput={(e) => setText(e.currentTarget.value)} />
        <button type="submit" class="primary" disabled={!code || busy}>Log in</button>
      </div>
    </form>
  );
}

/** Announces new requests to screen readers and as desktop notifications. */
function Announcer() {
  const known = useRef<Set<string> | undefined>(undefined);
  const [said, setSaid] = useState("");
  const list = waiting.value;
  useEffect(() => {
    const before = known.current;
    known.current = new Set(list.map((approval) => approval.id));
    const fresh = before ? list.filter((approval) => !before.has(approval.id)) : [];
    const [first] = fresh;
    if (fresh.length === 1 && first) setSaid(`New request, ${first.risk}: ${first.tool}, ${spellOut(first.fact.text).slice(0, 120)}`);
    else if (fresh.length > 1) setSaid(`${fresh.length} new requests`);
    notify(fresh);
  }, [list]);
  return <div class="unseen" aria-live="polite">{said}</div>;
}

const NAMES: Record<string, string> = { Escape: "Esc" };

/** The keys of the palette, as written on this platform. */
const COMMANDS = /Mac|iPhone|iPad/.test(navigator.platform) ? "⌘K" : "Ctrl+K";
openPalette.run = () => { paletteOpen.value = !paletteOpen.value; };

function KeyList() {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (keysOpen.value && !box.current?.open) box.current?.showModal();
    else if (!keysOpen.value) box.current?.close();
  });
  const seen = new Map(allKeys().map((key) => [key.key, key]));
  return (
    <dialog ref={box} aria-label="keys" onClose={() => { if (!box.current?.open) keysOpen.value = false; }}>
      {keysOpen.value && (
        <>
          <h2>Keys</h2>
          <dl class="keys">{[...seen.values()].map((key) => <div key={key.key}><dt><kbd>{NAMES[key.key] ?? key.key}</kbd></dt><dd>{key.does}</dd></div>)}</dl>
          <button type="button" onClick={() => { keysOpen.value = false; }}>Close</button>
        </>
      )}
    </dialog>
  );
}

/** An empty page: says what would appear here and how to make it appear. */
export function Empty({ title, children }: { title: string; children: ComponentChildren }) {
  return <section class="empty"><h2>{title}</h2>{children}</section>;
}
