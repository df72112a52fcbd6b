import fc from "fast-check";

// CI judges one change, so that it takes the same inputs each time; everywhere else each run finds others.
if (process.env.CI) fc.configureGlobal({ seed: 1_042 });
