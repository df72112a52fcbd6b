import { plainText } from "@nodekeeper/api/text";
import { age, counted } from "@nodekeeper/api/wording";
import type { Clock, Timer } from "@nodekeeper/core/lib";
import type { Agent } from "../agent.ts";
import { type Output, paint } from "./output.ts";

const TERMINAL_MS = 500;
const PLAIN_MS = 10_000;

/** A line with the agent's current counts. Rewritten on a terminal; elsewhere printed every 10 s if it changed. */
export class LiveLine {
  readonly #output: Output;
  readonly #clock: Clock;
  readonly #summary: Agent["summary"];
  readonly #startedAt: number;
  #timer: Timer | undefined;
  #last = "";

  constructor(output: Output, clock: Clock, summary: Agent["summary"]) {
    this.#output = output;
    this.#clock = clock;
    this.#summary = summary;
    this.#startedAt = clock.monotonic();
  }

  start(): void {
    const { isTerminal } = this.#output;
    const text = this.#text();
    if (isTerminal) this.#output.write(`\r\x1b[2K${text.slice(0, this.#output.columns - 1)}`);
    else if (text !== this.#last) this.#output.write(`${text}\n`);
    this.#last = text;
    // The first line is printed before anything has happened, so the second follows after 2 s.
    const soon = this.#clock.monotonic() - this.#startedAt < 1_000;
    this.#timer = this.#clock.after(isTerminal ? TERMINAL_MS : soon ? 2_000 : PLAIN_MS, () => this.start());
  }

  stop(): void {
    this.#timer?.cancel();
    if (this.#output.isTerminal) this.#output.write("\n");
  }

  #text(): string {
    const summary = this.#summary();
    const { plugins, objects, pending, lastWriteAt, problem, writes, pods, events, evicted } = summary;
    const last = lastWriteAt === undefined ? "none yet" : `${age(this.#clock.now() - lastWriteAt)} ago`;
    const parts = [
      `up ${age(this.#clock.monotonic() - this.#startedAt)}`,
      counted(plugins, "plugin"),
      ...(pods === undefined ? [] : [`${counted(pods, "pod")}, ${counted(events ?? 0, "event")}`]),
      ...(evicted === undefined ? [] : [`${evicted} evicted`]),
      `${counted(objects, "object")}${pending > 0 ? ` (${pending} pending)` : ""}`,
      `${counted(writes, "write")}, last ${last}`,
    ];
    const text = parts.join("  ");
    return problem ? `${text}  ${paint(this.#output, "red", plainText(problem))}` : text;
  }
}
