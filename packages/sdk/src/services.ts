import type { RoundRequestsServiceImplementation } from "@nodekeeper/core/gen/nodekeeper/eviction/v1alpha1/api.ts";
import type { RegistrationServiceImplementation } from "@nodekeeper/core/gen/pluginregistration/v1/api.ts";
import type {
  ReportContent,
  ReporterPluginServiceImplementation,
} from "@nodekeeper/core/gen/reporterplugin/v1alpha1/api.ts";
import { codeOf, type LatestValue, messageOf } from "@nodekeeper/core/lib";
import { ServerError, Status } from "nice-grpc";

/** The agent's last answer to the registration. `waiting`: the agent has not answered yet. */
export type RegistrationState =
  | { state: "waiting" }
  | { state: "registered" }
  | { state: "refused"; reason: string };

/** Serves the registration. */
export function registrationService(
  name: string,
  { type, versions }: { type: string; versions: readonly string[] },
  on: {
    /** Called when the agent calls GetInfo. */
    asked: () => void;
    answered: (state: RegistrationState) => void;
  },
): RegistrationServiceImplementation {
  return {
    // No endpoint: the registration socket serves everything, regardless of the path that the agent uses.
    async getInfo() {
      on.asked();
      return { type, name, endpoint: "", supportedVersions: [...versions] };
    },
    async notifyRegistrationStatus({ pluginRegistered, error }) {
      on.answered(pluginRegistered ? { state: "registered" } : { state: "refused", reason: error });
      return {};
    },
  };
}

/**
 * Serves content from the latest value. Calls wait for the first value, and fail while the report fails. Streams end
 * when the report fails or `stop` aborts.
 */
export function reporterService(
  latest: LatestValue<ReportContent[]>,
  stop: AbortSignal,
): ReporterPluginServiceImplementation {
  return {
    async getReportContent(_request, { signal }) {
      if (latest.failure) throw latest.failure.value;
      const { value } = await ending(stop, latest.after(0, AbortSignal.any([signal, stop])));
      return { content: value };
    },
    async *listAndWatchReportContent(_request, { signal }) {
      for await (const content of valuesOf(latest, signal, stop)) yield { content };
    },
  };
}

/** Serves a plugin's requests for rounds. Each call takes the latest pending request. */
export function roundRequestService(
  latest: LatestValue<string>,
  stop: AbortSignal,
): RoundRequestsServiceImplementation {
  return {
    async waitForRequest(_request, { signal }) {
      const reason = await ending(stop, latest.take(AbortSignal.any([signal, stop])));
      return { reason };
    },
  };
}

/**
 * Yields the latest value and later ones. Skips values that were replaced before they were read. If the report has
 * already failed, waits for its next value. Throws when it fails later, and throws `stopping` when `stop` aborts.
 */
export async function* valuesOf<T>(
  latest: LatestValue<T>,
  signal: AbortSignal,
  stop: AbortSignal,
): AsyncGenerator<T, never> {
  const either = AbortSignal.any([signal, stop]);
  for (let seen = latest.failure?.number ?? 0; ; ) {
    const { number, value } = await ending(stop, latest.after(seen, either));
    seen = number;
    yield value;
  }
}

/** Returns the value. If the plugin stops first, throws the error for its callers. */
async function ending<T>(stop: AbortSignal, value: Promise<T>): Promise<T> {
  try {
    return await value;
  } catch (error) {
    if (stop.aborted || codeOf(error) === "stopped") throw stopping();
    throw error;
  }
}

// As much as the agent keeps of a plugin's error.
const LONGEST_MESSAGE = 500;

/** Returns the error of a call for which the author's function threw `error`, with its message, truncated. */
export function authorFailure(error: unknown): ServerError {
  // grpc-js can't send half of a surrogate pair.
  const message = messageOf(error).slice(0, LONGEST_MESSAGE).toWellFormed();
  return new ServerError(Status.INTERNAL, message);
}

export function stopping(): ServerError {
  return new ServerError(Status.UNAVAILABLE, "the plugin is stopping");
}
