/**
 * Exchanges the token of the printed link for the path of the page, and navigates there. Returns why that failed;
 * undefined if the navigation has started.
 */
export async function openSession(fragment: string): Promise<string | undefined> {
  const token = /^#token=([\w-]+)$/.exec(fragment)?.[1];
  if (token === undefined) return "its address has no token";
  try {
    const response = await fetch("session", { method: "POST", body: token });
    const answer = (await response.json()) as { path?: string; error?: { message?: string } };
    if (answer.path === undefined) return answer.error?.message ?? `HTTP status ${response.status}`;
    // The link is of no use any more, so that it is not kept in the history.
    location.replace(answer.path);
    return undefined;
  } catch {
    return "kubectl nodekeeper page does not run any more";
  }
}
