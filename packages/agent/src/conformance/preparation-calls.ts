import {
  PrepareDevicesRequest,
  PrepareDevicesResponse,
  RestoreClaimsRequest,
  RestoreClaimsResponse,
  UnprepareDevicesRequest,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { UnaryChannel } from "@nodekeeper/core/grpc";
import { type Clock, childScope, codeOf, messageOf, sleepOrAbort, withDeadline } from "@nodekeeper/core/lib";

export interface PreparationCallsOptions {
  endpoint: string;
  /** Full name of the service. */
  service: string;
  clock: Clock;
  signal: AbortSignal;
  /** Whether a connection begins with RestoreClaims, as the agent's. Its failure has a rule of its own. */
  restoresFirst: boolean;
  /** Called at the end with the devices of claims that could not be unprepared, and the reason. */
  onLeftPrepared: (devices: readonly string[], reason: string) => void;
}

/** The kubelet's timeout for calls to prepare and unprepare. */
export const KUBELET_TIMEOUT_MS = 45_000;
const MOST_BYTES = 4 * 1024 * 1024;

/** Calls of DevicePreparation, and the claims that may be prepared. Errors name the method. */
export class PreparationCalls implements AsyncDisposable {
  readonly #options: PreparationCallsOptions;
  #channel: UnaryChannel;
  readonly #claims = new Map<string, PrepareDevicesRequest>();
  // Of the present connection.
  #restored: Promise<unknown> | undefined;

  constructor(options: PreparationCallsOptions) {
    this.#options = options;
    this.#channel = new UnaryChannel(options.endpoint, { maxReceiveBytes: MOST_BYTES });
  }

  reconnect(endpoint: string): void {
    this.#channel.close();
    this.#channel = new UnaryChannel(endpoint, { maxReceiveBytes: MOST_BYTES });
    this.#restored = undefined;
  }

  /** @param added encoded fields to append to the request */
  async prepare(request: PrepareDevicesRequest, added = new Uint8Array()): Promise<PrepareDevicesResponse> {
    await this.#restoreFirst();
    this.#claims.set(request.claim!.uid, request);
    const bytes = Buffer.concat([PrepareDevicesRequest.encode(request).finish(), added]);
    return PrepareDevicesResponse.decode(await this.call("PrepareDevices", bytes));
  }

  /** Calls PrepareDevices and cancels the call after `ms`, if it is not answered before. */
  async cancelPrepare(request: PrepareDevicesRequest, ms: number): Promise<void> {
    const { clock, service, signal } = this.#options;
    this.#claims.set(request.claim!.uid, request);
    const bytes = PrepareDevicesRequest.encode(request).finish();
    using scope = childScope(signal);
    const called = this.#channel.call(`${service}/PrepareDevices`, [bytes], scope.signal).catch(() => {});
    await Promise.race([called, sleepOrAbort(clock, ms, signal)]);
    scope.abort();
    await called;
  }

  async unprepare({ claim, pods, devices }: PrepareDevicesRequest): Promise<void> {
    const bytes = UnprepareDevicesRequest.encode({ claim, pods, devices }).finish();
    await this.call("UnprepareDevices", bytes);
    this.#claims.delete(claim!.uid);
  }

  async restore(claims: readonly PrepareDevicesRequest[]): Promise<string[]> {
    const request = RestoreClaimsRequest.fromPartial({
      claims: claims.map((claim) => ({ ...claim, isPrepared: true })),
    });
    const answered = this.#call("RestoreClaims", RestoreClaimsRequest.encode(request).finish());
    this.#restored = answered.catch(() => {});
    return RestoreClaimsResponse.decode(await answered).prepareAgain;
  }

  /** Calls a method with the kubelet's timeout. */
  async call(method: string, bytes: Uint8Array, parent = this.#options.signal): Promise<Uint8Array> {
    await this.#restoreFirst();
    return await this.#call(method, bytes, parent);
  }

  // Calls RestoreClaims once per connection if `restoresFirst` is set and there are claims, as the agent does. Ignores
  // its errors.
  async #restoreFirst(): Promise<void> {
    if (!this.#restored) {
      this.#restored = Promise.resolve();
      const claims = this.#options.restoresFirst ? [...this.#claims.values()] : [];
      if (claims.length > 0) await this.restore(claims).catch(() => {});
    }
    await this.#restored;
  }

  async #call(method: string, bytes: Uint8Array, parent = this.#options.signal): Promise<Uint8Array> {
    const { service, clock } = this.#options;
    return await withDeadline(clock, { ms: KUBELET_TIMEOUT_MS, name: method }, parent, (signal) =>
      this.#channel.call(`${service}/${method}`, [bytes], signal),
    );
  }

  /** Unprepares all claims that may be prepared, also after the suite was interrupted. */
  async release(): Promise<void> {
    const left: PrepareDevicesRequest[] = [];
    let reason = "";
    let isAnswering = true;
    for (const request of this.#claims.values()) {
      const { claim, pods, devices } = request;
      const bytes = UnprepareDevicesRequest.encode({ claim, pods, devices }).finish();
      try {
        // A driver that does not answer would take the whole timeout for each claim.
        if (isAnswering) await this.call("UnprepareDevices", bytes, new AbortController().signal);
        else left.push(request);
      } catch (error) {
        left.push(request);
        reason = messageOf(error);
        isAnswering = codeOf(error) !== "deadline";
      }
    }
    this.#claims.clear();
    if (left.length > 0) this.#options.onLeftPrepared(devicesOf(left), reason);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
    this.#channel.close();
  }
}

function devicesOf(requests: readonly PrepareDevicesRequest[]): string[] {
  const names = requests.flatMap(({ devices }) => devices.map(({ pool, device }) => `${pool}/${device}`));
  return [...new Set(names)];
}
