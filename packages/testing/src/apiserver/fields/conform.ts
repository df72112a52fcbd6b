import { at, isTree, type MutableTree, setOwn, type Tree } from "../json.ts";
import { unlessMicroTime, unlessTime } from "./time.ts";

/** A field that does not conform to its kind's schema. */
export interface Misfit {
  /** Path as formatted by the API server: "spec.containers[0].image". */
  path: string;
  /** Reason: "expected string, got number". */
  why: string;
}

const MICRO_TIME = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime";
const QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity";

type Refuse = (path: string, why: string) => void;

/** Result of matching an object against a schema. */
export interface Conformed {
  /** The value without unknown fields. */
  value: unknown;
  /** Paths of fields that are not in the schema. */
  unknown: string[];
  /** Fields of the wrong type. */
  misfits: Misfit[];
  /** Fields that violate a rule. Only custom kinds have such rules, which apply to complete objects. */
  broken: Misfit[];
}

/**
 * Matches a value against an OpenAPI schema as the API server decodes it. null counts as absent. A Quantity of a
 * built-in kind accepts strings and numbers; IntOrString and quantities of custom kinds accept only strings and
 * integers. A level of the schema without properties accepts everything.
 * @param resolve returns the schema to which a `$ref` refers
 */
export function conform(value: unknown, schema: Tree, resolve: (schema: Tree) => Tree): Conformed {
  const unknown: string[] = [];
  const misfits: Misfit[] = [];
  const broken: Misfit[] = [];
  const refuse: Refuse = (path, why) => void misfits.push({ path, why });
  const breaks: Refuse = (path, why) => void broken.push({ path, why });

  const walk = (found: unknown, given: Tree, path: string): unknown => {
    if (found === null || found === undefined) return found;
    const level = resolve(given);
    checkRules(found, level, path, breaks);
    if (level["x-kubernetes-int-or-string"]) {
      const expected = given.$ref === QUANTITY ? "number" : "integer";
      // A typed patch has any scalar here. The validation of the whole custom object rejects it.
      const reject = given.$ref === undefined ? breaks : refuse;
      if (typeof found !== "string" && !isOfType(found, expected))
        reject(path, `expected string or ${expected}, got ${typeOf(found)}`);
      return found;
    }
    const expected = typeof level.type === "string" ? level.type : undefined;
    if (expected !== undefined && !isOfType(found, expected)) {
      refuse(path, `expected ${expected}, got ${typeOf(found)}`);
      return found;
    }
    if (level.format === "date-time") {
      const time = given.$ref === MICRO_TIME ? unlessMicroTime(String(found)) : unlessTime(String(found));
      if (time) refuse(path, `expected ${time}, got ${JSON.stringify(found)}`);
    }
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

  return { value: walk(value, schema, ""), unknown, misfits, broken };
}

// Validation rules of custom kinds' schemas. The schemas of built-in kinds do not have them.
function checkRules(found: unknown, level: Tree, path: string, breaks: Refuse): void {
  const { enum: values, pattern, minimum, maximum, required } = level;
  const shown = JSON.stringify(found);
  if (Array.isArray(values) && !values.includes(found)) {
    const supported = values.map((each) => JSON.stringify(each)).join(", ");
    breaks(path, `unsupported value ${shown}: supported values: ${supported}`);
  }
  if (typeof pattern === "string" && typeof found === "string" && !new RegExp(pattern).test(found))
    breaks(path, `${shown} does not match ${pattern}`);
  if (typeof minimum === "number" && typeof found === "number" && found < minimum)
    breaks(path, `less than ${minimum}`);
  if (typeof maximum === "number" && typeof found === "number" && found > maximum)
    breaks(path, `more than ${maximum}`);
  if (!Array.isArray(required) || !isTree(found)) return;
  for (const field of required as string[]) {
    const isThere = (found[field] ?? at(level, "properties", field, "default") ?? null) !== null;
    if (!isThere) breaks(path === "" ? field : `${path}.${field}`, "required value");
  }
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
