import type { ApiAnswers, ApiPath } from "@nodekeeper/api/openapi";

/** An error response of the agent. `isOff` if the part that would respond is disabled. */
export class Refusal extends Error {
  readonly status: number;
  readonly id: string | undefined;

  constructor(status: number, message: string, id: string | undefined) {
    super(message);
    this.status = status;
    this.id = id;
  }

  get isNotFound(): boolean {
    return this.status === 404;
  }
}

/** The agent is unreachable: it has stopped, or the connection to it is lost. */
export class Unreachable extends Error {}

const LONGEST_MS = 15_000;

/** Query parameters. Undefined ones are omitted. */
export type Query = Readonly<Record<string, string | number | undefined>>;

export function searchOf(query: Query): URLSearchParams {
  return new URLSearchParams(
    Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
  );
}

/**
 * GET /api/v1/<path>. Relative to the page's address, so that it works behind a proxy's path prefix.
 * @param page the page's address, which workers do not have
 * @throws Refusal if the agent returns an error, Unreachable if it does not respond within 15 s or `signal` aborts
 */
export async function ask<Path extends ApiPath>(
  path: Path,
  query: Query = {},
  signal?: AbortSignal,
  page = document.baseURI,
): Promise<ApiAnswers[Path]> {
  const deadline = AbortSignal.timeout(LONGEST_MS);
  try {
    const response = await fetch(new URL(`api/v1/${path}?${searchOf(query)}`, page), {
      signal: signal ? AbortSignal.any([signal, deadline]) : deadline,
    });
    if (response.ok) return (await response.json()) as ApiAnswers[Path];
    throw await refusalOf(response);
  } catch (error) {
    if (error instanceof Refusal) throw error;
    throw new Unreachable("the agent does not answer", { cause: error });
  }
}

/** Returns why an address can't be read. Undefined if it can be, or if the agent does not respond within 15 s. */
export async function refusalAt(url: string): Promise<Refusal | undefined> {
  const done = new AbortController();
  try {
    const signal = AbortSignal.any([done.signal, AbortSignal.timeout(LONGEST_MS)]);
    const response = await fetch(url, { signal });
    return response.ok ? undefined : await refusalOf(response);
  } catch {
    return undefined;
  } finally {
    // A stream does not end.
    done.abort();
  }
}

async function refusalOf(response: Response): Promise<Refusal> {
  const { error } = (await response.json().catch(() => ({}))) as {
    error?: { message?: string; id?: string };
  };
  return new Refusal(response.status, error?.message ?? `HTTP status ${response.status}`, error?.id);
}
