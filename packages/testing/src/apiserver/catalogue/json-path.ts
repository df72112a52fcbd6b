import { isTree, own } from "../json.ts";

type Step = { field: string } | { index: number } | { every: true } | { where: string[]; equals: string };

const STEP =
  /\.([A-Za-z0-9_$-]+)|\['([^']+)'\]|\[(-?\d+)\]|(\[\*\])|\[\?\(@\.([A-Za-z0-9_.-]+)\s*==\s*['"]([^'"]*)['"]\)\]/y;

/**
 * Compiles the subset of JSONPath used by printer columns: `.a.b`, `['a']`, `[0]`, `[*]`, `[?(@.type=="Ready")]`. The
 * compiled function returns the first match. Undefined if the path contains anything else.
 */
export function compileJsonPath(path: string): ((value: unknown) => unknown) | undefined {
  const steps: Step[] = [];
  STEP.lastIndex = 0;
  while (STEP.lastIndex < path.length) {
    const match = STEP.exec(path);
    if (!match) return undefined;
    const [, field, quoted, index, star, where, equals] = match;
    if (field !== undefined || quoted !== undefined) steps.push({ field: (field ?? quoted)! });
    else if (index !== undefined) steps.push({ index: Number(index) });
    else if (star !== undefined) steps.push({ every: true });
    else steps.push({ where: where!.split("."), equals: equals! });
  }
  return (value) =>
    steps.reduce<unknown[]>((values, step) => values.flatMap((item) => take(item, step)), [value])[0];
}

function take(value: unknown, step: Step): unknown[] {
  if ("field" in step) return isTree(value) ? present(own(value, step.field)) : [];
  if (!Array.isArray(value)) return "every" in step && isTree(value) ? Object.values(value) : [];
  if ("index" in step) return present(value.at(step.index));
  if ("every" in step) return value;
  const { where, equals } = step;
  return value.filter(
    (item) =>
      where.reduce<unknown>((at, field) => (isTree(at) ? own(at, field) : undefined), item) === equals,
  );
}

const present = (value: unknown) => (value === undefined ? [] : [value]);
