import { type ApiResource, ApiStatusError, type KubeApiClient, type KubeObject } from "@nodekeeper/core/kube";
import { codeOf, errorIdOf, messageOf, NodekeeperError, Semaphore } from "@nodekeeper/core/lib";

/** A ResourceClaim as the kubelet names it. */
export interface ClaimReference {
  namespace: string;
  name: string;
  uid: string;
}

const group = "resource.k8s.io";
// What kubelets that speak the agent's versions of DRAPlugin use.
const versions = ["v1", "v1beta2", "v1beta1"] as const;

export type ClaimReaderClient = Pick<KubeApiClient, "resolve" | "get" | "forgetDiscovery">;

// As many claims as a burst has would all be read before the first is prepared, and all be late by the whole burst.
const MOST_AT_ONCE = 4;

/** Reads ResourceClaims, in the best version that the server has; a few at once, in the order of the calls. */
export class ClaimReader {
  readonly #client: ClaimReaderClient;
  readonly #semaphore = new Semaphore({ permits: MOST_AT_ONCE });
  #dropped: ApiResource | undefined;

  constructor(client: ClaimReaderClient) {
    this.#client = client;
  }

  /**
   * Throws `notFound` where there is no such claim or another one has taken its name, `forbidden` with the right that is
   * missing, `unavailable` for any other 404, and as the client's `get` does. Where the server has dropped the version that
   * was discovered, the versions are discovered again, and the claim is read in the best one left.
   */
  async read({ namespace, name, uid }: ClaimReference, signal: AbortSignal): Promise<KubeObject> {
    const claim = await this.#semaphore.run(signal, () => this.#getInServedVersion(namespace, name, signal));
    if (claim.metadata.uid !== uid) {
      const found = `its UID is ${claim.metadata.uid}, the one asked for had ${uid}`;
      throw new NodekeeperError("notFound", `ResourceClaim ${namespace}/${name} is another one: ${found}`, {
        id: "NK1506",
      });
    }
    return claim;
  }

  async #getInServedVersion(namespace: string, name: string, signal: AbortSignal): Promise<KubeObject> {
    const resource = await this.#resource(signal);
    try {
      return await this.#get(resource, namespace, name, signal);
    } catch (error) {
      if (errorIdOf(error) !== "NK1501") throw error;
      // Once for all claims that met what was discovered then.
      if (this.#dropped !== resource) this.#client.forgetDiscovery();
      this.#dropped = resource;
      const served = await this.#resource(signal);
      if (served.version === resource.version) throw error;
      return await this.#get(served, namespace, name, signal);
    }
  }

  async #get(resource: ApiResource, namespace: string, name: string, signal: AbortSignal) {
    try {
      return await this.#client.get(resource, name, { namespace, signal });
    } catch (error) {
      if (codeOf(error) === "notFound")
        throw namesClaim(error, resource, name)
          ? new NodekeeperError("notFound", messageOf(error), { id: "NK1506", cause: error })
          : new NodekeeperError("unavailable", messageOf(error), { id: "NK1501", cause: error });
      if (codeOf(error) !== "forbidden") throw error;
      throw new NodekeeperError(
        "forbidden",
        `Nodekeeper may not get resourceclaims (deploy/rbac-optional.yaml): ${messageOf(error)}`,
        { id: "NK1506", cause: error },
      );
    }
  }

  async #resource(signal: AbortSignal): Promise<ApiResource> {
    for (const version of versions) {
      const resource = await this.#client.resolve({ group, version, kind: "ResourceClaim" }, { signal });
      if (resource) return resource;
    }
    throw new NodekeeperError(
      "unsupported",
      `the API server serves no ResourceClaims of ${group}/${versions.join(", ")}`,
      { id: "NK1501" },
    );
  }
}

// The API server answers 404 also where it does not serve this version any more: then the claim may well exist.
function namesClaim(error: unknown, { plural }: ApiResource, name: string): boolean {
  if (!(error instanceof ApiStatusError)) return false;
  const { summary } = error;
  return summary.reason === "NotFound" && summary.kind === plural && summary.name === name;
}
