import type { ComponentChildren } from "preact";
import { addressOf } from "../../address.ts";
import { RoundLink } from "../../parts/round-link.tsx";
import { age, podName, quantity, shown, at as timeText } from "../../text.ts";
import { type Bar, endOf, type PodBars, type Pods } from "./bars.ts";
import { gapsOf, gapText } from "./gaps.ts";
import { lookOf, type Mark } from "./marks.ts";
import type { Selection } from "./place.ts";
import { nameOf } from "./plot.tsx";
import { endLabel } from "./row-shapes.ts";
import type { Signal } from "./signals.ts";

export interface DetailProps {
  selection: Selection;
  pods: Pods;
  marks: readonly Mark[];
  /** Marks drawn together with the selected one. */
  beside: readonly Mark[];
  signals: readonly Signal[];
  now: number;
  isReading: boolean;
  /** The address of the current view. */
  address: string;
  onSelect(selection: Selection): void;
  onClose(): void;
}

const MOST_LINES = 50;

/** Details of the selected item, with links to more. */
export function Detail(props: DetailProps) {
  const content = contentOf(props);
  return (
    <aside class="tl-detail" aria-label="Detail">
      <button type="button" class="tl-close" aria-label="Close the detail" onClick={props.onClose}>
        ✕
      </button>
      {content ?? (
        <p>
          {props.isReading
            ? "Reading what is selected…"
            : "What is selected is not in the shown stretch of time, or no longer in the log or the records."}
        </p>
      )}
      {content && (
        <p>
          <a href={props.address}>Link to this moment</a>
        </p>
      )}
    </aside>
  );
}

function contentOf(props: DetailProps): ComponentChildren {
  const { selection, pods, marks, signals } = props;
  switch (selection.kind) {
    case "mark": {
      const mark = marks.find(({ id }) => id === selection.id);
      return mark && <MarkDetail {...props} mark={mark} />;
    }
    case "pod": {
      const pod = pods.get(selection.uid);
      return pod && <PodDetail {...props} pod={pod} />;
    }
    case "container": {
      const pod = pods.get(selection.uid);
      const bar = pod?.bars.get(selection.id);
      return pod && bar && <ContainerDetail pod={pod} bar={bar} now={props.now} />;
    }
    case "reading": {
      const signal = signals.find(
        ({ plugin, scope }) => plugin === selection.plugin && scope === selection.scope,
      );
      return signal && <ReadingDetail signal={signal} at={selection.at} />;
    }
  }
}

function MarkDetail({ mark, beside, onSelect }: DetailProps & { mark: Mark }) {
  const { word, glyph } = lookOf(mark.kind);
  return (
    <>
      <h2>
        <span aria-hidden="true">{glyph}</span> {word}
      </h2>
      <p>
        <time>{timeText(mark.at)}</time>: {shown(mark.title, 500)}
      </p>
      {gapsOf([mark], { from: mark.at, to: mark.at }).map((gap) => (
        <p key={gap.to}>{gapText(gap)}.</p>
      ))}
      <Links pod={mark.pod} plugin={mark.plugin} round={mark.round} />
      {beside.length > 1 && (
        <>
          <h3>At the same time</h3>
          <ul>
            {beside.slice(0, MOST_LINES).map((other) => (
              <li key={other.id}>
                <button
                  type="button"
                  aria-pressed={other === mark}
                  onClick={() => onSelect({ kind: "mark", id: other.id })}
                >
                  {timeText(other.at)} {lookOf(other.kind).word}
                </button>
              </li>
            ))}
          </ul>
          {beside.length > MOST_LINES && <p>{beside.length - MOST_LINES} more: zoom in.</p>}
        </>
      )}
    </>
  );
}

function PodDetail({ pod, marks, now, onSelect }: DetailProps & { pod: PodBars }) {
  const bars = [...pod.bars.values()].filter(({ kind }) => kind === "container").reverse();
  const own = marks.filter((mark) => mark.pod?.uid === pod.uid);
  return (
    <>
      <h2>{shown(podName(pod), 600)}</h2>
      <Links pod={pod} />
      {own.length > 0 && (
        <ul>
          {own.slice(-MOST_LINES).map((mark) => (
            <li key={mark.id}>
              <time>{timeText(mark.at)}</time> {lookOf(mark.kind).word}: {shown(mark.title, 300)}
            </li>
          ))}
        </ul>
      )}
      <h3>Containers, newest first</h3>
      <ul>
        {bars.slice(0, MOST_LINES).map((bar) => (
          <li key={bar.id}>
            <button type="button" onClick={() => onSelect({ kind: "container", uid: pod.uid, id: bar.id })}>
              {shown(bar.name)}
            </button>{" "}
            {lifeText(bar, now)}
          </li>
        ))}
      </ul>
      {bars.length > MOST_LINES && <p>{bars.length - MOST_LINES} more.</p>}
    </>
  );
}

