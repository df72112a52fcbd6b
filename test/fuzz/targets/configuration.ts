import { readLeaf, settings, wrongValue } from "@nodekeeper/api/settings";
import fc from "fast-check";
import { parseConfigurationText } from "../../../packages/agent/src/config/file.ts";
import { bytesOf, type FuzzTarget, textOf } from "../fuzz-target.ts";
import { mutated } from "../mutations.ts";

const scalars = fc.oneof(
  fc.constantFrom(
    "true",
    "5s",
    "1Gi",
    "[]",
    "{}",
    "*a",
    "&a 1",
    "&a [*a]",
    "&a {b: *a}",
    "!!binary aGk=",
    "~",
    "0x10",
    ".inf",
    "|\n  text",
  ),
  fc.json({ maxDepth: 2 }),
  fc.string({ maxLength: 20 }),
);
const files = fc
  .array(
    fc.tuple(fc.constantFrom(...settings.map(({ path }) => path), "unknown.setting", "__proto__"), scalars),
    {
      maxLength: 8,
    },
  )
  .map((given) =>
    [
      "apiVersion: nodekeeper.dev/v1alpha1",
      "kind: AgentConfiguration",
      ...given.map(([path, value]) => {
        const names = path.split(".");
        return `${names.map((name, depth) => `${"  ".repeat(depth)}${name}:`).join("\n")} ${value}`;
      }),
    ].join("\n"),
  );

/** Configuration files: each problem is one of the file, and has a place; nothing is thrown. */
export const configuration: FuzzTarget = {
  name: "configuration",
  about: "configuration files",
  inputs: mutated(files.map(bytesOf)),
  run(input) {
    const { values, problems } = parseConfigurationText(textOf(input), "fuzz.yaml");
    for (const { source, message } of problems)
      if (!source.startsWith("fuzz.yaml") || message === "")
        throw new Error(`a problem without place or text: ${source}`);
    for (const setting of settings) {
      const given = values.get(setting.path);
      if (given && readLeaf(setting, given.value) === undefined) wrongValue(given.value, setting.expected);
    }
  },
};
