import { chmod, writeFile } from "node:fs/promises";
import type { KubeObject } from "@nodekeeper/core/kube";
import { NodekeeperError } from "@nodekeeper/core/lib";
import { builtInResources } from "./catalogue/built-in.ts";
import { Catalogue } from "./catalogue/catalogue.ts";
import { followCustomKinds } from "./custom-kinds.ts";
import { createDevStore, type DevStore } from "./dev-store.ts";
import { Dispatcher } from "./http/dispatcher.ts";
import { ListPager } from "./http/list.ts";
import { Listener } from "./http/listener.ts";
import { WatchStream } from "./http/watch.ts";
import { kubeconfigFor } from "./kubeconfig.ts";
import { type Machine, sampleMachine } from "./machine.ts";
import type { DevApiServerOptions } from "./options.ts";
import { PodRemoval } from "./pod-removal.ts";
import { nodeFor, seedNamespaces } from "./seed.ts";
import { ObjectStore } from "./store/object-store.ts";
import { Persistence } from "./store/persistence.ts";
import type { WriteContext } from "./writes/context.ts";

const DEFAULT_HISTORY = 10_000;
const DEFAULT_WATCH_BUFFER_BYTES = 32 * 1024 * 1024;
const DEFAULT_BOOKMARK_INTERVAL_MS = 60_000;

/** An in-memory Kubernetes API for development and tests. */
export interface DevApiServer {
  /** Starts to listen. After a stop, listens on the same port with the same objects. */
  start(): Promise<{ url: string }>;
  /** Ends watches and closes all connections and the database. Idempotent. */
  stop(): Promise<void>;
  /** URL for clients. Throws `unavailable` before the first start. */
  readonly url: string;
  /** Returns a kubeconfig (YAML) for kubectl and other clients. */
  kubeconfig(): string;
  /** Writes the kubeconfig with mode 0600. */
  writeKubeconfig(path: string): Promise<void>;
  /** The objects, for tests and seeds. */
  readonly store: DevStore;
  /** Creates a ready Node with this name if it does not exist. */
  seedNode(name: string, machine?: Machine): KubeObject;
  /** Breaks the connections of all open watches. */
  cutWatches(): void;
  /** Number of open watches. */
  readonly watches: number;
}

/**
 * Creates the development API server. It is not a cluster: the only controllers are garbage collection and the removal
 * of terminated pods, there are no admission plugins, and the only access control is an optional token. It listens on
 * loopback only. Throws `invalid` for other addresses.
 */
export function createDevApiServer(options: DevApiServerOptions): DevApiServer {
  const { clock, log, dataDir, address = "127.0.0.1", port = 0 } = options;
  checkLoopback(address);
  const store = new ObjectStore(options.historyLimit ?? DEFAULT_HISTORY);
  const catalogue = new Catalogue(builtInResources(), options.checkFields ?? true);
  const context: WriteContext = { store, catalogue, clock };
  const devStore = createDevStore(context);
  const watches = new Set<WatchStream>();
  const limits = {
    maxBufferedBytes: options.maxWatchBufferBytes ?? DEFAULT_WATCH_BUFFER_BYTES,
    bookmarkIntervalMs: options.bookmarkIntervalMs ?? DEFAULT_BOOKMARK_INTERVAL_MS,
  };
  const dispatcher = new Dispatcher(options, {
    context,
    pager: new ListPager(),
    watch(call, request) {
      const stream = new WatchStream(call, store, request, clock, limits, (ended) => watches.delete(ended));
      watches.add(stream);
      stream.start();
    },
  });
  const listener = new Listener(address === "localhost" ? "127.0.0.1" : address, port, dispatcher);
  const podRemoval = options.removePodsAfterGrace === false ? undefined : new PodRemoval(context);
  let prepared = false;
  let running = false;

  const prepare = () => {
    if (dataDir) store.attach(new Persistence(dataDir), !prepared);
    if (!prepared) followCustomKinds(context);
    prepared = true;
    for (const namespace of seedNamespaces()) {
      if (!store.get("namespaces", namespace.metadata.name!)) devStore.put(namespace);
    }
    podRemoval?.start();
  };

  return {
    store: devStore,
    get url() {
      return listener.url;
    },
    get watches() {
      return watches.size;
    },
    async start() {
      if (!running) prepare();
      running = true;
      await listener.open();
      log.info({ url: listener.url }, "development API server listens");
      return { url: listener.url };
    },
    async stop() {
      if (!running) return;
      running = false;
      for (const stream of watches) stream.end();
      await listener.close();
      podRemoval?.stop();
      store.detach();
    },
    kubeconfig: () => kubeconfigFor(listener.url, options.token),
    async writeKubeconfig(path) {
      await writeFile(path, kubeconfigFor(listener.url, options.token), { mode: 0o600 });
      await chmod(path, 0o600);
    },
    seedNode: (name, machine = sampleMachine) =>
      devStore.get("nodes", name) ?? devStore.put(nodeFor(name, machine, clock)),
    cutWatches() {
      for (const stream of watches) stream.cut();
    },
  };
}

function checkLoopback(address: string): void {
  if (address === "localhost" || address === "::1" || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(address))
    return;
  const message = `address ${JSON.stringify(address)}: the development API server listens on loopback addresses only`;
  throw new NodekeeperError("invalid", message);
}
