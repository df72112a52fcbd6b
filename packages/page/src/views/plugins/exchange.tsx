import { Problem, Waiting } from "../../parts/notice.tsx";
import { Sparkline } from "../../parts/sparkline.tsx";
import { Age } from "../../parts/time.tsx";
import { useAnswer } from "../../parts/use-answer.ts";
import { shown } from "../../text.ts";
import { durationText, latencyText } from "./calls.ts";
import { messageText } from "./message-text.ts";

interface ExchangeProps {
  type: string;
  name: string;
  /** When it changes, the exchange is requested again. */
  version: unknown;
}

/** The last exchanges between a plugin and the agent, by call, with the durations of recent calls. */
export function Exchange({ type, name, version }: ExchangeProps) {
  const { value, problem } = useAnswer("plugins/exchange", { type, name }, version);
  if (!value && problem) return <Problem problem={problem}>The last exchange can't be shown.</Problem>;
  if (!value) return <Waiting>Loading the last exchange.</Waiting>;
  const { calls, durations } = value;
  return (
    <>
      {problem && <Problem problem={problem}>This is the exchange as it was before.</Problem>}
      <h3>Last exchange</h3>
      {calls.length === 0 && (
        <p>Nothing was exchanged yet. It appears with the plugin's first message or call.</p>
      )}
      <div class="exchanges">
        {calls.map((call) => (
          <section key={call.call} class="exchange">
            <h4>
              {shown(call.call, 120)}{" "}
              <small>
                <Age since={call.at} />
                {call.ms !== undefined && `, took ${durationText(call.ms)}`}
              </small>
            </h4>
            {call.isUnimplemented && (
              <p>The plugin does not implement this call, which is optional: no failure.</p>
            )}
            {call.error && <p class="bad">Failed: {shown(call.error, 1_000)}</p>}
            <Latency durations={durations.filter((each) => each.call === call.call)} />
            <Message what="Request" text={call.request} />
            <Message what="Answer" text={call.answer} />
          </section>
        ))}
      </div>
    </>
  );
}

function Latency({ durations }: { durations: readonly { ms: number; ok: boolean }[] }) {
  if (durations.length === 0) return null;
  const text = latencyText(durations);
  return (
    <figure class="latency">
      <Sparkline values={durations.map(({ ms }) => ms)} text={text} />
      <figcaption>
        <small>{text}</small>
      </figcaption>
    </figure>
  );
}

function Message({ what, text }: { what: string; text: string | undefined }) {
  if (text === undefined) return null;
  return (
    <details>
      <summary>{what}</summary>
      <pre>{messageText(text)}</pre>
    </details>
  );
}
