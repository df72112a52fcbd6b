import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { descriptorsOfProtos, driftOf, go, python } from "../scripts/language-descriptors.ts";
import { root } from "../scripts/programs.ts";

const generated = {
  go: { language: go, file: "sdk-go/gen/nodekeeper/devices/v1alpha2/preparation.pb.go" },
  python: {
    language: python,
    file: "sdk-python/nodekeeper_sdk/gen/nodekeeper/devices/v1alpha2/preparation_pb2.py",
  },
};

describe.each(Object.entries(generated))("generated code in %s", (_, { language, file }) => {
  let wanted: Awaited<ReturnType<typeof descriptorsOfProtos>>;
  let text: string;
  beforeAll(async () => {
    wanted = await descriptorsOfProtos();
    text = await readFile(join(root, file), "utf8");
  });

  it("is as proto/ is", () => {
    expect(driftOf(language, text, wanted)).toBeUndefined();
  });

  it.each<[string, RegExp, string, RegExp]>([
    ["a field of another number", /(\\x05(?:c|\\x63)laim\\x18\\x0)1/, "$19", /^differs/],
    ["a method of another name", /(\\x0ePrepareDevice)s(\\x12)/g, "$1X$2", /^differs/],
    ["no descriptor", /_rawDesc = |AddSerializedFile/, "other", /^has no descriptor$/],
    [
      "a proto file that is not there",
      /(v1alpha2\/preparatio)n(.proto\\x12)/,
      "$1m$2",
      /^comes from nodekeeper\/devices\/v1alpha2\/preparatiom.proto/,
    ],
  ])("%s is noticed", (_, before, after, expected) => {
    const changed = text.replace(before, after);
    expect(changed).not.toBe(text);
    expect(driftOf(language, changed, wanted)).toMatch(expected);
  });
});