function ContainerDetail({ pod, bar, now }: { pod: PodBars; bar: Bar; now: number }) {
  const before = [...pod.bars.values()].filter(({ kind, name }) => kind === bar.kind && name === bar.name);
  const place = before.indexOf(bar);
  return (
    <>
      <h2>{bar.kind === "sandbox" ? "Sandbox" : `Container ${shown(bar.name)}`}</h2>
      <p>{lifeText(bar, now)}</p>
      <dl>
        <dt>Started</dt>
        <dd>{bar.from === undefined ? "before what is known" : timeText(bar.from)}</dd>
        {bar.to !== undefined && (
          <>
            <dt>{bar.end}</dt>
            <dd>{timeText(bar.to)}</dd>
          </>
        )}
        {bar.exitCode !== undefined && (
          <>
            <dt>Exit code</dt>
            <dd>{bar.exitCode}</dd>
          </>
        )}
        {bar.reason !== "" && (
          <>
            <dt>Reason</dt>
            <dd>{shown(bar.reason)}</dd>
          </>
        )}
        {bar.kind === "container" && (
          <>
            <dt>Restarts</dt>
            <dd>{bar.attempt ?? (place > 0 ? `${place} or more` : "none seen")}</dd>
          </>
        )}
        <dt>ID</dt>
        <dd>
          <code>{shown(bar.id)}</code>
        </dd>
      </dl>
      <Links pod={pod} />
    </>
  );
}

function ReadingDetail({ signal, at }: { signal: Signal; at: number }) {
  const index = signal.at.indexOf(at);
  if (index < 0) return <p>This reading is not kept any more.</p>;
  const { observed, threshold, met, unit, operator, plugin, scope } = signal;
  return (
    <>
      <h2>{nameOf(signal)}</h2>
      <p>
        {met[index] === "none" ? "Not met" : `Met (${met[index]})`} at <time>{timeText(at)}</time>
      </p>
      <dl>
        <dt>Observed</dt>
        <dd>{quantity(observed[index] ?? null, unit)}</dd>
        <dt>Threshold</dt>
        <dd>
          {operator === "greaterThan" ? "> " : "< "}
          {quantity(threshold[index] ?? null, unit)}
        </dd>
        <dt>Signal</dt>
        <dd>{shown(scope) || "not named"}</dd>
      </dl>
      <Links plugin={plugin} />
    </>
  );
}

type LinksProps = Pick<Mark, "plugin" | "round"> & { pod?: Mark["pod"] | PodBars };

function Links({ pod, plugin, round }: LinksProps) {
  return (
    <ul class="tl-links">
      {pod && (
        <li>
          <a href={addressOf("pod", [pod.namespace, pod.name], { uid: pod.uid })}>
            Pod {shown(podName(pod), 600)}
          </a>
        </li>
      )}
      {plugin !== undefined && (
        <li>
          <a href={addressOf("plugins", [plugin])}>Plugin {shown(plugin)}</a>
        </li>
      )}
      {round !== undefined && (
        <li>
          <RoundLink id={round} />
        </li>
      )}
    </ul>
  );
}

/** "runs for 5 min", "ran for 12 s: OOMKilled (exit 137)" */
export function lifeText(bar: Bar, now: number): string {
  if (bar.to === undefined) return bar.from === undefined ? "runs" : `runs for ${age(now - bar.from)}`;
  const least = bar.end === "Known until" ? "at least " : "";
  const ran = bar.from === undefined ? "exited" : `ran for ${least}${age(bar.to - bar.from)}`;
  const code = endOf(bar) === "oom" && bar.exitCode !== undefined ? ` (exit ${bar.exitCode})` : "";
  return `${ran}: ${shown(endLabel(bar))}${code}`;
}
