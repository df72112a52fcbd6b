import { PluginTypeUnknown, RegistrationIncomplete } from "@nodekeeper/api/errors";
import {
  Backoff,
  checkSocketPath,
  codeOf,
  errorIdOf,
  type Logger,
  messageOf,
  messageWithId,
  NodekeeperError,
  quote,
  retryPolicies,
  type Semaphore,
  WakeableSleep,
  withDeadline,
} from "@nodekeeper/core/lib";
import type { PluginContext } from "./context.ts";
import { Inheritance, type Predecessor } from "./inheritance.ts";
import type { Liveness } from "./liveness.ts";
import { checkPluginInfo } from "./plugin-info.ts";
import type { Claimant, RegisteredPlugins } from "./registered-plugins.ts";
import { type HandshakeTimeouts, RegistrationClient } from "./registration-client.ts";
import { SessionStatus } from "./session-status.ts";
import type { FoundSocket } from "./socket-scan.ts";
import { firstUser, type SocketTrust } from "./socket-trust.ts";
import type { PluginStatus } from "./status.ts";
import type { PluginHandler, PluginRegistration } from "./types.ts";

/** Dependencies shared by all sessions of a manager. */
export interface SessionContext extends Omit<PluginContext, "settings"> {
  registered: RegisteredPlugins;
  handshakes: Handshakes;
  trust: SocketTrust;
  timeouts: HandshakeTimeouts & { handlerMs: number };
  liveness: Liveness;
  livenessIntervalMs: number;
}

/**
 * Limits of concurrent handshakes. Sockets that have failed have a separate limit, so that they do not delay
 * new ones.
 */
export interface Handshakes {
  first: Semaphore;
  retries: Semaphore;
}

// Timeout of a handshake while other sockets wait for their first one.
const crowdedDeadlineMs = 1_000;
const refusalCodes = new Set(["invalid", "unsupported", "conflict", "forbidden", "exhausted"]);

