import type { GetReportContentResponse } from "@nodekeeper/core/gen/reporterplugin/v1alpha1/api.ts";
import type { ReporterSource } from "../source.ts";

/** An in-tree plugin whose responses are scripted by a test. */
export class Scripted implements ReporterSource {
  readonly name: string;
  answer: () => Promise<GetReportContentResponse>;
  polls = 0;
  #push: ((value: GetReportContentResponse | Error) => void) | undefined;
  #pending: (GetReportContentResponse | Error)[] = [];

  constructor(name: string, answer: () => Promise<GetReportContentResponse>) {
    this.name = name;
    this.answer = answer;
  }

  getReportContent(): Promise<GetReportContentResponse> {
    this.polls++;
    return this.answer();
  }

  push(value: GetReportContentResponse | Error): void {
    const waiting = this.#push;
    this.#push = undefined;
    if (waiting) waiting(value);
    else this.#pending.push(value);
  }

  async *listAndWatch(signal: AbortSignal): AsyncIterable<GetReportContentResponse> {
    while (!signal.aborted) {
      const next =
        this.#pending.shift() ??
        (await new Promise<GetReportContentResponse | Error>((resolve, reject) => {
          this.#push = resolve;
          signal.addEventListener("abort", () => reject(signal.reason), { once: true });
        }));
      if (next instanceof Error) throw next;
      yield next;
    }
  }
}
