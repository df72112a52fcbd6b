import { FieldType, GetReportContentResponse } from "@nodekeeper/core/gen/reporterplugin/v1alpha1/api.ts";
import fc from "fast-check";
import { parseContent } from "../../../packages/agent/src/reporting/content.ts";
import { kindPolicies } from "../../../packages/agent/src/reporting/kinds.ts";
import { mergeObject } from "../../../packages/agent/src/reporting/merge.ts";
import { decoded } from "../../../packages/agent/src/reporting/report-message.ts";
import { bytesOf, expectedOnly, type FuzzTarget } from "../fuzz-target.ts";
import { mutated } from "../mutations.ts";

const kinds = [
  { group: "node.katalyst.kubewharf.io", version: "v1alpha1", kind: "CustomNodeResource" },
  { group: "", version: "v1", kind: "Node" },
];
const policies = kindPolicies([]);
const quantities = fc.constantFrom(
  "1",
  "-1",
  "1.5",
  "1m",
  "1e999",
  "12345678901234567890",
  "1Ki",
  "0x1",
  " 1",
  "",
);
const values: fc.Arbitrary<string> = fc.oneof(
  fc.json({ maxDepth: 4 }),
  fc
    .dictionary(fc.constantFrom("cpu", "memory", "example.com/a", "__proto__", ""), quantities)
    .map((map) => JSON.stringify(map)),
  fc
    .array(
      fc.record({
        key: fc.string(),
        type: fc.constantFrom("Numa", "Socket"),
        name: fc.string(),
        effect: fc.constantFrom("NoSchedule", "No"),
        children: fc.array(fc.record({ type: fc.string(), name: fc.string() }), { maxLength: 3 }),
      }),
      { maxLength: 4 },
    )
    .map((items) => JSON.stringify(items)),
  fc.integer({ min: 1, max: 5_000 }).map((depth) => "[".repeat(depth) + "]".repeat(depth)),
  fc.string(),
);
const names = fc.oneof(
  fc.constantFrom(
    "Resources",
    "TopologyZone",
    "Taints",
    "Labels",
    "Capacity",
    "Allocatable",
    "__proto__",
    "constructor",
  ),
  fc.string(),
);

const messages = fc
  .array(
    fc.record({
      groupVersionKind: fc.constantFrom(...kinds),
      field: fc.array(
        fc.record({
          fieldType: fc.constantFrom(FieldType.Spec, FieldType.Status, FieldType.Metadata),
          fieldName: names,
          value: values.map(bytesOf),
        }),
        { maxLength: 6 },
      ),
    }),
    { maxLength: 3 },
  )
  .map((content) => GetReportContentResponse.encode({ content }).finish());

/** Reports of reporter plugins: what is taken of them merges with itself, and is JSON. */
export const contents: FuzzTarget = {
  name: "contents",
  about: "reports of reporter plugins",
  inputs: mutated(messages),
  run(input) {
    let message: GetReportContentResponse;
    try {
      message = decoded(input);
    } catch (error) {
      // The bytes are no message: gRPC's library makes an error of the call of it.
      return expectedOnly(error, Error);
    }
    const content = parseContent(message, policies);
    if (content.problems.length > 50) throw new Error(`${content.problems.length} problems are reported`);
    for (const { object } of content.fields) {
      const both = new Map([
        ["one", content],
        ["other", content],
      ]);
      const merged = mergeObject(object, both);
      const written = JSON.stringify(merged?.parts);
      if (JSON.stringify(JSON.parse(written)) !== written) throw new Error("what is merged is no JSON");
    }
  },
};
