import { age, at, shown } from "../../text.ts";
import type { ViewProps } from "../../view-props.ts";

/** Conditions and taints with owner and expiry, health, and whether eviction is live. */
export function NowView({ live }: ViewProps) {
  const { node } = live;
  const conditions = live["eviction/node"];
  if (!node) return <p>Waiting for the agent's first answer.</p>;
  const now = Date.now();
  const failing = node.health.checks.filter(({ ok, warning }) => !ok || warning);
  return (
    <>
      <section aria-labelledby="mode">
        <h2 id="mode">Eviction</h2>
        <p>
          {node.eviction
            ? {
                live: "Live: pods are evicted.",
                dryRun: "Dry run: no pod is evicted.",
                mixed: `Dry run for ${node.eviction.dryRunPlugins.map((name) => shown(name)).join(", ")}.`,
              }[node.eviction.mode]
            : "Off (eviction.enabled)."}
        </p>
      </section>
      <section aria-labelledby="conditions">
        <h2 id="conditions">Conditions and taints</h2>
        {!conditions || conditions.conditions.length === 0 ? (
          <p>None: no plugin reports pressure.</p>
        ) : (
          <table>
            <thead>
              <tr>
                {["Condition", "Owner", "Taints", "Since", "Until", "Cause"].map((title) => (
                  <th scope="col">{title}</th>
                ))}
              </tr>
            </thead>
            <tbody>
              {conditions.conditions.map(({ name, plugin, taints, since, until, cause }) => (
                <tr>
                  <th scope="row">{shown(name)}</th>
                  <td>{shown(plugin)}</td>
                  <td>{taints.map((taint) => shown(taint)).join(", ") || "none"}</td>
                  <td title={at(since)}>{age(now - since)}</td>
                  <td>{until === null ? "while it is met" : `in ${age(until - now)}`}</td>
                  <td>{shown(cause ?? "")}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </section>
      <section aria-labelledby="health">
        <h2 id="health">Health</h2>
        {failing.length === 0 ? (
          <p>All {node.health.checks.length} checks pass.</p>
        ) : (
          <ul>
            {failing.map(({ name, ok, message, warning, errorId }) => (
              <li class={ok ? "warning" : "failed"}>
                <b>{name}</b> {ok ? "passes, but" : "fails"}: {shown(warning ?? message, 500)} {errorId}
              </li>
            ))}
          </ul>
        )}
      </section>
    </>
  );
}
