import { Section } from "../../parts/section.tsx";
import { SignalDays } from "../../parts/signal-days.tsx";

/** What all eviction plugins observed in the last 24 hours. */
export function SignalsSection() {
  return (
    <Section title="Last 24 hours" remark="what plugins observed against their thresholds">
      <SignalDays none="No value of the last 24 hours is recorded." />
    </Section>
  );
}
