import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { BinaryReader, BinaryWriter } from "@bufbuild/protobuf/wire";
import { Client, credentials } from "@grpc/grpc-js";
import { imageName } from "./container-image.ts";

const DEADLINE_MS = 180_000;
const NETWORK_OF_NODE = 2;

export interface PodSpec {
  uid: string;
  name: string;
  namespace: string;
  /** Where the kubelet would put it: "/kubepods/burstable/pod<uid>". Default: one of its own, below the runtime's. */
  cgroupParent?: string;
}

/** A container as a test wants it. */
export interface ContainerSpec {
  name: string;
  command: readonly string[];
  attempt?: number;
  /** Bytes. */
  memoryLimit?: number;
}

type Write = (writer: BinaryWriter) => void;

/**
 * The calls of CRI by which a kubelet makes pods, as far as tests need them. Written by hand: the product's own
 * contract has no such calls, for the agent makes no pods.
 */
export class CriClient {
  readonly #client: Client;
  readonly #podCgroup: string;
  readonly #podLogs: string;
  readonly #sandboxes = new Map<string, { spec: PodSpec; config: Write }>();

  constructor({ socket, podCgroup }: { socket: string; podCgroup: string }) {
    this.#podCgroup = podCgroup;
    // Of this runtime alone: pods of other runs have the same UIDs, and their logs would be taken for these.
    this.#podLogs = join(dirname(socket), "pod-logs");
    this.#client = new Client(`unix:${socket}`, credentials.createInsecure(), {
      "grpc.default_authority": "localhost",
      "grpc.initial_reconnect_backoff_ms": 100,
      "grpc.max_reconnect_backoff_ms": 500,
    });
  }

  /** Creates and starts a pod sandbox in the host's network namespace. Returns its ID. */
  async runPodSandbox(spec: PodSpec, attempt = 0): Promise<string> {
    const config: Write = (writer) => {
      message(writer, 1, (metadata) => {
        metadata.uint32(10).string(spec.name).uint32(18).string(spec.uid).uint32(26).string(spec.namespace);
        metadata.uint32(32).uint32(attempt);
      });
      writer.uint32(26).string(this.#logDirectory(spec));
      labels(writer, 6, podLabels(spec));
      message(writer, 8, (linux) => {
        // Beside the containers of other pods, a sandbox with its two of 1024 shares would get no CPU on a busy machine.
        linux.uint32(10).string(spec.cgroupParent ?? `${this.#podCgroup}/pod${spec.uid}`);
        message(linux, 2, (security) =>
          message(security, 1, (options) => options.uint32(8).int32(NETWORK_OF_NODE)),
        );
      });
    };
    const id = await this.#call("RunPodSandbox", (writer) => message(writer, 1, config));
    this.#sandboxes.set(id, { spec, config });
    return id;
  }

  /** Creates a container without starting it. Returns its ID. */
  async createContainer(sandbox: string, container: ContainerSpec): Promise<string> {
    const { spec, config } = this.#sandboxes.get(sandbox)!;
    const { name, command, attempt = 0, memoryLimit } = container;
    return await this.#call("CreateContainer", (writer) => {
      writer.uint32(10).string(sandbox);
      message(writer, 2, (own) => {
        message(own, 1, (metadata) => metadata.uint32(10).string(name).uint32(16).uint32(attempt));
        message(own, 2, (image) => image.uint32(10).string(imageName));
        for (const word of command) own.uint32(26).string(word);
        labels(own, 9, { ...podLabels(spec), "io.kubernetes.container.name": name });
        own.uint32(90).string(logName(container));
        if (memoryLimit !== undefined) {
          message(own, 15, (linux) =>
            message(linux, 1, (resources) => resources.uint32(32).int64(memoryLimit)),
          );
        }
      });
      message(writer, 3, config);
    });
  }

  startContainer(id: string): Promise<string> {
    return this.#call("StartContainer", (writer) => writer.uint32(10).string(id));
  }

  /** Creates and starts a container. Returns its ID. */
  async runContainer(sandbox: string, container: ContainerSpec): Promise<string> {
    const id = await this.createContainer(sandbox, container);
    await this.startContainer(id);
    return id;
  }

  /** What a container has written so far, in CRI's log format. */
  logs(pod: Pick<PodSpec, "uid">, container: Pick<ContainerSpec, "name" | "attempt">): Promise<string> {
    return readFile(join(this.#logDirectory(pod), logName(container)), "utf8");
  }

  stopContainer(id: string, timeoutSeconds = 0): Promise<string> {
    return this.#call("StopContainer", (writer) =>
      writer.uint32(10).string(id).uint32(16).int64(timeoutSeconds),
    );
  }

  removeContainer(id: string): Promise<string> {
    return this.#call("RemoveContainer", (writer) => writer.uint32(10).string(id));
  }

  stopPodSandbox(id: string): Promise<string> {
    return this.#call("StopPodSandbox", (writer) => writer.uint32(10).string(id));
  }

  removePodSandbox(id: string): Promise<string> {
    return this.#call("RemovePodSandbox", (writer) => writer.uint32(10).string(id));
  }

  close(): void {
    this.#client.close();
  }

  #logDirectory({ uid }: Pick<PodSpec, "uid">): string {
    return join(this.#podLogs, uid);
  }

  // Returns the first field of the response. If the call creates an object, that is its ID.
  #call(method: string, request: Write): Promise<string> {
    return new Promise((resolve, reject) => {
      this.#client.makeUnaryRequest(
        `/runtime.v1.RuntimeService/${method}`,
        (write: Write) => {
          const writer = new BinaryWriter();
          write(writer);
          return Buffer.from(writer.finish());
        },
        (bytes: Buffer) => firstField(bytes),
        request,
        { deadline: Date.now() + DEADLINE_MS },
        (error, answer) => (error ? reject(new Error(`${method}: ${error.message}`)) : resolve(answer ?? "")),
      );
    });
  }
}

function logName({ name, attempt = 0 }: Pick<ContainerSpec, "name" | "attempt">): string {
  return `${name}.${attempt}.log`;
}

function podLabels({ uid, name, namespace }: PodSpec): Record<string, string> {
  return {
    "io.kubernetes.pod.uid": uid,
    "io.kubernetes.pod.name": name,
    "io.kubernetes.pod.namespace": namespace,
  };
}

function message(writer: BinaryWriter, field: number, write: Write): void {
  const inner = writer.uint32((field << 3) | 2).fork();
  write(inner);
  inner.join();
}

function labels(writer: BinaryWriter, field: number, entries: Record<string, string>): void {
  for (const [key, value] of Object.entries(entries)) {
    message(writer, field, (entry) => entry.uint32(10).string(key).uint32(18).string(value));
  }
}

function firstField(bytes: Buffer): string {
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if (tag === 10) return reader.string();
    reader.skip(tag & 7);
  }
  return "";
}
