import { useEffect, useState } from "preact/hooks";
import { type ApiAnswers, ask, Refusal } from "../../api.ts";
import { at, shown } from "../../text.ts";
import type { ViewProps } from "../../view-props.ts";

type Explanation = ApiAnswers["eviction/explain"];
type State =
  | { state: "loading" }
  | { state: "failed" }
  | { state: "unknown" }
  | { state: "read"; explanation: Explanation };

/** Why a pod was evicted, deleted or kept. */
export function PodView({ address }: ViewProps) {
  const pod = address.path.join("/");
  const [read, setRead] = useState<State>({ state: "loading" });
  useEffect(() => {
    ask("eviction/explain", { pod }).then(
      (explanation) => setRead({ state: "read", explanation }),
      (error) => setRead({ state: error instanceof Refusal ? "unknown" : "failed" }),
    );
  }, [pod]);
  if (read.state === "loading") return <p>Reading the records of {shown(pod)}.</p>;
  if (read.state === "failed")
    return <p role="alert">The agent does not answer. Reload the page when it runs again.</p>;
  if (read.state === "unknown")
    return <p>There is no record of {shown(pod)} on this node, or it has expired.</p>;
  const { namespace, name, uid, rounds, steps, history, events } = read.explanation;
  const last = rounds.at(-1);
  return (
    <>
      <h2>
        {shown(namespace)}/{shown(name)} <small>{shown(uid)}</small>
      </h2>
      <p class="verdict">{verdictOf(read.explanation)}</p>
      <h3>Steps</h3>
      <ol>
        {[...events, ...steps]
          .sort((a, b) => a.at - b.at)
          .map((step) => (
            <li>
              <time>{at(step.at)}</time> {shown(step.message, 1_000)}
            </li>
          ))}
      </ol>
      {last && (
        <>
          <h3>Ranking of the last round</h3>
          <table>
            <tbody>
              {[...(last.place ? [last.place] : []), ...last.others]
                .sort((a, b) => a.rank - b.rank)
                .map(({ rank, namespace, name, priority, qosLevel, qosClass, outcome, why }) => (
                  <tr>
                    <td>{rank}</td>
                    <th scope="row">
                      {shown(namespace)}/{shown(name)}
                    </th>
                    <td>{outcome}</td>
                    <td>
                      <details>
                        <summary>{shown(why, 200)}</summary>
                        priority {priority}, {qosLevel}, {qosClass}
                      </details>
                    </td>
                  </tr>
                ))}
            </tbody>
          </table>
        </>
      )}
      {history && history.exits.length > 0 && (
        <>
          <h3>Exits that the runtime reported</h3>
          <ul>
            {history.exits.map(({ name, exitCode, reason, at: when }) => (
              <li>
                {when === null ? "" : at(when)} {shown(name)} {reason}{" "}
                {exitCode === null ? "" : `(exit code ${exitCode})`}
              </li>
            ))}
          </ul>
        </>
      )}
    </>
  );
}

function verdictOf({ rounds, history }: Explanation): string {
  const victim = rounds.findLast((round) => round.victim !== null)?.victim;
  const isDeleted = history?.leftAt != null;
  if (victim)
    return `Selected for eviction at the request of ${shown(victim.plugin)}: ${shown(victim.reason, 500)}.${isDeleted ? " Deleted." : ""}`;
  if (isDeleted) return "Deleted, not by Nodekeeper.";
  const last = rounds.at(-1);
  if (last?.exclusion) return `Not a candidate: ${shown(last.exclusion.detail, 500)}.`;
  return last?.place ? `Not evicted: ${shown(last.place.why, 500)}.` : "Not evicted.";
}
