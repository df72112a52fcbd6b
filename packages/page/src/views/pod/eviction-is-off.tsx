/** What is unknown about pods because eviction is disabled, and how to enable recording. */
export function EvictionIsOff() {
  return (
    <p class="notice">
      <b>Eviction is off.</b> Nothing is recorded about why pods end; only what the container runtime has is
      shown. To record it without evicting, set <code>eviction.enabled: true</code> and{" "}
      <code>eviction.dryRunPlugins: ["*"]</code>, the default.
    </p>
  );
}
