import { ClaimNotPreparable, ResourceApiNotServed } from "@nodekeeper/api/errors";
import { type ApiResource, ApiStatusError, type KubeApiClient, type KubeObject } from "@nodekeeper/core/kube";
import { codeOf, errorIdOf, messageOf, Semaphore, withObjectsAsText } from "@nodekeeper/core/lib";

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

// Without a limit, an entire burst of claims would be read before the first one is prepared.
const MOST_AT_ONCE = 4;

/**
 * Reads ResourceClaims in the most recent version that the server serves: at most 4 at once, in the order of the calls.
 */
export class ClaimReader {
  readonly #client: ClaimReaderClient;
  readonly #semaphore = new Semaphore({ permits: MOST_AT_ONCE });
  #dropped: ApiResource | undefined;

  constructor(client: ClaimReaderClient) {
    this.#client = client;
  }

  /**
   * Returns the claim with the opaque parameters of drivers as strings: their JSON as the API server sent it, byte for
   * byte.
   *
   * Throws `notFound` if the claim does not exist or its name belongs to another claim, `forbidden` with the missing
   * permission, `unavailable` for any other 404, and otherwise as the client's `get` does. If the server no longer
   * serves the discovered version, the versions are discovered again, and the claim is read in the most recent one.
   */
  async read({ namespace, name, uid }: ClaimReference, signal: AbortSignal): Promise<KubeObject> {
    const claim = await this.#semaphore.run(signal, () => this.#getInServedVersion(namespace, name, signal));
    if (claim.metadata.uid !== uid) {
      const found = `its UID is ${claim.metadata.uid}, expected ${uid}`;
      throw new ClaimNotPreparable(
        { problem: `ResourceClaim ${namespace}/${name} was replaced: ${found}` },
        { code: "notFound" },
      );
    }
    return claim;
  }

  async #getInServedVersion(namespace: string, name: string, signal: AbortSignal): Promise<KubeObject> {
    const resource = await this.#resource(signal);
    try {
      return await this.#get(resource, namespace, name, signal);
    } catch (error) {
      if (errorIdOf(error) !== ResourceApiNotServed.id) throw error;
      // Only once for all claims that were read with this discovery.
      if (this.#dropped !== resource) this.#client.forgetDiscovery();
      this.#dropped = resource;
      const served = await this.#resource(signal);
      if (served.version === resource.version) throw error;
      return await this.#get(served, namespace, name, signal);
    }
  }

  async #get(resource: ApiResource, namespace: string, name: string, signal: AbortSignal) {
    try {
      return await this.#client.get(resource, name, { namespace, signal, parse: parseClaim });
    } catch (error) {
      if (codeOf(error) === "notFound")
        throw namesClaim(error, resource, name)
          ? new ClaimNotPreparable({ problem: messageOf(error) }, { cause: error, code: "notFound" })
          : new ResourceApiNotServed({ problem: messageOf(error) }, { cause: error, code: "unavailable" });
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

function parseClaim(text: string): unknown {
  return JSON.parse(withObjectsAsText(text, "parameters"));
}

// The API server also returns 404 if it no longer serves this version. Then the claim may exist.
function namesClaim(error: unknown, { plural }: ApiResource, name: string): boolean {
  if (!(error instanceof ApiStatusError)) return false;
  const { summary } = error;
  return summary.reason === "NotFound" && summary.kind === plural && summary.name === name;
}
