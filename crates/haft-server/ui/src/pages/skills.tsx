// The skills page: the skills found, and the selected one in full.

import { useState } from "preact/hooks";
import { steps, useKeys } from "../keys";
import { follow, go, parts, pathOf } from "../route";
import type { Skill } from "../shapes";
import { Empty, wide } from "../parts/frame";
import { PageHead } from "../parts/head";
import { Markdown } from "../parts/markdown";
import { Pending, useReading } from "../parts/reading";
import { Block, SafeText } from "../parts/text";

const EXAMPLE = `---
name: release
description: How a release is cut, from the changelog to the tag
---
1. Run the tests.
2. Update CHANGELOG.md.
3. Tag the commit: git tag -s v1.2.0`;

export function Skills() {
  const named = parts.value[1];
  const skills = useReading<Skill[]>("/skills");
  const list = skills.value ?? [];
  const selected = named ?? (wide.value ? list[0]?.name : undefined);
  useKeys(() => steps("skill", list.map((skill) => skill.name), selected, (name) => go(pathOf("skills", name), named !== undefined)));
  if (skills.value && !list.length && !named) {
    return (
      <>
      <PageHead title="Skills" />
      <Empty title="No skills">
        <p>A skill is a folder with a <code>SKILL.md</code>: instructions that a model loads when it needs them.</p>
        <p>Put one in <code>.agents/skills</code> of a trusted workspace, or name folders in <code>skills.dirs</code>. For example <code>.agents/skills/release/SKILL.md</code>:</p>
        <pre class="block">{EXAMPLE}</pre>
      </Empty>
      </>
    );
  }
  return (
    <>
    <PageHead title="Skills" thing={named} />
    <div class="split with-detail">
      {(wide.value || !named) && (
        <section class="side" aria-label="all skills">
          <Pending reading={skills} />
          <ul class="side-list" aria-label="skills">
            {list.map((skill) => (
              <li key={`${skill.name}${skill.path}`}><a href={pathOf("skills", skill.name)} onClick={follow} aria-current={skill.name === selected ? "true" : undefined}>
                <span class="side-name"><SafeText text={skill.name} /></span>{!skill.valid && <span class="badge bad">does not load</span>}
                <span class="side-about"><SafeText text={skill.description.slice(0, 110)} /></span>
              </a></li>
            ))}
          </ul>
        </section>
      )}
      {selected && <SkillDetail key={selected} name={selected} listed={list.find((skill) => skill.name === selected)} />}
    </div>
    </>
  );
}

/** The skill's instructions, rendered or as written in the file. */
function SkillText({ body }: { body: string }) {
  const [raw, setRaw] = useState(false);
  return (
    <section class="skill-text" aria-label="the skill's text">
      <button type="button" class="quiet" aria-pressed={raw} onClick={() => setRaw(!raw)}>As written</button>
      {raw ? <Block text={body} label="the skill's text as written" /> : <Markdown text={withoutFront(body)} />}
    </section>
  );
}

/** Returns the text below the front matter of the file. */
const withoutFront = (body: string): string => body.replace(/^---\n[\s\S]*?\n---\n/, "");

function SkillDetail({ name, listed }: { name: string; listed: Skill | undefined }) {
  const reading = useReading<Skill>(`/skills/${encodeURIComponent(name)}`);
  const skill = reading.value ?? listed;
  return (
    <section class="detail" aria-label="the selected skill">
      {!wide.value && <a class="back" href="/skills" onClick={follow}>All skills</a>}
      {!skill ? <Pending reading={reading} /> : (
        <>
          <h2><SafeText text={skill.name} /></h2>
          <p><SafeText text={skill.description} /></p>
          <p class="meta dim"><span><SafeText text={skill.source} /></span> <span class="mono"><SafeText text={skill.path} /></span></p>
          {!!skill.resources?.length && <ul class="artifacts" aria-label="resources">{skill.resources.map((one) => { const path = typeof one === "string" ? one : one.path; return <li key={path} class="mono"><SafeText text={path} /></li>; })}</ul>}
          {skill.body !== undefined ? <SkillText body={skill.body} /> : reading.trouble && <p class="note bad-text">{reading.trouble}</p>}
        </>
      )}
    </section>
  );
}
