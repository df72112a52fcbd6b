import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { parseExactly, parseWithBigInts, rawNumber, withObjectsAsText } from "./exact-json.ts";

const integers = '{"large":-9007199254740993,"small":7,"half":9007199254740993.5,"text":"9007199254740993"}';

describe("parsed exactly", () => {
  it.each([
    ["9007199254740993", rawNumber("9007199254740993")],
    ["9007199254740992", 9007199254740992],
    ["1e3", 1000],
    ["[ 5764611469732290987]", [rawNumber("5764611469732290987")]],
    ['"5764611469732290987"', "5764611469732290987"],
    ['{"a":[-9223372036854775808]}', { a: [-(2 ** 63)] }],
  ])("%s", (text, value) => {
    expect(parseExactly(text)).toEqual(value);
  });

  it("a number outside the range of a double is an error", () => {
    expect(() => parseExactly("[1e999]")).toThrow("number 1e999 is too large");
  });

  it("stringified again, integers have their digits", () => {
    expect(JSON.stringify(parseExactly(integers))).toBe(
      integers.replace("9007199254740993.5", "9007199254740994"),
    );
  });

  it("with bigints where a double is not safe", () => {
    expect(parseWithBigInts(integers)).toEqual({
      large: -9007199254740993n,
      small: 7,
      half: 9007199254740994,
      text: "9007199254740993",
    });
  });
});

describe("objects as text", () => {
  it.each([
    ['{"parameters":{"a":1}}', { parameters: '{"a":1}' }],
    ['{ "parameters" :\n{ "a" : 1.0 , "a":2 } }', { parameters: '{ "a" : 1.0 , "a":2 }' }],
    [
      '[{"parameters":{}},{"parameters":{"b":"}\\"{"}}]',
      [{ parameters: "{}" }, { parameters: '{"b":"}\\"{"}' }],
    ],
    ['{"parameters":{"parameters":{"c":1}},"d":1}', { parameters: '{"parameters":{"c":1}}', d: 1 }],
    ['{"parameters":[{"a":1}],"b":{"parameters":"{}"}}', { parameters: [{ a: 1 }], b: { parameters: "{}" } }],
    ['{"a":",\\"parameters\\":{","parametersOf":{"b":1}}', { a: ',"parameters":{', parametersOf: { b: 1 } }],
    ['{"the \\"parameters":{"a":1}}', { 'the "parameters': { a: 1 } }],
    ["[]", []],
  ])("in %s", (text, value) => {
    expect(JSON.parse(withObjectsAsText(text, "parameters"))).toEqual(value);
  });

  it.each(['{"parameters":{"a":1', '{"parameters":{"a":"}', '{"parameters":{}'])(
    "%s stays invalid",
    (text) => {
      expect(() => JSON.parse(withObjectsAsText(text, "parameters"))).toThrow(SyntaxError);
    },
  );

  test("any JSON comes through", () => {
    fc.assert(
      fc.property(fc.json(), fc.string(), (json, key) => {
        const parameters = `{${JSON.stringify(key)}:${json}}`;
        const text = `{"a":${json},"parameters":${parameters},"b":[${json}]}`;
        const value = JSON.parse(json);
        expect(JSON.parse(withObjectsAsText(text, "parameters"))).toEqual({
          a: value,
          parameters,
          b: [value],
        });
      }),
    );
  });
});
