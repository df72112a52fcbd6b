import { useMemo, useState } from "preact/hooks";
import { useExport } from "../../../export/exports.ts";
import type { Live } from "../../../live.ts";
import { Problem, Waiting } from "../../../parts/notice.tsx";
import { PluginLinks } from "../../../parts/plugin-links.tsx";
import { useAnswer } from "../../../parts/use-answer.ts";
import { shown } from "../../../text.ts";
import type { ViewProps } from "../../../view-props.ts";
import { ZoneBox } from "./zone-box.tsx";
import { rowsOfZones, unhealthyDevices } from "./zone-text.ts";
import { readZones } from "./zones.ts";

const KIND = "/CustomNodeResource";

/**
 * The topology zones of the published CustomNodeResource as nested boxes, with the pods that hold resources of each.
 */
export function TopologyTab({ live }: ViewProps) {
  const published = live.objects?.find(({ object }) => object.endsWith(KIND));
  const version = `${published?.writes} ${published?.lastWriteAt}`;
  const query = published && { object: published.object };
  const { value, problem } = useAnswer("objects/content", query, version);
  const { zones, left } = useMemo(() => readZones(value?.content), [value]);
  const [highlit, setHighlit] = useState("");
  const unhealthy = useMemo(() => unhealthyDevices(live.claims ?? []), [live.claims]);
  useExport("Topology zones", () => rowsOfZones(zones, unhealthy));
  if (!live.objects) return <Waiting>Waiting for the agent's first answer.</Waiting>;
  if (!published) return <NoZones />;
  if (problem && !value) return <Problem problem={problem}>The object can't be shown.</Problem>;
  if (!value) return <Waiting>Loading the CustomNodeResource.</Waiting>;
  if (zones.length === 0) return <NoZones />;
  return (
    <div class="card">
      <p>
        As published in the CustomNodeResource of this node. Its reporters:{" "}
        <PluginLinks names={published.plugins} />. <WriteProblem live={live} />
      </p>
      {problem && <Problem problem={problem}>These are the zones as they were before.</Problem>}
      <ul class="zones">
        {zones.map((zone) => (
          <ZoneBox key={zone.key} zone={zone} {...{ unhealthy, highlit }} onHighlight={setHighlit} />
        ))}
      </ul>
      {left > 0 && <p>{left} more zones are not drawn.</p>}
    </div>
  );
}

function WriteProblem({ live }: { live: Live }) {
  const object = live.objects?.find(({ object }) => object.endsWith(KIND));
  if (!object?.lastError) return null;
  return <strong class="bad">The last write failed: {shown(object.lastError, 500)}</strong>;
}

function NoZones() {
  return (
    <>
      <p>No topology zones are published for this node.</p>
      <p>
        They appear once a reporter reports <code>status.topologyZone</code>: the in-tree{" "}
        <code>kubelet-reporter-plugin</code> (setting <code>reporting.inTreePlugins</code>) does so where the
        kubelet serves PodResources.
      </p>
    </>
  );
}
