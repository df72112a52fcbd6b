import { evictionPolicyOf } from "@nodekeeper/api/decide";
import { policyDifferences } from "@nodekeeper/api/replay";
import { defaultConfiguration, policySettings } from "@nodekeeper/api/settings";
import { describe, expect, it } from "vitest";
import { applyTexts, fields, recordedText, textsOf } from "./fields.ts";
import { applyingIt, snippetOf } from "./yaml.ts";

const configuration = defaultConfiguration();
const typed = (texts: Record<string, string>) => applyTexts(configuration, new Map(Object.entries(texts)));

/** Another valid text for each field. */
const others: Readonly<Record<string, string>> = {
  burst: "-1",
  "limits.perNode": "0",
  "limits.perNamespace": "7",
  "limits.perOwner": "0",
  "limits.window": "1h30m",
  dryRunPlugins: "",
  ranking: "qosLevel,qosClass,priority,scope",
  fallbackPlugins: "*,-noisy",
  "skip.labels": "example.com/keep,app",
  "skip.annotations": "example.com/keep",
  "skip.daemonSets": "false",
  cooldown: "1m",
  longestRelease: "20m",
  releaseMargin: "45s",
  failedEvictionPause: "2m",
  forgetPluginAfter: "0s",
  "grace.shortest": "0s",
  "grace.longest": "5m",
  "grace.allowZero": "true",
  conditionTransitionPeriod: "10m",
  taintEffects: "NoExecute",
  taintPrefix: "example.com",
};

describe("the fields of the form", () => {
  it("are the settings of the policy, each once", () => {
    expect(fields.map(({ setting }) => setting.path).sort()).toEqual(
      policySettings.map(({ path }) => path).sort(),
    );
    expect(Object.keys(others).sort()).toEqual(fields.map(({ name }) => name).sort());
  });

  it("start with the configuration in force, which changes nothing", () => {
    const texts = textsOf(configuration);
    expect(texts.get("cooldown")).toBe("30s");
    expect(texts.get("taintEffects")).toBe("NoSchedule,PreferNoSchedule");
    expect(applyTexts(configuration, texts)).toEqual({
      eviction: configuration.eviction,
      changed: [],
      problems: new Map(),
    });
  });

  it.each(Object.entries(others))(
    "%s: %s changes one field of the policy, which is recognized there",
    (name, text) => {
      const field = fields.find((each) => each.name === name)!;
      const edited = typed({ [name]: text });
      expect(edited.problems).toEqual(new Map());
      const policy = evictionPolicyOf(edited);
      expect(policyDifferences(evictionPolicyOf(configuration), policy)).toHaveLength(1);
      expect(recordedText(field, policy)).toBe(text);
      expect(recordedText(field, evictionPolicyOf(configuration))).toBe(textsOf(configuration).get(name));
    },
  );

  it("keep the value in force where a text is refused, with the reason of the agent", () => {
    const { eviction, changed, problems } = typed({ cooldown: "5 minutes", burst: "1" });
    expect(eviction.cooldown).toBe(30_000);
    expect(eviction.burst).toBe(1);
    expect(changed.map(({ field }) => field.name)).toEqual(["burst"]);
    expect(problems.get("cooldown")).toContain('got "5 minutes", expected a duration from 0s to 24h');
  });

  it("take another way to write the value in force as no change", () => {
    expect(typed({ cooldown: "0.5m" }).changed).toEqual([]);
  });
});

describe("the snippet", () => {
  it("has the changed settings as the file has them", () => {
    const { changed } = typed({
      burst: "1",
      "limits.perOwner": "0",
      cooldown: "1m",
      "skip.labels": "a/b, c",
    });
    expect(snippetOf(changed)).toBe(`\
eviction:
  burst: 1
  limits:
    perOwner: 0
  skip:
    labels:
    - a/b
    - c
  cooldown: "1m"
`);
    expect(applyingIt(changed)).toBe("The agent applies the file when it changes.");
  });

  it("names what needs a restart, and is empty without a change", () => {
    expect(applyingIt(typed({ taintPrefix: "example.com" }).changed)).toBe(
      "eviction.taintPrefix needs a restart of the agent.",
    );
    expect(applyingIt(typed({ taintPrefix: "example.com", burst: "1" }).changed)).toBe(
      "The agent applies the file when it changes. eviction.taintPrefix needs a restart of the agent.",
    );
    expect(snippetOf([])).toBe("");
  });
});
