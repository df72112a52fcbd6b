import type { AccessQuestion, KubeApiClient } from "@nodekeeper/core/kube";
import { NodekeeperError } from "@nodekeeper/core/lib";

/** Authenticates and authorizes a plugin by its token. Throws `unauthenticated`, `forbidden`, or the API server's error. */
export type TokenCheck = (plugin: string, token: string, signal: AbortSignal) => Promise<void>;

// A plugin needs the right to evict pods itself.
const mayEvict: AccessQuestion = { verb: "create", group: "", resource: "pods", subresource: "eviction" };
const LONGEST_TOKEN = 64 * 1024;

/** Checks tokens by TokenReview, and the right to create pods/eviction by SubjectAccessReview. */
export function reviewedTokens(client: Pick<KubeApiClient, "reviewToken" | "reviewAccessOf">): TokenCheck {
  return async (plugin, token, signal) => {
    if (token === "")
      throw new NodekeeperError("unauthenticated", `${plugin} has no token`, { id: "NK1315" });
    if (token.length > LONGEST_TOKEN)
      throw new NodekeeperError("invalid", `the token of ${plugin} is too long`, { id: "NK1315" });
    const { user, reason } = await client.reviewToken(token, { signal });
    if (user === undefined) {
      const because = reason ? `: ${reason}` : "";
      throw new NodekeeperError("unauthenticated", `the token of ${plugin} is not valid${because}`, {
        id: "NK1315",
      });
    }
    const access = await client.reviewAccessOf(user, mayEvict, { signal });
    if (access.allowed) return;
    const because = access.reason ? `: ${access.reason}` : "";
    throw new NodekeeperError(
      "forbidden",
      `${user.username}, the account of ${plugin}, may not create pods/eviction${because}`,
      { id: "NK1316" },
    );
  };
}
