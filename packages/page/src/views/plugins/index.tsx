import { age, shown } from "../../text.ts";
import type { ViewProps } from "../../view-props.ts";

/** Plugins by health: those that fail first. */
export function PluginsView({ live: { plugins } }: ViewProps) {
  if (!plugins) return <p>Waiting for the agent's first answer.</p>;
  if (plugins.length === 0) return <p>No plugin has registered, and no in-tree plugin is enabled.</p>;
  const now = Date.now();
  const rank = ({ error, problems }: (typeof plugins)[number]) => (error ? 0 : problems.length > 0 ? 1 : 2);
  const sorted = [...plugins].sort((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1));
  return (
    <table>
      <thead>
        <tr>
          {[
            "Plugin",
            "Type",
            "State",
            "Last contact",
            "Calls per minute",
            "Mean",
            "Last error, refused content",
          ].map((title) => (
            <th scope="col">{title}</th>
          ))}
        </tr>
      </thead>
      <tbody>
        {sorted.map(({ name, type, state, contactAt, calls, error, errorId, problems }) => (
          <tr class={error ? "failed" : problems.length > 0 ? "warning" : ""}>
            <th scope="row">{shown(name) || "–"}</th>
            <td>{shown(type)}</td>
            <td>{error && (state === "registered" || state === "in-tree") ? "failing" : state}</td>
            <td>{contactAt ? `${age(now - contactAt)} ago` : "–"}</td>
            <td>{calls ? calls.perMinute.toFixed(1) : "–"}</td>
            <td>{calls?.meanMs === undefined ? "–" : `${calls.meanMs.toFixed(1)} ms`}</td>
            <td>
              {error && <p>{[errorId, shown(error, 1_000)].filter(Boolean).join(": ")}</p>}
              {problems.map((problem) => (
                <p>{shown(problem, 1_000)}</p>
              ))}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
