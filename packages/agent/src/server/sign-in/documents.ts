import { createHash } from "node:crypto";
import type { Reply } from "../reply.ts";

const STYLE = `
:root { color-scheme: light dark; --text: #1f2328; --quiet: #59636e; --ground: #fff; --raised: #f6f8fa; --edge: #818b98;
  --link: #0757b5; --on-link: #fff; --bad: #b42318; --bad-ground: #ffebe9; font: 15px / 1.45 system-ui, sans-serif; }
@media (prefers-color-scheme: dark) { :root { --text: #e6edf3; --quiet: #9aa5b1; --ground: #0d1117; --raised: #161b22;
  --edge: #6e7681; --link: #79b8ff; --on-link: #0d1117; --bad: #ff9089; --bad-ground: #48140f; } }
* { box-sizing: border-box; }
body { background: var(--ground); color: var(--text); margin: 0 auto; max-width: 40rem; overflow-wrap: anywhere; padding: 1rem; }
h1 { font-size: 1.4rem; }
h2 { font-size: 1.05rem; margin-top: 2rem; }
a { color: var(--link); }
label { display: block; font-weight: bold; margin-bottom: 0.3rem; }
input { background: var(--ground); border: 1px solid var(--edge); border-radius: 0.3rem; color: inherit; font: inherit;
  padding: 0.5rem; width: 100%; }
button { background: var(--link); border: 0; border-radius: 0.3rem; color: var(--on-link); font: inherit; font-weight: bold;
  margin-top: 0.8rem; min-height: 2.6rem; padding: 0.5rem 1.4rem; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
.problem { background: var(--bad-ground); border: 2px solid var(--bad); border-radius: 0.3rem; padding: 0.5rem 0.8rem; }
pre { background: var(--raised); padding: 0.6rem; white-space: pre-wrap; }
code { font-family: ui-monospace, monospace; font-size: 0.9em; }
.quiet { color: var(--quiet); }
`;

/**
 * The sign-in form. It is posted to the address that shows it, so that the browser keeps the fragment, which names the
 * view.
 * @param problem why there is no session, in a sentence or two; undefined before the first attempt
 */
export function signInForm(status: number, problem: string | undefined): Reply {
  const alert = problem ? `<p role="alert" id="problem" class="problem">${escaped(problem)}</p>` : "";
  return document(
    status,
    `${problem ? "Not signed in" : "Sign in"} · Nodekeeper`,
    `<h1>Sign in to Nodekeeper</h1>
${alert}
<form method="post">
<label for="token">Token of the cluster</label>
<input id="token" name="token" type="password" required autofocus autocomplete="off" spellcheck="false"${problem ? ' aria-describedby="problem"' : ""}>
<button>Sign in</button>
</form>
<h2>Where to get a token</h2>
<p>From kubectl, for an account that may read the agents:</p>
<pre><code>kubectl create token ACCOUNT --namespace NAMESPACE --duration 8h</code></pre>
<p>The account needs the right to <code>get</code> the nonResourceURL <code>/nodekeeper/*</code>, which the ClusterRole
<code>nodekeeper-status-reader</code> has. The API server authorizes it.</p>
<p class="quiet">The browser keeps the token, encrypted, until you sign out or close it. For programs: the header
<code>Authorization: Bearer</code>.</p>`,
  );
}

/** Asks for confirmation before the session ends. A link alone must not end it, because other sites may have links. */
export function signOutForm(): Reply {
  return document(
    200,
    "Sign out · Nodekeeper",
    `<h1>Sign out of Nodekeeper</h1>
<p>This browser then no longer stores a token for this node. The token itself remains valid until it expires.</p>
<form method="post"><button>Sign out</button></form>
<p><a href="./">Back to the page</a></p>`,
  );
}

function document(status: number, title: string, body: string): Reply {
  const style = createHash("sha256").update(STYLE).digest("base64");
  return {
    status,
    contentType: "text/html; charset=utf-8",
    body: `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<style>${STYLE}</style>
</head>
<body>
<main>
${body}
</main>
</body>
</html>
`,
    headers: {
      "Content-Security-Policy": `default-src 'none'; style-src 'sha256-${style}'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'`,
      // With no-referrer, browsers send the form with the origin "null".
      "Referrer-Policy": "same-origin",
      Vary: "Accept",
    },
  };
}

const LONGEST_TEXT = 500;

/** Escapes account names and authorizers' reasons for HTML: no markup, control characters or direction marks. */
function escaped(text: string): string {
  return text
    .slice(0, LONGEST_TEXT)
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, " ")
    .replace(/&/g, "&amp;")
    .replace(/</g, "&lt;")
    .replace(/>/g, "&gt;")
    .replace(/"/g, "&quot;");
}
