import { PluginMayNotEvict, PluginTokenRefused } from "@nodekeeper/api/errors";
import type { AccessQuestion, KubeApiClient } from "@nodekeeper/core/kube";

/**
 * Authenticates and authorizes a plugin by its token. Throws `unauthenticated`, `forbidden`, `invalid` if the token is
 * longer than 65,536 characters, or the API server's error.
 */
export type TokenCheck = (plugin: string, token: string, signal: AbortSignal) => Promise<void>;

// A plugin must have the right to evict pods.
const mayEvict: AccessQuestion = { verb: "create", group: "", resource: "pods", subresource: "eviction" };
const LONGEST_TOKEN = 64 * 1024;

/** Returns a check of tokens by TokenReview, and of the right to create pods/eviction by SubjectAccessReview. */
export function reviewedTokens(client: Pick<KubeApiClient, "reviewToken" | "reviewAccessOf">): TokenCheck {
  return async (plugin, token, signal) => {
    if (token === "") throw new PluginTokenRefused({ problem: `${plugin} has no token` });
    if (token.length > LONGEST_TOKEN)
      throw new PluginTokenRefused({ problem: `the token of ${plugin} is too long` }, { code: "invalid" });
    const { user, reason } = await client.reviewToken(token, { signal });
    if (user === undefined) {
      const because = reason ? `: ${reason}` : "";
      throw new PluginTokenRefused({ problem: `the token of ${plugin} is not valid${because}` });
    }
    const access = await client.reviewAccessOf(user, mayEvict, { signal });
    if (access.allowed) return;
    const because = access.reason ? `: ${access.reason}` : "";
    throw new PluginMayNotEvict({ account: user.username, plugin, because });
  };
}
