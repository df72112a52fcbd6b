import { type Clock, NodekeeperError, withDeadline } from "@nodekeeper/core/lib";
import type { ConformanceOptions } from "./bench.ts";
import { OwnProcess } from "./driver-process.ts";
import { SocketPlace } from "./find-socket.ts";
import { HeldConnection } from "./held-connection.ts";

const START_MS = 30_000;
const END_MS = 10_000;
const POLL_MS = 50;

type Options = Pick<ConformanceOptions, "place" | "command" | "restartCommand" | "clock">;

/** The driver's process: one that the suite runs, or one that runs already. */
export class DriverRun implements AsyncDisposable {
  readonly #options: Options;
  readonly #place: SocketPlace;
  readonly #clock: Clock;
  /** Undefined if the driver runs already. */
  process: OwnProcess | undefined;

  constructor(options: Options) {
    this.#options = options;
    this.#clock = options.clock;
    this.#place = new SocketPlace(options.place, options.clock);
  }

  get canRestart(): boolean {
    const { command, restartCommand } = this.#options;
    return command !== undefined || restartCommand !== undefined;
  }

  /** Starts the driver if it does not run already. Returns its socket. Throws `invalid` if there is none. */
  async start(signal: AbortSignal): Promise<string> {
    const { command } = this.#options;
    if (command !== undefined) {
      if ((await this.#place.find()) !== undefined)
        throw new NodekeeperError(
          "invalid",
          `a process already listens at ${this.#place.path}; omit --command, or end it`,
        );
      return await this.#started(command, signal);
    }
    const socket = await this.#place.find();
    if (socket === undefined)
      throw new NodekeeperError(
        "invalid",
        `no process listens on a socket at ${this.#place.path}; start the driver, or give --command`,
      );
    return socket;
  }

  /** Kills the driver and starts it again, or runs the command for that. Returns its socket. */
  async restart(signal: AbortSignal): Promise<string> {
    const { command, restartCommand } = this.#options;
    if (command !== undefined) {
      await this.#kill();
      await this.#vacant(signal);
      return await this.#started(command, signal);
    }
    const before = await this.#place.find();
    using held = before === undefined ? undefined : await HeldConnection.open(before);
    const process = new OwnProcess(restartCommand ?? "false");
    try {
      const how = await withDeadline(
        this.#clock,
        { ms: START_MS, name: "--restart-command" },
        signal,
        () => process.exited,
      );
      if (how !== 0)
        throw new NodekeeperError("invalid", `--restart-command ended with ${how}: ${process.output}`);
      if (held) await Promise.race([held.closed, this.#clock.sleep(END_MS, signal)]);
      if (held?.isOpen)
        throw new NodekeeperError(
          "invalid",
          "--restart-command did not restart the driver: its process still runs",
        );
    } finally {
      process.kill("SIGKILL");
    }
    return await this.#place.appears(START_MS, signal);
  }

  /** Ends the driver if the suite runs it. */
  async [Symbol.asyncDispose](): Promise<void> {
    const { process } = this;
    if (!process?.isRunning) return;
    process.kill("SIGTERM");
    await Promise.race([process.exited, this.#clock.sleep(END_MS)]);
    await this.#kill();
  }

  async #started(command: string, signal: AbortSignal): Promise<string> {
    // Signals must reach the driver, not a shell in front of it.
    const process = new OwnProcess(`exec ${command}`);
    this.process = process;
    try {
      return await this.#place.appears(START_MS, signal, () => process.isRunning);
    } catch (error) {
      signal.throwIfAborted();
      const state = process.isRunning ? "runs" : `ended with ${await process.exited}`;
      const message = `the driver's process ${state}, and no process listens at ${this.#place.path}: ${process.output}`;
      throw new NodekeeperError("invalid", message, { cause: error });
    }
  }

  // Waits until no process listens any more. Throws `invalid` after 10 s: a container, for example, may keep running
  // after the command that started it was killed.
  async #vacant(signal: AbortSignal): Promise<void> {
    const until = this.#clock.monotonic() + END_MS;
    while ((await this.#place.find()) !== undefined) {
      if (this.#clock.monotonic() >= until)
        throw new NodekeeperError(
          "invalid",
          "the driver does not end with the process of --command; start it apart, and give --restart-command",
        );
      await this.#clock.sleep(POLL_MS, signal);
    }
  }

  async #kill(): Promise<void> {
    this.process?.kill("SIGKILL");
    await this.process?.exited;
  }
}
