import type {
  Container,
  ContainerMetadata,
  PodSandbox,
  PodSandboxMetadata,
} from "@nodekeeper/core/gen/runtime/v1/api.ts";
import type { WireReader } from "./wire-reader.ts";

// The lists are read every second and are nearly all labels and annotations, so they are decoded by hand: in about half
// the time of the generated code, which makes an object of each field it skips, and with an error where a list breaks
// off, for a short list would look like pods that are gone.
// Tags: the field's number times 8 plus its wire type, 0 for numbers, 2 for text and messages.

/** The fields of a sandbox, up to `end`. */
export function readSandbox(reader: WireReader, end: number): PodSandbox {
  let id = "";
  let metadata: PodSandboxMetadata | undefined;
  let state = 0;
  let createdAt = 0n;
  for (let tag = reader.tag(end); tag !== 0; tag = reader.tag(end)) {
    if (tag === 10) id = reader.string();
    else if (tag === 18) metadata = sandboxMetadata(reader, reader.enter());
    else if (tag === 24) state = reader.uint32();
    else if (tag === 32) createdAt = reader.int64();
    else reader.skip(tag);
  }
  return { id, metadata, state: state as PodSandbox["state"], createdAt };
}

function sandboxMetadata(reader: WireReader, end: number): PodSandboxMetadata {
  let name = "";
  let uid = "";
  let namespace = "";
  let attempt = 0;
  for (let tag = reader.tag(end); tag !== 0; tag = reader.tag(end)) {
    if (tag === 10) name = reader.string();
    else if (tag === 18) uid = reader.string();
    else if (tag === 26) namespace = reader.string();
    else if (tag === 32) attempt = reader.uint32();
    else reader.skip(tag);
  }
  return { name, uid, namespace, attempt };
}

/** The fields of a container, up to `end`. */
export function readContainer(reader: WireReader, end: number): Container {
  let id = "";
  let podSandboxId = "";
  let metadata: ContainerMetadata | undefined;
  let state = 0;
  let createdAt = 0n;
  for (let tag = reader.tag(end); tag !== 0; tag = reader.tag(end)) {
    if (tag === 10) id = reader.string();
    else if (tag === 18) podSandboxId = reader.string();
    else if (tag === 26) metadata = containerMetadata(reader, reader.enter());
    else if (tag === 48) state = reader.uint32();
    else if (tag === 56) createdAt = reader.int64();
    else reader.skip(tag);
  }
  return { id, podSandboxId, metadata, state: state as Container["state"], createdAt };
}

function containerMetadata(reader: WireReader, end: number): ContainerMetadata {
  let name = "";
  let attempt = 0;
  for (let tag = reader.tag(end); tag !== 0; tag = reader.tag(end)) {
    if (tag === 10) name = reader.string();
    else if (tag === 16) attempt = reader.uint32();
    else reader.skip(tag);
  }
  return { name, attempt };
}
