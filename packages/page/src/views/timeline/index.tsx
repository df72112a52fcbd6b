import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useExport } from "../../export/exports.ts";
import { nodeNow } from "../../node-clock.ts";
import { shown } from "../../text.ts";
import type { ViewProps } from "../../view-props.ts";
import { AsList } from "./as-list.tsx";
import { Detail } from "./detail.tsx";
import { useColours, useWidth } from "./draw.ts";
import { containerRows, markRows, readingRows } from "./exported.ts";
import { GapBands } from "./gap-bands.tsx";
import { gapsOf } from "./gaps.ts";
import { Hover } from "./hover.ts";
import { Key } from "./key.tsx";
import { takeKey } from "./keys.ts";
import { Latest } from "./latest.tsx";
import { findMark } from "./mark-search.ts";
import { groupMarks, lookOf, type Mark, neighbourOf } from "./marks.ts";
import { MarksLane } from "./marks-lane.tsx";
import { Notices } from "./notices.tsx";
import { placeAddress } from "./place.ts";
import { LONGEST_MS, Plot } from "./plot.tsx";
import { readMarks } from "./reader.ts";
import { barAt, type Row, rowsOf } from "./rows.ts";
import { RowsBox, rowHeightOf } from "./rows-box.tsx";
import { panned, rangeBetween, ticksOf, zoomed } from "./scale.ts";
import { selectedText } from "./selected-text.ts";
import { readingAt, type Signal } from "./signals.ts";
import { Stack } from "./stack.tsx";
import { Toolbar } from "./toolbar.tsx";
import { useAxis } from "./use-axis.ts";
import { useData, useWanted } from "./use-data.ts";
import { useOrder } from "./use-order.ts";

const WIDE_PX = 700;
const WIDER_PX = 1_200;
const FIRST_SIGNALS = 4;
const MARK_PX = 15;
const SLACK_PX = 6;

