import { until } from "@nodekeeper/testing/until";

/** A server-sent event. */
export interface StreamedEvent {
  event: string;
  id: string | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: tests read into documents of every shape
  data: any;
  /** When it was received, milliseconds since the epoch with fractions. */
  at: number;
}

/** A client of server-sent events that keeps all it is sent. */
export class EventStreamClient {
  readonly events: StreamedEvent[] = [];
  readonly response: Response;
  readonly #stop: AbortController;
  /** Resolves when the stream has ended. */
  readonly ended: Promise<void>;

  private constructor(response: Response, stop: AbortController) {
    this.response = response;
    this.#stop = stop;
    this.ended = this.#read().catch(() => {});
  }

  static async open(url: string, headers: Record<string, string> = {}): Promise<EventStreamClient> {
    const stop = new AbortController();
    return new EventStreamClient(await fetch(url, { headers, signal: stop.signal }), stop);
  }

  /** The id to continue after. */
  get lastId(): string {
    return this.events.findLast(({ id }) => id !== undefined)?.id ?? "";
  }

  of(name: string): StreamedEvent[] {
    return this.events.filter(({ event }) => event === name);
  }

  /** Waits for an event of this name for which `is` holds. */
  async untilEvent(
    name: string,
    is: (data: StreamedEvent["data"]) => boolean = () => true,
  ): Promise<StreamedEvent> {
    const find = () => this.of(name).find(({ data }) => is(data));
    const explain = () => ({ status: this.response.status, last: this.events.slice(-5) });
    await until(`an event ${name}`, () => find() !== undefined, { explain });
    return find()!;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.ended;
  }

  async #read(): Promise<void> {
    let rest = "";
    const decoder = new TextDecoder();
    for await (const chunk of this.response.body!) {
      rest += decoder.decode(chunk, { stream: true });
      const messages = rest.split("\n\n");
      rest = messages.pop()!;
      for (const message of messages) this.#add(message);
    }
  }

  #add(message: string): void {
    const fields = message.split("\n").map((line) => /^(\w*): ?(.*)$/.exec(line)?.slice(1) ?? []);
    const fieldOf = (name: string) => fields.find(([field]) => field === name)?.[1];
    const data = fieldOf("data");
    if (data !== undefined)
      this.events.push({
        event: fieldOf("event") ?? "message",
        id: fieldOf("id"),
        data: JSON.parse(data),
        at: performance.timeOrigin + performance.now(),
      });
  }
}
