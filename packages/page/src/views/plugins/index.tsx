import { useMemo } from "preact/hooks";
import { Joined } from "../../parts/joined.tsx";
import { Waiting } from "../../parts/notice.tsx";
import { useAnswer } from "../../parts/use-answer.ts";
import { shown } from "../../text.ts";
import type { ViewProps } from "../../view-props.ts";
import { PluginDetails } from "./details.tsx";
import { withDriverProblems } from "./driver-problems.ts";
import { groupPlugins } from "./groups.ts";
import { PluginList } from "./list.tsx";

/** Plugins and drivers by health. `#/plugins/<name>` shows one of them. */
export function PluginsView({ live, address }: ViewProps) {
  const { devices = [], claims = [] } = live;
  const plugins = useMemo(
    () => groupPlugins(withDriverProblems(live.plugins ?? [], devices, claims)),
    [live.plugins, live.devices, live.claims],
  );
  const [name] = address.path;
  if (!live.plugins) return <Waiting>Waiting for the agent's first answer.</Waiting>;
  return (
    <div class="plugins-view stack">
      {name !== undefined ? (
        <PluginDetails name={name} plugins={plugins} live={live} />
      ) : plugins.length === 0 ? (
        <NoPlugins />
      ) : (
        <PluginList plugins={plugins} />
      )}
    </div>
  );
}

function NoPlugins() {
  const { value } = useAnswer("configuration", {});
  const directories = value?.plugins.directories.map((each) => shown(each)) ?? [];
  return (
    <>
      <p>No plugin has registered, and no in-tree plugin is enabled.</p>
      <p>
        A plugin appears here once it serves a socket in{" "}
        {directories.length > 0 ? (
          <Joined items={directories.map((each) => <code>{each}</code>)} />
        ) : (
          "a directory of plugins.directories"
        )}
        . In-tree plugins are enabled with <code>eviction.inTreePlugins</code> and{" "}
        <code>reporting.inTreePlugins</code>.
      </p>
    </>
  );
}
