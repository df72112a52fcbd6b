import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { PathForbidden } from "@nodekeeper/api/errors";
import { codeOf, errorIdOf, messageOf, NodekeeperError } from "@nodekeeper/core/lib";
import type { AccessCheck } from "../delegated-access.ts";
import { prefersPage } from "../page.ts";
import { type Reply, statusOfCode, withChallenge, withRetryAfter } from "../reply.ts";
import type { Routed } from "../router.ts";
import { signInForm, signOutForm } from "./documents.ts";
import { hasSession, SessionCookies } from "./session-cookie.ts";

/** The path of the page, to which its form is posted. */
const PAGE_PATH = "/";
const SIGN_OUT_PATH = "/sign-out";
const HANDLER = "sign-in";

/**
 * Signs users in to a server that requires tokens, because browsers do not send one. A form takes a token and a cookie
 * stores it; each request is then authorized by that token as by one in the Authorization header.
 */
export class SignIn {
  readonly #check: AccessCheck;
  /** Undefined until the server has its certificate; it does not listen before. */
  #cookies: SessionCookies | undefined;

  /** @param check authorizes the token of a form to get the page */
  constructor(check: AccessCheck) {
    this.#check = check;
  }

  /** @param privateKey the server's private key, PEM. Sessions of another key end */
  useKey(privateKey: string): void {
    this.#cookies = new SessionCookies(privateKey);
  }

  /** Whether the body of a request is a form. */
  takesForm({ method, url }: Pick<IncomingMessage, "method" | "url">): boolean {
    const [path] = (url ?? "").split("?", 1);
    return method === "POST" && (path === PAGE_PATH || path === SIGN_OUT_PATH);
  }

  /** Returns the token of a signed-in browser. */
  tokenOf({ cookie }: IncomingHttpHeaders): string | undefined {
    return this.#cookies?.tokenOf(cookie);
  }

  /** Serves requests to sign in or out. Undefined for all others. `form` is the result of `readForm`. */
  async answer(
    { method, path }: { method: string | undefined; path: string },
    form: URLSearchParams | undefined,
    signal: AbortSignal,
  ): Promise<Routed | undefined> {
    if (path === SIGN_OUT_PATH) {
      const reply = method === "POST" ? this.#redirect(this.#cookies?.clear()) : signOutForm();
      return { handler: SIGN_OUT_PATH.slice(1), reply };
    }
    if (path === PAGE_PATH && method === "POST")
      return { handler: HANDLER, reply: await this.#signIn(form, signal) };
    return undefined;
  }

  /** Returns the form instead of an error if a browser requests the page. Undefined for all other requests. */
  formFor(error: unknown, path: string, { method, headers }: IncomingMessage): Routed | undefined {
    if (path !== PAGE_PATH || method === "POST" || !prefersPage(headers.accept)) return undefined;
    const isNew = codeOf(error) === "unauthenticated" && !hasSession(headers.cookie);
    return { handler: HANDLER, reply: formReply(error, isNew ? undefined : problemOf(error)) };
  }

  async #signIn(form: URLSearchParams | undefined, signal: AbortSignal): Promise<Reply> {
    try {
      if (!form) throw new NodekeeperError("exhausted", "the form is too long");
      const token = form.get("token")?.trim() ?? "";
      if (!/^[\x21-\x7e]+$/.test(token))
        throw new NodekeeperError(
          "invalid",
          "The entered text is not a token: it is empty or contains spaces",
        );
      const cookie = this.#cookies?.keep(token);
      await this.#check({ token, verb: "get", path: PAGE_PATH }, signal);
      return this.#redirect(cookie);
    } catch (error) {
      return formReply(error, problemOf(error));
    }
  }

  // Relative, so that it works behind a proxy's path prefix. The browser keeps the fragment of its address.
  #redirect(cookie: string | undefined): Reply {
    const headers = { Location: "./", ...(cookie ? { "Set-Cookie": cookie } : {}) };
    return { status: 303, contentType: "text/plain; charset=utf-8", body: "", headers };
  }
}

function formReply(error: unknown, problem: string | undefined): Reply {
  return withRetryAfter(withChallenge(signInForm(statusOfCode[codeOf(error)], problem)), error);
}

/** What happened and what to do. Does not contain the token. */
function problemOf(error: unknown): string {
  const message = messageOf(error);
  switch (codeOf(error)) {
    case "unauthenticated":
      return "The token has expired, or is not one of this cluster. Create a new one.";
    case "forbidden":
      // Otherwise the agent itself is not allowed to create reviews.
      if (errorIdOf(error) !== PathForbidden.id) return `${message}.`;
      return `${message}. Bind a role with the right below to this account, or use the token of another one.`;
    case "exhausted":
      return "The token is too long: a cookie has room for about 4,000 characters. Use one of a service account.";
    case "throttled":
      return "There are too many requests at the moment. Try again in a few seconds.";
    case "unavailable":
    case "deadline":
      return "The agent cannot reach the API server, which authenticates tokens. Try again; on the node, the page on the loopback address needs no token.";
    default:
      return `${message}.`;
  }
}
