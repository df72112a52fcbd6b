import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  AllocatableResourcesResponse,
  ListPodResourcesResponse,
  PodResourcesListerDefinition,
} from "@nodekeeper/core/gen/podresources/v1/api.ts";
import { createServer, type Server } from "nice-grpc";

/** A PodResources server. A test can set its responses and faults. */
export class FakeKubelet implements AsyncDisposable {
  allocatable: Parameters<typeof AllocatableResourcesResponse.fromPartial>[0] = {};
  pods: Parameters<typeof ListPodResourcesResponse.fromPartial>[0]["podResources"] = [];
  /** Number of List calls. */
  lists = 0;
  /** If set, returns the encoded response of List. */
  answerList: ((signal: AbortSignal) => Promise<Uint8Array>) | undefined;
  readonly directory: string;
  readonly socket: string;
  #server: Server | undefined;

  private constructor(directory: string) {
    this.directory = directory;
    this.socket = join(directory, "kubelet.sock");
  }

  /** Creates a server that is not listening yet. */
  static async make(): Promise<FakeKubelet> {
    return new FakeKubelet(await mkdtemp(join(tmpdir(), "nodekeeper-kubelet-")));
  }

  async start(): Promise<void> {
    const server = createServer();
    server.add(rawPodResources, {
      getAllocatableResources: async () =>
        AllocatableResourcesResponse.encode(
          AllocatableResourcesResponse.fromPartial(this.allocatable),
        ).finish(),
      list: async (_: Uint8Array, { signal }: { signal: AbortSignal }) => {
        this.lists++;
        if (this.answerList) return await this.answerList(signal);
        const list = ListPodResourcesResponse.fromPartial({ podResources: this.pods ?? [] });
        return ListPodResourcesResponse.encode(list).finish();
      },
    });
    await server.listen(`unix:${this.socket}`);
    this.#server = server;
  }

  /** Stops the server immediately and removes its socket. */
  async stop(): Promise<void> {
    this.#server?.forceShutdown();
    this.#server = undefined;
    await rm(this.socket, { force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await rm(this.directory, { recursive: true, force: true });
  }
}

const passThrough = (bytes: Uint8Array) => bytes;

function rawMethod(name: string) {
  return {
    path: `/${PodResourcesListerDefinition.fullName}/${name}`,
    requestStream: false as const,
    responseStream: false as const,
    requestSerialize: passThrough,
    requestDeserialize: passThrough,
    responseSerialize: passThrough,
    responseDeserialize: passThrough,
    options: {},
  };
}

// Messages are not decoded, so that a test can respond with any bytes.
const rawPodResources = {
  list: rawMethod("List"),
  getAllocatableResources: rawMethod("GetAllocatableResources"),
} as const;
