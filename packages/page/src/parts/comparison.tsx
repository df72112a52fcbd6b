import { type ComparedKey, comparisonOf, type Rankable, type RankKeyName } from "@nodekeeper/api/decide";
import type { Neighbour } from "@nodekeeper/api/records";
import { shown } from "../text.ts";
import { Table } from "./table.tsx";

const results: Readonly<Record<ComparedKey["result"], string>> = {
  equal: "equal",
  decides: "decides",
  notCompared: "not compared",
};

interface Props {
  a: Neighbour;
  b: Neighbour;
  /** The ranking keys of the round's policy. */
  ranking: readonly RankKeyName[];
}

/** Explains key by key why one of two pods ranks before the other. */
export function Comparison({ a, b, ranking }: Props) {
  const [first, second] = a.rank < b.rank ? [a, b] : [b, a];
  const keys = comparisonOf(ranking, rankable(first), rankable(second));
  const [firstName, secondName] = [nameOf(first), nameOf(second)];
  const deciding = keys.find(({ result }) => result === "decides");
  return (
    <>
      <p>
        <b>{firstName}</b> ranks before <b>{secondName}</b>
        {deciding && `: ${deciding.name} ${shown(deciding.values[0])} before ${shown(deciding.values[1])}`}.
      </p>
      <Table
        isNarrow
        label={`Comparison of ${firstName} with ${secondName}`}
        columns={["Key", firstName, secondName, "Result"]}
        rows={keys.filter(isWorthShowing).map(({ name, values, result }) => ({
          key: name,
          class: result === "decides" ? "pod-decides" : undefined,
          cells: [
            name,
            ...values.map((value) => shown(value)),
            result === "equal" && values[0] !== values[1] ? "rank alike" : results[result],
          ],
        }))}
      />
    </>
  );
}

// Names are compared last and matter only if all other keys are equal.
function isWorthShowing({ name, result }: ComparedKey): boolean {
  return result !== "notCompared" || !["name", "namespace", "UID"].includes(name);
}

function rankable(pod: Neighbour): Rankable {
  return { pod, scope: pod.scope };
}

function nameOf({ namespace, name }: Neighbour): string {
  return shown(`${namespace}/${name}`, 80);
}
