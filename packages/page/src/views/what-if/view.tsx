import { evictionPolicyOf } from "@nodekeeper/api/decide";
import { useEffect, useMemo, useState } from "preact/hooks";
import { goTo } from "../../address.ts";
import { nodeNow } from "../../node-clock.ts";
import { Problem, Waiting } from "../../parts/notice.tsx";
import { useAnswer } from "../../parts/use-answer.ts";
import type { ViewProps } from "../../view-props.ts";
import { Differences } from "./differences.tsx";
import { applyTexts, textsOf } from "./fields.ts";
import { PolicyForm } from "./form.tsx";
import { Period } from "./period.tsx";
import { type WhatIf as Query, readQuery, whatIfAddress } from "./query.ts";
import { Snippet } from "./snippet.tsx";
import { Summary } from "./summary.tsx";
import { useReplay } from "./use-replay.ts";

const HOUR_MS = 3_600_000;

export function WhatIf({ live, address }: ViewProps) {
  const [openedAt] = useState(nodeNow);
  const text = address.query.toString();
  const query = useMemo(() => readQuery(address.query), [text]);
  const since = query.since ?? openedAt - HOUR_MS;
  const isConnected = live.connection.state === "open";
  // Requested again after the agent restarts.
  const { value: configuration, problem } = useAnswer("configuration", {}, isConnected);
  const inForce = useMemo(() => configuration && textsOf(configuration), [configuration]);
  const edited = useMemo(
    () => configuration && applyTexts(configuration, query.typed),
    [configuration, query],
  );
  const policy = useMemo(() => edited && evictionPolicyOf(edited), [edited]);
  const replay = useReplay(since, policy);
  const isUnreachable = replay.records?.failure?.kind === "unreachable";
  useEffect(() => {
    if (isConnected && isUnreachable) replay.readMore();
  }, [isConnected]);

  // The start time is included, so that a shared address selects the same rounds tomorrow.
  const go = (change: Partial<Query>) => goTo(whatIfAddress({ ...query, since, ...change }), "replace");
  const recorded = JSON.stringify(replay.records?.policy ?? null);
  const plugins = (live.plugins ?? [])
    .filter(({ type }) => type === "EvictionPlugin")
    .map(({ name }) => name)
    .sort();
  // The page is rendered on each message of the stream and the worker; the form only when it changes.
  const form = useMemo(() => {
    if (!edited || !inForce) return null;
    const change = (name: string, typed: string | undefined) => {
      const next = new Map(query.typed);
      if (typed === undefined || typed === inForce.get(name)) next.delete(name);
      else next.set(name, typed);
      go({ typed: next });
    };
    return (
      <PolicyForm
        typed={query.typed}
        inForce={inForce}
        edited={edited}
        plugins={plugins}
        recorded={replay.records?.policy ?? undefined}
        onChange={change}
        onReset={() => go({ typed: new Map() })}
      />
    );
  }, [query, since, inForce, edited, recorded, plugins.join()]);

  if (configuration?.eviction.enabled === false) return <EvictionOff />;
  if (!edited) {
    if (!problem) return <Waiting>Reading the configuration in force.</Waiting>;
    return (
      <Problem problem={problem}>
        The configuration in force is needed here; it is read when the agent answers again.
      </Problem>
    );
  }
  const lastId = replay.records?.lastId ?? 0;
  return (
    <div class="what-if stack">
      <p>
        Change the eviction policy, and recorded rounds are decided again with it, in this browser: nothing
        changes on the node. The address of this page has the changes and can be sent.
      </p>
      <div class="columns">
        <div class="stack">
          <Summary replay={replay} problems={edited.problems} />
          <Differences replay={replay} />
        </div>
        <div class="stack">
          <Period
            since={since}
            isDefault={query.since === undefined}
            later={live.rounds.filter(({ id }) => id > lastId).length}
            replay={replay}
            onChange={(next) => go({ since: next })}
          />
          {form}
          <Snippet changed={edited.changed} />
        </div>
      </div>
    </div>
  );
}

function EvictionOff() {
  return (
    <p class="notice">
      Eviction is off: no rounds are decided, and none can be replayed. Set{" "}
      <code>eviction.enabled: true</code> in the agent's configuration and restart the agent. Rounds that were
      recorded before are replayed by <code>nodekeeper replay --from</code> with the state directory.
    </p>
  );
}
