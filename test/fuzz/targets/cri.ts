import {
  ContainerState,
  ListContainersResponse,
  ListPodSandboxResponse,
  PodSandboxState,
} from "@nodekeeper/core/gen/runtime/v1/api.ts";
import { NodekeeperError } from "@nodekeeper/core/lib";
import fc from "fast-check";
import { readContainer, readSandbox } from "../../../packages/agent/src/runtime/list-decoding.ts";
import { ListItems } from "../../../packages/agent/src/runtime/list-items.ts";
import type { WireReader } from "../../../packages/agent/src/runtime/wire-reader.ts";
import { expectedOnly, type FuzzTarget } from "../fuzz-target.ts";
import { mutated } from "../mutations.ts";

const text = fc.string({ maxLength: 20 });
const map = fc.dictionary(text, text, { maxKeys: 3 });
const created = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const sandboxes = fc
  .array(
    fc.record({
      id: text,
      metadata: fc.record({ name: text, uid: text, namespace: text, attempt: fc.nat() }),
      state: fc.constantFrom(PodSandboxState.SANDBOX_READY, PodSandboxState.SANDBOX_NOTREADY),
      createdAt: created,
      labels: map,
      annotations: map,
    }),
    { maxLength: 5 },
  )
  .map((items) => ListPodSandboxResponse.encode(ListPodSandboxResponse.fromPartial({ items })).finish());
const containers = fc
  .array(
    fc.record({
      id: text,
      podSandboxId: text,
      metadata: fc.record({ name: text, attempt: fc.nat() }),
      state: fc.constantFrom(ContainerState.CONTAINER_RUNNING, ContainerState.CONTAINER_EXITED),
      createdAt: created,
      labels: map,
    }),
    { maxLength: 5 },
  )
  .map((items) =>
    ListContainersResponse.encode(ListContainersResponse.fromPartial({ containers: items })).finish(),
  );

/** The first byte says which list, the second where the body is cut into chunks; gRPC's frame is put around the rest. */
const inputs = fc
  .tuple(fc.nat(1), fc.integer({ min: 1, max: 255 }), mutated(fc.oneof(sandboxes, containers)))
  .map(([kind, chunk, body]) => Buffer.concat([Uint8Array.of(kind, chunk), body]));

/** Lists of the container runtime: however an answer is cut into chunks, it gives the same items or the same refusal. */
export const cri: FuzzTarget = {
  name: "cri",
  about: "lists of the container runtime",
  inputs,
  run(input) {
    const [kind = 0, chunkBytes = 1] = input;
    const body = input.subarray(2);
    const frame = Buffer.alloc(5);
    frame.writeUInt32BE(body.length, 1);
    const answer = Buffer.concat([frame, body]);
    const read: (reader: WireReader, end: number) => object = kind === 0 ? readSandbox : readContainer;
    const whole = itemsOf([answer], read);
    const chunks: Buffer[] = [];
    for (let at = 0; at < answer.length; at += chunkBytes) chunks.push(answer.subarray(at, at + chunkBytes));
    const cut = itemsOf(chunks, read);
    if (whole !== cut) throw new Error(`in chunks of ${chunkBytes} bytes: ${cut}; whole: ${whole}`);
  },
};

function itemsOf(chunks: readonly Buffer[], read: (reader: WireReader, end: number) => object): string {
  const items = new ListItems({ maxBytes: 1024 * 1024, maxItems: 1_000, read });
  try {
    for (const chunk of chunks) items.push(chunk);
    return JSON.stringify(items.end(), (_, value) => (typeof value === "bigint" ? String(value) : value));
  } catch (error) {
    expectedOnly(error, RangeError, NodekeeperError);
    return "refused";
  }
}
