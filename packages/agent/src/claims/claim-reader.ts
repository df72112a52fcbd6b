import { ClaimNotPreparable, ResourceApiNotServed } from "@nodekeeper/api/errors";
import { type ApiResource, ApiStatusError, type KubeApiClient, type KubeObject } from "@nodekeeper/core/kube";
import {
  codeOf,
  errorIdOf,
  messageOf,
  type NodekeeperError,
  Semaphore,
  withObjectsAsText,
} from "@nodekeeper/core/lib";

/** A ResourceClaim as identified by the kubelet. */
export interface ClaimReference {
  namespace: string;
  name: string;
  uid: string;
}

const group = "resource.k8s.io";
// The versions used by kubelets that support the agent's DRAPlugin versions.
const versions = ["v1", "v1beta2", "v1beta1"] as const;

export type ClaimReaderClient = Pick<KubeApiClient, "resolve" | "get" | "forgetDiscovery">;
export type ClaimStatusClient = ClaimReaderClient & Pick<KubeApiClient, "apply" | "jsonPatch">;

// Without a limit, an entire burst of claims would be read before the first one is prepared.
const MOST_AT_ONCE = 4;

/**
 * Reads ResourceClaims in the most recent version that the server serves: at most 4 at once, in the order of the calls.
 */
export class ClaimReader {
  readonly #client: ClaimReaderClient;
  readonly #parse: (text: string) => unknown;
  readonly #semaphore = new Semaphore({ permits: MOST_AT_ONCE });
  #dropped: ApiResource | undefined;

  /** @param parse default: opaque parameters of drivers are strings, as the API server sent them, byte for byte */
  constructor(client: ClaimReaderClient, parse = parseClaim) {
    this.#client = client;
    this.#parse = parse;
  }

  /**
   * Returns the claim.
   *
   * Throws `notFound` if the claim does not exist or its name belongs to another claim, `forbidden` with the missing
   * permission, `unavailable` for any other 404, and otherwise as the client's `get` does. If the server no longer
   * serves the discovered version, the versions are discovered again, and the claim is read in the most recent one.
   */
  async read({ namespace, name, uid }: ClaimReference, signal: AbortSignal): Promise<KubeObject> {
    const claim = await this.#semaphore.run(signal, () =>
      this.inServedVersion(signal, (resource) => this.#get(resource, namespace, name, signal)),
    );
    if (claim.metadata.uid !== uid) {
      const found = `its UID is ${claim.metadata.uid}, expected ${uid}`;
      throw new ClaimNotPreparable(
        { problem: `ResourceClaim ${namespace}/${name} was replaced: ${found}` },
        { code: "notFound" },
      );
    }
    return claim;
  }

  /**
   * Runs a request with the most recent version that the server serves. If it fails with `ResourceApiNotServed`, the
   * versions are discovered again, and it is run once more if another one is served.
   */
  async inServedVersion<T>(signal: AbortSignal, request: (resource: ApiResource) => Promise<T>): Promise<T> {
    const resource = await this.#resource(signal);
    try {
      return await request(resource);
    } catch (error) {
      if (errorIdOf(error) !== ResourceApiNotServed.id) throw error;
      // Only once for all claims that were read with this discovery.
      if (this.#dropped !== resource) this.#client.forgetDiscovery();
      this.#dropped = resource;
      const served = await this.#resource(signal);
      if (served.version === resource.version) throw error;
      return await request(served);
    }
  }

  async #get(resource: ApiResource, namespace: string, name: string, signal: AbortSignal) {
    try {
      return await this.#client.get(resource, name, { namespace, signal, parse: this.#parse });
    } catch (error) {
      if (codeOf(error) === "notFound") throw missingClaim(error, resource, name);
      if (codeOf(error) !== "forbidden") throw error;
      throw new ClaimNotPreparable(
        {
          problem: `Nodekeeper is not allowed to get resourceclaims (deploy/rbac-optional.yaml): ${messageOf(error)}`,
        },
        { cause: error, code: "forbidden" },
      );
    }
  }

  async #resource(signal: AbortSignal): Promise<ApiResource> {
    for (const version of versions) {
      const resource = await this.#client.resolve({ group, version, kind: "ResourceClaim" }, { signal });
      if (resource) return resource;
    }
    throw new ResourceApiNotServed({
      problem: `the API server serves no ResourceClaims of ${group}/${versions.join(", ")}`,
    });
  }
}

/** Parses a ResourceClaim, or an event of a watch: opaque parameters are strings. */
export function parseClaim(text: string): unknown {
  return JSON.parse(withObjectsAsText(text, "parameters"));
}

/** Returns the error for a 404: the claim does not exist, or the server no longer serves its version. */
export function missingClaim(error: unknown, resource: ApiResource, name: string): NodekeeperError {
  return namesClaim(error, resource, name)
    ? new ClaimNotPreparable({ problem: messageOf(error) }, { cause: error, code: "notFound" })
    : new ResourceApiNotServed({ problem: messageOf(error) }, { cause: error, code: "unavailable" });
}

// The API server also returns 404 if it no longer serves this version. Then the claim may exist.
function namesClaim(error: unknown, { plural }: ApiResource, name: string): boolean {
  if (!(error instanceof ApiStatusError)) return false;
  const { summary } = error;
  return summary.reason === "NotFound" && summary.kind === plural && summary.name === name;
}
