import type { KubeObject } from "@nodekeeper/core/kube";
import type { ResourceDefinition } from "./catalogue/definition.ts";
import { at } from "./json.ts";
import { badRequest } from "./status.ts";

export type Predicate = (object: KubeObject) => boolean;

type LabelTest = (labels: Record<string, string>) => boolean;

const KEY = "[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?";
const VALUE = "[-A-Za-z0-9_.]*";
const inPattern = new RegExp(`^(${KEY})\\s+(in|notin)\\s*\\(([^()]*)\\)$`);
const equalPattern = new RegExp(`^(${KEY})\\s*(==|=|!=)\\s*(${VALUE})$`);
const existsPattern = new RegExp(`^(!?)\\s*(${KEY})$`);
const comparePattern = new RegExp(`^(${KEY})\\s*([<>])\\s*(-?\\d+)$`);
const valuePattern = new RegExp(`^${VALUE}$`);

/** Parses a label selector: `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>5`. Throws a 400 if it is malformed. */
export function parseLabelSelector(selector: string): LabelTest {
  const tests = splitOutsideParentheses(selector).map(parseLabelRequirement);
  return (labels) => tests.every((test) => test(labels));
}

function parseLabelRequirement(requirement: string): LabelTest {
  const compared = inPattern.exec(requirement);
  if (compared) return setTest(requirement, compared[1]!, compared[2]!, compared[3]!);
  const equal = equalPattern.exec(requirement);
  if (equal) {
    const [, key, operator, value] = equal;
    return operator === "!="
      ? (labels) => label(labels, key!) !== value
      : (labels) => label(labels, key!) === value;
  }
  const bound = comparePattern.exec(requirement);
  if (bound) {
    const [, key, operator, limit] = bound;
    return (labels) => {
      const value = label(labels, key!);
      if (value === undefined || !/^-?\d+$/.test(value)) return false;
      return operator === ">" ? BigInt(value) > BigInt(limit!) : BigInt(value) < BigInt(limit!);
    };
  }
  const exists = existsPattern.exec(requirement);
  if (!exists)
    throw badRequest(`unable to parse requirement: ${JSON.stringify(requirement)} in the label selector`);
  return exists[1] === "!"
    ? (labels) => label(labels, exists[2]!) === undefined
    : (labels) => label(labels, exists[2]!) !== undefined;
}

function setTest(requirement: string, key: string, operator: string, text: string): LabelTest {
  const values = new Set(text.split(",").map((value) => value.trim()));
  for (const value of values) {
    if (!valuePattern.test(value))
      throw badRequest(`invalid label value in requirement: ${JSON.stringify(requirement)}`);
  }
  if (operator === "in") return (labels) => values.has(label(labels, key) as string);
  return (labels) => !values.has(label(labels, key) as string);
}

function label(labels: Record<string, string>, key: string): string | undefined {
  return Object.hasOwn(labels, key) ? labels[key] : undefined;
}

function splitOutsideParentheses(selector: string): string[] {
  if (selector.trim() === "") return [];
  return selector.split(/,(?![^(]*\))/).map((part) => part.trim());
}

/** Returns the test of a `metav1.LabelSelector`. Undefined selects nothing; an empty selector selects everything. */
export function labelSelectorTest(selector: unknown): LabelTest {
  if (selector === undefined) return () => false;
  const tests: LabelTest[] = [];
  for (const [key, value] of Object.entries((at(selector, "matchLabels") ?? {}) as Record<string, string>)) {
    tests.push((labels) => label(labels, key) === value);
  }
  const expressions = (at(selector, "matchExpressions") ?? []) as {
    key: string;
    operator: string;
    values?: string[];
  }[];
  for (const { key, operator, values = [] } of expressions) tests.push(expressionTest(key, operator, values));
  return (labels) => tests.every((test) => test(labels));
}

function expressionTest(key: string, operator: string, values: string[]): LabelTest {
  if (operator === "Exists") return (labels) => label(labels, key) !== undefined;
  if (operator === "DoesNotExist") return (labels) => label(labels, key) === undefined;
  if (operator === "In") return (labels) => values.includes(label(labels, key) as string);
  if (operator === "NotIn") return (labels) => !values.includes(label(labels, key) as string);
  throw badRequest(`${JSON.stringify(operator)} is not a valid label selector operator`);
}

/** Parses a field selector (`=`, `==`, `!=`) on the kind's supported fields. Throws a 400 for others. */
export function parseFieldSelector(selector: string, definition: ResourceDefinition): Predicate {
  const paths: Record<string, string[]> = {
    ...definition.selectable,
    "metadata.name": ["metadata", "name"],
    ...(definition.namespaced ? { "metadata.namespace": ["metadata", "namespace"] } : {}),
  };
  const tests = selector
    .split(",")
    .filter((term) => term !== "")
    .map((term) => {
      const match = /^([^=!]+)(==|=|!=)(.*)$/.exec(term);
      if (!match) throw badRequest(`invalid selector: '${selector}'; can't understand '${term}'`);
      const [, field, operator, value] = match;
      const path = Object.hasOwn(paths, field!) ? paths[field!] : undefined;
      if (!path) throw badRequest(`field label not supported: ${field}`);
      // An absent boolean field is false.
      const alsoAbsent = value === "false";
      return (object: KubeObject) => {
        const text = String(at(object, ...path) ?? "");
        return (text === value || (alsoAbsent && text === "")) === (operator !== "!=");
      };
    });
  return (object) => tests.every((test) => test(object));
}

/** Combines both selectors of a request. Undefined if every object matches. */
export function parseSelectors(
  definition: ResourceDefinition,
  labelSelector: string | undefined,
  fieldSelector: string | undefined,
): Predicate | undefined {
  const byLabels = labelSelector ? parseLabelSelector(labelSelector) : undefined;
  const byFields = fieldSelector ? parseFieldSelector(fieldSelector, definition) : undefined;
  if (!byLabels && !byFields) return undefined;
  return (object) => (byLabels?.(object.metadata.labels ?? {}) ?? true) && (byFields?.(object) ?? true);
}
