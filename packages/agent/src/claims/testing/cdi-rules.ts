// The JSON schema of CDI 1.1.0 (schema/defs.json) and the rules of its Go package, implemented independently of the
// agent's code.

/** Returns problems, among them the version that a field needs as "needs 1.1.0". */
type Rule = (value: unknown, path: string) => string[];
type Fields = Record<string, { rule: Rule; isRequired?: boolean; since?: string }>;

const text: Rule = (value, path) => (typeof value === "string" ? [] : [`${path} is no string`]);
const filled: Rule = (value, path) => (value === "" ? [`${path} is empty`] : text(value, path));
const flag: Rule = (value, path) => (typeof value === "boolean" ? [] : [`${path} is no boolean`]);
const integer =
  (least: number, most: number): Rule =>
  (value, path) =>
    Number.isInteger(value) && Number(value) >= least && Number(value) <= most ? [] : [`${path}: ${value}`];
const uint32 = integer(0, 2 ** 32 - 1);
const list =
  (rule: Rule): Rule =>
  (value, path) =>
    Array.isArray(value)
      ? value.flatMap((item, at) => rule(item, `${path}[${at}]`))
      : [`${path} is no array`];
const oneOf =
  (...values: string[]): Rule =>
  (value, path) =>
    values.includes(value as string) ? [] : [`${path}: ${value}`];
const annotations: Rule = (value, path) =>
  Object.entries(value as object).flatMap(([key, each]) => text(each, `${path}.${key}`));
const variable: Rule = (value, path) => (/^[^=\0]+=/.test(String(value)) ? [] : [`${path}: ${value}`]);

const versions = ["0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0"];
const NEEDS = "needs ";

const fields =
  (known: Fields): Rule =>
  (value, path) => {
    if (typeof value !== "object" || value === null) return [`${path} is no object`];
    const found = value as Record<string, unknown>;
    const missing = Object.entries(known).filter(([name, { isRequired }]) => isRequired && !(name in found));
    return [
      ...missing.map(([name]) => `${path}.${name} is missing`),
      ...Object.entries(found).flatMap(([name, each]) => {
        const field = known[name];
        if (!field) return [`${path}.${name} is unknown`];
        return [...(field.since ? [`${NEEDS}${field.since}`] : []), ...field.rule(each, `${path}.${name}`)];
      }),
    ];
  };

const edits = fields({
  env: { rule: list(variable) },
  deviceNodes: {
    rule: list(
      fields({
        path: { rule: filled, isRequired: true },
        hostPath: { rule: text },
        type: { rule: oneOf("b", "c", "u", "p") },
        major: { rule: integer(-(2 ** 63), 2 ** 63) },
        minor: { rule: integer(-(2 ** 63), 2 ** 63) },
        fileMode: { rule: uint32 },
        permissions: { rule: text },
        uid: { rule: uint32 },
        gid: { rule: uint32 },
      }),
    ),
  },
  netDevices: {
    since: "1.1.0",
    rule: list(
      fields({
        hostInterfaceName: { rule: filled, isRequired: true },
        name: { rule: filled, isRequired: true },
      }),
    ),
  },
  hooks: {
    rule: list(
      fields({
        hookName: { rule: filled, isRequired: true },
        path: { rule: filled, isRequired: true },
        args: { rule: list(text) },
        env: { rule: list(variable) },
        timeout: { rule: integer(0, 2 ** 31) },
      }),
    ),
  },
  mounts: {
    rule: list(
      fields({
        hostPath: { rule: filled, isRequired: true },
        containerPath: { rule: filled, isRequired: true },
        options: { rule: list(text) },
        type: { rule: text },
      }),
    ),
  },
  intelRdt: {
    since: "0.7.0",
    rule: fields({
      closID: {
        rule: (value, path) =>
          /^(?!\.{1,2}$)[^/\n]{0,4095}$/.test(String(value)) ? [] : [`${path}: ${value}`],
      },
      l3CacheSchema: { rule: text },
      memBwSchema: { rule: text },
      schemata: { rule: list(text), since: "1.1.0" },
      enableMonitoring: { rule: flag, since: "1.1.0" },
    }),
  },
  additionalGids: { rule: list(integer(1, 2 ** 32 - 2)), since: "0.7.0" },
});

const someEdits: Rule = (value, path) =>
  Object.keys(value as object).length === 0 ? [`${path} is empty`] : edits(value, path);

const file = fields({
  cdiVersion: { rule: oneOf(...versions), isRequired: true },
  kind: {
    isRequired: true,
    rule: (value, path) =>
      /^[A-Za-z][\w.-]*\/[A-Za-z][\w-]*$/.test(String(value)) ? [] : [`${path}: ${value}`],
  },
  containerEdits: { rule: edits },
  devices: {
    isRequired: true,
    rule: list(
      fields({
        name: { rule: filled, isRequired: true },
        annotations: { rule: annotations, since: "0.6.0" },
        containerEdits: { rule: someEdits, isRequired: true },
      }),
    ),
  },
});

/**
 * Returns the problems for which a container runtime with CDI 1.1.0 would reject a file. A version that is not the
 * lowest possible is a problem, too.
 */
export function cdiProblems(spec: { cdiVersion: string; devices: { name: string }[] }): string[] {
  const found = file(spec, "spec");
  const problems = found.filter((problem) => !problem.startsWith(NEEDS));
  const names = spec.devices.map(({ name }) => name);
  if (new Set(names).size < names.length) problems.push("two devices have one name");
  // The versions sort as texts. Names that start with a digit need 0.5.0, below which the agent writes no file.
  const needed = found
    .filter((problem) => problem.startsWith(NEEDS))
    .map((problem) => problem.slice(NEEDS.length));
  const lowest = ["0.5.0", ...needed].sort().at(-1);
  if (spec.cdiVersion !== lowest) problems.push(`version ${spec.cdiVersion} instead of ${lowest}`);
  return problems;
}