/** The node over time: readings against thresholds, containers, and marks, on one axis. */
export function TimelineView({ live, address }: ViewProps) {
  const data = useData(live);
  const { events, marks, signals } = data;
  const { connection, node } = live;
  const stoppedAt = connection.state === "lost" ? connection.at : undefined;
  const axis = useAxis(address, nodeNow, stoppedAt);
  const { range, isLive, selection } = axis;
  useWanted(data, range, isLive);

  const [filter, setFilter] = useState("");
  const [expanded, setExpanded] = useState<ReadonlySet<string>>(new Set());
  const [hasAllSignals, setAllSignals] = useState(false);
  const [hover] = useState(() => new Hover());
  const chart = useRef<HTMLDivElement>(null);
  const width = useWidth(chart);
  const left = width < WIDE_PX ? 52 : width < WIDER_PX ? 230 : 310;
  const axisPx = Math.max(width - left, 1);
  const colours = useColours();
  const ticks = ticksOf(range, axisPx);

  const isHeld = () => chart.current?.querySelector(".tl-rows:hover, .tl-rows :focus-visible") != null;
  const order = useOrder(data, range, isLive, isHeld);
  const rows = rowsOf(events.pods, order.pods, { range, filter, expanded });
  const podRows = rows.filter(({ container }) => container === undefined).length;
  const groups = groupMarks(marks, range, axisPx, MARK_PX);
  const podMarks = useMemo(() => Map.groupBy(marks, ({ pod }) => pod?.uid ?? ""), [marks]);
  const graveMarks = useMemo(() => marks.filter(({ kind }) => lookOf(kind).tone === "bad"), [marks]);
  const bySignal = new Map(signals.map((signal) => [signal.key, signal]));
  const sorted = order.signals.flatMap((key) => bySignal.get(key) ?? []);
  const shownSignals = hasAllSignals ? sorted : sorted.slice(0, FIRST_SIGNALS);
  useExport("Marks", () => markRows(marks, range));
  useExport("Readings", () => readingRows(shownSignals, range));
  useExport("Containers", () => containerRows(rows, range));
  const selectedMark = selection?.kind === "mark" ? selection.id : undefined;

  const pan = (share: number) => axis.show(panned(range, share * (range.to - range.from)));
  const zoom = (factor: number) => {
    if (isLive) return axis.showLast((range.to - range.from) * factor);
    axis.show(zoomed(range, factor, (range.from + range.to) / 2));
  };
  const jump = (at: number) => {
    const half = (range.to - range.from) / 2;
    axis.show(rangeBetween(at - half, at + half));
  };
  const search = useRef(new AbortController());
  useEffect(() => () => search.current.abort(), []);
  const showMark = ({ id, at }: Mark) => {
    const isShown = at >= range.from && at <= range.to;
    const half = (range.to - range.from) / 2;
    axis.select({ kind: "mark", id }, isShown ? undefined : rangeBetween(at - half, at + half));
  };
  const goToMark = (direction: 1 | -1) => {
    search.current.abort();
    search.current = new AbortController();
    const from = marks.find(({ id }) => id === selectedMark)?.at ?? (direction > 0 ? range.from : range.to);
    const known = neighbourOf(marks, from, direction);
    // The data read extends half a width beyond the shown range.
    if (known && Math.abs(known.at - (range.from + range.to) / 2) <= range.to - range.from)
      return showMark(known);
    const { signal } = search.current;
    findMark(readMarks, from, direction, { widthMs: range.to - range.from, now: nodeNow(), signal }).then(
      (found) => found && showMark(found),
      // The frame and the notices show errors of the agent and lost connections.
      () => {},
    );
  };
  const selectReading = (signal: Signal, at: number | undefined) => {
    const index = at === undefined ? signal.at.length - 1 : readingAt(signal, at, LONGEST_MS);
    if (index === undefined) return;
    axis.select({ kind: "reading", plugin: signal.plugin, scope: signal.scope, at: signal.at[index]! });
  };
  const openRow = ({ pod, container, bars }: Row) => {
    const bar = container === undefined ? undefined : bars.at(-1);
    if (bar) return axis.select({ kind: "container", uid: pod.uid, id: bar.id });
    const next = new Set(expanded);
    if (!next.delete(pod.uid)) next.add(pod.uid);
    setExpanded(next);
    axis.select({ kind: "pod", uid: pod.uid });
  };
  const click = (at: number, event: PointerEvent) => {
    const target = event.target instanceof Element ? event.target : undefined;
    const key = target?.closest("[data-signal]")?.getAttribute("data-signal");
    const signal = key == null ? undefined : bySignal.get(key);
    if (signal) return selectReading(signal, at);
    const box = target?.closest(".tl-rows");
    if (!box) return;
    const y = event.clientY - box.getBoundingClientRect().top + box.scrollTop;
    const row = rows[Math.floor(y / rowHeightOf(left))];
    if (!row) return;
    const bar = barAt(row, at, (SLACK_PX / axisPx) * (range.to - range.from));
    axis.select(
      bar ? { kind: "container", uid: row.pod.uid, id: bar.id } : { kind: "pod", uid: row.pod.uid },
    );
  };
  const actions = {
    pan,
    zoom,
    mark: goToMark,
    toggleLive: () => axis.show(isLive ? range : undefined),
    close: () => axis.select(undefined),
  };
  const section = useRef<HTMLElement>(null);
  const latestActions = useRef(actions);
  latestActions.current = actions;
  useEffect(() => {
    // Keys work anywhere in the view, and if an element around it has the focus, as after a click on a bar.
    const onKey = (event: KeyboardEvent) => {
      const { target } = event;
      if (!(target instanceof Node) || !section.current) return;
      const isHere = target.contains(section.current) || section.current.contains(target);
      if (isHere) takeKey(event, latestActions.current);
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);

  return (
    <section ref={section} class="card timeline" aria-label="Timeline">
      <Toolbar
        range={range}
        isLive={isLive}
        stopped={
          isLive && stoppedAt !== undefined ? "The connection is lost: the time stands still" : undefined
        }
        filter={filter}
        shownPods={podRows}
        pods={order.pods.length}
        isReading={data.isReading}
        onPause={() => axis.show(range)}
        onLive={() => axis.show(undefined)}
        onLast={axis.showLast}
        onPan={pan}
        onZoom={zoom}
        onJump={jump}
        onMark={goToMark}
        onFilter={setFilter}
      />
      <p role="status" class="unseen">
        {selectedText(selection, { pods: events.pods, marks })}
      </p>
      <Notices live={live} data={data} range={range} />
      <Latest marks={marks} range={range} onSelect={({ id }) => axis.select({ kind: "mark", id })} />
      <div class={selection ? "tl-body has-detail" : "tl-body"}>
        <div ref={chart} class="tl-chart">
          {width > 0 && (
            <Stack {...{ range, left, axisPx, ticks, hover, click }} now={axis.now} show={axis.show}>
              <GapBands gaps={gapsOf(marks, range)} {...{ range, left, axisPx }} />
              <MarksLane
                groups={groups}
                left={left}
                selectedId={selectedMark}
                onSelect={({ id }) => axis.select({ kind: "mark", id })}
              />
              {shownSignals.map((signal) => (
                <Plot
                  key={`${signal.key} ${left}`}
                  {...{ signal, range, left, axisPx, ticks, hover, colours }}
                  marks={graveMarks}
                  selectedAt={
                    selection?.kind === "reading" &&
                    selection.plugin === signal.plugin &&
                    selection.scope === signal.scope
                      ? selection.at
                      : undefined
                  }
                  onSelect={() => selectReading(signal, undefined)}
                />
              ))}
              {sorted.length > FIRST_SIGNALS && (
                <button
                  type="button"
                  class="tl-more"
                  aria-expanded={hasAllSignals}
                  onClick={() => setAllSignals(!hasAllSignals)}
                >
                  {hasAllSignals
                    ? "Show fewer signals"
                    : `Show ${sorted.length - FIRST_SIGNALS} more signals`}
                </button>
              )}
              {node?.eviction && signals.length === 0 && !data.isReading && (
                <p class="tl-empty">
                  No plugin has reported a value yet. Plugins report with each round of eviction.
                </p>
              )}
              {rows.length > 0 ? (
                <RowsBox
                  {...{ rows, range, left, axisPx, ticks, expanded, colours }}
                  now={axis.now}
                  knownSince={Math.max(events.knownSince ?? range.to, events.logStart ?? 0)}
                  marks={podMarks}
                  selected={
                    selection?.kind === "container"
                      ? selection.id
                      : selection?.kind === "pod"
                        ? selection.uid
                        : undefined
                  }
                  onRow={openRow}
                />
              ) : (
                node?.lifecycle && (
                  <p class="tl-empty">{emptyText(data.isReading, filter, connection.state)}</p>
                )
              )}
            </Stack>
          )}
        </div>
        {selection && (
          <Detail
            {...{ selection, marks, signals }}
            pods={events.pods}
            beside={groups.find((group) => group.marks.some(({ id }) => id === selectedMark))?.marks ?? []}
            now={axis.now}
            isReading={data.isReading}
            address={placeAddress({ range, selection })}
            onSelect={axis.select}
            onClose={() => axis.select(undefined)}
          />
        )}
      </div>
      {!node && connection.state === "opening" && <p>Waiting for the agent's first answer.</p>}
      <Key />
      <AsList {...{ range, marks, rows }} signals={sorted} now={axis.now} onSelect={axis.select} />
    </section>
  );
}

function emptyText(isReading: boolean, filter: string, connection: string): string {
  if (connection === "lost") return "No pods are known.";
  if (isReading) return "Reading the pods of the node…";
  if (filter !== "") return `No pod matches "${shown(filter, 60)}" in this stretch of time.`;
  return "No pods are known in this stretch of time.";
}
