import { expect, it } from "vitest";
import { answerShapes, checkAnswerSize } from "./answer-size.ts";

/** 16 MiB of empty entries of one field. */
function empty(field: number): Buffer {
  return Buffer.alloc(16 * 2 ** 20, Buffer.from([(field << 3) | 2, 0]));
}

/** A message as the only entry of a field. */
function within(field: number, message: Uint8Array): Buffer {
  const length = message.length;
  const header = [
    (field << 3) | 2,
    (length & 127) | 128,
    ((length >> 7) & 127) | 128,
    ((length >> 14) & 127) | 128,
  ];
  return Buffer.concat([Buffer.from([...header, length >> 21]), message]);
}

it.each([
  { name: "pods", answer: empty(1), shape: answerShapes.getEvictPods, message: "more than 5000 pods" },
  { name: "candidates", answer: empty(8), shape: answerShapes.thresholdMet, message: "more than 5000 pods" },
  { name: "unknown fields", answer: empty(9), shape: answerShapes.getEvictPods, message: "300000 fields" },
  { name: "conditions", answer: empty(7), shape: answerShapes.thresholdMet, message: "300000" },
  {
    name: "effects of a condition",
    answer: within(2, empty(2)),
    shape: answerShapes.getEvictPods,
    message: "300000",
  },
  {
    name: "unknown fields of a pod",
    answer: within(1, empty(2)),
    shape: answerShapes.getTopEvictionPods,
    message: "300000 fields",
  },
  {
    name: "names in the metadata of a pod",
    answer: within(1, within(1, within(1, empty(1)))),
    shape: answerShapes.getEvictPods,
    message: "300000",
  },
])("an answer of millions of empty $name is refused before it is decoded", ({ answer, shape, message }) => {
  expect(() => checkAnswerSize(answer, shape)).toThrow(
    expect.objectContaining({ code: "exhausted", id: "NK1604", message: expect.stringContaining(message) }),
  );
});

it("a large answer passes", () => {
  const labels = Buffer.concat(Array<Buffer>(30).fill(Buffer.from([0x5a, 2, 0x0a, 0])));
  const pod = within(1, Buffer.concat([Buffer.from([0x0a, 1, 0x61]), labels]));
  const answer = Buffer.concat(Array<Buffer>(5_000).fill(within(1, pod)));
  expect(() => checkAnswerSize(answer, answerShapes.getTopEvictionPods)).not.toThrow();
});

it("bytes that are no message are invalid", () => {
  expect(() => checkAnswerSize(Buffer.from([0x0a, 5]), answerShapes.getEvictPods)).toThrow(
    "can't be decoded",
  );
});
