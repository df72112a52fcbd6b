import { FieldType, GetReportContentResponse } from "@nodekeeper/core/gen/reporterplugin/v1alpha1/api.ts";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { customNodeResource, node } from "./kinds.ts";
import { decoded, encoded, isSameMessage, kept } from "./report-message.ts";
import { field, message } from "./testing/contents.ts";

const one = () => message([field("status", "a", 1), field("metadata", "labels", { l: "1" })]);

describe("messages", () => {
  it.each([
    ["another value", message([field("status", "a", 2), field("metadata", "labels", { l: "1" })])],
    ["another name", message([field("status", "b", 1), field("metadata", "labels", { l: "1" })])],
    ["another part", message([field("spec", "a", 1), field("metadata", "labels", { l: "1" })])],
    ["one field less", message([field("status", "a", 1)])],
    ["another kind", message([field("status", "a", 1), field("metadata", "labels", { l: "1" })], node)],
    ["another content beside it", { content: [...one().content, ...one().content] }],
    ["nothing", { content: [] }],
  ])("with %s differ, as objects and as bytes", (_, other) => {
    expect(isSameMessage(one(), one())).toBe(true);
    expect(isSameMessage(one(), other)).toBe(false);
    expect(isSameMessage(encoded(one()), encoded(one()))).toBe(true);
    expect(isSameMessage(encoded(one()), encoded(other))).toBe(false);
  });

  const empties = Buffer.alloc(1 << 20).map((_, at) => (at % 2 === 0 ? 0x0a : 0));
  const emptyFields = Array.from({ length: 20_000 }, () => ({
    fieldType: FieldType.Spec,
    fieldName: "",
    value: new Uint8Array(),
  }));
  it.each([
    ["contents", empties],
    ["fields", encoded({ content: [{ groupVersionKind: node, field: emptyFields }] })],
  ])("of countless empty %s are not decoded", (_, bytes) => {
    const decode = vi.spyOn(GetReportContentResponse, "decode");
    onTestFinished(() => decode.mockRestore());
    expect(() => decoded(bytes)).toThrow("the message has more than 10000 contents and fields");
    expect(decode).not.toHaveBeenCalled();
  });

  it("of in-tree plugins are neither encoded nor decoded until they are checkpointed", () => {
    const response = one();
    expect(decoded(kept(response))).toBe(response);
    expect(GetReportContentResponse.decode(encoded(response))).toEqual(response);
    expect(response.content[0]?.groupVersionKind).toBe(customNodeResource);
  });
});
