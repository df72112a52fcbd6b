import { Component, type ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { addressOf, goTo, useAddress } from "./address.ts";
import { type Exports, ExportsContext } from "./export/exports.ts";
import { overlayOf } from "./keys.ts";
import type { Follower, Live } from "./live.ts";
import type { OverlayName } from "./overlays/index.tsx";
import { Icon } from "./parts/icon.tsx";
import { lazyView } from "./parts/lazy-view.tsx";
import { ModeBadge } from "./parts/mode-badge.tsx";
import { withStyles } from "./parts/styles.ts";
import { KnownUntil } from "./parts/ticker.ts";
import { at, shown } from "./text.ts";
import { views } from "./views.ts";

// Not needed for the first view. Preloaded, because users start typing as soon as they open the search.
const Overlays = lazyView(
  async () => (await withStyles("overlays", import("./overlays/index.tsx"))).Overlays,
);

/** The frame of all views: node, eviction mode, navigation, connection state. */
export function Page({ follower }: { follower: Follower }) {
  const address = useAddress();
  const { live } = follower;
  const view = views.find(({ name }) => name === address.view);
  useEffect(() => {
    if (address.view === "") goTo(addressOf(views[0].name), "replace");
  }, [address.view]);
  useEffect(() => follower.follow(view?.topics ?? []), [view]);
  const nodeName = live.node ? shown(live.node.nodeName) : "";
  const [overlay, setOverlay] = useOverlay();
  const isConnected = live.connection.state === "open";
  useEffect(() => {
    if (isConnected) Overlays.preload().catch(() => {});
  }, [isConnected]);
  const [exports] = useState<Exports>(() => new Set());
  useEffect(() => {
    document.title = [view?.title, nodeName, "Nodekeeper"].filter(Boolean).join(" · ");
  }, [view, nodeName]);
  return (
    <>
      <button type="button" class="skip" onClick={focusMain}>
        Skip to the view
      </button>
      <header class="frame">
        <p class="node">{nodeName || "Nodekeeper"}</p>
        {live.node && <ModeBadge eviction={live.node.eviction} />}
        <nav class="tabs" aria-label="Views">
          {views.map(({ name, title }) => (
            <a key={name} href={addressOf(name)} aria-current={name === view?.name ? "page" : undefined}>
              {title}
            </a>
          ))}
        </nav>
        <button
          type="button"
          aria-haspopup="dialog"
          aria-keyshortcuts="/"
          onClick={() => setOverlay("search")}
        >
          <Icon name="search" /> Search <kbd>/</kbd>
        </button>
        <button
          type="button"
          aria-haspopup="dialog"
          aria-keyshortcuts="?"
          aria-label="Keys"
          title="Keys (?)"
          onClick={() => setOverlay("keys")}
        >
          ?
        </button>
      </header>
      {overlay && (
        <Overlays
          {...{ live, exports }}
          name={overlay}
          view={view?.title ?? ""}
          onClose={() => setOverlay(undefined)}
        />
      )}
      <ConnectionState live={live} />
      <main id="main" tabIndex={-1}>
        {view ? (
          <Guard key={view.name}>
            <div class="title">
              <h1>{view.title}</h1>
              <button type="button" aria-haspopup="dialog" onClick={() => setOverlay("export")}>
                Export
              </button>
            </div>
            <ExportsContext.Provider value={exports}>
              <KnownUntil.Provider value={knownUntil(live.connection)}>
                <view.Component live={live} address={address} />
              </KnownUntil.Provider>
            </ExportsContext.Provider>
          </Guard>
        ) : (
          <p hidden={address.view === ""}>
            There is no view {shown(address.view, 60)}.{" "}
            <a href={addressOf(views[0].name)}>{views[0].title}</a>
          </p>
        )}
      </main>
      <footer class="frame">
        Nodekeeper {live.node?.version} · <a href="api/v1">API</a> · <a href="metrics">Metrics</a> ·{" "}
        <a href="readyz?verbose">Health</a>
        {/* The agent requires tokens only with TLS. */}
        {location.protocol === "https:" && (
          <>
            {" "}
            · <a href="sign-out">Sign out</a>
          </>
        )}
      </footer>
    </>
  );
}

function knownUntil(connection: Live["connection"]): number {
  return connection.state === "lost" ? connection.at : Number.POSITIVE_INFINITY;
}

/** Returns what is open above the view, and opens it by its key. */
function useOverlay() {
  const [overlay, setOverlay] = useState<OverlayName>();
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const opened = overlayOf(event);
      if (!opened || document.querySelector("dialog[open]")) return;
      event.preventDefault();
      setOverlay(opened);
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  return [overlay, setOverlay] as const;
}

function ConnectionState({ live: { connection, node } }: { live: Live }) {
  return (
    <div role="status" class="frame-state">
      {connection.state === "lost" && (
        <p class="lost">
          <b>
            {node ? `Data as of ${at(connection.at)}` : "No answer yet"}: {shown(connection.why, 300)}.
          </b>{" "}
          {connection.isRefused ? (
            <button type="button" onClick={() => location.reload()}>
              Sign in again
            </button>
          ) : (
            <>
              Reconnecting. If this persists, check that the agent runs (
              <code>systemctl status nodekeeper</code>, or its pod) and that the port-forward is open.
            </>
          )}
        </p>
      )}
    </div>
  );
}

/** Contains an error to one view, so that the frame and the other views keep working. */
class Guard extends Component<{ children: ComponentChildren }, { error?: Error }> {
  override state: { error?: Error } = {};

  static override getDerivedStateFromError(error: Error) {
    return { error };
  }

  override componentDidCatch(error: Error): void {
    console.error(error);
  }

  override render() {
    const { error } = this.state;
    if (!error) return this.props.children;
    return (
      <p role="alert" class="lost">
        This view failed: {shown(error.message, 500)}. The others work.{" "}
        <button type="button" onClick={() => location.reload()}>
          Load the page again
        </button>
      </p>
    );
  }
}

// Not a link, because its fragment would be the address of a view.
function focusMain(): void {
  document.getElementById("main")?.focus();
}
