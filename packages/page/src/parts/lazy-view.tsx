import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { ViewProps } from "../view-props.ts";

const RELOADED_AT = "nodekeeper.reloadedAt";
const RELOAD_INTERVAL_MS = 30_000;

/**
 * A view, or a part of the page, whose code is loaded when it is first opened or by `preload`. If loading fails, the
 * view shows the error and its remedy, and the page is reloaded once the agent is connected, because browsers may cache
 * the failure of a module.
 */
export function lazyView<Props extends Pick<ViewProps, "live">>(
  load: () => Promise<ComponentType<Props>>,
): ComponentType<Props> & { preload(): Promise<unknown> } {
  let loaded: ComponentType<Props> | undefined;
  let loading: Promise<ComponentType<Props>> | undefined;
  const preload = () => {
    loading ??= load();
    loading.catch(() => {
      loading = undefined;
    });
    return loading;
  };
  return Object.assign(LazyView, { preload });
  function LazyView(props: Props) {
    const [View, setView] = useState(() => loaded);
    const [hasFailed, setFailed] = useState(false);
    useEffect(() => {
      if (View) return;
      preload().then(
        (component) => {
          loaded = component;
          setView(() => component);
        },
        () => setFailed(true),
      );
    }, []);
    const isConnected = props.live.connection.state === "open";
    useEffect(() => {
      if (hasFailed && isConnected) reloadOnce();
    }, [hasFailed, isConnected]);
    if (View) return <View {...props} />;
    if (!hasFailed) return <p>Loading.</p>;
    return (
      <p role="alert" class="lost">
        The agent did not send this view: it has stopped, or was replaced by another version.{" "}
        <button type="button" onClick={() => location.reload()}>
          Reload the page
        </button>
      </p>
    );
  }
}

// Prevents an endless reload if another version of the agent does not have the view.
function reloadOnce(): void {
  if (Math.abs(Date.now() - Number(sessionStorage.getItem(RELOADED_AT))) < RELOAD_INTERVAL_MS) return;
  sessionStorage.setItem(RELOADED_AT, String(Date.now()));
  location.reload();
}
