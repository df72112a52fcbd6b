import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import { descriptorsOfProtos, goProblem } from "../scripts/go-descriptors.ts";
import { root } from "../scripts/programs.ts";

const file = "sdk-go/gen/nodekeeper/devices/v1alpha2/preparation.pb.go";
let wanted: Awaited<ReturnType<typeof descriptorsOfProtos>>;
let text: string;

beforeAll(async () => {
  wanted = await descriptorsOfProtos();
  text = await readFile(join(root, file), "utf8");
});

it("Go code is as proto/ is", () => {
  expect(goProblem(text, wanted)).toBeUndefined();
});

it.each<[string, (before: string) => string, RegExp]>([
  [
    "a field of another number",
    (before) => before.replace("\\x05claim\\x18\\x01", "\\x05claim\\x18\\x09"),
    /^differs/,
  ],
  [
    "a method of another name",
    (before) => before.replaceAll("\\x0ePrepareDevices\\x12", "\\x0ePrepareDeviceX\\x12"),
    /^differs/,
  ],
  ["no descriptor", (before) => before.replace("_rawDesc = ", "_other = "), /^has no descriptor$/],
  [
    "a proto file that is not there",
    (before) => before.replace("v1alpha2/preparation.proto\\x12", "v1alpha2/preparatiom.proto\\x12"),
    /^comes from nodekeeper\/devices\/v1alpha2\/preparatiom.proto/,
  ],
])("%s is noticed", (_, change, expected) => {
  const changed = change(text);
  expect(changed).not.toBe(text);
  expect(goProblem(changed, wanted)).toMatch(expected);
});
