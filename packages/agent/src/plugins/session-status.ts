import type { Clock, ErrorId } from "@nodekeeper/core/lib";
import type { PluginState, PluginStatus } from "./status.ts";
import type { PluginRegistration, PresentedPlugin } from "./types.ts";

const maxNameLength = 253;

/** The state of a session, and what its socket has presented so far. */
export class SessionStatus {
  readonly #clock: Clock;
  #state: PluginState = "registering";
  #since: number;
  #reason: string | undefined;
  #errorId: ErrorId | undefined;
  #attempts = 0;
  #presented: { type: string; name: string } | undefined;
  #candidate: PresentedPlugin | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#since = clock.now();
  }

  get state(): PluginState {
    return this.#state;
  }

  get reason(): string | undefined {
    return this.#reason;
  }

  /** Number of handshakes started. */
  get attempts(): number {
    return this.#attempts;
  }

  /**
   * The presented type and name, truncated for display. Also set if the plugin is refused because of them.
   */
  get presented(): { type: string; name: string } | undefined {
    return this.#presented;
  }

  /** The plugin as presented, once its PluginInfo has been validated. */
  get candidate(): PresentedPlugin | undefined {
    return this.#candidate;
  }

  enter(state: PluginState, reason: string | undefined, errorId?: ErrorId): void {
    if (this.#state !== state) this.#since = this.#clock.now();
    this.#state = state;
    this.#reason = reason;
    this.#errorId = errorId;
  }

  /** Starts over unless the state has changed meanwhile. Keeps the reason. */
  retry(from: PluginState): void {
    if (this.#state === from) this.enter("registering", this.#reason, this.#errorId);
  }

  attemptStarted(): void {
    this.#attempts++;
  }

  received({ type, name }: { type: string; name: string }): void {
    this.#presented = { type: type.slice(0, maxNameLength), name: name.slice(0, maxNameLength) };
  }

  validated(candidate: PresentedPlugin): void {
    this.#candidate = candidate;
  }

  show(registrationSocket: string, registration: PluginRegistration | undefined): PluginStatus {
    return {
      ...this.#presented,
      ...(this.#candidate && {
        endpoint: this.#candidate.endpoint,
        versions: [...this.#candidate.versions],
      }),
      registrationSocket,
      state: this.#state,
      since: this.#since,
      ...(this.#reason !== undefined && { reason: this.#reason }),
      ...(this.#errorId !== undefined && { errorId: this.#errorId }),
      attempts: this.#attempts,
      ...(registration && { generation: registration.generation }),
    };
  }
}
