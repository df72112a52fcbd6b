import type {
  Container,
  ContainerMetadata,
  PodSandbox,
  PodSandboxMetadata,
} from "@nodekeeper/core/gen/runtime/v1/api.ts";
import type { WireReader } from "./wire-reader.ts";

// Lists are read every second and consist mostly of labels and annotations. This decoder skips them. It takes
// about half the time of the generated code, which creates an object for each field, and throws if a list is
// truncated, which would otherwise look like removed pods.
// Tags are the field number times 8 plus the wire type: 0 for varints, 2 for strings and messages.

/** Decodes a sandbox up to `end`. */
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

/** Decodes a container up to `end`. */
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