/** Manages one socket file: its handshake, liveness probes, and deregistration. One operation at a time. */
export class PluginSession implements Claimant {
  readonly path: string;
  readonly identity: string;
  readonly sequence: number;
  readonly #context: SessionContext;
  readonly #log: Logger;
  readonly #failures = new Backoff(retryPolicies.registration);
  readonly #refusals = new Backoff(retryPolicies.refusedRegistration);
  readonly #status: SessionStatus;
  readonly #inheritance: Inheritance;
  /** Failures since the plugin was last registered. */
  #failedAttempts = 0;
  /** The user that the sockets belong to, once they were accepted. */
  #uid: number | undefined;
  #registration: PluginRegistration | undefined;
  #hasEnded = false;
  #noticePending = false;
  #noticeDue = 0;
  /** Retries, because a name or capacity became free. */
  readonly #retryAtVacancy = () => {
    this.#refusals.reset();
    this.#status.enter("registering", undefined);
    this.#sleep.wake();
  };
  readonly #sleep = new WakeableSleep();

  constructor(
    socket: FoundSocket,
    sequence: number,
    predecessor: Predecessor | undefined,
    context: SessionContext,
  ) {
    this.path = socket.path;
    this.identity = socket.identity;
    this.sequence = sequence;
    this.#inheritance = new Inheritance(predecessor);
    this.#status = new SessionStatus(context.clock);
    this.#context = context;
    this.#log = context.log.child({ socket: socket.path });
  }

  /**
   * Registrations that remain when the session has ended: its own, and those of earlier files under other
   * names.
   */
  get held(): readonly PluginRegistration[] {
    return this.#inheritance.with(this.#registration);
  }

  /**
   * Runs until the signal aborts. Deregisters the plugin if the abort reason is `notFound`; otherwise the
   * plugin stays registered.
   */
  async run(signal: AbortSignal): Promise<void> {
    try {
      while (!signal.aborted) await this.#step(signal);
    } catch (error) {
      if (!signal.aborted) this.#log.error({ err: error }, "plugin session failed with an internal error");
    }
    this.#hasEnded = true;
    this.#context.vacancies.cancel(this.#retryAtVacancy);
    await this.#inheritance.collect();
    if (codeOf(signal.reason) !== "notFound") return;
    const reason = messageOf(signal.reason);
    await this.#releasePredecessor(reason);
    await this.#release(reason);
  }

  accepted(registration: PluginRegistration): void {
    this.#registration = registration;
    this.#noticePending = true;
    this.#noticeDue = 0;
    this.#failedAttempts = 0;
    this.#failures.reset();
    this.#refusals.reset();
    this.#count("registered");
    this.#status.enter("registered", undefined);
    const { type, name, endpoint, generation } = registration;
    this.#log.info({ type, plugin: name, endpoint, generation }, "plugin registered");
    this.#context.onChange({ kind: "registered", type, name });
  }

  superseded(by: PluginRegistration): void {
    this.#registration = undefined;
    this.#noticePending = false;
    if (!this.#hasEnded) this.#context.vacancies.wait(this.#retryAtVacancy);
    this.#status.enter("superseded", `${by.registrationSocket} is newer and took the name over`);
    this.#sleep.wake();
  }

  status(): PluginStatus {
    return this.#status.show(this.path, this.#registration);
  }

  // Each step acts on the current state and then waits until the next step is due.
  async #step(signal: AbortSignal): Promise<void> {
    switch (this.#status.state) {
      case "registering":
        return await this.#attempt(signal);
      case "registered":
        return await this.#watchOver(signal);
      case "superseded":
        return await this.#wait(this.#context.livenessIntervalMs, signal);
      case "unavailable":
        return await this.#awaitProcess(signal);
      case "refused":
        await this.#wait(this.#refusals.next(), signal);
        return this.#status.retry("refused");
      case "failed":
        await this.#wait(this.#failures.next(), signal);
        return this.#status.retry("failed");
    }
  }

  // A wakeup ends only the current wait. Earlier ones have been handled.
  async #wait(ms: number, signal: AbortSignal): Promise<void> {
    this.#sleep.clear();
    await this.#sleep.wait(this.#context.clock, ms, signal);
  }

  async #attempt(signal: AbortSignal): Promise<void> {
    await this.#inheritance.collect();
    this.#context.vacancies.cancel(this.#retryAtVacancy);
    try {
      await this.#handshake(signal, (timeouts) => this.#register(timeouts, signal));
    } catch (error) {
      signal.throwIfAborted();
      this.#failedAttempts++;
      this.#count("failed");
      const errorId = errorIdOf(error) ?? RegistrationIncomplete.id;
      this.#status.enter("failed", messageOf(error), errorId);
      this.#log.warn(
        { err: error, errorId, attempts: this.#status.attempts },
        "plugin registration failed, retrying",
      );
    }
    await this.#releasePredecessor("its socket was re-created");
  }

  async #handshake(signal: AbortSignal, work: (timeouts: HandshakeTimeouts) => Promise<void>): Promise<void> {
    const { handshakes, timeouts } = this.#context;
    if (this.#failedAttempts > 0)
      return await handshakes.retries.run(signal, () => work(timeouts), this.#failedAttempts);
    await handshakes.first.run(signal, () =>
      work(handshakes.first.waiting > 0 ? crowded(timeouts) : timeouts),
    );
  }

  async #register(timeouts: HandshakeTimeouts, signal: AbortSignal): Promise<void> {
    this.#status.attemptStarted();
    checkSocketPath(this.path);
    const found = await this.#context.liveness.probe(this.path);
    if (found === "refused") return this.#status.enter("unavailable", "no process listens on the socket");
    using client = new RegistrationClient(this.path, timeouts, this.#context.clock);
    const { trust } = this.#context;
    const uids: number[] = [];
    const isTrusted = await this.#unlessRefused(client, signal, async () => {
      uids.push(await trust.checkRegistration(this.path));
    });
    if (!isTrusted) return;
    const info = await client.getInfo(signal);
    this.#status.received(info);
    const isAccepted = await this.#unlessRefused(client, signal, async () => {
      const handler = this.#handlerFor(info.type);
      const presented = checkPluginInfo(info, this.path);
      this.#status.validated(presented);
      handler.validate(presented);
      if (presented.endpoint !== this.path) uids.push(await trust.checkEndpoint(presented.endpoint));
      this.#uid = firstUser(uids);
      const candidate = { ...presented, uid: this.#uid };
      const { clock, registered, timeouts: bounds } = this.#context;
      await withDeadline(clock, { ms: bounds.handlerMs, name: "handler" }, signal, (workSignal) =>
        registered.register(this, candidate, handler, workSignal),
      );
    });
    if (isAccepted) await this.#notifySuccess(client, signal);
  }

  /** Runs a step of the registration. Notifies the plugin and returns false if it was refused. */
  async #unlessRefused(
    client: RegistrationClient,
    signal: AbortSignal,
    step: () => Promise<void>,
  ): Promise<boolean> {
    try {
      await step();
      return true;
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof NodekeeperError && refusalCodes.has(error.code)) {
        await this.#refuse(client, error, signal);
        return false;
      }
      // Like the kubelet, notifies the plugin of each failed registration, even if it is retried.
      await this.#notifyFailure(client, error, signal);
      throw error;
    }
  }

  #handlerFor(type: string): PluginHandler {
    const handler = this.#context.handlers.get(type);
    if (handler) return handler;
    const known = [...this.#context.handlers.keys()].sort().join(", ");
    throw new PluginTypeUnknown({ type: quote(type), accepted: known || "none" });
  }

  async #refuse(client: RegistrationClient, refusal: NodekeeperError, signal: AbortSignal): Promise<void> {
    const { type = "", name = "" } = this.#status.presented ?? {};
    this.#count("refused");
    if (refusal.id !== undefined) this.#context.metrics.refusals.inc({ error: refusal.id });
    if (refusal.code === "conflict" || refusal.code === "exhausted")
      this.#context.vacancies.wait(this.#retryAtVacancy);
    // A refused plugin is retried repeatedly and keeps its reason meanwhile.
    if (this.#status.reason !== refusal.message) {
      const { id: errorId, message: reason } = refusal;
      const change = { type, name: name || this.path, reason, errorId, uid: this.#uid };
      this.#context.onChange({ kind: "refused", ...change });
    }
    this.#status.enter("refused", refusal.message, refusal.id);
    this.#log.warn({ err: refusal, type, plugin: name, uid: this.#uid }, "plugin refused");
    await this.#notifyFailure(client, refusal, signal);
  }

  async #notifyFailure(client: RegistrationClient, failure: unknown, signal: AbortSignal): Promise<void> {
    try {
      await client.notify(messageWithId(failure), signal);
    } catch (error) {
      this.#log.debug({ err: error }, "failed to notify plugin of its failed registration");
    }
  }

  async #notifySuccess(client: RegistrationClient, signal: AbortSignal): Promise<void> {
    if (!this.#noticePending) return;
    try {
      await client.notify(undefined, signal);
      this.#noticePending = false;
      this.#failures.reset();
      if (this.#status.state === "registered") this.#status.enter("registered", undefined);
    } catch (error) {
      signal.throwIfAborted();
      this.#noticeDue = this.#context.clock.monotonic() + this.#failures.next();
      if (this.#status.state === "registered") {
        const reason = `registered, but NotifyRegistrationStatus failed: ${messageOf(error)}`;
        this.#status.enter("registered", reason, RegistrationIncomplete.id);
      }
      this.#log.warn(
        { err: error, errorId: RegistrationIncomplete.id },
        "failed to notify plugin of its registration, retrying",
      );
    }
  }

  // While registered: repeats a failed notification and probes the sockets.
  async #watchOver(signal: AbortSignal): Promise<void> {
    const { livenessIntervalMs, clock } = this.#context;
    const untilNotice = this.#noticePending ? this.#noticeDue - clock.monotonic() : livenessIntervalMs;
    await this.#wait(Math.min(Math.max(untilNotice, 0), livenessIntervalMs), signal);
    if (this.#noticePending && clock.monotonic() >= this.#noticeDue) await this.#repeatNotice(signal);
    if (!(await this.#loss())) return;
    await this.#wait(Math.min(livenessIntervalMs, 1_000), signal);
    const reason = await this.#loss();
    if (!reason) return;
    await this.#release(reason);
    this.#status.enter("unavailable", reason);
  }

  async #repeatNotice(signal: AbortSignal): Promise<void> {
    await this.#handshake(signal, async (timeouts) => {
      using client = new RegistrationClient(this.path, timeouts, this.#context.clock);
      await this.#notifySuccess(client, signal);
    });
  }

  async #awaitProcess(signal: AbortSignal): Promise<void> {
    await this.#wait(Math.min(this.#failures.next(), this.#context.livenessIntervalMs), signal);
    const { path } = this;
    const listening = await this.#context.liveness.listening(path, this.#status.candidate?.endpoint ?? path);
    if (!listening || this.#status.state !== "unavailable") return;
    this.#status.enter("registering", this.#status.reason);
  }

  async #loss(): Promise<string | undefined> {
    const registration = this.#registration;
    const reason = registration && (await this.#context.liveness.loss(registration));
    // Another socket may have taken over the name meanwhile.
    return this.#registration === registration ? reason : undefined;
  }

  async #release(reason: string): Promise<void> {
    const registration = this.#registration;
    this.#registration = undefined;
    this.#noticePending = false;
    if (registration) await this.#context.registered.release(registration, reason);
  }

  async #releasePredecessor(reason: string): Promise<void> {
    for (const registration of this.#inheritance.take())
      await this.#context.registered.release(registration, reason);
  }

  #count(result: "registered" | "refused" | "failed"): void {
    const type = this.#status.candidate?.type ?? "unknown";
    this.#context.metrics.registrations.inc({ type, result });
  }
}

function crowded({ dialMs, infoMs, noticeMs }: HandshakeTimeouts): HandshakeTimeouts {
  return {
    dialMs: Math.min(dialMs, crowdedDeadlineMs),
    infoMs: Math.min(infoMs, crowdedDeadlineMs),
    noticeMs: Math.min(noticeMs, crowdedDeadlineMs),
  };
}
