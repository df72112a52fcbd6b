/** At most so many test files run at the same time. */
export const workers = 8;

/** The number of the worker of vitest that this process is, below `workers`; 0 outside of tests. */
export const worker = Number(process.env.VITEST_POOL_ID ?? 0) % workers;
