import { expect, it } from "vitest";
import { messageText } from "./message-text.ts";

it("JSON has a line for each member, what is cut stays as it is, and what can't be seen is escaped", () => {
  expect(messageText('{"pods":[1]}')).toBe('{\n  "pods": [\n    1\n  ]\n}');
  expect(messageText('{"seed":5764611469732290987}')).toBe('{\n  "seed": 5764611469732290987\n}');
  expect(messageText('{"pods":[1…')).toBe('{"pods":[1…');
  expect(messageText("a\u202eb")).toBe("a\\u202eb");
});
