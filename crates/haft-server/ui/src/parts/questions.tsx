// The form of a question: one choice, several choices, text, a number, yes or no.

import { useState } from "preact/hooks";
import type { Json, Question } from "../shapes";
import { SafeText } from "./text";

type Answers = Record<string, Json>;

function defaults(questions: Question[]): Answers {
  const out: Answers = {};
  for (const question of questions) {
    if (question.default !== undefined) out[question.id] = question.default;
    else if (question.type === "multiple") out[question.id] = [];
  }
  return out;
}

/** The form; calls `send` with the answers. At least one question must be answered. */
export function Questions({ title, questions, send, disabled }: {
  title: string | undefined; questions: Question[]; send: (answers: Answers) => void; disabled: boolean;
}) {
  const [answers, setAnswers] = useState<Answers>(() => defaults(questions));
  const set = (id: string, value: Json | undefined) => {
    const next = { ...answers };
    if (value === undefined) delete next[id];
    else next[id] = value;
    setAnswers(next);
  };
  const isAnswered = (value: Json | undefined) => value !== undefined && !(Array.isArray(value) && value.length === 0);
  const open = questions.filter((question) => !isAnswered(answers[question.id]));
  const nothing = open.length === questions.length;
  return (
    <form class="questions" onSubmit={(event) => { event.preventDefault(); if (!nothing && !disabled) send(answers); }}>
      {title && <h2><SafeText text={title} /></h2>}
      {questions.map((question) => <QuestionField key={question.id} question={question} value={answers[question.id]} set={(value) => set(question.id, value)} />)}
      <div class="choices">
        <button type="submit" class="primary" disabled={disabled || nothing}>Answer</button>
        {open.length > 0 && <span class="dim">{open.length === 1 ? "1 question is not answered yet" : `${open.length} questions are not answered yet`}</span>}
      </div>
    </form>
  );
}

function QuestionField({ question, value, set }: { question: Question; value: Json | undefined; set: (value: Json | undefined) => void }) {
  const id = `q-${question.id}`;
  if (question.type === "text") {
    return <div class="field"><label for={id}><SafeText text={question.text} /></label>
      <textarea id={id} rows={2} value={typeof value === "string" ? value : ""} onInput={(e) => set(e.currentTarget.value || undefined)} /></div>;
  }
  if (question.type === "number") return <NumberField id={id} question={question} value={value} set={set} />;
  const options = question.type === "confirm" ? ["yes", "no"] : question.options ?? [];
  return <Options id={id} question={question} options={options} value={value} set={set} />;
}

function NumberField({ id, question, value, set }: { id: string; question: Question; value: Json | undefined; set: (value: Json | undefined) => void }) {
  const [text, setText] = useState(value === undefined ? "" : String(value));
  const wrong = text.trim() !== "" && !Number.isFinite(Number(text));
  return (
    <div class={`field ${wrong ? "faulty" : ""}`}>
      <label for={id}><SafeText text={question.text} /></label>
      <input id={id} type="text" inputMode="decimal" value={text} aria-invalid={wrong} aria-describedby={`${id}-about`} onInput={(e) => {
        const typed = e.currentTarget.value;
        setText(typed);
        set(typed.trim() === "" || !Number.isFinite(Number(typed)) ? undefined : Number(typed));
      }} />
      <div class="about" id={`${id}-about`}>{wrong && <span class="bad-text">this is not a number</span>}</div>
    </div>
  );
}

function Options({ id, question, options, value, set }: {
  id: string; question: Question; options: string[]; value: Json | undefined; set: (value: Json | undefined) => void;
}) {
  const [other, setOther] = useState("");
  const many = question.type === "multiple";
  const chosen = many ? (Array.isArray(value) ? value : []) : [value];
  const has = (option: string) => (question.type === "confirm" ? value === (option === "yes") : chosen.includes(option));
  const choose = (option: string, on: boolean) => {
    if (question.type === "confirm") set(option === "yes");
    else if (many) set(on ? [...chosen, option] as Json[] : chosen.filter((one) => one !== option) as Json[]);
    else set(option);
  };
  return (
    <fieldset class="field">
      <legend><SafeText text={question.text} /></legend>
      {options.map((option, index) => (
        <label class="option" key={index}>
          <input type={many ? "checkbox" : "radio"} name={id} checked={has(option)} onChange={(e) => choose(option, e.currentTarget.checked)} /> <SafeText text={option} />
        </label>
      ))}
      {question.allow_other && (
        <label class="option">other <input type="text" value={other} onInput={(e) => {
          const typed = e.currentTarget.value;
          if (many) set([...chosen.filter((one) => one !== other), ...(typed ? [typed] : [])] as Json[]);
          else set(typed || undefined);
          setOther(typed);
        }} /></label>
      )}
    </fieldset>
  );
}
