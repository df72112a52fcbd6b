import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** Stands between the agent and the API server, to cut what passes through it. */
export class TcpProxy {
  readonly #server: Server;
  readonly #pairs = new Set<[Socket, Socket]>();
  #isRefusing = false;

  private constructor(targetPort: number) {
    this.#server = createServer((client) => {
      if (this.#isRefusing) {
        client.destroy();
        return;
      }
      const upstream = connect(targetPort, "127.0.0.1");
      const pair: [Socket, Socket] = [client, upstream];
      this.#pairs.add(pair);
      for (const [from, to] of [pair, [upstream, client] as const]) {
        from.pipe(to);
        from.on("error", () => to.destroy());
        from.on("close", () => {
          to.destroy();
          this.#pairs.delete(pair);
        });
      }
    });
  }

  static async start(targetPort: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(targetPort);
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Resets all open connections. New ones are accepted. Returns the number of connections that were reset. */
  cut(): number {
    const count = this.#pairs.size;
    for (const [client, upstream] of this.#pairs) {
      client.resetAndDestroy();
      upstream.resetAndDestroy();
    }
    return count;
  }

  /** Cuts everything and takes no new connection until `resume`. */
  refuse(): void {
    this.#isRefusing = true;
    this.cut();
  }

  resume(): void {
    this.#isRefusing = false;
  }

  async stop(): Promise<void> {
    this.refuse();
    this.#server.close();
    await once(this.#server, "close");
  }
}
