import { isTree, type MutableTree, setOwn, type Tree } from "../json.ts";

/** A field that does not fit its kind's schema. */
export interface Misfit {
  /** As the API server writes it: "spec.containers[0].image". */
  path: string;
  /** What is wrong: "expected string, got number". */
  why: string;
}

/** What of an object fits a schema. */
export interface Conformed {
  /** Without the unknown fields. */
  value: unknown;
  /** Paths of fields that the schema does not have. */
  unknown: string[];
  /** Fields of the wrong type, or that break a rule. */
  misfits: Misfit[];
}

/**
 * Compares a value with an OpenAPI schema as the API server decodes it: null is as if it were absent, Quantity and IntOrString
 * take strings and numbers. A level of the schema without any property takes everything.
 * @param resolve the schema that a `$ref` is
 */
export function conform(value: unknown, schema: Tree, resolve: (schema: Tree) => Tree): Conformed {
  const unknown: string[] = [];
  const misfits: Misfit[] = [];
  const refuse = (path: string, why: string) => void misfits.push({ path, why });

  const walk = (found: unknown, given: Tree, path: string): unknown => {
    if (found === null || found === undefined) return found;
    const level = resolve(given);
    checkRules(found, level, path, refuse);
    if (level["x-kubernetes-int-or-string"]) {
      if (typeof found !== "string" && typeof found !== "number")
        refuse(path, `expected string or number, got ${typeOf(found)}`);
      return found;
    }
    const expected = typeof level.type === "string" ? level.type : undefined;
    if (expected !== undefined && !isOfType(found, expected)) {
      refuse(path, `expected ${expected}, got ${typeOf(found)}`);
      return found;
    }
    if (level.format === "date-time" && Number.isNaN(Date.parse(String(found))))
      refuse(path, `expected a time as of RFC 3339, got ${JSON.stringify(found)}`);
    if (Array.isArray(found)) {
      const { items } = level;
      return isTree(items) ? found.map((item, index) => walk(item, items, `${path}[${index}]`)) : found;
    }
    return isTree(found) ? walkMap(found, level, path) : found;
  };

  const walkMap = (found: Tree, level: Tree, path: string): Tree => {
    const properties = isTree(level.properties) ? level.properties : undefined;
    const values = isTree(level.additionalProperties) ? level.additionalProperties : undefined;
    if (!properties && !values) return found;
    const isOpen =
      level["x-kubernetes-preserve-unknown-fields"] === true || level.additionalProperties === true;
    const kept: MutableTree = {};
    for (const [field, child] of Object.entries(found)) {
      const below = properties && Object.hasOwn(properties, field) ? properties[field] : values;
      const childPath = path === "" ? field : `${path}.${field}`;
      if (isTree(below)) setOwn(kept, field, walk(child, below, childPath));
      else if (isOpen) setOwn(kept, field, child);
      else unknown.push(childPath);
    }
    return kept;
  };

  return { value: walk(value, schema, ""), unknown, misfits };
}

// What custom kinds' schemas may demand beyond types; those of Kubernetes' own kinds have none of it.
function checkRules(
  found: unknown,
  level: Tree,
  path: string,
  refuse: (path: string, why: string) => void,
): void {
  if (Array.isArray(level.enum) && !level.enum.includes(found))
    refuse(
      path,
      `unsupported value ${JSON.stringify(found)}: supported values: ${level.enum.map((each) => JSON.stringify(each)).join(", ")}`,
    );
  if (
    typeof level.pattern === "string" &&
    typeof found === "string" &&
    !new RegExp(level.pattern).test(found)
  )
    refuse(path, `${JSON.stringify(found)} does not match ${level.pattern}`);
  if (typeof found === "number") {
    if (typeof level.minimum === "number" && found < level.minimum)
      refuse(path, `less than ${level.minimum}`);
    if (typeof level.maximum === "number" && found > level.maximum)
      refuse(path, `more than ${level.maximum}`);
  }
  if (Array.isArray(level.required) && isTree(found))
    for (const field of level.required as string[])
      if (found[field] === undefined || found[field] === null)
        refuse(path === "" ? field : `${path}.${field}`, "required value");
}

function isOfType(value: unknown, type: string): boolean {
  if (type === "object") return isTree(value);
  if (type === "array") return Array.isArray(value);
  if (type === "integer") return Number.isInteger(value);
  return typeof value === type;
}

function typeOf(value: unknown): string {
  if (Array.isArray(value)) return "array";
  return value === null ? "null" : typeof value;
}
