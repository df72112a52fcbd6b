// Checks which room imports which: node scripts/check-rooms.ts
import { findRoomProblems } from "./rooms.ts";

const problems = await findRoomProblems(`${import.meta.dirname}/..`);
for (const problem of problems) console.log(problem);
if (problems.length > 0) process.exitCode = 1;
