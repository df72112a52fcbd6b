import { useMemo, useState } from "preact/hooks";
import { evictionPolicyOf } from "../../../../agent/src/assembly/eviction-policy-settings.ts";
import { goTo } from "../../address.ts";
import type { ViewProps } from "../../view-props.ts";
import { applyTexts, textsOf } from "./fields.ts";
import { PolicyForm } from "./form.tsx";
import { Period } from "./period.tsx";
import { type WhatIf as Query, readQuery, whatIfAddress } from "./query.ts";
import { Result } from "./result.tsx";
import { Snippet } from "./snippet.tsx";
import { useConfiguration } from "./use-configuration.ts";
import { useReplay } from "./use-replay.ts";

const HOUR_MS = 3_600_000;

export function WhatIf({ live, address }: ViewProps) {
  const [openedAt] = useState(() => Date.now());
  const text = address.query.toString();
  const query = useMemo(() => readQuery(address.query), [text]);
  const since = query.since ?? openedAt - HOUR_MS;
  const { configuration, problem, read } = useConfiguration();
  const edited = useMemo(
    () => configuration && applyTexts(configuration, query.typed),
    [configuration, query],
  );
  const policy = useMemo(() => edited && evictionPolicyOf(edited), [edited]);
  const replay = useReplay(since, policy);
  // An address that is sent has the same rounds tomorrow.
  const go = (change: Partial<Query>) => goTo(whatIfAddress({ ...query, since, ...change }), "replace");

  if (live.node?.eviction === null) {
    return (
      <p>
        Eviction is off, so that no rounds are decided or replayed. Set <code>eviction.enabled: true</code> in
        the agent's configuration and restart it. Recorded rounds of before can be replayed with{" "}
        <code>nodekeeper replay --from</code> and the state directory.
      </p>
    );
  }
  if (!configuration || !edited) {
    if (!problem) return <p>Reading the configuration in force.</p>;
    return (
      <p role="alert" class="lost">
        The configuration in force can't be read: {problem}.{" "}
        <button type="button" onClick={read}>
          Try again
        </button>
      </p>
    );
  }
  const inForce = textsOf(configuration);
  const change = (name: string, typed: string | undefined) => {
    const next = new Map(query.typed);
    if (typed === undefined || typed === inForce.get(name)) next.delete(name);
    else next.set(name, typed);
    go({ typed: next });
  };
  return (
    <>
      <p>
        Change the eviction policy, and recorded rounds are decided again with it, in this browser: nothing
        changes on the node. The address of this page has the changes and can be sent.
      </p>
      <div class="what-if">
        <PolicyForm
          typed={query.typed}
          inForce={inForce}
          edited={edited}
          recorded={replay.records?.policy ?? undefined}
          onChange={change}
          onReset={() => go({ typed: new Map() })}
        />
        <div>
          <Period since={since} replay={replay} onChange={(next) => go({ since: next })} />
          <Result replay={replay} problems={edited.problems.size} />
          <Snippet changed={edited.changed} />
        </div>
      </div>
    </>
  );
}
