// A form made from a schema: scalars as fields, everything else as JSON text; each field shows what is wrong with its value.

import { useState } from "preact/hooks";
import { fieldsOf, object, type Field } from "../schema";
import type { Json, Schema } from "../shapes";

export type Values = { [name: string]: Json };

/** Returns the kind of input for a field; `null` among its types is ignored. */
function kindOf(schema: Schema, value: Json | undefined): "text" | "choice" | "number" | "yesno" | "json" {
  const types = Array.isArray(schema.type) ? schema.type.filter((type) => type !== "null") : [schema.type];
  if (Array.isArray(schema.enum) && schema.enum.every((item) => typeof item === "string")) return "choice";
  const type = types.length === 1 ? types[0] : undefined;
  if (type === "string") return "text";
  if (type === "integer" || type === "number") return "number";
  if (type === "boolean") return "yesno";
  if (type === undefined && typeof value === "string" && Object.keys(schema).length === 0) return "text";
  return "json";
}

/** Returns what is wrong with the value of a field; empty if it is valid. */
export function fault(schema: Schema, value: Json | undefined, required: boolean): string {
  if (value === undefined) return required ? "is required" : "";
  const number = (name: string) => (typeof schema[name] === "number" ? (schema[name] as number) : undefined);
  if (typeof value === "number") {
    if (schema.type === "integer" && !Number.isInteger(value)) return "must be a whole number";
    const [min, max] = [number("minimum"), number("maximum")];
    if (min !== undefined && value < min) return `must be at least ${min}`;
    if (max !== undefined && value > max) return `must be at most ${max}`;
  }
  if (typeof value === "string") {
    const [min, max] = [number("minLength"), number("maxLength")];
    if (min !== undefined && value.length < min) return `must have at least ${min} characters`;
    if (max !== undefined && value.length > max) return `must have at most ${max} characters`;
    if (Array.isArray(schema.enum) && !schema.enum.includes(value)) return `must be one of ${schema.enum.join(", ")}`;
  }
  if (schema.type === "array" && !Array.isArray(value)) return "must be a list";
  if (schema.type === "object" && !object(value)) return "must be an object";
  return "";
}

/** The form; calls `change` with the values and the number of invalid fields. */
export function SchemaForm({ schema, values, change, idBase }: {
  schema: Schema | undefined; values: Values; change: (values: Values, faults: number) => void; idBase: string;
}) {
  const [broken, setBroken] = useState<Record<string, string>>({});
  const fields = fieldsOf(schema, values);
  const set = (name: string, value: Json | undefined, unreadable = "") => {
    const next = { ...values };
    if (value === undefined) delete next[name];
    else next[name] = value;
    const nowBroken = { ...broken, [name]: unreadable };
    setBroken(nowBroken);
    const faults = fields.filter((field) => nowBroken[field.name] || fault(field.schema, next[field.name], field.required)).length;
    change(next, faults);
  };
  if (!fields.length) return <p class="note">It takes no arguments.</p>;
  return (
    <div class="form">
      {fields.map((field) => (
        <FieldRow key={field.name} field={field} value={values[field.name]} id={`${idBase}-${field.name}`}
          trouble={broken[field.name] || fault(field.schema, values[field.name], field.required)}
          set={(value, unreadable) => set(field.name, value, unreadable)} />
      ))}
    </div>
  );
}

/** Returns the number of invalid fields before the user has typed anything. */
export function faultsOf(schema: Schema | undefined, values: Values): number {
  return fieldsOf(schema, values).filter((field) => fault(field.schema, values[field.name], field.required)).length;
}

function FieldRow({ field, value, id, trouble, set }: {
  field: Field; value: Json | undefined; id: string; trouble: string; set: (value: Json | undefined, unreadable?: string) => void;
}) {
  const about = typeof field.schema.description === "string" ? field.schema.description : "";
  const described = `${id}-about`;
  return (
    <div class={`field ${trouble ? "faulty" : ""}`}>
      <label for={id}>{field.name}{field.required && <span class="dim"> required</span>}</label>
      <Input field={field} value={value} id={id} described={described} trouble={trouble} set={set} />
      <div class="about" id={described}>{trouble ? <span class="bad-text">{field.name} {trouble}</span> : about}</div>
    </div>
  );
}

function Input({ field, value, id, described, trouble, set }: {
  field: Field; value: Json | undefined; id: string; described: string; trouble: string; set: (value: Json | undefined, unreadable?: string) => void;
}) {
  const kind = kindOf(field.schema, value);
  const same = { id, "aria-describedby": described, "aria-invalid": trouble ? true : undefined };
  if (kind === "choice") {
    const options = (field.schema.enum as string[]) ?? [];
    return (
      <select {...same} value={typeof value === "string" ? value : ""} onChange={(e) => set(e.currentTarget.value || undefined)}>
        {(!field.required || value === undefined) && <option value="">–</option>}
        {options.map((option) => <option key={option} value={option}>{option}</option>)}
      </select>
    );
  }
  if (kind === "yesno") {
    const text = value === undefined ? "" : value === true ? "true" : "false";
    return (
      <select {...same} value={text} onChange={(e) => set(e.currentTarget.value === "" ? undefined : e.currentTarget.value === "true")}>
        <option value="">–</option><option value="true">yes</option><option value="false">no</option>
      </select>
    );
  }
  if (kind === "number") {
    return (
      <input {...same} type="text" inputMode="decimal" value={value === undefined ? "" : String(value)}
        onInput={(e) => {
          const text = e.currentTarget.value.trim();
          if (text === "") set(undefined);
          else if (/^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(text)) set(Number(text));
          else set(value, "must be a number");
        }} />
    );
  }
  if (kind === "text") {
    const text = typeof value === "string" ? value : "";
    const rows = Math.min(18, Math.max(1, text.split("\n").length));
    return <textarea {...same} rows={rows} spellcheck={false} value={text} onInput={(e) => set(e.currentTarget.value === "" && !field.required ? undefined : e.currentTarget.value)} />;
  }
  return <JsonInput value={value} same={same} set={set} />;
}

function JsonInput({ value, same, set }: { value: Json | undefined; same: object; set: (value: Json | undefined, unreadable?: string) => void }) {
  const [text, setText] = useState(value === undefined ? "" : JSON.stringify(value, null, 2));
  const rows = Math.min(18, Math.max(2, text.split("\n").length));
  return (
    <textarea {...same} class="code" rows={rows} spellcheck={false} value={text} placeholder="JSON" onInput={(e) => {
      const typed = e.currentTarget.value;
      setText(typed);
      if (typed.trim() === "") {
        set(undefined);
        return;
      }
      try {
        set(JSON.parse(typed) as Json);
      } catch (error) {
        set(value, `is not valid JSON: ${error instanceof Error ? error.message : "unreadable"}`);
      }
    }} />
  );
}
