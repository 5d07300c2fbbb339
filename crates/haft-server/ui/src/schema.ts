// JSON Schemas simplified for display: fields in a sensible order, each in its plainest form.

import type { Json, Schema } from "./shapes";

export interface Field {
  name: string;
  schema: Schema;
  required: boolean;
}

/** Returns a value as an object; `undefined` for anything else. */
export function object(value: Json | undefined): Schema | undefined {
  return value && typeof value === "object" && !Array.isArray(value) ? value : undefined;
}

/** Simplifies a schema: resolves references, drops `null` alternatives and turns a choice of constants into an enum. */
export function plain(schema: Schema, root: Schema, depth = 0): Schema {
  const named = typeof schema.$ref === "string" ? /^#\/(\$defs|definitions)\/([^/]+)$/.exec(schema.$ref) : undefined;
  if (named && depth < 8) {
    const found = object(object(root[named[1]!])?.[named[2]!]);
    const { $ref: _, ...rest } = schema;
    return found ? { ...plain(found, root, depth + 1), ...rest } : schema;
  }
  const forms = [schema.oneOf, schema.anyOf].find(Array.isArray) as Json[] | undefined;
  const meant = forms?.map((form) => object(form) ?? {}).filter((form) => form.type !== "null");
  if (!meant?.length) return schema;
  const { oneOf: _, anyOf: __, ...rest } = schema;
  if (meant.every((form) => typeof form.const === "string")) return { ...rest, enum: meant.map((form) => form.const as string) };
  if (meant.length === 1) return { ...plain(meant[0]!, root, depth + 1), ...rest };
  return schema;
}

/** Returns the fields of a schema: required ones first, in their listed order; values that the schema does not know last. */
export function fieldsOf(schema: Schema | undefined, values: { [name: string]: Json }): Field[] {
  const properties = object(schema?.properties) ?? {};
  const required = (Array.isArray(schema?.required) ? schema.required : []).filter((name): name is string => typeof name === "string");
  const names = [...required.filter((name) => name in properties), ...Object.keys(properties).filter((name) => !required.includes(name))];
  const known = names.map((name) => ({ name, schema: plain(object(properties[name]) ?? {}, schema ?? {}), required: required.includes(name) }));
  const others = Object.keys(values).filter((name) => !(name in properties)).map((name) => ({ name, schema: {}, required: false }));
  return [...known, ...others];
}
