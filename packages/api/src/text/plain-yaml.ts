import { plainJson } from "./plain-text.ts";

// Strings that need no quotes because YAML 1.1 and 1.2 do not parse them as another type: no numbers, dates, true, yes,
// null.
const plain = /^[A-Za-z_/][A-Za-z0-9_./@=+-]*(?:[ :][A-Za-z0-9_./@=+(),;-]+)*$/;
const reserved = /^(?:true|false|yes|no|on|off|y|n|null)$/i;

/**
 * Serializes a JSON value as a YAML document in block style, as kubectl prints it. Text from other programs is quoted
 * and escaped as in JSON, of which YAML is a superset, and so is safe for a terminal.
 */
export function plainYaml(value: unknown): string {
  return `${blockOf(JSON.parse(JSON.stringify(value ?? null)), "")}\n`;
}

function blockOf(value: unknown, indent: string): string {
  if (Array.isArray(value) && value.length > 0) {
    return value.map((item) => `${indent}- ${blockOf(item, `${indent}  `).trimStart()}`).join("\n");
  }
  if (isFilled(value)) {
    return Object.entries(value)
      .map(([key, item]) => `${indent}${scalarOf(key)}:${itemOf(item, indent)}`)
      .join("\n");
  }
  return `${indent}${scalarOf(value)}`;
}

function itemOf(item: unknown, indent: string): string {
  if (Array.isArray(item) && item.length > 0) return `\n${blockOf(item, indent)}`;
  return isFilled(item) ? `\n${blockOf(item, `${indent}  `)}` : ` ${scalarOf(item)}`;
}

function isFilled(value: unknown): value is Record<string, unknown> {
  return (
    typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).length > 0
  );
}

// Empty lists and objects are written as in JSON.
function scalarOf(value: unknown): string {
  return typeof value === "string" && plain.test(value) && !reserved.test(value) ? value : plainJson(value);
}
