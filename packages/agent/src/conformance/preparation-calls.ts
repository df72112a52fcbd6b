import {
  PrepareDevicesRequest,
  PrepareDevicesResponse,
  RestoreClaimsRequest,
  RestoreClaimsResponse,
  UnprepareDevicesRequest,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { UnaryChannel } from "@nodekeeper/core/grpc";
import { type Clock, childScope, messageOf, sleepOrAbort, withDeadline } from "@nodekeeper/core/lib";

export interface PreparationCallsOptions {
  endpoint: string;
  /** Full name of the service. */
  service: string;
  clock: Clock;
  signal: AbortSignal;
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

  constructor(options: PreparationCallsOptions) {
    this.#options = options;
    this.#channel = new UnaryChannel(options.endpoint, { maxReceiveBytes: MOST_BYTES });
  }

  reconnect(endpoint: string): void {
    this.#channel.close();
    this.#channel = new UnaryChannel(endpoint, { maxReceiveBytes: MOST_BYTES });
  }

  /** @param added encoded fields to append to the request */
  async prepare(request: PrepareDevicesRequest, added = new Uint8Array()): Promise<PrepareDevicesResponse> {
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
    const answer = await this.call("RestoreClaims", RestoreClaimsRequest.encode(request).finish());
    return RestoreClaimsResponse.decode(answer).prepareAgain;
  }

  /** Calls a method with the kubelet's timeout. */
  async call(method: string, bytes: Uint8Array, parent = this.#options.signal): Promise<Uint8Array> {
    const { service, clock } = this.#options;
    return await withDeadline(clock, { ms: KUBELET_TIMEOUT_MS, name: method }, parent, (signal) =>
      this.#channel.call(`${service}/${method}`, [bytes], signal),
    );
  }

  /** Unprepares all claims that may be prepared, also after the suite was interrupted. */
  async [Symbol.asyncDispose](): Promise<void> {
    const { onLeftPrepared } = this.#options;
    for (const [uid, { claim, pods, devices }] of this.#claims) {
      const bytes = UnprepareDevicesRequest.encode({ claim, pods, devices }).finish();
      try {
        await this.call("UnprepareDevices", bytes, new AbortController().signal);
        this.#claims.delete(uid);
      } catch (error) {
        // Most likely all fail for one reason.
        onLeftPrepared(devicesOf(this.#claims.values()), messageOf(error));
        break;
      }
    }
    this.#channel.close();
  }
}

function devicesOf(requests: Iterable<PrepareDevicesRequest>): string[] {
  const names = [...requests].flatMap(({ devices }) =>
    devices.map(({ pool, device }) => `${pool}/${device}`),
  );
  return [...new Set(names)];
}
